//! What a traced model leaves behind, typed in one place (JSON Lines, zstd on disk): its computation graph
//! (`ulpian-graph/1`), the features of every call's inputs (`ulpian-features/1`), and the patterns mined from many graphs
//! (`ulpian-patterns/1`).
//!
//! A graph file holds a [`GraphHeader`], then a [`GraphNode`] a line; a feature file a [`FeaturesHeader`], then a [`Call`] a
//! line; a pattern file a [`Pattern`] a line.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::ops::args::{ArgReader, OperandSource};
use crate::{DType, InferError, Op, OpKind, TensorType, ValueRef};

/// The `format` of [`GraphHeader`].
pub const GRAPH_FORMAT: &str = "ulpian-graph/1";
/// The `format` of [`FeaturesHeader`].
pub const FEATURES_FORMAT: &str = "ulpian-features/1";
/// The `format` of [`Pattern`].
pub const PATTERN_FORMAT: &str = "ulpian-patterns/1";

/// The first line of a graph file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphHeader {
    /// [`GRAPH_FORMAT`].
    pub format: String,
    /// The model's name, as its source was given: `torchvision:resnet18`.
    pub model: String,
    /// What computed, with versions: `torch 2.11.0`.
    pub framework: String,
    /// Where the weights come from: a package and its version, or `random, seed 0`.
    pub weights: String,
    /// What was fed, in words: `skimage.data.astronaut, 1x3x224x224`.
    pub data: String,
    /// How many [`GraphNode`]s follow.
    pub nodes: usize,
    /// Warnings of the tracer, such as a run cut short.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// One call of an API.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GraphNode {
    /// Its number, in order of execution from 0.
    pub id: usize,
    /// The op's name where it is one of [`OpKind`], else the API's last name: `conv2d`, `permute`.
    pub label: String,
    /// The API as PyTorch names it: `torch.conv2d`, `torch.Tensor.add_`.
    pub api: String,
    /// The module that made the call: `layer1.0.conv1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// It moves or renames elements without computing: `view`, `permute`, `contiguous`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shape_only: bool,
    /// Where its tensors come from, one for each that another node of the graph made.
    pub inputs: Vec<Source>,
}

/// A tensor argument that another node made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The argument's name; of a list, with its position: `tensors.1`.
    pub argument: String,
    /// The node that made it, or wrote to it last.
    pub node: usize,
    /// Which of that node's results.
    #[serde(default)]
    pub result: usize,
}

/// The first line of a feature file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeaturesHeader {
    /// [`FEATURES_FORMAT`].
    pub format: String,
    /// The model's name, as in its graph.
    pub model: String,
    /// How many [`Call`]s follow.
    pub calls: usize,
}

/// The inputs of one call of one of Ulpian's ops.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The node of the graph.
    pub node: usize,
    /// The op.
    pub op: String,
    /// Every argument that was given, by PyTorch's name: a [`TensorFeatures`] as an object, anything else as a case writes
    /// it.
    pub args: Map<String, Value>,
    /// Why no case can hold this call, where none can (a complex dtype, an `out` tensor).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsupported: Option<String>,
}

impl Call {
    /// The call over its tensors' types, and the type of every result, by the rules that a case is held to.
    ///
    /// # Errors
    /// The argument at fault, where no case can hold this call.
    pub fn infer(&self) -> Result<(Op<TensorType>, Vec<TensorType>), InferError> {
        let kind = OpKind::from_name(&self.op)
            .ok_or_else(|| InferError::call(format!("`{}` is none of Ulpian's ops", self.op)))?;
        let raw = serde_json::value::to_raw_value(&self.args).map_err(|e| InferError::call(e.to_string()))?;
        let mut recorded = RecordedTypes(Vec::new());
        let op = Op::parse(kind, &mut ArgReader::new(kind, &raw, &mut recorded)?)?;
        let RecordedTypes(types) = recorded;
        let op = op.map(|_, at| match at {
            ValueRef::Input(number) => types[number].clone(),
            ValueRef::Node { .. } => unreachable!("every operand of a record is an input"),
        });
        let results = op.infer()?;
        Ok((op, results))
    }
}

/// The types of a record's tensors, numbered as they are asked for.
struct RecordedTypes(Vec<TensorType>);

impl OperandSource for RecordedTypes {
    fn operand(&mut self, _: &'static str, value: &RawValue) -> Result<ValueRef, String> {
        let features: TensorFeatures =
            serde_json::from_str(value.get()).map_err(|e| format!("no features of a tensor: {e}"))?;
        let dtype = DType::from_name(&features.dtype)
            .ok_or_else(|| format!("no case holds tensors of dtype {}", features.dtype))?;
        self.0.push(TensorType::new(dtype, features.shape));
        Ok(ValueRef::Input(self.0.len() - 1))
    }
}

