//! Data and exact rational checks shared by the tests of the fast paths.

use dashu_int::{IBig, UBig};
use half::{bf16, f16};
use ulpian_spec::ops::adaptive_avg_pool2d::AdaptiveAvgPool2d;
use ulpian_spec::ops::batch_norm::BatchNorm;
use ulpian_spec::ops::layer_norm::LayerNorm;
use ulpian_spec::ops::linear::Linear;
use ulpian_spec::{DType, HostTensor, Op, Storage, TensorType};

use super::Candidate;
use crate::Settings;
use crate::exact::Evaluator;
use crate::round::{round_scaled, scaled_integer};

/// Xorshift64.
pub(super) struct Random(pub u64);

impl Random {
    pub(super) fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    pub(super) fn below(&mut self, n: usize) -> usize {
        (self.bits() >> 20) as usize % n
    }
    /// In (-1, 1).
    pub(super) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// Kinds of data.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Data {
    /// Roughly normal.
    Plain,
    /// Integers in -8..8, many zeros: ties and cancellation.
    Integers,
    /// Any finite exponent.
    Wide,
    /// Mostly subnormal.
    Subnormal,
    /// Large with small remainders: sums cancel.
    Cancelling,
    /// Halves and odd multiples near 2^precision: exact ties.
    Ties,
}

pub(super) const KINDS: [Data; 6] =
    [Data::Plain, Data::Integers, Data::Wide, Data::Subnormal, Data::Cancelling, Data::Ties];

pub(super) fn tensor(random: &mut Random, dtype: DType, shape: &[usize], kind: Data) -> HostTensor {
    let format = dtype.float_format().expect("a float dtype");
    let len = shape.iter().product();
    let finite = |x: f64| if x.is_finite() { x } else { 1.0 };
    let element = |random: &mut Random| match kind {
        Data::Plain => random.unit() + random.unit() + random.unit(),
        Data::Integers => (random.below(17) as f64 - 8.0) * (random.below(3) != 0) as u8 as f64,
        Data::Wide => {
            let span = (format.max_exponent - format.least_exponent()) as usize;
            random.unit() * f64::from(format.least_exponent() + random.below(span) as i32).exp2()
        }
        Data::Subnormal => random.unit() * f64::from(format.min_exponent - random.below(4) as i32).exp2(),
        Data::Cancelling => {
            let big = [1000.0, -1000.0, 1000.5, -1000.5][random.below(4)];
            if random.below(2) == 0 { big } else { random.unit() * 1e-3 }
        }
        Data::Ties => {
            let top = f64::from(format.precision as i32 - 1).exp2();
            [top + 1.0, 0.5, -0.5, 1.0, 1.5, -top - 3.0, 0.0][random.below(7)]
        }
    };
    let storage = match dtype {
        DType::F64 => Storage::F64((0..len).map(|_| finite(element(random))).collect()),
        DType::F32 => {
            Storage::F32((0..len).map(|_| finite(f64::from(element(random) as f32)) as f32).collect())
        }
        DType::F16 => Storage::F16(
            (0..len)
                .map(|_| Some(f16::from_f64(element(random))).filter(|x| x.is_finite()).unwrap_or(f16::ONE))
                .collect(),
        ),
        _ => Storage::BF16(
            (0..len)
                .map(|_| Some(bf16::from_f64(element(random))).filter(|x| x.is_finite()).unwrap_or(bf16::ONE))
                .collect(),
        ),
    };
    HostTensor::new(shape, storage).expect("sizes agree")
}

/// Positions below float64's products: everything is an integer multiple of 2^-SCALE.
const SCALE: i64 = 2200;

/// A float64 as a multiple of 2^-2200.
pub(super) fn scaled(x: f64) -> IBig {
    let (m, e) = scaled_integer(x);
    IBig::from(m) << (e + SCALE) as usize
}

/// A product of two float64 as a multiple of 2^-2200.
pub(super) fn scaled_product(x: f64, y: f64) -> IBig {
    let ((m, e), (n, f)) = (scaled_integer(x), scaled_integer(y));
    (IBig::from(m) * IBig::from(n)) << (e + f + SCALE) as usize
}

