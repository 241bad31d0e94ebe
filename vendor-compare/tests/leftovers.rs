//! No process and no file outlives the pool, whichever way it ends, and whatever stands between Ulpian and Python.

#![allow(clippy::unwrap_used)]
#![cfg(target_os = "linux")]

mod common;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{case, config, failed, fragile_pool, id, input, node, ok, script};
use ulpian_spec::ops::relu;
use ulpian_spec::{Case, DType, HostTensor, Op, TensorType};
use ulpian_vendor_compare::{Pool, PoolConfig, environment};

/// ONNX Runtime's worker, which starts sooner than PyTorch's; all that is tested here is the same for both.
const FAMILY: &str = "ort";

fn small() -> Case {
    let op = Op::Relu(relu::Relu { input: input(0) });
    case(&[HostTensor::f32(&[2], &[-1.0, 2.0])], vec![(op, vec![TensorType::new(DType::F32, [2])])])
}

#[track_caller]
fn works(pool: &mut Pool) {
    let run = ok(pool.run(&id("ort:cpu"), &small()));
    assert_eq!(run.results[&node(0)].to_f64_vec(), [0.0, 2.0]);
}

/// Does the process run? One that has ended and that nobody has waited for does not.
fn runs(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

#[track_caller]
fn soon(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "not soon: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The number that a script wrote.
fn number_in(file: &Path) -> u32 {
    soon("the script writes its number", || {
        std::fs::read_to_string(file).is_ok_and(|text| text.ends_with('\n'))
    });
    std::fs::read_to_string(file).unwrap().trim().parse().unwrap()
}

/// A Python that is a script: it starts a process of its own and writes that one's number to `child`, then does `then`. When
/// asked what it has, it answers like one with torch.
fn wrapper(folder: &Path, in_the_probe: &str, then: &str) -> PathBuf {
    let python = folder.join("python");
    let child = folder.join("child");
    let start = format!("sleep 1000 & echo $! > '{}'", child.display());
    let text = format!(
        "#!/bin/sh\ncase \"$2\" in *find_spec*) {}\n\
         echo '{{\"python\": [3, 12, 0], \"torch\": \"2.11.0\", \"onnx\": null, \"onnxruntime\": null}}';;\n\
         *) {start}\n{then};; esac\n",
        if in_the_probe.is_empty() { String::new() } else { start.clone() },
    );
    script(&python, &text);
    python
}

fn with_python(python: PathBuf) -> PoolConfig {
    let mut config = config();
    config.python.chosen = Some(python);
    config
}

#[test]
fn dropping_the_pool_ends_its_processes() {
    let mut pool = fragile_pool();
    works(&mut pool);
    let worker = pool.processes()[0];
    assert!(runs(worker));
    drop(pool);
    assert!(!runs(worker));
}

#[test]
fn a_script_that_hangs_in_the_place_of_python_leaves_no_child() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = with_python(wrapper(folder.path(), "", "wait"));
    config.start_timeout = Duration::from_secs(1);
    let reason = failed(Pool::new(config).run(&id("ort:cpu"), &small()));
    assert!(reason.contains("no answer within 1 s"), "{reason}");
    let child = number_in(&folder.path().join("child"));
    soon("the script's child ends", || !runs(child));
}

#[test]
fn a_script_that_ends_leaves_no_child() {
    let folder = tempfile::tempdir().unwrap();
    let config = with_python(wrapper(folder.path(), "", "exit 3"));
    let reason = failed(Pool::new(config).run(&id("ort:cpu"), &small()));
    // Although the child holds the pipes open.
    assert!(reason.contains("exit code 3"), "{reason}");
    let child = number_in(&folder.path().join("child"));
    soon("the script's child ends", || !runs(child));
}

#[test]
fn a_script_that_leaves_a_child_when_asked_what_it_has_is_heard() {
    let folder = tempfile::tempdir().unwrap();
    let config = with_python(wrapper(folder.path(), "too", "wait"));
    let start = Instant::now();
    let found = environment::find(&config.python).unwrap();
    assert_eq!(found.has.torch.as_deref(), Some("2.11.0"));
    assert!(start.elapsed() < Duration::from_secs(20));
    let child = number_in(&folder.path().join("child"));
    soon("the script's child ends", || !runs(child));
}

/// Started by the tests below as a process of its own, to be killed.
#[test]
#[ignore = "a process for another test"]
fn be_killed() {
    let mut config = config();
    config.env.push(("ULPIAN_WORKER_TEST".into(), "1".into()));
    let mut pool = Pool::new(config);
    works(&mut pool);
    println!("\nworker {}", pool.processes()[0]);
    let _ = pool.misbehave(FAMILY, "hang");
}

/// Kills a process that hears a worker over `python`, and returns once neither a worker nor its files are there.
fn kill_and_look(python: Option<&Path>) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "be_killed", "--ignored", "--nocapture"]).stdout(Stdio::piped());
    if let Some(python) = python {
        command.env("ULPIAN_PYTHON", python);
    }
    let mut ulpian = command.spawn().unwrap();
    let mut lines = BufReader::new(ulpian.stdout.take().unwrap()).lines().map_while(Result::ok);
    let worker = lines.find_map(|line| line.strip_prefix("worker ")?.parse::<u32>().ok()).unwrap();
    let arguments = std::fs::read(format!("/proc/{worker}/cmdline")).unwrap();
    let folders: Vec<PathBuf> = arguments
        .split(|&b| b == 0)
        .map(|a| PathBuf::from(String::from_utf8_lossy(a).into_owned()))
        .filter(|a| a.to_string_lossy().contains("/ulpian-") && a.is_dir() && !a.ends_with("py"))
        .collect();
    assert!(!folders.is_empty());
    std::thread::sleep(Duration::from_millis(200));
    ulpian.kill().unwrap();
    ulpian.wait().unwrap();
    soon("the worker ends", || !runs(worker));
    soon("its folders are removed", || !folders.iter().any(|f| f.exists()));
}

#[test]
fn a_worker_ends_when_ulpian_is_killed_and_removes_its_files() {
    kill_and_look(None);
}

#[test]
fn so_does_one_behind_a_script_with_whatever_the_script_started() {
    let folder = tempfile::tempdir().unwrap();
    let real = environment::find_or_make(&config().python, &|_| ()).unwrap().executable;
    let child = folder.path().join("child");
    let python = folder.path().join("python");
    // The script waits for Python, and has a child of its own beside it.
    let text = format!(
        "#!/bin/sh\nsleep 1000 > /dev/null 2>&1 & echo $! > '{}'\n'{}' \"$@\"\n",
        child.display(),
        real.display()
    );
    script(&python, &text);
    kill_and_look(Some(&python));
    let child = number_in(&child);
    soon("the script's child ends", || !runs(child));
}
