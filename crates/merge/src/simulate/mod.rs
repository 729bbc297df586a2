//! Simulation of a merge by many ranks in one process: what each rank would do, hold in memory and wait for.
//!
//! Inputs are real files, repeated to the requested number, or generated from a [`Statistic`]. They go through the same
//! join, the same planning and the same distribution over ranks as in a merge; only the time of the later steps is
//! computed instead of spent. Only metadata is read, never values. Invariant: nothing is written.

mod rates;
mod statistic;
mod traffic;
mod way;

pub use raddle_core::report::spread::Spread;
pub use rates::Rates;
pub use statistic::Statistic;
pub use way::SimulatedReading;

use crate::error::{MergeError, Result};
use crate::options::{MergeOptions, Watch};
use crate::plan::alignment::{self, Alignment};
use crate::plan::{FoundInputs, MergePlan, OutputState, Route, plan_found};
use crate::scan::{self, ScannedInput};
use crate::schema::InputExtent;
use crate::write::reading::{self, Strategy, choose_with};
use crate::write::values::open_pool;
use raddle_core::CoreError;
use raddle_core::ranks::communicator::SingleProcess;
use raddle_core::report::peak_rss_bytes;
use serde::Serialize;
use statistic::StatedInputs;
use std::path::{Path, PathBuf};
use std::time::Instant;
use traffic::RankTraffic;
use way::WaySimulation;

/// Number of collectives of an execution outside of its rounds: three at the start, three at the end.
const COLLECTIVES: u64 = 6;
/// Number of collectives per round: sizes to all ranks, claims to rank 0.
const COLLECTIVES_PER_ROUND: u64 = 2;

/// Inputs of a simulation.
#[derive(Debug, Clone, Copy)]
pub enum SimulatedInputs<'a> {
    /// Files, scanned once and repeated in this order.
    Files(&'a [PathBuf]),
    /// Files described by a statistic, which do not exist.
    Stated(Statistic),
}

/// The simulated machine.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SimulatedMachine {
    /// Number of ranks.
    pub ranks: usize,
    /// Number of worker threads per rank.
    pub threads: usize,
    /// Number of consecutive ranks per node; 0: all.
    pub ranks_per_machine: usize,
    /// Memory budget of each rank in bytes.
    pub memory_limit_bytes: u64,
    /// Speed of the machine.
    pub rates: Rates,
}

/// Cost of planning in this process.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PlannerCost {
    /// Time to generate or scan the inputs. A rank of a real run only scans its share.
    pub inputs_s: f64,
    /// Time to join all inputs.
    pub join_s: f64,
    /// Time to plan all datasets.
    pub plan_s: f64,
    /// Time to distribute all tiles across ranks and rounds.
    pub deal_s: f64,
    /// Peak resident set size of the process after planning, if the system reports it.
    pub peak_rss_bytes: Option<u64>,
}

impl PlannerCost {
    /// Returns the time that every rank of a real run spends in addition to its scan.
    pub fn elapsed_s(&self) -> f64 {
        self.join_s + self.plan_s + self.deal_s
    }
}

/// Distribution of each kind of work across ranks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RankSpreads {
    /// Number of tiles written.
    pub tiles: Spread,
    /// Number of pieces read: runs of one input in one tile.
    pub pieces: Spread,
    /// Number of inputs read.
    pub inputs: Spread,
    /// Number of stored bytes read.
    pub read_len_bytes: Spread,
    /// Uncompressed length of the tiles written.
    pub raw_len_bytes: Spread,
    /// Core seconds for decoding and encoding, computed from the rates.
    pub encode_s: Spread,
    /// Estimated cost by which the tiles were distributed, in cost units.
    pub dealt_cost: Spread,
}

impl RankSpreads {
    fn of(way: &WaySimulation) -> Self {
        let of_ranks = |value: fn(&RankTraffic) -> f64| Spread::of(way.traffic.ranks.iter().map(value));
        Self {
            tiles: of_ranks(|rank| rank.tiles as f64),
            pieces: of_ranks(|rank| rank.pieces as f64),
            inputs: of_ranks(|rank| rank.inputs() as f64),
            read_len_bytes: of_ranks(|rank| rank.read_len_bytes as f64),
            raw_len_bytes: of_ranks(|rank| rank.raw_len_bytes as f64),
            encode_s: of_ranks(|rank| rank.encode_s),
            dealt_cost: Spread::of(way.assigned.iter().copied()),
        }
    }
}

/// Predicted times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PredictedTimes {
    /// Time to scan if each rank scans its share.
    pub scan_s: f64,
    /// Time to share the scan results with all ranks.
    pub gather_s: f64,
    /// Time to plan, the same on every rank.
    pub plan_s: f64,
    /// Time to decode, encode and place all tiles.
    pub execute_s: f64,
    /// Part of `execute_s` that a rank spends waiting for others, on average.
    pub wait_s: f64,
    /// Time to create all objects on rank 0; it overlaps with the execution.
    pub commit_s: f64,
    /// Total time.
    pub elapsed_s: f64,
}

