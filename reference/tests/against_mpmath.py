"""Checks `ulpian truth` against mpmath and Python fractions: every op, every float dtype, random and edge elements.

    python against_mpmath.py PATH_TO_ULPIAN [ELEMENTS] [SEED] [OP]

Needs mpmath, torch and safetensors. Rational ops are computed with fractions.Fraction, so ties are exact; exp, erfc and
sqrt by mpmath at 3,000 bits. Inputs are finite. Prints a line per op and dtype: elements, wrong roundings (a zero that a
nonzero number rounds to must have its sign), enclosures that miss, undecided. Exits with 1 where any is not zero.
"""

import json
import math
import random
import subprocess
import sys
import tempfile
from fractions import Fraction as F
from pathlib import Path

import mpmath
from safetensors.torch import load_file

FORMATS = {
    "float64": (53, -1022, 1023),
    "float32": (24, -126, 127),
    "float16": (11, -14, 15),
    "bfloat16": (8, -126, 127),
}
PREC = 3000


def round_to(x, dtype):
    """The element of the format nearest to the fraction, ties to even."""
    p, least, greatest = FORMATS[dtype]
    if x == 0:
        return 0.0
    a = abs(x)
    e = a.numerator.bit_length() - a.denominator.bit_length()
    if F(2) ** e > a:
        e -= 1
    quantum = F(2) ** (max(e, least) - p + 1)
    n = round(a / quantum)  # Python rounds a Fraction to nearest, ties to even.
    y = n * quantum
    y = math.inf if y >= F(2) ** (greatest + 1) else float(y)
    return -y if x < 0 else y


def fraction(x):
    """An mpf exactly."""
    sign, man, exp, _ = x._mpf_
    y = F(int(man)) * F(2) ** exp
    return -y if sign else y


def mpf(x):
    return mpmath.mpf(x.numerator) / x.denominator


