"""Random calls of every op, with what PyTorch on CPU answers: JSON Lines on standard output.

    python generate.py SEED VALID INVALID

Each line is {"case": an ulpian-case/1 object with inline tensors, "torch": {"results": [{"dtype", "shape"}, ...]} or
{"error": text}}; what PyTorch returned is the case's observation by "torch".
Calls are drawn until PyTorch has taken VALID and refused INVALID of them; whether a call is valid is PyTorch's word alone.
"""

import json
import math
import random
import sys
import warnings

import torch
import torch.nn.functional as F

warnings.filterwarnings("ignore")
torch.set_num_threads(1)

FLOATS = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
INTS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
ALL = FLOATS + INTS + [torch.bool]
ODD_INTS = [-1, 0, -(2**63), 2**63 - 1, 2**62, 2**40, 2**31]


def name(dtype):
    return str(dtype).removeprefix("torch.")


def number(x):
    if isinstance(x, float) and not math.isfinite(x):
        return "nan" if math.isnan(x) else "inf" if x > 0 else "-inf"
    return x


def to_json(t):
    flat = t.detach().contiguous().reshape(-1)
    return {"dtype": name(t.dtype), "shape": list(t.shape), "data": [number(x) for x in flat.tolist()]}


class Calls:
    def __init__(self, seed):
        self.r = random.Random(seed)
        self.g = torch.Generator().manual_seed(seed)

    def chance(self, p):
        return self.r.random() < p

    def size(self, most=5):
        return 0 if self.chance(0.03) else self.r.randint(1, most)

    def shape(self, least=0, most=4):
        return [self.size() for _ in range(self.r.randint(least, most))]

    def dtype(self):
        if self.chance(0.7):
            return torch.float64
        return self.r.choice(ALL)

    def tensor(self, shape, dtype):
        shape = list(shape)
        if dtype == torch.bool:
            return torch.randint(0, 2, shape, generator=self.g).to(dtype)
        if not dtype.is_floating_point:
            low = 0 if dtype == torch.uint8 else -9
            return torch.randint(low, 10, shape, generator=self.g).to(dtype)
        t = torch.randn(shape, generator=self.g, dtype=torch.float64) * self.r.choice([1.0, 1.0, 30.0, 1e-3])
        if self.chance(0.05) and t.numel():
            t.view(-1)[self.r.randrange(t.numel())] = self.r.choice([math.nan, math.inf, -math.inf, -0.0, 0.0])
        return t.to(dtype)

    def like(self, dtype):
        """The dtype itself, rarely another."""
        return self.r.choice(ALL) if self.chance(0.06) else dtype

    def parameter(self, dtype):
        """The dtype of a parameter beside an input of this dtype."""
        if dtype in (torch.float16, torch.bfloat16) and self.chance(0.4):
            return torch.float32
        return dtype

    def bend(self, shape):
        """The shape itself, rarely a wrong one."""
        shape = list(shape)
        if not self.chance(0.06):
            return shape
        how = self.r.randrange(3)
        if how == 0 and shape:
            shape[self.r.randrange(len(shape))] += self.r.choice([1, 2])
        elif how == 1 and shape:
            shape.pop(self.r.randrange(len(shape)))
        else:
            shape.insert(self.r.randint(0, len(shape)), self.r.choice([1, 2]))
        return shape

    def whole(self, low, high):
        return self.r.choice(ODD_INTS) if self.chance(0.03) else self.r.randint(low, high)

    def pair(self, low, high):
        if self.chance(0.5):
            return self.whole(low, high)
        pair = [self.whole(low, high), self.whole(low, high)]
        if self.chance(0.03):
            pair.append(self.whole(low, high))
        return pair

    def scalar(self):
        return self.r.choice(
            [True, False, self.r.randint(-5, 300), self.r.uniform(-3, 3), 0, 2, 1.5, -0.25, 1e300, math.inf, math.nan]
        )

    def broadcasting(self, shape):
        out = [1 if self.chance(0.25) else n for n in shape]
        while out and self.chance(0.2):
            out.pop(0)
        return self.bend(out)

    def other(self, shape, dtype):
        if self.chance(0.3):
            return self.scalar()
        return self.tensor(self.broadcasting(shape), dtype if self.chance(0.6) else self.r.choice(ALL))

    # One method an op: the arguments of a call.

    def flatten(self):
        x = self.tensor(self.shape(), self.dtype())
        n = max(x.dim(), 1)
        args = {"input": x}
        if self.chance(0.8):
            args["start_dim"] = self.whole(-n - 1, n)
        if self.chance(0.8):
            args["end_dim"] = self.whole(-n - 1, n)
        return args

    def mul(self):
        dtype = self.dtype()
        x = self.tensor(self.shape(), dtype)
        return {"input": x, "other": self.other(x.shape, dtype)}

    def add(self):
        args = self.mul()
        if self.chance(0.5):
            args["alpha"] = self.scalar()
        return args

    def div(self):
        args = self.mul()
        if self.chance(0.5):
            args["rounding_mode"] = self.r.choice([None, "trunc", "floor", "floor", "trunc", "ceil"])
        return args

    def softmax(self):
        x = self.tensor(self.shape(), self.dtype())
        n = max(x.dim(), 1)
        args = {"input": x, "dim": self.whole(-n - 1, n) if self.chance(0.2) else self.r.randint(-n, n - 1)}
        if self.chance(0.3):
            args["dtype"] = self.r.choice(ALL if self.chance(0.3) else FLOATS)
        return args

    def planes(self):
        shape = [self.size(3) for _ in range(self.r.choice([0, 1, 1, 1, 2]))]
        shape = [self.size(3)] + shape + [self.r.randint(1, 9), self.r.randint(1, 9)]
        if self.chance(0.05):
            shape[-self.r.randint(1, 2)] = 0
        return shape

    def adaptive_avg_pool2d(self):
        x = self.tensor(self.planes(), self.dtype())
        one = lambda: None if self.chance(0.15) else self.whole(0, 9)
        size = self.whole(0, 6) if self.chance(0.4) else [one(), one()]
        return {"input": x, "output_size": size}

    def matmul(self):
        dtype = self.dtype()
        k = self.size()
        batch = [self.size(3) for _ in range(self.r.randint(0, 2))]
        left = self.r.choice([[k], batch + [self.size(), k]])
        right_batch = self.broadcasting(batch) if self.chance(0.7) else []
        right = self.r.choice([[k], right_batch + [k, self.size()]])
        return {"input": self.tensor(left, dtype), "other": self.tensor(self.bend(right), self.like(dtype))}

    def max_pool2d(self):
        x = self.tensor(self.planes(), self.dtype())
        args = {"input": x, "kernel_size": self.pair(1, 4)}
        if self.chance(0.6):
            args["stride"] = None if self.chance(0.1) else self.pair(1, 4)
        if self.chance(0.5):
            args["padding"] = self.pair(0, 2)
        if self.chance(0.4):
            args["dilation"] = self.pair(1, 3)
        if self.chance(0.5):
            args["ceil_mode"] = self.chance(0.7)
        if self.chance(0.5):
            args["return_indices"] = self.chance(0.8)
        return args

    def batch_norm(self):
        dtype = self.r.choice(FLOATS) if self.chance(0.3) else self.dtype()
        x = self.tensor(self.bend(self.shape(2, 5)), dtype)
        channels = x.shape[1] if x.dim() > 1 else 3
        kind = self.parameter(dtype)
        vector = lambda: self.tensor(self.bend([channels]), self.like(kind))
        args = {"input": x}
        if self.chance(0.5):
            args["training"] = self.chance(0.8)
        if self.chance(0.85 if not args.get("training") else 0.5):
            args["running_mean"] = vector()
            if self.chance(0.97):
                variance = vector()
                args["running_var"] = variance.abs() if variance.dtype.is_floating_point else variance
        for parameter in ["weight", "bias"]:
            if self.chance(0.5):
                args[parameter] = vector()
        if self.chance(0.3):
            args["momentum"] = self.r.choice([0.0, 1.0, 0.25, 1])
        if self.chance(0.3):
            # eps of 0 in evaluation is taken by the newer releases alone.
            args["eps"] = self.r.choice([1e-3, 1e-12, 0.0 if args.get("training") else 1e-30, -1.0, 1])
        return args

    def dropout(self):
        x = self.tensor(self.shape(), self.dtype())
        args = {"input": x}
        if self.chance(0.8):
            args["p"] = self.r.choice([0.0, 1.0, 0.1, 0.5, 0.75, 1, 0, -0.1, 1.5])
        if self.chance(0.6):
            args["training"] = self.chance(0.5)
        if args.get("training", True) and 0 < args.get("p", 0.5) < 1 or self.chance(0.2):
            args["mask"] = torch.randint(0, 2, x.shape, generator=self.g).to(self.r.choice([torch.bool, x.dtype]))
        return args

    def relu(self):
        return {"input": self.tensor(self.shape(), self.dtype())}

    def gelu(self):
        args = self.relu()
        if self.chance(0.6):
            args["approximate"] = self.r.choice(["none", "tanh", "tanh", "erf"])
        return args

    def conv2d(self):
        dtype = self.dtype()
        groups = self.r.choice([1, 1, 2, 3])
        per_group, out = self.r.randint(1, 2), groups * self.r.randint(1, 2)
        shape = ([self.size(2)] if self.chance(0.7) else []) + [
            groups * per_group,
            self.r.randint(1, 8),
            self.r.randint(1, 8),
        ]
        weight = [out, per_group, self.r.randint(1, 3), self.r.randint(1, 3)]
        if self.chance(0.04):
            weight[self.r.randrange(4)] = 0
        if self.chance(0.04):
            shape[-self.r.randint(1, 2)] = 0
        args = {
            "input": self.tensor(self.bend(shape), dtype),
            "weight": self.tensor(self.bend(weight), self.like(dtype)),
        }
        if self.chance(0.5):
            args["bias"] = self.tensor(self.bend([weight[0]]), self.like(dtype))
        if self.chance(0.5):
            args["stride"] = self.pair(1, 3)
        if self.chance(0.6):
            args["padding"] = self.r.choice(["same", "valid", "full"]) if self.chance(0.4) else self.pair(0, 2)
        if self.chance(0.3):
            args["dilation"] = self.pair(1, 2)
        if groups > 1 or self.chance(0.1):
            args["groups"] = groups if not self.chance(0.05) else self.r.choice([0, -1, 2, 2**62])
        return args

    def linear(self):
        dtype = self.dtype()
        k, n = self.size(), self.size()
        weight = [k] if self.chance(0.2) else [n, k]
        args = {
            "input": self.tensor(self.bend(self.shape(0, 3) + [k]), dtype),
            "weight": self.tensor(self.bend(weight), self.like(dtype)),
        }
        if self.chance(0.5):
            shape = [n] if len(weight) == 2 and self.chance(0.9) else []
            args["bias"] = self.tensor(self.bend(shape), self.like(dtype))
        return args

    def layer_norm(self):
        dtype = self.r.choice(FLOATS) if self.chance(0.3) else self.dtype()
        x = self.tensor(self.shape(1, 4), dtype)
        sizes = self.bend(x.shape[self.r.randrange(x.dim()) :])
        if self.chance(0.03):
            sizes = [self.r.choice(ODD_INTS)] * len(sizes)
        kind = self.parameter(dtype)
        args = {"input": x, "normalized_shape": sizes}
        for parameter in ["weight", "bias"]:
            if self.chance(0.5):
                shape = sizes if all(0 <= s < 100 for s in sizes) else [3]
                args[parameter] = self.tensor(self.bend(shape), self.like(kind))
        if self.chance(0.3):
            args["eps"] = self.r.choice([1e-3, 1e-12, 0.0, 1])
        return args

    def spoil(self, args):
        """Rarely, an argument of a wrong kind or name."""
        if self.chance(0.03):
            key = self.r.choice(list(args))
            args[key] = self.r.choice(["text", [], [1.5], 2.5, None, [None, "x"]])
        if self.chance(0.01):
            args[self.r.choice(["inputs", "size", "Eps"])] = 1
        return args


