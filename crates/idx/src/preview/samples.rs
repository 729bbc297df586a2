//! Samples of one dataset while its array passes: slabs along the slowest axis, each with a separate lock.
//!
//! Invariant: an untouched slab takes no memory, and a touched one is zero where no samples passed. The slabs of
//! several ranks, which see disjoint parts, can therefore be combined by a bitwise OR.

use super::plan::PlannedPreview;
use crate::dataset::region::SampleBox;
use crate::error::{IdxError, Result};
use crate::read::dataset::zeros;
use crate::write::exchange::{BoxData, MESSAGES_LEN_BYTES};
use raddle_core::CoreError;
use raddle_core::plan::extent::{BoxSource, BoxTarget, Coordinates, Extent};
use raddle_core::ranks::communicator::Communicator;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Length of a slab, unless a row is longer: large compared with the cost of its lock, but small enough that threads on
/// neighbouring boxes of a large preview rarely contend.
const SLAB_LEN_BYTES: u64 = 1 << 20;

/// Samples of one dataset.
#[derive(Debug)]
pub(super) struct PreviewSamples {
    slabs: Vec<Slab>,
    rows_per_slab: u64,
}

/// A slab of consecutive rows.
#[derive(Debug)]
struct Slab {
    rows: Range<u64>,
    len_bytes: u64,
    /// Empty until the first sample arrives.
    bytes: Mutex<Vec<u8>>,
}

impl Slab {
    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the bytes and allocates them if necessary.
    fn touch(&self) -> Result<MutexGuard<'_, Vec<u8>>> {
        let mut bytes = self.lock();
        if bytes.is_empty() {
            *bytes = zeros(self.len_bytes)?;
        }
        Ok(bytes)
    }
}

impl PreviewSamples {
    /// Creates the slabs without samples.
    pub(super) fn new(of: &PlannedPreview) -> Self {
        let shape = &of.lattice.shape;
        let row_len_bytes = shape[1..].iter().product::<u64>() * of.sample_len_bytes() as u64;
        let rows_per_slab = (SLAB_LEN_BYTES / row_len_bytes.max(1)).max(1);
        let slab = |first: u64| {
            let rows = first..(first + rows_per_slab).min(shape[0]);
            let len_bytes = (rows.end - rows.start) * row_len_bytes;
            Slab { rows, len_bytes, bytes: Mutex::default() }
        };
        Self { slabs: (0..shape[0]).step_by(rows_per_slab as usize).map(slab).collect(), rows_per_slab }
    }

    /// Copies the samples at `points` from `values`.
    pub(super) fn take(
        &self,
        of: &PlannedPreview,
        points: &Extent,
        (extent, values): (&Extent, BoxSource<'_>),
    ) -> Result<()> {
        if points.is_empty() {
            return Ok(());
        }
        let first = points.start[0] / self.rows_per_slab;
        let end = points.end(0).div_ceil(self.rows_per_slab);
        let touched = self.slabs.get(first as usize..end as usize).unwrap_or_default();
        for slab in touched {
            let (start, end) = (slab.rows.start.max(points.start[0]), slab.rows.end.min(points.end(0)));
            let mut part = points.clone();
            (part.start[0], part.count[0]) = (start, end - start);
            let mut shape = of.lattice.shape.clone();
            shape[0] = slab.rows.end - slab.rows.start;
            let mut origin: Coordinates = part.start.clone();
            origin[0] -= slab.rows.start;
            let mut bytes = slab.touch()?;
            let target = BoxTarget { bytes: &mut bytes, shape: &shape, origin: &origin };
            of.lattice.pick(&part, (extent, values), target, of.sample_len_bytes())?;
        }
        Ok(())
    }

    /// Collective. Gathers the slabs of the other ranks on the first. An error of this rank alone is returned in the
    /// inner result, after all messages were exchanged.
    pub(super) fn gather(&self, ranks: &dyn Communicator) -> Result<Result<()>> {
        let mut outcome = Ok(());
        let message_len_bytes = (MESSAGES_LEN_BYTES / ranks.size() as u64).max(1);
        for slab in &self.slabs {
            let mut start = 0;
            while start < slab.len_bytes {
                let part = start as usize..(start + message_len_bytes).min(slab.len_bytes) as usize;
                let mut messages = vec![Vec::new(); ranks.size()];
                if ranks.rank() > 0 {
                    messages[0] = slab.lock().get(part.clone()).unwrap_or_default().to_vec();
                }
                let received = ranks.exchange_bytes(messages)?;
                if outcome.is_ok() {
                    outcome = received.iter().enumerate().filter(|(_, message)| !message.is_empty()).try_for_each(
                        |(rank, message)| {
                            let mut bytes = slab.touch()?;
                            let local = bytes.get_mut(part.clone()).filter(|local| local.len() == message.len());
                            let nonsense = CoreError::MessageContent { operation: "gather the preview", rank };
                            let local = local.ok_or(IdxError::Core(nonsense))?;
                            local.iter_mut().zip(message).for_each(|(local, remote)| *local |= remote);
                            Ok(())
                        },
                    );
                }
                start = part.end as u64;
            }
        }
        Ok(outcome)
    }

    /// Moves the samples out, as boxes of the dataset.
    pub(super) fn give_up(&self, of: &PlannedPreview) -> Vec<BoxData<'static>> {
        let patch = |slab: &Slab| {
            let mut bytes = std::mem::take(&mut *slab.lock());
            if of.is_big_endian {
                bytes.chunks_exact_mut(of.sample_len_bytes()).for_each(<[u8]>::reverse);
            }
            // x first, as in IDX.
            let mut start = vec![0; of.shape.len()];
            let mut counts: Vec<u64> = of.lattice.shape.iter().rev().copied().collect();
            if let (Some(start), Some(count)) = (start.last_mut(), counts.last_mut()) {
                (*start, *count) = (slab.rows.start, slab.rows.end - slab.rows.start);
            }
            BoxData { region: SampleBox::new(&start, &counts), arrays: vec![Cow::Owned(bytes)] }
        };
        self.slabs.iter().map(patch).collect()
    }
}
