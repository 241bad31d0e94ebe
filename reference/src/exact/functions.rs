//! exp, ln 2, pi, and both forms of gelu, as balls of any precision.
//!
//! Method: integer arithmetic in fixed point (an integer F stands for F 2^-w), with a count of the units that truncation
//! can lose, stated at each function. Nothing comes from a library but integer arithmetic and the integer square root.
//!
//! Sources: Machin-like formulas for pi (Machin 1706) and ln 2 (18, -2, 8 at 26, 4801, 8749); the all-positive series of
//! the error function, DLMF 7.6.2; its asymptotic expansion, whose remainder is smaller than the first term left out and
//! has its sign, DLMF 7.12.1 and 7.12(ii) for real arguments.

use std::sync::RwLock;

use dashu_base::{BitTest, Sign, Signed};
use dashu_int::IBig;

use super::ball::{Ball, Mag};
use super::ratio::Ratio;

/// exp is not computed for |x| >= 2^40: the result's exponent itself would need more than 40 bits.
const LARGEST_LOG2: i64 = 40;

/// The most precise value of a constant computed so far, with its number of fraction bits.
type Cache = RwLock<Option<(usize, IBig)>>;

/// F with |F 2^-w - constant| <= 2^(1-w). `compute` meets this with 2^-w2 for its own number w2 of bits.
fn cached(cache: &Cache, w: usize, compute: fn(usize) -> IBig) -> IBig {
    let held = cache.read().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some((bits, value)) = &*held
        && *bits >= w
    {
        return value >> (bits - w);
    }
    drop(held);
    let bits = w.next_multiple_of(256);
    let value = compute(bits);
    let result = &value >> (bits - w);
    *cache.write().unwrap_or_else(std::sync::PoisonError::into_inner) = Some((bits, value));
    result
}

/// 2^w (1/n + s / (3 n^3) + s^2 / (5 n^5) + …), s = ±1: atanh(1/n) or atan(1/n). Two divisions round down in each term and
/// the error of the power is below 1 unit plus its share of the previous one's, so each term is off by less than 2.5 units,
/// and the rest of the series, once a power is 0, by less than 2: in all less than 2.5 (w / (2 log2 n) + 1) + 2 units.
fn inverse_tangent(n: u32, alternating: bool, w: usize) -> IBig {
    let square = IBig::from(u64::from(n) * u64::from(n));
    let mut power = (IBig::ONE << w) / IBig::from(n);
    let mut sum = IBig::ZERO;
    let mut k = 1u64;
    while !power.is_zero() {
        let term = &power / IBig::from(k);
        if alternating && k % 4 == 3 {
            sum -= term
        } else {
            sum += term
        }
        power /= &square;
        k += 2;
    }
    sum
}

/// Guard bits of the constants: errors of at most 28 (2.5 (w/4.6 + 1) + 2) < 2^24 units for w < 2^19.
const CONSTANT_GUARD: usize = 32;

/// ln 2 = 18 atanh(1/26) - 2 atanh(1/4801) + 8 atanh(1/8749), within 2^(1-w).
fn ln2(w: usize) -> IBig {
    static CACHE: Cache = RwLock::new(None);
    cached(&CACHE, w, |w| {
        let v = w + CONSTANT_GUARD;
        let sum = inverse_tangent(26, false, v) * IBig::from(18)
            - inverse_tangent(4801, false, v) * IBig::from(2)
            + inverse_tangent(8749, false, v) * IBig::from(8);
        sum >> CONSTANT_GUARD
    })
}

/// pi = 16 atan(1/5) - 4 atan(1/239), relative radius below 2^-prec.
pub(super) fn pi(prec: usize) -> Ball {
    static CACHE: Cache = RwLock::new(None);
    let w = prec + 2;
    let value = cached(&CACHE, w, |w| {
        let v = w + CONSTANT_GUARD;
        let sum =
            inverse_tangent(5, true, v) * IBig::from(16) - inverse_tangent(239, true, v) * IBig::from(4);
        sum >> CONSTANT_GUARD
    });
    Ball::new(value, -(w as i64), Mag::pow2(1 - w as i64))
}

