//! Mapping of events to datasets in a layout: the plan of the file, and the cutting of blocks of events into pieces of
//! datasets.

use super::series::{PartitionedBlock, Series, SeriesAttribute, SeriesPiece};
use crate::error::Result;
use raddle_columns::block::Block;
use raddle_columns::error::Location;
use raddle_columns::event_id::EventId;
use raddle_columns::schema::Number;
use raddle_hdf5::write::Compat;

/// Cost of having a single chunk: the B-tree that refers to it has room for 64 chunks (24 bytes, 64 addresses and 65
/// keys of 24 bytes). Elements that filters shorten by less than that are stored contiguously instead.
pub(super) const INDEX_LEN_BYTES: usize = 24 + 64 * 8 + 65 * 24;

/// Plan of an HDF5 event file: groups, attributes and datasets.
#[derive(Debug, Clone)]
pub(super) struct FilePlan {
    pub compat: Compat,
    /// Whether datasets are extensible, like the framework's.
    pub is_extensible: bool,
    /// Paths of groups, parents first.
    pub groups: Vec<&'static str>,
    /// Attributes of groups, with the path of each group.
    pub attributes: Vec<(&'static str, SeriesAttribute)>,
    pub series: Vec<Series>,
}

/// Way to map events to datasets.
pub(super) trait EventArrangement: Send + Sync {
    fn plan(&self) -> &FilePlan;

    /// Creates the state with which one thread arranges blocks.
    fn arranger(&self) -> Result<Box<dyn PartitionBlocks>>;

    /// Returns the attributes of groups that are known only when all events are known.
    fn last_attributes(&self, entries: u64, first: Option<EventId>) -> Vec<(&'static str, SeriesAttribute)>;
}

/// Interface that cuts blocks into pieces.
pub(super) trait PartitionBlocks: Send {
    /// Arranges `block`, which has been checked against the schema.
    fn arrange(&mut self, block: Block, place: &Location) -> Result<PartitionedBlock>;
}

/// Returns the id of an entry of a block. If the source has no ids, returns run 1, subrun 1 and an event number counted
/// from 1, like the framework's own events.
pub(super) fn id_of(block: &Block, number: usize) -> EventId {
    let unknown = EventId { run: 1, lumi: 1, event: block.entries.start.saturating_add(number as u64 + 1) };
    block.ids.get(number).copied().unwrap_or(unknown)
}

/// Encodes numbers as little-endian bytes.
pub(super) fn bytes_of<const LEN: usize>(numbers: impl Iterator<Item = [u8; LEN]>) -> SeriesPiece {
    SeriesPiece::Values(numbers.flatten().collect())
}

/// Creates series of run, subrun and event numbers with these paths.
pub(super) fn id_series(run: &str, lumi: &str, event: &str) -> [Series; 3] {
    [
        Series::values(run.to_owned(), Number::Uint32),
        Series::values(lumi.to_owned(), Number::Uint32),
        Series::values(event.to_owned(), Number::Uint64),
    ]
}

/// Creates the pieces for [`id_series`].
pub(super) fn id_pieces(ids: impl Iterator<Item = EventId> + Clone) -> [SeriesPiece; 3] {
    [
        bytes_of(ids.clone().map(|id| id.run.to_le_bytes())),
        bytes_of(ids.clone().map(|id| id.lumi.to_le_bytes())),
        bytes_of(ids.map(|id| id.event.to_le_bytes())),
    ]
}
