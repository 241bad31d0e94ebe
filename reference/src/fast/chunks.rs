//! The frame of ops over one operand of a narrow dtype: chunks in parallel, each filled, rounded, and settled where open.

use rayon::prelude::*;
use ulpian_spec::TensorType;
use ulpian_spec::dtype::FloatFormat;

use super::decide::{Narrow, decide_inline, decide_positive_inline};
use super::{Candidate, vectorize};
use crate::balls::Ball;
use crate::round::round_interval;

/// Elements that one task takes, about.
pub(super) const CHUNK: usize = 1 << 13;

/// Centre, radius and rounding of a single element.
pub(super) type Settled = (f64, f64, f32);

/// What is known of the results' signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sign {
    Any,
    /// No result is below zero.
    NotNegative,
}

/// Whole rows of this length that make a chunk.
pub(super) fn rows(length: usize) -> usize {
    let length = length.max(1);
    length * (CHUNK / length).max(1)
}

/// Results of the operand's size, in chunks of `chunk` elements. `fill` is given a chunk's first position, its elements, and their
/// centres and radii to fill in; it is compiled for the instruction set that was found, so it must be `#[inline(always)]`. `settle` is
/// asked for what the radii leave open, by what `fill` returned and the place within the chunk.
pub(super) fn evaluate<T: Narrow, S>(
    x: &[f32],
    chunk: usize,
    ty: &TensorType,
    sign: Sign,
    fill: impl Fn(usize, &[f32], &mut [f64], &mut [f64]) -> S + Sync,
    settle: impl Fn(&S, usize, usize, f32) -> Option<Settled> + Sync,
) -> Candidate {
    let (mut center, mut radius, mut value) =
        (vec![0.0; x.len()], vec![0.0; x.len()], vec![T::default(); x.len()]);
    let pending = x
        .par_chunks(chunk)
        .zip(center.par_chunks_mut(chunk))
        .zip(radius.par_chunks_mut(chunk))
        .zip(value.par_chunks_mut(chunk))
        .enumerate()
        .flat_map_iter(|(t, (((x, center), radius), value))| {
            let first = t * chunk;
            let mut pending = Vec::new();
            let state = vectorize(
                #[inline(always)]
                || {
                    let state = fill(first, x, center, radius);
                    match sign {
                        Sign::Any => decide_inline(center, radius, value, 0, &mut pending),
                        Sign::NotNegative => decide_positive_inline(center, radius, value, 0, &mut pending),
                    }
                    state
                },
            );
            pending.retain(|&i| match settle(&state, first, i, x[i]) {
                Some((c, r, v)) => {
                    (center[i], radius[i]) = (c, r);
                    T::narrow(&[v], &mut value[i..=i]);
                    false
                }
                None => true,
            });
            pending.into_iter().map(move |i| first + i)
        })
        .collect();
    Candidate { ty: ty.clone(), center, low: Vec::new(), radius, value: T::into_storage(value), pending }
}

/// The element that a ball pins down, if it does, where the sign of a zero is free.
pub(super) fn settled(format: FloatFormat, ball: Ball) -> Option<Settled> {
    let Ball { center, radius } = ball;
    if !ball.is_known() {
        return None;
    }
    let value = round_interval(format, center.hi, center.lo, radius)?;
    Some((center.hi, (center.lo.abs() + radius) * (1.0 + f64::EPSILON), value as f32))
}
