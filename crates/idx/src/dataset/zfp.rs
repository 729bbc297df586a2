//! zfp in IDX: its name in headers, the samples it takes, and the shape of a block for zfp.
//!
//! The mode is in the field's `default_compression` as `zfp-ENCODING-DECODING`. A stream can only be decoded in the
//! mode in which it was encoded, so raddle uses the first mode. OpenVisus writes plain `zfp` in reversible mode, but
//! reads it in another mode, which gives wrong data.

use crate::dataset::grid::lattice;
use crate::dataset::header::Header;
use crate::dataset::sample::{Number, SampleType};
use raddle_codec::{ZfpArray, ZfpMode, ZfpNumber};

/// Parses the name of a mode in a header.
pub(crate) fn mode_of_name(name: &str) -> Option<ZfpMode> {
    let mut parts = name.split('-');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some("zfp"), None, ..) => Some(ZfpMode::Reversible),
        (Some("zfp"), Some(encoding), Some(_), None) => encoding.trim().parse().ok(),
        _ => None,
    }
}

/// Returns the name of a mode in a header.
pub(crate) fn name_of(mode: ZfpMode) -> String {
    format!("zfp-{mode}-{mode}")
}

/// Returns whether samples of this type on `rank` axes can be encoded.
pub(crate) fn takes(mode: ZfpMode, sample: SampleType, rank: usize) -> bool {
    let number = zfp_number(sample).filter(|number| number.is_float() || !matches!(mode, ZfpMode::Accuracy(_)));
    number.is_some() && (2..=3).contains(&rank)
}

fn zfp_number(sample: SampleType) -> Option<ZfpNumber> {
    match (sample.number, sample.count) {
        (Number::Int32, 1) => Some(ZfpNumber::Int32),
        (Number::Int64, 1) => Some(ZfpNumber::Int64),
        (Number::Float32, 1) => Some(ZfpNumber::Float32),
        (Number::Float64, 1) => Some(ZfpNumber::Float64),
        _ => None,
    }
}

/// Returns the zfp array of a block of a field: its lattice with x fastest, independent of the order of its samples.
/// Returns `None` if zfp does not take such an array.
pub(crate) fn array_of(header: &Header, field: usize, block: u64) -> Option<ZfpArray> {
    let number = zfp_number(header.fields[field].sample)?;
    let rank = header.bitmask.rank();
    let log2_counts = lattice(&header.bitmask, header.bits_per_block, block)?.log2_counts;
    let counts = [log2_counts[0], log2_counts[1], log2_counts[2]].map(|log2_count| 1 << log2_count);
    (2..=3).contains(&rank).then_some(ZfpArray { number, counts, has_z: rank == 3 })
}
