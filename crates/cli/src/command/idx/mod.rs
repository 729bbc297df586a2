//! `raddle idx`: arrays that can be read at any resolution; one file per subcommand.

pub mod info;
pub mod plan;
pub mod read;
pub mod target;
mod tuning;
mod update;
pub mod verify;
pub mod view;
pub mod write;

use crate::exit::Exit;
use crate::ranks::Ranks;
use raddle::Error;

/// Commands of `raddle idx`.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum IdxCommand {
    /// Write arrays of HDF5, .npy or raw files as fields or time steps of an IDX dataset, or as an OME-Zarr folder
    Write(Box<write::WriteArgs>),
    /// Show what each of many ranks would send, do and hold when writing a dataset, without writing anything
    Plan(plan::PlanArgs),
    /// Read a box of a dataset, at a given resolution, into an .npy or raw file
    Read(read::ReadArgs),
    /// Show the contents of a dataset or an OME-Zarr folder
    Info(info::InfoArgs),
    /// Check that every block exists and decodes, or that a dataset matches its inputs
    Verify(verify::VerifyArgs),
    /// Draw a slice of a dataset, at a given resolution, as a PNG picture
    View(view::ViewArgs),
}

impl IdxCommand {
    /// Returns whether ranks share the work of the subcommand.
    pub fn is_for_ranks(&self) -> bool {
        matches!(self, Self::Write(_) | Self::Read(_))
    }
}

/// Runs a subcommand; collective if ranks share the work.
pub fn run(command: &IdxCommand, team: &Ranks) -> Result<Exit, Error> {
    match command {
        IdxCommand::Write(arguments) => write::run(arguments, team),
        IdxCommand::Plan(arguments) => plan::run(arguments),
        IdxCommand::Read(arguments) => read::run(arguments, team),
        IdxCommand::Info(arguments) => info::run(arguments),
        IdxCommand::Verify(arguments) => verify::run(arguments),
        IdxCommand::View(arguments) => view::run(arguments),
    }
}
