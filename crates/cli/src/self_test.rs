//! Steps of `raddle self-test`: small files are generated, processed by most of raddle's operations, and read back.
//!
//! Each step checks its result, where possible without the code that produced it: against values known in advance, or
//! against the inputs read one by one. Invariant: all files are in the folder that the caller passes and removes.

use crate::exit::Exit;
use crate::render::quantity;
use raddle::arrays::{self, ArraySource};
use raddle::options::{Chunk, ExecutionOptions, KeyOptions, LayoutOptions, ReaderOptions};
use raddle::references::write_references;
use raddle::{AppendRequest, Context, Error, MergeRequest, RechunkRequest, VerifyRequest};
use raddle_demo::generate::{GenerateProgress, RUN, generate};
use raddle_demo::workload::Workload;
use raddle_events::formats::{OpenOptions, WriteJob, WriteOptions, open_source, write};
use raddle_events::sources::generated::{RandomOptions, RandomProducts, SizeLaw};
use raddle_events::{ColumnsError, ConvertOptions, Source};
use raddle_hdf5::child::ObjectName;
use raddle_idx::Readers;
use raddle_idx::inputs::{InputWrite, RowArray};
use raddle_idx::request::{InputRequest, ReadRequest, WriteRequest};
use raddle_idx::targets::open_dataset;
use raddle_merge::keys::DerivedSpec;
use raddle_merge::keys::check::check;
use raddle_merge::keys::rewrite::plan_rewrite;
use raddle_merge::options::{Extendible, MergeOptions};
use raddle_merge::verify::VerifyReport;
use serde::Serialize;
use std::fs::File;
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Generated files: as in `raddle demo --workload tiny`, but with more rows, so that several threads have work.
const WORKLOAD: Workload = Workload { mean_events: 3_000, map_width: 1_024, ..Workload::TINY };

/// Seed of the generated files.
const SEED: u64 = 1;

/// Id columns of the generated files, and the key that they give.
const ID_COLUMNS: [&str; 3] = ["/spill/run", "/spill/subrun", "/spill/evt"];
const KEY: &str = "/spill/evt.seq";

/// Shape of the array that is written as IDX, slowest axis first. No length is a power of two.
const SHAPE: [u64; 3] = [20, 30, 50];

/// Number of events of the round trip.
const EVENTS: u64 = 200;

/// A completed step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// Name.
    pub name: &'static str,
    /// Description of the work done.
    pub done: String,
    /// Wall time.
    pub elapsed_s: f64,
}

/// A step that failed.
#[derive(Debug)]
pub struct FailedStep {
    /// Name.
    pub name: &'static str,
    /// Cause; boxed so that results stay small.
    pub error: Box<Error>,
}

/// Files that the steps use, and the environment of the run.
struct Files<'a> {
    folder: &'a Path,
    context: &'a Context<'a>,
    inputs: Vec<PathBuf>,
    /// Paths and bytes of values of the merged datasets.
    datasets: Vec<(String, u64)>,
}

/// Function that carries out a step and returns a description of its result.
type Work<'a> = fn(&mut Files<'a>) -> Result<String, Error>;

/// Returns all steps, in order; later ones use the files of earlier ones.
fn steps<'a>() -> [(&'static str, Work<'a>); 12] {
    [
        ("generate", Files::generate),
        ("merge", Files::merge),
        ("threads", Files::merge_with_threads),
        ("values", Files::compare_values),
        ("verify", Files::verify),
        ("append", Files::append),
        ("keys", Files::add_keys),
        ("rechunk", Files::rechunk),
        ("damage", Files::find_damage),
        ("reader", Files::read_with_libhdf5),
        ("idx", Files::round_trip_of_samples),
        ("events", Files::round_trip_of_events),
    ]
}

