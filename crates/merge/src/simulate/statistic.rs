//! Inputs generated from published statistics, in the form in which the scan would have found them.
//!
//! The numbers are those published for the files of NOvA's near and far detector (S. Lee et al., A Case Study on
//! Parallel HDF5 Dataset Concatenation for High Energy Physics Data Analysis, table 3). Everything else is drawn at
//! random: rows of a table per event are spread evenly over two orders of magnitude, files differ by a quarter, columns
//! compress 2 to 20 times. The inputs have no values and cannot be read. Invariant: random draws depend only on the
//! statistic and the number of the file.

use crate::conventions::Recognition;
use crate::inputs::paths::Paths;
use crate::plan::layout::WIDE_ROW_LEN_BYTES;
use crate::scan::{ScannedEntry, ScannedFile, ScannedInput, ScannedRole};
use crate::schema::{InputExtent, Role};
use crate::verify::digests::Records;
use raddle_codec::Filter;
use raddle_core::pooled_file::FileIdentity;
use raddle_hdf5::model::{
    BitRange, ByteOrder, ChunkIndex, CreationOrder, Dataset, Dataspace, Datatype, FillValue, Layout, TypeClass,
};
use raddle_hdf5::native::Encoding;
use std::sync::Arc;

/// Statistics of many files of one kind. Sizes are totals over all files.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Statistic {
    /// Name on the command line.
    pub name: &'static str,
    /// Number of files.
    pub files: u32,
    /// Number of groups in each file; each group is a table.
    pub groups: u32,
    /// Number of datasets with one value per row in each file.
    pub narrow_datasets: u32,
    /// Number of datasets with many values per row in each file.
    pub wide_datasets: u32,
    /// Number of datasets without rows in each file.
    pub empty_datasets: u32,
    /// Uncompressed and stored length of the narrow datasets.
    pub narrow_len_bytes: (u64, u64),
    /// Uncompressed and stored length of the wide datasets.
    pub wide_len_bytes: (u64, u64),
    /// Size of the files in bytes.
    pub file_len_bytes: u64,
}

const GB: u64 = 1_000_000_000;

impl Statistic {
    /// Files of NOvA's near detector.
    pub const NOVA_ND: Self = Self {
        name: "NOvA-ND",
        files: 165,
        groups: 999,
        narrow_datasets: 15_965,
        wide_datasets: 8,
        empty_datasets: 13_396,
        narrow_len_bytes: (97_900_000_000, 21_400_000_000),
        wide_len_bytes: (903_200_000_000, 2_100_000_000),
        file_len_bytes: 35_200_000_000,
    };
    /// NOvA's far detector.
    pub const NOVA_FD: Self = Self {
        name: "NOvA-FD",
        files: 6_400,
        groups: 701,
        narrow_datasets: 12_925,
        wide_datasets: 6,
        empty_datasets: 9_374,
        narrow_len_bytes: (413_300_000_000, 69_800_000_000),
        wide_len_bytes: (16_600 * GB, 32_100_000_000),
        file_len_bytes: 212_500_000_000,
    };

    /// All statistics.
    pub const ALL: [Self; 2] = [Self::NOVA_ND, Self::NOVA_FD];

    /// Returns the statistic with this name, ignoring case.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|statistic| statistic.name.eq_ignore_ascii_case(name))
    }
}

/// Number of rows per chunk of the inputs.
const CHUNK_ROWS: u64 = 128;
/// Chunk sizes of the narrowest and the widest of the wide datasets.
const WIDE_CHUNK_LEN_BYTES: (f64, f64) = (2e6, 44e6);
/// Smallest and largest number of rows per event of the tables.
const ROWS_PER_EVENT: (f64, f64) = (0.25, 20.0);
/// Smallest and largest compression ratio of the columns.
const NARROW_RATIO: (f64, f64) = (2.0, 20.0);
/// Largest relative deviation from the mean, for a file and for a dataset of a file.
const FILE_SPREAD: f64 = 0.25;

/// A dataset of the generated files.
struct StatedDataset {
    template: Arc<Dataset>,
    /// Mean number of rows in a file; 0 if the dataset is empty in all files.
    mean_rows: f64,
    row_len_bytes: u64,
    /// Stored bytes per uncompressed byte.
    stored_share: f64,
}

/// Generator of the inputs of a statistic.
pub(crate) struct StatedInputs {
    paths: Paths,
    /// One entry per path, without the facts of a file.
    entries: Vec<ScannedEntry>,
    /// Datasets in the order of their entries, each with the number of its table.
    datasets: Vec<(StatedDataset, u32)>,
    file_len_bytes: u64,
}

