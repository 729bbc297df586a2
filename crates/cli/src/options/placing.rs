//! Alternatives to concatenating the inputs' datasets: copying them as they are, or linking to them.

use raddle_merge::options::{Compress, MergeOptions, Shuffle};
use raddle_merge::plan::layout::LayoutPolicy;
use raddle_merge::plan::links;
use raddle_merge::schema::join::Join;

/// Options for outputs that copy the inputs' datasets as they are, or link to them.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Instead of concatenating")]
pub struct PlacementArgs {
    /// Put inputs whose datasets have distinct names into one file; datasets are copied, not concatenated
    ///
    /// Groups with the same path are merged. Chunks are copied as stored, without decoding, whatever their filters. A
    /// dataset present in several inputs is refused, unless --keep names it and it is equal in all of them.
    #[arg(long, conflicts_with_all = ["join", "layout", "chunk", "compress", "shuffle", "profile", "contiguous"])]
    pub union: bool,

    /// Write links to the inputs instead of their values; the inputs must stay where they are
    #[arg(long, value_name = "KIND", value_enum, conflicts_with = "contiguous")]
    pub link: Option<Link>,

    /// How links refer to the inputs
    #[arg(long, value_name = "FROM", value_enum, default_value_t = LinkPaths::Relative, requires = "link")]
    pub link_paths: LinkPaths,
}

/// Kind of links to the inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Link {
    /// Virtual datasets (HDF5 1.10): the output reads like a merged file; scalars, references and keys are copied
    Virtual,
    /// One external link per input, named after the file, to its root group; nothing is merged
    External,
    /// One external link per object in the root groups of the inputs, with the same name; duplicate names are refused
    ExternalObjects,
}

/// Form of file names in links.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum LinkPaths {
    /// Relative to the output's folder: output and inputs can be moved together
    #[default]
    Relative,
    /// Absolute: the output can be moved alone
    Absolute,
}

impl PlacementArgs {
    /// Applies these options to those of a merge, after all others.
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
