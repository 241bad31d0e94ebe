//! The loop: every case of the plan that the ledger does not hold yet is judged, and its rows are written.
//!
//! Five threads share the work, so that a case costs what its slowest part costs and not the sum: one makes the cases, one hears the
//! parties, one computes truths, the caller's gives verdicts, one writes. The truths of a few cases are computed ahead of their
//! parties, while Python starts above all. What a case gives depends on no other case, nor on the order.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Map, Value};
use ulpian_reference::Settings;
use ulpian_spec::{Case, ExecutorId, Outcome};
use ulpian_vendor_compare::judge::{Hearing, JudgeError};

use super::CampaignError;
use super::plan::{Cases, Numbered, Plan};
use super::record::{self, Differences};
use super::rows::{CaseRow, CaseRows};
use super::writer::Writer;
use crate::Executors;
use crate::pipeline;

/// How many small cases may be under way at a time.
const UNDER_WAY: usize = 64;
/// Elements of a case, results included, for which it counts as one more small case.
const SMALL: usize = 1 << 18;

/// What is told while a campaign runs.
pub trait Watch: Send {
    /// `executor` is about to run on the case of this name.
    fn hears(&mut self, case: &str, executor: &ExecutorId);

    /// A case is in the ledger.
    fn recorded(&mut self, rows: &CaseRows);

    /// A worker says other things of itself than when the campaign began.
    fn other_environment(&mut self, name: &str);

    /// Should the campaign stop here?
    fn stop(&self) -> bool;
}

/// Judges what is left of the plan and returns how many cases that were.
///
/// # Errors
/// [`CampaignError`] where the ledger cannot be written. Nothing that happens to a case is an error.
pub fn run(
    ledger: &mut Writer,
    plan: &Plan,
    cases: &Cases<'_>,
    executors: &mut Executors,
    watch: &mut dyn Watch,
) -> Result<usize, CampaignError> {
    let parties: Vec<ExecutorId> = plan.executors.iter().filter_map(|text| text.parse().ok()).collect();
    let done = ledger.ledger().done_numbers()?;
    let left: Vec<usize> = (0..plan.cases).filter(|n| done.binary_search(n).is_err()).collect();
    let executors = Mutex::new(executors);
    let (to_judge, news) = channel();
    let (to_hear, made) = channel();
    let (to_know, unknown) = channel();
    let (to_write, rows) = channel();
    let (tickets, granted) = channel();
    grant(&tickets, UNDER_WAY);
    std::thread::scope(|scope| {
        let (makers, hearers, knowers) = (to_judge.clone(), to_judge.clone(), to_judge.clone());
        let writers = to_judge;
        scope.spawn(|| make(&left, cases, granted, [to_hear, to_know], makers));
        scope.spawn(|| hear(made, &parties, &executors, hearers));
        scope.spawn(|| know(unknown, knowers));
        let writing = scope.spawn(|| write(ledger, rows, writers));
        let bench = Bench {
            plan,
            parties: &parties,
            executors: &executors,
            tickets,
            to_write,
            under_way: VecDeque::new(),
        };
        let recorded = bench.sit(left.len(), news, watch);
        // Where writing failed, the judge could not go on.
        writing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map(|()| recorded)
    })
}

/// Lets so many more small cases be made. Where nobody makes any more, nothing is lost.
fn grant(tickets: &Sender<()>, count: usize) {
    for _ in 0..count {
        let _ = tickets.send(());
    }
}

