//! Layout of the output: chunks, compression, format version.

use super::profile::ProfileChoice;
use crate::error::Error;
use raddle_codec::Effort;
use raddle_core::size::Size;
use raddle_hdf5::write::Compat as Format;
use raddle_merge::options::{Compress, Contiguous, Empty, Extendible, MergeOptions, Shuffle};
use raddle_merge::plan::alignment::Align;
use raddle_merge::plan::layout::LayoutPolicy;
use raddle_merge::plan::layout_rules::LayoutRule;
use raddle_tune::knob::{Knob, SettingValue, Settings};
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

pub use raddle_merge::plan::chunk::Chunk;

/// Options that decide chunk shapes, compression and format.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::Args))]
#[serde(default)]
#[cfg_attr(feature = "clap", command(next_help_heading = "Layout"))]
pub struct LayoutOptions {
    /// How the file will be read; determines the chunk shapes [default: events]
    #[cfg_attr(feature = "clap", arg(long = "for", value_name = "USE", value_enum))]
    pub layout: Option<LayoutPolicy>,

    /// Chunk shape, overriding that of --for: 65536rows, a shape such as 128x1024, or time=365,lat=90,lon=180
    ///
    /// A number of rows (65536rows) applies to every dataset and leaves the other dimensions whole. A shape (128x1024)
    /// applies to datasets with that number of dimensions; the others follow --for. Sizes by name (time=1) apply to
    /// every dataset that has one of these dimensions: a netCDF dimension, HDF5 dimension scale or label. Dimensions
    /// that are not named stay whole in chunks of up to 16 MiB, or as in the inputs with --for keep. Coordinates and
    /// their bounds follow --for.
    #[cfg_attr(feature = "clap", arg(long, value_name = "CHUNK"))]
    #[serde(with = "super::text::optional")]
    pub chunk: Option<Chunk>,

    /// Layout of the datasets whose path matches: 'PATTERN: chunk=64x128, filter=zstd:3'; may be given several times
    ///
    /// Patterns are those of --include. Settings are chunk (as for --chunk), filter (as for --compress), shuffle and
    /// fletcher32 (both also =no), contiguous and compact (stored in the object header). They take precedence over the
    /// options for all datasets. If several rules match a dataset, each setting is that of the last one. A rule that
    /// matches nothing or cannot be applied is refused. Values of h5repack's -l and -f are also accepted:
    /// 'dset1,dset2:CHUNK=20x10', 'dset1:GZIP=6', ':CONTI'.
    #[cfg_attr(feature = "clap", arg(long = "layout", value_name = "RULE"))]
    #[serde(with = "super::text::list")]
    pub layout_rules: Vec<LayoutRule>,

    /// TOML file with layout rules: a table `[layout]` of "PATTERN" = "SETTINGS"
    ///
    /// The rules are applied in the order of the file, before those of --layout.
    #[cfg_attr(feature = "clap", arg(long, value_name = "FILE"))]
    pub layout_file: Option<PathBuf>,

    /// Store datasets contiguously, without chunks and compression: all, or those smaller than SIZE
    ///
    /// Such datasets have a fixed size: raddle append cannot add rows to them. Programs can map them into memory. Sizes
    /// are those of the uncompressed values. With a SIZE, all other layout options apply to the larger datasets.
    #[cfg_attr(feature = "clap", arg(long, value_name = "SIZE", num_args = 0..=1, require_equals = true))]
    #[serde(with = "super::text::flag")]
    pub contiguous: Option<Option<Size>>,

    /// How to store datasets without elements [default: chunked if an input does so, or if the dataset is extendible]
    #[cfg_attr(feature = "clap", arg(long, value_name = "STORAGE", value_enum))]
    pub empty: Option<Empty>,

    /// Make datasets extendible along their first axis, so that raddle append can add rows later
    #[cfg_attr(feature = "clap", arg(
        long,
        value_enum,
        value_name = "WHICH",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "all",
    ))]
    #[serde(deserialize_with = "all_or_word")]
    pub extendible: Option<Extendible>,

    /// Compression: fast, balanced, small, gzip:0-9, zstd:1-22, lz4, keep (that of the inputs) or none [default:
    /// balanced]
    ///
    /// fast, balanced, small and gzip:N all write deflate streams that every HDF5 can read; they differ in effort. zstd
    /// (level 3 by default) and lz4 are much faster to read, but readers need these filters: hdf5plugin provides them
    /// to h5py, and to other programs through HDF5_PLUGIN_PATH. keep uses the filters of the inputs: stored chunks are
    /// copied if the rows of every input except the last fill whole chunks; other chunks are compressed again, to about
    /// the size that the level of the inputs gives. Levels 7 to 9 take several times as long as balanced.
    #[cfg_attr(feature = "clap", arg(short = 'c', long, value_name = "HOW"))]
    #[serde(with = "super::text::optional")]
    pub compress: Option<Compress>,

    /// Shuffle the bytes of elements before compression [default: keep]
    ///
    /// All first bytes are stored first, then all second bytes, and so on. Integers of a narrow range and smooth values
    /// become smaller, repeating values become larger: try both with raddle rechunk on one input.
    #[cfg_attr(feature = "clap", arg(long, value_name = "WHETHER", value_enum))]
    pub shuffle: Option<Shuffle>,

    /// Store a checksum with every chunk (the filter fletcher32) [default: where the inputs do]
    #[cfg_attr(feature = "clap", arg(long))]
    pub fletcher32: bool,

    /// Oldest HDF5 library that must be able to read the output [default: 1.8]
    #[cfg_attr(feature = "clap", arg(long, value_name = "VERSION", value_enum))]
    pub compat: Option<Compat>,

    /// Use a profile of raddle tune for options not given on the command line; auto: the newest for this machine and
    /// file system
    ///
    /// Sets the chunk shape (for datasets with that number of dimensions), gzip level, format version and alignment, if
    /// the profile has them.
    #[cfg_attr(feature = "clap", arg(long, value_name = "PROFILE"))]
    #[serde(with = "super::text::optional")]
    pub profile: Option<ProfileChoice>,
}

