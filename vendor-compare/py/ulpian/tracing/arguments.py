"""The arguments of a call by the names that Ulpian's ops have for them, with PyTorch's defaults filled in."""

import numbers

import torch

# What a case can hold.
DTYPES = {
    torch.float64: "float64",
    torch.float32: "float32",
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.int64: "int64",
    torch.int32: "int32",
    torch.int16: "int16",
    torch.int8: "int8",
    torch.uint8: "uint8",
    torch.bool: "bool",
}

_MUST = object()

_POOL = (
    ("input", _MUST),
    ("kernel_size", _MUST),
    ("stride", None),
    ("padding", 0),
    ("dilation", 1),
    ("ceil_mode", False),
)
_PRODUCT = (("input", _MUST), ("other", _MUST))

# Positional order of the builtin functions, by their own names: (name, default).
_SIGNATURES = {
    "flatten": (("input", _MUST), ("start_dim", 0), ("end_dim", -1)),
    "mul": (("input", _MUST), ("other", _MUST)),
    "div": (("input", _MUST), ("other", _MUST), ("rounding_mode", None)),
    "softmax": (("input", _MUST), ("dim", _MUST), ("dtype", None)),
    "adaptive_avg_pool2d": (("input", _MUST), ("output_size", _MUST)),
    "matmul": _PRODUCT,
    "max_pool2d": (*_POOL, ("return_indices", False)),
    "batch_norm": (
        ("input", _MUST),
        ("weight", None),
        ("bias", None),
        ("running_mean", None),
        ("running_var", None),
        ("training", False),
        ("momentum", 0.1),
        ("eps", 1e-5),
        ("cudnn_enabled", None),
    ),
    "dropout": (("input", _MUST), ("p", 0.5), ("training", True)),
    "relu": (("input", _MUST),),
    "conv2d": (
        ("input", _MUST),
        ("weight", _MUST),
        ("bias", None),
        ("stride", 1),
        ("padding", 0),
        ("dilation", 1),
        ("groups", 1),
    ),
    "gelu": (("input", _MUST), ("approximate", "none")),
    "linear": (("input", _MUST), ("weight", _MUST), ("bias", None)),
    "layer_norm": (
        ("input", _MUST),
        ("normalized_shape", _MUST),
        ("weight", None),
        ("bias", None),
        ("eps", 1e-5),
        ("cudnn_enable", None),
    ),
    "add": (("input", _MUST), ("other", _MUST), ("alpha", 1)),
}

# Ulpian's ops.
OPS = frozenset(_SIGNATURES)

# Other names of the same arguments.
_SYNONYMS = {
    "self": "input",
    "mat2": "other",
    "vec": "other",
    "tensor": "other",
    "tensor2": "other",
    "train": "training",
}
_NOT_OURS = ("cudnn_enabled", "cudnn_enable", "inplace", "_stacklevel", "_random_samples")


class Unsupported(Exception):
    """No case can hold this call."""


def bind(op, name, args, kwargs):
    """The call's arguments by Ulpian's names, in the op's order, None where absent.

    `op` is Ulpian's name, `name` the function's own. Raises Unsupported.
    """
    kwargs = {_SYNONYMS.get(key, key): value for key, value in kwargs.items()}
    if kwargs.pop("out", None) is not None:
        raise Unsupported("the result is written into a tensor given as `out`")
    signature = _SIGNATURES[op]
    if op == "add" and len(args) == 3:
        # torch.add(input, alpha, other), deprecated.
        args = (args[0], args[2], args[1])
    if op == "flatten" and any(isinstance(value, str) for value in (*args, *kwargs.values())):
        raise Unsupported("dimensions given by name")
    if len(args) > len(signature):
        raise Unsupported(f"{len(args)} positional arguments, {op} takes {len(signature)}")
    bound = dict(zip((key for key, _ in signature), args))
    for key, value in kwargs.items():
        if key in bound:
            raise Unsupported(f"the argument `{key}` is given twice")
        bound[key] = value
    for key, default in signature:
        if bound.get(key) is None:
            if default is _MUST:
                raise Unsupported(f"the argument `{key}` is missing")
            bound[key] = default
    if op == "max_pool2d":
        bound["return_indices"] = bound["return_indices"] or name == "max_pool2d_with_indices"
        if isinstance(bound["stride"], (list, tuple)) and not bound["stride"]:
            bound["stride"] = None
    for key in _NOT_OURS:
        bound.pop(key, None)
    unknown = set(bound) - {key for key, _ in signature}
    if unknown:
        raise Unsupported(f"the argument `{min(unknown)}`, which {op} does not have")
    if not isinstance(bound["input"], torch.Tensor):
        _swap_scalar(op, bound)
    device = bound["input"].device.type
    # PyTorch refuses the question for `meta`.
    if device != "meta" and torch.is_autocast_enabled(device):
        raise Unsupported("autocast converts its inputs out of sight")
    return bound


def _swap_scalar(op, bound):
    """torch.add(2, x) and torch.mul(2, x) have the tensor second."""
    commutes = op == "mul" or (op == "add" and bound["alpha"] == 1)
    if not commutes or not isinstance(bound["other"], torch.Tensor):
        raise Unsupported("`input` is a number, not a tensor")
    bound["input"], bound["other"] = bound["other"], bound["input"]


def check_tensor(key, tensor):
    """Raises Unsupported where a case cannot hold this tensor."""
    if tensor.dtype not in DTYPES:
        raise Unsupported(f"`{key}` is of dtype {str(tensor.dtype).removeprefix('torch.')}")
    if tensor.is_nested:
        raise Unsupported(f"`{key}` is a nested tensor")
    if tensor.layout is not torch.strided:
        raise Unsupported(f"`{key}` is not dense: {tensor.layout}")
    if tensor.is_quantized:
        raise Unsupported(f"`{key}` is quantised")
    if tensor.device.type == "meta":
        raise Unsupported(f"`{key}` has no elements: it is on the device `meta`")


def literal(key, value):
    """An argument that is no tensor, as a case writes it. Raises Unsupported."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, torch.dtype):
        if value not in DTYPES:
            raise Unsupported(f"`{key}` is {value}")
        return DTYPES[value]
    if isinstance(value, (list, tuple, torch.Size)):
        return [literal(key, element) for element in value]
    # NumPy's scalars are numbers to PyTorch.
    if hasattr(value, "item") and not isinstance(value, torch.Tensor):
        value = value.item()
    if isinstance(value, bool):
        return value
    if isinstance(value, (numbers.Integral, torch.SymInt)):
        value = int(value)
        if not -(2**63) <= value < 2**63:
            raise Unsupported(f"`{key}` is {value}, beyond 64 bits")
        return value
    if isinstance(value, (float, torch.SymFloat)):
        value = float(value)
        return value if value - value == 0 else repr(value)
    raise Unsupported(f"`{key}` is a {type(value).__name__}")
