//! Background syncing of files while they are still being written, so that the final fsync has little left to do.
//!
//! Flushing alone guarantees nothing: data written after the last flush is durable only once the caller has synced it.
//! A thread flushes one file at a time while others write. Invariant: no flush error is lost, because the system
//! reports it only once and to a single descriptor: [`Flusher::finish`] returns it.

use crate::engine::Sink;
use std::fs::File;
use std::io::Error;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Number of written bytes that justify a flush.
pub const MIN_FLUSH_LEN_BYTES: u64 = 8 << 20;

/// Files to flush, each identified by a number of the caller.
#[derive(Debug, Default)]
pub struct Flusher {
    running: Option<FlushThread>,
}

#[derive(Debug)]
struct FlushThread {
    files: SyncSender<(u32, Arc<File>)>,
    thread: JoinHandle<Result<(), (u32, Error)>>,
}

impl Flusher {
    /// Starts flushing a file in the background. Returns `false` without doing anything if the last flush is still
    /// running or one has failed.
    pub fn flush(&mut self, number: u32, file: &Arc<File>) -> bool {
        let running = match &self.running {
            Some(running) => running,
            None => match FlushThread::start() {
                Ok(running) => self.running.insert(running),
                // Without a thread, the final fsync does all the work.
                Err(_) => return false,
            },
        };
        running.files.try_send((number, Arc::clone(file))).is_ok()
    }

    /// Waits for the last flush.
    ///
    /// # Errors
    /// If a flush fails. Returns the first error, with the number of its file.
    pub fn finish(&mut self) -> Result<(), (u32, Error)> {
        let Some(FlushThread { files, thread }) = self.running.take() else { return Ok(()) };
        drop(files);
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        // The caller has given up: flush errors no longer matter, but the files must be closed.
        let _ = self.finish();
    }
}

impl FlushThread {
    fn start() -> Result<Self, Error> {
        let (files, to_flush) = sync_channel::<(u32, Arc<File>)>(0);
        let flush = move || {
            to_flush.into_iter().try_for_each(|(number, file)| file.sync_data().map_err(|error| (number, error)))
        };
        let thread = std::thread::Builder::new().name("flush".to_owned()).spawn(flush)?;
        Ok(Self { files, thread })
    }
}

/// An engine output that is flushed each time enough has been written to it.
#[derive(Debug)]
pub struct FlushedFile {
    file: Arc<File>,
    worth_len_bytes: u64,
    unflushed_len_bytes: AtomicU64,
    flusher: Mutex<Flusher>,
}

impl FlushedFile {
    /// Flushes `file` after every `worth_len_bytes`.
    pub fn new(file: File, worth_len_bytes: u64) -> Self {
        Self {
            file: Arc::new(file),
            worth_len_bytes,
            unflushed_len_bytes: AtomicU64::new(0),
            flusher: Mutex::default(),
        }
    }

    /// Waits for the last flush and returns the file.
    ///
    /// # Errors
    /// If a flush failed.
    pub fn finish(self) -> Result<Arc<File>, Error> {
        let mut flusher = self.flusher.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        flusher.finish().map_err(|(_, error)| error)?;
        Ok(self.file)
    }
}

impl Sink for FlushedFile {
    fn write_at(&self, address: u64, bytes: &[u8]) -> std::io::Result<()> {
        self.file.write_at(address, bytes)?;
        let len_bytes = bytes.len() as u64;
        let unflushed_len_bytes = self.unflushed_len_bytes.fetch_add(len_bytes, Ordering::Relaxed) + len_bytes;
        // The thread that holds the lock also flushes this thread's writes.
        if unflushed_len_bytes >= self.worth_len_bytes
            && let Ok(mut flusher) = self.flusher.try_lock()
            && flusher.flush(0, &self.file)
        {
            self.unflushed_len_bytes.store(0, Ordering::Relaxed);
        }
        Ok(())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::FileExt;

    #[test]
    fn files_are_flushed_and_failures_reported() {
        let mut flusher = Flusher::default();
        assert!(flusher.finish().is_ok());
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"flushed").unwrap();
        let file = Arc::new(file);
        while !flusher.flush(3, &file) {
            std::thread::yield_now();
        }
        assert!(flusher.finish().is_ok());

        // A pipe cannot be synced.
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

    #[test]
    fn a_file_that_is_written_from_several_threads_is_whole_and_failures_are_reported() {
        let file = tempfile::tempfile().unwrap();
        let flushed = FlushedFile::new(file, 1000);
        std::thread::scope(|scope| {
            for part in 0..4_u8 {
                let flushed = &flushed;
                let write = move |at: u64| flushed.write_at((u64::from(part) * 100 + at) * 100, &[part; 100]).unwrap();
                scope.spawn(move || (0..100).for_each(write));
            }
        });
        let mut written = vec![0; 40_000];
        flushed.finish().unwrap().read_exact_at(&mut written, 0).unwrap();
        assert!(written.chunks(10_000).enumerate().all(|(part, bytes)| bytes.iter().all(|&byte| byte == part as u8)));

        // One device accepts no bytes; the other accepts all but cannot be synced.
        let full = File::options().write(true).open("/dev/full").unwrap();
        assert!(FlushedFile::new(full, 1000).write_at(0, &[1; 2000]).is_err());
        let null = FlushedFile::new(File::options().write(true).open("/dev/null").unwrap(), 1000);
        // The first flush begins as soon as its thread waits for one.
        while null.unflushed_len_bytes.load(Ordering::Relaxed) != 0 || null.flusher.lock().unwrap().running.is_none() {
            null.write_at(0, &[1; 2000]).unwrap();
            std::thread::yield_now();
        }
        assert_eq!(null.finish().unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
    }
}
