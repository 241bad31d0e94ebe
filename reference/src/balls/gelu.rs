//! gelu: x Phi(x), or x / (1 + exp(-2 z)) with z = sqrt(2 / pi) (x + 0.044715 x^3), which is 0.5 x (1 + tanh z).
//!
//! Formula: for x < 0, x Q(-x); otherwise x (1 - Q(x)), Q the normal upper tail ([`super::normal`]); neither cancels.
//! Radii, by the mean value theorem: |gelu'(x)| = |Phi(x) + x phi(x)| <= 1.25 anywhere, and at most Q(t) + t phi(t) <=
//! phi(t) (t + 1.2534) for x = -t < 0, where phi grows by at most exp(t r) within the ball. The tanh form has
//! y' = s + 2 x z' s (1 - s), s = 1 / (1 + exp(-2 z)), and s (1 - s) grow by at most exp(2 z' r) each.
//! Wide balls: max(x, 0) - H(|x|) in float64 ([`crate::fast::gelu`]) of the high part alone, whose |x|^2 is rounded: u |x|^2 more than
//! there, or 2 u s. The derivative's bound is that above, with phi(t) <= min(0.4, Q(t) (t + 1 / t)) and Q = H / t (Mills), or that of the
//! tanh form with s (1 - s) <= H / t; a radius takes the low part in.
//! Special values: unknown beyond the ranges below. For x >= 36, x - x 2^-900 <= gelu(x) <= x.

use ulpian_spec::ops::GeluApproximate;
use ulpian_spec::ops::gelu::Gelu;

use super::Width;
use super::ball::{Ball, UP};
use super::constants::{FRACTION_BITS, pi, sqrt, to_dd};
use super::exp::{self, ExpTable, exp_ball};
use super::normal::{self, LIMIT, NormalTable, upper_tail};
use super::tensor::Balls;
use crate::dd::Dd;
use crate::fast::gelu::{Erf, Tail, Tanh};
use crate::round::exp2i;

pub(super) fn evaluate(args: &Gelu<&Balls>, width: Width) -> Balls {
    let x = args.input;
    let exp = &*exp::TABLE;
    match args.approximate {
        GeluApproximate::None => {
            let normal = &*normal::TABLE;
            Balls::generate(
                x.shape(),
                #[inline(always)]
                |i| {
                    let x = x.get(i);
                    let quick = if width == Width::Wide { wide::<Erf>(x) } else { None };
                    quick.unwrap_or_else(|| gelu(normal, exp, x))
                },
            )
        }
        GeluApproximate::Tanh => {
            let constants = TanhConstants::new();
            Balls::generate(
                x.shape(),
                #[inline(always)]
                |i| {
                    let x = x.get(i);
                    let quick = if width == Width::Wide { wide::<Tanh>(x) } else { None };
                    quick.unwrap_or_else(|| gelu_tanh(&constants, exp, x))
                },
            )
        }
    }
}

/// One of the two forms.
trait Form: Tail {
    /// At least what is to be added to the relative error of H(a).
    fn more(a: f64) -> f64;

    /// At least |y'| within `spread` of x, where H(|x|) is at most `h`; `None` where the ball is too wide for that.
    fn slope(x: f64, h: f64, spread: f64) -> Option<f64>;
}

impl Form for Erf {
    #[inline(always)]
    fn more(a: f64) -> f64 {
        a * a * (f64::EPSILON / 2.0)
    }

    #[inline(always)]
    fn slope(x: f64, h: f64, spread: f64) -> Option<f64> {
        let t = x.abs();
        let density = (h * (1.0 + 1.0 / (t * t))).min(0.4);
        let below = density * 1.01 * (t + spread + 1.26);
        (spread * (1.0 + t) <= 1.0 / 1024.0).then_some(if x < 0.0 { below } else { 1.25 })
    }
}

impl Form for Tanh {
    #[inline(always)]
    fn more(a: f64) -> f64 {
        a * (1.0 + a * a) * f64::EPSILON
    }

    #[inline(always)]
    fn slope(x: f64, h: f64, spread: f64) -> Option<f64> {
        let reach = x.abs() + spread;
        let slope = 1.5958 * (1.0 + 0.134146 * reach * reach);
        let tail = h / x.abs();
        let (sigmoid, complement) = if x < 0.0 { (tail, 1.0) } else { (1.0, tail) };
        let derivative = 1.01 * sigmoid * (1.0 + 1.01 * reach * slope * complement);
        (spread * slope <= 1.0 / 1024.0).then_some(derivative)
    }
}

