//! SIGINT, SIGTERM and SIGUSR1 (which batch systems send before a job's time is over): the first asks the run to stop
//! (workers finish their tile, what is placed is kept for the next run), the second ends the process at once.
//!
//! SIGXFSZ is taken without a word, so that a write beyond the shell's limit of file size is an error like any other. An
//! abort, which is how the standard library answers memory that cannot be had, becomes the exit code of a limit, unless
//! a panic came before. Any other death is that of the process, and the next run goes on from the journal all the same.

use crate::exit::Exit;
use signal_hook::consts::{SIGABRT, SIGINT, SIGTERM, SIGUSR1, SIGXFSZ};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

/// Which signal arrived, if any.
#[derive(Debug, Clone, Default)]
pub struct Received(Arc<AtomicI32>);

impl Received {
    /// Whether one arrived.
    pub fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// The exit code that tells of the signal; SIGINT's where the run was cancelled without one.
    pub fn exit(&self) -> Exit {
        match self.0.load(Ordering::Relaxed) {
            SIGTERM => Exit::Terminated,
            SIGUSR1 => Exit::Announced,
            _ => Exit::Interrupted,
        }
    }
}

/// Whether an abort means that memory ran out: true until a panic is told.
#[derive(Debug, Clone)]
pub struct AbortIsMemory(Arc<AtomicBool>);

impl AbortIsMemory {
    /// From now on an abort ends the process with the exit code of a limit.
    ///
    /// # Errors
    /// If the handler cannot be set up; an abort then is the death of the process, as it would be without.
    pub fn watch() -> std::io::Result<Self> {
        let is_memory = Arc::new(AtomicBool::new(true));
        let code = i32::from(Exit::Limit.code());
        signal_hook::flag::register_conditional_shutdown(SIGABRT, code, Arc::clone(&is_memory))?;
        Ok(Self(is_memory))
    }

    /// An abort that follows has another cause.
    pub fn no_longer(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

/// Watches for signals from now on. `stop` is called once, on a thread of its own.
///
/// # Errors
/// If handlers or the thread cannot be set up.
pub fn watch(stop: impl Fn() + Send + 'static) -> std::io::Result<Received> {
    signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    let received = Received::default();
    let seen = received.clone();
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGUSR1])?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in &mut signals {
            if seen.0.swap(signal, Ordering::Relaxed) != 0 {
                // No destructors, no atexit handlers: libhdf5 would flush a file that nobody wants.
                signal_hook::low_level::exit(128 + signal);
            }
            stop();
        }
    })?;
    Ok(received)
}
