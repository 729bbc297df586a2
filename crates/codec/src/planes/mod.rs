//! A deflate encoder for shuffled numbers.
//!
//! Shuffled numbers are planes: all first bytes, all second bytes, and so on. The low bytes of measured values are
//! noise, in which a general encoder spends most of its time searching in vain. Planes without repeats are written as
//! blocks of literals, or stored, at several times the rate; they come first in the little-endian order of nearly all
//! data. From the first plane on in which repeats pay off, the rest is left to libdeflate. Repeats of one plane in
//! another are not searched for.
//!
//! Invariant: the output is a zlib stream that any decoder can read; it depends only on the data and the parameters.

mod literals;
mod repeats;

use crate::deflate::ZLIB_HEADER_FASTEST;
use crate::deflate::bits::{Remainder, append};
use crate::element_lz::ElementLzEncoder;
use crate::libdeflate::Deflater;
use literals::Literals;
use raddle_inflate::adler32;
use raddle_inflate::format::ADLER_LEN_BYTES;
use repeats::Sampler;
use std::ops::Range;

/// Minimum length of planes; shorter ones are left to libdeflate, because the headers of blocks would cost too much.
pub(crate) const MIN_PLANE_LEN_BYTES: usize = 4096;

/// Maximum length of a block.
const PIECE_LEN_BYTES: usize = 1 << 17;

/// Maximum length of a stored block of deflate.
const STORED_LEN_BYTES: usize = u16::MAX as usize;

/// Reciprocal of the largest estimated loss, as a share of the total length, at which matches are not searched for.
const LOSS: u64 = 64;

/// Minimum ratio by which a simple search for matches must shorten a piece for it to count as runs.
const RUNS: u64 = 32;

/// Reciprocal of the part of the length of runs that a better search may save.
const SIMPLICITY: u64 = 4;

/// Reciprocal of the part of the literals above which savings by matches require libdeflate.
const MATCHES: u64 = 4;

/// Encoder whose tables are reused.
#[derive(Default)]
pub(crate) struct PlanesEncoder {
    sampler: Sampler,
    matches: ElementLzEncoder,
}

/// A part of a plane that is written without libdeflate.
struct PlanePiece {
    place: Range<usize>,
    form: PieceEncoding,
    /// Estimated savings if libdeflate were used.
    saved_len_bits: u64,
    len_bits: u64,
}

/// Form in which a piece is written.
enum PieceEncoding {
    Stored,
    Literals(Box<Literals>),
    /// Block with matches at any byte.
    Runs,
}

/// Position of the next block in a zlib stream.
struct ZlibCursor<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    remainder: Remainder,
    limit_len_bytes: usize,
}

impl PlanesEncoder {
    /// Appends `data` as one zlib stream of at most `limit_len_bytes`; returns false (and appends nothing) if it does
    /// not fit. `data` consists of planes of `plane_len_bytes` each, and the bytes after the last plane.
    pub(crate) fn encode(
        &mut self,
        data: &[u8],
        plane_len_bytes: usize,
        deflater: &mut Deflater,
        out: &mut Vec<u8>,
        limit_len_bytes: usize,
    ) -> bool {
        let pieces = self.pieces(data, plane_len_bytes, deflater);
        let Some(end) = pieces.last().map(|piece| piece.place.end) else {
            return deflater.deflate(data, out, limit_len_bytes);
        };
        let start = out.len();
        out.extend_from_slice(&ZLIB_HEADER_FASTEST);
        let mut output = ZlibCursor { out, start, remainder: Remainder::default(), limit_len_bytes };
        let fits = pieces.iter().all(|piece| {
            let raw = &data[piece.place.clone()];
            output.append(raw, &piece.form, &mut self.matches, piece.place.end == data.len())
        });
        let fits = fits && (end == data.len() || output.append_deflated(&data[end..], deflater)) && output.end(data);
        if !fits {
            out.truncate(start);
        }
        fits
    }

