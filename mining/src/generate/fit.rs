//! Which recorded calls can stand at the nodes of a pattern.
//!
//! Every node takes a class of recorded calls. An edge from result r of u to argument a of v asks that the type of r in u's class be
//! the type of a in v's class (SORT, section III-C: a record is taken where its dependent parameters match in dtype and
//! shape). That is a constraint satisfaction problem over at most a few nodes: arc consistency (AC-3; Mackworth, 1977)
//! first, which decides it where the pattern is a tree, then a randomised backtracking search.

use std::collections::{BTreeSet, HashSet};

use ulpian_spec::trace::{BoundArgument, Pattern};
use ulpian_spec::{OpKind, TensorType};

use super::values::Random;
use crate::records::Records;

/// Most ways of wiring a pattern that are tried where its graphs did not name arguments.
const MOST_GUESSES: usize = 256;
/// Most classes that one search tries.
const MOST_STEPS: usize = 100_000;

/// Why no input can be generated for a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// A label that is none of Ulpian's ops.
    #[error("`{0}` is none of Ulpian's ops; mine without --all-labels")]
    Label(String),
    /// Edges without direction, or a cycle.
    #[error("its edges have no direction that data could flow along; mine without --undirected")]
    Direction,
    /// An argument that cannot take a tensor.
    #[error("{op} takes no tensor as `{argument}`")]
    Argument {
        /// The op.
        op: OpKind,
        /// The argument.
        argument: String,
    },
    /// An op that no recorded call is of.
    #[error("no recorded call of {0}")]
    NoCalls(OpKind),
    /// No records match along an edge.
    #[error("no recorded call of {to} takes as `{argument}` what a recorded call of {from} returns")]
    NoMatch {
        /// The op that the edge comes from.
        from: OpKind,
        /// The op that it goes to.
        to: OpKind,
        /// The argument.
        argument: String,
    },
    /// Each edge can be satisfied, all of them together cannot.
    #[error("no recorded calls match along all edges at once")]
    NoSolution,
    /// The search was given up.
    #[error("no recorded calls that match along all edges were found in {0} steps")]
    GaveUp(usize),
}

/// An edge as an argument's source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wire {
    pub(crate) from: usize,
    pub(crate) result: usize,
    pub(crate) argument: &'static str,
}

/// One way of wiring a pattern, with the classes that each node can take.
#[derive(Debug, Clone)]
pub(crate) struct Wiring {
    pub(crate) ops: Vec<OpKind>,
    /// For each node, what its bound arguments take.
    pub(crate) incoming: Vec<Vec<Wire>>,
    /// The nodes, each after those it uses.
    pub(crate) order: Vec<usize>,
    /// For each node, positions in [`Records::classes`].
    domains: Vec<Vec<usize>>,
    /// In how many graphs it was seen.
    pub(crate) weight: usize,
}

/// Every wiring of a pattern that records fit.
pub(crate) fn wirings(pattern: &Pattern, records: &Records) -> Result<Vec<Wiring>, Unfit> {
    if !pattern.directed && !pattern.edges.is_empty() {
        return Err(Unfit::Direction);
    }
    let ops = ops(pattern)?;
    if let Some(op) = ops.iter().find(|op| records.of(**op).is_empty()) {
        return Err(Unfit::NoCalls(*op));
    }
    let order = topological(pattern).ok_or(Unfit::Direction)?;
    let mut found = Vec::new();
    let mut why = None;
    for (edges, weight) in bound(pattern, &ops) {
        let incoming = incoming(pattern, &ops, edges)?;
        let domains = ops.iter().map(|op| records.of(*op).to_vec()).collect();
        let mut wiring = Wiring { ops: ops.clone(), incoming, order: order.clone(), domains, weight };
        let solved =
            wiring.make_consistent(records).and_then(|()| wiring.draw(records, &mut Random::new(0, 0, 0)));
        match solved {
            Ok(_) => found.push(wiring),
            Err(unfit) => why = why.or(Some(unfit)),
        }
    }
    if found.is_empty() { Err(why.unwrap_or(Unfit::NoSolution)) } else { Ok(found) }
}

/// The order of a pattern's nodes and what each takes, in the way that was seen most often.
pub(crate) fn wire(pattern: &Pattern, ops: &[OpKind]) -> Result<(Vec<usize>, Vec<Vec<Wire>>), Unfit> {
    if !pattern.directed && !pattern.edges.is_empty() {
        return Err(Unfit::Direction);
    }
    let order = topological(pattern).ok_or(Unfit::Direction)?;
    let (edges, _) = bound(pattern, ops).into_iter().next().ok_or(Unfit::NoSolution)?;
    Ok((order, incoming(pattern, ops, edges)?))
}

fn incoming(pattern: &Pattern, ops: &[OpKind], edges: Arguments) -> Result<Vec<Vec<Wire>>, Unfit> {
    let mut incoming = vec![Vec::new(); ops.len()];
    for (edge, arguments) in pattern.edges.iter().zip(edges) {
        let (from, to) = edge.ends();
        for BoundArgument(argument, result) in arguments {
            let known = ops[to].arguments().iter().find(|n| **n == argument);
            let known = known.ok_or_else(|| Unfit::Argument { op: ops[to], argument: argument.clone() })?;
            incoming[to].push(Wire { from, result, argument: known });
        }
    }
    Ok(incoming)
}

/// The ops that a pattern's labels name.
pub(crate) fn ops(pattern: &Pattern) -> Result<Vec<OpKind>, Unfit> {
    let op = |label: &String| OpKind::from_name(label).ok_or_else(|| Unfit::Label(label.clone()));
    pattern.nodes.iter().map(op).collect()
}

