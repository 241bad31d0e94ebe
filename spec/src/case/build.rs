//! Cases made in memory.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use serde_json::value::RawValue;

use super::names::{Reference, check_id, check_name, op_kind, reference, split_result_name};
use super::number::shorten;
use super::tensors::check_shape;
use super::{Case, CaseTensor, Limits, Node, Observation, ValueRef, json};
use crate::ops::TensorOrScalar;
use crate::ops::args::{ArgReader, OperandSource};
use crate::ops::div::wraps_to_zero;
use crate::verdict::Expectation;
use crate::{CaseError, HostTensor, InferError, Op, TensorType};

/// Makes a [`Case`] step by step, with the checks that a case file gets.
///
/// ```
/// use ulpian_spec::case::CaseBuilder;
/// use ulpian_spec::ops::{gelu::Gelu, GeluApproximate};
/// use ulpian_spec::{HostTensor, Op};
///
/// let mut case = CaseBuilder::new("gelu-tail");
/// let x = case.tensor("x", HostTensor::f32(&[2], &[-5.0, -5.5]))?;
/// let y = case.node("y", Op::Gelu(Gelu { input: x, approximate: GeluApproximate::None }))?;
/// case.observe("a100", y, HostTensor::f32(&[2], &[-1.4901161e-6, -1.6391277e-7]))?;
/// let case = case.finish()?;
/// assert_eq!(case.type_of(y).to_string(), "float32[2]");
/// assert_eq!(case.recorded_parties(), ["a100"]);
/// # Ok::<(), ulpian_spec::CaseError>(())
/// ```
#[derive(Debug)]
pub struct CaseBuilder {
    case: Case,
    file: String,
    limits: Limits,
    tensor_names: HashMap<String, usize>,
    node_ids: HashMap<String, usize>,
    seen: HashSet<(ValueRef, String)>,
    /// Addresses of the tensors, which the case keeps alive.
    held: HashSet<usize>,
}

impl CaseBuilder {
    /// A case without tensors and nodes. The name is checked by [`CaseBuilder::finish`].
    pub fn new(name: impl Into<String>) -> CaseBuilder {
        let name = name.into();
        CaseBuilder {
            file: format!("case {}", shorten(&name)),
            case: Case {
                name,
                source: String::new(),
                tensors: Vec::new(),
                nodes: Vec::new(),
                outputs: Vec::new(),
                observed: Vec::new(),
                expect: None,
            },
            limits: Limits::default(),
            tensor_names: HashMap::new(),
            node_ids: HashMap::new(),
            seen: HashSet::new(),
            held: HashSet::new(),
        }
    }

    /// Calls the case by this name in messages.
    pub fn file(&mut self, file: impl Into<String>) -> &mut Self {
        self.file = file.into();
        self
    }

    /// Other limits than the default ones.
    pub fn limits(&mut self, limits: Limits) -> &mut Self {
        self.limits = limits;
        self
    }

    /// Where the case comes from.
    pub fn source(&mut self, source: impl Into<String>) -> &mut Self {
        self.case.source = source.into();
        self
    }

    /// What a judge should find.
    pub fn expect(&mut self, expect: Expectation) -> &mut Self {
        self.case.expect = Some(expect);
        self
    }

    /// Adds a tensor of the tensors file.
    ///
    /// # Errors
    /// Where the name is empty or taken, or the tensor too large.
    pub fn tensor(
        &mut self,
        name: impl Into<String>,
        value: impl Into<Arc<HostTensor>>,
    ) -> Result<ValueRef, CaseError> {
        let name = name.into();
        let place = || format!("tensor {}", shorten(&name));
        if name.is_empty() || name == "__metadata__" {
            return Err(self.field(place(), "this name cannot be used in a safetensors file"));
        }
        if self.tensor_names.contains_key(&name) {
            return Err(self.field(place(), "there is one of this name already"));
        }
        let value = value.into();
        check_shape(value.shape(), self.limits.max_elements).map_err(|e| self.field(place(), e))?;
        self.tensor_names.insert(name.clone(), self.case.tensors.len());
        Ok(self.push_tensor(name, false, value))
    }

