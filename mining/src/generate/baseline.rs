//! Inputs as other methods make them, valid or not, to compare how many are valid.
//!
//! Uniform: shapes, dtypes, values and literals at random, knowing no more than which arguments are tensors. Mutate (after
//! FreeFuzz; Wei et al., ICSE 2022): a recorded call whose tensors' dtypes and whose literals' values are changed at random.
//! Both know the op chain, so that dependent parameters are wired as in the pattern. An input is valid where PyTorch's rules
//! accept every call of it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use ulpian_spec::case::CaseBuilder;
use ulpian_spec::trace::{Pattern, TensorFeatures};
use ulpian_spec::{Case, CaseError, DType, HostTensor, OpKind, TensorType};

use super::values::{self, Random, Values};
use super::{Unfit, case_name, fit, node_id, reference};
use crate::records::Records;

/// Which baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Baseline {
    /// Everything at random.
    Uniform,
    /// Recorded calls, mutated.
    Mutate,
}

/// Dimensions and sizes that `Uniform` draws.
const MOST_DIMENSIONS: usize = 5;
const MOST_SIZE: usize = 16;
/// How likely `Mutate` changes an argument.
const MUTATION: f64 = 0.5;

/// The arguments that are tensors, whatever the op.
const TENSORS: [&str; 7] = ["input", "other", "weight", "bias", "running_mean", "running_var", "mask"];
/// Of these, the ones that may be absent.
const OPTIONAL: [&str; 4] = ["bias", "running_mean", "running_var", "mask"];

/// Input number `index` of a baseline for a pattern.
///
/// # Errors
/// [`Unfit`] where the pattern cannot be wired at all, or no call of an op is recorded that could be mutated. The inner result is
/// the case, or why PyTorch's rules reject it.
pub fn generate(
    baseline: Baseline,
    pattern: &Pattern,
    records: &Records,
    seed: u64,
    index: usize,
) -> Result<Result<Case, CaseError>, Unfit> {
    let ops = fit::ops(pattern)?;
    let (order, incoming) = fit::wire(pattern, &ops)?;
    // Another stream than the generator's.
    let mut random = Random::new(seed ^ (1 + baseline as u64) << 62, pattern.id as u64, index as u64);
    let mut chain = CaseBuilder::new(case_name(pattern, index));
    for node in order {
        let op = ops[node];
        let id = node_id(op, node);
        let (mut args, tensors) = match baseline {
            Baseline::Uniform => uniform(op, &mut random),
            Baseline::Mutate => mutated(op, records, &mut random)?,
        };
        for (argument, tensor) in tensors {
            if incoming[node].iter().any(|w| w.argument == argument) {
                continue;
            }
            let name = format!("{id}.{argument}");
            if let Err(invalid) = chain.tensor(&name, tensor) {
                return Ok(Err(invalid));
            }
            args.insert(argument.to_owned(), json!(format!("@{name}")));
        }
        for wire in &incoming[node] {
            let from = node_id(ops[wire.from], wire.from);
            args.insert(wire.argument.to_owned(), json!(reference(&from, wire.result)));
        }
        if let Err(invalid) = chain.node_from_json(&id, op.name(), &Value::Object(args).to_string()) {
            return Ok(Err(invalid));
        }
    }
    chain.source(format!("{baseline:?} baseline for pattern {}, input {index}, seed {seed}", pattern.id));
    Ok(chain.finish())
}

