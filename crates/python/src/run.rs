//! Plans, merges, appends, verifications and inspections: takes a command line and returns the result as JSON.
//!
//! Options are those of the command, with the same names, defaults and checks, because they are parsed by the same
//! parser. The work runs on a separate thread; the calling thread checks signals and passes progress on, several times
//! a second.

use crate::attached::detached;
use crate::errors;
use crate::line;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use raddle_cli::arguments::{Arguments, Command};
use raddle_cli::command::inspect::write_references;
use raddle_cli::failure::Failure;
use raddle_cli::keywords::as_keywords;
use raddle_cli::preview::{self, MergePreview, ReportWithPreview};
use raddle_cli::render::json;
use raddle_cli::render::plan::Summary;
use raddle_core::cancel::CancelToken;
use raddle_core::ranks::communicator::SingleProcess;
use raddle_core::report::progress::{Event, Observer, Severity};
use raddle_hdf5::Hdf5Error;
use raddle_hdf5::child::{ChildOptions, ChildReader, ReaderCommand};
use raddle_hdf5::native::ReadLimits;
use raddle_hdf5::source::InputFile;
use raddle_merge::TileObserver;
use raddle_merge::keys::partition::KeyedFile;
use raddle_merge::options::{MergeOptions, Watch};
use raddle_merge::plan::MergePlan;
use raddle_merge::plan::prediction::{Sample, predict};
use raddle_merge::schema::display_path;
use raddle_merge::write::bridged;
use raddle_merge::write::parts::merge_part;
use std::ffi::OsString;
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Interval at which signals are checked and progress is passed on.
const PERIOD: Duration = Duration::from_millis(100);

/// Plans a merge; `arguments` are those of `raddle plan`.
#[pyfunction]
#[pyo3(signature = (arguments, progress=None))]
pub fn plan(py: Python<'_>, arguments: Vec<OsString>, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let Command::Plan(arguments) = parse(py, "plan", arguments)? else { return Err(other_command(py)) };
    watched(py, progress, |watch| {
        let inputs = arguments.inputs.expand(&mut std::io::empty())?;
        let options = arguments.options()?;
        let inputs = arguments.sorting.sort(inputs, &options, watch)?;
        let failed = |error| Failure::of_merge(&error, &inputs);
        let plan = raddle_merge::plan(&inputs, &options, watch).map_err(failed)?;
        options.selection.check_matched(&SingleProcess, watch).map_err(failed)?;
        let predicted = predict(&plan, Sample::THOROUGH).map_err(failed)?;
        Ok(json(&Summary::of(&plan, Some(predicted))))
    })
}

/// Merges files; `arguments` are those of `raddle merge`.
#[pyfunction]
#[pyo3(signature = (arguments, progress=None))]
pub fn merge(py: Python<'_>, arguments: Vec<OsString>, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let Command::Merge(arguments) = parse(py, "merge", arguments)? else { return Err(other_command(py)) };
    watched(py, progress, |watch| {
        arguments.check_alone()?;
        let inputs = arguments.inputs.expand(&mut std::io::empty())?;
        let mut options = arguments.options()?;
        raddle_merge::check_output(&options.output, &inputs, options.force)
            .map_err(|error| Failure::of_merge(&error, &inputs))?;
        options.output = raddle_merge::published_path(&options.output);
        preview::check(&arguments.preview, &options, arguments.part.is_some())?;
        let inputs = arguments.sorting.sort(inputs, &options, watch)?;
        let failed = |error| Failure::of_merge(&error, &inputs);
        let plan = raddle_merge::plan(&inputs, &options, watch).map_err(failed)?;
        options.selection.check_matched(&SingleProcess, watch).map_err(failed)?;
        note_differences(&plan, watch);
        if let Some(part) = arguments.part {
            return merge_part(plan, part, watch).map_err(failed).map(|done| json(&done));
        }
        let mut preview = MergePreview::of(&arguments.preview, &plan)?;
        preview.as_mut().map_or(Ok(()), |preview| preview.begin(&options))?;
        let warnings = preview.iter().flat_map(MergePreview::warnings);
        warnings.for_each(|text| watch.observer.event(&Event::Message { severity: Severity::Warning, text }));
        let tile_observer = preview.as_ref().map(|preview| preview as &dyn TileObserver);
        let done = raddle_merge::merge_with(&plan, watch, tile_observer).map_err(failed)?;
        Ok(json(&ReportWithPreview::new(&done, preview.as_ref())))
    })
}

