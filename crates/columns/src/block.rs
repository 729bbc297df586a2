//! Entries as structures of arrays: one column per product, with few allocations however many entries there are.
//!
//! The meaning of the values is not defined here but by the form in the schema. Invariants of a column that
//! [`Column::check`] accepts: offsets begin with 0, never decrease, and end with the number of values below; the buffer
//! above determines the length of every buffer.

use crate::error::{Shape, UnlocatedError};
use crate::event_id::EventId;
use crate::schema::{BufferForm, BufferKind, Form, Number, Schema};
use std::ops::Range;

/// Range of entries of some products.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Block {
    /// Entries of the source that the block holds.
    pub entries: Range<u64>,
    /// Run, subrun and event of each entry; empty if the source does not know them.
    pub ids: Vec<EventId>,
    /// One column per product, in the order in which the products were requested.
    pub columns: Vec<Column>,
}

/// Values of one product in the entries of a block.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Column {
    /// Buffers in the order of [`Form::buffers`].
    pub buffers: Vec<Buffer>,
}

/// One array of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Buffer {
    /// Offsets; see [`BufferKind::Offsets`].
    Offsets(Vec<u64>),
    /// Values, little-endian; see [`BufferKind::Values`].
    Values(Vec<u8>),
}

impl Buffer {
    /// Creates an empty buffer of this kind.
    pub fn new(kind: BufferKind) -> Self {
        match kind {
            BufferKind::Offsets => Self::Offsets(vec![0]),
            BufferKind::Values(_) => Self::Values(Vec::new()),
        }
    }

    /// Returns the length in memory, in bytes.
    pub fn len_bytes(&self) -> usize {
        match self {
            Self::Offsets(offsets) => offsets.len() * size_of::<u64>(),
            Self::Values(bytes) => bytes.len(),
        }
    }
}

impl Column {
    /// Creates a column without entries.
    pub fn new(form: &Form) -> Self {
        Self { buffers: form.buffers().into_iter().map(|BufferForm { kind, .. }| Buffer::new(kind)).collect() }
    }

    /// Creates a column whose entries are zero, or empty where the form allows it.
    pub fn filled(form: &Form, entries: u64) -> Self {
        let mut buffers = Vec::new();
        fill_buffers(form, entries, &mut buffers);
        Self { buffers }
    }

    /// Creates a column of blobs or strings. `offsets` are as in [`BufferKind::Offsets`].
    pub fn of_bytes(offsets: Vec<u64>, bytes: Vec<u8>) -> Self {
        Self { buffers: vec![Buffer::Offsets(offsets), Buffer::Values(bytes)] }
    }

    /// Returns the offsets and bytes of a column of blobs or strings.
    pub fn as_bytes(&self) -> Option<(&[u64], &[u8])> {
        match self.buffers.as_slice() {
            [Buffer::Offsets(offsets), Buffer::Values(bytes)] => Some((offsets, bytes)),
            _ => None,
        }
    }

    /// Appends a blob or string to a column of blobs or strings.
    pub fn push_bytes(&mut self, more: &[u8]) {
        if let [Buffer::Offsets(offsets), Buffer::Values(bytes)] = self.buffers.as_mut_slice() {
            bytes.extend_from_slice(more);
            offsets.push(bytes.len() as u64);
        }
    }

    /// Returns the length in memory, in bytes.
    pub fn len_bytes(&self) -> usize {
        self.buffers.iter().map(Buffer::len_bytes).sum()
    }

    /// Reserves capacity for `factor` times the present contents, if memory allows it.
    fn grow_capacity(&mut self, factor: f64) {
        for buffer in &mut self.buffers {
            // Only a hint: a buffer that is too short grows later.
            let _ = match buffer {
                Buffer::Offsets(offsets) => offsets.try_reserve_exact(more(offsets.len(), factor)),
                Buffer::Values(values) => values.try_reserve_exact(more(values.len(), factor)),
            };
        }
    }