impl PredictedTimes {
    /// Predicts the times of a run that scans `objects` objects, shares `facts_len_bytes` about them, and plans for
    /// `plan_s`.
    fn of(
        plan: &MergePlan,
        machine: &SimulatedMachine,
        way: &WaySimulation,
        (objects, facts_len_bytes): (u64, u64),
        plan_s: f64,
    ) -> Self {
        let (rates, jobs) = (&machine.rates, way.simulated.jobs as f64);
        let scan_s = (objects as f64 / machine.ranks as f64).ceil() * rates.scan_object_s / jobs;
        let gather_s = rates.collective_s(machine.ranks, facts_len_bytes as f64);
        let written_s = rates.write_bytes_per_s.map_or(0.0, |rate| stored_len_bytes(plan) as f64 / rate);
        let execute_s = way.execute_s().max(written_s);
        let encode_s = Spread::of(way.traffic.ranks.iter().map(|rank| rank.encode_s)).mean;
        let tiles = plan.tiles.tile_count() as f64;
        let commit_s = rates.commit_dataset_s * plan.columns.len() as f64 + rates.commit_chunk_s * tiles;
        Self {
            scan_s,
            gather_s,
            plan_s,
            execute_s,
            wait_s: execute_s - encode_s / jobs,
            commit_s,
            elapsed_s: scan_s + gather_s + plan_s + execute_s.max(commit_s),
        }
    }
}

/// Result of a simulation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Simulation {
    /// Name of the statistic that the inputs were generated from; `None` for files.
    pub statistic: Option<&'static str>,
    /// The simulated machine.
    pub machine: SimulatedMachine,
    /// Number of inputs.
    pub files: u64,
    /// Number of datasets in the output, including empty ones.
    pub datasets: u64,
    /// Number of datasets without rows.
    pub empty_datasets: u64,
    /// Number of pairs of an input and a dataset.
    pub pairs: u64,
    /// Number of (input, dataset) pairs with rows.
    pub pairs_with_rows: u64,
    /// Size of all inputs in bytes.
    pub input_len_bytes: u64,
    /// Number of uncompressed bytes.
    pub raw_len_bytes: u64,
    /// Number of tiles.
    pub tiles: u64,
    /// Number of batches of tiles.
    pub batches: u64,
    /// Number of rounds.
    pub rounds: u64,
    /// Number of bytes that each rank receives about all inputs before it plans.
    pub facts_len_bytes: u64,
    /// Number of bytes that each rank receives about the sizes of all batches.
    pub sizes_len_bytes: u64,
    /// Number of bytes that rank 0 receives about all batches: claims, checksums and contributions to digests.
    pub claims_len_bytes: u64,
    /// Number of collectives of the execution.
    pub collectives: u64,
    /// The simulated ways of reading the inputs.
    pub readings: Vec<SimulatedReading>,
    /// Memory of the rank that needs most, in addition to the plan: workers, buffers, claims.
    pub engine_len_bytes: u64,
    /// Arenas in which chunks would be placed, if alignment is requested.
    pub alignment: Option<Alignment>,
    /// Distribution of each kind of work across ranks.
    pub ranks: RankSpreads,
    /// Cost of planning in this process.
    pub planner: PlannerCost,
    /// Predicted times.
    pub predicted: PredictedTimes,
}

impl SimulatedMachine {
    /// Returns the number of the node of each rank.
    fn machines(&self) -> Vec<u32> {
        let of_machine = if self.ranks_per_machine == 0 { self.ranks } else { self.ranks_per_machine }.max(1);
        (0..self.ranks).map(|rank| (rank / of_machine) as u32).collect()
    }
}

