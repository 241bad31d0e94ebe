//! Labelled graphs: what is mined. Their nodes are calls, their edges tensors on the way from one call to another.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use ulpian_spec::OpKind;
use ulpian_spec::trace::{BoundArgument, GraphNode};

use crate::{Error, ModelGraph};

/// Ops whose `input` and `other` may change places.
const COMMUTATIVE: [&str; 2] = ["add", "mul"];
/// The argument of a commutative op, as the label of an edge.
const OPERAND: &str = "operand";
/// The label of edges that have none.
pub const UNLABELLED: &str = "0";
/// How many sources the calls of one graph may have in all once edges pass through its shape-only nodes.
const MOST_SOURCES: usize = 20_000_000;

/// Graphs over one set of labels.
#[derive(Debug, Clone, Default)]
pub struct GraphSet {
    /// The labels of nodes.
    pub node_labels: Labels,
    /// The labels of edges.
    pub edge_labels: Labels,
    /// The graphs, in the order they were added.
    pub graphs: Vec<Graph>,
    /// The calls of traces that compute something and are no nodes, none of Ulpian's ops being so called: how many of each label.
    pub left_out: BTreeMap<String, usize>,
}

/// A labelled graph. An edge is a triple of its ends and its label, and is there once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Graph {
    /// Its name.
    pub name: String,
    /// For each node its label, as a number of [`GraphSet::node_labels`].
    pub nodes: Vec<u32>,
    /// The edges along the data flow, ascending and without repetition.
    pub edges: Vec<Edge>,
    /// Where it was made from a trace: what nodes and edges were there.
    pub origin: Option<Origin>,
}

/// An edge of a [`Graph`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Edge {
    /// The node it leaves.
    pub from: u32,
    /// The node it enters.
    pub to: u32,
    /// Its label, as a number of [`GraphSet::edge_labels`].
    pub label: u32,
}

/// What a graph's nodes and edges were in the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// For each node its id in the trace.
    pub ids: Vec<usize>,
    /// For each edge the arguments it feeds, ascending.
    pub arguments: Vec<Vec<BoundArgument>>,
}

/// Texts, each with a number in the order of first use.
#[derive(Debug, Clone, Default)]
pub struct Labels {
    texts: Vec<String>,
    numbers: HashMap<String, u32>,
}

impl Labels {
    /// The number of a text, given now if it has none.
    ///
    /// # Panics
    /// With more than 2³² texts.
    pub fn number(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = u32::try_from(self.texts.len()).expect("files are too short for 2^32 different labels");
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }

    /// The text of a number that [`Labels::number`] gave.
    pub fn text(&self, number: u32) -> &str {
        &self.texts[number as usize]
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// Sorts the texts, whole numbers by value before all others by their letters, and gives for each old number the new one.
    fn sort(&mut self) -> Vec<u32> {
        let key = |text: &str| match text.parse::<u64>() {
            Ok(value) => (0, value, text.to_owned()),
            Err(_) => (1, 0, text.to_owned()),
        };
        let mut order: Vec<usize> = (0..self.texts.len()).collect();
        order.sort_by_cached_key(|&i| key(&self.texts[i]));
        let mut ranks = vec![0; order.len()];
        for (rank, &number) in (0u32..).zip(&order) {
            ranks[number] = rank;
        }
        self.texts = order.iter().map(|&number| std::mem::take(&mut self.texts[number])).collect();
        self.numbers.values_mut().for_each(|number| *number = ranks[*number as usize]);
        ranks
    }
}

/// What the edges of a graph made from a trace are labelled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EdgeLabels {
    /// Nothing: all alike.
    #[default]
    None,
    /// The argument that the tensor is given as. `input` and `other` of `add` and `mul` are one; several between the same two
    /// calls are joined by `+`.
    Argument,
}

/// How a trace becomes a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FromTrace {
    /// Keep calls that are none of Ulpian's ops.
    pub all_labels: bool,
    /// The labels of the edges.
    pub edge_labels: EdgeLabels,
    /// Let edges pass through calls that only move or rename elements and are none of Ulpian's ops. Such a call is then no node.
    pub bridge_shape_ops: bool,
}

