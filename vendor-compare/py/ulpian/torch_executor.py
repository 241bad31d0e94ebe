"""`torch:cpu` and `torch:cuda`: a case's nodes under the switches an executor's keys name."""

import contextlib
import os
import re
import sys
import time

import torch

from .protocol import NodeFailed, Unavailable
from .torch_ops import OPS
from .torch_rows import run_rows


def _built_with(pattern):
    """The version of a library that PyTorch was built with."""
    found = re.search(pattern, torch.__config__.show())
    return found.group(1) if found else None


def facts():
    """Versions and machine facts, as far as PyTorch tells them."""
    cuda = torch.cuda.is_available()
    return {
        "torch": torch.__version__,
        "isa": torch.backends.cpu.get_cpu_capability(),
        "mkldnn": torch.backends.mkldnn.is_available(),
        "onednn_version": _built_with(r"(?:MKL-DNN|oneDNN) v(\d[\d.]*)"),
        "mkl": torch.backends.mkl.is_available(),
        "mkl_version": _built_with(r"Math Kernel Library Version (\d[\d.]*)"),
        "threads": torch.get_num_threads(),
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version() if cuda else None,
        "cuda_devices": [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())] if cuda else [],
    }


def argument(value, inputs, results):
    """One argument from its form in the protocol."""
    if value == "none":
        return None
    ((kind, content),) = value.items()
    if kind == "input":
        return inputs[content]
    if kind == "node":
        node, output = content
        return results[node][output]
    if kind == "float":
        return float(content)
    if kind == "dtype":
        return getattr(torch, content)
    return content


def _call(node, inputs, results, by_row=False):
    args = {name: argument(value, inputs, results) for name, value in node["args"].items()}
    return run_rows(node, args) if by_row else OPS[node["op"]](**args)


def _dense(results):
    """The same, dense and on the CPU."""
    return [[tensor.detach().cpu().contiguous() for tensor in outputs] for outputs in results]


def _salvaged(results):
    """As `_dense`; nothing where the device gives nothing back after an error."""
    try:
        return _dense(results)
    except Exception:
        return []


def evaluate(nodes, inputs, by_row):
    """The results of every node, in order."""
    results = []
    for node in nodes:
        try:
            results.append(_call(node, inputs, results, by_row))
        except Unavailable:
            raise
        except Exception as error:
            raise NodeFailed(node["id"], _salvaged(results)) from error
    return results


def _evaluate_traced(nodes, inputs):
    results = []
    for node in nodes:
        results.append(_call(node, inputs, results))
    return results


@contextlib.contextmanager
def _setting(read, write, value):
    before = read()
    write(value)
    try:
        yield
    finally:
        write(before)


def _set_matmul_tf32(value):
    torch.backends.cuda.matmul.allow_tf32 = value


def _set_cudnn_tf32(value):
    torch.backends.cudnn.allow_tf32 = value


def _switch(stack, device, key, value):
    """Throws one switch until `stack` closes."""
    if key == "threads":
        stack.enter_context(_setting(torch.get_num_threads, torch.set_num_threads, int(value)))
    elif key == "mkldnn":
        if not torch.backends.mkldnn.is_available():
            raise Unavailable(
                "this PyTorch is built without oneDNN, so that mkldnn=off changes nothing", "leave mkldnn=off out"
            )
        read, write = torch._C._get_mkldnn_enabled, torch._C._set_mkldnn_enabled
        stack.enter_context(_setting(read, write, False))
    elif key == "nnpack":
        if not torch.backends.nnpack.is_available():
            raise Unavailable(
                "this PyTorch has no NNPACK, or none for this processor, so that nnpack=off changes nothing",
                "leave nnpack=off out",
            )
        read, write = torch._C._get_nnpack_enabled, torch._C._set_nnpack_enabled
        stack.enter_context(_setting(read, write, False))
    elif key == "isa":
        # The variable ATEN_CPU_CAPABILITY chose it when this process started.
        actual = torch.backends.cpu.get_cpu_capability()
        if actual.lower() != value:
            raise Unavailable(
                f"isa={value} was asked for, and PyTorch's kernels run as {actual} on this processor",
                "choose an ISA that the processor and this build of PyTorch have",
            )
    elif key == "tf32":
        on = value == "on"
        stack.enter_context(_setting(lambda: torch.backends.cuda.matmul.allow_tf32, _set_matmul_tf32, on))
        stack.enter_context(_setting(lambda: torch.backends.cudnn.allow_tf32, _set_cudnn_tf32, on))
    elif key == "cudnn":
        read, write = torch._C._get_cudnn_enabled, torch._C._set_cudnn_enabled
        stack.enter_context(_setting(read, write, False))
    elif key == "deterministic":
        read, write = torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms
        stack.enter_context(_setting(read, write, True))


