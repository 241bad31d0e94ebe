//! NVIDIA's libraries called directly.

use ulpian_spec::HostTensor;

/// What of a library is asked for: the executor's keys `compute` and `algo`.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Choice {
    /// The type in which is computed, by the library's name for it.
    pub compute: Option<String>,
    /// The algorithm, as the library's path names it.
    pub algo: Option<String>,
}

/// Results of a call, and how they came about.
#[derive(Debug, Clone)]
pub struct Answer {
    /// One a result of the op, in its order.
    pub results: Vec<HostTensor>,
    /// The kernels, or the library's algorithm with its configuration.
    pub configuration: String,
}
