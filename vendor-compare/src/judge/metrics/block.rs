//! Many elements at once.
//!
//! A block is passed over without a branch, in vector instructions, with the operations of [`Comparison::element`] in their
//! order: the figures are the same to the bit. No figure is negative, so the greatest of them is the one whose bits are the
//! greatest integer, and the block is searched for its place only where it is greater than that of the elements before. A block
//! with an element that is not finite, an undecided one or a bound that is no number is left to [`Comparison::element`].

use std::ops::Range;

use half::slice::HalfFloatSliceExt;
use ulpian_reference::{round, vectorize};
use ulpian_spec::{HostTensor, Storage};

use super::element::{Comparison, certain, share};
use super::{Measured, Peak};

/// Elements of a block. What is kept of them stays in the first cache.
pub(super) const BLOCK: usize = 256;

/// Bits of a figure that does not count: negative as an integer, as those of no figure are.
const NONE: i64 = i64::MIN;

/// The elements of one block.
struct Elements<'a> {
    got: &'a [f64],
    value: &'a [f64],
    center: &'a [f64],
    low: &'a [f64],
    radius: &'a [f64],
    worst: &'a [f64],
    usual: &'a [f64],
}

/// The figures of each element, as bits.
pub(super) struct Figures {
    error: [i64; BLOCK],
    ulp: [i64; BLOCK],
    rel: [i64; BLOCK],
    ratio: [i64; BLOCK],
}

impl Figures {
    pub(super) fn new() -> Figures {
        Figures { error: [0; BLOCK], ulp: [0; BLOCK], rel: [0; BLOCK], ratio: [0; BLOCK] }
    }
}

/// What the elements of a block make together.
#[derive(Default)]
struct Tally {
    /// Elements that are special.
    special: u64,
    differing: u64,
    /// Zeros of the other sign.
    signs: u64,
    /// Bits of the greatest |truth|.
    greatest: i64,
    error: i64,
    ulp: i64,
    rel: i64,
    ratio: i64,
}

/// Adds `elements` of `got`, of the truth's type.
pub(super) fn of_floats(m: &mut Measured, c: &Comparison, got: &HostTensor, elements: Range<usize>) {
    let (mut got_buffer, mut value_buffer) = ([0.0; BLOCK], [0.0; BLOCK]);
    let mut figures = Figures::new();
    for start in elements.clone().step_by(BLOCK) {
        let range = start..(start + BLOCK).min(elements.end);
        let g = widened(got.storage(), range.clone(), &mut got_buffer);
        let v = widened(c.truth.value.storage(), range.clone(), &mut value_buffer);
        if !c.block(m, range.start, g, v, &mut figures) {
            range.zip(g.iter().zip(v)).for_each(|(i, (&g, &v))| c.element(m, i, g, v));
        }
    }
}

/// Elements `range` of a floating-point tensor as float64, in `buffer` where they are not already.
fn widened<'a>(storage: &'a Storage, range: Range<usize>, buffer: &'a mut [f64; BLOCK]) -> &'a [f64] {
    let to = &mut buffer[..range.len()];
    match storage {
        Storage::F64(v) => return &v[range],
        Storage::F32(v) => vectorize(
            #[inline(always)]
            || to.iter_mut().zip(&v[range.clone()]).for_each(|(to, &x)| *to = f64::from(x)),
        ),
        Storage::F16(v) => v[range].convert_to_f64_slice(to),
        Storage::BF16(v) => vectorize(
            #[inline(always)]
            || {
                let bits = |x: half::bf16| f32::from_bits(u32::from(x.to_bits()) << 16);
                to.iter_mut().zip(&v[range.clone()]).for_each(|(to, &x)| *to = f64::from(bits(x)));
            },
        ),
        _ => to.fill(f64::NAN),
    }
    to
}

