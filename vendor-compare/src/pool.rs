//! All workers behind one door: a case goes in, an outcome comes out, and processes start, stay, and are replaced as needed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::{Map, Value};
use ulpian_spec::executor::ExecutorIdError;
use ulpian_spec::{Case, Executor, ExecutorId, HostTensor, Outcome, Run, ValueRef};

use crate::environment::{self, Progress, Python, PythonSearch};
use crate::process::{Launch, Worker};
use crate::protocol::{self, Answer, Ask, Request};
use crate::recorded::Recorded;
use crate::transfer::Exchange;
use crate::{Error, keys, ort, torch};

/// A worker that cannot start is tried this often before every further case is refused at once.
const START_ATTEMPTS: usize = 2;

/// Receives news while a Python environment is made.
pub type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;

/// How to hear PyTorch and ONNX Runtime.
#[derive(Clone)]
pub struct PoolConfig {
    /// Where to find Python.
    pub python: PythonSearch,
    /// The folder for temporary files.
    pub temporary: PathBuf,
    /// Time for one case.
    pub timeout: Duration,
    /// Time for one case with `compile=on`.
    pub compile_timeout: Duration,
    /// Time for a worker's start, which imports PyTorch.
    pub start_timeout: Duration,
    /// Seed of PyTorch's generator, set before each case.
    pub seed: u64,
    /// Variables in the environment of every worker, besides the inherited ones.
    pub env: Vec<(String, String)>,
    /// News while a Python environment is made.
    pub on_progress: Option<OnProgress>,
}

impl PoolConfig {
    /// Five minutes a case and a start, fifteen where something is compiled, seed 0.
    pub fn new(python: PythonSearch, temporary: PathBuf) -> PoolConfig {
        PoolConfig {
            python,
            temporary,
            timeout: Duration::from_secs(300),
            compile_timeout: Duration::from_secs(900),
            start_timeout: Duration::from_secs(300),
            seed: 0,
            env: Vec::new(),
            on_progress: None,
        }
    }
}

impl std::fmt::Debug for PoolConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PoolConfig")
            .field("python", &self.python)
            .field("temporary", &self.temporary)
            .field("timeout", &self.timeout)
            .field("compile_timeout", &self.compile_timeout)
            .field("start_timeout", &self.start_timeout)
            .field("seed", &self.seed)
            .field("env", &self.env)
            .finish_non_exhaustive()
    }
}

/// What tells one process from another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct WorkerKey {
    family: String,
    env: Vec<(String, String)>,
}

impl WorkerKey {
    fn of(id: &ExecutorId) -> Result<WorkerKey, Error> {
        let env = if id.family == "torch" { torch::environment(id)? } else { Vec::new() };
        Ok(WorkerKey { family: id.family.clone(), env })
    }
}

/// Every executor of this crate. Processes are started when first needed and reused across cases and keys; dropping the pool
/// ends them.
#[derive(Debug)]
pub struct Pool {
    config: PoolConfig,
    exchange: Option<Exchange>,
    python: Option<Result<Python, Error>>,
    workers: BTreeMap<WorkerKey, Worker>,
    starting: BTreeMap<WorkerKey, JoinHandle<Result<Worker, Error>>>,
    failed_starts: BTreeMap<WorkerKey, (usize, Error)>,
    facts: BTreeMap<WorkerKey, Map<String, Value>>,
    requests: u64,
}

impl Pool {
    /// A pool that has started nothing yet.
    pub fn new(config: PoolConfig) -> Pool {
        Pool {
            config,
            exchange: None,
            python: None,
            workers: BTreeMap::new(),
            starting: BTreeMap::new(),
            failed_starts: BTreeMap::new(),
            facts: BTreeMap::new(),
            requests: 0,
        }
    }

    /// Checks that `id` names an executor of this crate, with keys and values that it has.
    ///
    /// # Errors
    /// What is wrong with the name, and what it could be.
    pub fn check(id: &ExecutorId) -> Result<(), ExecutorIdError> {
        match id.family.as_str() {
            "torch" => torch::check(id),
            "ort" => ort::check(id),
            "recorded" => Ok(()),
            other => {
                Err(keys::error(id, format!("no family `{other}` here; there are torch, ort and recorded")))
            }
        }
    }

