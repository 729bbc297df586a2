//! Choosing how inputs are read: by what opening them took while they were scanned, and what sending their values would take.
//!
//! Invariant: a pure function of the plan and of the ranks' machines, the same on every rank.

use super::groups::ReadingGroups;
use crate::plan::MergePlan;
use crate::values::open_inputs;
use raddle_core::plan::ArrayPlan;
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

/// How ranks read inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// By files where that is predicted to take less than half the time of reading by tiles, and a second less.
    #[default]
    Auto,
    /// Each rank reads what its own tiles need.
    Tiles,
    /// Groups of this many ranks share the inputs; `None`: the ranks of a machine, or all, whichever is predicted to be faster.
    Files(Option<NonZeroUsize>),
}

/// How several ranks read inputs, and what is known of them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reading<'a> {
    /// How they read.
    pub strategy: Strategy,
    /// Number of the machine of each rank, from 0; empty: all are on one.
    pub machines: &'a [u32],
}

/// Bytes that a rank receives per second from ranks of other machines.
const NETWORK_BYTES_PER_S: f64 = 1e9;
/// Bytes that a rank receives per second from ranks of its own machine.
pub(crate) const MEMORY_BYTES_PER_S: f64 = 2e9;

/// Reading by files must save this many seconds.
const LEAST_SAVED_S: f64 = 1.0;
/// And take at most this part of the time of reading by tiles.
const MOST_OF_TILES: f64 = 0.5;

/// A way of reading, and the time that it is predicted to take beside decoding.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PredictedReading {
    /// Ranks that share the inputs; 1 where each rank reads for itself.
    pub ranks_per_group: u64,
    /// Times that the busiest rank opens an input.
    pub opens: u64,
    /// Seconds for opening them.
    pub open_s: f64,
    /// Seconds for receiving values from other ranks.
    pub receive_s: f64,
}

impl PredictedReading {
    fn elapsed_s(&self) -> f64 {
        self.open_s + self.receive_s
    }
}

/// What was chosen.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choice {
    /// Groups that share the inputs; `None`: each rank reads what its tiles need.
    pub groups: Option<ReadingGroups>,
    /// What was compared; empty where the user chose.
    pub compared: Vec<PredictedReading>,
}

/// For whom a rank reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadBy {
    /// For its own tiles, from all inputs.
    Tiles,
    /// For all tiles of its group, from its share of the inputs.
    Files,
}

/// How several ranks read the inputs of a merge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReadingReport {
    /// For whom they read.
    pub by: ReadBy,
    /// Ranks that shared the inputs; 1 by tiles.
    pub ranks_per_group: u64,
    /// Times that an input was opened after the scan, by all ranks.
    pub opens: u64,
    /// Bytes that ranks sent to one another.
    pub sent_len_bytes: u64,
    /// Messages that carried them.
    pub messages: u64,
    /// Seconds that opening an input took while the inputs were scanned, on average.
    pub open_s: f64,
    /// The ways that were compared, where the choice was left to raddle.
    pub compared: Vec<PredictedReading>,
}

/// Chooses how `machines.len()` ranks read the inputs of `plan`, of which each is on the machine of its number in `machines`.
pub(crate) fn choose(plan: &MergePlan, strategy: Strategy, machines: &[u32]) -> Choice {
    choose_with(plan, strategy, machines, NETWORK_BYTES_PER_S)
}

/// Like [`choose`], where ranks of other machines send `network_bytes_per_s`.
pub(crate) fn choose_with(plan: &MergePlan, strategy: Strategy, machines: &[u32], network_bytes_per_s: f64) -> Choice {
    let ranks = machines.len();
    if ranks <= 1 || strategy == Strategy::Tiles {
        return Choice { groups: None, compared: Vec::new() };
    }
    let predicted = |groups: &ReadingGroups| {
        let bytes_per_s = if groups.are_within(machines) { MEMORY_BYTES_PER_S } else { network_bytes_per_s };
        by_files(plan, ranks, groups, bytes_per_s)
    };
    let ways = ways(plan, strategy, machines);
    let fastest = ways.iter().min_by(|left, right| {
        let [left_s, right_s] = [left, right].map(|groups| predicted(groups).elapsed_s());
        left_s.total_cmp(&right_s)
    });
    if strategy != Strategy::Auto {
        return Choice { groups: fastest.cloned(), compared: Vec::new() };
    }
    let by_tiles = by_tiles(plan, ranks);
    let is_better = |groups: &&ReadingGroups| {
        let [files_s, tiles_s] = [predicted(groups), by_tiles].map(|way| way.elapsed_s());
        files_s <= tiles_s - LEAST_SAVED_S && files_s <= tiles_s * MOST_OF_TILES
    };
    let compared = std::iter::once(by_tiles).chain(ways.iter().map(predicted)).collect();
    Choice { groups: fastest.filter(is_better).cloned(), compared }
}

/// Groups that may share the inputs: as many ranks as the user says, or the ranks of a machine, and all.
pub(crate) fn ways(plan: &MergePlan, strategy: Strategy, machines: &[u32]) -> Vec<ReadingGroups> {
    let (ranks, inputs) = (machines.len(), plan.inputs.len());
    if let Strategy::Files(Some(size)) = strategy {
        return vec![ReadingGroups::of_size(ranks, size, inputs)];
    }
    let all = ReadingGroups::of_machines(&vec![0; ranks], inputs);
    let of_machines = ReadingGroups::of_machines(machines, inputs);
    match of_machines.count() > 1 && of_machines.largest() > 1 {
        true => vec![of_machines, all],
        false => vec![all],
    }
}

/// Reading by files: a rank opens its share of the inputs, and receives what others of its group read of its tiles.
fn by_files(plan: &MergePlan, ranks: usize, groups: &ReadingGroups, bytes_per_s: f64) -> PredictedReading {
    let (opens, ranks_per_group) = (groups.most_inputs(), groups.largest() as u64);
    let raw_len_bytes = plan.tiles.raw_len_bytes() as f64 / ranks as f64;
    let received_len_bytes = raw_len_bytes * (1.0 - 1.0 / ranks_per_group as f64);
    PredictedReading {
        ranks_per_group,
        opens,
        open_s: opens as f64 * plan.open_s,
        receive_s: received_len_bytes / bytes_per_s,
    }
}

/// Reading by tiles. A rank keeps some inputs open; where there are more, it opens one for every piece of its tiles.
fn by_tiles(plan: &MergePlan, ranks: usize) -> PredictedReading {
    let pieces = plan.tiles.arrays.iter().map(most_pieces).fold(0, u64::saturating_add).div_ceil(ranks as u64);
    let inputs = plan.inputs.len();
    let opens = if inputs <= open_inputs() { pieces.min(inputs as u64) } else { pieces };
    PredictedReading { ranks_per_group: 1, opens, open_s: opens as f64 * plan.open_s, receive_s: 0.0 }
}

/// Most pieces that the tiles of an array have: each begins one, and so does each segment in each row of tiles along the axis.
fn most_pieces(array: &ArrayPlan) -> u64 {
    let tiles = array.tile_count();
    let across = tiles / array.tiles_along(array.axis).max(1);
    tiles.saturating_add(across.saturating_mul(array.segments.len() as u64))
}
