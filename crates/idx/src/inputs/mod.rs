//! Inputs: arrays that are written to an output or compared with it, and the part of the output that each represents.
//!
//! Arrays come from files of any format through the trait [`RowArray`]; `dataset` reads them from IDX datasets.
//! `arrange` forms fields and time steps, `write` writes them, and `update` writes them into existing time steps.

mod arrange;
mod array;
mod dataset;
mod update;
mod write;

pub use array::{InputLayout, Inputs, RowArray, WholeFields};
pub use dataset::{DatasetInput, FieldArray};
pub use update::Update;
pub use write::{FinishedOutput, InputWrite};
