//! Why a header is refused.

use super::{MAX_BLOCKS_PER_FILE, MAX_FIELDS, MAX_HEADER_LEN_BYTES, VERSION};
use crate::bitmask::BitmaskError;
use crate::template::TemplateError;

/// Why the text of an `.idx` file, or a header that was made, is refused. The caller adds the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// Longer than any header.
    #[error("is longer than {MAX_HEADER_LEN_BYTES} bytes; it is no .idx file")]
    TooLong,
    /// Not text.
    #[error("is not text in UTF-8; it is no .idx file")]
    NotText,
    /// Text before the first key.
    #[error("line {line} is before any key such as (version); it is no .idx file")]
    NoKey {
        /// Line, counted from 1.
        line: usize,
    },
    /// A key without its closing parenthesis, or one that would not be read back.
    #[error("key {key:?} is not a name in parentheses with a value of its own")]
    Key {
        /// The key.
        key: String,
    },
    /// A key twice.
    #[error("key ({key}) is there twice")]
    KeyTwice {
        /// The key.
        key: String,
    },
    /// A key that every header needs.
    #[error("key ({key}) is missing")]
    Missing {
        /// The key.
        key: &'static str,
    },
    /// Not a whole number that fits.
    #[error("({key}) holds {text:?}, a whole number from 0 is needed")]
    Number {
        /// The key.
        key: &'static str,
        /// What it holds.
        text: String,
    },
    /// A version that does not exist.
    #[error("version {version} is not known, 1 to {VERSION} are")]
    Version {
        /// The version.
        version: u32,
    },
    /// A value that raddle does not read.
    #[error("({key}) holds {value:?}, which is not supported")]
    Unsupported {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
    },
    /// The name of an output that is no dataset's.
    #[error("the output is the dataset's .idx file: NAME.idx")]
    Name,
    /// The bitmask.
    #[error(transparent)]
    Bitmask(#[from] BitmaskError),
    /// A template of names.
    #[error("file names: {0}")]
    Template(#[from] TemplateError),
    /// Not two numbers per axis, or fewer axes than the bitmask splits.
    #[error("the box has {numbers} numbers; two per axis are needed, and the bitmask splits {rank} axes")]
    BoxAxes {
        /// Numbers found.
        numbers: usize,
        /// Axes of the bitmask.
        rank: usize,
    },
    /// An axis of the box is empty or longer than the bitmask's.
    #[error("axis {axis} of the box goes from {start} to before {end}; the bitmask has room for 0 to before {limit}")]
    Box {
        /// Axis.
        axis: usize,
        /// First sample.
        start: u64,
        /// One past the last.
        end: u64,
        /// Room of the bitmask.
        limit: u64,
    },
    /// Blocks of one sample, which are not written: OpenVisus reads 0 as its default.
    #[error("0 bits per block stand for the default in OpenVisus: at least 1 is written")]
    NoBitsPerBlock,
    /// A block larger than the dataset.
    #[error("{bits} bits per block are more than the bitmask's {limit}")]
    BitsPerBlock {
        /// As stated.
        bits: u32,
        /// Letters of the bitmask.
        limit: u32,
    },
    /// Blocks per file.
    #[error("{blocks} blocks per file; 1 to {MAX_BLOCKS_PER_FILE} are possible")]
    BlocksPerFile {
        /// As stated.
        blocks: u64,
    },
    /// One name for several files.
    #[error("the file template has no number, but {blocks} blocks or time steps need several files")]
    OneFile {
        /// Blocks of the dataset.
        blocks: u64,
    },
    /// No field, or very many.
    #[error("{fields} fields; 1 to {MAX_FIELDS} are possible")]
    FieldCount {
        /// Fields.
        fields: usize,
    },
    /// Not a name, a type and attributes.
    #[error("field {text:?} is not a name, a type such as float32 or float64[3], and attributes in parentheses")]
    Field {
        /// The field.
        text: String,
    },
    /// Two fields of one name.
    #[error("field {name:?} is there twice")]
    FieldTwice {
        /// Name.
        name: String,
    },
    /// No field that could be compressed as asked.
    #[error(
        "zfp takes single float32, float64, int32 or int64 numbers (with an accuracy: the first two) on two or three axes, \
         slowest ones of length 1 not counted, and no field has them; choose zip, lz4 or none"
    )]
    Zfp,
    /// A block whose length does not fit its record.
    #[error("blocks of field {name:?} with 2^{bits} samples are longer than 32 bits can tell")]
    BlockLength {
        /// Field.
        name: String,
        /// Bits per block.
        bits: u32,
    },
}
