//! Alternatives to concatenating the inputs' datasets: copying them as they are, or linking to them.

use super::{LayoutOptions, SchemaOptions};
use crate::error::Error;
use raddle_merge::options::{Compress, MergeOptions, Shuffle};
use raddle_merge::plan::layout::LayoutPolicy;
use raddle_merge::schema::join::Join;
use raddle_merge::{Link, LinkPaths};
use serde::{Deserialize, Serialize};

/// Options for outputs that copy the inputs' datasets as they are, or link to them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
#[cfg_attr(feature = "clap", command(next_help_heading = "Instead of concatenating"))]
pub struct PlacementOptions {
    /// Put inputs whose datasets have distinct names into one file; datasets are copied, not concatenated
    ///
    /// Groups with the same path are merged. Chunks are copied as stored, without decoding, whatever their filters. A
    /// dataset present in several inputs is refused, unless --keep names it and it is equal in all of them.
    #[cfg_attr(feature = "clap", arg(long))]
    pub union: bool,

    /// Write links to the inputs instead of their values; the inputs must stay where they are
    #[cfg_attr(feature = "clap", arg(long, value_name = "KIND", value_enum))]
    pub link: Option<Link>,

    /// How links refer to the inputs [default: relative]
    #[cfg_attr(feature = "clap", arg(long, value_name = "FROM", value_enum))]
    pub link_paths: Option<LinkPaths>,
}

impl PlacementOptions {
    /// Refuses options that contradict each other.
    ///
    /// # Errors
    /// If options contradict each other.
    pub fn check(&self, schema: &SchemaOptions, layout: &LayoutOptions, has_keys: bool) -> Result<(), Error> {
        let of_union = [
            ("--join", schema.join.is_some()),
            ("--for", layout.layout.is_some()),
            ("--chunk", layout.chunk.is_some()),
            ("--layout", !layout.layout_rules.is_empty()),
            ("--layout-file", layout.layout_file.is_some()),
            ("--fletcher32", layout.fletcher32),
            ("--compress", layout.compress.is_some()),
            ("--shuffle", layout.shuffle.is_some()),
            ("--profile", layout.profile.is_some()),
            ("--contiguous", layout.contiguous.is_some()),
            ("--keys", has_keys),
        ];
        if let Some((option, _)) = of_union.into_iter().find(|(_, is_set)| self.union && *is_set) {
            return Err(Error::usage(&format!("--union copies datasets as they are: leave out {option}")));
        }
        if self.link.is_some() && layout.contiguous.is_some() {
            return Err(Error::usage("--link stores no values: leave out --contiguous"));
        }
        if self.link.is_some() && (!layout.layout_rules.is_empty() || layout.layout_file.is_some()) {
            return Err(Error::usage("--link stores no values: leave out --layout and --layout-file"));
        }
        if self.link_paths.is_some() && self.link.is_none() {
            return Err(Error::usage("--link-paths is for --link"));
        }
        Ok(())
    }

    /// Applies these options to the options of a merge, after all others.
    pub fn apply(&self, options: &mut MergeOptions) {
        if self.union {
            options.join.join = Join::Union;
            options.layout = LayoutPolicy::Keep;
            options.compress = Compress::Keep;
            options.shuffle = Shuffle::Keep;
            options.decode_moved = false;
        }
        options.link = self.link.unwrap_or_default();
        options.link_paths = self.link_paths.unwrap_or_default();
    }
}
