//! A minimised finding as a Python script that needs torch alone: it computes the call as the executor does, prints the element
//! at fault beside the certified value, and ends with 1 where the fault shows.
//!
//! The fault shows where the class is not that of the certified value, or where the distance from it is more than half of what
//! was found.

use std::fmt::Write;
use std::sync::Arc;

use ulpian_spec::tensor::unravel;
use ulpian_spec::verdict::CaseVerdict;
use ulpian_spec::{Case, DType, ExecutorId, HostTensor, ValueRef};
use ulpian_vendor_compare::protocol::{self, Argument, Call};

/// Larger tensors are written as hexadecimal bytes.
const MOST_LISTED: usize = 64;
/// A script with more bytes of tensors than this helps nobody.
const MOST_BYTES: usize = 1 << 20;

/// The script for a case of one node. `computed` and `certified` are that node's results. `None` where PyTorch cannot be asked by
/// a script: another family's executor, a mask of dropout's, a result that is no return value, tensors that are too large.
pub fn repro(
    case: &Case,
    executor: &ExecutorId,
    verdict: &CaseVerdict,
    computed: &[Arc<HostTensor>],
    certified: &[Arc<HostTensor>],
) -> Option<String> {
    let (used, calls) = protocol::calls(case);
    let ([call], "torch") = (calls.as_slice(), executor.family.as_str()) else { return None };
    if used.iter().map(|&i| case.tensors[i].value.len() * case.tensors[i].value.dtype().size()).sum::<usize>()
        > MOST_BYTES
    {
        return None;
    }
    let (output, index) = element(case, verdict, computed, certified)?;
    if output > 0 && call.op == "batch_norm" {
        return None;
    }
    let (got, truth) = (&computed[output], &certified[output]);
    let names: Vec<&str> = used.iter().map(|&i| case.tensors[i].name.as_str()).collect();
    let own = verdict.executors.first()?;

    let mut text = String::new();
    let what = own.verdict.because.replace('\\', "/").replace("\"\"\"", "'''");
    let _ = writeln!(text, "\"\"\"{what}.\n");
    let _ = writeln!(text, "Needs torch alone. Ends with 1 where the fault shows, with 0 where it does not.");
    let _ = writeln!(text, "{} as {executor} computes it; cause: {}.", call.op, own.verdict.cause.name());
    let _ = writeln!(text, "Made by Ulpian {} from {}.\"\"\"", env!("CARGO_PKG_VERSION"), source(case));
    let _ = writeln!(
        text,
        "\n{}import sys\n\nimport torch\nimport torch.nn.functional as F",
        before_import(executor)
    );
    text.push('\n');
    for &i in &used {
        let tensor = &case.tensors[i];
        let four = tensor.value.shape().len() == 4 && executor.key("layout") == Some("channels_last");
        let layout = if four { ".to(memory_format=torch.channels_last)" } else { "" };
        let device = if executor.variant == "cuda" { ".cuda()" } else { "" };
        let _ = writeln!(text, "{} = {}{device}{layout}", tensor.name, literal(&tensor.value));
    }
    let parameters = names.join(", ");
    let _ = writeln!(text, "\n\ndef compute({parameters}):\n    return {}\n\n", expression(call, &names)?);
    for line in switches(executor)? {
        let _ = writeln!(text, "{line}");
    }
    let call = match executor.key("batch") {
        Some(_) => by_row(call, &names)?,
        None => format!("compute({parameters})"),
    };
    let _ = writeln!(text, "with torch.no_grad():\n    result = {call}");
    let tuple = if case.nodes[0].op.kind().name() == "max_pool2d" && case.nodes[0].types.len() > 1 {
        format!("[{output}]")
    } else {
        String::new()
    };
    let at = unravel(index, got.shape());
    let subscript = if at.is_empty() { String::new() } else { format!("{at:?}") };
    let _ = writeln!(text, "computed = result{tuple}{subscript}.item()");
    let exact = value(truth, index);
    let _ = writeln!(text, "certified = {exact}  # the exact result, rounded once to {}", truth.dtype());
    let (a, b) = (got.get_f64(index), truth.get_f64(index));
    let fault = if a.is_finite() && b.is_finite() && a != b {
        format!("not abs(computed - certified) <= {}", number((a - b).abs() / 2.0))
    } else {
        "repr(computed) != repr(certified)".to_owned()
    };
    let _ = writeln!(text, "fault = {fault}  # half of the distance that was found, or another class");
    let _ = writeln!(
        text,
        "print(f\"computed:  {{computed!r}} at {at:?}\")\nprint(f\"certified: {{certified!r}}\")"
    );
    let _ = writeln!(
        text,
        "print(\"the fault shows\" if fault else \"the fault does not show here\")\nsys.exit(1 if fault else 0)"
    );
    Some(text)
}

