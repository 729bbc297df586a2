//! Generated workloads: number and sizes of files, tables and columns.
//!
//! They follow the published statistics of NOvA's near-detector files: about 1,000 tables and 16,000 datasets per file,
//! 84 % of the datasets empty, chunks of 128 rows at gzip level 6, and maps that account for nine tenths of the raw
//! bytes and a tenth of the stored ones. This module holds plain data; it neither draws nor writes values.

use crate::values::{Law, PARTICLES};
use raddle_core::random::Random;
use raddle_hdf5::default_format::Element;

/// Number of rows per chunk of every dataset, as in NOvA's files.
pub const CHUNK_ROWS: u64 = 128;

/// Deflate level of every dataset, as in NOvA's files.
pub const GZIP_LEVEL: u8 = 6;

/// Parameters of a set of generated files.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Workload {
    /// Name on the command line.
    pub name: &'static str,
    /// Purpose, in one line.
    pub about: &'static str,
    /// Number of files.
    pub files: u32,
    /// Number of datasets in each file.
    pub datasets_per_file: u32,
    /// Number of datasets in each file that belong to tables with rows; the others are empty everywhere.
    pub filled_datasets_per_file: u32,
    /// Mean number of events in a file (rows of `/spill`); the actual number is between three and five quarters of the
    /// mean.
    pub mean_events: u32,
    /// Mean number of maps per event: map rows are wide, so they determine the raw size.
    pub maps_per_event: f64,
    /// Number of elements in a row of the byte maps; rows of the float maps have a quarter as many.
    pub map_width: u64,
}

impl Workload {
    /// Workload for tests, which takes seconds in a debug build and has every feature of the larger ones.
    pub const TINY: Self = Self {
        name: "tiny",
        about: "4 files of 60 datasets, 0.5 MB stored: for trying things",
        files: 4,
        datasets_per_file: 60,
        filled_datasets_per_file: 30,
        mean_events: 300,
        maps_per_event: 0.45,
        map_width: 256,
    };
    /// Workload of 58 MB stored, 0.6 GB raw.
    pub const SMALL: Self = Self {
        name: "small",
        about: "8 files of 1,000 datasets, 58 MB stored, 0.6 GB raw",
        files: 8,
        datasets_per_file: 1_000,
        filled_datasets_per_file: 160,
        mean_events: 5_900,
        maps_per_event: 0.175,
        map_width: 16_000,
    };
    /// Workload of 414 MB stored, 2.9 GB raw.
    pub const WIDE: Self = Self {
        name: "wide",
        about: "16 files of 4,000 datasets, 414 MB stored, 2.9 GB raw",
        files: 16,
        datasets_per_file: 4_000,
        filled_datasets_per_file: 640,
        mean_events: 4_650,
        maps_per_event: 0.45,
        map_width: 16_000,
    };
    /// Workload with the real width of NOvA's files but few rows, dominated by metadata.
    pub const NOVA: Self = Self {
        name: "nova",
        about: "8 files of 16,000 datasets, 180 MB stored, 0.3 GB raw: the real width",
        files: 8,
        datasets_per_file: 16_000,
        filled_datasets_per_file: 2_560,
        mean_events: 600,
        maps_per_event: 0.45,
        map_width: 16_000,
    };

    /// All workloads, smallest first.
    pub const ALL: [Self; 4] = [Self::TINY, Self::SMALL, Self::WIDE, Self::NOVA];

    /// Returns the workload of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|workload| workload.name == name)
    }

    /// Returns the tables of every file of this workload, in the order of creation. All files share one schema.
    pub fn schema(&self, seed: u64) -> Vec<Table> {
        let mut random = Random::of(&[seed, SCHEMA_STREAM]);
        let mut tables = vec![spill(), maps_of_slices(self), maps_of_prongs(self)];
        let mut filled: u32 = tables.iter().map(Table::dataset_count).sum();
        let (mut names, mut deck) = (Names::default(), Deck::default());
        while filled < self.filled_datasets_per_file {
            let columns = table_width(&mut random).min(self.filled_datasets_per_file - filled);
            // A remainder too small for a separate table goes to the last one.
            let rest = self.filled_datasets_per_file - filled - columns;
            let columns = if rest < KEY_COLUMNS + 1 { columns + rest } else { columns };
            tables.push(Table::random(names.next(), columns, true, &mut deck, &mut random));
            filled += columns;
        }
        spread_multiplicities(&mut tables, &mut random);
        let mut datasets = filled;
        while datasets < self.datasets_per_file {
            let columns = table_width(&mut random).min(self.datasets_per_file - datasets);
            tables.push(Table::random(names.next(), columns, false, &mut deck, &mut random));
            datasets += columns;
        }
        tables
    }
}

