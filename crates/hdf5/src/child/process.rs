//! A child process that may hang, crash or write anything: every wait has a deadline, and every child is reaped.
//!
//! This module handles frames, but not their meaning. Parent and child communicate over one socket, which is the
//! child's standard input, so that output of a library on standard output cannot disturb the conversation. Standard
//! error is kept for the message if the child dies.
//!
//! Invariant: a [`Process`] that failed once has been killed and reaped.

use super::protocol::{Frame, FrameHeader, HEADER_LEN_BYTES};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::ffi::OsString;
use std::fmt;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Length of standard error that is kept: enough for a panic message.
const ERRORS_KEPT_LEN_BYTES: usize = 2048;

/// Maximum length of one read from a pipe or socket.
const READ_LEN_BYTES: usize = 128 * 1024;

/// Time that a child that closed its socket may take to exit before it is killed.
const ENDING: Duration = Duration::from_secs(1);

/// Reason why a child ended or was not used.
#[derive(Debug)]
pub(super) enum ChildExit {
    /// The child ended without answering. The variant holds its exit status and the last line of its standard error.
    Ended(ExitStatus, String),
    /// The child was killed because it did not answer in time.
    TimedOut(Duration),
    /// The child exceeded its CPU time limit.
    OutOfCpuTime,
    /// The child was not asked, because its file has blocked other children for this long.
    GivenUp(Duration),
    /// The child was killed because its answer was invalid.
    Garbage(String),
    /// The child was killed because communication failed.
    Io(io::Error),
}

impl fmt::Display for ChildExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(status, last_words) => {
                match (status.signal(), status.code()) {
                    (Some(signal), _) => write!(f, "killed by signal {signal}{}", signal_name(signal))?,
                    (None, Some(code)) => write!(f, "exit code {code} without an answer")?,
                    (None, None) => f.write_str("ended without an answer")?,
                }
                if last_words.is_empty() { Ok(()) } else { write!(f, ": {last_words}") }
            }
            Self::TimedOut(timeout) => write!(f, "no answer within {timeout:?}"),
            Self::OutOfCpuTime => f.write_str("no answer within its CPU time"),
            Self::GivenUp(lost) => write!(f, "no answer in {} s; it is not asked again", lost.as_secs()),
            Self::Garbage(what) => write!(f, "invalid answer: {what}"),
            Self::Io(error) => write!(f, "communication failed: {error}"),
        }
    }
}

impl ChildExit {
    /// Returns whether the child would have run indefinitely.
    pub(super) fn is_hang(&self) -> bool {
        matches!(self, Self::TimedOut(_) | Self::OutOfCpuTime)
    }
}

/// Returns the name of a signal that ends processes on bad memory or limits.
fn signal_name(signal: i32) -> &'static str {
    match signal {
        libc::SIGSEGV => " (SIGSEGV)",
        libc::SIGABRT => " (SIGABRT)",
        libc::SIGBUS => " (SIGBUS)",
        libc::SIGFPE => " (SIGFPE)",
        libc::SIGILL => " (SIGILL)",
        libc::SIGKILL => " (SIGKILL)",
        _ => "",
    }
}

/// A running child.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    socket: UnixStream,
    errors: Option<ChildStderr>,
    last_errors: Vec<u8>,
}

