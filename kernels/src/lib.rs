//! The GPU, heard directly: Ulpian's own kernels (`cu/`), and NVIDIA's libraries without a framework between.
//!
//! Nothing of CUDA is needed to build this crate, or to run on a machine without it. The libraries are looked for before the
//! first call. A native kernel is described by a [`Launch`], which holds what it is given and knows nothing of devices.
//!
//! An error that the driver calls sticky stays until the process ends; who wants to live on runs this crate in a process of its
//! own.

mod error;
mod launch;
mod ops;

pub use error::Error;
pub use launch::{Launch, OPERANDS};
pub use ops::{HEADERS, source};

/// The source of a native kernel, `cu/<op>.cu`, with the name of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// The name of the file.
    pub file: &'static str,
    /// Its text.
    pub text: &'static str,
}
