//! A campaign against a bare PyTorch script, in pairs: `cargo bench --bench campaign -- --cases DIR`, or
//! `-- --patterns FILE --features DIR --count N` for cases made by `ulpian generate`.
//!
//! One side is `ulpian campaign run` over all cases with `torch:cpu` alone and no switches thrown: truth, bounds, replays, verdict
//! and ledger. The other is `campaign_bare.py`: the same calls in the case's dtypes and once in float64, compared. The two alternate,
//! on the same files, with one number of threads. The limit is 1.3: a campaign may take at most 1.3 times the script's time.
//!
//! A second pair of runs over the first case alone stands for what each side does once, the starting of Python above all; it is
//! taken off for the ratio without starting.
//!
//! `--executor E` (repeatable) has both sides hear others, of those the script knows; `--pairs N` (5 otherwise); `--ulpian FILE` times another
//! build. `ULPIAN_PYTHON` names a Python with torch and safetensors (`python3` otherwise), `ULPIAN_BENCH_THREADS` the threads of
//! both sides (all of the machine's otherwise).

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use clap::Parser;

#[derive(Parser)]
struct Args {
    /// A folder of cases.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["patterns", "features"])]
    cases: Option<PathBuf>,
    /// A pattern file.
    #[arg(long, value_name = "FILE", required_unless_present = "cases")]
    patterns: Option<PathBuf>,
    /// Feature files, or folders of them.
    #[arg(long, value_name = "DIR", num_args = 1.., required_unless_present = "cases")]
    features: Vec<PathBuf>,
    /// How many cases to make.
    #[arg(long, value_name = "N", default_value_t = 300)]
    count: usize,
    /// Who is heard.
    #[arg(long = "executor", value_name = "E", default_value = "torch:cpu")]
    executors: Vec<String>,
    /// How often each side runs.
    #[arg(long, value_name = "N", default_value_t = 5)]
    pairs: usize,
    /// Another build of the command.
    #[arg(long, value_name = "FILE")]
    ulpian: Option<PathBuf>,
    /// As cargo passes it.
    #[arg(long, hide = true)]
    bench: bool,
}

/// What a run took: seconds by the clock, and of the processors in it and its children.
#[derive(Clone, Copy)]
struct Took {
    wall: f64,
    cpu: f64,
}

fn main() {
    let args = Args::parse();
    let ulpian = args.ulpian.clone().unwrap_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_ulpian")));
    let dir = tempfile::tempdir().expect("a temporary folder can be made");
    let cases = args.cases.clone().unwrap_or_else(|| {
        let cases = dir.path().join("cases");
        let mut generate = Command::new(&ulpian);
        generate.args(["generate", "--quiet", "--count", &args.count.to_string()]);
        generate.arg("--patterns").args(&args.patterns).arg("--features").args(&args.features);
        timed(generate.arg("--out").arg(&cases), &[0]);
        cases
    });
    let first = dir.path().join("first");
    let count = copy_first(&cases, &first);
    println!("{count} cases, {}, {} threads", args.executors.join(" "), threads());

    let mut all: Vec<[Took; 4]> = Vec::new();
    println!(
        "campaign: s   CPU s   first case   script: s   CPU s   first case   ratio   CPU   without starting"
    );
    for _ in 0..args.pairs {
        let row = [
            campaign(&ulpian, &args.executors, &cases, dir.path()),
            campaign(&ulpian, &args.executors, &first, dir.path()),
            script(&cases, &args.executors),
            script(&first, &args.executors),
        ];
        print(&row);
        all.push(row);
    }
    println!("medians:");
    let median = |of: fn(&[Took; 4]) -> f64| {
        let mut figures: Vec<f64> = all.iter().map(of).collect();
        figures.sort_by(f64::total_cmp);
        figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
    };
    println!(
        "{:11.2} {:7.2} {:12.2} {:11.2} {:7.2} {:12.2} {:7.2} {:5.2} {:18.2}",
        median(|r| r[0].wall),
        median(|r| r[0].cpu),
        median(|r| r[1].wall),
        median(|r| r[2].wall),
        median(|r| r[2].cpu),
        median(|r| r[3].wall),
        median(ratio),
        median(ratio_cpu),
        median(ratio_without_start),
    );
    let executions = (count * args.executors.len()) as f64;
    let without = median(|r| r[0].wall - r[1].wall);
    println!("{:.1} ms an execution, starting left out", 1e3 * without / executions);
}

