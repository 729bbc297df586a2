//! Plan of one time step: its files, their blocks and addresses, and the ranks that hold most samples of a block.
//!
//! Samples are moved elsewhere. Invariant: the engine's plan has one array per file and field, file by file, whose
//! tiles are the file's blocks, ascending; blocks therefore lie field by field after the tables, independent of which
//! rank writes them.

use crate::dataset::compression::RECORD_LEN_BYTES;
use crate::dataset::grid::{ArrayGrid, blocks, lattice, samples_in};
use crate::dataset::header::Header;
use crate::dataset::region::SampleBox;
use crate::dataset::time_steps::exclusive_folder;
use crate::write::holders::SampleHolders;
use raddle_core::plan::{ArrayPlan, Plan, Tile};
use raddle_core::ranks::communicator::Rank;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// Alignment of the first block, as in file systems; raw blocks with a power of two of bytes are then all aligned.
const ALIGNMENT_LEN_BYTES: u64 = 4096;

/// A file and its blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepFile {
    /// Path relative to the folder of the `.idx` file.
    pub name: PathBuf,
    /// Number of the first block in its tables.
    pub first_block: u64,
    /// Blocks that contain samples of the dataset, ascending.
    pub blocks: Vec<u64>,
}

/// Plan of a time step.
#[derive(Debug, Clone)]
pub struct StepPlan {
    /// Plan for the engine.
    pub tiles: Plan,
    /// Files, sorted by first block.
    pub files: Vec<StepFile>,
    /// Address of the first block in every file.
    pub start_address: u64,
    /// Folder that contains only this step, if the template provides one.
    pub step_folder: Option<PathBuf>,
    /// Folder that contains only this dataset with all its steps, if the template provides one.
    pub dataset_folder: Option<PathBuf>,
    field_count: usize,
    blocks_per_file: u64,
}

/// A block of a field and the file of its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockPlace {
    /// Index of the file.
    pub file: usize,
    /// Index of the field.
    pub field: usize,
    /// Number of the block.
    pub block: u64,
}

impl StepPlan {
    /// Plans a step whose files have `time_name` in their paths; `grid` holds the samples of the dataset.
    pub fn new(header: &Header, grid: &ArrayGrid, time_name: &str) -> Self {
        let level = header.bitmask.max_level();
        let (fields, blocks_per_file) = (header.fields.len(), header.blocks_per_file);
        let all = blocks(&header.bitmask, header.bits_per_block, grid, level);
        let of_file = all.chunk_by(|a, b| a / blocks_per_file == b / blocks_per_file).map(|of_file| {
            let first_block = of_file[0] - of_file[0] % blocks_per_file;
            StepFile { name: header.files.path(first_block, time_name), first_block, blocks: of_file.to_vec() }
        });
        let files: Vec<StepFile> = of_file.collect();
        let array = |file: &StepFile, field: usize| ArrayPlan {
            shape: vec![file.blocks.len() as u64],
            tile_shape: vec![1],
            element_len_bytes: header.block_len_bytes(field) as u64,
            ..ArrayPlan::default()
        };
        let arrays = files.iter().flat_map(|file| (0..fields).map(move |field| array(file, field))).collect();
        let tables_len_bytes = RECORD_LEN_BYTES * (1 + fields as u64 * blocks_per_file);
        Self {
            tiles: Plan { arrays },
            step_folder: exclusive_folder(header, &header.files.path(0, time_name), time_name),
            dataset_folder: exclusive_folder(header, &header.files.path(0, ""), ""),
            start_address: tables_len_bytes.next_multiple_of(ALIGNMENT_LEN_BYTES),
            field_count: fields,
            files,
            blocks_per_file,
        }
    }

    /// Splits the files; returns the plan of those that `is_selected` accepts, and the other files.
    pub fn split(self, is_selected: impl Fn(&StepFile) -> bool) -> (Self, Vec<StepFile>) {
        let (mut selected, mut others, mut arrays) = (Vec::new(), Vec::new(), Vec::new());
        for (file, of_file) in self.files.into_iter().zip(self.tiles.arrays.chunks(self.field_count)) {
            if is_selected(&file) {
                arrays.extend_from_slice(of_file);
                selected.push(file);
            } else {
                others.push(file);
            }
        }
        (Self { files: selected, tiles: Plan { arrays }, ..self }, others)
    }

    /// Returns the names to rename: the folder of the step, or each file.
    pub fn names(&self) -> impl Iterator<Item = &Path> {
        self.names_in(self.step_folder.as_deref())
    }

    /// Returns the names to rename if this is the only step of its dataset: the folder of the dataset, including other
    /// files that would be read as its steps.
    pub fn names_alone(&self) -> impl Iterator<Item = &Path> {
        self.names_in(self.dataset_folder.as_deref().or(self.step_folder.as_deref()))
    }

    fn names_in<'s>(&'s self, folder: Option<&'s Path>) -> impl Iterator<Item = &'s Path> {
        let files = if folder.is_none() { self.files.as_slice() } else { &[] };
        folder.into_iter().chain(files.iter().map(|file| file.name.as_path()))
    }

    /// Returns the file and field of an array.
    pub fn array_place(&self, array: u32) -> (usize, usize) {
        (array as usize / self.field_count, array as usize % self.field_count)
    }

