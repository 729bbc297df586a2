//! Contents of an event file: the arrays that hold the ids and the products, in any of the layouts.
//!
//! Other modules determine which arrays a file has.

use super::file::{Array, EventsFile, words};
use super::packed_source::PackedSource;
use crate::error::Result;
use raddle_columns::event_id::EventId;
use raddle_hdf5::read::DatasetReader;
use std::ops::Range;

/// Storage of the ids.
#[derive(Debug)]
pub(super) enum Ids {
    None,
    /// Arrays of run, subrun and event.
    Arrays(Box<[Array; 3]>),
    /// Run and subrun of the first event, which is all that the framework records, and 32 bits of each event number.
    Framework {
        run: u32,
        lumi: u32,
        events: Box<Array>,
    },
}

/// Storage of the products.
#[derive(Debug)]
pub(super) enum ProductStorage {
    /// Arrays of the buffers of each product.
    Columns(Vec<Vec<Array>>),
    /// Arrays of the bytes of each product, and of the ends of events in them.
    Products(Vec<ProductArrays>),
    Events {
        products: Array,
        offsets: Array,
    },
    /// First event of each batch, with the number of events.
    Batches {
        products: Array,
        offsets: Array,
        starts: Vec<u64>,
    },
    Packed(PackedSource),
}

#[derive(Debug)]
pub(super) struct ProductArrays {
    pub bytes: Array,
    pub ends: Array,
}

impl ProductStorage {
    /// Returns the approximate length of all products in memory.
    pub(super) fn len_bytes(&self) -> u64 {
        let of = |array: &Array| array.len.saturating_mul(array.number.len_bytes() as u64);
        match self {
            Self::Columns(columns) => columns.iter().flatten().map(of).fold(0, u64::saturating_add),
            Self::Products(products) => {
                products.iter().map(|p| of(&p.bytes).saturating_add(of(&p.ends))).fold(0, u64::saturating_add)
            }
            Self::Events { products, offsets } | Self::Batches { products, offsets, .. } => {
                of(products).saturating_add(of(offsets))
            }
            Self::Packed(packed) => packed.len_bytes(),
        }
    }
}

impl Ids {
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::Arrays(arrays) => arrays[2].len,
            Self::Framework { events, .. } => events.len,
        }
    }

    /// Returns the arrays that are read.
    pub(super) fn arrays(&self) -> Vec<&Array> {
        match self {
            Self::None => Vec::new(),
            Self::Arrays(arrays) => arrays.iter().collect(),
            Self::Framework { events, .. } => vec![events.as_ref()],
        }
    }

    pub(super) fn read(
        &self,
        file: &EventsFile,
        reader: &mut DatasetReader,
        entries: Range<u64>,
    ) -> Result<Vec<EventId>> {
        match self {
            Self::None => Ok(Vec::new()),
            Self::Arrays(arrays) => {
                let [runs, lumis, events] = arrays.as_ref();
                let runs = file.read(reader, runs, entries.clone())?;
                let lumis = file.read(reader, lumis, entries.clone())?;
                let events = file.read_u64(reader, events, entries)?;
                let ids = words(&runs).zip(words(&lumis)).zip(events);
                let id = |((run, lumi), event)| EventId {
                    run: u32::from_le_bytes(run),
                    lumi: u32::from_le_bytes(lumi),
                    event,
                };
                Ok(ids.map(id).collect())
            }
            Self::Framework { run, lumi, events } => {
                let events = file.read(reader, events, entries)?;
                // The number was truncated or clamped when it was written; the remaining bits are read as unsigned.
                let id = |event| EventId { run: *run, lumi: *lumi, event: u64::from(u32::from_le_bytes(event)) };
                Ok(words(&events).map(id).collect())
            }
        }
    }
}
