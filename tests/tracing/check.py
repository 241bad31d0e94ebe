"""Small models of plain PyTorch, traced, with the graph and the records that they must have.

    python check.py PACKAGE_FOLDER

Prints the names of the checks that passed. Nodes are written `label(argument=node.result, ...)`, in order.
"""

import sys

sys.path.insert(0, sys.argv[1])

import math  # noqa: E402
import tempfile  # noqa: E402

import torch  # noqa: E402
import torch.nn as nn  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from ulpian.tracing.features import describe  # noqa: E402
from ulpian.tracing.recording import Recording  # noqa: E402

torch.manual_seed(0)
torch.set_num_threads(1)


def traced(model, *args, grad=False, **kwargs):
    with torch.set_grad_enabled(grad), Recording(model) as recording:
        model(*args, **kwargs)
    return recording


def shown(recording):
    """The graph as text, a line a node."""
    lines = []
    for node in recording.nodes:
        inputs = [
            f"{source['argument']}={source['node']}" + (f".{source['result']}" if source["result"] else "")
            for source in node["inputs"]
        ]
        lines.append(f"{node['label']}({', '.join(inputs)})")
    return lines


def equal(found, expected):
    if found != expected:
        found, expected = ("\n".join(map(str, lines)) for lines in (found, expected))
        raise AssertionError(f"found:\n{found}\nexpected:\n{expected}")


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)
        self.norm = nn.BatchNorm2d(4)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        y = self.relu(self.norm(self.conv(x)))
        y += x
        return self.relu(y)


def check_residual_with_in_place_relu():
    block = nn.Sequential(Residual(), Residual()).eval()
    recording = traced(block, torch.randn(2, 4, 5, 5))
    expected = [
        "conv2d()",
        "batch_norm(input=0)",
        "relu(input=1)",
        "add(input=2)",
        "relu(input=3)",
        "conv2d(input=4)",
        "batch_norm(input=5)",
        "relu(input=6)",
        "add(input=7, other=4)",
        "relu(input=8)",
    ]
    equal(shown(recording), expected)
    modules = [node.get("module") for node in recording.nodes]
    equal(modules[:5], ["0.conv", "0.norm", "0.relu", "0", "0.relu"])
    equal([node["api"] for node in recording.nodes[2:4]], ["torch.nn.functional.relu_", "torch.Tensor.add_"])
    conv, norm = (call["args"] for call in recording.calls[:2])
    equal(list(conv), ["input", "weight", "bias", "stride", "padding", "dilation", "groups"])
    equal([conv[key] for key in ("stride", "padding", "dilation", "groups")], [[1, 1], [1, 1], [1, 1], 1])
    equal([conv[key].get("parameter", False) for key in ("input", "weight", "bias")], [False, True, True])
    equal(norm["running_mean"]["parameter"], True)
    equal((norm["training"], norm["momentum"], norm["eps"]), (False, 0.1, 1e-5))


class Views(nn.Module):
    def forward(self, x):
        y = x * 2
        z = y.view(-1)
        y.add_(1)
        # z was made before the write and sees it.
        a = z.relu().view(3, 4)
        y[0, :2] = 0
        b = y + a
        c = b.t().contiguous()
        return c.contiguous() / 3


def check_views_see_writes():
    recording = traced(Views(), torch.randn(3, 4))
    expected = [
        "mul()",
        "view(input=0)",
        "add(input=0)",
        "relu(input=2)",
        "view(input=3)",
        "__setitem__(input=2)",
        "add(input=5, other=4)",
        "t(input=6)",
        "contiguous(input=7)",
        "contiguous(input=8)",
        "div(input=9)",
    ]
    equal(shown(recording), expected)
    equal([n["id"] for n in recording.nodes if n.get("shape_only")], [1, 4, 7, 8, 9])
    equal([call["op"] for call in recording.calls], ["mul", "add", "relu", "add", "div"])
    # The write of zeros is in what the later reader saw, and not in what the earlier one saw.
    equal(recording.calls[3]["args"]["input"]["zeros"], 2 / 12)


def check_a_view_of_an_input_did_not_make_it():
    def model(x):
        a = torch.flatten(x, 1)
        b = torch.relu(x)
        x.mul_(2)
        return a + 1, b, torch.relu(x)

    expected = ["flatten()", "relu()", "mul()", "add(input=2)", "relu(input=2)"]
    equal(shown(traced(model, torch.randn(2, 3, 4))), expected)


def check_a_write_through_a_view_is_seen_by_the_base():
    def model(x):
        y = x + 1
        y[:, 1].mul_(3)
        return torch.relu(y)

    equal(shown(traced(model, torch.randn(2, 3))), ["add()", "__getitem__(input=0)", "mul(input=1)", "relu(input=2)"])


