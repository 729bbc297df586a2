//! What a run does to a file: the shapes of work that programs are known for, with their sizes.
//!
//! Values only; `worker` carries them out. Invariant: a kernel that [`Kernel::check`] accepts writes
//! [`Kernel::len_bytes`] bytes of values, whatever the settings; a step of [`Kernel::Nova`] that is measured alone may write none.

use crate::error::WorkloadFault;
use crate::events::Events;
use crate::nova::{Creation, Nova, Partition, Step};
use crate::samples::Samples;
use serde::{Deserialize, Serialize};

/// A shape of work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Kernel {
    /// One dataset of levels x rows x longitudes, written some rows at a time over all levels, as the OCCAM conversion
    /// program does (Hill, Smith and Trew 2005).
    Occam {
        /// Levels.
        levels: u64,
        /// Rows of latitude.
        rows: u64,
        /// Longitudes.
        longitudes: u64,
        /// Rows per write.
        rows_per_write: u64,
        /// Whether values have 8 bytes in memory and 4 in the file, and are converted.
        #[serde(default)]
        converts: bool,
        /// Values.
        #[serde(default)]
        data: Data,
    },
    /// Many small datasets, each with attributes.
    Many {
        /// Datasets.
        datasets: u64,
        /// Elements of each, of 8 bytes.
        elements: u64,
        /// Attributes of each.
        attributes: u64,
        /// Whether what is timed is opening and reading all of them.
        #[serde(default)]
        reads: bool,
    },
    /// Bursts one after the other in a file, as IOR writes them.
    Ior {
        /// Through what.
        api: Api,
        /// Bytes of a burst, a multiple of 8: `W` of the paper's table I.
        burst_len_bytes: u64,
        /// Bursts per dataset, dealt to the ranks in turn.
        bursts: u64,
        /// Equal blocks that a rank writes its part of a burst in, one call each: `T`.
        #[serde(default = "one")]
        blocks_per_burst: u64,
        /// Whether all ranks write a part of each burst, as processes of one node (`PPN`).
        #[serde(default)]
        divided: bool,
        /// Datasets; more than 1 only through HDF5.
        #[serde(default = "one")]
        datasets: u64,
        /// Whether ranks write their blocks together.
        #[serde(default)]
        collective: bool,
        /// Whether the file is read back, and in which order.
        read_back: Option<ReadBack>,
    },
    /// Bursts of drawn lengths into a drawn number of datasets, as IOR wrote for the random patterns of Xie, Tang and
    /// others (2021).
    Random {
        /// Which pattern: what is drawn.
        pattern: u64,
        /// Longest burst; lengths are equally likely on a logarithmic scale from a thousandth of it on.
        longest_len_bytes: u64,
        /// Most datasets.
        datasets: u64,
        /// Whether the file is read back, and in which order.
        read_back: Option<ReadBack>,
    },
    /// Eight variables of all particles, each written at once, as VPIC-IO does.
    Vpic {
        /// Particles.
        particles: u64,
    },
    /// The file of [`Kernel::Vpic`] read in parts, as BD-CATS-IO does.
    Bdcats {
        /// Particles.
        particles: u64,
        /// Parts of each variable.
        parts: u64,
    },
    /// Boxes of unequal size, level by level, each written at its place in its level's dataset, as AMReX does.
    Amrex {
        /// Levels.
        levels: u64,
        /// Boxes per level.
        boxes: u64,
        /// Cells along the longest edge of a box.
        longest_edge: u64,
        /// Values per cell.
        components: u64,
    },
    /// Tables to which every input adds its rows, as a merge in a loop over its inputs does.
    Concat {
        /// Inputs.
        inputs: u64,
        /// Tables.
        datasets: u64,
        /// Rows that an input adds to a table.
        rows: u64,
        /// Values of a row, of 4 bytes.
        columns: u64,
    },
    /// Tables read by ranges of rows, as an analysis reads its share of a merged file.
    Read {
        /// Tables.
        datasets: u64,
        /// Rows of a table.
        rows: u64,
        /// Values of a row, of 4 bytes.
        columns: u64,
        /// Rows of a range.
        rows_per_read: u64,
        /// Whether ranges come in drawn order, not one after the other.
        #[serde(default)]
        shuffled: bool,
    },
    /// Files of the same datasets that are concatenated, as NOvA's are.
    Nova(Nova),
    /// Boxes of samples that processes write as one dataset, without HDF5.
    Samples(Samples),
    /// Made events that are written in a format of their own or in a layout of HDF5.
    Events(Events),
    /// Another program, under the settings that `raddle apply` would give it. What it writes is what its folder holds when
    /// it has ended.
    Program {
        /// Its name and arguments, in which [`FOLDER_PLACEHOLDER`] stands for the folder of the run. Without it, the
        /// program runs in that folder.
        command: Vec<String>,
        /// Whether its files are to hold the same values under all settings.
        #[serde(default)]
        verify: Verify,
    },
}

