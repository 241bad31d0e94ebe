//! Cases (`ulpian-case/1`): one computation and, if there is a dispute, what was seen.

mod build;
pub(crate) mod json;
mod names;
pub(crate) mod number;
mod read;
mod tensors;
mod write;

use std::sync::Arc;

use crate::{HostTensor, Op, TensorType};

pub use build::{CaseBuilder, NamedTensors};
pub use tensors::{SafetensorsSource, TensorSource};

/// The `format` of a case file.
pub const CASE_FORMAT: &str = "ulpian-case/1";

/// Where an operand comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ValueRef {
    /// A tensor of the case: a position in [`Case::tensors`].
    Input(usize),
    /// Result `output` of node `node` (a position in [`Case::nodes`]); `%id` is output 0, `%id.1` output 1.
    Node {
        /// Position of the node.
        node: usize,
        /// Which of its results.
        output: usize,
    },
}

/// A tensor that a case brings along.
#[derive(Debug, Clone)]
pub struct CaseTensor {
    /// Its name in the safetensors file; for an inline tensor, `node.argument` or `observed.N`.
    pub name: String,
    /// Stands in the JSON itself.
    pub inline: bool,
    /// The tensor.
    pub value: Arc<HostTensor>,
}

/// One call of an op.
#[derive(Debug, Clone)]
pub struct Node {
    /// Its name within the case.
    pub id: String,
    /// The op and its arguments, defaults filled in.
    pub op: Op<ValueRef>,
    /// Dtype and shape of every result.
    pub types: Vec<TensorType>,
}

/// What somebody saw as a node's result.
#[derive(Debug, Clone)]
pub struct Observation {
    /// Who: judged as `recorded:NAME`.
    pub executor: String,
    /// Which result: always [`ValueRef::Node`].
    pub at: ValueRef,
    /// What was seen. Its shape and dtype may differ from the node's: that is a finding, not an error.
    pub tensor: Arc<HostTensor>,
}

/// A computation and what was seen of it. Nodes are in an order in which each uses earlier ones only.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its name: file names are made from it.
    pub name: String,
    /// Where it comes from, free text.
    pub source: String,
    /// The tensors it brings.
    pub tensors: Vec<CaseTensor>,
    /// Its calls.
    pub nodes: Vec<Node>,
    /// The results that count as its outputs: [`ValueRef::Node`] each.
    pub outputs: Vec<ValueRef>,
    /// What was seen.
    pub observed: Vec<Observation>,
    /// What a judge should find (`expect`), for suites of cases.
    pub expect: Option<crate::verdict::Expectation>,
}

/// Upper limits that a case is held to while it is read.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most elements of any tensor, given or inferred.
    pub max_elements: usize,
    /// Most bytes of the case file itself.
    pub max_json_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { max_elements: 1 << 30, max_json_bytes: 1 << 30 }
    }
}

impl Case {
    /// The type of a value.
    ///
    /// # Panics
    /// Where `at` does not belong to this case.
    pub fn type_of(&self, at: ValueRef) -> TensorType {
        match at {
            ValueRef::Input(i) => self.tensors[i].value.tensor_type(),
            ValueRef::Node { node, output } => self.nodes[node].types[output].clone(),
        }
    }

    /// The name of a node result: `id`, or `id.1`, `id.2`, … for further results.
    ///
    /// # Panics
    /// Where `at` does not belong to this case.
    pub fn result_name(&self, at: ValueRef) -> String {
        match at {
            ValueRef::Input(i) => format!("@{}", self.tensors[i].name),
            ValueRef::Node { node, output: 0 } => self.nodes[node].id.clone(),
            ValueRef::Node { node, output } => format!("{}.{output}", self.nodes[node].id),
        }
    }

    /// Every node result, in order.
    pub fn results(&self) -> impl Iterator<Item = ValueRef> + '_ {
        self.nodes
            .iter()
            .enumerate()
            .flat_map(|(node, n)| (0..n.types.len()).map(move |output| ValueRef::Node { node, output }))
    }

    /// The names of the recorded parties, in order of first appearance.
    pub fn recorded_parties(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for o in &self.observed {
            if !names.contains(&o.executor.as_str()) {
                names.push(&o.executor);
            }
        }
        names
    }
}
