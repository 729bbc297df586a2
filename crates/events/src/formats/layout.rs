//! Layouts in which events are written, as users name them.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Layout of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
pub enum OutputLayout {
    /// A flat array for each leaf, in HDF5.
    #[default]
    Columns,
    /// The bytes of each product separately, in HDF5.
    Product,
    /// The bytes of each event together, in HDF5.
    Event,
    /// The bytes of many events together, in HDF5.
    Batch,
    /// A packed data stream.
    Pds,
    /// An RNTuple in a ROOT file.
    Rntuple,
}

impl OutputLayout {
    /// All layouts, in the order in which messages list them.
    pub const ALL: [Self; 6] = [Self::Columns, Self::Product, Self::Event, Self::Batch, Self::Pds, Self::Rntuple];

    /// Returns the name of the layout, as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Columns => "columns",
            Self::Product => "product",
            Self::Event => "event",
            Self::Batch => "batch",
            Self::Pds => "pds",
            Self::Rntuple => "rntuple",
        }
    }

    /// Describes the layout in a line, for help.
    pub fn help(self) -> &'static str {
        match self {
            Self::Columns => "HDF5: a flat array for each leaf, and offsets for each level of lists",
            Self::Product => "HDF5: the bytes of each product separately",
            Self::Event => "HDF5: the bytes of each event together",
            Self::Batch => "HDF5: the bytes of many events together",
            Self::Pds => "A packed data stream, as written by the HEP-CCE framework",
            Self::Rntuple => "A ROOT file with an RNTuple named Events, with a field for each product",
        }
    }

    /// Returns whether products are written as columns rather than bytes.
    pub(crate) fn holds_columns(self) -> bool {
        matches!(self, Self::Columns | Self::Rntuple)
    }

    /// Returns whether the file is HDF5.
    pub fn is_hdf5(self) -> bool {
        !matches!(self, Self::Pds | Self::Rntuple)
    }

    /// Returns whether the format is the HEP-CCE framework's, which stores ids apart from products and needs the
    /// ROOT serialisation.
    pub(crate) fn is_of_framework(self) -> bool {
        self == Self::Pds
    }

    /// Returns whether the framework has a separate form of this layout; see [`Compat`](super::Compat).
    pub(crate) fn has_compat(self) -> bool {
        matches!(self, Self::Product | Self::Event | Self::Batch)
    }

    /// Returns a multiple of bytes to which products are padded.
    pub fn padding_len_bytes(self) -> usize {
        if self == Self::Pds { crate::pds::WORD_LEN_BYTES } else { 1 }
    }
}

impl fmt::Display for OutputLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Error for the name of an unknown layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayoutNameError(String);

impl fmt::Display for LayoutNameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = OutputLayout::ALL.map(OutputLayout::name);
        write!(f, "{:?} is not a layout of events; expected one of {}", self.0, names.join(", "))
    }
}

impl std::error::Error for LayoutNameError {}

impl FromStr for OutputLayout {
    type Err = LayoutNameError;

    fn from_str(text: &str) -> Result<Self, LayoutNameError> {
        Self::ALL.into_iter().find(|layout| layout.name() == text).ok_or_else(|| LayoutNameError(text.to_owned()))
    }
}

impl TryFrom<String> for OutputLayout {
    type Error = LayoutNameError;

    fn try_from(text: String) -> Result<Self, LayoutNameError> {
        text.parse()
    }
}

impl From<OutputLayout> for &'static str {
    fn from(layout: OutputLayout) -> Self {
        layout.name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for layout in OutputLayout::ALL {
            assert_eq!(layout.name().parse(), Ok(layout));
            let text = serde_json::to_string(&layout).unwrap();
            assert_eq!(text, format!("{:?}", layout.name()));
            assert_eq!(serde_json::from_str::<OutputLayout>(&text).unwrap(), layout);
        }
        let refused = serde_json::from_str::<OutputLayout>("\"rows\"").unwrap_err().to_string();
        assert!(refused.contains("\"rows\"") && refused.contains("columns, product, event"), "{refused}");
    }
}
