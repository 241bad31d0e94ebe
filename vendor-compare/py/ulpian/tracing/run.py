"""The process that traces one model: started by `ulpian trace` with one request, it writes the two files and says how it went.

What it says goes to the pipe that was its standard output, a JSON object a line: {"doing": text} while it works, and in the end
{"done": {"names"}}, {"refused": {"reason", "remedy"}} where the source is wrong, {"missing": {"reason", "remedy"}} where a package
is not there, or {"raised": {"kind", "message"}}. What models print goes to standard error.
"""

import json
import os
import sys
import threading
import traceback

# TorchScript would hide the calls of the functions that it compiles; it is told so before torch is imported.
os.environ["PYTORCH_JIT"] = "0"

import torch  # noqa: E402
from torch.nn.modules.batchnorm import _BatchNorm  # noqa: E402

from .recording import CutShort, Recording  # noqa: E402
from .sources import load, names  # noqa: E402
from .subject import Options, SourceError, place  # noqa: E402

# Forward passes in training mode that set batch-norm's statistics, and images in each at least.
CALIBRATION_PASSES = 3
CALIBRATION_BATCH = 4


def main(request):
    """Serves the one request, given as JSON."""
    # JSON has no lone surrogates, which Python's texts may hold.
    pipe = os.fdopen(os.dup(1), "w", encoding="utf-8", errors="replace")
    os.dup2(2, 1)
    held = os.dup(0)
    # A model that asks for input finds its end.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    threading.Thread(target=_end_with_parent, args=(held,), daemon=True).start()

    def say(**what):
        pipe.write(json.dumps(what, ensure_ascii=False) + "\n")
        pipe.flush()

    try:
        say(done=_serve(json.loads(request), lambda doing: say(doing=doing)))
    except SourceError as error:
        traceback.print_exc()
        say(**{error.kind: {"reason": error.reason, "remedy": error.remedy}})
    except BaseException as error:
        # `sys.exit` in a model included.
        traceback.print_exc()
        say(raised={"kind": type(error).__name__, "message": f"{error}{place(error)}".strip()})
    pipe.flush()
    # Libraries' threads and exit handlers have no say in whether this process ends.
    sys.stderr.flush()
    os._exit(0)


def _end_with_parent(held):
    """Standard input was a pipe that Ulpian holds open for as long as it lives."""
    while os.read(held, 4096):
        pass
    os._exit(0)


def _serve(request, doing):
    if request.get("list"):
        return {"names": list(names(request["list"]))}
    options = Options(
        batch=request["batch"], image_size=request["image_size"], seed=request["seed"], dtype=request["dtype"]
    )
    torch.set_num_threads(request["threads"])
    trace(request["source"], options, request["graph"], request["features"], doing)
    return {}


def trace(source, options, graph_path, features_path, doing=lambda text: None):
    """Traces one model into the two files, as plain JSON Lines."""
    torch.manual_seed(options.seed)
    doing("loading")
    subject = load(source, options)
    doing("running")
    if hasattr(subject.model, "record"):
        if options.dtype:
            raise SourceError(f"{source} is not run by PyTorch, so not in {options.dtype}", "leave --dtype out")
        nodes, calls = subject.model.record()
        notes = []
    else:
        nodes, calls, notes = _record(subject, options.dtype, doing)
    doing("writing")
    header = {
        "format": "ulpian-graph/1",
        "model": f"{source} in {options.dtype}" if options.dtype else source,
        "framework": subject.framework or f"torch {torch.__version__}",
        "weights": subject.weights,
        "data": subject.data,
        "nodes": len(nodes),
    }
    if subject.notes + notes:
        header["notes"] = subject.notes + notes
    _write(graph_path, [header, *nodes])
    _write(features_path, [{"format": "ulpian-features/1", "model": header["model"], "calls": len(calls)}, *calls])


@torch.no_grad()
def _record(subject, dtype, doing):
    """Runs the model once, in `dtype` where one is given. Returns nodes, calls and notes."""
    notes = []
    is_module = isinstance(subject.model, torch.nn.Module)
    if is_module:
        subject.model.eval()
    if subject.random and is_module:
        doing("calibrating batch norm")
        notes += calibrate(subject)
        doing("running")
    if dtype and not is_module:
        raise SourceError(f"a {type(subject.model).__name__} has no dtype", "return a torch.nn.Module, or leave --dtype out")
    if dtype:
        # Batch norm's statistics were taken in float32; autocast would be another computation.
        subject.model.to(getattr(torch, dtype))
        subject.args, subject.kwargs = (_cast(part, getattr(torch, dtype)) for part in (subject.args, subject.kwargs))
    recording = Recording(subject.model)
    try:
        with recording:
            subject.model(*subject.args, **subject.kwargs)
    except CutShort as reason:
        notes.append(str(reason))
    return recording.nodes, recording.calls, notes


def calibrate(subject):
    """Sets the statistics of batch norm by a few passes in training mode. Returns notes about it."""
    norms = [
        module
        for module in subject.model.modules()
        if isinstance(module, _BatchNorm) and module.track_running_stats and module.running_mean is not None
    ]
    if not norms:
        return []
    momenta = [norm.momentum for norm in norms]
    try:
        for norm in norms:
            norm.train()
            # The plain average over the passes.
            norm.momentum = None
        for number in range(CALIBRATION_PASSES):
            args, kwargs = (_varied(part, number) for part in (subject.args, subject.kwargs))
            subject.model(*args, **kwargs)
    except (ValueError, RuntimeError) as error:
        for norm in norms:
            norm.reset_running_stats()
        return [f"batch norm keeps its initial statistics, since a pass in training mode failed: {error}"]
    finally:
        for norm, momentum in zip(norms, momenta):
            norm.eval()
            norm.momentum = momentum
    return [
        f"the weights are random, so batch norm's statistics were set by {CALIBRATION_PASSES} forward passes with batch norm in "
        "training mode over the inputs, mirrored and shifted"
    ]


def _varied(part, number):
    """The inputs, with images mirrored and shifted into a batch of several, differently for each number."""
    if isinstance(part, torch.Tensor):
        if part.dim() < 4 or not part.dtype.is_floating_point:
            return part
        copies = -(-CALIBRATION_BATCH // part.shape[0])
        shifts = [((number * copies + copy) * part.shape[-1] // 13) for copy in range(copies)]
        variants = [part.roll(shift, -1).flip(-1) if copy % 2 else part.roll(shift, -2) for copy, shift in enumerate(shifts)]
        return torch.cat(variants)
    if isinstance(part, dict):
        return {key: _varied(value, number) for key, value in part.items()}
    if isinstance(part, tuple):
        return tuple(_varied(value, number) for value in part)
    return part


def _cast(part, dtype):
    """The inputs with every tensor of floating-point numbers in `dtype`."""
    if isinstance(part, torch.Tensor):
        return part.to(dtype) if part.is_floating_point() else part
    if isinstance(part, dict):
        return {key: _cast(value, dtype) for key, value in part.items()}
    if isinstance(part, (tuple, list)):
        return type(part)(_cast(value, dtype) for value in part)
    return part


def _write(path, lines):
    with open(path, "x", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line, allow_nan=False, separators=(",", ":")) + "\n")