    /// Appends the entries of `later`, a column of the same form.
    ///
    /// # Errors
    /// If `later` has other buffers.
    pub fn append(&mut self, later: &Self) -> Result<(), UnlocatedError> {
        if self.buffers.len() != later.buffers.len() {
            return Err(Shape::Buffers { got: later.buffers.len(), expected: self.buffers.len() }.into());
        }
        for (number, (buffer, more)) in self.buffers.iter_mut().zip(&later.buffers).enumerate() {
            match (buffer, more) {
                (Buffer::Values(bytes), Buffer::Values(more)) => bytes.extend_from_slice(more),
                (Buffer::Offsets(offsets), Buffer::Offsets(more)) => {
                    let base = offsets.last().copied().unwrap_or(0);
                    offsets.extend(more.iter().skip(1).map(|offset| base.wrapping_add(*offset)));
                }
                _ => return Err(Shape::Kind { buffer: number }.into()),
            }
        }
        Ok(())
    }

    /// Returns the values of some entries. The column must have passed [`Column::check`] with at least as many entries.
    pub fn slice(&self, form: &Form, entries: Range<u64>) -> Self {
        let mut buffers = Vec::with_capacity(self.buffers.len());
        slice_buffers(form, entries, &mut self.buffers.iter(), &mut buffers);
        Self { buffers }
    }

    /// Checks that this is a column of `form` with `entries` entries.
    ///
    /// # Errors
    /// If a buffer does not match the form. The error names the buffer and the fault.
    pub fn check(&self, form: &Form, entries: u64) -> Result<(), UnlocatedError> {
        let forms = form.buffers();
        if forms.len() != self.buffers.len() {
            return Err(Shape::Buffers { got: self.buffers.len(), expected: forms.len() }.into());
        }
        let used = check_buffers(form, entries, &self.buffers, 0)?;
        debug_assert_eq!(used, forms.len());
        Ok(())
    }
}

/// Returns how much longer `len` becomes when it is multiplied by `factor`.
fn more(len: usize, factor: f64) -> usize {
    (len as f64 * (factor - 1.0)).max(0.0) as usize
}

/// Appends buffers that hold `values` values, all of them zero or empty.
fn fill_buffers(form: &Form, values: u64, buffers: &mut Vec<Buffer>) {
    let offsets = || Buffer::Offsets(vec![0; values as usize + 1]);
    match form {
        Form::Number(number) => buffers.push(Buffer::Values(vec![0; values as usize * number.len_bytes()])),
        Form::Regular { length, content } => fill_buffers(content, values * length, buffers),
        Form::List(content) => {
            buffers.push(offsets());
            fill_buffers(content, 0, buffers);
        }
        Form::String | Form::Blob(_) => buffers.extend([offsets(), Buffer::Values(Vec::new())]),
        Form::Record(fields) => fields.iter().for_each(|field| fill_buffers(&field.form, values, buffers)),
    }
}

/// Appends the selected `values` of the next buffers to `sliced`.
fn slice_buffers(
    form: &Form,
    values: Range<u64>,
    buffers: &mut std::slice::Iter<'_, Buffer>,
    sliced: &mut Vec<Buffer>,
) {
    let mut bytes = |values: Range<u64>, number_len_bytes: u64, sliced: &mut Vec<Buffer>| {
        if let Some(Buffer::Values(bytes)) = buffers.next() {
            let range = (values.start * number_len_bytes) as usize..(values.end * number_len_bytes) as usize;
            sliced.push(Buffer::Values(bytes[range].to_vec()));
        }
    };
    match form {
        Form::Number(number) => bytes(values, number.len_bytes() as u64, sliced),
        Form::Regular { length, content } => {
            slice_buffers(content, values.start * length..values.end * length, buffers, sliced);
        }
        Form::List(_) | Form::String | Form::Blob(_) => {
            let Some(Buffer::Offsets(offsets)) = buffers.next() else { return };
            let offsets = &offsets[values.start as usize..=values.end as usize];
            let (start, end) = (offsets[0], offsets[offsets.len() - 1]);
            sliced.push(Buffer::Offsets(offsets.iter().map(|offset| offset - start).collect()));
            match form {
                Form::List(content) => slice_buffers(content, start..end, buffers, sliced),
                _ => slice_buffers(&Form::Number(Number::Uint8), start..end, buffers, sliced),
            }
        }
        Form::Record(fields) => {
            fields.iter().for_each(|field| slice_buffers(&field.form, values.clone(), buffers, sliced));
        }
    }
}

