//! The search tree: each pattern grows by every step that keeps its code the least and its support high enough.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use super::candidates::{Counters, candidates};
use super::code::{Pattern, Step};
use super::host::Host;
use super::minimality::{Ways, is_minimal};
use super::projection::{Growth, Projection};
use super::types::Types;
use super::{Found, Options, Progress};
use crate::graph::GraphSet;

/// Patterns with at most so many edges are grown by all threads together, larger ones by one thread each: this bounds how much is
/// under way at once.
const SHARED_EDGES: usize = 3;
/// Graphs made ready, and what is looked for in them.
#[derive(Debug)]
pub(super) struct Miner {
    types: Types,
    hosts: Vec<Host>,
    options: Options,
}

/// Memory of one thread.
struct Scratch {
    counters: Counters,
    ways: Ways,
}

impl Miner {
    /// Makes the graphs ready.
    pub(super) fn new(set: &GraphSet, options: &Options) -> Miner {
        let directed = options.directed;
        let types = Types::frequent(&set.graphs, directed, options.support);
        let hosts = set.graphs.par_iter().map(|graph| Host::new(graph, &types, directed)).collect();
        Miner { types, hosts, options: options.clone() }
    }

    /// Every pattern, in the order of the search. `report` is called from several threads.
    pub(super) fn search(&self, report: &(dyn Fn(Progress) + Sync)) -> Vec<Found> {
        let first: Vec<Step> = self.first_steps();
        let (done, patterns) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let grow = |scratch: &mut Scratch, step: &Step| {
            let mut pattern = Pattern::new(self.types.sight(step.t).label);
            pattern.push(*step, &self.types);
            let growth = self.growth();
            let projection = Projection::of_first(&pattern, growth.hosts, growth.types, growth.cap);
            let mut found = Vec::new();
            if projection.entries.len() >= self.options.support {
                self.grow(&mut pattern, &projection, scratch, &mut found);
            }
            patterns.fetch_add(found.len(), Ordering::Relaxed);
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            report(Progress { done, total: first.len(), patterns: patterns.load(Ordering::Relaxed) });
            found
        };
        first.par_iter().map_init(|| self.scratch(), grow).flatten_iter().collect()
    }

    fn growth(&self) -> Growth<'_> {
        let cap = (self.options.most_kept / self.hosts.len().max(1)).clamp(1, 4096);
        Growth { hosts: &self.hosts, types: &self.types, cap, support: self.options.support }
    }

    fn scratch(&self) -> Scratch {
        Scratch { counters: Counters::default(), ways: Ways::default() }
    }

    /// Codes of one step that are least.
    fn first_steps(&self) -> Vec<Step> {
        let all = 0..self.types.len() as u32;
        let loops = all.clone().filter(|&t| {
            let sight = self.types.sight(t);
            sight.label == sight.other && !sight.enters()
        });
        let edges = all.filter(|&t| t <= self.types.reverse(t));
        loops.map(|t| Step { from: 0, to: 0, t }).chain(edges.map(|t| Step { from: 0, to: 1, t })).collect()
    }

    fn grow(&self, pattern: &mut Pattern, here: &Projection, scratch: &mut Scratch, found: &mut Vec<Found>) {
        let (least, most) = (*self.options.nodes.start(), *self.options.nodes.end());
        if pattern.len() >= least {
            let graphs = here.entries.iter().map(|e| e.graph).collect();
            found.push(pattern.found(&self.types, graphs));
        }
        let limits = (self.options.support, most);
        let steps = candidates(pattern, here, (&self.hosts, &self.types), limits, &mut scratch.counters);
        if pattern.steps.len() <= SHARED_EDGES && steps.len() > 1 {
            let grown = steps.par_iter().map_init(
                || (self.scratch(), pattern.clone()),
                |(scratch, pattern), &step| {
                    let mut found = Vec::new();
                    self.step(pattern, step, here, scratch, &mut found);
                    found
                },
            );
            found.extend(grown.collect::<Vec<_>>().into_iter().flatten());
        } else {
            for step in steps {
                self.step(pattern, step, here, scratch, found);
            }
        }
    }

    fn step(
        &self,
        pattern: &mut Pattern,
        step: Step,
        here: &Projection,
        scratch: &mut Scratch,
        found: &mut Vec<Found>,
    ) {
        let path = pattern.path.clone();
        pattern.push(step, &self.types);
        if is_minimal(pattern, &self.types, &mut scratch.ways)
            && let Some(grown) = self.growth().grow(here, &path, pattern)
        {
            self.grow(pattern, &grown, scratch, found);
        }
        pattern.pop();
    }
}
