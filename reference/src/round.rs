//! Rounding of intervals to a dtype.
