//! The chain of a case, from the edges that its ledger keeps.

use std::collections::{BTreeMap, BTreeSet};

use crate::campaign::rows::CaseRow;

/// An operand that another node made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edge {
    /// The node that made it.
    pub from: String,
    /// The node that takes it.
    pub to: String,
    /// As which argument.
    pub argument: String,
}

/// The node of a result: `split.1` is one of `split`'s.
pub(super) fn node(result: &str) -> &str {
    result.split('.').next().unwrap_or(result)
}

/// The edges of a case; none where its row holds something else.
pub(super) fn edges(case: &CaseRow) -> Vec<Edge> {
    let rows: Vec<(String, String, String)> = serde_json::from_str(&case.edges).unwrap_or_default();
    let edge = |(from, to, argument): (String, _, _)| Edge { from: node(&from).to_owned(), to, argument };
    rows.into_iter().map(edge).collect()
}

/// How many edges lie on the longest way to each node. `nodes` are in the order of the computation.
pub(super) fn depths<'a>(edges: &[Edge], nodes: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, usize> {
    let mut depths = BTreeMap::new();
    for node in nodes {
        let before = edges.iter().filter(|e| e.to == node).filter_map(|e| depths.get(e.from.as_str()));
        let depth = before.max().map_or(0, |d| d + 1);
        depths.insert(node, depth);
    }
    depths
}

/// The ops along the data flow, as a line to read: `conv2d → batch_norm + relu → add`, those of one depth joined by `+`. `nodes` are
/// ids and ops in the order of the computation.
pub(super) fn flow<'a>(edges: &[Edge], nodes: impl Iterator<Item = (&'a str, &'a str)> + Clone) -> String {
    let depths = depths(edges, nodes.clone().map(|(id, _)| id));
    let mut levels: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for (id, op) in nodes {
        levels.entry(depths.get(id).copied().unwrap_or(0)).or_default().push(op);
    }
    levels.into_values().map(|ops| ops.join(" + ")).collect::<Vec<_>>().join(" → ")
}

/// A node and every node whose result reaches it.
pub(super) fn origins<'a>(edges: &'a [Edge], node: &'a str) -> BTreeSet<&'a str> {
    let mut origins = BTreeSet::from([node]);
    let mut left = vec![node];
    while let Some(to) = left.pop() {
        for edge in edges.iter().filter(|e| e.to == to) {
            if origins.insert(&edge.from) {
                left.push(&edge.from);
            }
        }
    }
    origins
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: &str, to: &str) -> Edge {
        Edge { from: from.into(), to: to.into(), argument: "input".into() }
    }

    #[test]
    fn a_branch_that_joins_again_has_the_depth_of_its_longer_side() {
        let edges = [edge("a", "b"), edge("b", "c"), edge("a", "d"), edge("c", "d")];
        let depths = depths(&edges, ["a", "b", "c", "d"].into_iter());
        assert_eq!(depths.into_values().collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(origins(&edges, "c"), BTreeSet::from(["a", "b", "c"]));
        let nodes = [("a", "relu"), ("b", "mul"), ("c", "gelu"), ("d", "add")];
        assert_eq!(flow(&edges, nodes.into_iter()), "relu → mul → gelu → add");
        assert_eq!(flow(&edges[..1], nodes.into_iter()), "relu + gelu + add → mul");
        assert_eq!(node("split.1"), "split");
    }
}
