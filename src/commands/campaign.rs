//! `ulpian campaign run|resume|status|findings|export`

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use serde::Serialize;
use ulpian::Executors;
use ulpian::campaign::ledger::{Table, Unheard};
use ulpian::campaign::minimise::Budget;
use ulpian::campaign::plan::{Cases, Hearing};
use ulpian::campaign::rows::{CaseRows, ExecutionRow, FindingRow};
use ulpian::campaign::{self, CampaignError, Ledger, Plan, Source, Watch, Writer, findings};
use ulpian::pipeline::Interventions;
use ulpian::records::{CampaignCase, CampaignFinding, CampaignSummary, CriteriaCounts, ExportedExecution};
use ulpian::spec::ExecutorId;
use ulpian::spec::verdict::Cause;
use ulpian::vendor_compare::environment::Python as FoundPython;

use crate::cli::{self, Campaign, Common, ExportFormat, ExportRows, InterventionsKind};
use crate::exit::{CouldNotRun, Exit, Failure};
use crate::report::Reporter;
use crate::{environment, inputs, interrupt, report};

pub(crate) fn run(args: &Campaign, common: &Common, reporter: &mut Reporter) -> Result<Exit, Failure> {
    match args {
        Campaign::Run(args) => begin(args, common, reporter),
        Campaign::Resume(args) => resume(args, common, reporter),
        Campaign::Status(args) => status(args, reporter),
        Campaign::Findings(args) => findings(args, common, reporter),
        Campaign::Export(args) => export(args, reporter),
    }
}

fn begin(args: &cli::CampaignRun, common: &Common, reporter: &mut Reporter) -> Result<Exit, Failure> {
    let hearing = Hearing {
        executors: super::judge::named_parties(&args.executors)?,
        timeout: args.timeout,
        interventions: match args.interventions {
            InterventionsKind::All => Interventions::All,
            InterventionsKind::Quick => Interventions::Quick,
            InterventionsKind::None => Interventions::None,
        },
        seed: common.seed,
    };
    let (source, found) = match args.count {
        Some(count) => {
            let recipe = super::generate::recipe(&args.inputs, count, common.seed);
            (Source::Generated(recipe), Exit::Clean)
        }
        None => {
            let (files, found) = inputs::find_all(&args.cases, reporter);
            (Source::Cases(files), found)
        }
    };
    let plan = Plan::new(source, &hearing).map_err(failure)?;
    let mut executors = executors(&plan, &args.python, common, reporter);
    // Python takes seconds to start; meanwhile the sources are read.
    executors.start(&hearing.executors);
    // What cannot be generated is known before the ledger begins.
    let sources = plan.sources().map_err(failure)?;
    let cases = Cases::of(&plan, sources.as_ref()).map_err(failure)?;
    if let Cases::Generated(inputs) = &cases {
        for unfit in inputs.unfit() {
            reporter.note(&format!("no input for pattern {}: {}", unfit.pattern, unfit.why));
        }
        let fitting = inputs.patterns().len();
        if plan.cases < fitting {
            reporter.note(&format!(
                "{} of {fitting} patterns have an input, the first of the file; --count {fitting} gives one to each",
                plan.cases
            ));
        }
    }
    let writer = Writer::begin(&args.ledger, &plan).map_err(failure)?;
    Ok(found.max(go_on(writer, &plan, &cases, executors, reporter)?))
}

fn resume(args: &cli::CampaignResume, common: &Common, reporter: &mut Reporter) -> Result<Exit, Failure> {
    let (writer, plan) = reopen(&args.ledger).map_err(failure)?;
    let mut executors = executors(&plan, &args.python, common, reporter);
    if writer.ledger().done().map_err(failure)? < plan.cases {
        executors.start(&super::judge::named_parties(&plan.executors)?);
    }
    let sources = plan.sources().map_err(failure)?;
    let cases = Cases::of(&plan, sources.as_ref()).map_err(failure)?;
    go_on(writer, &plan, &cases, executors, reporter)
}

/// A ledger to be written to, and its plan, whose files are what they were.
fn reopen(ledger: &Path) -> Result<(Writer, Plan), CampaignError> {
    let writer = Writer::resume(ledger)?;
    let plan = writer.ledger().plan()?;
    if plan.ulpian != env!("CARGO_PKG_VERSION") {
        return Err(CampaignError::OtherVersion { file: ledger.to_owned(), began: plan.ulpian });
    }
    plan.check_files()?;
    Ok((writer, plan))
}

