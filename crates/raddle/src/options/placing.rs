//! Alternatives to concatenating the inputs' datasets: copying them as they are, or linking to them.

use super::{LayoutOptions, SchemaOptions, StripeOptions};
use crate::error::Error;
use raddle_merge::options::{Compress, MergeOptions, Shuffle};
use raddle_merge::plan::MergePlan;
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
    pub fn check(
        &self,
        schema: &SchemaOptions,
        (layout, stripes): (&LayoutOptions, &StripeOptions),
        has_keys: bool,
    ) -> Result<(), Error> {
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
        if self.union {
            refuse_first("--union copies datasets as they are", of_union)?;
        }
        match self.link {
            Some(link) if link.is_external() => self.check_external(link, schema, (layout, stripes))?,
            Some(Link::Virtual) => refuse_first("--link virtual links to datasets as they are", of_values(layout))?,
            _ => {}
        }
        if self.link_paths.is_some() && self.link.is_none() {
            return Err(Error::usage("--link-paths is for --link"));
        }
        Ok(())
    }

    /// Refuses options that have no effect on an output of external links.
    fn check_external(
        &self,
        link: Link,
        schema: &SchemaOptions,
        layout: (&LayoutOptions, &StripeOptions),
    ) -> Result<(), Error> {
        let of_join = [
            ("--union", self.union),
            ("--join", schema.join.is_some()),
            ("--scalars", schema.scalars.is_some()),
            ("--attributes", schema.attributes.is_some()),
            ("--add-column", !schema.add_column.is_empty()),
            ("--keep", !schema.keep.is_empty()),
        ];
        let of_objects = [("--include", !schema.include.is_empty()), ("--exclude", !schema.exclude.is_empty())];
        let of_layout = of_values(layout.0).into_iter().chain(of_layout(layout));
        if link == Link::External {
            refuse_first("--link external links to whole files", of_objects)?;
        }
        let (no_values, no_join) = match link {
            Link::External => ("--link external stores no values", "--link external joins nothing"),
            _ => ("--link external-objects stores no values", "--link external-objects joins nothing"),
        };
        refuse_first(no_values, of_layout)?;
        refuse_first(no_join, of_join.into_iter().chain(schema.conventions.given()))
    }

    /// Refuses options of the layout that have no effect on a planned output, because it only holds virtual datasets.
    /// Datasets whose values change, and those that were added, are stored.
    ///
    /// # Errors
    /// If one of the options is given.
    pub fn check_planned(&self, layout: (&LayoutOptions, &StripeOptions), plan: &MergePlan) -> Result<(), Error> {
        match self.link {
            Some(Link::Virtual) if !plan.stores_values() => {
                refuse_first("--link virtual stores no values", of_layout(layout))
            }
            _ => Ok(()),
        }
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

/// Returns the options that only apply to values which are stored, each with whether it is given.
fn of_values(layout: &LayoutOptions) -> [(&'static str, bool); 3] {
    [
        ("--contiguous", layout.contiguous.is_some()),
        ("--layout", !layout.layout_rules.is_empty()),
        ("--layout-file", layout.layout_file.is_some()),
    ]
}

/// Returns the options that apply to all datasets which are stored, computed ones included, each with whether it is
/// given.
fn of_layout((layout, stripes): (&LayoutOptions, &StripeOptions)) -> [(&'static str, bool); 9] {
    [
        ("--for", layout.layout.is_some()),
        ("--chunk", layout.chunk.is_some()),
        ("--compress", layout.compress.is_some()),
        ("--shuffle", layout.shuffle.is_some()),
        ("--fletcher32", layout.fletcher32),
        ("--extendible", layout.extendible.is_some()),
        ("--empty", layout.empty.is_some()),
        ("--profile", layout.profile.is_some()),
        ("--align", stripes.align.is_some()),
    ]
}

/// Refuses the first of `options` that is given, because of `reason`.
fn refuse_first(reason: &str, options: impl IntoIterator<Item = (&'static str, bool)>) -> Result<(), Error> {
    match options.into_iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => Err(Error::usage(&format!("{reason}: leave out {option}"))),
        None => Ok(()),
    }
}
