//! Comparison of an output with the arrays from which it was written.
//!
//! `compared` is the interface of an output, which `dataset` implements for IDX, and `run` compares. Invariant:
//! everything in the output that was not compared with an input is reported; "equal" covers the whole output.

mod compared;
mod dataset;
mod outcome;
mod run;

pub use compared::{ComparedArrays, Tolerance};
pub use outcome::{Comparison, RoundedField, StepRuns, UncomparedSteps, Unequal};
pub use run::compare;
