//! Random data computed in the order that was found, against the executor's bits.

use std::collections::{BTreeMap, HashSet};

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rayon::prelude::*;
use ulpian_reference::order::{Arithmetic, Tree};
use ulpian_reference::replay::{Hypothesis, hypotheses};
use ulpian_reference::round::{exp2i, round_f64};
use ulpian_spec::{Case, DType, HostTensor, OpKind, ValueRef};

use super::subject::{Subject, Term};
use super::{OrderError, RunCase, result};

/// Most result elements that are computed again, and most terms in all of them.
const MOST_COMPARED: usize = 4096;
const MOST_COMPARED_TERMS: usize = 1 << 24;

/// Results that are enough to compare, and most runs to have so many.
const ENOUGH: usize = 256;
const MOST_ROUNDS: usize = 16;

/// Most products of a call that is replayed whole.
const MOST_REPLAYED: usize = 1 << 28;

/// An arithmetic tried in the order that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trial {
    /// The arithmetic.
    pub name: String,
    /// Result elements whose bits it gives.
    pub same: usize,
    /// Result elements compared.
    pub elements: usize,
}

/// The same numbers for the same seed.
pub(super) struct Random(ChaCha8Rng);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(ChaCha8Rng::seed_from_u64(seed))
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        (self.0.next_u64() % n.max(1) as u64) as usize
    }

    /// Within (-1, 1), 53 bits before it is rounded to the dtype.
    fn value(&mut self, dtype: DType) -> f64 {
        let x = (self.0.next_u64() >> 10) as f64 / (1u64 << 53) as f64 - 1.0;
        rounded(dtype, x)
    }

    fn shuffle(&mut self, list: &mut [usize]) {
        for i in (1..list.len()).rev() {
            list.swap(i, self.below(i + 1));
        }
    }
}

fn rounded(dtype: DType, x: f64) -> f64 {
    dtype.float_format().map_or(x, |format| round_f64(format, x))
}

/// Runs the call on random data, computes it in this order but for the columns of the `deviating` results, and compares with
/// replays; with few results several times over.
pub(super) fn on_random_data(
    subject: &Subject,
    tree: Option<&Tree>,
    deviating: &[usize],
    seed: u64,
    run: &mut RunCase<'_>,
) -> Result<(Vec<Trial>, Vec<&'static Hypothesis>), OrderError> {
    let mut random = Random::new(seed);
    let narrow = matches!(subject.dtype, DType::F16 | DType::BF16) && subject.op != OpKind::LayerNorm;
    let others: HashSet<usize> = deviating.iter().filter_map(|&e| subject.column_of(e)).collect();
    let counts = |e: &usize| subject.column_of(*e).is_some_and(|place| !others.contains(&place));
    let whole: Vec<usize> = match narrow {
        true => subject.columns().into_iter().filter(counts).collect(),
        false => (0..subject.elements()).filter(counts).collect(),
    };
    let elements = spread(&whole, subject.terms);
    let mut all: Vec<Trial> = Vec::new();
    let mut same_bits: Option<Vec<&'static Hypothesis>> = None;
    for _ in 0..(ENOUGH / elements.len().max(1)).clamp(1, MOST_ROUNDS) {
        let case = if narrow { cancelling(subject, &mut random)? } else { plain(subject, &mut random)? };
        let seen = result(run, &case)?;
        if let Some(tree) = tree.filter(|_| subject.op != OpKind::LayerNorm) {
            for trial in trials(subject, tree, &case, &elements, &seen) {
                match all.iter_mut().find(|t| t.name == trial.name) {
                    Some(t) => (t.same, t.elements) = (t.same + trial.same, t.elements + trial.elements),
                    None => all.push(trial),
                }
            }
        }
        let replays = replays(subject, &case, &seen);
        match &mut same_bits {
            Some(list) => list.retain(|h| replays.iter().any(|r| r.name == h.name)),
            None => same_bits = Some(replays),
        }
    }
    Ok((all, same_bits.unwrap_or_default()))
}

/// Every element within (-1, 1).
fn plain(subject: &Subject, random: &mut Random) -> Result<Case, OrderError> {
    let drawn = subject.shapes.iter().map(|(name, shape)| {
        let size = shape.iter().product();
        (name.clone(), (0..size).map(|_| random.value(subject.dtype)).collect())
    });
    subject.case_over(&drawn.collect())
}

/// Sums of terms from 2^-8 to 2^8 of which most cancel in pairs, so that a result of 16 bits shows the roundings within the sum.
fn cancelling(subject: &Subject, random: &mut Random) -> Result<Case, OrderError> {
    let (terms, dtype) = (subject.terms, subject.dtype);
    let mut order: Vec<usize> = (0..terms).collect();
    let mut columns = Vec::new();
    for element in subject.columns() {
        random.shuffle(&mut order);
        let (pairs, rest) = order.split_at(terms * 7 / 16 * 2);
        let mut x = vec![0.0; terms];
        for pair in pairs.chunks_exact(2) {
            let size = exp2i(random.below(17) as i64 - 8);
            let value = rounded(dtype, random.value(dtype) * size);
            (x[pair[0]], x[pair[1]]) = (value, -value);
        }
        for &k in rest {
            x[k] = rounded(dtype, random.value(dtype) * exp2i(-8));
        }
        columns.push((element, x));
    }
    subject.case_of(&columns)
}

