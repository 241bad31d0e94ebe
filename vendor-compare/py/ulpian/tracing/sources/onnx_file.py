"""ONNX files: the graph as it stands, run once by ONNX Runtime without its optimisations (by onnx's own reference evaluator where
that is not installed), with every intermediate value kept.

Operators of ONNX that are ops of Ulpian's carry their labels and have records; constants and initialisers count as parameters;
the bodies of If, Loop and Scan are not entered.
"""

import os

import torch

from .. import arguments, data
from ..features import Features
from ..subject import SourceError, Subject
from . import require
from .onnx_ops import CONVERTERS, LABELS, SHAPE_ONLY, Node


def load(path, options):
    """The model in this file."""
    if not os.path.isfile(path):
        raise SourceError(f"there is no file {path}", "check the path; it is relative to the working folder")
    onnx = require("onnx")
    try:
        model = onnx.load(path)
        onnx.checker.check_model(model)
    except Exception as error:
        raise SourceError(f"{path} is no ONNX model: {type(error).__name__}: {error}", "check it with onnx.checker") from error
    constants = {tensor.name: onnx.numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    inputs, fed = _inputs(onnx, model.graph, constants, options)
    values, framework = _run(onnx, model, inputs)
    # Constants that stand in the graph are parameters like the initialisers.
    for node in model.graph.node:
        if node.op_type == "Constant" and node.output[0] in values:
            constants[node.output[0]] = values[node.output[0]]
    values = {**values, **inputs, **constants}
    return Subject(
        _Graph(onnx, model, values, constants),
        weights=f"as {os.path.basename(path)} holds them",
        data=fed,
        framework=framework,
    )


class _Graph:
    """Nodes and records of a graph whose values are known."""

    def __init__(self, onnx, model, values, constants):
        self._onnx = onnx
        self._graph = model.graph
        self._opset = next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 1)
        # A tensor each, so that its features are computed once.
        self._values = {name: tensor for name, value in values.items() if (tensor := _tensor(value)) is not None}
        self._constants = constants
        parameters = [self._values[name] for name in constants if name in self._values]
        self._features = Features(parameters)

    def record(self):
        """The nodes and the calls, as Recording has them."""
        nodes, calls, made = [], [], {}
        for node in self._graph.node:
            if node.op_type == "Constant":
                continue
            number = len(nodes)
            label, known, record = self._call(node)
            names = self._argument_names(node)
            inputs = []
            for position, name in enumerate(node.input):
                if name in made:
                    source, result = made[name]
                    argument = known.get(position, names[position])
                    inputs.append({"argument": argument, "node": source, "result": result})
            entry = {"id": number, "label": label, "api": f"onnx.{node.op_type}", "inputs": inputs}
            if node.name:
                entry["module"] = node.name
            if node.op_type in SHAPE_ONLY:
                entry["shape_only"] = True
            nodes.append(entry)
            if record is not None:
                calls.append({"node": number, **record})
            made.update((name, (number, result)) for result, name in enumerate(node.output) if name)
        return nodes, calls

    def _call(self, node):
        """Label, the names of arguments by ONNX's input, and the record where it is an op of Ulpian's."""
        op, convert = CONVERTERS.get(node.op_type, (None, None)) if node.domain in ("", "ai.onnx") else (None, None)
        if op is None:
            return LABELS.get(node.op_type, node.op_type.lower()), {}, None
        attributes = {a.name: self._onnx.helper.get_attribute_value(a) for a in node.attribute}
        attributes = {key: list(v) if hasattr(v, "__len__") and not isinstance(v, (bytes, str)) else v for key, v in attributes.items()}
        tensors = [self._values.get(name) if name else None for name in node.input]
        record = {"op": op, "args": {}}
        try:
            absent = [name for name, tensor in zip(node.input, tensors) if name and tensor is None]
            if absent:
                raise arguments.Unsupported(f"the value of `{absent[0]}` is not known")
            _, bound = convert(Node(node.op_type, self._opset, attributes, tensors, list(node.output)))
        except arguments.Unsupported as reason:
            return op, {}, {**record, "unsupported": str(reason)}
        known = {}
        for key, value in bound.items():
            try:
                if isinstance(value, tuple):
                    tensor, position = value
                    known[position] = key
                    arguments.check_tensor(key, tensor)
                    record["args"][key] = self._features.of(tensor)
                elif value is not None:
                    record["args"][key] = arguments.literal(key, value)
            except arguments.Unsupported as reason:
                record.setdefault("unsupported", str(reason))
        return op, known, record

    def _argument_names(self, node):
        count = len(node.input)
        try:
            schema = self._onnx.defs.get_schema(node.op_type, self._opset, node.domain)
        except self._onnx.defs.SchemaError:
            return [str(position) for position in range(count)]
        names = [formal.name for formal in schema.inputs]
        variadic = names and schema.inputs[-1].option == self._onnx.defs.OpSchema.FormalParameterOption.Variadic
        if variadic:
            last = names.pop()
            names += [f"{last}.{position}" for position in range(count - len(names))]
        return names + [str(position) for position in range(len(names), count)]


