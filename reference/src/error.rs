//! Why a truth cannot be given.

/// Why an evaluation ended without a truth.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvaluateError {
    /// The call is not valid.
    #[error(transparent)]
    Invalid(#[from] ulpian_spec::InferError),
    /// It would not fit.
    #[error(
        "this evaluation would hold about {needed} bytes, more than the {limit} that one may; split the case, or make its tensors smaller"
    )]
    TooLarge {
        /// Estimated bytes.
        needed: u128,
        /// The limit in force.
        limit: usize,
    },
    /// The result depends on chance.
    #[error("the result of dropout in training is not determined without a mask; give `mask`, or p = 0")]
    Undetermined,
    /// An integer divided by zero.
    #[error(
        "an integer is divided by zero, which PyTorch rejects; convert `input` or `other` to a floating-point dtype, or remove the zero"
    )]
    DivisionByZero,
}
