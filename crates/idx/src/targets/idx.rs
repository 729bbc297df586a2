//! IDX as a target of arrays.

use super::array_target::{ArrayTarget, FieldSet, StoredArrays, TargetWriter};
use super::{Description, TargetCheck, WrittenLayout};
use crate::dataset::compression::Compression;
use crate::dataset::grid::Layout;
use crate::dataset::header::Header;
use crate::dataset::layout::LayoutOptions;
use crate::dataset::vectors::SplitVectors;
use crate::error::{IdxError, Result};
use crate::read::dataset::{Dataset, Readers};
use crate::read::info::DatasetInfo;
use crate::request::{OutputCompression, WriteRequest};
use crate::write::exchange::BoxData;
use crate::write::options::{WriteOptions, WriteReport};
use crate::write::writer::{BlockSource, Writer};
use raddle_core::ranks::communicator::Communicator;
use raddle_core::report::progress::Watch;
use std::path::{Path, PathBuf};

/// The IDX format.
#[derive(Debug, Clone, Copy)]
pub struct IdxTarget;

/// A dataset with its existing time steps.
#[derive(Debug, Clone)]
pub struct StoredDataset {
    /// The dataset, opened for reading.
    pub dataset: Dataset,
    /// Existing time steps; `[None]` for a dataset without time steps.
    pub steps: Vec<Option<u64>>,
}

impl ArrayTarget for IdxTarget {
    fn name(&self) -> &'static str {
        "idx"
    }

    fn title(&self) -> &'static str {
        "IDX"
    }

    fn readers(&self) -> &'static str {
        "OpenVisus"
    }

    fn options(&self, request: &WriteRequest) -> Vec<(&'static str, bool)> {
        let blocks = &request.blocks;
        vec![
            ("append", request.append),
            ("order", blocks.order.is_some()),
            ("bitmask", blocks.bitmask.is_some()),
            ("bits_per_block", blocks.bits_per_block.is_some()),
            ("blocks_per_file", blocks.blocks_per_file.is_some()),
            ("split_vectors", blocks.split_vectors != SplitVectors::Never),
        ]
    }

    fn is_stored_at(&self, path: &Path) -> bool {
        path.is_file()
    }

    fn samples_folder(&self, path: &Path) -> PathBuf {
        path.with_extension("")
    }

    fn begin(&self, request: &WriteRequest, fields: &FieldSet, options: WriteOptions) -> Result<Box<dyn TargetWriter>> {
        let (layout, path) = (self.layout(request)?, &request.output);
        let header = self.header_of_trials(request, fields)?;
        let writer = match request.append {
            true => Writer::resume(path, &header, options)?,
            false => Writer::new(path, header, options)?,
        };
        Ok(Box::new(writer.split(layout.split(&fields.fields))))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn StoredArrays>> {
        let dataset = Dataset::open(path)?;
        let steps = dataset.steps()?;
        Ok(Box::new(StoredDataset { dataset, steps }))
    }

    fn adopt_layout(&self, request: &mut WriteRequest, header: &Header) {
        let blocks = &mut request.blocks;
        blocks.bitmask.get_or_insert_with(|| header.bitmask.clone());
        blocks.bits_per_block = blocks.bits_per_block.or(Some(header.bits_per_block).filter(|bits| *bits > 0));
        blocks.blocks_per_file.get_or_insert(header.blocks_per_file);
    }

    fn header_of_trials(&self, request: &WriteRequest, fields: &FieldSet) -> Result<Header> {
        let layout = self.layout(request)?;
        let header = layout.header(&request.output, &fields.counts, &fields.fields, fields.steps.is_some());
        let mut header = header.map_err(|source| IdxError::Layout { source })?;
        header.others.clone_from(&request.others);
        Ok(header)
    }
}

impl IdxTarget {
    fn layout(self, request: &WriteRequest) -> Result<LayoutOptions> {
        let compression = match request.compress {
            None => Compression::Zip,
            Some(OutputCompression::Blocks(compression)) => compression,
            Some(other @ OutputCompression::Zstd) => {
                let fault = other.refused_by(self.title(), "zip, lz4, zfp or none");
                return Err(IdxError::Request { option: "compress", fault });
            }
        };
        let blocks = &request.blocks;
        Ok(LayoutOptions {
            compression,
            order: blocks.order.unwrap_or(Layout::RowMajor),
            bitmask: blocks.bitmask.clone(),
            bits_per_block: blocks.bits_per_block,
            blocks_per_file: blocks.blocks_per_file,
            split_vectors: blocks.split_vectors,
        })
    }
}

impl TargetWriter for Writer {
    fn write_collective(
        &mut self,
        step: Option<u64>,
        patches: Vec<BoxData<'_>>,
        watch: &Watch<'_>,
        ranks: &dyn Communicator,
    ) -> Result<WriteReport> {
        Self::write_collective(self, step, patches, watch, ranks)
    }

    fn has_blocks_of(&self, source: &BlockSource<'_>) -> bool {
        source.has_blocks_of(self.header())
    }

    fn rewrite_collective(
        &mut self,
        step: Option<u64>,
        source: &BlockSource<'_>,
        watch: &Watch<'_>,
        ranks: &dyn Communicator,
    ) -> Result<WriteReport> {
        Self::rewrite_collective(self, step, source, watch, ranks)
    }

    fn finish_collective(self: Box<Self>, _: Option<&mut WriteReport>, _: &dyn Communicator) -> Result<WrittenLayout> {
        Ok(WrittenLayout::Idx(Box::new(self.header().clone())))
    }
}

impl StoredArrays for StoredDataset {
    fn describe(&self) -> Result<Description> {
        Ok(Description::Idx(Box::new(DatasetInfo::of(&self.dataset, &self.steps))))
    }

    fn check(&self, readers: &Readers<'_>) -> Result<TargetCheck> {
        self.dataset.check_all(&self.steps, readers).map(TargetCheck::Idx)
    }
}
