//! The `.idx` file: the description of a dataset and of where its blocks lie.
//!
//! `text` splits the file into keys, and fields into attributes; this module interprets them and writes them back.
//! Invariant: a header that was read or built is consistent (the box lies in the power-of-two box, blocks in the
//! dataset, block lengths in 32 bits), and unknown keys are kept and written back.

mod error;
mod text;

pub use error::HeaderError;
pub use text::Attribute;

use crate::dataset::bitmask::{Bitmask, MAX_RANK, Point};
use crate::dataset::grid::{ArrayGrid, Layout};
use crate::dataset::sample::SampleType;
use crate::dataset::template::{FileTemplate, TimeTemplate};

/// Maximum length of an `.idx` file that is read. Thousands of fields take a few hundred kilobytes.
pub const MAX_HEADER_LEN_BYTES: u64 = 16 << 20;

/// Maximum number of fields; together with [`MAX_BLOCKS_PER_FILE`] it bounds the tables of blocks.
pub const MAX_FIELDS: usize = 1 << 16;

/// Maximum number of blocks per file.
pub const MAX_BLOCKS_PER_FILE: u64 = 1 << 32;

/// Version that is written, and the only one whose blocks are read.
pub const VERSION: u32 = 6;

/// A field: a name, the type of its samples and further attributes of the header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Name, without spaces.
    pub name: String,
    /// Type of the samples.
    pub sample: SampleType,
    /// Attributes `name(value)`, in order.
    pub attributes: Vec<Attribute>,
}

impl Field {
    /// Creates a field without attributes.
    pub fn new(name: &str, sample: SampleType) -> Self {
        Self { name: name.to_owned(), sample, attributes: Vec::new() }
    }

    /// Checks that an `.idx` file can hold the field.
    ///
    /// # Errors
    /// [`HeaderError::FieldName`] or [`HeaderError::Field`] if it would be read back as another one.
    pub fn check(&self) -> Result<(), HeaderError> {
        text::check_field(self)
    }

    /// Returns the field with an attribute added or changed.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        match self.attributes.iter_mut().find(|attribute| attribute.name == name) {
            Some(attribute) => value.clone_into(&mut attribute.value),
            None => self.attributes.push(Attribute { name: name.to_owned(), value: value.to_owned() }),
        }
        self
    }

    /// Returns the value of an attribute.
    pub fn attribute(&self, name: &str) -> Option<&str> {
        self.attributes.iter().find(|attribute| attribute.name == name).map(|attribute| attribute.value.as_str())
    }

    /// Returns the layout that writers should use; each stored block records its actual layout.
    pub fn default_layout(&self) -> Layout {
        if matches!(self.named_layout(), Some("hzorder" | "0")) { Layout::Hz } else { Layout::RowMajor }
    }

    fn named_layout(&self) -> Option<&str> {
        self.attribute("default_layout").or_else(|| self.attribute("format"))
    }

    /// Returns the bytes of a sample where nothing is stored.
    pub(crate) fn default_sample(&self) -> Vec<u8> {
        let value = self.attribute("default_value").and_then(|value| value.trim().parse().ok()).unwrap_or(0.0);
        self.sample.number.bytes_of(value).repeat(self.sample.count)
    }
}

/// Time steps of a dataset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Time {
    /// First and last step; `None` where the header leaves it open.
    pub range: Option<(u64, u64)>,
    /// Template of the names of their folders.
    pub template: TimeTemplate,
}

/// Contents of an `.idx` file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// Major version number; 6 for PIDX's 6.1.
    pub version: u32,
    /// First sample.
    pub start: Point,
    /// End of the box, exclusive.
    pub end: Point,
    /// Number of axes.
    pub rank: usize,
    /// Fields, at least one.
    pub fields: Vec<Field>,
    /// The bitmask, which defines the hierarchy.
    pub bitmask: Bitmask,
    /// Base-2 logarithm of the samples per block.
    pub bits_per_block: u32,
    /// Number of blocks per file.
    pub blocks_per_file: u64,
    /// Template of the file names.
    pub files: FileTemplate,
    /// Time steps, if the dataset has any.
    pub time: Option<Time>,
    /// Remaining keys with their values, in order.
    pub others: Vec<(String, String)>,
}

