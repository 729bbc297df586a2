//! How a time step is written, and what writing it took. Data; nothing here writes.

use crate::bitmask::MAX_RANK;
use crate::durability::Durability;
use crate::error::Result;
use crate::publish::Existing;
use crate::restructure::ImposedBox;
use raddle_codec::Effort;
use raddle_core::communicator::Communicator;
use raddle_core::engine::EngineReport;
use raddle_core::message::{self, Words};
use raddle_core::report::{MemoryReport, StageReport, StageTable};
use raddle_core::traffic::Traffic;
use serde::Serialize;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// What samples go through on their way from ranks to files. One process goes through the last two at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phases {
    /// Every rank writes its own samples, run by run; raw blocks only.
    One,
    /// Ranks send parts of blocks to those that write them.
    Two,
    /// Samples are brought into power-of-two boxes before.
    #[default]
    Three,
}

/// How to write.
#[derive(Debug, Clone)]
pub struct WriteOptions {
    /// Where the output is there already.
    pub existing: Existing,
    /// Whether the disk is waited for.
    pub durability: Durability,
    /// Threads of this process.
    pub jobs: usize,
    /// Memory for what is made of the samples: restructured boxes, messages, blocks.
    pub memory_limit_bytes: u64,
    /// Effort of zlib streams.
    pub effort: Effort,
    /// On ranks.
    pub phases: Phases,
    /// Size of power-of-two boxes.
    pub imposed: ImposedBox,
    /// How many ranks make and write blocks; `None`: all. Whatever the number of files.
    pub aggregators: Option<NonZeroUsize>,
}

impl Default for WriteOptions {
    fn default() -> Self {
        Self {
            existing: Existing::Refuse,
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

/// What writing a time step took; the same on every rank but for memory.
#[derive(Debug, Clone, Serialize)]
pub struct WriteReport {
    /// The `.idx` file.
    pub output: PathBuf,
    /// Time step, if there are any.
    pub time: Option<u64>,
    /// Ranks.
    pub ranks: usize,
    /// Phases.
    pub phases: Phases,
    /// Whether the disk was waited for.
    pub durability: Durability,
    /// Files of the step.
    pub files: u64,
    /// Blocks, each counted once per field.
    pub blocks: u64,
    /// Bytes of the samples.
    pub sample_len_bytes: u64,
    /// Bytes of the blocks as stored.
    pub stored_len_bytes: u64,
    /// Samples per axis of the power-of-two boxes, x first, if there are any.
    pub imposed_counts: Option<[u64; MAX_RANK]>,
    /// Ranks that hold samples after restructuring.
    pub holders: u64,
    /// Wall time of all.
    pub elapsed_s: f64,
    /// Of the first phase.
    pub restructure_s: f64,
    /// Of encoding and placing.
    pub encode_s: f64,
    /// Of making files durable, if they are, and giving them their names.
    pub publish_s: f64,
    /// Messages of the first phase, by rank.
    pub restructure_messages: Vec<Traffic>,
    /// Messages that bring parts of blocks to those that write them, by rank.
    pub aggregate_messages: Vec<Traffic>,
    /// Stages of all ranks beside the engine's: restructure, regroup (messages that aggregate), commit, and in one phase
    /// encode and place.
    pub stages: Vec<StageReport>,
    /// What the engine did, if it was asked.
    pub engine: Option<EngineReport>,
    /// Memory of this rank against its budget.
    pub memory: MemoryReport,
    /// The same of every rank.
    pub rank_memory: Vec<MemoryReport>,
}

/// What one rank counts while it writes a step.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) stages: StageTable,
    pub(crate) restructured: Traffic,
    pub(crate) aggregated: Traffic,
}

impl WriteReport {
    /// Collective. Puts in what every rank counted.
    ///
    /// # Errors
    /// If ranks cannot be asked.
    pub(crate) fn gather(&mut self, counts: &Counts, ranks: &dyn Communicator) -> Result<()> {
        let Counts { stages, restructured, aggregated } = counts;
        let words = stages.to_words().chain(self.memory.to_words());
        let own = message::of_words(words.chain(restructured.to_words()).chain(aggregated.to_words()));
        for (rank, told) in (0u32..).zip(ranks.all_gather_bytes(&own)?) {
            let mut words = Words::new("count what was done", &told);
            self.stages.extend(StageTable::from_words(&mut words)?.reports(rank));
            self.rank_memory.push(MemoryReport::from_words(words.words()?));
            self.restructure_messages.push(Traffic::from_words(&mut words)?);
            self.aggregate_messages.push(Traffic::from_words(&mut words)?);
        }
        Ok(())
    }
}