/// Reads which datasets are extendible; `true` means all.
fn all_or_word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Extendible>, D::Error> {
    super::text::true_or_word(deserializer, Extendible::All)
}

impl LayoutOptions {
    /// Applies these options to the options of a merge, in which output and stripes must already be set.
    ///
    /// # Errors
    /// If the profile does not exist, or options conflict.
    pub fn apply(&self, options: &mut MergeOptions) -> Result<(), Error> {
        self.check_unchunked(options)?;
        if let Some(profile) = &self.profile {
            let folder = options.output.parent().filter(|folder| !folder.as_os_str().is_empty());
            let profile = profile.read(folder.unwrap_or(Path::new(".")))?;
            apply_profile(&profile.values(true), options);
        }
        options.layout = self.layout.unwrap_or_default();
        self.check_cmip7()?;
        if options.layout == LayoutPolicy::Cmip7 {
            // A profile only sets options that are not given.
            options.chunk = None;
        }
        if let Some(chunk) = &self.chunk {
            options.chunk = Some(chunk.clone());
            options.is_chunk_of_profile = false;
        }
        options.layout_rules = self.rules()?;
        check_rules(&options.layout_rules, self.extendible == Some(Extendible::All), options)?;
        if options.layout_rules.iter().any(|rule| rule.settings().unchunked.is_some()) {
            // Stripes of a profile only apply to chunks.
            options.align = None;
        }
        options.fletcher32 = self.fletcher32;
        if let Some(below) = self.contiguous {
            options.contiguous = below.map_or(Contiguous::All, |Size(limit)| Contiguous::Below(limit));
            // Stripes of a profile only apply to chunks.
            options.align = None;
        }
        options.empty = self.empty.unwrap_or_default();
        options.extendible = self.extendible.unwrap_or_default();
        if let Some(compress) = self.compress {
            options.compress = compress;
        }
        options.shuffle = self.shuffle.unwrap_or(match options.layout {
            LayoutPolicy::Cmip7 => Shuffle::Yes,
            _ => Shuffle::default(),
        });
        if let Some(compat) = self.compat {
            options.compat = match compat {
                Compat::V18 => Format::V18,
                Compat::V110 => Format::V110,
                Compat::Latest => Format::Latest,
            };
        }
        Ok(())
    }
}

