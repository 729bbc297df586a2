//! The child's side of the conversation: sets limits first, then answers one request after the other.
//!
//! Invariant: a child outlives neither its parent nor its limits, leaves no core file and writes no file.

use super::cpu_time::CpuTime;
use super::inherited;
use super::library::{OpenFile, TaskOutcome};
use super::protocol::{self, Answer, Hello, Request};
use crate::wire_error::WireError;
use rustix::process::{Resource, Rlimit, Signal, getpid, kill_process, setrlimit};
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};

/// Answers requests about one file on the socket that is this process's standard input, until the parent closes it.
///
/// Call it in the main function of an executable that [`super::ChildReader`] starts, before anything else.
///
/// # Errors
/// If standard input is not such a socket, or the parent stops reading.
pub fn serve() -> io::Result<()> {
    inherited::close()?;
    let mut socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    raise(Resource::Nofile);
    limit(Resource::Core, 0)?;
    limit(Resource::Fsize, 0)?;
    let Some(greeting) = protocol::receive::<Hello>(&mut socket)? else { return Ok(()) };
    if greeting.version != env!("CARGO_PKG_VERSION") {
        return socket.write_all(&protocol::encode(&Answer::OtherVersion));
    }
    limit(Resource::As, greeting.address_space_len_bytes)?;
    socket.write_all(&protocol::encode(&Answer::Ready))?;

    let pending = Arc::new(AtomicUsize::new(0));
    let cpu_time = CpuTime::new(greeting.cpu_time_s, file_len_bytes(&greeting));
    let mut file: Option<OpenFile> = None;
    for request in listen(socket.try_clone()?, Arc::clone(&pending)) {
        cpu_time.allow_metadata()?;
        let outcome = match &mut file {
            Some(file) => file.answer(&request),
            None => OpenFile::open(&greeting, cpu_time).and_then(|opened| file.insert(opened).answer(&request)),
        };
        match outcome {
            Ok(TaskOutcome::Answer(answer)) => socket.write_all(&protocol::encode(&answer))?,
            Ok(TaskOutcome::Values(bytes)) => {
                socket.write_all(&protocol::values_header(bytes.len()))?;
                socket.write_all(&bytes)?;
            }
            Err(error) => socket.write_all(&protocol::encode(&Answer::Failed(WireError::from(error))))?,
        }
        pending.fetch_sub(1, Ordering::AcqRel);
    }
    Ok(())
}

/// Returns the length of the file, or 0 if it cannot be determined; opening the file will report why.
fn file_len_bytes(greeting: &Hello) -> u64 {
    std::fs::metadata(OsStr::from_bytes(&greeting.path)).map_or(0, |file| file.len())
}

/// Receives requests on a separate thread, which ends this process if the parent closes the socket while a request is
/// being answered: libhdf5 may never return from it.
fn listen(mut socket: UnixStream, pending: Arc<AtomicUsize>) -> Receiver<Request> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        while let Ok(Some(request)) = protocol::receive(&mut socket) {
            pending.fetch_add(1, Ordering::AcqRel);
            if sender.send(request).is_err() {
                return;
            }
        }
        if pending.load(Ordering::Acquire) > 0 {
            // Without destructors or exit handlers, because the other thread is inside libhdf5.
            let _ = kill_process(getpid(), Signal::KILL);
        }
    });
    receiver
}

/// Raises a limit to the hard limit, if the system permits it: virtual datasets may have thousands of sources.
fn raise(resource: Resource) {
    let maximum = rustix::process::getrlimit(resource).maximum;
    if maximum.is_some() {
        let _ = setrlimit(resource, Rlimit { current: maximum, maximum });
    }
}

/// Lowers a limit to `value`, or to the hard limit if that is lower.
fn limit(resource: Resource, value: u64) -> io::Result<()> {
    let hard = rustix::process::getrlimit(resource).maximum;
    let value = hard.map_or(value, |hard| hard.min(value));
    Ok(setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })?)
}