/// exp of a dyadic number m 2^e, relative radius below 2^-prec; `None` where |x| >= 2^40 and x > 0.
///
/// x = k ln 2 + r, 0 <= r < ln 2 (up to its error); u = r 2^-s; exp(u) by its series; s squarings. In units of 2^-w:
/// the series' terms T_(n+1) = T_n u / (n+1), cut twice, are off by at most 2 units each, what follows a zero term by 2
/// in all, and u, off by at most 2, adds 4: E_0 <= 2 N + 6. A squaring takes E to 2 v E + 2, v the value; the product
/// of the factors 2 v over all squarings is at most 2^s e^0.7 < 2^(s+1), so E_s <= 2^(s+1) (E_0 + 2). As N <= w < 2^17, E_s <
/// 2^(s+20), and with w = prec + s + 24 the radius is 2^(-prec-4) relative to a value of at least 1 (before 2^k).
fn exp_dyadic(m: &IBig, e: i64, prec: usize) -> Option<Ball> {
    if m.is_zero() {
        return Some(Ball::new(IBig::ONE, 0, Mag::ZERO));
    }
    if e + m.bit_len() as i64 > LARGEST_LOG2 {
        return m.is_negative().then(|| Ball::tiny(Sign::Positive, -(1 << (LARGEST_LOG2 - 1))));
    }
    let s = prec.isqrt();
    let w = prec + s + 24;
    // x and ln 2 with 64 more bits, so that k times the latter's error stays below 2^42 of these units.
    let wide = w + 64;
    let x = shifted(m, e + wide as i64);
    let ln2 = ln2(wide);
    let k = floor_div(&x, &ln2);
    let r = (x - &k * ln2) >> 64;
    let u = r >> s;
    let mut term = IBig::ONE << w;
    let mut sum = term.clone();
    let mut n = 1u32;
    loop {
        term = ((term * &u) >> w) / IBig::from(n);
        if term.is_zero() {
            break;
        }
        sum += &term;
        n += 1;
    }
    for _ in 0..s {
        sum = (&sum * &sum) >> w;
    }
    let exp = i64::try_from(&k).expect("|k| < 2^41") - w as i64;
    Some(Ball::new(sum, exp, Mag::pow2((s + 20) as i64 + exp)))
}

/// m 2^e rounded toward minus infinity or zero to an integer: off by less than 1.
fn shifted(m: &IBig, e: i64) -> IBig {
    if e >= 0 {
        m << e as usize
    } else if e < -(m.bit_len() as i64) - 1 {
        IBig::ZERO
    } else {
        m >> (-e) as usize
    }
}

fn floor_div(a: &IBig, b: &IBig) -> IBig {
    let q = a / b;
    if a.is_negative() && &q * b != *a { q - IBig::ONE } else { q }
}

/// exp of a ball: |exp(x) - exp(mid)| <= exp(mid) (e^rad - 1) <= exp(mid) 2 rad for rad <= 1/2. A wider ball that is not
/// positive gives a number between 0 and 1; any other wide ball, and numbers of 2^40 and more, `None`.
pub(super) fn exp(x: &Ball, prec: usize) -> Option<Ball> {
    if x.rad.is_zero() || x.rad.top() < 0 {
        let mut y = exp_dyadic(&x.mid, x.exp, prec)?;
        y.rad = y.rad.add(y.magnitude().mul(x.rad).mul(Mag::pow2(1)));
        return Some(y.rounded(prec));
    }
    let not_positive = x.sign() == Some(Sign::Negative);
    // (0, 1): tiny with the exponent 0.
    not_positive.then(|| Ball::tiny(Sign::Positive, 0))
}

