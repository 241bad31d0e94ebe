//! `ulpian truth CASE… --out DIR`

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use ulpian::pipeline;
use ulpian::reference::{Truth, round};
use ulpian::spec::case::Limits;
use ulpian::spec::verdict::TruthLine;
use ulpian::spec::{Case, Enclosure, HostTensor, ValueRef, tensors_file};

use crate::cli;
use crate::exit::{CouldNotRun, Exit, Failure, contained};
use crate::inputs;
use crate::report::{Reporter, table};

pub(crate) fn run(args: &cli::Truth, reporter: &mut Reporter) -> Result<Exit, Failure> {
    let mut exit = Exit::Clean;
    let mut written = BTreeMap::new();
    let (files, found) = inputs::find_all(&args.cases, reporter);
    exit = exit.max(found);
    reporter.progress().start(files.len());
    for file in files {
        reporter.progress().say(file.display().to_string());
        let end = contained(|| one(&file, args, &mut written, reporter)).unwrap_or(Ok(Exit::CouldNotRun));
        exit = exit.max(end.unwrap_or_else(|failure| {
            reporter.error(&failure.error);
            failure.exit
        }));
        reporter.progress().step();
        if reporter.reader_is_gone() {
            break;
        }
    }
    Ok(exit)
}

fn one(
    file: &Path,
    args: &cli::Truth,
    written: &mut BTreeMap<PathBuf, PathBuf>,
    reporter: &mut Reporter,
) -> Result<Exit, Failure> {
    let case = Case::read(file, Limits::default()).map_err(anyhow::Error::from)?;
    let path = args.out.join(file_name(&case.name).with_context(|| file.display().to_string())?);
    if let Some(other) = written.insert(path.clone(), file.to_owned()) {
        let (name, other) = (&case.name, other.display());
        return Err(anyhow::anyhow!("{}: its name `{name}` is that of {other} too", file.display()).into());
    }
    let start = Instant::now();
    let truth = pipeline::truth(&case).with_context(|| file.display().to_string()).could_not_run()?;
    let seconds = start.elapsed().as_secs_f64();

    let tensors = tensors(&case, &truth, args.per_op);
    crate::files::replace(&path, |staged| {
        tensors_file::write(staged, tensors.iter().map(|(name, t)| (name.clone(), t)))
    })
    .could_not_run()?;
    let lines: Vec<TruthLine> = case.results().map(|at| line(&case, &truth, at, seconds)).collect();
    for line in &lines {
        reporter.record(line)?;
    }
    reporter.text(&table::truth(&lines, &path));
    for &at in &truth.undetermined {
        let node = case.result_name(at);
        let why = "depends on a dropout in training without a mask, so it has no true value; give the dropout its `mask`";
        reporter.note(&format!("{}: node {node} {why}", file.display()));
    }
    let undecided = lines.iter().any(|l| l.undecided > 0);
    Ok(if undecided { Exit::Undecided } else { Exit::Clean })
}

/// The case's name as a file name, which it may only be within the output folder.
fn file_name(name: &str) -> Result<String> {
    let mut parts = Path::new(name).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(part)), None) if part == name => Ok(format!("{name}.safetensors")),
        _ => bail!("the case's name `{name}` cannot be a file's name; use no `/` in it"),
    }
}

fn tensors(case: &Case, truth: &Truth, per_op: bool) -> Vec<(String, HostTensor)> {
    let mut tensors = Vec::new();
    for (&at, enclosure) in &truth.real {
        let id = case.result_name(at);
        let (center, radius) = ball(enclosure);
        let shape = enclosure.value.shape();
        tensors.push((format!("{id}.value"), enclosure.value.clone()));
        tensors.push((format!("{id}.center"), HostTensor::f64(shape, &center)));
        tensors.push((format!("{id}.radius"), HostTensor::f64(shape, &radius)));
    }
    if per_op {
        let per_op = truth.per_op.iter();
        tensors.extend(per_op.map(|(&at, t)| (format!("{}.per_op", case.result_name(at)), (**t).clone())));
    }
    tensors
}

/// Centres in one float64 each: what their low parts hold goes into the radius, rounded up.
fn ball(enclosure: &Enclosure) -> (Vec<f64>, Vec<f64>) {
    let radius = enclosure.radius.iter().enumerate().map(|(i, &radius)| match enclosure.low_at(i).abs() {
        0.0 => radius,
        low => (radius + low).next_up(),
    });
    (enclosure.center.clone(), radius.collect())
}

fn line(case: &Case, truth: &Truth, at: ValueRef, seconds: f64) -> TruthLine {
    let result = case.type_of(at);
    let elements = result.elements().unwrap_or(usize::MAX);
    let (undecided, max_radius_ulp) = match truth.real.get(&at) {
        Some(enclosure) => (enclosure.undecided.len(), radius_in_ulp(enclosure)),
        None => (elements, f64::INFINITY),
    };
    TruthLine {
        case: case.name.clone(),
        node: case.result_name(at),
        dtype: result.dtype.name().to_owned(),
        shape: result.shape,
        elements,
        undecided,
        max_radius_ulp,
        seconds,
    }
}

/// The worst radius in units of the last place of the result's dtype; an integer's is 1.
fn radius_in_ulp(enclosure: &Enclosure) -> f64 {
    let format = enclosure.value.dtype().float_format();
    let unit = |x: f64| format.map_or(1.0, |f| round::ulp(f, x));
    let (center, radius) = (&enclosure.center, &enclosure.radius);
    center.iter().zip(radius).map(|(&c, &r)| if r == 0.0 { 0.0 } else { r / unit(c) }).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn a_name_stays_within_the_folder() {
        assert_eq!(file_name("layer-norm v1.2").unwrap(), "layer-norm v1.2.safetensors");
        for name in ["", ".", "..", "a/b", "/etc/passwd", "../up", "a/"] {
            assert!(file_name(name).is_err(), "{name}");
        }
    }
}
