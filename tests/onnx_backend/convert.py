"""Converts ONNX's backend tests of the matching operators to Ulpian cases.

    python convert.py OUT

Reads the node tests that the `onnx` package generates and the single-operator models it ships (pytorch-operator,
pytorch-converted, simple). Writes OUT/<test>.json with OUT/<test>.safetensors, the expected outputs as the observations of
the executor `onnx`, and OUT/left_out.json: {test: reason} for every test that cannot be said in Ulpian's 15 ops.
"""

import json
import os
import sys
import warnings

# The generators compute with infinities and NaN on purpose.
warnings.filterwarnings("ignore")

import numpy as np
import onnx
from onnx import helper, numpy_helper
from onnx.backend.test.case.node import collect_testcases
import onnx.backend.test as backend_test

OPERATORS = {
    "Add", "Mul", "Div", "Softmax", "GlobalAveragePool", "MatMul", "Gemm", "MaxPool", "BatchNormalization", "Dropout",
    "Relu", "Conv", "Gelu", "LayerNormalization", "Flatten",
}
DTYPES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "int64": "I64", "int32": "I32", "int16": "I16", "int8": "I8",
    "uint8": "U8", "bool": "BOOL",
}
# ONNX's default epsilon is a float32.
EPSILON = float(np.float32(1e-5))


class LeftOut(Exception):
    """The test cannot be said in Ulpian's ops; the text says why."""


class Case:
    def __init__(self, name, source):
        self.name, self.source = name, source
        self.tensors, self.nodes, self.observed = {}, [], []

    def tensor(self, name, value):
        value = np.asarray(value, order="C")
        if str(value.dtype) not in DTYPES:
            raise LeftOut(f"PyTorch's ops take no {value.dtype} tensors")
        self.tensors[name] = value
        return "@" + name

    def node(self, id, op, **args):
        self.nodes.append({"id": id, "op": op, "args": args})
        return "%" + id

    def observe(self, node, value):
        name = "seen_" + node.replace(".", "_")
        self.observed.append({"executor": "onnx", "node": node, "tensor": self.tensor(name, value)})

    def write(self, folder):
        file = self.name + ".safetensors"
        write_safetensors(os.path.join(folder, file), self.tensors)
        case = {
            "format": "ulpian-case/1", "name": self.name, "source": self.source, "tensors": file,
            "nodes": self.nodes, "observed": self.observed,
        }
        with open(os.path.join(folder, self.name + ".json"), "w") as f:
            json.dump(case, f, indent=1)


def write_safetensors(path, tensors):
    header, offset, blobs = {}, 0, []
    for name, value in tensors.items():
        blob = value.tobytes()
        header[name] = {
            "dtype": DTYPES[str(value.dtype)], "shape": list(value.shape), "data_offsets": [offset, offset + len(blob)],
        }
        offset += len(blob)
        blobs.append(blob)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(len(text).to_bytes(8, "little"))
        f.write(text)
        f.writelines(blobs)


