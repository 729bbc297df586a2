//! A hash of the contents of HDF5 files, to check whether two runs of a program wrote the same.
//!
//! It covers groups, links, attributes, types, extents and values, but not addresses, chunk shapes or filters. Files
//! are read without libhdf5. The hash is valid only within this process. Invariant: two files with the same hash hold
//! the same values, except with probability 2^-64.

use crate::error::{Result, TuneError};
use raddle_codec::Pipeline;
use raddle_hdf5::Hdf5Error;
use raddle_hdf5::logical::Resolver;
use raddle_hdf5::model::{Dataset, FileTree, LinkTarget, Object, ObjectKind};
use raddle_hdf5::native::{Encoding, ReadLimits, read_tree};
use raddle_hdf5::read::{BoxRead, DatasetReader, DatasetSource, ReaderLimits};
use raddle_hdf5::source::InputFile;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// Maximum number of bytes of values read at once.
const SLAB_LEN_BYTES: u64 = 16 << 20;

/// HDF5 signature, found at offset 0, 512, 1024, 2048 …
const SIGNATURE: [u8; 8] = *b"\x89HDF\r\n\x1a\n";
/// Longest user block that is skipped.
const MAX_USERBLOCK_LEN_BYTES: u64 = 1 << 20;

/// Returns the HDF5 files in `folder` and below, sorted by path.
///
/// # Errors
/// If a folder cannot be listed or a file cannot be read.
pub fn hdf5_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let (mut folders, mut found) = (vec![folder.to_path_buf()], Vec::new());
    while let Some(folder) = folders.pop() {
        let failed = |source| TuneError::Io { path: folder.clone(), operation: "listing", source };
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            // Links are not followed: their targets were not written here.
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() && is_hdf5(&entry.path())? {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

fn is_hdf5(path: &Path) -> Result<bool> {
    use std::os::unix::fs::FileExt;
    let failed = |source| TuneError::Io { path: path.to_path_buf(), operation: "reading", source };
    let file = std::fs::File::open(path).map_err(failed)?;
    let mut offset = 0;
    while offset <= MAX_USERBLOCK_LEN_BYTES {
        let mut bytes = [0; SIGNATURE.len()];
        match file.read_exact_at(&mut bytes, offset) {
            Ok(()) if bytes == SIGNATURE => return Ok(true),
            Ok(()) => offset = if offset == 0 { 512 } else { offset * 2 },
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(false),
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(false)
}

/// Returns the hash of the contents of these files, all below `folder`.
///
/// # Errors
/// If a file is damaged, or contains something that cannot be read without libhdf5.
pub fn digest(folder: &Path, files: &[PathBuf]) -> Result<u64> {
    let mut hasher = DefaultHasher::new();
    for path in files {
        path.strip_prefix(folder).unwrap_or(path).hash(&mut hasher);
        add_file(path, &mut hasher)?;
    }
    Ok(hasher.finish())
}

fn add_file(path: &Path, hasher: &mut DefaultHasher) -> Result<(), Hdf5Error> {
    let file = InputFile::open(path)?;
    let tree = read_tree(&file, &ReadLimits::default())?;
    let mut resolver = Resolver::new(&file, &tree);
    for object in &tree.objects {
        add_attributes(object, &mut resolver, hasher)?;
        match &object.kind {
            ObjectKind::Group(group) => {
                for link in &group.links {
                    link.name.hash(hasher);
                    match &link.target {
                        LinkTarget::Hard(index) => index.hash(hasher),
                        other => format!("{other:?}").hash(hasher),
                    }
                }
            }
            ObjectKind::Dataset(dataset) => add_dataset(&file, &tree, dataset, &mut resolver, hasher)?,
            ObjectKind::CommittedDatatype(datatype) => format!("{:?}", datatype.class).hash(hasher),
            ObjectKind::Unreadable { reason, .. } => return Err(unread(path, object.address, reason.clone())),
            _ => return Err(unread(path, object.address, "an object of an unknown kind".to_owned())),
        }
    }
    Ok(())
}

fn add_attributes(object: &Object, resolver: &mut Resolver<'_>, hasher: &mut DefaultHasher) -> Result<(), Hdf5Error> {
    for attribute in &object.attributes {
        attribute.name.hash(hasher);
        format!("{:?} {:?}", attribute.dataspace, attribute.datatype.class).hash(hasher);
        resolver.canonical_inline_or_null(&attribute.datatype.class, &attribute.data)?.0.hash(hasher);
    }
    Ok(())
}

fn add_dataset(
    file: &InputFile,
    tree: &FileTree,
    dataset: &Dataset,
    resolver: &mut Resolver<'_>,
    hasher: &mut DefaultHasher,
) -> Result<(), Hdf5Error> {
    let class = &dataset.datatype.class;
    format!("{:?} {class:?}", dataset.dataspace).hash(hasher);
    let element_len_bytes = class.len_bytes();
    let dims = dataset.dataspace.dims();
    let row_elements = dims.iter().skip(1).product::<u64>();
    if dataset.dataspace.element_count().unwrap_or(0) == 0 {
        return Ok(());
    }
    let pipeline = Pipeline::new(&dataset.filters, element_len_bytes as usize)
        .map_err(|error| unread(file.path(), 0, error.to_string()))?;
    let source = DatasetSource { file, encoding: Encoding::of(tree), dataset, pipeline: &pipeline };
    let mut reader = DatasetReader::new(ReaderLimits::default());
    let rows = dims.first().copied().unwrap_or(1);
    let rows_per_slab = (SLAB_LEN_BYTES / (row_elements.max(1) * element_len_bytes).max(1)).max(1);
    let (mut values, mut canonical) = (Vec::new(), Vec::new());
    for first in (0..rows).step_by(usize::try_from(rows_per_slab).unwrap_or(usize::MAX)) {
        let count_of_rows = rows_per_slab.min(rows - first);
        let (mut start, mut count) = (vec![0; dims.len()], dims.to_vec());
        if let (Some(start), Some(count)) = (start.first_mut(), count.first_mut()) {
            (*start, *count) = (first, count_of_rows);
        }
        let len_bytes = count_of_rows.saturating_mul(row_elements).saturating_mul(element_len_bytes);
        values.resize(usize::try_from(len_bytes).unwrap_or(usize::MAX), 0);
        let (out_shape, out_origin) = (count.clone(), vec![0; dims.len()]);
        let target = BoxRead { start: &start, count: &count, out_shape: &out_shape, out_origin: &out_origin };
        reader.read_box(&source, &target, &mut values)?;
        if class.is_file_local() {
            canonical.clear();
            resolver.canonical(class, &values, &mut canonical)?;
            hasher.write(&canonical);
        } else {
            hasher.write(&values);
        }
    }
    Ok(())
}

fn unread(path: &Path, address: u64, what: String) -> Hdf5Error {
    Hdf5Error::Unsupported { path: path.to_path_buf(), address, what }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Kernel;
    use crate::knob::{Knob, SettingValue, Settings};
    use crate::worker::{Request, carry_out};

    fn written(folder: &Path, seed: u64, settings: Settings) -> u64 {
        let kernel = Kernel::Many { datasets: 5, elements: 100, attributes: 2, reads: false };
        std::fs::create_dir_all(folder).unwrap();
        let path = folder.join("run.h5");
        carry_out(&Request { kernel, settings, path, library: None, seed, syncs: false, ranks: 1 }).unwrap();
        std::fs::write(folder.join("log"), "no HDF5").unwrap();
        let files = hdf5_files(folder).unwrap();
        assert_eq!(files, [folder.join("run.h5")]);
        digest(folder, &files).unwrap()
    }

    #[test]
    fn values_count_and_where_they_lie_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let of = |name: &str, seed, settings| written(&folder.path().join(name), seed, settings);
        let plain = of("a", 1, Settings::default());
        let chunked = Settings::default()
            .and(Knob::Chunk, SettingValue::Shape(vec![7]))
            .and(Knob::Gzip, SettingValue::Whole(3))
            .and(Knob::MetaBlock, SettingValue::Whole(1 << 16))
            .and(Knob::Libver, SettingValue::Text("v110".to_owned()));
        assert_eq!(plain, of("b", 1, chunked));
        assert_ne!(plain, of("c", 2, Settings::default()));
    }

    #[test]
    fn what_is_cut_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        written(folder.path(), 1, Settings::default());
        let path = folder.path().join("run.h5");
        let len_bytes = std::fs::metadata(&path).unwrap().len();
        std::fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(len_bytes / 2).unwrap();
        assert!(digest(folder.path(), &[path]).is_err());
    }
}
