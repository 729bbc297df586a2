//! Handling of SIGINT, SIGTERM and SIGUSR1 (which batch systems send before a job's time is over). The first signal
//! asks the run to stop: workers finish their tile, and placed data is kept for the next run. The second ends the
//! process immediately.
//!
//! SIGXFSZ is ignored, so that a write beyond the shell's limit of file size is an ordinary error. An abort, which is
//! how the standard library reacts to failed allocations, becomes the exit code for a limit unless a panic came before.
//! Any other fatal signal ends the process as usual, and the next run still resumes from the journal.

use crate::exit::Exit;
use signal_hook::consts::{SIGABRT, SIGINT, SIGTERM, SIGUSR1, SIGXFSZ};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// Signal received, if any.
#[derive(Debug, Clone, Default)]
pub struct SignalFlag(Arc<AtomicI32>);

impl SignalFlag {
    /// Returns whether a signal was received.
    pub fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// Returns the exit code of the signal, or of SIGINT if the run was cancelled without a signal.
    pub fn exit(&self) -> Exit {
        match self.0.load(Ordering::Relaxed) {
            SIGTERM => Exit::Terminated,
            SIGUSR1 => Exit::Announced,
            _ => Exit::Interrupted,
        }
    }
}

/// Handler of aborts. Until a panic is reported, an abort means that memory ran out.
#[derive(Debug, Clone)]
pub struct OomAbortHandler(Arc<AtomicBool>);

impl OomAbortHandler {
    /// Makes an abort end the process with the exit code for a limit.
    ///
    /// # Errors
    /// If the handler cannot be installed; an abort then ends the process as usual.
    pub fn watch() -> std::io::Result<Self> {
        let is_memory = Arc::new(AtomicBool::new(true));
        let code = i32::from(Exit::Limit.code());
        signal_hook::flag::register_conditional_shutdown(SIGABRT, code, Arc::clone(&is_memory))?;
        Ok(Self(is_memory))
    }

    /// Records that a later abort has another cause.
    pub fn no_longer(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Starts watching for signals. `stop` is called once, on a separate thread.
///
/// # Errors
/// If handlers or the thread cannot be set up.
pub fn watch(stop: impl Fn() + Send + 'static) -> std::io::Result<SignalFlag> {
    signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    let received = SignalFlag::default();
    let seen = received.clone();
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGUSR1])?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in &mut signals {
            if seen.0.swap(signal, Ordering::Relaxed) != 0 {
                // No destructors and no atexit handlers, which would make libhdf5 flush a file that is not wanted.
                signal_hook::low_level::exit(128 + signal);
            }
            stop();
        }
    })?;
    Ok(received)
}