/// Stream of [`Random`] for the schema, distinct from those of files.
const SCHEMA_STREAM: u64 = 0x736368656d61;

/// Number of leading columns of every table: run, subrun, evt, subevt.
const KEY_COLUMNS: u32 = 4;

/// Draws the number of columns of a table: 6 to 26, and on average 16, as in NOvA's near-detector files.
fn table_width(random: &mut Random) -> u32 {
    6 + random.below(21) as u32
}

/// A table: a group whose datasets share their rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Name of the group at the root.
    pub name: String,
    /// Columns in the order of creation.
    pub columns: Vec<Column>,
    /// Mean number of rows per event; 0 for a table that is empty in all files, `None` for one row per event exactly.
    pub rows_per_event: Option<f64>,
}

/// A column: a dataset of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Name of the dataset.
    pub name: String,
    /// Type.
    pub element: Element,
    /// Number of elements in a row: 1 for plain columns, more for maps.
    pub width: u64,
    /// Law of the values.
    pub law: Law,
}

impl Column {
    fn new(name: &str, element: Element, law: Law) -> Self {
        Self { name: name.to_owned(), element, width: 1, law }
    }

    fn map(name: &str, element: Element, width: u64, tracks: f64) -> Self {
        Self { name: name.to_owned(), element, width: width.max(1), law: Law::Map { tracks } }
    }

    /// Returns the number of bytes in a row.
    pub fn row_len_bytes(&self) -> u64 {
        self.width * self.element.len_bytes() as u64
    }
}

impl Table {
    fn dataset_count(&self) -> u32 {
        self.columns.len() as u32
    }

    fn random(name: String, columns: u32, filled: bool, deck: &mut Deck, random: &mut Random) -> Self {
        let mut table = Self { name, columns: keys(), rows_per_event: Some(if filled { 1.0 } else { 0.0 }) };
        table.columns.truncate(columns as usize);
        for number in KEY_COLUMNS..columns {
            let (kind, element, law) = deck.draw(random);
            table.columns.push(Column::new(&format!("{kind}{number}"), element, law));
        }
        table
    }
}

fn keys() -> Vec<Column> {
    vec![
        Column::new("run", Element::U32, Law::Run),
        Column::new("subrun", Element::U32, Law::Subrun),
        Column::new("evt", Element::U32, Law::Event),
        Column::new("subevt", Element::U16, Law::Subevent),
    ]
}

/// Returns the index table of the file, with one row per event.
fn spill() -> Table {
    let mut columns = keys();
    columns.truncate(3);
    columns.push(Column::new("cycle", Element::I32, Law::Constant(0)));
    columns.push(Column::new("spillpot", Element::F64, Law::Measured { mean: 4.5e13, deviation: 3e12 }));
    columns.push(Column::new("isgoodspill", Element::I32, Law::Flag(0.97)));
    Table { name: "spill".to_owned(), columns, rows_per_event: None }
}

fn maps_of_slices(workload: &Workload) -> Table {
    let mut columns = keys();
    columns.push(Column::map("cvnmap", Element::U8, workload.map_width, 5.0));
    columns.push(Column::map("cvnobjmap", Element::U8, workload.map_width, 3.6));
    columns.push(Column::new("ncells", Element::I32, Law::Count(60.0)));
    Table { name: "rec.training.cvnmaps".to_owned(), columns, rows_per_event: Some(workload.maps_per_event) }
}

fn maps_of_prongs(workload: &Workload) -> Table {
    let mut columns = keys();
    columns.push(Column::map("regmap", Element::F32, workload.map_width / 4, 1.2));
    columns.push(Column::map("trkmap", Element::F32, workload.map_width / 4, 1.2));
    Table { name: "rec.training.slicemaps".to_owned(), columns, rows_per_event: Some(workload.maps_per_event) }
}

/// Kinds of plain columns (name stem, type, law), repeated in proportion to their share. About two fifths are integers.
const COLUMN_KINDS: [(&str, Element, Law); 20] = [
    ("nhit", Element::I32, Law::Count(30.0)),
    ("nplane", Element::U32, Law::Count(9.0)),
    ("pdg", Element::I32, Law::Code(PARTICLES)),
    ("is", Element::I32, Law::Flag(0.5)),
    ("id", Element::I32, Law::RareInteger(0.5)),
    ("idx", Element::U16, Law::Count(4.0)),
    ("x", Element::F32, Law::Measured { mean: 0.0, deviation: 80.0 }),
    ("z", Element::F32, Law::Measured { mean: 700.0, deviation: 300.0 }),
    ("calE", Element::F32, Law::RareFloat(0.5)),
    ("len", Element::F32, Law::RareFloat(0.7)),
    ("bestE", Element::F32, Law::RareFloat(0.8)),
    ("pid", Element::F32, Law::RareFloat(0.9)),
    ("score", Element::F32, Law::RareFloat(0.95)),
    ("hitfrac", Element::F32, Law::Fraction),
    ("ratio", Element::F32, Law::Fraction),
    ("slcE", Element::F32, Law::OfEvent),
    ("time", Element::F32, Law::OfEvent),
    ("adc", Element::F32, Law::Gridded),
    ("gap", Element::F32, Law::Gridded),
    ("weight", Element::F64, Law::RareFloat(0.97)),
];

