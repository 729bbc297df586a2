//! Sinks that write no event format: nothing, a text, a comparison.

mod check;
mod null;
mod text;

pub use check::{CheckSink, Checked};
pub use null::NullSink;
pub use text::{TextOptions, TextSink};
