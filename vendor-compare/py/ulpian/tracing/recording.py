"""The graph of a run and the features of its calls, as `ulpian-graph/1` and `ulpian-features/1`."""

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from . import arguments, names
from .features import Features
from .tracer import Tracer

# A run with more calls is cut short.
MAX_NODES = 100_000


class CutShort(Exception):
    """The run made more calls than a trace holds."""


class Recording:
    """Records what runs within it, a context manager. `model` gives the names of modules and knows the parameters."""

    def __init__(self, model=None, max_nodes=MAX_NODES):
        self.nodes = []
        self.calls = []
        self._max_nodes = max_nodes
        is_module = isinstance(model, torch.nn.Module)
        self._paths = {id(module): path for path, module in model.named_modules()} if is_module else {}
        self._features = Features([*model.parameters(), *model.buffers()] if is_module else ())
        self._stack = []
        self._tracer = Tracer(self)

    def __enter__(self):
        self._hooks = [
            register_module_forward_pre_hook(self._enter_module),
            register_module_forward_hook(self._leave_module, always_call=True),
        ]
        self._tracer.__enter__()
        return self

    def __exit__(self, *error):
        self._tracer.__exit__(*error)
        for hook in self._hooks:
            hook.remove()

    def _enter_module(self, module, inputs):
        self._stack.append(self._paths.get(id(module)))

    def _leave_module(self, module, inputs, output):
        if self._stack:
            self._stack.pop()

    def before(self, call):
        """The features of the call's arguments, taken before it may overwrite them."""
        if len(self.nodes) >= self._max_nodes:
            raise CutShort(f"the run made more than {self._max_nodes} calls and was cut short there")
        if call.label not in arguments.OPS:
            return None
        record = {"op": call.label, "args": {}}
        try:
            bound = arguments.bind(call.label, call.name, call.args, call.kwargs)
        except arguments.Unsupported as reason:
            record["unsupported"] = str(reason)
            return None, record
        for key, value in bound.items():
            try:
                if isinstance(value, torch.Tensor):
                    arguments.check_tensor(key, value)
                    record["args"][key] = self._features.of(value)
                elif value is not None:
                    record["args"][key] = arguments.literal(key, value)
            except arguments.Unsupported as reason:
                record.setdefault("unsupported", str(reason))
        return bound, record

    def after(self, call, node, sources, outputs, state):
        """Keeps the call as a node, and as a record where it is one of Ulpian's ops."""
        bound, record = state if state else (None, None)
        for tensor in outputs:
            self._features.forget(tensor)
        made = {
            "id": node,
            "label": call.label,
            "api": names.api(call.function),
            "inputs": edges(sources, call, bound),
        }
        module = next((path for path in reversed(self._stack) if path is not None), None)
        if module:
            made["module"] = module
        inputs = [tensor for _, tensor in call.tensors]
        if names.is_shape_only(call.name, call.label, call.function, call.args, inputs, outputs):
            made["shape_only"] = True
        self.nodes.append(made)
        if record is not None:
            self.calls.append({"node": node, **record})


def edges(sources, call, bound):
    """The tensors that earlier calls made, with the names of the arguments they are given for."""
    ours = {}
    if bound:
        for key, value in bound.items():
            if isinstance(value, torch.Tensor):
                ours.setdefault(id(value), []).append(key)
    inputs = []
    for (argument, origin), (_, tensor) in zip(sources, call.tensors):
        # A tensor given twice stands under both names, in order.
        known = ours.get(id(tensor))
        if known:
            argument = known.pop(0) if len(known) > 1 else known[0]
        if origin is not None:
            inputs.append({"argument": argument, "node": origin.node, "result": origin.result})
    return inputs
