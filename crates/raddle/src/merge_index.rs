//! The index of a merge's output: `raddle_merge` passes values on during a merge, `raddle_query` determines their
//! limits. They are connected here; neither depends on the other.

use crate::error::Error;
use raddle_core::plan::extent::{BoxSource, Extent};
use raddle_core::pooled_file::FileIdentity;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use raddle_core::report::progress::Watch;
use raddle_merge::Link;
use raddle_merge::options::MergeOptions;
use raddle_merge::plan::{MergePlan, Route};
use raddle_merge::schema::ColumnIndex;
use raddle_merge::{TileObserver, TileObserverError};
use raddle_query::builder::ColumnShare;
use raddle_query::{Index, IndexBuilder, NewDataset};
use std::path::PathBuf;

/// Operation named in errors on other ranks.
const GATHERING: &str = "gather the index";

/// The index of a merge.
#[derive(Debug)]
pub struct MergeIndex {
    builder: IndexBuilder,
    output: PathBuf,
}

/// Refuses impossible indexes before anything is read: for a merge that moves no values or not all of them, or in place
/// of another file.
///
/// # Errors
/// If the index is refused. The error gives the reason.
pub fn check(is_wanted: bool, options: &MergeOptions, is_part: bool) -> Result<(), Error> {
    if !is_wanted {
        return Ok(());
    }
    if is_part {
        return Err(Error::usage(
            "--index cannot be used with --part: no part sees all values; run raddle index afterwards",
        ));
    }
    if options.link != Link::No {
        return Err(Error::usage(
            "--index needs values that are copied: leave out --link, or write an index of each input with raddle index",
        ));
    }
    Index::check_replaceable(&Index::default_path(&options.output)).map_err(|error| Error::of_query(&error))
}

impl MergeIndex {
    /// Plans the index of the output of `plan`. Datasets of a few bytes, which are not tiled, have none.
    pub fn of(plan: &MergePlan) -> Self {
        let datasets = (0..).zip(&plan.columns).map(|(column, planned)| {
            let is_tiled = planned.route.array().is_some() && !planned.is_undecodable();
            let is_seen = is_tiled || matches!(planned.route, Route::FileLocal);
            is_seen.then(|| NewDataset {
                path: plan.schema.column_path(column),
                class: &plan.schema.columns[column as usize].model().datatype.class,
                dims: planned.file_dims(),
                chunk_rows: planned.file_chunk_shape().map_or(1, |shape| shape[0]),
            })
        });
        Self { builder: IndexBuilder::new(datasets), output: plan.options.output.clone() }
    }

    /// Returns the path of the index.
    pub fn path(&self) -> PathBuf {
        Index::default_path(&self.output)
    }
}

impl TileObserver for MergeIndex {
    fn len_bytes(&self) -> u64 {
        self.builder.len_bytes()
    }

    fn wants(&self, column: ColumnIndex, _: &Extent) -> bool {
        self.builder.wants(column)
    }

    fn take(&self, column: ColumnIndex, extent: &Extent, values: BoxSource<'_>) -> Result<(), TileObserverError> {
        // Indexed datasets have one number per row, so that rows are contiguous.
        let rows = extent.count[0] as usize;
        let row_len_bytes = values.bytes.len() / values.shape.iter().product::<u64>().max(1) as usize;
        let first = values.origin[0] as usize * row_len_bytes;
        self.builder.add(column, extent.start[0], &values.bytes[first..first + rows * row_len_bytes]);
        Ok(())
    }

    fn take_canonical(&self, column: ColumnIndex, first_row: u64, canonical: &[u8]) -> Result<(), TileObserverError> {
        self.builder.add_canonical(column, first_row, canonical);
        Ok(())
    }

    fn gather(&self, ranks: &dyn Communicator) -> Result<(), TileObserverError> {
        if ranks.size() == 1 {
            return Ok(());
        }
        let shares: Vec<Vec<ColumnShare>> = ranks.all_gather_values(GATHERING, &self.builder.share())?;
        let others = shares.iter().enumerate().filter(|(rank, _)| *rank != ranks.rank());
        others.for_each(|(_, share)| self.builder.add_share(share));
        Ok(())
    }

    fn complete(&self, _: u64, _: &Watch<'_>) -> Result<(), TileObserverError> {
        Ok(())
    }

    fn withdraw(&self) -> Result<(), TileObserverError> {
        // An older index does not fit the new output, which readers notice.
        Ok(())
    }

    fn publish(&self) -> Result<(), TileObserverError> {
        let metadata = std::fs::metadata(&self.output)?;
        self.builder.finish(&FileIdentity::of(&metadata)).write(&self.path(), &self.output)?;
        Ok(())
    }
}

/// Several observers of the same tiles.
pub(crate) struct Observers<'o>(pub Vec<&'o dyn TileObserver>);

impl Observers<'_> {
    fn each(
        &self,
        act: impl FnMut(&&dyn TileObserver) -> Result<(), TileObserverError>,
    ) -> Result<(), TileObserverError> {
        self.0.iter().try_for_each(act)
    }
}

impl TileObserver for Observers<'_> {
    fn len_bytes(&self) -> u64 {
        self.0.iter().map(|one| one.len_bytes()).sum()
    }

    fn wants(&self, column: ColumnIndex, extent: &Extent) -> bool {
        self.0.iter().any(|one| one.wants(column, extent))
    }

    fn take(&self, column: ColumnIndex, extent: &Extent, values: BoxSource<'_>) -> Result<(), TileObserverError> {
        let wanting = self.0.iter().filter(|one| one.wants(column, extent));
        wanting.into_iter().try_for_each(|one| {
            one.take(column, extent, BoxSource { bytes: values.bytes, shape: values.shape, origin: values.origin })
        })
    }

    fn take_canonical(&self, column: ColumnIndex, first_row: u64, canonical: &[u8]) -> Result<(), TileObserverError> {
        self.each(|one| one.take_canonical(column, first_row, canonical))
    }

    fn gather(&self, ranks: &dyn Communicator) -> Result<(), TileObserverError> {
        self.each(|one| one.gather(ranks))
    }

    fn complete(&self, memory_limit_bytes: u64, watch: &Watch<'_>) -> Result<(), TileObserverError> {
        self.each(|one| one.complete(memory_limit_bytes, watch))
    }

    fn withdraw(&self) -> Result<(), TileObserverError> {
        self.each(|one| one.withdraw())
    }

    fn publish(&self) -> Result<(), TileObserverError> {
        self.each(|one| one.publish())
    }
}
