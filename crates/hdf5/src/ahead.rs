//! Reader of whole datasets with prefetching: if a program seems to read one dataset after another, threads read the
//! following ones in the background.
//!
//! Objects are numbered in the order in which a traversal of the file visits them. A program that has read a few
//! datasets in that order probably reads the next ones too. Threads decode those while the program works with the
//! values that it has, or decodes another dataset. The amount read ahead grows as long as the prediction is right.
//! Datasets that were read ahead but not requested make the next prediction wait longer.
//!
//! Invariants: values are passed on once, so that a second read of a dataset reads the file again; an error in the
//! background is not reported, because the dataset is read again when it is requested; a prediction looks at each
//! object once; threads end when nothing is left to read.

use crate::Result;
use crate::fork::BackgroundThread;
use crate::model::{ObjectIndex, ObjectKind};
use crate::open_file::{OpenFile, PreparedDataset};
use crate::reuse::{Buffer, SPARE};
use raddle_core::parallel::pool;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Limit of the values that wait to be requested, per thread: enough for a few datasets, and little enough that their
/// memory is soon reused, while the processor's caches still hold it.
const MAX_WAITING_LEN_BYTES: u64 = 4 << 20;

/// Maximum length of the values that wait in all files of the process, per thread of a file: many files may stay open.
const MAX_PROCESS_LEN_BYTES: u64 = 16 * MAX_WAITING_LEN_BYTES;

/// Maximum length of the values that wait after the first prediction.
const MAX_FIRST_LEN_BYTES: u64 = 1 << 20;

/// Maximum length of a dataset that is read ahead. A longer dataset is read by all threads together when it is
/// requested.
const MAX_DATASET_LEN_BYTES: u64 = 8 << 20;

/// Maximum number of datasets that wait.
const MAX_WAITING: usize = 256;

/// Length of values that justifies starting a thread: reading fewer values takes no longer than starting one.
const MIN_THREAD_LEN_BYTES: u64 = 128 << 10;

/// Number of datasets that a program may leave out without ending a prediction, such as strings among numbers.
const MAX_LEFT_OUT: usize = 4;

/// Limit of the difference of the numbers of two datasets that are read in order. Empty datasets lie between them.
const MAX_DISTANCE: ObjectIndex = 4096;

/// Number of datasets read in order before the first prediction.
const MIN_SEQUENTIAL_READS: u32 = 2;

/// Maximum number of datasets that must be read in order before a prediction. Values that were read ahead but not
/// requested raise the number.
const MAX_SEQUENTIAL_READS: u32 = 64;

/// Interval at which a waiting program checks whether to continue.
const ASKING_PERIOD: Duration = Duration::from_millis(20);

/// Reader of whole datasets of one file.
#[derive(Debug)]
pub struct WholeReader {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    file: Arc<OpenFile>,
    state: Mutex<State>,
    /// Condition variable that is notified when a dataset has been read in the background.
    read: Condvar,
}

#[derive(Debug)]
struct State {
    /// Dataset that was requested last.
    last: Option<ObjectIndex>,
    /// Number of datasets requested in order.
    in_order: u32,
    /// Number of datasets in order that a prediction needs.
    patience: u32,
    /// Limit of the values in `queue`; 0 without a prediction.
    window_len_bytes: u64,
    /// Predicted datasets in the order of their numbers.
    queue: VecDeque<Item>,
    /// First object that the prediction has not looked at.
    next_object: ObjectIndex,
    next_ticket: u64,
    threads: usize,
    is_closed: bool,
}

/// A dataset that will probably be requested.
#[derive(Debug)]
struct Item {
    index: ObjectIndex,
    /// Number that distinguishes two predictions of one dataset.
    ticket: u64,
    prepared: Arc<PreparedDataset>,
    waiting: WaitingBytes,
    stage: ReadStage,
}

/// Length of a predicted dataset, counted for the limit of the process.
#[derive(Debug)]
struct WaitingBytes(u64);

static WAITING_LEN_BYTES: AtomicU64 = AtomicU64::new(0);

impl WaitingBytes {
    fn new(len_bytes: u64) -> Self {
        WAITING_LEN_BYTES.fetch_add(len_bytes, Ordering::Relaxed);
        Self(len_bytes)
    }
}

impl Drop for WaitingBytes {
    fn drop(&mut self) {
        WAITING_LEN_BYTES.fetch_sub(self.0, Ordering::Relaxed);
    }
}

