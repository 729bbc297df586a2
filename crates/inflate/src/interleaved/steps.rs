//! Decoding steps for words that need a single look-up, in one stream or in two interleaved ones. Bounds are checked
//! once for several steps.
//!
//! All unsafe memory access of the inflater is here. Invariant: nothing is read outside of a lane's stream and its
//! decoded output, and nothing is written outside of its output; for the proof, see [`Head::step`].

use super::lane::{Lane, MIN_HELD_BITS, Position, WORD_LEN_BYTES};
use super::table::{JointTable, LONG_MATCH_BITS, LengthDistanceEntry, LongMatch, STEP_BITS, STEP_LEN_BYTES};
use crate::format::{MAX_DISTANCE, MAX_MATCH};

/// Number of steps between two refills, for which the bits suffice.
const STEPS: usize = 2;
const _: () = {
    assert!(STEPS * STEP_BITS <= MIN_HELD_BITS as usize);
    assert!(LONG_MATCH_BITS <= MIN_HELD_BITS as usize);
};

/// Maximum number of bytes that a step may write: the longest match, and the excess of the last copy.
const STEP_ROOM_LEN_BYTES: usize = MAX_MATCH.next_multiple_of(STEP_LEN_BYTES);
const STEPS_ROOM_LEN_BYTES: usize = STEPS * STEP_ROOM_LEN_BYTES;

/// Maximum number of bytes that the steps between two refills may read: that refill, and two for each long match, each
/// of which advances by at most 7 bytes.
const STEPS_READ_LEN_BYTES: usize = WORD_LEN_BYTES + 2 * STEPS * 7;

