//! The ledger, as it is read: a SQLite file with one writer and any number of readers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Row};
use ulpian_spec::verdict::Cause;

use super::CampaignError;
use super::plan::Plan;
use super::rows::{
    APPLICATION_ID, CaseRow, ExecutionRow, FindingRow, LEDGER_FORMAT, LEDGER_VERSION, NodeRow,
};

/// How long a reader and the writer wait for each other.
const BUSY: Duration = Duration::from_secs(60);

/// A ledger that is read.
#[derive(Debug)]
pub struct Ledger {
    pub(super) file: PathBuf,
    pub(super) connection: Connection,
}

impl Ledger {
    /// Opens a ledger and checks that it is one, whole, and of a version that is known.
    ///
    /// # Errors
    /// [`CampaignError`], saying which of these it is not.
    pub fn open(file: &Path) -> Result<Ledger, CampaignError> {
        if !file.is_file() {
            return Err(CampaignError::Absent(file.to_owned()));
        }
        let ledger = Ledger::connect(file, OpenFlags::empty())?;
        if ledger.is_empty()? {
            return Err(CampaignError::Empty(file.to_owned()));
        }
        ledger.check()?;
        Ok(ledger)
    }

    pub(super) fn connect(file: &Path, more: OpenFlags) -> Result<Ledger, CampaignError> {
        // A reader may have to roll back what a killed writer left.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | more;
        let at = |source| CampaignError::Database { file: file.to_owned(), source };
        let connection = Connection::open_with_flags(file, flags).map_err(at)?;
        let ledger = Ledger { file: file.to_owned(), connection };
        ledger.connection.busy_timeout(BUSY).map_err(|e| ledger.error(e))?;
        Ok(ledger)
    }

    pub(super) fn is_empty(&self) -> Result<bool, CampaignError> {
        self.number("SELECT count(*) FROM sqlite_schema").map(|n| n == 0)
    }

    fn check(&self) -> Result<(), CampaignError> {
        if self.number("PRAGMA application_id")? != APPLICATION_ID {
            return Err(CampaignError::NotALedger(self.file.clone()));
        }
        let found = self.number("PRAGMA user_version")?;
        if found > LEDGER_VERSION {
            return Err(CampaignError::Newer { file: self.file.clone(), found });
        }
        let whole: String = self
            .connection
            .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
            .map_err(|e| self.error(e))?;
        if whole != "ok" {
            return Err(self.damaged(whole));
        }
        let format: String = self
            .connection
            .query_row("SELECT format FROM plan", [], |row| row.get(0))
            .map_err(|e| self.error(e))?;
        if format != LEDGER_FORMAT {
            return Err(self.damaged(format!("its format is `{format}`")));
        }
        Ok(())
    }

    /// The file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The plan.
    ///
    /// # Errors
    /// [`CampaignError::Damaged`] where it cannot be read.
    pub fn plan(&self) -> Result<Plan, CampaignError> {
        let text: String = self
            .connection
            .query_row("SELECT plan FROM plan", [], |row| row.get(0))
            .map_err(|e| self.error(e))?;
        serde_json::from_str(&text).map_err(|e| self.damaged(format!("the plan: {e}")))
    }

    /// How many cases have been judged, or found impossible to judge.
    ///
    /// # Errors
    /// [`CampaignError`] where the ledger cannot be read; so for every other question.
    pub fn done(&self) -> Result<usize, CampaignError> {
        self.number("SELECT count(*) FROM cases").map(|n| usize::try_from(n).unwrap_or(0))
    }

    /// The numbers of the cases that are done, ascending.
    ///
    /// # Errors
    /// As [`Ledger::done`].
    pub fn done_numbers(&self) -> Result<Vec<usize>, CampaignError> {
        self.rows("SELECT number FROM cases ORDER BY number", |row| unsigned(row, 0))
    }

    /// Seconds that the done cases took.
    ///
    /// # Errors
    /// As [`Ledger::done`].
    pub fn seconds(&self) -> Result<f64, CampaignError> {
        let total = self.connection.query_row("SELECT total(seconds) FROM timings", [], |row| row.get(0));
        total.map_err(|e| self.error(e))
    }

    /// Every case, by number.
    ///
    /// # Errors
    /// As [`Ledger::done`].
    pub fn cases(&self) -> Result<Vec<CaseRow>, CampaignError> {
        self.rows(
            "SELECT number, name, pattern, labels, edges, status, reason, cause FROM cases ORDER BY number",
            |row| {
                Ok(CaseRow {
                    number: unsigned(row, 0)?,
                    name: row.get(1)?,
                    pattern: optional(row, 2)?,
                    labels: row.get(3)?,
                    edges: row.get(4)?,
                    status: row.get(5)?,
                    reason: row.get(6)?,
                    cause: row.get(7)?,
                })
            },
        )
    }

