//! Blobs of collections as columns: what a tree stores of a collection is, but for a front, what ROOT serialises.
//!
//! Not for classes of experiments: blobs come without descriptions of them. Invariant: a blob is used to its last byte, but
//! for the zeros that packed data streams fill words up with, or is a fault.

use super::item::Item;
use super::layout;
use super::walk;
use crate::block::Column;
use crate::bytes::Bytes;
use crate::error::Fault;
use crate::schema::{Form, Serialization};
use crate::serialized::NO_OBJECT;

/// Most zeros behind a blob.
const PADDING: usize = 3;

/// Set in a byte count.
const BYTE_COUNT: u32 = 0x4000_0000;

/// Makes columns of the blobs of one class.
#[derive(Debug, Clone)]
pub struct BlobDecoder {
    item: Item,
    form: Form,
    has_front: bool,
}

impl BlobDecoder {
    /// A decoder for `class`; `None` unless it is a collection of numbers, texts, pairs and collections.
    pub fn of_class(class: &str, serialization: Serialization) -> Option<Self> {
        let layout = layout::of_collection(class).ok()?;
        Some(Self { item: layout.item, form: layout.form, has_front: serialization == Serialization::Root })
    }

    /// The form of the columns.
    pub fn form(&self) -> &Form {
        &self.form
    }

    /// The column of a column of blobs, which was checked.
    ///
    /// # Errors
    /// With the number of the blob that is not what its class says.
    pub fn decode(&self, blobs: &Column) -> Result<Column, (u64, Fault)> {
        let mut column = Column::new(&self.form);
        let Some((offsets, bytes)) = blobs.as_bytes() else { return Ok(column) };
        for (number, pair) in offsets.windows(2).enumerate() {
            let mut blob = Bytes::new(&bytes[pair[0] as usize..pair[1] as usize], 0, "serialised object");
            self.decode_one(&mut blob, &mut column).map_err(|fault| (number as u64, fault))?;
        }
        Ok(column)
    }

    fn decode_one(&self, blob: &mut Bytes<'_>, column: &mut Column) -> Result<(), Fault> {
        if !self.has_front {
            return walk::read_padded(&self.item, PADDING, blob, &mut column.buffers);
        }
        let count = blob.be_u32()?;
        let len_bytes = (count & !BYTE_COUNT) as usize;
        if count & BYTE_COUNT == 0 || len_bytes < 2 || len_bytes > blob.remaining() {
            return Err(blob.damaged(NO_OBJECT));
        }
        let mut object = blob.part(len_bytes)?;
        let _version = object.be_u16()?;
        walk::read_entry(&self.item, &mut object, &mut column.buffers)?;
        let left = blob.remaining();
        match left <= PADDING && blob.take(left)?.iter().all(|&byte| byte == 0) {
            true => Ok(()),
            false => Err(blob.damaged(format!("{left} bytes of the blob are left"))),
        }
    }
}