/// Appends files; `arguments` are those of `raddle append`.
#[pyfunction]
#[pyo3(signature = (arguments, progress=None))]
pub fn append(py: Python<'_>, arguments: Vec<OsString>, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let Command::Append(arguments) = parse(py, "append", arguments)? else { return Err(other_command(py)) };
    watched(py, progress, |watch| {
        let inputs = arguments.inputs.expand(&mut std::io::empty())?;
        let options = arguments.options()?;
        let inputs = arguments.sorting.sort(inputs, &options, watch)?;
        let failed = |error| arguments.failure(&error, &inputs);
        let held = raddle_merge::append::open_for_append(&arguments.file).map_err(failed)?;
        let plan = raddle_merge::append::plan(&held, &inputs, arguments.again, &options, watch).map_err(failed)?;
        options.selection.check_matched(&SingleProcess, watch).map_err(failed)?;
        note_differences(&plan, watch);
        raddle_merge::append::append(&plan, &held, watch).map_err(failed).map(|done| json(&done))
    })
}

/// Reports the differences that `plan` resolves, if there are any.
fn note_differences(plan: &MergePlan, watch: &Watch<'_>) {
    let differences = bridged(plan);
    if !differences.is_empty() {
        watch.observer.event(&Event::Differences { differences });
    }
}

/// Verifies a file; `arguments` are those of `raddle verify`.
#[pyfunction]
#[pyo3(signature = (arguments, progress=None))]
pub fn verify(py: Python<'_>, arguments: Vec<OsString>, progress: Option<Py<PyAny>>) -> PyResult<String> {
    let Command::Verify(arguments) = parse(py, "verify", arguments)? else { return Err(other_command(py)) };
    watched(py, progress, |watch| {
        let inputs = arguments.inputs(&mut std::io::empty())?;
        arguments.verify(inputs, watch).map(|report| json(&report))
    })
}

/// Returns statistics of a file.
#[pyfunction]
pub fn inspect(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let inspected = detached(py, || {
        openable(&path)?;
        raddle_merge::append::redo::settle(&path)
            .map_err(|error| Refusal::Failed(Failure::of_merge(&error, std::slice::from_ref(&path))))?;
        let child = ReaderCommand::own().map(|command| ChildReader::with_options(command, ChildOptions::default()));
        let file = InputFile::open(&path).map_err(Refusal::Unreadable)?;
        raddle_hdf5::inspect::inspect(&file, &ReadLimits::default(), child.as_ref()).map_err(Refusal::Unreadable)
    })?;
    inspected.map(|inspection| json(&inspection)).map_err(|refusal| refusal.raised(py))
}

/// Returns the location of each chunk of a file, as kerchunk JSON with `url` for the file, and the omitted objects with
/// the reasons.
#[pyfunction]
pub fn references(py: Python<'_>, path: PathBuf, url: &str) -> PyResult<(String, Vec<(String, String)>)> {
    let written = detached(py, || {
        openable(&path)?;
        let mut text = Vec::new();
        let child = ReaderCommand::own().map(|command| ChildReader::with_options(command, ChildOptions::default()));
        let left_out = write_references(&path, url, child.as_ref(), &mut text).map_err(Refusal::Failed)?;
        Ok::<_, Refusal>((text, left_out))
    })?;
    let (text, left_out) = written.map_err(|refusal| refusal.raised(py))?;
    // Keys and values are created from text.
    let text = String::from_utf8_lossy(&text).into_owned();
    Ok((text, left_out.into_iter().map(|left| (display_path(&left.path), left.reason)).collect()))
}

