//! Streams of all encoders, their damage, and comparisons of inflaters, for tests.
//!
//! The checksum detects nearly all damage, which would hide what a decoder itself fails to detect. Therefore damaged
//! streams get the checksum of their decoded bytes, and libdeflate must then decode them to the same bytes.

use crate::Inflater;
use crate::error::Result;
use crate::format::ADLER_LEN_BYTES;
use crate::libdeflate::adler32;
use libdeflate_sys as ffi;

/// Pseudo-random number generator.
pub struct Noise(pub u64);

impl Noise {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Returns columns of 4-byte numbers like those of detectors, and bytes of other kinds.
pub fn columns(rows: usize) -> Vec<Vec<u8>> {
    let mut noise = Noise(rows as u64);
    let mut column = |value: &mut dyn FnMut(usize, &mut Noise) -> u32| -> Vec<u8> {
        (0..rows).flat_map(|row| value(row, &mut noise).to_le_bytes()).collect()
    };
    let float = |value: u64| (value as f32 / 7.0).to_bits();
    vec![
        column(&mut |_, _| 11_043),
        column(&mut |_, _| 0),
        column(&mut |row, _| row as u32),
        column(&mut |row, _| 7000 + (row / 5) as u32 * 59),
        column(&mut |_, noise| noise.below(2) as u32),
        column(&mut |_, noise| noise.below(30) as u32),
        column(&mut |_, noise| noise.below(900) as u32),
        column(&mut |_, noise| if noise.below(10) == 0 { noise.below(1000) as u32 } else { -5i32 as u32 }),
        column(&mut |_, noise| float(noise.below(5))),
        column(&mut |_, noise| float(noise.below(200))),
        column(&mut |row, noise| if row % 3 == 0 { float(noise.below(1 << 20)) } else { 0 }),
        column(&mut |_, noise| noise.below(1 << 32) as u32),
        // Words of all lengths: each byte is half as frequent as the previous one.
        column(&mut |_, noise| u32::from_le_bytes([(); 4].map(|()| noise.below(1 << 30).leading_zeros() as u8))),
        // Pairs that count, as 64-bit numbers do: their matches have a single distance.
        column(&mut |row, _| if row % 2 == 0 { row as u32 / 2 } else { 0 }),
        b"the same words, the same words again, and then again the same words. ".repeat(rows.div_ceil(17)),
    ]
}

/// Returns a zlib stream of libdeflate's `level`, 0 to 12.
pub fn deflated(raw: &[u8], level: u8) -> Vec<u8> {
    let mut stored = vec![0; 2 * raw.len() + 64];
    // SAFETY: the compressor is live from the first call to the last and not used after that; both pointers are valid
    // for the lengths passed with them.
    let len_bytes = unsafe {
        let compressor = ffi::libdeflate_alloc_compressor(level.into());
        assert!(!compressor.is_null());
        let (from, to) = (raw.as_ptr().cast(), stored.as_mut_ptr().cast());
        let len_bytes = ffi::libdeflate_zlib_compress(compressor, from, raw.len(), to, stored.len());
        ffi::libdeflate_free_compressor(compressor);
        len_bytes
    };
    assert!(len_bytes > 0);
    stored.truncate(len_bytes);
    stored
}

/// Returns all columns encoded by all encoders, with their contents.
pub fn streams(rows: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut streams = Vec::new();
    for raw in columns(rows) {
        for level in 0..=9 {
            streams.push((miniz_oxide::deflate::compress_to_vec_zlib(&raw, level), raw.clone()));
        }
        for level in [0, 1, 3, 6, 9, 12] {
            streams.push((deflated(&raw, level), raw.clone()));
        }
    }
    streams
}

/// Inflates a stream with libdeflate alone.
pub fn by_libdeflate(inflater: &mut Inflater, stored: &[u8], out: &mut [u8]) -> Result<usize> {
    inflater.libdeflate.inflate(stored, out).map(|(_, produced)| produced)
}

/// Reference decoders: libdeflate, and the shipped inflater, which tries our own decoders first.
pub struct ReferenceInflaters {
    reference: Inflater,
    shipped: Inflater,
}

impl ReferenceInflaters {
    pub fn new() -> Self {
        let inflater = || Inflater::new().unwrap();
        Self { reference: inflater(), shipped: inflater() }
    }