/// Judges what is left, and says what the whole ledger holds.
fn go_on(
    mut writer: Writer,
    plan: &Plan,
    cases: &Cases<'_>,
    mut executors: Executors,
    reporter: &mut Reporter,
) -> Result<Exit, Failure> {
    let file = writer.ledger().file().to_owned();
    let done = writer.ledger().done().map_err(failure)?;
    let words = format!(
        "ended; what is done is kept. Go on with: ulpian campaign resume --ledger {}",
        file.display()
    );
    interrupt::last_words(reporter.news(), words);
    reporter.progress().go_on(plan.cases, done);
    let mut watch = Told { reporter, lost: None };
    campaign::run(&mut writer, plan, cases, &mut executors, &mut watch).map_err(failure)?;
    if let Some(error) = watch.lost {
        return Err(error.into());
    }
    reporter.progress().finish();
    let summary = summary(writer.ledger(), plan).map_err(failure)?;
    say_reasons(writer.ledger(), reporter)?;
    reporter.record(&summary)?;
    reporter.text(&report::campaign::summary(&summary));
    let code = code(&summary, plan);
    if summary.left == 0 && summary.found.fault > 0 {
        let ledger = writer.ledger().file().display();
        reporter.note(&format!(
            "faults are named (exit code {}): `ulpian campaign findings --ledger {ledger} --out DIR` makes each small and writes a script \
             that shows it, `ulpian report --ledger {ledger} --out DIR` a page of everything",
            code as u8
        ));
    }
    Ok(code)
}

/// The executors under the plan's seed and timeout.
fn executors(plan: &Plan, python: &cli::Python, common: &Common, reporter: &Reporter) -> Executors {
    let common = Common { seed: plan.seed, ..common.clone() };
    environment::executors(python, &common, Duration::from_secs_f64(plan.timeout), reporter)
}

/// Shows what happens.
struct Told<'a> {
    reporter: &'a mut Reporter,
    lost: Option<anyhow::Error>,
}

impl Watch for Told<'_> {
    fn hears(&mut self, case: &str, executor: &ExecutorId) {
        self.reporter.progress().say(format!("{case}: {executor}"));
    }

    fn recorded(&mut self, rows: &CaseRows) {
        let of = |e: &ExecutionRow| e.cause.clone().unwrap_or_else(|| e.status.clone());
        let line = CampaignCase {
            number: rows.case.number,
            case: rows.case.name.clone(),
            pattern: rows.case.pattern,
            status: rows.case.status.clone(),
            reason: rows.case.reason.clone(),
            cause: rows.case.cause.clone(),
            executors: rows.executions.iter().map(|e| (e.executor.clone(), of(e))).collect(),
        };
        if let Some(reason) = rows.case.reason.as_ref().filter(|_| rows.case.status != "judged") {
            self.reporter.note(&format!("{}: {}: {reason}", rows.case.name, rows.case.status));
        }
        self.lost = self.lost.take().or(self.reporter.record(&line).err());
        self.reporter.progress().step();
    }

    fn other_environment(&mut self, name: &str) {
        self.reporter.note(&format!(
            "{name} is not what it was when this campaign began (another version, another processor); its results may differ"
        ));
    }

    fn stop(&self) -> bool {
        self.lost.is_some() || self.reporter.reader_is_gone()
    }
}

fn status(args: &cli::CampaignStatus, reporter: &mut Reporter) -> Result<Exit, Failure> {
    let ledger = Ledger::open(&args.ledger).map_err(failure)?;
    let plan = ledger.plan().map_err(failure)?;
    let summary = summary(&ledger, &plan).map_err(failure)?;
    say_reasons(&ledger, reporter)?;
    reporter.record(&summary)?;
    reporter.text(&report::campaign::summary(&summary));
    Ok(Exit::Clean)
}

/// Why there are executions without a result.
fn say_reasons(ledger: &Ledger, reporter: &Reporter) -> Result<(), Failure> {
    for Unheard { executor, status, executions, reason } in ledger.reasons().map_err(failure)? {
        reporter.note(&format!("{executor}: {status} in {executions}: {reason}"));
    }
    Ok(())
}

