//! Unpredictable values that are reproducible from keys.

use raddle_core::random::Random;

/// Draws `len` bytes from `keys`.
pub(super) fn bytes(keys: &[u64], len: usize) -> Vec<u8> {
    let mut random = Random::of(keys);
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        bytes.extend_from_slice(&random.bits().to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}
