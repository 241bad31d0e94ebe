//! The tree from the sizes of the smallest partial sums that hold two terms.
//!
//! Method: FPRev's refined algorithm. For the least term i of a set, sort the others by the size of what they share with i: each
//! size is a node on the way up from i, and the terms of that size are the node's other operands. A node whose other terms
//! share only that very node among themselves adds more than two numbers at once. Cost: K log K to K^2 pairs, K - 1 for a sum
//! from left to right.
//! Source: FPRev (USENIX ATC 2025).

use std::collections::BTreeMap;

use super::{Tree, TreeBuilder};

/// Why no tree was found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecoverError<E> {
    /// The sizes could not be had.
    #[error(transparent)]
    Probe(E),
    /// The sizes are those of no tree: what was probed is no sum, or the ones did not vanish beside M.
    #[error("the sizes found for term {term} are those of no order of summation ({why})")]
    Inconsistent {
        /// A term at which it shows.
        term: usize,
        /// What does not fit.
        why: String,
    },
}

/// A set of terms whose parent adds `size` terms in all, and how far it is sorted.
struct Frame {
    size: usize,
    /// Number of terms in the set.
    members: usize,
    /// Operands of the parent that are finished.
    done: Vec<usize>,
    /// The least term of what is being sorted.
    term: usize,
    /// The node above it that is reached, and its number of terms.
    node: usize,
    count: usize,
    /// Terms by what they share with `term`, the least last.
    groups: Vec<(usize, Vec<usize>)>,
}

/// Finds the order of a sum of `terms` terms. `sizes` is given a term i and others js, and returns for each j how many terms
/// the smallest partial sum has that holds i and j.
///
/// # Errors
/// [`RecoverError::Probe`] with what `sizes` says, [`RecoverError::Inconsistent`] where no tree has these sizes.
pub fn recover<E>(
    terms: usize,
    mut sizes: impl FnMut(usize, &[usize]) -> Result<Vec<usize>, E>,
) -> Result<Tree, RecoverError<E>> {
    let no_tree = |term: usize, why: String| RecoverError::Inconsistent { term, why };
    let mut builder = TreeBuilder::new(terms);
    let mut open = |set: Vec<usize>, size: usize, done: Vec<usize>| -> Result<Frame, RecoverError<E>> {
        let (term, others) = (set[0], &set[1..]);
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        if !others.is_empty() {
            let found = sizes(term, others).map_err(RecoverError::Probe)?;
            if found.len() != others.len() {
                return Err(no_tree(term, format!("{} sizes for {} pairs", found.len(), others.len())));
            }
            for (&j, size_ij) in others.iter().zip(found) {
                if size_ij < 2 || size_ij > size {
                    let why = format!("{size_ij} terms with term {j}, in a sum of {size}");
                    return Err(no_tree(term, why));
                }
                groups.entry(size_ij).or_default().push(j);
            }
        }
        let members = set.len();
        let groups = groups.into_iter().rev().collect();
        Ok(Frame { size, members, done, term, node: term, count: 1, groups })
    };
    if terms == 0 {
        return Err(no_tree(0, "there are no terms".to_owned()));
    }
    let mut stack = vec![open((0..terms).collect(), terms, Vec::new())?];
    loop {
        let Some(frame) = stack.last_mut() else {
            return Err(no_tree(0, "nothing is left to sort".to_owned()));
        };
        match frame.groups.pop() {
            Some((size, group)) if size < frame.size => {
                let child = open(group, size, Vec::new())?;
                stack.push(child);
            }
            Some((size, group)) => {
                let mut done = std::mem::take(&mut frame.done);
                done.push(frame.node);
                let members = frame.members;
                *frame = Frame { members, ..open(group, size, done)? };
            }
            None => {
                let Some(mut frame) = stack.pop() else { continue };
                frame.done.push(frame.node);
                let Some(parent) = stack.last_mut() else {
                    let root = builder.sum(frame.done);
                    return builder
                        .finish(root)
                        .ok_or_else(|| no_tree(frame.term, "a term is met twice".to_owned()));
                };
                let mut operands = vec![parent.node];
                operands.append(&mut frame.done);
                parent.node = builder.sum(operands);
                parent.count += frame.members;
                if parent.count != frame.size {
                    let why = format!("a sum of {} terms where {} are found", frame.size, parent.count);
                    return Err(no_tree(frame.term, why));
                }
            }
        }
    }
}
