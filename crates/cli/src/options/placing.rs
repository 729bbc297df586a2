//! How the inputs' datasets get into the output other than row behind row: as they are, or not at all.

use raddle_merge::join::Join;
use raddle_merge::layout::LayoutPolicy;
use raddle_merge::links;
use raddle_merge::options::{Compress, MergeOptions, Shuffle};

/// Options for outputs that hold the inputs' datasets as they are, or lead to them.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Instead of concatenating")]
pub struct PlacingArgs {
    /// Put inputs whose datasets have distinct names into one file: datasets are copied, none is concatenated
    ///
    /// Groups of the same path become one. Chunks are moved as they are stored, without decoding them, whatever their
    /// filters. A dataset that several inputs have is refused, unless --keep names it and it is equal in all of them.
    #[arg(long, conflicts_with_all = ["join", "layout", "chunk", "compress", "shuffle", "profile", "contiguous"])]
    pub union: bool,

    /// Write links to the inputs instead of their values; the inputs must stay where they are
    #[arg(long, value_name = "KIND", value_enum, conflicts_with = "contiguous")]
    pub link: Option<Link>,

    /// How links name the inputs
    #[arg(long, value_name = "FROM", value_enum, default_value_t = LinkPaths::Relative, requires = "link")]
    pub link_paths: LinkPaths,
}

/// Links to the inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Link {
    /// Virtual datasets (HDF5 1.10): the output reads as if it were merged; scalars, references and keys are copied
    Virtual,
    /// One external link per input, named as the file, to its root group; nothing is joined
    External,
    /// One external link per object in the root groups of the inputs, under its own name; two of one name are refused
    ExternalObjects,
}

/// How links name files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum LinkPaths {
    /// From the output's folder: output and inputs can be moved together
    #[default]
    Relative,
    /// From the root: the output can be moved alone
    Absolute,
}

impl PlacingArgs {
    /// Writes these options into those of a merge, after all others.
    pub fn apply(&self, options: &mut MergeOptions) {
        if self.union {
            options.join.join = Join::Union;
            options.layout = LayoutPolicy::Keep;
            options.compress = Compress::Keep;
            options.shuffle = Shuffle::Keep;
            options.decode_moved = false;
        }
        options.link = match self.link {
            None => links::Link::No,
            Some(Link::Virtual) => links::Link::Virtual,
            Some(Link::External) => links::Link::External,
            Some(Link::ExternalObjects) => links::Link::ExternalObjects,
        };
        options.link_paths = match self.link_paths {
            LinkPaths::Relative => links::LinkPaths::Relative,
            LinkPaths::Absolute => links::LinkPaths::Absolute,
        };
    }
}
