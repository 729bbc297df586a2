//! Kernels: the I/O patterns of known programs, with their sizes.
//!
//! This module holds plain data; `worker` runs the kernels. Invariant: a kernel that [`Kernel::check`] accepts writes
//! [`Kernel::len_bytes`] bytes of values, whatever the settings; a single measured step of [`Kernel::Nova`] may write
//! none.

use crate::error::WorkloadFault;
use crate::events::Events;
use crate::nova::{Creation, Nova, Partition, Step};
use crate::samples::SampleBoxes;
use serde::{Deserialize, Serialize};

/// An I/O pattern to measure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Kernel {
    /// One dataset of levels x rows x longitudes, written a few rows at a time over all levels, like the OCCAM
    /// conversion program (Hill, Smith and Trew 2005).
    Occam {
        /// Number of levels.
        levels: u64,
        /// Number of rows of latitude.
        rows: u64,
        /// Number of longitudes.
        longitudes: u64,
        /// Number of rows per write.
        rows_per_write: u64,
        /// Whether values have 8 bytes in memory and 4 in the file, in which case they are converted.
        #[serde(default)]
        converts: bool,
        /// Values to write.
        #[serde(default)]
        data: Data,
    },
    /// Many small datasets, each with attributes.
    Many {
        /// Number of datasets.
        datasets: u64,
        /// Elements of each dataset, of 8 bytes.
        elements: u64,
        /// Number of attributes of each dataset.
        attributes: u64,
        /// Whether to measure opening and reading all datasets instead of writing them.
        #[serde(default)]
        reads: bool,
    },
    /// Consecutive bursts in a file, as written by IOR.
    Ior {
        /// Interface to use.
        api: Api,
        /// Length of a burst, a multiple of 8: `W` of the paper's table I.
        burst_len_bytes: u64,
        /// Number of bursts per dataset, dealt to the ranks round-robin.
        bursts: u64,
        /// Number of equal blocks in which a rank writes its part of a burst, one call each: `T`.
        #[serde(default = "one")]
        blocks_per_burst: u64,
        /// Whether all ranks write a part of each burst, like processes of one node (`PPN`).
        #[serde(default)]
        divided: bool,
        /// Number of datasets; more than 1 only with HDF5.
        #[serde(default = "one")]
        datasets: u64,
        /// Whether ranks write their blocks collectively.
        #[serde(default)]
        collective: bool,
        /// Order of reading the file back; `None` if it is not read.
        read_back: Option<ReadBack>,
    },
    /// Bursts of random length in a random number of datasets, as IOR wrote them for the random patterns of Xie, Tang
    /// and others (2021).
    Random {
        /// Number of the pattern, which seeds the random choices.
        pattern: u64,
        /// Length of the longest burst; lengths are log-uniformly distributed from a thousandth of it.
        longest_len_bytes: u64,
        /// Maximum number of datasets.
        datasets: u64,
        /// Order of reading the file back; `None` if it is not read.
        read_back: Option<ReadBack>,
    },
    /// Eight variables of all particles, each written in one call, like VPIC-IO.
    Vpic {
        /// Number of particles.
        particles: u64,
    },
    /// The file of [`Kernel::Vpic`], read in parts, like BD-CATS-IO.
    Bdcats {
        /// Number of particles.
        particles: u64,
        /// Number of parts of each variable.
        parts: u64,
    },
    /// Boxes of unequal size, level by level, each written to its place in its level's dataset, like AMReX.
    Amrex {
        /// Number of levels.
        levels: u64,
        /// Number of boxes per level.
        boxes: u64,
        /// Number of cells along the longest edge of a box.
        longest_edge: u64,
        /// Number of values per cell.
        components: u64,
    },
    /// Tables to which every input appends its rows, like a merge that loops over its inputs.
    Concat {
        /// Number of inputs.
        inputs: u64,
        /// Number of tables.
        datasets: u64,
        /// Rows that an input appends to a table.
        rows: u64,
        /// Number of values per row, of 4 bytes.
        columns: u64,
    },
    /// Tables read by ranges of rows, as an analysis reads its share of a merged file.
    Read {
        /// Number of tables.
        datasets: u64,
        /// Rows of a table.
        rows: u64,
        /// Number of values per row, of 4 bytes.
        columns: u64,
        /// Number of rows per range.
        rows_per_read: u64,
        /// Whether ranges are read in random order, not one after another.
        #[serde(default)]
        shuffled: bool,
    },
    /// Files with the same datasets that are concatenated, like NOvA's.
    Nova(Nova),
    /// Boxes of samples that processes write as one dataset, without HDF5.
    Samples(SampleBoxes),
    /// Synthetic events, written in a separate format or in an HDF5 layout.
    Events(Events),
    /// Another program, run with the settings that `raddle apply` would give it. Its output is the contents of its
    /// folder when it ends.
    Program {
        /// Program and arguments; [`FOLDER_PLACEHOLDER`] stands for the folder of the run. Without the placeholder, the
        /// program runs in that folder.
        command: Vec<String>,
        /// Whether the files of the program must hold the same values under all settings.
        #[serde(default)]
        verify: Verify,
    },
}