/// Checks the buffers of `form`, beginning with number `at`. Returns the number of the buffer after them.
fn check_buffers(form: &Form, values: u64, buffers: &[Buffer], at: usize) -> Result<usize, UnlocatedError> {
    let below = |at: usize| -> Result<u64, UnlocatedError> {
        let Buffer::Offsets(offsets) = &buffers[at] else { return Err(Shape::Kind { buffer: at }.into()) };
        let expected = values.saturating_add(1);
        if offsets.len() as u64 != expected || offsets[0] != 0 {
            return Err(Shape::Length { buffer: at, got: offsets.len() as u64, expected }.into());
        }
        if offsets.windows(2).any(|pair| pair[0] > pair[1]) {
            return Err(Shape::Falling { buffer: at }.into());
        }
        Ok(offsets.last().copied().unwrap_or(0))
    };
    let check_values = |at: usize, values: u64, number_len_bytes: usize| -> Result<(), UnlocatedError> {
        let Buffer::Values(bytes) = &buffers[at] else { return Err(Shape::Kind { buffer: at }.into()) };
        let expected = values.saturating_mul(number_len_bytes as u64);
        match bytes.len() as u64 == expected {
            true => Ok(()),
            false => Err(Shape::Length { buffer: at, got: bytes.len() as u64, expected }.into()),
        }
    };
    match form {
        Form::Number(number) => check_values(at, values, number.len_bytes()).map(|()| at + 1),
        Form::Regular { length, content } => check_buffers(content, values.saturating_mul(*length), buffers, at),
        Form::List(content) => check_buffers(content, below(at)?, buffers, at + 1),
        Form::String | Form::Blob(_) => check_values(at + 1, below(at)?, 1).map(|()| at + 2),
        Form::Record(fields) => fields.iter().try_fold(at, |at, field| check_buffers(&field.form, values, buffers, at)),
    }
}

impl Block {
    /// Creates a block without entries that begins at entry `start`.
    pub fn new(schema: &Schema, start: u64) -> Self {
        let columns = schema.products.iter().map(|product| Column::new(&product.form)).collect();
        Self { entries: start..start, ids: Vec::new(), columns }
    }

    /// Returns the number of entries.
    pub fn len_entries(&self) -> u64 {
        self.entries.end.saturating_sub(self.entries.start)
    }

    /// Returns the length in memory, in bytes.
    pub fn len_bytes(&self) -> usize {
        let columns: usize = self.columns.iter().map(Column::len_bytes).sum();
        columns + self.ids.len() * size_of::<EventId>()
    }

    /// Reserves capacity for `entries` entries of the same size as the present ones.
    pub fn grow_capacity(&mut self, entries: u64) {
        // With a small margin, because the first entries are not exactly like the rest.
        let factor = 1.02 * entries as f64 / self.len_entries().max(1) as f64;
        self.columns.iter_mut().for_each(|column| column.grow_capacity(factor));
    }

    /// Appends the entries of `later`, a block of the same schema that follows this one.
    ///
    /// # Errors
    /// If `later` has other columns.
    pub fn append(&mut self, later: &Self) -> Result<(), UnlocatedError> {
        if self.columns.len() != later.columns.len() {
            return Err(Shape::Columns { got: later.columns.len(), expected: self.columns.len() }.into());
        }
        self.ids.extend_from_slice(&later.ids);
        for (column, more) in self.columns.iter_mut().zip(&later.columns) {
            column.append(more)?;
        }
        self.entries.end += later.len_entries();
        Ok(())
    }

