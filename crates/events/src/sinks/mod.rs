//! Sinks that write no event format: nothing, lengths, a text, a comparison.

mod check;
mod null;
mod sizes;
mod text;

pub use check::{CheckSink, Checked};
pub use null::NullSink;
pub use sizes::SizesSink;
pub use text::{TextOptions, TextSink};