type Arguments = (Map<String, Value>, Vec<(&'static str, HostTensor)>);

fn uniform(op: OpKind, random: &mut Random) -> Arguments {
    let mut literals = Map::new();
    let mut tensors = Vec::new();
    for argument in op.arguments() {
        if TENSORS.contains(argument) {
            if !OPTIONAL.contains(argument) || random.chance(0.5) {
                tensors.push((*argument, any_tensor(random)));
            }
        } else if random.chance(0.7) {
            literals.insert((*argument).to_owned(), any_literal(argument, random));
        }
    }
    (literals, tensors)
}

fn mutated(op: OpKind, records: &Records, random: &mut Random) -> Result<Arguments, Unfit> {
    let classes = records.of(op);
    let total: usize = classes.iter().map(|&c| records.classes()[c].calls.len()).sum();
    if total == 0 {
        return Err(Unfit::NoCalls(op));
    }
    let mut at = random.below(total);
    let mut class = &records.classes()[classes[0]];
    for &c in classes {
        class = &records.classes()[c];
        if at < class.calls.len() {
            break;
        }
        at -= class.calls.len();
    }
    let call = &class.calls[at];
    let tensors = class.tensors.iter().zip(&call.features).map(|((argument, ty), seen)| {
        let mut ty = ty.clone();
        if random.chance(MUTATION) {
            ty.dtype = *random.pick(&DType::ALL);
        }
        (*argument, values::tensor(&ty, seen, Values::Range, false, random))
    });
    let tensors = tensors.collect();
    let literals = class.literals.iter().map(|(name, value)| {
        let value = if random.chance(MUTATION) { mutate(value, random) } else { value.clone() };
        (name.clone(), value)
    });
    Ok((literals.collect(), tensors))
}

fn mutate(value: &Value, random: &mut Random) -> Value {
    match value {
        Value::Bool(b) => json!(!b),
        Value::Number(n) if n.is_i64() => match random.below(4) {
            0 => json!(n.as_i64().unwrap_or(0).saturating_add(1)),
            1 => json!(n.as_i64().unwrap_or(0).saturating_neg()),
            2 => json!(random.below(1024)),
            _ => json!(-(random.below(1024) as i64)),
        },
        Value::Number(n) => json!(n.as_f64().unwrap_or(0.0) * (4.0 * random.unit() - 2.0)),
        Value::Array(list) => Value::Array(list.iter().map(|v| mutate(v, random)).collect()),
        Value::String(_) => json!(random.pick(&["none", "tanh", "same", "valid", "floor", "trunc"])),
        Value::Null => json!(random.below(16)),
        Value::Object(_) => value.clone(),
    }
}

fn any_tensor(random: &mut Random) -> HostTensor {
    let rank = random.below(MOST_DIMENSIONS + 1);
    let shape: Vec<usize> = (0..rank).map(|_| random.below(MOST_SIZE) + 1).collect();
    let dtype = *random.pick(&DType::ALL);
    let seen = TensorFeatures {
        dtype: dtype.name().to_owned(),
        shape: shape.clone(),
        min: Some(if matches!(dtype, DType::U8 | DType::Bool) { 0.0 } else { -100.0 }),
        max: Some(if dtype == DType::Bool { 1.0 } else { 100.0 }),
        mean: None,
        std: None,
        zeros: 0.0,
        nonfinite: 0.0,
        quantiles: Vec::new(),
        parameter: false,
    };
    values::tensor(&TensorType::new(dtype, shape), &seen, Values::Range, false, random)
}

/// A value of the kind that the argument's annotation in PyTorch has.
fn any_literal(argument: &str, random: &mut Random) -> Value {
    let int = |random: &mut Random| random.below(9) as i64 - 1;
    match argument {
        "ceil_mode" | "return_indices" | "training" => json!(random.chance(0.5)),
        "p" | "momentum" | "eps" => json!(random.unit()),
        "approximate" => json!(random.pick(&["none", "tanh"])),
        "rounding_mode" => json!(random.pick(&["trunc", "floor"])),
        "dtype" => json!(random.pick(&DType::ALL).name()),
        "start_dim" | "end_dim" | "dim" => {
            json!(random.below(2 * MOST_DIMENSIONS) as i64 - MOST_DIMENSIONS as i64)
        }
        "normalized_shape" => {
            let sizes: Vec<usize> = (0..=random.below(3)).map(|_| random.below(MOST_SIZE) + 1).collect();
            json!(sizes)
        }
        "kernel_size" | "stride" | "padding" | "dilation" | "output_size" if random.chance(0.5) => {
            json!([int(random), int(random)])
        }
        _ => json!(int(random)),
    }
}
