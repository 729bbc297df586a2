//! A file written by several ranks: the assignment of chunks to ranks, and the exchange of pieces of chunks.
//!
//! Every rank announces how many elements each of its blocks adds to each dataset. From this, all ranks know the
//! position of every piece, the owner of each chunk (the rank that contributes its first element) and the order in
//! which chunks are completed. Pieces are sent to the owners of their chunks, which encode them; the stored lengths
//! determine the addresses in the file. Invariants: chunks are placed in the order in which one process would place
//! them; only its owner holds a chunk.

use super::chunk_builder::ChunkBuilder;
use super::series::SeriesPiece;
use super::store::{Chunk, EncodedTile, Hdf5Sink, Hdf5Summary, Pieces, RankChunks, Tile};
use crate::error::Result;
use raddle_columns::error::ColumnsError;
use raddle_columns::event_id::EventId;
use raddle_columns::sink::{SharedSink, Sink};
use raddle_core::CoreError;
use raddle_core::plan;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt, Rank};
use raddle_core::ranks::message::{MessageReader, encode_u64s, put_u64s};
use raddle_core::ranks::regroup::{Inbox, Outbox, ReceivedPiece};

/// Contribution of a block to a dataset.
#[derive(Debug, Clone, Copy)]
struct BlockContribution {
    elements: u64,
    /// Number to be added to later ends; 0 for values.
    last_end: u64,
}

impl BlockContribution {
    fn of(piece: &SeriesPiece, element_len_bytes: usize) -> Self {
        match piece {
            SeriesPiece::Values(bytes) => Self { elements: (bytes.len() / element_len_bytes) as u64, last_end: 0 },
            SeriesPiece::Ends(ends) => Self::of_ends(ends),
            SeriesPiece::Offsets(offsets) => Self::of_ends(offsets.get(1..).unwrap_or_default()),
        }
    }

    fn of_ends(ends: &[u64]) -> Self {
        Self { elements: ends.len() as u64, last_end: ends.last().copied().unwrap_or(0) }
    }
}

impl SharedSink for Hdf5Sink {
    fn commit_collective(
        &mut self,
        prepared: Vec<Pieces>,
        ranks: &dyn Communicator,
    ) -> Result<Vec<Tile>, ColumnsError> {
        self.share_what_was_there();
        let received = ranks.all_gather_bytes(&self.contribution(&prepared))?;
        let mut parts = Outbox::new(ranks.size());
        let mut complete = Vec::new();
        let mut local_blocks = prepared.into_iter();
        for (rank, message) in received.iter().enumerate() {
            let mut words = MessageReader::new("what blocks add", message);
            let [blocks, has_first, run, lumi, event] = words.words()?;
            if self.entries == 0 && self.first.is_none() && has_first == 1 {
                // Run and subrun had 32 bits before they were sent.
                self.first = Some(EventId { run: run as u32, lumi: lumi as u32, event });
            }
            for _ in 0..blocks {
                self.entries += words.word()?;
                let mut pieces =
                    if rank == ranks.rank() { local_blocks.next().map(|block| block.arranged.pieces) } else { None };
                for series in 0..self.growing.len() {
                    let [elements, last_end] = words.words()?;
                    let piece = pieces.as_mut().and_then(|pieces| pieces.get_mut(series)).map(take_piece);
                    self.add(series, BlockContribution { elements, last_end }, rank, piece, &mut parts, &mut complete)?;
                }
            }
        }
        self.take_parts(&parts.exchange(ranks)?)?;
        Ok(self.hand_out(complete, ranks.rank()))
    }

    fn rest_collective(&mut self, ranks: &dyn Communicator) -> Result<Vec<Tile>, ColumnsError> {
        // All ranks have the same information here.
        self.check_ids()?;
        self.share_what_was_there();
        let last = |(series, growing): (usize, &ChunkBuilder)| match growing.len % growing.chunk_len {
            0 => None,
            _ => Some(((series, growing.len / growing.chunk_len), self.shares.owners[series])),
        };
        let complete = self.growing.iter().enumerate().filter_map(last).collect();
        let mut tiles = self.hand_out(complete, ranks.rank());
        for tile in &mut tiles {
            let growing = &self.growing[tile.series];
            tile.raw = growing.filled_up(std::mem::take(&mut tile.raw));
            tile.is_all = growing.is_short();
        }
        Ok(tiles)
    }

    fn place_collective(&mut self, encoded: Vec<EncodedTile>, ranks: &dyn Communicator) -> Result<(), ColumnsError> {
        let local_words = encoded.iter().flat_map(|tile| [tile.stored.len() as u64, u64::from(tile.filter_mask)]);
        let received = ranks.all_gather_bytes(&encode_u64s(local_words))?;
        let mut received: Vec<MessageReader<'_>> =
            received.iter().map(|message| MessageReader::new("lengths of chunks", message)).collect();
        let (mut local_tiles, mut written) = (encoded.into_iter(), Ok(()));
        for (series, owner) in std::mem::take(&mut self.shares.handed_out) {
            let [len_bytes, filter_mask] = received[owner].words()?;
            let address = self.take_place(series, len_bytes, filter_mask as u32);
            if owner == ranks.rank() && written.is_ok() {
                written = local_tiles.next().map_or(Ok(()), |tile| self.output().write_at(&tile.stored, address));
            }
        }
        ranks.agree("write chunks", written)
    }

