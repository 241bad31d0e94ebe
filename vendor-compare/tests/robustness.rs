//! A worker that dies, hangs or talks nonsense costs one case, and says why.

#![allow(clippy::unwrap_used)]

mod common;

use std::process::Command;
use std::time::{Duration, Instant};

#[cfg(unix)]
use common::script;
use common::{case, config, failed, fragile_pool, id, input, node, ok, search, unavailable};
use ulpian_spec::ops::{linear, relu};
use ulpian_spec::{Case, DType, HostTensor, Op, Outcome, TensorType};
use ulpian_vendor_compare::{Error, Pool};

fn small() -> Case {
    let op = Op::Relu(relu::Relu { input: input(0) });
    case(&[HostTensor::f32(&[2], &[-1.0, 2.0])], vec![(op, vec![TensorType::new(DType::F32, [2])])])
}

/// ONNX Runtime's worker, which starts sooner than PyTorch's; all that is tested here is the same for both.
const FAMILY: &str = "ort";

#[track_caller]
fn works(pool: &mut Pool) {
    let run = ok(pool.run(&id("ort:cpu"), &small()));
    assert_eq!(run.results[&node(0)].to_f64_vec(), [0.0, 2.0]);
}

#[test]
fn exit_crash_and_garbage_cost_one_request() {
    let mut pool = fragile_pool();
    for (how, says) in [
        ("exit", &["exit code 7", "told to exit"][..]),
        ("segfault", &["SIGSEGV"]),
        ("garbage", &["no frame", "Intel"]),
    ] {
        works(&mut pool);
        let before = pool.processes();
        let error = pool.misbehave(FAMILY, how).unwrap_err().to_string();
        for part in says {
            assert!(error.contains(part), "{how}: {error}");
        }
        works(&mut pool);
        assert_ne!(before, pool.processes(), "{how}");
    }
}

#[test]
fn what_libraries_print_does_not_disturb() {
    let mut pool = fragile_pool();
    pool.misbehave(FAMILY, "print").unwrap();
    works(&mut pool);
}

#[test]
fn an_op_that_fails_keeps_the_results_before_it() {
    let ty = vec![TensorType::new(DType::F32, [2])];
    // No case that can be read asks for this: the weight has three columns.
    let fails = linear::Linear { input: node(0), weight: input(1), bias: None };
    let case = case(
        &[HostTensor::f32(&[2], &[-1.0, 2.0]), HostTensor::f32(&[2, 3], &[1.0; 6])],
        vec![
            (Op::Relu(relu::Relu { input: input(0) }), ty.clone()),
            (Op::Linear(fails), ty.clone()),
            (Op::Relu(relu::Relu { input: node(1) }), ty),
        ],
    );
    let mut pool = Pool::new(config());
    let Outcome::Failed { reason, before } = pool.run(&id("torch:cpu"), &case) else { panic!("it fails") };
    assert!(reason.starts_with("node n1: RuntimeError"), "{reason}");
    assert_eq!(before.results.keys().collect::<Vec<_>>(), [&node(0)]);
    assert_eq!(before.results[&node(0)].to_f64_vec(), [0.0, 2.0]);
}

#[test]
fn misbehaviour_needs_leave() {
    let mut pool = Pool::new(config());
    let error = pool.misbehave(FAMILY, "exit").unwrap_err();
    assert!(matches!(&error, Error::Exception { kind, .. } if kind == "ProtocolError"), "{error}");
    works(&mut pool);
}

#[cfg(unix)]
fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().unwrap().success());
}

#[cfg(unix)]
#[test]
fn a_kill_in_the_middle_of_a_case() {
    let mut pool = fragile_pool();
    works(&mut pool);
    let pid = pool.processes()[0];
    let killer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        signal(pid, "KILL");
    });
    let error = pool.misbehave(FAMILY, "hang").unwrap_err();
    killer.join().unwrap();
    assert!(matches!(&error, Error::Died { status, .. } if status.contains("SIGKILL")), "{error}");
    works(&mut pool);
}

#[cfg(unix)]
#[test]
fn a_kill_between_cases_costs_nothing() {
    let mut pool = fragile_pool();
    works(&mut pool);
    signal(pool.processes()[0], "KILL");
    std::thread::sleep(Duration::from_millis(200));
    works(&mut pool);
}

#[cfg(unix)]
#[test]
fn a_stopped_worker_runs_out_of_time() {
    let mut config = config();
    config.timeout = Duration::from_secs(1);
    let mut pool = Pool::new(config);
    pool.introduce(FAMILY).unwrap();
    let pid = pool.processes()[0];
    signal(pid, "STOP");
    let start = Instant::now();
    let reason = failed(pool.run(&id("ort:cpu"), &small()));
    assert!(reason.contains("no answer within 1 s"), "{reason}");
    assert!(start.elapsed() < Duration::from_secs(5));
    assert!(pool.processes().is_empty());
}

#[cfg(unix)]
#[test]
fn a_death_at_the_start_shows_its_last_words() {
    let folder = tempfile::tempdir().unwrap();
    let python = folder.path().join("python");
    // Answers the probe like a Python with torch, and dies as a worker.
    let text = "#!/bin/sh\ncase \"$2\" in *find_spec*) \
        echo '{\"python\": [3, 12, 0], \"torch\": \"2.11.0\", \"onnx\": null, \"onnxruntime\": null}';; \
        *) echo 'libtorch_cpu.so: undefined symbol' >&2; exit 3;; esac\n";
    script(&python, text);
    let mut config = config();
    config.python.chosen = Some(python);
    let reason = failed(Pool::new(config).run(&id("ort:cpu"), &small()));
    assert!(reason.contains("exit code 3") && reason.contains("undefined symbol"), "{reason}");
}

#[test]
fn without_python_there_is_a_remedy() {
    let mut config = config();
    config.python = search();
    config.python.chosen = None;
    config.python.active.clear();
    config.python.path.clear();
    config.python.allow_managed = false;
    let (reason, remedy) = unavailable(Pool::new(config.clone()).run(&id("ort:cpu"), &small()));
    assert!(reason.contains("no Python was found"), "{reason}");
    assert!(remedy.contains("ULPIAN_PYTHON"), "{remedy}");
    config.python.chosen = Some("/nonexistent/python".into());
    let (reason, _) = unavailable(Pool::new(config).run(&id("ort:cpu"), &small()));
    assert!(reason.contains("/nonexistent/python"), "{reason}");
}
