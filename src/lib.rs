//! Ulpian settles numerical disputes about neural-network computations.
