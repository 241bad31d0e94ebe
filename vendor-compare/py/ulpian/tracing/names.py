"""What a call is called: the API as PyTorch names it, the label of its node, and whether it only moves elements."""

import functools
import inspect

import torch
from torch.overrides import get_testing_overrides, resolve_name

# The ops of Ulpian, under every name by which PyTorch calls the same function (in-place forms lose their underscore first).
OPS = {
    "flatten": "flatten",
    "mul": "mul",
    "multiply": "mul",
    "div": "div",
    "divide": "div",
    "true_divide": "div",
    "softmax": "softmax",
    "special_softmax": "softmax",
    "adaptive_avg_pool2d": "adaptive_avg_pool2d",
    "matmul": "matmul",
    "linalg_matmul": "matmul",
    # Matrix products of two operands with fixed ranks: matmul's value by definition.
    "mm": "matmul",
    "bmm": "matmul",
    "mv": "matmul",
    "dot": "matmul",
    "max_pool2d": "max_pool2d",
    "max_pool2d_with_indices": "max_pool2d",
    "batch_norm": "batch_norm",
    "dropout": "dropout",
    "relu": "relu",
    "conv2d": "conv2d",
    "gelu": "gelu",
    "linear": "linear",
    "layer_norm": "layer_norm",
    "add": "add",
}

# They rename, copy or reorder the elements of one tensor, in an order that no data decides. Joining several (cat, stack),
# filling in (pad) and picking by data (gather, embedding) are not among them. Neither is flatten, since it is an op of
# Ulpian's.
SHAPE_ONLY = frozenset(
    """
    view view_as view_as_real view_as_complex reshape reshape_as unflatten ravel permute transpose t T mT swapaxes swapdims
    movedim moveaxis contiguous unsqueeze squeeze expand expand_as broadcast_to narrow select slice chunk split
    split_with_sizes unsafe_chunk unsafe_split tensor_split hsplit vsplit dsplit unbind detach alias clone as_strided diagonal
    unfold flip fliplr flipud roll rot90 tile repeat pixel_shuffle pixel_unshuffle channel_shuffle atleast_1d atleast_2d
    atleast_3d positive
    """.split()
)

# Conversions move elements where the dtype stays as it is.
CONVERSIONS = frozenset(
    "to type type_as float double half bfloat16 int long short char byte bool cpu cuda requires_grad".split()
)

# They return their own argument and change nothing that a graph shows.
TRANSPARENT = frozenset(
    "requires_grad_ retain_grad share_memory_ pin_memory rename rename_ refine_names align_as names_ backward "
    "register_hook has_names is_shared __setstate__ __reduce_ex__ __deepcopy__ record_stream".split()
)

_IN_PLACE = frozenset("add sub mul div truediv floordiv mod pow and or xor lshift rshift matmul".split())

_DUNDER = {
    "add": "add",
    "radd": "add",
    "iadd": "add",
    "mul": "mul",
    "rmul": "mul",
    "imul": "mul",
    "div": "div",
    "truediv": "div",
    "idiv": "div",
    "itruediv": "div",
    "matmul": "matmul",
    "sub": "sub",
    "isub": "sub",
    "neg": "neg",
    "eq": "eq",
    "ne": "ne",
}


def raw_name(function):
    """The function's own name: `add_`, `__getitem__`, `T` for a property's getter."""
    name = getattr(function, "__name__", None) or type(function).__name__
    if name == "__get__":
        return getattr(function.__self__, "__name__", name)
    # An OpOverload is called `relu.default`.
    return name.split(".")[0]


@functools.lru_cache(maxsize=None)
def label(name):
    """The label of a node whose function has this name."""
    plain = name
    if name.startswith("__") and name.endswith("__"):
        plain = _DUNDER.get(name[2:-2], name)
    elif name.endswith("_") and not name.startswith("_"):
        plain = name[:-1]
    return OPS.get(plain, plain)


def is_in_place(name):
    """Does the function write to its first argument, by its name?"""
    if name.startswith("__"):
        return name == "__setitem__" or (name.startswith("__i") and name[3:-2] in _IN_PLACE)
    return name.endswith("_")


def api(function):
    """The function as PyTorch's documentation calls it: `torch.nn.functional.conv2d`, `torch.Tensor.add_`."""
    try:
        known = resolve_name(function)
    except Exception:
        known = None
    if known:
        known = known.removesuffix(".__get__")
        return f"torch.ops.{known}" if known.startswith(("aten.", "torchvision.")) else known
    module = getattr(function, "__module__", None)
    name = getattr(function, "__qualname__", None) or raw_name(function)
    if module == "torch._C._nn" and hasattr(torch.nn.functional, name):
        module = "torch.nn.functional"
    return f"{module}.{name}" if module else name


@functools.lru_cache(maxsize=1)
def _signatures():
    """Positional parameters' names by function, and by name for the builtins below torch.nn.functional."""
    by_function, by_name = {}, {}
    for function, stand_in in get_testing_overrides().items():
        try:
            parameters = inspect.signature(stand_in).parameters.values()
        except (TypeError, ValueError):
            continue
        names = []
        for parameter in parameters:
            if parameter.kind not in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                break
            names.append("input" if parameter.name == "self" else parameter.name)
        by_function[function] = names
        if getattr(function, "__module__", None) == "torch.nn.functional":
            by_name[raw_name(function)] = names
    return by_function, by_name


def argument_names(function, count):
    """Names of the first `count` positional arguments, as far as PyTorch tells them."""
    by_function, by_name = _signatures()
    names = by_function.get(function) or by_name.get(raw_name(function)) or ["input"]
    return names[:count] + [str(position) for position in range(len(names), count)]


def is_shape_only(name, node_label, function, args, inputs, outputs):
    """Does this call move or rename elements without computing?"""
    if node_label in OPS.values():
        return False
    if node_label in SHAPE_ONLY:
        return True
    if name == "__getitem__":
        return len(args) > 1 and _is_basic_index(args[1])
    if node_label in CONVERSIONS:
        return bool(inputs and outputs) and inputs[0].dtype == outputs[0].dtype
    return False


def _is_basic_index(index):
    parts = index if isinstance(index, tuple) else (index,)
    return all(part is None or part is Ellipsis or isinstance(part, (int, slice)) for part in parts) and not any(
        isinstance(part, bool) for part in parts
    )