def _compiled(nodes):
    """The whole case as one compiled function of its tensors."""
    import torch._dynamo
    import torch._inductor.config
    from torch._inductor import exc as inductor_errors

    torch._dynamo.reset()
    # Further compiling processes would cost more than one case's kernels do.
    torch._inductor.config.compile_threads = 1
    function = torch.compile(lambda *inputs: _evaluate_traced(nodes, inputs), fullgraph=True, dynamic=False)

    def run(inputs):
        try:
            return function(*inputs)
        except Exception as error:
            text = f"{type(error).__name__}: {error}"
            missing = getattr(inductor_errors, "InvalidCxxCompiler", ())
            causes = (error, error.__cause__, error.__context__, getattr(error, "inner_exception", None))
            if any(isinstance(cause, missing) for cause in causes) or "InvalidCxxCompiler" in text:
                raise Unavailable(
                    "torch.compile finds no C++ compiler",
                    "install g++ or clang++, or name one in the environment variable CXX",
                ) from error
            if "Python.h" in text:
                raise Unavailable(
                    "torch.compile needs Python's header files (Python.h), which are not installed",
                    f"install the development package of Python {sys.version_info[0]}.{sys.version_info[1]}",
                ) from error
            raise

    return run


def run(device, keys, nodes, inputs, seed):
    """Runs a case; returns every node's results (dense, on the CPU), the seconds of the computation, and notes."""
    notes = []
    if device == "cuda" and not torch.cuda.is_available():
        built = torch.version.cuda is not None
        raise Unavailable(
            "torch.cuda.is_available() is false: "
            + ("no usable NVIDIA GPU or driver" if built else "this PyTorch is built without CUDA"),
            "run on a machine with an NVIDIA GPU and its driver"
            + ("" if built else ", with a PyTorch built for CUDA"),
        )
    for node in nodes:
        args = node["args"]
        if node["op"] == "dropout" and args["training"] == {"bool": True}:
            notes.append(
                f"{node['id']}: PyTorch's dropout takes no mask; its formula was applied to the case's mask"
                if args["mask"] != "none"
                else f"{node['id']}: mask drawn by PyTorch after torch.manual_seed({seed})"
            )
    compiling = keys.get("compile") == "on"
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        for key, value in sorted(keys.items()):
            _switch(stack, device, key, value)
        if device == "cuda":
            inputs = [tensor.cuda() for tensor in inputs]
        if keys.get("layout") == "channels_last":
            if not any(tensor.dim() == 4 for tensor in inputs):
                raise Unavailable("layout=channels_last: no tensor of this case has four dimensions", "leave it out")
            inputs = [
                tensor.to(memory_format=torch.channels_last) if tensor.dim() == 4 else tensor for tensor in inputs
            ]
        program = _compiled(nodes) if compiling else lambda xs: evaluate(nodes, xs, keys.get("batch") == "1")
        torch.manual_seed(seed)
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        results = program(inputs)
        if device == "cuda":
            torch.cuda.synchronize()
        seconds = None if compiling else time.perf_counter() - start
        results = _dense(results)
    return results, seconds, notes


MOST_UNFOLDED = 1 << 30


def _first_line(error):
    """What went wrong, without torch's advice to load the file unsafely."""
    first = (str(error).splitlines() or [type(error).__name__])[0]
    return first.split(" In PyTorch 2.6", 1)[0].split(" This file can still be loaded", 1)[0].rstrip(". ")


def load_pt(path):
    """The tensors of a file that torch.save wrote, by name, without running any code of the file."""
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        if not os.path.exists(path):
            raise
        raise Unavailable(
            f"torch.load with weights_only=True refuses it: {_first_line(error)}",
            "save the tensors alone, as a dict of name to tensor; Ulpian never runs code out of such a file",
        ) from error
    named = {}

    def collect(name, value):
        if isinstance(value, torch.Tensor):
            named[name or "tensor"] = value
        elif isinstance(value, dict):
            for key, item in value.items():
                collect(f"{name}.{key}" if name else str(key), item)
        elif isinstance(value, (list, tuple)):
            for index, item in enumerate(value):
                collect(f"{name}.{index}" if name else str(index), item)

    collect("", content)
    if not named:
        raise Unavailable("it holds no tensor", "save a dict of name to tensor")
    dense = {}
    unfolded = 0
    for name, tensor in named.items():
        if tensor.device.type != "cpu":
            raise Unavailable(f"tensor `{name}` is on the {tensor.device.type} device and holds no data", "save its values")
        # A stride of 0 lets a few bytes of a file claim any shape.
        unfolded += max(0, tensor.numel() * tensor.element_size() - tensor.untyped_storage().nbytes())
        if unfolded > MOST_UNFOLDED:
            raise Unavailable(f"tensor `{name}` of shape {list(tensor.shape)} unfolds far beyond its bytes", "save what it expands")
        if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_complex():
            raise Unavailable(
                f"tensor `{name}` is {tensor.dtype} with layout {tensor.layout}", "save it dense and real"
            )
        dense[name] = tensor.detach().contiguous()
    return dense
