//! OME-Zarr as a target of arrays.

use super::check::FolderCheck;
use super::image::{Images, is_zarr};
use super::info::FolderInfo;
use super::layout::{ChunkCompression, FormOptions, ImageLayout};
use super::writer::ZarrWriter;
use crate::dataset::compression::Compression;
use crate::error::{IdxError, Result};
use crate::read::dataset::Readers;
use crate::request::{OutputCompression, RequestFault, WriteRequest};
use crate::targets::{ArrayTarget, Description, FieldSet, StoredArrays, TargetCheck, TargetWriter, WrittenLayout};
use crate::write::exchange::BoxData;
use crate::write::options::{WriteOptions, WriteReport};
use raddle_core::ranks::communicator::Communicator;
use raddle_core::report::progress::Watch;
use std::path::{Path, PathBuf};

/// The OME-Zarr format.
#[derive(Debug, Clone, Copy)]
pub struct ZarrTarget;

impl ArrayTarget for ZarrTarget {
    fn name(&self) -> &'static str {
        "zarr"
    }

    fn title(&self) -> &'static str {
        "OME-Zarr"
    }

    fn readers(&self) -> &'static str {
        "zarr-python, xarray or an OME-Zarr viewer"
    }

    fn options(&self, request: &WriteRequest) -> Vec<(&'static str, bool)> {
        let image = &request.image;
        vec![
            ("chunk", image.chunk.is_some()),
            ("shard", image.shard.is_some()),
            ("levels", image.levels.is_some()),
            ("downsample", image.downsample.is_some()),
            ("axes", image.axes.is_some()),
            ("spacing", !image.spacing.is_empty()),
            ("unit", image.unit.is_some()),
        ]
    }

    fn is_stored_at(&self, path: &Path) -> bool {
        is_zarr(path)
    }

    fn samples_folder(&self, path: &Path) -> PathBuf {
        path.to_path_buf()
    }

    fn begin(&self, request: &WriteRequest, fields: &FieldSet, options: WriteOptions) -> Result<Box<dyn TargetWriter>> {
        let form = self.form(request, fields)?;
        let form = ImageLayout::new(&fields.counts, fields.fields.clone(), &form);
        let mut form = form.map_err(|fault| fault.at(&request.output))?;
        if form.steps.is_some() && !(0..).zip(&request.input_steps).all(|(place, step)| place == *step) {
            form.step_numbers.clone_from(&request.input_steps);
        }
        Ok(Box::new(ZarrWriter::new(&request.output, form, options)?))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn StoredArrays>> {
        Ok(Box::new(Images::open(path)?))
    }
}

impl ZarrTarget {
    /// Returns the options of the form, with axis x first.
    fn form(self, request: &WriteRequest, fields: &FieldSet) -> Result<FormOptions> {
        let (image, axes) = (&request.image, fields.counts.len());
        let refused = |option, fault| IdxError::Request { option, fault };
        let compression = match request.compress {
            None | Some(OutputCompression::Zstd) => ChunkCompression::Zstd,
            Some(OutputCompression::Blocks(Compression::Zip)) => ChunkCompression::Gzip,
            Some(OutputCompression::Blocks(Compression::None)) => ChunkCompression::None,
            Some(other @ OutputCompression::Blocks(Compression::Lz4 | Compression::Zfp(_))) => {
                return Err(refused("compress", other.refused_by(self.title(), "zstd, zip or none")));
            }
        };
        let steps = match (fields.steps, request.input_steps.len() as u64) {
            (None, _) => None,
            (Some(_), count @ 1..) => Some(count),
            (Some((0, last)), 0) => Some(last + 1),
            (Some((first, _)), 0) => {
                return Err(refused("step", RequestFault::FirstStep { first, output: self.title() }));
            }
        };
        let named = image.spacing.len();
        if named != 0 && named != axes {
            return Err(refused("spacing", RequestFault::Numbers { named, axes }));
        }
        if let Some(distance) = image.spacing.iter().find(|distance| !(distance.is_finite() && **distance > 0.0)) {
            return Err(refused("spacing", RequestFault::Distance { distance: distance.to_string() }));
        }
        Ok(FormOptions {
            axes: image.axes.clone(),
            chunk: image.chunk.as_ref().map(|chunk| chunk.x_first("chunk", axes)).transpose()?,
            shard: image.shard.as_ref().map(|shard| shard.x_first("shard", axes)).transpose()?,
            levels: image.levels,
            downsample: image.downsample.unwrap_or_default(),
            compression,
            spacing: image.spacing.iter().rev().copied().collect(),
            unit: image.unit.clone(),
            steps,
        })
    }
}

impl TargetWriter for ZarrWriter {
    fn write_collective(
        &mut self,
        _: Option<u64>,
        patches: Vec<BoxData<'_>>,
        watch: &Watch<'_>,
        ranks: &dyn Communicator,
    ) -> Result<WriteReport> {
        Self::write_collective(self, patches, watch, ranks)
    }

    fn finish_collective(
        self: Box<Self>,
        report: Option<&mut WriteReport>,
        ranks: &dyn Communicator,
    ) -> Result<WrittenLayout> {
        let layout = Box::new(self.form().clone());
        report.map_or(Ok(()), |report| self.publish(report, ranks))?;
        Ok(WrittenLayout::Zarr(layout))
    }
}

impl StoredArrays for Images {
    fn describe(&self) -> Result<Description> {
        Ok(Description::Zarr(FolderInfo::of(&self.path, self)))
    }

    fn check(&self, readers: &Readers<'_>) -> Result<TargetCheck> {
        let checks = self.images.iter().map(|image| image.check(readers.jobs, readers.cancel));
        Ok(TargetCheck::Zarr(FolderCheck { checks: checks.collect::<Result<_>>()? }))
    }
}