/// Returns the share of events of reader `rank` of `size`, and the paths of its tables as stored in the file.
#[pyfunction]
pub fn partition(
    py: Python<'_>,
    path: PathBuf,
    key: &str,
    rank: u64,
    size: u64,
) -> PyResult<(String, Vec<Py<PyBytes>>)> {
    if rank >= size {
        return Err(errors::usage(py, &format!("reader {rank} of {size}")));
    }
    let (share, groups) = watched(py, None, |watch| {
        let failed = |error| Failure::of_merge(&error, std::slice::from_ref(&path));
        let file = KeyedFile::open(&path, key, &MergeOptions::new(""), watch).map_err(failed)?;
        let share = file.share(rank, size).map_err(failed)?;
        Ok((json(&share), file.groups().map(<[u8]>::to_vec).collect::<Vec<_>>()))
    })?;
    Ok((share, groups.iter().map(|group| PyBytes::new(py, group).unbind()).collect()))
}

/// Reason why a file is not read.
enum Refusal {
    Unreadable(Hdf5Error),
    Failed(Failure),
}

impl Refusal {
    fn raised(&self, py: Python<'_>) -> PyErr {
        match self {
            Self::Unreadable(error) => errors::of_hdf5(py, error),
            Self::Failed(failure) => errors::of_failure(py, failure),
        }
    }
}

/// Checks that a file can be opened. Called before anything else, so that the error distinguishes a missing file from a
/// damaged one.
fn openable(path: &Path) -> Result<(), Refusal> {
    InputFile::open(path).map(drop).map_err(Refusal::Unreadable)
}

/// Returns the default number of threads, which is the number of cores available to this process.
#[pyfunction]
pub fn default_threads() -> usize {
    raddle_core::engine::default_jobs()
}

fn parse(py: Python<'_>, command: &str, arguments: Vec<OsString>) -> PyResult<Command> {
    let line: Vec<OsString> = iter::once(command.into()).chain(arguments).collect();
    let parsed = line::parse::<Arguments>(&line).map_err(|failure| errors::of_failure(py, &failure))?;
    Ok(parsed.command)
}

fn other_command(py: Python<'_>) -> PyErr {
    errors::internal(py, "one command was parsed as another")
}

/// Totals of a stage so far.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    name: &'static str,
    bytes: u64,
    items: u64,
    total_bytes: Option<u64>,
    finished: bool,
}

/// Events collected so far.
#[derive(Debug, Clone, Default)]
struct ProgressCounts {
    /// Totals of stages, one for each time that a stage began.
    stages: Vec<Tally>,
    /// Severity and text of messages since the last look; for differences between inputs, the text is JSON.
    messages: Vec<(&'static str, String)>,
    /// Number of looks so far.
    looks: u64,
}

/// Accumulates events from any thread until the calling thread looks at them.
#[derive(Debug, Default)]
struct ProgressState {
    happened: Mutex<ProgressCounts>,
    looked: Condvar,
}

/// Maximum wait for a look at events for which the caller may want to stop the run.
const MAX_WAIT: Duration = Duration::from_secs(10);

impl ProgressState {
    fn lock(&self) -> MutexGuard<'_, ProgressCounts> {
        self.happened.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn look(&self) -> ProgressCounts {
        let mut happened = self.lock();
        ProgressCounts { stages: happened.stages.clone(), messages: std::mem::take(&mut happened.messages), looks: 0 }
    }

    /// Records that a look has ended, with all its effects.
    fn end_look(&self) {
        self.lock().looks += 1;
        self.looked.notify_all();
    }