/// x Phi(x). See [`gelu_dyadic`]; where mid = 0, |x Phi(x)| <= |x| and the sign is that of x; elsewhere the radius of x adds
/// - 5/4 rad where mid > -2, since |d/dx x Phi(x)| <= 1.129 everywhere;
/// - 12 (|mid| + 1) |g| rad where mid <= -2 and (|mid| + 1) rad <= 1: with phi the density and xi within rad of mid,
///   |g'(xi)| <= Phi + |xi| phi <= 2 |xi| phi(xi) (Mills: Phi(xi) <= phi(xi) / |xi|), phi(xi) <= e^1.5 phi(mid), and
///   |g(mid)| >= phi(mid) mid^2 / (1 + mid^2) >= 0.8 phi(mid).
pub(super) fn gelu(x: &Ball, prec: usize) -> Option<Ball> {
    if x.mid.is_zero() {
        return Some(x.clone());
    }
    let two = IBig::from(2);
    let left = x.mid.is_negative() && Ratio::dyadic(x.mid.clone(), x.exp)? <= Ratio::dyadic(-two, 0)?;
    let mut y = gelu_dyadic(&x.mid, x.exp, prec)?;
    if x.rad.is_zero() {
        return Some(y);
    }
    if left {
        let spread = Mag::of(&x.mid, x.exp).add(Mag::pow2(0)).mul(x.rad);
        if spread.top() > 0 {
            return None;
        }
        y.rad = y.rad.add(spread.mul(y.magnitude()).mul(Mag::new(12, 0)));
    } else {
        y.rad = y.rad.add(x.rad.mul(Mag::new(5, -2)));
    }
    y.side = None;
    Some(y)
}

/// x Phi(x) at a dyadic number other than zero; `None` only for a zero.
///
/// With h = x^2 / 2, phi(x) = e^-h / sqrt(2 pi):
/// - x^2 large enough that e^-h < 2^-(prec+20): x Phi(x) = -phi(x) S for x < 0 and x - phi(x) S for x > 0, where
///   S = sum (-1)^n (2n-1)!! / x^(2n), its error below the first term left out;
/// - otherwise x Phi(x) = x / 2 + x^2 phi(x) S, S = sum x^(2n) / (2n+1)!!, all terms positive. For x < 0 the two parts cancel
///   to about e^-h; h / ln 2 more bits make up for it.
fn gelu_dyadic(m: &IBig, e: i64, prec: usize) -> Option<Ball> {
    if m.is_zero() {
        return None;
    }
    let x = Ball::new(m.clone(), e, Mag::ZERO);
    let square = m * m;
    let square_exp = 2 * e;
    // h / ln 2 = 0.7213 x^2 bits, from above; an exact exponent suffices beyond 2^30.
    let tail_bits = if square_exp + square.bit_len() as i64 > 30 {
        usize::MAX
    } else {
        let upper = Mag::of(&square, square_exp).to_f64();
        (upper * 0.722) as usize + 1
    };
    if tail_bits > prec + 24 {
        let inner = prec + 16;
        let tail =
            density(&square, square_exp, inner)?.mul(&asymptotic(&square, square_exp, inner), inner).neg();
        return Some(if m.is_negative() { tail } else { x.add(&tail, prec.max(m.bit_len())) });
    }
    let inner = prec + tail_bits + 24;
    let square_ball = Ball::new(square.clone(), square_exp, Mag::ZERO);
    let grown = square_ball
        .mul(&density(&square, square_exp, inner)?, inner)
        .mul(&series(&square, square_exp, inner), inner);
    Some(Ball::new(m.clone(), e - 1, Mag::ZERO).add(&grown, inner).rounded_unless_exact(prec))
}

/// e^(-x^2/2) / sqrt(2 pi) from x^2 = square 2^e.
fn density(square: &IBig, e: i64, prec: usize) -> Option<Ball> {
    let mut two_pi = pi(prec + 8);
    two_pi.exp += 1;
    two_pi.rad = two_pi.rad.mul(Mag::pow2(1));
    let root = two_pi.sqrt(prec + 8)?;
    exp(&Ball::new(-square.clone(), e - 1, Mag::ZERO), prec + 8)?.div(&root, prec)
}