/// Evenly spread ones of these, the first and the last among them.
fn spread(elements: &[usize], terms: usize) -> Vec<usize> {
    let most = (MOST_COMPARED_TERMS / terms.max(1)).clamp(16, MOST_COMPARED);
    let count = elements.len().min(most);
    (0..count).map(|i| elements[if count > 1 { i * (elements.len() - 1) / (count - 1) } else { 0 }]).collect()
}

/// What happens to a sum of float32 or float64 before it is the result.
struct Finish {
    name: &'static str,
    run: fn(f64, [f64; 2], bool) -> f64,
}

/// A mean as its kernels compute it: in float32, or in float64 for float64.
const MEANS: [Finish; 3] = [
    Finish {
        name: "divided by the count",
        run: |s, [h, w], single| if single { f64::from(s as f32 / (h * w) as f32) } else { s / (h * w) },
    },
    Finish {
        name: "divided by the height, then by the width",
        run: |s, [h, w], single| {
            if single { f64::from(s as f32 / h as f32 / w as f32) } else { s / h / w }
        },
    },
    Finish {
        name: "times the reciprocal of the count",
        run: |s, [h, w], single| {
            if single { f64::from(s as f32 * (1.0 / (h * w) as f32)) } else { s * (1.0 / (h * w)) }
        },
    },
];

fn trials(subject: &Subject, tree: &Tree, case: &Case, elements: &[usize], seen: &HostTensor) -> Vec<Trial> {
    let named = case.tensors.iter().map(|t| (t.name.clone(), t.value.to_f64_vec()));
    let data: BTreeMap<String, Vec<f64>> = named.collect();
    let data = &data;
    let compare = |name: String, value: &(dyn Fn(usize) -> Option<f64> + Sync)| {
        let computed: Option<Vec<bool>> = elements
            .par_iter()
            .map(|&e| value(e).map(|y| y.to_bits() == seen.get_f64(e).to_bits()))
            .collect();
        let same = computed?.iter().filter(|s| **s).count();
        Some(Trial { name, same, elements: elements.len() })
    };
    if subject.op == OpKind::AdaptiveAvgPool2d {
        return means(subject, tree, data, &compare);
    }
    let dtype = subject.dtype;
    let addend = subject.shapes.contains_key("bias").then(|| subject.terms - 1);
    let by = |&arithmetic: &Arithmetic| {
        compare(arithmetic.name().to_owned(), &|element| {
            let (a, b) = operands(subject, data, element);
            arithmetic.dot(tree, dtype, &a, &b, addend)
        })
    };
    Arithmetic::of(dtype).iter().filter_map(by).collect()
}

type Compare<'a> = dyn Fn(String, &(dyn Fn(usize) -> Option<f64> + Sync)) -> Option<Trial> + 'a;

fn means(
    subject: &Subject,
    tree: &Tree,
    data: &BTreeMap<String, Vec<f64>>,
    compare: &Compare<'_>,
) -> Vec<Trial> {
    let (input, dtype) = (&subject.shapes["input"], subject.dtype);
    let result = subject.result_shape();
    let size = |i: usize| (input[input.len() - i] / result[result.len() - i]) as f64;
    let window = [size(2), size(1)];
    let single = dtype != DType::F64;
    let mut trials = Vec::new();
    for &arithmetic in Arithmetic::of(dtype).iter().filter(|a| **a != Arithmetic::Fused) {
        let sums = match arithmetic {
            Arithmetic::Rounded => "own sums",
            other => other.name(),
        };
        for finish in &MEANS {
            let trial = compare(format!("{sums}, {}", finish.name), &|element| {
                let x: Vec<f64> = operands(subject, data, element).0;
                let y = (finish.run)(arithmetic.sum(tree, dtype, &x)?, window, single);
                Some(rounded(dtype, y))
            });
            trials.extend(trial);
        }
    }
    trials
}

/// The factors of an element's terms; a bias has the factor 1.
fn operands(subject: &Subject, data: &BTreeMap<String, Vec<f64>>, element: usize) -> (Vec<f64>, Vec<f64>) {
    let (fixed, varying) = subject.roles();
    let terms = subject.sum(element).unwrap_or_default();
    terms
        .into_iter()
        .map(|term| match term {
            Term::Product(a, b) => (data[fixed.unwrap_or(varying)][a], data[varying][b]),
            Term::Element(a) => (data[varying][a], 1.0),
            Term::Bias(a) => (data["bias"][a], 1.0),
        })
        .unzip()
}

/// The replays that return these very bits.
fn replays(subject: &Subject, case: &Case, seen: &HostTensor) -> Vec<&'static Hypothesis> {
    if subject.elements().saturating_mul(subject.terms) > MOST_REPLAYED {
        return Vec::new();
    }
    let tensors = case.nodes[0].op.clone().try_map(|_, at| match at {
        ValueRef::Input(i) => Ok(&*case.tensors[i].value),
        ValueRef::Node { .. } => Err(()),
    });
    let Ok(op) = tensors else { return Vec::new() };
    hypotheses().iter().filter(|h| h.explains(&op, &[seen]) == Some(true)).collect()
}
