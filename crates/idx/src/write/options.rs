//! Options of writing a time step, and the report of a write. Nothing here writes.

use crate::dataset::bitmask::MAX_RANK;
use crate::error::Result;
use crate::write::restructure::ImposedBox;
use raddle_codec::Effort;
use raddle_core::engine::EngineReport;
use raddle_core::memory::MemoryBudget;
use raddle_core::output::durability::Durability;
use raddle_core::output::publish::IfExists;
use raddle_core::path_text;
use raddle_core::ranks::communicator::Communicator;
use raddle_core::ranks::message::{self, MessageReader};
use raddle_core::ranks::received::SentTraffic;
use raddle_core::ranks::traffic::Traffic;
use raddle_core::report::progress::Stage;
use raddle_core::report::{MemoryReport, StageReport, StageTable};
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

/// Phases that samples pass on their way from ranks to files. A single process uses at most the last two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
#[serde(rename_all = "lowercase")]
pub enum Phases {
    /// Every rank writes its own samples (only IDX with -c none)
    One,
    /// Parts of blocks are sent to the ranks that write them
    Two,
    /// Samples are first rearranged into power-of-two boxes
    #[default]
    Three,
}

/// Options of a write.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// Treatment of an existing output.
    pub existing: IfExists,
    /// Whether to wait for the disk.
    pub durability: Durability,
    /// Number of threads of this process.
    pub jobs: usize,
    /// Memory for restructured boxes, messages and blocks, in bytes.
    pub memory_limit_bytes: u64,
    /// Effort of zlib streams.
    pub effort: Effort,
    /// Phases of a write by several ranks.
    pub phases: Phases,
    /// Size of the power-of-two boxes into which samples are regrouped across ranks before blocks are formed.
    pub imposed: ImposedBox,
    /// Number of ranks that encode and write blocks, independent of the number of files; `None` stands for all ranks.
    pub aggregators: Option<NonZeroUsize>,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            existing: IfExists::Fail,
            durability: Durability::Synced,
            jobs: raddle_core::engine::default_jobs(),
            memory_limit_bytes: 1 << 30,
            effort: Effort::Balanced,
            phases: Phases::Three,
            imposed: ImposedBox::Default,
            aggregators: None,
        }
    }
}

/// Report of writing a time step; the same on every rank, except for memory.
#[derive(Debug, Clone, Serialize)]
pub struct WriteReport {
    /// Path of the `.idx` file.
    #[serde(serialize_with = "path_text::of")]
    pub output: PathBuf,
    /// Time step, if the dataset has any.
    pub time: Option<u64>,
    /// Number of ranks.
    pub ranks: usize,
    /// Phases used.
    pub phases: Phases,
    /// Whether the write waited for the disk.
    pub durability: Durability,
    /// Number of files of the step.
    pub files: u64,
    /// Number of blocks, each counted once per field.
    pub blocks: u64,
    /// Length of the samples.
    pub sample_len_bytes: u64,
    /// Stored length of the blocks.
    pub stored_len_bytes: u64,
    /// Number of samples per axis of the power-of-two boxes, x first; `None` without restructuring.
    pub imposed_counts: Option<[u64; MAX_RANK]>,
    /// Number of ranks that hold samples after restructuring.
    pub holders: u64,
    /// Total wall time.
    pub elapsed_s: f64,
    /// Wall time of restructuring.
    pub restructure_s: f64,
    /// Wall time of encoding and placing blocks.
    pub encode_s: f64,
    /// Wall time of syncing and renaming files.
    pub publish_s: f64,
    /// Messages of the first phase, indexed by rank.
    pub restructure_messages: Vec<Traffic>,
    /// Messages that bring parts of blocks to the ranks that write them, indexed by rank.
    pub aggregate_messages: Vec<Traffic>,
    /// Stages of all ranks outside the engine: restructure, regroup (aggregation messages), commit, and in one phase
    /// also encode and place.
    pub stages: Vec<StageReport>,
    /// Report of the engine, if it was used.
    pub engine: Option<EngineReport>,
    /// Memory of this rank against its budget.
    pub memory: MemoryReport,
    /// Memory of every rank.
    pub rank_memory: Vec<MemoryReport>,
}

/// Counters of one rank while it writes a step.
#[derive(Debug, Default)]
pub(crate) struct WriteCounts {
    pub(crate) stages: StageTable,
    pub(crate) restructured: Traffic,
    pub(crate) aggregated: Traffic,
}

impl WriteCounts {
    /// Adds the cost of sending samples to the `ranks` that encode them. A single rank has no such stage.
    pub(crate) fn add_aggregated(&mut self, sent: SentTraffic, ranks: usize) {
        if ranks > 1 {
            self.stages.get_mut(Stage::Regroup).add(&sent.totals);
        }
        self.aggregated = sent.traffic;
    }
}

impl WriteReport {
    /// Creates the report of a step of `output` of which nothing has been counted yet, except the memory of this rank.
    pub(crate) fn new(output: &Path, options: &WriteOptions, budget: &MemoryBudget, ranks: usize) -> Self {
        Self {
            output: output.to_path_buf(),
            time: None,
            ranks,
            phases: options.phases,
            durability: options.durability,
            files: 0,
            blocks: 0,
            sample_len_bytes: 0,
            stored_len_bytes: 0,
            imposed_counts: None,
            holders: 0,
            elapsed_s: 0.0,
            restructure_s: 0.0,
            encode_s: 0.0,
            publish_s: 0.0,
            restructure_messages: Vec::new(),
            aggregate_messages: Vec::new(),
            stages: Vec::new(),
            engine: None,
            memory: MemoryReport::of(budget),
            rank_memory: Vec::new(),
        }
    }

    /// Collective. Fills in the counts of every rank.
    ///
    /// # Errors
    /// If communication fails.
    pub(crate) fn gather(&mut self, counts: &WriteCounts, ranks: &dyn Communicator) -> Result<()> {
        let WriteCounts { stages, restructured, aggregated } = counts;
        let words = stages.to_words().chain(self.memory.to_words());
        let local = message::encode_u64s(words.chain(restructured.to_words()).chain(aggregated.to_words()));
        for (rank, counts) in (0u32..).zip(ranks.all_gather_bytes(&local)?) {
            let mut words = MessageReader::new("count what was done", &counts);
            self.stages.extend(StageTable::from_words(&mut words)?.reports(rank));
            self.rank_memory.push(MemoryReport::from_words(words.words()?));
            self.restructure_messages.push(Traffic::from_words(&mut words)?);
            self.aggregate_messages.push(Traffic::from_words(&mut words)?);
        }
        Ok(())
    }
}
