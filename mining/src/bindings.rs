//! Which arguments the edges of a pattern feed: a pattern's graph does not say, and a test input needs it.

use std::collections::{BTreeMap, HashMap};

use rayon::prelude::*;
use ulpian_spec::trace::{Binding, BoundArgument, PATTERN_FORMAT, Pattern, PatternEdge};

use crate::graph::{Edge, Graph, GraphSet, UNLABELLED};
use crate::gspan::{Found, Occurrences, Options};

/// How many occurrences are looked at for each image of a pattern's first node in a graph.
const MOST_EACH: usize = 4;
/// How many ways a pattern tells at most.
const MOST_BINDINGS: usize = 64;
/// How many symmetries of a pattern are heeded.
const MOST_SYMMETRIES: usize = 5040;

/// The patterns as they are written, in the same order. Where patterns have a direction and graphs come from traces, each with its
/// bindings: the ways in which arguments are fed in the occurrences that were looked at (a few for each place where a pattern may
/// start, in every graph that holds it), at most 64, equal ways under a symmetry of the pattern counted as one.
pub fn patterns(set: &GraphSet, options: &Options, found: &[Found]) -> Vec<Pattern> {
    let traced = options.directed() && set.graphs.iter().any(|g| g.origin.is_some());
    let occurrences = traced.then(|| Occurrences::new(set, options));
    let edges_are_plain = set.edge_labels.len() == 1 && set.edge_labels.text(0) == UNLABELLED;
    let pattern = |(id, found): (usize, &Found)| {
        let edge = |e: &Edge| match edges_are_plain {
            true => PatternEdge::Plain(e.from as usize, e.to as usize),
            false => {
                let label = set.edge_labels.text(e.label).to_owned();
                PatternEdge::Labelled(e.from as usize, e.to as usize, label)
            }
        };
        Pattern {
            format: PATTERN_FORMAT.to_owned(),
            id,
            nodes: found.nodes.iter().map(|&l| set.node_labels.text(l).to_owned()).collect(),
            edges: found.edges.iter().map(edge).collect(),
            directed: options.directed(),
            support: found.graphs.len(),
            graphs: found.graphs.iter().map(|&g| set.graphs[g as usize].name.clone()).collect(),
            bindings: occurrences.as_ref().map_or_else(Vec::new, |o| bindings(set, o, found)),
        }
    };
    found.par_iter().enumerate().map(pattern).collect()
}

/// Arguments for each edge.
type Way<'a> = Vec<&'a [BoundArgument]>;

fn bindings(set: &GraphSet, occurrences: &Occurrences, found: &Found) -> Vec<Binding> {
    let symmetries = symmetries(found);
    let mut seen: BTreeMap<Way<'_>, (usize, u32, Vec<usize>)> = BTreeMap::new();
    for &number in &found.graphs {
        let graph = &set.graphs[number as usize];
        let Some(origin) = &graph.origin else { continue };
        // The ways of this graph, each with its first occurrence.
        let mut here: HashMap<Way<'_>, Vec<u32>> = HashMap::new();
        occurrences.visit(found, number, MOST_EACH, &mut |image| {
            if let Some(way) = way(graph, found, image) {
                here.entry(way).or_insert_with(|| image.to_vec());
            }
        });
        let mut least: BTreeMap<Way<'_>, Vec<u32>> = BTreeMap::new();
        for (way, image) in here {
            let (way, image) = least_of(&way, &image, &symmetries);
            let first = least.entry(way).or_insert_with(|| image.clone());
            if image < *first {
                *first = image;
            }
        }
        for (way, image) in least {
            let ids = || image.iter().map(|&n| origin.ids[n as usize]).collect();
            seen.entry(way).or_insert_with(|| (0, number, ids())).0 += 1;
        }
    }
    let mut seen: Vec<_> = seen.into_iter().collect();
    // The map's order stays among equals.
    seen.sort_by_key(|(_, (graphs, ..))| std::cmp::Reverse(*graphs));
    seen.truncate(MOST_BINDINGS);
    let binding = |(way, (graphs, graph, nodes)): (Way<'_>, (usize, u32, Vec<usize>))| Binding {
        edges: way.into_iter().map(<[BoundArgument]>::to_vec).collect(),
        graphs,
        graph: set.graphs[graph as usize].name.clone(),
        nodes,
    };
    seen.into_iter().map(binding).collect()
}

/// The arguments that the edges of an occurrence feed.
fn way<'a>(graph: &'a Graph, found: &Found, image: &[u32]) -> Option<Way<'a>> {
    let origin = graph.origin.as_ref()?;
    let arguments = |e: &Edge| {
        let edge = Edge { from: image[e.from as usize], to: image[e.to as usize], label: e.label };
        graph.edges.binary_search(&edge).ok().map(|i| origin.arguments[i].as_slice())
    };
    found.edges.iter().map(arguments).collect()
}

/// An order of nodes under which a pattern is the same, and what it does to the edges.
struct Symmetry {
    nodes: Vec<usize>,
    edges: Vec<usize>,
}

/// The least of the ways in which an occurrence can be read, and its nodes in that order.
fn least_of<'a>(way: &Way<'a>, image: &[u32], symmetries: &[Symmetry]) -> (Way<'a>, Vec<u32>) {
    let turned = symmetries.iter().map(|symmetry| {
        let way: Way<'a> = symmetry.edges.iter().map(|&e| way[e]).collect();
        (way, symmetry.nodes.iter().map(|&n| image[n]).collect::<Vec<u32>>())
    });
    turned.min().unwrap_or_else(|| (way.clone(), image.to_vec()))
}

