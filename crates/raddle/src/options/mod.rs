//! Options, in groups that several requests share.
//!
//! They are plain data: a program sets fields, the command parses them with clap (feature `clap`), and the Python
//! package reads them from keywords by serde. Their names and help are the same in all three, because they are written
//! once. An option has the same meaning in every request. This module only applies the groups to the options of the
//! crates that do the work.

pub mod compression;
pub mod conventions;
pub mod execution;
pub mod index;
pub mod inputs;
pub mod keys;
pub mod layout;
pub mod output;
pub mod placing;
pub mod preview;
pub mod profile;
pub mod reader;
pub mod schema;
pub mod stripes;
pub mod text;

pub use conventions::ConventionChoices;
pub use execution::ExecutionOptions;
pub use index::MergeIndexOptions;
pub use inputs::{FileInputs, Inputs, ListingOptions, SortOptions};
pub use keys::{KeyDataset, KeyOptions};
pub use layout::{Chunk, Compat, LayoutOptions};
pub use output::{OutputOptions, WritingOptions};
pub use placing::PlacementOptions;
pub use preview::MergePreviewOptions;
pub use profile::ProfileChoice;
pub use raddle_merge::options::Compress;
pub use raddle_merge::plan::layout_rules::LayoutRule;
pub use reader::ReaderOptions;
pub use schema::SchemaOptions;
pub use stripes::{Align, StripeOptions};
