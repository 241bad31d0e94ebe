//! The steps that may follow a code, each if enough graphs can hold the result.

use std::ops::Range;

use super::code::{Pattern, Step};
use super::host::Host;
use super::projection::Projection;
use super::types::{TypeId, Types};

/// Counts of graphs; memory that is used again and again.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// For each node of the path, each type that is seen from its label.
    forward: Vec<Counter>,
    backward: Vec<Counter>,
    incomplete: Vec<u32>,
}

/// A count of graphs that come in order.
#[derive(Debug, Clone, Copy, Default)]
struct Counter {
    /// One more than the graph that was counted last.
    last: u32,
    graphs: u32,
}

impl Counter {
    fn count(&mut self, graph: u32) {
        if self.last != graph + 1 {
            self.last = graph + 1;
            self.graphs += 1;
        }
    }
}

/// Forward steps from one node of the path that the code alone does not rule out.
struct Place {
    node: u8,
    types: Range<TypeId>,
    /// Types below this are ruled out.
    least: TypeId,
    /// Where its counters start.
    counters: usize,
}

/// The steps that may follow, in their order, which at least `support` graphs may hold. Whether the longer code is the least is not
/// asked.
pub(super) fn candidates(
    pattern: &Pattern,
    projection: &Projection,
    (hosts, types): (&[Host], &Types),
    (support, most_nodes): (usize, usize),
    counters: &mut Counters,
) -> Vec<Step> {
    let backward = backward_steps(pattern, types);
    let forward = if pattern.len() < most_nodes { places(pattern, types) } else { Vec::new() };
    counters.backward.clear();
    counters.backward.resize(backward.len(), Counter::default());
    counters.forward.clear();
    counters.forward.resize(forward.last().map_or(0, |p| p.counters + p.types.len()), Counter::default());
    counters.incomplete.clear();
    for entry in &projection.entries {
        if !entry.complete {
            counters.incomplete.push(entry.graph);
            continue;
        }
        let host = &hosts[entry.graph as usize];
        let mut before: Option<&[u32]> = None;
        for row in projection.rows(entry) {
            for (step, counter) in backward.iter().zip(&mut counters.backward) {
                if host.has_edge(row[usize::from(step.from)], step.t, row[usize::from(step.to)]) {
                    counter.count(entry.graph);
                }
            }
            count_forward(host, (row, before), &forward, entry.graph, &mut counters.forward);
            before = Some(row);
        }
    }
    let enough = |counter: Counter, t: TypeId| {
        let certain = counter.graphs as usize;
        let missing = support.saturating_sub(certain);
        missing <= counters.incomplete.len()
            && counters.incomplete.iter().filter(|&&g| types.has(g, t)).take(missing).count() == missing
    };
    let counted = backward.iter().zip(&counters.backward);
    let mut steps: Vec<Step> = counted.filter(|(s, c)| enough(**c, s.t)).map(|(&s, _)| s).collect();
    let to = pattern.newest() + 1;
    for place in forward.iter().rev() {
        let counter = |t: TypeId| counters.forward[place.counters + (t - place.types.start) as usize];
        let all = place.types.clone().filter(|&t| t >= place.least && after_first(pattern, types, t));
        steps.extend(all.filter(|&t| enough(counter(t), t)).map(|t| Step { from: place.node, to, t }));
    }
    steps
}

/// No edge of a least code is less than its first, whichever end it is seen from.
fn after_first(pattern: &Pattern, types: &Types, t: TypeId) -> bool {
    let first = pattern.steps[0];
    first.is_loop() || (t >= first.t && types.reverse(t) >= first.t)
}

/// The type of the path's edge behind its `at`-th node: a lesser one from there would have been taken first.
fn behind(pattern: &Pattern, at: usize) -> Option<TypeId> {
    pattern.path.get(at + 1).map(|&node| pattern.met_from(node).1)
}

/// The backward steps that the code alone does not rule out, ascending.
fn backward_steps(pattern: &Pattern, types: &Types) -> Vec<Step> {
    let from = pattern.newest();
    let label = |node: u8| pattern.labels[usize::from(node)];
    let last = pattern.steps.last().filter(|s| !s.is_forward()).map(|s| (s.to, s.t));
    let mut steps = Vec::new();
    for (at, &to) in pattern.path.iter().enumerate() {
        for t in types.between(label(from), label(to)) {
            let allowed = if to == from {
                // A pattern with a loop begins with the least of its loops. A loop is seen from where it starts.
                let first = pattern.steps[0];
                first.is_loop() && t >= first.t && !types.sight(t).enters()
            } else {
                let turned = types.reverse(t);
                let is_before = pattern.met_from(from).0 == to;
                let in_order = |path: TypeId| if is_before { turned > path } else { turned >= path };
                after_first(pattern, types, t) && behind(pattern, at).is_none_or(in_order)
            };
            if allowed && last.is_none_or(|last| (to, t) > last) {
                steps.push(Step { from, to, t });
            }
        }
    }
    steps
}

/// Where forward steps may start, along the path.
fn places(pattern: &Pattern, types: &Types) -> Vec<Place> {
    let mut counters = 0;
    let place = |(at, &node): (usize, &u8)| {
        let types = types.seen_from(pattern.labels[usize::from(node)]);
        let first = pattern.steps[0];
        let least = behind(pattern, at).unwrap_or(0).max(if first.is_loop() { 0 } else { first.t });
        let place = Place { node, counters, least, types };
        counters += place.types.len();
        place
    };
    pattern.path.iter().enumerate().map(place).collect()
}

/// Counts the types by which a row may grow. Where it agrees with the row before, nothing new is to be seen.
fn count_forward(
    host: &Host,
    (row, before): (&[u32], Option<&[u32]>),
    places: &[Place],
    graph: u32,
    counters: &mut [Counter],
) {
    let mut same = before.is_some();
    for (at, place) in places.iter().enumerate() {
        let image = row[usize::from(place.node)];
        same &= before.is_some_and(|before| before[usize::from(place.node)] == image);
        if same {
            continue;
        }
        let used = |member: &u32| places[..=at].iter().any(|p| row[usize::from(p.node)] == *member);
        for run in host.runs(image) {
            let t = host.run_type(run);
            if t >= place.least && !host.members(run).iter().all(used) {
                counters[place.counters + (t - place.types.start) as usize].count(graph);
            }
        }
    }
}
