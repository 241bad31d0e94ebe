//! The reference against torch.float64, in paired runs: `cargo bench --bench reference [-- OP…]`.
//!
//! Each round times one call here and one in a Python process, alternately; the table shows medians and the median of the
//! rounds' ratios. `ULPIAN_PYTHON` names a Python with torch and mpmath (`python3` otherwise), `ULPIAN_BENCH_THREADS` the
//! number of threads of both sides (1 otherwise), `ULPIAN_BENCH_ROUNDS` the rounds (7 otherwise).

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use half::f16;
use ulpian_reference::{Settings, evaluate};
use ulpian_spec::ops::{GeluApproximate, Padding, TensorOrScalar};
use ulpian_spec::ops::{
    Scalar, adaptive_avg_pool2d::AdaptiveAvgPool2d, add::Add, batch_norm::BatchNorm, conv2d::Conv2d,
    div::Div, gelu::Gelu, layer_norm::LayerNorm, linear::Linear, matmul::Matmul, max_pool2d::MaxPool2d,
    mul::Mul, relu::Relu, softmax::Softmax,
};
use ulpian_spec::{DType, HostTensor, Op, Storage};

/// As the command has it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

struct Random(u64);

impl Random {
    /// Sum of four uniform numbers: near enough to normal for timing.
    fn normal(&mut self) -> f32 {
        let mut sum = 0.0;
        for _ in 0..4 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            sum += (self.0 >> 40) as f32 / (1u64 << 23) as f32 - 1.0;
        }
        sum * 0.87
    }

    fn tensor(&mut self, dtype: DType, shape: &[usize]) -> HostTensor {
        let data: Vec<f32> = (0..shape.iter().product()).map(|_| self.normal()).collect();
        let storage = match dtype {
            DType::F64 => Storage::F64(data.iter().map(|&x| f64::from(x) + f64::from(x) * 1e-9).collect()),
            DType::F16 => Storage::F16(data.iter().map(|&x| f16::from_f32(x)).collect()),
            DType::BF16 => Storage::BF16(data.iter().map(|&x| half::bf16::from_f32(x)).collect()),
            _ => Storage::F32(data),
        };
        HostTensor::new(shape, storage).expect("sizes agree")
    }
}

/// The Python side.
struct Torch {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Torch {
    fn start() -> Torch {
        let python = std::env::var("ULPIAN_PYTHON").unwrap_or_else(|_| "python3".into());
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/torch_float64.py");
        let mut child = Command::new(&python)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|e| {
                panic!("{python}: {e}; name a Python with torch and mpmath in ULPIAN_PYTHON")
            });
        let input = child.stdin.take().expect("piped");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        Torch { child, input, output }
    }

    fn seconds(&mut self, request: &str) -> f64 {
        writeln!(self.input, "{request}").expect("the Python side is running");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("the Python side answers");
        line.trim().parse().unwrap_or_else(|_| panic!("the Python side failed on `{request}`"))
    }
}

impl Drop for Torch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Bytes resident now, and at most since the last call (Linux; 0 elsewhere).
fn resident() -> (usize, usize) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find(|l| l.starts_with(name)).unwrap_or("");
        line.split_whitespace().nth(1).and_then(|n| n.parse::<usize>().ok()).unwrap_or(0) * 1024
    };
    let both = (field("VmRSS:"), field("VmHWM:"));
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    both
}

/// An environment variable's number.
fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|s| s.parse().ok()).unwrap_or(default)
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let threads = number("ULPIAN_BENCH_THREADS", 1);
    let rounds = number("ULPIAN_BENCH_ROUNDS", 7);
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().expect("first use of the pool");
    let mut torch = Torch::start();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (start, _) = resident();
    println!(
        "{threads} thread(s), medians of {rounds} paired runs; ratio: median of the pairs' ratios, and the least"
    );
    println!(
        "{:<36}{:>11}{:>14}{:>8}{:>8}{:>11}{:>10}{:>9}{:>11}",
        "op, dtype",
        "ulpian ms",
        "torch f64 ms",
        "ratio",
        "least",
        "undecided",
        "peak MB",
        "of f64",
        "of mpmath"
    );
    for (name, dtype, size) in CASES {
        let label = format!("{name} {dtype}{}", if *size == "large" { "" } else { ", small" });
        if !wanted.is_empty() && !wanted.iter().any(|w| label.starts_with(w.as_str())) {
            continue;
        }
        let inputs = Inputs::new(&mut random, name, *dtype, size);
        let op = inputs.op(name);
        let settings = Settings::default();
        // The allocator keeps what earlier rows gave back, so that a row's peak is an upper limit unless it is run alone.
        resident();
        let warm = evaluate(&op, &settings).expect("a valid call");
        let elements: usize = warm.iter().map(|e| e.len()).sum();
        let undecided: usize = warm.iter().map(|e| e.undecided.len()).sum();
        drop(warm);
        torch.seconds(&format!("torch {name} {threads} {size}"));
        let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        let mut peak = resident().1;
        for _ in 0..rounds {
            let start = Instant::now();
            let result = evaluate(&op, &settings).expect("a valid call");
            let here = start.elapsed().as_secs_f64();
            peak = peak.max(resident().1);
            drop(result);
            let there = torch.seconds(&format!("torch {name} {threads} {size}"));
            ours.push(here);
            theirs.push(there);
            ratios.push(here / there);
        }
        let tensors = (inputs.elements() + elements) * 8;
        let held = peak.saturating_sub(start);
        let mpmath = median((0..5).map(|_| torch.seconds(&format!("mpmath {name}"))).collect());
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let (ours, theirs) = (median(ours), median(theirs));
        let mut row = String::new();
        let _ = write!(row, "{label:<36}{:>11.2}{:>14.2}", ours * 1e3, theirs * 1e3);
        let _ = write!(row, "{:>8.2}{least:>8.2}{undecided:>11}", median(ratios));
        let _ = write!(row, "{:>10.0}{:>8.1}x", held as f64 / 1e6, held as f64 / tensors as f64);
        println!("{row}{:>10.0}x", mpmath * elements as f64 / ours);
    }
}