    /// Returns the first pieces of `data`, up to the first one that requires libdeflate.
    fn pieces(&mut self, data: &[u8], plane_len_bytes: usize, deflater: &mut Deflater) -> Vec<PlanePiece> {
        let places = places(data.len(), plane_len_bytes);
        let mut pieces: Vec<PlanePiece> = places.map_while(|place| self.piece(data, place, deflater)).collect();
        let best_len_bits: u64 = pieces.iter().map(|piece| piece.len_bits - piece.saved_len_bits).sum();
        let mut lost_bits = 0;
        let mut is_affordable = |piece: &PlanePiece| {
            lost_bits += piece.saved_len_bits;
            lost_bits <= best_len_bits / LOSS
        };
        let count = pieces.iter().take_while(|piece| is_affordable(piece)).count();
        pieces.truncate(count);
        pieces
    }

    /// Determines the form of a piece; returns `None` if it needs a general search for matches.
    fn piece(&mut self, data: &[u8], place: Range<usize>, deflater: &mut Deflater) -> Option<PlanePiece> {
        let raw = &data[place.clone()];
        let literals = Literals::new(raw);
        let len_bits = literals.len_bits();
        let saved_len_bits = self.sampler.saved_len_bits(raw, len_bits, deflater);
        // A literal takes at least one bit.
        if RUNS * (len_bits - saved_len_bits) <= 8 * len_bits {
            let len_bits = self.matches.block(raw).len_bits();
            let is_runs = RUNS * len_bits <= 8 * raw.len() as u64;
            return is_runs.then_some(PlanePiece {
                place,
                form: PieceEncoding::Runs,
                saved_len_bits: len_bits / SIMPLICITY,
                len_bits,
            });
        }
        if MATCHES * saved_len_bits > len_bits {
            return None;
        }
        // Stored bytes are just copied by reader and writer, which is worth a little space.
        let stored_len_bits = stored_len_bits(raw.len());
        let is_stored = stored_len_bits <= len_bits + stored_len_bits / 256;
        let form = if is_stored { PieceEncoding::Stored } else { PieceEncoding::Literals(Box::new(literals)) };
        Some(PlanePiece { place, form, saved_len_bits, len_bits })
    }
}

impl ZlibCursor<'_> {
    /// Returns whether there is room for `len_bits` and the checksum after them.
    fn has_room(&self, len_bits: u64) -> bool {
        let len_bytes = (u64::from(self.remainder.count()) + len_bits).div_ceil(8);
        let used_len_bytes = (self.out.len() - self.start + ADLER_LEN_BYTES) as u64;
        len_bytes.saturating_add(used_len_bytes) <= self.limit_len_bytes as u64
    }

    /// Appends a piece; returns false if it does not fit.
    fn append(&mut self, raw: &[u8], form: &PieceEncoding, matches: &mut ElementLzEncoder, is_last: bool) -> bool {
        match form {
            PieceEncoding::Stored => {
                let mut parts = raw.chunks(STORED_LEN_BYTES).peekable();
                while let Some(part) = parts.next() {
                    if !self.has_room(stored_len_bits(part.len())) {
                        return false;
                    }
                    self.append_stored(part, is_last && parts.peek().is_none());
                }
            }
            PieceEncoding::Literals(literals) => {
                if !self.has_room(literals.len_bits()) {
                    return false;
                }
                self.remainder = literals.write(raw, is_last, self.remainder, self.out);
            }
            PieceEncoding::Runs => {
                let block = matches.block(raw);
                if !self.has_room(block.len_bits()) {
                    return false;
                }
                self.remainder = block.write(is_last, self.remainder, self.out);
            }
        }
        true
    }

    /// Appends a stored block, whose length begins at a byte boundary.
    fn append_stored(&mut self, part: &[u8], is_last: bool) {
        append(self.remainder, 3, self.out, |writer| writer.put(u32::from(is_last), 3)).append(self.out);
        self.remainder = Remainder::default();
        let len = part.len() as u16;
        self.out.extend_from_slice(&len.to_le_bytes());
        self.out.extend_from_slice(&(!len).to_le_bytes());
        self.out.extend_from_slice(part);
    }

    /// Appends libdeflate's blocks for the rest, after an empty stored block, because they begin at a byte boundary.
    fn append_deflated(&mut self, rest: &[u8], deflater: &mut Deflater) -> bool {
        if !self.has_room(stored_len_bits(0)) {
            return false;
        }
        self.append_stored(&[], false);
        let used_len_bytes = self.out.len() - self.start + ADLER_LEN_BYTES;
        deflater.deflate_bare(rest, self.out, self.limit_len_bytes - used_len_bytes)
    }

    /// Ends the stream; returns false if it does not fit.
    fn end(&mut self, data: &[u8]) -> bool {
        if !self.has_room(0) {
            return false;
        }
        self.remainder.append(self.out);
        self.out.extend_from_slice(&adler32(data).to_be_bytes());
        true
    }
}

