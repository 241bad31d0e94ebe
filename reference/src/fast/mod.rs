//! Single ops over exact inputs in float64 with a proved radius.
