//! Reading of images: listing the images of a folder and reading boxes of their levels, from the shards that `shard`
//! reads.
//!
//! Supports folders written by raddle and others of the same kind; zarr-python reads all others. All axes of an array,
//! including time steps and components, are treated as axes of samples. Invariant: samples come from chunks with
//! correct checksums, or are the fill value where nothing is stored.

use super::fault::ZarrFault;
use super::metadata::{ArrayMetadata, FILE_NAME, GroupContents, ImageMetadata, parse_array, parse_group};
use super::plan::MAX_SHARDS;
use super::shard::{ChunkDecoder, ShardEntry};
use crate::dataset::bitmask::{MAX_RANK, Point};
use crate::dataset::region::{SampleBox, copy_part};
use crate::dataset::sample::Number;
use crate::error::{IdxError, Result};
use crate::write::exchange::zero_samples;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Maximum length of a `zarr.json` that is read.
const MAX_METADATA_LEN_BYTES: u64 = 16 << 20;

/// Files of Zarr version 2, by which its folders are recognised.
const VERSION_2_FILES: [&str; 3] = [".zgroup", ".zarray", ".zattrs"];

/// Returns whether `path` is a folder of Zarr.
pub fn is_zarr(path: &Path) -> bool {
    path.join(FILE_NAME).is_file() || version_2_file(path).is_some()
}

/// Returns the file by which a folder is recognised as Zarr version 2.
fn version_2_file(path: &Path) -> Option<PathBuf> {
    VERSION_2_FILES.iter().map(|name| path.join(name)).find(|file| file.is_file())
}

/// The images in a folder.
#[derive(Debug, Clone)]
pub struct Images {
    /// Path of the folder.
    pub(crate) path: PathBuf,
    /// One image, or those that the folder lists.
    pub images: Vec<Image>,
}

/// An image of OME-Zarr: its folder, metadata and arrays.
#[derive(Debug, Clone)]
pub struct Image {
    folder: PathBuf,
    metadata: ImageMetadata,
    arrays: Vec<ArrayMetadata>,
}

/// Index of an open shard.
pub(crate) struct OpenShard {
    file: File,
    path: PathBuf,
    /// Length of the file.
    pub(crate) len_bytes: u64,
    /// Position of each chunk.
    pub(crate) entries: Vec<Option<ShardEntry>>,
}

impl Images {
    /// Opens a folder.
    ///
    /// # Errors
    /// If it contains no images, or images of an unsupported kind.
    pub fn open(path: &Path) -> Result<Self> {
        if let Some(file) = version_2_file(path).filter(|_| !path.join(FILE_NAME).is_file()) {
            let what = "Zarr version 2, as in OME-Zarr before 0.5".to_owned();
            return Err(ZarrFault::Unsupported { file, what }.at(path));
        }
        let group = |folder: &Path| {
            let file = folder.join(FILE_NAME);
            let bytes = read(&file)?;
            parse_group(&file, &bytes).map_err(|fault| fault.at(path))
        };
        let names = match group(path)? {
            GroupContents::Image(metadata) => {
                return Ok(Self { path: path.to_path_buf(), images: vec![Image::open(path, metadata)?] });
            }
            GroupContents::Series(names) => names,
            GroupContents::Collection => match group(&path.join("OME"))? {
                GroupContents::Series(names) => names,
                _ => return Err(not_an_image(path, &path.join("OME"))),
            },
        };
        let image = |name: &String| {
            let folder = path.join(name);
            match group(&folder)? {
                GroupContents::Image(metadata) => Image::open(&folder, metadata),
                _ => Err(not_an_image(path, &folder)),
            }
        };
        Ok(Self { path: path.to_path_buf(), images: names.iter().map(image).collect::<Result<_>>()? })
    }
}

fn not_an_image(path: &Path, folder: &Path) -> IdxError {
    ZarrFault::Metadata { file: folder.join(FILE_NAME), reason: "describes no images".to_owned() }.at(path)
}

fn read(file: &Path) -> Result<Vec<u8>> {
    let failed = |operation| move |source| IdxError::Read { path: file.to_path_buf(), operation, source };
    let mut bytes = Vec::new();
    let open = File::open(file).map_err(failed("open"))?;
    open.take(MAX_METADATA_LEN_BYTES).read_to_end(&mut bytes).map_err(failed("read"))?;
    Ok(bytes)
}

impl Image {
    fn open(folder: &Path, metadata: ImageMetadata) -> Result<Self> {
        let mut arrays = Vec::new();
        for (name, _) in &metadata.levels {
            let file = folder.join(name).join(FILE_NAME);
            let array = parse_array(&file, &read(&file)?).map_err(|fault| fault.at(folder))?;
            let fits = (metadata.axes.len()..MAX_RANK).all(|axis| array.counts[axis] == 1);
            if !fits {
                let reason = format!("has more axes than the image, {}", metadata.axes.len());
                return Err(ZarrFault::Metadata { file, reason }.at(folder));
            }
            let shards = (0..MAX_RANK).map(|axis| array.counts[axis].div_ceil(array.form.shard[axis]));
            let shards = shards.fold(1, u64::saturating_mul);
            if shards > MAX_SHARDS {
                return Err(ZarrFault::Unsupported { file, what: format!("an array of {shards} shards") }.at(folder));
            }
            arrays.push(array);
        }
        Ok(Self { folder: folder.to_path_buf(), metadata, arrays })
    }

    /// Returns the folder of the image.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the name of the image; empty if it has none.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Returns the names of the axes, x first.
    pub fn axes(&self) -> &[char] {
        &self.metadata.axes
    }

    /// Returns the unit of spatial distances.
    pub fn unit(&self) -> Option<&str> {
        self.metadata.unit.as_deref()
    }

