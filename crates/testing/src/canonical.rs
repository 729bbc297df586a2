//! Values in canonical bytes: self-delimiting, and independent of where a file stores things.
//!
//! Fixed types are kept as stored. A variable-length string is its length (u64, little-endian) and bytes; a null string
//! is the maximum length without bytes. A sequence is a count and its items. A compound or array with such parts is its
//! parts in order. An object reference is the length and bytes of a path (0: null). A region reference is the same,
//! followed by a selection: kind (0 none, 1 points, 2 blocks, 3 all), rank (u32), count (u64), coordinates (u64; the
//! first corner of a block, then its last, inclusive).
//!
//! Independent of `raddle_hdf5::logical`, which tests check against this code.

use raddle_hdf5::model::{ReferenceKind, TypeClass};

/// Selection of a region reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// No elements.
    None,
    /// Points, each of the dataset's rank.
    Points(Vec<Vec<u64>>),
    /// Boxes by first and last corner, inclusive.
    Blocks(Vec<(Vec<u64>, Vec<u64>)>),
    /// All elements.
    All,
}

/// Length that stands for a null string.
const NULL_STRING: u64 = u64::MAX;

/// Cursor that reads canonical bytes from the front.
#[derive(Debug, Clone)]
pub struct Cursor<'b> {
    bytes: &'b [u8],
}

impl<'b> Cursor<'b> {
    /// Creates a cursor at the first byte.
    pub fn new(bytes: &'b [u8]) -> Self {
        Self { bytes }
    }

    /// Returns the remaining bytes.
    pub fn rest(&self) -> &'b [u8] {
        self.bytes
    }

    /// Returns the next `len_bytes` bytes.
    ///
    /// # Panics
    /// If fewer bytes remain: the stream is read with a wrong type, which is a mistake of the test.
    pub fn take(&mut self, len_bytes: usize) -> &'b [u8] {
        let (taken, rest) = self.bytes.split_at(len_bytes);
        self.bytes = rest;
        taken
    }

    /// Returns the next number.
    ///
    /// # Panics
    /// If the stream ends.
    pub fn number(&mut self) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(self.take(8));
        u64::from_le_bytes(bytes)
    }

    /// Returns bytes preceded by their length.
    ///
    /// # Panics
    /// If the stream ends.
    pub fn sized(&mut self) -> &'b [u8] {
        let len_bytes = self.number();
        self.take(usize::try_from(len_bytes).expect("a length that this stream holds"))
    }

    /// Returns the next variable-length string, `None` for a null one.
    ///
    /// # Panics
    /// If the stream ends.
    pub fn string(&mut self) -> Option<&'b [u8]> {
        if self.clone().number() != NULL_STRING {
            return Some(self.sized());
        }
        self.number();
        None
    }

    /// Returns the selection after the path of a region reference that is not null.
    ///
    /// # Panics
    /// If the stream ends or has an unknown kind.
    pub fn selection(&mut self) -> Selection {
        let kind = self.take(1)[0];
        let mut rank = [0; 4];
        rank.copy_from_slice(self.take(4));
        let rank = u32::from_le_bytes(rank) as usize;
        let count = self.number();
        let mut point = || (0..rank).map(|_| self.number()).collect::<Vec<u64>>();
        match kind {
            0 => Selection::None,
            1 => Selection::Points((0..count).map(|_| point()).collect()),
            2 => Selection::Blocks((0..count).map(|_| (point(), point())).collect()),
            3 => Selection::All,
            other => panic!("selection kind {other}"),
        }
    }
}

/// Appends a length and bytes.
pub fn push_sized(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Appends a variable-length string, `None` for a null one.
pub fn push_string(text: Option<&[u8]>, out: &mut Vec<u8>) {
    match text {
        Some(text) => push_sized(text, out),
        None => out.extend_from_slice(&NULL_STRING.to_le_bytes()),
    }
}

/// Appends a region reference; `rank` is the rank of the dataset at `path`.
pub fn push_region(path: &[u8], rank: usize, selection: &Selection, out: &mut Vec<u8>) {
    push_sized(path, out);
    let (kind, count) = match selection {
        Selection::None => (0, 0),
        Selection::Points(points) => (1, points.len()),
        Selection::Blocks(blocks) => (2, blocks.len()),
        Selection::All => (3, 0),
    };
    out.push(kind);
    out.extend_from_slice(&(rank as u32).to_le_bytes());
    out.extend_from_slice(&(count as u64).to_le_bytes());
    let mut push_point = |point: &[u64]| point.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
    match selection {
        Selection::Points(points) => points.iter().for_each(|point| push_point(point)),
        Selection::Blocks(blocks) => blocks.iter().for_each(|(first, last)| {
            push_point(first);
            push_point(last);
        }),
        Selection::None | Selection::All => {}
    }
}

/// Copies one element, adding `row_offset(path)` to the axis-0 coordinates of region references.
///
/// # Panics
/// If the stream is not of this type.
pub fn copy_shifted(class: &TypeClass, from: &mut Cursor<'_>, row_offset: &dyn Fn(&[u8]) -> u64, out: &mut Vec<u8>) {
    if !class.is_file_local() {
        out.extend_from_slice(from.take(class.len_bytes() as usize));
        return;
    }
    match class {
        TypeClass::VariableString { .. } => push_string(from.string(), out),
        TypeClass::Reference(ReferenceKind::Object) => push_sized(from.sized(), out),
        TypeClass::Sequence { base, .. } => {
            let count = from.number();
            out.extend_from_slice(&count.to_le_bytes());
            (0..count).for_each(|_| copy_shifted(base, from, row_offset, out));
        }
        TypeClass::Compound { members, .. } => {
            members.iter().for_each(|member| copy_shifted(&member.class, from, row_offset, out));
        }
        TypeClass::Array { base, dims } => {
            let count: u32 = dims.iter().product();
            (0..count).for_each(|_| copy_shifted(base, from, row_offset, out));
        }
        TypeClass::Reference(ReferenceKind::Region) => {
            let path = from.sized();
            if path.is_empty() {
                return push_sized(path, out);
            }
            let offset = row_offset(path);
            let shift = |mut point: Vec<u64>| {
                point[0] += offset;
                point
            };
            let start = from.rest();
            let mut selection = from.selection();
            let mut rank = [0; 4];
            rank.copy_from_slice(&start[1..5]);
            match &mut selection {
                Selection::Points(points) => points.iter_mut().for_each(|point| *point = shift(std::mem::take(point))),
                Selection::Blocks(blocks) => blocks.iter_mut().for_each(|(first, last)| {
                    *first = shift(std::mem::take(first));
                    *last = shift(std::mem::take(last));
                }),
                Selection::None | Selection::All => {}
            }
            push_region(path, u32::from_le_bytes(rank) as usize, &selection, out);
        }
        other => panic!("no canonical bytes are defined for {other:?}"),
    }
}
