//! Files read by libhdf5 in a child process: whatever libhdf5 does, there must be an answer or an error within a time
//! limit.

use crate::edits::edited;
use crate::scratch;
use raddle_hdf5::child::{ChildOptions, ChildReader, ObjectName, ReaderCommand};
use raddle_hdf5::model::ObjectKind;
use std::time::{Duration, Instant};

/// Maximum length of an answer.
const MAX_ANSWER_LEN_BYTES: u64 = 1 << 20;

/// Maximum number of datasets whose values are requested.
const MAX_DATASETS: usize = 8;

/// CPU time per answer, the minimum that can be set.
const CPU_TIME: Duration = Duration::from_secs(1);

/// Maximum time for all answers: the last one may begin shortly before the timeout, and cores may be busy.
const MAX_DURATION: Duration = Duration::from_secs(15);

/// Runs the target whose input is a list of edits to a file.
pub(crate) fn library(bytes: &[u8]) {
    let path = scratch::write("library.h5", &edited(bytes).0);
    let command = ReaderCommand::of_this_program().expect("the system knows its processes' executables");
    let options = ChildOptions {
        timeout: MAX_DURATION / 3,
        cpu_time: CPU_TIME,
        patience: CPU_TIME,
        answer_limit_len_bytes: MAX_ANSWER_LEN_BYTES,
        ..ChildOptions::default()
    };
    let started = Instant::now();
    let child = ChildReader::with_options(command, options);
    if let Ok(tree) = child.read_tree(&path) {
        let datasets = tree.objects.iter().filter(|object| matches!(object.kind, ObjectKind::Dataset(_)));
        for dataset in datasets.take(MAX_DATASETS) {
            let _ = child.read_values(&path, ObjectName::Address(dataset.address), None);
            let _ = child.read_chunks(&path, ObjectName::Address(dataset.address));
        }
    }
    assert!(started.elapsed() < MAX_DURATION, "libhdf5 kept its reader waiting for {:?}", started.elapsed());
}
