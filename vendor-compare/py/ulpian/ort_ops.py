"""Every op as a small ONNX graph, where ONNX has it.

Each function takes the case's arguments (numpy arrays for tensors) and returns a Graph: the ONNX nodes, what feeds
them, and what turns the outputs back into PyTorch's results.
"""

import math
from dataclasses import dataclass, field

import numpy
from onnx import TensorProto, helper

from .protocol import Unavailable

ONNX_TYPES = {
    "float64": TensorProto.DOUBLE,
    "float32": TensorProto.FLOAT,
    "float16": TensorProto.FLOAT16,
    "bfloat16": TensorProto.BFLOAT16,
    "int64": TensorProto.INT64,
    "int32": TensorProto.INT32,
    "int16": TensorProto.INT16,
    "int8": TensorProto.INT8,
    "uint8": TensorProto.UINT8,
    "bool": TensorProto.BOOL,
}


@dataclass
class Graph:
    """A one-op model and how to use it."""

    nodes: list
    feeds: dict
    # Name and dtype of each output.
    outputs: list
    finish: object = field(default=lambda outputs: outputs)


def numpy_dtype(name):
    """The dtype of this name, of ml_dtypes where numpy has none."""
    if name == "bfloat16":
        import ml_dtypes

        return numpy.dtype(ml_dtypes.bfloat16)
    return numpy.dtype(name)


def _missing(what, remedy="judge it with torch:cpu"):
    return Unavailable(f"ONNX has no {what}", remedy)


def _one(op_type, feeds, dtype, **attributes):
    """A graph of one node that takes all of `feeds`, in order; a None is an omitted input."""
    names = [name if value is not None else "" for name, value in feeds.items()]
    while names and names[-1] == "":
        names.pop()
    node = helper.make_node(op_type, names, ["y"], **attributes)
    return Graph([node], {name: value for name, value in feeds.items() if value is not None}, [("y", dtype)])


def _operand(value, dtype):
    """A tensor or a Python scalar, in the op's result dtype, which is the one PyTorch computes in."""
    return numpy.asarray(value).astype(numpy_dtype(dtype), copy=False)


def _batched(graph, input):
    """ONNX wants a batch dimension; PyTorch's unbatched input gets one and gives it back."""
    if input.ndim == 3:
        graph.feeds["x"] = input[None]
        graph.finish = lambda outputs: [y[0] for y in outputs]
    return graph


def flatten(dtype, input, start_dim, end_dim):
    shape = list(input.shape) or [1]
    start, end = start_dim % len(shape), end_dim % len(shape)
    shape[start : end + 1] = [math.prod(shape[start : end + 1])]
    return _one("Reshape", {"x": input, "shape": numpy.array(shape, numpy.int64)}, dtype, allowzero=1)


def mul(dtype, input, other):
    return _one("Mul", {"a": _operand(input, dtype), "b": _operand(other, dtype)}, dtype)


def div(dtype, input, other, rounding_mode):
    if rounding_mode is not None:
        raise _missing(f"division with rounding_mode={rounding_mode!r}")
    return _one("Div", {"a": _operand(input, dtype), "b": _operand(other, dtype)}, dtype)


def add(dtype, input, other, alpha):
    feeds = {"a": _operand(input, dtype), "b": _operand(other, dtype)}
    if alpha == 1:
        return _one("Add", feeds, dtype)
    feeds["alpha"] = _operand(alpha, dtype)
    nodes = [helper.make_node("Mul", ["b", "alpha"], ["scaled"]), helper.make_node("Add", ["a", "scaled"], ["y"])]
    return Graph(nodes, feeds, [("y", dtype)])


def softmax(dtype, input, dim, to):
    return _one("Softmax", {"x": _operand(input, dtype)}, dtype, axis=dim)


