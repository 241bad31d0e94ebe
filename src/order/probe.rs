//! Counts of surviving ones, from an executor's results.
//!
//! | dtype | one | M | ones at a time | why |
//! |---|---|---|---|---|
//! | float64 | 1 | 2^900 | all | counts are exact below 2^53 |
//! | float32 | 1 | 2^100 | all | M + n = M in float64 accumulators too; counts are exact below 2^24 |
//! | bfloat16 | 1 | 2^100 | 128 | a result counts exactly up to 2^8 |
//! | float16 | 2^-24 | 2^15 | 1024 | M + n = M in float32 accumulators up to 2^14 terms; a result counts exactly up to 2^11 |
//!
//! What is not counted at a time is 0 then, and a term of its own nevertheless.
//! adaptive_avg_pool2d returns the mean, from which the count is taken after a few roundings.
//! layer_norm: with M at i and -M at j and ones elsewhere y_i = (M - mean) rstd and y_p = (1 - mean) rstd for any other p, so that
//! mean = 1 - (M - mean) y_p / y_i, and M - mean = M.

use std::collections::BTreeSet;

use ulpian_reference::order::{RecoverError, Tree, recover};
use ulpian_reference::round::exp2i;
use ulpian_spec::{DType, HostTensor, OpKind};

use super::compare::Random;
use super::subject::Subject;
use super::{OrderError, RunCase, result};

/// Why a probe gave no count.
#[derive(Debug)]
pub(super) enum Stop {
    /// The executor, or the call.
    Error(OrderError),
    /// The results are no counts.
    Invalid(String),
}

impl From<OrderError> for Stop {
    fn from(error: OrderError) -> Stop {
        Stop::Error(error)
    }
}

/// Most calls that check a tree against pairs which it was not made from, and most terms in all of them but for the least four.
const CHECKS: usize = 16;
const MOST_CHECKED: usize = 1 << 14;

/// Most terms of a sum that is read in one column alone, which takes a call a pair.
const MOST_ALONE: usize = 1024;

/// An order that was found.
pub(super) struct Found {
    pub(super) tree: Tree,
    /// Pairs of terms that were read.
    pub(super) pairs: usize,
    /// Columns, by their first result element, that are added in another order.
    pub(super) deviating: BTreeSet<usize>,
}

/// Reads counts.
pub(super) struct Prober<'a, 'r> {
    subject: &'a Subject,
    run: &'a mut RunCase<'r>,
    one: f64,
    m: f64,
    at_a_time: usize,
    /// Result elements that can have terms of their own.
    columns: Vec<usize>,
    /// The column of each element of the varying operand that begins one.
    column_at: Vec<usize>,
}

impl<'a, 'r> Prober<'a, 'r> {
    pub(super) fn new(subject: &'a Subject, run: &'a mut RunCase<'r>) -> Prober<'a, 'r> {
        let (one, m, at_a_time) = match subject.dtype {
            // The squares of M must not overflow.
            DType::F64 if subject.op == OpKind::LayerNorm => (0, 80, usize::MAX),
            DType::F64 => (0, 900, usize::MAX),
            DType::BF16 => (0, 100, 128),
            DType::F16 => (-24, 15, 1024),
            _ if subject.op == OpKind::LayerNorm => (0, 50, usize::MAX),
            _ => (0, 100, usize::MAX),
        };
        // A mean of few ones is rounded by less than half of one.
        let narrow = matches!(subject.dtype, DType::F16 | DType::BF16);
        let at_a_time = if narrow && subject.op == OpKind::AdaptiveAvgPool2d { 64 } else { at_a_time };
        let columns = subject.columns();
        let mut column_at = vec![usize::MAX; subject.varying_size()];
        for (c, &element) in columns.iter().enumerate() {
            if let Some(place) = subject.column_of(element) {
                column_at[place] = c;
            }
        }
        Prober { subject, run, one: exp2i(one), m: exp2i(m), at_a_time, columns, column_at }
    }

    /// The terms that no sum of ones counts. `None` where the op hides its sum.
    pub(super) fn coverage(&mut self) -> Result<Option<Vec<usize>>, Stop> {
        let (terms, one) = (self.subject.terms, self.one);
        if self.subject.op == OpKind::LayerNorm {
            return Ok(None);
        }
        for mask in masks(terms, self.at_a_time) {
            let ones: Vec<f64> = (0..terms).map(|k| if mask.contains(&k) { one } else { 0.0 }).collect();
            let all = vec![ones; self.columns.len()];
            if self.counts(&all)?.iter().any(|&n| n != mask.len()) {
                return self.one_by_one().map(Some);
            }
        }
        Ok(Some(Vec::new()))
    }