/// sum_n t_n, t_0 = 1, t_(n+1) = t_n x^2 / (2n+3).
///
/// Each step is cut twice, by less than 2 units: the error of t_n is at most 2 sum_j t_n / t_j over j <= n. The terms rise
/// and then fall from t_0 = 1, so t_j >= min(1, t_n) and that is at most 2 (n+1) max(1, t_n). Summed: 4 (N+1)^2 S units, as S >=
/// one. After the first term that is cut to zero with 2n + 3 > 2 x^2, the rest is below twice that term's error and one unit:
/// four times N+2. In all below 8 (N+2)^2 S units; N < 2^20, and 48 guard bits leave 2^-5 of the last place.
fn series(square: &IBig, e: i64, prec: usize) -> Ball {
    let w = prec + 48;
    let mut term = IBig::ONE << w;
    let mut sum = term.clone();
    let mut n = 0u64;
    let past_the_peak = (Mag::of(square, e).to_f64() * 2.0) as u64 + 1;
    loop {
        term = shifted(&(&term * square), e) / IBig::from(2 * n + 3);
        n += 1;
        if term.is_zero() && 2 * n + 3 > past_the_peak {
            break;
        }
        sum += &term;
    }
    let units = 8 * u128::from(n + 2).pow(2);
    let exp = -(w as i64);
    let rad = Mag::of(&sum, exp).mul(Mag::new(units, exp));
    Ball::new(sum, exp, rad).rounded(prec)
}

/// sum_n (-1)^n (2n-1)!! / x^(2n) while the terms fall, where x^2 >= 1.38 (prec + 8).
///
/// The error of a term is at most that of the one before it and 2 units, so 2 n for the n-th and N^2 in the sum; the first
/// term left out bounds the rest. The terms fall until 2n+1 > x^2, where they are about e^(-x^2/2) < 2^-prec: the first one
/// cut to zero comes before, its true size is at most 2 N + 1 units.
fn asymptotic(square: &IBig, e: i64, prec: usize) -> Ball {
    let w = prec + 48;
    let exp = -(w as i64);
    let mut term = IBig::ONE << w;
    let mut sum = term.clone();
    let mut n = 0u64;
    let limit = Mag::of(square, e).to_f64();
    loop {
        let numerator = &term * IBig::from(2 * n + 1);
        // Divide by square 2^e.
        let next =
            if e >= 0 { shifted(&numerator, -e) / square } else { (numerator << (-e) as usize) / square };
        n += 1;
        if next.is_zero() || 2.0 * n as f64 > limit {
            let units = u128::from(n + 1).pow(2) + 2 * u128::from(n) + 1;
            let rest = Mag::of(&next, exp).add(Mag::new(units, exp));
            return Ball::new(sum, exp, rest).rounded(prec);
        }
        if n % 2 == 1 {
            sum -= &next
        } else {
            sum += &next
        }
        term = next;
    }
}