def element(dtype, profile, rng):
    p, least, greatest = FORMATS[dtype]

    def full(low, high, bits=p):
        return F(rng.getrandbits(bits) | 1 << (bits - 1)) * F(2) ** (rng.randint(low, high) - bits + 1)

    if profile == "ordinary":
        x = full(-3, 3)
    elif profile == "wide":
        x = full(-12, 12)
    elif profile == "coarse":
        x = full(-4, 4, rng.randint(1, max(3, p // 2)))
    elif profile == "any":
        x = full(least - p + 1, greatest)
    elif profile == "small":
        x = F(rng.randint(0, 9))
    else:
        unit = F(2) ** (least - p + 1)
        top = F(2) ** (greatest + 1) - F(2) ** (greatest - p + 1)
        x = rng.choice([F(0), unit, 3 * unit, F(2) ** least, F(2) ** least - unit, top, top / 2, F(1), 1 + F(2) ** (1 - p)])
    x = F(round_to(x, dtype))
    return -x if rng.random() < 0.5 else x


def tensor(dtype, shape, profile, rng):
    count = math.prod(shape)
    if rng.random() < 0.2:
        profile = rng.choice(PROFILES)
    return [element(dtype, profile, rng) for _ in range(count)]


PROFILES = ["ordinary", "wide", "coarse", "any", "small", "edge"]


def inline(dtype, shape, data):
    return {"dtype": dtype, "shape": shape, "data": [float(x).hex() for x in data]}


def norm(x, mean, var, eps, w, b):
    d = (x - mean) * w
    r = var + F(eps)
    n, m = math.isqrt(r.numerator), math.isqrt(r.denominator)
    if n * n == r.numerator and m * m == r.denominator:
        return d * m / n + b
    if d == 0:
        return b
    return fraction(mpf(d) / mpmath.sqrt(mpf(r)) + mpf(b))


def stats(values):
    mean = sum(values) / len(values)
    return mean, sum((x - mean) ** 2 for x in values) / len(values)


def exp(x):
    """e^x; anything below 2^-100000 is given as that."""
    return F(1, 2**100000) if x < -69000 else fraction(mpmath.exp(mpf(x)))


def gelu(x):
    if x == 0:
        return F(0)
    if x < -600:
        return -F(1, 2**100000)
    if x > 600:
        return x
    return fraction(mpf(x) / 2 * mpmath.erfc(-mpf(x) / mpmath.sqrt(2)))


def gelu_tanh(x):
    if x == 0:
        return F(0)
    t = mpmath.sqrt(2 / mpmath.pi) * mpf(x + F(44715, 1000000) * x**3)
    if t < -20000:
        return -F(1, 2**100000)
    if t > 20000:
        return x
    return fraction(mpf(x) / (1 + mpmath.exp(-2 * t)))


def node(op, dtype, rng):
    """Arguments of a random call and the exact results, row-major."""
    profile = rng.choice(PROFILES)

    def make(*shape):
        data = tensor(dtype, shape, profile, rng)
        return data, inline(dtype, list(shape), data)

    if op in ("add", "mul", "div", "relu", "gelu", "flatten", "dropout"):
        a, ja = make(10, 12)
        b, jb = make(10, 12)
        if op == "add":
            alpha = rng.choice([1, -2, 0.3, 0.75])
            return {"input": ja, "other": jb, "alpha": alpha}, [x + F(alpha) * y for x, y in zip(a, b)]
        if op == "mul":
            return {"input": ja, "other": jb}, [x * y for x, y in zip(a, b)]
        if op == "div":
            b = [y or F(1) for y in b]
            mode = rng.choice([None, "floor", "trunc"])
            whole = {None: lambda q: q, "floor": lambda q: F(math.floor(q)), "trunc": lambda q: F(math.trunc(q))}[mode]
            args = {"input": ja, "other": inline(dtype, [10, 12], b), "rounding_mode": mode}
            return args, [whole(x / y) for x, y in zip(a, b)]
        if op == "relu":
            return {"input": ja}, [max(x, F(0)) for x in a]
        if op == "gelu":
            form = rng.choice(["none", "tanh"])
            return {"input": ja, "approximate": form}, [(gelu if form == "none" else gelu_tanh)(x) for x in a]
        if op == "flatten":
            return {"input": ja}, a
        p = rng.choice([0.5, 0.1, 0.3])
        mask = [rng.randint(0, 1) for _ in a]
        args = {"input": ja, "p": p, "training": True, "mask": {"dtype": "bool", "shape": [10, 12], "data": mask}}
        return args, [x * m / (1 - F(p)) for x, m in zip(a, mask)]
    if op == "softmax":
        rows, n = 8, 14
        a, ja = make(rows, n)
        out = []
        for r in range(rows):
            row = a[r * n : r * n + n]
            top = max(row)
            powers = [exp(x - top) for x in row]
            total = sum(powers)
            out += [x / total for x in powers]
        return {"input": ja, "dim": 1}, out
    if op in ("matmul", "linear"):
        m, k, n = 10, rng.randint(1, 40), 12
        a, ja = make(m, k)
        if op == "matmul":
            b, jb = make(k, n)
            return {"input": ja, "other": jb}, [
                sum(a[i * k + l] * b[l * n + j] for l in range(k)) for i in range(m) for j in range(n)
            ]
        w, jw = make(n, k)
        c, jc = make(n)
        return {"input": ja, "weight": jw, "bias": jc}, [
            sum(a[i * k + l] * w[j * k + l] for l in range(k)) + c[j] for i in range(m) for j in range(n)
        ]
    if op == "conv2d":
        a, ja = make(1, 2, 7, 7)
        w, jw = make(3, 2, 3, 2)
        out = []
        for o in range(3):
            for i in range(7):
                for j in range(8):
                    s = F(0)
                    for c in range(2):
                        for u in range(3):
                            for v in range(2):
                                y, x = i + u - 1, j + v - 1
                                if 0 <= y < 7 and 0 <= x < 7:
                                    s += a[(c * 7 + y) * 7 + x] * w[((o * 2 + c) * 3 + u) * 2 + v]
                    out.append(s)
        return {"input": ja, "weight": jw, "padding": 1}, out
    if op in ("adaptive_avg_pool2d", "max_pool2d"):
        a, ja = make(3, 9, 8)
        out = []
        for c in range(3):
            plane = [a[(c * 9 + y) * 8 : (c * 9 + y) * 8 + 8] for y in range(9)]
            if op == "max_pool2d":
                out += [max(plane[y + u][x + v] for u in range(2) for v in range(3)) for y in range(8) for x in range(6)]
                continue
            for i in range(6):
                for j in range(7):
                    window = [
                        plane[y][x]
                        for y in range(i * 9 // 6, -(-(i + 1) * 9 // 6))
                        for x in range(j * 8 // 7, -(-(j + 1) * 8 // 7))
                    ]
                    out.append(sum(window) / len(window))
        extra = {"output_size": [6, 7]} if op == "adaptive_avg_pool2d" else {"kernel_size": [2, 3], "stride": 1}
        return {"input": ja, **extra}, out
    eps = rng.choice([1e-5, 1.0, 0.25])
    if op == "layer_norm":
        rows, n = 8, 14
        a, ja = make(rows, n)
        w, jw = make(n)
        b, jb = make(n)
        out = []
        for r in range(rows):
            row = a[r * n : r * n + n]
            mean, var = stats(row)
            out += [norm(x, mean, var, eps, w[i], b[i]) for i, x in enumerate(row)]
        return {"input": ja, "normalized_shape": [n], "weight": jw, "bias": jb, "eps": eps}, out
    n, c, inner = 4, 3, 10
    a, ja = make(n, c, inner)
    w, jw = make(c)
    b, jb = make(c)
    mean, jm = make(c)
    var = [abs(x) for x in tensor(dtype, (c,), profile, rng)]
    training = rng.random() < 0.5
    args = {"input": ja, "running_mean": jm, "running_var": inline(dtype, [c], var), "weight": jw, "bias": jb}
    out = [F(0)] * len(a)
    for ch in range(c):
        at = [(i * c + ch) * inner + j for i in range(n) for j in range(inner)]
        m, v = stats([a[i] for i in at]) if training else (mean[ch], var[ch])
        for i in at:
            out[i] = norm(a[i], m, v, eps, w[ch], b[ch])
    return {**args, "training": training, "eps": eps}, out


def main():
    only = sys.argv[4] if len(sys.argv) > 4 else None
    binary, wanted = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    seed = sys.argv[3] if len(sys.argv) > 3 else "1"
    mpmath.mp.prec = PREC
    ops = "flatten mul div softmax adaptive_avg_pool2d matmul max_pool2d batch_norm dropout relu conv2d gelu linear layer_norm add"
    bad = 0
    print(f"{'op':<22}{'dtype':<10}{'elements':>9}{'wrong':>7}{'missed':>7}{'undecided':>10}")
    for op in ops.split():
        if only not in (None, op):
            continue
        for dtype in FORMATS:
            rng = random.Random(f"{seed} {op} {dtype}")
            nodes, truths = [], []
            while sum(map(len, truths)) < wanted:
                args, out = node(op, dtype, rng)
                nodes.append({"id": f"n{len(nodes)}", "op": op, "args": args})
                truths.append(out)
            case = {"format": "ulpian-case/1", "name": "c", "source": "random", "nodes": nodes, "outputs": ["n0"]}
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "c.json"
                path.write_text(json.dumps(case))
                run = subprocess.run([binary, "truth", path, "--out", folder, "--json"], capture_output=True, text=True)
                if run.returncode not in (0, 4):
                    sys.exit(run.stderr)
                lines = [json.loads(line) for line in run.stdout.splitlines()]
                undecided = sum(line.get("undecided", 0) for line in lines)
                for line in lines:
                    if line.get("undecided", 0):
                        print(f"  undecided in {nodes[int(line['node'][1:])]}")
                results = load_file(Path(folder) / "c.safetensors")
            wrong = missed = 0
            for i, out in enumerate(truths):
                value = results[f"n{i}.value"].double().flatten().tolist()
                center = results[f"n{i}.center"].flatten().tolist()
                radius = results[f"n{i}.radius"].flatten().tolist()
                for x, v, c, r in zip(out, value, center, radius):
                    want = round_to(x, dtype)
                    if v != want or (x != 0 and math.copysign(1, v) != math.copysign(1, want)):
                        wrong += 1
                        if wrong == 1:
                            print(f"  node {nodes[i]}: want {want!r}, got {v!r}")
                    if r != math.inf and abs(x - F(c)) > F(r):
                        missed += 1
                        if missed == 1:
                            print(f"  node {nodes[i]}: {float(want)!r} not within {r!r} of {c!r}")
            bad += wrong + missed + undecided
            print(f"{op:<22}{dtype:<10}{sum(map(len, truths)):>9}{wrong:>7}{missed:>7}{undecided:>10}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
