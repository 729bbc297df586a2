//! Simulation of a merge with one way of reading the inputs: the inputs that each rank reads, and the number of times
//! they are opened.
//!
//! Invariant: a pure function of the plan, the groups and the machine.

use super::SimulatedMachine;
use super::traffic::{RankTraffic, Traffic, Way, assigned_costs, go_through};
use crate::error::Result;
use crate::options::Watch;
use crate::plan::MergePlan;
use crate::write::reading::{FileReading, MEMORY_BYTES_PER_S, ReadBy, ReadingGroups};
use crate::write::tiles::MergeWork;
use raddle_core::cancel::CancelToken;
use raddle_core::engine::{DryRun, EngineOptions, costs, dry_run};
use raddle_core::report::progress::Silent;
use raddle_core::report::spread::Spread;
use raddle_hdf5::source::InputPool;
use serde::Serialize;
use std::time::Instant;

/// A way of reading the inputs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SimulatedReading {
    /// Whether ranks read whole inputs for a group or the pieces of their own tiles.
    pub by: ReadBy,
    /// Number of ranks that share the inputs; 1 when reading by tiles.
    pub ranks_per_group: usize,
    /// Whether the predicted times are for this way.
    pub is_chosen: bool,
    /// Number of inputs that a rank reads.
    pub inputs: Spread,
    /// Number of times that an input is opened, across all ranks.
    pub opens: u64,
    /// Seconds spent opening inputs, computed from the file system's rate.
    pub open_s: f64,
    /// Number of uncompressed bytes that ranks send to each other.
    pub sent_len_bytes: u64,
    /// Number of messages that carry them: one per pair of ranks and round.
    pub messages: u64,
    /// Seconds for opening, decoding, sending, encoding and placing.
    pub execute_s: f64,
}

/// Simulation of one way of reading.
pub(super) struct WaySimulation {
    pub(super) groups: Option<ReadingGroups>,
    pub(super) simulated: DryRun,
    pub(super) traffic: Traffic,
    pub(super) assigned: Vec<f64>,
    pub(super) deal_s: f64,
    /// Memory of a rank in addition to the buffers of its batches.
    pub(super) fixed_len_bytes: u64,
    opens: u64,
    open_s: f64,
}

impl WaySimulation {
    pub(super) fn new(
        plan: &MergePlan,
        pool: &InputPool,
        groups: Option<ReadingGroups>,
        machine: &SimulatedMachine,
    ) -> Result<Self> {
        let (cancel, started) = (CancelToken::new(), Instant::now());
        let watch = Watch { observer: &Silent, cancel: &cancel };
        let mut work = MergeWork::new(plan, pool).for_ranks(machine.ranks, machine.memory_limit_bytes);
        let mut files_len_bytes = 0;
        if let Some(groups) = &groups {
            files_len_bytes = work.files_len_bytes(machine.threads);
            work = work.by_files(FileReading::new(groups.clone(), 0, machine.threads, &watch));
        }
        let engine = EngineOptions {
            jobs: machine.threads,
            arenas: plan.alignment.map(|alignment| alignment.arenas),
            ..EngineOptions::default()
        };
        let memory_limit_bytes = machine.memory_limit_bytes.saturating_sub(files_len_bytes);
        let simulated = dry_run(&plan.tiles, &work, machine.ranks, &engine, memory_limit_bytes)?;
        let deal_s = started.elapsed().as_secs_f64();
        let is_within = groups.as_ref().is_some_and(|groups| groups.are_within(&machine.machines()));
        let way = Way {
            groups: groups.as_ref(),
            receive_bytes_per_s: if is_within { MEMORY_BYTES_PER_S } else { machine.rates.network_bytes_per_s },
            rates: &machine.rates,
        };
        let traffic = go_through(plan, &work, &simulated, machine.ranks, &way);
        let costs = costs(&plan.tiles, &work, &simulated.schedule.batches);
        let assigned = assigned_costs(&simulated.schedule, &costs, machine.ranks);
        let opens = traffic.ranks.iter().map(RankTraffic::opens).sum();
        let open_s = machine.rates.opens_per_s.map_or(0.0, |rate| opens as f64 / rate);
        drop(work);
        let fixed_len_bytes = simulated.fixed_len_bytes + files_len_bytes;
        Ok(Self { groups, simulated, traffic, assigned, deal_s, fixed_len_bytes, opens, open_s })
    }

    pub(super) fn execute_s(&self) -> f64 {
        self.traffic.execute_s + self.open_s
    }

    pub(super) fn reading(&self, is_chosen: bool) -> SimulatedReading {
        SimulatedReading {
            by: if self.groups.is_some() { ReadBy::Files } else { ReadBy::Tiles },
            ranks_per_group: self.groups.as_ref().map_or(1, ReadingGroups::largest),
            is_chosen,
            inputs: Spread::of(self.traffic.ranks.iter().map(|rank| rank.inputs() as f64)),
            opens: self.opens,
            open_s: self.open_s,
            sent_len_bytes: self.traffic.ranks.iter().map(|rank| rank.received_len_bytes).sum(),
            messages: self.traffic.messages,
            execute_s: self.execute_s(),
        }
    }
}
