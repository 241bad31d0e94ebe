//! What the surroundings say: environment variables, the user's folders, the devices of this machine.

pub(crate) mod look;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use etcetera::BaseStrategy;
use ulpian::Executors;
use ulpian::vendor_compare::environment::{Progress, Python as FoundPython, PythonSearch, find_or_make};
use ulpian::vendor_compare::{Error, OnProgress, PoolConfig};

use crate::cli::{Common, Python};
use crate::report::Reporter;

/// Where Python may come from: `ULPIAN_PYTHON`, an active environment, `PATH`, or Ulpian's own environment unless the flag or
/// `ULPIAN_MANAGED_PYTHON=0` forbids it.
pub(crate) fn python_search(flags: &Python) -> PythonSearch {
    let cache = etcetera::choose_base_strategy().map_or_else(|_| std::env::temp_dir(), |s| s.cache_dir());
    let search = PythonSearch::from_variables(|name| std::env::var_os(name), cache);
    PythonSearch { allow_managed: search.allow_managed && !flags.no_managed_python, ..search }
}

/// The executors of this machine, with `timeout` for one case.
pub(crate) fn executors(
    flags: &Python,
    common: &Common,
    timeout: Duration,
    reporter: &Reporter,
) -> Executors {
    executors_from(python_search(flags), common, timeout, reporter)
}

/// The executors of this machine over a Python that was found already.
pub(crate) fn executors_with(
    python: &FoundPython,
    common: &Common,
    timeout: Duration,
    reporter: &Reporter,
) -> Executors {
    let search = PythonSearch { chosen: Some(python.executable.clone()), ..PythonSearch::default() };
    executors_from(search, common, timeout, reporter)
}

fn executors_from(
    search: PythonSearch,
    common: &Common,
    timeout: Duration,
    reporter: &Reporter,
) -> Executors {
    let mut config = PoolConfig::new(search, std::env::temp_dir());
    config.timeout = timeout;
    config.compile_timeout = config.compile_timeout.max(timeout);
    config.seed = common.seed;
    config.on_progress = Some(tell_progress(reporter));
    Executors::new(config, has_gpu())
}

/// The Python with torch that the executors would use; Ulpian's own is made where there is none.
pub(crate) fn python(flags: &Python, reporter: &Reporter) -> Result<FoundPython, Error> {
    find_or_make(&python_search(flags), &*tell_progress(reporter))
}

/// Says how the making of Ulpian's own environment goes.
fn tell_progress(reporter: &Reporter) -> OnProgress {
    let news = reporter.news();
    Arc::new(move |progress| match progress {
        Progress::Waiting { folder } => {
            news.tell(&format!(
                "another Ulpian is making the Python environment {}; waiting for it",
                folder.display()
            ));
        }
        Progress::Started { folder, packages, expected } => news.tell(&format!(
            "no Python with torch was found, so Ulpian makes its own, once: {} in {} (about {:.1} GB).\n\
             To forbid this, set ULPIAN_MANAGED_PYTHON=0 or ULPIAN_PYTHON to a Python that has torch.",
            packages.join(" "),
            folder.display(),
            expected as f64 / 1e9
        )),
        Progress::Line(line) => news.show(&line),
        Progress::Size(bytes) => news.show(&format!("installing torch: {:.2} GB so far", bytes as f64 / 1e9)),
        Progress::Finished { folder, seconds } => {
            news.tell(&format!("the Python environment {} is ready after {seconds:.0} s", folder.display()));
        }
    })
}

/// Does this machine have an NVIDIA GPU with a loaded driver?
pub(crate) fn has_gpu() -> bool {
    PathBuf::from("/proc/driver/nvidia/version").exists() || PathBuf::from("/dev/nvidiactl").exists()
}

/// The most memory that this process has held so far, in bytes; 0 where the system does not tell.
pub(crate) fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes =
        line.and_then(|l| l.trim().strip_suffix(" kB")).and_then(|n| n.trim().parse::<u64>().ok());
    kibibytes.map_or(0, |n| n * 1024)
}
