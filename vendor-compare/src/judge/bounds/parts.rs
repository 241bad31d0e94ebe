//! Vectors of figures, filled part by part by several threads.

use std::array::from_fn;

use rayon::prelude::*;
use ulpian_reference::vectorize;

/// Elements that a task fills.
const CHUNK: usize = 1 << 15;

/// N vectors of `len` elements. `fill` is given the number of a run of `run` elements, the position of a part of it, and that part
/// of every vector.
pub(super) fn by_run<const N: usize>(
    len: usize,
    run: usize,
    fill: impl Fn(usize, usize, [&mut [f64]; N]) + Sync,
) -> [Vec<f64>; N] {
    let run = run.max(1);
    let mut all: [Vec<f64>; N] = from_fn(|_| vec![0.0; len]);
    let mut chunks = all.each_mut().map(|v| v.chunks_mut(CHUNK));
    let tasks: Vec<[&mut [f64]; N]> = (0..len.div_ceil(CHUNK))
        .map(|_| chunks.each_mut().map(|c| c.next().expect("the vectors have equal lengths")))
        .collect();
    tasks.into_par_iter().enumerate().for_each(|(task, mut rest)| {
        let (mut at, end) = (task * CHUNK, len.min((task + 1) * CHUNK));
        while at < end {
            let (number, within) = (at / run, at % run);
            let count = (run - within).min(end - at);
            let part = rest.each_mut().map(|slice| {
                let (part, after) = std::mem::take(slice).split_at_mut(count);
                *slice = after;
                part
            });
            fill(number, at, part);
            at += count;
        }
    });
    all
}

/// N vectors of `len` elements, element by element.
pub(super) fn by_element<const N: usize>(
    len: usize,
    figures: impl Fn(usize) -> [f64; N] + Sync,
) -> [Vec<f64>; N] {
    by_run(len, usize::MAX, |_, at, mut part| {
        for k in 0..part.first().map_or(0, |p| p.len()) {
            put(&mut part, k, figures(at + k));
        }
    })
}

/// What a figure depends on.
#[derive(Clone, Copy)]
pub(super) enum From<'a> {
    /// An element for each.
    Each(&'a [f64]),
    /// The same for all.
    All(f64),
}

impl<'a> From<'a> {
    /// Zero where there is nothing.
    pub(super) fn or_zero(elements: Option<&'a [f64]>) -> From<'a> {
        elements.map_or(From::All(0.0), From::Each)
    }

    /// `count` elements from position `at` on.
    pub(super) fn part(self, at: usize, count: usize) -> From<'a> {
        match self {
            From::Each(all) => From::Each(&all[at..at + count]),
            From::All(_) => self,
        }
    }
}

/// Elements that are computed at a time by [`each`].
const BLOCK: usize = 64;

/// Fills slices of one length: `figures` of the elements of each position. Runs in vector instructions where `figures`, which must be
/// `#[inline(always)]`, has no branch that they lack.
pub(super) fn each<const I: usize, const N: usize>(
    from: [From<'_>; I],
    mut to: [&mut [f64]; N],
    figures: impl Fn([f64; I]) -> [f64; N],
) {
    vectorize(
        #[inline(always)]
        || {
            let len = to.first().map_or(0, |slice| slice.len());
            let mut inputs = [[0.0; BLOCK]; I];
            let mut outputs = [[0.0; BLOCK]; N];
            for (input, from) in inputs.iter_mut().zip(from) {
                if let From::All(x) = from {
                    input.fill(x);
                }
            }
            for start in (0..len).step_by(BLOCK) {
                let count = BLOCK.min(len - start);
                for (input, from) in inputs.iter_mut().zip(from) {
                    if let From::Each(all) = from {
                        input[..count].copy_from_slice(&all[start..start + count]);
                    }
                }
                // Beyond `count` the elements of an earlier block are computed once more, and left.
                for k in 0..BLOCK {
                    let all = figures(from_fn(|i| inputs[i][k]));
                    for (output, figure) in outputs.iter_mut().zip(all) {
                        output[k] = figure;
                    }
                }
                for (slice, output) in to.iter_mut().zip(&outputs) {
                    slice[start..start + count].copy_from_slice(&output[..count]);
                }
            }
        },
    );
}

/// Writes one number to position `k` of every slice.
#[inline(always)]
pub(super) fn put<const N: usize>(part: &mut [&mut [f64]; N], k: usize, figures: [f64; N]) {
    for (slice, figure) in part.iter_mut().zip(figures) {
        slice[k] = figure;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_filled_once_and_knows_its_run() {
        for (len, run) in [(0, 3), (7, 3), (3 * CHUNK + 5, 1000), (2 * CHUNK, 5 * CHUNK), (4, 0)] {
            let [position, number] = by_run(len, run, |number, at, [a, b]| {
                for (k, (a, b)) in a.iter_mut().zip(b).enumerate() {
                    (*a, *b) = (*a + (at + k) as f64, number as f64);
                }
            });
            for i in 0..len {
                assert_eq!((position[i], number[i]), (i as f64, (i / run.max(1)) as f64), "{len} {run}");
            }
        }
        let all: Vec<f64> = (0..1000).map(f64::from).collect();
        for len in [0, 1, 63, 64, 65, 1000] {
            let (mut sums, mut products) = (vec![0.0; len], vec![0.0; len]);
            let from = [From::Each(&all).part(0, len), From::All(3.0), From::or_zero(None)];
            each(from, [&mut sums, &mut products], |[x, y, z]| [x + y + z, x * y + z]);
            assert!((0..len).all(|i| (sums[i], products[i]) == (all[i] + 3.0, all[i] * 3.0)));
        }
        let [twice] = by_element(2 * CHUNK + 1, |i| [2.0 * i as f64]);
        assert!(twice.iter().enumerate().all(|(i, &t)| t == 2.0 * i as f64));
    }
}
