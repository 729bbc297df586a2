//! Errors of measurements and profiles.

use super::Error;
use crate::exit::Exit;
use crate::text::quantity;
use raddle_tune::TuneError;

impl Error {
    /// Converts the error of a measurement or of a profile.
    pub fn of_tune(error: &TuneError) -> Self {
        // A worker is another process, so only the text of its errors is available.
        let is_full = |message: &str| message.contains("No space left");
        let exit = match error {
            TuneError::NoSuchWorkload { .. } => Exit::Usage,
            TuneError::Io { operation: "reading the profile" | "reading the workload", .. } => Exit::InputRefused,
            TuneError::Io { .. } | TuneError::NoSpace { .. } => Exit::Output,
            TuneError::Run { message } if is_full(message) => Exit::Output,
            TuneError::Cancelled => Exit::Interrupted,
            TuneError::Answer { .. } | TuneError::NothingToCompare => Exit::Internal,
            _ => Exit::InputRefused,
        };
        let failure = Self::new(exit, &error.to_string());
        match error {
            TuneError::NoSpace { folder, needed_len_bytes, free_len_bytes } => {
                let (needed, free) = (quantity::size(*needed_len_bytes), quantity::size(*free_len_bytes));
                let what = format!("{}: {free} are free, but runs may need {needed}", folder.display());
                Self::new(exit, &what).hint("name a folder with more space with --scratch, or a smaller --scale")
            }
            TuneError::Run { message } if is_full(message) => {
                failure.hint("name a folder with more space with --scratch, or a smaller --scale")
            }
            TuneError::Io { operation: "making a scratch folder" | "asking for free space", .. } => {
                failure.hint("name a folder that can be written with --scratch")
            }
            _ => failure,
        }
    }
}