/// Returns the maximum number of bits of a stored block: three, up to seven until the next byte, two lengths and the
/// bytes.
fn stored_len_bits(len_bytes: usize) -> u64 {
    let blocks = len_bytes.div_ceil(STORED_LEN_BYTES).max(1) as u64;
    8 * len_bytes as u64 + blocks * (3 + 7 + 32)
}

/// Splits each plane into pieces of equal length; the last one includes the bytes after the planes.
fn places(len_bytes: usize, plane_len_bytes: usize) -> impl Iterator<Item = Range<usize>> {
    let planes = len_bytes / plane_len_bytes;
    let per_plane = plane_len_bytes.div_ceil(PIECE_LEN_BYTES);
    (0..planes * per_plane).map(move |nth| {
        let begin = |nth: usize| nth / per_plane * plane_len_bytes + nth % per_plane * plane_len_bytes / per_plane;
        begin(nth)..if nth + 1 == planes * per_plane { len_bytes } else { begin(nth + 1) }
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns bytes without repeats that take `values` different values.
    fn noise(len: usize, values: u8, seed: u64) -> Vec<u8> {
        let mut state = seed;
        let next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            // The smaller of two is more often small, like measurement noise.
            let [first, second] = [state >> 56, state >> 40 & 0xff].map(|byte| byte as u8);
            if values == 0 { first } else { first.min(second) % values }
        };
        std::iter::repeat_with(next).take(len).collect()
    }

    /// Returns bytes that change slowly.
    fn walk(len: usize) -> Vec<u8> {
        noise(len, 3, 5)
            .into_iter()
            .scan(0_u8, |sum, step| {
                *sum = sum.wrapping_add(step);
                Some(*sum / 2)
            })
            .collect()
    }

    /// Returns the pieces of the plane and the encoded stream, after checking it with a reference inflater.
    fn encoded(data: &[u8], plane_len_bytes: usize) -> (Vec<PlanePiece>, Vec<u8>) {
        let mut deflater = Deflater::new(3).unwrap();
        let mut encoder = PlanesEncoder::default();
        let pieces = encoder.pieces(data, plane_len_bytes, &mut deflater);
        let mut out = vec![9];
        assert!(encoder.encode(data, plane_len_bytes, &mut deflater, &mut out, 2 * data.len() + 1000));
        let stream = out.split_off(1);
        assert_eq!(miniz_oxide::inflate::decompress_to_vec_zlib(&stream).unwrap(), data);
        (pieces, stream)
    }

    fn letters(pieces: &[PlanePiece]) -> String {
        let letter = |piece: &PlanePiece| match piece.form {
            PieceEncoding::Stored => 's',
            PieceEncoding::Literals(_) => 'l',
            PieceEncoding::Runs => 'r',
        };
        pieces.iter().map(letter).collect()
    }

    #[test]
    fn each_plane_gets_the_form_that_suits_it() {
        const LEN: usize = 10_000;
        let repeated: Vec<u8> = noise(500, 0, 3).repeat(LEN / 500);
        // A repeat that is longer than a sample.
        let far: Vec<u8> = [noise(LEN / 2, 0, 4), noise(LEN / 2, 0, 4)].concat();
        let planes = |planes: &[&[u8]]| {
            let data = planes.concat();
            let (pieces, stream) = encoded(&data, LEN);
            let mut plain = Vec::new();
            assert!(Deflater::new(3).unwrap().deflate(&data, &mut plain, 2 * data.len() + 1000));
            assert!(stream.len() <= plain.len() + plain.len() / 50 + 10, "{} after {}", stream.len(), plain.len());
            letters(&pieces)
        };
        let (even, skewed, zeros) = (noise(LEN, 0, 1), noise(LEN, 40, 2), vec![0; LEN]);
        assert_eq!(planes(&[&even, &skewed, &zeros]), "slr");
        assert_eq!(planes(&[&zeros, &even]), "rs");
        assert_eq!(planes(&[&skewed, &walk(LEN), &zeros]), "l");
        assert_eq!(planes(&[&even, &repeated, &noise(LEN, 0, 9)]), "s");
        assert_eq!(planes(&[&far, &even]), "");
        assert_eq!(planes(&[&walk(LEN), &even]), "");
    }

    #[test]
    fn long_planes_are_cut_and_the_bytes_after_the_planes_belong_to_the_last() {
        for (elements, rest) in [(PIECE_LEN_BYTES, 0), (PIECE_LEN_BYTES + 1, 0), (300_001, 3), (4096, 1)] {
            let data = [noise(elements, 0, 1), noise(elements, 100, 2), vec![7; elements], noise(rest, 0, 3)].concat();
            // The length of a plane is the total length divided by the element length, without the remainder.
            let (pieces, _) = encoded(&data, elements);
            let per_plane = elements.div_ceil(PIECE_LEN_BYTES);
            let expected = ["s".repeat(per_plane), "l".repeat(per_plane), "r".repeat(per_plane)].concat();
            assert_eq!(letters(&pieces), expected, "{elements}");
            assert_eq!(pieces.last().unwrap().place.end, data.len());
            assert!(pieces.windows(2).all(|two| two[0].place.end == two[1].place.start));
        }
    }

    #[test]
    fn what_does_not_fit_leaves_nothing() {
        const LEN: usize = 70_000;
        let forms = [noise(LEN, 0, 1), noise(LEN, 90, 2), vec![1; LEN], walk(LEN)];
        for order in [[0, 1, 2, 3], [2, 0, 1, 3], [1, 2, 3, 0], [0, 2, 1, 1]] {
            let data = order.map(|form| forms[form].as_slice()).concat();
            let (_, stream) = encoded(&data, LEN);
            let mut deflater = Deflater::new(3).unwrap();
            // Every limit at which a block may not fit, and each of the last bytes.
            let limits = (0..stream.len()).step_by(997).chain(stream.len() - 8..stream.len());
            for limit_len_bytes in limits {
                let mut out = vec![9];
                assert!(!PlanesEncoder::default().encode(&data, LEN, &mut deflater, &mut out, limit_len_bytes));
                assert_eq!(out, [9]);
            }
            let mut out = vec![];
            // A stored block must be given its maximum space.
            assert!(PlanesEncoder::default().encode(&data, LEN, &mut deflater, &mut out, stream.len() + 1));
            assert_eq!(out, stream);
        }
    }

    #[test]
    fn a_state_used_before_changes_nothing() {
        let (first, second) = (noise(50_000, 90, 1), [noise(9000, 90, 2), walk(9000)].concat());
        let (mut deflater, mut used) = (Deflater::new(3).unwrap(), PlanesEncoder::default());
        assert!(used.encode(&first, 25_000, &mut deflater, &mut vec![], first.len()));
        let mut out = vec![];
        assert!(used.encode(&second, 9000, &mut deflater, &mut out, second.len()));
        assert_eq!(out, encoded(&second, 9000).1);
    }

    proptest! {
        #[test]
        fn planes_of_any_kind_come_back(
            kinds in proptest::collection::vec((0_u8..6, any::<u64>()), 1..9),
            elements in MIN_PLANE_LEN_BYTES..40_000,
            rest in 0_usize..8,
        ) {
            let mut data: Vec<u8> = kinds.iter().flat_map(|&(kind, seed)| match kind {
                0 => noise(elements, 0, seed),
                1 => noise(elements, 2 + (seed % 250) as u8, seed),
                2 => vec![seed as u8; elements],
                3 => walk(elements),
                4 => noise(1 + (seed % 9000) as usize, 0, seed).into_iter().cycle().take(elements).collect(),
                _ => noise(elements, 0, seed).into_iter().map(|byte| if byte < 250 { 0 } else { byte }).collect(),
            }).collect();
            data.extend(noise(rest.min(kinds.len() - 1), 0, 1));
            encoded(&data, elements);
        }
    }
}
