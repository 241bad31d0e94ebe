//! The native kernels: compiled for the host, their bits are those of the replay in Rust, and those are within the judge's
//! bound of the truth; compiled to PTX, they hold no approximate and no contracted instruction. No GPU is needed.

#[path = "native/calls.rs"]
mod calls;
#[path = "native/launch.rs"]
mod launch;
mod python;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use calls::{Calls, Values};
use serde::Deserialize;
use ulpian_kernels::Launch;
use ulpian_reference::{Settings, replay};
use ulpian_spec::case::CaseBuilder;
use ulpian_spec::{DType, ExecutorId, HostTensor, Op, OpKind, Outcome, Run, Storage, ValueRef};
use ulpian_vendor_compare::judge::Hearing;

/// Calls of an op and dtype, half of them over any bits.
const CALLS: usize = 240;
/// Those of them that are measured against the truth.
const JUDGED: usize = 40;
/// Compute capabilities, from Turing to Blackwell.
const ARCHITECTURES: [&str; 7] = ["75", "80", "86", "89", "90", "100", "120"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The ops that have a kernel: one a file.
fn kernels() -> BTreeMap<OpKind, PathBuf> {
    let folder = root().join("kernels/cu");
    let files =
        std::fs::read_dir(&folder).expect("the folder of kernels").map(|e| e.expect("an entry").path());
    let sources = files.filter(|f| f.extension().is_some_and(|e| e == "cu"));
    sources
        .map(|f| {
            let stem = f.file_stem().and_then(|s| s.to_str()).expect("a name").to_owned();
            (OpKind::from_name(&stem).unwrap_or_else(|| panic!("{stem}.cu is named after no op")), f)
        })
        .collect()
}

/// A program that runs the kernels of a file on the host.
fn compile(source: &Path, program: &Path) {
    let mut compiler = Command::new("c++");
    compiler.args(["-std=c++17", "-O2", "-Wall", "-Werror", "-ffp-contract=off", "-rdynamic"]);
    if cfg!(target_arch = "x86_64") {
        compiler.arg("-mfma");
    }
    compiler
        .arg(format!("-DKERNEL_FILE=\"{}\"", source.display()))
        .args(["-x", "c++"])
        .arg(root().join("tests/native/host.cpp"))
        .arg("-o")
        .arg(program)
        .arg("-ldl");
    let status = compiler.status().expect("this test needs a C++ compiler, by the name of c++");
    assert!(status.success(), "{} does not compile for the host", source.display());
}

/// Runs the launches of these calls.
fn execute(program: &Path, calls: &[Op<HostTensor>]) -> Vec<Vec<HostTensor>> {
    let folder = program.parent().expect("in a folder");
    let (input, output) = (folder.join("launches"), folder.join("results"));
    let launches: Vec<Vec<Launch>> =
        calls.iter().map(|op| Launch::of(&op.as_ref()).expect("the op has a native kernel")).collect();
    let mut file = Vec::new();
    launches.iter().flatten().for_each(|l| launch::write(l, &mut file));
    std::fs::write(&input, file).expect("a temporary file");
    let status = Command::new(program).args([&input, &output]).status().expect("the program starts");
    assert!(status.success(), "{} failed", program.display());
    let bytes = std::fs::read(&output).expect("the results");
    let mut rest = &bytes[..];
    let mut take = |launch: &Launch| {
        let (own, after) = rest.split_at(launch.result_bytes());
        rest = after;
        let storage = Storage::from_le_bytes(launch.result.dtype, own);
        HostTensor::new(launch.result.shape.clone(), storage).expect("the result's bytes")
    };
    let results = launches.iter().map(|of_call| of_call.iter().map(&mut take).collect()).collect();
    assert!(rest.is_empty(), "more bytes than results");
    results
}

#[test]
fn on_the_host_the_bits_are_those_of_the_replay() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (kind, source) in kernels() {
        let program = folder.path().join(kind.name());
        compile(&source, &program);
        for dtype in DType::FLOATS {
            let mut draw = Calls::new(dtype, 4);
            let values = |i| if i % 2 == 0 { Values::Moderate } else { Values::Any };
            let calls: Vec<_> = (0..CALLS).map(|i| draw.draw(kind, values(i))).collect();
            let seen = execute(&program, &calls);
            for (call, seen) in calls.iter().zip(&seen) {
                let own = replay::native::run(&call.as_ref()).expect("the op has a native replay");
                assert_eq!(own.len(), seen.len());
                assert!(
                    own.iter().zip(seen).all(|(a, b)| a.same_bits(b)),
                    "{call:?}: {own:?}, the kernel {seen:?}"
                );
            }
        }
    }
}

#[test]
fn replays_are_within_the_bound_of_the_truth() {
    for kind in kernels().into_keys() {
        for dtype in DType::FLOATS {
            let mut draw = Calls::new(dtype, 5);
            let mut measured = 0;
            for i in 0..JUDGED {
                // A sum of products of any bits may overflow on the way to a finite sum; no bound excuses that.
                let sums = matches!(kind, OpKind::Matmul | OpKind::Linear);
                let call = draw.draw(kind, if i % 4 == 0 && !sums { Values::Any } else { Values::Moderate });
                measured += usize::from(judged(&call));
            }
            assert!(measured > JUDGED / 2, "{kind} {dtype}: only {measured} calls have a finite truth");
        }
    }
}