/// In float64, where |x| is neither tiny nor cut.
#[inline(always)]
fn wide<F: Form>(x: Ball) -> Option<Ball> {
    let (high, size) = (x.center.hi, x.center.hi.abs());
    if !(size >= TINIEST && size <= F::TOP) {
        return None;
    }
    let (h, relative) = F::tail(size);
    let most = h * 1.001;
    let spread = (x.center.lo.abs() + x.radius) * UP;
    let slope = F::slope(high, most, spread)?;
    let positive = high.max(0.0);
    let own = most * (relative + F::more(size)) + positive * (f64::EPSILON / 2.0);
    Some(Ball { center: Dd::new(positive - h), radius: (own + slope * spread) * UP }.checked())
}

/// Squares of numbers from here on are normal.
const TINIEST: f64 = f64::from_bits((1023 - 500) << 52);

#[inline(always)]
fn gelu(normal: &NormalTable, exp: &ExpTable, x: Ball) -> Ball {
    if x.is_zero() {
        return x;
    }
    let size = x.center.hi.abs();
    if size >= LIMIT {
        return far(x);
    }
    // Of the centre alone; the radius goes through the derivative.
    let t = Ball { center: x.center.abs(), radius: 0.0 };
    if x.radius * (1.0 + size) > 1.0 / 1024.0 {
        return Ball::UNKNOWN;
    }
    let (tail, density) = upper_tail(normal, exp, t);
    let centre = Ball { center: x.center, radius: 0.0 };
    if x.center.hi < 0.0 {
        let slope = density.magnitude() * 1.01 * (size + x.radius + 1.26);
        centre.mul(tail).widened(slope * x.radius)
    } else {
        centre.mul(Ball::exact(1.0).sub(tail)).widened(1.25 * x.radius)
    }
}

/// |x| >= 36: x, or a number between -2^-900 and 0.
fn far(x: Ball) -> Ball {
    if !(x.is_known() && x.radius <= 1.0 / 1024.0 / x.center.hi.abs()) {
        Ball::UNKNOWN
    } else if x.center.hi > 0.0 {
        x.widened(x.radius * 0.25 + x.center.hi * exp2i(-900))
    } else {
        Ball { center: Dd::new(-exp2i(-901)), radius: exp2i(-901) }
    }
}

struct TanhConstants {
    /// 2 sqrt(2 / pi).
    twice_root: Ball,
    /// 0.044715.
    cubic: Ball,
}

impl TanhConstants {
    fn new() -> TanhConstants {
        let one = dashu_int::IBig::ONE << FRACTION_BITS;
        let ball = |center: Dd| Ball { center, radius: center.hi * f64::EPSILON * f64::EPSILON };
        let two_over_pi = (&one << (FRACTION_BITS + 1)) / pi();
        let cubic = (&one * dashu_int::IBig::from(44715)) / dashu_int::IBig::from(1_000_000);
        TanhConstants {
            twice_root: ball(to_dd(&(sqrt(&two_over_pi) << 1), FRACTION_BITS)),
            cubic: ball(to_dd(&cubic, FRACTION_BITS)),
        }
    }
}

