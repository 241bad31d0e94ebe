//! Every row of a ledger (`ulpian-ledger/1`), typed in one place.
//!
//! A figure is null where it was not measured; an infinite one (a result of another class, another shape) is `inf`.

use serde::{Deserialize, Serialize};
use ulpian_spec::verdict::option_float;

/// The format's name, in the row of `plan`.
pub const LEDGER_FORMAT: &str = "ulpian-ledger/1";
/// The format's version: SQLite's `user_version`.
pub const LEDGER_VERSION: i64 = 1;
/// SQLite's `application_id`: "Ulpn".
pub const APPLICATION_ID: i64 = 0x556c_706e;

/// The tables. `cases.number` is the case's place in the plan, and `case` everywhere else. Two runs of one plan agree in every
/// table but `timings`.
pub const SCHEMA: &str = "
CREATE TABLE plan (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  format TEXT NOT NULL,
  plan TEXT NOT NULL
) STRICT;
CREATE TABLE cases (
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  pattern INTEGER,
  labels TEXT NOT NULL,
  edges TEXT NOT NULL,
  status TEXT NOT NULL,
  reason TEXT,
  cause TEXT
) STRICT;
CREATE TABLE executions (
  \"case\" INTEGER NOT NULL REFERENCES cases (number),
  place INTEGER NOT NULL,
  executor TEXT NOT NULL,
  status TEXT NOT NULL,
  reason TEXT,
  cause TEXT,
  grade TEXT,
  node TEXT,
  op TEXT,
  because TEXT,
  class_mismatches INTEGER,
  local_ulp REAL,
  bound_ratio REAL,
  accumulated_ulp REAL,
  difference REAL,
  close_ratio REAL,
  sort INTEGER,
  assert_close INTEGER,
  bound INTEGER,
  PRIMARY KEY (\"case\", place)
) STRICT;
CREATE TABLE nodes (
  \"case\" INTEGER NOT NULL REFERENCES cases (number),
  place INTEGER NOT NULL,
  node TEXT NOT NULL,
  executor TEXT NOT NULL,
  op TEXT NOT NULL,
  dtype TEXT NOT NULL,
  class_mismatches INTEGER,
  local_ulp REAL,
  local_abs REAL,
  bound_ratio REAL,
  accumulated_ulp REAL,
  accumulated_abs REAL,
  condition REAL,
  difference REAL,
  mean_difference REAL,
  PRIMARY KEY (\"case\", place, executor)
) STRICT;
CREATE TABLE verdicts (
  \"case\" INTEGER PRIMARY KEY REFERENCES cases (number),
  verdict TEXT NOT NULL
) STRICT;
CREATE TABLE timings (
  \"case\" INTEGER PRIMARY KEY REFERENCES cases (number),
  seconds REAL NOT NULL
) STRICT;
CREATE TABLE findings (
  \"case\" INTEGER NOT NULL REFERENCES cases (number),
  place INTEGER NOT NULL,
  executions INTEGER NOT NULL,
  name TEXT NOT NULL,
  elements INTEGER NOT NULL,
  elements_left INTEGER NOT NULL,
  because TEXT NOT NULL,
  minimised TEXT NOT NULL,
  repro TEXT,
  PRIMARY KEY (\"case\", place)
) STRICT;
CREATE TABLE environment (
  name TEXT NOT NULL,
  facts TEXT NOT NULL,
  PRIMARY KEY (name, facts)
) STRICT;
";

/// One case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseRow {
    /// Its place in the plan.
    pub number: usize,
    /// Its name.
    pub name: String,
    /// The id of its pattern, where it was generated for one.
    pub pattern: Option<usize>,
    /// The labels of its pattern, or its ops where there is none; blanks between them.
    pub labels: String,
    /// JSON: `[from, to, argument]` for each operand that another node made, by node ids.
    pub edges: String,
    /// `judged`; `invalid` (PyTorch's rules reject it, or its file cannot be read); `failed` (its truth cannot be computed).
    pub status: String,
    /// Why it was not judged.
    pub reason: Option<String>,
    /// The overall cause.
    pub cause: Option<String>,
}

/// One executor on one case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExecutionRow {
    /// The case's number.
    pub case: usize,
    /// The executor's place in the plan.
    pub place: usize,
    /// The executor.
    pub executor: String,
    /// `ok`, `unavailable` or `failed`.
    pub status: String,
    /// Why it is not `ok`.
    pub reason: Option<String>,
    /// The cause of this executor's error; absent where nothing of it could be judged.
    pub cause: Option<String>,
    /// How sure that is.
    pub grade: Option<String>,
    /// The node that it shows at.
    pub node: Option<String>,
    /// That node's op.
    pub op: Option<String>,
    /// The reason, a sentence.
    pub because: Option<String>,
    /// Elements of another class than the truth's, over all nodes.
    pub class_mismatches: Option<usize>,
    /// Worst local error of a node, in ulp.
    #[serde(with = "option_float")]
    pub local_ulp: Option<f64>,
    /// Worst local error of a node as a share of what a correct implementation may lose.
    #[serde(with = "option_float")]
    pub bound_ratio: Option<f64>,
    /// Worst accumulated error of a node, in ulp.
    #[serde(with = "option_float")]
    pub accumulated_ulp: Option<f64>,
    /// Worst |a - b| of the case's outputs, against the first executor's.
    #[serde(with = "option_float")]
    pub difference: Option<f64>,
    /// Worst |a - b| / (atol + rtol |b|) of the case's outputs, by `torch.testing.assert_close`'s defaults.
    #[serde(with = "option_float")]
    pub close_ratio: Option<f64>,
    /// Found by SORT's criterion: `difference` above 1e-3.
    pub sort: Option<bool>,
    /// Found by `torch.testing.assert_close` against the first executor.
    pub assert_close: Option<bool>,
    /// Found by the bound: a node's local error is beyond it, or elements are of another class.
    pub bound: Option<bool>,
}

/// One node result of one executor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeRow {
    /// The case's number.
    pub case: usize,
    /// The result's place among the case's node results.
    pub place: usize,
    /// Node id, or `id.1` for a further result.
    pub node: String,
    /// The executor.
    pub executor: String,
    /// The op.
    pub op: String,
    /// The result's dtype.
    pub dtype: String,
    /// Elements of another class than the truth's.
    pub class_mismatches: Option<usize>,
    /// Worst local error in ulp.
    #[serde(with = "option_float")]
    pub local_ulp: Option<f64>,
    /// Worst absolute local error.
    #[serde(with = "option_float")]
    pub local_abs: Option<f64>,
    /// Worst local error as a share of what a correct implementation may lose.
    #[serde(with = "option_float")]
    pub bound_ratio: Option<f64>,
    /// Worst accumulated error in ulp.
    #[serde(with = "option_float")]
    pub accumulated_ulp: Option<f64>,
    /// Worst absolute accumulated error.
    #[serde(with = "option_float")]
    pub accumulated_abs: Option<f64>,
    /// Condition number of the op at its worst element.
    #[serde(with = "option_float")]
    pub condition: Option<f64>,
    /// Worst |a - b| against the first executor.
    #[serde(with = "option_float")]
    pub difference: Option<f64>,
    /// Mean |a - b| against the first executor, over elements where both are finite.
    #[serde(with = "option_float")]
    pub mean_difference: Option<f64>,
}

/// A finding made small.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FindingRow {
    /// The number of the case that shows it most.
    pub case: usize,
    /// The executor's place in the plan.
    pub place: usize,
    /// How many executions have the same pattern, op, cause and executor.
    pub executions: usize,
    /// Its name, for files.
    pub name: String,
    /// Elements of the whole case's tensors.
    pub elements: usize,
    /// Elements of the small case's tensors.
    pub elements_left: usize,
    /// The verdict on the small case, a sentence.
    pub because: String,
    /// The small case, as a case file with every tensor inline.
    pub minimised: String,
    /// The script that shows it with torch alone, where one can.
    pub repro: Option<String>,
}

/// Everything that one case gives to the ledger.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseRows {
    /// The case.
    pub case: CaseRow,
    /// A row for each executor, where the case was judged.
    pub executions: Vec<ExecutionRow>,
    /// A row for each node result and executor that returned it.
    pub nodes: Vec<NodeRow>,
    /// The line `judge --json` would print, without the facts of the workers, which are in `environment`.
    pub verdict: Option<String>,
    /// How long it took.
    pub seconds: f64,
}
