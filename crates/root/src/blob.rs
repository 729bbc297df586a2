//! Decoding of collection blobs into columns: ROOT's serialisation of a collection equals the entry of a branch with a
//! header in front.
//!
//! Classes of experiments are not supported, because blobs come without their descriptions. Invariant: a blob must be
//! consumed completely, except for the zeros with which packed data streams pad words; otherwise decoding fails.

use super::item::Item;
use super::layout;
use super::tree::Leaf;
use super::walk;
use raddle_columns::block::Column;
use raddle_columns::bytes::Bytes;
use raddle_columns::error::UnlocatedError;
use raddle_columns::schema::{Form, Serialization};

/// Maximum number of padding zeros after a blob.
const PADDING: usize = 3;

/// Flag that marks a byte count.
const BYTE_COUNT: u32 = 0x4000_0000;

/// Decoder of the blobs of one class into columns.
#[derive(Debug, Clone)]
pub struct BlobDecoder {
    item: Item,
    form: Form,
    has_front: bool,
    /// Maximum number of zeros after a blob.
    padding: usize,
}

impl BlobDecoder {
    /// Creates a decoder for `class`; returns `None` unless it is a collection of numbers, strings, pairs and
    /// collections.
    pub fn of_class(class: &str, serialization: Serialization) -> Option<Self> {
        let layout = layout::of_collection(class).ok()?;
        let has_front = serialization == Serialization::Root;
        Some(Self { item: layout.item, form: layout.form, has_front, padding: PADDING })
    }

    /// Creates a decoder for the entries of the branch `name`, whose class or title is `class`. Returns `None` unless
    /// it is a collection as in [`BlobDecoder::of_class`], or a single leaf such as `pt[n]/F` of the branch `pt`.
    pub fn of_branch(name: &str, class: &str) -> Option<Self> {
        let Some(leaf) = Leaf::of_title(name, class) else { return Self::of_class(class, Serialization::Basket) };
        let layout = layout::of_leaf(&leaf).ok()?;
        Some(Self { item: layout.item, form: layout.form, has_front: false, padding: 0 })
    }

    /// Returns the form of the decoded columns.
    pub fn form(&self) -> &Form {
        &self.form
    }

    /// Decodes a checked column of blobs.
    ///
    /// # Errors
    /// If a blob does not match its class. Returns its number and its fault.
    pub fn decode(&self, blobs: &Column) -> Result<Column, (u64, UnlocatedError)> {
        let mut column = Column::new(&self.form);
        let Some((offsets, bytes)) = blobs.as_bytes() else { return Ok(column) };
        for (number, pair) in offsets.windows(2).enumerate() {
            let mut blob = Bytes::new(&bytes[pair[0] as usize..pair[1] as usize], 0, "serialised object");
            self.decode_one(&mut blob, &mut column).map_err(|fault| (number as u64, fault))?;
        }
        Ok(column)
    }

    fn decode_one(&self, blob: &mut Bytes<'_>, column: &mut Column) -> Result<(), UnlocatedError> {
        if !self.has_front {
            return walk::read_padded(&self.item, self.padding, blob, &mut column.buffers);
        }
        let count = blob.be_u32()?;
        let len_bytes = (count & !BYTE_COUNT) as usize;
        if count & BYTE_COUNT == 0 || len_bytes < 2 || len_bytes > blob.remaining() {
            return Err(blob.no_object());
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
