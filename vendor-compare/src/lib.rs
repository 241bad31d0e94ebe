//! PyTorch and ONNX Runtime heard as subprocesses, and the judge over what they said.

pub mod environment;
mod error;
pub mod judge;
mod keys;
pub mod managed;
pub mod ort;
mod pool;
mod process;
pub mod protocol;
pub mod recorded;
pub mod torch;
mod transfer;

pub use error::Error;
pub use keys::Key;
pub use pool::{OnProgress, Pool, PoolConfig, Pooled};
