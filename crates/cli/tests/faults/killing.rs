//! Rows 13 and 14: a run that is killed or asked to stop leaves the output alone, and the next one completes it.

use crate::workload::{GOES_ON, Workload};
use raddle_hdf5::default_format::{DefaultDatasetSpec, DefaultFormatFile, Element};
use raddle_testing::faults::{Action, CHANGING, Fault};
use rustix::process::{Pid, Signal, kill_process};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

/// Kills the run at every `step`-th modifying call; the next run must produce the right output. Returns how often it
/// was able to resume.
pub fn killed_at_calls(workload: &Workload, action: &Action, codes: &[i32], step: usize) -> (u64, u64) {
    let (mut runs, mut resumed) = (0, 0);
    for at in (1..).step_by(step) {
        workload.reset();
        let fault = Fault { calls: CHANGING, at, sticky: false, action: action.clone() };
        let outcome = workload.run_with(&fault, "out");
        let context = (&fault, &outcome);
        if outcome.struck.is_empty() {
            assert_eq!(outcome.code, 0, "{context:?}");
            break;
        }
        runs += 1;
        assert!(codes.contains(&outcome.code), "{context:?}");
        if workload.is_right_or_untouched(&context) {
            continue;
        }
        if outcome.code > 0 {
            workload.assert_tidy(&outcome);
        }
        let reported = workload.assert_resumes(&context);
        resumed += u64::from(reported.contains(GOES_ON));
    }
    (runs, resumed)
}

#[test]
fn a_run_killed_at_any_call_is_resumed() {
    let (runs, resumed) = killed_at_calls(&Workload::small(), &Action::Kill, &[-9], 1);
    assert!(runs > 30 && resumed > 20, "{resumed} of {runs} runs went on");
}

/// Number of events, each with four rows of a table.
const EVENTS: u64 = 16 * 1024;
const CHUNK_ROWS: u64 = 4096;

/// Writes a file with keys of events.
pub fn make_events(path: &Path) {
    let mut file = DefaultFormatFile::create(path).unwrap();
    for group in [b"/spill".as_slice(), b"/table"] {
        file.create_group(group).unwrap();
    }
    let event: fn(u64) -> u64 = |row| row;
    let of_table: fn(u64) -> u64 = |row| row / 4;
    let value: fn(u64) -> u64 = |row| row.wrapping_mul(2_654_435_761) >> 7;
    let datasets = [
        ("/spill/evt", EVENTS, event),
        ("/spill/evt.seq", EVENTS, event),
        ("/table/evt", 4 * EVENTS, of_table),
        ("/table/evt.seq", 4 * EVENTS, of_table),
        ("/table/x", 4 * EVENTS, value),
    ];
    for (name, rows, number) in datasets {
        let (dims, chunk_shape) = (vec![rows, 1], vec![CHUNK_ROWS, 1]);
        let spec = DefaultDatasetSpec { element: Element::U32, dims, chunk_shape, gzip_level: 1 };
        let mut dataset = file.create_dataset(name.as_bytes(), &spec).unwrap();
        for first in (0..rows).step_by(CHUNK_ROWS as usize) {
            let raw: Vec<u8> = (first..first + CHUNK_ROWS).flat_map(|row| (number(row) as u32).to_le_bytes()).collect();
            dataset.write_chunk(&[first, 0], &raw, 1).unwrap();
        }
        drop(dataset);
    }
    file.finish().unwrap();
}

#[test]
fn a_selection_killed_at_any_call_is_resumed() {
    let arguments =
        ["select", "in/0.h5", "--where", "table: 0 < x < 8000000", "--keys", "/spill/evt", "-o", "out/out.h5"];
    let writing = ["-f", "--progress", "never", "-j", "1", "-c", "fast", "--chunk", "1024rows"];
    let workload = Workload::of(&[&arguments[..], &writing].concat(), |inputs| make_events(&inputs.join("0.h5")));
    let (runs, resumed) = killed_at_calls(&workload, &Action::Kill, &[-9], 1);
    assert!(runs > 30 && resumed > 5, "{resumed} of {runs} runs went on");
}

