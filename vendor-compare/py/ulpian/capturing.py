"""A chain of the user's own run as a case."""

import os

import torch
from torch.utils.weak import WeakIdKeyDictionary

from . import case_file
from .tracing import arguments
from .tracing.features import version_of
from .tracing.tracer import Tracer, geometry


class CaptureError(Exception):
    """No case could be made of what ran; the text says why and what to do."""


class Capture:
    """A context manager: the calls of Ulpian's ops within it become the nodes of a case, and every result as it was seen is
    recorded under the name of the executor `torch-cpu` or `torch-cuda`.

    Another op between two of them cuts the chain: what it returned is an input of the case. So is a tensor that was changed out
    of sight, or of which an op got a part. The run itself is not changed. Nothing is written where the block raises.

    `path`: the case's JSON file; its tensors go into a safetensors file of the same stem beside it.
    `name`, `source`: the case's, the stem of `path` by default.
    `max_nodes`, `max_bytes`: limits for the nodes and for all tensors together. Beyond them nothing is written and CaptureError is
    raised at the end of the block.
    """

    def __init__(self, path, *, name=None, source=None, max_nodes=1000, max_bytes=512 << 20):
        self.path = os.fspath(path)
        if not self.path.endswith(".json"):
            raise CaptureError(f"{self.path}: a case's file is named *.json")
        folder = os.path.dirname(os.path.abspath(self.path))
        if not os.path.isdir(folder):
            raise CaptureError(f"{self.path}: there is no folder {folder}; make it first")
        self.name = name or os.path.splitext(os.path.basename(self.path))[0]
        self.source = source or f"captured by ulpian.capture under torch {torch.__version__}"
        self._max_nodes = max_nodes
        self._max_bytes = max_bytes
        self._nodes = []
        self._tensors = {}
        self._observed = []
        self._bytes = 0
        self._overrun = None
        # Calls that no case can hold, with the reason.
        self.skipped = []
        # (node of the tracer, result) → (name in the case, version of its memory when it was made).
        self._results = {}
        self._inputs = WeakIdKeyDictionary()
        self._used = set()
        self._tracer = Tracer(self)

    def __enter__(self):
        self._tracer.__enter__()
        return self

    def __exit__(self, kind, error, traceback):
        self._tracer.__exit__(kind, error, traceback)
        if kind is not None:
            return False
        if self._overrun:
            raise CaptureError(self._overrun)
        if not self._nodes:
            why = f"; {len(self.skipped)} calls cannot be held: {self.skipped[0]}" if self.skipped else ""
            raise CaptureError(
                f"none of Ulpian's ops ran in this block{why}. It records {', '.join(sorted(arguments.OPS))}, on tensors, in this "
                "thread, and not within compiled code"
            )
        outputs = [node["id"] for node in self._nodes if node["id"] not in self._used]
        case = {
            "name": self.name,
            "source": self.source,
            "nodes": self._nodes,
            "outputs": outputs,
            "observed": self._observed,
        }
        case_file.write(self.path, case, self._tensors)
        return False

    def before(self, call):
        """The call's arguments as the case will have them, taken before the call may overwrite its tensors."""
        if call.label not in arguments.OPS or self._overrun:
            return None
        if len(self._nodes) >= self._max_nodes:
            self._overrun = (
                f"more than {self._max_nodes} calls of Ulpian's ops ran; capture a smaller part of the run, or raise max_nodes"
            )
            return None
        try:
            bound = arguments.bind(call.label, call.name, call.args, call.kwargs)
            literals = {}
            for key, value in bound.items():
                if isinstance(value, torch.Tensor):
                    arguments.check_tensor(key, value)
                else:
                    literals[key] = arguments.literal(key, value)
        except arguments.Unsupported as reason:
            self.skipped.append(f"{call.label}: {reason}")
            return None
        args = {}
        for key, value in bound.items():
            if isinstance(value, torch.Tensor):
                args[key] = self._operand(value)
            elif literals[key] is not None:
                args[key] = literals[key]
        return args

    def after(self, call, node, sources, outputs, state):
        """Makes a node of the call, and keeps what it returned."""
        if state is None or self._overrun:
            return
        args = state
        name = f"{call.label}_{len(self._nodes)}"
        if call.label == "dropout" and args["training"] and args["p"] > 0:
            # What was dropped is seen in the result: zeros, and NaN where an infinity was multiplied by 0.
            seen = outputs[0].detach()
            args["mask"] = self._keep(f"{name}.mask", (seen != 0) & ~seen.isnan())
        self._nodes.append({"id": name, "op": call.label, "args": args})
        self._used.update(value[1:].split(".")[0] for value in args.values() if is_result(value))
        for number, tensor in enumerate(outputs):
            result = name if number == 0 else f"{name}.{number}"
            self._results[node, number] = (f"%{result}", version_of(tensor))
            executor = "torch-cuda" if tensor.device.type == "cuda" else f"torch-{tensor.device.type}"
            self._observed.append(
                {"executor": executor, "node": result, "tensor": self._keep(f"seen.{result}", tensor.detach())}
            )

    def _operand(self, tensor):
        origin = self._tracer.origin(tensor)
        if origin is not None:
            known = self._results.get((origin.node, origin.result))
            if known is not None and origin.geometry == geometry(tensor) and known[1] == version_of(tensor):
                return known[0]
        known = self._inputs.get(tensor)
        if known is None or known[0] != version_of(tensor) or known[0] is None:
            known = (version_of(tensor), self._keep(f"x{len(self._tensors)}", tensor.detach()))
            self._inputs[tensor] = known
        return known[1]

    def _keep(self, name, tensor):
        """A copy of the tensor's present values in the case, and its name there."""
        self._bytes += tensor.numel() * tensor.element_size()
        if self._bytes > self._max_bytes:
            self._tensors.clear()
            self._overrun = (
                f"the tensors of this block take more than {self._max_bytes} bytes; capture a smaller part of the run, or raise "
                "max_bytes"
            )
        if not self._overrun:
            copy = tensor.to("cpu", copy=True).contiguous()
            self._tensors[name] = copy
        return f"@{name}"


def is_result(value):
    """Is this argument the result of an earlier node?"""
    return isinstance(value, str) and value.startswith("%")