def call(op, args):
    """The results of the call, as a tuple."""
    args = dict(args)
    x = args.pop("input")
    if not isinstance(x, torch.Tensor):
        raise TypeError("input is no tensor")
    if op in ("flatten", "mul", "div", "add", "matmul"):
        if op != "flatten" and "other" in args and not isinstance(args["other"], (torch.Tensor, bool, int, float)):
            raise TypeError("other is neither a tensor nor a number")
        return (getattr(torch, op)(x, **args),)
    if op == "relu":
        return (torch.relu(x, **args),)
    if op == "dropout":
        mask = args.pop("mask", None)
        if mask is not None and (not isinstance(mask, torch.Tensor) or mask.shape != x.shape):
            raise TypeError("mask is no tensor of the input's shape")
        result = F.dropout(x, **args)
        p, training = args.get("p", 0.5), args.get("training", True)
        if mask is not None and training and 0 < p < 1:
            result = x * mask / (1 - p)
        return (result.to(x.dtype),)
    if op == "batch_norm":
        mean, var = args.pop("running_mean", None), args.pop("running_var", None)
        mean, var = (t.clone() if isinstance(t, torch.Tensor) else t for t in (mean, var))
        result = F.batch_norm(x, mean, var, **args)
        updated = [mean, var] if args.get("training") and mean is not None else []
        return (result, *updated)
    result = getattr(F, op)(x, **args)
    return result if isinstance(result, tuple) else (result,)