def pads_of(attributes, spatial, kernel, strides, dilations, shape):
    """ONNX's padding as (begins, ends) per spatial dimension."""
    auto = attributes.get("auto_pad", b"NOTSET").decode()
    if auto in ("NOTSET", "VALID"):
        pads = attributes.get("pads", [0] * (2 * spatial)) if auto == "NOTSET" else [0] * (2 * spatial)
        return list(pads[:spatial]), list(pads[spatial:])
    begins, ends = [], []
    for k, s, d, size in zip(kernel, strides, dilations, shape):
        out = -(-size // s)
        total = max((out - 1) * s + (k - 1) * d + 1 - size, 0)
        small, large = total // 2, total - total // 2
        begins.append(small if auto == "SAME_UPPER" else large)
        ends.append(large if auto == "SAME_UPPER" else small)
    return begins, ends


def to_planes(x, spatial):
    """(N, C, L) as (N, C, 1, L)."""
    return x if spatial == 2 else x.reshape(x.shape[:2] + (1,) + x.shape[2:])


def two(values, spatial, other):
    return list(values) if spatial == 2 else [other] + list(values)


def window(case, attributes, x, kernel, fill):
    """Input planes, padding and steps of a windowed operator. Padding that PyTorch cannot say is written into the data."""
    spatial = len(kernel)
    if spatial > 2:
        raise LeftOut("three-dimensional windows are not among the 15 ops")
    strides = attributes.get("strides", [1] * spatial)
    dilations = attributes.get("dilations", [1] * spatial)
    begins, ends = pads_of(attributes, spatial, kernel, strides, dilations, x.shape[2:])
    limit = [k // 2 for k in kernel] if fill is not None else [10**9] * spatial
    padding = begins
    if begins != ends or any(b > m for b, m in zip(begins, limit)):
        value = 0 if fill is None else fill
        x = np.pad(x, [(0, 0), (0, 0)] + list(zip(begins, ends)), constant_values=value)
        padding = [0] * spatial
    return (
        to_planes(x, spatial),
        dict(stride=two(strides, spatial, 1), padding=two(padding, spatial, 0), dilation=two(dilations, spatial, 1)),
        padding == begins,
    )


def pointwise(op):
    def convert(case, attributes, inputs, outputs):
        a, b = inputs
        if attributes.get("broadcast") and b.ndim and b.ndim < a.ndim and "axis" in attributes:
            axis = attributes["axis"] % a.ndim
            b = b.reshape(b.shape + (1,) * (a.ndim - axis - b.ndim))
        args = dict(input=case.tensor("a", a), other=case.tensor("b", b))
        if op == "div" and a.dtype.kind != "f":
            args["rounding_mode"] = "trunc"
        case.node("y", op, **args)
        case.observe("y", outputs[0])

    return convert


def softmax(case, attributes, inputs, outputs):
    axis = attributes.get("axis", -1 if case.opset >= 13 else 1)
    x, y = inputs[0], outputs[0]
    if case.opset < 13 and axis % x.ndim != x.ndim - 1:
        # Before opset 13 the input was first flattened to two dimensions at the axis.
        rows = int(np.prod(x.shape[:axis]))
        x, y, axis = x.reshape(rows, -1), y.reshape(rows, -1), 1
    case.node("y", "softmax", input=case.tensor("x", x), dim=axis)
    case.observe("y", y)


def global_average_pool(case, attributes, inputs, outputs):
    case.node("y", "adaptive_avg_pool2d", input=case.tensor("x", inputs[0]), output_size=[1, 1])
    case.observe("y", outputs[0])


def matmul(case, attributes, inputs, outputs):
    case.node("y", "matmul", input=case.tensor("a", inputs[0]), other=case.tensor("b", inputs[1]))
    case.observe("y", outputs[0])


def gemm(case, attributes, inputs, outputs, out="y", given=None):
    alpha, beta = attributes.get("alpha", 1.0), attributes.get("beta", 1.0)
    if np.frexp(alpha)[0] != 0.5:
        raise LeftOut("alpha is no power of two, and matmul has no alpha")
    b = inputs[1].T if attributes.get("transB") else inputs[1]
    if given is None:
        a = inputs[0].T if attributes.get("transA") else inputs[0]
        a = case.tensor("a_" + out, a * np.float32(alpha))
    else:
        a = given
    product = case.node("product_" + out, "matmul", input=a, other=case.tensor("b_" + out, b))
    if len(inputs) > 2 and beta != 0:
        result = case.node(out, "add", input=product, other=case.tensor("c_" + out, inputs[2]), alpha=float(beta))
    else:
        case.nodes[-1]["id"], result = out, "%" + out
    if outputs:
        case.observe(out, outputs[0])
    return result


def linear(case, attributes, inputs, outputs):
    """The same as one op where Gemm is one: alpha = beta = 1 and a bias vector."""
    vector = len(inputs) > 2 and inputs[2].ndim and inputs[2].size == inputs[2].shape[-1] == outputs[0].shape[-1]
    if attributes.get("alpha", 1.0) != 1.0 or attributes.get("beta", 1.0) != 1.0 or not vector:
        gemm(case, attributes, inputs, outputs)
        return
    a = inputs[0].T if attributes.get("transA") else inputs[0]
    w = inputs[1] if attributes.get("transB") else inputs[1].T
    case.node("y", "linear", input=case.tensor("x", a), weight=case.tensor("w", w), bias=case.tensor("b", inputs[2].ravel()))
    case.observe("y", outputs[0])


def max_pool(case, attributes, inputs, outputs):
    x, kernel = inputs[0], attributes["kernel_shape"]
    fill = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    planes, steps, padded = window(case, attributes, x, kernel, fill)
    spatial = len(kernel)
    case.node(
        "y", "max_pool2d", input=case.tensor("x", planes), kernel_size=two(kernel, spatial, 1),
        ceil_mode=bool(attributes.get("ceil_mode", 0)), return_indices=len(outputs) > 1, **steps,
    )
    case.observe("y", to_planes(outputs[0], spatial))
    if len(outputs) > 1:
        index = outputs[1]
        plane = int(np.prod(x.shape[2:]))
        # ONNX counts over the whole tensor, PyTorch within a plane.
        index = index - (np.arange(index.shape[0] * index.shape[1]) * plane).reshape(index.shape[:2] + (1,) * spatial)
        if attributes.get("storage_order"):
            height, width = x.shape[2:]
            index = index % height * width + index // height
        case.observe("y.1", to_planes(index, spatial))


def batch_normalization(case, attributes, inputs, outputs):
    x, scale, bias, mean, var = inputs
    training = bool(attributes.get("training_mode", 0))
    momentum = float(np.float32(1) - np.float32(attributes.get("momentum", np.float32(0.9))))
    case.node(
        "y", "batch_norm", input=case.tensor("x", x), running_mean=case.tensor("mean", mean),
        running_var=case.tensor("var", var), weight=case.tensor("scale", scale), bias=case.tensor("bias", bias),
        training=training, momentum=momentum, eps=float(attributes.get("epsilon", EPSILON)),
    )
    case.observe("y", outputs[0])
    if training:
        # ONNX updates the running variance with the biased one, PyTorch with the unbiased: only the mean is comparable.
        case.observe("y.1", outputs[1])


def dropout(case, attributes, inputs, outputs):
    training = bool(inputs[2]) if len(inputs) > 2 and inputs[2] is not None else False
    p = float(inputs[1]) if len(inputs) > 1 and inputs[1] is not None else float(attributes.get("ratio", 0.5))
    args = dict(input=case.tensor("x", inputs[0]), p=p, training=training)
    if training and len(outputs) > 1:
        args["mask"] = case.tensor("mask", outputs[1])
    case.node("y", "dropout", **args)
    case.observe("y", outputs[0])


def relu(case, attributes, inputs, outputs):
    case.node("y", "relu", input=case.tensor("x", inputs[0]))
    case.observe("y", outputs[0])


def conv(case, attributes, inputs, outputs):
    x, w = inputs[0], inputs[1]
    kernel = w.shape[2:]
    planes, steps, _ = window(case, attributes, x, kernel, None)
    spatial = len(kernel)
    args = dict(input=case.tensor("x", planes), weight=case.tensor("w", to_planes(w, spatial)), **steps)
    if len(inputs) > 2:
        args["bias"] = case.tensor("b", inputs[2])
    case.node("y", "conv2d", groups=attributes.get("group", 1), **args)
    case.observe("y", to_planes(outputs[0], spatial))


def gelu(case, attributes, inputs, outputs):
    approximate = attributes.get("approximate", b"none").decode()
    case.node("y", "gelu", input=case.tensor("x", inputs[0]), approximate=approximate)
    case.observe("y", outputs[0])


def layer_normalization(case, attributes, inputs, outputs):
    x = inputs[0]
    shape = list(x.shape[attributes.get("axis", -1) % x.ndim:])
    args = dict(input=case.tensor("x", x), normalized_shape=shape, eps=float(attributes.get("epsilon", EPSILON)))
    for name, value in zip(("weight", "bias"), inputs[1:]):
        args[name] = case.tensor(name, value.reshape(shape))
    case.node("y", "layer_norm", **args)
    case.observe("y", outputs[0])


def flatten(case, attributes, inputs, outputs):
    x = inputs[0]
    axis = attributes.get("axis", 1)
    axis = axis + x.ndim if axis < 0 else axis
    if axis == 0:
        x, axis = x[None], 1
    if x.ndim == axis:
        x = x[..., None]
    rows = case.node("rows", "flatten", input=case.tensor("x", x), start_dim=0, end_dim=axis - 1) if axis > 1 else None
    case.node("y", "flatten", input=rows or case.tensor("x", x), start_dim=1, end_dim=-1)
    case.observe("y", outputs[0])


CONVERTERS = {
    "Add": pointwise("add"), "Mul": pointwise("mul"), "Div": pointwise("div"), "Softmax": softmax,
    "GlobalAveragePool": global_average_pool, "MatMul": matmul, "Gemm": linear, "MaxPool": max_pool,
    "BatchNormalization": batch_normalization, "Dropout": dropout, "Relu": relu, "Conv": conv, "Gelu": gelu,
    "LayerNormalization": layer_normalization, "Flatten": flatten,
}


def convert(name, source, model, inputs, outputs):
    nodes = [n for n in model.graph.node if n.op_type != "Constant"]
    values = {i.name: numpy_helper.to_array(i) for i in model.graph.initializer}
    values.update(
        (n.output[0], numpy_helper.to_array(helper.get_attribute_value(n.attribute[0])))
        for n in model.graph.node if n.op_type == "Constant"
    )
    free = [i.name for i in model.graph.input if i.name not in values]
    values.update(zip(free, inputs))
    case = Case(name, source)
    case.opset = next(o.version for o in model.opset_import if o.domain in ("", "ai.onnx"))
    attributes = [{a.name: helper.get_attribute_value(a) for a in n.attribute} for n in nodes]
    if len(nodes) == 1:
        arguments = [values[i] if i else None for i in nodes[0].input]
        CONVERTERS[nodes[0].op_type](case, attributes[0], arguments, outputs)
        return case
    # The few shipped models of two nodes: Gemm of Gemm, and Mul of Add.
    if [n.op_type for n in nodes] == ["Gemm", "Gemm"]:
        first, second = nodes
        middle = gemm(case, attributes[0], [values[i] for i in first.input], [], "h")
        position = list(second.input).index(first.output[0])
        if position == 0:
            rest = [None] + [values[i] for i in second.input[1:]]
            gemm(case, attributes[1], rest, outputs, "y", given=middle)
        else:
            arguments = [values[i] for i in second.input[:2]]
            product = case.node(
                "product_y", "matmul", input=case.tensor("a_y", arguments[0]), other=case.tensor("b_y", arguments[1])
            )
            case.node("y", "add", input=product, other=middle)
            case.observe("y", outputs[0])
        return case
    if [n.op_type for n in nodes] == ["Add", "Mul"]:
        reference = {}
        for i, value in values.items():
            reference[i] = case.tensor("t" + str(len(reference)), value)
        for n, id in zip(nodes, ("h", "y")):
            a, b = (reference[i] for i in n.input)
            reference[n.output[0]] = case.node(id, n.op_type.lower(), input=a, other=b)
        case.observe("y", outputs[0])
        return case
    raise LeftOut("more than one operator: " + ", ".join(n.op_type for n in nodes))


def generated():
    for test in collect_testcases(None):
        nodes = test.model.graph.node
        if len(nodes) == 1 and nodes[0].op_type in OPERATORS and nodes[0].domain in ("", "ai.onnx"):
            for inputs, outputs in test.data_sets:
                yield test.name, f"onnx {onnx.__version__}, node test", test.model, inputs, outputs


def shipped():
    base = os.path.join(os.path.dirname(backend_test.__file__), "data")

    def load(path):
        with open(path, "rb") as f:
            return numpy_helper.to_array(onnx.TensorProto.FromString(f.read()))

    for folder in ("pytorch-operator", "pytorch-converted", "simple"):
        for name in sorted(os.listdir(os.path.join(base, folder))):
            here = os.path.join(base, folder, name)
            model = onnx.load(os.path.join(here, "model.onnx"))
            types = {n.op_type for n in model.graph.node} - {"Constant"}
            if not types or not types <= OPERATORS:
                continue
            data = os.path.join(here, "test_data_set_0")
            count = lambda kind: len([f for f in os.listdir(data) if f.startswith(kind)])
            inputs = [load(os.path.join(data, f"input_{i}.pb")) for i in range(count("input_"))]
            outputs = [load(os.path.join(data, f"output_{i}.pb")) for i in range(count("output_"))]
            yield name, f"onnx {onnx.__version__}, {folder}", model, inputs, outputs


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    left_out, written = {}, 0
    for source in (generated, shipped):
        for name, origin, model, inputs, outputs in source():
            arrays = lambda values: [None if v is None else np.asarray(v) for v in values]
            try:
                convert(name, origin, model, arrays(inputs), arrays(outputs)).write(out)
                written += 1
            except LeftOut as reason:
                left_out[name] = str(reason)
    with open(os.path.join(out, "left_out.json"), "w") as f:
        json.dump(left_out, f, indent=1)
    print(json.dumps({"onnx": onnx.__version__, "written": written, "left_out": len(left_out)}))


if __name__ == "__main__":
    main()