    /// Compares one of our inflaters with both references on one stream; returns whether it decoded the stream.
    pub fn compare(
        &mut self,
        stored: &[u8],
        limit_len_bytes: usize,
        by_libdeflate: fn(&mut Inflater, &[u8], &mut [u8]) -> Result<usize>,
        by_own: impl FnOnce(&mut [u8]) -> Option<usize>,
    ) -> bool {
        let [mut expected, mut actual, mut shipped] = [(); 3].map(|()| vec![0xee; limit_len_bytes]);
        let verdict = by_libdeflate(&mut self.reference, stored, &mut expected);
        let own = by_own(&mut actual);
        if let Some(produced) = own {
            assert_eq!(verdict, Ok(produced), "{stored:02x?}");
            assert_eq!(actual[..produced], expected[..produced], "{stored:02x?}");
        }
        // The error of a truncated stream depends on the bytes that libdeflate finds after it, but the failure does
        // not.
        assert_eq!(self.shipped.inflate(stored, &mut shipped).ok(), verdict.ok(), "{stored:02x?}");
        if let Ok(produced) = verdict {
            assert_eq!(shipped[..produced], expected[..produced], "{stored:02x?}");
        }
        own.is_some()
    }
}

/// One of our inflaters, with its reference decoders.
pub trait TestedInflater {
    /// Compares on one stream; returns whether the inflater decoded it.
    fn compare(&mut self, stored: &[u8], limit_len_bytes: usize) -> bool;

    /// Returns the inflater's output before it checks the checksum, and the checksum's position.
    fn unsummed(&mut self, stored: &[u8], limit_len_bytes: usize) -> Option<(Vec<u8>, usize)>;

    /// Compares on a damaged stream, then again with a checksum that hides the damage; returns whether that was
    /// inflated.
    fn compare_damaged(&mut self, damaged: &mut [u8], limit_len_bytes: usize) -> bool {
        self.compare(damaged, limit_len_bytes);
        let Some((inflated, sum_at)) = self.unsummed(damaged, limit_len_bytes) else { return false };
        let Some(sum) = damaged.get_mut(sum_at..).and_then(|rest| rest.get_mut(..ADLER_LEN_BYTES)) else {
            return false;
        };
        sum.copy_from_slice(&adler32(&inflated).to_be_bytes());
        self.compare(damaged, limit_len_bytes)
    }

    /// Compares on a stream with a byte replaced by each of several values, and truncated there. Returns how often it
    /// was inflated nevertheless. `room_len_bytes` leaves room for a damaged length.
    fn compare_damage_at(
        &mut self,
        stored: &[u8],
        at: usize,
        values: &[u8],
        raw_len_bytes: usize,
        room_len_bytes: usize,
    ) -> usize {
        let mut inflated_anyway = 0;
        for &value in values {
            for limit_len_bytes in [raw_len_bytes, raw_len_bytes + room_len_bytes] {
                let mut damaged = stored.to_vec();
                damaged[at] = value;
                let was_inflated = self.compare_damaged(&mut damaged, limit_len_bytes);
                inflated_anyway += usize::from(was_inflated && limit_len_bytes == raw_len_bytes);
            }
        }
        let mut cut = stored[..at].to_vec();
        assert!(!self.compare(&cut, raw_len_bytes));
        self.compare_damaged(&mut cut, raw_len_bytes);
        inflated_anyway
    }
}

/// Returns replacements for a value.
pub fn damaged_values(value: u8) -> [u8; 4] {
    [value ^ 1, value ^ 0x10, !value, value.wrapping_add(1)]
}