    fn finish_collective(self, ranks: &dyn Communicator) -> Result<Hdf5Summary, ColumnsError> {
        self.output().sync_collective(ranks)?;
        let of_others = self.summary(0, 0);
        let finished = if ranks.rank() == 0 { self.finish().map(Some) } else { Ok(None) };
        let finished = ranks.agree("publish", finished)?;
        let local_words = finished.map_or([0; 3], |summary| {
            let Hdf5Summary { datasets, len_bytes, metadata_s, .. } = summary;
            [datasets, len_bytes, metadata_s.to_bits()]
        });
        let received = ranks.all_gather_bytes(&encode_u64s(local_words))?;
        let mut words = MessageReader::new("what was published", received.first().map_or(&[], Vec::as_slice));
        let [datasets, len_bytes, metadata_s] = words.words()?;
        Ok(Hdf5Summary { datasets, len_bytes, metadata_s: f64::from_bits(metadata_s), ..of_others })
    }
}

fn take_piece(piece: &mut SeriesPiece) -> SeriesPiece {
    std::mem::replace(piece, SeriesPiece::Values(Vec::new()))
}

impl Hdf5Sink {
    /// Gives rank 0 the zeros with which offsets begin.
    fn share_what_was_there(&mut self) {
        if !self.shares.owners.is_empty() {
            return;
        }
        self.shares.owners = vec![0; self.growing.len()];
        for (series, growing) in self.growing.iter_mut().enumerate() {
            let tail = std::mem::take(&mut growing.tail);
            if !tail.is_empty() {
                self.shares.open.insert((series, 0), tail);
            }
        }
    }

    /// Encodes the contributions of this rank's blocks as a message.
    fn contribution(&self, prepared: &[Pieces]) -> Vec<u8> {
        let first = prepared.iter().find_map(|block| block.first);
        let id = first.unwrap_or_default();
        let of_first = [u64::from(first.is_some()), u64::from(id.run), u64::from(id.lumi), id.event];
        let mut message = encode_u64s([prepared.len() as u64].into_iter().chain(of_first));
        for block in prepared {
            put_u64s(&mut message, [block.arranged.entries]);
            for (piece, growing) in block.arranged.pieces.iter().zip(&self.growing) {
                let BlockContribution { elements, last_end } = BlockContribution::of(piece, growing.element_len_bytes);
                put_u64s(&mut message, [elements, last_end]);
            }
        }
        message
    }

    /// Adds a piece of `rank` to a dataset. A piece of this rank is cut into parts for the owners of its chunks.
    fn add(
        &mut self,
        series: usize,
        added: BlockContribution,
        rank: Rank,
        piece: Option<SeriesPiece>,
        parts: &mut Outbox,
        complete: &mut Vec<(Chunk, Rank)>,
    ) -> Result<()> {
        let growing = &self.growing[series];
        let (start, end) = (growing.len, growing.len + added.elements);
        let bytes = piece.map(|piece| bytes_of(piece, growing.base));
        let (chunk_len, element_len_bytes) = (growing.chunk_len, growing.element_len_bytes);
        let mut at = start;
        while at < end {
            let chunk = at / chunk_len;
            let until = ((chunk + 1) * chunk_len).min(end);
            if at % chunk_len == 0 {
                self.shares.owners[series] = rank;
            }
            let owner = self.shares.owners[series];
            if let Some(bytes) = &bytes {
                let range = (at - start) as usize * element_len_bytes..(until - start) as usize * element_len_bytes;
                let tile = plan::Tile { array: series as u32, index: chunk };
                parts.put(owner, tile, &[at % chunk_len], &[until - at], &bytes[range])?;
            }
            if until == (chunk + 1) * chunk_len {
                complete.push(((series, chunk), owner));
            }
            at = until;
        }
        let growing = &mut self.growing[series];
        growing.len = end;
        growing.base = growing.base.wrapping_add(added.last_end);
        Ok(())
    }

    /// Inserts parts into their chunks, which this rank owns.
    fn take_parts(&mut self, parts: &Inbox) -> Result<()> {
        for tile in parts.tiles() {
            let series = tile.array as usize;
            let chunk = self.shares.open.entry((series, tile.index)).or_default();
            for ReceivedPiece { from, target, bytes, .. } in parts.pieces(tile) {
                let (Some(growing), [first]) = (self.growing.get(series), target.as_slice()) else {
                    return Err(CoreError::MessageContent { operation: "parts of chunks", rank: from }.into());
                };
                let begin = *first as usize * growing.element_len_bytes;
                if chunk.len() < begin + bytes.len() {
                    chunk.resize(begin + bytes.len(), 0);
                }
                chunk[begin..begin + bytes.len()].copy_from_slice(bytes);
            }
        }
        Ok(())
    }

    /// Hands out those completed chunks that this rank owns.
    fn hand_out(&mut self, complete: Vec<(Chunk, Rank)>, rank: Rank) -> Vec<Tile> {
        let RankChunks { open, handed_out, .. } = &mut self.shares;
        *handed_out = complete.iter().map(|((series, _), owner)| (*series, *owner)).collect();
        let local_chunks = complete.into_iter().filter(|(_, owner)| *owner == rank);
        let mut tile =
            |chunk: Chunk| Tile { series: chunk.0, raw: open.remove(&chunk).unwrap_or_default(), is_all: false };
        local_chunks.map(|(chunk, _)| tile(chunk)).collect()
    }
}

/// Returns the elements of a piece as stored in a dataset whose last end was `base`.
fn bytes_of(piece: SeriesPiece, base: u64) -> Vec<u8> {
    let of_ends = |ends: &[u64]| ends.iter().flat_map(|end| base.wrapping_add(*end).to_le_bytes()).collect();
    match piece {
        SeriesPiece::Values(bytes) => bytes,
        SeriesPiece::Ends(ends) => of_ends(&ends),
        SeriesPiece::Offsets(offsets) => of_ends(offsets.get(1..).unwrap_or_default()),
    }
}
