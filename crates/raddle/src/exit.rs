//! Exit codes, from which a script learns the outcome of a run without parsing messages.
//!
//! The numbers are a stable interface for users' scripts; a new meaning gets a new number.

use std::process::ExitCode;

/// Outcome of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Exit {
    /// Everything requested was done.
    Done = 0,
    /// A defect of raddle itself.
    Internal = 1,
    /// The command line is invalid.
    Usage = 2,
    /// An input is unreadable or does not fit the others; no output appears.
    InputRefused = 3,
    /// Done, but inputs (`--skip-bad`) or products (`--differing leave-out`) were left out.
    InputsSkipped = 4,
    /// The output could not be written: space, permission, device.
    Output = 5,
    /// A limit was reached: memory, open files, size.
    Limit = 6,
    /// Another run is writing the same output, or a program has an input open for writing.
    Locked = 7,
    /// A file does not contain what is expected: the inputs' content, the data written, or keys in order.
    Mismatch = 8,
    /// Stopped by SIGINT (128 + 2).
    Interrupted = 130,
    /// Stopped by SIGUSR1 (128 + 10), by which batch systems announce the end of a job's time.
    Announced = 138,
    /// Stopped by SIGTERM (128 + 15).
    Terminated = 143,
}

impl Exit {
    const ALL: [Self; 12] = [
        Self::Done,
        Self::Internal,
        Self::Usage,
        Self::InputRefused,
        Self::InputsSkipped,
        Self::Output,
        Self::Limit,
        Self::Locked,
        Self::Mismatch,
        Self::Interrupted,
        Self::Announced,
        Self::Terminated,
    ];

    /// Returns the exit code of the process.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// Returns the exit with this code; an internal error if the code is unknown.
    pub fn of_code(code: u8) -> Self {
        Self::ALL.into_iter().find(|exit| exit.code() == code).unwrap_or(Self::Internal)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// The table of exit codes for the help and the manual page.
pub const HELP: &str = "\
Exit codes:
  0  done
  1  internal error
  2  wrong usage
  3  input refused, no output
  4  done, but inputs or products were left out
  5  output could not be written (space, permission)
  6  a limit was reached (memory, open files, size)
  7  another run writes the same output, or another program an input
  8  verification or check found a difference
  130, 138, 143  stopped by SIGINT, SIGUSR1, SIGTERM";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_lead_back() {
        for exit in Exit::ALL {
            assert_eq!(Exit::of_code(exit.code()), exit);
        }
        assert_eq!(Exit::of_code(99), Exit::Internal);
    }
}
