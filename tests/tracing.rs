//! Models traced through the command line, and runs captured for the judge, with plain PyTorch.

#![allow(clippy::unwrap_used)]

mod common;
mod python;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Said, file, said, text, ulpian};
use ulpian::mining::files::{self, Limits};
use ulpian::records::TracedModel;
use ulpian::spec::trace::{Call, TensorFeatures};
use ulpian::spec::verdict::CaseVerdict;
use ulpian::spec::{Case, case};

const PACKAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/vendor-compare/py");

/// The program with the Python that the tests use.
fn with_python(args: &[&str]) -> Command {
    let mut command = ulpian(args);
    match std::env::var_os("ULPIAN_PYTHON").filter(|v| !v.is_empty()) {
        Some(chosen) => command.env("ULPIAN_PYTHON", chosen),
        None => command.env_remove("ULPIAN_PYTHON"),
    };
    command.env_remove("ULPIAN_MANAGED_PYTHON");
    command
}

fn trace(folder: &Path, sources: &[&str], more: &[&str]) -> Said {
    let mut args = vec!["trace"];
    args.extend(sources);
    args.extend(["--out", "traces"]);
    args.extend(more);
    let mut command = with_python(&args);
    command.current_dir(folder);
    said(command)
}

fn lines(said: &Said) -> Vec<TracedModel> {
    said.out
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}")))
        .collect()
}

/// Labels with what feeds them: `add(input=0, other=0)`.
fn shown(path: &Path) -> Vec<String> {
    let graph = files::read_graph(path, Limits::default()).unwrap();
    let node = |n: &ulpian::spec::trace::GraphNode| {
        let inputs: Vec<_> = n.inputs.iter().map(|s| format!("{}={}", s.argument, s.node)).collect();
        format!("{}({})", n.label, inputs.join(", "))
    };
    graph.nodes.iter().map(node).collect()
}

#[test]
fn small_models_have_the_graphs_that_they_must_have() {
    let passed = python::run("tracing/check.py", &[PACKAGE]);
    assert!(passed.lines().count() >= 14, "{passed}");
}

const OWN: &str = r#"
import torch
from torch import nn
from beside import side

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
        self.act = nn.GELU()

    def forward(self, x):
        print("models may print")
        return self.act(self.fc(x)) + 1

def make():
    torch.manual_seed(3)
    return Net(), torch.ones(2, side)

def loader():
    return Net(), [(torch.zeros(5, side), torch.tensor([0, 1, 2, 0, 1]))]

def broken():
    raise ValueError("no weights today")

class Crash(nn.Module):
    def forward(self, x):
        import os
        os.abort()

def crash():
    return Crash(), torch.ones(1)

class Slow(nn.Module):
    def forward(self, x):
        import time
        while True:
            time.sleep(1)

def slow():
    return Slow(), torch.ones(1)

def wrong_shape():
    return nn.Linear(3, 4), torch.ones(2, 5)

def number():
    return 7

def leaves():
    raise SystemExit("no more")

def asks():
    return Net(), torch.ones(2, int(input()))

def surrogate():
    raise ValueError("\udcff is no character")

class Odd(nn.Module):
    def forward(self, x):
        class Own(torch.Tensor):
            pass
        torch.relu(x.as_subclass(Own))
        torch.relu(torch.nested.nested_tensor([x, x[:1]]))
        return torch.relu(x.to("meta"))

def odd():
    return Odd(), torch.ones(2, 3)
"#;