#[inline(always)]
fn gelu_tanh(constants: &TanhConstants, exp: &ExpTable, x: Ball) -> Ball {
    if x.is_zero() {
        return x;
    }
    let size = x.center.hi.abs();
    let centre = Ball { center: x.center, radius: 0.0 };
    let z2 = constants.twice_root.mul(centre).mul(Ball::exact(1.0).add(constants.cubic.mul(centre.square())));
    // (2 z)' = 2 sqrt(2/pi) (1 + 3 * 0.044715 x^2), at the end of the ball that is farther from 0.
    let reach = size + x.radius;
    let slope = 1.5958 * (1.0 + 0.134146 * reach * reach);
    if x.radius * slope > 1.0 / 1024.0 || !x.is_known() {
        return Ball::UNKNOWN;
    }
    if z2.center.hi.abs() >= 640.0 {
        return far(x);
    }
    let one = Ball::exact(1.0);
    let power = exp_ball(exp, z2.neg());
    let denominator = one.add(power);
    let sigmoid = one.div(denominator).magnitude();
    let complement = power.div(denominator).magnitude();
    let derivative = 1.01 * sigmoid * (1.0 + 1.01 * reach * slope * complement);
    centre.div(denominator).widened(derivative * UP * x.radius)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Argument, high and low part of the result: mpmath 1.3 at 400 bits, x erfc(-x / sqrt 2) / 2.
    const ERF_ROWS: [(u64, u64, u64); 14] = [
        (0x39b4484bfeebc2a0, 0x39a4484bfeebc2a0, 0x336483b0d34ae888),
        (0xbf50624dd2f1a9fc, 0xbf405ef51a247ab0, 0x3bdd960074f7f919),
        (0x3fb999999999999a, 0x3faba3a1a550a71c, 0xbc4b77f12abe4276),
        (0xbfe6666666666666, 0xbfc5ae10c2977229, 0xbc469d238aefdbae),
        (0xbff0000000000000, 0xbfc44ed0bb7cb20b, 0xbc56d0374584348c),
        (0xc004000000000000, 0xbf8fcb21edddc41d, 0xbc2bea4540674160),
        (0x400a000000000000, 0x4009fc28c94829b5, 0x3cabad1fbf24466a),
        (0xc016000000000000, 0xbe7c093d8972fbbe, 0xbb10242c340d794a),
        (0xc020000000000000, 0xbcf669d2c90d55ce, 0xb9902bdbdb0e6ba9),
        (0xc02bcccccccccccd, 0xb723a273c7186dc1, 0xb3c7160af7e0c7d7),
        (0xc0344ccccccccccd, 0xad4544d5752715d9, 0x29e71684da704c29),
        (0xc041f33333333333, 0x85bfd9afe3d51859, 0x025108171143dded),
        (0x4018000000000000, 0x4017ffffff9a4da6, 0x3cb7f23c13a2d100),
        (0x4041800000000000, 0x4041800000000000, 0x0000000000000000),
    ];

    /// Argument, high and low part of the result: mpmath 1.3 at 400 bits, x / (1 + exp(-2 sqrt(2/pi) (x + 0.044715 x^3))).
    const TANH_ROWS: [(u64, u64, u64); 12] = [
        (0x39b4484bfeebc2a0, 0x39a4484bfeebc2a0, 0x336483b0d34ae888),
        (0xbf50624dd2f1a9fc, 0xbf405ef51a24868b, 0xbbd36fa16166451d),
        (0x3fb999999999999a, 0x3faba3a08c939602, 0x3c47d3b71e4703e7),
        (0xbfe6666666666666, 0xbfc5afe0b9341f6c, 0xbc5b96b45a292365),
        (0xbff0000000000000, 0xbfc453d22357147a, 0xbc47821909998678),
        (0xc004000000000000, 0xbf8ee47fec535d83, 0x3c0087f6b05c4ba2),
        (0x400a000000000000, 0x4009fcc9966db5a4, 0x3c6bf3b70445bac4),
        (0xc016000000000000, 0xbe39758267bcd0bb, 0x3ade040c5779084c),
        (0xc020000000000000, 0xbbad5a2877434651, 0xb8204823492e2afd),
        (0xc02bcccccccccccd, 0xace41cb909d4a33d, 0xa98cd1298d04ac6e),
        (0x4018000000000000, 0x4017fffffffe8cd2, 0x3c7a4629663ceb1e),
        (0x402e000000000000, 0x402e000000000000, 0xa84eb42000000000),
    ];

    fn check(rows: &[(u64, u64, u64)], f: impl Fn(Ball) -> Ball) {
        for &(x, hi, lo) in rows {
            let (x, want) = (f64::from_bits(x), Dd { hi: f64::from_bits(hi), lo: f64::from_bits(lo) });
            let got = f(Ball::exact(x));
            let error = got.center.sub(want).hi.abs();
            assert!(error <= got.radius, "{x:e}: {error:e} {got:?}");
            assert!(got.radius <= want.hi.abs() * exp2i(-93), "{x:e}: {got:?}");
            // With a radius: both ends' values lie within, and it is near the derivative's, or y / x where that vanishes.
            let r = x.abs() * exp2i(-40);
            let wide = f(Ball { center: Dd::new(x), radius: r });
            let (below, above) = (f(Ball::exact(x - r)).center, f(Ball::exact(x + r)).center);
            for end in [below, above] {
                assert!(end.sub(wide.center).hi.abs() <= wide.radius, "{x:e}: {wide:?}");
            }
            let slope = above.sub(below).hi.abs() / (2.0 * r);
            assert!(wide.radius <= 4.0 * (slope + (want.hi / x).abs()) * r, "{x:e}: {wide:?} {slope:e}");
        }
    }

    #[test]
    fn gelu_by_the_normal_tail() {
        check(&ERF_ROWS, |x| gelu(&normal::TABLE, &exp::TABLE, x));
    }

    #[test]
    fn gelu_by_tanh() {
        let constants = TanhConstants::new();
        check(&TANH_ROWS, |x| gelu_tanh(&constants, &exp::TABLE, x));
    }

    #[test]
    fn far_out_it_is_nearly_x_or_nearly_zero() {
        for f in
            [|x| gelu(&normal::TABLE, &exp::TABLE, x), |x| gelu_tanh(&TanhConstants::new(), &exp::TABLE, x)]
        {
            let high = f(Ball::exact(1e30));
            assert!(high.center == Dd::new(1e30) && high.radius <= 1e30 * exp2i(-899));
            let low = f(Ball::exact(-1e30));
            assert!(low.center.hi + low.radius == 0.0 && low.radius <= exp2i(-900));
            assert!(f(Ball::exact(-0.0)).center.hi.is_sign_negative());
            assert!(!f(Ball::UNKNOWN).is_known());
        }
    }
}
