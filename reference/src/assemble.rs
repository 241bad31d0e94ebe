//! From centres and radii to [`Enclosure`]s: rounding what has one rounding, and having the rest decided.

use half::{bf16, f16};
use rayon::prelude::*;
use ulpian_spec::{DType, Enclosure, HostTensor, Storage, TensorType};

use crate::EvaluateError;
use crate::balls::Balls;
use crate::exact::Resolved;
use crate::fast::Candidate;
use crate::round::round_interval;

/// A number that a dtype holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    /// Of a floating-point dtype.
    Float(f64),
    /// Of an integer dtype or bool.
    Int(i64),
}

/// An [`Enclosure`] in the making.
pub(crate) struct Draft {
    ty: TensorType,
    value: Storage,
    center: Vec<f64>,
    low: Vec<f64>,
    radius: Vec<f64>,
    /// Positions yet to be decided, ascending.
    pub(crate) pending: Vec<usize>,
}

impl Draft {
    /// Nothing is known yet.
    pub(crate) fn empty(ty: &TensorType) -> Draft {
        let len = ty.elements().unwrap_or(0);
        Draft {
            ty: ty.clone(),
            value: Storage::zeros(ty.dtype, len),
            center: vec![0.0; len],
            low: Vec::new(),
            radius: vec![0.0; len],
            pending: (0..len).collect(),
        }
    }

    /// A fast path's answer.
    pub(crate) fn of_candidate(candidate: Candidate) -> Draft {
        let Candidate { ty, center, low, radius, value, pending } = candidate;
        Draft { ty, value, center, low, radius, pending }
    }

    /// Balls, rounded to the dtype. `negative` says that no result below or at zero is zero itself, as with gelu: there a ball that
    /// ends at zero holds negative numbers only.
    pub(crate) fn of_balls(ty: &TensorType, balls: Balls, negative: bool) -> Draft {
        let len = balls.len();
        let mut value = Storage::zeros(ty.dtype, len);
        let pending = round_balls(ty.dtype, &balls, negative, &mut value);
        let (center, low, radius) = balls.into_parts();
        Draft {
            ty: ty.clone(),
            value,
            center,
            low,
            radius: if radius.is_empty() { vec![0.0; len] } else { radius },
            pending,
        }
    }

    /// Takes over what `other` has decided of this draft's pending positions.
    pub(crate) fn refine(&mut self, other: &Draft) {
        let pending = std::mem::take(&mut self.pending);
        for i in pending {
            if other.pending.binary_search(&i).is_ok() {
                self.pending.push(i);
            } else {
                let low = other.low.get(i).copied().unwrap_or(0.0);
                self.set(i, load(&other.value, i), [other.center[i], low, other.radius[i]]);
            }
        }
    }

    /// Gives every pending element of which the real value is enclosed the rounding of its centre, and returns their positions,
    /// ascending. Pending are then the others, and all integers.
    pub(crate) fn leave_open(&mut self) -> Vec<usize> {
        let Some(format) = self.ty.dtype.float_format() else { return Vec::new() };
        let (mut open, mut pending) = (Vec::new(), Vec::new());
        for i in std::mem::take(&mut self.pending) {
            let low = self.low.get(i).copied().unwrap_or(0.0);
            let rounded = round_interval(format, self.center[i], low, 0.0);
            match rounded.filter(|_| self.radius[i].is_finite()) {
                Some(value) => {
                    store(&mut self.value, i, Number::Float(value));
                    open.push(i);
                }
                None => pending.push(i),
            }
        }
        self.pending = pending;
        open
    }

    fn set(&mut self, i: usize, value: Number, [center, low, radius]: [f64; 3]) {
        store(&mut self.value, i, value);
        self.center[i] = center;
        self.radius[i] = radius;
        if self.low.is_empty() && low != 0.0 {
            self.low = vec![0.0; self.center.len()];
        }
        if !self.low.is_empty() {
            self.low[i] = low;
        }
    }