#[derive(Debug)]
enum ReadStage {
    Waiting,
    Running,
    Read(Buffer),
    Failed,
}

/// State of a prefetched dataset.
enum PredictedState {
    Read(Buffer),
    Running,
    /// The dataset is left to the thread that requests it.
    Left,
}

impl WholeReader {
    /// Creates a reader of the datasets of `file` with as many threads as the file was opened with.
    pub fn new(file: Arc<OpenFile>) -> Self {
        let state = State {
            last: None,
            in_order: 0,
            patience: MIN_SEQUENTIAL_READS,
            window_len_bytes: 0,
            queue: VecDeque::new(),
            next_object: 0,
            next_ticket: 0,
            threads: 0,
            is_closed: false,
        };
        let shared = Shared { file, state: Mutex::new(state), read: Condvar::new() };
        Self { shared: Arc::new(shared) }
    }

    /// Reads all values of a dataset whose type is not file-local and that [`OpenFile::reads_natively`]; `None` if
    /// `go_on`, which is called from time to time, returned false.
    ///
    /// # Errors
    /// As for [`OpenFile::read`].
    pub fn read(&self, index: ObjectIndex, go_on: &mut dyn FnMut() -> bool) -> Result<Option<Buffer>> {
        let shared = &self.shared;
        let mut state = shared.lock();
        shared.follow(&mut state, index);
        loop {
            match state.take(index) {
                PredictedState::Read(buffer) => {
                    Shared::refill(shared, &mut state);
                    drop(state);
                    let prepared = shared.file.prepared(index)?;
                    return shared.file.check_dataset(&prepared).map(|()| Some(buffer));
                }
                PredictedState::Left => break,
                PredictedState::Running => {
                    // Meanwhile this thread reads another one.
                    if let Some(job) = state.next_job() {
                        drop(state);
                        state = shared.run(&job);
                        continue;
                    }
                    let waited = shared.read.wait_timeout(state, ASKING_PERIOD).unwrap_or_else(PoisonError::into_inner);
                    drop(waited.0);
                    if waited.1.timed_out() && !go_on() {
                        return Ok(None);
                    }
                    state = shared.lock();
                }
            }
        }
        Shared::refill(shared, &mut state);
        drop(state);
        let prepared = shared.file.prepared(index)?;
        let mut buffer = SPARE.buffer(prepared.len_bytes() as usize);
        Ok(shared.file.read_whole(&prepared, shared.file.threads(), &mut buffer, go_on)?.map(|()| buffer))
    }
}

impl Drop for WholeReader {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.is_closed = true;
        state.queue.clear();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Compares the requested dataset with the prediction.
    fn follow(&self, state: &mut State, index: ObjectIndex) {
        let is_next = state.last.is_some_and(|last| {
            let mut left_out = (last + 1..index).filter(|&between| self.readable(between).is_some());
            index > last && index - last < MAX_DISTANCE && left_out.nth(MAX_LEFT_OUT).is_none()
        });
        state.last = Some(index);
        let unused = match is_next {
            true => state.queue.iter().take_while(|item| item.index < index).count(),
            false => state.queue.len(),
        };
        let was_unused = state.queue.drain(..unused).any(|item| !matches!(item.stage, ReadStage::Waiting));
        if !is_next {
            (state.in_order, state.window_len_bytes, state.next_object) = (0, 0, 0);
            if was_unused {
                state.patience = (state.patience * 2).min(MAX_SEQUENTIAL_READS);
            }
            return;
        }
        state.in_order += 1;
        if state.in_order >= state.patience {
            let longest = self.file.threads() as u64 * MAX_WAITING_LEN_BYTES;
            let grown = state.window_len_bytes.saturating_mul(2).clamp(MAX_FIRST_LEN_BYTES, longest);
            state.window_len_bytes = if was_unused { (grown / 4).max(MAX_FIRST_LEN_BYTES) } else { grown };
        }
        if state.in_order > MAX_SEQUENTIAL_READS {
            state.patience = MIN_SEQUENTIAL_READS;
        }
    }

    /// Returns the length of a dataset that can be read ahead.
    fn readable(&self, index: ObjectIndex) -> Option<u64> {
        let (dataspace, class) = match &self.file.object(index).ok()?.kind {
            ObjectKind::Dataset(_) | ObjectKind::Templated(_) => self.file.outline(index).ok()??,
            _ => return None,
        };
        let len_bytes = dataspace.dims().iter().try_fold(class.len_bytes(), |len, &dim| len.checked_mul(dim))?;
        (!class.is_file_local() && len_bytes > 0).then_some(len_bytes)
    }

