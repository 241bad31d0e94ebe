//! Ulpian settles numerical disputes about neural-network computations.
//!
//! A [case](spec::Case) is one computation and, if there is a dispute, what was seen. Ulpian computes its
//! [truth](pipeline::truth), proved and correctly rounded, hears every [party](Executors), and gives a
//! [verdict](spec::verdict::CaseVerdict): who differs, by how much, and whose doing it is.
//!
//! ```
//! use ulpian::spec::{Case, case::Limits};
//!
//! // Who is right about 169 / 13? One side divided, the other multiplied by a rounded 1/13.
//! let case = Case::from_json(
//!     r#"{"format": "ulpian-case/1", "name": "division", "source": "an example",
//!         "nodes": [{"id": "y", "op": "div", "args": {
//!             "input": {"dtype": "float32", "shape": [1], "data": [169]}, "other": 13}}],
//!         "outputs": ["y"],
//!         "observed": [
//!             {"executor": "divides", "node": "y", "tensor": {"dtype": "float32", "shape": [1], "data": [13]}},
//!             {"executor": "multiplies", "node": "y",
//!              "tensor": {"dtype": "float32", "shape": [1], "data": [13.00000095]}}]}"#,
//!     "division.json",
//!     Limits::default(),
//! )?;
//! let truth = ulpian::pipeline::truth(&case)?;
//! let y = case.results().next().expect("the case has a node");
//! assert_eq!(truth.real[&y].value.get_f64(0), 13.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The parts are crates of their own, re-exported here: [`spec`] has the nouns, [`reference`](mod@reference) the certified
//! truth and the replays, [`vendor_compare`] PyTorch, ONNX Runtime and the judge, [`mining`] the patterns of real models and inputs
//! for them. This crate joins them, and is the command line.

pub mod campaign;
pub mod executors;
pub mod generation;
pub mod growth;
pub mod import;
pub mod order;
pub mod pack;
pub mod pipeline;
pub mod records;

pub use executors::Executors;
pub use ulpian_mining as mining;
pub use ulpian_reference as reference;
pub use ulpian_spec as spec;
pub use ulpian_vendor_compare as vendor_compare;
