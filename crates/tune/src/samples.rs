//! Parameters of [`Kernel::Samples`](crate::kernel::Kernel::Samples): boxes of samples that processes hold, and how
//! they are written.
//!
//! This module holds plain data, with which the writers run. Boxes, fields and options are those of the microbenchmark
//! and of S3D-IO in Kumar and others (2012). Invariant: every process holds one cube of equal side.

use crate::error::WorkloadFault;
use serde::{Deserialize, Serialize};

/// Boxes of samples, and how they are written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampleBoxes {
    /// Number of processes, each with one box: MPI ranks if this raddle supports MPI, otherwise threads.
    pub processes: u64,
    /// Number of samples along each axis of a box.
    pub side: u64,
    /// Number of components per sample of each field.
    pub components: Vec<u64>,
    /// Type of the components.
    #[serde(default)]
    pub number: SampleNumber,
    /// Format that is written.
    #[serde(default)]
    pub output: OutputFormat,
    /// Number of phases of writing IDX: 1, 2 or 3.
    #[serde(default = "three")]
    pub phases: u8,
    /// Size of the power-of-two boxes that samples are moved to in three phases.
    #[serde(default)]
    pub imposed: ImposedSize,
    /// Number of blocks per IDX file.
    #[serde(default = "usual_blocks_per_file")]
    pub blocks_per_file: u64,
    /// Number of processes that write blocks; `None`: all.
    #[serde(default)]
    pub aggregators: Option<u64>,
}

/// Type of a number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SampleNumber {
    /// 4-byte floating point.
    #[default]
    Float32,
    /// 8-byte floating point.
    Float64,
}

impl SampleNumber {
    /// Returns the length in bytes.
    pub fn len_bytes(self) -> u64 {
        match self {
            Self::Float32 => 4,
            Self::Float64 => 8,
        }
    }

    /// Returns the name of the IDX type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Float32 => "float32",
            Self::Float64 => "float64",
        }
    }
}

/// Format that is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputFormat {
    /// An IDX dataset.
    #[default]
    Idx,
    /// A raw file per process, like Fortran I/O of S3D and IOR with unique files.
    FilePerProcess,
    /// A single raw file in the order of the whole array; each process writes its rows separately, like IOR with a
    /// shared file and MPI-IO without aggregation.
    SharedFile,
}

/// Size of power-of-two boxes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImposedSize {
    /// The side of a process's box, rounded up to a power of two.
    #[default]
    Default,
    /// Twice the default.
    Expanded,
}

fn three() -> u8 {
    3
}

fn usual_blocks_per_file() -> u64 {
    256
}

/// Maximum number of processes, which a machine can start as threads.
const MAX_PROCESSES: u64 = 4096;

impl SampleBoxes {
    /// Returns the number of bytes of a sample, summed over all fields.
    pub fn sample_len_bytes(&self) -> u64 {
        self.components.iter().sum::<u64>().saturating_mul(self.number.len_bytes())
    }

    /// Returns the named parameters whose product is the number of bytes written.
    pub(crate) fn factors(&self) -> Vec<(&'static str, u64)> {
        let sides = [("side", self.side); 3];
        let head = [("processes", self.processes), ("components", self.sample_len_bytes())];
        head.into_iter().chain(sides).collect()
    }

    /// Checks the parameters; zeros are found elsewhere.
    ///
    /// # Errors
    /// If a parameter is out of range.
    pub(crate) fn check(&self) -> Result<(), WorkloadFault> {
        if !(1..=3).contains(&self.phases) {
            return Err(WorkloadFault::Size("phases (1, 2 or 3)"));
        }
        if self.components.contains(&0) {
            return Err(WorkloadFault::Size("components"));
        }
        if self.blocks_per_file == 0 {
            return Err(WorkloadFault::Size("blocks_per_file"));
        }
        if self.aggregators.is_some_and(|aggregators| aggregators == 0 || aggregators > self.processes) {
            return Err(WorkloadFault::Size("aggregators (at most processes)"));
        }
        if self.processes > MAX_PROCESSES {
            return Err(WorkloadFault::Size("processes"));
        }
        Ok(())
    }
}
