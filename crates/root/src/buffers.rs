//! Appending to the buffers of columns: ends of lists, and numbers as files store them.
//!
//! Invariant: numbers in buffers are little-endian.

use super::double32::Packing;
use raddle_columns::block::Buffer;
use raddle_columns::schema::Number;

/// Appends the end of a list of `values` values.
pub(super) fn push_offset(buffer: &mut Buffer, values: u64) {
    if let Buffer::Offsets(offsets) = buffer {
        let last = offsets.last().copied().unwrap_or(0);
        offsets.push(last + values);
    }
}

/// Appends big-endian numbers as little-endian ones.
pub(super) fn push_numbers(number: Number, stored: &[u8], buffer: &mut Buffer) {
    /// Length of a piece: a multiple of every number's length, and short enough for the copied bytes to be still in the
    /// nearest cache when they are byte-swapped, so that memory is traversed once.
    const AT_ONCE_LEN_BYTES: usize = 8 << 10;
    let Buffer::Values(values) = buffer else { return };
    values.reserve(stored.len());
    for part in stored.chunks(AT_ONCE_LEN_BYTES) {
        let start = values.len();
        values.extend_from_slice(part);
        to_little_endian(number, &mut values[start..]);
    }
}

/// Appends packed numbers in their form in memory.
pub(super) fn push_packed(number: Number, packing: Packing, stored: &[u8], buffer: &mut Buffer) {
    let Buffer::Values(values) = buffer else { return };
    let numbers = stored.chunks_exact(packing.len_bytes()).map(|stored| packing.value(stored));
    match number {
        Number::Float32 => numbers.for_each(|value| values.extend_from_slice(&(value as f32).to_le_bytes())),
        _ => numbers.for_each(|value| values.extend_from_slice(&value.to_le_bytes())),
    }
}

/// Converts big-endian numbers to little-endian ones.
pub(super) fn to_little_endian(number: Number, numbers: &mut [u8]) {
    match number.len_bytes() {
        2 => reverse::<2>(numbers),
        4 => reverse::<4>(numbers),
        8 => reverse::<8>(numbers),
        // For bytes that hold booleans, any value other than 0 is true.
        _ if number == Number::Bool => numbers.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0)),
        _ => {}
    }
}

fn reverse<const LEN: usize>(bytes: &mut [u8]) {
    bytes.as_chunks_mut::<LEN>().0.iter_mut().for_each(|number| number.reverse());
}