    /// Returns the block of a tile.
    pub fn place(&self, tile: Tile) -> BlockPlace {
        let (file, field) = self.array_place(tile.array);
        BlockPlace { file, field, block: self.files[file].blocks[tile.index as usize] }
    }

    /// Returns the address of a block's record in its file.
    pub fn record_address(&self, place: BlockPlace) -> u64 {
        let number = place.field as u64 * self.blocks_per_file + (place.block - self.files[place.file].first_block);
        RECORD_LEN_BYTES * (1 + number)
    }

    /// Returns the address of a block if all blocks are stored raw.
    pub fn raw_address(&self, place: BlockPlace) -> u64 {
        let BlockPlace { file, field, block } = place;
        let blocks = &self.files[file].blocks;
        let array = &self.tiles.arrays[file * self.field_count..][..=field];
        let before: u64 = array[..field].iter().map(|array| array.tile_count() * array.element_len_bytes).sum();
        let index = blocks.partition_point(|other| *other < block) as u64;
        self.start_address + before + index * array[field].element_len_bytes
    }

    /// Returns the file that holds a block of the step.
    pub fn file_of(&self, block: u64) -> usize {
        self.files.partition_point(|file| file.first_block <= block).saturating_sub(1)
    }

    /// Returns the number of blocks, each counted once per field.
    pub fn block_count(&self) -> u64 {
        self.tiles.tile_count()
    }
}

/// The ranks that hold most samples of each block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlockHolders {
    of_blocks: HashMap<u64, SampleHolders>,
}

impl BlockHolders {
    /// Finds the ranks of blocks for the boxes of `partition`. The lower of two ranks that hold equally many comes
    /// first.
    pub fn new(header: &Header, partition: &[Vec<SampleBox>]) -> Self {
        let (bitmask, bits) = (&header.bitmask, header.bits_per_block);
        let mut of_blocks: HashMap<u64, SampleHolders> = HashMap::new();
        for (rank, boxes) in (0u32..).zip(partition) {
            let mut sample_counts: HashMap<u64, u64> = HashMap::new();
            for grid in boxes.iter().map(SampleBox::grid) {
                for block in blocks(bitmask, bits, &grid, bitmask.max_level()) {
                    let samples = lattice(bitmask, bits, block).map_or(0, |lattice| samples_in(&lattice, &grid));
                    *sample_counts.entry(block).or_default() += samples;
                }
            }
            for (block, samples) in sample_counts {
                of_blocks.entry(block).or_default().add(rank, samples);
            }
        }
        Self { of_blocks }
    }

    /// Returns the rank that holds most samples of a block.
    pub fn home(&self, block: u64) -> Option<Rank> {
        self.largest(block).next().map(|(rank, _)| rank)
    }

    /// Returns the ranks that hold the most samples of a block, with their numbers of samples, largest first.
    pub fn largest(&self, block: u64) -> impl Iterator<Item = (Rank, u64)> + '_ {
        self.of_blocks.get(&block).into_iter().flat_map(SampleHolders::largest)
    }

    /// Returns the number of ranks that hold samples of a block.
    pub fn count(&self, block: u64) -> u64 {
        self.of_blocks.get(&block).map_or(0, SampleHolders::count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::header::Field;

    fn header() -> Header {
        let fields = ["a", "b"].map(|name| Field::new(name, "float32".parse().unwrap())).to_vec();
        let mut header = Header::new("d", &[16, 12], fields).unwrap();
        header.bits_per_block = 4;
        header.blocks_per_file = 4;
        header
    }

    #[test]
    fn tiles_are_the_blocks_of_files_field_by_field() {
        let header = header();
        let step = StepPlan::new(&header, &header.grid(8).unwrap(), "");
        // 16 blocks of 4x4 samples; those beyond y = 12 do not exist.
        assert_eq!(step.files[0].blocks, [0, 1, 2, 3]);
        assert_eq!(step.start_address, 4096);
        assert_eq!(step.step_folder.as_deref(), Some(Path::new("d")));
        let mut places = Vec::new();
        let index = step.tiles.tile_index();
        for ordinal in 0..step.block_count() {
            places.push(step.place(index.tile(ordinal).unwrap()));
        }
        assert_eq!(places.len(), 2 * step.files.iter().map(|file| file.blocks.len()).sum::<usize>());
        assert_eq!(places[5], BlockPlace { file: 0, field: 1, block: 1 });
        assert_eq!(step.record_address(places[5]), 40 * (1 + 4 + 1));
        let last = places.last().unwrap();
        assert_eq!((last.field, last.file), (1, step.files.len() - 1));
    }

    #[test]
    fn homes_are_where_most_samples_are() {
        let header = header();
        let left = SampleBox::new(&[0, 0], &[9, 12]);
        let right = SampleBox::new(&[9, 0], &[7, 12]);
        let homes = BlockHolders::new(&header, &[vec![], vec![left], vec![right]]);
        assert_eq!((homes.home(0), homes.count(0)), (Some(1), 2));
        let step = StepPlan::new(&header, &header.grid(8).unwrap(), "");
        for block in step.files.iter().flat_map(|file| &file.blocks) {
            let lattice = lattice(&header.bitmask, 4, *block).unwrap();
            let (of_left, of_right) = (samples_in(&lattice, &left.grid()), samples_in(&lattice, &right.grid()));
            assert_eq!(homes.home(*block), Some(if of_right > of_left { 2 } else { 1 }), "{block}");
        }
        assert_eq!(homes.home(99), None);
    }
}