/// What a tensor looked like. All statistics are over the finite elements, in float64; absent where there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TensorFeatures {
    /// PyTorch's name: `float32`.
    pub dtype: String,
    /// Its shape.
    pub shape: Vec<usize>,
    /// Least element.
    #[serde(default)]
    pub min: Option<f64>,
    /// Greatest element.
    #[serde(default)]
    pub max: Option<f64>,
    /// Mean.
    #[serde(default)]
    pub mean: Option<f64>,
    /// Standard deviation, biased.
    #[serde(default)]
    pub std: Option<f64>,
    /// Share of zeros, of either sign.
    pub zeros: f64,
    /// Share of NaN and infinities.
    pub nonfinite: f64,
    /// Quantiles at equal steps from the least to the greatest element, ends included.
    #[serde(default)]
    pub quantiles: Vec<f64>,
    /// A learned parameter or buffer of the model.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parameter: bool,
}

/// A frequent subgraph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    /// [`PATTERN_FORMAT`].
    pub format: String,
    /// Its number within its file, from 0.
    pub id: usize,
    /// The labels of its nodes.
    pub nodes: Vec<String>,
    /// (from, to) along the data flow, positions in `nodes`, with the edge's label where edges have one. Without direction
    /// the order of the two means nothing.
    pub edges: Vec<PatternEdge>,
    /// Edges have a direction.
    pub directed: bool,
    /// How many graphs hold it.
    pub support: usize,
    /// The graphs that hold it.
    pub graphs: Vec<String>,
    /// Which arguments the edges go to, for each way that was seen, most frequent first; empty where the graphs name none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bindings: Vec<Binding>,
}

/// An edge of a [`Pattern`]: `[from, to]` or `[from, to, label]`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PatternEdge {
    /// An edge without a label.
    Plain(usize, usize),
    /// An edge with a label.
    Labelled(usize, usize, String),
}

/// One way in which a pattern occurs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Binding {
    /// For each edge of the pattern the arguments it feeds (two where a tensor is used twice by one call), each with the
    /// result of the node it comes from.
    pub edges: Vec<Vec<BoundArgument>>,
    /// In how many graphs an occurrence of this kind was found.
    pub graphs: usize,
    /// A graph that has one.
    pub graph: String,
    /// The nodes of that occurrence: the ids in that graph.
    pub nodes: Vec<usize>,
}

/// An argument that an edge feeds: `[argument, result]`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct BoundArgument(pub String, pub usize);

impl PatternEdge {
    /// The two ends.
    pub const fn ends(&self) -> (usize, usize) {
        match self {
            PatternEdge::Plain(from, to) | PatternEdge::Labelled(from, to, _) => (*from, *to),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edge_is_an_array() {
        let edges = vec![PatternEdge::Plain(0, 1), PatternEdge::Labelled(1, 2, "input".to_owned())];
        let text = serde_json::to_string(&edges).unwrap();
        assert_eq!(text, r#"[[0,1],[1,2,"input"]]"#);
        assert_eq!(serde_json::from_str::<Vec<PatternEdge>>(&text).unwrap(), edges);
        assert!(serde_json::from_str::<PatternEdge>("[0]").is_err());
        assert!(serde_json::from_str::<PatternEdge>("[0, -1]").is_err());
    }

    #[test]
    fn a_record_is_held_to_the_rules_of_a_case() {
        let call = |other: &str| {
            let text = format!(
                r#"{{"node": 0, "op": "matmul", "args": {{
                    "input": {{"dtype": "float32", "shape": [2, 3], "zeros": 0, "nonfinite": 0}}, "other": {other}}}}}"#
            );
            serde_json::from_str::<Call>(&text).unwrap().infer()
        };
        let (op, results) =
            call(r#"{"dtype": "float32", "shape": [3, 4], "zeros": 0, "nonfinite": 0}"#).unwrap();
        assert_eq!(op.kind(), OpKind::Matmul);
        assert_eq!(results[0].to_string(), "float32[2, 4]");
        let wrong = call(r#"{"dtype": "float32", "shape": [2, 4], "zeros": 0, "nonfinite": 0}"#).unwrap_err();
        assert!(wrong.to_string().contains("inner size"), "{wrong}");
        assert!(call("2").is_err());
    }

    #[test]
    fn unknown_fields_are_refused() {
        let line = r#"{"id": 0, "label": "relu", "api": "torch.relu", "inputs": [], "more": 1}"#;
        assert!(serde_json::from_str::<GraphNode>(line).unwrap_err().to_string().contains("more"));
    }
}
