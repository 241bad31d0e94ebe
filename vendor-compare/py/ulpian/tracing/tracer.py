"""Calls of PyTorch's API while they happen, and where each call's tensors come from.

A `TorchFunctionMode` sees every call of a function that PyTorch lets be overridden, under the name by which it was called. While
it handles one it is off, so a function written in Python (torch.nn.functional.multi_head_attention_forward) would hide the calls
within; `composites_open` lets such functions run as if nobody watched, and the builtins below them are seen.

Where a tensor comes from follows identity: of the tensor object first, since a view has a node of its own; of the memory below
it where it was written in place after the object was made, or where the object was made out of sight.
"""

import contextlib

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from . import names
from .features import storage_key, version_of


class Call:
    """One call that makes tensors or writes to them."""

    def __init__(self, function, args, kwargs):
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.name = names.raw_name(function)
        self.label = names.label(self.name)
        # (argument, tensor) for every tensor among the arguments, lists taken apart.
        self.tensors = list(_argument_tensors(function, args, kwargs))


class Tracer(TorchFunctionMode):
    """Follows calls and hands them to an observer.

    The observer has `before(call)`, whose return value is handed on, and `after(call, node, sources, outputs, state)`: `node` is
    the call's number, `sources` a list of (argument, Origin or None), `outputs` the tensors it made or wrote to, by result number.
    """

    def __init__(self, observer):
        super().__init__()
        self.observer = observer
        self.nodes = 0
        self._objects = WeakIdKeyDictionary()
        self._memory = {}

    def __enter__(self):
        self._open = composites_open()
        self._open.__enter__()
        return super().__enter__()

    def __exit__(self, *error):
        try:
            return super().__exit__(*error)
        finally:
            self._open.__exit__(None, None, None)

    def origin(self, tensor):
        """Where the tensor's present value comes from: an Origin, or None where no call seen here made it."""
        made = self._objects.get(tensor)
        below = self._memory.get(storage_key(tensor))
        if below is not None and below[0].expired():
            below = None
        if below is None:
            return made
        _, writer, maker = below
        if made is None:
            return writer or maker
        return writer if writer is not None and writer.node > made.node else made

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = names.raw_name(function)
        if name in names.TRANSPARENT:
            return function(*args, **kwargs)
        if getattr(function, "__name__", None) == "__get__" and name not in ("T", "mT", "H", "mH"):
            return self._property(function, args, kwargs)
        if name == "__set__":
            result = function(*args, **kwargs)
            if len(args) > 1 and isinstance(args[1], torch.Tensor):
                self._remember(args[0], self.origin(args[1]))
            return result
        call = Call(function, args, kwargs)
        sources = [(argument, self.origin(tensor)) for argument, tensor in call.tensors]
        versions = [version_of(tensor) for _, tensor in call.tensors]
        state = self.observer.before(call)
        result = function(*args, **kwargs)
        written = self._written(call, versions)
        result = _told_apart(result, written, [tensor for _, tensor in call.tensors])
        outputs = list(tensors_in(result))
        seen = {id(tensor) for tensor in outputs}
        outputs += [tensor for tensor in written if id(tensor) not in seen]
        if not outputs:
            return result
        node = self.nodes
        self.nodes += 1
        given = {storage_key(tensor) for _, tensor in call.tensors}
        for number, tensor in enumerate(outputs):
            is_view = storage_key(tensor) in given
            self._made(tensor, Origin(node, number, tensor), any(tensor is other for other in written), is_view)
        self.observer.after(call, node, sources, outputs, state)
        return result

    def _property(self, function, args, kwargs):
        """A tensor that is a property of another (`data`, `grad`) is that other tensor under another name."""
        result = function(*args, **kwargs)
        if isinstance(result, torch.Tensor) and args and result is not args[0]:
            self._remember(result, self.origin(args[0]))
        return result

    def _remember(self, tensor, origin):
        if origin is not None:
            self._objects[tensor] = origin

    @staticmethod
    def _written(call, versions):
        """The arguments that the call wrote to: their memory's version has changed, or the function's name says so."""
        changed = [
            tensor
            for (_, tensor), before in zip(call.tensors, versions)
            if before is not None and version_of(tensor) != before
        ]
        if names.is_in_place(call.name) and call.tensors:
            # Others may share the memory, but the first is the one that is meant.
            return [call.tensors[0][1]]
        changed += _written_unseen(call)
        distinct = []
        for tensor in changed:
            if not any(tensor is other for other in distinct):
                distinct.append(tensor)
        return distinct

    def _made(self, tensor, origin, written, is_view):
        self._objects[tensor] = origin
        key = storage_key(tensor)
        if key is None:
            return
        below = self._memory.get(key)
        if below is None or below[0].expired():
            reference = StorageWeakRef(tensor.untyped_storage())
            # A view did not make the memory of an input or a parameter.
            below = (reference, None, None if is_view else origin)
        self._memory[key] = (below[0], origin if written else below[1], below[2])


