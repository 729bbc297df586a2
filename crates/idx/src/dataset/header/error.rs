//! Errors of headers.

use super::{MAX_BLOCKS_PER_FILE, MAX_FIELDS, MAX_HEADER_LEN_BYTES, VERSION};
use crate::dataset::bitmask::BitmaskError;
use crate::dataset::template::TemplateError;

/// Reason why the text of an `.idx` file, or a header built in memory, is refused. The caller adds the file name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The file is longer than any header.
    #[error("is longer than {MAX_HEADER_LEN_BYTES} bytes; it is not an .idx file")]
    TooLong,
    /// The file is not text.
    #[error("is not text in UTF-8; it is not an .idx file")]
    NotText,
    /// There is text before the first key.
    #[error("line {line} is before any key such as (version); it is not an .idx file")]
    NoKey {
        /// Line, counted from 1.
        line: usize,
    },
    /// A key lacks its closing parenthesis, or would not be read back unchanged.
    #[error("key {key:?} is not a name in parentheses followed by its value")]
    Key {
        /// Name of the key.
        key: String,
    },
    /// A key occurs twice.
    #[error("key ({key}) occurs twice")]
    KeyTwice {
        /// Name of the key.
        key: String,
    },
    /// A required key is missing.
    #[error("key ({key}) is missing")]
    Missing {
        /// Name of the key.
        key: &'static str,
    },
    /// A value is not a whole number in range.
    #[error("({key}) is {text:?}, but must be a whole number, 0 or greater")]
    Number {
        /// Name of the key.
        key: &'static str,
        /// Text of the value.
        text: String,
    },
    /// The version is unknown.
    #[error("version {version} is unknown; known versions are 1 to {VERSION}")]
    Version {
        /// Version in the header.
        version: u32,
    },
    /// A value is not supported.
    #[error("({key}) is {value:?}, which is not supported")]
    Unsupported {
        /// Name of the key.
        key: &'static str,
        /// Value of the key, as text.
        value: String,
    },
    /// The name of the output is not valid for an `.idx` file.
    #[error("the output must be the dataset's .idx file, NAME.idx")]
    Name,
    /// The bitmask is invalid.
    #[error(transparent)]
    Bitmask(#[from] BitmaskError),
    /// The template of file names is invalid.
    #[error("file names: {0}")]
    Template(#[from] TemplateError),
    /// The box does not have two numbers per axis, or has fewer axes than the bitmask splits.
    #[error("the box has {numbers} numbers; two per axis are needed, and the bitmask splits {rank} axes")]
    BoxAxes {
        /// Number of numbers in the text.
        numbers: usize,
        /// Number of axes of the bitmask.
        rank: usize,
    },
    /// An axis of the box is empty or longer than the bitmask's.
    #[error("axis {axis} of the box goes from {start} to before {end}; the bitmask has room for 0 to before {limit}")]
    Box {
        /// Index of the axis.
        axis: usize,
        /// First sample of the box.
        start: u64,
        /// End of the box along the axis, exclusive.
        end: u64,
        /// Length of the axis in the bitmask.
        limit: u64,
    },
    /// Blocks of one sample are not written, because OpenVisus reads 0 bits as the default.
    #[error("0 bits per block are not written, because OpenVisus reads them as the default; use at least 1")]
    NoBitsPerBlock,
    /// A block is larger than the dataset.
    #[error("{bits} bits per block are more than the bitmask's {limit}")]
    BitsPerBlock {
        /// Number of bits per block in the header.
        bits: u32,
        /// Number of letters of the bitmask.
        limit: u32,
    },
    /// The number of blocks per file is out of range.
    #[error("{blocks} blocks per file; 1 to {MAX_BLOCKS_PER_FILE} are possible")]
    BlocksPerFile {
        /// Number of blocks per file in the header.
        blocks: u64,
    },
    /// Several files would have the same name.
    #[error("the file template has no number, but {blocks} blocks or time steps need several files")]
    OneFile {
        /// Number of blocks of the dataset.
        blocks: u64,
    },
    /// There are no fields, or too many.
    #[error("{fields} fields; 1 to {MAX_FIELDS} are possible")]
    FieldCount {
        /// Number of fields.
        fields: usize,
    },
    /// A field is not a name, a type and attributes.
    #[error("field {text:?} is not a name, a type such as float32 or float64[3], and attributes in parentheses")]
    Field {
        /// Text of the field.
        text: String,
    },
    /// An `.idx` file cannot hold the name of a field.
    #[error(
        "field {name:?} cannot have this name in an .idx file; choose a name without white space, '+' and unpaired \
         parentheses that does not begin with '(' or '#'"
    )]
    FieldName {
        /// Name of the field.
        name: String,
    },
    /// Two fields have the same name.
    #[error("field {name:?} occurs twice")]
    FieldTwice {
        /// Name of the field.
        name: String,
    },
    /// No field can be compressed as requested.
    #[error(
        "zfp takes single float32, float64, int32 or int64 numbers (with an accuracy: the first two) on two or three axes, \
         slowest ones of length 1 not counted, and no field has them; choose zip, lz4 or none"
    )]
    Zfp,
    /// The length of a block does not fit its record.
    #[error("blocks of field {name:?} with 2^{bits} samples are too long: lengths must fit 32 bits")]
    BlockLength {
        /// Name of the field.
        name: String,
        /// Number of bits per block.
        bits: u32,
    },
}
