//! Vectors of figures, filled part by part by several threads.

use std::array::from_fn;

use rayon::prelude::*;

/// Elements that a task fills.
const CHUNK: usize = 1 << 13;

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
        let [twice] = by_element(2 * CHUNK + 1, |i| [2.0 * i as f64]);
        assert!(twice.iter().enumerate().all(|(i, &t)| t == 2.0 * i as f64));
    }
}