    /// Every execution, by case and by place of the executor in the plan.
    ///
    /// # Errors
    /// As [`Ledger::done`].
    pub fn executions(&self) -> Result<Vec<ExecutionRow>, CampaignError> {
        self.rows(
            "SELECT \"case\", place, executor, status, reason, cause, grade, node, op, because, class_mismatches, local_ulp,
             bound_ratio, accumulated_ulp, difference, close_ratio, sort, assert_close, bound
             FROM executions ORDER BY \"case\", place",
            |row| {
                Ok(ExecutionRow {
                    case: unsigned(row, 0)?,
                    place: unsigned(row, 1)?,
                    executor: row.get(2)?,
                    status: row.get(3)?,
                    reason: row.get(4)?,
                    cause: row.get(5)?,
                    grade: row.get(6)?,
                    node: row.get(7)?,
                    op: row.get(8)?,
                    because: row.get(9)?,
                    class_mismatches: optional(row, 10)?,
                    local_ulp: row.get(11)?,
                    bound_ratio: row.get(12)?,
                    accumulated_ulp: row.get(13)?,
                    difference: row.get(14)?,
                    close_ratio: row.get(15)?,
                    sort: row.get(16)?,
                    assert_close: row.get(17)?,
                    bound: row.get(18)?,
                })
            },
        )
    }

    /// Every node result, by case, place and executor.
    ///
    /// # Errors
    /// As [`Ledger::done`].
    pub fn nodes(&self) -> Result<Vec<NodeRow>, CampaignError> {
        self.rows(
            "SELECT \"case\", place, node, executor, op, dtype, class_mismatches, local_ulp, local_abs, bound_ratio,
             accumulated_ulp, accumulated_abs, condition, difference, mean_difference
             FROM nodes ORDER BY \"case\", place, executor",
            |row| {
                Ok(NodeRow {
                    case: unsigned(row, 0)?,
                    place: unsigned(row, 1)?,
                    node: row.get(2)?,
                    executor: row.get(3)?,
                    op: row.get(4)?,
                    dtype: row.get(5)?,
                    class_mismatches: optional(row, 6)?,
                    local_ulp: row.get(7)?,
                    local_abs: row.get(8)?,
                    bound_ratio: row.get(9)?,
                    accumulated_ulp: row.get(10)?,
                    accumulated_abs: row.get(11)?,
                    condition: row.get(12)?,
                    difference: row.get(13)?,
                    mean_difference: row.get(14)?,
                })
            },
        )
    }

    /// The lines of the verdicts, by case.
    ///
    /// # Errors
    /// As [`Ledger::done`].
    pub fn verdicts(&self) -> Result<Vec<(usize, String)>, CampaignError> {
        self.rows("SELECT \"case\", verdict FROM verdicts ORDER BY \"case\"", |row| {
            Ok((unsigned(row, 0)?, row.get(1)?))
        })
    }

    /// The findings that were made small, by case and place.
    ///
    /// # Errors
    /// As [`Ledger::done`].
    pub fn findings(&self) -> Result<Vec<FindingRow>, CampaignError> {
        self.rows(
            "SELECT \"case\", place, executions, name, elements, elements_left, because, minimised, repro FROM findings
             ORDER BY \"case\", place",
            |row| {
                Ok(FindingRow {
                    case: unsigned(row, 0)?,
                    place: unsigned(row, 1)?,
                    executions: unsigned(row, 2)?,
                    name: row.get(3)?,
                    elements: unsigned(row, 4)?,
                    elements_left: unsigned(row, 5)?,
                    because: row.get(6)?,
                    minimised: row.get(7)?,
                    repro: row.get(8)?,
                })
            },
        )
    }

