//! Checks the reference against formulas evaluated by MPFR: for every op and dtype, random and edge elements.
//!
//! `cargo run --release -- [--elements N] [--seed S] [--op NAME] [--dtype NAME] [--chains N]`, in this folder. A line per op and
//! dtype: elements, wrong roundings, enclosures that miss, undecided. Exit code 1 where any of the last three is not zero.
//!
//! `--time [OP]` prints instead how long MPFR takes beside the reference ([`timing`]).

mod chains;
mod generate;
mod ops;
mod real;
mod timing;

use std::process::ExitCode;

use rayon::prelude::*;
use ulpian_reference::{Settings, evaluate};
use ulpian_spec::{DType, Enclosure, HostTensor, Op, OpKind};

use generate::Rng;
use ops::Tensor;
use real::Real;

/// Bits that hold any sum of products of float64 exactly, and more.
const EXACT: u32 = 8000;

/// Bits for chains that seem wrong with [`EXACT`]: e^-6000 beside 1 decides a tie, and lies below its last bit.
const DEEP: u32 = 65_536;

/// Bits for single transcendental ops, which have no ties to see.
const TRANSCENDENTAL: u32 = 3800;

#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    pub elements: usize,
    pub wrong: usize,
    pub missed: usize,
    pub undecided: usize,
}

impl Tally {
    fn plus(self, other: Tally) -> Tally {
        Tally {
            elements: self.elements + other.elements,
            wrong: self.wrong + other.wrong,
            missed: self.missed + other.missed,
            undecided: self.undecided + other.undecided,
        }
    }

    fn is_clean(self) -> bool {
        self.wrong == 0 && self.missed == 0 && self.undecided == 0
    }
}

/// Compares one result, and describes the first differences.
pub fn compare(truth: &Tensor, got: &Enclosure, what: &dyn Fn() -> String) -> Tally {
    let mut tally = Tally { elements: truth.data.len(), ..Tally::default() };
    if truth.shape != got.value.shape() || truth.dtype != got.value.dtype() {
        eprintln!("type {:?}{:?}, got {}: {}", truth.dtype, truth.shape, got.tensor_type(), what());
        tally.wrong = tally.elements.max(1);
        return tally;
    }
    tally.undecided = got.undecided.len();
    for (i, x) in truth.data.iter().enumerate() {
        let right = if truth.dtype.is_float() {
            let (want, have) = (x.round(truth.dtype), got.value.get_f64(i));
            let zeros = want == 0.0 && have == 0.0 && got.zero_sign_is_free;
            let must_be_free = matches!(x, Real::Zero { free: true, .. }) && !got.zero_sign_is_free;
            (want.to_bits() == have.to_bits() || zeros || (want.is_nan() && have.is_nan())) && !must_be_free
        } else {
            got.value.get_i64(i) == Some(x.wrapped(DType::I64))
        };
        // Of an undecided element no rounding is claimed; it is counted as such.
        if !right && !got.undecided.contains(&i) {
            tally.wrong += 1;
            if tally.wrong <= 2 {
                eprintln!(
                    "element {i}: want {:e}, got {:e}; {}",
                    x.round(DType::F64),
                    got.value.get_f64(i),
                    what()
                );
            }
        }
        if !x.within(got.center[i], got.low_at(i), got.radius[i]) {
            tally.missed += 1;
            if tally.missed <= 2 {
                let (c, l, r) = (got.center[i], got.low_at(i), got.radius[i]);
                eprintln!(
                    "element {i}: {:e} not within {r:e} of {c:e} + {l:e}; {}",
                    x.round(DType::F64),
                    what()
                );
            }
        }
    }
    tally
}

