//! SIGINT and SIGTERM: the first asks the run to stop (workers finish their tile, the temporary file is removed), the
//! second ends the process at once.

use crate::exit::Exit;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

/// Which signal arrived, if any.
#[derive(Debug, Clone, Default)]
pub struct Received(Arc<AtomicI32>);

impl Received {
    /// The exit code that tells of the signal; SIGINT's where the run was cancelled without one.
    pub fn exit(&self) -> Exit {
        match self.0.load(Ordering::Relaxed) {
            SIGTERM => Exit::Terminated,
            _ => Exit::Interrupted,
        }
    }
}

/// Watches for signals from now on. `stop` is called once, on a thread of its own.
///
/// # Errors
/// If handlers or the thread cannot be set up.
pub fn watch(stop: impl Fn() + Send + 'static) -> std::io::Result<Received> {
    let received = Received::default();
    let seen = received.clone();
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
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
