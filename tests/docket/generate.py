"""Writes the docket: thirty public disputes as cases, their tensors and their expected outcomes.

    python3 tests/docket/generate.py        (numpy is all it needs)

Running it again gives the same files. Random rows come from numpy's frozen legacy generator (RandomState) with the
row's number as seed. What a GPU or another library was reported to return stands under `observed`; where a report gives
the arithmetic and not the bits (TF32, windows ended by floor), they are computed here, in numpy, apart from Ulpian's
replays. Expected truths are computed here too, apart from Ulpian's reference: in rational arithmetic, in 80 decimal
digits, or in float64 where the tolerance beside them says so. Truths too long for a JSON file are in `truth/`, rounded
to the result's dtype.
"""

import json
import math
from decimal import Decimal, getcontext
from fractions import Fraction
from pathlib import Path

import numpy as np

getcontext().prec = 80
FOLDER = Path(__file__).parent
INLINE = 64
SAFETENSORS_DTYPE = {"float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64"}
NUMPY_DTYPE = {"float64": "<f8", "float32": "<f4", "float16": "<f2", "int64": "<i8"}


class Tensor:
    """Values that are exact in `dtype`; rounds to nearest, ties to even, what is not."""

    def __init__(self, values, shape=None, dtype="float32"):
        values = np.asarray(values, dtype=np.int64 if dtype == "int64" else np.float64)
        values = values.reshape(values.shape if shape is None else shape)
        self.dtype = dtype
        self.values = bf16(values) if dtype == "bfloat16" else values.astype(NUMPY_DTYPE[dtype]).astype(values.dtype)

    def shape(self):
        return list(self.values.shape)

    def json(self):
        data = [int(v) if self.dtype == "int64" else number(v) for v in self.values.ravel().tolist()]
        return {"dtype": self.dtype, "shape": self.shape(), "data": data}

    def bytes(self):
        if self.dtype == "bfloat16":
            return (self.values.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()
        return self.values.astype(NUMPY_DTYPE[self.dtype]).tobytes()


def bf16(values):
    """Float64 values rounded to bfloat16 (finite values that float32 holds exactly)."""
    bits = values.astype("<f4").view("<u4").astype(np.uint64)
    return (((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) << 16).astype("<u4").view("<f4").astype(np.float64)


def number(v):
    if math.isnan(v):
        return "nan"
    if math.isinf(v):
        return "inf" if v > 0 else "-inf"
    if v == 0 and math.copysign(1, v) < 0:
        return "-0.0"
    return int(v) if v == int(v) and abs(v) < 2**53 else v


def write_safetensors(path, tensors):
    header, blobs, at = {}, [], 0
    for name, tensor in tensors.items():
        blob = tensor.bytes()
        header[name] = {"dtype": SAFETENSORS_DTYPE[tensor.dtype], "shape": tensor.shape(), "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header, separators=(",", ":"))
    text += " " * (-len(text) % 8)
    path.write_bytes(len(text).to_bytes(8, "little") + text.encode() + b"".join(blobs))


def case(name, source, nodes, expect, observed=(), outputs=None, long_truth=None):
    """Writes one case. A node is (id, op, args); an observation is (executor, node, Tensor)."""
    stored = {}

    def place(value, key):
        if not isinstance(value, Tensor):
            return value
        if value.values.size <= INLINE:
            return value.json()
        for known, tensor in stored.items():
            if tensor is value:
                return "@" + known
        stored[key] = value
        return "@" + key

    body = {"format": "ulpian-case/1", "name": name, "source": source, "nodes": []}
    for node, op, args in nodes:
        placed = {k: place(v, k if len(nodes) == 1 else f"{node}.{k}") for k, v in args.items()}
        body["nodes"].append({"id": node, "op": op, "args": placed})
    body["outputs"] = outputs or [nodes[-1][0]]
    if observed:
        body["observed"] = [
            {"executor": who, "node": node, "tensor": place(seen, f"seen.{who}.{node}")} for who, node, seen in observed
        ]
    if stored:
        body["tensors"] = f"{name}.safetensors"
        write_safetensors(FOLDER / f"{name}.safetensors", stored)
    body["expect"] = expect
    (FOLDER / f"{name}.json").write_text(pretty(body) + "\n")
    if long_truth:
        (FOLDER / "truth").mkdir(exist_ok=True)
        write_safetensors(FOLDER / "truth" / f"{name}.safetensors", long_truth)


def pretty(value, indent=0, width=118):
    """JSON with an object or list on one line wherever it fits."""
    flat = json.dumps(value)
    if len(flat) + indent <= width or not isinstance(value, (dict, list)) or not value:
        return flat
    pad = " " * (indent + 2)
    if isinstance(value, dict):
        rows = [f"{pad}{json.dumps(k)}: {pretty(v, indent + 2, width - len(k) - 5)}" for k, v in value.items()]
        return "{\n" + ",\n".join(rows) + "\n" + " " * indent + "}"
    if all(not isinstance(v, (dict, list)) for v in value):
        rows, line = [], ""
        for v in value:
            item = json.dumps(v)
            if line and len(line) + len(item) + 2 + len(pad) > 118:
                rows.append(pad + line)
                line = ""
            line += (", " if line else "") + item
            if v is not value[-1] and len(line) > 100:
                rows.append(pad + line)
                line = ""
        if line:
            rows.append(pad + line)
        return "[\n" + ",\n".join(rows) + "\n" + " " * indent + "]"
    return "[\n" + ",\n".join(pad + pretty(v, indent + 2, width) for v in value) + "\n" + " " * indent + "]"


def truth(values, tolerance=0.0, relative=0.0):
    # `-0.0` as text is for tensors alone; here it is a JSON number.
    entry = {"values": [v if v == 0 and math.copysign(1, v) < 0 else number(float(v)) for v in np.asarray(values).ravel().tolist()]}
    if tolerance:
        entry["tolerance"] = tolerance
    if relative:
        entry["relative"] = relative
    return entry


def pytorch(number_, text):
    return f"https://github.com/pytorch/pytorch/issues/{number_}: {text}"


# ---- independent arithmetic -------------------------------------------------------------------------------------

HALF_ULP = 2.0**-53  # of a result printed as float64


def normalised(values, eps):
    """(x - mean) / sqrt(var + eps), exact statistics, 80 digits."""
    x = [Fraction(float(v)) for v in values]
    mean = sum(x) / len(x)
    var = sum((v - mean) ** 2 for v in x) / len(x) + Fraction(eps)
    scale = (Decimal(var.numerator) / Decimal(var.denominator)).sqrt()
    return [float(Decimal((v - mean).numerator) / Decimal((v - mean).denominator) / scale) for v in x]


def gelu_erf(x):
    """x Phi(x) by erf's Taylor series in 80 digits: 35 of them are lost at -10 and 45 remain."""
    z = Decimal(x) / Decimal(2).sqrt()
    term, total, n = z, z, 0
    while abs(term) > Decimal(10) ** -78:
        n += 1
        term *= -z * z / n
        total += term / (2 * n + 1)
    return float(Decimal(x) * (1 + 2 / PI.sqrt() * total) / 2)


def pi():
    """Machin: pi = 16 atan(1/5) - 4 atan(1/239)."""

    def atan_inverse(n):
        total, power, k = Decimal(0), Decimal(1) / n, 0
        while power > Decimal(10) ** -90:
            total += (-1) ** k * power / (2 * k + 1)
            power /= n * n
            k += 1
        return total

    return 16 * atan_inverse(5) - 4 * atan_inverse(239)


PI = pi()


def gelu_tanh(x):
    """0.5 x (1 + tanh t) = x / (1 + exp(-2 t))."""
    x = Decimal(x)
    t = (2 / PI).sqrt() * (x + Decimal("0.044715") * x**3)
    return float(x / (1 + (-2 * t).exp()))


def exact_products(a, b):
    """Rows of a times columns of b, each sum correctly rounded to float64: products of float32 are exact there."""
    return np.array([[math.fsum(row * column) for column in b.T] for row in a])


def unfold(x, kernel):
    """The windows of a (C, H, W) image as columns: (C kernel kernel, positions); stride 1, no padding."""
    c, h, w = x.shape
    views = [x[:, i : i + h - kernel + 1, j : j + w - kernel + 1] for i in range(kernel) for j in range(kernel)]
    return np.stack(views, axis=1).reshape(c * kernel * kernel, -1)


def tf32_ties_away(x):
    """Float32 values rounded to 10 fraction bits, ties away from zero."""
    bits = x.astype("<f4").view("<u4").astype(np.uint64)
    return (((bits + 0x1000) >> 13) << 13).astype("<u4").view("<f4")


def tf32_matmul(a, b):
    """TF32 operands, products exact, one float32 accumulator, ascending k."""
    a, b = tf32_ties_away(a), tf32_ties_away(b)
    total = np.zeros((a.shape[0], b.shape[1]), dtype=np.float32)
    for k in range(a.shape[1]):
        total = total + a[:, k : k + 1] * b[k : k + 1, :]
    return total


# ---- the rows ---------------------------------------------------------------------------------------------------


def rows_01_to_07():
    x = Tensor([1.3046875, 0.87890625], (2, 1), "bfloat16")
    case(
        "d01-batch-norm-bf16",
        pytorch(140112, "the same batch_norm in training differs between CPU and CUDA; the triage blamed CUDA."),
        [("bn", "batch_norm", {"input": x, "running_mean": None, "running_var": None, "training": True, "eps": 1e-5})],
        {
            "cause": ["framework"],
            "grade": "confirmed-by-intervention",
            "parties": {"torch:cpu": ["framework"], "recorded:cuda": ["agree"]},
            "truth": {"bn": truth(normalised(x.values.ravel(), 1e-5), relative=HALF_ULP)},
        },
        [("cuda", "bn", Tensor([1, -1], (2, 1), "bfloat16"))],
    )

    training = {"running_mean": None, "running_var": None, "training": True, "eps": 1e-5}
    constant = np.full(100, 9765625000.0)
    case(
        "d02-batch-norm-constant",
        pytorch(5410, "batch_norm of a constant image is not 0. The second node has several channels, since only then "
                "does a channels_last layout differ from the contiguous one."),
        [
            ("one", "batch_norm", {"input": Tensor(constant, (1, 1, 10, 10)), **training}),
            ("four", "batch_norm", {"input": Tensor(np.tile(constant, 4), (1, 4, 10, 10)), **training}),
        ],
        {
            "cause": ["framework"],
            "grade": "confirmed-by-intervention",
            "executors": ["torch:cpu?layout=channels_last", "torch:cpu?isa=default", "torch:cpu?compile=on"],
            "parties": {
                "torch:cpu": ["framework"],
                "torch:cpu?layout=channels_last": ["framework"],
                "torch:cpu?isa=default": ["agree"],
                # 0 in torch 2.11, 1 in torch 2.15: the mean is off by an ulp of the input there.
                "torch:cpu?compile=on": ["agree", "conditioning"],
            },
            "truth": {"one": truth([0]), "four": truth([0])},
        },
        outputs=["one", "four"],
    )

    variance = np.float32(1e-10)
    exact = Decimal("0.5") / (Decimal(float(variance)) + Decimal(1e-5)).sqrt()
    case(
        "d03-batch-norm-folded",
        "Derived from the formula of PyTorch's CPU kernel: x alpha + (bias - mean alpha) cancels where (x - mean) is exact.",
        [
            (
                "bn",
                "batch_norm",
                {
                    "input": Tensor([1000000.5], (1, 1)),
                    "running_mean": Tensor([1e6]),
                    "running_var": Tensor([variance]),
                    "eps": 1e-5,
                },
            )
        ],
        {
            "cause": ["framework"],
            "grade": "confirmed-by-intervention",
            "executors": ["torch:cpu?isa=default", "torch:cpu?compile=on", "ort:cpu"],
            "parties": {
                "torch:cpu": ["framework"],
                "torch:cpu?isa=default": ["framework"],
                "torch:cpu?compile=on": ["agree", "rounding"],
                "ort:cpu": ["vendor"],
            },
            "truth": {"bn": truth([float(exact)], relative=HALF_ULP)},
        },
    )

    x = Tensor([299.9, 300.1, 300.05, 299.95], (4, 1))
    case(
        "d04-batch-norm-large-mean",
        pytorch(121651, "batch_norm in training loses three digits where the mean is far from 0."),
        [("bn", "batch_norm", {"input": x, **training})],
        {
            "cause": ["framework"],
            "grade": "confirmed-by-intervention",
            "executors": ["torch:cpu?isa=default"],
            "parties": {"torch:cpu": ["framework"], "torch:cpu?isa=default": ["framework"]},
            "truth": {"bn": truth(normalised(x.values.ravel(), 1e-5), relative=HALF_ULP)},
        },
    )

    x = [1e19, -1e19, 1e19, -1e19]
    nan = [math.nan] * 4
    case(
        "d05-norms-of-1e19",
        pytorch(162489, "layer_norm and batch_norm of values near 1e19: the squares overflow float32."),
        [
            ("ln", "layer_norm", {"input": Tensor(x, (1, 4)), "normalized_shape": [4], "eps": 1e-5}),
            ("bn", "batch_norm", {"input": Tensor(x, (4, 1)), **training}),
        ],
        {
            "cause": ["framework"],
            "grade": "confirmed-by-intervention",
            "parties": {"torch:cpu": ["framework"], "recorded:cuda": ["framework"]},
            "truth": {"ln": truth([1, -1, 1, -1], relative=HALF_ULP), "bn": truth([1, -1, 1, -1], relative=HALF_ULP)},
        },
        [("cuda", "ln", Tensor(nan, (1, 4))), ("cuda", "bn", Tensor(nan, (4, 1)))],
        outputs=["ln", "bn"],
    )

    case(
        "d06-layer-norm-sum-overflows",
        pytorch(173793, "layer_norm of 2048 equal values of 8.5071e37 is NaN in eager mode and 0 when compiled."),
        [("ln", "layer_norm", {"input": Tensor(np.full(2048, 8.5071e37), (1, 2048)), "normalized_shape": [2048]})],
        {
            "cause": ["framework"],
            "grade": "confirmed-by-intervention",
            "executors": ["torch:cpu?compile=on"],
            "parties": {"torch:cpu": ["framework"], "torch:cpu?compile=on": ["agree"]},
            "truth": {"ln": truth([0])},
        },
    )

    x = Tensor([1999.125, 2000.5, 2001.75, 1998.875], (1, 4))
    case(
        "d07-layer-norm-large-mean",
        pytorch(51102, "layer_norm differs from a float64 computation; 6e-5 in torch 2.1.2, 4.2e-6 later."),
        [("ln", "layer_norm", {"input": x, "normalized_shape": [4], "eps": 1e-5})],
        {
            "cause": ["conditioning"],
            "parties": {"torch:cpu": ["conditioning"]},
            "truth": {"ln": truth(normalised(x.values.ravel(), 1e-5), relative=HALF_ULP)},
        },
    )


def rows_08_to_16():
    x = [-4, -5, -5.5, -6, -8, -10]
    case(
        "d08-gelu-tail",
        pytorch(187806, "gelu's negative tail: 0.5 x (1 + erf) cancels, in oneDNN as in the framework's own kernel."),
        [("gelu", "gelu", {"input": Tensor(x)})],
        {
            "cause": ["vendor", "framework"],
            "executors": ["torch:cpu?mkldnn=off"],
            "parties": {"torch:cpu": ["vendor"], "torch:cpu?mkldnn=off": ["framework"]},
            "truth": {"gelu": truth([gelu_erf(v) for v in x], relative=HALF_ULP)},
        },
    )

    x = [-4, -5, -5.5, -6]
    case(
        "d09-gelu-tanh-tail",
        "https://github.com/tenstorrent/tt-metal/issues/56517: gelu's tanh form in the negative tail; PyTorch was the yardstick.",
        [("gelu", "gelu", {"input": Tensor(x), "approximate": "tanh"})],
        {
            "cause": ["framework"],
            "grade": "confirmed-bitwise",
            "parties": {"torch:cpu": ["framework"]},
            "truth": {"gelu": truth([gelu_tanh(v) for v in x], relative=HALF_ULP)},
        },
    )

    x = Tensor([math.nan, math.inf, -math.inf, 0.1, 0.2, 0.3], (2, 3))
    case(
        "d10-gelu-infinities",
        pytorch(187293, "gelu of infinities: NaN where the limits are inf and 0."),
        [("gelu", "gelu", {"input": x})],
        {
            "cause": ["vendor", "framework"],
            "grade": "confirmed-by-intervention",
            "executors": ["torch:cpu?mkldnn=off"],
            # oneDNN turns inf into NaN on AVX-512 only; the NaN for -inf is the framework's formula everywhere.
            "parties": {"torch:cpu": ["vendor", "framework"], "torch:cpu?mkldnn=off": ["framework"]},
            "truth": {
                "gelu": truth(
                    [math.nan, math.inf, 0] + [gelu_erf(float(v)) for v in x.values.ravel()[3:]], relative=HALF_ULP
                )
            },
        },
    )

    random = np.random.RandomState(11)
    x, w, b = (Tensor(random.uniform(0, 1, shape)) for shape in ((2, 20), (5, 20), (5,)))
    with_one = [np.concatenate([v, np.ones((len(v), 1))], axis=1) for v in (x.values,)]
    exact = exact_products(with_one[0], np.concatenate([w.values, b.values[:, None]], axis=1).T)
    case(
        "d11-linear-batch-of-one",
        pytorch(136338, "a row of a linear alone and in a batch of 2."),
        [("linear", "linear", {"input": x, "weight": w, "bias": b})],
        {
            "cause": ["rounding"],
            "executors": ["torch:cpu?batch=1"],
            "parties": {"torch:cpu": ["rounding", "agree"], "torch:cpu?batch=1": ["rounding", "agree"]},
            "truth": {"linear": truth(exact, relative=HALF_ULP)},
        },
    )

    value = np.float32(242 / 62 / 62) ** 2
    case(
        "d12-conv2d-large-kernel",
        pytorch(24172, "conv2d of a constant 62x62 image with a 62x62 kernel of ones."),
        [("conv", "conv2d", {"input": Tensor(np.full(3844, value), (1, 1, 62, 62)), "weight": Tensor(np.ones((1, 1, 62, 62)))})],
        {
            "cause": ["rounding"],
            "executors": ["torch:cpu?mkldnn=off"],
            "parties": {"torch:cpu": ["rounding"], "torch:cpu?mkldnn=off": ["rounding"]},
            "truth": {"conv": truth([3844 * float(value)], relative=HALF_ULP)},
        },
    )

    random = np.random.RandomState(13)
    x, w = Tensor(random.normal(size=(1, 3, 32, 32))), Tensor(random.normal(size=(129, 3, 3, 3)))
    exact = exact_products(w.values.reshape(129, 27), unfold(x.values[0], 3)).reshape(1, 129, 30, 30)
    case(
        "d13-conv2d-channels-last",
        pytorch(110387, "conv2d from 3 to 129 channels, contiguous and channels_last."),
        [("conv", "conv2d", {"input": x, "weight": w})],
        {
            "cause": ["rounding"],
            "executors": ["torch:cpu?layout=channels_last"],
            "parties": {"torch:cpu": ["rounding"], "torch:cpu?layout=channels_last": ["rounding"]},
        },
        long_truth={"conv": Tensor(exact)},
    )

    case(
        "d14-adaptive-avg-pool2d-overflow",
        pytorch(44350, "the mean of four values of 3e38 is inf."),
        [("pool", "adaptive_avg_pool2d", {"input": Tensor(np.full((1, 1, 2, 2), 3e38)), "output_size": [1, 1]})],
        {
            "cause": ["framework"],
            "grade": "confirmed-bitwise",
            "parties": {"torch:cpu": ["framework"]},
            "truth": {"pool": truth([np.float32(3e38)])},
        },
    )

    case(
        "d15-div-floor-infinities",
        pytorch(170178, "floor division with infinities: -1 and NaN where the rounded quotient is -0 and inf."),
        [
            (
                "div",
                "div",
                {
                    "input": Tensor([-2.3, 2.3, math.inf, -math.inf]),
                    "other": Tensor([math.inf, -math.inf, 1, 1]),
                    "rounding_mode": "floor",
                },
            )
        ],
        {
            "cause": ["unspecified"],
            "parties": {"torch:cpu": ["unspecified"]},
            "truth": {"div": truth([-0.0, -0.0, math.inf, -math.inf])},
        },
    )

    case(
        "d16-softmax-all-minus-inf",
        pytorch(25110, "softmax over minus infinities alone: 0/0."),
        [("softmax", "softmax", {"input": Tensor([-math.inf] * 3), "dim": 0})],
        {"cause": ["unspecified"], "parties": {"torch:cpu": ["unspecified"]}, "truth": {"softmax": truth([math.nan])}},
    )


def rows_17_to_22():
    a, b = Tensor([-8.35], dtype="float16"), Tensor([-2.338], dtype="float16")
    case(
        "d17-add-alpha-float16",
        "https://github.com/microsoft/onnxruntime/issues/15977: a multiply and an add in float16; as torch.add with alpha.",
        [("add", "add", {"input": a, "other": b, "alpha": -3.125})],
        {
            "cause": ["framework"],
            "grade": "confirmed-bitwise",
            "parties": {"torch:cpu": ["framework"]},
            "truth": {"add": truth([float(a.values[0]) - 3.125 * float(b.values[0])])},
        },
    )

    case(
        "d18-mul-add-bf16-contraction",
        "https://github.com/modular/modular/issues/6159: a product and a sum in bfloat16, with and without rounding between.",
        [
            ("mul", "mul", {"input": Tensor([1.0078125], dtype="bfloat16"), "other": Tensor([1.0078125], dtype="bfloat16")}),
            ("add", "add", {"input": "%mul", "other": Tensor([-1.015625], dtype="bfloat16")}),
        ],
        {
            "cause": ["rounding", "hardware"],
            "executors": ["torch:cpu?compile=on"],
            "parties": {"torch:cpu": ["rounding"], "torch:cpu?compile=on": ["hardware"]},
            "truth": {"mul": truth([1.0078125**2]), "add": truth([1.0078125**2 - 1.015625])},
        },
    )

    random = np.random.RandomState(19)
    x, w = Tensor(random.uniform(0, 1, (1, 20, 5, 5))), Tensor(np.ones((48, 20, 3, 3)))
    exact = exact_products(w.values.reshape(48, 180), unfold(x.values[0], 3))
    case(
        "d19-conv2d-ones",
        "Modelled on " + pytorch(133093, "conv2d with a kernel of ones is off by up to 2.5e-5 on CPU."),
        [("conv", "conv2d", {"input": x, "weight": w})],
        {
            "cause": ["rounding"],
            "parties": {"torch:cpu": ["rounding"]},
            "truth": {"conv": truth(exact, relative=HALF_ULP)},
        },
    )

    row, right, positions = [1, 9, 2, 8, 3, 7, 4, 6, 5], [9, 2, 9, 3, 8, 4, 7, 5, 6], [1, 2, 1, 4, 3, 6, 5, 8, 7]
    case(
        "d20-max-pool2d-dilation",
        "https://github.com/microsoft/onnxruntime/issues/29637: the first window takes a value that is not in it.",
        [
            (
                "pool",
                "max_pool2d",
                {
                    "input": Tensor(row, (1, 1, 1, 9)),
                    "kernel_size": [1, 2],
                    "stride": 1,
                    "padding": [0, 1],
                    "dilation": [1, 2],
                    "return_indices": True,
                },
            )
        ],
        {
            "cause": ["defect"],
            "parties": {"recorded:onnxruntime": ["defect"], "torch:cpu": ["agree"]},
            "truth": {"pool": truth(right), "pool.1": truth(positions)},
        },
        [
            ("onnxruntime", "pool", Tensor([1, *right[1:]], (1, 1, 1, 9))),
            ("onnxruntime", "pool.1", Tensor([0, *positions[1:]], (1, 1, 1, 9), "int64")),
        ],
    )

    random = np.random.RandomState(21)
    x = Tensor(random.normal(size=(1, 1, 10, 10)))
    starts, ends = [i * 10 // 3 for i in range(3)], [-(-(i + 1) * 10 // 3) for i in range(3)]
    floors = [(i + 1) * 10 // 3 for i in range(3)]
    plane = x.values[0, 0]
    exact = [math.fsum(plane[starts[i] : ends[i], starts[j] : ends[j]].ravel()) / ((ends[i] - starts[i]) * (ends[j] - starts[j]))
             for i in range(3) for j in range(3)]
    seen = [plane[starts[i] : floors[i], starts[j] : floors[j]].mean() for i in range(3) for j in range(3)]
    case(
        "d21-adaptive-avg-pool2d-window",
        "https://github.com/FlagOpen/FlagGems/issues/4915: adaptive_avg_pool2d with windows ended by floor instead of ceil.",
        [("pool", "adaptive_avg_pool2d", {"input": x, "output_size": [3, 3]})],
        {
            "cause": ["defect"],
            "parties": {"recorded:flaggems": ["defect"], "torch:cpu": ["rounding", "agree"]},
            "truth": {"pool": truth(exact, tolerance=1e-15)},
        },
        [("flaggems", "pool", Tensor(seen, (1, 1, 3, 3)))],
    )

    case(
        "d22-conv2d-integers",
        pytorch(105941, "a 1x1 convolution with stride 2 over two channels of small integers."),
        [("conv", "conv2d", {"input": Tensor([1, 2, 3, 4, 5, 6, 7, 8], (1, 2, 2, 2)), "weight": Tensor([1, 2], (1, 2, 1, 1)), "stride": 2})],
        {
            "cause": ["defect"],
            "parties": {"recorded:reported": ["defect"], "torch:cpu": ["agree"]},
            "truth": {"conv": truth([11])},
        },
        [("reported", "conv", Tensor([5], (1, 1, 1, 1)))],
    )


def rows_23_to_30():
    case(
        "d23-matmul-bf16-ones",
        pytorch(83863, "1024 products of ones in bfloat16 sum to 256."),
        [("matmul", "matmul", {"input": Tensor(np.ones((1024, 1024)), dtype="bfloat16"), "other": Tensor(np.ones((1024, 1)), dtype="bfloat16")})],
        {
            "cause": ["hardware", "framework"],
            "grade": "confirmed-bitwise",
            "parties": {"recorded:reported": ["hardware", "framework"], "torch:cpu": ["agree"]},
            "truth": {"matmul": truth([1024])},
        },
        [("reported", "matmul", Tensor(np.full((1024, 1), 256), dtype="bfloat16"))],
    )

    case(
        "d24-matmul-tf32-tie",
        pytorch(53635, "1024.5 times 1 is 1025 on a GPU."),
        [("matmul", "matmul", {"input": Tensor([1024.5]), "other": Tensor([[1.0]])})],
        {
            "cause": ["hardware"],
            "grade": "confirmed-bitwise",
            "parties": {"recorded:cuda": ["hardware"], "torch:cpu": ["agree"]},
            "truth": {"matmul": truth([1024.5])},
        },
        [("cuda", "matmul", Tensor([1025]))],
    )

    a = Tensor([[0.83899, 0.54414, 331420], [-0.54414, 0.83899, 4690900], [0, 0, 1]])
    b = Tensor([[0.83899, -0.54414, 2274500], [0.54414, 0.83899, -4116000], [0, 0, 1]])
    # The reported CPU result (22.5, -29) rounds each product before adding it.
    chain = np.zeros((3, 3), dtype=np.float32)
    for k in range(3):
        chain = chain + (a.values[:, k : k + 1] * b.values[k : k + 1, :]).astype(np.float32)
    case(
        "d25-matmul-transforms",
        pytorch(116966, "two rigid transforms multiplied, given to five digits; CPU and GPU differ by a thousand."),
        [("matmul", "matmul", {"input": a, "other": b})],
        {
            "cause": ["hardware"],
            "grade": "confirmed-bitwise",
            "parties": {"recorded:cuda": ["hardware"], "recorded:cpu": ["conditioning"], "torch:cpu": ["conditioning"]},
            "truth": {"matmul": truth(exact_products(a.values, b.values), relative=HALF_ULP)},
        },
        [("cuda", "matmul", Tensor(tf32_matmul(a.values, b.values))), ("cpu", "matmul", Tensor(chain))],
    )

    random = np.random.RandomState(26)
    x, w, bias = (Tensor(random.normal(size=s) * k) for s, k in (((197, 1536), 1000), ((384, 1536), 50), ((384,), 50)))
    exact = exact_products(
        np.concatenate([x.values, np.ones((197, 1))], axis=1), np.concatenate([w.values, bias.values[:, None]], axis=1).T
    )
    seen = tf32_matmul(x.values, w.values.T) + bias.values.astype(np.float32)
    case(
        "d26-linear-tf32",
        "https://github.com/tensorflow/tensorflow/issues/127346: a large linear on a GPU, within the rigorous float32 bound "
        "and yet a thousand times worse than float32.",
        [("linear", "linear", {"input": x, "weight": w, "bias": bias})],
        {
            "cause": ["hardware"],
            "grade": "confirmed-bitwise",
            "parties": {"recorded:gpu": ["hardware"], "torch:cpu": ["rounding"]},
        },
        [("gpu", "linear", Tensor(seen))],
        long_truth={"linear": Tensor(exact)},
    )

    case(
        "d27-div-by-scalar",
        pytorch(191495, "division by a Python scalar on CUDA multiplies by the reciprocal."),
        [
            ("by13", "div", {"input": Tensor([169]), "other": 13}),
            ("by50", "div", {"input": Tensor([49.5]), "other": 50}),
        ],
        {
            "cause": ["framework"],
            "grade": "confirmed-bitwise",
            "parties": {"recorded:cuda": ["framework"], "torch:cpu": ["agree"]},
            "truth": {"by13": truth([13]), "by50": truth([0.99], relative=HALF_ULP)},
        },
        [("cuda", "by13", Tensor([13.00000095])), ("cuda", "by50", Tensor([0.98999995]))],
        outputs=["by13", "by50"],
    )

    random = np.random.RandomState(28)
    x = Tensor(random.normal(size=(16, 16384)))
    exponentials = np.exp(x.values)
    exact = exponentials / np.array([[math.fsum(row)] for row in exponentials])
    case(
        "d28-softmax-zeros",
        "https://github.com/ScalingIntelligence/KernelBench/issues/165: a softmax that returns zeros passes allclose at 1e-2.",
        [("softmax", "softmax", {"input": x, "dim": 1})],
        {
            "cause": ["defect"],
            "parties": {"recorded:kernel": ["defect"], "torch:cpu": ["rounding"]},
        },
        [("kernel", "softmax", Tensor(np.zeros((16, 16384))))],
        long_truth={"softmax": Tensor(exact)},
    )

    random = np.random.RandomState(29)
    x = Tensor(random.normal(size=(16, 384)) * 2 + 1)
    # The common part of the weights is what makes the linear ill-conditioned: layer_norm's rows sum to 0, so it cancels.
    w = Tensor(random.normal(size=(64, 384)) * 50 + 20000)
    normal = np.array([normalised(row, 1e-5) for row in x.values])
    exact = np.array([[math.fsum(row * column) for column in w.values] for row in normal])
    case(
        "d29-layer-norm-then-linear",
        "Modelled on figures 2 and 3 of the subgraph-oriented testing paper (see README): layer_norm is right to a few ulp and "
        "a linear with large weights amplifies what is left.",
        [
            ("layer_norm", "layer_norm", {"input": x, "normalized_shape": [384], "eps": 1e-5}),
            ("linear", "linear", {"input": "%layer_norm", "weight": w, "bias": None}),
        ],
        {
            "cause": ["conditioning"],
            "parties": {"torch:cpu": ["conditioning"]},
            "because": ["linear", "layer_norm"],
            "truth": {"linear": truth(exact, tolerance=1e-9)},
        },
    )

    random = np.random.RandomState(30)
    x = Tensor(random.normal(size=(1, 64, 28, 28)) * 1000)
    mean, w = Tensor(random.normal(size=64) * 1000), Tensor(random.normal(size=(64, 64, 3, 3)) * 50)
    scale, shift = Tensor(random.uniform(0.5, 1.5, 64)), Tensor(random.normal(size=64))
    normal = (x.values[0] - mean.values[:, None, None]) / math.sqrt(0.5 + 1e-5) * scale.values[:, None, None]
    pooled = np.maximum(normal + shift.values[:, None, None], 0).reshape(64, 14, 2, 14, 2).max(axis=(2, 4))
    exact = np.array([[math.fsum(a * b) for b in unfold(pooled, 3).T] for a in w.values.reshape(64, 576)])
    case(
        "d30-batch-norm-relu-max-pool2d-conv2d",
        "Modelled on " + pytorch(133001, "a chain of four ops differs by more than a threshold of 1e-3 where the largest output "
        "is in the millions."),
        [
            (
                "batch_norm",
                "batch_norm",
                {
                    "input": x,
                    "running_mean": mean,
                    "running_var": Tensor(np.full(64, 0.5)),
                    "weight": scale,
                    "bias": shift,
                    "eps": 1e-5,
                },
            ),
            ("relu", "relu", {"input": "%batch_norm"}),
            ("max_pool2d", "max_pool2d", {"input": "%relu", "kernel_size": 2}),
            ("conv2d", "conv2d", {"input": "%max_pool2d", "weight": w, "bias": None}),
        ],
        {"cause": ["rounding"], "parties": {"torch:cpu": ["rounding"]}},
        long_truth={"conv2d": Tensor(exact.reshape(1, 64, 12, 12))},
    )


if __name__ == "__main__":
    rows_01_to_07()
    rows_08_to_16()
    rows_17_to_22()
    rows_23_to_30()
