//! [`Kernel::Nova`]: inputs are written, then concatenated step by step, like the programs of Lee and others (2022).
//!
//! Reading and writing alternate by dataset. [`RunStage::Read`] includes opening the datasets of inputs, and
//! [`RunStage::Write`] closing the datasets of the output, when HDF5 compresses the contents of its chunk cache. All
//! ranks make collective calls in the same order.

use super::clock::{Clock, RunStage};
use super::{Done, KernelRun, Sample, check, forget, io};
use crate::error::{Result, TuneError};
use crate::kernel::Kernel;
use crate::nova::{Creation, EmptyLayout, Nova, Partition, Step};
use raddle_core::random::Random;
use raddle_core::ranks::shares::even_share;
use raddle_hdf5::dynamic::{DatasetSettings, Element, FileSettings, LibraryDataset, LibraryFile, MemoryValues};
use std::ops::Range;
use std::path::PathBuf;

/// Number of datasets per group: NOvA's near detector has 15,973 in 999.
const DATASETS_PER_GROUP: u64 = 16;

/// Rows per chunk, and level of gzip, of NOvA's files.
const INPUT_CHUNK_ROWS: u64 = 128;
const INPUT_GZIP: u32 = 6;

/// Name of the first dataset; datasets without rows come last.
pub(super) const FIRST: &str = "rec0000/column00";

fn group(place: u64) -> String {
    format!("rec{:04}", place / DATASETS_PER_GROUP)
}

fn name(place: u64) -> String {
    format!("{}/column{:02}", group(place), place % DATASETS_PER_GROUP)
}

fn numbers<'run>(run: &'run KernelRun<'_>) -> Result<&'run Nova> {
    match &run.kernel {
        Kernel::Nova(nova) => Ok(nova),
        _ => Err(super::not_this_kernel()),
    }
}

/// Returns the path of input `input`.
fn input_path(run: &KernelRun<'_>, input: u64) -> PathBuf {
    run.path.with_file_name(format!("input{input:04}.h5"))
}

/// Returns the values of `rows` of a dataset in an input. Three of four numbers of a column are its default, like an
/// event without a measurement, so that it compresses to a fifth; wide rows are pixels, one in a hundred of which has a
/// signal.
fn values(run: &KernelRun<'_>, nova: &Nova, dataset: u64, input: u64, rows: Range<u64>) -> Vec<f32> {
    let (signals, choices) = if nova.columns > 1 { (100, 64) } else { (4, 1024) };
    let of_row = |row| {
        let mut random = Random::of(&[run.seed, dataset, input, row]);
        let mut number = move || if random.below(signals) == 0 { random.below(choices) as f32 / 8.0 } else { 0.0 };
        (0..nova.columns).map(move |_| number())
    };
    rows.flat_map(of_row).collect()
}

/// Writes the inputs and drops them from the page cache.
pub(super) fn prepare(run: &KernelRun<'_>) -> Result<()> {
    let nova = numbers(run)?;
    let settings = FileSettings { meta_block_len_bytes: nova.input_meta_block_len_bytes, ..FileSettings::default() };
    for input in (0..nova.inputs).filter(|_| nova.has_inputs()) {
        let (path, rows) = (input_path(run, input), nova.rows_of(input));
        let file = run.chosen.create(&path, &settings)?;
        for place in 0..nova.datasets + nova.empty {
            if place % DATASETS_PER_GROUP == 0 {
                file.create_group(&group(place))?;
            }
            let rows = if place < nova.datasets { rows } else { 0 };
            let chunk = [INPUT_CHUNK_ROWS.min(rows.max(1)), nova.columns];
            let settings =
                DatasetSettings { chunk: Some(chunk.to_vec()), gzip: Some(INPUT_GZIP), ..DatasetSettings::default() };
            let dims = [rows, nova.columns];
            let dataset = file.create_dataset(&name(place), Element::F32, &dims, &settings, None)?;
            if rows > 0 {
                dataset.write(MemoryValues::F32(&values(run, nova, place, input, 0..rows)), &[0, 0], &dims)?;
            }
        }
        file.close()?;
        forget(&path)?;
    }
    Ok(())
}

