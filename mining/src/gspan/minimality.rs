//! Whether a code is the least one of its pattern.
//!
//! The pattern is searched within itself: all ways in which the steps so far lie in it are kept, and if any of them could go on with
//! a lesser step than the code does, the code is not the least. Leaves that hang on one node by edges of one type can change
//! places, so they are taken in the order of their numbers only: a star has one way, not n! of them.

use super::MOST_NODES;
use super::code::{Pattern, Step};
use super::types::{TypeId, Types};

/// A way in which the steps so far lie in the pattern.
#[derive(Debug, Clone, Copy)]
struct Way {
    /// For each number of the code the pattern's node.
    nodes: [u8; MOST_NODES],
    /// The nodes in use.
    used: u32,
}

/// Memory that is used again and again.
#[derive(Debug, Default)]
pub(super) struct Ways {
    now: Vec<Way>,
    next: Vec<Way>,
}

/// Whether the pattern's code is the least.
pub(super) fn is_minimal(pattern: &Pattern, types: &Types, ways: &mut Ways) -> bool {
    let twins = lesser_twins(pattern);
    if !first_step(pattern, &twins, ways) {
        return false;
    }
    let mut prefix = Prefix::default();
    prefix.push(pattern.steps[0], types);
    for &step in &pattern.steps[1..] {
        ways.next.clear();
        for way in &ways.now {
            if !advance(pattern, &prefix, step, &twins, way, &mut ways.next) {
                return false;
            }
        }
        std::mem::swap(&mut ways.now, &mut ways.next);
        prefix.push(step, types);
    }
    true
}

/// For each leaf the bits of the leaves of lower number that it can change places with.
fn lesser_twins(pattern: &Pattern) -> [u32; MOST_NODES] {
    let mut twins = [0; MOST_NODES];
    for (node, beside) in pattern.beside.iter().enumerate().filter(|(_, beside)| beside.len() == 1) {
        let others = pattern.beside[..node].iter().enumerate().filter(|(_, other)| *other == beside);
        twins[node] = others.fold(0, |bits, (other, _)| bits | 1 << other);
    }
    twins
}

/// The ways of the first step; `false` if there is a lesser one.
fn first_step(pattern: &Pattern, twins: &[u32; MOST_NODES], ways: &mut Ways) -> bool {
    let first = pattern.steps[0];
    ways.now.clear();
    for (node, beside) in (0u8..).zip(&pattern.beside) {
        for &(other, t) in beside {
            match (node != other, t).cmp(&(!first.is_loop(), first.t)) {
                std::cmp::Ordering::Less => return false,
                std::cmp::Ordering::Equal => {
                    let used = 1u32 << node | 1 << other;
                    if (twins[usize::from(node)] | twins[usize::from(other)]) & !used == 0 {
                        let mut nodes = [0; MOST_NODES];
                        nodes[0] = node;
                        nodes[1] = other;
                        ways.now.push(Way { nodes, used });
                    }
                }
                std::cmp::Ordering::Greater => {}
            }
        }
    }
    true
}

/// The steps that were taken: what the next ones depend on.
#[derive(Default)]
struct Prefix {
    /// The right-most path.
    path: Vec<u8>,
    /// The node before the newest, and the type of the edge to it as seen from the newest.
    back: Option<(u8, TypeId)>,
    /// The last step from the newest node back.
    last: Option<(u8, TypeId)>,
}

impl Prefix {
    fn push(&mut self, step: Step, types: &Types) {
        if self.path.is_empty() {
            self.path.push(0);
        }
        if step.is_forward() {
            while self.path.last().is_some_and(|&node| node != step.from) {
                self.path.pop();
            }
            self.path.push(step.to);
            self.back = Some((step.from, types.reverse(step.t)));
            self.last = None;
        } else {
            self.last = Some((step.to, step.t));
        }
    }
}

/// Adds to `next` the ways in which `way` goes on with `step`; `false` if it can go on with a lesser one.
fn advance(
    pattern: &Pattern,
    prefix: &Prefix,
    step: Step,
    twins: &[u32; MOST_NODES],
    way: &Way,
    next: &mut Vec<Way>,
) -> bool {
    let newest = prefix.path[prefix.path.len() - 1];
    let node = way.nodes[usize::from(newest)];
    for &(other, t) in &pattern.beside[usize::from(node)] {
        if way.used >> other & 1 == 0 {
            continue;
        }
        let Some(to) = (0..=newest).find(|&n| way.nodes[usize::from(n)] == other) else { continue };
        if prefix.back == Some((to, t)) || prefix.last.is_some_and(|last| (to, t) <= last) {
            continue;
        }
        if step.is_forward() || (to, t) < (step.to, step.t) {
            return false;
        }
        if (to, t) == (step.to, step.t) {
            next.push(*way);
        }
    }
    if !step.is_forward() {
        return true;
    }
    for &from in prefix.path.iter().rev().take_while(|&&from| from >= step.from) {
        for &(other, t) in &pattern.beside[usize::from(way.nodes[usize::from(from)])] {
            if way.used >> other & 1 == 1 {
                continue;
            }
            if from > step.from || t < step.t {
                return false;
            }
            if t == step.t && twins[usize::from(other)] & !way.used == 0 {
                let mut more = *way;
                more.nodes[usize::from(step.to)] = other;
                more.used |= 1 << other;
                next.push(more);
            }
        }
    }
    true
}