    /// Runs a whole case. A crash, a hang and an exception cost this case only.
    pub fn run(&mut self, id: &ExecutorId, case: &Case) -> Outcome {
        if let Err(error) = Pool::check(id) {
            return Outcome::failed(error.to_string());
        }
        if id.family == "recorded" {
            return Recorded::new(&id.variant).run(case);
        }
        match self.compute(id, case) {
            Ok(outcome) => outcome,
            Err(error) => error.into(),
        }
    }

    /// One executor of the pool.
    ///
    /// # Errors
    /// Those of [`Pool::check`].
    pub fn executor(&mut self, id: ExecutorId) -> Result<Pooled<'_>, ExecutorIdError> {
        Pool::check(&id)?;
        Ok(Pooled { pool: self, id })
    }

    /// The Python that is used. Where none is found, an environment is made, unless that is forbidden.
    ///
    /// # Errors
    /// [`Error::Unavailable`] with the remedy.
    pub fn python(&mut self) -> Result<&Python, Error> {
        let config = &self.config;
        let found = self.python.get_or_insert_with(|| {
            let silent: OnProgress = Arc::new(|_| {});
            let progress = config.on_progress.as_ref().unwrap_or(&silent);
            environment::find_or_make(&config.python, progress.as_ref())
        });
        found.as_ref().map_err(Clone::clone)
    }

    /// Begins to start the workers that these executors need, all at once, and does not wait for them. Why one cannot be started is
    /// said when it is to run.
    pub fn start(&mut self, ids: &[ExecutorId]) {
        let mut keys: Vec<WorkerKey> = Vec::new();
        for id in ids.iter().filter(|id| id.family != "recorded" && Pool::check(id).is_ok()) {
            if let Ok(key) = WorkerKey::of(id)
                && !keys.contains(&key)
                && !self.workers.contains_key(&key)
                && !self.starting.contains_key(&key)
            {
                keys.push(key);
            }
        }
        if keys.is_empty() {
            return;
        }
        let Ok(launcher) = self.launcher() else { return };
        let launcher = Arc::new(launcher);
        for key in keys {
            let (launcher, of) = (Arc::clone(&launcher), key.clone());
            self.starting.insert(key, std::thread::spawn(move || launcher.start(&of)));
        }
    }

    /// Starts the worker of `torch` or `ort` and returns what it says of itself: versions, instruction set, threads, GPUs.
    ///
    /// # Errors
    /// Why it cannot be started.
    pub fn introduce(&mut self, family: &str) -> Result<Map<String, Value>, Error> {
        let key = WorkerKey { family: family.to_owned(), env: Vec::new() };
        Ok(self.worker(&key)?.hello.facts.clone())
    }

    /// Versions and machine facts of the workers that have run so far, by family and by the variables that set them apart.
    pub fn environment_facts(&self) -> Map<String, Value> {
        let named = self.facts.iter().map(|(key, facts)| {
            let env: Vec<String> = key.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let name =
                if env.is_empty() { key.family.clone() } else { format!("{} {}", key.family, env.join(" ")) };
            (name, Value::Object(facts.clone()))
        });
        named.collect()
    }

    /// The numbers of the processes that run now.
    pub fn processes(&self) -> Vec<u32> {
        self.workers.values().map(Worker::pid).collect()
    }

    /// The tensors of a file that `torch.save` wrote, by name. PyTorch reads it with `weights_only=True`, so that no code in
    /// the file runs.
    ///
    /// # Errors
    /// Where PyTorch refuses the file, or it holds something else than tensors of the dtypes of a case.
    pub fn load_pt(&mut self, path: &Path) -> Result<Vec<(String, HostTensor)>, Error> {
        let path = std::path::absolute(path).map_err(|e| Error::system(path.display().to_string(), &e))?;
        let key = WorkerKey { family: "torch".to_owned(), env: Vec::new() };
        let ask = Ask::LoadPt { path: &path.to_string_lossy() };
        let (file, entries) = match self.ask(&key, ask, self.config.timeout)? {
            Answer::Loaded { file, entries } => (file, entries),
            other => return Err(other_than_asked(other)),
        };
        let parts: Vec<&protocol::Entry> = entries.iter().map(|e| &e.entry).collect();
        let tensors = self.exchange()?.receive(file.as_deref(), &parts).map_err(untrue)?;
        Ok(entries.into_iter().map(|e| e.name).zip(tensors).collect())
    }

    /// Makes the worker of `family` fail; for tests, with `ULPIAN_WORKER_TEST=1` in [`PoolConfig::env`].
    #[doc(hidden)]
    pub fn misbehave(&mut self, family: &str, how: &str) -> Result<(), Error> {
        let key = WorkerKey { family: family.to_owned(), env: Vec::new() };
        match self.ask(&key, Ask::Misbehave { how }, self.config.timeout)? {
            Answer::Ran { .. } => Ok(()),
            other => Err(other_than_asked(other)),
        }
    }

    fn compute(&mut self, id: &ExecutorId, case: &Case) -> Result<Outcome, Error> {
        let key = WorkerKey::of(id)?;
        let compiling = id.key("compile").is_some();
        let timeout = if compiling { self.config.compile_timeout } else { self.config.timeout };
        // Before anything is written: without a worker there is nothing to write it for.
        self.worker(&key)?;
        let name = format!("{}.in", self.requests + 1);
        let (used, nodes) = protocol::calls(case);
        let tensors = self.exchange()?.send(&name, used.iter().map(|&i| case.tensors[i].value.as_ref()))?;
        let sent = tensors.file.clone();
        let ask = Ask::Run { variant: &id.variant, keys: &id.keys, tensors, nodes, seed: self.config.seed };
        let answer = self.ask(&key, ask, timeout);
        if let Some(file) = sent {
            let _ = std::fs::remove_file(file);
        }
        let (file, entries, seconds, notes) = match answer? {
            Answer::Ran { file, entries, seconds, notes } => (file, entries, seconds, notes),
            Answer::Failed { node, r#type, message, file, entries } => {
                let results = self.results(file.as_deref(), &entries)?;
                let reason = Error::Exception { node, kind: r#type, message }.to_string();
                return Ok(Outcome::Failed { reason, before: Run { results, ..Run::default() } });
            }
            other => return Err(other_than_asked(other)),
        };
        let results = self.results(file.as_deref(), &entries)?;
        if let Some(missing) = case.nodes.iter().enumerate().find_map(|(node, n)| {
            let at = ValueRef::Node { node, output: 0 };
            (!results.contains_key(&at)).then_some(&n.id)
        }) {
            return Err(untrue(format!("no result of node {missing}")));
        }
        Ok(Outcome::Ok(Run { results, seconds, notes }))
    }

    /// The results that a worker wrote, by what they are of.
    fn results(
        &mut self,
        file: Option<&str>,
        entries: &[protocol::ResultEntry],
    ) -> Result<BTreeMap<ValueRef, Arc<HostTensor>>, Error> {
        let parts: Vec<&protocol::Entry> = entries.iter().map(|e| &e.entry).collect();
        let tensors = self.exchange()?.receive(file, &parts).map_err(untrue)?;
        let names = entries.iter().map(|e| ValueRef::Node { node: e.at.0, output: e.at.1 });
        Ok(names.zip(tensors.into_iter().map(Arc::new)).collect())
    }

    /// Asks a worker, starting it where needed. One that failed to answer is not asked again: the next request starts another.
    fn ask(&mut self, key: &WorkerKey, ask: Ask<'_>, timeout: Duration) -> Result<Answer, Error> {
        self.worker(key)?;
        self.requests += 1;
        let request = Request { id: self.requests, results: self.exchange()?.folders(), ask };
        let worker = self.workers.get_mut(key).ok_or_else(unexpected)?;
        match worker.ask(&request, timeout) {
            Ok(Answer::Unavailable { reason, remedy }) => Err(Error::Unavailable { reason, remedy }),
            Ok(answer) => Ok(answer),
            Err(error) => {
                self.workers.remove(key);
                Err(error)
            }
        }
    }

    fn exchange(&mut self) -> Result<&Exchange, Error> {
        if self.exchange.is_none() {
            self.exchange = Some(Exchange::new(&self.config.temporary)?);
        }
        self.exchange.as_ref().ok_or_else(unexpected)
    }

    /// The worker of this key, started if there is none that lives.
    fn worker(&mut self, key: &WorkerKey) -> Result<&mut Worker, Error> {
        if self.workers.get_mut(key).is_some_and(|w| !w.is_alive()) {
            self.workers.remove(key);
        }
        if !self.workers.contains_key(key) {
            if let Some((attempts, error)) = self.failed_starts.get(key)
                && *attempts >= START_ATTEMPTS
            {
                return Err(error.clone());
            }
            let started = match self.starting.remove(key) {
                Some(starting) => starting.join().unwrap_or_else(|_| Err(unexpected())),
                None => self.launcher().and_then(|launcher| launcher.start(key)),
            };
            self.enter(key, started)?;
        }
        self.workers.get_mut(key).ok_or_else(unexpected)
    }

    /// Keeps a worker that was started, or remembers why it was not.
    fn enter(&mut self, key: &WorkerKey, started: Result<Worker, Error>) -> Result<(), Error> {
        match started {
            Ok(worker) => {
                self.failed_starts.remove(key);
                self.facts.insert(key.clone(), worker.hello.facts.clone());
                self.workers.insert(key.clone(), worker);
                Ok(())
            }
            Err(error) => {
                let attempts = self.failed_starts.get(key).map_or(0, |(n, _)| *n) + 1;
                self.failed_starts.insert(key.clone(), (attempts, error.clone()));
                Err(error)
            }
        }
    }

    fn launcher(&mut self) -> Result<Launcher, Error> {
        let python = self.python()?.executable.clone();
        let exchange = self.exchange()?;
        let package = crate::package::unpack(exchange.on_disk())?;
        let folders = exchange.folders();
        Ok(Launcher { python, package, folders, config: self.config.clone() })
    }
}

