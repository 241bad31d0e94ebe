//! The ledger, as it is written.
//!
//! SQLite's rollback journal makes each transaction whole or absent whenever the process or the machine stops, and a transaction holds
//! whole cases. The writer holds a lock on the file `LEDGER-lock` beside it, which the system releases however the process
//! ends.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use rusqlite::{OpenFlags, Transaction, params};
use serde_json::{Map, Value};

use super::CampaignError;
use super::ledger::Ledger;
use super::plan::Plan;
use super::rows::{APPLICATION_ID, CaseRows, FindingRow, LEDGER_FORMAT, LEDGER_VERSION, SCHEMA};

/// A ledger that is written. There is one at a time.
#[derive(Debug)]
pub struct Writer {
    ledger: Ledger,
    /// What the workers have said of themselves since it was opened.
    facts: Map<String, Value>,
    _lock: File,
}

impl Writer {
    /// Begins a ledger with a plan.
    ///
    /// # Errors
    /// [`CampaignError::Exists`] where the file holds anything, [`CampaignError::Busy`] where another process writes it.
    pub fn begin(file: &Path, plan: &Plan) -> Result<Writer, CampaignError> {
        if std::fs::metadata(file).is_ok_and(|m| m.len() > 0 || !m.is_file()) {
            // Another kind of file is named as such, and gets no lock beside it.
            Ledger::open(file)?;
            return Err(CampaignError::Exists(file.to_owned()));
        }
        let lock = lock(file)?;
        let ledger = Ledger::connect(file, OpenFlags::SQLITE_OPEN_CREATE)?;
        if !ledger.is_empty()? {
            return Err(CampaignError::Exists(file.to_owned()));
        }
        let mut writer = Writer::over(ledger, lock)?;
        let text = serde_json::to_string(plan).map_err(|e| writer.ledger.damaged(e.to_string()))?;
        writer.transaction(|t| {
            t.execute_batch(&format!(
                "{SCHEMA} PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {LEDGER_VERSION};"
            ))?;
            t.execute(
                "INSERT INTO plan (id, format, plan) VALUES (1, ?1, ?2)",
                params![LEDGER_FORMAT, text],
            )?;
            Ok(())
        })?;
        Ok(writer)
    }

    /// Opens a ledger to go on with its plan.
    ///
    /// # Errors
    /// Those of [`Ledger::open`], and [`CampaignError::Busy`] where another process writes it.
    pub fn resume(file: &Path) -> Result<Writer, CampaignError> {
        if !file.is_file() {
            return Err(CampaignError::Absent(file.to_owned()));
        }
        // What is no ledger gets no lock beside it.
        Ledger::open(file)?;
        let lock = lock(file)?;
        Writer::over(Ledger::open(file)?, lock)
    }

    fn over(ledger: Ledger, lock: File) -> Result<Writer, CampaignError> {
        let set = || {
            ledger.connection.pragma_update(None, "journal_mode", "DELETE")?;
            ledger.connection.pragma_update(None, "synchronous", "FULL")?;
            ledger.connection.pragma_update(None, "foreign_keys", true)
        };
        set().map_err(|e| ledger.error(e))?;
        Ok(Writer { ledger, facts: Map::new(), _lock: lock })
    }

    /// What is written so far.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Writes cases, each with what the workers had said of themselves by then: all of it, or nothing. Returns for each case the
    /// workers that said something else in an earlier run.
    ///
    /// # Errors
    /// [`CampaignError`] where they cannot be written, or a case has rows already.
    pub fn record(
        &mut self,
        cases: &[(CaseRows, Map<String, Value>)],
    ) -> Result<Vec<Vec<String>>, CampaignError> {
        let mut known = std::mem::take(&mut self.facts);
        let mut others = Vec::with_capacity(cases.len());
        self.transaction(|t| {
            for (rows, facts) in cases {
                let mut changed = Vec::new();
                for (name, said) in facts {
                    if known.get(name) != Some(said) {
                        if write_facts(t, name, &said.to_string())? {
                            changed.push(name.clone());
                        }
                        known.insert(name.clone(), said.clone());
                    }
                }
                others.push(changed);
                write_case(t, rows)?;
            }
            Ok(())
        })?;
        self.facts = known;
        Ok(others)
    }

