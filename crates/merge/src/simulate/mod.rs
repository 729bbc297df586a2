//! A merge by many ranks, planned in one process and not carried out: what each rank would do, hold and wait for.
//!
//! Inputs are real ones, repeated to the number asked for, or made of a [`Statistic`]. They go through the same join, the
//! same planning and the same dealing to ranks as those of a merge; only the time of what follows is computed instead of
//! spent. Not for values: nothing but metadata is read. Invariant: nothing is written.

mod rates;
mod statistic;
mod traffic;
mod way;

pub use raddle_core::spread::Spread;
pub use rates::Rates;
pub use statistic::Statistic;
pub use way::SimulatedReading;

use crate::alignment::{self, Alignment};
use crate::error::{MergeError, Result};
use crate::options::{MergeOptions, Watch};
use crate::plan::{Beginning, FoundInputs, MergePlan, Route, plan_found};
use crate::reading::{self, Strategy, choose_with};
use crate::scan::{self, ScannedInput};
use crate::schema::ColumnFact;
use crate::values::open_pool;
use raddle_core::CoreError;
use raddle_core::communicator::SingleProcess;
use raddle_core::report::peak_rss_bytes;
use serde::Serialize;
use statistic::StatedInputs;
use std::path::{Path, PathBuf};
use std::time::Instant;
use way::Played;

/// Collectives of an execution beside those of its rounds: three at the start, three at the end.
const COLLECTIVES: u64 = 6;
/// Collectives of a round: sizes to all, claims to rank 0.
const COLLECTIVES_PER_ROUND: u64 = 2;

/// Inputs of a simulation.
#[derive(Debug, Clone, Copy)]
pub enum SimulatedInputs<'a> {
    /// Files, scanned once and repeated in their order.
    Files(&'a [PathBuf]),
    /// Files that were never written.
    Stated(Statistic),
}

/// The machine that is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SimulatedMachine {
    /// Ranks.
    pub ranks: usize,
    /// Worker threads of each rank.
    pub threads: usize,
    /// Consecutive ranks that are on one machine; 0: all.
    pub ranks_per_machine: usize,
    /// Memory budget of each rank.
    pub memory_limit_bytes: u64,
    /// How fast it is.
    pub rates: Rates,
}

/// What planning cost this process.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PlannerCost {
    /// Making or scanning the inputs. A rank of a real run scans its share only.
    pub inputs_s: f64,
    /// Joining all inputs.
    pub join_s: f64,
    /// Planning every dataset.
    pub plan_s: f64,
    /// Dealing all tiles to ranks and rounds.
    pub deal_s: f64,
    /// Largest resident set of the process by then, where the system tells.
    pub peak_rss_bytes: Option<u64>,
}

impl PlannerCost {
    /// What every rank of a real run spends beside its scan.
    pub fn elapsed_s(&self) -> f64 {
        self.join_s + self.plan_s + self.deal_s
    }
}

/// What the ranks do.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RankSpreads {
    /// Tiles made.
    pub tiles: Spread,
    /// Runs of one input in one tile, read.
    pub pieces: Spread,
    /// Inputs read.
    pub inputs: Spread,
    /// Stored bytes read.
    pub read_len_bytes: Spread,
    /// Uncompressed bytes made into tiles.
    pub raw_len_bytes: Spread,
    /// Seconds of one core for decoding and encoding, by the rates.
    pub encode_s: Spread,
    /// What the plan took them for when it dealt the tiles, in its unit.
    pub dealt_cost: Spread,
}

/// Predicted times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PredictedTimes {
    /// Scanning, each rank its share.
    pub scan_s: f64,
    /// Telling all ranks what was found.
    pub gather_s: f64,
    /// Planning, the same on every rank.
    pub plan_s: f64,
    /// Decoding, encoding and placing.
    pub execute_s: f64,
    /// Of it, time in which the mean rank waits for others.
    pub wait_s: f64,
    /// Creating all objects on rank 0; beside the execution, but for what is longer.
    pub commit_s: f64,
    /// All of it.
    pub elapsed_s: f64,
}

