//! Files that are made durable while they are still being written, so that the last fsync has little left to do.
//!
//! Not a promise by itself: what was written after the last flush is durable when the caller has synced it. A thread flushes
//! one file at a time, while others write. Invariant: no error of a flush is lost, for the system tells it once and to one
//! descriptor: [`Flusher::finish`] gives it.

use std::fs::File;
use std::io::Error;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

/// Bytes written to a file that make a flush worth its call.
pub const WORTH_LEN_BYTES: u64 = 8 << 20;

/// The files in question, each with the caller's number.
#[derive(Debug, Default)]
pub struct Flusher {
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    files: SyncSender<(u32, Arc<File>)>,
    thread: JoinHandle<Result<(), (u32, Error)>>,
}

impl Flusher {
    /// Has what was written to a file made durable behind the caller's back. `false` if nothing is done: the last flush is
    /// still under way, or one has failed.
    pub fn flush(&mut self, number: u32, file: &Arc<File>) -> bool {
        let running = match &self.running {
            Some(running) => running,
            None => match Running::start() {
                Ok(running) => self.running.insert(running),
                // Without a thread the last fsync does it all.
                Err(_) => return false,
            },
        };
        running.files.try_send((number, Arc::clone(file))).is_ok()
    }

    /// Waits for the last flush.
    ///
    /// # Errors
    /// The first that failed, with the number of its file.
    pub fn finish(&mut self) -> Result<(), (u32, Error)> {
        let Some(Running { files, thread }) = self.running.take() else { return Ok(()) };
        drop(files);
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        // The caller has given up: what could not be flushed is of no interest, but the files are to be closed.
        let _ = self.finish();
    }
}

impl Running {
    fn start() -> Result<Self, Error> {
        let (files, to_flush) = sync_channel::<(u32, Arc<File>)>(0);
        let flush = move || {
            to_flush.into_iter().try_for_each(|(number, file)| file.sync_data().map_err(|error| (number, error)))
        };
        let thread = std::thread::Builder::new().name("flush".to_owned()).spawn(flush)?;
        Ok(Self { files, thread })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn files_are_flushed_and_failures_told() {
        let mut flusher = Flusher::default();
        assert!(flusher.finish().is_ok());
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"flushed").unwrap();
        let file = Arc::new(file);
        while !flusher.flush(3, &file) {
            std::thread::yield_now();
        }
        assert!(flusher.finish().is_ok());

        // A pipe cannot be made durable.
        let (_reader, writer) = std::io::pipe().unwrap();
        let pipe = Arc::new(File::from(std::os::fd::OwnedFd::from(writer)));
        for (number, file) in [(4, &file), (7, &pipe)] {
            while !flusher.flush(number, file) {
                std::thread::yield_now();
            }
        }
        assert!(!flusher.flush(8, &file));
        let (number, error) = flusher.finish().unwrap_err();
        assert_eq!((number, error.kind()), (7, std::io::ErrorKind::InvalidInput));
    }
}