/// Runs all steps with files in `folder`, and calls `report` after each of them.
///
/// # Errors
/// If a step or `report` fails, or the run is cancelled. The error names the step.
pub fn run(
    folder: &Path,
    context: &Context<'_>,
    report: &mut dyn FnMut(&Step) -> Result<(), Error>,
) -> Result<(), FailedStep> {
    let mut files = Files { folder, context, inputs: Vec::new(), datasets: Vec::new() };
    for (name, work) in steps() {
        let started = Instant::now();
        let step = work(&mut files).and_then(|done| match context.watch.cancel.is_cancelled() {
            true => Err(Error::new(Exit::Interrupted, "stopped before the end")),
            false => report(&Step { name, done, elapsed_s: started.elapsed().as_secs_f64() }),
        });
        step.map_err(|error| FailedStep { name, error: Box::new(error) })?;
    }
    Ok(())
}

/// Creates the error for a wrong result.
fn wrong(what: &str) -> Error {
    Error::new(Exit::Mismatch, what)
}

/// Checks that a verification found no difference.
fn check_equal(report: &VerifyReport) -> Result<(), Error> {
    match report.mismatches.first() {
        Some(mismatch) => Err(wrong(&format!("{}: {}", mismatch.path, mismatch.what))),
        None if report.datasets == 0 => Err(wrong("no dataset was compared")),
        None => Ok(()),
    }
}

/// Returns all values of an array, little-endian.
fn values(array: &ArraySource) -> Result<Vec<u8>, Error> {
    array.read_rows(0..array.shape[0])
}