/// The element that the verdict names, or the one that is furthest off.
fn element(
    case: &Case,
    verdict: &CaseVerdict,
    computed: &[Arc<HostTensor>],
    certified: &[Arc<HostTensor>],
) -> Option<(usize, usize)> {
    let at = verdict.executors.first()?.verdict.at.as_ref()?;
    let output = (0..case.nodes[0].types.len())
        .find(|&output| case.result_name(ValueRef::Node { node: 0, output }) == at.node)?;
    let (got, truth) = (computed.get(output)?, certified.get(output)?);
    if got.tensor_type() != truth.tensor_type() {
        return None;
    }
    let flat = at.index.iter().zip(got.shape()).fold(0, |flat, (i, n)| flat * n + i);
    let apart = |i: usize| {
        let (a, b) = (got.get_f64(i), truth.get_f64(i));
        if a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()) {
            0.0
        } else if a.is_finite() && b.is_finite() && a != b {
            (a - b).abs()
        } else {
            f64::INFINITY
        }
    };
    let index = if flat < got.len() && apart(flat) > 0.0 {
        flat
    } else {
        (0..got.len()).max_by(|&i, &j| apart(i).total_cmp(&apart(j)))?
    };
    (apart(index) > 0.0).then_some((output, index))
}

fn source(case: &Case) -> String {
    let source = case.source.replace('\\', "/").replace('"', "'").replace('\n', " ");
    let short: String = source.chars().take(300).collect();
    if short.is_empty() { case.name.clone() } else { short }
}

/// What must stand before torch is imported.
fn before_import(executor: &ExecutorId) -> String {
    match executor.key("isa") {
        Some(isa) => format!("import os\nos.environ[\"ATEN_CPU_CAPABILITY\"] = \"{isa}\"\n"),
        None => String::new(),
    }
}

/// The executor's keys, as PyTorch's switches.
fn switches(executor: &ExecutorId) -> Option<Vec<String>> {
    let mut lines = Vec::new();
    for (key, value) in &executor.keys {
        let on = if value == "on" { "True" } else { "False" };
        match key.as_str() {
            "mkldnn" => lines.push(format!("torch._C._set_mkldnn_enabled({on})")),
            "nnpack" => lines.push(format!("torch._C._set_nnpack_enabled({on})")),
            "threads" => lines.push(format!("torch.set_num_threads({value})")),
            "compile" => {
                lines.push("compute = torch.compile(compute, fullgraph=True, dynamic=False)".to_owned())
            }
            "tf32" => {
                lines.push(format!("torch.backends.cuda.matmul.allow_tf32 = {on}"));
                lines.push(format!("torch.backends.cudnn.allow_tf32 = {on}"));
            }
            "cudnn" => lines.push(format!("torch._C._set_cudnn_enabled({on})")),
            "deterministic" => lines.push(format!("torch.use_deterministic_algorithms({on})")),
            "isa" | "layout" | "batch" => {}
            _ => return None,
        }
    }
    Some(lines)
}

