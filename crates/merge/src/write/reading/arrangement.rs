//! Setup of the chosen way of reading: reserves its memory and reports on it.
//!
//! Invariant: all ranks read in the same way.

use super::choice::{PredictedReading, ReadBy, Reading, ReadingChoice, ReadingReport, Strategy, choose};
use super::files::FileReading;
use crate::error::{MergeError, Result};
use crate::options::Watch;
use crate::plan::memory::ReaderMemory;
use crate::write::ranks::stages_of_all;
use crate::write::tiles::MergeWork;
use raddle_core::CoreError;
use raddle_core::engine::{EngineReport, dry_run};
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
    let (threads, ranks_per_group) = (plan.options.jobs.max(1), groups.largest() as u64);
    let work = work.by_files(FileReading::new(groups, ranks.rank(), threads, watch));
    let room = budget.try_acquire(work.files_len_bytes(threads), "reading inputs for other ranks");
    let room = room.map_err(MergeError::from).and_then(|room| {
        check_rest(&work, budget, ranks.size())?;
        Ok(room)
    });
    let room = room.map_err(|error| of_reading_by_files(error, budget.limit_bytes()));
    match (ranks.agree("make room for reading by files", room), reading.strategy) {
        (Ok(room), _) => (arrangement.ranks_per_group, arrangement._room) = (ranks_per_group, Some(room)),
        (Err(_), Strategy::Auto) => return Ok((work.by_tiles(), arrangement)),
        (Err(error), _) => return Err(error),
    }
    Ok((work, arrangement))
}

/// Checks that the rest of the budget suffices for everything else: for values of objects, and for the engine.
fn check_rest(work: &MergeWork<'_>, budget: &MemoryBudget, ranks: usize) -> Result<()> {
    let plan = work.plan();
    let _of_objects = ReaderMemory::of_objects(plan).acquire(plan, budget)?;
    dry_run(&plan.tiles, work, ranks, &plan.engine_options(), budget.available_bytes())?;
    Ok(())
}

/// Converts an error about the memory of a budget of `limit` bytes to one that names reading by files.
fn of_reading_by_files(error: MergeError, limit: u64) -> MergeError {
    match error {
        MergeError::Core(CoreError::Memory { purpose, needed_bytes, available_bytes, .. }) => {
            MergeError::ByFiles { purpose, needed: needed_bytes, left: available_bytes, limit }
        }
        error => error,
    }
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