impl Process {
    /// Starts `executable` with a socket as its standard input.
    pub(super) fn start(executable: &Path, arguments: &[OsString]) -> io::Result<Self> {
        let (socket, other_end) = UnixStream::pair()?;
        socket.set_nonblocking(true)?;
        let mut command = Command::new(executable);
        command
            .args(arguments)
            .stdin(OwnedFd::from(other_end))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // Relative names inside a file must not be resolved against the program's working directory.
            .current_dir("/");
        // HDF5_PLUGIN_PATH, HDF5_VDS_PREFIX, HDF5_EXTFILE_PREFIX, HDF5_DRIVER, ...: a file must mean the same
        // everywhere.
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"HDF5_") {
                command.env_remove(&name);
            }
        }
        // Relative names of external files are relative to the folder of the file that names them.
        command.env("HDF5_EXTFILE_PREFIX", "${ORIGIN}").env("RUST_BACKTRACE", "0");
        let mut child = command.spawn()?;
        let errors = child.stderr.take();
        if let Some(errors) = &errors {
            rustix::io::ioctl_fionbio(errors, true)?;
        }
        Ok(Self { child, socket, errors, last_errors: Vec::new() })
    }

    /// Sends a frame and receives the frame of the answer. After an error the process has ended.
    pub(super) fn exchange(
        &mut self,
        request: &[u8],
        timeout: Duration,
        limit_len_bytes: u64,
    ) -> Result<Frame, ChildExit> {
        self.converse(request, timeout, limit_len_bytes).inspect_err(|_| self.end())
    }

    fn converse(&mut self, request: &[u8], timeout: Duration, limit_len_bytes: u64) -> Result<Frame, ChildExit> {
        let deadline = Instant::now() + timeout;
        let (mut unsent, mut answer) = (request, Vec::new());
        let mut header: Option<FrameHeader> = None;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ChildExit::TimedOut(timeout));
            }
            let (socket_ready, errors_ready) = self.wait(!unsent.is_empty(), left).map_err(ChildExit::Io)?;
            if errors_ready {
                self.take_errors();
            }
            if socket_ready && !unsent.is_empty() {
                match self.socket.write(unsent) {
                    Ok(len) => unsent = &unsent[len..],
                    Err(error) if is_transient(&error) => {}
                    // It no longer reads; what it wrote before it ended must still be read.
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => unsent = &[],
                    Err(error) => return Err(ChildExit::Io(error)),
                }
            }
            if !socket_ready {
                continue;
            }
            let wanted = header.map_or(HEADER_LEN_BYTES as u64, |header| header.len_bytes) - answer.len() as u64;
            match self.take_bytes(wanted, &mut answer) {
                Ok(0) if wanted > 0 => return Err(self.ended()),
                Ok(_) => {}
                Err(error) if is_transient(&error) => continue,
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Err(self.ended()),
                Err(error) => return Err(ChildExit::Io(error)),
            }
            if header.is_none()
                && let Ok(bytes) = <&[u8; HEADER_LEN_BYTES]>::try_from(answer.as_slice())
            {
                header = Some(FrameHeader::parse(bytes, limit_len_bytes).map_err(ChildExit::Garbage)?);
                answer.clear();
            }
            if let Some(header) = header
                && answer.len() as u64 == header.len_bytes
            {
                return Ok(header.frame(answer));
            }
        }
    }

    /// Waits until the socket or standard error is ready, or `left` has passed.
    fn wait(&self, to_send: bool, left: Duration) -> io::Result<(bool, bool)> {
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        let wanted = if to_send { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let mut entries = Vec::with_capacity(2);
        entries.push(PollFd::new(&self.socket, wanted));
        if let Some(errors) = &self.errors {
            entries.push(PollFd::new(errors, PollFlags::IN));
        }
        match poll(&mut entries, Some(&timeout)) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok((false, false)),
            Err(error) => return Err(error.into()),
        }
        let ready = |entry: Option<&PollFd<'_>>| entry.is_some_and(|entry| !entry.revents().is_empty());
        Ok((ready(entries.first()), ready(entries.get(1))))
    }

    /// Appends at most `wanted` bytes of the socket; returns 0 at its end.
    fn take_bytes(&mut self, wanted: u64, answer: &mut Vec<u8>) -> io::Result<usize> {
        let start = answer.len();
        let len = usize::try_from(wanted).unwrap_or(usize::MAX).min(READ_LEN_BYTES);
        answer.resize(start + len, 0);
        let outcome = self.socket.read(&mut answer[start..]);
        answer.truncate(start + outcome.as_ref().map_or(0, |&read| read));
        outcome
    }

    /// Reads available standard error, so that the child never blocks on it, and keeps its end.
    fn take_errors(&mut self) {
        let mut block = [0; 4096];
        while let Some(errors) = &mut self.errors {
            match errors.read(&mut block) {
                Ok(0) => self.errors = None,
                Ok(len) => {
                    self.last_errors.extend_from_slice(&block[..len]);
                    let surplus = self.last_errors.len().saturating_sub(ERRORS_KEPT_LEN_BYTES);
                    self.last_errors.drain(..surplus);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => self.errors = None,
            }
        }
    }

    /// Returns the reason for the end of a child that closed its socket: its exit status, or garbage if it keeps
    /// running.
    fn ended(&mut self) -> ChildExit {
        let deadline = Instant::now() + ENDING;
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) if status.signal() == Some(libc::SIGXCPU) => return ChildExit::OutOfCpuTime,
                Ok(Some(status)) => {
                    self.take_errors();
                    return ChildExit::Ended(status, last_line(&self.last_errors));
                }
                Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(1)),
                Ok(None) => return ChildExit::Garbage("it closed the connection but kept running".to_owned()),
                Err(error) => return ChildExit::Io(error),
            }
        }
    }

    /// Kills the child if it still runs, and reaps it.
    fn end(&mut self) {
        // Both fail only for a child that has already been reaped.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Returns the last informative line, escaped for terminals.
fn last_line(errors: &[u8]) -> String {
    // Rust ends a panic message with advice.
    let says_something = |line: &&[u8]| !line.is_empty() && !line.starts_with(b"note: ");
    let line = errors.rsplit(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).find(says_something);
    line.unwrap_or_default().escape_ascii().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u64 = 1 << 20;

    /// Starts a shell in place of the reader, which communicates on its standard input.
    fn shell(script: &str) -> Process {
        Process::start(Path::new("/bin/sh"), &["-c".into(), script.into()]).unwrap()
    }

    fn death(script: &str, timeout: Duration) -> String {
        let mut process = shell(script);
        let death = process.exchange(b"request", timeout, LIMIT).unwrap_err();
        assert!(process.child.try_wait().unwrap().is_some(), "not reaped");
        death.to_string()
    }

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn an_answer_arrives_in_pieces() {
        let mut process = shell(
            r"printf 'RdH5\001\000' >&0; sleep 0.05; printf '\000\000\003\000\000\000\000\000\000\000a' >&0; printf bc >&0",
        );
        assert_eq!(process.exchange(b"request", LONG, LIMIT).unwrap(), Frame::Message(b"abc".to_vec()));
    }

    #[test]
    fn an_empty_frame_is_an_answer() {
        let mut process = shell(r"printf 'RdH5\002\000\000\000\000\000\000\000\000\000\000\000' >&0");
        assert_eq!(process.exchange(b"request", LONG, LIMIT).unwrap(), Frame::Values(Vec::new()));
    }

    #[test]
    fn death_by_signal_is_reported_with_the_last_words() {
        assert_eq!(
            death("echo 'first' >&2; echo 'la\u{1b}st' >&2; echo 'note: run it again' >&2; kill -SEGV $$", LONG),
            "killed by signal 11 (SIGSEGV): la\\x1bst"
        );
    }

    #[test]
    fn an_exit_without_an_answer_is_reported() {
        assert_eq!(death("exit 3", LONG), "exit code 3 without an answer");
    }

    #[test]
    fn death_in_the_middle_of_an_answer_is_reported() {
        assert_eq!(
            death(r"printf 'RdH5\001\000\000\000\003' >&0; kill -KILL $$", LONG),
            "killed by signal 9 (SIGKILL)"
        );
    }

    #[test]
    fn a_child_that_hangs_is_killed() {
        let start = Instant::now();
        assert_eq!(death("exec sleep 100", Duration::from_millis(200)), "no answer within 200ms");
        assert!(start.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_child_that_spins_is_ended_by_its_limit() {
        assert_eq!(death("ulimit -S -t 1; while :; do :; done", LONG), "no answer within its CPU time");
    }

    #[test]
    fn a_child_that_hangs_up_and_runs_on_is_killed() {
        assert!(death("exec sleep 100 <&-", LONG).contains("kept running"));
    }

    #[test]
    fn garbage_is_reported() {
        assert!(death("echo 'Segmentation fault, core not dumped' >&0; sleep 100", LONG).contains("Segmentation fa"));
    }

    #[test]
    fn a_huge_announced_length_takes_no_memory() {
        let huge = r"printf 'RdH5\001\000\000\000\377\377\377\377\377\377\377\177' >&0; sleep 100";
        assert!(death(huge, LONG).contains("announces 9223372036854775807 bytes"));
    }

    #[test]
    fn a_child_that_never_listens_does_not_block_a_long_request() {
        let mut process = shell("exec sleep 100");
        let request = vec![0; 8 << 20];
        let death = process.exchange(&request, Duration::from_millis(200), LIMIT).unwrap_err();
        assert!(matches!(death, ChildExit::TimedOut(_)), "{death}");
    }

    #[test]
    fn much_on_standard_error_does_not_block_the_child() {
        let script = r"i=0; while [ $i -lt 3000 ]; do echo 'a line of more than fifty bytes, to fill the pipe, number' $i >&2; i=$((i+1)); done; exit 7";
        let text = death(script, LONG);
        assert!(text.starts_with("exit code 7") && text.ends_with("number 2999"), "{text}");
    }

    #[test]
    fn a_dropped_child_is_reaped() {
        let process = shell("exec sleep 100");
        let id = rustix::process::Pid::from_child(&process.child);
        drop(process);
        assert_eq!(rustix::process::test_kill_process(id), Err(rustix::io::Errno::SRCH));
    }
}