impl LayoutOptions {
    /// Returns the files from which options are read.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let profile = match &self.profile {
            Some(ProfileChoice::File(path)) => Some(path.clone()),
            Some(ProfileChoice::Newest) | None => None,
        };
        self.layout_file.iter().cloned().chain(profile).collect()
    }

    /// Returns the layout rules of the file, then those of the command line.
    fn rules(&self) -> Result<Vec<LayoutRule>, Error> {
        let mut rules = Vec::new();
        if let Some(path) = &self.layout_file {
            let failed = |error: &dyn fmt::Display| Error::usage(&format!("{}: {error}", path.display()));
            let text = std::fs::read_to_string(path).map_err(|error| failed(&error))?;
            rules = LayoutRule::parse_file(&text).map_err(|error| failed(&error))?;
        }
        rules.extend(self.layout_rules.iter().cloned());
        Ok(rules)
    }

    /// Refuses chunk shapes together with the rules of CMIP7, which decide them.
    fn check_cmip7(&self) -> Result<(), Error> {
        match (self.layout, &self.chunk) {
            (Some(LayoutPolicy::Cmip7), Some(_)) => {
                Err(Error::usage("--for cmip7 decides the chunk shapes: leave out --chunk"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses options that are impossible for datasets without chunks. In `options`, output and stripes must be set.
    fn check_unchunked(&self, options: &MergeOptions) -> Result<(), Error> {
        let is_extendible = self.extendible == Some(Extendible::All);
        if is_extendible && matches!(self.empty, Some(Empty::Contiguous | Empty::Compact | Empty::Null)) {
            return Err(Error::usage(
                "--empty contiguous, compact and null make datasets that cannot grow: leave out --extendible",
            ));
        }
        let Some(below) = self.contiguous else { return Ok(()) };
        let refused = [
            (is_extendible, "--contiguous makes datasets of a fixed size: leave out --extendible"),
            (
                options.align.is_some(),
                "--contiguous stores values without gaps, which --align needs: leave out one of them",
            ),
            (!options.ordered, "--contiguous stores values in their order: leave out --unordered"),
        ];
        let refused_of_all = [
            (
                self.chunk.is_some(),
                "--contiguous stores all datasets without chunks: leave out --chunk, or use --contiguous=SIZE",
            ),
            (
                self.compress.is_some_and(|compress| compress != Compress::None),
                "--contiguous stores all datasets uncompressed: leave out --compress, or use --contiguous=SIZE",
            ),
            (
                self.shuffle == Some(Shuffle::Yes),
                "--contiguous stores all datasets unshuffled: leave out --shuffle, or use --contiguous=SIZE",
            ),
            (
                self.fletcher32,
                "--contiguous stores all datasets without chunks, which have the checksums: leave out --fletcher32, or use \
                 --contiguous=SIZE",
            ),
        ];
        let of_all = refused_of_all.iter().filter(|_| below.is_none());
        match refused.iter().chain(of_all).find(|(is_requested, _)| *is_requested) {
            Some((_, why)) => Err(Error::usage(why)),
            None => Ok(()),
        }
    }
}

/// Refuses rules for contiguous and compact datasets that other options contradict.
fn check_rules(rules: &[LayoutRule], is_extendible: bool, options: &MergeOptions) -> Result<(), Error> {
    let Some((rule, unchunked)) = rules.iter().find_map(|rule| Some((rule, rule.settings().unchunked?))) else {
        return Ok(());
    };
    let refused = [
        (is_extendible, "--extendible", "have a fixed size"),
        (options.align.is_some(), "--align", "have no chunks to align"),
        (!options.ordered, "--unordered", "store values in their order"),
    ];
    match refused.iter().find(|(is_requested, ..)| *is_requested) {
        Some((_, option, why)) => Err(Error::usage(&format!(
            "--layout {:?} makes datasets that {why}: leave out {option}, or {}",
            rule.to_string(),
            unchunked.word()
        ))),
        None => Ok(()),
    }
}

/// Applies settings that were measured to help to the options of a merge.
fn apply_profile(settings: &Settings, options: &mut MergeOptions) {
    if let Some(SettingValue::Shape(shape)) = settings.get(Knob::Chunk) {
        options.chunk = Some(shape.clone().into());
        options.is_chunk_of_profile = true;
    }
    if let Some(level) = settings.whole(Knob::Gzip).and_then(|level| u8::try_from(level).ok()) {
        options.compress = Effort::Gzip(level).into();
    }
    if let Some(SettingValue::Text(bound)) = settings.get(Knob::Libver) {
        options.compat = match bound.as_str() {
            "v18" => Format::V18,
            "v110" => Format::V110,
            _ => Format::Latest,
        };
    }
    // Stripes set by the user take precedence.
    if let (None, Some(len_bytes)) = (options.align, settings.whole(Knob::Alignment)) {
        options.align = Some(Align::Stripes(len_bytes));
    }
}

/// Oldest reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "kebab-case")]
pub enum Compat {
    /// HDF5 1.8 and later (2008)
    #[serde(rename = "1.8")]
    #[cfg_attr(feature = "clap", value(name = "1.8"))]
    V18,
    /// HDF5 1.10 and later (2016): smaller chunk indexes
    #[serde(rename = "1.10")]
    #[cfg_attr(feature = "clap", value(name = "1.10"))]
    V110,
    /// The HDF5 version that raddle was built with
    Latest,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_sets_options_that_are_not_given() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.toml");
        let example = include_str!("../../../tune/examples/profile.toml");
        let more = "[layout.gzip]\nvalue = 4\nratio = 0.5\ninterval = [0.4, 0.6]\nblocks = 5\nmetric = \"wall_s\"\ninflation = 1.0\n";
        let aligned = more.replace("layout.gzip", "settings.alignment").replace("value = 4", "value = 1048576");
        std::fs::write(&path, format!("{example}\n{more}\n{aligned}")).unwrap();
        let options = |layout: LayoutOptions, align| {
            let mut options = MergeOptions { align, ..MergeOptions::new("out.h5") };
            let layout = LayoutOptions { profile: Some(ProfileChoice::File(path.clone())), ..layout };
            layout.apply(&mut options).unwrap();
            options
        };
        let found = options(LayoutOptions::default(), None);
        assert_eq!((found.chunk, found.compress), (Some(Chunk::Shape(vec![11, 360, 32])), Effort::Gzip(4).into()));
        assert_eq!((found.align, found.compat), (Some(Align::Stripes(1 << 20)), Format::V18));
        let explicit = LayoutOptions {
            compress: Some(Compress::default()),
            chunk: Some(Chunk::Rows(10)),
            compat: Some(Compat::V110),
            ..LayoutOptions::default()
        };
        let found = options(explicit, Some(Align::Auto));
        assert_eq!((found.chunk, found.compress), (Some(Chunk::Rows(10)), Compress::default()));
        assert_eq!((found.align, found.compat), (Some(Align::Auto), Format::V110));
    }
}