    /// Has `decide` say what is pending, in parallel. What it cannot decide either is listed as undecided.
    ///
    /// # Errors
    /// The first error, by position, of `decide`.
    pub(crate) fn finish(
        mut self,
        zero_sign_is_free: bool,
        decide: impl Fn(usize) -> Result<Resolved, EvaluateError> + Sync,
    ) -> Result<Enclosure, EvaluateError> {
        let pending = std::mem::take(&mut self.pending);
        let elements =
            pending.par_iter().map(|&i| decide(i)).collect::<Result<Vec<Resolved>, EvaluateError>>()?;
        let is_float = self.ty.dtype.is_float();
        let mut undecided = Vec::new();
        for (&i, element) in pending.iter().zip(&elements) {
            let value = if is_float { Number::Float(element.value) } else { Number::Int(element.integer) };
            // An exact zero keeps its sign for what comes after.
            let exact_zero = element.hi == 0.0 && element.radius == 0.0;
            let center = if exact_zero && is_float { element.value } else { element.hi };
            self.set(i, value, [center, element.lo, element.radius]);
            if !element.decided {
                undecided.push(i);
            }
        }
        let zero_sign_is_free = zero_sign_is_free || elements.iter().any(|element| element.zero_sign_free);
        let Draft { ty, value, center, low, radius, .. } = self;
        Ok(Enclosure {
            value: HostTensor::new(ty.shape, value).expect("the draft has its type's size"),
            center,
            low,
            radius,
            undecided,
            zero_sign_is_free,
        })
    }
}

/// A result that is these very numbers.
pub(crate) fn exact_enclosure(value: HostTensor) -> Enclosure {
    let (center, low, _) = Balls::exact(&value).into_parts();
    let radius = vec![0.0; center.len()];
    Enclosure { value, center, low, radius, undecided: Vec::new(), zero_sign_is_free: false }
}

/// Is every element exactly the one in `value`, so that rounding it changed nothing?
pub(crate) fn is_exact(enclosure: &Enclosure) -> bool {
    if !enclosure.undecided.is_empty() || enclosure.radius.iter().any(|&r| r != 0.0) {
        return false;
    }
    let same = |i: usize, high: f64, low: f64| {
        let center = enclosure.center[i];
        (center == high && enclosure.low_at(i) == low) || (center.is_nan() && high.is_nan())
    };
    if enclosure.value.dtype().is_float() {
        return (0..enclosure.len()).all(|i| same(i, enclosure.value.get_f64(i), 0.0));
    }
    // Integers may need a low part.
    let exact = Balls::exact(&enclosure.value);
    (0..enclosure.len()).all(|i| same(i, exact.high(i), exact.low(i)))
}

/// Elements that one task of [`round_balls`] rounds.
const CHUNK: usize = 1 << 14;

/// Stores the rounding of every ball that has one, and returns the positions of the others.
fn round_balls(dtype: DType, balls: &Balls, negative: bool, value: &mut Storage) -> Vec<usize> {
    let rounded = |i: usize| round_ball(dtype, balls.high(i), balls.low(i), balls.radius(i), negative);
    macro_rules! fill {
        ($v:expr, $quick:expr) => {
            $v.par_chunks_mut(CHUNK)
                .enumerate()
                .map(|(chunk, to)| {
                    let mut pending = Vec::new();
                    for (j, to) in to.iter_mut().enumerate() {
                        let i = chunk * CHUNK + j;
                        match $quick(i).or_else(|| rounded(i).map(Stored::stored)) {
                            Some(number) => *to = number,
                            None => pending.push(i),
                        }
                    }
                    pending
                })
                .collect::<Vec<_>>()
                .concat()
        };
    }
    let quick = |i: usize| quick_f32(balls.high(i), balls.low(i), balls.radius(i));
    match value {
        Storage::F64(v) => fill!(v, |_| None),
        Storage::F32(v) => fill!(v, quick),
        Storage::F16(v) => fill!(v, |_| None),
        Storage::BF16(v) => fill!(v, |_| None),
        Storage::I64(v) => fill!(v, |_| None),
        Storage::I32(v) => fill!(v, |_| None),
        Storage::I16(v) => fill!(v, |_| None),
        Storage::I8(v) => fill!(v, |_| None),
        Storage::U8(v) | Storage::Bool(v) => fill!(v, |_| None),
    }
}

/// The float32 that every real number within `radius` of hi + lo rounds to, found without leaving float64; `None` where that
/// does not decide. The ends are moved outward by more than their own three roundings lose, 4 u (|hi| + |lo| + radius) with
/// u = 2^-53; a conversion rounds to nearest, ties to even, and is monotone. Zeros, whose sign has rules of its own, and
/// infinities are left to [`round_ball`].
#[inline]
fn quick_f32(hi: f64, lo: f64, radius: f64) -> Option<f32> {
    let reach = lo.abs() + radius;
    let reach = reach + 2.0 * f64::EPSILON * (hi.abs() + reach);
    let (lower, upper) = ((hi - reach) as f32, (hi + reach) as f32);
    (lower == upper && lower != 0.0 && lower.is_finite()).then_some(lower)
}

