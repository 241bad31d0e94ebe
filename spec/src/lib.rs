//! The nouns of Ulpian: ops and their arguments, dtypes, tensors, cases, executors, enclosures,
//! verdicts, and what traced models leave behind. There is no arithmetic on tensor data here, and no I/O beyond (de)serialising.
//!
//! The names are PyTorch's wherever PyTorch has one.

pub mod case;
pub mod dtype;
pub mod enclosure;
pub mod error;
pub mod executor;
pub mod op;
pub mod ops;
pub mod promotion;
pub mod tensor;
pub mod tensors_file;
pub mod trace;
pub mod verdict;

pub use case::{Case, CaseBuilder, Node, Observation, ValueRef};
pub use dtype::DType;
pub use enclosure::Enclosure;
pub use error::{CaseError, InferError};
pub use executor::{Executor, ExecutorId, Outcome, Run};
pub use op::{Op, OpKind};
pub use tensor::{HostTensor, Storage, TensorType};
