//! Elementary functions in float64 with proved relative errors, written so that loops over them autovectorise.

pub(crate) mod exp;
pub(crate) mod normal_tail;
