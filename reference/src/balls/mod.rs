//! Chains in double-double with a float64 radius.
