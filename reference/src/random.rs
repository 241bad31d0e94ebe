//! Random tensors for tests, the same in every run.

use ulpian_spec::HostTensor;

use crate::round::exp2i;

/// Xorshift.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Within (-1, 1), 30 bits.
    pub(crate) fn unit(&mut self) -> f32 {
        ((self.bits() >> 34) as f64 / (1u64 << 29) as f64 - 1.0) as f32
    }

    pub(crate) fn tensor(
        &mut self,
        shape: &[usize],
        mut element: impl FnMut(&mut Random) -> f32,
    ) -> HostTensor {
        let data: Vec<f32> = (0..shape.iter().product()).map(|_| element(self)).collect();
        HostTensor::f32(shape, &data)
    }

    /// Values of one size.
    pub(crate) fn plain(&mut self, shape: &[usize]) -> HostTensor {
        self.tensor(shape, |r| 3.0 * r.unit())
    }

    /// Zeros of both signs, small integers, equal values, sizes from 2^-20 to 2^20.
    pub(crate) fn mixed(&mut self, shape: &[usize]) -> HostTensor {
        self.tensor(shape, |r| match r.bits() % 8 {
            0 => 0.0,
            1 => -0.0,
            2 | 3 => (r.bits() % 7) as f32 - 3.0,
            4 => 0.7,
            _ => r.unit() * exp2i((r.bits() % 41) as i64 - 20) as f32,
        })
    }

    /// Every size that float32 has, its subnormal numbers and the edges of overflow.
    pub(crate) fn wild(&mut self, shape: &[usize]) -> HostTensor {
        self.tensor(shape, |r| {
            let x = f32::from_bits(r.bits() as u32);
            if x.is_finite() { x } else { f32::MAX }
        })
    }

    /// Now and then not finite.
    pub(crate) fn special(&mut self, shape: &[usize]) -> HostTensor {
        self.tensor(shape, |r| match r.bits() % 40 {
            0 => f32::NAN,
            1 => f32::INFINITY,
            2 | 3 => f32::NEG_INFINITY,
            _ => 3.0 * r.unit(),
        })
    }
}
