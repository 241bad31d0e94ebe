//! Sums in float32 bound those in float64 and are hardly larger; parts of a product are parts of the whole.

use super::*;

/// Reproducible numbers in [0, 1).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn list(&mut self, n: usize, mut f: impl FnMut(&mut Random) -> f64) -> Vec<f64> {
        (0..n).map(|_| f(self)).collect()
    }
}

/// What operands hold: values and, relative to them, errors.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Data {
    Ordinary,
    /// 2^-40 to 2^40, a third of it zeros.
    Wide,
    /// 2^-149 to 2^-120.
    Subnormal,
    /// Products whose sum comes close to 2^126.
    Great,
}

fn values(random: &mut Random, n: usize, data: Data, terms: usize) -> Vec<f64> {
    random.list(n, |r| {
        let (sign, size) = (if r.next() < 0.5 { -1.0 } else { 1.0 }, r.next());
        let magnitude = match data {
            Data::Ordinary => size,
            Data::Wide if r.next() < 0.33 => 0.0,
            Data::Wide => (80.0 * size - 40.0).exp2(),
            Data::Subnormal => (-149.0 + 29.0 * size).exp2(),
            Data::Great => (0.5 + size / 2.0) * (126.0f64.exp2() / terms as f64).sqrt() * 0.9,
        };
        sign * f64::from(magnitude as f32)
    })
}

fn operand<'a>(shape: &'a [usize], values: Vec<f64>, inexact: bool) -> Operand<'a> {
    let error = inexact.then(|| values.iter().map(|x| x.abs() * 2f64.powi(-25) + LEAST_HALF).collect());
    Operand { shape, dtype: DType::F32, values: Cow::Owned(values), error }
}

fn sums<T: Precision>(factors: &Factors<'_, T>, [m, k, n]: [usize; 3]) -> [Vec<f64>; 2] {
    let mut all = [vec![0.0; m * n], vec![0.0; m * n]];
    for (kind, left, erring) in factors.sums() {
        let right = factors.right.storage(erring);
        let to = &mut all[usize::from(kind == Kind::Carried)];
        accumulate(matrix(left, m, k), matrix(right, k, n), to, kind);
    }
    all
}

#[test]
fn float32_sums_bound_float64_sums() {
    let mut random = Random(7);
    for [m, k, n] in [[5, 1, 4], [1, 9, 33], [40, 64, 17], [3, 4096, 5], [2, 5000, 3]] {
        for data in [Data::Ordinary, Data::Wide, Data::Subnormal, Data::Great] {
            for inexact in [[false, false], [true, false], [false, true], [true, true]] {
                let case = format!("{m} x {k} x {n}, {data:?}, {inexact:?}");
                let (left, right) = ([m, k], [k, n]);
                let a = operand(&left, values(&mut random, m * k, data, k), inexact[0]);
                let b = operand(&right, values(&mut random, k * n, data, k), inexact[1]);
                let suits = suits_single(DType::F32, &a, &b, k);
                if data == Data::Great && inexact != [false, false] {
                    // Half an ulp times 2^24 is half the value again.
                    assert!(suits.is_none_or(|exact| exact), "{case}");
                }
                let Some(exact) = suits else {
                    assert_eq!(data, Data::Great, "{case}");
                    continue;
                };
                assert_eq!(exact, data != Data::Subnormal, "{case}");
                let single = sums(&Factors::<f32>::new(&a, &b, exact), [m, k, n]);
                let double = sums(&Factors::<f64>::new(&a, &b, false), [m, k, n]);
                // What underflow may add, in the units of the two sums.
                let lost = if exact { 0.0 } else { 4.0 * k as f64 * LEAST_HALF };
                let lost = [lost, 8.0 * k as f64 * LEAST_HALF / ERROR_UNIT];
                for (figure, (single, double)) in single.iter().zip(&double).enumerate() {
                    for (s, d) in single.iter().zip(double) {
                        assert!(*s >= d * (1.0 - 1e-11), "{case}: {s:e} < {d:e}, figure {figure}");
                        let most = d * (1.0 + 1e-3)
                            + if *d == 0.0 && figure == 0 && exact { 0.0 } else { lost[figure] };
                        assert!(*s <= most, "{case}: {s:e} > {d:e}, figure {figure}");
                    }
                }
            }
        }
    }
}

#[test]
fn sums_of_zeros_are_zero() {
    let (a, b) = (operand(&[2, 3], vec![0.0; 6], false), operand(&[3, 2], vec![1e-3; 6], false));
    let exact = suits_single(DType::F16, &a, &b, 3).expect("small numbers fit");
    assert_eq!(sums(&Factors::<f32>::new(&a, &b, exact), [2, 3, 2])[0], [0.0; 4]);
}

#[test]
fn what_float32_cannot_hold_is_left_to_float64() {
    let of = |x: f64, error: Option<f64>| Operand {
        shape: &[1],
        dtype: DType::F32,
        values: Cow::Owned(vec![x]),
        error: error.map(|e| Cow::Owned(vec![e])),
    };
    let one = of(1.0, None);
    assert_eq!(suits_single(DType::F32, &one, &one, 1), Some(true));
    assert_eq!(suits_single(DType::F64, &one, &one, 1), None);
    assert_eq!(suits_single(DType::I64, &one, &one, 1), None);
    assert_eq!(suits_single(DType::F32, &of(1e-30, None), &of(1e-30, None), 1), Some(false));
    for x in [f64::NAN, f64::INFINITY, -f64::INFINITY, 1e300, f64::from(f32::MAX)] {
        assert_eq!(suits_single(DType::F32, &of(x, None), &one, 1), None, "{x}");
        assert_eq!(suits_single(DType::F32, &one, &of(1.0, Some(x.abs())), 1), None, "{x}");
    }
    assert_eq!(suits_single(DType::F32, &of(1e19, None), &of(1e19, None), 1), Some(true));
    assert_eq!(suits_single(DType::F32, &of(1e19, None), &of(1e19, None), 100), None);
}

#[test]
fn parts_of_a_product_are_parts_of_the_whole() {
    fn check<T: Precision>(kind: Kind) {
        let mut random = Random(3);
        for [m, k, n] in [[33, 70, 50], [197, 300, 129], [1, 600, 70], [70, 5000, 1]] {
            let (x, y) = (random.list(m * k, Random::next), random.list(k * n, Random::next));
            let (x, y) = (T::magnitudes(&x), T::magnitudes(&y));
            for transposed in [false, true] {
                let y = if transposed { matrix(&y, n, k).reversed_axes() } else { matrix(&y, k, n) };
                let by = |area: usize| {
                    let mut all = vec![0.5; m * n];
                    let to = ArrayViewMut2::from_shape((m, n), &mut all).expect("m n elements");
                    in_parts(matrix(&x, m, k), y, to, kind, &|rows, columns, _| rows * columns > area);
                    all
                };
                let whole = by(usize::MAX);
                for area in [m * n / 2, m * n / 3, m * n / 7, 1] {
                    let same = by(area).iter().zip(&whole).all(|(x, y)| x.to_bits() == y.to_bits());
                    assert!(same, "{m} x {k} x {n} in parts of {area}, transposed: {transposed}");
                }
            }
        }
    }
    check::<f64>(Kind::Carried);
    check::<f32>(Kind::Carried);
    check::<f32>(Kind::Magnitudes { exact: true });
}