    /// What the workers said of themselves, by name: versions, instruction set, threads. A name stands twice where the machine
    /// was another one when the campaign went on.
    ///
    /// # Errors
    /// As [`Ledger::done`].
    pub fn environment(&self) -> Result<Vec<(String, String)>, CampaignError> {
        self.rows("SELECT name, facts FROM environment ORDER BY name, facts", |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
    }

    /// Executions by executor and cause; `unavailable` or `failed` where there was no result to judge.
    ///
    /// # Errors
    /// As [`Ledger::done`].
    pub fn causes(&self) -> Result<BTreeMap<(String, String), usize>, CampaignError> {
        let counts = self.rows(
            "SELECT executor, coalesce(cause, status), count(*) FROM executions GROUP BY 1, 2",
            |row| Ok(((row.get(0)?, row.get(1)?), unsigned(row, 2)?)),
        )?;
        Ok(counts.into_iter().collect())
    }

    /// Why executions gave no result: for each executor and status (`unavailable` or `failed`) the most frequent reason, and how
    /// many executions there are of that status.
    ///
    /// # Errors
    /// As [`Ledger::done`].
    pub fn reasons(&self) -> Result<Vec<Unheard>, CampaignError> {
        let reasons = self.rows(
            "SELECT executor, status, coalesce(reason, ''), count(*) AS n FROM executions WHERE status <> 'ok'
             GROUP BY 1, 2, 3 ORDER BY executor, status, n DESC, 3",
            |row| {
                Ok(Unheard {
                    executor: row.get(0)?,
                    status: row.get(1)?,
                    reason: row.get(2)?,
                    executions: unsigned(row, 3)?,
                })
            },
        )?;
        let mut merged: Vec<Unheard> = Vec::new();
        for row in reasons {
            match merged.last_mut() {
                Some(last) if (&last.executor, &last.status) == (&row.executor, &row.status) => {
                    last.executions += row.executions;
                }
                _ => merged.push(row),
            }
        }
        Ok(merged)
    }

    /// Executions that a criterion finds: (`sort`, `assert_close`, `bound`, and a cause that is a fault).
    ///
    /// # Errors
    /// As [`Ledger::done`].
    pub fn found(&self) -> Result<[usize; 4], CampaignError> {
        let faults: Vec<String> =
            FAULTS.iter().filter(|c| c.is_fault()).map(|c| format!("'{}'", c.name())).collect();
        let query = format!(
            "SELECT total(sort), total(assert_close), total(bound), total(cause IN ({})) FROM executions",
            faults.join(", ")
        );
        let found = self.connection.query_row(&query, [], |row| {
            let count = |at| row.get::<_, f64>(at).map(|n| n as usize);
            Ok([count(0)?, count(1)?, count(2)?, count(3)?])
        });
        found.map_err(|e| self.error(e))
    }

    /// How many rows of a table have this `status`.
    ///
    /// # Errors
    /// As [`Ledger::done`].
    pub fn with_status(&self, table: Table, status: &str) -> Result<usize, CampaignError> {
        let query = match table {
            Table::Cases => "SELECT count(*) FROM cases WHERE status = ?1",
            Table::Executions => "SELECT count(*) FROM executions WHERE status = ?1",
        };
        let count = self.connection.query_row(query, [status], |row| unsigned(row, 0));
        count.map_err(|e| self.error(e))
    }

    fn number(&self, query: &str) -> Result<i64, CampaignError> {
        self.connection.query_row(query, [], |row| row.get(0)).map_err(|e| self.error(e))
    }

    fn rows<T>(
        &self,
        query: &str,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, CampaignError> {
        let mut statement = self.connection.prepare(query).map_err(|e| self.error(e))?;
        let rows = statement.query_map([], read).map_err(|e| self.error(e))?;
        rows.collect::<Result<_, _>>().map_err(|e| self.error(e))
    }

    pub(super) fn damaged(&self, what: impl Into<String>) -> CampaignError {
        CampaignError::Damaged { file: self.file.clone(), what: what.into() }
    }

    /// What an error of SQLite's says about the file.
    pub(super) fn error(&self, source: rusqlite::Error) -> CampaignError {
        use rusqlite::ErrorCode::{DatabaseBusy, DatabaseCorrupt, DatabaseLocked, NotADatabase};
        match source.sqlite_error_code() {
            Some(NotADatabase) => CampaignError::NotALedger(self.file.clone()),
            Some(DatabaseCorrupt) => self.damaged(source.to_string()),
            Some(DatabaseBusy | DatabaseLocked) => CampaignError::Busy(self.file.clone()),
            // The queries are fixed: what they do not find in a whole ledger is missing from this one.
            Some(rusqlite::ErrorCode::Unknown) => self.damaged(source.to_string()),
            None => self.damaged(source.to_string()),
            Some(_) => CampaignError::Database { file: self.file.clone(), source },
        }
    }
}

/// Executions of one executor that gave no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unheard {
    /// The executor.
    pub executor: String,
    /// `unavailable` or `failed`.
    pub status: String,
    /// The most frequent reason.
    pub reason: String,
    /// How many there are.
    pub executions: usize,
}

/// A table with a `status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// `cases`
    Cases,
    /// `executions`
    Executions,
}

const FAULTS: [Cause; 4] = [Cause::Framework, Cause::Vendor, Cause::Hardware, Cause::Defect];

fn unsigned(row: &Row<'_>, at: usize) -> rusqlite::Result<usize> {
    row.get::<_, i64>(at).map(|n| usize::try_from(n).unwrap_or(0))
}

fn optional(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<usize>> {
    row.get::<_, Option<i64>>(at).map(|n| n.and_then(|n| usize::try_from(n).ok()))
}