def check_dropout_in_evaluation_is_told_from_its_input():
    drop = nn.Dropout(0.3).eval()

    def model(x):
        y = x + 1
        return drop(y) + y

    recording = traced(model, torch.randn(2, 3))
    equal(shown(recording), ["add()", "dropout(input=0)", "add(input=1, other=0)"])
    equal(recording.calls[1]["args"]["training"], False)
    equal(recording.calls[1]["args"]["p"], 0.3)


def check_operators_methods_and_functions_are_one_op():
    x, y = torch.randn(3, 3), torch.randn(3, 3)
    forms = {
        "add": [lambda: x + y, lambda: 1 + x, lambda: x.add(y), lambda: torch.add(x, y, alpha=2), lambda: x.clone().add_(y)],
        "mul": [lambda: x * y, lambda: 2.0 * x, lambda: torch.multiply(x, y), lambda: torch.mul(3, x)],
        "div": [lambda: x / y, lambda: x.true_divide(y), lambda: torch.div(x, 2, rounding_mode="floor")],
        "matmul": [lambda: x @ y, lambda: torch.mm(x, y), lambda: x.mm(y), lambda: torch.bmm(x[None], y[None])],
        "softmax": [lambda: x.softmax(1), lambda: F.softmax(x, dim=-1), lambda: torch.softmax(x, 0, torch.float64)],
        "relu": [lambda: F.relu(x), lambda: torch.relu(x), lambda: F.relu(x.clone(), inplace=True)],
        "gelu": [lambda: F.gelu(x, approximate="tanh"), lambda: nn.GELU()(x)],
        "flatten": [lambda: torch.flatten(x), lambda: x.flatten(0, -1), lambda: nn.Flatten(0)(x)],
        "linear": [lambda: F.linear(x, y), lambda: F.linear(x, weight=y, bias=y[0])],
        "layer_norm": [lambda: F.layer_norm(x, (3,)), lambda: F.layer_norm(x, [3], eps=1e-6, weight=y[0])],
    }
    for op, calls in forms.items():
        for call in calls:
            with Recording() as recording:
                call()
            record = recording.calls[-1]
            equal((record["op"], record.get("unsupported")), (op, None))
            equal(recording.nodes[record["node"]]["label"], op)
    with Recording() as recording:
        torch.mul(3, x)
        x.div(2, rounding_mode="trunc")
        torch.softmax(x, 0, torch.float64)
        F.max_pool2d(x[None], 2, return_indices=True)
    literals = [{k: v for k, v in call["args"].items() if not isinstance(v, dict)} for call in recording.calls]
    pool = {"kernel_size": 2, "padding": 0, "dilation": 1, "ceil_mode": False, "return_indices": True}
    equal(literals, [{"other": 3}, {"other": 2, "rounding_mode": "trunc"}, {"dim": 0, "dtype": "float64"}, pool])


def check_attention_is_open():
    attention = nn.MultiheadAttention(8, 2, batch_first=True).eval()
    x = torch.randn(1, 5, 8)
    recording = traced(attention, x, x, x)
    equal(
        [call["op"] for call in recording.calls], ["linear", "mul", "matmul", "softmax", "matmul", "linear"]
    )
    labels = {node["id"]: node["label"] for node in recording.nodes}
    (softmax,) = [node for node in recording.nodes if node["label"] == "softmax"]
    equal(labels[softmax["inputs"][0]["node"]], "matmul")


def check_results_are_numbered():
    def model(x):
        pooled, positions = F.max_pool2d(x, 2, return_indices=True)
        first, second = pooled.chunk(2, 1)
        return F.max_unpool2d(torch.cat([first, second], 1), positions, 2)

    recording = traced(model, torch.randn(1, 2, 4, 4))
    expected = [
        "max_pool2d()",
        "chunk(input=0)",
        "cat(tensors.0=1, tensors.1=1.1)",
        "max_unpool2d(input=2, indices=0.1)",
    ]
    equal(shown(recording), expected)


def check_training_updates_statistics():
    norm = nn.BatchNorm1d(3)

    def model(x):
        return norm(norm(x))

    recording = traced(model, torch.randn(4, 3))
    equal(
        [line for line in shown(recording) if line.startswith("batch_norm")],
        ["batch_norm()", "batch_norm(input=1, running_mean=1.1, running_var=1.2)"],
    )


def check_shared_tensors_and_gradients():
    linear = nn.Linear(4, 4)

    def model(x):
        y = linear(x)
        return (y * y).sum() + y.detach().sum()

    recording = traced(model, torch.randn(2, 4, requires_grad=True), grad=True)
    expected = ["linear()", "mul(input=0, other=0)", "sum(input=1)", "detach(input=0)", "sum(input=3)", "add(input=2, other=4)"]
    equal(shown(recording), expected)