OPS = [
    "flatten", "mul", "div", "softmax", "adaptive_avg_pool2d", "matmul", "max_pool2d", "batch_norm", "dropout", "relu",
    "conv2d", "gelu", "linear", "layer_norm", "add",
]  # fmt: skip

def write_args(args):
    out = {}
    for key, value in args.items():
        if isinstance(value, torch.Tensor):
            out[key] = to_json(value)
        elif isinstance(value, torch.dtype):
            out[key] = name(value)
        else:
            out[key] = number(value)
    return out


def main():
    seed, valid, invalid = map(int, sys.argv[1:])
    calls = Calls(seed)
    taken = refused = index = 0
    while taken < valid or refused < invalid:
        op = OPS[index % len(OPS)]
        index += 1
        args = calls.spoil(getattr(calls, op)())
        observed = []
        try:
            results = call(op, args)
            observed = [
                {"executor": "torch", "node": f"call.{i}" if i else "call", "tensor": to_json(t)}
                for i, t in enumerate(results)
            ]
            answer = {"results": [{"dtype": name(t.dtype), "shape": list(t.shape)} for t in results]}
            taken += 1
            if taken > valid:
                continue
        except (RuntimeError, TypeError, ValueError, IndexError, KeyError, NotImplementedError) as error:
            answer = {"error": f"{type(error).__name__}: {error}".split("\n")[0][:300]}
            refused += 1
            if refused > invalid:
                continue
        node = {"id": "call", "op": op, "args": write_args(args)}
        case = {"format": "ulpian-case/1", "name": f"{op}-{index}", "nodes": [node], "observed": observed}
        print(json.dumps({"case": case, "torch": answer}))
    print(json.dumps({"torch_version": torch.__version__, "calls": index}), file=sys.stderr)


if __name__ == "__main__":
    main()