/// A simulated merge.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Simulation {
    /// Where the inputs are from: a statistic's name; nothing for files.
    pub statistic: Option<&'static str>,
    /// The machine.
    pub machine: SimulatedMachine,
    /// Inputs.
    pub files: u64,
    /// Datasets of the output, and how many of them are empty.
    pub datasets: u64,
    /// Datasets without rows.
    pub empty_datasets: u64,
    /// Pairs of input and dataset.
    pub pairs: u64,
    /// Those with rows.
    pub pairs_with_rows: u64,
    /// Bytes of all inputs.
    pub input_len_bytes: u64,
    /// Uncompressed bytes.
    pub raw_len_bytes: u64,
    /// Tiles.
    pub tiles: u64,
    /// Batches of tiles.
    pub batches: u64,
    /// Rounds.
    pub rounds: u64,
    /// What each rank learns of all inputs before it plans.
    pub facts_len_bytes: u64,
    /// What each rank learns of the sizes of all batches.
    pub sizes_len_bytes: u64,
    /// What rank 0 learns of all batches: claims, checksums, and what each adds to digests.
    pub claims_len_bytes: u64,
    /// Collectives of the execution.
    pub collectives: u64,
    /// The ways of reading the inputs.
    pub readings: Vec<SimulatedReading>,
    /// Memory of the rank that needs most, beside the plan: workers, buffers, claims.
    pub engine_len_bytes: u64,
    /// The arenas that chunks would be placed in, if asked for.
    pub alignment: Option<Alignment>,
    /// What the ranks do.
    pub ranks: RankSpreads,
    /// What planning cost here.
    pub planner: PlannerCost,
    /// Predicted times.
    pub predicted: PredictedTimes,
}

impl SimulatedMachine {
    /// Number of the machine of each rank.
    fn machines(&self) -> Vec<u32> {
        let of_machine = if self.ranks_per_machine == 0 { self.ranks } else { self.ranks_per_machine }.max(1);
        (0..self.ranks).map(|rank| (rank / of_machine) as u32).collect()
    }
}

/// Plans a merge of `files` inputs (as many as there are, if `None`) by the ranks of `machine` and says what they would do. The
/// times are those of reading by `strategy`.
///
/// # Errors
/// As [`crate::plan::plan`]; and if a rank's memory does not hold one worker with its largest tile.
pub fn simulate(
    inputs: SimulatedInputs<'_>,
    files: Option<u32>,
    machine: SimulatedMachine,
    strategy: Strategy,
    options: &MergeOptions,
    watch: &Watch<'_>,
) -> Result<Simulation> {
    let source = Source::open(inputs, options, watch)?;
    let files = files.unwrap_or(source.count());
    let mut found = FoundInputs::new(options, files as usize);
    let (mut inputs_s, mut join_s) = (source.elapsed_s(), 0.0);
    let mut objects = 0;
    for number in 0..files {
        watch.cancel.check()?;
        let started = Instant::now();
        let (path, scanned) = source.input(number);
        objects += scanned.entries.len() as u64;
        let made = Instant::now();
        found.add(number as usize, path, scanned);
        inputs_s += (made - started).as_secs_f64();
        join_s += made.elapsed().as_secs_f64();
    }
    let started = Instant::now();
    let mut plan = plan_found(found, Beginning::New, options, watch, &SingleProcess)?;
    plan.alignment = alignment::decide(&plan, &SingleProcess)?;
    let plan_s = started.elapsed().as_secs_f64();

    // As many requests are under way as there are threads.
    let clients = (machine.ranks * machine.threads) as f64;
    plan.open_s = machine.rates.opens_per_s.map_or(0.0, |rate| clients / rate);
    let (pool, machines) = (open_pool(&plan), machine.machines());
    let mut ways = vec![None];
    if machine.ranks > 1 {
        ways.extend(reading::ways(&plan, strategy, &machines).into_iter().map(Some));
    }
    let chosen = choose_with(&plan, strategy, &machines, machine.rates.network_bytes_per_s).groups;
    let mut played = Vec::new();
    for groups in ways {
        // Ranks that have no room to read for others read for themselves, unless they are asked to.
        let is_asked = groups.is_none() || matches!(strategy, Strategy::Files(_));
        match Played::new(&plan, &pool, groups, &machine) {
            Err(MergeError::Core(CoreError::Memory { .. })) if !is_asked => {}
            way => played.push(way?),
        }
    }
    let at = played.iter().position(|way| way.groups == chosen).unwrap_or(0);
    let Played { rehearsal, traffic, dealt, deal_s, fixed_len_bytes, .. } = &played[at];
    let planner = PlannerCost { inputs_s, join_s, plan_s, deal_s: *deal_s, peak_rss_bytes: peak_rss_bytes() };
    let schedule = &rehearsal.schedule;
    let of_ranks = |value: fn(&traffic::RankTraffic) -> f64| Spread::of(traffic.ranks.iter().map(value));
    let ranks = RankSpreads {
        tiles: of_ranks(|rank| rank.tiles as f64),
        pieces: of_ranks(|rank| rank.pieces as f64),
        inputs: of_ranks(|rank| rank.inputs() as f64),
        read_len_bytes: of_ranks(|rank| rank.read_len_bytes as f64),
        raw_len_bytes: of_ranks(|rank| rank.raw_len_bytes as f64),
        encode_s: of_ranks(|rank| rank.encode_s),
        dealt_cost: Spread::of(dealt.iter().copied()),
    };
    let (tiles, pairs_with_rows) = (plan.tiles.tile_count(), pairs_with_rows(&plan));
    let facts_len_bytes = pairs_with_rows * size_of::<ColumnFact>() as u64;
    let rates = &machine.rates;
    let commit_s = rates.commit_dataset_s * plan.columns.len() as f64 + rates.commit_chunk_s * tiles as f64;
    let scan_s = (objects as f64 / machine.ranks as f64).ceil() * rates.scan_object_s / rehearsal.jobs as f64;
    let gather_s = rates.collective_s(machine.ranks, facts_len_bytes as f64);
    let written_s = rates.write_bytes_per_s.map_or(0.0, |rate| stored_len_bytes(&plan) as f64 / rate);
    let execute_s = played[at].execute_s().max(written_s);
    let predicted = PredictedTimes {
        scan_s,
        gather_s,
        plan_s: planner.elapsed_s(),
        execute_s,
        wait_s: execute_s - ranks.encode_s.mean / rehearsal.jobs as f64,
        commit_s,
        elapsed_s: scan_s + gather_s + planner.elapsed_s() + execute_s.max(commit_s),
    };
    let rounds = schedule.rounds.len() as u64;
    Ok(Simulation {
        statistic: match inputs {
            SimulatedInputs::Stated(statistic) => Some(statistic.name),
            SimulatedInputs::Files(_) => None,
        },
        machine: SimulatedMachine { threads: rehearsal.jobs, ..machine },
        files: files.into(),
        datasets: plan.columns.len() as u64,
        empty_datasets: plan.columns.iter().filter(|column| column.dims.contains(&0)).count() as u64,
        pairs: plan.columns.len() as u64 * u64::from(files),
        pairs_with_rows,
        input_len_bytes: plan.input_len_bytes(),
        raw_len_bytes: plan.logical_len_bytes(),
        tiles,
        batches: schedule.batches.len() as u64,
        rounds,
        facts_len_bytes,
        sizes_len_bytes: traffic.sizes_len_bytes,
        claims_len_bytes: traffic.claims_len_bytes,
        collectives: COLLECTIVES + COLLECTIVES_PER_ROUND * rounds,
        readings: played.iter().enumerate().map(|(number, way)| way.reading(number == at)).collect(),
        engine_len_bytes: fixed_len_bytes + traffic.buffers_len_bytes,
        alignment: plan.alignment,
        ranks,
        planner,
        predicted,
    })
}

