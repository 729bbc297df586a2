//! Work and traffic of each rank of a schedule: bytes read, encoded, written and sent, and the time at which the rank
//! finishes.
//!
//! Every piece of every tile is visited. Invariant: sums over ranks equal those of the plan.

use super::rates::Rates;
use crate::plan::MergePlan;
use crate::plan::layout::WIDE_ROW_LEN_BYTES;
use crate::write::reading::{ReadingGroups, is_sent};
use crate::write::tiles::MergeWork;
use crate::write::values::open_inputs;
use foldhash::HashMap;
use raddle_core::engine::{DryRun, Schedule, claim_message_len_bytes};
use raddle_core::plan::extent::values_len_bytes;
use raddle_core::plan::{Batch, TileIndex};
use std::collections::HashSet;

/// Bytes that all ranks receive about each batch.
const SIZE_LEN_BYTES: u64 = 8;

/// Work of one rank.
#[derive(Debug, Clone, Default)]
pub(super) struct RankTraffic {
    pub tiles: u64,
    /// Number of pieces: runs of one input in one tile.
    pub pieces: u64,
    pub raw_len_bytes: u64,
    /// Number of stored bytes read from the inputs.
    pub read_len_bytes: u64,
    /// Core seconds for decoding and encoding.
    pub encode_s: f64,
    /// Number of uncompressed bytes received from other ranks.
    pub received_len_bytes: u64,
    /// Bit set of the inputs that the rank reads.
    inputs: Vec<u64>,
}

impl RankTraffic {
    /// Returns the number of inputs that the rank reads.
    pub(super) fn inputs(&self) -> u64 {
        self.inputs.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Returns how often the rank opens an input. A limited number is kept open; if there are more inputs, one is
    /// opened for each piece.
    pub(super) fn opens(&self) -> u64 {
        let inputs = self.inputs();
        if inputs <= open_inputs() as u64 { inputs } else { self.pieces }
    }
}

/// Work of all ranks.
#[derive(Debug, Clone, Default)]
pub(super) struct Traffic {
    pub ranks: Vec<RankTraffic>,
    /// Time until all ranks have placed their tiles, from the start of the first round.
    pub execute_s: f64,
    /// Buffer memory of the rank that needs most.
    pub buffers_len_bytes: u64,
    /// Number of bytes that each rank receives about the sizes of all batches.
    pub sizes_len_bytes: u64,
    /// Number of bytes that rank 0 receives about all batches: claims, checksums and contributions to digests.
    pub claims_len_bytes: u64,
    /// Number of messages that carry values between ranks: one per pair of ranks and round.
    pub messages: u64,
}

/// Computes the traffic of all rounds of a simulated run.
pub(super) fn go_through(
    plan: &MergePlan,
    work: &MergeWork<'_>,
    simulated: &DryRun,
    ranks: usize,
    way: &Way<'_>,
) -> Traffic {
    let rates = way.rates;
    let schedule = &simulated.schedule;
    let index = plan.tiles.tile_index();
    let blank = RankTraffic { inputs: vec![0; plan.inputs.len().div_ceil(64)], ..RankTraffic::default() };
    let mut traffic = Traffic { ranks: vec![blank; ranks], ..Traffic::default() };
    let mut clock = Clock::new(ranks);
    // Bytes of the previous round and of this one, by rank.
    let mut buffers = (vec![0_u64; ranks], vec![0_u64; ranks]);
    let mut sent = HashSet::new();
    for (number, round) in schedule.rounds.iter().enumerate() {
        let mut encode_s = vec![0.0; ranks];
        let mut io_len_bytes = 0;
        buffers.1.fill(0);
        for at in round.clone() {
            let owner = schedule.owners[at] as usize;
            let batch = &schedule.batches[at];
            let batch_traffic = traffic.add(work, &index, batch, owner, way, &mut sent);
            // Assumes that no tile consists of fill values only.
            traffic.claims_len_bytes +=
                claim_message_len_bytes(batch.tiles, work.note_len_bytes(index.tiles_in(batch)));
            encode_s[owner] += batch_traffic.encode_s / simulated.jobs as f64;
            for (reader, busy_s) in batch_traffic.of_readers {
                encode_s[reader as usize] += busy_s / simulated.jobs as f64;
            }
            io_len_bytes += batch_traffic.read_len_bytes;
            buffers.1[owner] += schedule.len_bytes[at];
        }
        traffic.messages += sent.len() as u64;
        sent.clear();
        let overlaps = |number: usize| schedule.overlaps.get(number) == Some(&true);
        let buffered_len_bytes = |rank: usize| {
            let before = if number > 0 && overlaps(number - 1) { buffers.0[rank] } else { 0 };
            buffers.1[rank] + before
        };
        traffic.buffers_len_bytes =
            (0..ranks).map(buffered_len_bytes).max().unwrap_or(0).max(traffic.buffers_len_bytes);
        std::mem::swap(&mut buffers.0, &mut buffers.1);
        // With arenas, the size of each tile is sent.
        let tiles = || schedule.batches[round.clone()].iter().map(|batch| batch.tiles).sum::<u64>();
        let sizes = round.len() as u64 + if plan.alignment.is_some() { tiles() } else { 0 };
        let sizes_len_bytes = ranks as u64 + SIZE_LEN_BYTES * sizes;
        traffic.sizes_len_bytes += sizes_len_bytes;
        let gathers_s = 2.0 * rates.collective_s(ranks, sizes_len_bytes as f64);
        let file_system_s = rates.read_bytes_per_s.map_or(0.0, |rate| io_len_bytes as f64 / rate);
        clock.round(number > 0 && !overlaps(number - 1), &encode_s, file_system_s, gathers_s);
    }
    traffic.execute_s = clock.agreed_s;
    traffic
}

/// Way of reading the inputs, and its speed.
pub(super) struct Way<'a> {
    /// Groups that share the reading of inputs; `None` if each rank reads the inputs of its own tiles.
    pub groups: Option<&'a ReadingGroups>,
    /// Bytes per second that a rank receives from another of its group.
    pub receive_bytes_per_s: f64,
    pub rates: &'a Rates,
}