impl Files<'_> {
    fn at(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    fn jobs(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.context.default_jobs).unwrap_or(NonZeroUsize::MIN)
    }

    /// Opens a dataset of a file.
    fn array(&self, file: &Path, dataset: &str) -> Result<ArraySource, Error> {
        let text =
            file.to_str().ok_or_else(|| Error::usage("the path of the folder is not text; name another folder"))?;
        ArraySource::open(&format!("{text}:{dataset}"), None, &ReaderOptions::default())
    }

    fn generate(&mut self) -> Result<String, Error> {
        let (workload, mut raw_len_bytes) = (WORKLOAD, 0);
        let mut progress = |progress: &GenerateProgress| raw_len_bytes = progress.raw_len_bytes;
        let generated = generate(self.folder, &workload, SEED, self.jobs(), self.context.watch.cancel, &mut progress);
        self.inputs = generated.map_err(|error| match self.context.watch.cancel.is_cancelled() {
            true => Error::new(Exit::Interrupted, "stopped before the end"),
            false => Error::new(Exit::Output, &format!("{error:#}")),
        })?;
        let (files, datasets) = (self.inputs.len() as u64, u64::from(workload.datasets_per_file));
        let (files, datasets) = (quantity::counted(files, "file"), quantity::counted(datasets, "dataset"));
        Ok(format!("{files} of {datasets}, {} of values", quantity::size(raw_len_bytes)))
    }

    /// Merges the first `inputs` inputs to `output` with `jobs` threads.
    fn merge_to(&mut self, output: &str, jobs: NonZeroUsize, inputs: usize) -> Result<String, Error> {
        let execution = ExecutionOptions { jobs: Some(jobs), ..ExecutionOptions::default() };
        let layout = LayoutOptions { extendible: Some(Extendible::All), ..LayoutOptions::default() };
        let request = MergeRequest { execution, layout, ..MergeRequest::new(&self.inputs[..inputs], self.at(output)) };
        let planned = request.plan(self.context)?;
        let all = planned.summary()?.output.datasets;
        self.datasets = all.into_iter().map(|dataset| (dataset.path, dataset.logical_len_bytes)).collect();
        let merged = planned.run(self.context)?.ok_or_else(|| wrong("the merge has no report"))?;
        let (datasets, threads) = (merged.report.datasets, jobs.get() as u64);
        let (datasets, threads) = (quantity::counted(datasets, "dataset"), quantity::counted(threads, "thread"));
        Ok(format!("{datasets} with {threads}, {}", quantity::size(merged.report.output_len_bytes)))
    }

    fn merge(&mut self) -> Result<String, Error> {
        self.merge_to("one.h5", NonZeroUsize::MIN, self.inputs.len())
    }

    /// Merges with several threads, which must give the same bytes.
    fn merge_with_threads(&mut self) -> Result<String, Error> {
        let several = self.jobs().max(NonZeroUsize::MIN.saturating_add(1));
        let done = self.merge_to("all.h5", several, self.inputs.len())?;
        let read = |name: &str| std::fs::read(self.at(name)).map_err(|cause| wrong(&format!("{name}: {cause}")));
        match read("one.h5")? == read("all.h5")? {
            true => Ok(format!("{done}, equal")),
            false => Err(wrong("one thread and several threads write different bytes")),
        }
    }

    /// Compares the merged values with those of the inputs, read one by one, and ids with those that are known.
    fn compare_values(&mut self) -> Result<String, Error> {
        let merged = self.at("all.h5");
        let (mut datasets, mut len_bytes) = (0, 0);
        for (path, _) in self.datasets.iter().filter(|(_, len_bytes)| *len_bytes > 0) {
            let found = values(&self.array(&merged, path)?)?;
            let mut expected = Vec::with_capacity(found.len());
            for input in &self.inputs {
                let array = self.array(input, path)?;
                if array.shape[0] > 0 {
                    expected.extend(values(&array)?);
                }
            }
            if found != expected {
                return Err(wrong(&format!("{path}: the values are not those of the inputs")));
            }
            (datasets, len_bytes) = (datasets + 1, len_bytes + found.len() as u64);
        }
        let mut subruns = Vec::new();
        for (number, input) in self.inputs.iter().enumerate() {
            let rows = self.array(input, ID_COLUMNS[1])?.shape[0];
            subruns.extend(std::iter::repeat_n(number as u32, rows as usize));
        }
        let runs = vec![RUN; subruns.len()];
        for (column, expected) in ID_COLUMNS.into_iter().zip([runs, subruns]) {
            let expected: Vec<u8> = expected.into_iter().flat_map(u32::to_le_bytes).collect();
            if values(&self.array(&merged, column)?)? != expected {
                return Err(wrong(&format!("{column}: the values are not those that were generated")));
            }
        }
        Ok(format!("{} read back, {} equal", quantity::counted(datasets, "dataset"), quantity::size(len_bytes)))
    }

    fn verify(&mut self) -> Result<String, Error> {
        let merged = self.at("all.h5");
        let against = VerifyRequest::new(&merged).against(&self.inputs).run(self.context)?;
        check_equal(&against)?;
        check_equal(&VerifyRequest::new(&merged).run(self.context)?)?;
        let objects = quantity::counted(against.datasets + against.objects, "object");
        Ok(format!("{objects} equal to inputs and digests"))
    }

    /// Appends the last input to a merge of the others.
    fn append(&mut self) -> Result<String, Error> {
        let others = self.inputs.len() - 1;
        self.merge_to("grown.h5", self.jobs(), others)?;
        let grown = self.at("grown.h5");
        let planned = AppendRequest::new(&grown, &self.inputs[others..]).plan(self.context)?;
        let growth = planned.growth();
        planned.run(self.context)?;
        check_equal(&VerifyRequest::new(&grown).against(&self.inputs).run(self.context)?)?;
        check_equal(&VerifyRequest::new(&grown).run(self.context)?)?;
        let datasets = quantity::counted(growth.grown_datasets, "dataset");
        Ok(format!("{datasets} grew by up to {} rows", quantity::count(growth.most_rows)))
    }

    fn add_keys(&mut self) -> Result<String, Error> {
        let keyed = self.at("keyed.h5");
        std::fs::copy(self.at("all.h5"), &keyed).map_err(|cause| Error::writing(&keyed, &cause))?;
        let failed = |error| Error::of_merge(&error, std::slice::from_ref(&keyed));
        let mut options = MergeOptions::new(&keyed);
        options.jobs = self.context.default_jobs;
        let columns = ID_COLUMNS.map(str::to_owned);
        let spec = DerivedSpec::Keys(KeyOptions::default().spec(&columns, false));
        let watch = &self.context.watch;
        let plan = plan_rewrite(&keyed, spec, &options, watch).map_err(failed)?;
        raddle_merge::keys::rewrite::write(&plan, watch).map_err(failed)?;
        let report = check(&keyed, KEY, &options, watch).map_err(failed)?;
        if let Some(fault) = report.faults.first() {
            return Err(wrong(&format!("{}: {}", fault.path, fault.what)));
        }
        // Each event has a row of the index group, in which the key counts from 0.
        let events = self.array(&keyed, KEY)?;
        let numbers = values(&events)?;
        let width = events.number.len_bytes();
        let counts = numbers.chunks(width).enumerate().all(|(event, bytes)| {
            let mut number = [0; 8];
            number[..width.min(8)].copy_from_slice(bytes);
            u64::from_le_bytes(number) == event as u64
        });
        if !counts {
            return Err(wrong(&format!("{KEY}: does not count the events")));
        }
        Ok(format!("in order for {}", quantity::counted(events.shape[0], "event")))
    }

    fn rechunk(&mut self) -> Result<String, Error> {
        let (old, new) = (self.at("all.h5"), self.at("rechunked.h5"));
        let compress = "zstd:3".parse().map_err(|_| wrong("zstd:3 is not a compression"))?;
        let layout =
            LayoutOptions { chunk: Some(Chunk::Rows(50)), compress: Some(compress), ..LayoutOptions::default() };
        let request = RechunkRequest { layout, ..RechunkRequest::new(&old, &new) };
        request.plan(self.context)?.run(self.context)?;
        check_equal(&VerifyRequest::new(&new).against([&old]).run(self.context)?)?;
        let len_bytes = std::fs::metadata(&new).map_or(0, |metadata| metadata.len());
        Ok(format!("chunks of 50 rows with zstd, {}", quantity::size(len_bytes)))
    }

    /// Damages one byte of the longest chunk, which a verification must find.
    fn find_damage(&mut self) -> Result<String, Error> {
        let damaged = self.at("damaged.h5");
        let failed = |cause: std::io::Error| Error::writing(&damaged, &cause);
        std::fs::copy(self.at("all.h5"), &damaged).map_err(failed)?;
        let mut references = Vec::new();
        write_references(&damaged, "", None, &mut references)?;
        let references: serde_json::Value = serde_json::from_slice(&references).unwrap_or_default();
        let chunks = references["refs"]
            .as_object()
            .into_iter()
            .flatten()
            .filter_map(|(key, place)| Some((place.get(2)?.as_u64()?, place.get(1)?.as_u64()?, key.clone())));
        let (len_bytes, address, key) = chunks.max().ok_or_else(|| wrong("the merged file has no chunks"))?;
        let dataset = format!("/{}", key.rsplit_once('/').map_or("", |(dataset, _)| dataset));
        let file = File::options().read(true).write(true).open(&damaged).map_err(failed)?;
        let mut byte = [0];
        file.read_exact_at(&mut byte, address + len_bytes / 2).map_err(failed)?;
        file.write_all_at(&[!byte[0]], address + len_bytes / 2).map_err(failed)?;
        drop(file);
        let report = VerifyRequest::new(&damaged).run(self.context)?;
        match report.mismatches.iter().find(|mismatch| mismatch.path == dataset) {
            Some(_) => Ok(format!("one wrong byte of {dataset} found")),
            None => Err(wrong(&format!("{dataset}: a damaged chunk was not reported"))),
        }
    }

    /// Reads with the bundled libhdf5, in a separate process as for virtual datasets.
    fn read_with_libhdf5(&mut self) -> Result<String, Error> {
        let (merged, column) = (self.at("all.h5"), ID_COLUMNS[2]);
        let Some(reader) = ReaderOptions::default().child() else {
            return Err(Error::new(Exit::Internal, "no process can be started that reads with libhdf5"));
        };
        let array = self.array(&merged, column)?;
        let object = ObjectName::Path(column.as_bytes().to_vec());
        let read = reader.read_values(&merged, object, Some(0..array.shape[0]));
        match read.map_err(|error| Error::of_input(&error))? == values(&array)? {
            true => Ok(format!("libhdf5 in a process reads the same {}", quantity::counted(array.shape[0], "row"))),
            false => Err(wrong(&format!("{column}: libhdf5 reads other values"))),
        }
    }

    /// Writes an array as IDX, and reads it back whole and at a lower resolution.
    fn round_trip_of_samples(&mut self) -> Result<String, Error> {
        let (raw, output) = (self.at("samples.raw"), self.at("samples.idx"));
        let count = SHAPE.iter().product::<u64>() as u32;
        let samples: Vec<u8> = (0..count).flat_map(|number| (number as f32 / 7.0).to_le_bytes()).collect();
        std::fs::write(&raw, &samples).map_err(|cause| Error::writing(&raw, &cause))?;
        let shape = SHAPE.map(|count| count.to_string()).join("x");
        let request =
            InputRequest { shape: shape.parse().ok(), dtype: "float32".parse().ok(), ..InputRequest::default() };
        let names =
            [raw.to_str().ok_or_else(|| Error::usage("the path of the folder is not text; name another folder"))?];
        let inputs = arrays::open(&request, &names.map(str::to_owned), &ReaderOptions::default())?;
        let (request, jobs) =
            (WriteRequest { output: output.clone(), ..WriteRequest::default() }, self.context.default_jobs);
        let Context { watch, ranks, .. } = self.context;
        InputWrite { inputs: &inputs, request: &request, default_jobs: jobs, watch, ranks: *ranks }
            .write_collective()?;
        let failed = |error| Error::of_idx(&error);
        let dataset = open_dataset(&output).map_err(failed)?;
        let readers = Readers { jobs, cancel: watch.cancel };
        let whole = ReadRequest::default().query(&dataset).map_err(failed)?;
        if dataset.read_by(&whole, &readers).map_err(failed)? != samples {
            return Err(wrong("the IDX samples are not those that were written"));
        }
        // Three levels below the highest, every second sample of each axis remains.
        let coarse = ReadRequest { resolution: Some(whole.resolution.saturating_sub(3)), ..ReadRequest::default() };
        let coarse = coarse.query(&dataset).map_err(failed)?;
        let counts = dataset.shape(&coarse);
        let [z_count, y_count, x_count] = SHAPE.map(|count| count.div_ceil(2));
        let every_second =
            (0..z_count).flat_map(|z| (0..y_count).flat_map(move |y| (0..x_count).map(move |x| (z, y, x))));
        let expected: Vec<u8> = every_second
            .flat_map(|(z, y, x)| {
                let at = ((2 * z * SHAPE[1] + 2 * y) * SHAPE[2] + 2 * x) as usize * size_of::<f32>();
                samples[at..at + size_of::<f32>()].to_vec()
            })
            .collect();
        if counts != [z_count, y_count, x_count] || dataset.read_by(&coarse, &readers).map_err(failed)? != expected {
            return Err(wrong("the IDX samples at a lower resolution are not every second one"));
        }
        Ok(format!("{shape} samples, read at two resolutions"))
    }

    /// Writes generated events as HDF5 and reads them back.
    fn round_trip_of_events(&mut self) -> Result<String, Error> {
        let path = self.at("events.h5");
        let failed = |error| Error::of_events(&error, Some(&path));
        let size = SizeLaw::Uniform { longest_len_bytes: 300 };
        let source = RandomProducts::new(RandomOptions { len_entries: EVENTS, products: 4, size, seed: SEED });
        let Context { watch, ranks, .. } = self.context;
        let convert = &ConvertOptions { jobs: self.jobs(), ..ConvertOptions::default() };
        let options = &WriteOptions::default();
        let job = WriteJob { source: &source, output: &path, replace: false, options, convert, watch, ranks: *ranks };
        write(&job).map_err(failed)?;
        let found = open_source(&path, &OpenOptions::raw()).map_err(failed)?;
        let schema = source.schema();
        let places = schema.products.iter().map(|product| found.schema().position(&product.name));
        let places: Vec<usize> = places.collect::<Option<_>>().ok_or_else(|| wrong("products have other names"))?;
        let all: Vec<usize> = (0..places.len()).collect();
        let unread = |error: ColumnsError| failed(error.into());
        let expected = source.reader(&all).and_then(|mut reader| reader.read(0..EVENTS)).map_err(unread)?;
        let actual = found.reader(&places).and_then(|mut reader| reader.read(0..EVENTS)).map_err(unread)?;
        if found.len_entries() != EVENTS || expected.ids != actual.ids || expected.columns != actual.columns {
            return Err(wrong("the events are not those that were written"));
        }
        let products = quantity::counted(places.len() as u64, "product");
        Ok(format!("{} of {products} written and read", quantity::counted(EVENTS, "event")))
    }
}
