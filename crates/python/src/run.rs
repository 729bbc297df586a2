//! Plans, merges, appends, verifications and inspections: takes requests and returns results as JSON.
//!
//! Keywords are the fields of requests, with the same names, defaults and checks as the command's options. The work
//! runs on a separate thread; the calling thread checks signals and passes progress on, several times a second.

use crate::attached::detached;
use crate::errors;
use crate::request::read;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use raddle::options::Inputs;
use raddle::references::write_references;
use raddle::text::json;
use raddle::text::keywords::as_keywords;
use raddle::{
    AppendRequest, Context, Error, MergeRequest, PlanRequest, PlannedMerge, RechunkRequest, SelectRequest,
    SplitRequest, VerifyRequest,
};
use raddle_core::cancel::CancelToken;
use raddle_core::report::progress::{Event, Observer, Severity, Watch};
use raddle_hdf5::child::{ChildOptions, ChildReader, ReaderCommand};
use raddle_merge::keys::partition::KeyedFile;
use raddle_merge::options::MergeOptions;
use raddle_merge::plan::MergePlan;
use raddle_merge::schema::display_path;
use raddle_merge::write::bridged;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Interval at which signals are checked and progress is passed on.
const PERIOD: Duration = Duration::from_millis(100);

/// Plans a merge; `options` are keywords of [`PlanRequest`].
#[pyfunction]
#[pyo3(signature = (inputs, options, progress=None))]
pub fn plan(py: Python<'_>, inputs: Vec<PathBuf>, options: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    watched(py, progress, |watch| {
        let mut request: PlanRequest = read(options, &[])?;
        request.inputs = with_listing(inputs, request.inputs);
        request.plan(&Context::new(*watch))?.summary().map(|summary| json(&summary))
    })
}

/// Merges files; `options` are keywords of [`MergeRequest`].
#[pyfunction]
#[pyo3(signature = (inputs, output, options, progress=None))]
pub fn merge(
    py: Python<'_>,
    inputs: Vec<PathBuf>,
    output: PathBuf,
    options: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    watched(py, progress, |watch| {
        let mut request: MergeRequest = read(options, &["output"])?;
        request.inputs = with_listing(inputs, request.inputs);
        request.output.output = output;
        let context = Context::new(*watch);
        let planned = request.plan(&context)?;
        write(planned, &context)
    })
}

/// Rewrites a file or, without an output, many; `options` are keywords of [`RechunkRequest`].
#[pyfunction]
#[pyo3(signature = (inputs, output, options, progress=None))]
pub fn rechunk(
    py: Python<'_>,
    inputs: Vec<PathBuf>,
    output: Option<PathBuf>,
    options: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    watched(py, progress, |watch| {
        let mut request: RechunkRequest = read(options, &["output"])?;
        request.inputs.inputs = inputs;
        request.destination.output = output;
        let context = Context::new(*watch);
        if request.is_for_files() {
            let files = request.inputs.expand_collective(context.ranks)?;
            let planned = request.plan_files(files, &context)?;
            for file in planned.skipped() {
                context.warn(format!("left out: {}: {}", file.path.display(), file.reason));
            }
            return Ok(json(&planned.run(&context)?));
        }
        let planned = request.plan(&context)?;
        write(planned, &context)
    })
}

/// Writes events of a file that satisfy conditions; `options` are keywords of [`SelectRequest`].
#[pyfunction]
#[pyo3(signature = (file, output, options, progress=None))]
pub fn select(
    py: Python<'_>,
    file: PathBuf,
    output: PathBuf,
    options: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    watched(py, progress, |watch| {
        let mut request = SelectRequest { file, ..read(options, &["output"])? };
        request.output.output = output;
        let context = Context::new(*watch);
        let planned = request.plan(&context)?;
        write(planned, &context)
    })
}

/// Merges files into several; `options` are keywords of [`SplitRequest`].
#[pyfunction]
#[pyo3(signature = (inputs, options, progress=None))]
pub fn split(py: Python<'_>, inputs: Vec<PathBuf>, options: &str, progress: Option<Py<PyAny>>) -> PyResult<String> {
    watched(py, progress, |watch| {
        let mut request: SplitRequest = read(options, &[])?;
        request.inputs = with_listing(inputs, request.inputs);
        let context = Context::new(*watch);
        let planned = request.plan(&context)?;
        note_differences(planned.plan(), watch);
        Ok(json(&planned.run(&context)?))
    })
}

/// Reports differences and warnings, writes the output, and returns the report.
fn write(planned: PlannedMerge, context: &Context<'_>) -> Result<String, Error> {
    note_differences(planned.plan(), &context.watch);
    if planned.part().is_some() {
        return Ok(json(&planned.run_part(context)?));
    }
    planned.warnings().into_iter().for_each(|warning| context.warn(warning));
    Ok(json(&planned.run(context)?))
}

