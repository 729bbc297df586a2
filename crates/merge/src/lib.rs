//! Merging of many HDF5 files into one: scan, join schemas, plan, execute, commit, verify.
//!
//! [`plan()`] reads the metadata of the inputs and describes the output; [`merge()`] writes it;
//! [`verify`](verify::verify) checks that it holds exactly the values of the inputs. Rechunking is a merge of one file.
#![forbid(unsafe_code)]

pub mod append;
pub mod conventions;
pub mod division;
pub mod error;
pub mod inputs;
pub mod keys;
mod named_values;
mod number;
pub mod options;
pub mod path_text;
pub mod plan;
pub mod rules;
pub(crate) mod scan;
pub mod schema;
pub mod simulate;
pub mod subset;
pub mod verify;
pub mod write;

pub use conventions::ConventionOptions;
pub use error::{BadInput, MergeError, MissingKey, Result};
pub use inputs::selection::Selection;
pub use inputs::{DuplicatePolicy, InputOrder, InputSpec, expand};
pub use options::{Compress, Contiguous, Empty, Extendible, MergeOptions, Shuffle, Watch};
pub use options::{Link, LinkPaths};
pub use plan::alignment::{Align, Alignment};
pub use plan::layout::LayoutPolicy;
pub use plan::prediction::{Prediction, Sample, predict};
pub use plan::{MergePlan, plan, plan_collective};
pub use schema::join::{AddedColumn, AttributePolicy, Difference, DifferenceKind, Join, JoinOptions, ScalarPolicy};
pub use verify::{Mismatch, VerifyReport, verify};
pub use write::publish::{check_output, clear_leftovers, published_path};
pub use write::reading::{PredictedReading, ReadBy, Reading, ReadingReport, Strategy};
pub use write::tile_observer::{TileObserver, TileObserverError};
pub use write::{IoBackend, MergeContext, MergeReport, merge, merge_collective};
