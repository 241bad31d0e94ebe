//! What traced models have in common: files of graphs, features and patterns, and the mining of frequent subgraphs.
//!
//! The types on disk are those of [`ulpian_spec::trace`].

pub mod error;
pub mod files;

pub use error::Error;
pub use files::{Features, Limits, ModelGraph};
