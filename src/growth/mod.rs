//! How errors grow along chains: the figures of many verdicts by depth and op.
//!
//! The depth of a node is the number of ops on the longest way to it from the case's own tensors, itself included. Growth is an
//! accumulated error over the largest one among the results that the node was computed from.

mod repeat;

use std::collections::BTreeMap;

use ulpian_spec::verdict::{CaseVerdict, ExecutorAtNode};
use ulpian_spec::{Case, ValueRef};

use crate::records::{BENCH_FORMAT, BenchLine, Spread};

pub use repeat::{RepeatError, repeat};

/// Collects figures.
#[derive(Debug, Default)]
pub struct Growth {
    groups: BTreeMap<(String, usize, String), Group>,
}

#[derive(Debug, Default)]
struct Group {
    results: usize,
    class_mismatches: usize,
    local_ulp: Vec<f64>,
    bound_ratio: Vec<f64>,
    accumulated_ulp: Vec<f64>,
    accumulated_rel: Vec<f64>,
    growth: Vec<f64>,
    condition: Vec<f64>,
}

impl Growth {
    /// Adds the results that the verdict on a case has figures for; returns how many these are.
    pub fn add(&mut self, case: &Case, verdict: &CaseVerdict) -> usize {
        let depths = depths(case);
        let places: BTreeMap<ValueRef, usize> = case.results().enumerate().map(|(p, at)| (at, p)).collect();
        let mut added = 0;
        for (report, at) in verdict.nodes.iter().zip(case.results()) {
            let ValueRef::Node { node, .. } = at else { continue };
            for (party, row) in report.executors.iter().enumerate().filter(|(_, e)| e.status == "ok") {
                let key = (row.executor.clone(), depths[node], report.op.clone());
                let before = case.nodes[node].op.operands().into_iter().filter_map(|(_, at)| {
                    let report = &verdict.nodes[*places.get(at)?];
                    report.executors[party].accumulated.as_ref().map(|d| d.max_ulp)
                });
                self.groups.entry(key).or_default().add(row, before.reduce(f64::max));
                added += 1;
            }
        }
        added
    }

    /// A line for each executor, depth and op, in that order.
    pub fn lines(&self) -> Vec<BenchLine> {
        let line = |((executor, depth, op), g): (&(String, usize, String), &Group)| BenchLine {
            format: BENCH_FORMAT.to_owned(),
            executor: executor.clone(),
            depth: *depth,
            op: op.clone(),
            results: g.results,
            class_mismatches: g.class_mismatches,
            local_ulp: spread(&g.local_ulp),
            bound_ratio: spread(&g.bound_ratio),
            accumulated_ulp: spread(&g.accumulated_ulp),
            accumulated_rel: spread(&g.accumulated_rel),
            growth: spread(&g.growth),
            condition: spread(&g.condition),
        };
        self.groups.iter().map(line).collect()
    }
}

impl Group {
    fn add(&mut self, row: &ExecutorAtNode, before: Option<f64>) {
        self.results += 1;
        self.class_mismatches += row.class_mismatches.unwrap_or(0);
        if let Some(local) = &row.local {
            self.local_ulp.push(local.max_ulp);
            self.bound_ratio.push(local.bound_ratio);
        }
        if let Some(accumulated) = &row.accumulated {
            self.accumulated_ulp.push(accumulated.max_ulp);
            self.accumulated_rel.push(accumulated.max_rel);
            if let Some(before) = before.filter(|&b| b > 0.0) {
                self.growth.push(accumulated.max_ulp / before);
            }
        }
        self.condition.extend(row.condition);
    }
}

/// The worst and the median; none of no values. Of an even number the median is the lower middle one.
fn spread(values: &[f64]) -> Option<Spread> {
    let mut sorted: Vec<f64> = values.iter().copied().filter(|x| !x.is_nan()).collect();
    sorted.sort_by(f64::total_cmp);
    Some(Spread { worst: *sorted.last()?, median: sorted[(sorted.len() - 1) / 2] })
}

/// The depth of each node.
pub fn depths(case: &Case) -> Vec<usize> {
    let mut depths = Vec::with_capacity(case.nodes.len());
    for node in &case.nodes {
        let before = node.op.operands().into_iter().filter_map(|(_, at)| match *at {
            ValueRef::Node { node, .. } => Some(depths[node]),
            ValueRef::Input(_) => None,
        });
        let deepest = before.max().unwrap_or(0);
        depths.push(deepest + 1);
    }
    depths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_the_worst_and_the_middle() {
        assert_eq!(spread(&[]), None);
        assert_eq!(spread(&[f64::NAN]), None);
        assert_eq!(spread(&[3.0, 1.0, 2.0]), Some(Spread { worst: 3.0, median: 2.0 }));
        assert_eq!(spread(&[1.0, f64::INFINITY]), Some(Spread { worst: f64::INFINITY, median: 1.0 }));
    }

    #[test]
    fn the_longest_way_counts() {
        let text = r#"{"format": "ulpian-case/1", "name": "ways", "nodes": [
            {"id": "a", "op": "relu", "args": {"input": {"dtype": "float32", "shape": [1], "data": [1]}}},
            {"id": "b", "op": "relu", "args": {"input": "%a"}},
            {"id": "c", "op": "add", "args": {"input": "%a", "other": "%b"}},
            {"id": "d", "op": "mul", "args": {"input": {"dtype": "float32", "shape": [1], "data": [1]}, "other": "%a"}}]}"#;
        let case = Case::from_json(text, "ways.json", ulpian_spec::case::Limits::default()).unwrap();
        assert_eq!(depths(&case), [1, 2, 3, 2]);
    }
}
