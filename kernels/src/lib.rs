//! The GPU, heard directly: Ulpian's own kernels (`cu/`), and NVIDIA's libraries without a framework between.
//!
//! Nothing of CUDA is needed to build this crate, or to run on a machine without it. The libraries are looked for before the
//! first call ([`Library::check`]). A native kernel is described by a [`Launch`], which holds what it is given and knows nothing
//! of devices; [`Native`] carries launches out on a [`Device`].
//!
//! An error that the driver calls sticky stays until the process ends; who wants to live on runs this crate in a process of its
//! own.

#[allow(unsafe_code)]
mod compiler;
#[allow(unsafe_code)]
mod device;
mod error;
mod launch;
#[allow(unsafe_code)]
mod library;
#[allow(unsafe_code)]
mod native;
mod ops;
pub mod search;
mod status;
mod vendor;

pub use compiler::{Compiler, OPTIONS};
pub use device::{Buffer, Device, Properties};
pub use error::Error;
pub use launch::{Launch, OPERANDS};
pub use library::Library;
pub use native::Native;
pub use ops::{HEADERS, source};
pub use vendor::{Answer, Choice};

/// The source of a native kernel, `cu/<op>.cu`, with the name of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Source {
    /// The name of the file.
    pub file: &'static str,
    /// Its text.
    pub text: &'static str,
}