/// 0.5 x (1 + tanh t), t = sqrt(2/pi) (x + 0.044715 x^3), as x / (1 + e^-2t) for t < 0 and x - x / (1 + e^2t) for t >= 0:
/// neither cancels. sqrt(2/pi) is the real number and 0.044715 the decimal fraction. Where mid = 0, the value lies between x
/// and 0.
pub(super) fn gelu_tanh(x: &Ball, prec: usize) -> Option<Ball> {
    if x.mid.is_zero() {
        return Some(x.clone());
    }
    let inner = prec + 16;
    let coefficient = Ratio::from_int(44715)?.div(&Ratio::from_int(1_000_000)?).ok()?;
    let exact_square = x.mul(x, 2 * x.mid.bit_len() + 2);
    let cube = exact_square.mul(x, inner + 64).mul(&Ball::from_ratio(&coefficient, inner + 64), inner + 64);
    let sum = x.add(&cube, inner + 64);
    let mut two_over_pi = Ball::new(IBig::from(2), 0, Mag::ZERO).div(&pi(inner + 72), inner + 72)?;
    two_over_pi = two_over_pi.sqrt(inner + 64)?;
    let t = sum.mul(&two_over_pi, inner + 64);
    // -2 |t|.
    let negative = t.mid.is_negative();
    let two = Ball::new(IBig::from(if negative { 2 } else { -2 }), 0, Mag::ZERO);
    let e = exp(&t.mul(&two, inner + 64), inner)?;
    let one = Ball::new(IBig::ONE, 0, Mag::ZERO);
    let share = x.mul(&e.div(&one.add(&e, inner), inner)?, inner);
    Some(if negative {
        share
    } else {
        x.add(&share.neg(), inner.max(x.mid.bit_len())).rounded_unless_exact(prec)
    })
}

impl Ball {
    /// The midpoint cut to `prec` bits, unless the ball has a side, which cutting would lose.
    fn rounded_unless_exact(self, prec: usize) -> Ball {
        if self.side.is_some() { self } else { self.rounded(prec) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dashu_base::UnsignedAbs;

    /// Balls of two precisions must overlap, and the relative radius must keep its promise.
    fn check(low: &Ball, high: &Ball, prec: usize) {
        let difference = low.add(&high.clone().neg(), prec + 400);
        assert!(difference.sign().is_none() || low.side.is_some(), "{low:?} {high:?}");
        if !low.mid.is_zero() {
            let size = low.exp + low.mid.clone().unsigned_abs().bit_len() as i64;
            assert!(low.rad.top() <= size - prec as i64 + 4, "radius of {low:?}");
        }
    }

    #[test]
    fn precisions_agree() {
        for prec in [64usize, 128, 300, 1000] {
            check(&pi(prec), &pi(2 * prec), prec);
            for (m, e) in
                [(1, 0), (-1, 0), (12_345_677, -20), (-987_654_321, -10), (3, -400), (-7, 30), (1, 9)]
            {
                let m = IBig::from(m);
                let x = Ball::new(m.clone(), e, Mag::ZERO);
                check(
                    &exp(&x, prec).expect("within range"),
                    &exp(&x, 2 * prec + 100).expect("within range"),
                    prec,
                );
                check(&gelu(&x, prec).expect("not zero"), &gelu(&x, 2 * prec + 100).expect("not zero"), prec);
                check(
                    &gelu_tanh(&x, prec).expect("not zero"),
                    &gelu_tanh(&x, 2 * prec + 100).expect("not zero"),
                    prec,
                );
            }
        }
    }

    #[test]
    fn known_digits() {
        // exp(1), pi, gelu(-1), gelu(1) to 30 digits (Abramowitz and Stegun 1.1; Phi(1) = 0.841344746068542948585232545632).
        for (ball, digits) in [
            (pi(128), "3141592653589793238462643383279"),
            (
                exp(&Ball::new(IBig::ONE, 0, Mag::ZERO), 128).expect("small"),
                "2718281828459045235360287471352",
            ),
            (
                gelu(&Ball::new(IBig::ONE, 0, Mag::ZERO), 128).expect("not zero"),
                "841344746068542948585232545632",
            ),
            (
                gelu(&Ball::new(IBig::NEG_ONE, 0, Mag::ZERO), 128).expect("not zero"),
                "-158655253931457051414767454368",
            ),
        ] {
            let want: IBig = digits.parse().expect("digits");
            let ten = IBig::from(10).pow(30);
            let got = shifted(&(&ball.mid * ten), ball.exp);
            assert!((&got - &want).unsigned_abs() <= dashu_int::UBig::from(1u8), "{got} {want}");
        }
    }
}