impl StatedInputs {
    /// Creates a generator for inputs described by `statistic`.
    pub(crate) fn new(statistic: &Statistic) -> Self {
        let mut inputs = Self {
            paths: Paths::default(),
            entries: Vec::new(),
            datasets: Vec::new(),
            file_len_bytes: statistic.file_len_bytes / u64::from(statistic.files),
        };
        inputs.paths.push_root();
        inputs.entries.push(entry(group()));
        let filled = statistic.narrow_datasets + statistic.wide_datasets - statistic.empty_datasets;
        let tables = tables(statistic, filled);
        for (number, table) in (0..).zip(&tables) {
            let at = inputs.entries.len();
            inputs.paths.push_child(0, format!("rec.table{number}").as_bytes());
            inputs.entries.push(entry(group()));
            for column in 0..table.columns {
                let wide = (number == 0).then_some(column);
                let dataset = stated(statistic, wide, table.mean_rows, (number, column));
                let role = ScannedRole::Column {
                    template: Arc::clone(&dataset.template),
                    fact: InputExtent::absent(0),
                    committed: None,
                    kept: None,
                    values: None,
                };
                inputs.paths.push_child(at, format!("column{column}").as_bytes());
                inputs.entries.push(entry(role));
                inputs.datasets.push((dataset, number));
            }
        }
        inputs.scale(statistic);
        inputs
    }

    /// Scales the mean sizes to those that the statistic states.
    fn scale(&mut self, statistic: &Statistic) {
        let files = f64::from(statistic.files);
        for (is_wide, (raw, stored)) in [(false, statistic.narrow_len_bytes), (true, statistic.wide_len_bytes)] {
            let of_kind = |dataset: &StatedDataset| (dataset.row_len_bytes >= WIDE_ROW_LEN_BYTES) == is_wide;
            let datasets = self.datasets.iter().map(|(dataset, _)| dataset).filter(|dataset| of_kind(dataset));
            let raw_sum: f64 = datasets.clone().map(|dataset| dataset.mean_rows * dataset.row_len_bytes as f64).sum();
            let scale = raw as f64 / files / raw_sum.max(1.0);
            let stored_sum: f64 = datasets
                .map(|dataset| dataset.mean_rows * scale * dataset.row_len_bytes as f64 * dataset.stored_share)
                .sum();
            let of_stored = stored as f64 / files / stored_sum.max(1.0);
            for (dataset, _) in self.datasets.iter_mut().filter(|(dataset, _)| of_kind(dataset)) {
                dataset.mean_rows *= scale;
                dataset.stored_share *= of_stored;
            }
        }
    }

    /// Returns input number `file`.
    pub(crate) fn input(&self, file: u32) -> ScannedInput {
        let mut entries = self.entries.clone();
        let mut datasets = (0..).zip(&self.datasets);
        let mut chunk_count = 0;
        for entry in &mut entries {
            let ScannedRole::Column { fact, .. } = &mut entry.role else { continue };
            let Some((number, (dataset, table))) = datasets.next() else { break };
            let of_file = around_one(draw(u64::from(file), 0));
            let of_table = around_one(draw(u64::from(file), 1 + u64::from(*table)));
            let rows = (dataset.mean_rows * of_file * of_table).round() as u64;
            if rows > 0 {
                let share = dataset.stored_share * around_one(draw(u64::from(file), (1 << 32) + number));
                let raw_len_bytes = rows * dataset.row_len_bytes;
                let stored_len_bytes = (raw_len_bytes as f64 * share) as u64;
                // Any address will do, because it is never read.
                *fact = InputExtent { rows, address: number, stored_len_bytes, template: 0 };
                chunk_count += rows.div_ceil(CHUNK_ROWS);
            } else {
                *fact = InputExtent { template: 0, ..InputExtent::absent(0) };
            }
        }
        ScannedInput {
            paths: self.paths.clone(),
            entries,
            file: ScannedFile {
                identity: FileIdentity {
                    device: 0,
                    inode: file.into(),
                    len_bytes: self.file_len_bytes,
                    modified_ns: 0,
                },
                encoding: Encoding { base: 0, address_len_bytes: 8, length_len_bytes: 8 },
                userblock_len_bytes: 0,
                chunk_count,
                open_s: 0.0,
                recognised: Recognition::default(),
                records: Records::default(),
                digests: Vec::new(),
            },
        }
    }
}

/// A table of the generated files.
struct StatedTable {
    columns: u32,
    mean_rows: f64,
}

/// Returns the table of the wide datasets, then the other tables with rows, then those without. Tables of one kind have
/// about equally many columns.
fn tables(statistic: &Statistic, filled: u32) -> Vec<StatedTable> {
    let all = statistic.narrow_datasets + statistic.wide_datasets;
    let with_rows = (u64::from(statistic.groups) * u64::from(filled) / u64::from(all)).max(2) as u32 - 1;
    let (least, most) = ROWS_PER_EVENT;
    let rows = |rank: u32| least * (most / least).powf((f64::from(rank) + 0.5) / f64::from(with_rows));
    let of_all = |columns: u32, tables: u32, number: u32| columns / tables + u32::from(number < columns % tables);
    let (wide, narrow) = (statistic.wide_datasets, filled - statistic.wide_datasets);
    let (empty, without_rows) = (statistic.empty_datasets, statistic.groups - with_rows - 1);
    let of_narrow = |number| StatedTable { columns: of_all(narrow, with_rows, number), mean_rows: rows(number) };
    let of_empty = |number| StatedTable { columns: of_all(empty, without_rows, number), mean_rows: 0.0 };
    let wide = StatedTable { columns: wide, mean_rows: 1.0 };
    std::iter::once(wide).chain((0..with_rows).map(of_narrow)).chain((0..without_rows).map(of_empty)).collect()
}

