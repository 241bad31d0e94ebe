"""What a tensor looked like: statistics over its finite elements in float64, and a sketch of its distribution."""

import torch
from torch.utils.weak import WeakIdKeyDictionary

# Elements that are converted to float64 at a time.
CHUNK = 1 << 22
# Elements that the quantiles are taken from, at most.
SAMPLE = 1 << 14
# Quantiles at equal steps, both ends included.
QUANTILES = 17


class Features:
    """Features of tensors, each computed once for each version of its values."""

    def __init__(self, parameters=()):
        self._known = WeakIdKeyDictionary()
        self._parameters = {storage_key(tensor) for tensor in parameters}

    def of(self, tensor):
        """The features of `tensor` as an object of `ulpian-features/1`."""
        version = version_of(tensor)
        known = self._known.get(tensor)
        if known is None or known[0] != version or version is None:
            known = (version, describe(tensor))
            self._known[tensor] = known
        features = dict(known[1])
        if isinstance(tensor, torch.nn.Parameter) or storage_key(tensor) in self._parameters:
            features["parameter"] = True
        return features

    def forget(self, tensor):
        """The tensor was made or written to just now."""
        self._known.pop(tensor, None)


def storage_key(tensor):
    """What tensors share that share memory; None where there is no storage."""
    try:
        return tensor.untyped_storage()._cdata
    except (RuntimeError, NotImplementedError):
        return None


def version_of(tensor):
    """How often the tensor's memory was written to; None for an inference tensor, which does not count."""
    try:
        return tensor._version
    except RuntimeError:
        return None


@torch.no_grad()
def describe(tensor):
    """The features of a dense tensor whose dtype a case can hold."""
    features = {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape)}
    # Of a subclass the elements count, not its own operators.
    tensor = tensor.detach().as_subclass(torch.Tensor)
    flat = tensor.reshape(-1)
    total = flat.numel()
    zeros, count, mean, moment, least, greatest = 0, 0, 0.0, 0.0, None, None
    for start in range(0, total, CHUNK):
        chunk = flat[start : start + CHUNK].to(torch.float64)
        zeros += total_of(chunk == 0)
        finite = chunk.isfinite()
        if not bool(finite.all()):
            chunk = chunk[finite]
        n = chunk.numel()
        if n == 0:
            continue
        low, high = (float(end) for end in torch.aminmax(chunk))
        least = low if least is None else min(least, low)
        greatest = high if greatest is None else max(greatest, high)
        # Chan, Golub, LeVeque: two parts' means and second moments joined.
        part = float(chunk.mean())
        spread = float(((chunk - part) ** 2).sum())
        joined = count + n
        shift = part - mean
        mean += shift * (n / joined)
        moment += spread + shift * shift * (count * n / joined)
        count = joined
    features["zeros"] = zeros / total if total else 0.0
    features["nonfinite"] = (total - count) / total if total else 0.0
    if count:
        std = (max(moment, 0.0) / count) ** 0.5
        statistics = {"min": least, "max": greatest, "mean": mean, "std": std}
        # float64 values near its end overflow when they are summed; such a statistic is absent.
        features.update((name, value) for name, value in statistics.items() if abs(value) < float("inf"))
        features["quantiles"] = _quantiles(flat, least, greatest)
        if tensor.dtype.is_floating_point and tensor.dtype.itemsize <= 4:
            _shorten(features)
    return features


def _shorten(features):
    """Nine digits name every float32; more would only make the file longer."""
    for name in ("min", "max", "mean", "std"):
        if name in features:
            features[name] = float(f"{features[name]:.9g}")
    features["quantiles"] = [float(f"{value:.9g}") for value in features["quantiles"]]


def total_of(mask):
    """How many elements of `mask` are true."""
    return int(mask.sum())


def _quantiles(flat, least, greatest):
    # An odd step meets every column of a table whose width is a power of two.
    step = max(1, -(-flat.numel() // SAMPLE)) | 1 if flat.numel() > SAMPLE else 1
    sample = flat[::step].to(torch.float64)
    sample = sample[sample.isfinite()]
    if sample.numel() == 0:
        return []
    ordered = sample.sort().values
    at = torch.linspace(0, ordered.numel() - 1, QUANTILES, dtype=torch.float64)
    # The nearest element, not one between two: the sketch holds values that were there.
    values = ordered[at.round().long()].tolist()
    return [least, *values[1:-1], greatest]
