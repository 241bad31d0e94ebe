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
        let rounded: Vec<Option<Number>> = (0..balls.len())
            .into_par_iter()
            .map(|i| round_ball(ty.dtype, balls.high(i), balls.low(i), balls.radius(i), negative))
            .collect();
        let (center, low, radius) = balls.into_parts();
        let mut draft = Draft {
            value: Storage::zeros(ty.dtype, center.len()),
            ty: ty.clone(),
            radius: if radius.is_empty() { vec![0.0; center.len()] } else { radius },
            center,
            low,
            pending: Vec::new(),
        };
        for (i, number) in rounded.into_iter().enumerate() {
            match number {
                Some(number) => store(&mut draft.value, i, number),
                None => draft.pending.push(i),
            }
        }
        draft
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
    let exact = Balls::exact(&enclosure.value);
    (0..enclosure.len()).all(|i| {
        let (a, b) = (enclosure.center[i], exact.high(i));
        (a == b && enclosure.low_at(i) == exact.low(i)) || (a.is_nan() && b.is_nan())
    })
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

/// Puts a number, which the dtype holds, at position `i`.
pub(crate) fn store(storage: &mut Storage, i: usize, number: Number) {
    let float = match number {
        Number::Float(x) => x,
        Number::Int(n) => n as f64,
    };
    let int = match number {
        Number::Float(x) => x as i64,
        Number::Int(n) => n,
    };
    match storage {
        Storage::F64(v) => v[i] = float,
        Storage::F32(v) => v[i] = float as f32,
        Storage::F16(v) => v[i] = f16::from_f64(float),
        Storage::BF16(v) => v[i] = bf16::from_f64(float),
        Storage::I64(v) => v[i] = int,
        Storage::I32(v) => v[i] = int as i32,
        Storage::I16(v) => v[i] = int as i16,
        Storage::I8(v) => v[i] = int as i8,
        Storage::U8(v) => v[i] = int as u8,
        Storage::Bool(v) => v[i] = u8::from(int != 0),
    }
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
