//! Copying of earlier output, the step that LZ decoders share.

/// Repeats `len` bytes from `distance` bytes before `at`; source and target may overlap.
///
/// Returns `None` if the source begins before the buffer or the target ends after it.
#[inline]
pub(crate) fn repeat(out: &mut [u8], at: usize, distance: usize, len: usize) -> Option<()> {
    let from = at.checked_sub(distance)?;
    let end = at.checked_add(len)?;
    if end > out.len() || distance == 0 {
        return None;
    }
    if distance >= len {
        out.copy_within(from..from + len, at);
    } else if distance == 1 {
        let byte = out[from];
        out[at..end].fill(byte);
    } else {
        for target in at..end {
            out[target] = out[target - distance];
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::repeat;

    #[test]
    fn overlap_repeats_and_ends_are_checked() {
        let mut out = [1, 2, 3, 0, 0, 0, 0, 0];
        assert_eq!(repeat(&mut out, 3, 2, 5), Some(()));
        assert_eq!(out, [1, 2, 3, 2, 3, 2, 3, 2]);
        assert_eq!(repeat(&mut out, 1, 1, 7), Some(()));
        assert_eq!(out, [1; 8]);
        assert_eq!(repeat(&mut out, 3, 4, 1), None);
        assert_eq!(repeat(&mut out, 3, 1, 6), None);
        assert_eq!(repeat(&mut out, 3, 0, 1), None);
        assert_eq!(repeat(&mut out, 3, 1, usize::MAX), None);
    }
}