#[test]
fn a_model_of_ones_own_is_traced_and_a_failing_one_costs_itself_alone() {
    let dir = tempfile::tempdir().unwrap();
    file(dir.path(), "my_model.py", OWN);
    file(dir.path(), "beside.py", "side = 3");
    let sources = [
        "my_model.py:make",
        "my_model.py:broken",
        "my_model.py:crash",
        "my_model.py:wrong_shape",
        "my_model.py:number",
        "my_model.py:none",
        "missing.py:make",
        "my_model.py",
        "torchvison:resnet18",
        "my_model.py:loader",
        "my_model.py:leaves",
        "my_model.py:asks",
        "my_model.py:surrogate",
        "my_model.py:odd",
    ];
    let said = trace(dir.path(), &sources, &["--json"]);
    assert_eq!(said.code, 3, "{}", said.err);
    let lines = lines(&said);
    assert_eq!(
        lines.iter().map(|l| l.model.as_str()).collect::<Vec<_>>(),
        [sources[0], sources[9], sources[13]]
    );
    let why = [
        "my_model.py:broken: broken of my_model.py failed: ValueError: no weights today (my_model.py, line ",
        "my_model.py:crash: the worker ended (signal 6, SIGABRT",
        "my_model.py:wrong_shape: RuntimeError: mat1 and mat2 shapes cannot be multiplied",
        "my_model.py:number: number of my_model.py returned a int",
        "my_model.py has no function `none`",
        "there is no file missing.py",
        "my_model.py names no factory",
        "my_model.py:leaves: SystemExit: no more (my_model.py, line ",
        "my_model.py:asks: asks of my_model.py failed: EOFError: ",
        "my_model.py:surrogate: surrogate of my_model.py failed: ValueError: ? is no character",
        "`torchvison:resnet18` names no source",
    ];
    for reason in why {
        assert!(said.err.contains(reason), "{reason}\n{}", said.err);
    }

    // Tensors that no case can hold cost their call's record alone; of a subclass the elements are seen.
    let odd = &lines[2];
    assert_eq!((odd.calls, odd.unsupported), (3, 2));

    let line = &lines[0];
    assert_eq!((line.nodes, line.calls, line.unsupported), (3, 3, 0));
    let graph = dir.path().join(&line.graph);
    assert_eq!(graph, dir.path().join("traces/my_model.py-make.graph.jsonl.zst"));
    assert_eq!(shown(&graph), ["linear()", "gelu(input=0)", "add(input=1)"]);
    let features = files::read_features(&dir.path().join(&line.features), Limits::default()).unwrap();
    let input = tensor(&features.calls[0], "input");
    assert_eq!((input.shape.as_slice(), input.min, input.max), (&[2, 3][..], Some(1.0), Some(1.0)));
    assert!(tensor(&features.calls[0], "weight").parameter);
    assert_eq!(features.calls[2].args["other"], 1);
    // Of a loader's first batch the labels are left out.
    let features = files::read_features(&dir.path().join(&lines[1].features), Limits::default()).unwrap();
    assert_eq!(tensor(&features.calls[0], "input").shape, [5, 3]);
}

