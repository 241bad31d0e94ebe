//! Distances whose figures are known, and the passes against each other.

use half::{bf16, f16};
use ulpian_reference::round;
use ulpian_spec::{DType, Storage};

use super::*;

fn enclosure(value: HostTensor, center: &[f64]) -> Enclosure {
    Enclosure {
        value,
        center: center.to_vec(),
        low: vec![],
        radius: vec![0.0; center.len()],
        undecided: vec![],
        zero_sign_is_free: false,
    }
}

fn against(got: &[f32], truth: &[f32], center: &[f64], worst: f64) -> Measured {
    let truth = enclosure(HostTensor::f32(&[truth.len()], truth), center);
    let levels = vec![worst; got.len()];
    measure(&HostTensor::f32(&[got.len()], got), &truth, &levels, &levels, false)
}

#[test]
fn the_correctly_rounded_value_is_within_half_an_ulp() {
    let m = against(&[1.0, 0.1], &[1.0, 0.1], &[1.0 + 5.9e-8, 0.1], 1e-9);
    assert!(m.exact && m.within());
    assert!(m.ulp.value <= 0.5 && m.ulp.value > 0.4, "{}", m.ulp.value);
    assert!(m.ratio.value <= 1.0);
}

#[test]
fn a_neighbour_is_measured_from_the_real_value() {
    let m = against(&[1.0 + f32::EPSILON], &[1.0], &[1.0 + 5.9e-8], 1e-9);
    assert!(!m.exact);
    assert!((m.ulp.value - 0.505).abs() < 0.01, "{}", m.ulp.value);
    assert_eq!((m.beyond, m.unusual), (1, 1));
}

#[test]
fn class_comes_before_distance() {
    let nan = f32::NAN;
    let m = against(
        &[nan, 1.0, f32::INFINITY],
        &[1.0, nan, f32::NEG_INFINITY],
        &[1.0, f64::NAN, f64::NEG_INFINITY],
        1e9,
    );
    assert_eq!((m.class_mismatches, m.class_faults(), m.first_fault), (3, 3, Some(0)));
    assert_eq!(m.max_ulp(), f64::INFINITY);
    assert!(!m.within());
}

#[test]
fn a_zero_has_a_sign_unless_the_truth_leaves_it_open() {
    let m = against(&[-0.0], &[0.0], &[0.0], 0.0);
    assert_eq!((m.class_mismatches, m.sign_mismatches, m.class_faults()), (1, 1, 0));
    let mut truth = enclosure(HostTensor::f32(&[1], &[0.0]), &[0.0]);
    truth.zero_sign_is_free = true;
    assert!(measure(&HostTensor::f32(&[1], &[-0.0]), &truth, &[0.0], &[0.0], false).exact);
}

#[test]
fn infinity_is_excused_where_the_bound_reaches_it() {
    let top = f64::from(f32::MAX);
    let m = against(&[f32::INFINITY], &[f32::MAX], &[top], 1e30);
    assert_eq!((m.class_mismatches, m.class_faults()), (1, 0));
    let m = against(&[f32::INFINITY], &[3e38], &[3e38], 1e30);
    assert_eq!(m.class_faults(), 1);
    // A real value beyond the greatest number: the infinity is right.
    assert!(against(&[f32::INFINITY], &[f32::INFINITY], &[1e39], 0.0).exact);
}

#[test]
fn another_shape_or_dtype_counts_every_element() {
    let truth = enclosure(HostTensor::f32(&[2, 2], &[1.0; 4]), &[1.0; 4]);
    for got in [HostTensor::f32(&[4], &[1.0; 4]), HostTensor::f64(&[2, 2], &[1.0; 4])] {
        let m = measure(&got, &truth, &[0.0; 4], &[0.0; 4], false);
        assert_eq!((m.class_mismatches, m.within()), (4, false));
        assert!(m.distance(&got, &truth).is_none());
    }
}

#[test]
fn no_element_is_no_error() {
    let truth = enclosure(HostTensor::f32(&[0, 3], &[]), &[]);
    let m = measure(&HostTensor::f32(&[0, 3], &[]), &truth, &[], &[], false);
    assert!(m.exact && m.within());
}

#[test]
fn integers_beyond_float64_are_told_apart() {
    let big = (1i64 << 60) + 1;
    let value = HostTensor::new([1], Storage::I64(vec![big])).expect("one element");
    let truth = enclosure(value, &[big as f64]);
    let got = HostTensor::new([1], Storage::I64(vec![big - 1])).expect("one element");
    let m = measure(&got, &truth, &[0.0], &[0.0], false);
    assert_eq!((m.ulp.value, m.beyond), (1.0, 1));
    assert_eq!(m.ratio.value, f64::INFINITY);
}

