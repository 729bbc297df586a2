//! Runs by several ranks, which are threads here, resumed by any number of ranks: the bytes are those of one process.

use crate::folder::count_left_beside;
use crate::ranks::{Outcome, is_stopped, merge_by, numbers, report, run};
use raddle_codec::Effort;
use raddle_core::cancel::CancelToken;
use raddle_core::engine::{OutputRun, SharedFiles, SharedIo, SharedSink};
use raddle_core::ranks::threads::Threads;
use raddle_core::report::progress::{Event, Silent};
use raddle_merge::{
    Align, IoBackend, MergeContext, MergeError, MergeOptions, Watch, merge_collective, plan_collective,
};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Returns inputs, and options for a merge with memory for two batches per rank and round, which takes many rounds.
fn many_rounds(folder: &Path) -> (Vec<PathBuf>, MergeOptions) {
    let (inputs, options) = numbers(folder, 3, 80);
    (inputs, MergeOptions { force: true, memory_limit_bytes: 14 << 20, jobs: 1, ..options })
}

/// How chunks are written.
#[derive(Debug, Clone, Copy)]
enum Writes {
    /// By each thread separately.
    Each,
    /// By all ranks collectively, round by round, as through MPI-IO.
    Together,
}
use Writes::{Each, Together};

#[derive(Debug)]
struct ByRounds;

impl SharedFiles for ByRounds {
    fn open(&self, path: &Path) -> std::io::Result<Box<dyn SharedSink + '_>> {
        Ok(Box::new(OpenFile(OpenOptions::new().write(true).open(path)?)))
    }
}

#[derive(Debug)]
struct OpenFile(File);

impl SharedSink for OpenFile {
    fn write_together(&self, runs: &[OutputRun<'_>]) -> std::io::Result<()> {
        runs.iter().try_for_each(|run| self.0.write_all_at(run.bytes, run.address))
    }

    fn describe(&self) -> SharedIo {
        SharedIo { interface: "rounds".to_owned(), hints: BTreeMap::new() }
    }

    fn finish(self: Box<Self>) -> std::io::Result<()> {
        self.0.sync_data()
    }
}

/// Merges with `size` ranks, the last of which is stopped at its `stop_at`-th event after planning.
fn run_stopped(size: usize, inputs: &[PathBuf], options: &MergeOptions, stop_at: u64) -> Vec<Outcome> {
    run_by(Each, size, inputs, options, stop_at)
}

fn run_by(writes: Writes, size: usize, inputs: &[PathBuf], options: &MergeOptions, stop_at: u64) -> Vec<Outcome> {
    Threads::run(size, |ranks| {
        let (cancel, events, is_last) = (CancelToken::new(), AtomicU64::new(0), ranks.rank() + 1 == size);
        let plan = plan_collective(inputs, options, &Watch { observer: &Silent, cancel: &cancel }, ranks)?;
        let observer = |_: &Event| {
            if is_last && events.fetch_add(1, Ordering::Relaxed) == stop_at {
                cancel.cancel();
            }
        };
        let io = match writes {
            Each => IoBackend::Posix,
            Together => IoBackend::Shared(&ByRounds),
        };
        merge_collective(
            &plan,
            &Watch { observer: &observer, cancel: &cancel },
            ranks,
            MergeContext { io, ..MergeContext::default() },
        )
    })
}

/// Returns the number of tiles that all ranks report as kept; `None` if they completed the merge.
fn kept_tiles(outcomes: &[Outcome]) -> Option<u64> {
    let kept = |outcome: &Outcome| match outcome {
        Ok(_) => None,
        Err(MergeError::Resumable { kept, .. }) => Some(kept.tiles),
        Err(_) => Some(0),
    };
    assert!(outcomes.iter().all(|outcome| outcome.is_ok() || is_stopped(outcome)), "{outcomes:?}");
    assert!(outcomes.iter().all(|outcome| kept(outcome) == kept(&outcomes[0])), "{outcomes:?}");
    kept(&outcomes[0])
}

#[test]
fn any_number_of_ranks_resumes_from_what_any_number_left() {
    let folder = tempfile::tempdir().unwrap();
    let (inputs, options) = many_rounds(folder.path());
    let whole = report(run(1, &inputs, &options));
    let bytes = std::fs::read(&options.output).unwrap();
    std::fs::remove_file(&options.output).unwrap();
    let (mut went_on, mut most) = (0, 0);
    let stops = (0..200).step_by(2).zip([[3, 1, 2], [2, 4, 1], [1, 3, 3], [4, 2, 3]].into_iter().cycle());
    for (stop_at, [first, second, last]) in stops {
        // The progress of a rank at an event depends on the other ranks.
        if stop_at >= 48 && went_on >= 4 && most > whole.engine.tiles / 2 {
            return;
        }
        // Stopped twice, with different numbers of ranks.
        let mut kept = 0;
        for size in [first, second] {
            // Every other run writes collectively.
            let writes = if (stop_at / 2 + size as u64).is_multiple_of(2) { Together } else { Each };
            let outcomes = run_by(writes, size, &inputs, &options, stop_at);
            match kept_tiles(&outcomes) {
                None => {
                    assert_eq!(report(outcomes).resumed_tiles, kept);
                    kept = 0;
                    std::fs::remove_file(&options.output).unwrap();
                }
                Some(now) => {
                    assert!(now >= kept, "what was kept is kept");
                    kept = now;
                    assert!(!options.output.exists());
                }
            }
            assert_eq!(count_left_beside(&options.output), if kept > 0 { 2 } else { 0 });
        }
        (went_on, most) = (went_on + u32::from(kept > 0), kept.max(most));
        let last_writes = if stop_at % 4 == 0 { Together } else { Each };
        let done = report(run_by(last_writes, last, &inputs, &options, u64::MAX));
        assert_eq!((done.resumed_tiles, &done.digest), (kept, &whole.digest), "stopped at {stop_at}");
        assert_eq!(done.engine.stored_len_bytes, whole.engine.stored_len_bytes);
        assert!(std::fs::read(&options.output).unwrap() == bytes, "stopped at {stop_at}: other bytes");
        std::fs::remove_file(&options.output).unwrap();
        assert_eq!(count_left_beside(&options.output), 0);
    }
    panic!("{went_on} went on, from {most} tiles at most");
}

#[test]
fn nothing_is_kept_of_a_run_with_stripes() {
    let folder = tempfile::tempdir().unwrap();
    let (inputs, options) = many_rounds(folder.path());
    let options = MergeOptions { align: Some(Align::Stripes(4096)), ..options };
    let whole = report(run(1, &inputs, &options));
    let bytes = std::fs::read(&options.output).unwrap();
    std::fs::remove_file(&options.output).unwrap();
    for (size, writes) in [(1, Each), (3, Each), (2, Together)] {
        for stop_at in [6, 15] {
            let outcomes = run_by(writes, size, &inputs, &options, stop_at);
            assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(MergeError::Cancelled))), "{outcomes:?}");
            assert_eq!(count_left_beside(&options.output), 0);
        }
        let done = report(run_by(writes, size, &inputs, &options, u64::MAX));
        assert_eq!((done.resumed_tiles, &done.digest), (0, &whole.digest));
        assert!(std::fs::read(&options.output).unwrap() == bytes, "{size} ranks, {writes:?}: other bytes");
        std::fs::remove_file(&options.output).unwrap();
    }
}