    /// Adds a tensor that is written into the JSON itself. The name is used in messages only.
    ///
    /// # Errors
    /// Where the tensor is too large.
    pub fn inline_tensor(
        &mut self,
        name: impl Into<String>,
        value: impl Into<Arc<HostTensor>>,
    ) -> Result<ValueRef, CaseError> {
        let (name, value) = (name.into(), value.into());
        check_shape(value.shape(), self.limits.max_elements)
            .map_err(|e| self.field(format!("tensor {}", shorten(&name)), e))?;
        Ok(self.push_tensor(name, true, value))
    }

    /// Adds a call of an op and returns its first result.
    ///
    /// # Errors
    /// Where the id cannot be used, an operand is none of this case, or PyTorch would reject the call.
    pub fn node(&mut self, id: impl Into<String>, op: Op<ValueRef>) -> Result<ValueRef, CaseError> {
        let id = id.into();
        let place = format!("node {}", shorten(&id));
        check_id(&id).map_err(|e| self.field(place.clone(), e))?;
        if self.node_ids.contains_key(&id) {
            return Err(self.field(place, "the id is given twice"));
        }
        let typed = op.clone().try_map(|argument, at| {
            self.type_at(at).ok_or_else(|| InferError::argument(argument, "this value is none of the case"))
        });
        let types = typed.and_then(|op| op.infer()).map_err(|e| self.in_node(&id, e))?;
        for t in &types {
            check_shape(&t.shape, self.limits.max_elements)
                .map_err(|e| self.field(place.clone(), format!("the result is too large: {e}")))?;
        }
        self.check_values(&op, &types).map_err(|e| self.in_node(&id, e))?;
        let node = self.case.nodes.len();
        self.node_ids.insert(id.clone(), node);
        self.case.nodes.push(Node { id, op, types });
        Ok(ValueRef::Node { node, output: 0 })
    }

    /// Adds a call whose arguments are JSON as in a case file: `"@name"`, `"%id"`, inline tensors and literals.
    ///
    /// # Errors
    /// As [`CaseBuilder::node`], and for arguments that the op does not have.
    pub fn node_from_json(&mut self, id: &str, op: &str, args: &str) -> Result<ValueRef, CaseError> {
        let place = || format!("node {}", shorten(id));
        let kind = op_kind(op).map_err(|e| self.field(place(), e))?;
        let raw: &RawValue =
            serde_json::from_str(args).map_err(|e| self.field(place(), format!("args: {e}")))?;
        let mut operands = BuilderOperands { builder: self, node: id };
        let parsed =
            ArgReader::new(kind, raw, &mut operands).and_then(|mut reader| Op::parse(kind, &mut reader));
        let op = parsed.map_err(|e| self.in_node(id, e))?;
        self.node(id, op)
    }

    /// Counts a result among the outputs. Without any, the results of nodes that no other node uses are the outputs.
    ///
    /// # Errors
    /// Where `at` is no node result, or is listed already.
    pub fn output(&mut self, at: ValueRef) -> Result<(), CaseError> {
        self.check_result("outputs", at)?;
        if self.case.outputs.contains(&at) {
            return Err(self.field("outputs", format!("{} is given twice", self.case.result_name(at))));
        }
        self.case.outputs.push(at);
        Ok(())
    }

    /// Records what somebody saw as a node's result. Its dtype and shape may differ from the node's.
    ///
    /// # Errors
    /// Where `at` is no node result, or this executor has recorded it already.
    pub fn observe(
        &mut self,
        executor: impl Into<String>,
        at: ValueRef,
        tensor: impl Into<Arc<HostTensor>>,
    ) -> Result<(), CaseError> {
        let tensor = tensor.into();
        let name = format!("observed.{}", self.case.observed.len());
        self.check_observation(&executor.into(), at).map(|executor| {
            if !self.held.contains(&address(&tensor)) {
                let small =
                    tensor.len() <= super::write::MOST_INLINE || self.tensor_names.contains_key(&name);
                if !small {
                    self.tensor_names.insert(name.clone(), self.case.tensors.len());
                }
                self.push_tensor(name, small, Arc::clone(&tensor));
            }
            self.seen.insert((at, executor.clone()));
            self.case.observed.push(Observation { executor, at, tensor });
        })
    }

