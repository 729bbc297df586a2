//! Compares chunk lists and values of all datasets of a file, read without libhdf5 and with it.

use crate::compare::{Difference, paths, same};
use raddle_codec::{CodecError, Pipeline};
use raddle_hdf5::child::{ChildReader, ListedChunk, ObjectName};
use raddle_hdf5::logical::Resolver;
use raddle_hdf5::model::{ChunkIndex, Dataset, Dataspace, FileTree, Layout, Object, ObjectKind};
use raddle_hdf5::native::Encoding;
use raddle_hdf5::read::{BoxRead, DatasetReader, DatasetSource, ReaderLimits, for_each_chunk};
use raddle_hdf5::source::{InputFile, MetadataView};
use std::ops::{ControlFlow, Range};

/// Compares the chunks and values of every dataset of a file.
pub fn compare_values(
    file: &InputFile,
    encoding: Encoding,
    tree: &FileTree,
    child: &ChildReader,
    resolver: &mut Resolver<'_>,
) -> Difference {
    for (object, path) in tree.objects.iter().zip(paths(tree)) {
        let ObjectKind::Dataset(dataset) = &object.kind else { continue };
        let mut comparison = DatasetComparison { file, encoding, object, dataset, child };
        comparison
            .chunks()
            .and_then(|()| comparison.values(resolver))
            .map_err(|difference| format!("{path}: {difference}"))?;
    }
    Ok(())
}

struct DatasetComparison<'a> {
    file: &'a InputFile,
    encoding: Encoding,
    object: &'a Object,
    dataset: &'a Dataset,
    child: &'a ChildReader,
}

impl DatasetComparison<'_> {
    fn chunks(&self) -> Difference {
        if !matches!(self.dataset.layout, Layout::Chunked { .. }) {
            return Ok(());
        }
        let mut native = Vec::new();
        let mut view = MetadataView::new(self.file, 1 << 20);
        for_each_chunk(&mut view, self.encoding, self.dataset, None, &mut |chunk| {
            let origin = chunk.origin.to_vec();
            let (address, len_bytes, filter_mask) = (chunk.address, chunk.len_bytes, chunk.filter_mask);
            native.push(ListedChunk { origin, address, len_bytes, filter_mask });
            ControlFlow::Continue(())
        })
        .map_err(|error| format!("native chunks: {error}"))?;
        let name = ObjectName::Address(self.object.address);
        let mut library = self.child.read_chunks(self.file.path(), name).map_err(|error| error.to_string())?;
        if self.has_origins_that_libhdf5_mistakes() {
            native.iter_mut().chain(&mut library).for_each(|chunk| chunk.origin.clear());
            // In that case, chunks beyond the extent cannot be distinguished from others.
            library.retain(|chunk| native.contains(chunk));
        } else {
            let dims = self.dataset.dataspace.dims();
            library.retain(|chunk| chunk.origin.iter().zip(dims).all(|(origin, dim)| origin < dim));
        }
        native.sort();
        library.sort();
        for (native, library) in native.iter().zip(&library) {
            same("chunk", native, library)?;
        }
        same("number of chunks", &native.len(), &library.len())
    }

    /// Returns whether libhdf5 reports wrong chunk origins. An extensible array numbers its chunks along the unlimited
    /// dimension first; `H5Dchunk_iter` of HDF5 2.2 ignores that if it is not the first dimension. Reading values is
    /// not affected, and values are compared as well.
    fn has_origins_that_libhdf5_mistakes(&self) -> bool {
        let Dataspace::Simple { max_dims, .. } = &self.dataset.dataspace else { return false };
        let Layout::Chunked { index: ChunkIndex::ExtensibleArray { .. }, .. } = self.dataset.layout else {
            return false;
        };
        max_dims[0] != u64::MAX
    }

    fn values(&mut self, resolver: &mut Resolver<'_>) -> Difference {
        if matches!(self.dataset.layout, Layout::Virtual | Layout::External { .. }) {
            return Ok(());
        }
        let dims = self.dataset.dataspace.dims();
        let mut ranges = vec![None];
        if let Some(&rows) = dims.first() {
            ranges.extend([Some(0..rows), Some(rows / 3..rows - rows / 4), Some(rows / 2..rows / 2)]);
        }
        for rows in ranges {
            let Some(native) = self.native(rows.clone(), resolver)? else { return Ok(()) };
            let name = ObjectName::Address(self.object.address);
            let library = self.child.read_values(self.file.path(), name, rows.clone());
            let library = library.map_err(|error| format!("values of libhdf5: {error}"))?;
            let first = native.iter().zip(&library).position(|(native, library)| native != library);
            if let Some(first) = first {
                let end = (first + 16).min(native.len()).min(library.len());
                same(&format!("value at byte {first} of rows {rows:?}"), &&native[first..end], &&library[first..end])?;
            }
            same(&format!("length of rows {rows:?}"), &native.len(), &library.len())?;
        }
        Ok(())
    }

    /// Reads values without libhdf5; returns `None` if a filter or a kind of reference is not supported.
    fn native(&self, rows: Option<Range<u64>>, resolver: &mut Resolver<'_>) -> Result<Option<Vec<u8>>, String> {
        let class = &self.dataset.datatype.class;
        let element_len = class.len_bytes() as usize;
        let pipeline = match Pipeline::new(&self.dataset.filters, element_len) {
            Err(CodecError::UnknownFilter { .. }) => return Ok(None),
            outcome => outcome.map_err(|error| error.to_string())?,
        };
        if self.dataset.dataspace == Dataspace::Null {
            return Ok(Some(Vec::new()));
        }
        let mut count = self.dataset.dataspace.dims().to_vec();
        let mut start = vec![0; count.len()];
        if let Some(rows) = rows {
            (start[0], count[0]) = (rows.start, rows.end - rows.start);
        }
        let mut values = vec![0xa5; count.iter().product::<u64>() as usize * element_len];
        let source =
            DatasetSource { file: self.file, encoding: self.encoding, dataset: self.dataset, pipeline: &pipeline };
        let origin = vec![0; count.len()];
        let target = BoxRead { start: &start, count: &count, out_shape: &count, out_origin: &origin };
        let mut reader = DatasetReader::new(ReaderLimits::default());
        reader.read_box(&source, &target, &mut values).map_err(|error| format!("native values: {error}"))?;
        if !class.is_file_local() {
            return Ok(Some(values));
        }
        let mut out = Vec::new();
        match resolver.canonical(class, &values, &mut out) {
            Err(error) if error.is_unsupported() => Ok(None),
            outcome => outcome.map(|()| Some(out)).map_err(|error| format!("native values: {error}")),
        }
    }
}
