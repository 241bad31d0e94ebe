//! Constants and tables in double-double, computed once by integers in fixed point.
//!
//! Formula: ln 2 = sum of 1 / (k 2^k); pi = 16 atan(1/5) - 4 atan(1/239) (Machin); 2^x = exp(x ln 2) by Taylor's series.
//! Method: multiples of 2^-FRACTION_BITS; every step truncates, so a sum of n terms is off by at most 2 n 2^-256.
//! Bound: below 2^-240 in every function here, so that rounding to double-double (2^-107 relative) is the only error that
//! counts.

use dashu_int::IBig;
use ulpian_spec::DType;

use crate::dd::Dd;
use crate::round::{round_scaled, scaled_integer};

/// Fixed-point numbers here are multiples of 2^-256.
pub(super) const FRACTION_BITS: usize = 256;

/// The double-double nearest to `value` 2^-`bits`, within 2^-107 relative.
pub(super) fn to_dd(value: &IBig, bits: usize) -> Dd {
    let hi = to_f64(value, bits);
    let (m, e) = scaled_integer(hi);
    let shift = e + bits as i64;
    let exact = IBig::from(m);
    // Tables hold normal numbers of moderate size: hi's last place may lie below 2^-bits only where `value` is exact.
    let exact = if shift >= 0 { exact << shift as usize } else { exact >> (-shift) as usize };
    let rest: IBig = value - exact;
    Dd { hi, lo: to_f64(&rest, bits) }
}

/// The float64 nearest to `value` 2^-`bits`.
pub(super) fn to_f64(value: &IBig, bits: usize) -> f64 {
    let (sign, magnitude) = value.clone().into_parts();
    let format = DType::F64.float_format().expect("float64 is a float type");
    round_scaled(format, sign, &magnitude, -(bits as i64), false)
}

/// ln 2.
pub(super) fn ln_2() -> IBig {
    let one = IBig::ONE << FRACTION_BITS;
    (1..=FRACTION_BITS).map(|k| (&one >> k) / IBig::from(k)).sum()
}

/// exp(x), |x| <= 1.
pub(super) fn exp(x: &IBig) -> IBig {
    let mut term = IBig::ONE << FRACTION_BITS;
    let mut sum = term.clone();
    for k in 1..80u32 {
        term = ((term * x) >> FRACTION_BITS) / IBig::from(k);
        sum += &term;
    }
    sum
}

/// pi.
pub(super) fn pi() -> IBig {
    let atan_inverse = |n: i64| -> IBig {
        let mut power = (IBig::ONE << FRACTION_BITS) / IBig::from(n);
        let mut sum = power.clone();
        for k in 1..FRACTION_BITS as i64 {
            power = -power / IBig::from(n * n);
            sum += &power / IBig::from(2 * k + 1);
        }
        sum
    };
    atan_inverse(5) * IBig::from(16) - atan_inverse(239) * IBig::from(4)
}

/// sqrt(x), x >= 0.
pub(super) fn sqrt(x: &IBig) -> IBig {
    use dashu_base::SquareRoot;
    let (_, magnitude) = (x << FRACTION_BITS).into_parts();
    IBig::from(magnitude.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_those_of_std() {
        assert_eq!(to_dd(&ln_2(), FRACTION_BITS).hi, std::f64::consts::LN_2);
        assert_eq!(to_dd(&pi(), FRACTION_BITS).hi, std::f64::consts::PI);
        // pi's low part: 0x1.1a62633145c07p-53 (Muller et al., Handbook of Floating-Point Arithmetic, 11.1).
        assert_eq!(to_dd(&pi(), FRACTION_BITS).lo, f64::from_bits(0x3ca1_a626_3314_5c07));
        assert_eq!(to_dd(&exp(&(IBig::ONE << FRACTION_BITS)), FRACTION_BITS).hi, std::f64::consts::E);
        assert_eq!(
            to_dd(&sqrt(&(IBig::from(2) << FRACTION_BITS)), FRACTION_BITS).hi,
            std::f64::consts::SQRT_2
        );
    }
}