/// Returns the number of bytes of the output, or of the inputs if only their sizes are collected.
pub(super) fn file_len_bytes(run: &KernelRun<'_>) -> Option<Result<u64>> {
    let Kernel::Nova(nova) = &run.kernel else { return None };
    let len = |path: PathBuf| match std::fs::metadata(&path) {
        Ok(found) => Ok(found.len()),
        Err(source) => Err(io(&path, "asking for the length", source)),
    };
    (nova.only == Some(Step::Collect)).then(|| (0..nova.inputs).map(|input| len(input_path(run, input))).sum())
}

/// Runs the steps; there is no output if only sizes are collected.
pub(super) fn run<'a>(run: &KernelRun<'a>, clock: &mut Clock) -> Result<Option<Done<'a>>> {
    let nova = numbers(run)?;
    let inputs = if nova.has_inputs() { collect(run, nova, clock)? } else { Vec::new() };
    if nova.only == Some(Step::Collect) {
        clock.time(RunStage::Collect, || inputs.into_iter().try_for_each(|(_, file)| Ok(file.close()?)))?;
        return Ok(None);
    }
    let (file, datasets) = create(run, nova, clock)?;
    if nova.only == Some(Step::Create) {
        clock.time(RunStage::Objects, || datasets.into_iter().try_for_each(|dataset| Ok(dataset.close()?)))?;
        return Ok(Some(Done { file, sample: None }));
    }
    for (place, dataset) in (0..).zip(datasets) {
        if place < nova.datasets {
            match nova.partition {
                Partition::Files => concatenate(run, nova, clock, &inputs, place, &dataset)?,
                Partition::Datasets => concatenate_together(run, nova, clock, &inputs, place, &dataset)?,
            }
        }
        clock.time(RunStage::Write, || Ok(dataset.close()?))?;
    }
    clock.time(RunStage::Close, || inputs.into_iter().try_for_each(|(_, file)| Ok(file.close()?)))?;
    let (place, input) = (nova.datasets - 1, nova.inputs - 1);
    let rows = nova.rows_of(input);
    Ok(Some(Done {
        file,
        sample: Some(Sample {
            name: name(place),
            values: values(run, nova, place, input, 0..rows),
            start: vec![nova.first_row_of(input), 0],
            count: vec![rows, nova.columns],
        }),
    }))
}

/// Opens this rank's inputs and queries the size of each dataset. The totals are known beforehand, so ranks do not
/// exchange sizes; a barrier stands for the exchange.
fn collect<'a>(run: &KernelRun<'a>, nova: &Nova, clock: &mut Clock) -> Result<Vec<(u64, LibraryFile<'a>)>> {
    let local_inputs = match nova.partition {
        Partition::Files => run.team.share(nova.inputs),
        Partition::Datasets => 0..nova.inputs,
    };
    let settings = FileSettings::default();
    clock.time(RunStage::Collect, || {
        let mut files = Vec::new();
        for input in local_inputs {
            let path = input_path(run, input);
            let file = match (nova.partition, run.team.mpi()) {
                (Partition::Datasets, Some(mpi)) => {
                    run.chosen.open_together(&path, &settings, mpi, run.settings.collective_metadata)?
                }
                _ if nova.in_memory => run.chosen.open_in_memory(&path, &settings)?,
                _ => run.chosen.open(&path, &settings)?,
            };
            for place in 0..nova.datasets + nova.empty {
                let dataset = file.open_dataset(&name(place))?;
                let (found, rows) = (dataset.dims()?, if place < nova.datasets { nova.rows_of(input) } else { 0 });
                if found != [rows, nova.columns] {
                    let message = format!("{}: {} has the size {found:?}", path.display(), name(place));
                    return Err(TuneError::Run { message });
                }
                dataset.close()?;
            }
            files.push((input, file));
        }
        run.team.wait()?;
        Ok(files)
    })
}