    /// Returns how the levels were computed; `None` if the image does not record it.
    pub fn method(&self) -> Option<&str> {
        self.metadata.method.as_deref()
    }

    /// Returns the numbers of the time steps along the slowest axis, ascending; `None` if they are counted from 0.
    pub(crate) fn step_numbers(&self) -> Option<&[u64]> {
        let numbers = self.metadata.step_numbers.as_slice();
        let count = self.arrays[0].counts[self.metadata.axes.len() - 1];
        (self.metadata.axes.last() == Some(&'t') && numbers.len() as u64 == count).then_some(numbers)
    }

    /// Returns the type of the numbers.
    pub fn number(&self) -> Number {
        self.arrays[0].form.sample.number
    }

    /// Returns the number of levels.
    pub fn level_count(&self) -> usize {
        self.arrays.len()
    }

    /// Returns the scale of a level per axis, x first.
    pub fn scale(&self, level: usize) -> &[f64] {
        &self.metadata.levels[level].1
    }

    /// Returns all samples of a level.
    pub fn domain(&self, level: usize) -> SampleBox {
        SampleBox { start: [0; MAX_RANK], end: self.arrays[level].counts }
    }

    /// Returns the samples of a shard and of a chunk per axis, x first, and the codec of the chunks.
    pub fn layout(&self, level: usize) -> (Point, Point, Option<&'static str>) {
        let form = &self.arrays[level].form;
        (form.shard, form.chunk, form.compression.name())
    }

    pub(crate) fn array(&self, level: usize) -> &ArrayMetadata {
        &self.arrays[level]
    }

    /// Returns the path of a shard.
    pub(crate) fn shard_path(&self, level: usize, number: &Point) -> PathBuf {
        let mut path = self.folder.join(&self.metadata.levels[level].0).join("c");
        path.extend((0..self.metadata.axes.len()).rev().map(|axis| number[axis].to_string()));
        path
    }

    /// Opens a shard and reads its index; `None` if it is not stored.
    ///
    /// # Errors
    /// If it cannot be read, or its index is damaged.
    pub(crate) fn open_shard(&self, level: usize, number: &Point) -> Result<Option<OpenShard>> {
        let (path, form) = (self.shard_path(level, number), &self.arrays[level].form);
        let failed = |operation| {
            let path = path.clone();
            move |source| IdxError::Read { path, operation, source }
        };
        let file = match File::open(&path) {
            Err(source) if source.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(failed("open"))?,
        };
        let len_bytes = file.metadata().map_err(failed("stat"))?.len();
        let index_len_bytes = form.index_len_bytes();
        let Some(at) = len_bytes.checked_sub(index_len_bytes) else {
            return Err(ZarrFault::Index { reason: "is cut off" }.at(&path));
        };
        // The file is at least this long.
        let mut index = vec![0; index_len_bytes as usize];
        file.read_exact_at(&mut index, at).map_err(failed("read"))?;
        let entries = form.entries(&index, len_bytes).map_err(|fault| fault.at(&path))?;
        Ok(Some(OpenShard { file, path, len_bytes, entries }))
    }

    /// Decodes a chunk of a shard into its samples, x fastest.
    ///
    /// # Errors
    /// If the chunk cannot be read or is damaged.
    pub(crate) fn chunk<'d>(
        &self,
        level: usize,
        shard: &OpenShard,
        chunk: usize,
        entry: ShardEntry,
        (decoder, stored): &'d mut (ChunkDecoder, Vec<u8>),
    ) -> Result<&'d [u8]> {
        // The index was checked: the chunk lies in the file.
        stored.resize(entry.len_bytes as usize, 0);
        let read = shard.file.read_exact_at(stored, entry.offset);
        read.map_err(|source| IdxError::Read { path: shard.path.clone(), operation: "read", source })?;
        self.arrays[level].form.decode(decoder, chunk, stored).map_err(|fault| fault.at(&shard.path))
    }

    /// Returns the shards of a level that hold samples of `region`, x fastest.
    pub(crate) fn shards_in(&self, level: usize, region: &SampleBox) -> Vec<Point> {
        let mut numbers = Vec::new();
        super::plan::each_shard(region, &self.arrays[level].form.shard, |number, _| numbers.push(number));
        numbers
    }

    /// Reads a box of a level, x fastest.
    ///
    /// # Errors
    /// If the region reaches beyond the level, or a shard cannot be read or is damaged.
    pub fn read(&self, level: usize, region: &SampleBox) -> Result<Vec<u8>> {
        if region.is_empty() || !self.domain(level).contains(region) {
            let rank = self.metadata.axes.len();
            return Err(IdxError::EmptyBox {
                path: self.folder.clone(),
                start: region.start[..rank].to_vec(),
                end: region.end[..rank].to_vec(),
                resolution: level as u32,
            });
        }
        let form = &self.arrays[level].form;
        let mut out = zero_samples(region.sample_count(), form.sample.len_bytes())?;
        let mut buffers = (ChunkDecoder::default(), Vec::new());
        for number in self.shards_in(level, region) {
            let Some(shard) = self.open_shard(level, &number)? else { continue };
            let whole = form.shard_box(&number);
            for (chunk, entry) in shard.entries.iter().enumerate() {
                let chunk_box = form.chunk_box(&whole, chunk as u64);
                let (Some(entry), Some(part)) = (entry, chunk_box.intersection(region)) else { continue };
                let samples = self.chunk(level, &shard, chunk, *entry, &mut buffers)?;
                copy_part((&chunk_box, samples), (region, &mut out), &part, form.sample.len_bytes())?;
            }
        }
        Ok(out)
    }
}
