//! Error-free transforms: the rounding error of one float64 operation is itself a float64, and these return both.
//!
//! - [`two_sum`]: s + e = a + b exactly, s = fl(a + b). Knuth, The Art of Computer Programming 2, 4.2.2, theorem B.
//! - [`fast_two_sum`]: the same where |a| >= |b| or a = 0. Dekker, Numer. Math. 18 (1971).
//! - [`two_prod`]: p + e = a b exactly, p = fl(a b). One fused multiply-add; Ogita, Rump, Oishi, SIAM J. Sci. Comput. 26
//!   (2005), algorithm 3.5.
//!
//! Validity: round to nearest. Sums hold through underflow (a float64 sum that is subnormal is exact) and fail only where
//! fl(a + b), or in `two_sum` an intermediate of it, overflows: |a|, |b| <= 2^1022 suffices. The product's error is a
//! float64 only where its last bit does not fall below 2^-1074: p = 0 with a or b zero, or |p| >= 2^-968, suffices
//! (e is a multiple of ulp(a) ulp(b) >= 2^-106 |p| * 2^0), and p must not overflow. Where an operand is not finite, `e` is
//! meaningless and mostly NaN.

/// s = fl(a + b) and e with s + e = a + b.
#[inline(always)]
pub fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    let bb = s - a;
    (s, (a - (s - bb)) + (b - bb))
}

/// As [`two_sum`], for |a| >= |b| or a = 0.
#[inline(always)]
pub fn fast_two_sum(a: f64, b: f64) -> (f64, f64) {
    let s = a + b;
    (s, b - (s - a))
}

/// p = fl(a b) and e with p + e = a b; |p| >= 2^-968 or a zero operand, and no overflow.
#[inline(always)]
pub fn two_prod(a: f64, b: f64) -> (f64, f64) {
    let p = a * b;
    (p, a.mul_add(b, -p))
}

#[cfg(test)]
mod tests {
    use dashu_int::IBig;

    use super::*;
    use crate::round::scaled_integer;

    /// The sum of products of float64 as an integer multiple of 2^-2148.
    fn exact(terms: &[(f64, f64)]) -> IBig {
        terms
            .iter()
            .map(|&(a, b)| {
                let ((ma, ea), (mb, eb)) = (scaled_integer(a), scaled_integer(b));
                (IBig::from(ma) * IBig::from(mb)) << (ea + eb + 2148) as usize
            })
            .fold(IBig::ZERO, |s, t| s + t)
    }

    #[test]
    fn transforms_lose_nothing() {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut next = move |span: i32| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let mantissa = 1.0 + (state >> 12) as f64 / (1u64 << 52) as f64;
            let sign = if state & 1 == 0 { 1.0 } else { -1.0 };
            sign * mantissa * f64::from((state >> 1) as i32 % span).exp2()
        };
        for _ in 0..20_000 {
            let (a, b) = (next(400), next(400));
            let (s, e) = two_sum(a, b);
            assert_eq!(exact(&[(a, 1.0), (b, 1.0)]), exact(&[(s, 1.0), (e, 1.0)]));
            let (big, small) = if a.abs() >= b.abs() { (a, b) } else { (b, a) };
            assert_eq!(fast_two_sum(big, small), two_sum(big, small));
            let (p, e) = two_prod(a, b);
            assert_eq!(exact(&[(a, b)]), exact(&[(p, 1.0), (e, 1.0)]));
        }
        // Subnormal sums are exact.
        let tiny = f64::from_bits(3);
        assert_eq!(two_sum(tiny, f64::from_bits(5)), (f64::from_bits(8), 0.0));
    }
}
