//! Events and batches that are compressed separately and whose decoded length is stored elsewhere.
//!
//! Invariant: no more memory is allocated than the stored bytes could fill.

use raddle_codec::{DecodeState, RawStreamCodec};
use raddle_columns::error::UnlocatedError;

/// Decodes a stream to `decoded_len_bytes` bytes, which replace the contents of `out`.
pub(crate) fn decode(
    codec: RawStreamCodec,
    state: &mut DecodeState,
    stored: &[u8],
    decoded_len_bytes: usize,
    out: &mut Vec<u8>,
) -> Result<(), UnlocatedError> {
    let fault = |source| UnlocatedError::Codec { address: 0, structure: "compressed event", source };
    codec.check_stored(stored.len(), decoded_len_bytes).map_err(fault)?;
    // Not cleared first: present bytes are overwritten, so only new ones need to be cleared.
    out.resize(decoded_len_bytes, 0);
    codec.decode(state, stored, out).map_err(fault)
}
