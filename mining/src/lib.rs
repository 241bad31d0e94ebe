//! What traced models have in common: files of graphs, features and patterns, the mining of frequent subgraphs, and test inputs
//! that look like recorded ones.
//!
//! The types on disk are those of [`ulpian_spec::trace`].

pub mod bindings;
pub mod error;
pub mod files;
pub mod generate;
pub mod graph;
pub mod gspan;
pub mod gspan_text;
pub mod inputs;
mod isomorphism;
pub mod records;

pub use error::Error;
pub use files::{Features, Limits, ModelGraph};
pub use generate::{Generator, Unfit, Values};
pub use graph::{Graph, GraphSet};
pub use records::Records;