def _written_unseen(call):
    """Statistics that batch norm updates in training, which does not show in their versions."""
    if call.label not in ("batch_norm", "instance_norm"):
        return []
    training = call.kwargs.get("training", call.args[5] if len(call.args) > 5 else False)
    return [tensor for name, tensor in call.tensors if training and name in ("running_mean", "running_var")]


class Origin:
    """The result of a call: its node, which of its results, and where in memory it lay."""

    __slots__ = ("node", "result", "geometry")

    def __init__(self, node, result, tensor):
        self.node = node
        self.result = result
        self.geometry = geometry(tensor)


def geometry(tensor):
    """What two tensors over the same memory must share to be the same tensor."""
    if tensor.layout is not torch.strided or tensor.is_nested:
        return None
    return tensor.dtype, tuple(tensor.shape), tuple(tensor.stride()), tensor.storage_offset()


def _argument_tensors(function, args, kwargs):
    known = names.argument_names(function, len(args))
    for name, value in (*zip(known, args), *kwargs.items()):
        if isinstance(value, torch.Tensor):
            yield name, value
        elif isinstance(value, (list, tuple, dict)):
            for position, tensor in enumerate(tensors_in(value)):
                yield f"{name}.{position}", tensor


def tensors_in(value):
    """The tensors of a result or an argument, in order, however nested."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for element in value:
            yield from tensors_in(element)
    elif isinstance(value, dict):
        for element in value.values():
            yield from tensors_in(element)


def _told_apart(result, written, arguments):
    """The result, as another object over the same memory where the function returned its own argument (`contiguous`, `dropout`
    in evaluation): two tensors that are one object could not be told apart afterwards."""
    if isinstance(result, torch.Tensor):
        same = any(result is argument for argument in arguments)
        if same and not any(result is tensor for tensor in written):
            return torch.ops.aten.alias(result)
    elif type(result) in (list, tuple):
        return type(result)(_told_apart(element, written, arguments) for element in result)
    return result


@contextlib.contextmanager
def composites_open():
    """Lets PyTorch's functions written in Python run their bodies under a mode."""
    import torch._tensor
    import torch.functional
    import torch.nn.functional

    stand_ins = {
        "has_torch_function": _any_overrides,
        "has_torch_function_unary": _overrides,
        "has_torch_function_variadic": lambda *values: _any_overrides(values),
    }
    replaced = []
    for module in (torch.nn.functional, torch.functional, torch._tensor):
        for check, stand_in in stand_ins.items():
            if hasattr(module, check):
                replaced.append((module, check, getattr(module, check)))
                setattr(module, check, stand_in)
    try:
        yield
    finally:
        for module, check, original in replaced:
            setattr(module, check, original)


def _any_overrides(values):
    return any(_overrides(value) for value in values)


def _overrides(value):
    """Is it of a class with a __torch_function__ of its own?"""
    kind = type(value)
    if kind is torch.Tensor or kind is torch.nn.Parameter or not hasattr(kind, "__torch_function__"):
        return False
    return kind.__torch_function__ is not torch._C._disabled_torch_function_impl
