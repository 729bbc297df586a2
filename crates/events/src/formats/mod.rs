//! Registry of file formats: how a file is recognised and opened, its properties, and how files are written and merged.
//!
//! [`FORMATS`] lists the formats, each in a file of this folder. No other code in raddle names a format: [`open`],
//! [`write()`] and [`merge`] ask the registry. Invariant: the first bytes of a file are those of at most one format.

mod codec;
mod hdf5;
mod job;
mod layout;
mod options;
mod pds;
mod root;

pub use codec::{CodecNameError, EventCodec};
pub use job::{MergeJob, OmittedProduct, WriteJob, WrittenEvents};
pub use layout::{LayoutNameError, OutputLayout};
pub use options::{Batch, Compat, DEFAULT_BATCH, EventCompression, WriteOptions};

use crate::convert::ConvertOptions;
use crate::error::{EventsError, Result};
use raddle_codec::KnownFilter;
use raddle_columns::error::Location;
use raddle_columns::input::InputFile;
use raddle_columns::source::Source;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use raddle_core::report::progress::Watch;
use std::path::Path;

/// Format of files.
pub trait Format: Sync {
    /// Returns what a file of this format is called, with an article: `a ROOT file`.
    fn title(&self) -> &'static str;

    /// Returns whether a file that begins with `first` has this format; `first` has up to [`FIRST_LEN_BYTES`] bytes.
    fn is_match(&self, first: &[u8]) -> bool;

    /// Opens a file of this format.
    ///
    /// # Errors
    /// If the file cannot be read, is damaged, or has no events.
    fn open(&self, path: &Path, options: &OpenOptions) -> Result<Box<dyn EventFile>>;

    /// Returns the layouts that this format can be written in.
    fn layouts(&self) -> &'static [OutputLayout];

    /// Returns the HDF5 filter that readers of a file with these options need, if any.
    fn filter(&self, _options: &WriteOptions) -> Option<KnownFilter> {
        None
    }

    /// Collective. Writes a file in one of [`Format::layouts`].
    ///
    /// # Errors
    /// If the layout cannot hold a product, the source cannot be read, or the output cannot be written.
    fn write(&self, job: &WriteJob<'_>) -> Result<WrittenEvents>;

    /// Collective. Merges files, the first of which has this format. Returns the result on rank 0, and on every rank if
    /// all took part.
    ///
    /// # Errors
    /// If files of this format cannot be merged, the files do not fit together, or the output cannot be written.
    fn merge(&self, job: &MergeJob<'_>) -> Result<Option<WrittenEvents>>;
}

/// Formats, in the order in which messages list them.
pub static FORMATS: [&dyn Format; 3] = [&root::RootFormat, &pds::PdsFormat, &hdf5::Hdf5Format];

/// Number of bytes by which a format is recognised.
pub const FIRST_LEN_BYTES: u64 = 8;

/// Options for opening a file.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// Name of the tree or RNTuple of a ROOT file, optionally with a cycle (`Events;1`); without a cycle, the latest is
    /// used. If `None`, `Events` is opened, or else the only tree.
    pub tree: Option<String>,
    /// Whether to read products as their stored bytes, where there is a choice.
    pub raw: bool,
    /// Whether to read objects of trees whole, as ROOT serialises them, even if they are split into branches.
    pub whole: bool,
}

impl OpenOptions {
    /// Returns options for reading products as their stored bytes.
    pub fn raw() -> Self {
        Self { raw: true, ..Self::default() }
    }
}

/// Open file.
pub trait EventFile: Source {
    /// Describes the format and the layout: `ROOT file, tree Events`.
    fn description(&self) -> String;

    /// Returns the parts of the file that are not read, with the reasons.
    fn unread(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the names of the products that are read as bytes because raddle cannot decode them, with the reasons.
    fn undecoded(&self) -> Vec<(String, String)> {
        Vec::new()
    }
}

/// Opens `path`, whose format is recognised by its first bytes.
///
/// # Errors
/// If the format is unknown, or opening the file fails.
pub fn open(path: &Path, options: &OpenOptions) -> Result<Box<dyn EventFile>> {
    format_of(path)?.open(path, options)
}

/// Opens `path` as a source of events; see [`open`].
///
/// # Errors
/// As for [`open`].
pub fn open_source(path: &Path, options: &OpenOptions) -> Result<Box<dyn Source>> {
    open(path, options).map(|file| file as Box<dyn Source>)
}

/// Returns the format of a file.
///
/// # Errors
/// If the file cannot be read, or its format is unknown.
pub fn format_of(path: &Path) -> Result<&'static dyn Format> {
    let (file, first) = open_first(path)?;
    let format = FORMATS.into_iter().find(|format| format.is_match(&first));
    format.ok_or_else(|| file.other_format(titles()).into())
}

/// Opens a file and reads the bytes by which its format is recognised.
fn open_first(path: &Path) -> Result<(InputFile, Vec<u8>)> {
    let file = InputFile::open(path)?;
    let first = file.read(0, file.len_bytes().min(FIRST_LEN_BYTES), "the first bytes");
    let first = first.map_err(|fault| fault.at(&Location::file(path)))?;
    Ok((file, first))
}

/// Collective. Writes a file in the layout that the job names.
///
/// # Errors
/// As for [`Format::write`].
pub fn write(job: &WriteJob<'_>) -> Result<WrittenEvents> {
    let ConvertOptions { products, entries, .. } = job.convert;
    job.ranks.check_same_options(&format!("{:?} {products:?} {entries:?}", job.options))?;
    job.options.check()?;
    let layout = job.options.layout;
    match format_with(layout) {
        Some(format) => format.write(job),
        None => Err(EventsError::option("layout", format!("{layout} cannot be written"))),
    }
}

/// Returns the format that can be written in a layout.
fn format_with(layout: OutputLayout) -> Option<&'static dyn Format> {
    FORMATS.into_iter().find(|format| format.layouts().contains(&layout))
}

/// Warns about a filter that readers of the output may lack, once for all ranks.
pub(crate) fn warn_of_filter(options: &WriteOptions, watch: &Watch<'_>, ranks: &dyn Communicator) {
    let filter = format_with(options.layout).and_then(|format| format.filter(options));
    if let (0, Some(text)) = (ranks.rank(), filter.and_then(KnownFilter::requirement)) {
        watch.warn(text);
    }
}

/// Collective. Merges files as the format of the first one does.
///
/// # Errors
/// As for [`Format::merge`].
pub fn merge(job: &MergeJob<'_>) -> Result<Option<WrittenEvents>> {
    job.ranks.check_same_options(&format!("{:?}", job.options))?;
    match job.inputs.first() {
        Some(first) => job.agree("open the inputs", format_of(first))?.merge(job),
        None => Err(EventsError::option("inputs", "no files are given")),
    }
}

/// Lists the formats: `a ROOT file, a packed data stream or an HDF5 file`.
fn titles() -> String {
    let titles = FORMATS.map(Format::title);
    let Some((last, others)) = titles.split_last() else { return String::new() };
    format!("{} or {last}", others.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_layout_belongs_to_one_format() {
        for layout in OutputLayout::ALL {
            assert_eq!(FORMATS.iter().filter(|format| format.layouts().contains(&layout)).count(), 1, "{layout}");
        }
    }

    #[test]
    fn messages_list_all_formats() {
        assert_eq!(titles(), "a ROOT file, a packed data stream or an HDF5 file");
    }
}
