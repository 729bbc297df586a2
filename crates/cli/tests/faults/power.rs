//! Row 13: the power fails, and any subset of the data that was not synced survives.

use crate::workload::{GOES_ON, OLD, Workload};
use raddle_testing::faults;
use raddle_testing::power::{Change, Disk, Loss, changes};
use raddle_testing::strategy::Draw;
use std::path::Path;

/// Returns the modifications that an undisturbed merge makes in `out/`.
fn recorded(workload: &Workload) -> Vec<Change> {
    workload.reset();
    let outside = tempfile::tempdir().unwrap();
    let log = outside.path().join("log");
    let mut command = workload.command();
    faults::trace(&mut command, &workload.root().join("out"), &log);
    assert_eq!(workload.run(command).code, 0);
    changes(&log)
}

fn put(workload: &Workload, disk: &Disk, loss: &mut Loss) {
    workload.reset();
    std::fs::remove_file(workload.output()).unwrap();
    for (path, content) in disk.after(loss) {
        std::fs::write(path, content).unwrap();
    }
}

/// Simulates a power failure before every `step`-th modification, `draws` times each, and once each with all and with
/// none of the unsynced data. The final name must have its previous content or the complete right file, and the next
/// run must produce the latter. Returns how many runs resumed from an interrupted run.
fn power_fails(step: usize, draws: u64) -> u64 {
    let workload = Workload::small();
    let changes = recorded(&workload);
    let folder = workload.root().join("out");
    let is_sync_of = |change: &Change, of: &Path| matches!(change, Change::Sync { path } if path == of);
    assert!(changes.iter().any(|change| is_sync_of(change, &workload.part())), "the output is never synced");
    assert!(changes.last().is_some(), "nothing was recorded");
    let mut disk = Disk::new(&folder, &[("out.h5", OLD)]);
    let mut resumed = 0;
    for (number, change) in changes.iter().enumerate() {
        if number % step == 0 {
            let random = (0..draws).map(|draw| Loss::Some(Draw::new(number as u64 * 1000 + draw)));
            for mut loss in [Loss::Nothing, Loss::Everything].into_iter().chain(random) {
                let context = format!("before change {number} of {}, {loss:?}", changes.len());
                put(&workload, &disk, &mut loss);
                if workload.is_right_or_untouched(&context) && workload.left().len() == 1 {
                    continue;
                }
                resumed += u64::from(workload.assert_resumes(&context).contains(GOES_ON));
            }
        }
        disk.apply(change);
    }
    put(&workload, &disk, &mut Loss::Nothing);
    workload.assert_right(&"all changes");
    put(&workload, &disk, &mut Loss::Everything);
    assert!(workload.is_right_or_untouched(&"all that was synced"), "a finished run was lost");
    resumed
}

#[test]
fn after_a_power_failure_the_output_is_whole_or_untouched_and_resumed() {
    let resumed = power_fails(4, 2);
    assert!(resumed > 5, "{resumed} runs went on");
}

#[test]
#[ignore = "make soak"]
fn soak_after_a_power_failure_the_output_is_whole_or_untouched_and_resumed() {
    let resumed = power_fails(1, 20);
    println!("{resumed} runs went on");
    assert!(resumed > 50, "{resumed} runs went on");
}
