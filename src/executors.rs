//! Everybody who can be heard, by name.

use std::sync::Arc;

use serde_json::{Map, Value};
use ulpian_reference::replay::{Contraction, Hypothesis, contractions, hypotheses, hypothesis};
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
            "replay" => Replay::named(&id.variant).map(drop).ok_or_else(|| {
                let single = hypotheses().iter().map(|h| h.name);
                let names: Vec<&str> = single.chain(contractions().iter().map(|c| c.name)).collect();
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

    /// Begins to start whatever processes these parties need, and does not wait for them. Why one cannot be started is said when it
    /// is to run.
    pub fn start(&mut self, parties: &[ExecutorId]) {
        let here = |id: &&ExecutorId| {
            matches!(id.family.as_str(), "torch" | "ort") && (id.variant != "cuda" || self.gpu)
        };
        let here: Vec<ExecutorId> = parties.iter().filter(here).cloned().collect();
        self.pool.start(&here);
    }

    /// Hears a party.
    pub fn run(&mut self, id: &ExecutorId, case: &Case) -> Outcome {
        match id.family.as_str() {
            "replay" => match Replay::named(&id.variant) {
                Some(replay) => replay.case(case),
                None => Outcome::failed(format!("no hypothesis `{}`", id.variant)),
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
        let mut facts = Executors::own_facts();
        facts.extend(self.pool.environment_facts());
        facts
    }

    /// Those among the facts that do not depend on who has run.
    pub fn own_facts() -> Map<String, Value> {
        let mut facts = Map::new();
        facts.insert("ulpian".to_owned(), Value::from(env!("CARGO_PKG_VERSION")));
        facts.insert("os".to_owned(), Value::from(std::env::consts::OS));
        facts.insert("arch".to_owned(), Value::from(std::env::consts::ARCH));
        facts
    }

    /// The pool of Python workers.
    pub fn pool(&mut self) -> &mut Pool {
        &mut self.pool
    }
}

/// What `replay:NAME` can name.
#[derive(Clone, Copy)]
enum Replay {
    /// A way of computing one node.
    Single(&'static Hypothesis),
    /// A way of computing a product and a sum of it as one.
    Pair(&'static Contraction),
}

type Operands = Op<Arc<HostTensor>>;

impl Replay {
    fn named(name: &str) -> Option<Replay> {
        let pair = || contractions().iter().find(|c| c.name == name).map(Replay::Pair);
        hypothesis(name).map(Replay::Single).or_else(pair)
    }

    /// The whole case: nodes that the hypothesis is about are replayed on this run's own earlier results; every other node is
    /// correctly rounded.
    fn case(self, case: &Case) -> Outcome {
        let mut run = Run::default();
        let mut calls: Vec<Operands> = Vec::new();
        for (node, n) in case.nodes.iter().enumerate() {
            let tensor = |at: ValueRef| match at {
                ValueRef::Input(i) => Some(Arc::clone(&case.tensors[i].value)),
                ValueRef::Node { .. } => run.results.get(&at).cloned(),
            };
            let Ok(call) = n.op.clone().try_map(|name, at| tensor(at).ok_or(name)) else {
                let reason = format!("node {}: an operand has no result", n.id);
                return Outcome::Failed { reason, before: run };
            };
            let outputs = match self.node(&n.op, &call, &calls) {
                Some(outputs) => {
                    run.notes.push(format!("{} replayed", n.id));
                    outputs
                }
                None => match evaluate(&borrowed(&call), &Settings::default()) {
                    Ok(exact) => exact.into_iter().map(|e| e.value).collect(),
                    Err(e) => return Outcome::Failed { reason: format!("node {}: {e}", n.id), before: run },
                },
            };
            let named = outputs.into_iter().enumerate();
            run.results.extend(named.map(|(output, t)| (ValueRef::Node { node, output }, Arc::new(t))));
            calls.push(call);
        }
        if run.notes.is_empty() {
            return Outcome::Unavailable {
                reason: format!(
                    "the hypothesis applies to no node of this case; it is about {}",
                    self.subject()
                ),
                remedy: "name another hypothesis".to_owned(),
            };
        }
        Outcome::Ok(run)
    }

    /// One node's results; `None` where the hypothesis does not apply to it.
    fn node(self, op: &Op<ValueRef>, call: &Operands, earlier: &[Operands]) -> Option<Vec<HostTensor>> {
        match self {
            Replay::Single(hypothesis) if hypothesis.ops.contains(&op.kind()) => {
                (hypothesis.run)(&borrowed(call))
            }
            Replay::Single(_) => None,
            Replay::Pair(contraction) => op.operands().into_iter().find_map(|(argument, &at)| {
                let ValueRef::Node { node, output: 0 } = at else { return None };
                (contraction.run)(&borrowed(&earlier[node]), &borrowed(call), argument == "other")
            }),
        }
    }

    fn subject(self) -> String {
        match self {
            Replay::Single(hypothesis) => {
                hypothesis.ops.iter().map(|op| op.name()).collect::<Vec<_>>().join(", ")
            }
            Replay::Pair(_) => "a product and a sum of it".to_owned(),
        }
    }
}

fn borrowed(call: &Operands) -> Op<&HostTensor> {
    call.as_ref().map(|_, t| t.as_ref())
}
