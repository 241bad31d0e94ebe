//! The judge: from values to a verdict. It receives values and asks for others; it calls no executor.
//!
//! A [`Hearing`] is opened on a case, hears every party, and may then ask for single calls to be run under another switch
//! ([`Hearing::wants`], [`Hearing::answer`]) until nothing is left to explain. Then it gives its verdict.
//!
//! How it reasons, for each party at each node:
//! 1. Class, shape and dtype come first, distance second; both against the op's exact result on the inputs that this party
//!    itself had.
//! 2. A correctly rounded result needs no explanation. One within the usual error needs none either.
//! 3. Beyond the usual error, replays are compared: a sound computation that returns the very bits acquits; a weak formula or
//!    a reduced arithmetic that returns them convicts, beyond the bound always, within it where a sound computation does
//!    clearly better. Within the bound nothing else convicts.
//! 4. Beyond the bound, switches are thrown one by one. oneDNN off tells whose code it is, and any switch that makes the
//!    error vanish confirms it.
//! 5. What is left within the bound is rounding, or conditioning where the condition number explains an error that is large
//!    against the whole result. What is left beyond it is the framework's or the vendor's for a party that can be run again,
//!    and otherwise a defect, unless an arithmetic of reduced precision would be enough.
//!
//! Against the exact chain a result may be right that the local truth calls wrong: an implementation that never rounds an
//! intermediate. It is told apart and weighs as rounding. And a loss beyond the bound of an intermediate node weighs as
//! rounding where it is small against that node's largest element and no output of the case leaves what correct ops may
//! lose together.

mod bounds;
mod chain;
mod conditioning;
mod dropout;
mod expectation;
mod finding;
mod hearing;
mod interventions;
mod local;
mod matter;
mod metrics;
mod overflow;
mod reason;
mod replays;
mod report;
mod standing;
mod unspecified;

pub use bounds::{Row as BoundRow, TABLE as BOUNDS};
pub use hearing::{Hearing, JudgeError, Request};