    /// Predicts datasets up to the limit, and starts threads for them.
    fn refill(shared: &Arc<Self>, state: &mut State) {
        let file = &shared.file;
        if state.window_len_bytes == 0 || file.threads() < 2 {
            return;
        }
        let mut queued: u64 = state.queue.iter().map(|item| item.waiting.0).sum();
        let most = file.threads() as u64 * MAX_PROCESS_LEN_BYTES;
        let end = file.tree().objects.len() as ObjectIndex;
        state.next_object = state.next_object.max(state.last.map_or(0, |last| last + 1));
        while state.next_object < end
            && queued < state.window_len_bytes
            && state.queue.len() < MAX_WAITING
            && WAITING_LEN_BYTES.load(Ordering::Relaxed) < most
        {
            let index = state.next_object;
            let readable = shared.readable(index);
            if readable.is_some_and(|len_bytes| len_bytes > MAX_DATASET_LEN_BYTES) {
                // Nothing after a long dataset is read until the program has reached it.
                break;
            }
            state.next_object += 1;
            let Some(len_bytes) = readable else { continue };
            let Ok(prepared) = file.prepared(index) else { continue };
            if file.reads_natively(&prepared) {
                queued += len_bytes;
                let (ticket, waiting) = (state.next_ticket, WaitingBytes::new(len_bytes));
                state.next_ticket += 1;
                state.queue.push_back(Item { index, ticket, prepared, waiting, stage: ReadStage::Waiting });
            }
        }
        let waiting = state.queue.iter().filter(|item| matches!(item.stage, ReadStage::Waiting));
        let (count, len_bytes) = waiting.fold((0, 0), |(count, len), item| (count + 1, len + item.waiting.0));
        let worth = usize::try_from(len_bytes / MIN_THREAD_LEN_BYTES).unwrap_or(usize::MAX).min(count);
        while state.threads < worth.min(file.threads() - 1) {
            let Some(running) = BackgroundThread::new() else { break };
            let shared = Arc::clone(shared);
            let started = pool::start(move || {
                shared.work();
                // The file is closed before the thread counts as ended.
                drop(shared);
                drop(running);
            });
            if started.is_err() {
                break;
            }
            state.threads += 1;
        }
    }

    /// Reads predicted datasets until none is waiting.
    fn work(&self) {
        let mut state = self.lock();
        while !state.is_closed
            && !BackgroundThread::is_paused()
            && let Some(job) = state.next_job()
        {
            drop(state);
            state = self.run(&job);
        }
        state.threads -= 1;
    }

    /// Reads a predicted dataset with one thread.
    fn run(&self, job: &Job) -> MutexGuard<'_, State> {
        let read = catch_unwind(AssertUnwindSafe(|| {
            let mut buffer = SPARE.buffer(job.prepared.len_bytes() as usize);
            let read = self.file.read_whole(&job.prepared, 1, &mut buffer, &mut || true);
            matches!(read, Ok(Some(()))).then_some(buffer)
        }));
        let mut state = self.lock();
        if let Some(item) = state.queue.iter_mut().find(|item| item.ticket == job.ticket) {
            item.stage = read.ok().flatten().map_or(ReadStage::Failed, ReadStage::Read);
        }
        self.read.notify_all();
        state
    }
}

/// A predicted dataset that one thread reads.
struct Job {
    ticket: u64,
    prepared: Arc<PreparedDataset>,
}

impl State {
    /// Takes over the first predicted dataset that no thread reads.
    fn next_job(&mut self) -> Option<Job> {
        let item = self.queue.iter_mut().find(|item| matches!(item.stage, ReadStage::Waiting))?;
        item.stage = ReadStage::Running;
        Some(Job { ticket: item.ticket, prepared: Arc::clone(&item.prepared) })
    }

    /// Takes a dataset out of the queue unless it is being read.
    fn take(&mut self, index: ObjectIndex) -> PredictedState {
        let Some(place) = self.queue.iter().position(|item| item.index == index) else { return PredictedState::Left };
        if matches!(self.queue[place].stage, ReadStage::Running) {
            return PredictedState::Running;
        }
        match self.queue.remove(place).map(|item| item.stage) {
            Some(ReadStage::Read(buffer)) => PredictedState::Read(buffer),
            _ => PredictedState::Left,
        }
    }
}
