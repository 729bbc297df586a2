//! Sinks that write no event format: nothing, lengths, columns in memory, a text, a comparison.

mod check;
mod collect;
mod null;
mod sizes;
mod text;

pub use check::{CheckSink, Checked};
pub use collect::{CollectPreparer, CollectSink};
pub use null::NullSink;
pub use sizes::SizesSink;
pub use text::{TextOptions, TextSink};