def check_what_no_case_can_hold_is_said():
    x = torch.randn(2, 2)
    with Recording() as recording:
        torch.add(x, x, out=torch.empty(2, 2))
        x.to(torch.complex64) + 1
        x + 1j
        torch.div(1, x)
        with torch.autocast("cpu", torch.bfloat16):
            x @ x
    reasons = [call["unsupported"] for call in recording.calls]
    for reason, word in zip(reasons, ("`out`", "complex64", "complex", "a number", "autocast")):
        if word not in reason:
            raise AssertionError(f"{reason!r} does not say {word!r}")
    equal(len(reasons), 5)


def check_features():
    x = torch.tensor([0.0, -0.0, 3.0, math.inf, math.nan, -5.0])
    found = describe(x)
    equal((found["min"], found["max"], found["zeros"], found["nonfinite"]), (-5.0, 3.0, 2 / 6, 2 / 6))
    equal(found["mean"], -0.5)
    equal(round(found["std"], 6), round(math.sqrt((0.25 + 0.25 + 12.25 + 20.25) / 4), 6))
    equal((len(found["quantiles"]), found["quantiles"][0], found["quantiles"][-1]), (17, -5.0, 3.0))
    equal(describe(torch.empty(0, 3)), {"dtype": "float32", "shape": [0, 3], "zeros": 0.0, "nonfinite": 0.0})
    nothing = describe(torch.full((2,), math.nan))
    equal(("min" in nothing, nothing["nonfinite"]), (False, 1.0))
    # A sample stands for the quantiles of a large tensor; the other statistics are of all of it.
    large = torch.randn(3_000_000, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) + 7
    found = describe(large)
    equal((found["min"], found["max"]), (float(large.min()), float(large.max())))
    for value, exact in ((found["mean"], large.mean()), (found["std"], large.std(correction=0))):
        if abs(value - float(exact)) > 1e-12 * abs(value):
            raise AssertionError(f"{value} for {float(exact)}")
    if abs(found["quantiles"][8] - 7) > 0.05:
        raise AssertionError(f"the median is {found['quantiles'][8]}")
    equal(describe(torch.tensor([True, False]))["mean"], 0.5)
    equal(describe(torch.tensor([2**40, -1]))["max"], float(2**40))


def check_a_run_that_is_too_long_is_cut_short():
    from ulpian.tracing.recording import CutShort

    recording = Recording(max_nodes=3)
    try:
        with recording:
            for _ in range(10):
                torch.relu(torch.ones(1))
    except CutShort:
        equal(len(recording.nodes), 3)
        return
    raise AssertionError("it was not cut short")


def check_the_mode_leaves_nothing_behind():
    before = torch.nn.functional.has_torch_function_unary
    x = torch.randn(2, 3)
    try:
        with Recording():
            x @ x
    except RuntimeError:
        pass
    equal(torch.nn.functional.has_torch_function_unary is before, True)
    weight = torch.zeros(3)
    with Recording():
        leaf = torch.zeros(3).requires_grad_()
        (leaf * 2).sum().backward()
    equal((leaf.is_leaf, leaf.grad.tolist(), weight.grad), (True, [2.0, 2.0, 2.0], None))


def check_capture_refuses_with_a_reason():
    import ulpian

    with tempfile.TemporaryDirectory() as folder:
        x = torch.randn(2, 2)
        attempts = {
            "no folder": lambda: ulpian.capture(f"{folder}/none/case.json"),
            "*.json": lambda: ulpian.capture(f"{folder}/case.txt"),
        }
        for word, attempt in attempts.items():
            try:
                attempt()
            except ulpian.CaptureError as error:
                if word not in str(error):
                    raise AssertionError(f"{error} does not say {word}") from error
            else:
                raise AssertionError(f"{word}: it was taken")
        for word, run, options in (
            ("none of Ulpian's ops", lambda: x.sin(), {}),
            ("max_nodes", lambda: [x + 1 for _ in range(3)], {"max_nodes": 2}),
            ("max_bytes", lambda: x + 1, {"max_bytes": 20}),
        ):
            try:
                with ulpian.capture(f"{folder}/case.json", **options):
                    run()
            except ulpian.CaptureError as error:
                if word not in str(error):
                    raise AssertionError(f"{error} does not say {word}") from error
            else:
                raise AssertionError(f"{word}: it was taken")
        import os

        equal(os.listdir(folder), [])


for name, check in list(globals().items()):
    if name.startswith("check_"):
        try:
            check()
        except BaseException:
            print(f"failed: {name}", file=sys.stderr)
            raise
        print(name.removeprefix("check_"))
