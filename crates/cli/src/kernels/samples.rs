//! Boxes of samples, one per process, written as IDX in one to three phases, as one raw file per process, or as one
//! shared raw file.

use super::{KernelOutput, Work, values};
use crate::exit::Exit;
use raddle::Error;
use raddle_core::cancel::CancelToken;
use raddle_core::engine::jobs_per_rank;
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use raddle_core::report::StageReport;
use raddle_core::report::progress::{Silent, Stage, Watch};
use raddle_idx::dataset::sample::SampleType;
use raddle_idx::write::restructure::ImposedBox;
use raddle_idx::write::simulate::rank_grid;
use raddle_idx::{
    BoxData, Dataset, Durability, Field, Header, Phases, Query, Readers, SampleBox, Traffic, WriteOptions, WriteReport,
    Writer,
};
use raddle_tune::samples::{ImposedSize, OutputFormat, SampleBoxes};
use raddle_tune::worker::Request;
use std::fs::File;
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Memory for data derived from the samples, in addition to a few copies of them.
const MEMORY_LEN_BYTES: u64 = 1 << 30;

/// Samples of one process, and the dataset to write.
pub(super) struct SamplesWork<'a> {
    samples: &'a SampleBoxes,
    folder: PathBuf,
    syncs: bool,
    processes: usize,
    /// Number of samples along each axis across all boxes, x first.
    counts: Vec<u64>,
    region: SampleBox,
    /// Values of each field.
    arrays: Vec<Vec<u8>>,
}

impl<'a> SamplesWork<'a> {
    /// Generates the values of this process.
    ///
    /// # Errors
    /// If a box does not fit in memory.
    pub(super) fn new(
        samples: &'a SampleBoxes,
        request: &Request,
        folder: &Path,
        ranks: &dyn Communicator,
    ) -> Result<Self, Error> {
        let grid = rank_grid(samples.processes, 3);
        let counts: Vec<u64> = grid.iter().map(|along| along * samples.side).collect();
        let mut number = ranks.rank() as u64;
        let mut start = Vec::new();
        for along in &grid {
            start.push(number % along * samples.side);
            number /= along;
        }
        let region = SampleBox::new(&start, &[samples.side; 3]);
        let of_field = |(field, components): (u64, &u64)| {
            let len = samples.side.pow(3) * components * samples.number.len_bytes();
            let len = usize::try_from(len).map_err(|_| Error::new(Exit::Limit, "a box does not fit in memory"))?;
            Ok(values::bytes(&[request.seed, ranks.rank() as u64, field], len))
        };
        let arrays = (0..).zip(&samples.components).map(of_field).collect::<Result<_, Error>>()?;
        let (folder, syncs) = (folder.to_path_buf(), request.syncs);
        Ok(Self { samples, folder, syncs, processes: ranks.size(), counts, region, arrays })
    }

    fn header(&self) -> Result<Header, Error> {
        let refused = |error: &dyn std::fmt::Display| Error::usage(&error.to_string());
        let field = |(number, components): (usize, &u64)| {
            let name = match components {
                1 => self.samples.number.name().to_owned(),
                _ => format!("{}[{components}]", self.samples.number.name()),
            };
            let sample: SampleType = name.parse().map_err(|_| refused(&format!("{name}: not an IDX type")))?;
            Ok(Field::new(&format!("field{number}"), sample).with("default_layout", "hzorder"))
        };
        let fields = self.samples.components.iter().enumerate().map(field).collect::<Result<_, Error>>()?;
        let mut header = Header::new("samples", &self.counts, fields).map_err(|error| refused(&error))?;
        header.blocks_per_file = self.samples.blocks_per_file;
        Ok(header)
    }