/// Minimum and maximum rows per event of the tables: few for vertices and showers, many for hits of a slice.
const ROWS_PER_EVENT: (f64, f64) = (0.25, 20.0);

/// Deck of column kinds, which are dealt like cards: each once before any is repeated, so that even a small schema has
/// the full mix.
#[derive(Debug, Default)]
struct Deck {
    left: Vec<usize>,
}

impl Deck {
    fn draw(&mut self, random: &mut Random) -> (&'static str, Element, Law) {
        if self.left.is_empty() {
            self.left = (0..COLUMN_KINDS.len()).collect();
        }
        let card = random.below(self.left.len() as u64) as usize;
        COLUMN_KINDS[self.left.swap_remove(card)]
    }
}

/// Deals rows per event to the tables after the first three: log-uniform quantiles in shuffled order, so that the total
/// hardly depends on the seed.
fn spread_multiplicities(tables: &mut [Table], random: &mut Random) {
    let Some(tables) = tables.get_mut(3..) else { return };
    let count = tables.len();
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
    let (least, most) = ROWS_PER_EVENT;
    for (table, rank) in tables.iter_mut().zip(order) {
        table.rows_per_event = Some(least * (most / least).powf((rank as f64 + 0.5) / count as f64));
    }
}

/// Names of tables in NOvA's style: `rec.AREA.PART`, numbered once all are taken.
#[derive(Debug, Default)]
struct Names {
    next_number: usize,
}

const AREAS: [&str; 12] = ["me", "sel", "trk", "vtx", "shw", "energy", "mc", "sim", "slc", "hdr", "wgt", "cosmic"];
const PARTS: [&str; 15] = [
    "kalman",
    "elastic",
    "prong",
    "prong.truth",
    "michel",
    "remid",
    "cvn",
    "lid",
    "nue",
    "numu",
    "discrete",
    "window",
    "bpf",
    "lepton",
    "hadron",
];

impl Names {
    fn next(&mut self) -> String {
        let number = self.next_number;
        self.next_number += 1;
        // Areas vary fastest, so that tables with and without rows are mixed when sorted by name.
        let (area, part) = (AREAS[number % AREAS.len()], PARTS[number / AREAS.len() % PARTS.len()]);
        match number / (AREAS.len() * PARTS.len()) {
            0 => format!("rec.{area}.{part}"),
            round => format!("rec.{area}.{part}{round}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn schemas_have_the_numbers_that_their_workload_says() {
        for workload in Workload::ALL {
            let tables = workload.schema(1);
            let count = |filled: bool| -> u32 {
                let wanted = |table: &&Table| (table.rows_per_event != Some(0.0)) == filled;
                tables.iter().filter(wanted).map(Table::dataset_count).sum()
            };
            assert_eq!(count(true), workload.filled_datasets_per_file, "{}", workload.name);
            assert_eq!(count(true) + count(false), workload.datasets_per_file, "{}", workload.name);
            let names: HashSet<&str> = tables.iter().map(|table| table.name.as_str()).collect();
            assert_eq!(names.len(), tables.len(), "{}: names of tables differ", workload.name);
            for table in &tables {
                let names: HashSet<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
                assert_eq!(names.len(), table.columns.len(), "{}: names of columns differ", table.name);
                let first: Vec<&str> = table.columns.iter().take(3).map(|column| column.name.as_str()).collect();
                assert_eq!(first, ["run", "subrun", "evt"][..first.len()], "{}", table.name);
            }
        }
    }

    #[test]
    fn nova_has_about_as_many_tables_as_the_real_files() {
        let tables = Workload::NOVA.schema(1).len();
        assert!((900..1100).contains(&tables), "{tables}");
    }

    #[test]
    fn large_workloads_are_84_percent_empty() {
        for workload in [Workload::SMALL, Workload::WIDE, Workload::NOVA] {
            assert_eq!(u64::from(workload.filled_datasets_per_file) * 100, u64::from(workload.datasets_per_file) * 16);
        }
    }
}
