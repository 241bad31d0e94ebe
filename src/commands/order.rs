//! `ulpian order EXECUTOR OP [ARG=VALUE]…`

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Map;
use ulpian::Executors;
use ulpian::order::{self, Call, Measured, OrderError, Subject};
use ulpian::pack::{Call as Words, Word};
use ulpian::records::{ORDER_FORMAT, OrderCoverage, OrderLine, OrderTrial, OrderVerified};
use ulpian::reference::order::text;
use ulpian::spec::{ExecutorId, OpKind};

use crate::cli::{self, Common};
use crate::environment;
use crate::exit::{Exit, Failure};
use crate::report::{self, Reporter};

pub(crate) fn run(args: &cli::Order, common: &Common, reporter: &mut Reporter) -> Result<Exit, Failure> {
    let start = Instant::now();
    let id: ExecutorId = args.executor.parse().map_err(anyhow::Error::from)?;
    Executors::check(&id).map_err(anyhow::Error::from)?;
    if id.family == "recorded" {
        let error = anyhow::anyhow!("{id}: a recording cannot be probed; name an executor that can be run");
        return Err(error.into());
    }
    let subject = Subject::new(call(args)?).map_err(anyhow::Error::from)?;
    let timeout = Duration::from_secs_f64(args.timeout);
    let mut executors = environment::executors(&args.python, common, timeout, reporter);
    let progress = reporter.progress();
    let mut runs = 0;
    let mut run = |case: &ulpian::spec::Case| {
        runs += 1;
        progress.say(format!("{id}: run {runs}"));
        executors.run(&id, case)
    };
    let measured = order::measure(&subject, common.seed, &mut run);
    progress.finish();
    let measured = measured.map_err(|error| {
        let exit = match error {
            OrderError::Unavailable { .. } | OrderError::Failed(_) => Exit::CouldNotRun,
            _ => Exit::BadInput,
        };
        Failure { exit, error: anyhow::Error::from(error).context(id.to_string()) }
    })?;
    let line = line(&id, &subject, &measured, start.elapsed());
    reporter.record(&line)?;
    reporter.text(&report::order::found(&line, &measured));
    Ok(code(&measured))
}

/// A term that does not arrive is a fault. Without a tree, the order is known all the same where a replay has the very bits.
fn code(measured: &Measured) -> Exit {
    if !measured.missing.is_empty() {
        Exit::Fault
    } else if measured.tree.is_none() && measured.replays.is_empty() {
        Exit::Undecided
    } else {
        Exit::Clean
    }
}

fn call(args: &cli::Order) -> Result<Call> {
    let Some(op) = OpKind::from_name(&args.op) else {
        bail!(
            "{}: no such op; there are matmul, linear, conv2d, adaptive_avg_pool2d and layer_norm",
            args.op
        );
    };
    let words = Words::new("y", op.name(), args.args.iter().cloned())?;
    let mut literals = Map::new();
    for (name, word) in words.args {
        match word {
            Word::Literal(value) => literals.insert(name, value),
            Word::Tensor(_) => bail!(
                "{name}: the values of a probe are chosen by Ulpian; give the shape alone: --shape {name}=1x1024"
            ),
        };
    }
    let mut shapes = BTreeMap::new();
    for text in &args.shapes {
        let (name, shape) = shape(text)?;
        if shapes.insert(name.clone(), shape).is_some() {
            bail!("--shape {text}: the shape of {name} is given twice");
        }
    }
    Ok(Call { op, literals, shapes, terms: args.k, dtype: args.dtype })
}

/// `ARG=AxBxC`
fn shape(text: &str) -> Result<(String, Vec<usize>)> {
    let form = || format!("--shape {text}: expected ARG=SHAPE, such as weight=8x1024");
    let (name, sizes) = text.split_once('=').filter(|(name, _)| !name.is_empty()).with_context(form)?;
    let sizes = sizes.split('x').map(|n| n.trim().parse().ok()).collect::<Option<Vec<usize>>>();
    Ok((name.to_owned(), sizes.with_context(form)?))
}

fn line(id: &ExecutorId, subject: &Subject, measured: &Measured, took: Duration) -> OrderLine {
    let same = measured.same_bits();
    let outcome = if same.is_some() || !measured.replays.is_empty() {
        "same bits"
    } else if measured.trials.is_empty() {
        "not compared"
    } else {
        "other bits"
    };
    let tried = measured.trials.iter().map(|t| OrderTrial {
        arithmetic: t.name.clone(),
        same: t.same,
        elements: t.elements,
    });
    OrderLine {
        format: ORDER_FORMAT.to_owned(),
        executor: id.to_string(),
        op: subject.op.name().to_owned(),
        dtype: subject.dtype.name().to_owned(),
        shapes: subject.shapes.clone(),
        k: measured.terms,
        tree: measured.tree.as_ref().map(|t| t.parents()),
        text: measured.tree.as_ref().map(text),
        depth: measured.tree.as_ref().map(|t| t.depth()),
        name: measured.name(),
        coverage: measured
            .complete
            .map(|complete| OrderCoverage { complete, missing: measured.missing.clone() }),
        fused: measured.fused(),
        pairs: measured.pairs,
        deviating: measured.deviating.clone(),
        verified: OrderVerified {
            outcome: outcome.to_owned(),
            arithmetic: same.map(|t| t.name.clone()),
            tried: tried.collect(),
            replays: measured.replays.iter().map(|h| format!("replay:{}", h.name)).collect(),
        },
        inconclusive: measured.inconclusive.clone(),
        seconds: took.as_secs_f64(),
    }
}