/// Stands for the folder of a run in the arguments of [`Kernel::Program`].
pub const FOLDER_PLACEHOLDER: &str = "{scratch}";

/// Whether files of a program are compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verify {
    /// Where two runs with the defaults write the same values.
    #[default]
    Auto,
    /// Two runs with the defaults must.
    Always,
    /// Not at all.
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

/// Which process reads what once all is written, so that none finds its own writes in its memory or in its node's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadBack {
    /// Each rank reads what the next one wrote, in the order in which that wrote it, as with IOR's `-C`; a process that is
    /// alone reads what it wrote.
    Shifted,
    /// In drawn order, dealt to the ranks in turn, as with IOR's `-Z`.
    Random,
}

/// Made values: a smooth field with measuring noise and land.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Data {
    /// Equally likely values of the noise, in thousandths: what a compressor cannot foretell, 3 bits with 8.
    pub noise: u64,
    /// Share of values that are 0, in runs.
    pub zero_fraction: f64,
}

impl Default for Data {
    /// Ocean temperatures with a third of land.
    fn default() -> Self {
        Self { noise: 8, zero_fraction: 0.33 }
    }
}

fn one() -> u64 {
    1
}

/// Most bursts of a dataset of [`Kernel::Random`].
pub const BURSTS: u64 = 8;

/// Variables of a particle.
pub const VARIABLES: [&str; 8] = ["x", "y", "z", "px", "py", "pz", "id1", "id2"];

/// Most datasets without rows, as a guard against slips.
const MOST_EMPTY: u64 = 1 << 20;

/// Longest run that is believed: 16 TiB.
const LONGEST_BYTES: u64 = 16 << 40;

impl Kernel {
    /// Name in files.
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

    /// Numbers that multiply to what is written, with names; the last is bytes.
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
            // What it writes is not known.
            Self::Program { .. } => vec![("program", 1)],
            Self::Ior { burst_len_bytes, bursts, datasets, .. } => {
                vec![("datasets", datasets), ("bursts", bursts), ("burst_len_bytes", burst_len_bytes)]
            }
            Self::Vpic { particles } | Self::Bdcats { particles, .. } => {
                vec![("particles", particles), ("element", 32)]
            }
            // No box is larger than the longest edge says.
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

    /// Bytes of values that it writes, or at most writes.
    pub fn len_bytes(&self) -> u64 {
        self.factors().iter().fold(1, |product, (_, factor)| product.saturating_mul(*factor))
    }

    /// Extent of its datasets, where chunks may be asked for.
    pub fn dims(&self) -> Vec<u64> {
        match *self {
            Self::Occam { levels, rows, longitudes, .. } => vec![levels, rows, longitudes],
            Self::Many { elements, .. } => vec![elements],
            Self::Ior { burst_len_bytes, bursts, .. } => vec![(burst_len_bytes / 8).saturating_mul(bursts)],
            Self::Vpic { particles } | Self::Bdcats { particles, .. } => vec![particles],
            Self::Concat { inputs, rows, columns, .. } => vec![inputs.saturating_mul(rows), columns],
            Self::Read { rows, columns, .. } => vec![rows, columns],
            Self::Nova(ref nova) => nova.dims(),
            // Each level or dataset has its own.
            Self::Amrex { .. } | Self::Random { .. } | Self::Program { .. } => Vec::new(),
            // Not for settings of HDF5.
            Self::Samples(_) | Self::Events(_) => Vec::new(),
        }
    }

    /// How it reads back what it wrote, if it does.
    pub fn read_back(&self) -> Option<ReadBack> {
        match *self {
            Self::Ior { read_back, .. } | Self::Random { read_back, .. } => read_back,
            _ => None,
        }
    }

