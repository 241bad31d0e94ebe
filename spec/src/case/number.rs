//! Number text to numbers, each rounded once, to nearest with ties to even, in the format it is meant for.
//!
//! Text is a decimal (`1`, `-0.0`, `2.5e-3`), a hexadecimal float (`0x1.8p+3`), or `nan`, `inf`, `-inf`.
//!
//! A decimal d is rounded to float16 and bfloat16 through x, the float64 nearest to d. Rounding is monotonic and every
//! midpoint of the narrow format is a float64, so x and d round alike unless x is such a midpoint; then the exact
//! decimal digits of x say on which side of it d lies.

use std::cmp::Ordering;

use crate::dtype::FloatFormat;
use crate::{DType, HostTensor, Storage};

/// The value of `text` rounded to the floating-point `dtype`, as a float64.
///
/// # Errors
/// What is wrong with the text: not a number, or a finite one beyond the dtype's greatest.
pub(crate) fn parse_float(text: &str, dtype: DType) -> Result<f64, String> {
    let Some(format) = dtype.float_format() else {
        return Err(format!("{dtype} is not a floating-point dtype"));
    };
    match text {
        "nan" => return Ok(f64::NAN),
        "inf" | "+inf" => return Ok(f64::INFINITY),
        "-inf" => return Ok(f64::NEG_INFINITY),
        _ => {}
    }
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let magnitude = if digits.starts_with("0x") || digits.starts_with("0X") {
        let hex = Hex::parse(&digits[2..]).ok_or_else(|| not_a_number(text))?;
        round(
            hex.significand,
            hex.exponent,
            if hex.sticky { Ordering::Greater } else { Ordering::Equal },
            format,
        )
    } else {
        let decimal = Decimal::parse(digits).ok_or_else(|| not_a_number(text))?;
        round_decimal(digits, &decimal, dtype, format).ok_or_else(|| not_a_number(text))?
    };
    match magnitude {
        Some(x) => Ok(if negative { -x } else { x }),
        None => Err(format!(
            "{} is beyond the greatest finite {dtype}; write \"{}inf\" if infinity is meant",
            shorten(text),
            if negative { "-" } else { "" }
        )),
    }
}

/// The value of `text` as an integer of the range of `dtype` (an integer type or bool).
///
/// # Errors
/// What is wrong with the text: not a number, not integral, or out of range.
pub(crate) fn parse_integer(text: &str, dtype: DType) -> Result<i64, String> {
    let Some((least, greatest)) = dtype.integer_range() else {
        return Err(format!("{dtype} is not an integer dtype"));
    };
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if matches!(digits, "nan" | "inf") {
        return Err(format!("{text} is not representable in {dtype}"));
    }
    let magnitude = if digits.starts_with("0x") || digits.starts_with("0X") {
        Hex::parse(&digits[2..]).ok_or_else(|| not_a_number(text))?.to_integer()
    } else {
        Decimal::parse(digits).ok_or_else(|| not_a_number(text))?.to_integer()
    };
    let Some(magnitude) = magnitude else {
        return Err(format!("{} is not representable in {dtype}, which holds integers only", shorten(text)));
    };
    let value = if negative { magnitude.checked_neg() } else { Some(magnitude) };
    match value.and_then(|v| i64::try_from(v).ok()) {
        Some(v) if (least..=greatest).contains(&v) => Ok(v),
        _ => Err(format!(
            "{} is not representable in {dtype}, which holds {least} to {greatest}",
            shorten(text)
        )),
    }
}

/// Element `index` of a tensor as text that [`parse_float`] or [`parse_integer`] reads back to the same bits (any NaN is
/// `nan`), with whether it can stand as a JSON number.
pub(crate) fn element_text(tensor: &HostTensor, index: usize) -> (String, bool) {
    let (value, shortest) = match tensor.storage() {
        Storage::F64(v) => (v[index], format!("{:?}", v[index])),
        Storage::F32(v) => (f64::from(v[index]), format!("{:?}", v[index])),
        Storage::F16(_) | Storage::BF16(_) => (tensor.get_f64(index), format!("{:?}", tensor.get_f64(index))),
        Storage::Bool(v) => return (if v[index] == 0 { "false" } else { "true" }.to_owned(), true),
        _ => return (tensor.get_i64(index).unwrap_or_default().to_string(), true),
    };
    if value.is_nan() {
        ("nan".to_owned(), false)
    } else if value.is_infinite() {
        (if value > 0.0 { "inf" } else { "-inf" }.to_owned(), false)
    } else {
        (shortest, true)
    }
}

