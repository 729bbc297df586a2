//! `raddle idx`: arrays that can be read at any resolution, one file per subcommand.

pub mod compare;
pub mod info;
mod inputs;
pub mod place;
pub mod plan;
pub mod read;
pub mod target;
mod tuning;
mod update;
pub mod verify;
pub mod view;
pub mod write;
pub mod zarr;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::team::Team;

/// Commands of `raddle idx`.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum IdxCommand {
    /// Write arrays of HDF5, .npy or raw files as fields or time steps of an IDX dataset, or as an OME-Zarr folder
    Write(Box<write::WriteArgs>),
    /// Tell what each of many ranks would send, make and hold to write a dataset; writes nothing
    Plan(plan::PlanArgs),
    /// Read a box of a dataset at a resolution into an .npy or raw file
    Read(read::ReadArgs),
    /// Tell what a dataset or an OME-Zarr folder holds
    Info(info::InfoArgs),
    /// Check that every block is there and decodes, or that a dataset holds what its inputs hold
    Verify(verify::VerifyArgs),
    /// Draw a slice of a dataset at a resolution as a PNG picture
    View(view::ViewArgs),
}

impl IdxCommand {
    /// Whether ranks share its work.
    pub fn is_for_ranks(&self) -> bool {
        matches!(self, Self::Write(_) | Self::Read(_))
    }
}

/// Runs one of them; collective where ranks share the work.
pub fn run(command: &IdxCommand, team: &Team) -> Result<Exit, Failure> {
    match command {
        IdxCommand::Write(arguments) => write::run(arguments, team),
        IdxCommand::Plan(arguments) => plan::run(arguments),
        IdxCommand::Read(arguments) => read::run(arguments, team),
        IdxCommand::Info(arguments) => info::run(arguments),
        IdxCommand::Verify(arguments) => verify::run(arguments),
        IdxCommand::View(arguments) => view::run(arguments),
    }
}
