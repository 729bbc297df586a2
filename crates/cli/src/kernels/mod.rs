//! Kernels that `raddle bench` measures with raddle's own writers: boxes of samples, and events.
//!
//! Each run is a separate process, like all measured runs ([`raddle_tune::worker`]). The processes that share a run are
//! MPI ranks started by a launcher, or threads. Invariant: written data is read back and compared before its figures
//! are reported.

mod events;
mod samples;
mod values;

use raddle::Error;
use raddle_core::ranks::communicator::{AgreedError, Communicator, CommunicatorExt, SingleProcess};
use raddle_core::ranks::threads::Threads;
use raddle_core::ranks::timed::TimedCommunicator;
use raddle_core::report::{peak_rss_bytes, process_cpu_ns};
use raddle_mpi::{World, launcher};
use raddle_tune::error::TuneError;
use raddle_tune::kernel::Kernel;
use raddle_tune::worker::{self, Answer, CallCounter, KernelOutcome, Processes, Request, RunStage, StageTime};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Totals of a run.
#[derive(Debug, Default)]
struct KernelOutput {
    /// Number of bytes of values, over all processes.
    len_bytes: u64,
    /// Named counters.
    counts: BTreeMap<String, f64>,
}

impl KernelOutput {
    fn count(&mut self, name: &str, value: f64) {
        self.counts.insert(name.to_owned(), value);
    }
}

/// The work of one process in a run; only the writing is timed.
trait Work {
    /// Writes the data, collectively.
    fn write(&self, ranks: &dyn Communicator) -> Result<KernelOutput, Error>;

    /// Compares the written data with the expected data; each process compares its part.
    fn check(&self, ranks: &dyn Communicator) -> Result<(), Error>;
}

/// Executes the request in `file`, as one of several ranks or alone, and sends the answer.
///
/// # Errors
/// If the answer cannot be sent, or a rank failed.
pub fn serve(request: &Request, file: Option<&Path>) -> raddle_tune::Result<()> {
    let Some(file) = file else { return worker::say(&alone(request)) };
    worker::sign(file)?;
    let launched = launcher::launched();
    let rank = launched.and_then(|launched| launched.rank).and_then(|rank| u32::try_from(rank).ok()).unwrap_or(0);
    let refused = |why: &str| worker::say_of_rank(file, rank, &Answer::NotApplicable(why.to_owned()));
    let Some(launched) = launched else { return refused("no MPI launcher started this process") };
    let world = match World::join(&launched) {
        Ok(world) => world,
        Err(error) => return refused(&error.to_string()),
    };
    let ranks = world.communicator();
    if ranks.size() != request.ranks as usize {
        let (found, wanted) = (ranks.size(), request.ranks);
        return refused(&format!("{wanted} ranks were started, but MPI sees {found}"));
    }
    let answer = answer(carry_out(request, ranks, Some(Processes::Ranks)));
    worker::say_of_rank(file, rank, &answer)?;
    match answer {
        // MPI is not finalised, so that the launcher ends the ranks that wait for this one.
        Answer::Failed(message) => Err(TuneError::Run { message }),
        _ => {
            world.close();
            Ok(())
        }
    }
}

/// Executes a run without a launcher, with threads as its processes.
fn alone(request: &Request) -> Answer {
    let processes = request.kernel.local_processes().and_then(|count| usize::try_from(count).ok()).unwrap_or(1);
    if processes == 1 {
        return answer(carry_out(request, &SingleProcess, None));
    }
    let done = Threads::run(processes, |ranks| carry_out(request, ranks, Some(Processes::Threads)));
    let mut outcomes = Vec::new();
    for outcome in done {
        match outcome {
            Ok(outcome) => outcomes.push(outcome),
            Err(failure) => return Answer::Failed(failure.message().to_owned()),
        }
    }
    // All begin and end together, and the system counts for the process they share, so the first represents all.
    Answer::Done(outcomes.swap_remove(0))
}

fn answer(done: Result<KernelOutcome, Error>) -> Answer {
    match done {
        Ok(outcome) => Answer::Done(outcome),
        Err(failure) => Answer::Failed(failure.message().to_owned()),
    }
}

/// Collective. Executes this process's part of a run.
fn carry_out(
    request: &Request,
    ranks: &dyn Communicator,
    processes: Option<Processes>,
) -> Result<KernelOutcome, Error> {
    let folder = request.path.with_file_name("written");
    let created = match ranks.rank() {
        0 => std::fs::create_dir(&folder).map_err(|cause| Error::writing(&folder, &cause)),
        _ => Ok(()),
    };
    ranks.agree("make a folder", created)?;
    let work: Box<dyn Work> = match &request.kernel {
        Kernel::Samples(samples) => Box::new(samples::SamplesWork::new(samples, request, &folder, ranks)?),
        Kernel::Events(events) => Box::new(events::EventsWork::new(events, request, &folder)?),
        other => return Err(Error::usage(&format!("{} is not measured by writers of raddle", other.name()))),
    };
    let together = |ranks: &dyn Communicator| ranks.barrier().map_err(Error::of_ranks);
    together(ranks)?;
    let (counter, started, cpu_ns) = (CallCounter::start(), Instant::now(), process_cpu_ns());
    let timed = TimedCommunicator::new(ranks);
    let mut written = work.write(&timed)?;
    together(ranks)?;
    let (wall_s, cpu_s) = (started.elapsed().as_secs_f64(), (process_cpu_ns() - cpu_ns) as f64 * 1e-9);
    let calls = counter.stop().map(|counts| counts.calls);
    if ranks.size() > 1 {
        // The minimum over all processes: the others also wait for slower processes, which is not the cost of messages.
        let waited = ranks.all_gather_u64(timed.elapsed_s().to_bits()).map_err(Error::of_ranks)?;
        let min_s = waited.into_iter().map(f64::from_bits).fold(f64::INFINITY, f64::min);
        written.count("messages_s", min_s);
    }
    ranks.agree("compare what was written", work.check(ranks))?;
    let lens = file_lens(&folder)?;
    written.counts.entry("files".to_owned()).or_insert(lens.len() as f64);
    Ok(KernelOutcome {
        hdf5: String::new(),
        stages: vec![StageTime { stage: RunStage::Write, phase: None, wall_s, cpu_s }],
        len_bytes: written.len_bytes,
        calls,
        file_len_bytes: lens.iter().sum(),
        peak_rss_bytes: peak_rss_bytes(),
        counts: written.counts,
        processes,
        ..KernelOutcome::default()
    })
}

/// Returns the lengths of the files below `folder`.
fn file_lens(folder: &Path) -> Result<Vec<u64>, Error> {
    let mut folders: Vec<PathBuf> = vec![folder.to_path_buf()];
    let mut lens = Vec::new();
    while let Some(folder) = folders.pop() {
        let failed = |cause: std::io::Error| Error::writing(&folder, &cause);
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let metadata = entry.metadata().map_err(failed)?;
            if metadata.is_dir() { folders.push(entry.path()) } else { lens.push(metadata.len()) }
        }
    }
    Ok(lens)
}
