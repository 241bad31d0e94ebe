//! PyTorch and ONNX Runtime heard as subprocesses, and the judge over what they said.

pub mod judge;
