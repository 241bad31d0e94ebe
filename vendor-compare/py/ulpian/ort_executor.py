"""`ort:cpu`: a case's nodes, each as a one-op model that ONNX Runtime's CPU provider runs."""

import collections
import time

import numpy
import onnx
import onnxruntime
from onnx import helper
from onnxruntime.capi import onnxruntime_pybind11_state as ort_errors

from .ort_ops import ONNX_TYPES, OPS, numpy_dtype
from .protocol import NodeFailed, Unavailable

# The first opset with Gelu; LayerNormalization came with 17.
OPSET = 20
IR_VERSION = 9

# The most recently used sessions are kept.
SESSIONS = 64

_sessions = collections.OrderedDict()


def facts():
    """Versions."""
    return {"onnx": onnx.__version__, "onnxruntime": onnxruntime.__version__, "opset": OPSET}


def _argument(value, inputs, results):
    if value == "none":
        return None
    ((kind, content),) = value.items()
    if kind == "input":
        return inputs[content]
    if kind == "node":
        node, output = content
        return results[node][output]
    return float(content) if kind == "float" else content


def _session(graph):
    """A session for this graph over inputs of these dtypes and shapes, made once."""
    typed = {name: (str(array.dtype), array.shape) for name, array in graph.feeds.items()}
    signature = (tuple(node.SerializeToString() for node in graph.nodes), tuple(typed.items()), tuple(graph.outputs))
    if signature in _sessions:
        _sessions.move_to_end(signature)
    else:
        inputs = [helper.make_tensor_value_info(name, ONNX_TYPES[d], shape) for name, (d, shape) in typed.items()]
        # ONNX Runtime hands out no bfloat16 in Python, so such an output leaves as float32, which holds each of its values.
        widened = [
            helper.make_node("Cast", [name], [f"{name}_wide"], to=ONNX_TYPES["float32"])
            for name, d in graph.outputs
            if d == "bfloat16"
        ]
        outputs = [
            helper.make_tensor_value_info(f"{name}_wide", ONNX_TYPES["float32"], None)
            if d == "bfloat16"
            else helper.make_tensor_value_info(name, ONNX_TYPES[d], None)
            for name, d in graph.outputs
        ]
        model = helper.make_model(
            helper.make_graph([*graph.nodes, *widened], "op", inputs, outputs),
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
        )
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        _sessions[signature] = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        if len(_sessions) > SESSIONS:
            _sessions.popitem(last=False)
    return _sessions[signature]


def _run_node(node, inputs, results):
    args = {name: _argument(value, inputs, results) for name, value in node["args"].items()}
    if "dtype" in args:
        args["to"] = args.pop("dtype")
    graph = OPS[node["op"]](node["dtype"], **args)
    try:
        session = _session(graph)
    except (ort_errors.NotImplemented, ort_errors.InvalidGraph) as error:
        kind = " and ".join(n.op_type for n in graph.nodes)
        dtype = str(next(iter(graph.feeds.values())).dtype)
        raise Unavailable(
            f"node {node['id']}: ONNX Runtime's CPU provider has no {kind} for {dtype}",
            "judge it with torch:cpu, or the case in float32",
        ) from error
    feeds = {
        name: onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(array, ONNX_TYPES["bfloat16"])
        if str(array.dtype) == "bfloat16"
        else numpy.asarray(array, order="C")
        for name, array in graph.feeds.items()
    }
    start = time.perf_counter()
    outputs = session.run(None, feeds)
    seconds = time.perf_counter() - start
    outputs = [y.astype(numpy_dtype(d)) for y, (_, d) in zip(outputs, graph.outputs)]
    return [numpy.asarray(y, order="C") for y in graph.finish(outputs)], seconds


def run(nodes, inputs):
    """Runs a case; returns every node's results, the seconds of the computation, and notes."""
    results, total = [], 0.0
    for node in nodes:
        try:
            outputs, seconds = _run_node(node, inputs, results)
        except Unavailable:
            raise
        except Exception as error:
            raise NodeFailed(node["id"], results) from error
        results.append(outputs)
        total += seconds
    return results, total, []