/// Default number of bits per block: the 2^15 samples of PIDX, whose float32 blocks fit the second-level cache. Smaller
/// datasets use fewer.
pub const DEFAULT_BITS_PER_BLOCK: u32 = 15;

/// Default number of blocks per file, as in PIDX.
pub const DEFAULT_BLOCKS_PER_FILE: u64 = 256;

impl Header {
    /// Returns the first property that differs from `other`'s and prevents reading one as the other. Ranges of time
    /// steps may differ.
    pub fn difference(&self, other: &Self) -> Option<&'static str> {
        let template = |of: &Self| of.time.as_ref().map(|time| time.template.clone());
        let same = [
            ("box", (self.start, self.end) == (other.start, other.end)),
            ("set of fields", self.fields == other.fields),
            ("bitmask", self.bitmask == other.bitmask),
            ("number of bits per block", self.bits_per_block == other.bits_per_block),
            ("number of blocks per file", self.blocks_per_file == other.blocks_per_file),
            ("template of files", self.files == other.files),
            ("template of time steps", template(self) == template(other)),
        ];
        same.into_iter().find(|(_, is_same)| !is_same).map(|(what, _)| what)
    }

    /// Returns the part of the names of files that stands for a time step; empty for a dataset without time steps.
    pub(crate) fn time_name(&self, step: Option<u64>) -> String {
        self.time.as_ref().zip(step).map(|(time, step)| time.template.name(step)).unwrap_or_default()
    }

    /// Creates the header of a dataset of `counts` samples per axis (x first) in files next to `NAME.idx`.
    ///
    /// # Errors
    /// If there is no bitmask for the counts, or the name or the fields are refused.
    pub fn new(name: &str, counts: &[u64], fields: Vec<Field>) -> Result<Self, HeaderError> {
        let bitmask = Bitmask::for_counts(counts)?;
        let bits_per_block = DEFAULT_BITS_PER_BLOCK.min(bitmask.max_level());
        let header = Self {
            version: VERSION,
            start: [0; MAX_RANK],
            end: std::array::from_fn(|axis| counts.get(axis).copied().unwrap_or(1)),
            rank: counts.len(),
            fields,
            files: FileTemplate::for_name(name, bitmask.max_level() - bits_per_block)?,
            bitmask,
            bits_per_block,
            blocks_per_file: DEFAULT_BLOCKS_PER_FILE,
            time: None,
            others: Vec::new(),
        };
        header.check()?;
        Ok(header)
    }

    /// Parses the text of an `.idx` file.
    ///
    /// # Errors
    /// If a key is missing, wrong or not supported.
    pub fn parse(bytes: &[u8]) -> Result<Self, HeaderError> {
        let mut keys = text::keys(bytes)?;
        let mut take = |key: &'static str| {
            let index = keys.iter().position(|(name, _)| name == key)?;
            Some(keys.remove(index).1)
        };
        let version_text = take("version").ok_or(HeaderError::Missing { key: "version" })?;
        let major = version_text.split('.').next().unwrap_or_default();
        let version = number::<u32>("version", major)?;
        if !(1..=VERSION).contains(&version) {
            return Err(HeaderError::Version { version });
        }
        let box_text = take("box").ok_or(HeaderError::Missing { key: "box" })?;
        let fields_text = take("fields").ok_or(HeaderError::Missing { key: "fields" })?;
        let bitmask = Bitmask::parse(&take("bits").ok_or(HeaderError::Missing { key: "bits" })?)?;
        let has_all_axes = take(ALL_AXES).is_some();
        let (start, end, rank) = read_box(&box_text, &bitmask, has_all_axes)?;
        let time = take("time").map(|text| read_time(&text)).transpose()?;
        let mut count = |key: &'static str| {
            let text = take(key).ok_or(HeaderError::Missing { key })?;
            number::<u64>(key, &text)
        };
        let bits_per_block = count("bitsperblock")?.try_into().unwrap_or(u32::MAX);
        let blocks_per_file = count("blocksperfile")?;
        let files =
            FileTemplate::parse(&take("filename_template").ok_or(HeaderError::Missing { key: "filename_template" })?)?;
        for key in ["interleave block", "arco"] {
            if let Some(text) = take(key)
                && !matches!(text.as_str(), "0" | "1" if key != "arco" || text == "0")
            {
                return Err(HeaderError::Unsupported { key, value: text });
            }
        }
        let others = keys;
        let fields = text::fields(&fields_text)?;
        let header =
            Self { version, start, end, rank, fields, bitmask, bits_per_block, blocks_per_file, files, time, others };
        header.check()?;
        Ok(header)
    }

    /// Checks that the parts of the header are consistent; call it again after changing parts.
    ///
    /// # Errors
    /// If the header contradicts itself. The error describes the first contradiction.
    pub fn check(&self) -> Result<(), HeaderError> {
        for (axis, log2) in self.bitmask.log2_counts().into_iter().enumerate() {
            if self.start[axis] >= self.end[axis] || self.end[axis] > 1 << log2 {
                let (start, end) = (self.start[axis], self.end[axis]);
                return Err(HeaderError::Box { axis, start, end, limit: 1 << log2 });
            }
        }
        let max_level = self.bitmask.max_level();
        if self.bits_per_block > max_level {
            return Err(HeaderError::BitsPerBlock { bits: self.bits_per_block, limit: max_level });
        }
        if !(1..=MAX_BLOCKS_PER_FILE).contains(&self.blocks_per_file) {
            return Err(HeaderError::BlocksPerFile { blocks: self.blocks_per_file });
        }
        if !self.files.has_conversions() && (self.blocks_per_file < self.block_count() || self.time.is_some()) {
            return Err(HeaderError::OneFile { blocks: self.block_count() });
        }
        if self.fields.is_empty() || self.fields.len() > MAX_FIELDS {
            return Err(HeaderError::FieldCount { fields: self.fields.len() });
        }
        let mut names = std::collections::HashSet::new();
        for field in &self.fields {
            field.check()?;
            if !names.insert(&field.name) {
                return Err(HeaderError::FieldTwice { name: field.name.clone() });
            }
            let block_len_bytes = (field.sample.len_bytes() as u64).checked_mul(1 << self.bits_per_block);
            if block_len_bytes.is_none_or(|len_bytes| u32::try_from(len_bytes).is_err()) {
                return Err(HeaderError::BlockLength { name: field.name.clone(), bits: self.bits_per_block });
            }
        }
        self.others.iter().try_for_each(|(key, value)| text::check_key(key, value))
    }

    /// Returns the text of the `.idx` file.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        let mut put = |key: &str, value: &str| out.push_str(&format!("({key})\n{value}\n"));
        put("version", &self.version.to_string());
        let axis = |axis: usize| format!("{} {}", self.start[axis], self.end[axis] - 1);
        put("box", &(0..self.rank).map(axis).collect::<Vec<_>>().join(" "));
        if is_padded(self.rank, &self.end) {
            put(ALL_AXES, &self.rank.to_string());
        }
        put("fields", &self.fields.iter().map(text::field_text).collect::<Vec<_>>().join("\n+ "));
        put("bits", &self.bitmask.to_string());
        put("bitsperblock", &self.bits_per_block.to_string());
        put("blocksperfile", &self.blocks_per_file.to_string());
        put("interleave block", "0");
        if let Some(time) = &self.time {
            let (from, to) = time.range.map_or(("*".into(), "*".into()), |(a, b)| (a.to_string(), b.to_string()));
            put("time", &format!("{from} {to} {}", time.template.text()));
        }
        put("filename_template", self.files.text());
        self.others.iter().for_each(|(key, value)| put(key, value));
        out
    }

    /// Returns the number of blocks of the power-of-two box, whether stored or not.
    pub fn block_count(&self) -> u64 {
        1 << (self.bitmask.max_level() - self.bits_per_block)
    }

    /// Returns the length of a block of `field` before compression, in bytes.
    pub fn block_len_bytes(&self, field: usize) -> usize {
        self.fields[field].sample.len_bytes() << self.bits_per_block
    }

    /// Returns the samples of `resolution` in the whole box; `None` if there are none.
    pub fn grid(&self, resolution: u32) -> Option<ArrayGrid> {
        ArrayGrid::of_box(&self.bitmask, &self.start, &self.end, resolution)
    }

    /// Returns the most likely order of the samples of `field` in blocks. Headers of PIDX do not name an order, because
    /// PIDX writes HZ order only.
    pub(crate) fn likely_order(&self, field: usize) -> Layout {
        let is_of_pidx = self.others.iter().any(|(key, _)| KEYS_OF_PIDX.contains(&key.as_str()));
        match self.fields[field].named_layout() {
            None if is_of_pidx => Layout::Hz,
            _ => self.fields[field].default_layout(),
        }
    }

    /// Returns the index of the field with this name.
    pub fn field_index(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }
}

