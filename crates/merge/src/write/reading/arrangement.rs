//! Setup of the chosen way of reading: reserves its memory and reports on it.
//!
//! Invariant: all ranks read in the same way.

use super::choice::{PredictedReading, ReadBy, Reading, ReadingChoice, ReadingReport, Strategy, choose};
use super::files::FileReading;
use crate::error::Result;
use crate::options::Watch;
use crate::write::ranks::stages_of_all;
use crate::write::tiles::MergeWork;
use raddle_core::engine::EngineReport;
use raddle_core::memory::{MemoryBudget, Permit};
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use raddle_core::report::progress::Stage;
use raddle_core::report::{StageTable, add_stages};

/// The way of reading that the ranks of a run have agreed on.
pub(crate) struct Arrangement {
    ranks_per_group: u64,
    open_s: f64,
    compared: Vec<PredictedReading>,
    /// Memory reserved for reading and sending.
    _room: Option<Permit>,
}

/// Collective. Chooses how the ranks read the inputs of `work`, and reserves the memory for it. If the choice is left
/// to raddle and a rank has too little memory to read for others, each rank reads for itself.
pub(crate) fn arrange<'p>(
    work: MergeWork<'p>,
    reading: Reading<'_>,
    budget: &MemoryBudget,
    watch: &Watch<'p>,
    ranks: &dyn Communicator,
) -> Result<(MergeWork<'p>, Arrangement)> {
    let plan = work.plan();
    let one_machine = vec![0; ranks.size()];
    let machines = if reading.machines.len() == ranks.size() { reading.machines } else { &one_machine };
    let ReadingChoice { groups, compared } = choose(plan, reading.strategy, machines);
    let mut arrangement = Arrangement { ranks_per_group: 1, open_s: plan.open_s, compared, _room: None };
    let Some(groups) = groups else { return Ok((work, arrangement)) };
    let threads = plan.options.jobs.max(1);
    let room = budget.try_acquire(work.files_len_bytes(threads), "reading inputs for other ranks");
    let room = ranks.agree("make room for reading by files", room.map_err(Into::into));
    let room = match (room, reading.strategy) {
        (Ok(room), _) => room,
        (Err(_), Strategy::Auto) => return Ok((work, arrangement)),
        (Err(error), _) => return Err(error),
    };
    (arrangement.ranks_per_group, arrangement._room) = (groups.largest() as u64, Some(room));
    let files = FileReading::new(groups, ranks.rank(), threads, watch);
    Ok((work.by_files(files), arrangement))
}

impl Arrangement {
    /// Collective. Reports the cost of reading; this rank opened inputs `opens` times. Returns `None` if there is only
    /// one rank. Adds the time of reading for others to the stages of `engine`.
    pub(crate) fn report(
        self,
        work: &MergeWork<'_>,
        opens: u64,
        engine: &mut EngineReport,
        ranks: &dyn Communicator,
    ) -> Result<Option<ReadingReport>> {
        if ranks.size() == 1 {
            return Ok(None);
        }
        let mut stages = StageTable::default();
        let sent = work.files().map(FileReading::sent).unwrap_or_default();
        if let Some(files) = work.files() {
            files.retire(&mut stages);
            let reading_ns = stages.get(Stage::Read).wall_ns + stages.get(Stage::Decode).wall_ns;
            let mut regroup = sent.totals;
            regroup.wall_ns = regroup.wall_ns.saturating_sub(reading_ns);
            regroup.cpu_ns = regroup.cpu_ns.saturating_sub(reading_ns);
            stages.get_mut(Stage::Regroup).add(&regroup);
        }
        add_stages(&mut engine.stages, stages_of_all(&stages, ranks)?);
        let sum = |local| -> Result<u64> { Ok(ranks.all_gather_u64(local)?.iter().sum()) };
        Ok(Some(ReadingReport {
            by: if work.files().is_some() { ReadBy::Files } else { ReadBy::Tiles },
            ranks_per_group: self.ranks_per_group,
            opens: sum(opens)?,
            sent_len_bytes: sum(sent.traffic.len_bytes)?,
            messages: sum(sent.traffic.messages)?,
            open_s: self.open_s,
            compared: self.compared,
        }))
    }
}
