//! Trials of tiles and regions, on which a prediction is based.

use super::{MergeWork, MergeWorker};
use crate::error::Result;
use crate::verify::digests::blocks::ColumnDigester;
use crate::write::regrouping::read_part;
use raddle_core::plan::extent::{BoxSource, Coordinates, Extent};
use raddle_core::plan::{ArrayPlan, Tile};
use raddle_core::regrouping::slots::Slots;
use raddle_core::report::StageTimer;

/// A region of an array, read for a trial.
pub(crate) struct RegionTrial {
    /// Values, divided into tiles.
    pub slots: Slots,
    /// Processor time of reading in nanoseconds.
    pub read_ns: u64,
    /// Processor time of dividing in nanoseconds.
    pub put_ns: u64,
}

impl<'p> MergeWork<'p> {
    /// Gathers the values of a tile of `array` for a trial; see [`gather_cut`](Self::gather_cut).
    pub(crate) fn try_tile(
        &self,
        worker: &mut MergeWorker<'p>,
        tile: Tile,
        array: &ArrayPlan,
        raw: &mut [u8],
    ) -> Result<()> {
        self.gather_cut(&mut worker.reader, tile, array, None, raw)
    }

    /// Reads a region of an array for a trial and divides it into tiles, as for tiles that are assembled in groups.
    pub(crate) fn try_region(
        &self,
        worker: &mut MergeWorker<'p>,
        array: u32,
        region: &Extent,
        values: &mut Vec<u8>,
    ) -> Result<RegionTrial> {
        let (column, number) = (self.plan.column_of_array[array as usize], array);
        let array = &self.plan.tiles.arrays[number as usize];
        let slots = Slots::new(array, region, &mut Vec::new());
        let (mut read_ns, mut put_ns) = (0, 0);
        for part in self.regrouper.parts(number, region) {
            let timer = StageTimer::start();
            read_part(array, column, &mut worker.reader, &part, values)?;
            read_ns += timer.totals(0, 0).cpu_ns;
            let timer = StageTimer::start();
            slots.put(&part.extent(), values)?;
            put_ns += timer.totals(0, 0).cpu_ns;
        }
        Ok(RegionTrial { slots, read_ns, put_ns })
    }

    /// Digests the values of a box of an array, if values of its column are digested.
    pub(crate) fn digest_box(&self, array: u32, extent: &Extent, values: &[u8]) -> Result<()> {
        let (column, array) = (self.plan.column_of_array[array as usize], &self.plan.tiles.arrays[array as usize]);
        let Some(ColumnDigester::Values { digests, .. }) = &self.digests[column as usize] else { return Ok(()) };
        let origin = Coordinates::from_elem(0, extent.rank());
        let source = BoxSource { bytes: values, shape: &extent.count, origin: &origin };
        Ok(digests.add_box(&array.shape, extent, source, array.element_len_bytes as usize)?)
    }
}
