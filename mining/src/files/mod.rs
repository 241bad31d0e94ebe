//! Graph, feature and pattern files: JSON Lines, compressed with zstd where the name ends in `.zst`.
//!
//! Reading finds compression by the content, checks every line, names file and line in each error, and holds no more than
//! [`Limits`] allow. Files appear whole or not at all.

mod lines;

use std::path::{Path, PathBuf};

use serde_json::Value;
use ulpian_spec::OpKind;
use ulpian_spec::trace::{
    Call, FEATURES_FORMAT, FeaturesHeader, GRAPH_FORMAT, GraphHeader, GraphNode, PATTERN_FORMAT, Pattern,
    TensorFeatures,
};

pub use lines::{Limits, Lines, behind_link, is_special, write_text};

use crate::Error;

/// How the name of a graph file ends, with or without `.zst` behind it.
pub const GRAPH_SUFFIX: &str = ".graph.jsonl";
/// How the name of a feature file ends, with or without `.zst` behind it.
pub const FEATURES_SUFFIX: &str = ".features.jsonl";

/// A graph file.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelGraph {
    /// Its first line.
    pub header: GraphHeader,
    /// The calls, each with its position as id, each fed by earlier ones only.
    pub nodes: Vec<GraphNode>,
}

/// A feature file.
#[derive(Debug, Clone, PartialEq)]
pub struct Features {
    /// Its first line.
    pub header: FeaturesHeader,
    /// The calls, by ascending node.
    pub calls: Vec<Call>,
}

/// Reads a graph file.
pub fn read_graph(path: &Path, limits: Limits) -> Result<ModelGraph, Error> {
    let mut lines = Lines::open(path, limits)?;
    let header: GraphHeader = lines.header(GRAPH_FORMAT)?;
    let mut nodes: Vec<GraphNode> = Vec::new();
    while let Some(node) = lines.json::<GraphNode>()? {
        if node.id != nodes.len() {
            return Err(lines.error(format!("the node's id is {}, its position {}", node.id, nodes.len())));
        }
        if node.label.is_empty() || node.label.chars().any(char::is_control) {
            return Err(lines.error("a node's label is empty or holds a control character"));
        }
        if let Some(source) = node.inputs.iter().find(|s| s.node >= node.id) {
            return Err(lines.error(format!(
                "argument `{}` of node {} comes from node {}, which is no earlier one",
                source.argument, node.id, source.node
            )));
        }
        nodes.push(node);
    }
    counted(&lines, "nodes", header.nodes, nodes.len())?;
    Ok(ModelGraph { header, nodes })
}

/// Writes a graph file. The header's count is taken from the nodes.
pub fn write_graph(path: &Path, graph: &ModelGraph) -> Result<(), Error> {
    let header = GraphHeader { nodes: graph.nodes.len(), ..graph.header.clone() };
    write_text(path, |out| {
        lines::json_line(out, &header)?;
        graph.nodes.iter().try_for_each(|node| lines::json_line(out, node))
    })
}

/// Reads a feature file.
pub fn read_features(path: &Path, limits: Limits) -> Result<Features, Error> {
    let mut reader = FeatureReader::open(path, limits)?;
    let calls = reader.by_ref().collect::<Result<_, _>>()?;
    Ok(Features { header: reader.header, calls })
}

/// Writes a feature file. The header's count is taken from the calls.
pub fn write_features(path: &Path, features: &Features) -> Result<(), Error> {
    let header = FeaturesHeader { calls: features.calls.len(), ..features.header.clone() };
    write_text(path, |out| {
        lines::json_line(out, &header)?;
        features.calls.iter().try_for_each(|call| lines::json_line(out, call))
    })
}

/// A feature file, read call by call. After an error there is nothing more.
#[derive(Debug)]
pub struct FeatureReader {
    /// Its first line.
    pub header: FeaturesHeader,
    lines: Lines,
    read: usize,
    last: Option<usize>,
    done: bool,
}

