//! `ulpian mine INPUT… --support N --out PATTERNS.jsonl`

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, anyhow};
use ulpian::mining::graph::{self, FromTrace};
use ulpian::mining::gspan::{self, Options};
use ulpian::mining::{GraphSet, Limits, bindings, files, gspan_text, inputs};
use ulpian::records::Mined;

use crate::cli;
use crate::environment;
use crate::exit::{CouldNotRun, Exit, Failure};
use crate::report::{Reporter, patterns};

pub(crate) fn run(args: &cli::Mine, reporter: &mut Reporter) -> Result<Exit, Failure> {
    let (least, most) = args.nodes;
    let options = Options::new(args.support, least..=most, !args.undirected).map_err(anyhow::Error::from)?;
    let (mut set, exit) = graphs(args, reporter);
    if set.graphs.is_empty() {
        return Err(anyhow!("there is no graph to mine").into());
    }
    set.check_names().map_err(anyhow::Error::from)?;
    set.sort_labels();
    if args.deduplicate {
        for pair in set.deduplicate(options.directed()) {
            reporter.note(&format!("{}: left out, the same graph as {}", pair.dropped, pair.kept));
        }
    }
    if !set.left_out.is_empty() {
        reporter.note(&left_out(&set.left_out));
    }
    if args.support > set.graphs.len() {
        let (support, graphs) = (args.support, set.graphs.len());
        reporter.note(&format!("no pattern can have a support of {support}: there are {graphs} graphs"));
    }

    let news = reporter.news();
    let start = Instant::now();
    let found = gspan::mine(&set, &options, &|p| {
        news.show(&format!("{} patterns from {} of {} kinds of edge", p.patterns, p.done, p.total));
    });
    let seconds = start.elapsed().as_secs_f64();

    reporter.progress().say("writing");
    let written = bindings::patterns(&set, &options, &found);
    files::write_patterns(&args.out, &written).map_err(anyhow::Error::from).could_not_run()?;
    if let Some(path) = &args.text {
        gspan_text::write_patterns(path, &set, &found).map_err(anyhow::Error::from).could_not_run()?;
    }
    let mut by_nodes = BTreeMap::new();
    for pattern in &written {
        *by_nodes.entry(pattern.nodes.len()).or_insert(0) += 1;
    }
    let mined = Mined {
        patterns: written.len(),
        by_nodes,
        graphs: set.graphs.len(),
        seconds,
        peak_bytes: environment::peak_bytes(),
    };
    reporter.record(&mined)?;
    reporter.text(&patterns::table(&written, &mined, &args.out));
    Ok(exit)
}

/// How many labels of calls that are left out are named.
const MOST_NAMED: usize = 8;

/// Which calls are no nodes, the most frequent first.
fn left_out(calls: &BTreeMap<String, usize>) -> String {
    let mut labels: Vec<(&String, usize)> = calls.iter().map(|(label, &count)| (label, count)).collect();
    labels.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    let mut named: Vec<String> =
        labels.iter().take(MOST_NAMED).map(|(label, count)| format!("{label} ({count})")).collect();
    if labels.len() > MOST_NAMED {
        named.push(format!("{} others", labels.len() - MOST_NAMED));
    }
    format!(
        "chains end at calls that are none of Ulpian's ops (--all-labels keeps them): {}",
        named.join(", ")
    )
}

/// The graphs of all inputs. What cannot be read is reported; the code says whether anything was amiss.
fn graphs(args: &cli::Mine, reporter: &Reporter) -> (GraphSet, Exit) {
    let options = FromTrace {
        all_labels: args.all_labels,
        edge_labels: match args.edge_labels {
            cli::EdgeLabels::None => graph::EdgeLabels::None,
            cli::EdgeLabels::Argument => graph::EdgeLabels::Argument,
        },
        bridge_shape_ops: args.bridge_shape_ops,
    };
    let (mut set, mut exit) = (GraphSet::default(), Exit::Clean);
    let mut read: HashSet<PathBuf> = HashSet::new();
    let mut one = |argument: &PathBuf, set: &mut GraphSet| -> anyhow::Result<()> {
        let found = inputs::find(argument)?;
        let mut bad = 0;
        reporter.progress().start(found.len());
        for file in &found {
            reporter.progress().say(file.display().to_string());
            // A file that two arguments name is one input.
            let known = !read.insert(file.canonicalize().unwrap_or_else(|_| file.clone()));
            if !known && let Err(error) = inputs::read(file, Limits::default(), options, set) {
                reporter.error(&error.into());
                bad += 1;
            }
            reporter.progress().step();
        }
        if bad == 0 { Ok(()) } else { Err(anyhow!("{bad} of {} files", found.len())) }
            .with_context(|| format!("{}: could not be read", argument.display()))
    };
    for argument in &args.inputs {
        if let Err(error) = one(argument, &mut set) {
            reporter.error(&error);
            exit = Exit::BadInput;
        }
    }
    reporter.progress().start(1);
    (set, exit)
}