/// Contribution of one batch.
struct BatchTraffic {
    /// Seconds spent by the owner of the batch.
    encode_s: f64,
    /// Seconds spent by each rank that reads for this rank.
    of_readers: HashMap<u32, f64>,
    read_len_bytes: u64,
}

impl Traffic {
    fn add(
        &mut self,
        work: &MergeWork<'_>,
        index: &TileIndex,
        batch: &Batch,
        owner: usize,
        way: &Way<'_>,
        sent: &mut HashSet<(u32, u32)>,
    ) -> BatchTraffic {
        let plan = work.plan();
        let mut batch_traffic = BatchTraffic { encode_s: 0.0, of_readers: HashMap::default(), read_len_bytes: 0 };
        for tile in index.tiles_in(batch) {
            let array = &plan.tiles.arrays[tile.array as usize];
            let number = plan.column_of_array[tile.array as usize];
            let column = &plan.schema.columns[number as usize];
            let is_wide = array.row_len_bytes() >= WIDE_ROW_LEN_BYTES;
            let groups = way.groups.filter(|_| is_sent(work, number));
            let mut raw_len_bytes = 0;
            for piece in array.pieces(tile.index) {
                let fact = &column.facts[piece.input as usize];
                let elements = piece.source.count.iter().fold(1, |product: u64, count| product.saturating_mul(*count));
                let len_bytes = elements.saturating_mul(array.element_len_bytes);
                let of_input = match &column.boxes {
                    Some(_) => {
                        let dims = column.dims_in(piece.input);
                        values_len_bytes(&dims, array.element_len_bytes).max(1)
                    }
                    None => fact.rows.saturating_mul(array.row_len_bytes()).max(1),
                };
                let stored = fact.stored_len_bytes as f64 * len_bytes as f64 / of_input as f64;
                raw_len_bytes += len_bytes;
                batch_traffic.read_len_bytes += stored as u64;
                let reader = groups.map_or(owner, |groups| groups.reader(owner, piece.input));
                let inflate_s = way.rates.inflate_s(is_wide, len_bytes);
                let of_reader = &mut self.ranks[reader];
                of_reader.pieces += 1;
                of_reader.inputs[piece.input as usize / 64] |= 1 << (piece.input % 64);
                of_reader.read_len_bytes += stored as u64;
                of_reader.encode_s += inflate_s;
                if reader == owner {
                    batch_traffic.encode_s += inflate_s;
                    continue;
                }
                *batch_traffic.of_readers.entry(reader as u32).or_default() += inflate_s;
                batch_traffic.encode_s += len_bytes as f64 / way.receive_bytes_per_s;
                self.ranks[owner].received_len_bytes += len_bytes;
                sent.insert((reader as u32, owner as u32));
            }
            let deflate_s = way.rates.deflate_s(is_wide, raw_len_bytes);
            batch_traffic.encode_s += deflate_s;
            let of_owner = &mut self.ranks[owner];
            of_owner.encode_s += deflate_s;
            of_owner.raw_len_bytes += raw_len_bytes;
            of_owner.tiles += 1;
        }
        batch_traffic
    }
}

