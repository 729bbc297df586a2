//! A source that presents the collection blobs of another source in another serialisation.
//!
//! An entry of a branch that holds a collection has the serialisation that the framework calls unrolled. ROOT's own
//! serialisation puts a byte count and the version of the class's streamer in front of it. Collections that already
//! have the wanted serialisation are passed on unchanged. So are other classes, whose prefixes depend on their class
//! descriptions. The zeros with which packed data streams pad words are removed.

use crate::sources::map::{MapSource, Recode};
use raddle_columns::block::Column;
use raddle_columns::error::UnlocatedError;
use raddle_columns::schema::{Form, Product, Serialization};
use raddle_columns::source::Source;
use raddle_root::is_collection;

/// Source with serialised collections.
pub type SerializingSource = MapSource<Reserialize>;

/// Recoder that changes the serialisation of a collection's blobs.
#[derive(Debug, Clone, Copy)]
pub struct Reserialize {
    stored: Serialization,
    wanted: Serialization,
}

/// Flag that marks a byte count.
const BYTE_COUNT: u32 = 0x4000_0000;

/// Length of byte count and version.
const FRONT_LEN_BYTES: usize = 6;

/// Version that ROOT writes for collections.
const COLLECTION_VERSION: u16 = 6;

impl SerializingSource {
    /// Serialises the collections of `inner`.
    pub fn new(inner: Box<dyn Source>, wanted: Serialization) -> Self {
        Self::with(inner, |product: &mut Product| {
            let Form::Blob(stored) = product.form else { return None };
            let changes = stored != wanted && is_collection(&product.class);
            changes.then(|| {
                product.form = Form::Blob(wanted);
                Reserialize { stored, wanted }
            })
        })
    }
}

impl Recode for Reserialize {
    fn growth_len_bytes(&self) -> u64 {
        FRONT_LEN_BYTES as u64
    }

    fn recode(&self, column: &Column) -> Result<Column, (u64, UnlocatedError)> {
        let Some((offsets, bytes)) = column.as_bytes() else { return Ok(column.clone()) };
        let (mut new_offsets, mut new_bytes) = (vec![0], Vec::with_capacity(bytes.len()));
        for (number, pair) in offsets.windows(2).enumerate() {
            let blob = &bytes[pair[0] as usize..pair[1] as usize];
            push(blob, self.stored, self.wanted, &mut new_bytes).map_err(|fault| (number as u64, fault))?;
            new_offsets.push(new_bytes.len() as u64);
        }
        Ok(Column::of_bytes(new_offsets, new_bytes))
    }
}

/// Appends a blob of serialisation `stored` to `out` in serialisation `wanted`.
fn push(blob: &[u8], stored: Serialization, wanted: Serialization, out: &mut Vec<u8>) -> Result<(), UnlocatedError> {
    let damaged =
        |what: &str| UnlocatedError::Damaged { address: 0, structure: "serialised object", what: what.to_owned() };
    let no_object = || UnlocatedError::NoObject { address: 0, structure: "serialised object" };
    let entry = if stored == Serialization::Root {
        let whole = counted(blob).ok_or_else(no_object)?;
        whole.get(FRONT_LEN_BYTES..).ok_or_else(|| damaged("it ends within its header"))?
    } else {
        // A collection has its own byte count.
        counted(blob).ok_or_else(no_object)?
    };
    if wanted == Serialization::Root {
        let len_bytes = u32::try_from(entry.len() + FRONT_LEN_BYTES - 4).ok().filter(|len| *len < BYTE_COUNT);
        let len_bytes = len_bytes.ok_or_else(|| damaged("it is too long for a byte count"))?;
        out.extend_from_slice(&(BYTE_COUNT | len_bytes).to_be_bytes());
        out.extend_from_slice(&COLLECTION_VERSION.to_be_bytes());
    }
    out.extend_from_slice(entry);
    Ok(())
}

/// Returns the bytes covered by the byte count at their front, including the count itself.
fn counted(bytes: &[u8]) -> Option<&[u8]> {
    let count = u32::from_be_bytes(*bytes.first_chunk()?);
    let len_bytes = (count & BYTE_COUNT != 0).then_some((count & !BYTE_COUNT) as usize)?;
    bytes.get(..len_bytes.checked_add(4)?)
}