    /// Waits until everything collected so far has been looked at.
    fn wait_for_look(&self) {
        let happened = self.lock();
        // A look may be under way that does not include the latest events.
        let enough = happened.looks + 2;
        let _ = self.looked.wait_timeout_while(happened, MAX_WAIT, |happened| happened.looks < enough);
    }
}

/// Observer of a run that fills the board and wakes the calling thread.
struct Telling<'b> {
    board: &'b ProgressState,
    wake: Sender<()>,
}

impl Observer for Telling<'_> {
    fn event(&self, event: &Event) {
        self.board.event(event);
        if let Event::Differences { .. } = event {
            // Before anything is written, because the caller may have turned warnings into errors.
            let _ = self.wake.send(()).and_then(|()| self.wake.send(()));
            self.board.wait_for_look();
        }
    }
}

impl Observer for ProgressState {
    fn event(&self, event: &Event) {
        let mut guard = self.lock();
        let ProgressCounts { stages, messages, .. } = &mut *guard;
        match event {
            Event::StageStarted { stage, total_bytes } => {
                stages.push(Tally { name: stage.name(), total_bytes: *total_bytes, ..Tally::default() });
            }
            Event::Advanced { stage, bytes, items } => {
                let name = stage.name();
                if !stages.iter().any(|tally| tally.name == name && !tally.finished) {
                    stages.push(Tally { name, ..Tally::default() });
                }
                if let Some(tally) = stages.iter_mut().rev().find(|tally| tally.name == name && !tally.finished) {
                    tally.bytes = tally.bytes.saturating_add(*bytes);
                    tally.items = tally.items.saturating_add(*items);
                }
            }
            Event::StageFinished { stage, .. } => {
                let open = stages.iter_mut().rev().find(|tally| tally.name == stage.name() && !tally.finished);
                open.into_iter().for_each(|tally| tally.finished = true);
            }
            Event::Message { severity, text } => {
                let severity = if *severity == Severity::Warning { "warning" } else { "note" };
                messages.push((severity, as_keywords(text)));
            }
            Event::Differences { differences } => messages.push(("differences", json(differences))),
            // Event kinds newer than this module are ignored.
            _ => {}
        }
    }
}

/// Does `work` on another thread; signals and errors of `progress` stop it.
pub fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Watch<'_>) -> Result<T, Failure> + Send,
) -> PyResult<T> {
    let (board, cancel) = (ProgressState::default(), CancelToken::new());
    let mut raised: Option<PyErr> = None;
    let outcome = detached(py, || {
        std::thread::scope(|scope| {
            let (wake, woken) = channel::<()>();
            let (board, cancel) = (&board, &cancel);
            // The sender is dropped with the worker.
            let worker = scope.spawn(move || work(&Watch { observer: &Telling { board, wake }, cancel }));
            loop {
                let over = woken.recv_timeout(PERIOD) == Err(RecvTimeoutError::Disconnected);
                let seen = Python::attach(|py| {
                    py.check_signals()?;
                    progress.as_ref().map_or(Ok(()), |progress| tell(py, progress, board))
                });
                if let Err(error) = seen {
                    cancel.cancel();
                    raised.get_or_insert(error);
                }
                board.end_look();
                if over {
                    break;
                }
            }
            // A panic of the worker is resumed here, as if there were no other thread.
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    });
    match (raised, outcome?) {
        (Some(error), _) => Err(error),
        (None, done) => done.map_err(|failure| errors::of_failure(py, &failure)),
    }
}

/// Passes on everything that happened since the last call.
fn tell(py: Python<'_>, progress: &Py<PyAny>, board: &ProgressState) -> PyResult<()> {
    let ProgressCounts { stages, messages, .. } = board.look();
    let stages: Vec<_> = stages
        .into_iter()
        .map(|tally| (tally.name, tally.bytes, tally.items, tally.total_bytes, tally.finished))
        .collect();
    progress.call1(py, (stages, messages)).map(drop)
}
