//! Collective reading: each rank requests a box; every block is read and decoded by one rank, which sends the others
//! the samples they need.
//!
//! All ranks compute the same plan from the gathered boxes, so messages need no headers. A single process uses
//! `reader`. Invariant: no rank sends or receives more than [`MESSAGES_LEN_BYTES`] in a round, unless a single block
//! needs more, and all ranks run the same rounds even if one fails.

use crate::dataset::bitmask::{MAX_RANK, Point};
use crate::dataset::compression::BlockFault;
use crate::dataset::grid::samples_in;
use crate::dataset::grid::{ArrayGrid, LatticeRun, Layout, blocks, runs};
use crate::error::{IdxError, Result};
use crate::kernel;
use crate::read::dataset::{Dataset, Query, Readers, zeros};
use crate::read::slabs::Slabs;
use crate::read::stored::{BlockReader, StoredBlock, StoredBlocks};
use crate::write::exchange::MESSAGES_LEN_BYTES;
use raddle_core::CoreError;
use raddle_core::digest::Digest;
use raddle_core::parallel;
use raddle_core::plan::extent::fill_with;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use raddle_core::ranks::owners::{Holders, Item, assign};
use std::iter;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Name of the operation in the errors of other ranks.
const OPERATION: &str = "read";

/// A block, the rank that reads it, and the ranks that need it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Share {
    block: u64,
    reader: u32,
    /// Ranks that need the block, ascending, with the number of samples of each.
    needs: Vec<(u32, u64)>,
}

/// Assignment of blocks to the ranks that read them.
#[derive(Debug)]
struct ReadPlan {
    shares: Vec<Share>,
    /// Shares of each round.
    rounds: Vec<Range<usize>>,
}

impl ReadPlan {
    /// Plans for ranks that need these parts.
    fn new(dataset: &Dataset, parts: &[Option<ArrayGrid>], resolution: u32, sample_len_bytes: u64, limit: u64) -> Self {
        let (bitmask, bits) = (&dataset.header().bitmask, dataset.header().bits_per_block);
        let mut needs = Vec::new();
        for (rank, part) in (0u32..).zip(parts) {
            let Some(part) = part else { continue };
            needs.extend(blocks(bitmask, bits, part, resolution).into_iter().map(|block| {
                let samples = lattice(dataset, block, resolution).map_or(0, |lattice| samples_in(&lattice, part));
                (block, rank, samples)
            }));
        }
        needs.sort_unstable();
        let of_block = needs.chunk_by(|a, b| a.0 == b.0);
        let items = of_block.clone().map(|needs| {
            let mut parts: Vec<_> = needs.iter().map(|(_, rank, samples)| (*rank as usize, *samples)).collect();
            Item { cost: 1, holders: Holders::of(&mut parts), ..Item::default() }
        });
        let readers = assign(&items.collect::<Vec<_>>(), parts.len());
        let shares: Vec<Share> = of_block
            .zip(readers)
            .map(|(needs, reader)| {
                let block = needs[0].0;
                Share { block, reader, needs: needs.iter().map(|(_, rank, samples)| (*rank, *samples)).collect() }
            })
            .collect();
        let mut loads = Loads::new(parts.len());
        let (mut rounds, mut first) = (Vec::new(), 0);
        for (number, share) in shares.iter().enumerate() {
            if loads.add(share, sample_len_bytes) > limit && number > first {
                rounds.push(first..number);
                first = number;
                loads = Loads::new(parts.len());
                loads.add(share, sample_len_bytes);
            }
        }
        if first < shares.len() {
            rounds.push(first..shares.len());
        }
        Self { shares, rounds }
    }
}

/// Bytes that each rank sends and receives in a round.
struct Loads {
    sent: Vec<u64>,
    received: Vec<u64>,
}

impl Loads {
    fn new(ranks: usize) -> Self {
        Self { sent: vec![0; ranks], received: vec![0; ranks] }
    }

    /// Adds the messages of a share; returns the maximum number of bytes that any rank now sends or receives.
    fn add(&mut self, share: &Share, sample_len_bytes: u64) -> u64 {
        let mut most = 0;
        for (rank, samples) in share.away() {
            let len_bytes = samples.saturating_mul(sample_len_bytes);
            for sum in [&mut self.sent[share.reader as usize], &mut self.received[rank]] {
                *sum = sum.saturating_add(len_bytes);
                most = most.max(*sum);
            }
        }
        most
    }
}

impl Share {
    /// Returns the ranks to which the reader sends samples, with the number of samples for each.
    fn away(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let others = self.needs.iter().filter(|(rank, _)| *rank != self.reader);
        others.map(|(rank, samples)| (*rank as usize, *samples))
    }
}

/// Returns the samples of a block up to `resolution`, as one lattice.
fn lattice(dataset: &Dataset, block: u64, resolution: u32) -> Option<LatticeRun> {
    let header = dataset.header();
    runs(&header.bitmask, header.bits_per_block, block, Layout::RowMajor, resolution).pop()
}

