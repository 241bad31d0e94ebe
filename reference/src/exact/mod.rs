//! Any element of any chain in arbitrary precision: the definition of every op.
