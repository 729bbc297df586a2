//! [`Kernel::Samples`](crate::kernel::Kernel::Samples) in numbers: boxes of samples that processes hold, and how they are written.
//!
//! Values only; the program that has the writers carries them out. The boxes, fields and choices are those of the microbenchmark
//! and of S3D-IO in Kumar and others (2012). Invariant: every process holds one cube of equal side.

use crate::error::WorkloadFault;
use serde::{Deserialize, Serialize};

/// Boxes of samples and how they are written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Samples {
    /// Processes, each with one box: ranks of MPI where this raddle has it, threads otherwise.
    pub processes: u64,
    /// Samples along each axis of a box.
    pub side: u64,
    /// Fields, each by the numbers in one of its samples.
    pub components: Vec<u64>,
    /// Type of these numbers.
    #[serde(default)]
    pub number: Number,
    /// What is written.
    #[serde(default)]
    pub output: Output,
    /// What samples go through before they are written as IDX: 1, 2 or 3 phases.
    #[serde(default = "three")]
    pub phases: u8,
    /// Power-of-two boxes that samples are brought into in three phases.
    #[serde(default)]
    pub imposed: Imposed,
    /// Blocks of an IDX file.
    #[serde(default = "usual_blocks_per_file")]
    pub blocks_per_file: u64,
    /// Processes that write blocks; all of them without.
    #[serde(default)]
    pub aggregators: Option<u64>,
}

/// Type of a number.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Number {
    /// 4 bytes.
    #[default]
    Float32,
    /// 8 bytes.
    Float64,
}

impl Number {
    /// Its length.
    pub fn len_bytes(self) -> u64 {
        match self {
            Self::Float32 => 4,
            Self::Float64 => 8,
        }
    }

    /// Its name in types of IDX.
    pub fn name(self) -> &'static str {
        match self {
            Self::Float32 => "float32",
            Self::Float64 => "float64",
        }
    }
}

/// What is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Output {
    /// An IDX dataset.
    #[default]
    Idx,
    /// A raw file for each process, as Fortran I/O of S3D and IOR with unique files write.
    FilePerProcess,
    /// One raw file in the order of the whole array, each process its rows by themselves, as IOR with a shared file and MPI-IO
    /// without aggregation write.
    SharedFile,
}

/// Power-of-two boxes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Imposed {
    /// The side of a process's box, rounded up to a power of two.
    #[default]
    Default,
    /// Twice that.
    Expanded,
}

fn three() -> u8 {
    3
}

fn usual_blocks_per_file() -> u64 {
    256
}

/// Most processes: what a machine can start as threads.
const MOST_PROCESSES: u64 = 4096;

impl Samples {
    /// Bytes of a sample of all fields.
    pub fn sample_len_bytes(&self) -> u64 {
        self.components.iter().sum::<u64>().saturating_mul(self.number.len_bytes())
    }

    /// Numbers that multiply to what is written, with names.
    pub(crate) fn factors(&self) -> Vec<(&'static str, u64)> {
        let sides = [("side", self.side); 3];
        let head = [("processes", self.processes), ("components", self.sample_len_bytes())];
        head.into_iter().chain(sides).collect()
    }

    /// Whether it can be carried out; numbers that are 0 are found elsewhere.
    ///
    /// # Errors
    /// If not, with what is wrong.
    pub(crate) fn check(&self) -> Result<(), WorkloadFault> {
        if !(1..=3).contains(&self.phases) {
            return Err(WorkloadFault::Size("phases, or none of 1, 2 and 3,"));
        }
        if self.components.contains(&0) {
            return Err(WorkloadFault::Size("components"));
        }
        if self.blocks_per_file == 0 {
            return Err(WorkloadFault::Size("blocks_per_file"));
        }
        if self.aggregators.is_some_and(|aggregators| aggregators == 0 || aggregators > self.processes) {
            return Err(WorkloadFault::Size("aggregators, or more than processes,"));
        }
        if self.processes > MOST_PROCESSES {
            return Err(WorkloadFault::Size("processes"));
        }
        Ok(())
    }
}