/// Part of a message: a rank's samples of a block.
struct MessagePart<'m> {
    grid: ArrayGrid,
    bytes: &'m mut [u8],
}

impl Dataset {
    /// Collective. Reads this rank's box into a new buffer, x fastest. The queries of the ranks may differ only in
    /// their boxes; a box without samples (at the resolution) gives an empty buffer. Every block is read by one rank.
    ///
    /// # Errors
    /// As for [`Dataset::read_by`], on every rank; also `RankFailed` if only another rank encountered an error.
    pub fn read_collective(&self, query: &Query, readers: &Readers<'_>, ranks: &dyn Communicator) -> Result<Vec<u8>> {
        let begun = self.begin(query);
        let (part, mut out) = ranks.agree(OPERATION, begun)?;
        let parts = self.gather_parts(query, ranks)?;
        let field = &self.header().fields[query.field];
        let len = field.sample.len_bytes();
        if query.missing_as_default {
            fill_with(&mut out, &field.default_sample());
        }
        let plan = ReadPlan::new(self, &parts, query.resolution, len as u64, MESSAGES_LEN_BYTES);
        let rank = ranks.rank();
        let mut outcome = Ok(());
        for round in &plan.rounds {
            let shares = &plan.shares[round.clone()];
            let mut messages = vec![Vec::new(); parts.len()];
            for share in shares.iter().filter(|share| share.reader as usize == rank) {
                for (to, samples) in share.away() {
                    let message: &mut Vec<u8> = &mut messages[to];
                    message.resize(message.len() + samples as usize * len, 0);
                }
            }
            if outcome.is_ok() {
                let local = part.as_ref().map(|part| (part, out.as_mut_slice()));
                outcome = self.read_round(query, readers, shares, (rank, &parts), local, &mut messages);
            }
            // Even after an error, the other ranks wait for this exchange.
            let arrived = ranks.exchange_bytes(messages)?;
            let mut at = vec![0; arrived.len()];
            for share in shares.iter().filter(|share| share.reader as usize != rank) {
                let Some((_, samples)) = share.away().find(|(needs, _)| *needs == rank) else { continue };
                let (from, len_bytes) = (share.reader as usize, samples as usize * len);
                let bytes = arrived[from].get(at[from]..at[from] + len_bytes);
                let placed = bytes.zip(part.as_ref()).zip(lattice(self, share.block, query.resolution));
                match placed {
                    Some(((bytes, part), lattice)) => kernel::scatter(&lattice, part, &mut out, bytes, len),
                    None => {
                        let (got_bytes, expected_bytes) = (arrived[from].len(), at[from] + len_bytes);
                        let cut = CoreError::MessageLength { operation: OPERATION, got_bytes, expected_bytes };
                        outcome = outcome.and(Err(cut.into()));
                    }
                }
                at[from] += len_bytes;
            }
        }
        ranks.agree(OPERATION, outcome)?;
        Ok(out)
    }

    /// Returns this rank's part and allocates memory for it.
    fn begin(&self, query: &Query) -> Result<(Option<ArrayGrid>, Vec<u8>)> {
        let part = self.part(query)?;
        let field = self.readable(query.field)?;
        let samples = part.as_ref().map_or(Some(0), ArrayGrid::sample_count).unwrap_or(u64::MAX);
        Ok((part, zeros(samples.saturating_mul(field.sample.len_bytes() as u64))?))
    }

    /// Collective. Returns the parts of all ranks; fails if ranks request different fields, times or resolutions.
    fn gather_parts(&self, query: &Query, ranks: &dyn Communicator) -> Result<Vec<Option<ArrayGrid>>> {
        let Query { field, time, resolution, missing_as_default, start, end } = *query;
        let text = format!("{}{field} {time:?} {resolution} {missing_as_default}", self.header().to_text());
        let hash = Digest::of(text.as_bytes()).crc64_nvme();
        let words = iter::once(hash).chain(start).chain(end);
        let gathered = ranks.all_gather_bytes(&words.flat_map(u64::to_le_bytes).collect::<Vec<u8>>())?;
        let mut parts = Vec::new();
        for (rank, bytes) in gathered.iter().enumerate() {
            let words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
            let [other, points @ ..] = words.as_slice() else { return Err(CoreError::PlansDiffer { rank }.into()) };
            let ([start, end], true) = (points.as_chunks::<MAX_RANK>().0, *other == hash) else {
                return Err(CoreError::PlansDiffer { rank }.into());
            };
            let (start, end): (&Point, &Point) = (start, end);
            parts.push(ArrayGrid::of_box(&self.header().bitmask, start, end, resolution));
        }
        Ok(parts)
    }

