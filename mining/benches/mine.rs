//! Mining of the 49 models at support 5, 2 to 7 nodes, without direction, beside other miners; and of 2,000 graphs in which nodes
//! are shared by 48 consumers.
//!
//! `cargo bench -p ulpian-mining --bench mine -- 'OTHER COMMAND {}' …`: each command in turn with ours, whole processes, `{}` being
//! the graphs' file; medians of time and the ratio to ours. The others:
//!
//! - gSpan-mining: `pip install gspan-mining==0.2.3 'pandas<2' 'numpy<2'`, then `'python -m gspan_mining -s 5 -l 2 -u 7 {}'`.
//! - gBolt (<https://github.com/Jokeren/gBolt>), changed to stop at seven vertices: `'gbolt -i {} -s 0.1021 -o /dev/null'`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use ulpian_mining::graph::Edge;
use ulpian_mining::gspan::{Options, mine};
use ulpian_mining::{GraphSet, Limits, bindings, files, inputs};

type Failure = Box<dyn std::error::Error>;

const ROUNDS: usize = 15;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    match arguments.first().map(String::as_str) {
        Some("--once") => once(Path::new(&arguments[1]), Path::new(&arguments[2])),
        Some("--shared") => shared(),
        _ => beside(&arguments),
    }
}

/// What the command does: reads, mines, writes.
fn once(graphs: &Path, out: &Path) -> Result<(), Failure> {
    let mut set = GraphSet::default();
    inputs::read(graphs, Limits::default(), Default::default(), &mut set)?;
    set.sort_labels();
    let options = Options::new(5, 2..=7, false)?;
    let found = mine(&set, &options, &|_| {});
    assert_eq!(found.len(), 1060);
    files::write_patterns(out, &bindings::patterns(&set, &options, &found))?;
    Ok(())
}

fn beside(others: &[String]) -> Result<(), Failure> {
    let folder = tempfile::tempdir()?;
    let graphs = folder.path().join("models.gspan");
    let packed = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/openmmlab49a.gspan.zst");
    zstd::stream::copy_decode(std::fs::File::open(packed)?, std::fs::File::create(&graphs)?)?;
    let ours: PathBuf = std::env::current_exe()?;
    let ours = [ours.display().to_string(), "--once".to_owned(), "{}".to_owned(), "{}.out".to_owned()];
    let mut commands: Vec<Vec<String>> = vec![ours.to_vec()];
    commands.extend(others.iter().map(|c| c.split_whitespace().map(str::to_owned).collect()));
    let path = graphs.display().to_string();
    let mut times = vec![Vec::new(); commands.len()];
    for round in 0..=ROUNDS {
        for (command, times) in commands.iter().zip(&mut times) {
            let words: Vec<String> = command.iter().map(|word| word.replace("{}", &path)).collect();
            let start = Instant::now();
            let status = Command::new(&words[0]).args(&words[1..]).stdout(Stdio::null()).status()?;
            // gSpan-mining ends with 1 whatever happens.
            if !matches!(status.code(), Some(0 | 1)) {
                return Err(format!("{}: {status}", words.join(" ")).into());
            }
            // The first round warms the caches.
            if round > 0 {
                times.push(start.elapsed().as_secs_f64());
            }
        }
    }
    let medians: Vec<f64> = times.iter_mut().map(|t| median(t)).collect();
    println!("49 models, support 5, 2..7 nodes, undirected: {ROUNDS} interleaved runs of whole processes");
    println!("{:>10.4} s  ours", medians[0]);
    for (other, seconds) in others.iter().zip(&medians[1..]) {
        println!("{seconds:>10.4} s  {:.2} times ours: {other}", seconds / medians[0]);
    }
    if others.is_empty() {
        println!("Commands of other miners may be given as arguments; see the head of this file.");
    }
    let mut shared = Command::new(std::env::current_exe()?).arg("--shared").spawn()?;
    shared.wait()?;
    Ok(())
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}

/// 2,000 graphs, each with two nodes that 48 others consume: leaves alone, and layers of a chain, each fed by the one before.
fn shared() -> Result<(), Failure> {
    let mut set = GraphSet::default();
    (0..6).for_each(|label| {
        set.node_labels.number(&label.to_string());
    });
    let label = set.edge_labels.number("0");
    let mut state = 3u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        2 + (state >> 62) as u32
    };
    for name in 0..2000 {
        let (mut nodes, mut edges) = (vec![0, 1], Vec::new());
        let mut add = |label_of: u32, from: &[u32]| {
            let to = nodes.len() as u32;
            nodes.push(label_of);
            edges.extend(from.iter().map(|&from| Edge { from, to, label }));
            to
        };
        (0..48).for_each(|_| {
            add(random(), &[0]);
        });
        let mut before = 0;
        for _ in 0..48 {
            let layer = add(2, &[1, before]);
            before = (0..3).fold(layer, |node, _| add(random(), &[node]));
        }
        set.push(name.to_string(), nodes, edges, None);
    }
    let start = Instant::now();
    let found = mine(&set, &Options::new(5, 2..=7, true)?, &|_| {});
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).map_or("unknown", str::trim);
    println!("2000 graphs with nodes shared by 48 consumers, support 5, 2..7 nodes, directed:");
    println!("{:>10.4} s  {} patterns, peak memory {peak}", start.elapsed().as_secs_f64(), found.len());
    Ok(())
}
