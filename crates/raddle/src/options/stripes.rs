//! Placement of chunks on a file system that divides files into stripes.

use raddle_core::size::Size;
use raddle_merge::options::MergeOptions;
use raddle_merge::plan::alignment;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Options for outputs on parallel file systems.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
#[cfg_attr(feature = "clap", command(next_help_heading = "Parallel file systems"))]
pub struct StripeOptions {
    /// Align chunks so that no two ranks write to the same SIZE-byte stripe; auto: use the file system's stripe size
    ///
    /// Each stripe is then written by one rank, if the output is large enough. About 3 % of the output may stay unused.
    /// The bytes are the same for any number of ranks and threads, but differ from those without --align. An
    /// interrupted run cannot be resumed: it starts over.
    #[cfg_attr(feature = "clap", arg(long, value_name = "SIZE"))]
    #[serde(with = "super::text::optional")]
    pub align: Option<Align>,
}

/// Requested alignment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Align(alignment::Align);

impl FromStr for Align {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self(alignment::Align::Auto)),
            _ => text
                .parse::<Size>()
                .map(|size| Self(alignment::Align::Stripes(size.0)))
                .map_err(|error| format!("{error}; or auto, to ask the file system")),
        }
    }
}

impl fmt::Display for Align {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            alignment::Align::Auto => f.write_str("auto"),
            alignment::Align::Stripes(len_bytes) => write!(f, "{len_bytes}"),
        }
    }
}

impl StripeOptions {
    /// Applies these options to the options of a merge.
    pub fn apply(&self, options: &mut MergeOptions) {
        options.align = self.align.map(|align| align.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stripes_are_a_size_or_asked_for() {
        assert_eq!("auto".parse(), Ok(Align(alignment::Align::Auto)));
        assert_eq!("4MiB".parse(), Ok(Align(alignment::Align::Stripes(4 << 20))));
        assert!("stripe".parse::<Align>().unwrap_err().contains("auto"));
    }
}