/// Asserts that element `i` encloses numerator / denominator (in units of 2^-2200) and has its rounding, or is pending.
pub(super) fn assert_element(candidate: &Candidate, i: usize, numerator: &IBig, denominator: &UBig) {
    if candidate.pending.binary_search(&i).is_ok() {
        return;
    }
    let low = candidate.low.get(i).copied().unwrap_or(0.0);
    let (c, r) = (candidate.center[i], candidate.radius[i]);
    assert!(r >= 0.0 && r.is_finite(), "{i}: radius {r}");
    let distance = numerator - (scaled(c) + scaled(low)) * denominator;
    let (_, distance) = distance.into_parts();
    let (_, allowed) = (scaled(r) * denominator).into_parts();
    assert!(distance <= allowed, "{i}: {c:e} + {low:e} misses by more than {r:e}");
    let format = candidate.ty.dtype.float_format().expect("a float dtype");
    let (sign, magnitude) = numerator.clone().into_parts();
    // 64 further bits and the remainder settle the rounding.
    let magnitude = magnitude << 64usize;
    let (quotient, rest) = (&magnitude / denominator, &magnitude % denominator);
    let want = round_scaled(format, sign, &quotient, -SCALE - 64, rest != UBig::ZERO);
    let got = value_at(&candidate.value, i);
    assert_eq!(got.to_bits(), want.to_bits(), "{i}: {got:e}, not {want:e}; {c:e} {low:e} {r:e}");
}

pub(super) fn value_at(storage: &Storage, i: usize) -> f64 {
    match storage {
        Storage::F64(v) => v[i],
        Storage::F32(v) => f64::from(v[i]),
        Storage::F16(v) => f64::from(v[i]),
        Storage::BF16(v) => f64::from(v[i]),
        _ => panic!("a float dtype"),
    }
}

/// Evaluates by the fast path and by the arbitrary-precision evaluator; asserts that the decided values agree, that the
/// enclosures meet, and returns how many elements were pending.
pub(super) fn assert_agrees(op: &Op<&HostTensor>, types: &[TensorType]) -> usize {
    let settings = Settings::default();
    let candidates = super::try_evaluate(op, types, &settings).expect("handled");
    let evaluator = Evaluator::single(op, types.to_vec(), &settings);
    let mut pending = 0;
    for (output, got) in candidates.iter().enumerate() {
        assert_eq!(got.ty, types[output]);
        let want = crate::assemble::Draft::empty(&types[output])
            .finish(false, |i| evaluator.resolve(0, output, i))
            .expect("evaluates");
        assert!(got.pending.is_sorted());
        let (values, wanted) = (values(&got.value), values(want.value.storage()));
        assert_eq!(
            (values.len(), got.center.len(), got.radius.len()),
            (wanted.len(), wanted.len(), wanted.len())
        );
        for i in 0..wanted.len() {
            if got.pending.binary_search(&i).is_ok() {
                pending += 1;
                continue;
            }
            let (c, l, r) = (got.center[i], got.low.get(i).copied().unwrap_or(0.0), got.radius[i]);
            let context = || {
                format!(
                    "{:?} {i}: {c:e} + {l:e} ± {r:e}, {:?}; {:e} ± {:e}, {:?}",
                    op.kind(),
                    values[i],
                    want.center[i],
                    want.radius[i],
                    wanted[i]
                )
            };
            assert!(
                values[i].to_bits() == wanted[i].to_bits()
                    || values[i].is_nan() && wanted[i].is_nan()
                    || want.zero_sign_is_free && values[i] == 0.0 && wanted[i] == 0.0,
                "{}",
                context()
            );
            if !want.center[i].is_finite() {
                assert!(
                    c.to_bits() == want.center[i].to_bits() || c.is_nan() && want.center[i].is_nan(),
                    "{}",
                    context()
                );
                assert_eq!(r, 0.0);
                continue;
            }
            let distance = ((c - want.center[i]) + (l - want.low_at(i))).abs();
            let slack = want.radius[i] + c.abs() * f64::EPSILON.powi(2) + 1e-320;
            assert!(r >= 0.0 && distance <= r + slack, "{}", context());
        }
    }
    pending
}

