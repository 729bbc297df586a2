//! Damage for the tests of parsers: all truncations, and several changes of every byte, of a valid structure.

use super::cursor::{Cursor, Defect, Encoding};
use std::iter::repeat;

/// Address at which test structures pretend to lie.
pub(crate) const ADDRESS: u64 = 0x1000;

/// Encoding of addresses and lengths in modern files.
pub(crate) const WIDE: Encoding = Encoding { base: 0, address_len_bytes: 8, length_len_bytes: 8 };

/// Encodes little-endian fields from the value and length of each (beyond 8 bytes, followed by zeros).
pub(crate) fn le(fields: &[(u64, usize)]) -> Vec<u8> {
    fields.iter().flat_map(|(value, len)| value.to_le_bytes().into_iter().chain(repeat(0)).take(*len)).collect()
}

/// Checks a parser on `valid` bytes, all of which it needs: it must accept them, refuse every truncation, and not panic
/// on any change of a byte, and each defect must lie in the structure. Returns the result for the valid bytes.
pub(crate) fn check<T>(valid: &[u8], parse: impl Fn(Cursor<'_>) -> Result<T, Defect>) -> T {
    let run = |bytes: &[u8]| {
        let result = parse(Cursor::new(bytes, ADDRESS, "test structure"));
        if let Err(Defect::Malformed { address, what } | Defect::Unsupported { address, what }) = &result {
            let inside = ADDRESS..=ADDRESS + bytes.len() as u64;
            assert!(inside.contains(address), "{what}: address {address:#x} is outside");
            assert!(!what.is_empty());
        }
        result
    };
    for len in 0..valid.len() {
        assert!(run(&valid[..len]).is_err(), "{len} of {} bytes are accepted", valid.len());
    }
    let mut damaged = valid.to_vec();
    for at in 0..valid.len() {
        for value in [0, 1, 0x7f, 0x80, 0xff, valid[at] ^ 1, valid[at] ^ 0x10, valid[at].wrapping_add(1)] {
            damaged[at] = value;
            // The result does not matter: only that nothing panics and that a defect lies inside, which `run` checks.
            let _ = run(&damaged);
        }
        damaged[at] = valid[at];
    }
    match run(valid) {
        Ok(parsed) => parsed,
        Err(defect) => panic!("{defect}"),
    }
}
