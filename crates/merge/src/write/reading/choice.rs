//! Choice of how inputs are read, from the time it took to open them in the scan and the predicted time to send their
//! values.
//!
//! Invariant: a pure function of the plan and of the ranks' nodes, the same on every rank.

use super::groups::ReadingGroups;
use crate::plan::MergePlan;
use crate::write::values::open_inputs;
use raddle_core::plan::ArrayPlan;
use raddle_core::plan::boxes::PlacedBox;
use serde::{Deserialize, Serialize};
use std::num::NonZeroUsize;

/// Way in which ranks read the inputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// By files if that is predicted to take less than half the time of reading by tiles, and to save at least a
    /// second.
    #[default]
    Auto,
    /// Reading by tiles: each rank reads the inputs of its own tiles.
    Tiles,
    /// By files: groups of this many ranks share the inputs. If `None`, a group consists of the ranks of a node, or of
    /// all ranks, whichever is predicted to be faster.
    Files(Option<NonZeroUsize>),
}

/// Way in which several ranks read the inputs, and the nodes on which they run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reading<'a> {
    /// Requested way of reading.
    pub strategy: Strategy,
    /// Number of the node of each rank, from 0; if empty, all ranks are on one node.
    pub machines: &'a [u32],
}

/// Bytes per second that a rank receives from ranks on other nodes.
const NETWORK_BYTES_PER_S: f64 = 1e9;
/// Bytes per second that a rank receives from ranks on its own node.
pub(crate) const MEMORY_BYTES_PER_S: f64 = 2e9;

/// Minimum number of seconds that reading by files must save.
const MIN_SAVED_S: f64 = 1.0;
/// Maximum time of reading by files, relative to reading by tiles.
const MAX_SHARE_OF_TILES: f64 = 0.5;

/// A way of reading and its predicted time, without decoding.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PredictedReading {
    /// Number of ranks that share the inputs; 1 if each rank reads for itself.
    pub ranks_per_group: u64,
    /// Number of times that the busiest rank opens an input.
    pub opens: u64,
    /// Seconds spent opening inputs.
    pub open_s: f64,
    /// Seconds spent receiving values from other ranks.
    pub receive_s: f64,
}

impl PredictedReading {
    fn elapsed_s(&self) -> f64 {
        self.open_s + self.receive_s
    }
}

/// The chosen way of reading.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ReadingChoice {
    /// Groups that share the inputs; `None` if each rank reads the inputs of its own tiles.
    pub groups: Option<ReadingGroups>,
    /// The ways that were compared; empty if the user chose.
    pub compared: Vec<PredictedReading>,
}

/// Inputs that a rank reads, and the ranks whose tiles need them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadBy {
    /// Each rank reads all inputs of its own tiles.
    Tiles,
    /// Each rank reads its share of the inputs, for all tiles of its group.
    Files,
}

/// Report on how several ranks read the inputs of a merge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReadingReport {
    /// Chosen way of reading.
    pub by: ReadBy,
    /// Number of ranks that shared the inputs; 1 when reading by tiles.
    pub ranks_per_group: u64,
    /// Number of times that an input was opened after the scan, across all ranks.
    pub opens: u64,
    /// Number of bytes that ranks sent to each other.
    pub sent_len_bytes: u64,
    /// Number of messages that carried these bytes.
    pub messages: u64,
    /// Mean time in seconds to open an input during the scan.
    pub open_s: f64,
    /// The ways that were compared, if the choice was left to raddle.
    pub compared: Vec<PredictedReading>,
}

/// Chooses how ranks read the inputs of `plan`; `machines` holds the number of each rank's node.
pub(crate) fn choose(plan: &MergePlan, strategy: Strategy, machines: &[u32]) -> ReadingChoice {
    choose_with(plan, strategy, machines, NETWORK_BYTES_PER_S)
}

/// Like [`choose`], for a network on which ranks of other nodes send `network_bytes_per_s`.
pub(crate) fn choose_with(
    plan: &MergePlan,
    strategy: Strategy,
    machines: &[u32],
    network_bytes_per_s: f64,
) -> ReadingChoice {
    let ranks = machines.len();
    if ranks <= 1 || strategy == Strategy::Tiles {
        return ReadingChoice { groups: None, compared: Vec::new() };
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
        return ReadingChoice { groups: fastest.cloned(), compared: Vec::new() };
    }
    let by_tiles = by_tiles(plan, ranks);
    let is_better = |groups: &&ReadingGroups| {
        let [files_s, tiles_s] = [predicted(groups), by_tiles].map(|way| way.elapsed_s());
        files_s <= tiles_s - MIN_SAVED_S && files_s <= tiles_s * MAX_SHARE_OF_TILES
    };
    let compared = std::iter::once(by_tiles).chain(ways.iter().map(predicted)).collect();
    ReadingChoice { groups: fastest.filter(is_better).cloned(), compared }
}

/// Returns the groups that may share the inputs: groups of the size set by the user, or the ranks of each node, and all
/// ranks.
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

/// Predicts reading by files: a rank opens its share of the inputs, and receives values of its tiles from others of its
/// group.
fn by_files(plan: &MergePlan, ranks: usize, groups: &ReadingGroups, bytes_per_s: f64) -> PredictedReading {
    let (opens, ranks_per_group) = (groups.max_inputs(), groups.largest() as u64);
    let raw_len_bytes = plan.tiles.raw_len_bytes() as f64 / ranks as f64;
    let received_len_bytes = raw_len_bytes * (1.0 - 1.0 / ranks_per_group as f64);
    PredictedReading {
        ranks_per_group,
        opens,
        open_s: opens as f64 * plan.open_s,
        receive_s: received_len_bytes / bytes_per_s,
    }
}

/// Predicts reading by tiles. A rank keeps some inputs open; if there are more, it opens one for every piece of its
/// tiles.
fn by_tiles(plan: &MergePlan, ranks: usize) -> PredictedReading {
    let pieces = plan.tiles.arrays.iter().map(max_pieces).fold(0, u64::saturating_add).div_ceil(ranks as u64);
    let inputs = plan.inputs.len();
    let opens = if inputs <= open_inputs() { pieces.min(inputs as u64) } else { pieces };
    PredictedReading { ranks_per_group: 1, opens, open_s: opens as f64 * plan.open_s, receive_s: 0.0 }
}

/// Returns an upper bound for the pieces in the tiles of an array: each tile begins one, and so does each segment in
/// each row of tiles along the axis. A box has a piece in each tile that it touches.
fn max_pieces(array: &ArrayPlan) -> u64 {
    let tiles = array.tile_count();
    let touched = |one: &PlacedBox| {
        let along = |axis: usize| one.source.count[axis].div_ceil(array.tile_shape[axis].max(1)).saturating_add(1);
        (0..one.start.len()).fold(1u64, |tiles, axis| tiles.saturating_mul(along(axis)))
    };
    if !array.boxes.is_empty() {
        return array.boxes.iter().map(touched).fold(0, u64::saturating_add);
    }
    let across = tiles / array.tiles_along(array.axis).max(1);
    tiles.saturating_add(across.saturating_mul(array.segments.len() as u64))
}
