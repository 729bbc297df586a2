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
pub fn is_out_of_memory() -> Arc<AtomicBool> {
    static SHARED: std::sync::LazyLock<Arc<AtomicBool>> = std::sync::LazyLock::new(|| Arc::new(AtomicBool::new(true)));
    Arc::clone(&SHARED)
}

/// Watches for signals from now on. `stop` is called once, on a thread of its own.
///
/// # Errors
/// If handlers or the thread cannot be set up.
pub fn watch(stop: impl Fn() + Send + 'static) -> std::io::Result<Received> {
    signal_hook::flag::register(SIGXFSZ, Arc::default())?;
    signal_hook::flag::register_conditional_shutdown(SIGABRT, i32::from(Exit::Limit.code()), is_out_of_memory())?;
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
