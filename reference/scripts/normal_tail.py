"""Makes and proves the coefficients of reference/src/elementary/normal_tail.rs. Needs mpmath; prints Rust.

R(a) = exp(a^2 / 2) Q(a), Q(a) = erfc(a / sqrt 2) / 2, is approximated on [0, 15] by P(a) / D(a) of degrees 9 and 10 that
interpolate it at Chebyshev nodes of z = (a - 4) / (a + 4). The coefficients are then rounded to float64.

Proof of the bound, with the rounded coefficients: E = P - D R is expanded at the middle c of each of 3840 intervals of half
width h = 1/512. R' = a R - 1 / sqrt(2 pi) gives R^(n+1) = c R^(n) + n R^(n-1) - [n = 0] / sqrt(2 pi), so every Taylor
coefficient is known to the working precision (60 digits; the recurrence loses fewer than 20). |E(a)| <= sum |E_n| h^n over
n < 16, plus the remainder: R is completely monotone, so |R^(n)| is greatest at the left end, where the same recurrence
evaluates it. The relative error is at most |E| / min(D R).
"""
from mpmath import mp, mpf, binomial, cos, erfc, exp, factorial, log, lu_solve, matrix, pi, sqrt

mp.dps = 60
TOP = mpf(15)
NUMERATOR, DENOMINATOR = 9, 10


def ratio(a):
    return exp(a * a / 2) * erfc(a / sqrt(2)) / 2


def coefficients():
    c, count = mpf(4), NUMERATOR + DENOMINATOR + 1
    left, right = mpf(-1), (TOP - c) / (TOP + c)
    a, b = matrix(count, count), matrix(count, 1)
    for i in range(count):
        z = (left + right) / 2 + (right - left) / 2 * cos(pi * (2 * i + 1) / (2 * count))
        x = c * (1 + z) / (1 - z)
        r = ratio(x)
        for j in range(NUMERATOR + 1):
            a[i, j] = x**j
        for j in range(1, DENOMINATOR + 1):
            a[i, NUMERATOR + j] = -r * x**j
        b[i] = r
    x = lu_solve(a, b)
    p = [x[j] for j in range(NUMERATOR + 1)]
    return p, [mpf(1)] + [x[NUMERATOR + j] for j in range(1, DENOMINATOR + 1)]


def derivatives(a, order):
    """R and its derivatives at a, over n!."""
    r = [ratio(a)]
    r.append(a * r[0] - 1 / sqrt(2 * pi))
    for n in range(1, order):
        r.append(a * r[n] + n * r[n - 1])
    return [r[n] / factorial(n) for n in range(order + 1)]


def shifted(poly, c, order):
    """Coefficients of the polynomial in a - c."""
    return [
        sum(poly[j] * binomial(j, n) * c ** (j - n) for j in range(n, len(poly))) for n in range(order + 1)
    ]


def bound(p, d):
    h, order, worst = mpf(1) / 512, 16, mpf(0)
    for i in range(3840):
        c = (2 * i + 1) * h
        ps, ds, rs = shifted(p, c, order), shifted(d, c, order), derivatives(c, order)
        top = derivatives(c - h, order)
        error = mpf(0)
        for n in range(order):
            e = ps[n] - sum(ds[j] * rs[n - j] for j in range(n + 1))
            error += abs(e) * h**n
        # The remainder of D R from order 16 on: D's coefficients times R's Lagrange remainders.
        for j in range(min(len(d), order)):
            error += abs(ds[j]) * abs(top[order - j]) * h**order
        low = sum(x * (c - h) ** j for j, x in enumerate(d)) * ratio(c + h)
        worst = max(worst, error / low)
    return worst


P, D = ([mpf(float(x)) for x in poly] for poly in coefficients())
assert all(x > 0 for x in P + D)
print("// relative error of P / D with these coefficients: 2^%.2f" % float(log(bound(P, D), 2)))
for name, poly in (("NUMERATOR", P), ("DENOMINATOR", D)):
    print("const %s: [f64; %d] = [" % (name, len(poly)))
    import struct
    for x in poly:
        (bits,) = struct.unpack("<Q", struct.pack("<d", float(x)))
        print("    f64::from_bits(0x%04x_%04x_%04x_%04x), // %.17g" % (
            bits >> 48, bits >> 32 & 0xffff, bits >> 16 & 0xffff, bits & 0xffff, float(x)))
    print("];")