    /// One-hot inputs: the terms that do not arrive in some sum.
    fn one_by_one(&mut self) -> Result<Vec<usize>, Stop> {
        let terms = self.subject.terms;
        let mut missing = Vec::new();
        let all: Vec<usize> = (0..terms).collect();
        for chunk in all.chunks(self.columns.len()) {
            let hot = |&k: &usize| {
                let mut x = vec![0.0; terms];
                x[k] = self.one;
                x
            };
            let counts = self.counts(&chunk.iter().map(hot).collect::<Vec<_>>())?;
            missing.extend(chunk.iter().zip(counts).filter(|(_, n)| *n != 1).map(|(&k, _)| k));
        }
        if missing.is_empty() {
            return Err(Stop::Invalid(
                "ones do not add up to their number, though each alone arrives".to_owned(),
            ));
        }
        Ok(missing)
    }

    /// The order that most columns share; where they share none, that of the first.
    pub(super) fn tree(&mut self, seed: u64) -> Result<Found, Stop> {
        let shared = self.shared().and_then(|(tree, pairs)| self.checked(tree, pairs, seed));
        let alone = self.columns.len() > 1
            && self.subject.terms <= MOST_ALONE
            && self.subject.op != OpKind::LayerNorm;
        match shared {
            Ok(found) if !alone || 2 * found.deviating.len() <= self.columns.len() => Ok(found),
            Err(Stop::Invalid(_)) | Ok(_) if alone => {
                let (tree, pairs) = self.of_first_column()?;
                self.checked(tree, pairs, seed)
            }
            other => other,
        }
    }

    /// The order from pairs that are each read in one column or another, and how many these are.
    fn shared(&mut self) -> Result<(Tree, usize), Stop> {
        let terms = self.subject.terms;
        if let Some(table) = self.table()? {
            return Ok((self.of_table(&table)?, terms * (terms - 1)));
        }
        self.rows()
    }

    fn rows(&mut self) -> Result<(Tree, usize), Stop> {
        let (terms, mut pairs) = (self.subject.terms, 0);
        let tree = found(recover(terms, |i, js| {
            pairs += js.len();
            self.sizes(i, js)
        }))?;
        Ok((tree, pairs))
    }

    /// The same from one column, one pair at a time.
    fn of_first_column(&mut self) -> Result<(Tree, usize), Stop> {
        let rest = self.columns.split_off(1);
        let tree = self.rows();
        self.columns.extend(rest);
        tree
    }

    /// Reads more pairs in every column, and says which of them show another order.
    fn checked(&mut self, tree: Tree, mut pairs: usize, seed: u64) -> Result<Found, Stop> {
        let terms = self.subject.terms;
        let mut random = Random::new(seed);
        let mut deviating = BTreeSet::new();
        let checks = if terms > 2 { (MOST_CHECKED / terms).clamp(4, CHECKS) } else { 0 };
        for _ in 0..checks {
            let (i, start) = (random.below(terms), random.below(terms));
            let js: Vec<usize> =
                (0..self.columns.len()).map(|d| (start + d) % terms).filter(|&j| j != i).collect();
            let (expected, got) = (tree.joint_sizes(i, &js), self.sizes(i, &js)?);
            pairs += js.len();
            let other = (0..js.len()).filter(|&at| expected[at] != got[at]);
            deviating.extend(other.map(|column| self.columns[column]));
        }
        Ok(Found { tree, pairs, deviating })
    }

    fn of_table(&self, table: &[u32]) -> Result<Tree, Stop> {
        let terms = self.subject.terms;
        let tree = found(recover(terms, |i, js| {
            Ok::<_, Stop>(js.iter().map(|&j| table[i * terms + j] as usize).collect())
        }))?;
        let others: Vec<usize> = (0..terms).collect();
        for i in 0..terms {
            let expected = tree.joint_sizes(i, &others);
            let differs = |&j: &usize| j != i && expected[j] != table[i * terms + j] as usize;
            if let Some(j) = (0..terms).find(differs) {
                return Err(Stop::Invalid(format!(
                    "terms {i} and {j} are not added as the other pairs say: the results do not share one order"
                )));
            }
        }
        Ok(tree)
    }

    /// The sizes of all pairs from one product of matrices, where the call is one.
    fn table(&mut self) -> Result<Option<Vec<u32>>, Stop> {
        let terms = self.subject.terms;
        if !matches!(self.subject.dtype, DType::F32 | DType::F64) || terms < 2 {
            return Ok(None);
        }
        let Some(case) = self.subject.all_pairs(self.m) else { return Ok(None) };
        let y = result(self.run, &case?)?;
        let width = y.shape().last().copied().unwrap_or(0);
        let mut table = vec![0u32; terms * terms];
        for i in 0..terms {
            for j in (0..terms).filter(|&j| j != i) {
                let survivors = whole(y.get_f64(i * width + j), terms - 2)?;
                table[i * terms + j] = (terms - survivors) as u32;
            }
        }
        Ok(Some(table))
    }

