//! Errors of IDX datasets and OME-Zarr folders.

use super::Error;
use crate::exit::Exit;
use raddle_core::CoreError;
use raddle_idx::dataset::compression::BlockFault;
use raddle_idx::{ErrorKind, IdxError, TimeFault};

impl Error {
    /// Converts the error of writing or reading an IDX dataset.
    pub fn of_idx(error: &IdxError) -> Self {
        let exit = match error.kind() {
            ErrorKind::Usage => Exit::Usage,
            ErrorKind::Input => Exit::InputRefused,
            ErrorKind::Output => Exit::Output,
            ErrorKind::Limit => Exit::Limit,
            ErrorKind::Locked => Exit::Locked,
            ErrorKind::Cancelled => Exit::Interrupted,
            _ => Exit::Internal,
        };
        let failure = Self::new(exit, &error.to_string());
        match error {
            error if error.is_echo() => failure.echo(),
            IdxError::Core(CoreError::Cancelled) => Self::new(exit, "stopped before the end; nothing was published"),
            IdxError::Exists { .. } => failure.hint("replace it with --force, or name another output"),
            IdxError::OtherPreview { .. } => {
                failure.hint("name another folder with --preview=FOLDER, or remove this one if it is not needed")
            }
            IdxError::StepExists { .. } => failure
                .hint("name another step with --step, or rewrite the whole dataset with --force instead of --append"),
            IdxError::NoTime { fault: TimeFault::NotAdded, .. } => {
                failure.hint("rewrite it with --step N and --force instead of --append, or name another output")
            }
            IdxError::NoTime { fault: TimeFault::Unnamed, .. } => failure.hint("name one with --step"),
            IdxError::OnePhase { .. } => failure.hint("write raw blocks with -c none, or choose --phases two or three"),
            IdxError::Core(CoreError::Memory { .. }) => {
                failure.hint("use fewer --jobs, smaller blocks (--bits-per-block) or shards (--shard), or more ranks")
            }
            IdxError::Block { source: BlockFault::NotStored | BlockFault::NoFile, .. } => failure.hint(
                "read missing blocks as the default value with --missing-as-default, if they are missing on purpose",
            ),
            _ => failure,
        }
    }
}