fn pairs_with_rows(plan: &MergePlan) -> u64 {
    let columns = plan.schema.columns.iter();
    columns.map(|column| column.facts.iter().filter(|fact| fact.rows > 0).count() as u64).sum()
}

fn stored_len_bytes(plan: &MergePlan) -> u64 {
    let columns = plan.columns.iter().zip(&plan.schema.columns);
    let stored = columns.map(|(planned, column)| match planned.route {
        Route::Raw { .. } => planned.logical_len_bytes(column.model().datatype.class.len_bytes()),
        _ => column.stored_len_bytes(),
    });
    stored.fold(0, u64::saturating_add)
}

/// Where simulated inputs come from.
enum Source {
    Stated(StatedInputs, Statistic),
    Scanned { inputs: Vec<(PathBuf, ScannedInput)>, elapsed_s: f64 },
}

impl Source {
    fn open(inputs: SimulatedInputs<'_>, options: &MergeOptions, watch: &Watch<'_>) -> Result<Self> {
        let paths = match inputs {
            SimulatedInputs::Stated(statistic) => return Ok(Self::Stated(StatedInputs::new(&statistic), statistic)),
            SimulatedInputs::Files(paths) => paths,
        };
        let started = Instant::now();
        let mut inputs = Vec::new();
        // What is left out with `skip_bad` is not simulated either.
        scan::scan(paths, options, watch, &SingleProcess, |place, scanned| {
            inputs.push((paths[place].clone(), scanned))
        })?;
        Ok(Self::Scanned { inputs, elapsed_s: started.elapsed().as_secs_f64() })
    }

    fn count(&self) -> u32 {
        match self {
            Self::Stated(_, statistic) => statistic.files,
            Self::Scanned { inputs, .. } => inputs.len() as u32,
        }
    }

    fn elapsed_s(&self) -> f64 {
        match self {
            Self::Stated(..) => 0.0,
            Self::Scanned { elapsed_s, .. } => *elapsed_s,
        }
    }

    fn input(&self, number: u32) -> (PathBuf, ScannedInput) {
        match self {
            Self::Stated(inputs, _) => (Path::new("stated").join(number.to_string()), inputs.input(number)),
            Self::Scanned { inputs, .. } => inputs[number as usize % inputs.len()].clone(),
        }
    }
}
