//! Conversions and merges of events: the rows of the contract that hold for every output, and damaged inputs.

use crate::distance;
use crate::full_disk::too_small;
use crate::inputs::changed_at_reads;
use crate::killing::killed_at_calls;
use crate::rounds::eight_writers;
use crate::workload::{TREE, Workload};
use crate::writing::{EIO, ENOSPC, failing_calls, failing_reads, short_and_interrupted};
use raddle_testing::faults::Action;
use rustix::process::Signal;
use std::path::Path;

/// Runs that read and write in different ways: HDF5 from trees and from records, in raddle's chunks and in those of the
/// framework, records, records copied unchanged, and an RNTuple.
const RUNS: [&[&str]; 6] = [
    &["convert", "--layout", "columns"],
    &["convert", "--layout", "batch", "-c", "fast", "--chunk", "16KiB"],
    &["convert", "--layout", "event", "--compat", "cce"],
    &["convert", "--layout", "pds"],
    &["merge"],
    &["convert", "--layout", "rntuple"],
];

fn each(check: impl Fn(&Workload)) {
    RUNS.iter().for_each(|arguments| check(&Workload::of_events(arguments)));
}

fn calls_that_fail(step: usize) {
    each(|workload| {
        let calls = failing_calls(workload, ENOSPC, false, step);
        assert!(calls > 8, "only {calls} calls were counted");
        failing_calls(workload, ENOSPC, true, 2 * step);
        failing_calls(workload, EIO, false, 2 * step);
    });
}

#[test]
fn a_call_that_fails_is_reported_and_leaves_the_output_alone() {
    calls_that_fail(3);
}

#[test]
#[ignore = "make soak"]
fn any_call_that_fails_is_reported_and_leaves_the_output_alone() {
    calls_that_fail(1);
}

fn calls_that_are_resumed(step: usize) {
    each(|workload| short_and_interrupted(workload, &[("write,pwrite", "out"), ("read,pread", "in")], step));
}

#[test]
fn short_and_interrupted_calls_are_resumed() {
    calls_that_are_resumed(9);
}

#[test]
#[ignore = "make soak"]
fn all_short_and_interrupted_calls_are_resumed() {
    calls_that_are_resumed(1);
}

#[test]
fn a_read_that_fails_names_the_input() {
    each(|workload| failing_reads(workload, EIO, distance(3)));
}

#[test]
fn a_run_killed_at_any_call_leaves_the_output_alone_and_the_next_one_ends_it() {
    each(|workload| {
        let (runs, _) = killed_at_calls(workload, &Action::Kill, &[-9], distance(2));
        assert!(runs > 4, "{runs} runs were killed");
    });
}

#[test]
fn a_run_stopped_at_any_call_leaves_the_output_alone_and_the_next_one_ends_it() {
    each(|workload| {
        for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
            killed_at_calls(workload, &Action::Signal(signal.as_raw()), &[code, 0], distance(5));
        }
    });
}

#[test]
fn a_full_disk_is_reported_and_leaves_the_output_alone() {
    each(|workload| {
        let len_kib = std::fs::metadata(workload.output()).unwrap().len() >> 10;
        let sizes = (1..=10).map(|tenths| (len_kib * tenths / 10).max(4)).chain([2 * len_kib + 512]);
        if let Some((failed, _)) = too_small(workload, sizes) {
            assert!(failed > 5, "{failed} runs failed");
        }
    });
}

#[test]
fn an_input_that_changes_is_noticed() {
    for (arguments, victim) in
        [(RUNS[0], "in/1.root"), (RUNS[1], "in/1.pds"), (RUNS[4], "in/1.pds"), (RUNS[5], "in/1.root")]
    {
        let workload = Workload::of_events(arguments);
        for change in [Action::Grow, Action::Cut] {
            // A byte after a tree has no meaning.
            changed_at_reads(&workload, victim, 3, &change, &|outcome| workload.assert_right(outcome));
        }
    }
}

#[test]
fn of_many_writers_one_writes_and_the_others_say_so() {
    each(|workload| eight_writers(workload, 2));
}

/// Returns the start of the key of a branch's only basket in [`TREE`], and the end of its title.
fn basket(branch: &str) -> (usize, usize) {
    let named = [&b"\x07TBasket"[..], &[branch.len() as u8], branch.as_bytes()].concat();
    let at = TREE.windows(named.len()).position(|bytes| bytes == named).unwrap();
    let title = at + named.len();
    // Two lengths, version, time, length of the key, cycle, two 64-bit addresses.
    (at - 34, title + 1 + usize::from(TREE[title]))
}

/// Adds to a big-endian number in the bytes of a file.
fn add(bytes: &mut [u8], at: usize, more: u32) {
    let number: &mut [u8; 4] = bytes[at..].first_chunk_mut().unwrap();
    *number = (u32::from_be_bytes(*number) + more).to_be_bytes();
}

/// Writes a tree with a truncated basket, one with the wrong number of entries, and one with modified bytes.
fn write_damaged(path: &Path) {
    let mut bytes = TREE.to_vec();
    let (key, _) = basket("x");
    add(&mut bytes, key + 6, 8);
    let (_, header) = basket("pair");
    add(&mut bytes, header + 10, 1);
    let (key, _) = basket("pts");
    let len_bytes = u32::from_be_bytes(*bytes[key..].first_chunk().unwrap()) as usize;
    bytes[key + len_bytes - 80] ^= 1;
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn damaged_baskets_are_named_and_left_out_if_that_is_asked_for() {
    let workload = Workload::of_events(RUNS[0]);
    let whole = std::fs::read(workload.output()).unwrap();
    write_damaged(&workload.root().join("in/1.root"));
    workload.reset();
    let refused = workload.run(workload.command());
    assert_eq!(refused.code, 3, "{refused:?}");
    for named in ["in/1.root", "tree events", "branch pair", "entries 0..12", "--skip-bad"] {
        assert!(refused.reported.contains(named), "{named}: {refused:?}");
    }
    assert!(!workload.is_right_or_untouched(&refused));
    let mut command = workload.command();
    command.args(["--skip-bad", "--report", "report.json"]);
    let skipped = workload.run(command);
    assert_eq!(skipped.code, 4, "{skipped:?}");
    let report = std::fs::read_to_string(workload.root().join("report.json")).unwrap();
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let left_out = report["left_out"].as_array().unwrap();
    let products: Vec<&str> = left_out.iter().map(|left| left["product"].as_str().unwrap()).collect();
    assert_eq!(products, ["pair", "cluster.x", "pts"], "{report}");
    for (product, left) in products.iter().zip(left_out) {
        assert!(skipped.reported.contains(&format!("{product} is left out")), "{skipped:?}");
        assert!(left["reason"].as_str().unwrap().contains("in/1.root"), "{report}");
    }
    assert!(std::fs::read(workload.output()).unwrap() != whole);
    let inspected = workload.run(workload.raddle(&["events", "inspect", "out/out.h5", "--sizes", "--json"]));
    assert_eq!(inspected.code, 0, "{inspected:?}");
    assert!(inspected.reported.contains("\"jets\"") && !inspected.reported.contains("\"pair\""), "{inspected:?}");
}