/// Returns the dataset for column `place.1` of table `place.0`; `wide` is its number among the wide datasets, if it is
/// one.
fn stated(statistic: &Statistic, wide: Option<u32>, mean_rows: f64, place: (u32, u32)) -> StatedDataset {
    let chance = draw(u64::from(place.0) << 32 | u64::from(place.1), 1 << 40);
    let (element_len_bytes, width, stored_share) = match wide {
        Some(number) => {
            let (least, most) = WIDE_CHUNK_LEN_BYTES;
            let step = f64::from(number) / f64::from(statistic.wide_datasets.max(2) - 1);
            (1, (least * (most / least).powf(step)) as u64 / CHUNK_ROWS, 1.0)
        }
        None => {
            let (least, most) = NARROW_RATIO;
            (if place.1 % 8 == 7 { 8 } else { 4 }, 1, 1.0 / (least * (most / least).powf(chance)))
        }
    };
    let class = TypeClass::Integer {
        len_bytes: element_len_bytes,
        order: ByteOrder::Little,
        signed: true,
        bits: BitRange { offset: 0, count: element_len_bytes * 8 },
        padding: (0, 0),
    };
    let index = if mean_rows > 0.0 { ChunkIndex::BtreeV1 { address: 0 } } else { ChunkIndex::None };
    let layout = Layout::Chunked { chunk_shape: vec![CHUNK_ROWS, width], index, partial_chunks_unfiltered: false };
    let template = Arc::new(Dataset {
        dataspace: Dataspace::Simple { dims: vec![0, width], max_dims: vec![u64::MAX, width] },
        datatype: Datatype { class: Arc::new(class), committed: None },
        layout,
        fill: FillValue::default(),
        filters: vec![Filter { id: 1, optional: true, name: b"deflate".to_vec(), parameters: vec![6] }],
    });
    StatedDataset { template, mean_rows, row_len_bytes: u64::from(element_len_bytes) * width, stored_share }
}

fn group() -> ScannedRole {
    ScannedRole::Other(Role::Group { link_order: CreationOrder::default() })
}

fn entry(role: ScannedRole) -> ScannedEntry {
    ScannedEntry {
        utf8: false,
        role,
        attributes: Arc::from([]),
        attribute_order: CreationOrder::default(),
        comment: None,
        dangling: Vec::new(),
    }
}

/// Returns a number from 0 to 1 that depends on both arguments (SplitMix64).
fn draw(one: u64, other: u64) -> f64 {
    let mut mixed = one.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(other.wrapping_mul(0xD1B5_4A32_D192_ED03));
    for multiplier in [0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB] {
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(multiplier);
    }
    ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

/// Returns a factor with mean 1.
fn around_one(chance: f64) -> f64 {
    1.0 + FILE_SPREAD * (2.0 * chance - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_as_their_statistic_says() {
        for statistic in Statistic::ALL {
            let inputs = StatedInputs::new(&statistic);
            let files = 20;
            let (mut raw, mut stored, mut empty) = ([0_u64; 2], [0_u64; 2], 0);
            for file in 0..files {
                let scanned = inputs.input(file);
                assert_eq!(scanned.paths.len(), scanned.entries.len());
                for entry in &scanned.entries {
                    let ScannedRole::Column { template, fact, .. } = &entry.role else { continue };
                    let is_wide = usize::from(template.row_len_bytes() >= WIDE_ROW_LEN_BYTES);
                    raw[is_wide] += fact.rows * template.row_len_bytes();
                    stored[is_wide] += fact.stored_len_bytes;
                    empty += u32::from(fact.rows == 0);
                }
            }
            let datasets = inputs.datasets.len() as u32;
            assert_eq!(datasets, statistic.narrow_datasets + statistic.wide_datasets);
            assert_eq!(empty, statistic.empty_datasets * files);
            assert_eq!(inputs.entries.len() as u32, 1 + statistic.groups + datasets);
            let all = f64::from(statistic.files) / f64::from(files);
            for (is_wide, known) in [statistic.narrow_len_bytes, statistic.wide_len_bytes].into_iter().enumerate() {
                let (raw, stored) = (raw[is_wide] as f64 * all, stored[is_wide] as f64 * all);
                assert!((raw / known.0 as f64 - 1.0).abs() < 0.1, "{}: {raw} of {known:?}", statistic.name);
                assert!((stored / known.1 as f64 - 1.0).abs() < 0.1, "{}: {stored} of {known:?}", statistic.name);
            }
        }
        assert_eq!(Statistic::named("nova-fd"), Some(Statistic::NOVA_FD));
        assert_eq!(Statistic::named("nova"), None);
    }
}