    /// How many terms the smallest partial sum has that holds i and each j.
    fn sizes(&mut self, i: usize, js: &[usize]) -> Result<Vec<usize>, Stop> {
        let terms = self.subject.terms;
        let mut sizes = vec![terms; js.len()];
        let width = self.columns.len();
        for (chunk, sizes) in js.chunks(width).zip(sizes.chunks_mut(width)) {
            if self.subject.op == OpKind::LayerNorm {
                for (size, survivors) in sizes.iter_mut().zip(self.survivors_of_mean(i, chunk)?) {
                    *size -= survivors;
                }
                continue;
            }
            for mask in masks(terms, self.at_a_time) {
                let columns: Vec<Vec<f64>> = chunk
                    .iter()
                    .map(|&j| {
                        let mut x: Vec<f64> =
                            (0..terms).map(|k| if mask.contains(&k) { self.one } else { 0.0 }).collect();
                        (x[i], x[j]) = (self.m, -self.m);
                        x
                    })
                    .collect();
                for (size, survivors) in sizes.iter_mut().zip(self.counts(&columns)?) {
                    *size = size.checked_sub(survivors).ok_or_else(|| {
                        Stop::Invalid(format!("more than {terms} ones survive at term {i}"))
                    })?;
                }
            }
        }
        Ok(sizes)
    }

    /// The number of ones in each sum, one sum a column.
    fn counts(&mut self, columns: &[Vec<f64>]) -> Result<Vec<usize>, Stop> {
        let terms = self.subject.terms;
        let named: Vec<(usize, Vec<f64>)> =
            self.columns.iter().copied().zip(columns.iter().cloned()).collect();
        let y = result(self.run, &self.subject.case_of(&named)?)?;
        let scale = match self.subject.op {
            OpKind::AdaptiveAvgPool2d => terms as f64 / self.one,
            _ => 1.0 / self.one,
        };
        let mut counts: Vec<Option<f64>> = vec![None; columns.len()];
        for element in 0..y.len() {
            let place = self.subject.column_of(element);
            let Some(c) = place.map(|p| self.column_at[p]).filter(|&c| c < columns.len()) else { continue };
            let value = y.get_f64(element) * scale;
            match counts[c] {
                None => counts[c] = Some(value),
                Some(first) if first.to_bits() == value.to_bits() => {}
                Some(first) => {
                    return Err(Stop::Invalid(format!(
                        "results with the same terms differ ({first} and {value} ones): they are not added in one order"
                    )));
                }
            }
        }
        counts.into_iter().map(|value| whole(value.unwrap_or(f64::NAN), terms)).collect()
    }

    /// Ones that survive in the mean of a layer_norm with M at i and -M at each j.
    fn survivors_of_mean(&mut self, i: usize, js: &[usize]) -> Result<Vec<usize>, Stop> {
        let terms = self.subject.terms;
        let column = |&j: &usize| {
            let mut x = vec![1.0; terms];
            (x[i], x[j]) = (self.m, -self.m);
            x
        };
        let named: Vec<(usize, Vec<f64>)> = self.columns.iter().copied().zip(js.iter().map(column)).collect();
        let y: std::sync::Arc<HostTensor> = result(self.run, &self.subject.case_of(&named)?)?;
        let read = |(&j, &(row, _)): (&usize, &(usize, Vec<f64>))| {
            let Some(p) = (0..terms).find(|p| *p != i && *p != j) else { return Ok(0) };
            let share = self.m * y.get_f64(row + p) / y.get_f64(row + i);
            whole(terms as f64 * (1.0 - share), terms - 2)
        };
        js.iter().zip(&named).map(read).collect()
    }
}

/// A number of ones. What is further than a quarter from one is none.
fn whole(value: f64, most: usize) -> Result<usize, Stop> {
    let count = value.round();
    if (value - count).abs() <= 0.25 && count >= 0.0 && count <= most as f64 {
        return Ok(count as usize);
    }
    Err(Stop::Invalid(format!(
        "a sum of ones with M and -M among them comes to {value}, which is no number of ones: this is no sum in a fixed order, \
         or M does not cancel"
    )))
}

fn found(tree: Result<Tree, RecoverError<Stop>>) -> Result<Tree, Stop> {
    tree.map_err(|error| match error {
        RecoverError::Probe(stop) => stop,
        other => Stop::Invalid(match other {
            RecoverError::Inconsistent { term, why } => {
                format!("the counts found for term {term} are those of no order of summation ({why})")
            }
            RecoverError::Probe(_) => String::new(),
        }),
    })
}

/// Terms in runs of at most `most`.
fn masks(terms: usize, most: usize) -> Vec<std::ops::Range<usize>> {
    let step = most.clamp(1, terms.max(1));
    (0..terms).step_by(step).map(|start| start..(start + step).min(terms)).collect()
}