impl GraphSet {
    /// Adds a graph. Its edges are sorted, and repeated ones merged.
    ///
    /// # Panics
    /// If an edge leads to none of the nodes, or `origin` does not fit.
    pub fn push(&mut self, name: String, nodes: Vec<u32>, edges: Vec<Edge>, origin: Option<Origin>) {
        assert!(
            edges.iter().all(|e| (e.from.max(e.to) as usize) < nodes.len()),
            "edges join nodes of the graph"
        );
        let (edges, origin) = match origin {
            None => {
                let mut edges = edges;
                edges.sort_unstable();
                edges.dedup();
                (edges, None)
            }
            Some(Origin { ids, arguments }) => {
                assert_eq!(
                    (ids.len(), arguments.len()),
                    (nodes.len(), edges.len()),
                    "a node or edge without origin"
                );
                let mut pairs: Vec<(Edge, Vec<BoundArgument>)> = edges.into_iter().zip(arguments).collect();
                pairs.sort_unstable();
                pairs.dedup_by(|later, earlier| {
                    let same = later.0 == earlier.0;
                    if same {
                        earlier.1.append(&mut later.1);
                    }
                    same
                });
                let (edges, mut arguments): (Vec<Edge>, Vec<Vec<BoundArgument>>) = pairs.into_iter().unzip();
                arguments.iter_mut().for_each(|a| a.sort_unstable());
                (edges, Some(Origin { ids, arguments }))
            }
        };
        self.graphs.push(Graph { name, nodes, edges, origin });
    }

    /// Adds the graph of a trace. An error says what is too large.
    pub fn push_trace(&mut self, model: &ModelGraph, options: FromTrace) -> Result<(), String> {
        let kept = |node: &GraphNode| {
            OpKind::from_name(&node.label).is_some()
                || (options.all_labels && !(options.bridge_shape_ops && node.shape_only))
        };
        for node in model.nodes.iter().filter(|n| !kept(n) && !n.shape_only) {
            *self.left_out.entry(node.label.clone()).or_default() += 1;
        }
        let ids: Vec<usize> = model.nodes.iter().filter(|n| kept(n)).map(|n| n.id).collect();
        let numbers: HashMap<usize, u32> = ids.iter().zip(0u32..).map(|(&id, number)| (id, number)).collect();
        let nodes = ids.iter().map(|&id| self.node_labels.number(&model.nodes[id].label)).collect();

        // For each node that edges pass through, the results of kept nodes that reach it.
        let mut behind: HashMap<usize, Vec<(u32, usize)>> = HashMap::new();
        let mut sources = 0;
        let mut fed: HashMap<(u32, u32), Vec<BoundArgument>> = HashMap::new();
        for node in &model.nodes {
            let number = numbers.get(&node.id).copied();
            let passes = number.is_none() && options.bridge_shape_ops && node.shape_only;
            if number.is_none() && !passes {
                continue;
            }
            let mut reach: Vec<(u32, usize)> = Vec::new();
            for source in &node.inputs {
                let direct = numbers.get(&source.node).map(|&from| vec![(from, source.result)]);
                let from = match &direct {
                    Some(one) => one,
                    None => behind.get(&source.node).map_or(&[][..], Vec::as_slice),
                };
                sources += from.len();
                if sources > MOST_SOURCES {
                    return Err(format!(
                        "the edges through its shape-only nodes are more than {MOST_SOURCES}; mine it without bridging"
                    ));
                }
                match number {
                    None => reach.extend(from),
                    Some(to) => {
                        for &(from, result) in from {
                            let arguments = fed.entry((from, to)).or_default();
                            arguments.push(BoundArgument(source.argument.clone(), result));
                        }
                    }
                }
            }
            if passes {
                reach.sort_unstable();
                reach.dedup();
                behind.insert(node.id, reach);
            }
        }
        self.push_fed(model, ids, nodes, fed, options.edge_labels);
        Ok(())
    }

