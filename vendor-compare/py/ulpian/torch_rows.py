"""`batch=1`: an op row by row, where its rows are independent of each other."""

import torch

from .protocol import Unavailable
from .torch_ops import OPS


def split_arguments(op, args):
    """The names of the arguments that are split along their first dimension; None where rows depend on each other."""
    x = args["input"]
    if x.dim() == 0:
        return None
    if op in ("relu", "gelu"):
        return ("input",)
    if op in ("add", "mul", "div"):
        other = args["other"]
        if not isinstance(other, torch.Tensor):
            return ("input",)
        return ("input", "other") if other.shape == x.shape else None
    if op == "dropout":
        if not args["training"]:
            return ("input",)
        return ("input", "mask") if args["mask"] is not None else None
    if op == "flatten":
        return ("input",) if args["start_dim"] % x.dim() > 0 else None
    if op == "softmax":
        return ("input",) if args["dim"] % x.dim() > 0 else None
    if op == "layer_norm":
        return ("input",) if x.dim() > len(args["normalized_shape"]) else None
    if op == "linear":
        return ("input",) if x.dim() > 1 else None
    if op == "matmul":
        other = args["other"]
        if x.dim() > 1 and other.dim() <= 2:
            return ("input",)
        same_batch = x.dim() > 2 and other.dim() == x.dim() and other.shape[0] == x.shape[0]
        return ("input", "other") if same_batch else None
    if op == "batch_norm":
        return None if args["training"] else ("input",)
    if op in ("conv2d", "max_pool2d", "adaptive_avg_pool2d"):
        return ("input",) if x.dim() == 4 else None
    return None


def run_rows(node, args):
    """All results of one node, computed one row at a time and joined."""
    op = node["op"]
    names = split_arguments(op, args)
    if names is None:
        raise Unavailable(
            f"batch=1: the rows of node {node['id']} ({op}) are not computed independently of each other",
            "leave batch=1 out for this case",
        )
    rows = args["input"].shape[0]
    if rows < 2:
        return OPS[op](**args)
    parts = []
    for row in range(rows):
        # A copy: a row alone starts at an aligned address, as a batch of one would.
        own = {name: args[name][row : row + 1].clone() for name in names}
        parts.append(OPS[op](**{**args, **own}))
    return tuple(torch.cat(results) for results in zip(*parts))
