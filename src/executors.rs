//! Everybody who can be heard, by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};
use ulpian_reference::replay::{Hypothesis, hypotheses, hypothesis};
use ulpian_reference::{Settings, evaluate};
use ulpian_spec::executor::ExecutorIdError;
use ulpian_spec::{Case, ExecutorId, HostTensor, Op, Outcome, Run, ValueRef};
use ulpian_vendor_compare::{Pool, PoolConfig};

/// The executors of this machine. Nothing is started, and no Python looked for, before somebody who needs it is to run.
#[derive(Debug)]
pub struct Executors {
    pool: Pool,
    gpu: bool,
    python_heard: bool,
}

impl Executors {
    /// Executors over a pool of Python workers. `gpu` says whether this machine has a GPU that CUDA can use.
    pub fn new(config: PoolConfig, gpu: bool) -> Executors {
        Executors { pool: Pool::new(config), gpu, python_heard: false }
    }

    /// Checks that there is such an executor, here or elsewhere, with these keys.
    ///
    /// # Errors
    /// What is wrong with the name, and what it could be.
    pub fn check(id: &ExecutorId) -> Result<(), ExecutorIdError> {
        let wrong = |why: String| ExecutorIdError { text: id.to_string(), why };
        match id.family.as_str() {
            "gpu" => match id.variant.as_str() {
                "native" | "cublas" | "cudnn" => Ok(()),
                other => Err(wrong(format!("no gpu executor `{other}`; there are native, cublas and cudnn"))),
            },
            "replay" if !id.keys.is_empty() => Err(wrong("a replay has no keys".to_owned())),
            "replay" => hypothesis(&id.variant).map(drop).ok_or_else(|| {
                let names: Vec<&str> = hypotheses().iter().map(|h| h.name).collect();
                wrong(format!("no hypothesis `{}`; there are: {}", id.variant, names.join(", ")))
            }),
            "torch" | "ort" | "recorded" => Pool::check(id),
            other => {
                Err(wrong(format!("no family `{other}`; there are torch, ort, recorded, replay and gpu")))
            }
        }
    }

    /// Who is heard where nobody is named: every recorded party of the case, those that its `expect` names, PyTorch on the CPU,
    /// and PyTorch on the GPU, which is unavailable where there is none.
    pub fn default_parties(case: &Case) -> Vec<ExecutorId> {
        let recorded = case.recorded_parties().into_iter().map(|name| ExecutorId::new("recorded", name));
        let expected = case.expect.iter().flat_map(|e| &e.executors).filter_map(|text| text.parse().ok());
        let torch = ["cpu", "cuda"].map(|device| ExecutorId::new("torch", device));
        let mut parties: Vec<ExecutorId> = Vec::new();
        for id in recorded.chain(torch).chain(expected) {
            if !parties.contains(&id) {
                parties.push(id);
            }
        }
        parties
    }

    /// Hears a party.
    pub fn run(&mut self, id: &ExecutorId, case: &Case) -> Outcome {
        match id.family.as_str() {
            "replay" => match hypothesis(&id.variant) {
                Some(hypothesis) => replay(hypothesis, case),
                None => Outcome::Failed { reason: format!("no hypothesis `{}`", id.variant) },
            },
            "gpu" => Outcome::Unavailable {
                reason: "this version of Ulpian has no GPU executors of its own".to_owned(),
                remedy: "hear torch:cuda, or record what the GPU returned and judge it as recorded:NAME"
                    .to_owned(),
            },
            "torch" if id.variant == "cuda" && !self.gpu => Outcome::Unavailable {
                reason: "this machine has no NVIDIA GPU with a driver".to_owned(),
                remedy: "run there, or record what the GPU returned and judge it as recorded:NAME".to_owned(),
            },
            family => {
                self.python_heard |= family != "recorded";
                self.pool.run(id, case)
            }
        }
    }

    /// Tries an explanation. Python is started for none of them where no party needed it.
    pub fn intervene(&mut self, id: &ExecutorId, case: &Case) -> Outcome {
        if matches!(id.family.as_str(), "torch" | "ort") && !self.python_heard {
            return Outcome::Unavailable {
                reason: "PyTorch is no party here, so it was not started".to_owned(),
                remedy: "hear torch:cpu too".to_owned(),
            };
        }
        self.run(id, case)
    }

    /// Versions and machine facts, of what has run so far.
    pub fn facts(&self) -> Map<String, Value> {
        let mut facts = Map::new();
        facts.insert("ulpian".to_owned(), Value::from(env!("CARGO_PKG_VERSION")));
        facts.insert("os".to_owned(), Value::from(std::env::consts::OS));
        facts.insert("arch".to_owned(), Value::from(std::env::consts::ARCH));
        facts.extend(self.pool.environment_facts());
        facts
    }

    /// The pool of Python workers.
    pub fn pool(&mut self) -> &mut Pool {
        &mut self.pool
    }
}

/// The whole case under one hypothesis: nodes that it is about are replayed on this run's own earlier results; every other
/// node is correctly rounded.
fn replay(hypothesis: &Hypothesis, case: &Case) -> Outcome {
    let mut results: BTreeMap<ValueRef, Arc<HostTensor>> = BTreeMap::new();
    let mut notes = Vec::new();
    for (node, n) in case.nodes.iter().enumerate() {
        let tensor = |at: ValueRef| match at {
            ValueRef::Input(i) => Some(Arc::clone(&case.tensors[i].value)),
            ValueRef::Node { .. } => results.get(&at).cloned(),
        };
        let operands = n.op.clone().try_map(|_, at| tensor(at).ok_or(at));
        let Ok(operands) = operands else {
            return Outcome::Failed { reason: format!("node {}: an operand has no result", n.id) };
        };
        let op: Op<&HostTensor> = operands.as_ref().map(|_, t| t.as_ref());
        let replayed = if hypothesis.ops.contains(&op.kind()) { (hypothesis.run)(&op) } else { None };
        let outputs = match replayed {
            Some(outputs) => {
                notes.push(format!("{} replayed", n.id));
                outputs
            }
            None => match evaluate(&op, &Settings::default()) {
                Ok(exact) => exact.into_iter().map(|e| e.value).collect(),
                Err(e) => return Outcome::Failed { reason: format!("node {}: {e}", n.id) },
            },
        };
        for (output, tensor) in outputs.into_iter().enumerate() {
            results.insert(ValueRef::Node { node, output }, Arc::new(tensor));
        }
    }
    if notes.is_empty() {
        let ops: Vec<&str> = hypothesis.ops.iter().map(|op| op.name()).collect();
        return Outcome::Unavailable {
            reason: format!("the hypothesis applies to no node of this case; it is about {}", ops.join(", ")),
            remedy: "name another hypothesis".to_owned(),
        };
    }
    Outcome::Ok(Run { results, seconds: None, notes })
}
