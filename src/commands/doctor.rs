//! `ulpian doctor`

use std::time::Duration;

use crate::cli::{self, Common};
use crate::environment;
use crate::exit::{Exit, Failure};
use crate::report::{self, Reporter};
use ulpian::vendor_compare::environment::find;

/// Time for PyTorch to start.
const STARTING: Duration = Duration::from_secs(300);

pub(crate) fn run(args: &cli::Doctor, common: &Common, reporter: &mut Reporter) -> Result<Exit, Failure> {
    let search = environment::python_search(&args.python);
    let found = find(&search);
    let mut findings = environment::look::python(&found);
    let mut ready = false;
    if let Ok(python) = &found {
        reporter.progress().start(1);
        reporter.progress().say("starting PyTorch");
        let mut executors = environment::executors_with(python, common, STARTING, reporter);
        let torch = executors.pool().introduce("torch");
        ready = torch.is_ok();
        findings.extend(environment::look::torch(&torch));
        reporter.progress().say("starting ONNX Runtime");
        findings.push(environment::look::onnxruntime(&executors.pool().introduce("ort")));
        reporter.progress().finish();
    }
    findings.push(environment::look::compiler());
    findings.extend(environment::look::gpu(found.as_ref().ok()));
    for finding in &findings {
        reporter.record(finding)?;
    }
    reporter.text(&report::doctor::table(&findings, ready));
    Ok(if ready { Exit::Clean } else { Exit::CouldNotRun })
}
