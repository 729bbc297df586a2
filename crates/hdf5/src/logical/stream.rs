//! Streams of canonical bytes: splits them into elements, and shifts region references to the new rows.
//!
//! Invariant: reads never pass the end of a stream; functions return `None` for a stream that is truncated or
//! contradicts the type.

use super::NULL_STRING;
use super::selection::{ALL, BLOCKS, NONE, POINTS};
use crate::model::{ReferenceKind, TypeClass};

/// Mapping of the rows of an input's dataset to those of the output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowShift {
    /// First row in the output.
    pub row_offset: u64,
    /// Extent in the input.
    pub input_dims: Vec<u64>,
    /// Number of rows in the output.
    pub output_rows: u64,
}

/// Returns the length of the first element of `class` in `canonical`, or `None` if it is truncated.
pub fn element_len_bytes(class: &TypeClass, canonical: &[u8]) -> Option<usize> {
    let mut stream = Stream { bytes: canonical, at: 0 };
    stream.element(class, &mut |_| Some(()))?;
    Some(stream.at)
}

/// Appends the canonical bytes of an element that was never written: zeros, null strings and references, empty
/// sequences.
pub fn append_null(class: &TypeClass, out: &mut Vec<u8>) {
    match class {
        class if !class.is_file_local() => out.resize(out.len() + class.len_bytes() as usize, 0),
        TypeClass::Compound { members, .. } => members.iter().for_each(|member| append_null(&member.class, out)),
        TypeClass::Array { base, dims } => {
            (0..dims.iter().map(|&dim| u64::from(dim)).product::<u64>()).for_each(|_| append_null(base, out));
        }
        TypeClass::VariableString { .. } => out.extend_from_slice(&NULL_STRING.to_le_bytes()),
        _ => out.extend_from_slice(&[0; 8]),
    }
}

/// Elements of a canonical stream, one slice each. Yields `None` in place of a truncated element, and then ends.
#[derive(Debug, Clone)]
pub struct CanonicalElements<'a> {
    class: &'a TypeClass,
    rest: &'a [u8],
}

impl<'a> CanonicalElements<'a> {
    /// Creates an iterator over the elements of `class` in `canonical`.
    pub fn new(class: &'a TypeClass, canonical: &'a [u8]) -> Self {
        Self { class, rest: canonical }
    }
}

impl<'a> Iterator for CanonicalElements<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        // An element of zero bytes would be yielded forever.
        let Some(len) = element_len_bytes(self.class, self.rest).filter(|&len| len > 0) else {
            self.rest = &[];
            return Some(None);
        };
        let (element, rest) = self.rest.split_at(len);
        self.rest = rest;
        Some(Some(element))
    }
}

/// Rewrites the region references in `canonical` (elements of `class`) for an output in which datasets were
/// concatenated. Coordinates of the first dimension are shifted by the offset that `row_shift` returns for the
/// dataset's path. A selection of all elements becomes a block of the input's rows, unless the output has no other
/// rows. References to paths without a shift are unchanged.
///
/// Returns `None` if the stream is truncated or a coordinate would overflow.
pub fn shift_regions(
    class: &TypeClass,
    canonical: &[u8],
    row_shift: &dyn Fn(&[u8]) -> Option<RowShift>,
) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(canonical.len());
    let mut copied = 0;
    let mut stream = Stream { bytes: canonical, at: 0 };
    while stream.at < canonical.len() {
        let before = stream.at;
        stream.element(class, &mut |region| {
            let Some(shift) = row_shift(region.path) else { return Some(()) };
            out.extend_from_slice(&canonical[copied..region.start]);
            copied = region.end;
            region.shifted(&shift, &mut out)
        })?;
        if stream.at == before {
            return None;
        }
    }
    out.extend_from_slice(&canonical[copied..]);
    Some(out)
}

/// Selection of a region reference in a stream.
struct Region<'a> {
    path: &'a [u8],
    /// Start and end of the selection in the stream.
    start: usize,
    end: usize,
    kind: u8,
    rank: usize,
    count: u64,
    /// Coordinates of all points or blocks.
    coordinates: &'a [u8],
}