    /// Whether it reads values, alone or after writing them.
    pub fn reads(&self) -> bool {
        let is_reader = match self {
            Self::Nova(nova) => nova.has_inputs(),
            _ => matches!(self, Self::Bdcats { .. } | Self::Read { .. } | Self::Many { reads: true, .. }),
        };
        is_reader || self.read_back().is_some()
    }

    /// Whether it reads or creates metadata only, so that no rate can be given.
    pub fn is_of_metadata(&self) -> bool {
        matches!(self, Self::Nova(Nova { only: Some(_), .. }))
    }

    /// Processes that share a run of a kernel that is measured without a chosen libhdf5, by writers of this program; `None` for
    /// kernels that settings of HDF5 are measured with.
    pub fn own_processes(&self) -> Option<u64> {
        match self {
            Self::Samples(samples) => Some(samples.processes),
            Self::Events(events) => Some(events.processes),
            _ => None,
        }
    }

    /// Whether several ranks can share it.
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

    /// Checks that `ranks` ranks can run it.
    ///
    /// # Errors
    /// If not, with the number that is wrong.
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
            return Err(WorkloadFault::Size("blocks_per_burst, with the ranks that divide a burst,"));
        }
        // All ranks make equally many calls.
        if collective && !divided && bursts % ranks != 0 {
            return Err(WorkloadFault::Size("bursts, or no multiple of the ranks that write them together,"));
        }
        Ok(())
    }

    /// The number that grows with the ranks where each has the same work.
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

    /// The same work for each of `ranks`, where this is the work of one: weak scaling.
    #[must_use]
    pub fn for_each_of(mut self, ranks: u32) -> Self {
        if let Some(count) = self.work_mut() {
            *count = count.saturating_mul(u64::from(ranks));
        }
        self
    }

    /// The work of one rank, where this is that of `ranks` as of [`Self::for_each_of`].
    #[must_use]
    pub fn of_one_of(mut self, ranks: u32) -> Self {
        if let Some(count) = self.work_mut() {
            *count /= u64::from(ranks.max(1));
        }
        self
    }

    /// Whether it can be carried out.
    ///
    /// # Errors
    /// If not, with the number that is wrong.
    pub fn check(&self) -> Result<(), WorkloadFault> {
        let mut product = 1_u64;
        for (name, factor) in self.factors() {
            product = product.saturating_mul(factor);
            if factor == 0 || product > LONGEST_BYTES {
                return Err(WorkloadFault::Size(name));
            }
        }
        match *self {
            Self::Occam { rows, rows_per_write, .. } if rows_per_write == 0 || rows % rows_per_write != 0 => {
                Err(WorkloadFault::Size("rows_per_write, or no divisor of rows,"))
            }
            Self::Occam { data: Data { noise, zero_fraction }, .. }
                if noise == 0 || noise > 1 << 20 || !(0.0..=1.0).contains(&zero_fraction) =>
            {
                Err(WorkloadFault::Size("data.noise or data.zero_fraction"))
            }
            Self::Read { rows, rows_per_read, .. } if rows_per_read == 0 || rows_per_read > rows => {
                Err(WorkloadFault::Size("rows_per_read, or more than rows,"))
            }
            Self::Bdcats { parts, particles } if parts == 0 || parts > particles => Err(WorkloadFault::Size("parts")),
            Self::Random { longest_len_bytes, .. } if longest_len_bytes < 8192 => {
                Err(WorkloadFault::Size("longest_len_bytes below 8192"))
            }
            Self::Nova(Nova { empty, .. }) if empty > MOST_EMPTY => Err(WorkloadFault::Size("empty")),
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
                Err(WorkloadFault::Size("burst_len_bytes modulo 8"))
            }
            Self::Ior { blocks_per_burst: 0, .. } => Err(WorkloadFault::Size("blocks_per_burst")),
            Self::Ior { api: Api::Posix | Api::Mpiio, datasets, .. } if datasets != 1 => {
                Err(WorkloadFault::Size("datasets without HDF5"))
            }
            Self::Ior { api: Api::Posix, collective: true, .. } => Err(WorkloadFault::Size("collective of POSIX")),
            _ => Ok(()),
        }
    }
}