    /// Checks that this is a block of `schema`.
    ///
    /// # Errors
    /// If the block does not match the schema. Returns the first fault found, with the number of the product if the
    /// fault is in a single column.
    pub fn check(&self, schema: &Schema) -> Result<(), (Option<usize>, UnlocatedError)> {
        let entries = self.len_entries();
        if self.columns.len() != schema.products.len() {
            let shape = Shape::Columns { got: self.columns.len(), expected: schema.products.len() };
            return Err((None, shape.into()));
        }
        if !self.ids.is_empty() && self.ids.len() as u64 != entries {
            return Err((None, Shape::Ids { got: self.ids.len() as u64, expected: entries }.into()));
        }
        for (number, (column, product)) in self.columns.iter().zip(&schema.products).enumerate() {
            column.check(&product.form, entries).map_err(|fault| (Some(number), fault))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Field;

    fn tracks() -> Form {
        let hits = Field { name: "hits".to_owned(), form: Form::list(Form::Number(Number::Int16)) };
        let px = Form::Regular { length: 2, content: Box::new(Form::Number(Number::Float32)) };
        Form::list(Form::Record(vec![Field { name: "px".to_owned(), form: px }, hits]))
    }

    fn column() -> Column {
        // Two entries: one of two tracks with 1 and 2 hits, one without.
        Column {
            buffers: vec![
                Buffer::Offsets(vec![0, 2, 2]),
                Buffer::Values(vec![7; 2 * 2 * 4]),
                Buffer::Offsets(vec![0, 1, 3]),
                Buffer::Values(vec![1; 3 * 2]),
            ],
        }
    }

    #[test]
    fn buffers_are_named_and_in_order() {
        let buffers = tracks().buffers();
        let seen: Vec<_> = buffers.iter().map(|buffer| (buffer.path.as_str(), buffer.depth, buffer.kind)).collect();
        let values = BufferKind::Values;
        let expected = [
            ("", 0, BufferKind::Offsets),
            ("px", 1, values(Number::Float32)),
            ("hits", 1, BufferKind::Offsets),
            ("hits", 2, values(Number::Int16)),
        ];
        assert_eq!(seen, expected);
        assert_eq!(tracks().to_string(), r#"var * {"px": 2 * float32, "hits": var * int16}"#);
    }

    #[test]
    fn columns_are_appended_and_checked() {
        let mut twice = column();
        twice.append(&column()).unwrap();
        twice.check(&tracks(), 4).unwrap();
        assert_eq!(twice.buffers[0], Buffer::Offsets(vec![0, 2, 2, 4, 4]));
        assert_eq!(twice.buffers[2], Buffer::Offsets(vec![0, 1, 3, 4, 6]));
        assert_eq!(twice.slice(&tracks(), 2..4), column());
        assert_eq!(twice.slice(&tracks(), 1..1), Column::new(&tracks()));
        let mut empty = Column::new(&tracks());
        empty.check(&tracks(), 0).unwrap();
        empty.append(&column()).unwrap();
        assert_eq!(empty, column());
    }

    #[test]
    fn every_wrong_buffer_is_found() {
        assert!(column().check(&tracks(), 3).is_err());
        let changes: [fn(&mut Column); 5] = [
            |column| column.buffers[0] = Buffer::Offsets(vec![0, 3, 2]),
            |column| column.buffers[0] = Buffer::Offsets(vec![1, 2, 2]),
            |column| column.buffers[1] = Buffer::Values(vec![0; 15]),
            |column| column.buffers[2] = Buffer::Values(vec![]),
            |column| drop(column.buffers.pop()),
        ];
        for change in changes {
            let mut changed = column();
            change(&mut changed);
            assert!(changed.check(&tracks(), 2).is_err());
        }
    }
}