def adaptive_avg_pool2d(dtype, input, output_size):
    size = input.shape[-2:]
    wanted = [size[i] if output_size[i] is None else output_size[i] for i in range(2)]
    if wanted == [1, 1]:
        return _batched(_one("GlobalAveragePool", {"x": input}, dtype), input)
    if any(w < 1 or s % w for s, w in zip(size, wanted)):
        raise _missing(f"adaptive pooling from {list(size)} to {wanted}: its windows are all of one size")
    kernel = [s // w for s, w in zip(size, wanted)]
    return _batched(_one("AveragePool", {"x": input}, dtype, kernel_shape=kernel, strides=kernel), input)


def matmul(dtype, input, other):
    return _one("MatMul", {"a": input, "b": other}, dtype)


def max_pool2d(dtype, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
    outputs = ["y", "indices"] if return_indices else ["y"]
    node = helper.make_node(
        "MaxPool",
        ["x"],
        outputs,
        kernel_shape=kernel_size,
        strides=stride,
        pads=[*padding, *padding],
        dilations=dilation,
        ceil_mode=int(ceil_mode),
    )
    graph = Graph([node], {"x": input}, [("y", dtype), ("indices", "int64")][: len(outputs)])
    unbatched = input.ndim == 3
    if unbatched:
        graph.feeds["x"] = input[None]

    def finish(results):
        if return_indices:
            # ONNX counts through the whole tensor, PyTorch within a plane.
            results = [results[0], results[1] % math.prod(input.shape[-2:])]
        return [y[0] for y in results] if unbatched else results

    graph.finish = finish
    return graph


def batch_norm(dtype, input, running_mean, running_var, weight, bias, training, momentum, eps):
    ones = numpy.ones(input.shape[1], input.dtype)
    feeds = {
        "x": input,
        "weight": ones if weight is None else weight,
        "bias": ones * 0 if bias is None else bias,
        "mean": running_mean,
        "var": running_var,
    }
    if not training:
        return _one("BatchNormalization", feeds, dtype, epsilon=eps)
    if running_mean is not None or running_var is not None:
        raise _missing("batch_norm in training that updates running_var as PyTorch does, with the unbiased variance")
    # ONNX wants running statistics and returns them updated; the normalised input does not depend on them. ONNX Runtime
    # 1.32 updates them in place, in the caller's memory, where they are no outputs of the graph: so they are outputs, and
    # share no memory with another input.
    feeds.update(mean=ones * 0, var=ones.copy())
    node = helper.make_node("BatchNormalization", list(feeds), ["y", "m", "v"], epsilon=eps, training_mode=1)
    return Graph([node], feeds, [("y", dtype), ("m", dtype), ("v", dtype)], lambda outputs: outputs[:1])


def dropout(dtype, input, mask, p, training):
    if training:
        raise _missing("dropout with a given mask, nor one that draws PyTorch's")
    return _one("Dropout", {"x": input}, dtype)


def relu(dtype, input):
    return _one("Relu", {"x": input}, dtype)


def conv2d(dtype, input, weight, bias, stride, padding, dilation, groups):
    if padding == "same":
        total = [d * (k - 1) for d, k in zip(dilation, weight.shape[2:])]
        pads = [t // 2 for t in total] + [t - t // 2 for t in total]
    elif padding == "valid":
        pads = [0, 0, 0, 0]
    else:
        pads = [*padding, *padding]
    feeds = {"x": input, "weight": weight, "bias": bias}
    graph = _one("Conv", feeds, dtype, strides=stride, pads=pads, dilations=dilation, group=groups)
    return _batched(graph, input)


def gelu(dtype, input, approximate):
    return _one("Gelu", {"x": input}, dtype, approximate=approximate)


def linear(dtype, input, weight, bias):
    if input.ndim == 2 and weight.ndim == 2:
        return _one("Gemm", {"x": input, "weight": weight, "bias": bias}, dtype, transB=1)
    feeds = {"x": input, "weight": numpy.ascontiguousarray(weight.T)}
    if bias is None:
        return _one("MatMul", feeds, dtype)
    nodes = [
        helper.make_node("MatMul", ["x", "weight"], ["product"]),
        helper.make_node("Add", ["product", "bias"], ["y"]),
    ]
    return Graph(nodes, {**feeds, "bias": bias}, [("y", dtype)])


def layer_norm(dtype, input, weight, bias, normalized_shape, eps):
    scale = numpy.ones(normalized_shape, input.dtype) if weight is None else weight
    feeds = {"x": input, "weight": scale, "bias": bias}
    return _one("LayerNormalization", feeds, dtype, axis=-len(normalized_shape), epsilon=eps)


OPS = {
    function.__name__: function
    for function in (
        flatten,
        mul,
        div,
        softmax,
        adaptive_avg_pool2d,
        matmul,
        max_pool2d,
        batch_norm,
        dropout,
        relu,
        conv2d,
        gelu,
        linear,
        layer_norm,
        add,
    )
}
