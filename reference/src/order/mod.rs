//! The order in which a sum was formed: found from its roundings, named, written as text, and computed again.
//!
//! Method (FPRev: Xie, Gao, Wang, Xue, "Revealing Floating-Point Accumulation Orders in Software/Hardware Implementations",
//! USENIX ATC 2025): put +M and -M at two places among ones, M so large that M + n = M for every count n that can meet it. Every
//! one that is added within the smallest partial sum that holds both places vanishes, every other one survives, so n minus the
//! result is the size of that partial sum. The sizes for all pairs determine the whole tree ([`recover`]), nodes that add more than
//! two numbers at once included.
//!
//! A [`Tree`] is the order alone. Whether products are rounded before they are added, and in which precision sums are kept, is
//! decided by computing it in each [`Arithmetic`] and comparing the bits.

mod evaluate;
mod names;
mod recover;
#[cfg(test)]
mod tests;
mod text;

pub use evaluate::Arithmetic;
pub use names::name;
pub use recover::{RecoverError, recover};
pub use text::text;

/// An order of summation. Nodes are numbered: terms from 0, then the sums, each after everything that it adds.
///
/// Addition commutes, so the order within a sum has no meaning; trees are kept in one form (the operands of a sum ascend by
/// their least term, sums are in postorder), so that equal orders are equal values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    terms: usize,
    sums: Vec<Vec<usize>>,
}

impl Tree {
    /// Number of terms.
    pub fn terms(&self) -> usize {
        self.terms
    }

    /// The operands of every sum, in an order in which each sum comes after its operands; sum `s` is node `terms() + s`, the
    /// last one is the total.
    pub fn sums(&self) -> &[Vec<usize>] {
        &self.sums
    }

    /// The operands of a node; none where it is a term.
    pub fn operands(&self, node: usize) -> &[usize] {
        node.checked_sub(self.terms).map_or(&[], |s| &self.sums[s])
    }

    /// The node that is the total.
    pub fn root(&self) -> usize {
        self.terms + self.sums.len() - 1
    }

    /// The most additions that a term passes through.
    pub fn depth(&self) -> usize {
        let mut depth = vec![0; self.terms];
        for sum in &self.sums {
            let deepest = sum.iter().map(|&node| depth[node]).max();
            depth.push(1 + deepest.unwrap_or(0));
        }
        depth.last().copied().unwrap_or(0)
    }

    /// The most numbers that one node adds at once: 2 for IEEE additions, 0 for a single term.
    pub fn widest(&self) -> usize {
        self.sums.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// The sum that each node is an operand of; `None` for the total.
    pub fn parents(&self) -> Vec<Option<usize>> {
        let mut parents = vec![None; self.terms + self.sums.len()];
        for (s, sum) in self.sums.iter().enumerate() {
            for &node in sum {
                parents[node] = Some(self.terms + s);
            }
        }
        parents
    }

    /// Number of terms in each node.
    pub fn sizes(&self) -> Vec<usize> {
        let mut sizes = vec![1; self.terms];
        for sum in &self.sums {
            let size = sum.iter().map(|&node| sizes[node]).sum();
            sizes.push(size);
        }
        sizes
    }

    /// Least term in each node.
    pub(crate) fn least(&self) -> Vec<usize> {
        let mut least: Vec<usize> = (0..self.terms).collect();
        for sum in &self.sums {
            let first = sum.iter().map(|&node| least[node]).min();
            least.push(first.unwrap_or(0));
        }
        least
    }

    /// Number of terms in the smallest node that holds `i` and each of `js`: what a probe of these pairs should find.
    pub fn joint_sizes(&self, i: usize, js: &[usize]) -> Vec<usize> {
        let (parents, sizes) = (self.parents(), self.sizes());
        let mut above = vec![false; parents.len()];
        let mut node = Some(i);
        while let Some(n) = node {
            above[n] = true;
            node = parents[n];
        }
        let mut joint = sizes;
        for node in (0..parents.len()).rev() {
            if let (false, Some(parent)) = (above[node], parents[node]) {
                joint[node] = joint[parent];
            }
        }
        js.iter().map(|&j| joint[j]).collect()
    }
}

/// Makes a [`Tree`] from its terms up.
#[derive(Debug, Clone)]
pub struct TreeBuilder {
    terms: usize,
    sums: Vec<Vec<usize>>,
}

impl TreeBuilder {
    /// A tree over so many terms, which are the nodes from 0.
    pub fn new(terms: usize) -> TreeBuilder {
        TreeBuilder { terms, sums: Vec::new() }
    }

    /// A node that adds these. One operand alone is itself.
    ///
    /// # Panics
    /// Where there is no operand.
    pub fn sum(&mut self, operands: Vec<usize>) -> usize {
        if let [only] = operands[..] {
            return only;
        }
        assert!(!operands.is_empty(), "a sum has operands");
        self.sums.push(operands);
        self.terms + self.sums.len() - 1
    }

    /// The tree whose total is `root`; `None` unless it holds every term exactly once.
    pub fn finish(self, root: usize) -> Option<Tree> {
        let TreeBuilder { terms, mut sums } = self;
        let mut least: Vec<usize> = (0..terms).collect();
        for (s, sum) in sums.iter_mut().enumerate() {
            if sum.iter().any(|&node| node >= terms + s) {
                return None;
            }
            sum.sort_by_key(|&node| least[node]);
            least.push(least[sum[0]]);
        }
        // Postorder without recursion: a left-to-right sum is as deep as it is long.
        let mut renamed = vec![usize::MAX; terms + sums.len()];
        let (mut ordered, mut met) = (Vec::with_capacity(sums.len()), 0);
        let mut stack = vec![(root, 0)];
        while let Some((node, next)) = stack.pop() {
            let Some(s) = node.checked_sub(terms) else {
                if *renamed.get(node)? != usize::MAX {
                    return None;
                }
                (renamed[node], met) = (node, met + 1);
                continue;
            };
            match sums.get(s)?.get(next) {
                Some(&child) => {
                    stack.push((node, next + 1));
                    stack.push((child, 0));
                }
                None => {
                    let operands: Vec<usize> = sums[s].iter().map(|&child| renamed[child]).collect();
                    ordered.push(operands);
                    renamed[node] = terms + ordered.len() - 1;
                }
            }
        }
        (met == terms && terms > 0).then_some(Tree { terms, sums: ordered })
    }
}