/// Creates the output and its datasets.
fn create<'a>(
    run: &KernelRun<'a>,
    nova: &Nova,
    clock: &mut Clock,
) -> Result<(LibraryFile<'a>, Vec<LibraryDataset<'a>>)> {
    let of = |file: &LibraryFile<'a>| {
        let mut datasets = Vec::new();
        for place in 0..nova.datasets + nova.empty {
            if place % DATASETS_PER_GROUP == 0 {
                file.create_group(&group(place))?;
            }
            datasets.push(if place < nova.datasets {
                run.create_dataset(file, &name(place), Element::F32, &nova.dims())?
            } else {
                let settings = empty_settings(&run.settings.dataset, nova.empty_layout);
                file.create_dataset(&name(place), Element::F32, &[0, nova.columns], &settings, None)?
            });
        }
        Ok(datasets)
    };
    let Some(mpi) = run.team.mpi().filter(|_| nova.creation == Creation::Single) else {
        let file = clock.time(RunStage::Open, || run.create())?;
        let datasets = clock.time(RunStage::Objects, || of(&file))?;
        return Ok((file, datasets));
    };
    // Ranks that do not create datasets wait in the same stage.
    clock.time(RunStage::Objects, || {
        if run.team.rank == 0 {
            let file = run.chosen.create(run.path, &run.settings.file)?;
            drop(of(&file)?);
            file.close()?;
        }
        run.team.wait()
    })?;
    let collective = run.settings.collective_metadata;
    let file = clock
        .time(RunStage::Open, || Ok(run.chosen.reopen_together(run.path, &run.settings.file, mpi, collective)?))?;
    let open = |place| Ok(file.open_dataset(&name(place))?);
    let datasets =
        clock.time(RunStage::Objects, || (0..nova.datasets + nova.empty).map(open).collect::<Result<_>>())?;
    Ok((file, datasets))
}

/// Returns the settings of a dataset without rows: only chunked datasets have filters.
fn empty_settings(others: &DatasetSettings, layout: EmptyLayout) -> DatasetSettings {
    match layout {
        EmptyLayout::Chunked => others.clone(),
        EmptyLayout::Contiguous => DatasetSettings::default(),
        EmptyLayout::Compact => DatasetSettings { compact: true, ..DatasetSettings::default() },
    }
}

/// The rows of an input that this rank reads.
struct InputRows<'a, 'c> {
    input: u64,
    file: &'a LibraryFile<'c>,
    rows: Range<u64>,
    /// Whether all ranks read rows of this input collectively.
    is_shared: bool,
}

/// Reads rows of a dataset and checks every value.
fn read_part(
    run: &KernelRun<'_>,
    nova: &Nova,
    clock: &mut Clock,
    place: u64,
    part: InputRows<'_, '_>,
    into: &mut [f32],
) -> Result<()> {
    let InputRows { input, file, rows, is_shared } = part;
    let (start, count) = ([rows.start, 0], [rows.end - rows.start, nova.columns]);
    clock.time(RunStage::Read, || {
        let dataset = file.open_dataset(&name(place))?;
        if is_shared {
            dataset.together()?;
        }
        dataset.read_f32(into, &start, &count)?;
        Ok(dataset.close()?)
    })?;
    check(&name(place), &start, values(run, nova, place, input, rows), into)
}