    fn push_fed(
        &mut self,
        model: &ModelGraph,
        ids: Vec<usize>,
        nodes: Vec<u32>,
        fed: HashMap<(u32, u32), Vec<BoundArgument>>,
        edge_labels: EdgeLabels,
    ) {
        let mut fed: Vec<((u32, u32), Vec<BoundArgument>)> = fed.into_iter().collect();
        fed.sort_unstable();
        let (mut edges, mut arguments) = (Vec::new(), Vec::new());
        for ((from, to), mut bound) in fed {
            bound.sort_unstable();
            bound.dedup();
            let label = match edge_labels {
                EdgeLabels::None => self.edge_labels.number(UNLABELLED),
                EdgeLabels::Argument => {
                    let op = &model.nodes[ids[to as usize]].label;
                    self.edge_labels.number(&joined(op, &bound))
                }
            };
            edges.push(Edge { from, to, label });
            arguments.push(bound);
        }
        let origin = Some(Origin { ids, arguments });
        self.push(model.header.model.clone(), nodes, edges, origin);
    }

    /// Sorts the labels, so that their numbers, and with them the order of patterns, depend on the graphs' content alone and not on
    /// which of them came first.
    pub fn sort_labels(&mut self) {
        let (node_ranks, edge_ranks) = (self.node_labels.sort(), self.edge_labels.sort());
        for Graph { name, nodes, edges, origin } in std::mem::take(&mut self.graphs) {
            let nodes = nodes.into_iter().map(|label| node_ranks[label as usize]).collect();
            let edge = |e: Edge| Edge { label: edge_ranks[e.label as usize], ..e };
            self.push(name, nodes, edges.into_iter().map(edge).collect(), origin);
        }
    }

    /// Drops every graph that is isomorphic to an earlier one, labels of nodes and edges included, and names the pairs.
    pub fn deduplicate(&mut self, directed: bool) -> Vec<Duplicate> {
        let mut classes: HashMap<u64, Vec<usize>> = HashMap::new();
        let mut dropped = Vec::new();
        let mut keep = vec![true; self.graphs.len()];
        for (i, graph) in self.graphs.iter().enumerate() {
            let class = match classes.entry(crate::isomorphism::fingerprint(graph, directed)) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => entry.insert(Vec::new()),
            };
            let same = |&&j: &&usize| crate::isomorphism::isomorphic(graph, &self.graphs[j], directed);
            match class.iter().find(same) {
                Some(&j) => {
                    keep[i] = false;
                    dropped
                        .push(Duplicate { dropped: graph.name.clone(), kept: self.graphs[j].name.clone() });
                }
                None => class.push(i),
            }
        }
        let mut kept = keep.into_iter();
        self.graphs.retain(|_| kept.next().unwrap_or(true));
        dropped
    }

    /// Refuses two graphs of one name.
    pub fn check_names(&self) -> Result<(), Error> {
        let mut seen = std::collections::HashSet::new();
        match self.graphs.iter().find(|g| !seen.insert(&g.name)) {
            None => Ok(()),
            Some(graph) => Err(Error::SameName { name: graph.name.clone() }),
        }
    }
}

/// A graph that was dropped for being the same as another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Duplicate {
    /// The name of the one that is gone.
    pub dropped: String,
    /// The name of the one that stays.
    pub kept: String,
}

/// The label of an edge that feeds these arguments of `op`.
fn joined(op: &str, bound: &[BoundArgument]) -> String {
    let commutes = COMMUTATIVE.contains(&op);
    let name = |argument: &BoundArgument| match argument.0.as_str() {
        "input" | "other" if commutes => OPERAND.to_owned(),
        other => other.to_owned(),
    };
    bound.iter().map(name).collect::<Vec<_>>().join("+")
}

#[cfg(test)]
mod tests {
    use ulpian_spec::trace::{GRAPH_FORMAT, GraphHeader, Source};

    use super::*;