fn values(storage: &Storage) -> Vec<f64> {
    if storage.dtype().is_float() {
        (0..storage.len()).map(|i| value_at(storage, i)).collect()
    } else {
        HostTensor::new([storage.len()], storage.clone()).expect("its own length").to_f64_vec()
    }
}

/// Every bit pattern of a 16-bit dtype.
pub(super) fn all_patterns(dtype: DType) -> HostTensor {
    let storage = match dtype {
        DType::F16 => Storage::F16((0..=u16::MAX).map(f16::from_bits).collect()),
        _ => Storage::BF16((0..=u16::MAX).map(bf16::from_bits).collect()),
    };
    HostTensor::new([1 << 16], storage).expect("65,536 patterns")
}

/// Every pair of special values and a few numbers, in a float dtype.
pub(super) fn special_pairs(dtype: DType) -> (HostTensor, HostTensor) {
    let format = dtype.float_format().expect("a float dtype");
    let least = crate::round::exp2i(i64::from(format.least_exponent()));
    let most = crate::round::max_finite(format);
    let values = [
        0.0,
        -0.0,
        1.0,
        -1.5,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
        least,
        -least,
        most,
        -most,
        3.0 * least,
    ];
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for a in values {
        for b in values {
            x.push(a);
            y.push(b);
        }
    }
    (tensor_of(dtype, &[144], x), tensor_of(dtype, &[144], y))
}

/// These numbers, which float32 holds unless `dtype` is float64, in `dtype`.
fn tensor_of(dtype: DType, shape: &[usize], v: Vec<f64>) -> HostTensor {
    let storage = match dtype {
        DType::F64 => Storage::F64(v),
        DType::F32 => Storage::F32(v.iter().map(|&x| x as f32).collect()),
        DType::F16 => Storage::F16(v.iter().map(|&x| f16::from_f32(x as f32)).collect()),
        _ => Storage::BF16(v.iter().map(|&x| bf16::from_f32(x as f32)).collect()),
    };
    HostTensor::new(shape, storage).expect("sizes agree")
}

/// What is not finite, and what overflows float64 on the way, in every operand of the ops that sum.
#[test]
fn infinities_and_huge_values_in_every_operand() {
    for dtype in DType::FLOATS {
        let most = crate::round::max_finite(dtype.float_format().expect("a float dtype"));
        let specials = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, most, -most];
        for (position, special) in (0..3).flat_map(|p| specials.map(|s| (p, s))) {
            let make = |p: usize, shape: &[usize], rest: f64| {
                let len = shape.iter().product();
                let mut data = vec![rest; len];
                data[0] = if p == position { special } else { rest };
                data[len - 1] = if p == position { -most } else { -rest };
                tensor_of(dtype, shape, data)
            };
            let (x, square, line) = (make(0, &[2, 2], 1.5), make(1, &[2, 2], 3.0), make(2, &[2], 2.0));
            let op = Op::Linear(Linear { input: &x, weight: &square, bias: Some(&line) });
            assert_agrees(&op, &[x.tensor_type()]);
            if dtype == DType::F64 {
                continue;
            }
            let factors = make(1, &[2], 0.5);
            let op = LayerNorm {
                input: &x,
                weight: Some(&factors),
                bias: Some(&line),
                normalized_shape: vec![2],
                eps: 1e-5,
            };
            assert_agrees(&Op::LayerNorm(op), &[x.tensor_type()]);
            let images = make(0, &[1, 2, 2, 1], 1.5);
            let op = AdaptiveAvgPool2d { input: &images, output_size: [Some(1), Some(1)] };
            assert_agrees(&Op::AdaptiveAvgPool2d(op), &[TensorType::new(dtype, [1, 2, 1, 1])]);
            let (mean, var) = (make(1, &[2], 0.25), make(2, &[2], 4.0));
            let op = BatchNorm {
                input: &images,
                running_mean: Some(&mean),
                running_var: Some(&var),
                weight: Some(&factors),
                bias: Some(&line),
                training: false,
                momentum: 0.1,
                eps: 1e-5,
            };
            assert_agrees(&Op::BatchNorm(op), &[images.tensor_type()]);
        }
    }
}