fn not_a_number(text: &str) -> String {
    format!(
        "{} is not a number; write a decimal, \"nan\", \"inf\", \"-inf\" or a hex float such as \"0x1.8p+3\"",
        shorten(text)
    )
}

/// The text itself, or its start where it is long, for a message: what would act on a terminal is escaped.
pub(crate) fn shorten(text: &str) -> String {
    const MOST: usize = 60;
    let end = (0..=MOST.min(text.len())).rev().find(|&i| text.is_char_boundary(i)).unwrap_or(0);
    let mut shown = String::with_capacity(end);
    for c in text[..end].chars() {
        // Control characters, and those that turn the direction of the text around.
        if c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        {
            shown.extend(c.escape_default());
        } else {
            shown.push(c);
        }
    }
    if end < text.len() {
        shown.push('…');
    }
    shown
}

/// An unsigned decimal 0.d1 d2 d3 … * 10^scale without leading or trailing zeros; no digits for zero.
struct Decimal {
    digits: Vec<u8>,
    scale: i64,
}

impl Decimal {
    fn parse(text: &str) -> Option<Decimal> {
        let (number, exponent) = match text.find(['e', 'E']) {
            Some(at) => (&text[..at], parse_exponent(&text[at + 1..])?),
            None => (text, 0),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() || (number.contains('.') && fraction.is_empty()) {
            return None;
        }
        if !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
            return None;
        }
        let all = || whole.bytes().chain(fraction.bytes());
        let leading = all().take_while(|&b| b == b'0').count();
        let mut digits: Vec<u8> = all().skip(leading).collect();
        let kept = digits.iter().rposition(|&b| b != b'0').map_or(0, |last| last + 1);
        digits.truncate(kept);
        // A slice's length is below 2^63, so the difference cannot overflow; the exponent is clamped.
        let scale = (whole.len() as i64 - leading as i64).saturating_add(exponent);
        Some(Decimal { digits, scale })
    }

    fn to_integer(&self) -> Option<i128> {
        if self.digits.is_empty() {
            return Some(0);
        }
        let places = usize::try_from(self.scale).ok()?;
        if places < self.digits.len() || places > 30 {
            // Beyond 10^30 no dtype holds it; the caller's range check says so.
            return (places > 30 && places >= self.digits.len()).then_some(i128::MAX);
        }
        let value = self.digits.iter().fold(0i128, |v, &d| v * 10 + i128::from(d - b'0'));
        Some(value * 10i128.pow((places - self.digits.len()) as u32))
    }

    /// Which is greater in magnitude, this or `x`, exactly.
    fn compare(&self, x: f64) -> Option<Ordering> {
        // A midpoint of float16 or bfloat16 is k 2^e with k < 2^12, |e| < 140: fewer than 160 decimal digits.
        let exact = Decimal::parse(&format!("{x:.200e}"))?;
        Some(self.scale.cmp(&exact.scale).then_with(|| self.digits.cmp(&exact.digits)))
    }
}

/// A signed decimal exponent, clamped far beyond what any format can hold.
fn parse_exponent(text: &str) -> Option<i64> {
    const FAR: i64 = 1 << 40;
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let magnitude = digits.bytes().fold(0i64, |v, b| (v * 10 + i64::from(b - b'0')).min(FAR));
    Some(if negative { -magnitude } else { magnitude })
}

/// significand * 2^exponent, and more below where sticky.
struct Hex {
    significand: u128,
    exponent: i64,
    sticky: bool,
}

