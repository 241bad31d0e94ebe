"""Makes the calls that stand in a GraphNet sample, read as syntax.

The language is small: assignments and deletions of local names, literals, tuples, subscripts, operators, calls of PyTorch's functions
by their full names and of tensors' methods. Names that it does not know end the run; nothing is looked up outside `torch`,
`operator` and the sample's own variables.
"""

import ast
import operator

import torch

from ..subject import SourceError

_BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
}
_IN_PLACE = {
    ast.Add: operator.iadd,
    ast.Sub: operator.isub,
    ast.Mult: operator.imul,
    ast.Div: operator.itruediv,
    ast.BitAnd: operator.iand,
    ast.BitOr: operator.ior,
}
_UNARY = {ast.USub: operator.neg, ast.Invert: operator.invert, ast.Not: operator.not_, ast.UAdd: operator.pos}
_COMPARE = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
_OPERATORS = frozenset("getitem add sub mul truediv floordiv mod neg pow matmul iadd isub imul and_ or_ eq ne lt le gt ge".split())
_BUILTINS = {"int": int, "float": float, "bool": bool, "slice": slice, "tuple": tuple, "list": list, "len": len}
# Calls that change no tensor.
_WITHOUT_EFFECT = frozenset(
    "torch._C._log_api_usage_once torch._C._set_grad_enabled torch.set_grad_enabled torch._assert torch._check".split()
)
# Methods that hand out memory, call back, or reach the disk.
_REFUSED = frozenset(
    "numpy storage untyped_storage data_ptr share_memory_ register_hook register_post_accumulate_grad_hook backward apply_ map_ "
    "map2_ module_load resize_ set_ dlpack".split()
)
_PROPERTIES = frozenset("shape dtype device T mT H mH data ndim is_cuda requires_grad layout itemsize".split())