    /// Reads this rank's blocks of a round into its own array and into messages for other ranks.
    fn read_round(
        &self,
        query: &Query,
        readers: &Readers<'_>,
        shares: &[Share],
        (rank, parts): (usize, &[Option<ArrayGrid>]),
        local: Option<(&ArrayGrid, &mut [u8])>,
        messages: &mut [Vec<u8>],
    ) -> Result<()> {
        let (header, field) = (self.header(), &self.header().fields[query.field]);
        let (len, default) = (field.sample.len_bytes(), field.default_sample());
        let mut rests: Vec<&mut [u8]> = messages.iter_mut().map(Vec::as_mut_slice).collect();
        let (mut numbers, mut parcels) = (Vec::new(), Vec::new());
        for share in shares.iter().filter(|share| share.reader as usize == rank) {
            let of_share = share.away().filter_map(|(to, samples)| {
                let (bytes, rest) = std::mem::take(&mut rests[to]).split_at_mut(samples as usize * len);
                rests[to] = rest;
                let grid = kernel::gathered(&lattice(self, share.block, query.resolution)?, parts[to].as_ref()?)?;
                Some(MessagePart { grid, bytes })
            });
            parcels.push(Mutex::new(of_share.collect::<Vec<_>>()));
            numbers.push(share.block);
        }
        let slabs = local.map(|(grid, out)| Slabs::cut(grid, out, len, readers.jobs));
        let stored = StoredBlocks::new(self, query.field, query.time);
        let jobs = stored.jobs(&numbers, readers.jobs);
        parallel::for_each(&jobs, readers.jobs, readers.cancel, BlockReader::default, |reader, of_job| {
            reader.read(&stored, of_job, &mut |block, path, found| {
                let at = numbers.partition_point(|other| *other < block);
                let mut parcels = parcels[at].lock().unwrap_or_else(PoisonError::into_inner);
                match found {
                    Ok(StoredBlock { record, raw }) => {
                        let level = query.resolution;
                        let runs = runs(&header.bitmask, header.bits_per_block, block, record.layout, level);
                        for MessagePart { grid, bytes } in parcels.iter_mut() {
                            runs.iter().for_each(|run| kernel::decode(run, grid, bytes, raw, len));
                        }
                        if let Some(slabs) = &slabs {
                            slabs.each(&runs, |slab, out| {
                                runs.iter().for_each(|run| kernel::decode(run, slab, out, raw, len));
                            });
                        }
                        Ok(())
                    }
                    Err(BlockFault::NoFile | BlockFault::NotStored) if query.missing_as_default => {
                        parcels.iter_mut().for_each(|parcel| fill_with(parcel.bytes, &default));
                        Ok(())
                    }
                    Err(fault) => Err::<(), IdxError>(stored.bad(block, path, fault)),
                }
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::header::{Field, Header};

    #[test]
    fn rounds_are_bounded_and_every_block_is_read_once() {
        let mut header = Header::new("d", &[40, 40, 40], vec![Field::new("a", "float32".parse().unwrap())]).unwrap();
        header.bits_per_block = 9;
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("d.idx"), header.to_text()).unwrap();
        let dataset = Dataset::open(&folder.path().join("d.idx")).unwrap();
        let level = header.bitmask.max_level();
        let part = |rank: u64| {
            let (start, end) = ([0, 0, 10 * rank, 0, 0], [40, 40, (10 * rank + 13).min(40), 1, 1]);
            ArrayGrid::of_box(&header.bitmask, &start, &end, level)
        };
        let parts: Vec<_> = (0..4).map(part).chain([None]).collect();
        let limit = 8_000;
        let plan = ReadPlan::new(&dataset, &parts, level, 4, limit);
        let all = blocks(&header.bitmask, 9, &header.grid(level).unwrap(), level);
        assert_eq!(plan.shares.iter().map(|share| share.block).collect::<Vec<_>>(), all);
        let is_home = |share: &&Share| share.needs.iter().any(|(rank, _)| *rank == share.reader);
        assert!(plan.shares.iter().filter(is_home).count() * 2 > all.len(), "most stay where they are needed");
        let samples: u64 = plan.shares.iter().flat_map(|share| &share.needs).map(|(_, samples)| samples).sum();
        assert_eq!(samples, parts.iter().flatten().map(|part| part.sample_count().unwrap()).sum::<u64>());
        assert!(plan.rounds.len() > 2);
        assert_eq!(plan.rounds.iter().flat_map(Range::clone).collect::<Vec<_>>(), (0..all.len()).collect::<Vec<_>>());
        for round in plan.rounds.iter().filter(|round| round.len() > 1) {
            let (mut sent, mut received) = ([0; 5], [0; 5]);
            for share in &plan.shares[round.clone()] {
                for (rank, samples) in share.away() {
                    sent[share.reader as usize] += 4 * samples;
                    received[rank] += 4 * samples;
                }
            }
            assert!(sent.iter().chain(&received).all(|len_bytes| *len_bytes <= limit));
        }
    }
}