/// Appends files; `options` are keywords of [`AppendRequest`].
#[pyfunction]
#[pyo3(signature = (file, inputs, options, progress=None))]
pub fn append(
    py: Python<'_>,
    file: PathBuf,
    inputs: Vec<PathBuf>,
    options: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    watched(py, progress, |watch| {
        let mut request = AppendRequest { file, ..read(options, &[])? };
        request.inputs = with_listing(inputs, request.inputs);
        let context = Context::new(*watch);
        let planned = request.plan(&context)?;
        if let Some(plan) = planned.plan() {
            note_differences(plan, watch);
        }
        Ok(json(&planned.run(&context)?))
    })
}

/// Returns inputs with these paths and the options of other inputs.
fn with_listing(inputs: Vec<PathBuf>, options: Inputs) -> Inputs {
    Inputs { inputs, ..options }
}

/// Reports the differences that `plan` resolves, if there are any.
fn note_differences(plan: &MergePlan, watch: &Watch<'_>) {
    let differences = bridged(plan);
    if !differences.is_empty() {
        watch.observer.event(&Event::Differences { differences });
    }
}

/// Verifies a file, against inputs if there are any; `options` are keywords of [`VerifyRequest`].
#[pyfunction]
#[pyo3(signature = (file, against, options, progress=None))]
pub fn verify(
    py: Python<'_>,
    file: PathBuf,
    against: Option<Vec<PathBuf>>,
    options: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    watched(py, progress, |watch| {
        let request: VerifyRequest = read(options, &[])?;
        if against.as_ref().is_some_and(Vec::is_empty) {
            return Err(Error::usage("no inputs given"));
        }
        let request = VerifyRequest { file, against: against.unwrap_or_default(), ..request };
        request.run(&Context::new(*watch)).map(|report| json(&report))
    })
}

/// Returns statistics of a file.
#[pyfunction]
pub fn inspect(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    let inspected = detached(py, || raddle::inspect(&path, child_reader().as_ref()))?;
    inspected.map(|inspection| json(&inspection)).map_err(|error| errors::of_error(py, &error))
}

/// Returns the process that reads what raddle does not read natively.
fn child_reader() -> Option<ChildReader> {
    ReaderCommand::of_this_program().map(|command| ChildReader::with_options(command, ChildOptions::default()))
}

/// Returns the location of each chunk of a file, as kerchunk JSON with `url` for the file, and the omitted objects with
/// the reasons.
#[pyfunction]
pub fn references(py: Python<'_>, path: PathBuf, url: &str) -> PyResult<(String, Vec<(String, String)>)> {
    let written = detached(py, || {
        let mut text = Vec::new();
        write_references(&path, url, child_reader().as_ref(), &mut text).map(|left_out| (text, left_out))
    })?;
    let (text, left_out) = written.map_err(|error| errors::of_error(py, &error))?;
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
        let failed = |error| Error::of_merge(&error, std::slice::from_ref(&path));
        let file = KeyedFile::open(&path, key, &MergeOptions::new(""), watch).map_err(failed)?;
        let share = file.share(rank, size).map_err(failed)?;
        Ok((json(&share), file.groups().map(<[u8]>::to_vec).collect::<Vec<_>>()))
    })?;
    Ok((share, groups.iter().map(|group| PyBytes::new(py, group).unbind()).collect()))
}

/// Returns the default number of threads, which is the number of cores available to this process.
#[pyfunction]
pub fn default_threads() -> usize {
    raddle_core::engine::default_jobs()
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

/// Accumulator of events from any thread, until the calling thread looks at them.
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
struct WakingObserver<'b> {
    board: &'b ProgressState,
    wake: Sender<()>,
}

impl Observer for WakingObserver<'_> {
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

/// Runs `work` on another thread; signals and errors of `progress` stop it.
pub fn watched<T: Send>(
    py: Python<'_>,
    progress: Option<Py<PyAny>>,
    work: impl FnOnce(&Watch<'_>) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let (board, cancel) = (ProgressState::default(), CancelToken::new());
    let mut raised: Option<PyErr> = None;
    let outcome = detached(py, || {
        std::thread::scope(|scope| {
            let (wake, woken) = channel::<()>();
            let (board, cancel) = (&board, &cancel);
            // The sender is dropped with the worker.
            let worker = scope.spawn(move || work(&Watch { observer: &WakingObserver { board, wake }, cancel }));
            loop {
                let over = woken.recv_timeout(PERIOD) == Err(RecvTimeoutError::Disconnected);
                let seen = Python::attach(|py| {
                    py.check_signals()?;
                    progress.as_ref().map_or(Ok(()), |progress| report_to_python(py, progress, board))
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
        (None, done) => done.map_err(|error| errors::of_error(py, &error)),
    }
}

/// Passes on everything that happened since the last call.
fn report_to_python(py: Python<'_>, progress: &Py<PyAny>, board: &ProgressState) -> PyResult<()> {
    let ProgressCounts { stages, messages, .. } = board.look();
    let stages: Vec<_> = stages
        .into_iter()
        .map(|tally| (tally.name, tally.bytes, tally.items, tally.total_bytes, tally.finished))
        .collect();
    progress.call1(py, (stages, messages)).map(drop)
}