fn symmetries(found: &Found) -> Vec<Symmetry> {
    let numbers: HashMap<Edge, usize> = found.edges.iter().copied().zip(0..).collect();
    let mut symmetries = Vec::new();
    extend(found, &numbers, &mut Vec::new(), &mut symmetries);
    symmetries
}

/// Tries every node of the pattern as the place of the next.
fn extend(
    found: &Found,
    numbers: &HashMap<Edge, usize>,
    nodes: &mut Vec<usize>,
    symmetries: &mut Vec<Symmetry>,
) {
    let at = nodes.len();
    let moved = |e: &Edge, nodes: &[usize]| {
        let edge =
            Edge { from: nodes[e.from as usize] as u32, to: nodes[e.to as usize] as u32, label: e.label };
        numbers.get(&edge).copied()
    };
    if at == found.nodes.len() {
        let edges: Option<Vec<usize>> = found.edges.iter().map(|e| moved(e, nodes)).collect();
        symmetries.extend(edges.map(|edges| Symmetry { nodes: nodes.clone(), edges }));
        return;
    }
    for node in 0..found.nodes.len() {
        if symmetries.len() == MOST_SYMMETRIES {
            return;
        }
        if found.nodes[node] != found.nodes[at] || nodes.contains(&node) {
            continue;
        }
        nodes.push(node);
        let mut closed = found.edges.iter().filter(|e| e.from.max(e.to) as usize == at);
        if closed.all(|e| moved(e, nodes).is_some()) {
            extend(found, numbers, nodes, symmetries);
        }
        nodes.pop();
    }
}

#[cfg(test)]
mod tests {
    use ulpian_spec::trace::{GRAPH_FORMAT, GraphHeader, GraphNode, Source};

    use super::*;
    use crate::ModelGraph;
    use crate::graph::FromTrace;
    use crate::gspan::mine;

    /// A call: its label, and the arguments that nodes feed.
    type Call<'a> = (&'a str, &'a [(&'a str, usize)]);

    fn model(name: &str, nodes: &[Call<'_>]) -> ModelGraph {
        let header = GraphHeader {
            format: GRAPH_FORMAT.to_owned(),
            model: name.to_owned(),
            framework: String::new(),
            weights: String::new(),
            data: String::new(),
            nodes: nodes.len(),
            notes: Vec::new(),
        };
        let node = |(id, (label, inputs)): (usize, &Call<'_>)| GraphNode {
            id,
            label: (*label).to_owned(),
            api: String::new(),
            module: None,
            shape_only: false,
            inputs: inputs
                .iter()
                .map(|(a, n)| Source { argument: (*a).to_owned(), node: *n, result: 0 })
                .collect(),
        };
        ModelGraph { header, nodes: nodes.iter().enumerate().map(node).collect() }
    }

    fn mined(models: &[ModelGraph], support: usize) -> Vec<Pattern> {
        let mut set = GraphSet::default();
        for model in models {
            set.push_trace(model, FromTrace::default()).unwrap();
        }
        let options = Options::new(support, 2..=3, true).unwrap();
        patterns(&set, &options, &mine(&set, &options, &|_| {}))
    }

    #[test]
    fn ways_are_counted_by_graph_and_told_most_frequent_first() {
        let a =
            model("a", &[("relu", &[]), ("add", &[("other", 0)]), ("relu", &[]), ("add", &[("input", 2)])]);
        let b = model("b", &[("gelu", &[]), ("relu", &[]), ("add", &[("other", 1)])]);
        let c = model("c", &[("relu", &[]), ("add", &[("input", 0), ("other", 0)])]);
        let found = mined(&[a, b, c], 3);
        assert_eq!(found.len(), 1);
        assert_eq!((&found[0].nodes[..], found[0].support), (&["relu".to_owned(), "add".to_owned()][..], 3));
        let told: Vec<_> = found[0]
            .bindings
            .iter()
            .map(|b| {
                let names: Vec<&str> = b.edges[0].iter().map(|a| a.0.as_str()).collect();
                (names.join(" "), b.graphs, b.graph.as_str(), b.nodes.clone())
            })
            .collect();
        let expected = [
            ("other".to_owned(), 2, "a", vec![0, 1]),
            ("input".to_owned(), 1, "a", vec![2, 3]),
            ("input other".to_owned(), 1, "c", vec![0, 1]),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn ways_that_a_symmetry_maps_on_each_other_are_one() {
        let add: &[(&str, usize)] = &[("input", 0), ("other", 1)];
        let found = mined(&[model("a", &[("relu", &[]), ("relu", &[]), ("add", add)])], 1);
        let whole = found.iter().find(|p| p.nodes.len() == 3).unwrap();
        assert_eq!(whole.bindings.len(), 1);
        let arguments: Vec<&str> = whole.bindings[0].edges.iter().map(|e| e[0].0.as_str()).collect();
        assert_eq!(arguments, ["input", "other"]);
        let ids = |e: &PatternEdge| whole.bindings[0].nodes[e.ends().0];
        assert_eq!(whole.edges.iter().map(ids).collect::<Vec<_>>(), [0, 1]);
    }
}