/// Takes steps of one lane, or of two interleaved, as long as the words are known and there is room for any. Returns
/// the index of the lane for which that ended.
///
/// While one lane waits for memory, the steps of the other are executed.
#[target_feature(enable = "bmi1,bmi2,avx2")]
pub(super) fn steps<const LANES: usize>(lanes: [(&mut Lane<'_>, &JointTable); LANES]) -> usize {
    let is_early = lanes.iter().any(|(lane, _)| lane.at.produced < MAX_DISTANCE);
    let is_literal = LANES > 1 && lanes.iter().all(|(_, table)| table.is_literal());
    match (is_early, is_literal) {
        (true, true) => steps_within::<LANES, true, true>(lanes),
        (true, false) => steps_within::<LANES, true, false>(lanes),
        (false, true) => steps_within::<LANES, false, true>(lanes),
        (false, false) => steps_within::<LANES, false, false>(lanes),
    }
}

/// Takes the steps for one combination of conditions.
///
/// With `EARLY`, distances may extend beyond the front of an output. With `LITERAL`, nearly all words are literals, so
/// that a branch is well predicted and costs less than the common path of all steps.
#[target_feature(enable = "bmi1,bmi2,avx2")]
fn steps_within<const LANES: usize, const EARLY: bool, const LITERAL: bool>(
    mut lanes: [(&mut Lane<'_>, &JointTable); LANES],
) -> usize {
    // Each has a separate name; otherwise the compiler keeps them in memory.
    match &mut lanes[..] {
        [(lane, table)] => {
            let Some(mut only) = Head::<EARLY, LITERAL>::new(lane, table) else { return 0 };
            while only.has_room() {
                // SAFETY: there is room for a refill and STEPS steps.
                let are_known = unsafe {
                    only.refill();
                    only.step() && only.step()
                };
                if !are_known {
                    break;
                }
            }
            lane.at = only.at;
            0
        }
        [(first_lane, first_table), (second_lane, second_table)] => {
            let Some(mut first) = Head::<EARLY, LITERAL>::new(first_lane, first_table) else { return 0 };
            let Some(mut second) = Head::<EARLY, LITERAL>::new(second_lane, second_table) else { return 1 };
            let ended = loop {
                if !first.has_room() {
                    break 0;
                }
                if !second.has_room() {
                    break 1;
                }
                // SAFETY: there is room for a refill and STEPS steps of each.
                unsafe {
                    first.refill();
                    second.refill();
                    if !first.step() {
                        break 0;
                    }
                    if !second.step() {
                        break 1;
                    }
                    if !first.step() {
                        break 0;
                    }
                    if !second.step() {
                        break 1;
                    }
                }
            };
            (first_lane.at, second_lane.at) = (first.at, second.at);
            ended
        }
        _ => unreachable!("one lane or two"),
    }
}

/// State of a lane while it takes steps. Everything is inlined into a loop over a copy of the lane.
struct Head<'t, const EARLY: bool, const LITERAL: bool> {
    at: Position,
    stored: *const u8,
    out: *mut u8,
    /// Largest `next` for which STEPS steps have room.
    next_limit: usize,
    produced_limit: usize,
    table: &'t JointTable,
}

impl<'t, const EARLY: bool, const LITERAL: bool> Head<'t, EARLY, LITERAL> {
    #[inline(always)]
    fn new(lane: &mut Lane<'_>, table: &'t JointTable) -> Option<Self> {
        Some(Self {
            at: lane.at,
            stored: lane.stored.as_ptr(),
            out: lane.out.as_mut_ptr(),
            next_limit: lane.stored.len().checked_sub(STEPS_READ_LEN_BYTES)?,
            produced_limit: lane.out.len().checked_sub(STEPS_ROOM_LEN_BYTES)?,
            table,
        })
    }

    #[inline(always)]
    fn has_room(&self) -> bool {
        self.at.next <= self.next_limit && self.at.produced <= self.produced_limit
    }

    /// Refills to at least [`MIN_HELD_BITS`].
    ///
    /// # Safety
    /// At least 8 bytes of the stream must follow `next`.
    #[inline(always)]
    unsafe fn refill(&mut self) {
        // SAFETY: guaranteed by the caller.
        let word = u64::from_le(unsafe { self.stored.add(self.at.next).cast::<u64>().read_unaligned() });
        self.at.bits |= word.wrapping_shl(self.at.held_bits);
        self.at.next = self.at.next.wrapping_add(7 - (self.at.held_bits as usize >> 3 & 7));
        self.at.held_bits |= MIN_HELD_BITS;
    }

    /// Advances the position; only the lowest 6 bits of `bits` count.
    #[inline(always)]
    fn advance(&mut self, bits: u32, len_bytes: usize) {
        self.at.bits = self.at.bits.wrapping_shr(bits);
        self.at.held_bits = self.at.held_bits.wrapping_sub(bits);
        self.at.produced = self.at.produced.wrapping_add(len_bytes);
    }

    /// Takes a step; returns false, without decoding, if the word cannot be decoded here.
    ///
    /// # Safety
    /// There was room before the last refill from outside, and at most STEPS steps have been taken since.
    #[inline(always)]
    unsafe fn step(&mut self) -> bool {
        let (entry, literals) = self.table.look_up(self.at.bits);
        let target = self.out.wrapping_add(self.at.produced);
        if LITERAL && entry.is_literals() {
            // SAFETY: `target` lies in `out`, as shown below.
            unsafe { target.cast::<[u8; 2]>().write(entry.literals()) };
            self.advance(entry.total_bits(), entry.len_bytes());
            return true;
        }
        if entry.is_special() {
            // SAFETY: the caller guarantees the requirements.
            return unsafe { self.long_step(entry) };
        }
        let distance = entry.distance(self.at.bits);
        if EARLY && distance > self.at.produced && !entry.is_literals() {
            return false;
        }
        // Chosen without a branch, because the kind of the next word cannot be predicted.
        let source = if entry.is_literals() { literals } else { target.wrapping_sub(distance).cast_const() };
        // SAFETY: 16 bytes can be read at `literals`. The `distance` of a match is at most `produced` (with EARLY this
        // was checked, otherwise `produced` is at least the farthest distance), so `source` lies in `out`. `target`
        // lies in `out` with STEP_ROOM_LEN_BYTES after it: before the first step, `produced` was at most the length of
        // `out` minus STEPS_ROOM_LEN_BYTES, and each step adds at most STEP_ROOM_LEN_BYTES. `source` lies before
        // `target`.
        unsafe { copy_step(source, target) };
        self.advance(entry.total_bits(), entry.len_bytes());
        true
    }

    /// Decodes a match of any length.
    ///
    /// # Safety
    /// As for a step.
    #[inline(always)]
    unsafe fn long_step(&mut self, entry: LengthDistanceEntry) -> bool {
        // SAFETY: before the first step, `next` was at most the length of the stream minus STEPS_READ_LEN_BYTES. Each
        // refill since has added at most 7, and this is at most the second one of a step.
        unsafe { self.refill() };
        let Some(long) = self.table.long_match(entry, self.at.bits) else { return false };
        if EARLY && long.distance > self.at.produced {
            return false;
        }
        // SAFETY: as for a step; the longest match fills STEP_ROOM_LEN_BYTES.
        unsafe { copy_long(&long, self.out.wrapping_add(self.at.produced)) };
        self.advance(long.total_bits, long.len_bytes);
        // SAFETY: as above.
        unsafe { self.refill() };
        true
    }
}

/// Copies a match in blocks of 16 bytes.
///
/// # Safety
/// `distance` bytes must be readable before `target`, and the match's length, rounded up to whole blocks, must be
/// writable there.
#[inline(always)]
unsafe fn copy_long(long: &LongMatch, target: *mut u8) {
    let LongMatch { len_bytes, distance, .. } = *long;
    let (mut at, mut back) = (0, distance);
    if distance < STEP_LEN_BYTES {
        // A pattern that repeats after `distance` also repeats after its multiples.
        back = STEP_LEN_BYTES.next_multiple_of(distance);
        at = STEP_LEN_BYTES;
        // SAFETY: guaranteed by the caller.
        unsafe { repeat_step(target.sub(distance), distance, target) };
    }
    while at < len_bytes {
        // SAFETY: the previous block ends where this one begins, so the bytes read were written: `back` is at least 16.
        // It is less than `distance` and `at` together, so the bytes read begin at most `distance` before `target`.
        unsafe {
            let target = target.add(at);
            copy_step(target.sub(back), target);
        }
        at += STEP_LEN_BYTES;
    }
}

/// Copies 16 bytes.
///
/// # Safety
/// 16 bytes must be readable at `source` and writable at `target`.
#[inline(always)]
unsafe fn copy_step(source: *const u8, target: *mut u8) {
    // SAFETY: guaranteed by the caller; arrays of bytes need no alignment.
    unsafe { target.cast::<[u8; STEP_LEN_BYTES]>().write(source.cast::<[u8; STEP_LEN_BYTES]>().read()) };
}

/// Writes 16 bytes that repeat the `distance` bytes at `source`, which are fewer than 16.
///
/// # Safety
/// 16 bytes must be readable at `source` and writable at `target`.
#[target_feature(enable = "bmi1,bmi2,avx2")]
#[inline]
unsafe fn repeat_step(source: *const u8, distance: usize, target: *mut u8) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_shuffle_epi8, _mm_storeu_si128};
    let order = &REPEATS[distance % STEP_LEN_BYTES];
    // SAFETY: the caller guarantees both pointers; `order` has 16 bytes; none of the three needs alignment.
    unsafe {
        let bytes = _mm_loadu_si128(source.cast::<__m128i>());
        let order = _mm_loadu_si128(order.as_ptr().cast::<__m128i>());
        _mm_storeu_si128(target.cast::<__m128i>(), _mm_shuffle_epi8(bytes, order));
    }
}

/// Source index of each of 16 bytes, indexed by the distance after which they repeat.
static REPEATS: [[u8; STEP_LEN_BYTES]; STEP_LEN_BYTES] = {
    let mut repeats = [[0; STEP_LEN_BYTES]; STEP_LEN_BYTES];
    let mut distance = 1;
    while distance < STEP_LEN_BYTES {
        let mut at = 0;
        while at < STEP_LEN_BYTES {
            repeats[distance][at] = (at % distance) as u8;
            at += 1;
        }
        distance += 1;
    }
    repeats
};