/// Asserts that the judge finds the replay of a call within its bound and of the truth's classes. Is there a finite truth?
fn judged(call: &Op<HostTensor>) -> bool {
    let mut builder = CaseBuilder::new("native");
    let mut count = 0;
    let op = call.clone().map(|_, t| {
        count += 1;
        builder.tensor(format!("t{count}"), Arc::new(t)).expect("a small tensor")
    });
    builder.node("y", op).expect("the call is valid");
    let case = builder.finish().expect("a case of one node");
    let mut hearing = Hearing::new(&case, &Settings::default()).expect("the truth exists");
    let results = replay::native::run(&call.as_ref()).expect("the op has a native replay");
    let results = results.into_iter().enumerate();
    let results = results.map(|(output, t)| (ValueRef::Node { node: 0, output }, Arc::new(t))).collect();
    hearing.hear(ExecutorId::new("replay", "native"), Outcome::Ok(Run { results, ..Run::default() }));
    let verdict = hearing.verdict(serde_json::Map::new());
    let heard = &verdict.nodes[0].executors[0];
    assert_eq!(heard.status, "ok", "{call:?}: {:?}", heard.reason);
    let within = heard.local.as_ref().is_none_or(|local| local.bound_ratio <= 1.0);
    assert!(within && heard.class_mismatches == Some(0), "{call:?}: {heard:?}");
    heard.local.is_some()
}

#[derive(Deserialize)]
struct Compiled {
    version: String,
    known: Vec<u32>,
    ptx: BTreeMap<String, BTreeMap<String, String>>,
}

#[test]
fn the_ptx_holds_no_approximate_and_no_contracted_instruction() {
    let folder = root().join("kernels/cu");
    let mut arguments = vec![folder.to_str().expect("a path in UTF-8")];
    arguments.extend(ARCHITECTURES);
    let said = python::run("native/nvrtc.py", &arguments);
    let compiled: Compiled = serde_json::from_str(&said).expect("the script's own JSON");
    println!("NVRTC {} knows {:?}", compiled.version, compiled.known);
    let asked: BTreeSet<&str> =
        ARCHITECTURES.into_iter().filter(|a| compiled.known.iter().any(|k| k.to_string() == *a)).collect();
    assert!(asked.len() >= 5, "NVRTC {} knows but {asked:?} of {ARCHITECTURES:?}", compiled.version);
    assert_eq!(compiled.ptx.keys().map(String::as_str).collect::<BTreeSet<_>>(), asked);
    for (architecture, files) in &compiled.ptx {
        assert_eq!(files.len(), kernels().len());
        for (file, ptx) in files {
            for dtype in DType::FLOATS {
                let entry = format!(".entry {}_{dtype}(", file.trim_end_matches(".cu"));
                assert!(ptx.contains(&entry), "{file} for {architecture} has no {entry}");
            }
            let fused = ["add", "matmul", "linear", "div"].contains(&file.trim_end_matches(".cu"));
            let mut any_fused = false;
            for opcode in float_opcodes(ptx) {
                check(opcode).unwrap_or_else(|why| panic!("{file} for {architecture}: {opcode}: {why}"));
                any_fused |= opcode.starts_with("fma.");
            }
            assert_eq!(
                any_fused, fused,
                "{file} for {architecture}: fma where the source writes it, and only there"
            );
        }
    }
}

/// The opcodes of a PTX text that compute with floating-point numbers.
fn float_opcodes(ptx: &str) -> impl Iterator<Item = &str> {
    let words = ptx.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let first = words.next()?;
        if first.starts_with('@') { words.next() } else { Some(first) }
    });
    words.filter(|w| {
        !w.starts_with(['.', '/', '$', '{', '}'])
            && [".f16", ".bf16", ".f32", ".f64"].iter().any(|t| w.contains(t))
    })
}

/// An instruction that rounds must say so by `.rn`: ptxas may contract `mul` and `add` without one.
fn check(opcode: &str) -> Result<(), &'static str> {
    let parts: Vec<&str> = opcode.trim_end_matches(';').split('.').collect();
    let has = |part: &str| parts.contains(&part);
    if has("approx") || has("full") || has("ftz") || has("sat") || has("f16") || has("bf16") {
        return Err("approximate, flushing, or in 16 bits");
    }
    match parts[0] {
        "add" | "sub" | "mul" | "div" | "sqrt" | "fma" if has("rn") => Ok(()),
        "cvt" if has("rn") || has("rzi") || has("rmi") || !(has("f32") && parts.last() == Some(&"f64")) => {
            Ok(())
        }
        "ld" | "st" | "mov" | "setp" | "selp" | "neg" | "abs" => Ok(()),
        _ => Err("not one of the operations that the kernels are written in"),
    }
}
