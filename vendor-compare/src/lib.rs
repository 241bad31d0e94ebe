//! PyTorch and ONNX Runtime heard as subprocesses, and the judge over what they said.
//!
//! A [`Pool`] runs cases: it finds a Python ([`environment`]), starts workers when they are needed, and turns whatever
//! happens to them into an [`Outcome`](ulpian_spec::Outcome). The workers are the Python package in `py/`, which this crate
//! carries with it; both sides speak the [`protocol`].
//!
//! ```no_run
//! use ulpian_spec::case::Limits;
//! use ulpian_spec::{Case, Outcome};
//! use ulpian_vendor_compare::environment::PythonSearch;
//! use ulpian_vendor_compare::{Pool, PoolConfig};
//!
//! let search = PythonSearch { chosen: Some("/usr/bin/python3".into()), ..PythonSearch::default() };
//! let mut pool = Pool::new(PoolConfig::new(search, std::env::temp_dir()));
//! let case = Case::read("case.json".as_ref(), Limits::default())?;
//! match pool.run(&"torch:cpu?mkldnn=off".parse()?, &case) {
//!     Outcome::Ok(run) => println!("{} results", run.results.len()),
//!     Outcome::Unavailable { reason, remedy } => println!("{reason}; {remedy}"),
//!     Outcome::Failed { reason, .. } => println!("{reason}"),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod environment;
mod error;
mod group;
pub mod judge;
mod keys;
mod last_words;
pub mod managed;
pub mod ort;
mod package;
mod pool;
mod process;
pub mod protocol;
pub mod recorded;
pub mod torch;
pub mod tracing;
mod transfer;

pub use error::Error;
pub use group::{Ending, end_all};
pub use keys::Key;
pub use pool::{OnProgress, Pool, PoolConfig, Pooled};