    /// The case.
    ///
    /// # Errors
    /// Where the name cannot be a file's, there is no node, or `expect` names a result that does not exist.
    pub fn finish(mut self) -> Result<Case, CaseError> {
        check_name(&self.case.name).map_err(|e| self.field("name", e))?;
        if self.case.nodes.is_empty() {
            return Err(self.field("nodes", "there must be at least one"));
        }
        if self.case.outputs.is_empty() {
            self.case.outputs = self.unused_results();
        }
        if let Some(expect) = &self.case.expect {
            for (name, truth) in &expect.truth {
                let place = || format!("expect, truth of {}", shorten(name));
                let at = self.result(name).map_err(|e| self.field(place(), e))?;
                let elements = self.case.type_of(at).elements();
                if truth.values.len() != 1 && elements != Some(truth.values.len()) {
                    let message = format!(
                        "{} values (neither 1 nor one for each element) for {}",
                        truth.values.len(),
                        self.case.type_of(at)
                    );
                    return Err(self.field(place(), message));
                }
            }
        }
        Ok(self.case)
    }

    /// The node result of this name: `id`, or `id.1`, `id.2`, … for further results; a `%` before it is taken too.
    ///
    /// # Errors
    /// A sentence that says why there is none.
    pub fn result(&self, name: &str) -> Result<ValueRef, String> {
        let name = name.strip_prefix('%').unwrap_or(name);
        let (id, output) = split_result_name(name);
        let Some(&node) = self.node_ids.get(id) else {
            let ids = self.node_ids.keys().map(String::as_str);
            return Err(format!("there is no node `{}`{}", shorten(id), json::suggestion(id, ids)));
        };
        let found = &self.case.nodes[node];
        if output >= found.types.len() {
            return Err(format!(
                "{} of node {} has {} here; there is no `{}`",
                found.op.kind(),
                shorten(id),
                match found.types.len() {
                    1 => "one result".to_owned(),
                    n => format!("{n} results"),
                },
                shorten(name)
            ));
        }
        Ok(ValueRef::Node { node, output })
    }

    /// The tensor of this name that [`CaseBuilder::tensor`] added.
    pub fn named_tensor(&self, name: &str) -> Option<ValueRef> {
        self.tensor_names.get(name).map(|&i| ValueRef::Input(i))
    }

    pub(crate) fn max_elements(&self) -> usize {
        self.limits.max_elements
    }

    pub(crate) fn has_node(&self, id: &str) -> bool {
        self.node_ids.contains_key(id)
    }

    pub(crate) fn value(&self, index: usize) -> Arc<HostTensor> {
        Arc::clone(&self.case.tensors[index].value)
    }

    pub(crate) fn observed_len(&self) -> usize {
        self.case.observed.len()
    }

    pub(crate) fn push_tensor(&mut self, name: String, inline: bool, value: Arc<HostTensor>) -> ValueRef {
        self.held.insert(address(&value));
        self.case.tensors.push(CaseTensor { name, inline, value });
        ValueRef::Input(self.case.tensors.len() - 1)
    }

    pub(crate) fn field(&self, place: impl Into<String>, message: impl Into<String>) -> CaseError {
        CaseError::Field { file: self.file.clone(), place: place.into(), message: message.into() }
    }

    pub(crate) fn in_node(&self, id: &str, error: InferError) -> CaseError {
        let place = match error.argument {
            Some(argument) => format!("node {}, argument {argument}", shorten(id)),
            None => format!("node {}", shorten(id)),
        };
        self.field(place, error.message)
    }

