//! Row 22: an input that changes while it is read.

use crate::workload::Workload;
use raddle_testing::faults::{Action, Fault};

/// Changes an input at every `step`-th read of inputs.
fn changed_at_reads(step: usize, change: &dyn Fn(std::path::PathBuf) -> Action) {
    let workload = Workload::small();
    let victim = workload.root().join("in/1.h5");
    let bytes = std::fs::read(&victim).unwrap();
    for at in (1..).step_by(step) {
        workload.reset();
        std::fs::write(&victim, &bytes).unwrap();
        let fault = Fault { calls: "read,pread", at, sticky: false, action: change(victim.clone()) };
        let outcome = workload.run_with(&fault, "in");
        let context = (&fault, &outcome);
        if outcome.struck.is_empty() {
            assert_eq!(outcome.code, 0, "{context:?}");
            return workload.assert_right(&context);
        }
        // Before it is first looked at, a longer file is simply the file (and its length stands in `/_raddle`).
        if outcome.code == 0 && matches!(fault.action, Action::Grow(_)) {
            let verified = workload.run(workload.raddle(&["verify", "out/out.h5", "--against", "in", "-q"]));
            assert_eq!(verified.code, 0, "{context:?} {verified:?}");
            continue;
        }
        assert_eq!(outcome.code, 3, "{context:?}");
        assert!(outcome.told.contains("in/1.h5"), "{context:?}");
        assert!(!workload.is_right_or_untouched(&context));
        assert_eq!(workload.left(), ["out.h5"], "{context:?}");
    }
}

#[test]
fn an_input_that_grows_is_noticed() {
    changed_at_reads(4, &Action::Grow);
}

#[test]
fn an_input_that_is_cut_is_noticed() {
    changed_at_reads(4, &Action::Cut);
}

#[test]
#[ignore = "make soak"]
fn soak_an_input_that_changes_is_noticed() {
    changed_at_reads(1, &Action::Grow);
    changed_at_reads(1, &Action::Cut);
}
