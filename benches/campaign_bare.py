"""The script that `campaign.rs` is measured against: what somebody would write who has no Ulpian.

    python campaign_bare.py FOLDER [EXECUTOR ...]

Reads the cases of a folder as `ulpian generate` writes them, runs every call in float64 and, under each executor's switches
(`torch:cpu` alone otherwise), in the dtypes of the case, and compares the results: largest difference, and `torch.allclose`.
Of executors it knows `torch:cpu`, `?mkldnn=off`, `?layout=channels_last` and `?threads=1`. Torch's own number of threads
(`OMP_NUM_THREADS` sets it). Prints a line for each case whose results are not close, and a count.
"""

import json
import sys
from contextlib import contextmanager
from pathlib import Path

import torch
import torch.nn.functional as F
from safetensors.torch import load_file


def batch_norm(input, training=False, **args):
    # Running statistics are updated in place; the second run has the same ones.
    kept = {name: value.clone() if training and "running" in name else value for name, value in args.items()}
    return F.batch_norm(input, training=training, **kept)


def dropout(input, p=0.5, training=True, mask=None):
    return F.dropout(input, p, training) if mask is None or not training else input * mask / (1 - p)


CALLS = {
    "add": torch.add,
    "adaptive_avg_pool2d": F.adaptive_avg_pool2d,
    "batch_norm": batch_norm,
    "conv2d": F.conv2d,
    "div": torch.div,
    "dropout": dropout,
    "flatten": torch.flatten,
    "gelu": F.gelu,
    "layer_norm": F.layer_norm,
    "linear": F.linear,
    "matmul": torch.matmul,
    "max_pool2d": F.max_pool2d,
    "mul": torch.mul,
    "relu": torch.relu,
    "softmax": F.softmax,
}


def double(value):
    return value.double() if isinstance(value, torch.Tensor) and value.is_floating_point() else value


def same(value):
    return value


def channels_last(value):
    dense = isinstance(value, torch.Tensor) and value.dim() == 4
    return value.contiguous(memory_format=torch.channels_last) if dense else value


@contextmanager
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@contextmanager
def nothing():
    yield


# What is switched, and what is done to tensors.
EXECUTORS = {
    "torch:cpu": (nothing, same),
    "torch:cpu?mkldnn=off": (lambda: torch.backends.mkldnn.flags(enabled=False), same),
    "torch:cpu?layout=channels_last": (nothing, channels_last),
    "torch:cpu?threads=1": (one_thread, same),
}


def run(nodes, tensors, convert):
    """Every node's first result, by name."""
    results = {}

    def argument(value):
        if isinstance(value, str) and value.startswith("@"):
            return convert(tensors[value[1:]])
        if isinstance(value, str) and value.startswith("%"):
            return results[value[1:]]
        return value

    for node in nodes:
        result = CALLS[node["op"]](**{name: argument(value) for name, value in node["args"].items()})
        results[node["id"]] = result[0] if isinstance(result, tuple) else result
    return results


def main(folder, *executors):
    files = sorted(Path(folder).glob("*.json"))
    apart = 0
    with torch.no_grad():
        for file in files:
            case = json.loads(file.read_text())
            tensors = load_file(file.parent / case["tensors"])
            wanted = run(case["nodes"], tensors, double)
            for executor in executors or ["torch:cpu"]:
                switch, convert = EXECUTORS[executor]
                with switch():
                    got = run(case["nodes"], tensors, convert)
                for name, expected in wanted.items():
                    actual = got[name].double()
                    worst = (actual - expected).abs().max().item()
                    if not torch.allclose(actual, expected, rtol=1e-4, atol=1e-5):
                        apart += 1
                        print(f"{case['name']}: {executor}: {name}: {worst:.3g}")
    print(f"{len(files)} cases, {apart} results apart, {torch.get_num_threads()} threads")


if __name__ == "__main__":
    main(*sys.argv[1:])