fn summary(ledger: &Ledger, plan: &Plan) -> Result<CampaignSummary, CampaignError> {
    let done = ledger.done()?;
    let seconds = ledger.seconds()?;
    let mut causes: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    for ((executor, cause), count) in ledger.causes()? {
        causes.entry(executor).or_default().insert(cause, count);
    }
    let [sort, assert_close, bound, fault] = ledger.found()?;
    let left = plan.cases.saturating_sub(done);
    Ok(CampaignSummary {
        ledger: ledger.file().display().to_string(),
        cases: plan.cases,
        done,
        left,
        invalid: ledger.with_status(Table::Cases, "invalid")?,
        failed: ledger.with_status(Table::Cases, "failed")?,
        executions: causes.values().flat_map(BTreeMap::values).sum(),
        seconds,
        seconds_left: (done > 0).then(|| seconds / done as f64 * left as f64),
        causes,
        found: CriteriaCounts { sort, assert_close, bound, fault },
    })
}

/// The exit code of a whole ledger, as that of `judge` over its cases but for two things. Inputs that a baseline made invalid are
/// no failure: that some are is what it is run for. Nor is a party that is unavailable for some cases, as a memory layout is for
/// tensors that cannot have it; one that is unavailable for all could not run.
fn code(summary: &CampaignSummary, plan: &Plan) -> Exit {
    let has = |name: &str| summary.causes.values().any(|causes| causes.contains_key(name));
    let mut exit = Exit::Clean;
    if summary.found.fault > 0 {
        exit = exit.max(Exit::Fault);
    }
    if summary.invalid > 0 && matches!(plan.source, Source::Cases(_)) {
        exit = exit.max(Exit::BadInput);
    }
    let never_heard = |causes: &BTreeMap<String, usize>| causes.keys().all(|name| name == "unavailable");
    if summary.failed > 0 || has("failed") || summary.causes.values().any(never_heard) {
        exit = exit.max(Exit::CouldNotRun);
    }
    if has(Cause::Inconclusive.name()) {
        exit = exit.max(Exit::Undecided);
    }
    exit
}

fn findings(args: &cli::CampaignFindings, common: &Common, reporter: &mut Reporter) -> Result<Exit, Failure> {
    let (mut writer, plan) = reopen(&args.ledger).map_err(failure)?;
    let sources = plan.sources().map_err(failure)?;
    let cases = Cases::of(&plan, sources.as_ref()).map_err(failure)?;
    let mut executors = executors(&plan, &args.python, common, reporter);
    let groups = findings::group(writer.ledger()).map_err(failure)?;
    let current =
        |row: &FindingRow| groups.iter().any(|f| (f.case.number, f.worst.place) == (row.case, row.place));
    for row in writer.ledger().findings().map_err(failure)?.iter().filter(|row| !current(row)) {
        writer.drop_finding(row.case, row.place).map_err(failure)?;
    }
    let budget = Budget { tries: args.tries, ..Budget::default() };
    let count = args.limit.unwrap_or(groups.len()).min(groups.len());
    let python = match args.check {
        true => {
            Some(environment::python(&args.python, reporter).map_err(anyhow::Error::from).could_not_run()?)
        }
        false => None,
    };
    let mut exit = if groups.is_empty() { Exit::Clean } else { Exit::Fault };
    let mut lines = Vec::new();
    reporter.progress().go_on(count, 0);
    for finding in groups.iter().take(count) {
        reporter.progress().say(finding.name());
        let row = findings::reproduce(&mut writer, finding, &plan, &cases, &mut executors, budget);
        let row = row.map_err(failure)?;
        let mut line = CampaignFinding {
            finding: finding.name(),
            pattern: finding.pattern,
            labels: finding.labels.clone(),
            op: finding.op.clone(),
            cause: finding.cause.name().to_owned(),
            executor: finding.worst.executor.clone(),
            executions: finding.executions,
            case: finding.case.name.clone(),
            elements: row.as_ref().map_or(0, |r| r.elements),
            elements_left: row.as_ref().map(|r| r.elements_left),
            because: row.as_ref().map(|r| r.because.clone()),
            file: None,
            repro: None,
            reproduced: None,
        };
        if let Some(row) = &row {
            line.file = Some(write(&args.out, &format!("{}.json", row.name), &row.minimised)?);
            if let Some(script) = &row.repro {
                let path = write(&args.out, &format!("{}.py", row.name), script)?;
                match python.as_ref().map(|python| shows(python, &path)) {
                    None => {}
                    Some(Ok(shown)) => line.reproduced = Some(shown),
                    // It costs this script alone.
                    Some(Err(error)) => {
                        exit = exit.max(Exit::CouldNotRun);
                        reporter.error(&error);
                    }
                }
                line.repro = Some(path);
            }
        }
        reporter.record(&line)?;
        reporter.progress().step();
        lines.push(line);
        if reporter.reader_is_gone() {
            break;
        }
    }
    reporter.progress().finish();
    reporter.text(&report::campaign::findings(&lines, groups.len()));
    Ok(exit)
}