impl Comparison<'_> {
    /// Adds the elements from `start` on, `got` beside the correctly rounded `value`; false, and nothing added, where one of them
    /// is special.
    pub(super) fn block(
        &self,
        m: &mut Measured,
        start: usize,
        got: &[f64],
        value: &[f64],
        figures: &mut Figures,
    ) -> bool {
        let truth = self.truth;
        let range = start..start + got.len();
        let undecided = &truth.undecided;
        if undecided.get(undecided.partition_point(|&i| i < start)).is_some_and(|i| range.contains(i)) {
            return false;
        }
        let elements = Elements {
            got,
            value,
            center: &truth.center[range.clone()],
            low: truth.low.get(range.clone()).unwrap_or(&[0.0; BLOCK][..got.len()]),
            radius: &truth.radius[range.clone()],
            worst: &self.worst[range.clone()],
            usual: &self.usual[range],
        };
        let tally = vectorize(
            #[inline(always)]
            || self.pass(&elements, figures),
        );
        if tally.special > 0 {
            return false;
        }
        if tally.differing > 0 {
            let [beyond, doubtful, unusual] = vectorize(
                #[inline(always)]
                || self.count_beyond(&elements, &figures.error),
            );
            m.beyond += beyond as usize;
            m.doubtful += doubtful as usize;
            m.unusual += unusual as usize;
        }
        let signs = if truth.zero_sign_is_free { 0 } else { tally.signs as usize };
        m.class_mismatches += signs;
        m.sign_mismatches += signs;
        m.exact &= signs == 0 && tally.differing == 0;
        m.greatest = m.greatest.max(f64::from_bits(tally.greatest as u64));
        m.abs.raise_to_greatest(tally.error, &figures.error, start);
        m.ulp.raise_to_greatest(tally.ulp, &figures.ulp, start);
        m.rel.raise_to_greatest(tally.rel, &figures.rel, start);
        m.ratio.raise_to_greatest(tally.ratio, &figures.ratio, start);
        true
    }

    /// The figures of each element and what they make together.
    #[inline(always)]
    fn pass(&self, e: &Elements, figures: &mut Figures) -> Tally {
        let n = e.got.len().min(BLOCK);
        let (got, value, center, low, worst) =
            (&e.got[..n], &e.value[..n], &e.center[..n], &e.low[..n], &e.worst[..n]);
        let Figures { error: errors, ulp: ulps, rel: rels, ratio: ratios } = figures;
        let (errors, ulps, rels, ratios) =
            (&mut errors[..n], &mut ulps[..n], &mut rels[..n], &mut ratios[..n]);
        let [u, eta] = self.rounding;
        let format = self.format;
        let mut t = Tally { error: NONE, ulp: NONE, rel: NONE, ratio: NONE, ..Tally::default() };
        for i in 0..n {
            let (g, v, size) = (got[i], value[i], center[i].abs());
            let error = ((g - center[i]) - low[i]).abs();
            let worst = worst[i] + u * size + eta;
            // With a finite centre and error the result is finite.
            let plain =
                (error < f64::INFINITY) & (v.abs() < f64::INFINITY) & (size < f64::INFINITY) & (worst >= 0.0);
            let same = g == v;
            t.special += u64::from(!plain);
            t.differing += u64::from(!same);
            t.signs += u64::from(same & (g.to_bits() != v.to_bits()));
            let (ulp, share) = (error / round::ulp(format, size), share(error, worst));
            let ulp = if same { ulp.min(0.5) } else { ulp.max(0.5) };
            let ratio = if same { share.min(1.0) } else { share };
            errors[i] = bits(error);
            ulps[i] = bits(ulp);
            ratios[i] = bits(ratio);
            rels[i] = if size == 0.0 { NONE } else { bits(error / size) };
            t.greatest = t.greatest.max(bits(size));
            t.error = t.error.max(errors[i]);
            t.ulp = t.ulp.max(ulps[i]);
            t.rel = t.rel.max(rels[i]);
            t.ratio = t.ratio.max(ratios[i]);
        }
        t
    }

    /// The differing elements that are beyond the worst error, may be, and are beyond the usual error.
    #[inline(always)]
    fn count_beyond(&self, e: &Elements, errors: &[i64; BLOCK]) -> [u64; 3] {
        let n = e.got.len().min(BLOCK);
        let (got, value, center) = (&e.got[..n], &e.value[..n], &e.center[..n]);
        let (radius, worst, usual, errors) = (&e.radius[..n], &e.worst[..n], &e.usual[..n], &errors[..n]);
        let [u, eta] = self.rounding;
        let (mut beyond, mut doubtful, mut unusual) = (0, 0, 0);
        for i in 0..n {
            let differs = got[i] != value[i];
            let size = center[i].abs();
            let (worst, usual) = (worst[i] + u * size + eta, usual[i] + u * size + eta);
            let (least, most) = certain(f64::from_bits(errors[i] as u64), radius[i]);
            let (surely, maybe) = (least > worst, most > worst);
            beyond += u64::from(differs & surely);
            doubtful += u64::from(differs & !surely & maybe);
            unusual += u64::from(differs & (least > usual));
        }
        [beyond, doubtful, unusual]
    }
}

impl Peak {
    /// As [`Peak::raise`] with each of `figures`, whose greatest is `greatest`, in order; both as bits, and those that are
    /// negative do not count. The first figure is that of element `start`.
    fn raise_to_greatest(&mut self, greatest: i64, figures: &[i64], start: usize) {
        let value = f64::from_bits(greatest as u64);
        if greatest >= 0 && (self.index == usize::MAX || value > self.value) {
            let at = figures.iter().position(|&figure| figure == greatest);
            let index = start + at.expect("the greatest is one of the figures");
            *self = Peak { value, index };
        }
    }
}

#[inline(always)]
fn bits(x: f64) -> i64 {
    x.to_bits() as i64
}