    /// Writes a finding that was made small, in place of an earlier one about the same execution.
    ///
    /// # Errors
    /// [`CampaignError`] where it cannot be written.
    pub fn record_finding(&mut self, row: &FindingRow) -> Result<(), CampaignError> {
        self.transaction(|t| {
            let query = "INSERT OR REPLACE INTO findings
                 (\"case\", place, executions, name, elements, elements_left, because, minimised, repro)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
            let values = params![
                row.case as i64,
                row.place as i64,
                row.executions as i64,
                row.name,
                row.elements as i64,
                row.elements_left as i64,
                row.because,
                row.minimised,
                row.repro
            ];
            t.execute(query, values).map(drop)
        })
    }

    /// Takes a finding away: another execution shows it more by now.
    ///
    /// # Errors
    /// [`CampaignError`] where it cannot be written.
    pub fn drop_finding(&mut self, case: usize, place: usize) -> Result<(), CampaignError> {
        self.transaction(|t| {
            let query = "DELETE FROM findings WHERE \"case\" = ?1 AND place = ?2";
            t.execute(query, params![case as i64, place as i64]).map(drop)
        })
    }

    fn transaction(
        &mut self,
        write: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>,
    ) -> Result<(), CampaignError> {
        let immediate = rusqlite::TransactionBehavior::Immediate;
        let within = || {
            let transaction = self.ledger.connection.transaction_with_behavior(immediate)?;
            write(&transaction)?;
            transaction.commit()
        };
        within().map_err(|source| {
            let file = self.ledger.file.clone();
            let code = source.sqlite_error().map(|error| error.extended_code);
            match code {
                Some(rusqlite::ffi::SQLITE_READONLY_DBMOVED) => CampaignError::Moved(file),
                _ => CampaignError::Database { file, source },
            }
        })
    }
}

/// Writes what a worker says of itself, once. Returns whether it was said differently before.
fn write_facts(t: &Transaction<'_>, name: &str, facts: &str) -> rusqlite::Result<bool> {
    let query = "SELECT count(*) FROM environment WHERE name = ?1 AND facts <> ?2";
    let others: i64 = t.query_row(query, params![name, facts], |row| row.get(0))?;
    t.execute("INSERT OR IGNORE INTO environment (name, facts) VALUES (?1, ?2)", params![name, facts])?;
    Ok(others > 0)
}

/// Writes all rows of a case.
fn write_case(t: &Transaction<'_>, rows: &CaseRows) -> rusqlite::Result<()> {
    let c = &rows.case;
    let number = c.number as i64;
    t.prepare_cached(
        "INSERT INTO cases (number, name, pattern, labels, edges, status, reason, cause)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?
    .execute(params![
        number,
        c.name,
        signed(c.pattern),
        c.labels,
        c.edges,
        c.status,
        c.reason,
        c.cause
    ])?;
    for e in &rows.executions {
        t.prepare_cached(
            "INSERT INTO executions (\"case\", place, executor, status, reason, cause, grade, node, op, because,
             class_mismatches, local_ulp, bound_ratio, accumulated_ulp, difference, close_ratio, sort, assert_close,
             bound) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19)",
        )?
        .execute(params![
            number,
            e.place as i64,
            e.executor,
            e.status,
            e.reason,
            e.cause,
            e.grade,
            e.node,
            e.op,
            e.because,
            signed(e.class_mismatches),
            e.local_ulp,
            e.bound_ratio,
            e.accumulated_ulp,
            e.difference,
            e.close_ratio,
            e.sort,
            e.assert_close,
            e.bound
        ])?;
    }
    for n in &rows.nodes {
        t.prepare_cached(
            "INSERT INTO nodes (\"case\", place, node, executor, op, dtype, class_mismatches, local_ulp, local_abs,
             bound_ratio, accumulated_ulp, accumulated_abs, condition, difference, mean_difference)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
        )?
        .execute(params![
            number,
            n.place as i64,
            n.node,
            n.executor,
            n.op,
            n.dtype,
            signed(n.class_mismatches),
            n.local_ulp,
            n.local_abs,
            n.bound_ratio,
            n.accumulated_ulp,
            n.accumulated_abs,
            n.condition,
            n.difference,
            n.mean_difference
        ])?;
    }
    if let Some(verdict) = &rows.verdict {
        t.prepare_cached("INSERT INTO verdicts (\"case\", verdict) VALUES (?1, ?2)")?
            .execute(params![number, verdict])?;
    }
    t.prepare_cached("INSERT INTO timings (\"case\", seconds) VALUES (?1, ?2)")?
        .execute(params![number, rows.seconds])?;
    Ok(())
}

/// The lock of the one writer.
fn lock(ledger: &Path) -> Result<File, CampaignError> {
    let mut name = ledger.as_os_str().to_owned();
    name.push("-lock");
    let path = PathBuf::from(name);
    let io = |source| CampaignError::Lock { file: path.clone(), source };
    let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(io)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(CampaignError::Busy(ledger.to_owned())),
        Err(TryLockError::Error(e)) => Err(io(e)),
    }
}

fn signed(n: Option<usize>) -> Option<i64> {
    n.and_then(|n| i64::try_from(n).ok())
}
