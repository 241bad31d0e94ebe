//! Dense tensors of balls, and how they are filled in parallel.

use pulp::{Arch, Simd, WithSimd};
use rayon::prelude::*;
use ulpian_spec::{Enclosure, HostTensor, Storage};

use super::ball::Ball;
use crate::dd::Dd;

/// Elements that one task fills at a time.
const BLOCK: usize = 1 << 14;

/// A dense, row-major tensor of balls.
#[derive(Debug, Clone)]
pub(crate) struct Balls {
    shape: Vec<usize>,
    hi: Vec<f64>,
    /// Empty where zero throughout.
    lo: Vec<f64>,
    /// Empty where zero throughout. Infinite where the element is unknown; hi then holds the NaN or infinity where that is
    /// what it is known to be.
    radius: Vec<f64>,
}

impl Balls {
    /// The exact elements of a tensor. NaN and infinities become unknown.
    pub(crate) fn exact(tensor: &HostTensor) -> Balls {
        let hi = tensor.to_f64_vec();
        let mut lo = Vec::new();
        let mut radius = Vec::new();
        if let Storage::I64(v) = tensor.storage()
            && v.iter().any(|x| x.unsigned_abs() > 1 << 53)
        {
            lo = v.iter().zip(&hi).map(|(&x, &h)| (i128::from(x) - h as i128) as f64).collect();
        }
        if hi.iter().any(|x| !x.is_finite()) {
            radius = hi.iter().map(|x| if x.is_finite() { 0.0 } else { f64::INFINITY }).collect();
        }
        Balls { shape: tensor.shape().to_vec(), hi, lo, radius }
    }

    /// The elements of an enclosure. NaN and infinities become unknown.
    pub(crate) fn of_enclosure(enclosure: &Enclosure) -> Balls {
        // An exact zero's sign is the value's.
        let high = |i: usize| match (enclosure.center[i], enclosure.radius[i]) {
            (0.0, 0.0) => 0f64.copysign(enclosure.value.get_f64(i)),
            (center, _) => center,
        };
        let high: Vec<f64> = (0..enclosure.len()).map(high).collect();
        if enclosure.low.is_empty() && high.iter().all(|x| x.is_finite()) {
            return Balls::of_parts(enclosure.value.shape(), high, enclosure.radius.clone());
        }
        let mut balls = Balls::zeros(enclosure.value.shape());
        for (i, high) in high.into_iter().enumerate() {
            balls.set(i, high, enclosure.low_at(i), enclosure.radius[i]);
        }
        balls
    }

    /// A tensor whose element at row-major position i is `ball(i)`.
    pub(super) fn generate(shape: &[usize], ball: impl Fn(usize) -> Ball + Sync) -> Balls {
        let len = shape.iter().product();
        let mut out =
            Balls { shape: shape.to_vec(), hi: vec![0.0; len], lo: vec![0.0; len], radius: vec![0.0; len] };
        out.par_fill(
            BLOCK,
            #[inline(always)]
            |start, hi, lo, radius| {
                for i in 0..hi.len() {
                    let value = ball(start + i);
                    hi[i] = value.center.hi;
                    lo[i] = value.center.lo;
                    radius[i] = value.radius;
                }
            },
        );
        out
    }

    /// Replaces every element i of a tensor from [`Balls::zeros`] by `ball(i, element)`, in parallel.
    pub(super) fn update(&mut self, ball: impl Fn(usize, Ball) -> Ball + Sync) {
        self.par_fill(
            BLOCK,
            #[inline(always)]
            |start, hi, lo, radius| {
                for i in 0..hi.len() {
                    let old = Ball { center: Dd { hi: hi[i], lo: lo[i] }, radius: radius[i] };
                    let new = ball(start + i, if old.is_known() { old } else { Ball::UNKNOWN });
                    (hi[i], lo[i], radius[i]) = (new.center.hi, new.center.lo, new.radius);
                }
            },
        );
    }

    /// Calls `fill(start, hi, lo, radius)` for consecutive runs of `block` elements, in parallel.
    pub(super) fn par_fill(
        &mut self,
        block: usize,
        fill: impl Fn(usize, &mut [f64], &mut [f64], &mut [f64]) + Sync,
    ) {
        self.hi
            .par_chunks_mut(block.max(1))
            .zip(self.lo.par_chunks_mut(block.max(1)))
            .zip(self.radius.par_chunks_mut(block.max(1)))
            .enumerate()
            .for_each(|(n, ((hi, lo), radius))| {
                Arch::new().dispatch(Fill { fill: &fill, start: n * block, hi, lo, radius });
            });
    }

