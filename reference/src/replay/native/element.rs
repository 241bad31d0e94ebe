//! What is stored, and what it is computed in (`kernels/cu/ieee.cuh`).

use std::marker::PhantomData;
use std::ops::{Add, Div, Mul, Neg, Sub};

use half::{bf16, f16};
use ulpian_spec::ops::Scalar;
use ulpian_spec::{HostTensor, Storage};

/// float64 or float32, with the operations that the kernels use.
pub(super) trait Real:
    Copy
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    const ZERO: Self;
    const ONE: Self;
    fn fused(self, b: Self, c: Self) -> Self;
    fn toward_zero(self) -> Self;
    fn downward(self) -> Self;
    fn rounded(x: f64) -> Self;
    fn of_integer(n: i64) -> Self;

    /// A Python scalar, rounded once.
    fn of_scalar(s: Scalar) -> Self {
        match s {
            Scalar::Int(n) => Self::of_integer(n),
            other => Self::rounded(other.as_f64()),
        }
    }
}

macro_rules! real {
    ($t:ty) => {
        impl Real for $t {
            const ZERO: Self = 0.0;
            const ONE: Self = 1.0;
            #[inline(always)]
            fn fused(self, b: Self, c: Self) -> Self {
                self.mul_add(b, c)
            }
            #[inline(always)]
            fn toward_zero(self) -> Self {
                self.trunc()
            }
            #[inline(always)]
            fn downward(self) -> Self {
                self.floor()
            }
            fn rounded(x: f64) -> Self {
                x as $t
            }
            fn of_integer(n: i64) -> Self {
                n as $t
            }
        }
    };
}
real!(f64);
real!(f32);

/// A dtype's element.
pub(super) trait Element: Copy + 'static {
    type Computed: Real;
    /// The elements of a tensor of this dtype.
    fn elements(t: &HostTensor) -> Option<&[Self]>;
    fn load(self) -> Self::Computed;
    /// To nearest, ties to even.
    fn store(x: Self::Computed) -> Self;
    fn storage(data: Vec<Self>) -> Storage;
}

macro_rules! element {
    ($t:ty, $variant:ident, $computed:ty, $load:expr, $store:expr) => {
        impl Element for $t {
            type Computed = $computed;
            fn elements(t: &HostTensor) -> Option<&[Self]> {
                match t.storage() {
                    Storage::$variant(v) => Some(v),
                    _ => None,
                }
            }
            #[inline(always)]
            fn load(self) -> $computed {
                $load(self)
            }
            #[inline(always)]
            fn store(x: $computed) -> Self {
                $store(x)
            }
            fn storage(data: Vec<Self>) -> Storage {
                Storage::$variant(data)
            }
        }
    };
}
element!(f64, F64, f64, |x| x, |x| x);
element!(f32, F32, f32, |x| x, |x| x);
element!(f16, F16, f32, f16::to_f32, f16::from_f32);
element!(bf16, BF16, f32, bf16::to_f32, bf16::from_f32);

/// Names an element type, for inference.
pub(super) struct Of<E>(PhantomData<E>);

impl<E> Of<E> {
    pub(super) const NEW: Of<E> = Of(PhantomData);
}

/// The one result of a call: element `i` is `f(i)`, rounded to the dtype.
#[inline(always)]
pub(super) fn result<E: Element>(
    shape: &[usize],
    f: impl Fn(usize) -> E::Computed,
) -> Option<Vec<HostTensor>> {
    let len = ulpian_spec::tensor::elements_of(shape)?;
    let data = (0..len).map(|i| E::store(f(i))).collect();
    Some(vec![HostTensor::new(shape, E::storage(data))?])
}