impl FeatureReader {
    /// Opens a feature file and reads its header.
    pub fn open(path: &Path, limits: Limits) -> Result<FeatureReader, Error> {
        let mut lines = Lines::open(path, limits)?;
        let header = lines.header(FEATURES_FORMAT)?;
        Ok(FeatureReader { header, lines, read: 0, last: None, done: false })
    }

    fn call(&mut self) -> Result<Option<Call>, Error> {
        let Some(call) = self.lines.json::<Call>()? else {
            counted(&self.lines, "calls", self.header.calls, self.read)?;
            return Ok(None);
        };
        check_call(&call).map_err(|message| self.lines.error(message))?;
        if self.last.is_some_and(|last| last >= call.node) {
            return Err(self.lines.error(format!("node {} comes again or too late", call.node)));
        }
        self.last = Some(call.node);
        self.read += 1;
        Ok(Some(call))
    }
}

impl Iterator for FeatureReader {
    type Item = Result<Call, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.done {
            return None;
        }
        let next = self.call().transpose();
        self.done = !matches!(next, Some(Ok(_)));
        next
    }
}

fn check_call(call: &Call) -> Result<(), String> {
    if OpKind::from_name(&call.op).is_none() {
        return Err(format!("`{}` is none of Ulpian's ops", call.op));
    }
    for (name, value) in &call.args {
        if matches!(value, Value::Object(_)) {
            <TensorFeatures as serde::Deserialize>::deserialize(value)
                .map_err(|e| format!("argument `{name}` is no tensor's features: {e}"))?;
        }
    }
    Ok(())
}

/// Reads a pattern file.
pub fn read_patterns(path: &Path, limits: Limits) -> Result<Vec<Pattern>, Error> {
    let mut lines = Lines::open(path, limits)?;
    let mut patterns = Vec::new();
    while let Some(pattern) = lines.json::<Pattern>()? {
        check_pattern(&pattern, patterns.len()).map_err(|message| lines.error(message))?;
        patterns.push(pattern);
    }
    Ok(patterns)
}

fn check_pattern(pattern: &Pattern, position: usize) -> Result<(), String> {
    let (nodes, edges) = (pattern.nodes.len(), pattern.edges.len());
    if pattern.format != PATTERN_FORMAT {
        return Err(format!("`format` is `{}`, not `{PATTERN_FORMAT}`", pattern.format));
    }
    if pattern.id != position {
        return Err(format!("the pattern's id is {}, its position {position}", pattern.id));
    }
    if pattern.edges.iter().map(|e| e.ends()).any(|(from, to)| from >= nodes || to >= nodes) {
        return Err(format!("an edge leads to none of the {nodes} nodes"));
    }
    if pattern.support != pattern.graphs.len() {
        return Err(format!("support is {}, but {} graphs are named", pattern.support, pattern.graphs.len()));
    }
    if pattern.bindings.iter().any(|b| b.edges.len() != edges || b.nodes.len() != nodes) {
        return Err(format!("a binding does not fit {nodes} nodes and {edges} edges"));
    }
    Ok(())
}

/// Writes a pattern file.
pub fn write_patterns<'a>(path: &Path, patterns: impl IntoIterator<Item = &'a Pattern>) -> Result<(), Error> {
    write_text(path, |out| patterns.into_iter().try_for_each(|pattern| lines::json_line(out, pattern)))
}

/// The files below a folder, at any depth and in order, whose names end in `suffix` or `suffix.zst`. Links to folders are not
/// followed.
pub fn find(folder: &Path, suffix: &str) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let at = |source| Error::io(&folder, source);
        for entry in std::fs::read_dir(&folder).map_err(at)? {
            let entry = entry.map_err(at)?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if entry.file_type().map_err(at)?.is_dir() {
                folders.push(entry.path());
            } else if name.strip_suffix(".zst").unwrap_or(&name).ends_with(suffix) {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

fn counted(lines: &Lines, what: &str, said: usize, read: usize) -> Result<(), Error> {
    if said == read {
        return Ok(());
    }
    Err(Error::file(
        lines.path(),
        format!(
            "the first line announces {said} {what}, but there are {read}: the file is cut short or mixed up"
        ),
    ))
}

#[cfg(test)]
mod tests;
