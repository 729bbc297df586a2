//! `TRef` and `TRefArray`: numbers of objects that were written elsewhere.
//!
//! Both have custom streamers that their class descriptions do not cover (`TRef.cxx`, `TRefArray.cxx`). Columns have
//! the names that uproot uses. The referenced objects are not looked up.

use super::buffers::push_offset;
use super::key::text_bytes;
use super::object_header::{IS_REFERENCED, ObjectHeader, read_tobject};
use raddle_columns::block::Buffer;
use raddle_columns::bytes::Bytes;
use raddle_columns::error::UnlocatedError;
use raddle_columns::schema::{Field, Form, Number};

/// Bit of a reference to an object with its own UUID.
const HAS_UUID: u32 = 1 << 5;

/// Returns the form of a `TRef`.
pub(super) fn form_of_one() -> Form {
    Form::Record(vec![Field { name: "ref".to_owned(), form: Form::Number(Number::Uint32) }])
}

/// Returns the form of a `TRefArray`.
pub(super) fn form_of_array() -> Form {
    let field = |name: &str, form| Field { name: name.to_owned(), form };
    Form::Record(vec![
        field("fName", Form::String),
        field("fSize", Form::Number(Number::Int32)),
        field("refs", Form::list(Form::Number(Number::Int32))),
    ])
}

/// Reads a `TRef` into a buffer.
pub(super) fn read_one(bytes: &mut Bytes<'_>, buffer: &mut Buffer) -> Result<(), UnlocatedError> {
    let (id, bits) = read_tobject(bytes)?;
    if bits & HAS_UUID != 0 {
        return Err(bytes.unsupported("a reference by UUID"));
    }
    let _process = bytes.be_u16()?;
    push(buffer, id);
    Ok(())
}

/// Reads a `TRefArray` into the buffers of [`form_of_array`].
pub(super) fn read_array(bytes: &mut Bytes<'_>, buffers: &mut [Buffer]) -> Result<(), UnlocatedError> {
    let header = ObjectHeader::read(bytes)?;
    read_tobject(bytes)?;
    let name = text_bytes(bytes)?;
    let count = bytes.be_u32()?;
    let (_first, _process) = (bytes.be_i32()?, bytes.be_u16()?);
    let ids = bytes.take((count as usize).saturating_mul(4))?;
    if header.end.is_some_and(|end| end != bytes.position()) {
        return Err(bytes.damaged(format!("a list of {count} references is not as long as its byte count")));
    }
    let [names, strings, sizes, ends, values, ..] = buffers else { return Ok(()) };
    push_offset(names, name.len() as u64);
    if let Buffer::Values(strings) = strings {
        strings.extend_from_slice(name);
    }
    push(sizes, count);
    push_offset(ends, u64::from(count));
    ids.as_chunks().0.iter().for_each(|id| push(values, u32::from_be_bytes(*id)));
    Ok(())
}

/// Reads the bits of a `TObject` into a buffer.
pub(super) fn read_bits(bytes: &mut Bytes<'_>, buffer: &mut Buffer) -> Result<(), UnlocatedError> {
    let bits = bytes.be_u32()?;
    if bits & IS_REFERENCED != 0 {
        bytes.be_u16()?;
    }
    push(buffer, bits);
    Ok(())
}

fn push(buffer: &mut Buffer, number: u32) {
    if let Buffer::Values(values) = buffer {
        values.extend_from_slice(&number.to_le_bytes());
    }
}