impl Wiring {
    /// Takes out of every node's domain what no neighbour's class goes with.
    fn make_consistent(&mut self, records: &Records) -> Result<(), Unfit> {
        let classes = records.classes();
        loop {
            let mut changed = false;
            for to in 0..self.ops.len() {
                for wire in self.incoming[to].clone() {
                    let returned: HashSet<&TensorType> = self.domains[wire.from]
                        .iter()
                        .filter_map(|&c| classes[c].results.get(wire.result))
                        .collect();
                    let takes = |c: usize| classes[c].tensor(wire.argument);
                    let kept: Vec<usize> = self.domains[to]
                        .iter()
                        .copied()
                        .filter(|&c| takes(c).is_some_and(|ty| returned.contains(ty)))
                        .collect();
                    let taken: HashSet<&TensorType> = kept.iter().filter_map(|&c| takes(c)).collect();
                    let sources: Vec<usize> = self.domains[wire.from]
                        .iter()
                        .copied()
                        .filter(|&c| classes[c].results.get(wire.result).is_some_and(|ty| taken.contains(ty)))
                        .collect();
                    if kept.is_empty() || sources.is_empty() {
                        let (from, to) = (self.ops[wire.from], self.ops[to]);
                        return Err(Unfit::NoMatch { from, to, argument: wire.argument.to_owned() });
                    }
                    changed |= kept.len() < self.domains[to].len();
                    changed |= sources.len() < self.domains[wire.from].len();
                    self.domains[to] = kept;
                    self.domains[wire.from] = sources;
                }
            }
            if !changed {
                return Ok(());
            }
        }
    }

    /// A class for every node, at random: each recorded call that fits is as likely as another.
    pub(crate) fn draw(&self, records: &Records, random: &mut Random) -> Result<Vec<usize>, Unfit> {
        let mut chosen = vec![usize::MAX; self.ops.len()];
        let mut steps = 0;
        match self.search(0, &mut chosen, records, random, &mut steps) {
            true => Ok(chosen),
            false if steps >= MOST_STEPS => Err(Unfit::GaveUp(MOST_STEPS)),
            false => Err(Unfit::NoSolution),
        }
    }

    fn search(
        &self,
        depth: usize,
        chosen: &mut [usize],
        records: &Records,
        random: &mut Random,
        steps: &mut usize,
    ) -> bool {
        let Some(&node) = self.order.get(depth) else { return true };
        let classes = records.classes();
        let fits = |&class: &usize| {
            self.incoming[node].iter().all(|wire| {
                let returned = classes[chosen[wire.from]].results.get(wire.result);
                returned.is_some() && returned == classes[class].tensor(wire.argument)
            })
        };
        let mut candidates: Vec<usize> = self.domains[node].iter().copied().filter(fits).collect();
        let mut total: usize = candidates.iter().map(|&c| classes[c].calls.len()).sum();
        while !candidates.is_empty() {
            if *steps >= MOST_STEPS {
                return false;
            }
            *steps += 1;
            let mut at = random.below(total);
            let position = candidates.iter().position(|&c| {
                let calls = classes[c].calls.len();
                let here = at < calls;
                at = at.saturating_sub(calls);
                here
            });
            let class = candidates.swap_remove(position.unwrap_or(0));
            total -= classes[class].calls.len();
            chosen[node] = class;
            if self.search(depth + 1, chosen, records, random, steps) {
                return true;
            }
        }
        false
    }
}

type Arguments = Vec<Vec<BoundArgument>>;

/// What the edges feed: as the pattern says, or every sensible way where it says nothing.
fn bound(pattern: &Pattern, ops: &[OpKind]) -> Vec<(Arguments, usize)> {
    if !pattern.bindings.is_empty() {
        let complete = |b: &&ulpian_spec::trace::Binding| b.edges.len() == pattern.edges.len();
        return pattern.bindings.iter().filter(complete).map(|b| (b.edges.clone(), b.graphs)).collect();
    }
    // The edges into one node go to distinct arguments, the data arguments before the others.
    let mut ways: Vec<Arguments> = vec![Vec::new()];
    for (e, edge) in pattern.edges.iter().enumerate() {
        let (_, to) = edge.ends();
        let earlier: Vec<usize> = (0..e).filter(|&f| pattern.edges[f].ends().1 == to).collect();
        let mut next = Vec::new();
        for way in &ways {
            let used: BTreeSet<&str> = earlier.iter().flat_map(|&f| &way[f]).map(|a| a.0.as_str()).collect();
            for argument in ["input", "other", "weight", "bias"] {
                if ops[to].arguments().contains(&argument) && !used.contains(argument) {
                    let mut longer = way.clone();
                    longer.push(vec![BoundArgument(argument.to_owned(), 0)]);
                    next.push(longer);
                }
            }
        }
        next.truncate(MOST_GUESSES);
        ways = next;
    }
    ways.into_iter().map(|way| (way, 1)).collect()
}

/// The nodes, each after those whose results it uses; `None` for a cycle or an edge to a node that does not exist.
fn topological(pattern: &Pattern) -> Option<Vec<usize>> {
    let n = pattern.nodes.len();
    let ends: Vec<(usize, usize)> = pattern.edges.iter().map(|e| e.ends()).collect();
    if ends.iter().any(|&(from, to)| from >= n || to >= n) {
        return None;
    }
    let mut order = Vec::new();
    while order.len() < n {
        let ready = |&v: &usize| {
            !order.contains(&v) && ends.iter().all(|&(from, to)| to != v || order.contains(&from))
        };
        let next = (0..n).find(ready)?;
        order.push(next);
    }
    Some(order)
}