/// A case that was made.
struct Made {
    number: usize,
    name: String,
    pattern: Option<usize>,
    labels: Option<Vec<String>>,
    /// The case; or the status that says why there is none, and the reason.
    case: Result<Arc<Case>, (&'static str, String)>,
    /// For how many small cases it counts.
    weight: usize,
}

/// What the parties said of a case, and what their workers say of themselves.
struct Said {
    outcomes: Vec<Outcome>,
    differences: Vec<Option<Differences>>,
    facts: Map<String, Value>,
}

/// What the judge is told.
enum News {
    /// The next case.
    Made(Made),
    /// An executor is about to run on the case of this name.
    Hears(String, ExecutorId),
    /// The truth of the case of this number; `None` where computing it met a bug of Ulpian's.
    Known(usize, Option<Result<Hearing, JudgeError>>),
    /// What was said of the case of this number; `None` where hearing it met a bug of Ulpian's.
    Heard(usize, Option<Said>),
    /// A case is in the ledger; these workers are not what they were.
    Recorded(CaseRows, Vec<String>),
    /// The ledger cannot be written.
    NotWritten,
}

/// A case's rows on their way to the ledger, with the facts of the workers so far.
type ToWrite = (CaseRows, Map<String, Value>);

/// Makes the cases, as many ahead as tickets allow.
fn make(
    left: &[usize],
    cases: &Cases<'_>,
    granted: Receiver<()>,
    to_work: [Sender<(usize, Arc<Case>)>; 2],
    to_judge: Sender<News>,
) {
    for &number in left {
        if granted.recv().is_err() {
            return;
        }
        // A panic is a bug in Ulpian; it costs this case alone.
        let made = catch_unwind(AssertUnwindSafe(|| cases.make(number)));
        let Numbered { name, pattern, labels, case } = made.unwrap_or_else(|_| Numbered {
            name: format!("case {number}"),
            pattern: None,
            labels: None,
            case: Err("internal error".to_owned()),
        });
        let case = case.map(Arc::new).map_err(|reason| ("invalid", reason));
        let weight = case.as_ref().map_or(1, |case| (1 + elements(case) / SMALL).min(UNDER_WAY));
        if (1..weight).any(|_| granted.recv().is_err()) {
            return;
        }
        let ahead = case.as_ref().ok().map(|case| (number, Arc::clone(case)));
        let told = to_judge.send(News::Made(Made { number, name, pattern, labels, case, weight }));
        let lost = |case: &(usize, Arc<Case>)| to_work.iter().any(|to| to.send(case.clone()).is_err());
        if told.is_err() || ahead.as_ref().is_some_and(lost) {
            return;
        }
    }
}

/// Elements of a case's tensors and results.
fn elements(case: &Case) -> usize {
    let inputs: usize = case.tensors.iter().map(|t| t.value.len()).sum();
    let results = case.nodes.iter().flat_map(|n| &n.types).map(|ty| ty.shape.iter().product::<usize>());
    inputs + results.sum::<usize>()
}

/// Hears the parties, case by case.
fn hear(
    made: Receiver<(usize, Arc<Case>)>,
    parties: &[ExecutorId],
    executors: &Mutex<&mut Executors>,
    to_judge: Sender<News>,
) {
    for (number, case) in made {
        let mut tell = |executor: &ExecutorId| {
            drop(to_judge.send(News::Hears(case.name.clone(), executor.clone())));
        };
        let said = catch_unwind(AssertUnwindSafe(|| {
            let mut executors = executors.lock().unwrap_or_else(PoisonError::into_inner);
            let outcomes = pipeline::hear(&case, parties, &mut executors, &mut tell);
            let facts = executors.pool().environment_facts();
            drop(executors);
            Said { differences: record::differences(&outcomes), outcomes, facts }
        }));
        if to_judge.send(News::Heard(number, said.ok())).is_err() {
            return;
        }
    }
}

/// Computes the truths, case by case.
fn know(unknown: Receiver<(usize, Arc<Case>)>, to_judge: Sender<News>) {
    for (number, case) in unknown {
        // A panic is a bug in Ulpian; it costs this case alone.
        let truth = || catch_unwind(AssertUnwindSafe(|| Hearing::new(&case, &Settings::default()))).ok();
        let truth = among_workers(truth);
        if to_judge.send(News::Known(number, truth)).is_err() {
            return;
        }
    }
}

/// Calls `f` on a thread of rayon's pool: parts that it shares out are then taken up by idle threads of the pool, where a thread
/// outside of it would sleep at each of them until it is woken.
fn among_workers<T: Send>(f: impl FnOnce() -> T + Send) -> T {
    rayon::scope(|_| f())
}

/// Writes whatever has come since the last time, in one transaction.
fn write(ledger: &mut Writer, rows: Receiver<ToWrite>, to_judge: Sender<News>) -> Result<(), CampaignError> {
    while let Ok(first) = rows.recv() {
        let mut batch = vec![first];
        batch.extend(rows.try_iter());
        match ledger.record(&batch) {
            Ok(others) => {
                for ((rows, _), others) in batch.into_iter().zip(others) {
                    drop(to_judge.send(News::Recorded(rows, others)));
                }
            }
            Err(error) => {
                drop(to_judge.send(News::NotWritten));
                return Err(error);
            }
        }
    }
    Ok(())
}

/// A case under way.
struct UnderWay {
    made: Made,
    truth: Option<Option<Result<Hearing, JudgeError>>>,
    said: Option<Option<Said>>,
}

impl UnderWay {
    fn is_ready(&self) -> bool {
        self.truth.is_some() && self.said.is_some()
    }
}

/// Where the judge sits. Dropping it lets the other threads end.
struct Bench<'a, 'e> {
    plan: &'a Plan,
    parties: &'a [ExecutorId],
    executors: &'a Mutex<&'e mut Executors>,
    tickets: Sender<()>,
    to_write: Sender<ToWrite>,
    under_way: VecDeque<UnderWay>,
}

impl Bench<'_, '_> {
    /// Judges `count` cases, and returns how many are in the ledger.
    fn sit(mut self, count: usize, news: Receiver<News>, watch: &mut dyn Watch) -> usize {
        let (mut recorded, mut last) = (0, Instant::now());
        while recorded < count {
            let ready = self.under_way.front().is_some_and(UnderWay::is_ready);
            match if ready { news.try_recv().ok() } else { news.recv().ok() } {
                Some(News::Made(made)) => {
                    // What is no case has nothing to be heard, and no truth.
                    let none = made.case.is_err();
                    let (truth, said) = (none.then_some(None), none.then_some(None));
                    self.under_way.push_back(UnderWay { made, truth, said });
                }
                Some(News::Hears(case, executor)) => watch.hears(&case, &executor),
                Some(News::Heard(number, said)) => {
                    if let Some(under_way) = self.of(number) {
                        under_way.said = Some(said);
                    }
                }
                Some(News::Known(number, truth)) => {
                    if let Some(under_way) = self.of(number) {
                        under_way.truth = Some(truth);
                    }
                }
                Some(News::Recorded(rows, others)) => {
                    others.iter().for_each(|name| watch.other_environment(name));
                    recorded += 1;
                    watch.recorded(&rows);
                }
                Some(News::NotWritten) => break,
                None if ready => {
                    if watch.stop() || !self.first(&mut last, watch) {
                        break;
                    }
                }
                None => break,
            }
            if watch.stop() {
                break;
            }
        }
        recorded
    }

