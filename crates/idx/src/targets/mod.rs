//! Targets: the formats that arrays are written to, behind one trait, and their registry.
//!
//! `array_target` is the trait. `idx` implements it for IDX, and each other format in its own folder. This file lists
//! the formats, dispatches to them, and defines the types that hold their different results. Invariant: callers name a
//! format only to show results that no other format has; the enums here make the compiler list these places.

mod array_target;
mod idx;
pub mod zarr;

pub use array_target::{ArrayTarget, FieldSet, StoredArrays, TargetWriter};
pub use idx::{IdxTarget, StoredDataset};

use crate::dataset::header::Header;
use crate::error::{IdxError, Result};
use crate::read::check::DatasetCheck;
use crate::read::dataset::Dataset;
use crate::read::info::DatasetInfo;
use crate::request::{Format, RequestFault, WriteRequest};
use crate::write::options::WriteOptions;
use serde::Serialize;
use std::path::Path;
use zarr::{FolderCheck, FolderInfo, ImageLayout, ZarrTarget};

/// Returns the implementation of a format.
pub fn target(format: Format) -> &'static dyn ArrayTarget {
    match format {
        Format::Idx => &IdxTarget,
        Format::Zarr => &ZarrTarget,
    }
}

/// Returns the format that a request names, or the format that the ending of its output denotes. Other outputs are IDX.
pub fn format_of(request: &WriteRequest) -> Format {
    let has_ending = |format: &Format| request.output.extension().is_some_and(|end| end == target(*format).name());
    request.format.or_else(|| Format::ALL.into_iter().find(has_ending)).unwrap_or(Format::Idx)
}

/// Returns the format of the file or folder at `path`. Everything that no format recognises is IDX.
pub fn format_at(path: &Path) -> Format {
    Format::ALL.into_iter().find(|format| target(*format).is_stored_at(path)).unwrap_or(Format::Idx)
}

/// Returns whether `format` accepts the option `name`. Options that no other format claims are common to all.
pub fn has_option(format: Format, name: &str) -> bool {
    let request = WriteRequest::default();
    let others = Format::ALL.into_iter().filter(|other| *other != format);
    !others.into_iter().any(|other| target(other).options(&request).iter().any(|(known, _)| *known == name))
}

/// Begins writing `fields` as a request specifies. Nothing is written yet.
///
/// # Errors
/// If the request does not fit the fields or has options of another format, or a dataset to continue cannot be read or
/// differs.
pub fn begin(request: &WriteRequest, fields: &FieldSet, options: WriteOptions) -> Result<Box<dyn TargetWriter>> {
    let format = format_of(request);
    for other in Format::ALL.into_iter().filter(|other| *other != format) {
        if let Some((option, _)) = target(other).options(request).into_iter().find(|(_, is_set)| *is_set) {
            let fault = RequestFault::OtherTarget { of: target(other).title(), output: target(format).title() };
            return Err(IdxError::Request { option, fault });
        }
    }
    target(format).begin(request, fields, options)
}

/// Opens an output of any format for reading.
///
/// # Errors
/// If it cannot be read or is refused.
pub fn open(path: &Path) -> Result<Box<dyn StoredArrays>> {
    target(format_at(path)).open(path)
}

/// Opens an IDX dataset.
///
/// # Errors
/// If it cannot be read, or has another format.
pub fn open_dataset(path: &Path) -> Result<Dataset> {
    match target(format_at(path)) {
        of_path if of_path.name() == IdxTarget.name() => Dataset::open(path),
        other => {
            let (format, readers) = (other.title(), other.readers());
            Err(IdxError::OtherFormat { path: path.to_path_buf(), format, readers })
        }
    }
}

/// Returns the description of an output of any format.
///
/// # Errors
/// If it cannot be read or is refused.
pub fn describe(path: &Path) -> Result<Description> {
    open(path)?.describe()
}

/// Layout of a finished output.
#[derive(Debug, Clone, PartialEq)]
pub enum WrittenLayout {
    /// IDX dataset.
    Idx(Box<Header>),
    /// OME-Zarr folder.
    Zarr(Box<ImageLayout>),
}

/// Description of an output.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Description {
    /// IDX dataset.
    Idx(Box<DatasetInfo>),
    /// OME-Zarr folder.
    Zarr(FolderInfo),
}

/// Result of checking an output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum TargetCheck {
    /// IDX dataset.
    Idx(DatasetCheck),
    /// OME-Zarr folder.
    Zarr(FolderCheck),
}

impl TargetCheck {
    /// Returns whether nothing is missing or damaged.
    pub fn is_whole(&self) -> bool {
        match self {
            Self::Idx(check) => check.is_whole(),
            Self::Zarr(check) => check.is_whole(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_formats_are_those_of_requests() {
        for format in Format::ALL {
            assert_eq!(serde_json::to_value(format).unwrap(), target(format).name());
        }
    }

    #[test]
    fn outputs_have_the_format_of_their_name() {
        let named = |output: &str| format_of(&WriteRequest { output: output.into(), ..WriteRequest::default() });
        assert_eq!([named("a.idx"), named("a.zarr"), named("a")], [Format::Idx, Format::Zarr, Format::Idx]);
        let format = Some(Format::Idx);
        let request = WriteRequest { output: "a.zarr".into(), format, ..WriteRequest::default() };
        assert_eq!(format_of(&request), Format::Idx);
    }

    #[test]
    fn options_of_other_formats_are_refused() {
        let refused = |text: &str| {
            let request: WriteRequest = serde_json::from_str(text).unwrap();
            begin(&request, &FieldSet::default(), WriteOptions::default()).unwrap_err().to_string()
        };
        let levels = r#"{"output": "a.idx", "levels": 3}"#;
        assert_eq!(refused(levels), "levels is an OME-Zarr option, but the output is IDX");
        let order = r#"{"output": "a.zarr", "order": "hz"}"#;
        assert_eq!(refused(order), "order is an IDX option, but the output is OME-Zarr");
        assert!(has_option(Format::Zarr, "box") && !has_option(Format::Zarr, "blocks_per_file"));
    }
}