/// All that workers need to start.
struct Launcher {
    python: PathBuf,
    package: PathBuf,
    folders: Vec<String>,
    config: PoolConfig,
}

impl Launcher {
    fn start(&self, key: &WorkerKey) -> Result<Worker, Error> {
        let Launcher { python, package, folders, config } = self;
        let mut env = config.env.clone();
        env.extend(key.env.iter().cloned());
        let cache = config.python.cache.join("ulpian").join("inductor");
        if key.family == "torch" && cache.is_absolute() {
            env.push(("TORCHINDUCTOR_CACHE_DIR".to_owned(), cache.to_string_lossy().into_owned()));
        }
        let launch = Launch { python, package, family: &key.family, env: &env, folders };
        let worker = Worker::start(&launch, config.start_timeout)?;
        match &worker.hello.problem {
            None => Ok(worker),
            Some(problem) => {
                let needed = if key.family == "ort" { "onnx onnxruntime" } else { "torch" };
                Err(Error::unavailable(
                    format!("{} cannot import what `{}` needs: {problem}", python.display(), key.family),
                    format!("install it: {} -m pip install {needed}", python.display()),
                ))
            }
        }
    }
}

/// An executor of a [`Pool`].
#[derive(Debug)]
pub struct Pooled<'a> {
    pool: &'a mut Pool,
    id: ExecutorId,
}

impl Executor for Pooled<'_> {
    fn id(&self) -> &ExecutorId {
        &self.id
    }

    fn run(&mut self, case: &Case) -> Outcome {
        self.pool.run(&self.id, case)
    }
}

/// What an answer that is not the one asked for means.
fn other_than_asked(answer: Answer) -> Error {
    match answer {
        Answer::Failed { node, r#type, message, .. } => Error::Exception { node, kind: r#type, message },
        _ => unexpected(),
    }
}

fn unexpected() -> Error {
    untrue("an answer to another question".to_owned())
}

fn untrue(what: String) -> Error {
    Error::Protocol { what, stderr: String::new() }
}