/// Does the script show its fault? It ends with 1 where it does and with 0 where not.
fn shows(python: &FoundPython, script: &str) -> Result<bool> {
    let output = Command::new(&python.executable).arg(script).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("{script} cannot be run"))?;
    match output.status.code() {
        // An uncaught exception ends with 1 as well, but says so.
        Some(1) if !String::from_utf8_lossy(&output.stderr).contains("Traceback (") => Ok(true),
        Some(0) => Ok(false),
        _ => {
            let said = String::from_utf8_lossy(&output.stderr);
            let last = said.lines().last().unwrap_or_default().to_owned();
            Err(anyhow!("{script} failed ({}): {last}", output.status))
        }
    }
}

fn write(folder: &Path, name: &str, text: &str) -> Result<String, Failure> {
    let path = folder.join(name);
    let write = |staged: &Path| std::fs::write(staged, text);
    crate::files::replace(&path, write).map_err(|error| Failure { exit: Exit::CouldNotRun, error })?;
    Ok(path.display().to_string())
}

fn export(args: &cli::CampaignExport, reporter: &mut Reporter) -> Result<Exit, Failure> {
    let ledger = Ledger::open(&args.ledger).map_err(failure)?;
    let bytes = match args.rows {
        ExportRows::Executions => written(&executions(&ledger).map_err(failure)?, args.format)?,
        ExportRows::Cases => written(&ledger.cases().map_err(failure)?, args.format)?,
        ExportRows::Nodes => written(&ledger.nodes().map_err(failure)?, args.format)?,
        ExportRows::Verdicts if args.format == ExportFormat::Csv => {
            return Err(anyhow!("verdicts are no table; export them with --format jsonl").into());
        }
        ExportRows::Verdicts => {
            let verdicts = ledger.verdicts().map_err(failure)?;
            verdicts.into_iter().flat_map(|(_, line)| format!("{line}\n").into_bytes()).collect()
        }
    };
    match args.out.as_deref().filter(|out| *out != Path::new("-")) {
        None => reporter.raw(&bytes),
        Some(out) => {
            let write = |staged: &Path| std::fs::write(staged, &bytes);
            crate::files::replace(out, write).map_err(|error| Failure { exit: Exit::CouldNotRun, error })?;
            reporter.note(&format!("wrote {}", out.display()));
        }
    }
    Ok(Exit::Clean)
}

/// The executions, with what their cases are.
fn executions(ledger: &Ledger) -> Result<Vec<ExportedExecution>, CampaignError> {
    let cases: BTreeMap<usize, _> = ledger.cases()?.into_iter().map(|case| (case.number, case)).collect();
    let rows = ledger.executions()?.into_iter().filter_map(|e| {
        let case = cases.get(&e.case)?;
        Some(ExportedExecution {
            case: e.case,
            name: case.name.clone(),
            pattern: case.pattern,
            labels: case.labels.clone(),
            executor: e.executor,
            status: e.status,
            reason: e.reason,
            cause: e.cause,
            grade: e.grade,
            node: e.node,
            op: e.op,
            class_mismatches: e.class_mismatches,
            local_ulp: e.local_ulp,
            bound_ratio: e.bound_ratio,
            accumulated_ulp: e.accumulated_ulp,
            difference: e.difference,
            close_ratio: e.close_ratio,
            sort: e.sort,
            assert_close: e.assert_close,
            bound: e.bound,
            because: e.because,
        })
    });
    Ok(rows.collect())
}

fn written<T: Serialize>(rows: &[T], format: ExportFormat) -> Result<Vec<u8>> {
    match format {
        ExportFormat::Jsonl => {
            let mut bytes = Vec::new();
            for row in rows {
                serde_json::to_writer(&mut bytes, row)?;
                bytes.write_all(b"\n")?;
            }
            Ok(bytes)
        }
        ExportFormat::Csv => {
            let mut writer = csv::Writer::from_writer(Vec::new());
            for row in rows {
                writer.serialize(row)?;
            }
            writer.into_inner().context("the rows")
        }
    }
}

/// Bad input where a file is not what it should be; could not run where the system refuses to write.
fn failure(error: CampaignError) -> Failure {
    let exit = match error {
        CampaignError::Database { .. }
        | CampaignError::Busy(_)
        | CampaignError::Lock { .. }
        | CampaignError::Moved(_) => Exit::CouldNotRun,
        _ => Exit::BadInput,
    };
    Failure { exit, error: error.into() }
}