    fn options(&self) -> WriteOptions {
        let samples_len_bytes = self.arrays.iter().map(|array| array.len() as u64).sum::<u64>();
        WriteOptions {
            durability: if self.syncs { Durability::Synced } else { Durability::Unsynced },
            jobs: jobs_per_rank(self.processes).get(),
            memory_limit_bytes: MEMORY_LEN_BYTES + 16 * samples_len_bytes,
            phases: match self.samples.phases {
                1 => Phases::One,
                2 => Phases::Two,
                _ => Phases::Three,
            },
            imposed: match self.samples.imposed {
                ImposedSize::Default => ImposedBox::Default,
                ImposedSize::Expanded => ImposedBox::Expanded,
            },
            aggregators: self.samples.aggregators.and_then(|count| NonZeroUsize::new(usize::try_from(count).ok()?)),
            ..WriteOptions::default()
        }
    }

    fn write_idx(&self, ranks: &dyn Communicator) -> Result<KernelOutput, Error> {
        let failed = |error| Error::of_idx(&error);
        let header = self.header()?;
        let mut writer = Writer::new(&self.idx(), header, self.options()).map_err(failed)?;
        let arrays = self.arrays.iter().map(|array| array.as_slice().into()).collect();
        let watch = Watch { observer: &Silent, cancel: &CancelToken::new() };
        let patch = BoxData { region: self.region, arrays };
        let report = writer.write_collective(None, vec![patch], &watch, ranks).map_err(failed)?;
        Ok(of_report(&report))
    }

    fn idx(&self) -> PathBuf {
        self.folder.join("samples.idx")
    }

    fn raw(&self, rank: usize) -> PathBuf {
        self.folder.join(format!("{rank}.raw"))
    }

    fn write_rank_file(&self, rank: usize) -> Result<(), Error> {
        let path = self.raw(rank);
        let write = || {
            let file = File::create_new(&path)?;
            let mut offset = 0;
            for array in &self.arrays {
                file.write_all_at(array, offset)?;
                offset += array.len() as u64;
            }
            if self.syncs { file.sync_all() } else { Ok(()) }
        };
        write().map_err(|cause| Error::writing(&path, &cause))
    }

    fn shared(&self) -> PathBuf {
        self.folder.join("shared.raw")
    }

    /// Returns the rows along x: offset in the shared file, and range in the array of a field.
    fn rows(&self, field: usize) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> + '_ {
        let element = |field: usize| self.samples.components[field] * self.samples.number.len_bytes();
        let all: u64 = self.counts.iter().product();
        let base: u64 = (0..field).map(|before| element(before) * all).sum();
        let (side, len) = (self.samples.side, element(field));
        let row_len = (side * len) as usize;
        (0..side).flat_map(move |z| (0..side).map(move |y| (y, z))).enumerate().map(move |(place, (y, z))| {
            let [first_x, first_y, first_z] = [self.region.start[0], self.region.start[1], self.region.start[2]];
            let sample = ((first_z + z) * self.counts[1] + first_y + y) * self.counts[0] + first_x;
            (base + sample * len, place * row_len..(place + 1) * row_len)
        })
    }

    fn write_shared(&self, ranks: &dyn Communicator) -> Result<(), Error> {
        let path = self.shared();
        let failed = |cause: std::io::Error| Error::writing(&path, &cause);
        let created = if ranks.rank() == 0 { File::create_new(&path).map(|_| ()).map_err(failed) } else { Ok(()) };
        ranks.agree("create the shared file", created)?;
        let write = || {
            let file = File::options().write(true).open(&path)?;
            for (field, array) in self.arrays.iter().enumerate() {
                for (offset, part) in self.rows(field) {
                    file.write_all_at(&array[part], offset)?;
                }
            }
            if self.syncs { file.sync_all() } else { Ok(()) }
        };
        ranks.agree("write the shared file", write().map_err(failed))
    }

    fn differs(&self, path: &Path) -> Error {
        let what = format!("{}: the bytes read back differ from those written", path.display());
        Error::new(Exit::Internal, &what)
    }
}

