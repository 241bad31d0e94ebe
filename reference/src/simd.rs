//! Loops compiled for the vector instructions of the CPU at hand.

/// Calls `body`, compiled for the instruction set that was found; it and what it calls must be `#[inline(always)]`.
///
/// A closure that is given to [`pulp::Arch::dispatch`] itself is called through the shim that makes it a `FnOnce`. LLVM does not
/// inline a large shim, and then compiles it for the least instruction set, where `mul_add` is a call.
#[inline(always)]
pub fn vectorize<R>(body: impl FnMut() -> R) -> R {
    pulp::Arch::new().dispatch(Body(body))
}

struct Body<F>(F);

impl<R, F: FnMut() -> R> pulp::WithSimd for Body<F> {
    type Output = R;

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(mut self, _: S) -> R {
        (self.0)()
    }
}
