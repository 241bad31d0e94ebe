"""GraphNet's sample folders: `model.py`, a computation graph as a straight-line Python function, and `weight_meta.py`, what its
inputs looked like. Neither file is ever executed: both are read as syntax, and the calls of PyTorch's functions that stand there
are made here, one by one, on tensors drawn with the recorded mean and standard deviation.
"""

import ast
import os

import torch
from torch.overrides import get_overridable_functions

from ..subject import SourceError, Subject
from .graphnet_calls import Interpreter

# Elements of all inputs together.
MAX_ELEMENTS = 1 << 30


def load(folder, options):
    """The sample in this folder."""
    forward = _forward(_parse(os.path.join(folder, "model.py")), folder)
    inputs = {}
    for name in ("weight_meta.py", "input_meta.py"):
        path = os.path.join(folder, name)
        if os.path.isfile(path):
            inputs.update(_meta(_parse(path), path))
    generator = torch.Generator().manual_seed(options.seed)
    elements = sum(_elements(entry["shape"]) for entry in inputs.values())
    if elements > MAX_ELEMENTS:
        raise SourceError(f"the inputs of {folder} hold {elements} elements", f"at most {MAX_ELEMENTS} are taken")
    arguments, missing = {}, []
    for parameter in forward.args.args[1:]:
        entry = inputs.get(parameter.arg)
        if entry is None:
            missing.append(parameter.arg)
        else:
            arguments[parameter.arg] = _draw(entry, generator)
    if missing:
        raise SourceError(
            f"weight_meta.py in {folder} does not describe {', '.join(missing[:3])}", "give a complete sample folder"
        )
    return Subject(
        Interpreter(forward, os.path.join(folder, "model.py"), _functions()),
        kwargs=arguments,
        weights=f"drawn with the mean and standard deviation of weight_meta.py, seed {options.seed}",
        data="drawn as the weights are",
    )


def _parse(path):
    try:
        with open(path, encoding="utf-8") as file:
            return ast.parse(file.read(), path)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise SourceError(f"{path} cannot be read: {error}", "give a GraphNet sample folder") from error


def _forward(tree, folder):
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            for member in node.body:
                if isinstance(member, ast.FunctionDef) and member.name == "forward":
                    return member
    raise SourceError(f"model.py in {folder} has no class with a forward function", "give a GraphNet sample folder")


def _meta(tree, path):
    """The tensors that a file of classes with literal fields describes, by name."""
    found = {}
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        fields = {}
        for statement in node.body:
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
                try:
                    fields[statement.targets[0].id] = _literal(statement.value)
                except ValueError as error:
                    where = f"{path}:{statement.lineno}"
                    raise SourceError(f"{where}: {statement.targets[0].id} is no literal", "only literals are read") from error
        if "name" in fields:
            fields.setdefault("shape", [])
            found[fields["name"]] = fields
            # Newer samples rename the arguments and keep what they were called.
            found.setdefault(fields.get("original_name"), fields)
    return found


def _literal(node):
    """A literal; float("inf") and its like are taken too."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "float" and len(node.args) == 1:
        return float(ast.literal_eval(node.args[0]))
    return ast.literal_eval(node)


def _elements(shape):
    count = 1
    for size in shape or []:
        if not isinstance(size, int) or size < 0:
            raise SourceError(f"the shape {shape} is not one of whole numbers", "give a GraphNet sample folder")
        count *= size
    return count


def _draw(entry, generator):
    """A tensor, or the number of a symbolic size, as the entry describes it."""
    dtype = getattr(torch, str(entry.get("dtype", "torch.float32")).removeprefix("torch."), None)
    if not isinstance(dtype, torch.dtype):
        raise SourceError(f"`{entry.get('dtype')}` is no dtype", "give a GraphNet sample folder")
    shape, data = entry["shape"] or [], entry.get("data")
    if data is not None:
        if isinstance(data, (int, float, bool)):
            return data
        values = torch.tensor(data, dtype=dtype)
        if not shape and values.numel() == 1:
            # A symbolic size of the graph.
            return values.item()
        return values.reshape(shape)
    low, high = entry.get("min_val"), entry.get("max_val")
    if dtype is torch.bool:
        return torch.rand(shape, generator=generator) < 0.5
    if not dtype.is_floating_point:
        low, high = (low if low is not None else 0), (high if high is not None else 1)
        return torch.randint(int(low), int(high) + 1, shape, generator=generator).to(dtype)
    mean, std = entry.get("mean"), entry.get("std")
    values = torch.randn(shape, generator=generator, dtype=torch.float32)
    values = values * (1.0 if std is None else std) + (0.0 if mean is None else mean)
    if low is not None or high is not None:
        values = values.clamp(low, high)
    # A variance drawn from a normal distribution could be negative.
    if "running_var" in entry["name"]:
        values = values.abs()
    return values.to(dtype)


def _functions():
    """What a sample may call: the functions that PyTorch lets be overridden, which take and return tensors, and those that make
    tensors."""
    allowed = {}
    for functions in get_overridable_functions().values():
        for function in functions:
            allowed[id(function)] = function
    makers = "arange zeros ones full empty eye linspace tensor as_tensor scalar_tensor zeros_like ones_like full_like tril triu"
    for name in makers.split():
        function = getattr(torch, name)
        allowed[id(function)] = function
    return allowed
