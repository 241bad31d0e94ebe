//! Random tensors that look like recorded ones.
//!
//! Range (SORT, section III-C): every element is drawn uniformly from [min, max]. Sketch: a zero with the recorded share of zeros,
//! else a value other than zero from the inverse of the piecewise linear distribution function through the recorded quantiles, so that
//! the shape of the distribution and its tails are kept. Either way every element lies within the recorded range: a float64 between two values of a
//! dtype rounds to a value of that dtype between them, since rounding is monotone. A tensor that had no finite element
//! becomes zeros.

use half::{bf16, f16};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};
use ulpian_spec::trace::TensorFeatures;
use ulpian_spec::{DType, HostTensor, Storage, TensorType};

/// Draws for one element that is not to be zero.
const MOST_DRAWS: usize = 64;

/// How elements are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Values {
    /// Uniformly within the recorded range.
    #[default]
    Range,
    /// After the recorded quantiles.
    Sketch,
}

/// Random numbers that depend on nothing but their key, on every machine and in every version.
pub(crate) struct Random(ChaCha8Rng);

impl Random {
    pub(crate) fn new(seed: u64, stream: u64, index: u64) -> Random {
        let mut key = [0; 32];
        for (bytes, part) in key.chunks_exact_mut(8).zip([seed, stream, index]) {
            bytes.copy_from_slice(&part.to_le_bytes());
        }
        Random(ChaCha8Rng::from_seed(key))
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// In [0, 1), a multiple of 2^-53.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Below `n`, which is not 0. The bias is below n / 2^64.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        ((u128::from(self.bits()) * n as u128) >> 64) as usize
    }

    pub(crate) fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    pub(crate) fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

/// A tensor of this type whose elements look like the recorded ones. `nonzero` keeps zeros out as far as the range allows.
pub(crate) fn tensor(
    ty: &TensorType,
    seen: &TensorFeatures,
    values: Values,
    nonzero: bool,
    random: &mut Random,
) -> HostTensor {
    let (low, high) = match (seen.min, seen.max) {
        (Some(low), Some(high)) if low <= high => (low, high),
        _ => (0.0, 0.0),
    };
    let sketch = values == Values::Sketch
        && seen.quantiles.len() >= 2
        && seen.quantiles.windows(2).all(|w| w[0] <= w[1]);
    let draw = |random: &mut Random| -> f64 {
        if !sketch {
            return between(low, high, random.unit());
        }
        if random.chance(seen.zeros) {
            return 0.0_f64.clamp(low, high);
        }
        // The quantiles count zeros too: where the share of zeros is high, most draws are zero.
        let steps = seen.quantiles.len() - 1;
        let mut x = 0.0;
        for _ in 0..MOST_DRAWS {
            let at = random.unit() * steps as f64;
            let step = (at as usize).min(steps - 1);
            x = between(seen.quantiles[step], seen.quantiles[step + 1], at - step as f64);
            if x != 0.0 {
                break;
            }
        }
        x.clamp(low, high)
    };
    let whole = |random: &mut Random| -> i64 {
        let x = if sketch {
            draw(random).round()
        } else {
            // Each of the integers within the range alike.
            let (low, high) = (low.ceil(), high.floor());
            (low + (random.unit() * (high - low + 1.0)).floor()).min(high)
        };
        match x as i64 {
            0 if nonzero && high >= 1.0 => 1,
            0 if nonzero && low <= -1.0 => -1,
            n => n,
        }
    };
    let n = ty.elements().unwrap_or(0);
    macro_rules! each {
        ($element:expr) => {
            (0..n).map(|_| $element).collect()
        };
    }
    let storage = match ty.dtype {
        DType::F64 => Storage::F64(each!(draw(random))),
        DType::F32 => Storage::F32(each!(draw(random) as f32)),
        DType::F16 => Storage::F16(each!(f16::from_f32(draw(random) as f32))),
        DType::BF16 => Storage::BF16(each!(bf16::from_f32(draw(random) as f32))),
        DType::I64 => Storage::I64(each!(whole(random))),
        DType::I32 => Storage::I32(each!(whole(random) as i32)),
        DType::I16 => Storage::I16(each!(whole(random) as i16)),
        DType::I8 => Storage::I8(each!(whole(random) as i8)),
        DType::U8 => Storage::U8(each!(whole(random) as u8)),
        DType::Bool => Storage::Bool(each!(u8::from(whole(random) != 0))),
    };
    HostTensor::new(ty.shape.clone(), storage).expect("as many elements were drawn as the shape has")
}

/// low + u (high - low), without overflow, within both.
fn between(low: f64, high: f64, u: f64) -> f64 {
    (low * (1.0 - u) + high * u).clamp(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(min: f64, max: f64, quantiles: &[f64], zeros: f64) -> TensorFeatures {
        TensorFeatures {
            dtype: "float32".to_owned(),
            shape: vec![4096],
            min: Some(min),
            max: Some(max),
            mean: None,
            std: None,
            zeros,
            nonfinite: 0.0,
            quantiles: quantiles.to_vec(),
            parameter: false,
        }
    }

    #[test]
    fn every_dtype_stays_within_the_recorded_range() {
        let seen = features(0.25, 7.5, &[0.25, 0.5, 0.5, 7.5], 0.1);
        for dtype in DType::ALL {
            for values in [Values::Range, Values::Sketch] {
                let ty = TensorType::new(dtype, [4096]);
                let t = tensor(&ty, &seen, values, false, &mut Random::new(1, 2, 3));
                let inside = |x: f64| match dtype {
                    DType::Bool => x == 0.0 || x == 1.0,
                    _ if values == Values::Sketch && dtype.is_integer() => (0.0..=8.0).contains(&x),
                    _ => (0.25..=7.5).contains(&x),
                };
                assert!(t.to_f64_vec().into_iter().all(inside), "{dtype} {values:?}");
            }
        }
    }

    #[test]
    fn the_sketch_keeps_quantiles_and_zeros() {
        let seen = features(-8.0, 100.0, &[-8.0, -1.0, 0.0, 1.0, 100.0], 0.25);
        let ty = TensorType::new(DType::F64, [100_000]);
        let mut x = tensor(&ty, &seen, Values::Sketch, false, &mut Random::new(0, 0, 0)).to_f64_vec();
        let zeros = x.iter().filter(|x| **x == 0.0).count() as f64 / x.len() as f64;
        assert!((zeros - 0.25).abs() < 0.01, "{zeros}");
        x.retain(|x| *x != 0.0);
        for (i, quantile) in [-1.0, 0.0, 1.0].into_iter().enumerate() {
            let below = x.iter().filter(|x| **x <= quantile).count() as f64 / x.len() as f64;
            assert!((below - 0.25 * (i + 1) as f64).abs() < 0.01, "{quantile}: {below}");
        }
    }

    #[test]
    fn the_widest_range_does_not_overflow() {
        let seen = features(-f64::MAX, f64::MAX, &[], 0.0);
        let ty = TensorType::new(DType::F64, [1000]);
        let t = tensor(&ty, &seen, Values::Range, false, &mut Random::new(0, 0, 1));
        assert!(t.to_f64_vec().iter().all(|x| x.is_finite()));
    }

    #[test]
    fn numbers_depend_on_their_key_alone() {
        let first: Vec<u64> = (0..3).map(|_| Random::new(7, 8, 9).bits()).collect();
        assert_eq!(first[0], first[1]);
        assert_ne!(first[0], Random::new(7, 8, 10).bits());
        assert_ne!(first[0], Random::new(7, 9, 9).bits());
    }
}
