//! The judge over parties made up here: each rule, and what no rule may let through. No Python is needed.

mod explanations;
mod ordinary;
mod parties;
mod soundness;
mod switches;
