//! Checksum of HDF5 metadata, and hash of names in indexes: Bob Jenkins' lookup3 (`hashlittle`, public domain).
//!
//! The checksum of raw data is fletcher32, in `raddle-codec`. Invariant: the value equals that of libhdf5 for every
//! byte string.

use super::cursor::Defect;

/// Start value of the three words of state (golden ratio, arbitrary by the algorithm's design).
const SEED: u32 = 0xdead_beef;

/// Computes lookup3 of `bytes` with initial value 0, as HDF5 uses it.
pub fn lookup3(bytes: &[u8]) -> u32 {
    // The algorithm takes the length modulo 2^32.
    let start = SEED.wrapping_add(bytes.len() as u32);
    let (mut a, mut b, mut c) = (start, start, start);
    // The final step mixes the last block, complete or not, so a multiple of 12 leaves a complete block for it.
    let body_len = bytes.len().saturating_sub(1) / 12 * 12;
    let (body, tail) = bytes.split_at(body_len);
    for block in body.chunks_exact(12) {
        a = a.wrapping_add(word(block, 0));
        b = b.wrapping_add(word(block, 4));
        c = c.wrapping_add(word(block, 8));
        a = a.wrapping_sub(c) ^ c.rotate_left(4);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(6);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(8);
        b = b.wrapping_add(a);
        a = a.wrapping_sub(c) ^ c.rotate_left(16);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(19);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(4);
        b = b.wrapping_add(a);
    }
    if tail.is_empty() {
        return c;
    }
    let mut last = [0; 12];
    last[..tail.len()].copy_from_slice(tail);
    a = a.wrapping_add(word(&last, 0));
    b = b.wrapping_add(word(&last, 4));
    c = c.wrapping_add(word(&last, 8));
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    (c ^ b).wrapping_sub(b.rotate_left(24))
}

fn word(block: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
}

/// Checks a structure that ends in its checksum, and returns it without the checksum.
pub(crate) fn verified<'b>(bytes: &'b [u8], address: u64, what: &str) -> Result<&'b [u8], Defect> {
    let Some((body, stored)) = bytes.split_last_chunk::<4>() else {
        return Err(Defect::Malformed { address, what: format!("{what}: too short for its checksum") });
    };
    let (stored, computed) = (u32::from_le_bytes(*stored), lookup3(body));
    if stored != computed {
        let what = format!("{what}: checksum {computed:08x} computed over {} bytes, {stored:08x} stored", body.len());
        return Err(Defect::Malformed { address, what });
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values() {
        // From the self-test in Jenkins' public-domain lookup3.c (hashlittle, initial value 0).
        assert_eq!(lookup3(b""), 0xdead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
    }

    #[test]
    fn every_tail_length_depends_on_every_byte() {
        for len in 1..40_usize {
            let bytes: Vec<u8> = (0..len).map(|i| (i * 37 % 251) as u8).collect();
            let whole = lookup3(&bytes);
            for at in 0..len {
                let mut flipped = bytes.clone();
                flipped[at] ^= 0x10;
                assert_ne!(lookup3(&flipped), whole, "length {len}, byte {at}");
            }
        }
    }

    #[test]
    fn verified_structure() {
        let mut bytes = b"structure".to_vec();
        bytes.extend_from_slice(&lookup3(b"structure").to_le_bytes());
        assert_eq!(verified(&bytes, 9, "test"), Ok(&b"structure"[..]));
        bytes[3] ^= 1;
        assert!(matches!(verified(&bytes, 9, "test"), Err(Defect::Malformed { address: 9, .. })));
        assert!(verified(b"abc", 9, "test").is_err());
    }
}