/// The call row by row, joined.
fn by_row(call: &Call, names: &[&str]) -> Option<String> {
    let split_input_alone = matches!(
        call.op,
        "relu"
            | "gelu"
            | "flatten"
            | "softmax"
            | "layer_norm"
            | "linear"
            | "batch_norm"
            | "conv2d"
            | "max_pool2d"
            | "adaptive_avg_pool2d"
    );
    if !split_input_alone {
        return None;
    }
    let arguments: Vec<&str> = names.iter().map(|n| if *n == "input" { "row.clone()" } else { n }).collect();
    Some(format!("torch.cat([compute({}) for row in input.split(1)])", arguments.join(", ")))
}

/// The call as PyTorch's function, every argument by its name.
fn expression(call: &Call, names: &[&str]) -> Option<String> {
    let function = match call.op {
        op @ ("flatten" | "mul" | "div" | "matmul" | "relu" | "add") => format!("torch.{op}"),
        op => format!("F.{op}"),
    };
    let mut arguments = Vec::new();
    for (&name, argument) in &call.args {
        let text = match argument {
            Argument::Input(i) => (*names.get(*i)?).to_owned(),
            Argument::Node(..) => return None,
            Argument::None => "None".to_owned(),
            Argument::Bool(b) => (if *b { "True" } else { "False" }).to_owned(),
            Argument::Int(i) => i.to_string(),
            Argument::Float(text) => number(text.parse().ok()?),
            Argument::Ints(list) => {
                let items: Vec<String> =
                    list.iter().map(|i| i.map_or_else(|| "None".to_owned(), |i| i.to_string())).collect();
                format!("[{}]", items.join(", "))
            }
            Argument::Text(text) => format!("\"{text}\""),
            Argument::Dtype(dtype) => format!("torch.{dtype}"),
        };
        match (call.op, name, text.as_str()) {
            // PyTorch takes no mask.
            ("dropout", "mask", "None") => {}
            ("dropout", "mask", _) => return None,
            _ => arguments.push(format!("{name}={text}")),
        }
    }
    Some(format!("{function}({})", arguments.join(", ")))
}

fn literal(tensor: &HostTensor) -> String {
    let dtype = tensor.dtype();
    let shape = format!("{:?}", tensor.shape());
    if tensor.len() > MOST_LISTED {
        let hex: String = tensor.storage().to_le_bytes().iter().map(|b| format!("{b:02x}")).collect();
        let first = &hex[..2 * dtype.size()];
        return if hex.as_bytes().chunks(first.len()).all(|c| c == first.as_bytes()) {
            format!("torch.full({shape}, {}, dtype=torch.{dtype})", value(tensor, 0))
        } else {
            format!("torch.frombuffer(bytearray.fromhex(\"{hex}\"), dtype=torch.{dtype}).reshape({shape})")
        };
    }
    let items: Vec<String> = (0..tensor.len()).map(|i| value(tensor, i)).collect();
    let flat = format!("torch.tensor([{}], dtype=torch.{dtype})", items.join(", "));
    if tensor.shape().len() == 1 { flat } else { format!("{flat}.reshape({shape})") }
}

/// An element as a Python literal of exactly its value.
fn value(tensor: &HostTensor, index: usize) -> String {
    match (tensor.dtype(), tensor.get_i64(index)) {
        (DType::Bool, Some(b)) => (if b == 0 { "False" } else { "True" }).to_owned(),
        (_, Some(i)) => i.to_string(),
        (_, None) => number(tensor.get_f64(index)),
    }
}

/// A float64 as Python reads it back.
fn number(x: f64) -> String {
    if x.is_nan() {
        "float(\"nan\")".to_owned()
    } else if x.is_infinite() {
        format!("float(\"{}inf\")", if x < 0.0 { "-" } else { "" })
    } else {
        // The shortest digits that read back, with a point or an exponent.
        format!("{x:?}")
    }
}