def _tensor(value):
    try:
        return torch.from_numpy(value.copy())
    except (TypeError, AttributeError):
        return None


def _run(onnx, model, inputs):
    """Every value by name, and who computed it."""
    try:
        import onnxruntime
    except ImportError:
        evaluator = onnx.reference.ReferenceEvaluator(model)
        return evaluator.run(None, inputs, intermediate=True), f"onnx {onnx.__version__}, its reference evaluator"
    names = [name for node in model.graph.node for name in node.output if name]
    opened = onnx.ModelProto()
    opened.CopyFrom(model)
    shown = {output.name for output in opened.graph.output}
    opened.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in shown)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    try:
        session = onnxruntime.InferenceSession(opened.SerializeToString(), options, providers=["CPUExecutionProvider"])
        values = dict(zip(names, session.run(names, inputs)))
    except Exception as error:
        raise SourceError(
            f"ONNX Runtime cannot run the model: {error}", "give a model whose inputs are images, texts or plain numbers"
        ) from error
    return values, f"onnx {onnx.__version__}, onnxruntime {onnxruntime.__version__}"


def _inputs(onnx, graph, constants, options):
    """Arrays for the graph's inputs, and what they are in words."""
    generator = torch.Generator().manual_seed(options.seed)
    arrays, words = {}, []
    for entry in graph.input:
        if entry.name in constants:
            continue
        kind = entry.type.tensor_type
        if kind.elem_type == 0:
            raise SourceError(f"the input `{entry.name}` is no tensor", "give a model whose inputs are tensors")
        dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
        shape = [d.dim_value if d.dim_value > 0 else None for d in kind.shape.dim]
        tensor, fed = _input(entry.name, dtype, shape, graph, constants, options, generator)
        arrays[entry.name] = tensor.numpy().astype(dtype)
        words.append(f"{entry.name}: {fed}")
    return arrays, "; ".join(words)


def _input(name, dtype, shape, graph, constants, options, generator):
    """An image for four dimensions with three channels, a text for two of whole numbers, else random numbers."""
    is_float = dtype.kind == "f"
    if is_float and len(shape) == 4 and shape[1] in (3, None):
        side = options.image_size or 224
        return data.images(shape[0] or options.batch, shape[2] or side, shape[3] or side)
    if dtype.kind == "i" and len(shape) == 2:
        batch, length = shape[0] or options.batch, shape[1] or 64
        if "mask" in name:
            return torch.ones(batch, length), "ones"
        table = next((n.input[0] for n in graph.node if n.op_type == "Gather" and n.input[1] == name), None)
        if table in constants:
            rows = constants[table].shape[0]
            if rows < 256:
                return torch.zeros(batch, length), "zeros"
            return data.token_ids(batch, length, rows)
    sizes = [size or (options.batch if place == 0 else options.image_size or 224) for place, size in enumerate(shape)]
    if is_float:
        return torch.randn(sizes, generator=generator), f"random normal numbers, seed {options.seed}"
    return torch.zeros(sizes), "zeros"
