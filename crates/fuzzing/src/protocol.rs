//! Messages of the reader process, which the parent must not trust.

use crate::seeds;
use raddle_hdf5::child::arbitrary;
use raddle_hdf5::native::{ReadLimits, read_tree};
use raddle_hdf5::source::InputFile;

/// Runs the target whose input is frames of a conversation.
pub(crate) fn protocol(bytes: &[u8]) {
    arbitrary::read(bytes);
}

/// Returns answers with the trees of files, and one of each other kind.
pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let tree = |bytes: Vec<u8>| {
        let path = crate::scratch::write("answer.h5", &bytes);
        let file = InputFile::open(&path).expect("a seed opens");
        read_tree(&file, &ReadLimits::default()).expect("a seed is read")
    };
    seeds::files().into_iter().step_by(2).flat_map(|bytes| arbitrary::seeds(tree(bytes))).collect()
}
