//! Test inputs for patterns (SORT, section III-C).
//!
//! A parameter is one of three kinds. Those of an entry node come from a recorded call, chosen at random. A dependent parameter
//! of a later node is an earlier node's result. The others of a later node come from a recorded call whose dependent
//! parameters have the dtypes and shapes of those results, chosen at random. Tensors are drawn by [`Values`], literals are
//! taken as recorded. What is generated is valid by construction: every call has the types and literals of one that ran.
//!
//! [`baseline`] makes inputs the way other methods do, valid or not, for comparison.

pub mod baseline;
mod fit;
#[cfg(test)]
mod tests;
pub(crate) mod values;

use serde_json::{Map, Value};
use ulpian_spec::case::CaseBuilder;
use ulpian_spec::trace::Pattern;
use ulpian_spec::{Case, CaseError, OpKind};

use crate::records::Records;
use fit::Wiring;
use values::Random;

pub use fit::Unfit;
pub use values::Values;

/// Generates inputs for one pattern.
#[derive(Debug)]
pub struct Generator<'a> {
    pattern: &'a Pattern,
    records: &'a Records,
    wirings: Vec<Wiring>,
    values: Values,
    seed: u64,
}

/// A case, and the calls whose features it has.
#[derive(Debug, Clone)]
pub struct Generated {
    /// The case.
    pub case: Case,
    /// For each node (model, node of its graph).
    pub origins: Vec<(String, usize)>,
}

impl<'a> Generator<'a> {
    /// Finds the recorded calls that fit the pattern.
    ///
    /// # Errors
    /// [`Unfit`] where there are none: nothing is forced.
    pub fn new(
        pattern: &'a Pattern,
        records: &'a Records,
        values: Values,
        seed: u64,
    ) -> Result<Generator<'a>, Unfit> {
        let wirings = fit::wirings(pattern, records)?;
        Ok(Generator { pattern, records, wirings, values, seed })
    }

    /// Input number `index`: the same for the same pattern, records, seed and index, whatever else is generated.
    ///
    /// # Errors
    /// [`CaseError`] where the case is not valid, which the choice of calls rules out.
    pub fn generate(&self, index: usize) -> Result<Generated, CaseError> {
        let mut random = Random::new(self.seed, self.pattern.id as u64, index as u64);
        let total: usize = self.wirings.iter().map(|w| w.weight.max(1)).sum();
        let mut at = random.below(total);
        let wiring = self.wirings.iter().find(|w| {
            let here = at < w.weight.max(1);
            at = at.saturating_sub(w.weight.max(1));
            here
        });
        let wiring = wiring.unwrap_or(&self.wirings[0]);
        let chosen = match wiring.draw(self.records, &mut random) {
            Ok(chosen) => chosen,
            // The search can be given up on by bad luck alone; the one that found the pattern fit is repeated then.
            Err(_) => wiring
                .draw(self.records, &mut Random::new(0, 0, 0))
                .expect("this very draw found classes when the wiring was made"),
        };
        let name = case_name(self.pattern, index);
        let mut builder = CaseBuilder::new(&name);
        let mut origins = Vec::new();
        for &node in &wiring.order {
            let class = &self.records.classes()[chosen[node]];
            let call = random.pick(&class.calls);
            let id = node_id(wiring.ops[node], node);
            let mut args: Map<String, Value> = class.literals.clone();
            for ((argument, ty), seen) in class.tensors.iter().zip(&call.features) {
                let text = match wiring.incoming[node].iter().find(|w| w.argument == *argument) {
                    Some(wire) => reference(&node_id(wiring.ops[wire.from], wire.from), wire.result),
                    None => {
                        let divisor = class.op == OpKind::Div && *argument == "other";
                        let tensor = values::tensor(ty, seen, self.values, divisor, &mut random);
                        let name = format!("{id}.{argument}");
                        builder.tensor(&name, tensor)?;
                        format!("@{name}")
                    }
                };
                args.insert((*argument).to_owned(), Value::String(text));
            }
            builder.node_from_json(&id, class.op.name(), &Value::Object(args).to_string())?;
            origins.push((node, call.model.clone(), call.node));
        }
        origins.sort_unstable();
        let origins: Vec<(String, usize)> =
            origins.into_iter().map(|(_, model, node)| (model, node)).collect();
        builder.source(source(self.pattern, &origins, self.seed, index));
        Ok(Generated { case: builder.finish()?, origins })
    }
}

/// The name of a case: its pattern's number and its own.
pub fn case_name(pattern: &Pattern, index: usize) -> String {
    format!("p{:05}-{index:05}", pattern.id)
}

/// Patterns of one node, one for each op: the ablation that tests every op alone (SORT, Single-API).
pub fn single_ops(ops: impl IntoIterator<Item = OpKind>) -> Vec<Pattern> {
    ops.into_iter()
        .enumerate()
        .map(|(id, op)| Pattern {
            format: ulpian_spec::trace::PATTERN_FORMAT.to_owned(),
            id,
            nodes: vec![op.name().to_owned()],
            edges: Vec::new(),
            directed: true,
            support: 0,
            graphs: Vec::new(),
            bindings: Vec::new(),
        })
        .collect()
}

fn node_id(op: OpKind, node: usize) -> String {
    format!("{}_{node}", op.name())
}

fn reference(id: &str, result: usize) -> String {
    if result == 0 { format!("%{id}") } else { format!("%{id}.{result}") }
}

fn source(pattern: &Pattern, origins: &[(String, usize)], seed: u64, index: usize) -> String {
    let nodes: Vec<String> = pattern
        .nodes
        .iter()
        .zip(origins)
        .map(|(label, (model, node))| format!("{label} as call {node} of {model}"))
        .collect();
    format!("generated for pattern {}, input {index}, seed {seed}: {}", pattern.id, nodes.join("; "))
}
