//! A tree as compact text.
//!
//! ```text
//! [A, B, C]    added from left to right: (A + B) + C
//! {A, B, C}    added at once
//! 0..7         the terms 0, 1, …, 7; 0..56 by 8 the terms 0, 8, …, 56; 7..0 the terms 7, 6, …, 0
//! A x4 by 16   A, then A with 16 more for each term, four in all
//! ```

use std::collections::BTreeMap;
use std::fmt::Write;

use super::Tree;

/// The tree in the notation of this module: complete, and short where it is regular.
pub fn text(tree: &Tree) -> String {
    let writer = Writer { tree, shapes: shapes(tree), least: tree.least(), sizes: tree.sizes() };
    let mut text = String::new();
    writer.node(tree.root(), &mut text);
    text
}

struct Writer<'a> {
    tree: &'a Tree,
    /// Nodes that are alike but for a shift of their terms have the same number.
    shapes: Vec<usize>,
    least: Vec<usize>,
    sizes: Vec<usize>,
}

fn shapes(tree: &Tree) -> Vec<usize> {
    let least = tree.least();
    let mut known: BTreeMap<Vec<(usize, usize)>, usize> = BTreeMap::new();
    let mut shapes = vec![0; tree.terms()];
    for (s, sum) in tree.sums().iter().enumerate() {
        let own = least[tree.terms() + s];
        let key = sum.iter().map(|&node| (shapes[node], least[node] - own)).collect();
        let next = known.len() + 1;
        shapes.push(*known.entry(key).or_insert(next));
    }
    shapes
}

impl Writer<'_> {
    /// Recurses into nodes of at most half the size only, or once into one that holds all others.
    fn node(&self, node: usize, text: &mut String) {
        let operands = self.tree.operands(node);
        match operands.len() {
            0 => {
                let _ = write!(text, "{node}");
            }
            2 => self.list(&self.chain(node), ('[', ']'), text),
            _ => self.list(operands, ('{', '}'), text),
        }
    }

    /// What is added one after the other, in that order.
    fn chain(&self, node: usize) -> Vec<usize> {
        let mut added: Vec<usize> = Vec::new();
        let mut sum = node;
        while let &[x, y] = self.tree.operands(sum) {
            let shape_above = added.last().map(|&n| self.shapes[n]);
            let alike = self.shapes[x] == self.shapes[y];
            // Two alike are a pair of their own, unless they go on what stands above.
            if alike && self.sizes[x] > 1 && !added.is_empty() && shape_above != Some(self.shapes[y]) {
                break;
            }
            // Of two terms the one that goes on with what stands above comes later.
            let descends = alike && added.last().is_some_and(|&above| above < x) && self.sizes[x] == 1;
            let (sum_so_far, next) =
                if self.sizes[x] >= self.sizes[y] && !descends { (x, y) } else { (y, x) };
            added.push(next);
            sum = sum_so_far;
            if alike {
                break;
            }
        }
        added.push(sum);
        added.reverse();
        added
    }

    fn list(&self, nodes: &[usize], (open, close): (char, char), text: &mut String) {
        text.push(open);
        let mut at = 0;
        while at < nodes.len() {
            if at > 0 {
                text.push_str(", ");
            }
            let run = self.run(&nodes[at..]);
            let (first, last) = (self.least[nodes[at]], self.least[nodes[at + run - 1]]);
            let step = if run > 1 { first.abs_diff(self.least[nodes[at + 1]]) } else { 0 };
            let descends = if last < first { "-" } else { "" };
            if run > 1 && self.sizes[nodes[at]] == 1 {
                let _ = write!(text, "{first}..{last}");
                if step != 1 {
                    let _ = write!(text, " by {step}");
                }
            } else {
                self.node(nodes[at], text);
                if run > 1 {
                    let _ = write!(text, " x{run} by {descends}{step}");
                }
            }
            at += run;
        }
        text.push(close);
    }

    /// How many nodes from the first on are alike and evenly apart.
    fn run(&self, nodes: &[usize]) -> usize {
        let place = |i: usize| self.least[nodes[i]] as i64;
        let mut run = 1;
        while run < nodes.len()
            && self.shapes[nodes[run]] == self.shapes[nodes[0]]
            && place(run) - place(run - 1) == place(1) - place(0)
        {
            run += 1;
        }
        // Two terms are shorter as they are.
        if run == 2 && self.sizes[nodes[0]] == 1 { 1 } else { run }
    }
}