/// Placeholder for the folder of a run in the arguments of [`Kernel::Program`].
pub const FOLDER_PLACEHOLDER: &str = "{scratch}";

/// Choice of when the files of a program are compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verify {
    /// Compare if two runs with the defaults write the same values.
    #[default]
    Auto,
    /// Always compare; two runs with the defaults must write the same values.
    Always,
    /// Do not compare.
    Never,
}

/// Interface of [`Kernel::Ior`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    /// `pwrite`.
    Posix,
    /// `MPI_File_write_at`, or `MPI_File_write_at_all`.
    Mpiio,
    /// `H5Dwrite`.
    Hdf5,
}

/// Assignment of the data to processes that read it back after writing, so that no process finds its own writes in its
/// memory or its node's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadBack {
    /// Each rank reads the data of the next rank, in the order in which it was written, like IOR's `-C`; a single
    /// process reads its own data.
    Shifted,
    /// Random order, dealt to the ranks round-robin, like IOR's `-Z`.
    Random,
}

/// Synthetic values: a smooth field with measurement noise and land.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Data {
    /// Number of equally likely noise values, in thousandths; a compressor cannot predict them (8 values are 3 bits).
    pub noise: u64,
    /// Share of values that are 0, in runs.
    pub zero_fraction: f64,
}

impl Default for Data {
    /// Returns values like ocean temperatures, with a third of land.
    fn default() -> Self {
        Self { noise: 8, zero_fraction: 0.33 }
    }
}

fn one() -> u64 {
    1
}

/// Maximum number of bursts of a dataset of [`Kernel::Random`].
pub const BURSTS: u64 = 8;

/// Variables of a particle.
pub const VARIABLES: [&str; 8] = ["x", "y", "z", "px", "py", "pz", "id1", "id2"];

/// Maximum number of datasets without rows, to catch typing errors.
const MAX_EMPTY: u64 = 1 << 20;

/// Largest size of a run that is accepted: 16 TiB.
const MAX_LEN_BYTES: u64 = 16 << 40;