#[test]
fn float64_is_measured_with_the_low_part() {
    let mut truth = enclosure(HostTensor::f64(&[1], &[1.0]), &[1.0]);
    truth.low = vec![1.1e-16];
    let m = measure(&HostTensor::f64(&[1], &[1.0]), &truth, &[1e-15], &[1e-15], false);
    assert!((m.ulp.value - 0.495).abs() < 0.01, "{}", m.ulp.value);
    let m = measure(&HostTensor::f64(&[1], &[1.0 + f64::EPSILON]), &truth, &[1e-17], &[1e-17], false);
    assert!((m.ulp.value - 0.505).abs() < 0.01);
    assert_eq!(m.beyond, 1);
}

/// [`measure`] of a floating-point result element by element.
fn measure_singly(got: &HostTensor, truth: &Enclosure, levels: [&[f64]; 2], widen: bool) -> Measured {
    let format = truth.value.dtype().float_format().expect("a float dtype");
    let comparison = Comparison::new(truth, levels, format, widen);
    in_chunks(truth.len(), |m, elements| {
        elements.for_each(|i| comparison.element(m, i, got.get_f64(i), truth.value.get_f64(i)));
    })
}

fn assert_same(blockwise: &Measured, singly: &Measured) {
    let peaks = |m: &Measured| [m.ulp, m.abs, m.rel, m.ratio].map(|p| (p.value.to_bits(), p.index));
    assert_eq!(peaks(blockwise), peaks(singly));
    assert_eq!(blockwise.greatest.to_bits(), singly.greatest.to_bits());
    // NaN aside, which the bits above have compared.
    let counts = |m: &Measured| Measured {
        ulp: Peak::NONE,
        abs: Peak::NONE,
        rel: Peak::NONE,
        ratio: Peak::NONE,
        ..m.clone()
    };
    assert_eq!(counts(blockwise), counts(singly));
}

fn tensor(dtype: DType, values: &[f64]) -> HostTensor {
    let storage = match dtype {
        DType::F64 => Storage::F64(values.to_vec()),
        DType::F32 => Storage::F32(values.iter().map(|&x| x as f32).collect()),
        DType::F16 => Storage::F16(values.iter().map(|&x| f16::from_f32(x as f32)).collect()),
        _ => Storage::BF16(values.iter().map(|&x| bf16::from_f32(x as f32)).collect()),
    };
    HostTensor::new([values.len()], storage).expect("as many elements as the shape says")
}

/// Xorshift.
struct Random(u64);

impl Random {
    fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: u64) -> u64 {
        (self.bits() >> 11) % n
    }

    /// One in `n`.
    fn rarely(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// Of either sign, with one of a few significands where `ties`.
    fn number(&mut self, exponents: i64, ties: bool) -> f64 {
        let fraction = if ties { self.below(3) << 50 } else { self.bits() >> 12 };
        let exponent = self.below(2 * exponents as u64 + 1) as i64 - exponents;
        let x = f64::from_bits((1023 << 52) | fraction) * round::exp2i(exponent);
        if self.rarely(2) { -x } else { x }
    }

    fn special(&mut self) -> f64 {
        let all = [
            0.0,
            -0.0,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            1e-320,
            -1e-40,
            3e-8,
            65520.0,
            3.4e38,
            1e300,
        ];
        all[self.below(all.len() as u64) as usize]
    }
}

/// How a random truth and result are made.
struct Mix {
    dtype: DType,
    len: usize,
    exponents: i64,
    ties: bool,
    /// One in so many elements is special; so many results differ; so many are undecided.
    special: u64,
    differing: u64,
    undecided: u64,
    low: bool,
    zero_sign_is_free: bool,
}