class Interpreter:
    """The sample's forward function, called with its tensors by name."""

    def __init__(self, forward, path, functions):
        self._forward = forward
        self._path = path
        self._functions = functions

    def __call__(self, **variables):
        self._variables = variables
        for statement in self._forward.body:
            if isinstance(statement, ast.Return):
                return self._value(statement.value) if statement.value else None
            self._run(statement)
        return None

    def _refuse(self, node, what):
        raise SourceError(f"{self._path}:{getattr(node, 'lineno', '?')}: {what}", "samples are read as syntax, never executed")

    def _run(self, node):
        if isinstance(node, ast.Assign):
            value = self._value(node.value)
            for target in node.targets:
                self._assign(target, value)
        elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and type(node.op) in _IN_PLACE:
            old = self._value(ast.copy_location(ast.Name(node.target.id, ast.Load()), node))
            self._variables[node.target.id] = _IN_PLACE[type(node.op)](old, self._value(node.value))
        elif isinstance(node, ast.Delete) and all(isinstance(target, ast.Name) for target in node.targets):
            for target in node.targets:
                self._variables.pop(target.id, None)
        elif isinstance(node, ast.Expr):
            if not isinstance(node.value, ast.Constant):
                self._value(node.value)
        elif not isinstance(node, ast.Pass):
            self._refuse(node, f"a statement of kind {type(node).__name__} is not read")

    def _assign(self, target, value):
        if isinstance(target, ast.Name):
            self._variables[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            values = list(value)
            if len(values) != len(target.elts):
                self._refuse(target, f"{len(values)} values for {len(target.elts)} names")
            for element, part in zip(target.elts, values):
                self._assign(element, part)
        elif isinstance(target, ast.Subscript):
            container = self._value(target.value)
            if not isinstance(container, torch.Tensor):
                self._refuse(target, "only tensors are written into")
            container[self._value(target.slice)] = value
        else:
            self._refuse(target, f"an assignment to a {type(target).__name__} is not read")

    def _value(self, node):
        kind = type(node).__name__
        method = getattr(self, f"_{kind.lower()}", None)
        if method is None:
            self._refuse(node, f"an expression of kind {kind} is not read")
        return method(node)

    def _constant(self, node):
        return node.value

    def _name(self, node):
        if node.id in self._variables:
            return self._variables[node.id]
        return self._refuse(node, f"the name `{node.id}` is not known")

    def _tuple(self, node):
        return tuple(self._value(element) for element in node.elts)

    def _list(self, node):
        return [self._value(element) for element in node.elts]

    def _slice(self, node):
        return slice(*(self._value(part) if part else None for part in (node.lower, node.upper, node.step)))

    def _subscript(self, node):
        return self._value(node.value)[self._value(node.slice)]

    def _unaryop(self, node):
        return _UNARY[type(node.op)](self._value(node.operand))

    def _binop(self, node):
        if type(node.op) not in _BINARY:
            self._refuse(node, f"the operator {type(node.op).__name__} is not read")
        return _BINARY[type(node.op)](self._value(node.left), self._value(node.right))

    def _compare(self, node):
        if len(node.ops) != 1 or type(node.ops[0]) not in _COMPARE:
            self._refuse(node, "this comparison is not read")
        return _COMPARE[type(node.ops[0])](self._value(node.left), self._value(node.comparators[0]))

    def _attribute(self, node):
        """A property of a tensor, or a constant of torch: a dtype, a device, a memory format, infinity."""
        path = _dotted(node)
        if path and path[0] == "torch" and "torch" not in self._variables:
            value = _resolve(path)
            if isinstance(value, (torch.dtype, torch.memory_format, torch.layout, float)):
                return value
            return self._refuse(node, f"{'.'.join(path)} is not read")
        owner = self._value(node.value)
        if isinstance(owner, torch.Tensor) and node.attr in _PROPERTIES:
            return getattr(owner, node.attr)
        return self._refuse(node, f"the attribute `{node.attr}` is not read")

    def _call(self, node):
        function = self._function(node.func)
        args = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                args.extend(self._value(argument.value))
            else:
                args.append(self._value(argument))
        if any(keyword.arg is None for keyword in node.keywords):
            self._refuse(node, "`**` is not read")
        kwargs = {keyword.arg: self._value(keyword.value) for keyword in node.keywords}
        if "device" in kwargs:
            kwargs["device"] = torch.device("cpu")
        args = [torch.device("cpu") if isinstance(argument, torch.device) else argument for argument in args]
        return function(*args, **kwargs)

    def _function(self, node):
        path = _dotted(node)
        if path and path[0] not in self._variables:
            name = ".".join(path)
            if name in _WITHOUT_EFFECT:
                return lambda *_, **__: None
            if path in (["torch", "device"], ["device"]):
                return lambda *_, **__: torch.device("cpu")
            if path == ["torch", "Size"]:
                return torch.Size
            if len(path) == 2 and path[0] in ("operator", "_operator") and path[1] in _OPERATORS:
                return getattr(operator, path[1])
            if len(path) == 1 and path[0] in _BUILTINS:
                return _BUILTINS[path[0]]
            function = _resolve(path) if path[0] == "torch" else None
            # The very function, not the name, must be one of those.
            if function is not None and self._functions.get(id(function)) is function:
                return function
            return self._refuse(node, f"{name} is not one of the functions that are called")
        if isinstance(node, ast.Attribute):
            owner = self._value(node.value)
            if isinstance(owner, torch.Tensor) and not node.attr.startswith("_") and node.attr not in _REFUSED:
                method = getattr(torch.Tensor, node.attr, None)
                if callable(method):
                    return getattr(owner, node.attr)
            if isinstance(owner, torch.Size) and node.attr == "numel":
                return owner.numel
            self._refuse(node, f"the method `{node.attr}` of a {type(owner).__name__} is not called")
        return self._refuse(node, "this call is not read")


def _dotted(node):
    """The parts of a dotted name, None for anything else."""
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return [node.id, *reversed(parts)]


def _resolve(path):
    """What a dotted name under `torch` stands for; None where there is none."""
    value = torch
    for part in path[1:]:
        value = getattr(value, part, None)
    return value
