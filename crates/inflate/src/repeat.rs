//! Copying of the bytes of a match, which begin `back` bytes before the end of the output.

use std::array;

use crate::format::MAX_MATCH;

/// Number of bytes written at once.
const BLOCK_LEN_BYTES: usize = 32;

/// Number of bytes written at once for matches with a distance of less than a block.
const HALF_LEN_BYTES: usize = BLOCK_LEN_BYTES / 2;

/// Number of bytes in enough blocks for any match.
pub(super) const ROOM_LEN_BYTES: usize = MAX_MATCH.next_multiple_of(BLOCK_LEN_BYTES);

type RepeatedBytes = [u8; BLOCK_LEN_BYTES];

/// Writes a match of `len_bytes` at `at`, and arbitrary bytes up to [`ROOM_LEN_BYTES`]. Fails if there are fewer than
/// `back` bytes before `at`, or no room.
#[inline(always)]
pub(super) fn repeat_with_room(out: &mut [u8], at: usize, back: usize, len_bytes: usize) -> Option<()> {
    let from = at.checked_sub(back)?;
    let block = match back {
        1 => [out[from]; BLOCK_LEN_BYTES],
        4 => repeated::<4>(out, from)?,
        8 => repeated::<8>(out, from)?,
        2 => repeated::<2>(out, from)?,
        BLOCK_LEN_BYTES.. => return copy_blocks::<BLOCK_LEN_BYTES>(out, at, back, len_bytes),
        HALF_LEN_BYTES.. => return copy_blocks::<HALF_LEN_BYTES>(out, at, back, len_bytes),
        _ => return repeat(out, at, back, len_bytes),
    };
    let room: &mut [u8; ROOM_LEN_BYTES] = out.get_mut(at..)?.first_chunk_mut()?;
    // The number of blocks cannot be predicted for the first few.
    let (blocks, _) = room.as_chunks_mut();
    blocks[0] = block;
    blocks[1] = block;
    if len_bytes > 2 * BLOCK_LEN_BYTES {
        blocks[2] = block;
        blocks[3] = block;
        if len_bytes > 4 * BLOCK_LEN_BYTES {
            blocks[4..].fill(block);
        }
    }
    Some(())
}

/// Copies blocks of `N` bytes, which is at most `back`, until `len_bytes` are copied.
#[inline(always)]
fn copy_blocks<const N: usize>(out: &mut [u8], at: usize, back: usize, len_bytes: usize) -> Option<()> {
    let from = at - back;
    let reach = out.get_mut(from..at + ROOM_LEN_BYTES)?;
    for start in (0..len_bytes).step_by(N) {
        let block: [u8; N] = *reach.get(start..)?.first_chunk()?;
        *reach.get_mut(start + back..)?.first_chunk_mut()? = block;
    }
    Some(())
}

/// Returns a block filled with the `N` bytes at `from`; `N` divides its length.
#[inline(always)]
fn repeated<const N: usize>(out: &[u8], from: usize) -> Option<RepeatedBytes> {
    let bytes: [u8; N] = *out.get(from..)?.first_chunk()?;
    Some(array::from_fn(|at| bytes[at % N]))
}

/// Writes exactly `len_bytes` at `at`. Fails if there are fewer than `back` bytes before `at`, or no room.
pub(super) fn repeat(out: &mut [u8], at: usize, back: usize, len_bytes: usize) -> Option<()> {
    let from = at.checked_sub(back)?;
    let end = at.checked_add(len_bytes).filter(|&end| back > 0 && end <= out.len())?;
    // The copied part doubles in each iteration.
    let mut done = at;
    while done < end {
        let count = (done - from).min(end - done);
        out.copy_within(from..from + count, done);
        done += count;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_repeats_what_is_before_it() {
        const BEFORE: usize = 50;
        for back in 1..=BEFORE {
            for len_bytes in [3, 4, 7, 8, 31, 32, 33, 64, 100, 257, 258] {
                let mut expected: Vec<u8> = (1..=BEFORE + len_bytes).map(|at| at as u8).collect();
                let mut exact = expected.clone();
                let mut roomy = [expected.clone(), vec![0xee; ROOM_LEN_BYTES]].concat();
                (BEFORE..BEFORE + len_bytes).for_each(|at| expected[at] = expected[at - back]);
                repeat(&mut exact, BEFORE, back, len_bytes).unwrap();
                repeat_with_room(&mut roomy, BEFORE, back, len_bytes).unwrap();
                assert_eq!(exact, expected, "{back} back, {len_bytes} long");
                assert_eq!(roomy[..expected.len()], expected, "{back} back, {len_bytes} long");
            }
        }
    }

    #[test]
    fn what_is_not_there_is_not_repeated() {
        let mut out = [0; 100];
        for repeat in [repeat, repeat_with_room] {
            assert_eq!(repeat(&mut out, 10, 11, 3), None);
            assert_eq!(repeat(&mut out, 99, 4, 3), None);
            assert_eq!(repeat(&mut out, 99, 40, 3), None);
        }
        assert_eq!(repeat(&mut out, 10, 0, 3), None);
    }
}