#[test]
fn ranks_resume_only_from_what_is_theirs_and_whole() {
    let folder = tempfile::tempdir().unwrap();
    let (inputs, options) = many_rounds(folder.path());
    report(run(1, &inputs, &options));
    let bytes = std::fs::read(&options.output).unwrap();
    std::fs::remove_file(&options.output).unwrap();
    let hidden = |suffix: &str| folder.path().join(format!(".merged.h5.raddle-{suffix}"));
    let (part, journal) = (hidden("part"), hidden("journal"));
    let kept =
        (20..).find_map(|stop_at| kept_tiles(&run_stopped(3, &inputs, &options, stop_at)).filter(|kept| *kept > 100));
    let kept = kept.unwrap();
    let left = [&part, &journal].map(|path| std::fs::read(path).unwrap());
    let reported = |options: &MergeOptions, changed: &dyn Fn()| {
        std::fs::write(&part, &left[0]).unwrap();
        std::fs::write(&journal, &left[1]).unwrap();
        changed();
        let (warnings, cancel) = (Mutex::new(String::new()), CancelToken::new());
        let observer = |event: &Event| {
            if let Event::Message { text, .. } = event {
                warnings.lock().unwrap().push_str(text);
            }
        };
        let watch = Watch { observer: &observer, cancel: &cancel };
        let done = report(Threads::run(3, |ranks| merge_by(ranks, &inputs, options, &watch)));
        assert_eq!(count_left_beside(&options.output), 0);
        (done.resumed_tiles, warnings.into_inner().unwrap())
    };
    let is_right = || assert!(std::fs::read(&options.output).unwrap() == bytes);
    assert_eq!(reported(&options, &|| ()), (kept, String::new()));
    is_right();
    assert_eq!(reported(&MergeOptions { resume: false, ..options.clone() }, &|| ()), (0, String::new()));
    is_right();
    // Bytes that did not reach the disk, wherever they are: tiles before them are kept.
    let mut some_are_lost = false;
    for at in (0..left[0].len()).step_by(left[0].len() / 7) {
        let lose = || {
            let mut bytes = left[0].clone();
            let end = bytes.len().min(at + 4096);
            bytes[at..end].fill(0);
            std::fs::write(&part, bytes).unwrap();
        };
        let (resumed, _) = reported(&options, &lose);
        assert!(resumed <= kept);
        some_are_lost |= resumed > kept / 2 && resumed < kept;
        is_right();
    }
    assert!(some_are_lost, "what lies before lost bytes is kept, and no more");
    let (resumed, words) = reported(&MergeOptions { compress: Effort::Gzip(1).into(), ..options.clone() }, &|| ());
    assert!(resumed == 0 && words.contains("the options changed since; starting over"), "{words}");
    // Tested last, because it changes an input.
    let same = std::fs::read(&inputs[1]).unwrap();
    let (resumed, words) = reported(&options, &|| std::fs::write(&inputs[1], &same).unwrap());
    assert!(resumed == 0 && words.contains("the inputs changed since; starting over"), "{words}");
    is_right();
}
