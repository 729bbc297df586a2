//! Many HDF5 files into one: scan, schema join, plan, execute, commit, verify.
//!
//! [`plan`](plan::plan) reads the inputs' metadata and says what the output will be; [`merge`](execute::merge) makes it;
//! [`verify`](verify::verify) proves that it is the inputs. A rechunk is the merge of one file.
#![forbid(unsafe_code)]

mod ahead;
pub mod alignment;
pub mod append;
mod collective;
mod commit;
pub mod companion;
pub mod conventions;
mod cost;
pub mod digests;
pub mod error;
pub mod execute;
pub mod facts;
mod fill_references;
pub mod inputs;
pub mod join;
pub mod keys;
pub mod layout;
pub mod links;
mod memory;
mod natural;
mod number;
pub mod options;
pub mod order;
pub mod parts;
mod path_text;
mod paths;
mod picking;
pub mod plan;
pub mod prediction;
pub mod provenance;
mod publish;
pub mod ranks;
mod readers;
mod resume;
pub mod rules;
mod scales;
mod scan;
mod scan_exchange;
pub mod schema;
pub mod selection;
pub mod simulate;
mod specs;
mod stack;
mod stored;
mod tiles;
mod values;
pub mod verify;

pub use alignment::{Align, Alignment};
pub use companion::{Companion, CompanionError};
pub use conventions::ConventionOptions;
pub use error::{BadInput, MergeError, MissingKey, Result};
pub use execute::{Io, MergeReport, Through, merge, merge_among, merge_through, merge_with};
pub use inputs::{DuplicatePolicy, InputOrder, InputSpec, expand};
pub use join::{AttributePolicy, Difference, DifferenceKind, Join, JoinOptions, ScalarPolicy};
pub use layout::LayoutPolicy;
pub use links::{Link, LinkPaths};
pub use options::{Compress, MergeOptions, Shuffle, Watch};
pub use plan::{MergePlan, plan, plan_among};
pub use prediction::{Prediction, predict};
pub use publish::{check_output, published_path};
pub use selection::Selection;
pub use verify::{Mismatch, VerifyReport, verify};