impl Kernel {
    /// Returns the name used in files.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Occam { .. } => "occam",
            Self::Many { .. } => "many",
            Self::Ior { .. } => "ior",
            Self::Vpic { .. } => "vpic",
            Self::Bdcats { .. } => "bdcats",
            Self::Amrex { .. } => "amrex",
            Self::Concat { .. } => "concat",
            Self::Read { .. } => "read",
            Self::Random { .. } => "random",
            Self::Nova(_) => "nova",
            Self::Samples(_) => "samples",
            Self::Events(_) => "events",
            Self::Program { .. } => "program",
        }
    }

    /// Returns the named parameters whose product is the number of bytes written; the last is in bytes.
    fn factors(&self) -> Vec<(&'static str, u64)> {
        match *self {
            Self::Occam { levels, rows, longitudes, .. } => {
                vec![("levels", levels), ("rows", rows), ("longitudes", longitudes), ("element", 4)]
            }
            Self::Many { datasets, elements, .. } => {
                vec![("datasets", datasets), ("elements", elements), ("element", 8)]
            }
            Self::Random { longest_len_bytes, datasets, .. } => {
                vec![("datasets", datasets), ("bursts", BURSTS), ("longest_len_bytes", longest_len_bytes)]
            }
            Self::Samples(ref samples) => samples.factors(),
            Self::Events(ref events) => events.factors(),
            // The size of its output is unknown.
            Self::Program { .. } => vec![("program", 1)],
            Self::Ior { burst_len_bytes, bursts, datasets, .. } => {
                vec![("datasets", datasets), ("bursts", bursts), ("burst_len_bytes", burst_len_bytes)]
            }
            Self::Vpic { particles } | Self::Bdcats { particles, .. } => {
                vec![("particles", particles), ("element", 32)]
            }
            // No box is larger than the cube of the longest edge.
            Self::Amrex { levels, boxes, longest_edge: edge, components } => vec![
                ("levels", levels),
                ("boxes", boxes),
                ("longest_edge", edge),
                ("longest_edge", edge),
                ("longest_edge", edge),
                ("components", components),
                ("element", 8),
            ],
            Self::Concat { inputs, datasets, rows, columns } => {
                vec![("inputs", inputs), ("datasets", datasets), ("rows", rows), ("columns", columns), ("element", 4)]
            }
            Self::Read { datasets, rows, columns, .. } => {
                vec![("datasets", datasets), ("rows", rows), ("columns", columns), ("element", 4)]
            }
            Self::Nova(Nova { inputs, datasets, rows, columns, .. }) => {
                vec![("inputs", inputs), ("datasets", datasets), ("rows", rows), ("columns", columns), ("element", 4)]
            }
        }
    }

    /// Returns the number of bytes of values that the kernel writes, or an upper bound of it.
    pub fn len_bytes(&self) -> u64 {
        self.factors().iter().fold(1, |product, (_, factor)| product.saturating_mul(*factor))
    }

    /// Returns the extent of the kernel's datasets, for kernels whose chunk shape can be set.
    pub fn dims(&self) -> Vec<u64> {
        match *self {
            Self::Occam { levels, rows, longitudes, .. } => vec![levels, rows, longitudes],
            Self::Many { elements, .. } => vec![elements],
            Self::Ior { burst_len_bytes, bursts, .. } => vec![(burst_len_bytes / 8).saturating_mul(bursts)],
            Self::Vpic { particles } | Self::Bdcats { particles, .. } => vec![particles],
            Self::Concat { inputs, rows, columns, .. } => vec![inputs.saturating_mul(rows), columns],
            Self::Read { rows, columns, .. } => vec![rows, columns],
            Self::Nova(ref nova) => nova.dims(),
            // Each level or dataset has its own extent.
            Self::Amrex { .. } | Self::Random { .. } | Self::Program { .. } => Vec::new(),
            // Not for HDF5 settings.
            Self::Samples(_) | Self::Events(_) => Vec::new(),
        }
    }

    /// Returns the order in which the kernel reads back its output; `None` if it does not read.
    pub fn read_back(&self) -> Option<ReadBack> {
        match *self {
            Self::Ior { read_back, .. } | Self::Random { read_back, .. } => read_back,
            _ => None,
        }
    }

    /// Returns whether the kernel reads values, with or without writing them first.
    pub fn reads(&self) -> bool {
        let is_reader = match self {
            Self::Nova(nova) => nova.has_inputs(),
            _ => matches!(self, Self::Bdcats { .. } | Self::Read { .. } | Self::Many { reads: true, .. }),
        };
        is_reader || self.read_back().is_some()
    }

    /// Returns whether the kernel only reads or creates metadata, in which case no data rate can be computed.
    pub fn is_of_metadata(&self) -> bool {
        matches!(self, Self::Nova(Nova { only: Some(_), .. }))
    }

    /// Returns the number of processes of a kernel that uses writers of this program instead of libhdf5; `None` for
    /// kernels that measure HDF5 settings.
    pub fn local_processes(&self) -> Option<u64> {
        match self {
            Self::Samples(samples) => Some(samples.processes),
            Self::Events(events) => Some(events.processes),
            _ => None,
        }
    }

    /// Returns whether several ranks can share the kernel.
    pub fn is_for_ranks(&self) -> bool {
        matches!(
            self,
            Self::Ior { .. }
                | Self::Many { .. }
                | Self::Vpic { .. }
                | Self::Bdcats { .. }
                | Self::Amrex { .. }
                | Self::Random { .. }
                | Self::Nova(_)
                | Self::Samples(_)
                | Self::Events(_)
        )
    }

    /// Checks that `ranks` ranks can run the kernel.
    ///
    /// # Errors
    /// If they cannot, with the parameter that is wrong.
    pub fn check_ranks(&self, ranks: u32) -> Result<(), WorkloadFault> {
        let ranks = u64::from(ranks);
        if ranks > 1 && !self.is_for_ranks() {
            return Err(WorkloadFault::NotForRanks(self.name()));
        }
        if let Self::Nova(Nova { inputs, .. }) = self
            && *inputs < ranks
        {
            return Err(WorkloadFault::Conflict("there are fewer inputs than ranks"));
        }
        if ranks == 1 && matches!(self, Self::Nova(Nova { creation: Creation::Single, .. })) {
            return Err(WorkloadFault::Conflict("creation = single takes ranks"));
        }
        let Self::Ior { burst_len_bytes, bursts, blocks_per_burst, divided, collective, .. } = *self else {
            return Ok(());
        };
        let parts = blocks_per_burst.saturating_mul(if divided { ranks } else { 1 });
        if burst_len_bytes / 8 < parts {
            return Err(WorkloadFault::Size("blocks_per_burst (with the ranks that divide a burst)"));
        }
        // All ranks make the same number of calls.
        if collective && !divided && bursts % ranks != 0 {
            return Err(WorkloadFault::Size("bursts (must be a multiple of the ranks that write them collectively)"));
        }
        Ok(())
    }

    /// Returns the parameter that grows with the number of ranks in weak scaling.
    fn work_mut(&mut self) -> Option<&mut u64> {
        match self {
            Self::Ior { bursts, .. } => Some(bursts),
            Self::Many { elements, .. } => Some(elements),
            Self::Vpic { particles } | Self::Bdcats { particles, .. } => Some(particles),
            Self::Amrex { boxes, .. } => Some(boxes),
            Self::Nova(nova) => Some(&mut nova.inputs),
            _ => None,
        }
    }

    /// Scales the work of one rank to `ranks` ranks (weak scaling).
    #[must_use]
    pub fn for_each_of(mut self, ranks: u32) -> Self {
        if let Some(count) = self.work_mut() {
            *count = count.saturating_mul(u64::from(ranks));
        }
        self
    }

    /// Returns the work of one rank of `ranks` ranks. Inverts [`Self::for_each_of`].
    #[must_use]
    pub fn of_one_of(mut self, ranks: u32) -> Self {
        if let Some(count) = self.work_mut() {
            *count /= u64::from(ranks.max(1));
        }
        self
    }

    /// Checks the parameters of the kernel.
    ///
    /// # Errors
    /// If a parameter is out of range or does not fit the others. The error describes the first one.
    pub fn check(&self) -> Result<(), WorkloadFault> {
        let mut product = 1_u64;
        for (name, factor) in self.factors() {
            product = product.saturating_mul(factor);
            if factor == 0 || product > MAX_LEN_BYTES {
                return Err(WorkloadFault::Size(name));
            }
        }
        match *self {
            Self::Occam { rows, rows_per_write, .. } if rows_per_write == 0 || rows % rows_per_write != 0 => {
                Err(WorkloadFault::Size("rows_per_write (must divide rows)"))
            }
            Self::Occam { data: Data { noise, zero_fraction }, .. }
                if noise == 0 || noise > 1 << 20 || !(0.0..=1.0).contains(&zero_fraction) =>
            {
                Err(WorkloadFault::Size("data.noise or data.zero_fraction"))
            }
            Self::Read { rows, rows_per_read, .. } if rows_per_read == 0 || rows_per_read > rows => {
                Err(WorkloadFault::Size("rows_per_read (at most rows)"))
            }
            Self::Bdcats { parts, particles } if parts == 0 || parts > particles => Err(WorkloadFault::Size("parts")),
            Self::Random { longest_len_bytes, .. } if longest_len_bytes < 8192 => {
                Err(WorkloadFault::Size("longest_len_bytes (at least 8192)"))
            }
            Self::Nova(Nova { empty, .. }) if empty > MAX_EMPTY => Err(WorkloadFault::Size("empty")),
            Self::Nova(Nova { in_memory: true, partition: Partition::Datasets, .. }) => {
                Err(WorkloadFault::Conflict("files in memory are read by one process each: leave partition out"))
            }
            Self::Nova(Nova { only: Some(Step::Collect), creation: Creation::Single, .. }) => {
                Err(WorkloadFault::Conflict("only = collect creates nothing: leave creation out"))
            }
            Self::Samples(ref samples) => samples.check(),
            Self::Events(ref events) => events.check(),
            Self::Program { ref command, .. } if command.is_empty() => Err(WorkloadFault::Size("command")),
            Self::Ior { burst_len_bytes, .. } if burst_len_bytes % 8 != 0 => {
                Err(WorkloadFault::Size("burst_len_bytes (must be a multiple of 8)"))
            }
            Self::Ior { blocks_per_burst: 0, .. } => Err(WorkloadFault::Size("blocks_per_burst")),
            Self::Ior { api: Api::Posix | Api::Mpiio, datasets, .. } if datasets != 1 => {
                Err(WorkloadFault::Size("datasets (1 without HDF5)"))
            }
            Self::Ior { api: Api::Posix, collective: true, .. } => {
                Err(WorkloadFault::Size("collective (not with POSIX)"))
            }
            _ => Ok(()),
        }
    }
}
