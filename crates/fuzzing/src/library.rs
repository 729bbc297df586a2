//! Files as libhdf5 reads them in a child process: whatever they make of it, there is an answer or an error, and soon.

use crate::edits::edited;
use crate::scratch;
use raddle_hdf5::child::{ChildOptions, ChildReader, ObjectName, ReaderCommand};
use raddle_hdf5::model::ObjectKind;
use std::time::{Duration, Instant};

/// Longest answer.
const ANSWER_LIMIT_LEN_BYTES: u64 = 1 << 20;

/// Datasets whose values are asked for.
const MOST_DATASETS: usize = 8;

/// CPU time of an answer, the least that can be set.
const CPU_TIME: Duration = Duration::from_secs(1);

/// Longest wait for all answers: the last one may begin when patience has almost ended. Cores may be busy.
const LONGEST: Duration = Duration::from_secs(15);

/// The bytes are edits of a file.
pub(crate) fn library(bytes: &[u8]) {
    let path = scratch::write("library.h5", &edited(bytes).0);
    let command = ReaderCommand::own().expect("the system knows its processes' executables");
    let options = ChildOptions {
        timeout: LONGEST / 3,
        cpu_time: CPU_TIME,
        patience: CPU_TIME,
        answer_limit_len_bytes: ANSWER_LIMIT_LEN_BYTES,
        ..ChildOptions::default()
    };
    let started = Instant::now();
    let child = ChildReader::with_options(command, options);
    if let Ok(tree) = child.read_tree(&path) {
        let datasets = tree.objects.iter().filter(|object| matches!(object.kind, ObjectKind::Dataset(_)));
        for dataset in datasets.take(MOST_DATASETS) {
            let _ = child.read_values(&path, ObjectName::Address(dataset.address), None);
            let _ = child.read_chunks(&path, ObjectName::Address(dataset.address));
        }
    }
    assert!(started.elapsed() < LONGEST, "libhdf5 kept its reader waiting for {:?}", started.elapsed());
}