    fn of(&mut self, number: usize) -> Option<&mut UnderWay> {
        self.under_way.iter_mut().find(|u| u.made.number == number)
    }

    /// Gives the verdict on the oldest case. Returns whether somebody takes the rows.
    fn first(&mut self, last: &mut Instant, watch: &mut dyn Watch) -> bool {
        let Some(UnderWay { made, truth, said }) = self.under_way.pop_front() else { return true };
        let weight = made.weight;
        let (mut rows, facts) = among_workers(|| self.judge(made, truth.flatten(), said.flatten(), watch));
        // By the clock: cases that are under way together share it.
        rows.seconds = last.elapsed().as_secs_f64();
        *last = Instant::now();
        grant(&self.tickets, weight);
        self.to_write.send((rows, facts)).is_ok()
    }

    /// The rows of a case.
    fn judge(
        &self,
        made: Made,
        known: Option<Result<Hearing, JudgeError>>,
        said: Option<Said>,
        watch: &mut dyn Watch,
    ) -> ToWrite {
        let Made { number, name, pattern, labels, case, .. } = made;
        let mut row = CaseRow {
            number,
            name,
            pattern,
            labels: labels.unwrap_or_default().join(" "),
            edges: "[]".to_owned(),
            status: "judged".to_owned(),
            reason: None,
            cause: None,
        };
        let without = |row: CaseRow, status: &str, reason: String| CaseRows {
            case: CaseRow { status: status.to_owned(), reason: Some(reason), ..row },
            executions: Vec::new(),
            nodes: Vec::new(),
            verdict: None,
            seconds: 0.0,
        };
        let case = match case {
            Ok(case) => case,
            Err((status, reason)) => return (without(row, status, reason), Map::new()),
        };
        if row.pattern.is_none() {
            let ops: Vec<&str> = case.nodes.iter().map(|n| n.op.kind().name()).collect();
            row.labels = ops.join(" ");
        }
        row.edges = record::edges(&case).to_string();
        let internal = |row| without(row, "failed", "internal error".to_owned());
        let Some(Said { outcomes, differences, mut facts }) = said else {
            return (internal(row), Map::new());
        };
        let Some(known) = known else { return (internal(row), facts) };
        let mut hearing = match known {
            Ok(hearing) => hearing,
            Err(error) => return (without(row, "failed", error.to_string()), facts),
        };
        let verdict = catch_unwind(AssertUnwindSafe(|| {
            let run = |executor: &ExecutorId, node: &Case| {
                watch.hears(&case.name, executor);
                let mut executors = self.executors.lock().unwrap_or_else(PoisonError::into_inner);
                let outcome = executors.intervene(executor, node);
                facts = executors.pool().environment_facts();
                outcome
            };
            pipeline::explain(&mut hearing, self.parties, outcomes, self.plan.interventions, run);
            // The facts of workers depend on which of them have run so far; the ledger keeps them apart.
            hearing.verdict(Executors::own_facts())
        }));
        let rows = match verdict {
            Ok(verdict) => record::rows(row, &case, self.parties, verdict, &differences),
            Err(_) => internal(row),
        };
        (rows, facts)
    }
}