impl Work for SamplesWork<'_> {
    fn write(&self, ranks: &dyn Communicator) -> Result<KernelOutput, Error> {
        let all = self.counts.iter().product::<u64>() * self.samples.sample_len_bytes();
        let written = match self.samples.output {
            OutputFormat::Idx => self.write_idx(ranks)?,
            OutputFormat::FilePerProcess => {
                ranks.agree("write raw files", self.write_rank_file(ranks.rank()))?;
                KernelOutput::default()
            }
            OutputFormat::SharedFile => {
                self.write_shared(ranks)?;
                KernelOutput::default()
            }
        };
        Ok(KernelOutput { len_bytes: all, ..written })
    }

    fn check(&self, ranks: &dyn Communicator) -> Result<(), Error> {
        let reading = |path: &Path, cause: &std::io::Error| {
            Error::new(Exit::InputRefused, &format!("{}: reading back: {cause}", path.display()))
        };
        match self.samples.output {
            OutputFormat::Idx => {
                let failed = |error| Error::of_idx(&error);
                let dataset = Dataset::open(&self.idx()).map_err(failed)?;
                let cancel = CancelToken::new();
                let readers = Readers { jobs: jobs_per_rank(self.processes).get(), cancel: &cancel };
                for (field, array) in self.arrays.iter().enumerate() {
                    let query = Query { start: self.region.start, end: self.region.end, ..dataset.whole(field) };
                    if dataset.read_by(&query, &readers).map_err(failed)? != *array {
                        return Err(self.differs(&self.idx()));
                    }
                }
            }
            OutputFormat::FilePerProcess => {
                let path = self.raw(ranks.rank());
                let found = std::fs::read(&path).map_err(|cause| reading(&path, &cause))?;
                if found != self.arrays.concat() {
                    return Err(self.differs(&path));
                }
            }
            OutputFormat::SharedFile => {
                let path = self.shared();
                let file = File::open(&path).map_err(|cause| reading(&path, &cause))?;
                for (field, array) in self.arrays.iter().enumerate() {
                    for (offset, part) in self.rows(field) {
                        let mut found = vec![0; part.len()];
                        file.read_exact_at(&mut found, offset).map_err(|cause| reading(&path, &cause))?;
                        if found != array[part] {
                            return Err(self.differs(&path));
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// Extracts the numbers that the paper's figures show from a report.
fn of_report(report: &WriteReport) -> KernelOutput {
    let mut written = KernelOutput::default();
    let longest_s = |stage: Stage, all: &[StageReport]| {
        let of_stage = all.iter().filter(|of| of.stage == stage);
        of_stage.map(|of| of.wall_s).fold(0.0, f64::max)
    };
    let sum = |all: &[Traffic], of: fn(&Traffic) -> u64| all.iter().map(of).sum::<u64>() as f64;
    let aggregate_s = longest_s(Stage::Regroup, &report.stages);
    written.count("restructure_s", report.restructure_s);
    written.count("aggregate_s", aggregate_s);
    written.count("encode_and_write_s", (report.encode_s - aggregate_s).max(0.0));
    written.count("publish_s", report.publish_s);
    written.count("holders", report.holders as f64);
    written.count("files", report.files as f64);
    written.count("blocks", report.blocks as f64);
    written.count("restructure_messages", sum(&report.restructure_messages, |of| of.messages));
    written.count("restructure_len_bytes", sum(&report.restructure_messages, |of| of.len_bytes));
    written.count("aggregate_messages", sum(&report.aggregate_messages, |of| of.messages));
    written.count("aggregate_len_bytes", sum(&report.aggregate_messages, |of| of.len_bytes));
    if let Some(first) = report.aggregate_messages.first() {
        written.count("aggregate_messages_of_rank_0", first.messages as f64);
        let longest = first.by_log2_len.iter().rposition(|count| *count > 0);
        written.count("longest_of_rank_0_len_bytes", longest.map_or(0.0, |log2| 2_f64.powi(log2 as i32)));
    }
    let memory = report.rank_memory.iter().map(|memory| memory.budget_peak_bytes).max().unwrap_or(0);
    written.count("memory_of_a_process_len_bytes", memory as f64);
    written
}