/// Clock that computes when ranks that work in rounds finish. A rank begins round n + 1 once it has encoded round n and
/// all ranks have agreed on round n - 1 (on round n, if the two rounds do not fit into memory together).
struct Clock {
    /// Time at which each rank has encoded its last round.
    encoded_s: Vec<f64>,
    /// Time at which all ranks agreed on the previous round.
    agreed_s: f64,
    agreed_before_s: f64,
}

impl Clock {
    fn new(ranks: usize) -> Self {
        Self { encoded_s: vec![0.0; ranks], agreed_s: 0.0, agreed_before_s: 0.0 }
    }

    fn round(&mut self, is_alone: bool, encode_s: &[f64], min_s: f64, gathers_s: f64) {
        let opened_s = if is_alone { self.agreed_s } else { self.agreed_before_s };
        let mut all_s = self.agreed_s + min_s;
        for (encoded_s, encode_s) in self.encoded_s.iter_mut().zip(encode_s) {
            *encoded_s = encoded_s.max(opened_s) + encode_s;
            all_s = all_s.max(*encoded_s);
        }
        (self.agreed_before_s, self.agreed_s) = (self.agreed_s, all_s + gathers_s);
    }
}

/// Returns the total cost of each rank by which the schedule was distributed.
pub(super) fn assigned_costs(schedule: &Schedule, costs: &[u64], ranks: usize) -> Vec<f64> {
    let mut of_ranks = vec![0.0; ranks];
    for (owner, cost) in schedule.owners.iter().zip(costs) {
        of_ranks[*owner as usize] += *cost as f64;
    }
    of_ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_run_ahead_by_one_round_only() {
        // The first rank is slow in round 0, the second in round 1. With one round of lookahead, neither waits for the
        // other.
        let mut clock = Clock::new(2);
        clock.round(false, &[3.0, 1.0], 0.0, 0.0);
        clock.round(false, &[1.0, 3.0], 0.0, 0.0);
        assert_eq!(clock.agreed_s, 4.0);
        let mut alone = Clock::new(2);
        alone.round(false, &[3.0, 1.0], 0.0, 0.5);
        alone.round(true, &[1.0, 3.0], 0.0, 0.5);
        assert_eq!(alone.agreed_s, 7.0);
        // Round 2 begins when all have agreed on round 0.
        let mut third = Clock::new(2);
        third.round(false, &[10.0, 1.0], 0.0, 0.0);
        third.round(false, &[1.0, 1.0], 0.0, 0.0);
        third.round(false, &[1.0, 1.0], 0.0, 0.0);
        assert_eq!((third.encoded_s[1], third.agreed_s), (11.0, 12.0));
    }
}
