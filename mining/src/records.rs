//! The recorded calls of traced models, grouped so that those a case can hold are found by what they take and return.

use std::collections::BTreeMap;
use std::collections::HashMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value};
use ulpian_spec::ops::args::{ArgReader, OperandSource};
use ulpian_spec::trace::{Call, TensorFeatures};
use ulpian_spec::{DType, Op, OpKind, TensorType, ValueRef};

/// Calls of one op with the same types and the same literals. They differ in their tensors' values alone.
#[derive(Debug, Clone)]
pub struct CallClass {
    /// The op.
    pub op: OpKind,
    /// Its tensor arguments with their types, in the order of PyTorch's signature.
    pub tensors: Vec<(&'static str, TensorType)>,
    /// Every other argument that was given.
    pub literals: Map<String, Value>,
    /// The types of its results, by PyTorch's rules.
    pub results: Vec<TensorType>,
    /// The calls.
    pub calls: Vec<RecordedCall>,
}

/// Where a call was seen, and what its tensors looked like.
#[derive(Debug, Clone)]
pub struct RecordedCall {
    /// The model.
    pub model: String,
    /// The node of its graph.
    pub node: usize,
    /// One for each of the class's tensors.
    pub features: Vec<TensorFeatures>,
}

/// Recorded calls by op, each op's classes in order of first appearance.
#[derive(Debug, Clone, Default)]
pub struct Records {
    classes: Vec<CallClass>,
    by_op: BTreeMap<OpKind, Vec<usize>>,
    by_signature: HashMap<String, usize>,
    calls: usize,
    left_out: BTreeMap<String, usize>,
}

impl Records {
    /// No calls.
    pub fn new() -> Records {
        Records::default()
    }

    /// Adds the calls of a model. Those that no case can hold, or with a tensor of more than `max_elements`, are left out and
    /// counted.
    pub fn add(&mut self, model: &str, calls: impl IntoIterator<Item = Call>, max_elements: usize) {
        for call in calls {
            if let Err(why) = self.add_call(model, call, max_elements) {
                *self.left_out.entry(why).or_default() += 1;
            }
        }
    }

    fn add_call(&mut self, model: &str, call: Call, max_elements: usize) -> Result<(), String> {
        if let Some(why) = call.unsupported {
            return Err(format!("{}: {why}", call.op));
        }
        let op = OpKind::from_name(&call.op).ok_or_else(|| format!("{}: no such op here", call.op))?;
        let fail = |why: String| format!("{op}: {why}");
        let mut literals = Map::new();
        let mut tensors = Vec::new();
        let mut features = Vec::new();
        let mut args = Map::new();
        for (name, value) in call.args {
            if value.is_object() {
                let seen: TensorFeatures =
                    serde_json::from_value(value).map_err(|e| fail(format!("argument {name}: {e}")))?;
                let known = op.arguments().iter().find(|n| **n == name);
                let argument = *known.ok_or_else(|| fail(format!("it takes no argument {name}")))?;
                let dtype = DType::from_name(&seen.dtype)
                    .ok_or_else(|| fail(format!("argument {name} is {}", seen.dtype)))?;
                let ty = TensorType::new(dtype, seen.shape.clone());
                if ty.elements().is_none_or(|n| n > max_elements) {
                    return Err(fail(format!("argument {name} has more than {max_elements} elements")));
                }
                args.insert(name, Value::String(format!("@{argument}")));
                tensors.push((argument, ty));
                features.push(seen);
            } else {
                args.insert(name.clone(), value.clone());
                literals.insert(name, value);
            }
        }
        let results = infer(op, &args, &tensors).map_err(fail)?;
        if results.iter().any(|ty| ty.elements().is_none_or(|n| n > max_elements)) {
            return Err(fail(format!("its result has more than {max_elements} elements")));
        }
        let order = |argument: &str| op.arguments().iter().position(|n| *n == argument);
        let mut both: Vec<_> = tensors.into_iter().zip(features).collect();
        both.sort_by_key(|((argument, _), _)| order(argument));
        let (tensors, features): (Vec<_>, Vec<_>) = both.into_iter().unzip();

        let types: Vec<String> = tensors.iter().map(|(name, ty)| format!("{name} {ty}")).collect();
        let mut sorted: Vec<_> = literals.iter().map(|(name, value)| format!("{name} {value}")).collect();
        sorted.sort_unstable();
        let signature = format!("{op} {types:?} {sorted:?}");
        let next = self.classes.len();
        let class = *self.by_signature.entry(signature).or_insert(next);
        if class == next {
            self.classes.push(CallClass { op, tensors, literals, results, calls: Vec::new() });
            self.by_op.entry(op).or_default().push(class);
        }
        self.classes[class].calls.push(RecordedCall { model: model.to_owned(), node: call.node, features });
        self.calls += 1;
        Ok(())
    }

    /// How many calls there are.
    pub fn len(&self) -> usize {
        self.calls
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.calls == 0
    }

    /// The classes, by position.
    pub fn classes(&self) -> &[CallClass] {
        &self.classes
    }

    /// The positions of an op's classes.
    pub fn of(&self, op: OpKind) -> &[usize] {
        self.by_op.get(&op).map_or(&[], Vec::as_slice)
    }

    /// The ops that have calls.
    pub fn ops(&self) -> impl Iterator<Item = OpKind> + '_ {
        self.by_op.keys().copied()
    }

    /// Calls that were left out: reasons and how many.
    pub fn left_out(&self) -> &BTreeMap<String, usize> {
        &self.left_out
    }
}

impl CallClass {
    /// The type of a tensor argument, where it is one.
    pub fn tensor(&self, argument: &str) -> Option<&TensorType> {
        self.tensors.iter().find(|(name, _)| *name == argument).map(|(_, ty)| ty)
    }
}

/// The types of a call's results. Tensor arguments are `"@argument"` in `args`.
pub(crate) fn infer(
    op: OpKind,
    args: &Map<String, Value>,
    tensors: &[(&'static str, TensorType)],
) -> Result<Vec<TensorType>, String> {
    struct Named<'a>(&'a [(&'static str, TensorType)]);
    impl OperandSource for Named<'_> {
        fn operand(&mut self, argument: &'static str, _: &RawValue) -> Result<ValueRef, String> {
            let at = self.0.iter().position(|(name, _)| *name == argument);
            at.map(ValueRef::Input).ok_or_else(|| "expected a tensor".to_owned())
        }
    }
    let raw = serde_json::value::to_raw_value(args).map_err(|e| e.to_string())?;
    let mut source = Named(tensors);
    let parsed = ArgReader::new(op, &raw, &mut source).and_then(|mut reader| Op::parse(op, &mut reader));
    let typed: Op<TensorType> = parsed.map_err(|e| e.to_string())?.map(|_, at| match at {
        ValueRef::Input(i) => tensors[i].1.clone(),
        ValueRef::Node { .. } => unreachable!("every operand is an input here"),
    });
    typed.infer().map_err(|e| e.to_string())
}
