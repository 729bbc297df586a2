//! The layout of a new dataset in blocks and files, as chosen by its writer, and the header that follows from it.
//!
//! Settings of the writer itself are in `options`. Nothing here writes.

use crate::dataset::bitmask::Bitmask;
use crate::dataset::compression::Compression;
use crate::dataset::grid::Layout;
use crate::dataset::header::{DEFAULT_BITS_PER_BLOCK, Field, Header, HeaderError, Time};
use crate::dataset::sample::SampleType;
use crate::dataset::template::{FileTemplate, TimeTemplate};
use crate::dataset::vectors::{FieldSplit, SplitVectors};
use std::path::Path;

/// Layout chosen by a writer.
#[derive(Debug, Clone, PartialEq)]
pub struct LayoutOptions {
    /// Compression of blocks. Fields that zfp cannot compress use [`Compression::Zip`] if zfp can compress another
    /// field; every other compression takes all fields.
    pub compression: Compression,
    /// Order of the samples in blocks.
    pub order: Layout,
    /// Axis that each level splits. If `None`, the order of the axes is that of OpenVisus; see [`Bitmask::for_counts`].
    pub bitmask: Option<Bitmask>,
    /// Base-2 logarithm of the samples per block, from 1 to the logarithm of the dataset's size. If `None`, the default
    /// is used.
    pub bits_per_block: Option<u32>,
    /// Number of blocks per file. If `None`, the default is used.
    pub blocks_per_file: Option<u64>,
    /// Choice of the vector fields that are split into one field per component.
    pub split_vectors: SplitVectors,
}

impl Default for LayoutOptions {
    fn default() -> Self {
        Self {
            compression: Compression::Zip,
            order: Layout::RowMajor,
            bitmask: None,
            bits_per_block: None,
            blocks_per_file: None,
            split_vectors: SplitVectors::Never,
        }
    }
}

impl LayoutOptions {
    /// Splits `fields` into the fields that are written, for [`crate::Writer::split`].
    pub fn split(&self, fields: &[(String, SampleType)]) -> FieldSplit {
        FieldSplit::new(fields, self.split_vectors)
    }

    /// Returns the header of a dataset at `path`, a name that ends in `.idx`, with `counts` samples per axis, x first.
    ///
    /// # Errors
    /// If the path, the samples and the options do not fit together.
    pub fn header(
        &self,
        path: &Path,
        counts: &[u64],
        fields: &[(String, SampleType)],
        has_steps: bool,
    ) -> Result<Header, HeaderError> {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        if path.extension().is_none_or(|ending| ending != "idx") || stem.is_empty() {
            return Err(HeaderError::Name);
        }
        let order = if self.order == Layout::Hz { "hzorder" } else { "row_major" };
        let field = |(name, sample): &(String, SampleType)| Field::new(name, *sample).with("default_layout", order);
        let mut header = Header::new(&stem, counts, self.split(fields).fields().iter().map(field).collect())?;
        if let Some(bitmask) = &self.bitmask {
            if bitmask.rank() > counts.len() {
                return Err(HeaderError::BoxAxes { numbers: 2 * counts.len(), rank: bitmask.rank() });
            }
            header.bitmask = bitmask.clone();
        }
        self.compress(&mut header)?;
        let level = header.bitmask.max_level();
        if self.bits_per_block == Some(0) && level > 0 {
            return Err(HeaderError::NoBitsPerBlock);
        }
        header.bits_per_block = self.bits_per_block.unwrap_or(DEFAULT_BITS_PER_BLOCK).min(level);
        header.blocks_per_file = self.blocks_per_file.unwrap_or(header.blocks_per_file);
        header.files = FileTemplate::for_name(&stem, level - header.bits_per_block)?;
        if has_steps {
            header.time = Some(Time { range: None, template: TimeTemplate::parse("time_%04d/")? });
        }
        header.check()?;
        Ok(header)
    }

    /// Sets the compression of each field in the header.
    fn compress(&self, header: &mut Header) -> Result<(), HeaderError> {
        let rank = header.bitmask.rank();
        let takes = |field: &Field| self.compression.takes(field.sample, rank);
        if !header.fields.iter().any(takes) {
            return Err(HeaderError::Zfp);
        }
        for field in &mut header.fields {
            let compression = if takes(field) { self.compression } else { Compression::Zip };
            if compression != Compression::None {
                *field = field.clone().with("default_compression", &compression.name());
            }
        }
        Ok(())
    }
}
