//! Selections in the encoding of region references, versions 1 to 3 of every kind (`H5S_encode`'s format).

use crate::native::{Cursor, Defect};

/// Maximum number of blocks that a regular hyperslab is expanded to: a few bytes of a file may represent any number of them.
const MAX_BLOCKS: u64 = 1 << 20;

/// Kinds of selections, with the same numbers in files and in canonical bytes.
pub(super) const NONE: u8 = 0;
pub(super) const POINTS: u8 = 1;
pub(super) const BLOCKS: u8 = 2;
pub(super) const ALL: u8 = 3;

/// Appends the canonical bytes of the selection at `cursor` on a dataset of `rank`.
pub(super) fn append(cursor: &mut Cursor<'_>, rank: u8, out: &mut Vec<u8>) -> Result<(), Defect> {
    let rank = usize::from(rank);
    let start = cursor.clone();
    let (kind, version) = (cursor.u32()?, cursor.u32()?);
    match (kind, version) {
        (0, 1) => head(NONE, rank, 0, out),
        (3, 1) => head(ALL, rank, 0, out),
        (1, 1) => {
            cursor.skip(8)?;
            listed(cursor, POINTS, rank, 4, out)?;
        }
        (1, 2) => {
            let width = width(cursor)?;
            listed(cursor, POINTS, rank, width, out)?;
        }
        (2, 1) => {
            cursor.skip(8)?;
            listed(cursor, BLOCKS, rank, 4, out)?;
        }
        (2, 2) => {
            let flags = cursor.u8()?;
            cursor.skip(4)?;
            hyperslab(cursor, flags, rank, 8, out)?;
        }
        (2, 3) => {
            let flags = cursor.u8()?;
            let width = width(cursor)?;
            hyperslab(cursor, flags, rank, width, out)?;
        }
        _ => return Err(start.unsupported(format!("selection of kind {kind}, version {version}"))),
    }
    Ok(())
}

fn head(kind: u8, rank: usize, count: u64, out: &mut Vec<u8>) {
    out.push(kind);
    out.extend_from_slice(&(rank as u32).to_le_bytes());
    out.extend_from_slice(&count.to_le_bytes());
}

/// Reads the width of the numbers that follow.
fn width(cursor: &mut Cursor<'_>) -> Result<usize, Defect> {
    match cursor.u8()? {
        width @ (2 | 4 | 8) => Ok(usize::from(width)),
        width => Err(cursor.malformed(format!("numbers of {width} bytes in a selection"))),
    }
}

fn check_rank(cursor: &mut Cursor<'_>, rank: usize) -> Result<(), Defect> {
    match cursor.u32()? {
        stored if stored as usize == rank && rank > 0 => Ok(()),
        stored => Err(cursor.malformed(format!("selection of rank {stored} on a dataset of rank {rank}"))),
    }
}

/// Reads rank, count and coordinates of points, or of blocks by their first and last elements.
fn listed(cursor: &mut Cursor<'_>, kind: u8, rank: usize, width: usize, out: &mut Vec<u8>) -> Result<(), Defect> {
    check_rank(cursor, rank)?;
    let count = cursor.uint(width)?;
    let numbers = if kind == BLOCKS { 2 * rank } else { rank };
    // The remaining bytes limit how many numbers there can be.
    if count > (cursor.remaining() / (numbers * width)) as u64 {
        return Err(cursor.malformed(format!("{count} points or blocks are cut off")));
    }
    head(kind, rank, count, out);
    for _ in 0..count {
        let item = out.len();
        for _ in 0..numbers {
            out.extend_from_slice(&cursor.uint(width)?.to_le_bytes());
        }
        if kind == BLOCKS {
            let (first, last) = out[item..].split_at(8 * rank);
            if first
                .chunks_exact(8)
                .zip(last.chunks_exact(8))
                .any(|(first, last)| first.iter().rev().gt(last.iter().rev()))
            {
                return Err(cursor.malformed("a block ends before it starts"));
            }
        }
    }
    Ok(())
}

/// Reads a hyperslab of version 2 or 3: listed blocks, or start, stride, count and block per dimension.
fn hyperslab(cursor: &mut Cursor<'_>, flags: u8, rank: usize, width: usize, out: &mut Vec<u8>) -> Result<(), Defect> {
    const REGULAR: u8 = 1;
    if flags & REGULAR == 0 {
        return listed(cursor, BLOCKS, rank, width, out);
    }
    check_rank(cursor, rank)?;
    let unlimited = u64::MAX >> (64 - 8 * width);
    let mut slabs = Vec::with_capacity(rank);
    let mut blocks = 1_u64;
    for _ in 0..rank {
        let at = cursor.clone();
        let (start, stride) = (cursor.uint(width)?, cursor.uint(width)?);
        let (count, block) = (cursor.uint(width)?, cursor.uint(width)?);
        if count == unlimited || block == unlimited {
            return Err(at.unsupported("unlimited selection in a region reference"));
        }
        let last = count.checked_sub(1).and_then(|steps| steps.checked_mul(stride));
        let end = last.and_then(|last| last.checked_add(start)?.checked_add(block));
        if block == 0 || end.is_none() {
            return Err(at.malformed("a selection is empty or overflows 64 bits"));
        }
        blocks = blocks.saturating_mul(count);
        slabs.push((start, stride, count, block));
    }
    if blocks > MAX_BLOCKS {
        return Err(cursor.unsupported(format!("selection of {blocks} blocks, more than {MAX_BLOCKS}")));
    }
    head(BLOCKS, rank, blocks, out);
    let mut steps = vec![0_u64; rank];
    for _ in 0..blocks {
        for (&step, &(start, stride, _, _)) in steps.iter().zip(&slabs) {
            out.extend_from_slice(&(start + step * stride).to_le_bytes());
        }
        for (&step, &(start, stride, _, block)) in steps.iter().zip(&slabs) {
            out.extend_from_slice(&(start + step * stride + block - 1).to_le_bytes());
        }
        for axis in (0..rank).rev() {
            steps[axis] += 1;
            if steps[axis] < slabs[axis].2 {
                break;
            }
            steps[axis] = 0;
        }
    }
    Ok(())
}