/// Plans a merge of `files` inputs (all inputs, if `None`) by the ranks of `machine` and predicts what they would do.
/// The predicted times apply to reading by `strategy`.
///
/// # Errors
/// As for [`crate::plan::plan`]; also if the memory of a rank does not hold one worker with its largest tile.
pub fn simulate(
    inputs: SimulatedInputs<'_>,
    files: Option<u32>,
    machine: SimulatedMachine,
    strategy: Strategy,
    options: &MergeOptions,
    watch: &Watch<'_>,
) -> Result<Simulation> {
    let joined = SimulatedSchema::of(inputs, files, options, watch)?;
    let started = Instant::now();
    let mut plan = plan_found(joined.found, OutputState::New, options, watch, &SingleProcess)?;
    plan.alignment = alignment::decide(&plan, &SingleProcess)?;
    let plan_s = started.elapsed().as_secs_f64();

    // There are as many concurrent requests as threads.
    let clients = (machine.ranks * machine.threads) as f64;
    plan.open_s = machine.rates.opens_per_s.map_or(0.0, |rate| clients / rate);
    let (ways, chosen) = simulate_ways(&plan, strategy, &machine)?;
    let way = &ways[chosen];
    let WaySimulation { simulated, traffic, deal_s, .. } = way;
    let planner = PlannerCost {
        inputs_s: joined.inputs_s,
        join_s: joined.join_s,
        plan_s,
        deal_s: *deal_s,
        peak_rss_bytes: peak_rss_bytes(),
    };
    let (schedule, ranks) = (&simulated.schedule, RankSpreads::of(way));
    let pairs_with_rows = pairs_with_rows(&plan);
    let facts_len_bytes = pairs_with_rows * size_of::<InputExtent>() as u64;
    let predicted = PredictedTimes::of(&plan, &machine, way, (joined.objects, facts_len_bytes), planner.elapsed_s());
    let rounds = schedule.rounds.len() as u64;
    Ok(Simulation {
        statistic: match inputs {
            SimulatedInputs::Stated(statistic) => Some(statistic.name),
            SimulatedInputs::Files(_) => None,
        },
        machine: SimulatedMachine { threads: simulated.jobs, ..machine },
        files: joined.files.into(),
        datasets: plan.columns.len() as u64,
        empty_datasets: plan.columns.iter().filter(|column| column.dims.contains(&0)).count() as u64,
        pairs: plan.columns.len() as u64 * u64::from(joined.files),
        pairs_with_rows,
        input_len_bytes: plan.input_len_bytes(),
        raw_len_bytes: plan.logical_len_bytes(),
        tiles: plan.tiles.tile_count(),
        batches: schedule.batches.len() as u64,
        rounds,
        facts_len_bytes,
        sizes_len_bytes: traffic.sizes_len_bytes,
        claims_len_bytes: traffic.claims_len_bytes,
        collectives: COLLECTIVES + COLLECTIVES_PER_ROUND * rounds,
        readings: ways.iter().enumerate().map(|(number, way)| way.reading(number == chosen)).collect(),
        engine_len_bytes: way.fixed_len_bytes + traffic.buffers_len_bytes,
        alignment: plan.alignment,
        ranks,
        planner,
        predicted,
    })
}

/// Simulates the ways of reading the inputs that `strategy` allows; returns them with the number of the one that a real run
/// would choose.
fn simulate_ways(
    plan: &MergePlan,
    strategy: Strategy,
    machine: &SimulatedMachine,
) -> Result<(Vec<WaySimulation>, usize)> {
    let (pool, machines) = (open_pool(plan), machine.machines());
    let mut groups_of_ways = vec![None];
    if machine.ranks > 1 {
        groups_of_ways.extend(reading::ways(plan, strategy, &machines).into_iter().map(Some));
    }
    let chosen = choose_with(plan, strategy, &machines, machine.rates.network_bytes_per_s).groups;
    let mut ways = Vec::new();
    for groups in groups_of_ways {
        // Ranks without enough memory to read for others read for themselves, unless reading by files was requested.
        let is_asked = groups.is_none() || matches!(strategy, Strategy::Files(_));
        match WaySimulation::new(plan, &pool, groups, machine) {
            Err(MergeError::Core(CoreError::Memory { .. })) if !is_asked => {}
            way => ways.push(way?),
        }
    }
    let at = ways.iter().position(|way| way.groups == chosen).unwrap_or(0);
    Ok((ways, at))
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

/// Schema of the simulated inputs, and the time that finding it takes.
struct SimulatedSchema {
    found: FoundInputs,
    files: u32,
    /// Number of objects in all inputs.
    objects: u64,
    inputs_s: f64,
    join_s: f64,
}

impl SimulatedSchema {
    fn of(inputs: SimulatedInputs<'_>, files: Option<u32>, options: &MergeOptions, watch: &Watch<'_>) -> Result<Self> {
        let source = Source::open(inputs, options, watch)?;
        let files = files.unwrap_or(source.count());
        let found = FoundInputs::new(options, files as usize);
        let mut joined = Self { found, files, objects: 0, inputs_s: source.elapsed_s(), join_s: 0.0 };
        for number in 0..files {
            watch.cancel.check()?;
            let started = Instant::now();
            let (path, scanned) = source.input(number);
            joined.objects += scanned.entries.len() as u64;
            let generated_at = Instant::now();
            joined.found.add(number as usize, path, scanned);
            joined.inputs_s += (generated_at - started).as_secs_f64();
            joined.join_s += generated_at.elapsed().as_secs_f64();
        }
        Ok(joined)
    }
}

/// Source of simulated inputs.
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
        // Inputs that `skip_bad` leaves out are not simulated either.
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