/// What is timed: an op as `torch_float64.py` names it, the dtype of its operands here, and their size as it names that.
const CASES: &[(&str, DType, &str)] = &[
    ("matmul", DType::F32, "large"),
    ("matmul", DType::F16, "large"),
    ("matmul", DType::BF16, "large"),
    ("matmul", DType::F64, "large"),
    ("linear", DType::F32, "large"),
    ("conv2d", DType::F32, "large"),
    ("softmax", DType::F32, "large"),
    ("gelu", DType::F32, "large"),
    ("gelu_tanh", DType::F32, "large"),
    ("layer_norm", DType::F32, "large"),
    ("batch_norm", DType::F32, "large"),
    ("adaptive_avg_pool2d", DType::F32, "large"),
    ("max_pool2d", DType::F32, "large"),
    ("add", DType::F32, "large"),
    ("mul", DType::F32, "large"),
    ("div", DType::F32, "large"),
    ("relu", DType::F32, "large"),
    ("softmax", DType::F32, "small"),
    ("gelu", DType::F32, "small"),
    ("layer_norm", DType::F32, "small"),
    ("batch_norm", DType::F32, "small"),
    ("adaptive_avg_pool2d", DType::F32, "small"),
    ("add", DType::F32, "small"),
    ("add", DType::F16, "small"),
    ("mul", DType::F32, "small"),
    ("div", DType::F32, "small"),
    ("relu", DType::F32, "small"),
];

/// The operands of a call.
struct Inputs(Vec<HostTensor>);

impl Inputs {
    fn new(random: &mut Random, name: &str, dtype: DType, size: &str) -> Inputs {
        let small = size == "small";
        let wide: &[usize] = if small { &[512, 768] } else { &[4096, 1024] };
        let image: &[usize] = if small { &[1, 3, 224, 224] } else { &[16, 3, 224, 224] };
        let shapes: &[&[usize]] = match name {
            "matmul" => &[&[1024, 1024], &[1024, 1024]],
            "linear" => &[&[1024, 1024], &[1024, 1024], &[1024]],
            "conv2d" => &[&[16, 3, 224, 224], &[64, 3, 7, 7]],
            "layer_norm" => &[wide, &wide[1..], &wide[1..]],
            "batch_norm" | "adaptive_avg_pool2d" | "max_pool2d" => &[image],
            "add" | "mul" | "div" => &[wide, wide],
            _ => &[wide],
        };
        Inputs(shapes.iter().map(|shape| random.tensor(dtype, shape)).collect())
    }

    fn elements(&self) -> usize {
        self.0.iter().map(HostTensor::len).sum()
    }

    fn op(&self, name: &str) -> Op<&HostTensor> {
        let input = &self.0[0];
        let second = || &self.0[1];
        let other = || TensorOrScalar::Tensor(second());
        match name {
            "matmul" => Op::Matmul(Matmul { input, other: second() }),
            "linear" => Op::Linear(Linear { input, weight: second(), bias: Some(&self.0[2]) }),
            "conv2d" => Op::Conv2d(Conv2d {
                input,
                weight: second(),
                bias: None,
                stride: [2, 2],
                padding: Padding::Explicit([3, 3]),
                dilation: [1, 1],
                groups: 1,
            }),
            "softmax" => Op::Softmax(Softmax { input, dim: -1, dtype: None }),
            "gelu" => Op::Gelu(Gelu { input, approximate: GeluApproximate::None }),
            "gelu_tanh" => Op::Gelu(Gelu { input, approximate: GeluApproximate::Tanh }),
            "layer_norm" => Op::LayerNorm(LayerNorm {
                input,
                weight: Some(second()),
                bias: Some(&self.0[2]),
                normalized_shape: vec![second().len() as i64],
                eps: 1e-5,
            }),
            "batch_norm" => Op::BatchNorm(BatchNorm {
                input,
                running_mean: None,
                running_var: None,
                weight: None,
                bias: None,
                training: true,
                momentum: 0.1,
                eps: 1e-5,
            }),
            "adaptive_avg_pool2d" => {
                Op::AdaptiveAvgPool2d(AdaptiveAvgPool2d { input, output_size: [Some(7), Some(7)] })
            }
            "max_pool2d" => Op::MaxPool2d(MaxPool2d {
                input,
                kernel_size: [3, 3],
                stride: [2, 2],
                padding: [1, 1],
                dilation: [1, 1],
                ceil_mode: false,
                return_indices: false,
            }),
            "add" => Op::Add(Add { input, other: other(), alpha: Scalar::Int(1) }),
            "mul" => Op::Mul(Mul { input, other: other() }),
            "div" => Op::Div(Div { input, other: other(), rounding_mode: None }),
            "relu" => Op::Relu(Relu { input }),
            _ => unreachable!("CASES lists the names above"),
        }
    }
}