    fn check_observation(&self, executor: &str, at: ValueRef) -> Result<String, CaseError> {
        let place = format!("observed[{}]", self.case.observed.len());
        if executor.is_empty() || executor.len() > 200 || executor.chars().any(char::is_control) {
            return Err(
                self.field(place, "executor: expected a name of 1 to 200 bytes without control characters")
            );
        }
        self.check_result(&place, at)?;
        if self.seen.contains(&(at, executor.to_owned())) {
            let message = format!("{} by {executor} is given twice", self.case.result_name(at));
            return Err(self.field(place, message));
        }
        Ok(executor.to_owned())
    }

    fn check_result(&self, place: &str, at: ValueRef) -> Result<(), CaseError> {
        if matches!(at, ValueRef::Node { .. }) && self.type_at(at).is_some() {
            return Ok(());
        }
        Err(self.field(place, "expected a node's result"))
    }

    fn type_at(&self, at: ValueRef) -> Option<TensorType> {
        match at {
            ValueRef::Input(i) => self.case.tensors.get(i).map(|t| t.value.tensor_type()),
            ValueRef::Node { node, output } => self.case.nodes.get(node)?.types.get(output).cloned(),
        }
    }

    /// What depends on the elements of given tensors: a mask of zeros and ones, no integer division by zero.
    fn check_values(&self, op: &Op<ValueRef>, types: &[TensorType]) -> Result<(), InferError> {
        let given = |at: ValueRef| match at {
            ValueRef::Input(i) => self.case.tensors.get(i).map(|t| &*t.value),
            ValueRef::Node { .. } => None,
        };
        match op {
            Op::Dropout(dropout) => {
                let Some(mask) = dropout.mask.and_then(given) else { return Ok(()) };
                let bad = (0..mask.len()).find(|&i| !matches!(mask.get_f64(i), 0.0 | 1.0));
                bad.map_or(Ok(()), |i| {
                    let message =
                        format!("expected bool, or zeros and ones; element {i} is {}", mask.get_f64(i));
                    Err(InferError::argument("mask", message))
                })
            }
            Op::Div(div) => {
                let TensorOrScalar::Tensor(other) = div.other else { return Ok(()) };
                let (Some(other), [result]) = (given(other), types) else { return Ok(()) };
                if !result.dtype.is_integer() || result.elements() == Some(0) {
                    return Ok(());
                }
                let zero = |&i: &usize| other.get_i64(i).is_some_and(|n| wraps_to_zero(n, result.dtype));
                (0..other.len()).find(zero).map_or(Ok(()), |i| {
                    let message = format!("element {i} is 0 in {}: integer division by zero", result.dtype);
                    Err(InferError::argument("other", message))
                })
            }
            _ => Ok(()),
        }
    }

    fn unused_results(&self) -> Vec<ValueRef> {
        let mut used = HashSet::new();
        for node in &self.case.nodes {
            for (_, at) in node.op.operands() {
                if let ValueRef::Node { node, .. } = *at {
                    used.insert(node);
                }
            }
        }
        self.case
            .results()
            .filter(|at| matches!(at, ValueRef::Node { node, .. } if !used.contains(node)))
            .collect()
    }
}

fn address(tensor: &Arc<HostTensor>) -> usize {
    Arc::as_ptr(tensor).addr()
}

/// Operands of [`CaseBuilder::node_from_json`].
struct BuilderOperands<'b> {
    builder: &'b mut CaseBuilder,
    node: &'b str,
}

impl OperandSource for BuilderOperands<'_> {
    fn operand(&mut self, argument: &'static str, value: &RawValue) -> Result<ValueRef, String> {
        if json::is_object(value) {
            let tensor = super::tensors::read_inline(value, self.builder.max_elements())?;
            return Ok(self.builder.push_tensor(format!("{}.{argument}", self.node), true, Arc::new(tensor)));
        }
        match reference(value)? {
            Reference::Node(name) => self.builder.result(&name),
            Reference::Tensor(name) => self
                .builder
                .named_tensor(&name)
                .ok_or_else(|| format!("there is no tensor `{}`", shorten(&name))),
        }
    }
}

/// Tensors by name, for [`Case::from_json_with`].
pub type NamedTensors = BTreeMap<String, Arc<HostTensor>>;
