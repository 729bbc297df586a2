//! Sinks that do not write an event format: for discarding, lengths, columns in memory, strings, and comparisons.

mod check;
mod collect;
mod json;
mod null;
mod sizes;
mod text;
mod values;

pub use check::{CheckReport, CheckSink};
pub use collect::{CollectPreparer, CollectSink};
pub use null::NullSink;
pub use sizes::SizesSink;
pub use text::{TextOptions, TextSink};
pub use values::{ValuesFormat, ValuesPreparer, ValuesSink};