    /// Of centres and radii; low parts are zero.
    pub(super) fn of_parts(shape: &[usize], hi: Vec<f64>, radius: Vec<f64>) -> Balls {
        Balls { shape: shape.to_vec(), hi, lo: Vec::new(), radius }
    }

    /// Zeros, with all parts present, for [`Balls::par_fill`].
    pub(super) fn zeros(shape: &[usize]) -> Balls {
        let len = shape.iter().product();
        Balls { shape: shape.to_vec(), hi: vec![0.0; len], lo: vec![0.0; len], radius: vec![0.0; len] }
    }

    pub(crate) fn shape(&self) -> &[usize] {
        &self.shape
    }

    pub(crate) fn len(&self) -> usize {
        self.hi.len()
    }

    /// The same elements under another shape of the same size.
    pub(super) fn reshaped(mut self, shape: &[usize]) -> Balls {
        debug_assert_eq!(shape.iter().product::<usize>(), self.len());
        self.shape = shape.to_vec();
        self
    }

    #[inline(always)]
    pub(super) fn get(&self, i: usize) -> Ball {
        let radius = self.radius(i);
        if radius < f64::INFINITY {
            Ball { center: Dd { hi: self.hi[i], lo: self.low(i) }, radius }
        } else {
            Ball::UNKNOWN
        }
    }

    /// Replaces element `i` by the ball of these parts; unknown where one is not finite.
    pub(crate) fn set(&mut self, i: usize, hi: f64, lo: f64, radius: f64) {
        let len = self.len();
        let ball =
            if lo == 0.0 { Ball::exact(hi).widened(radius) } else { Ball::new(Dd::sum(hi, lo), radius) };
        if self.lo.is_empty() {
            self.lo = vec![0.0; len];
        }
        if self.radius.is_empty() {
            self.radius = vec![0.0; len];
        }
        self.hi[i] = if hi.is_finite() { ball.center.hi } else { hi };
        self.lo[i] = ball.center.lo;
        self.radius[i] = ball.radius;
    }

    /// Is element `i` known to be -infinity?
    #[inline(always)]
    pub(super) fn is_minus_infinity(&self, i: usize) -> bool {
        self.hi[i] == f64::NEG_INFINITY
    }

    #[inline(always)]
    pub(crate) fn high(&self, i: usize) -> f64 {
        self.hi[i]
    }

    #[inline(always)]
    pub(crate) fn low(&self, i: usize) -> f64 {
        if self.lo.is_empty() { 0.0 } else { self.lo[i] }
    }

    #[inline(always)]
    pub(crate) fn radius(&self, i: usize) -> f64 {
        if self.radius.is_empty() { 0.0 } else { self.radius[i] }
    }

    /// Centres, low parts and radii of a tensor from [`Balls::zeros`].
    pub(super) fn parts_mut(&mut self) -> (&mut [f64], &mut [f64], &mut [f64]) {
        (&mut self.hi, &mut self.lo, &mut self.radius)
    }

    pub(super) fn highs(&self) -> &[f64] {
        &self.hi
    }

    /// Empty where zero throughout.
    pub(super) fn lows(&self) -> &[f64] {
        &self.lo
    }

    /// Empty where zero throughout.
    pub(super) fn radii(&self) -> &[f64] {
        &self.radius
    }

    /// Centres, low parts and radii; the last two may be empty.
    pub(crate) fn into_parts(self) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
        (self.hi, self.lo, self.radius)
    }
}

/// `f(0), …, f(n - 1)`, computed in parallel.
pub(super) fn lanes<T: Send>(n: usize, f: impl Fn(usize) -> T + Sync) -> Vec<T> {
    (0..n).into_par_iter().map(|i| Arch::new().dispatch(Lane { f: &f, i })).collect()
}

/// A call of [`Balls::par_fill`]'s function. Closures are not passed to `dispatch` directly: the shim that turns a `Fn` into a
/// `FnOnce` is not inlined, and what it calls is compiled without the instruction set that was found.
struct Fill<'a, F> {
    fill: &'a F,
    start: usize,
    hi: &'a mut [f64],
    lo: &'a mut [f64],
    radius: &'a mut [f64],
}

impl<F: Fn(usize, &mut [f64], &mut [f64], &mut [f64])> WithSimd for Fill<'_, F> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        (self.fill)(self.start, self.hi, self.lo, self.radius);
    }
}

/// A call of [`lanes`]' function.
struct Lane<'a, F> {
    f: &'a F,
    i: usize,
}

impl<T, F: Fn(usize) -> T> WithSimd for Lane<'_, F> {
    type Output = T;

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) -> T {
        (self.f)(self.i)
    }
}