fn mixed(random: &mut Random, mix: &Mix) -> (HostTensor, Enclosure, Vec<f64>, Vec<f64>) {
    let format = mix.dtype.float_format().expect("a float dtype");
    let mut center = Vec::new();
    let mut value = Vec::new();
    let mut got = Vec::new();
    for _ in 0..mix.len {
        let real = if random.rarely(mix.special) {
            random.special()
        } else {
            random.number(mix.exponents, mix.ties)
        };
        let rounded = round::round_f64(format, real);
        let steps = random.below(4) as f64 - 1.5;
        let near = rounded + (steps * round::ulp(format, real)).trunc();
        let near = if near == rounded { rounded + round::ulp(format, real) } else { near };
        got.push(match random.below(4 * mix.special) {
            0 => random.special(),
            1 if rounded == 0.0 => -rounded,
            _ if random.rarely(mix.differing) => round::round_f64(format, near),
            _ => rounded,
        });
        center.push(real);
        value.push(rounded);
    }
    let mut level = |most: u64| {
        let of = |c: &f64| match random.below(12 * mix.special) {
            0 => f64::INFINITY,
            1 => 0.0,
            2 => -0.0,
            3 => f64::NAN,
            4 => -1.0,
            _ => round::ulp(format, *c) * (random.below(most) as f64) * 0.25,
        };
        center.iter().map(of).collect::<Vec<f64>>()
    };
    let (worst, usual, radius) = (level(12), level(6), level(3));
    let low = center.iter().map(|c| c * 1e-17 * (random.below(9) as f64 - 4.0));
    let truth = Enclosure {
        low: if mix.low { low.collect() } else { vec![] },
        undecided: (0..mix.len).filter(|_| random.rarely(mix.undecided)).collect(),
        value: tensor(mix.dtype, &value),
        center,
        radius,
        zero_sign_is_free: mix.zero_sign_is_free,
    };
    (tensor(mix.dtype, &got), truth, worst, usual)
}

#[test]
fn blocks_and_single_elements_have_the_same_figures() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut seen = Measured::empty(0);
    for n in 0..600 {
        let often = |random: &mut Random, choices: [u64; 3]| choices[random.below(3) as usize];
        let mix = Mix {
            dtype: DType::FLOATS[n % 4],
            len: if n % 50 == 0 { 2 * CHUNK + 777 } else { random.below(3000) as usize },
            exponents: [0, 3, 20, 1000][random.below(4) as usize],
            ties: random.rarely(2),
            special: often(&mut random, [5, 500, u64::MAX >> 8]),
            differing: often(&mut random, [1, 3, u64::MAX >> 8]),
            undecided: often(&mut random, [20, 1000, u64::MAX >> 8]),
            low: random.rarely(2),
            zero_sign_is_free: random.rarely(3),
        };
        let (got, truth, worst, usual) = mixed(&mut random, &mix);
        for widen in [false, true] {
            let blockwise = measure(&got, &truth, &worst, &usual, widen);
            assert_same(&blockwise, &measure_singly(&got, &truth, [&worst, &usual], widen));
            seen = seen.join(blockwise);
        }
    }
    // Everything was met.
    assert!(
        [seen.beyond, seen.doubtful, seen.unusual, seen.sign_mismatches, seen.excused]
            .iter()
            .all(|&n| n > 100)
    );
    assert!(seen.first_fault.is_some() && !seen.exact);
}

#[test]
fn of_equal_figures_the_first_counts() {
    for len in [1, 255, 256, 257, 2 * CHUNK + 3] {
        for first in [0, 1, 200, 256, CHUNK - 1, CHUNK, CHUNK + 300] {
            let mut got = vec![1.0f32; len];
            got.iter_mut().skip(first).for_each(|g| *g = 1.5);
            let m = against(&got, &vec![1.0; len], &vec![1.0; len], 0.25);
            let index = if first < len { first } else { 0 };
            assert_eq!([m.abs, m.rel, m.ulp, m.ratio].map(|p| p.index), [index; 4]);
            assert_eq!((m.beyond, m.unusual), (len.saturating_sub(first), len.saturating_sub(first)));
        }
    }
}

#[test]
fn a_block_without_anything_special_is_not_left_to_single_elements() {
    let mut random = Random(5);
    for dtype in DType::FLOATS {
        let never = u64::MAX >> 8;
        let mix = Mix {
            dtype,
            len: 1000,
            exponents: 3,
            ties: false,
            special: never,
            differing: 2,
            undecided: never,
            low: false,
            zero_sign_is_free: false,
        };
        let (got, truth, worst, usual) = mixed(&mut random, &mix);
        let format = dtype.float_format().expect("a float dtype");
        let comparison = Comparison::new(&truth, [&worst, &usual], format, true);
        let (got, value) = (got.to_f64_vec(), truth.value.to_f64_vec());
        for start in (0..mix.len).step_by(block::BLOCK) {
            let range = start..(start + block::BLOCK).min(mix.len);
            let mut m = Measured::empty(mix.len);
            let mut figures = block::Figures::new();
            assert!(comparison.block(&mut m, start, &got[range.clone()], &value[range], &mut figures));
        }
    }
}