/// Reads a dataset from this rank's inputs, one after another, into one buffer, and writes the buffer in one call.
fn concatenate(
    run: &KernelRun<'_>,
    nova: &Nova,
    clock: &mut Clock,
    inputs: &[(u64, LibraryFile<'_>)],
    place: u64,
    output: &LibraryDataset<'_>,
) -> Result<()> {
    let rows: u64 = inputs.iter().map(|(input, _)| nova.rows_of(*input)).sum();
    let mut read = vec![0.0_f32; usize::try_from(rows * nova.columns).unwrap_or(usize::MAX)];
    let mut rest = read.as_mut_slice();
    for (input, file) in inputs {
        let count = [nova.rows_of(*input), nova.columns];
        let (buffer, remaining) = rest.split_at_mut(usize::try_from(count[0] * count[1]).unwrap_or(usize::MAX));
        let part = InputRows { input: *input, file, rows: 0..count[0], is_shared: false };
        read_part(run, nova, clock, place, part, buffer)?;
        rest = remaining;
    }
    if run.team.mpi().is_some() {
        // Compressed chunks are written collectively.
        output.together()?;
    }
    let first = inputs.first().map_or(0, |(input, _)| nova.first_row_of(*input));
    clock.time(RunStage::Write, || Ok(output.write(MemoryValues::F32(&read), &[first, 0], &[rows, nova.columns])?))
}

/// Collective. Reads a dataset input by input. Each rank reads a share of the rows, and writes it in one call.
fn concatenate_together(
    run: &KernelRun<'_>,
    nova: &Nova,
    clock: &mut Clock,
    inputs: &[(u64, LibraryFile<'_>)],
    place: u64,
    output: &LibraryDataset<'_>,
) -> Result<()> {
    let is_shared = run.team.mpi().is_some();
    if is_shared {
        output.together()?;
    }
    for (input, file) in inputs {
        let local_rows = even_share(nova.rows_of(*input), run.team.rank, run.team.size);
        let count = [local_rows.end - local_rows.start, nova.columns];
        let mut read = vec![0.0_f32; usize::try_from(count[0] * count[1]).unwrap_or(usize::MAX)];
        let part = InputRows { input: *input, file, rows: local_rows.clone(), is_shared };
        read_part(run, nova, clock, place, part, &mut read)?;
        let first = nova.first_row_of(*input) + local_rows.start;
        clock.time(RunStage::Write, || Ok(output.write(MemoryValues::F32(&read), &[first, 0], &count)?))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{Abilities, Request, Team, TranslatedSettings, carry_out};
    use super::*;
    use crate::knob::{Knob, SettingValue, Settings};
    use raddle_hdf5::dynamic::DynamicLibrary;
    use std::path::Path;

    fn nova(columns: u64) -> Nova {
        Nova {
            inputs: 3,
            datasets: 17,
            empty: 20,
            rows: 200,
            columns,
            empty_layout: EmptyLayout::default(),
            input_meta_block_len_bytes: None,
            in_memory: false,
            partition: Partition::default(),
            creation: Creation::default(),
            only: None,
        }
    }

    fn request(nova: Nova, folder: &Path) -> Request {
        let chunk = SettingValue::Shape(vec![64, nova.columns]);
        Request {
            kernel: Kernel::Nova(nova),
            settings: Settings::default().and(Knob::Chunk, chunk).and(Knob::Gzip, SettingValue::Whole(2)),
            path: folder.join("run.h5"),
            library: None,
            seed: 5,
            syncs: false,
            ranks: 1,
        }
    }

    fn with_run<T>(request: &Request, seed: u64, work: impl FnOnce(&KernelRun<'_>) -> T) -> T {
        let chosen = DynamicLibrary::bundled();
        let abilities = Abilities { version: chosen.version(), filters: chosen.filters(), ranks: None, zlib: None };
        let settings = TranslatedSettings::of(&request.settings, &abilities).unwrap();
        let (kernel, path) = (request.kernel.clone(), request.path.as_path());
        work(&KernelRun { chosen: &chosen, kernel, settings, path, seed, team: Team::alone() })
    }

    #[test]
    fn the_output_is_the_inputs_one_after_the_other() {
        let readers = [(false, Partition::Files), (true, Partition::Files), (false, Partition::Datasets)];
        for (columns, (in_memory, partition)) in
            [1, 30].into_iter().flat_map(|columns| readers.map(|how| (columns, how)))
        {
            let folder = tempfile::tempdir().unwrap();
            let request = request(Nova { in_memory, partition, ..nova(columns) }, folder.path());
            let outcome = carry_out(&request).unwrap();
            assert_eq!((outcome.found.whole(Knob::Gzip), outcome.len_bytes), (Some(2), 3 * 17 * 200 * columns * 4));
            with_run(&request, request.seed, |run| {
                let (nova, file) =
                    (numbers(run).unwrap(), run.chosen.open(run.path, &FileSettings::default()).unwrap());
                for place in 0..37 {
                    let (dataset, rows) = (file.open_dataset(&name(place)).unwrap(), if place < 17 { 600 } else { 0 });
                    assert_eq!(dataset.dims().unwrap(), [rows, columns], "{place}");
                    let mut read = vec![0.0; (rows * columns) as usize];
                    dataset.read_f32(&mut read, &[0, 0], &[rows, columns]).unwrap();
                    let inputs = (0..3).filter(|_| rows > 0);
                    let all = inputs.flat_map(|input| values(run, nova, place, input, 0..nova.rows_of(input)));
                    assert_eq!(read, all.collect::<Vec<_>>(), "{place}");
                }
            });
        }
    }

    #[test]
    fn inputs_that_hold_other_values_fail_the_run() {
        for partition in [Partition::Files, Partition::Datasets] {
            let folder = tempfile::tempdir().unwrap();
            let request = request(Nova { partition, ..nova(1) }, folder.path());
            with_run(&request, 6, |run| prepare(run).unwrap());
            let error_of = |request: &Request, seed| {
                let failed = with_run(request, seed, |run| super::run(run, &mut Clock::default()).map(drop));
                failed.expect_err("the inputs are others").to_string()
            };
            let error = error_of(&request, 5);
            assert!(error.contains("was written"), "{error}");
            let other = Request { kernel: Kernel::Nova(Nova { rows: 201, partition, ..nova(1) }), ..request };
            let error = error_of(&other, 6);
            assert!(error.contains("has the size [150, 1]"), "{error}");
        }
    }

    #[test]
    fn datasets_without_rows_have_the_layout_that_is_asked_for() {
        for layout in [EmptyLayout::Contiguous, EmptyLayout::Chunked, EmptyLayout::Compact] {
            let folder = tempfile::tempdir().unwrap();
            let only = Some(Step::Create);
            let request = request(Nova { only, empty_layout: layout, ..nova(1) }, folder.path());
            let outcome = carry_out(&request).unwrap();
            assert_eq!(outcome.reads, None);
            assert!(
                outcome
                    .stages
                    .iter()
                    .all(|time| ![RunStage::Collect, RunStage::Read, RunStage::Write].contains(&time.stage))
            );
            let file_len_bytes = std::fs::metadata(&request.path).unwrap().len();
            assert_eq!((outcome.file_len_bytes, outcome.len_bytes), (file_len_bytes, 0));
            with_run(&request, 5, |run| {
                let file = run.chosen.open(run.path, &FileSettings::default()).unwrap();
                let found = file.open_dataset(&name(36)).unwrap().settings().unwrap();
                let is = |wanted| layout == wanted;
                assert_eq!(
                    (found.compact, found.chunk.is_some()),
                    (is(EmptyLayout::Compact), is(EmptyLayout::Chunked))
                );
                assert_eq!(found.gzip, is(EmptyLayout::Chunked).then_some(2));
                assert!(file.open_dataset(FIRST).unwrap().settings().unwrap().chunk.is_some());
            });
        }
    }

    #[test]
    fn collecting_sizes_leaves_no_output_and_takes_two_calls_for_a_file_in_memory() {
        let calls = |nova: Nova| {
            let folder = tempfile::tempdir().unwrap();
            let request = request(Nova { only: Some(Step::Collect), ..nova }, folder.path());
            let outcome = carry_out(&request).unwrap();
            assert!(!request.path.exists());
            let len_bytes: u64 = (0..3)
                .map(|input| std::fs::metadata(folder.path().join(format!("input{input:04}.h5"))).unwrap().len())
                .sum();
            assert_eq!((outcome.file_len_bytes, outcome.len_bytes), (len_bytes, 0));
            let stages: Vec<RunStage> = outcome.stages.iter().map(|time| time.stage).collect();
            assert_eq!(stages, [RunStage::Collect]);
            (outcome.calls.expect("Linux counts calls").read, len_bytes)
        };
        let ((plain, len_bytes), (in_memory, _)) = (calls(nova(1)), calls(Nova { in_memory: true, ..nova(1) }));
        assert!(in_memory <= 6 && plain > 10 * in_memory, "{plain} and {in_memory} calls");
        let (_, with_blocks_len_bytes) = calls(Nova { input_meta_block_len_bytes: Some(1 << 20), ..nova(1) });
        assert!(with_blocks_len_bytes > len_bytes + (1 << 20), "{len_bytes} and {with_blocks_len_bytes}");
    }
}