impl Region<'_> {
    /// Appends the shifted selection.
    fn shifted(&self, shift: &RowShift, out: &mut Vec<u8>) -> Option<()> {
        let head = |kind: u8, count: u64, out: &mut Vec<u8>| {
            out.push(kind);
            out.extend_from_slice(&(self.rank as u32).to_le_bytes());
            out.extend_from_slice(&count.to_le_bytes());
        };
        let is_whole = shift.row_offset == 0 && shift.input_dims.first() == Some(&shift.output_rows);
        if self.kind == ALL && !is_whole && !shift.input_dims.is_empty() {
            if shift.input_dims.contains(&0) {
                head(NONE, 0, out);
                return Some(());
            }
            head(BLOCKS, 1, out);
            let mut first = vec![0; shift.input_dims.len()];
            first[0] = shift.row_offset;
            first.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
            for (first, dim) in first.iter().zip(&shift.input_dims) {
                out.extend_from_slice(&first.checked_add(dim - 1)?.to_le_bytes());
            }
            return Some(());
        }
        head(self.kind, self.count, out);
        // Points and corners of blocks have the same form: `rank` numbers, the row first.
        for corner in self.coordinates.chunks_exact(8 * self.rank.max(1)) {
            let (row, others) = corner.split_first_chunk::<8>()?;
            let row = u64::from_le_bytes(*row).checked_add(shift.row_offset)?;
            out.extend_from_slice(&row.to_le_bytes());
            out.extend_from_slice(others);
        }
        Some(())
    }
}

/// Position in a canonical stream.
struct Stream<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Stream<'a> {
    /// Skips one element of `class`, calling `region` for each region reference that is not null.
    fn element(&mut self, class: &TypeClass, region: &mut dyn FnMut(Region<'a>) -> Option<()>) -> Option<()> {
        if !class.is_file_local() {
            return self.take(class.len_bytes()).map(drop);
        }
        match class {
            TypeClass::VariableString { .. } => match self.number()? {
                NULL_STRING => Some(()),
                len => self.take(len).map(drop),
            },
            TypeClass::Reference(ReferenceKind::Object) => {
                let len = self.number()?;
                self.take(len).map(drop)
            }
            TypeClass::Sequence { base, .. } => {
                let count = self.number()?;
                self.items(base, count, region)
            }
            TypeClass::Compound { members, .. } => {
                members.iter().try_for_each(|member| self.element(&member.class, region))
            }
            TypeClass::Array { base, dims } => {
                let count = dims.iter().try_fold(1_u64, |count, &dim| count.checked_mul(u64::from(dim)))?;
                self.items(base, count, region)
            }
            TypeClass::Reference(ReferenceKind::Region) => self.region(region),
            _ => None,
        }
    }

    fn items(&mut self, class: &TypeClass, count: u64, region: &mut dyn FnMut(Region<'a>) -> Option<()>) -> Option<()> {
        if !class.is_file_local() {
            return self.take(count.checked_mul(class.len_bytes())?).map(drop);
        }
        // Every file-local item takes at least one byte, so there cannot be more items than bytes.
        if count > (self.bytes.len() - self.at) as u64 {
            return None;
        }
        (0..count).try_for_each(|_| self.element(class, region))
    }

    fn region(&mut self, visit: &mut dyn FnMut(Region<'a>) -> Option<()>) -> Option<()> {
        let path_len = self.number()?;
        let path = self.take(path_len)?;
        if path.is_empty() {
            return Some(());
        }
        let start = self.at;
        let kind = self.take(1)?[0];
        let rank = u32::from_le_bytes(self.take(4)?.try_into().ok()?) as usize;
        let count = self.number()?;
        let each = match kind {
            POINTS => rank as u64,
            BLOCKS => 2 * rank as u64,
            _ => 0,
        };
        let coordinates = self.take(count.checked_mul(each)?.checked_mul(8)?)?;
        visit(Region { path, start, end: self.at, kind, rank, count, coordinates })
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn take(&mut self, len: u64) -> Option<&'a [u8]> {
        let end = usize::try_from(len).ok()?.checked_add(self.at)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }
}