#[test]
fn a_run_stopped_at_any_call_is_resumed() {
    let workload = Workload::small();
    let mut all_resumed = 0;
    for (signal, code) in [(Signal::INT, 130), (Signal::USR1, 138), (Signal::TERM, 143)] {
        let (runs, resumed) = killed_at_calls(&workload, &Action::Signal(signal.as_raw()), &[code, 0], 3);
        assert!(runs > 10, "{runs} runs");
        all_resumed += resumed;
    }
    // A run checks signals only now and then, so the number of runs that were stopped depends on the machine.
    assert!(all_resumed > 1, "{all_resumed} runs went on");
}

#[test]
#[ignore = "make soak"]
fn soak_a_run_stopped_at_any_call_is_resumed() {
    killed_at_calls(&Workload::small(), &Action::Signal(Signal::TERM.as_raw()), &[143, 0], 1);
}

/// Returns numbers that differ from call to call but are the same in every test run.
fn random(round: u32) -> f64 {
    let mixed = u64::from(round + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9) as f64 / u64::MAX as f64
}

fn start(workload: &Workload) -> Child {
    workload.command().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Measures an undisturbed merge.
fn duration(workload: &Workload) -> Duration {
    workload.reset();
    let started = Instant::now();
    assert_eq!(workload.run(workload.command()).code, 0);
    started.elapsed()
}

/// Repeats `rounds` times: kills or stops at a random time, up to three times in a row, then lets the merge finish. At
/// least a tenth of the rounds must have been able to resume; the actual number depends on the machine.
fn struck_at_random_times(signal: Signal, code: Option<i32>, rounds: u32) {
    let workload = Workload::long();
    let whole = duration(&workload);
    let mut resumed = 0;
    for round in 0..rounds {
        workload.reset();
        for strike in 0..=round % 3 {
            let mut child = start(&workload);
            let wait = random(round * 3 + strike);
            if round % 4 == 0 {
                std::thread::sleep(whole.mul_f64(wait));
            } else {
                // Most rounds only strike while tiles are produced, which is the smaller part of such a small merge.
                while !workload.journal().exists() && child.try_wait().unwrap().is_none() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                std::thread::sleep(whole.mul_f64(wait / 2.0));
            }
            let sent = Instant::now();
            // The process may have ended already.
            let _ = kill_process(Pid::from_child(&child), signal);
            let status = child.wait().unwrap();
            assert!(sent.elapsed() < Duration::from_secs(2), "round {round}: took {:?}", sent.elapsed());
            let stopped = status.code() == code;
            assert!(stopped || status.code() == Some(0), "round {round}: {status}");
            if workload.is_right_or_untouched(&round) {
                break;
            }
        }
        resumed += u32::from(workload.assert_resumes(&round).contains(GOES_ON));
    }
    println!("{resumed} of {rounds} rounds went on");
    assert!(resumed > rounds / 10, "{resumed} of {rounds} rounds went on");
}

#[test]
fn a_run_killed_at_random_times_is_resumed() {
    struck_at_random_times(Signal::KILL, None, 8);
}

#[test]
fn a_run_stopped_at_random_times_is_resumed() {
    struck_at_random_times(Signal::TERM, Some(143), 5);
}

#[test]
#[ignore = "make soak"]
fn soak_a_run_killed_at_random_times_is_resumed() {
    struck_at_random_times(Signal::KILL, None, 200);
}

#[test]
#[ignore = "make soak"]
fn soak_a_run_stopped_at_random_times_is_resumed() {
    struck_at_random_times(Signal::TERM, Some(143), 50);
}

#[test]
fn a_second_signal_ends_the_run_at_once_and_it_is_resumed() {
    let workload = Workload::long();
    let whole = duration(&workload);
    workload.reset();
    let mut child = start(&workload);
    std::thread::sleep(whole / 2);
    for _ in 0..2 {
        let _ = kill_process(Pid::from_child(&child), Signal::TERM);
    }
    let sent = Instant::now();
    let status = child.wait().unwrap();
    assert!(matches!(status.code(), Some(143 | 0)), "{status}");
    assert!(sent.elapsed() < Duration::from_secs(1));
    workload.assert_resumes(&status);
}