fn number<T: std::str::FromStr>(key: &'static str, text: &str) -> Result<T, HeaderError> {
    text.trim().parse().map_err(|_| HeaderError::Number { key, text: text.chars().take(80).collect() })
}

/// Keys that PIDX 6.1 and its predecessors write, but OpenVisus does not.
const KEYS_OF_PIDX: [&str; 2] = ["io mode", "restructure box size"];

/// Key that marks a box of five axes as complete, without PIDX's padding; readers skip unknown keys.
const ALL_AXES: &str = "axes";

/// Returns whether a box of `axes` axes looks like one of PIDX, which has three axes but writes five.
fn is_padded(axes: usize, end: &Point) -> bool {
    axes == MAX_RANK && end[3..] == [1; 2]
}

/// Parses `from to` per axis, both inclusive.
fn read_box(text: &str, bitmask: &Bitmask, has_all_axes: bool) -> Result<(Point, Point, usize), HeaderError> {
    let numbers = text.split_whitespace().map(|word| number::<u64>("box", word)).collect::<Result<Vec<_>, _>>()?;
    let axes = numbers.len() / 2;
    if numbers.len() % 2 == 1 || axes == 0 || axes > MAX_RANK || axes < bitmask.rank() {
        return Err(HeaderError::BoxAxes { numbers: numbers.len(), rank: bitmask.rank() });
    }
    let (mut start, mut end) = ([0; MAX_RANK], [1; MAX_RANK]);
    for (axis, pair) in numbers.chunks(2).enumerate() {
        start[axis] = pair[0];
        end[axis] = pair[1].saturating_add(1);
    }
    if has_all_axes || !is_padded(axes, &end) {
        return Ok((start, end, axes));
    }
    let padding = (bitmask.rank()..axes).rev().take_while(|axis| end[*axis] == 1).count();
    Ok((start, end, axes - padding))
}

fn read_time(text: &str) -> Result<Time, HeaderError> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [from, to, template] = words[..] else {
        return Err(HeaderError::Unsupported { key: "time", value: text.chars().take(80).collect() });
    };
    let range = match (from, to) {
        ("*", "*") => None,
        _ => Some((number("time", from)?, number("time", to)?)),
    };
    Ok(Time { range, template: TimeTemplate::parse(template)? })
}

#[cfg(test)]
mod tests;