impl Hex {
    /// What follows `0x`.
    fn parse(text: &str) -> Option<Hex> {
        let (number, power) = match text.find(['p', 'P']) {
            Some(at) => (&text[..at], parse_exponent(&text[at + 1..])?),
            None => (text, 0),
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let mut hex =
            Hex { significand: 0, exponent: power.saturating_sub(4 * fraction.len() as i64), sticky: false };
        for b in whole.bytes().chain(fraction.bytes()) {
            let digit = char::from(b).to_digit(16)?;
            if hex.significand >> 120 == 0 {
                hex.significand = hex.significand << 4 | u128::from(digit);
            } else {
                hex.sticky |= digit != 0;
                hex.exponent += 4;
            }
        }
        Some(hex)
    }

    fn to_integer(&self) -> Option<i128> {
        if self.significand == 0 {
            return Some(0);
        }
        let zeros = self.significand.trailing_zeros();
        let (odd, exponent) = (self.significand >> zeros, self.exponent + i64::from(zeros));
        if exponent < 0 || self.sticky {
            return None;
        }
        let bits = i64::from(128 - odd.leading_zeros());
        Some(if bits + exponent > 100 { i128::MAX } else { (odd as i128) << exponent })
    }
}

/// The outer `None` cannot happen for text that [`Decimal::parse`] took; the inner one is overflow.
fn round_decimal(text: &str, decimal: &Decimal, dtype: DType, format: FloatFormat) -> Option<Option<f64>> {
    if decimal.digits.is_empty() {
        return Some(Some(0.0));
    }
    let finite = |x: f64| x.is_finite().then_some(x);
    Some(match dtype {
        DType::F64 => finite(text.parse().ok()?),
        DType::F32 => finite(f64::from(text.parse::<f32>().ok()?)),
        _ => {
            let x: f64 = text.parse().ok()?;
            if x.is_infinite() {
                None
            } else if x == 0.0 {
                Some(0.0)
            } else {
                let (significand, exponent) = split(x);
                let side = if is_midpoint(x, format) { decimal.compare(x)? } else { Ordering::Equal };
                round(u128::from(significand), i64::from(exponent), side, format)
            }
        }
    })
}

/// x > 0, finite, as significand * 2^exponent.
fn split(x: f64) -> (u64, i32) {
    let bits = x.to_bits();
    let biased = (bits >> 52) as i32;
    let fraction = bits & ((1 << 52) - 1);
    if biased == 0 { (fraction, -1074) } else { (fraction | 1 << 52, biased - 1075) }
}

fn is_midpoint(x: f64, format: FloatFormat) -> bool {
    let (significand, exponent) = split(x);
    let top = exponent + 63 - significand.leading_zeros() as i32;
    let quantum = (top - (format.precision as i32 - 1)).max(format.least_exponent());
    exponent + significand.trailing_zeros() as i32 == quantum - 1
}

/// significand * 2^exponent, or the number next to it on the side that `beyond` says, rounded to nearest with ties to
/// even; `None` beyond the format's greatest finite number.
fn round(significand: u128, exponent: i64, beyond: Ordering, format: FloatFormat) -> Option<f64> {
    if significand == 0 {
        return Some(0.0);
    }
    let bits = i64::from(128 - significand.leading_zeros());
    let top = exponent.saturating_add(bits - 1);
    if top > i64::from(format.max_exponent) {
        return None;
    }
    let least = i64::from(format.least_exponent());
    if top < least - 1 {
        return Some(0.0);
    }
    let quantum = (top - i64::from(format.precision - 1)).max(least);
    let shift = quantum - exponent;
    let kept = if shift <= 0 {
        // bits - shift <= precision, so nothing is lost.
        significand << -shift
    } else {
        let shift = shift as u32;
        let (kept, rest) = if shift >= 128 {
            (0, significand)
        } else {
            (significand >> shift, significand & ((1 << shift) - 1))
        };
        let half = 1u128 << (shift - 1).min(127);
        let order = if shift > 128 { Ordering::Less } else { rest.cmp(&half) };
        match order.then(beyond) {
            Ordering::Less => kept,
            Ordering::Greater => kept + 1,
            Ordering::Equal => kept + (kept & 1),
        }
    };
    let kept_top = quantum + 127 - i64::from(kept.leading_zeros());
    if kept != 0 && kept_top > i64::from(format.max_exponent) {
        return None;
    }
    // kept <= 2^53 and the product is representable, so both steps are exact.
    Some(kept as f64 * power_of_two(quantum as i32))
}

/// 2^e for -1074 <= e <= 1023.
fn power_of_two(e: i32) -> f64 {
    f64::from_bits(if e >= -1022 { ((e + 1023) as u64) << 52 } else { 1 << (e + 1074) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn float(text: &str, dtype: DType) -> f64 {
        parse_float(text, dtype).unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    #[test]
    fn a_decimal_is_rounded_once() {
        // 1 + 2^-24 is the midpoint of 1 and the next float32; the digits below it are lost in float64.
        let above = "1.00000005960464477539062500000000000000000000000001";
        assert_eq!(float(above, DType::F32), 1.0 + f64::powi(2.0, -23));
        assert_eq!(float("1.000000059604644775390625", DType::F32), 1.0);
        // 1 + 2^-11 for float16, 1 + 2^-8 for bfloat16.
        for (dtype, tie, ulp) in
            [(DType::F16, "1.00048828125", 2f64.powi(-10)), (DType::BF16, "1.00390625", 2f64.powi(-7))]
        {
            assert_eq!(float(tie, dtype), 1.0);
            assert_eq!(float(&format!("{tie}{}1", "0".repeat(40)), dtype), 1.0 + ulp);
            assert_eq!(float(&format!("-{tie}{}1", "0".repeat(40)), dtype), -1.0 - ulp);
            let below = format!("{}4{}", &tie[..tie.len() - 1], "9".repeat(40));
            assert_eq!(float(&below, dtype), 1.0);
            // The next midpoint, 1 + 3 ulp / 2, goes up on a tie and down just below.
            let next = format!("{:?}", 1.0 + 1.5 * ulp);
            assert_eq!(float(&next, dtype), 1.0 + 2.0 * ulp);
            let last = next.len() - 1;
            let below = format!("{}{}{}", &next[..last], next.as_bytes()[last] - b'0' - 1, "9".repeat(40));
            assert_eq!(float(&below, dtype), 1.0 + ulp);
        }
    }

    #[test]
    fn every_half_float_reads_back() {
        for bits in 0..=u16::MAX {
            for storage in [
                Storage::F16(vec![half::f16::from_bits(bits)]),
                Storage::BF16(vec![half::bf16::from_bits(bits)]),
            ] {
                let dtype = storage.dtype();
                let tensor = HostTensor::new([], storage).expect("one element");
                let (text, _) = element_text(&tensor, 0);
                let x = tensor.get_f64(0);
                let read = float(&text, dtype);
                assert!(read.to_bits() == x.to_bits() || (x.is_nan() && read.is_nan()), "{text}");
            }
        }
    }

    /// The nearest of all finite values, by exact differences; ties to the even pattern. (`half`'s own conversion from
    /// float64 looks at the upper 32 bits only and goes astray just above a tie.)
    fn nearest(x: f64, values: &[(u16, f64)]) -> f64 {
        let at = values.partition_point(|&(_, v)| v < x).clamp(1, values.len() - 1);
        let ((low_bits, low), (_, high)) = (values[at - 1], values[at]);
        match (x - low).partial_cmp(&(high - x)) {
            Some(Ordering::Less) => low,
            Some(Ordering::Greater) => high,
            _ if low_bits % 2 == 0 => low,
            _ => high,
        }
    }

    #[test]
    fn narrow_formats_round_to_nearest() {
        let f16: Vec<_> = (0..0x7c00).map(|b| (b, half::f16::from_bits(b).to_f64())).collect();
        let bf16: Vec<_> = (0..0x7f80).map(|b| (b, half::bf16::from_bits(b).to_f64())).collect();
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..100_000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // At most 16 bits, often a tie, and sometimes a little beside it.
            let beside = if state >> 40 & 1 == 0 {
                0.0
            } else {
                f64::powi(2.0, -30) * f64::from((state >> 41 & 3) as u32)
            };
            let x =
                (f64::from((state >> 52) as u32) + beside) * f64::powi(2.0, (state >> 20 & 31) as i32 - 28);
            // All the digits: the shortest text that reads back to x is another number, on one side of a tie.
            let text = format!("{x:.100e}");
            if x < 65504.0 {
                assert_eq!(float(&text, DType::F16), nearest(x, &f16), "{text}");
            }
            assert_eq!(float(&text, DType::BF16), nearest(x, &bf16), "{text}");
            assert_eq!(float(&format!("-{text}"), DType::F32), -f64::from(x as f32), "{text}");
            let hex = format!("0x{:x}p{}", split(x).0, split(x).1);
            assert_eq!(float(&hex, DType::F64), x);
            assert_eq!(float(&hex, DType::F32), f64::from(x as f32), "{hex}");
            assert_eq!(float(&hex, DType::BF16), nearest(x, &bf16), "{hex}");
        }
    }

    #[test]
    fn hex_floats() {
        assert_eq!(float("0x1.8p+3", DType::F32), 12.0);
        assert_eq!(float("-0x.8", DType::F32), -0.5);
        assert_eq!(float("0x1p-149", DType::F32), f64::powi(2.0, -149));
        assert_eq!(float("0x1p-150", DType::F32), 0.0);
        assert_eq!(float("0x1.000001p-150", DType::F32), f64::powi(2.0, -149));
        assert_eq!(float(&format!("0x1.{}1p-150", "0".repeat(100)), DType::F32), f64::powi(2.0, -149));
        assert_eq!(float("0x1p-99999999999999999999", DType::F64), 0.0);
        assert_eq!(float("0x1.fffffffffffffp+1023", DType::F64), f64::MAX);
        assert!(parse_float("0x1.fffffffffffff8p+1023", DType::F64).is_err());
        assert_eq!(float("0x1.fffffffffffff7p+1023", DType::F64), f64::MAX);
        assert!(float("-0x0p0", DType::F64).is_sign_negative());
        for bad in ["0x", "0xp3", "0x1.8p", "0x1g", "0x1.8.1", "--0x1", "0x1p+-3"] {
            assert!(parse_float(bad, DType::F64).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_no_number_of_the_dtype_is_refused() {
        for bad in
            ["", "-", "+", ".", "1.", ".5", "1e", "1e+", "infinity", "NaN", "1_0", "0b1", " 1", "1f", "é"]
        {
            assert!(parse_float(bad, DType::F64).is_err(), "{bad}");
            assert!(parse_integer(bad, DType::I64).is_err(), "{bad}");
        }
        assert!(parse_float("1e400", DType::F64).is_err());
        assert!(parse_float("65520", DType::F16).is_err());
        assert_eq!(float("65519.999", DType::F16), 65504.0);
        assert!(parse_float("3.4028235677973367e38", DType::F32).is_err());
        assert_eq!(float("1e-400", DType::F64), 0.0);
        assert!(float("-1e-400", DType::BF16).is_sign_negative());
    }

    #[test]
    fn integers_are_exact() {
        assert_eq!(parse_integer("9223372036854775807", DType::I64), Ok(i64::MAX));
        assert_eq!(parse_integer("-9223372036854775808", DType::I64), Ok(i64::MIN));
        assert_eq!(parse_integer("1.20e1", DType::I8), Ok(12));
        assert_eq!(parse_integer("0x1.8p+3", DType::U8), Ok(12));
        assert_eq!(parse_integer("-0", DType::U8), Ok(0));
        assert_eq!(parse_integer("1e-0", DType::Bool), Ok(1));
        for (bad, dtype) in [
            ("9223372036854775808", DType::I64),
            ("1e99999999999999999999", DType::I64),
            ("0x1p+2000", DType::I64),
            ("256", DType::U8),
            ("-1", DType::U8),
            ("0.5", DType::I32),
            ("0x0.8", DType::I32),
            ("nan", DType::I64),
            ("-inf", DType::I64),
            ("2", DType::Bool),
        ] {
            assert!(parse_integer(bad, dtype).is_err(), "{bad} as {dtype}");
        }
    }
}
