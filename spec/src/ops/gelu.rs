//! `torch.nn.functional.gelu(input, approximate='none')`.

use super::{GeluApproximate, op_args};

op_args! {
    /// x Phi(x), or its tanh approximation.
    Gelu {
        /// Any shape, floating-point.
        Required input,
        ;
        /// Which function.
        approximate: GeluApproximate,
    }
}
