//! Replacement of `interleaved` on processors for which its steps are not implemented: libdeflate inflates these
//! streams.

/// Inflater that cannot be created.
pub(crate) enum InterleavedInflater {}

impl InterleavedInflater {
    pub(crate) fn new() -> Option<Box<Self>> {
        None
    }

    pub(crate) fn is_for(_stored: &[u8], _limit_len_bytes: usize) -> bool {
        false
    }

    pub(crate) fn prefers_pairs(_stored: &[u8], _limit_len_bytes: usize) -> bool {
        false
    }

    pub(crate) fn inflate<const STREAMS: usize>(
        &mut self,
        _stored: [&[u8]; STREAMS],
        _out: [&mut [u8]; STREAMS],
    ) -> [Option<usize>; STREAMS] {
        match *self {}
    }
}