fn print(row: &[Took; 4]) {
    println!(
        "{:11.2} {:7.2} {:12.2} {:11.2} {:7.2} {:12.2} {:7.2} {:5.2} {:18.2}",
        row[0].wall,
        row[0].cpu,
        row[1].wall,
        row[2].wall,
        row[2].cpu,
        row[3].wall,
        ratio(row),
        ratio_cpu(row),
        ratio_without_start(row)
    );
}

fn ratio(row: &[Took; 4]) -> f64 {
    row[0].wall / row[2].wall
}

fn ratio_cpu(row: &[Took; 4]) -> f64 {
    row[0].cpu / row[2].cpu
}

fn ratio_without_start(row: &[Took; 4]) -> f64 {
    (row[0].wall - row[1].wall) / (row[2].wall - row[3].wall)
}

fn campaign(ulpian: &Path, executors: &[String], cases: &Path, dir: &Path) -> Took {
    let ledger = dir.join("ledger.db");
    for name in ["ledger.db", "ledger.db-lock"] {
        let _ = std::fs::remove_file(dir.join(name));
    }
    let mut command = Command::new(ulpian);
    command.args(["campaign", "run", "--quiet", "--interventions", "none", "--threads", &threads()]);
    command.arg("--cases").arg(cases).arg("--ledger").arg(&ledger);
    command.args(executors.iter().flat_map(|e| ["--executor", e]));
    // A fault found is no failure here.
    timed(&mut command, &[0, 1, 4])
}

fn script(cases: &Path, executors: &[String]) -> Took {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/campaign_bare.py");
    let python = std::env::var_os("ULPIAN_PYTHON").unwrap_or_else(|| "python3".into());
    timed(Command::new(python).arg(script).arg(cases).args(executors), &[0])
}

fn timed(command: &mut Command, codes: &[i32]) -> Took {
    command.env("OMP_NUM_THREADS", threads()).stdout(Stdio::null());
    let before = children();
    let start = Instant::now();
    let status = command.status().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let wall = start.elapsed().as_secs_f64();
    assert!(status.code().is_some_and(|code| codes.contains(&code)), "{command:?}: {status}");
    Took { wall, cpu: children() - before }
}

/// Processor seconds of the children that have ended; NaN where the system does not tell.
fn children() -> f64 {
    // Fields 16 and 17 in hundredths of a second, counted from the state, which follows the name in parentheses.
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<f64> = stat
        .rsplit(')')
        .next()
        .map(|rest| rest.split_whitespace().map(|f| f.parse().unwrap_or(f64::NAN)).collect())
        .unwrap_or_default();
    match fields.get(13..15) {
        Some(times) => times.iter().sum::<f64>() / 100.0,
        None => f64::NAN,
    }
}

fn threads() -> String {
    std::env::var("ULPIAN_BENCH_THREADS").unwrap_or_else(|_| {
        std::thread::available_parallelism().map_or_else(|_| "1".to_owned(), |n| n.to_string())
    })
}

/// Copies the first case into a folder of its own, and returns how many there are.
fn copy_first(cases: &Path, folder: &Path) -> usize {
    let read = std::fs::read_dir(cases).unwrap_or_else(|e| panic!("{}: {e}", cases.display()));
    let mut files: Vec<PathBuf> =
        read.flatten().map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "json")).collect();
    files.sort();
    let first = files.first().unwrap_or_else(|| panic!("{}: no case", cases.display()));
    std::fs::create_dir(folder).expect("a folder can be made");
    for file in [first.clone(), first.with_extension("safetensors")] {
        if let Some(name) = file.file_name().filter(|_| file.is_file()) {
            std::fs::copy(&file, folder.join(name)).expect("a case can be copied");
        }
    }
    files.len()
}
