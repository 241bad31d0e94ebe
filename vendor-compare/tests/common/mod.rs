//! A pool over the Python of this machine, and cases made by hand.

#![allow(dead_code, clippy::unwrap_used)]

use std::sync::Arc;
use std::time::Duration;

use etcetera::{BaseStrategy, choose_base_strategy};
use ulpian_spec::case::CaseTensor;
use ulpian_spec::{Case, ExecutorId, HostTensor, Node, Op, Outcome, Run, TensorType, ValueRef};
use ulpian_vendor_compare::environment::PythonSearch;
use ulpian_vendor_compare::{Pool, PoolConfig};

/// Where the command line looks too.
pub(crate) fn search() -> PythonSearch {
    let cache = choose_base_strategy().map(|s| s.cache_dir()).unwrap_or_default();
    PythonSearch::from_variables(|name| std::env::var_os(name), cache)
}

pub(crate) fn config() -> PoolConfig {
    let mut config = PoolConfig::new(search(), std::env::temp_dir());
    config.on_progress = Some(Arc::new(|progress| eprintln!("{progress:?}")));
    config
}

/// A pool whose workers obey `misbehave`, with a short time for each case.
pub(crate) fn fragile_pool() -> Pool {
    let mut config = config();
    config.env.push(("ULPIAN_WORKER_TEST".into(), "1".into()));
    config.timeout = Duration::from_secs(20);
    Pool::new(config)
}

pub(crate) fn id(text: &str) -> ExecutorId {
    text.parse().unwrap()
}

pub(crate) fn input(i: usize) -> ValueRef {
    ValueRef::Input(i)
}

pub(crate) fn node(node: usize) -> ValueRef {
    ValueRef::Node { node, output: 0 }
}

/// A case over these tensors; the result types of its nodes are given.
pub(crate) fn case(tensors: &[HostTensor], nodes: Vec<(Op<ValueRef>, Vec<TensorType>)>) -> Case {
    let tensor = |(i, t): (usize, &HostTensor)| CaseTensor {
        name: format!("t{i}"),
        inline: false,
        value: Arc::new(t.clone()),
    };
    let nodes: Vec<Node> = nodes
        .into_iter()
        .enumerate()
        .map(|(i, (op, types))| Node { id: format!("n{i}"), op, types })
        .collect();
    Case {
        name: "case".into(),
        source: String::new(),
        tensors: tensors.iter().enumerate().map(tensor).collect(),
        outputs: vec![ValueRef::Node { node: nodes.len() - 1, output: 0 }],
        nodes,
        observed: Vec::new(),
        expect: None,
    }
}

#[track_caller]
pub(crate) fn ok(outcome: Outcome) -> Run {
    match outcome {
        Outcome::Ok(run) => run,
        other => panic!("{other:?}"),
    }
}

/// Reason and remedy.
#[track_caller]
pub(crate) fn unavailable(outcome: Outcome) -> (String, String) {
    match outcome {
        Outcome::Unavailable { reason, remedy } => (reason, remedy),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
pub(crate) fn failed(outcome: Outcome) -> String {
    match outcome {
        Outcome::Failed { reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}

/// Writes an executable script. Another process does it: a descriptor open for writing that a process started meanwhile has
/// inherited would keep the script from running.
#[cfg(unix)]
pub(crate) fn script(path: &std::path::Path, text: &str) {
    use std::io::Write;
    let mut shell = std::process::Command::new("sh")
        .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
        .arg(path)
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    shell.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(shell.wait().unwrap().success());
}