fn round_ball(dtype: DType, hi: f64, lo: f64, radius: f64, negative: bool) -> Option<Number> {
    let Some(format) = dtype.float_format() else {
        let exact = radius == 0.0 && hi.fract() == 0.0 && lo.fract() == 0.0;
        let value = i64::try_from(hi as i128 + lo as i128).ok()?;
        let (least, greatest) = dtype.integer_range()?;
        return (exact && (least..=greatest).contains(&value)).then_some(Number::Int(value));
    };
    if radius == 0.0 && hi == 0.0 {
        // The sign that IEEE's rules gave it.
        return Some(Number::Float(hi));
    }
    let rounded = round_interval(format, hi, lo, radius).or_else(|| {
        let ends_at_zero = negative && hi < 0.0 && hi + radius == 0.0 && lo == 0.0;
        let tiny = -f64::from_bits(1);
        let last = ends_at_zero.then(|| round_interval(format, tiny, 0.0, 0.0)).flatten()?;
        let first = round_interval(format, hi - radius, 0.0, 0.0)?;
        (first.to_bits() == last.to_bits()).then_some(first)
    });
    rounded.map(Number::Float)
}

/// A type of a dtype's elements.
trait Stored {
    /// A number that the dtype holds.
    fn stored(number: Number) -> Self;
}

macro_rules! stored {
    ($($element:ty: |$float:ident| $of_float:expr, |$int:ident| $of_int:expr;)*) => {$(
        impl Stored for $element {
            fn stored(number: Number) -> $element {
                match number {
                    Number::Float($float) => $of_float,
                    Number::Int($int) => $of_int,
                }
            }
        }
    )*};
}

stored! {
    f64: |x| x, |n| n as f64;
    f32: |x| x as f32, |n| n as f32;
    f16: |x| f16::from_f64(x), |n| f16::from_f64(n as f64);
    bf16: |x| bf16::from_f64(x), |n| bf16::from_f64(n as f64);
    i64: |x| x as i64, |n| n;
    i32: |x| x as i32, |n| n as i32;
    i16: |x| x as i16, |n| n as i16;
    i8: |x| x as i8, |n| n as i8;
    u8: |x| x as u8, |n| n as u8;
}

/// Puts a number, which the dtype holds, at position `i`.
pub(crate) fn store(storage: &mut Storage, i: usize, number: Number) {
    macro_rules! put {
        ($($variant:ident),*) => {
            match storage {
                $(Storage::$variant(v) => v[i] = Stored::stored(number),)*
            }
        };
    }
    put!(F64, F32, F16, BF16, I64, I32, I16, I8, U8, Bool);
}

fn load(storage: &Storage, i: usize) -> Number {
    match storage {
        Storage::F64(v) => Number::Float(v[i]),
        Storage::F32(v) => Number::Float(f64::from(v[i])),
        Storage::F16(v) => Number::Float(f64::from(v[i])),
        Storage::BF16(v) => Number::Float(f64::from(v[i])),
        Storage::I64(v) => Number::Int(v[i]),
        Storage::I32(v) => Number::Int(i64::from(v[i])),
        Storage::I16(v) => Number::Int(i64::from(v[i])),
        Storage::I8(v) => Number::Int(i64::from(v[i])),
        Storage::U8(v) | Storage::Bool(v) => Number::Int(i64::from(v[i])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn the_quick_rounding_is_the_exact_one() {
        let format = DType::F32.float_format().expect("a float dtype");
        let mut random = Random(7);
        let mut quick = 0;
        for n in 0..200_000 {
            // Everywhere between the subnormal numbers and overflow; every fourth beside the middle of two neighbours.
            let exponent = (random.bits() % 300) as i64 - 160;
            let mut hi = (1.0 + f64::from(random.unit())) * crate::round::exp2i(exponent);
            if n % 4 == 0 {
                let x = hi as f32;
                hi = (f64::from(x) + f64::from(x.next_up())) / 2.0;
                hi = if n % 8 == 0 { hi.next_up() } else { hi };
            }
            let lo = hi * f64::EPSILON / 2.0 * f64::from(random.unit());
            let radius = if n % 3 == 0 { 0.0 } else { hi.abs() * crate::round::exp2i(-(n % 80)) };
            if let Some(found) = quick_f32(hi, lo, radius) {
                quick += 1;
                let exact = round_interval(format, hi, lo, radius);
                assert_eq!(
                    exact.map(f64::to_bits),
                    Some(f64::from(found).to_bits()),
                    "{hi:e} {lo:e} {radius:e}"
                );
            }
        }
        assert!(quick > 50_000, "{quick}");
        assert_eq!(quick_f32(1.0, 0.0, f64::INFINITY), None);
        assert_eq!(quick_f32(f64::NAN, 0.0, 0.0), None);
        assert_eq!(quick_f32(0.0, 0.0, 0.0), None);
        assert_eq!(quick_f32(1e300, 0.0, 0.0), None);
    }
}