    /// A call: its label, whether it is shape-only, and the arguments that nodes feed.
    type Call<'a> = (&'a str, bool, &'a [(&'a str, usize)]);

    fn trace(nodes: &[Call<'_>]) -> ModelGraph {
        let header = GraphHeader {
            format: GRAPH_FORMAT.to_owned(),
            model: "net".to_owned(),
            framework: String::new(),
            weights: String::new(),
            data: String::new(),
            nodes: nodes.len(),
            notes: Vec::new(),
        };
        let nodes = nodes.iter().enumerate().map(|(id, (label, shape_only, inputs))| GraphNode {
            id,
            label: (*label).to_owned(),
            api: format!("torch.{label}"),
            module: None,
            shape_only: *shape_only,
            inputs: inputs
                .iter()
                .map(|(a, node)| Source { argument: (*a).to_owned(), node: *node, result: 0 })
                .collect(),
        });
        ModelGraph { header, nodes: nodes.collect() }
    }

    /// The edges as `from-label>to`, with labels of ops and their ids.
    fn edges(model: &ModelGraph, options: FromTrace) -> Vec<String> {
        let mut set = GraphSet::default();
        set.push_trace(model, options).unwrap();
        let graph = &set.graphs[0];
        let ids = &graph.origin.as_ref().unwrap().ids;
        let edge = |e: &Edge| {
            format!("{}-{}>{}", ids[e.from as usize], set.edge_labels.text(e.label), ids[e.to as usize])
        };
        graph.edges.iter().map(edge).collect()
    }

    fn attention() -> ModelGraph {
        trace(&[
            ("linear", false, &[]),
            ("view", true, &[("input", 0)]),
            ("transpose", true, &[("input", 1)]),
            ("matmul", false, &[("input", 2), ("other", 2)]),
            ("exp", false, &[("input", 3)]),
            ("add", false, &[("input", 4), ("other", 3)]),
            ("mul", false, &[("input", 5), ("other", 5)]),
        ])
    }

    #[test]
    fn only_ops_stay_unless_all_labels_do() {
        let options = FromTrace::default();
        assert_eq!(edges(&attention(), options), ["3-0>5", "5-0>6"]);
        let options = FromTrace { all_labels: true, ..options };
        assert_eq!(
            edges(&attention(), options),
            ["0-0>1", "1-0>2", "2-0>3", "3-0>4", "3-0>5", "4-0>5", "5-0>6"]
        );
    }

    #[test]
    fn edges_bridge_several_shape_only_calls() {
        let options =
            FromTrace { bridge_shape_ops: true, edge_labels: EdgeLabels::Argument, all_labels: false };
        assert_eq!(edges(&attention(), options), ["0-input+other>3", "3-operand>5", "5-operand+operand>6"]);
        let options = FromTrace { all_labels: true, ..options };
        assert_eq!(
            edges(&attention(), options),
            ["0-input+other>3", "3-input>4", "3-operand>5", "4-operand>5", "5-operand+operand>6"]
        );
    }

    #[test]
    fn a_flood_of_bridged_edges_is_refused() {
        let inputs: Vec<[(&str, usize); 2]> =
            (0..7_000).map(|i| [("input", 2 * i), ("other", 2 * i + 1)]).collect();
        let mut nodes: Vec<Call<'_>> = vec![("relu", false, &[])];
        for inputs in &inputs {
            nodes.extend([("relu", false, &[][..]), ("view", true, inputs)]);
        }
        let options = FromTrace { bridge_shape_ops: true, ..FromTrace::default() };
        let error = GraphSet::default().push_trace(&trace(&nodes), options).unwrap_err();
        assert!(error.contains("without bridging"), "{error}");
    }

    #[test]
    fn numbers_sort_by_value_and_before_words() {
        let mut labels = Labels::default();
        for text in ["relu", "10", "9", "add"] {
            labels.number(text);
        }
        assert_eq!(labels.sort(), [3, 1, 0, 2]);
        assert_eq!([0, 1, 2, 3].map(|n| labels.text(n).to_owned()), ["9", "10", "add", "relu"]);
        assert_eq!((labels.number("add"), labels.number("new")), (2, 4));
    }
}