fn check(op: &Op<HostTensor>) -> Tally {
    let prec = match op.kind() {
        OpKind::Gelu | OpKind::Softmax => TRANSCENDENTAL,
        _ => EXACT,
    };
    let exact = op.as_ref().map(|_, t| Tensor::from_host(t, prec));
    let truths = ops::run(&exact.as_ref(), prec);
    let what = || format!("{op:?}").chars().take(2000).collect();
    match evaluate(&op.as_ref(), &Settings::default()) {
        Ok(results) => {
            let count = results.len();
            if count != truths.len() {
                eprintln!("{} results, got {count}: {}", truths.len(), what());
            }
            truths.iter().zip(&results).map(|(t, r)| compare(t, r, &what)).fold(Tally::default(), Tally::plus)
        }
        Err(e) => {
            eprintln!("{e}: {}", what());
            Tally { elements: 1, wrong: 1, ..Tally::default() }
        }
    }
}

fn argument(name: &str) -> Option<String> {
    let mut args = std::env::args().skip_while(|a| a != name);
    args.next()?;
    args.next()
}

fn main() -> ExitCode {
    let number = |name: &str, default: u64| argument(name).and_then(|v| v.parse().ok()).unwrap_or(default);
    let elements = number("--elements", 20_000) as usize;
    let seed = number("--seed", 1);
    let only = argument("--op");
    let dtype = argument("--dtype");
    let wanted = |d: &DType| dtype.as_ref().is_none_or(|name| name == d.name());
    if std::env::args().any(|a| a == "--time") {
        rayon::ThreadPoolBuilder::new().num_threads(1).build_global().expect("first use of the pool");
        timing::run(argument("--time").as_deref());
        return ExitCode::SUCCESS;
    }
    let mut total = Tally::default();
    println!(
        "{:<22}{:<10}{:>10}{:>8}{:>8}{:>11}{:>9}",
        "op", "dtype", "elements", "wrong", "missed", "undecided", "seconds"
    );
    for &kind in OpKind::ALL {
        if only.as_ref().is_some_and(|o| o != kind.name()) {
            continue;
        }
        let mut dtypes = DType::FLOATS.to_vec();
        if matches!(
            kind,
            OpKind::Add
                | OpKind::Mul
                | OpKind::Div
                | OpKind::Matmul
                | OpKind::Linear
                | OpKind::Conv2d
                | OpKind::MaxPool2d
        ) {
            dtypes.extend([DType::I64, DType::I32, DType::U8]);
        }
        for dtype in dtypes.into_iter().filter(wanted) {
            let start = std::time::Instant::now();
            let mut tally = Tally::default();
            let mut round = 0u64;
            let least = if dtype.is_float() { elements } else { elements / 10 };
            while tally.elements < least {
                let batch: Tally = (0..64u64)
                    .into_par_iter()
                    .map(|i| {
                        let mut rng =
                            Rng(seed ^ ((kind as u64) << 48) ^ ((dtype as u64) << 40) ^ (round * 64 + i));
                        check(&generate::call(kind, dtype, &mut rng))
                    })
                    .reduce(Tally::default, Tally::plus);
                tally = tally.plus(batch);
                round += 1;
            }
            report(kind.name(), dtype.name(), tally, start);
            total = total.plus(tally);
        }
    }
    let chains = number("--chains", 300) as usize;
    if chains > 0 && only.is_none() {
        for dtype in DType::FLOATS.iter().copied().filter(wanted) {
            let start = std::time::Instant::now();
            let tally = (0..chains as u64)
                .into_par_iter()
                .map(|i| {
                    let rng = || Rng(seed ^ (77 << 48) ^ ((dtype as u64) << 40) ^ i);
                    let tally = chains::check(dtype, &mut rng(), EXACT);
                    if tally.wrong + tally.missed == 0 {
                        return tally;
                    }
                    eprintln!("chain {i} again, with {DEEP} bits");
                    chains::check(dtype, &mut rng(), DEEP)
                })
                .reduce(Tally::default, Tally::plus);
            report("chains", dtype.name(), tally, start);
            total = total.plus(tally);
        }
    }
    if total.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn report(name: &str, dtype: &str, t: Tally, start: std::time::Instant) {
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{name:<22}{dtype:<10}{:>10}{:>8}{:>8}{:>11}{seconds:>9.1}",
        t.elements, t.wrong, t.missed, t.undecided
    );
}
