"""The other side of `benches/reference.rs`: times one call of an op in torch.float64, or a few elements of it in mpmath.

Reads a request a line on standard input, `torch OP THREADS SIZE` or `mpmath OP`, and answers with seconds: of one call, or of one
element. SIZE is large or small. Inputs are made once.
"""
import sys
import time

import mpmath
import torch
import torch.nn.functional as F

DOUBLE = {"dtype": torch.float64}


def normal(*shape):
    return torch.randn(*shape, **DOUBLE)


torch.manual_seed(0)
TENSORS = {}
SMALL = False


def tensor(name, *shape):
    if (name, shape) not in TENSORS:
        TENSORS[name, shape] = normal(*shape)
    return TENSORS[name, shape]


def square(name):
    return tensor(name, 1024, 1024)


def wide(name="x"):
    return tensor(name, 512, 768) if SMALL else tensor(name, 4096, 1024)


def parameter(name):
    return tensor(name, 768 if SMALL else 1024)


def image():
    return tensor("image", 1 if SMALL else 16, 3, 224, 224)


TORCH = {
    "matmul": lambda: torch.matmul(square("a"), square("b")),
    "linear": lambda: F.linear(square("a"), square("b"), tensor("bias", 1024)),
    "conv2d": lambda: F.conv2d(image(), tensor("filters", 64, 3, 7, 7), stride=2, padding=3),
    "softmax": lambda: F.softmax(wide(), -1),
    "gelu": lambda: F.gelu(wide()),
    "gelu_tanh": lambda: F.gelu(wide(), approximate="tanh"),
    "layer_norm": lambda: F.layer_norm(wide(), parameter("w").shape, parameter("w"), parameter("v")),
    "batch_norm": lambda: F.batch_norm(image(), None, None, training=True),
    "adaptive_avg_pool2d": lambda: F.adaptive_avg_pool2d(image(), 7),
    "max_pool2d": lambda: F.max_pool2d(image(), 3, 2, 1),
    "add": lambda: torch.add(wide(), wide("y")),
    "mul": lambda: torch.mul(wide(), wide("y")),
    "div": lambda: torch.div(wide(), wide("y")),
    "relu": lambda: torch.relu(wide()),
}


def row(n):
    return [mpmath.mpf(x) for x in torch.randn(n, dtype=torch.float32).tolist()]


def mean_and_deviation(x):
    mean = mpmath.fsum(x) / len(x)
    return mean, mpmath.sqrt(mpmath.fsum((v - mean) ** 2 for v in x) / len(x) + mpmath.mpf(1e-5))


def softmax(x):
    e = [mpmath.exp(v) for v in x]
    total = mpmath.fsum(e)
    return [v / total for v in e]


def layer_norm(x):
    mean, deviation = mean_and_deviation(x)
    return [(v - mean) / deviation * v + v for v in x]


# What to compute, and how many elements come of it.
MPMATH = {
    "matmul": (lambda x: mpmath.fdot(x, x), 1),
    "linear": (lambda x: mpmath.fdot(x, x) + x[0], 1),
    "conv2d": (lambda x: mpmath.fdot(x[:147], x[:147]), 1),
    "softmax": (softmax, 1024),
    "gelu": (lambda x: [v * mpmath.ncdf(v) for v in x], 1024),
    "gelu_tanh": (lambda x: [v / (1 + mpmath.exp(-1.6 * (v + 0.044715 * v**3))) for v in x], 1024),
    "layer_norm": (layer_norm, 1024),
    "batch_norm": (layer_norm, 1024),
    "adaptive_avg_pool2d": (lambda x: mpmath.fsum(x) / 1024, 1),
    "max_pool2d": (lambda x: max(x[:9]), 1),
    "add": (lambda x: [v + v for v in x], 1024),
    "mul": (lambda x: [v * v for v in x], 1024),
    "div": (lambda x: [v / v for v in x], 1024),
    "relu": (lambda x: [max(v, 0) for v in x], 1024),
}

mpmath.mp.prec = 128
for line in sys.stdin:
    kind, op, *rest = line.split()
    if kind == "torch":
        torch.set_num_threads(int(rest[0]))
        SMALL = rest[1] == "small"
        call, elements = TORCH[op], 1
    else:
        compute, elements = MPMATH[op]
        x = row(1024)
        call = lambda: compute(x)
    start = time.perf_counter()
    call()
    print((time.perf_counter() - start) / elements, flush=True)
