"""ONNX's operators as Ulpian's ops, where the two compute the same function.

A converter gets a Node and returns the op's name and its arguments: tensors as (tensor, number of ONNX's input), anything else as a
literal. It raises Unsupported where the op has no such call.
"""

from ..arguments import Unsupported

# Labels of operators that PyTorch knows under another name, so that patterns meet.
LABELS = {
    "Concat": "cat",
    "Transpose": "permute",
    "ReduceMean": "mean",
    "ReduceSum": "sum",
    "Clip": "clamp",
    "Cast": "to",
    "Identity": "alias",
}
SHAPE_ONLY = frozenset("Reshape Transpose Squeeze Unsqueeze Expand Slice Split Identity DepthToSpace SpaceToDepth Tile".split())


class Node:
    """An operator with its attributes and the values of its inputs; None where an optional one is left out."""

    def __init__(self, op_type, opset, attributes, inputs, outputs):
        self.op_type = op_type
        self.opset = opset
        self.attributes = attributes
        self.inputs = inputs
        self.outputs = outputs

    def get(self, name, default=None):
        value = self.attributes.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    def input(self, number):
        """The input of this number with the number; None where it is left out."""
        tensor = self.inputs[number] if number < len(self.inputs) else None
        return None if tensor is None else (tensor, number)


def _two_dimensional_pads(node, kernel):
    if node.get("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        raise Unsupported(f"auto_pad is {node.get('auto_pad')}")
    if len(kernel) != 2:
        raise Unsupported(f"{len(kernel)} spatial dimensions, Ulpian's op has 2")
    top, left, bottom, right = node.get("pads", [0, 0, 0, 0])
    if (top, left) != (bottom, right):
        raise Unsupported(f"the padding [{top}, {left}, {bottom}, {right}] differs from side to side")
    return [top, left]


def _conv(node):
    kernel = node.get("kernel_shape") or list(node.inputs[1].shape[2:])
    return "conv2d", {
        "input": node.input(0),
        "weight": node.input(1),
        "bias": node.input(2),
        "stride": node.get("strides", [1, 1]),
        "padding": _two_dimensional_pads(node, kernel),
        "dilation": node.get("dilations", [1, 1]),
        "groups": node.get("group", 1),
    }


def _max_pool(node):
    kernel = node.get("kernel_shape")
    padding = _two_dimensional_pads(node, kernel)
    if len([name for name in node.outputs if name]) > 1:
        raise Unsupported("ONNX counts the positions of maxima over the whole tensor")
    return "max_pool2d", {
        "input": node.input(0),
        "kernel_size": kernel,
        # ONNX's default is 1, PyTorch's the kernel.
        "stride": node.get("strides", [1, 1]),
        "padding": padding,
        "dilation": node.get("dilations", [1, 1]),
        "ceil_mode": bool(node.get("ceil_mode", 0)),
    }


def _global_average_pool(node):
    if node.inputs[0].dim() != 4:
        raise Unsupported(f"{node.inputs[0].dim() - 2} spatial dimensions, Ulpian's op has 2")
    return "adaptive_avg_pool2d", {"input": node.input(0), "output_size": [1, 1]}


def _gemm(node):
    weight, bias = node.inputs[1], node.input(2)
    if node.get("alpha", 1.0) != 1.0 or node.get("transA", 0) or (bias and node.get("beta", 1.0) != 1.0):
        raise Unsupported("Gemm with a factor or a transposed first operand")
    if not node.get("transB", 0):
        weight = weight.t()
    if bias and tuple(bias[0].shape) != (weight.shape[0],):
        raise Unsupported(f"a bias of shape {list(bias[0].shape)}")
    return "linear", {"input": node.input(0), "weight": (weight, 1), "bias": bias}


def _batch_norm(node):
    if node.get("training_mode", 0) or len([name for name in node.outputs if name]) > 1:
        raise Unsupported("batch norm in training, whose running variance ONNX does not correct")
    return "batch_norm", {
        "input": node.input(0),
        "running_mean": node.input(3),
        "running_var": node.input(4),
        "weight": node.input(1),
        "bias": node.input(2),
        "training": False,
        "eps": node.get("epsilon", 1e-5),
    }


def _layer_norm(node):
    shape = list(node.inputs[0].shape)[node.get("axis", -1) :]
    if list(node.inputs[1].shape) != shape:
        raise Unsupported(f"a scale of shape {list(node.inputs[1].shape)}")
    return "layer_norm", {
        "input": node.input(0),
        "normalized_shape": shape,
        "weight": node.input(1),
        "bias": node.input(2),
        "eps": node.get("epsilon", 1e-5),
    }


def _softmax(node):
    axis = node.get("axis", -1 if node.opset >= 13 else 1)
    rank = node.inputs[0].dim()
    if node.opset < 13 and axis % rank != rank - 1:
        raise Unsupported("Softmax before opset 13 joins the dimensions from its axis on")
    return "softmax", {"input": node.input(0), "dim": axis}


def _dropout(node):
    if len(node.inputs) > 2 and node.inputs[2] is not None and bool(node.inputs[2]):
        raise Unsupported("dropout in training draws its own mask")
    ratio = node.get("ratio", 0.5) if node.opset < 12 else 0.5
    if node.opset >= 12 and len(node.inputs) > 1 and node.inputs[1] is not None:
        ratio = float(node.inputs[1])
    return "dropout", {"input": node.input(0), "p": ratio, "training": False}


def _flatten(node):
    if node.get("axis", 1) != 1 or node.inputs[0].dim() < 2:
        raise Unsupported(f"Flatten at axis {node.get('axis', 1)} of {node.inputs[0].dim()} dimensions")
    return "flatten", {"input": node.input(0), "start_dim": 1, "end_dim": -1}


def _div(node):
    args = {"input": node.input(0), "other": node.input(1)}
    if not node.inputs[0].dtype.is_floating_point:
        args["rounding_mode"] = "trunc"
    return "div", args


def _pair(op):
    return lambda node: (op, {"input": node.input(0), "other": node.input(1)})


CONVERTERS = {
    "Conv": ("conv2d", _conv),
    "MaxPool": ("max_pool2d", _max_pool),
    "GlobalAveragePool": ("adaptive_avg_pool2d", _global_average_pool),
    "Gemm": ("linear", _gemm),
    "BatchNormalization": ("batch_norm", _batch_norm),
    "LayerNormalization": ("layer_norm", _layer_norm),
    "Softmax": ("softmax", _softmax),
    "Dropout": ("dropout", _dropout),
    "Flatten": ("flatten", _flatten),
    "Relu": ("relu", lambda node: ("relu", {"input": node.input(0)})),
    "Gelu": ("gelu", lambda node: ("gelu", {"input": node.input(0), "approximate": node.get("approximate", "none")})),
    "Add": ("add", _pair("add")),
    "Mul": ("mul", _pair("mul")),
    "Div": ("div", _div),
    "MatMul": ("matmul", _pair("matmul")),
}