#[test]
fn a_model_runs_in_the_dtype_that_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    file(dir.path(), "my_model.py", OWN);
    file(dir.path(), "beside.py", "side = 3");
    let said = trace(dir.path(), &["my_model.py:make"], &["--json", "--dtype", "bfloat16"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let line = &lines(&said)[0];
    assert_eq!(line.features, "traces/my_model.py-make-bfloat16.features.jsonl.zst");
    let features = files::read_features(&dir.path().join(&line.features), Limits::default()).unwrap();
    assert_eq!(features.header.model, "my_model.py:make in bfloat16");
    for (call, argument) in [(0, "input"), (0, "weight"), (1, "input"), (2, "input")] {
        assert_eq!(tensor(&features.calls[call], argument).dtype, "bfloat16");
    }
    let said = trace(dir.path(), &["my_model.py:make"], &["--dtype", "int8"]);
    assert!(
        said.code == 2 && said.err.contains("expected float64, float32, float16 or bfloat16"),
        "{}",
        said.err
    );
}

fn tensor(call: &Call, argument: &str) -> TensorFeatures {
    serde_json::from_value(call.args[argument].clone()).unwrap()
}

#[test]
fn a_model_that_does_not_end_is_stopped() {
    let dir = tempfile::tempdir().unwrap();
    file(dir.path(), "my_model.py", OWN);
    file(dir.path(), "beside.py", "side = 3");
    let said = trace(dir.path(), &["my_model.py:slow"], &["--timeout", "20"]);
    assert_eq!(said.code, 3, "{}", said.err);
    assert!(said.err.contains("no answer within 20 s"), "{}", said.err);
}

#[test]
fn two_sources_may_not_share_their_files() {
    let dir = tempfile::tempdir().unwrap();
    let said = trace(dir.path(), &["a.py:x", "a.py-x"], &[]);
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(said.err.contains("the same files"), "{}", said.err);
}

/// A GraphNet sample: what `model.py` and `weight_meta.py` hold.
fn sample(folder: &Path, name: &str, model: &str, weights: &str) -> PathBuf {
    file(folder, &format!("{name}/model.py"), model);
    file(folder, &format!("{name}/weight_meta.py"), weights);
    folder.join(name)
}

const WEIGHTS: &str = r#"
class Program_weight_tensor_meta_L_x_:
    name = "L_x_"
    shape = [2, 6]
    dtype = "torch.float32"
    device = "cuda:0"
    mean = 0.0
    std = 1.0
    data = None


class Program_weight_tensor_meta_L_weight_:
    name = "L_weight_"
    shape = [6, 6]
    dtype = "torch.float32"
    mean = -0.001
    std = 0.25
    data = None


class Program_weight_tensor_meta_s0:
    name = "s0"
    shape = []
    dtype = "torch.int64"
    data = [2]
"#;

fn graphnet(body: &str) -> String {
    let parameters = "self, L_x_: torch.Tensor, L_weight_: torch.nn.parameter.Parameter, s0: torch.SymInt";
    format!("import torch\n\nclass GraphModule(torch.nn.Module):\n    def forward({parameters}):\n{body}")
}

#[test]
fn a_graphnet_sample_is_read_as_syntax() {
    let dir = tempfile::tempdir().unwrap();
    let body = r#"        l_x_ = L_x_
        y = torch._C._nn.linear(l_x_, L_weight_, None)
        l_x_ = None
        z = torch.nn.functional.relu(y, inplace=True)
        v = z.view(s0, 2, 3)
        w = v.transpose(1, 2)
        a, b = torch.functional.split(w, 1, dim=1)[:2]
        c = a + b
        c += 1.0
        d = torch.softmax(c[(slice(None, None, None), 0)], dim=-1)
        e = d.to(device=torch.device(type="cuda"), dtype=torch.float64)
        return (e, y)
"#;
    sample(dir.path(), "good", &graphnet(body), WEIGHTS);
    let said = trace(dir.path(), &["good"], &["--json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    let graph = dir.path().join("traces/good.graph.jsonl.zst");
    let expected = [
        "linear()",
        "relu(input=0)",
        "view(input=1)",
        "transpose(input=2)",
        "split(input=3)",
        "add(input=4, other=4)",
        "add(input=5)",
        "__getitem__(input=6)",
        "softmax(input=7)",
        "to(input=8)",
    ];
    assert_eq!(shown(&graph), expected);
}

#[test]
fn what_stands_in_a_graphnet_sample_is_never_executed() {
    let dir = tempfile::tempdir().unwrap();
    let trap = dir.path().join("trap");
    let touch = format!("open({:?}, 'w').close()", text(&trap));
    let good = "        return (torch.relu(L_x_),)\n";
    // Code outside the function, in decorators, defaults, class bodies and annotations is passed over.
    let passive = graphnet(good).replace("import torch\n", &format!("import torch\n{touch}\n")).replace(
        "    def forward(self",
        &format!("    {touch}\n    @({touch} or (lambda f: f))\n    def forward(self"),
    );
    sample(dir.path(), "passive", &passive, &format!("{touch}\n{WEIGHTS}"));
    let said = trace(dir.path(), &["passive"], &["--json"]);
    assert_eq!((said.code, trap.exists()), (0, false), "{}", said.err);

    let bodies = [
        format!("        {touch}\n{good}"),
        format!("        __import__('builtins').exec({touch:?})\n{good}"),
        format!("        (lambda: {touch})()\n{good}"),
        format!("        [{touch} for _ in range(1)]\n{good}"),
        format!("        torch.os.system({:?})\n{good}", format!("touch {}", text(&trap))),
        format!("        L_x_.__class__.__base__.__subclasses__()\n{good}"),
        format!("        torch.save(L_x_, {:?})\n{good}", text(&trap)),
        format!("        torch.load({:?})\n{good}", text(&trap)),
        format!("        L_x_.numpy().tofile({:?})\n{good}", text(&trap)),
        format!("        L_x_.apply_(lambda x: {touch})\n{good}"),
        "        while True:\n            pass\n".to_owned(),
    ];
    let mut names: Vec<String> = Vec::new();
    for (number, body) in bodies.iter().enumerate() {
        let name = format!("hostile{number}");
        sample(dir.path(), &name, &graphnet(body), WEIGHTS);
        names.push(name);
    }
    sample(dir.path(), "meta", &graphnet(good), &WEIGHTS.replace("mean = 0.0", &format!("mean = {touch}")));
    sample(dir.path(), "huge", &graphnet(good), &WEIGHTS.replace("[6, 6]", "[1000000, 1000000]"));
    sample(dir.path(), "incomplete", &graphnet(good), &WEIGHTS.replace("\"L_weight_\"", "\"other\""));
    sample(dir.path(), "no-python", "class {", WEIGHTS);
    names.extend(["meta", "huge", "incomplete", "no-python"].map(str::to_owned));
    let sources: Vec<&str> = names.iter().map(String::as_str).collect();
    let said = trace(dir.path(), &sources, &["--json"]);
    assert_eq!((said.code, said.out.as_str()), (2, ""), "{}", said.err);
    assert!(!trap.exists());
    for name in &sources {
        assert!(said.err.contains(&format!("error: {name}: ")), "{name} is not reported\n{}", said.err);
    }
}

#[test]
fn a_captured_run_is_judged() {
    let dir = tempfile::tempdir().unwrap();
    python::run("tracing/capture.py", &[PACKAGE, text(dir.path())]);
    let path = dir.path().join("chain.json");
    let case = Case::read(&path, case::Limits::default()).unwrap();
    let ids: Vec<&str> = case.nodes.iter().map(|n| n.id.as_str()).collect();
    let expected =
        ["conv2d_0", "batch_norm_1", "relu_2", "add_3", "max_pool2d_4", "dropout_5", "linear_6", "div_7"];
    assert_eq!(ids, expected);
    assert_eq!(case.recorded_parties(), ["torch-cpu"]);
    let args: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let input = |node: usize| args["nodes"][node]["args"]["input"].as_str().unwrap();
    let fed: Vec<&str> = (1..5).map(input).collect();
    assert_eq!(fed, ["%conv2d_0", "%batch_norm_1", "%relu_2", "%add_3"]);
    // After the view comes an input; the two chains' ends are the outputs.
    assert!(input(5).starts_with('@'), "{}", input(5));
    assert_eq!([input(6), input(7)], ["%dropout_5", "%linear_6"]);
    assert_eq!(args["outputs"], serde_json::json!(["max_pool2d_4", "div_7"]));

    let command = ulpian(&["judge", text(&path), "--executor", "recorded:torch-cpu", "--json"]);
    let said = said(command);
    let verdict: CaseVerdict =
        serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{e}: {}", said.err));
    assert_eq!(said.code, 0, "{}", said.out);
    assert_eq!(verdict.nodes.len(), 9);
    for node in &verdict.nodes {
        let seen = &node.executors[0];
        assert_eq!((seen.status.as_str(), seen.class_mismatches), ("ok", Some(0)), "{}", node.node);
    }
}
