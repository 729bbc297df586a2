//! One-phase writing, with which the paper compares its method: every rank writes its samples to their final place,
//! without aggregation.
//!
//! Only for raw blocks, whose addresses follow from the plan. If several ranks hold samples of a block, the rank with
//! the most samples writes the whole block first; the others then overwrite it run by run. These many small writes are
//! what restructuring and aggregation avoid.

use crate::dataset::bitmask::MAX_RANK;
use crate::dataset::compression::{Coding, Compression, Record};
use crate::dataset::grid::lattice;
use crate::dataset::grid::runs;
use crate::error::{IdxError, Result};
use crate::kernel;
use crate::write::files::StepFiles;
use crate::write::step_plan::{BlockHolders, BlockPlace, StepPlan};
use crate::write::work::RankSamples;
use raddle_core::cancel::CancelToken;
use raddle_core::parallel;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use raddle_core::report::progress::Stage;
use raddle_core::report::{StageTable, StageTimer, StageTotals};
use std::sync::{Mutex, PoisonError};

/// Collective. Writes all blocks; the first rank also writes the tables. Adds the work of this rank to `stages`.
pub(crate) fn write(
    samples: &RankSamples<'_>,
    step: &StepPlan,
    homes: &BlockHolders,
    files: &StepFiles<'_>,
    (jobs, cancel): (usize, &CancelToken),
    (ranks, stages): (&dyn Communicator, &mut StageTable),
) -> Result<()> {
    let local_blocks = samples.blocks();
    let places = |is_home: bool| -> Vec<BlockPlace> {
        let of_kind = local_blocks.iter().filter(|block| (homes.home(**block) == Some(ranks.rank())) == is_home);
        let fields = samples.header.fields.len();
        of_kind
            .flat_map(|block| {
                let file = step.file_of(*block);
                (0..fields).map(move |field| BlockPlace { file, field, block: *block })
            })
            .collect()
    };
    let (whole, shared) = (places(true), places(false));
    let spent = Mutex::default();
    let written: Result<()> = parallel::for_each(&whole, jobs, cancel, Vec::new, |raw: &mut Vec<u8>, place| {
        let timer = StageTimer::start();
        raw.resize(samples.header.block_len_bytes(place.field), 0);
        samples.fill(*place, raw);
        count(&spent, Stage::Encode, &timer.totals(raw.len() as u64, 1));
        let timer = StageTimer::start();
        files.write(place.file, step.raw_address(*place), raw)?;
        count(&spent, Stage::Place, &timer.totals(raw.len() as u64, 1));
        Ok(())
    });
    // The other ranks overwrite parts of these blocks.
    ranks.agree("write blocks", written)?;
    let written = parallel::for_each(&shared, jobs, cancel, Overlay::default, |overlay, place| {
        overlay.write(samples, step, files, *place, &spent)
    });
    ranks.agree("write blocks", written)?;
    let tables = if ranks.rank() == 0 { write_tables(samples, step, files) } else { Ok(()) };
    ranks.agree("write the tables", tables)?;
    stages.add(&spent.into_inner().unwrap_or_else(PoisonError::into_inner));
    Ok(())
}

/// Adds the totals of a thread to `spent`.
fn count(spent: &Mutex<StageTable>, stage: Stage, totals: &StageTotals) {
    spent.lock().unwrap_or_else(PoisonError::into_inner).get_mut(stage).add(totals);
}

/// Buffers reused for writing parts of blocks.
#[derive(Default)]
struct Overlay {
    raw: Vec<u8>,
    /// Mask with one element per sample of the block, which is nonzero if this rank holds the sample.
    mask: Vec<u8>,
    scratch: Vec<u8>,
}

impl Overlay {
    /// Writes the samples of a block that this rank holds, run by run.
    fn write(
        &mut self,
        samples: &RankSamples<'_>,
        step: &StepPlan,
        files: &StepFiles<'_>,
        place: BlockPlace,
        spent: &Mutex<StageTable>,
    ) -> Result<()> {
        let timer = StageTimer::start();
        let header = samples.header;
        let (bitmask, bits, of) = (&header.bitmask, header.bits_per_block, &header.fields[place.field]);
        self.raw.resize(header.block_len_bytes(place.field), 0);
        samples.fill(place, &mut self.raw);
        self.mask.clear();
        self.mask.resize(1 << bits, 0);
        let Some(lattice) = lattice(bitmask, bits, place.block) else { return Ok(()) };
        let runs = runs(bitmask, bits, place.block, of.default_layout(), bitmask.max_level());
        for patch in samples.patches {
            // Marks the patch's samples in the block: ones with the layout of the samples.
            let Some(ranges) = lattice.clip(&patch.region.grid()) else { continue };
            let grid = crate::dataset::grid::ArrayGrid {
                origin: std::array::from_fn(|axis| {
                    lattice.origin[axis] + (ranges[axis].start << lattice.log2_spacing[axis])
                }),
                counts: std::array::from_fn(|axis: usize| ranges[axis].end - ranges[axis].start),
                log2_spacing: lattice.log2_spacing,
            };
            let count: u64 = (0..MAX_RANK).map(|axis| grid.counts[axis]).product();
            self.scratch.resize(count as usize, 1);
            for run in &runs {
                kernel::encode(run, &grid, &self.scratch, &mut self.mask, 1);
            }
        }
        let (address, len) = (step.raw_address(place), of.sample.len_bytes());
        let local_len_bytes = self.mask.iter().filter(|mask| **mask == 1).count() * len;
        count(spent, Stage::Encode, &timer.totals(local_len_bytes as u64, 1));
        let (timer, mut writes) = (StageTimer::start(), 0);
        let mut at = 0;
        for run in self.mask.chunk_by(|a, b| a == b) {
            if run[0] == 1 {
                let bytes = &self.raw[at * len..(at + run.len()) * len];
                files.write(place.file, address + (at * len) as u64, bytes)?;
                writes += 1;
            }
            at += run.len();
        }
        count(spent, Stage::Place, &timer.totals(local_len_bytes as u64, writes));
        Ok(())
    }
}

fn write_tables(samples: &RankSamples<'_>, step: &StepPlan, files: &StepFiles<'_>) -> Result<()> {
    for (file, of_file) in step.files.iter().enumerate() {
        let mut records = Vec::new();
        for field in 0..samples.header.fields.len() {
            let layout = samples.header.fields[field].default_layout();
            let len_bytes = u32::try_from(samples.header.block_len_bytes(field)).unwrap_or(u32::MAX);
            for block in &of_file.blocks {
                let place = BlockPlace { file, field, block: *block };
                let offset = step.raw_address(place);
                records.push((place, Record { offset, len_bytes, coding: Coding::Raw, layout }));
            }
        }
        files.write_tables(&records)?;
    }
    Ok(())
}

/// Refuses compressed fields: the addresses of their blocks are unknown until they are compressed.
pub(crate) fn check(samples: &RankSamples<'_>, compressions: &[Compression]) -> Result<()> {
    match compressions.iter().position(|compression| *compression != Compression::None) {
        Some(field) => Err(IdxError::OnePhase { field: samples.header.fields[field].name.clone() }),
        None => Ok(()),
    }
}
