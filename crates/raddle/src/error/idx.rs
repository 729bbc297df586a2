//! Errors of IDX datasets and OME-Zarr folders.

use super::Error;
use crate::exit::Exit;
use crate::text::quantity;
use raddle_core::CoreError;
use raddle_idx::dataset::compression::BlockFault;
use raddle_idx::request::{Format, RequestFault};
use raddle_idx::targets::target;
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
            ErrorKind::Mismatch => Exit::Mismatch,
            ErrorKind::Cancelled => Exit::Interrupted,
            _ => Exit::Internal,
        };
        let failure = Self::new(exit, &error.to_string());
        match error {
            error if error.is_secondary() => failure.echo(),
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
            IdxError::NoTime { fault: TimeFault::Unnumbered, .. } => failure.hint("number it with --step N"),
            IdxError::NoTime { fault: TimeFault::Unnamed, .. } => failure.hint("name one with --step"),
            IdxError::NoTime { fault: TimeFault::TooLarge { .. }, .. } => {
                failure.hint("count the steps instead, or use a longer unit of time")
            }
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

impl From<IdxError> for Error {
    fn from(error: IdxError) -> Self {
        match &error {
            IdxError::Request { option, fault } => of_request(option, fault),
            IdxError::InputCounts { inputs, region } => {
                let what = format!("the inputs have {inputs} samples, but --into names a box of {region}");
                Self::new(Exit::InputRefused, &what)
            }
            IdxError::SampleMemory { needed_len_bytes, limit_bytes } => {
                let (needed, limit) = (quantity::size(*needed_len_bytes), quantity::size(*limit_bytes));
                let what = format!("the samples of one time step take {needed} of memory; the budget is {limit}");
                Self::new(Exit::Limit, &what).hint("raise --memory, or share the work across ranks with mpirun")
            }
            IdxError::IsInput { .. } => Self::of_idx(&error).hint("name another output"),
            IdxError::OtherFormat { readers, .. } => {
                Self::of_idx(&error).hint(&format!("read it with {readers}; raddle idx info and verify support it"))
            }
            _ => Self::of_idx(&error),
        }
    }
}

fn of_request(option: &str, fault: &RequestFault) -> Error {
    let failure = Error::usage(&format!("--{} {fault}", option.replace('_', "-")));
    match fault {
        RequestFault::OtherTarget { of, .. } => {
            let other = Format::ALL.into_iter().map(target).find(|format| format.title() == *of);
            match other.map(|format| format.name()).filter(|name| *name != target(Format::Idx).name()) {
                Some(name) => {
                    failure.hint(&format!("call the output NAME.{name}, or name the format with --format {name}"))
                }
                None => failure,
            }
        }
        RequestFault::FirstStep { .. } => failure.hint("leave out --step, and give all steps at once with --as steps"),
        RequestFault::NotTuned { .. } => {
            failure.hint("tune with an output NAME.idx and take its box and aggregators with --profile")
        }
        _ => failure,
    }
}
