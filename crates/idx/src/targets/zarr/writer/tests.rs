//! Tests that any number of ranks write the same files as one process, with samples as defined, for any boxes and
//! phases.

use super::*;
use crate::dataset::bitmask::MAX_RANK;
use crate::dataset::region::{SampleBox, copy_part};
use crate::dataset::sample::{Number, SampleType};
use crate::targets::zarr::{ChunkCompression, Downsample, FormOptions, Image, Images};
use crate::write::restructure::ImposedBox;
use crate::write::restructure::tests::partitions;
use crate::write::writer::tests::{files_in, slabs};
use proptest::prelude::*;
use raddle_core::CoreError;
use raddle_core::cancel::CancelToken;
use raddle_core::output::publish::IfExists;
use raddle_core::ranks::communicator::SingleProcess;
use raddle_core::ranks::threads::Threads;
use raddle_core::ranks::traffic::Traffic;
use raddle_core::report::progress::{Event, Silent};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// Returns whole arrays, x fastest, smooth enough for compressors and zero in places.
fn arrays(form: &ImageLayout) -> Vec<Vec<u8>> {
    let samples = form.domain().sample_count().unwrap() as usize;
    let array = |(number, (_, sample)): (usize, &(String, SampleType))| {
        let value = |at: usize| if at % 97 < 30 { 0 } else { (((at / (3 + number)) * 7) >> 2) as u8 };
        (0..samples * sample.len_bytes()).map(value).collect()
    };
    form.fields.iter().enumerate().map(array).collect()
}

fn cut_patch<'a>(form: &ImageLayout, region: &SampleBox, whole: &[Vec<u8>]) -> BoxData<'a> {
    let cut = |(array, (_, sample)): (&Vec<u8>, &(String, SampleType))| {
        let mut out = vec![0; region.sample_count().unwrap() as usize * sample.len_bytes()];
        copy_part((&form.domain(), array), (region, &mut out), region, sample.len_bytes()).unwrap();
        Cow::Owned(out)
    };
    BoxData { region: *region, arrays: whole.iter().zip(&form.fields).map(cut).collect() }
}

/// Computes a level by its definition: sample by sample, from the previous level.
fn halved(form: &ImageLayout, level: usize, number: Number, before: &[f64]) -> Vec<f64> {
    let (of, counts) = (&form.levels[level], form.levels[level - 1].counts);
    let mut values = Vec::new();
    for index in 0..of.domain().sample_count().unwrap() {
        let mut rest = index;
        let at: [u64; MAX_RANK] = std::array::from_fn(|axis| {
            let at = rest % of.counts[axis];
            rest /= of.counts[axis];
            at * of.factors[axis]
        });
        let (mut sum, mut cells) = (0.0, 0.0);
        for cell in 0..32u64 {
            let of_cell: [u64; MAX_RANK] = std::array::from_fn(|axis| at[axis] + (cell >> axis & 1));
            let inside =
                (0..MAX_RANK).all(|axis| of_cell[axis] < counts[axis] && of_cell[axis] < at[axis] + of.factors[axis]);
            if inside && (form.downsample == Downsample::Average || cell == 0) {
                let place = (0..MAX_RANK).rev().fold(0, |place, axis| place * counts[axis] + of_cell[axis]);
                sum += before[place as usize];
                cells += 1.0;
            }
        }
        let mean: f64 = sum / cells;
        values.push(match number {
            Number::Float32 => f64::from(mean as f32),
            Number::Float64 => mean,
            _ => mean.round_ties_even(),
        });
    }
    values
}

fn write(
    folder: &Path,
    form: &ImageLayout,
    partition: &[Vec<SampleBox>],
    whole: &[Vec<u8>],
    options: &WriteOptions,
) -> Vec<Result<WriteReport>> {
    Threads::run(partition.len(), |ranks| {
        let options = WriteOptions { jobs: 1 + ranks.rank() % 2, ..options.clone() };
        let mut writer = ZarrWriter::new(&folder.join("d.zarr"), form.clone(), options)?;
        let watch = Watch { observer: &Silent, cancel: &CancelToken::new() };
        let mut last = None;
        for _ in 0..form.steps.unwrap_or(1) {
            let patches = partition[ranks.rank()].iter().map(|region| cut_patch(form, region, whole)).collect();
            last = Some(writer.write_collective(patches, &watch, ranks)?);
        }
        let mut last = last.unwrap();
        writer.publish(&mut last, ranks).map(|()| last)
    })
}

fn form(counts: &[u64], samples: &[&str], options: FormOptions) -> ImageLayout {
    let field = |(number, sample): (usize, &&str)| (format!("f{number}"), sample.parse().unwrap());
    ImageLayout::new(counts, samples.iter().enumerate().map(field).collect(), &options).unwrap()
}

/// Checks that an image has no damage, and that the levels of its last time step are those of the samples `stored` of
/// a field.
fn check_image(image: &Image, form: &ImageLayout, field: usize, stored: &[u8]) -> Result<(), TestCaseError> {
    let check = image.check(2, &CancelToken::new()).unwrap();
    prop_assert!(check.bad.is_empty() && check.levels_compared, "{:?}", check);
    let sample = form.fields[field].1;
    for component in 0..sample.count {
        let of_component = stored.chunks(sample.number.len_bytes()).skip(component).step_by(sample.count);
        let mut want: Vec<f64> = of_component.map(|bytes| sample.number.value_of(bytes)).collect();
        for level in 0..form.levels.len() {
            if level > 0 {
                want = halved(form, level, sample.number, &want);
            }
            let mut region = image.domain(level);
            if let Some(axis) = image.axes().iter().position(|axis| *axis == 'c')
                && sample.count > 1
            {
                (region.start[axis], region.end[axis]) = (component as u64, component as u64 + 1);
            }
            if form.steps.is_some() {
                let axis = image.axes().len() - 1;
                region.start[axis] = region.end[axis] - 1;
            }
            let got = image.read(level, &region).unwrap();
            let got: Vec<f64> =
                got.chunks(sample.number.len_bytes()).map(|bytes| sample.number.value_of(bytes)).collect();
            let equal = got.len() == want.len()
                && got.iter().zip(&want).all(|(got, want)| got == want || got.is_nan() && want.is_nan());
            prop_assert!(equal, "level {level} of {sample}: {got:?} for {want:?}");
        }
    }
    Ok(())
}

const KINDS: [&str; 6] = ["float32", "float64", "uint8[3]", "int16", "uint16", "int8"];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_ranks_write_what_is_defined(
        (domain, partition) in partitions(),
        (chunk, factor) in (prop::array::uniform5(1u64..6), prop::array::uniform5(1u64..4)),
        kinds in (0usize..6, prop::option::of(0usize..6)),
        (average, compression, steps) in (any::<bool>(), 0usize..3, prop::option::of(1u64..3)),
        (side, imposed, owners) in (1u64..9, 0usize..3, 0usize..5),
    ) {
        // Boxes of at least two axes that begin at 0, with no more axes than there are names.
        let moved = |of: &SampleBox| SampleBox {
            start: std::array::from_fn(|axis| of.start[axis] - domain.start[axis]),
            end: std::array::from_fn(|axis| of.end[axis] - domain.start[axis]),
        };
        let partition: Vec<Vec<SampleBox>> =
            partition.iter().map(|boxes| boxes.iter().map(moved).collect()).collect();
        let counts = moved(&domain).end;
        let samples: Vec<&str> = std::iter::once(kinds.0).chain(kinds.1).map(|kind| KINDS[kind]).collect();
        let taken = usize::from(samples.contains(&"uint8[3]")) + usize::from(steps.is_some());
        let longest = counts.iter().rposition(|count| *count > 1).map_or(2, |axis| axis + 1);
        let rank = longest.max(2);
        prop_assume!(rank <= 5 - taken);
        let options = FormOptions {
            chunk: Some(chunk[..rank].to_vec()),
            shard: Some((0..rank).map(|axis| chunk[axis] * factor[axis]).collect()),
            downsample: if average { Downsample::Average } else { Downsample::Subsample },
            compression: [ChunkCompression::None, ChunkCompression::Gzip, ChunkCompression::Zstd][compression],
            steps,
            ..FormOptions::default()
        };
        let form = form(&counts[..rank], &samples, options);
        let whole = arrays(&form);
        let mut first: Option<BTreeMap<PathBuf, Vec<u8>>> = None;
        for phases in [Phases::Two, Phases::Three] {
            let folder = tempfile::tempdir().unwrap();
            let options = WriteOptions {
                phases,
                imposed: [ImposedBox::Default, ImposedBox::Expanded, ImposedBox::Counts([side; MAX_RANK])][imposed],
                aggregators: NonZeroUsize::new(owners),
                ..WriteOptions::default()
            };
            for result in write(folder.path(), &form, &partition, &whole, &options) {
                result.unwrap();
            }
            let got = files_in(folder.path());
            if let Some(first) = &first {
                prop_assert!(*first == got, "{phases:?} phases give other files");
                continue;
            }
            first = Some(got);
            let images = Images::open(&folder.path().join("d.zarr")).unwrap().images;
            prop_assert_eq!(images.len(), form.fields.len());
            for (field, image) in images.iter().enumerate() {
                check_image(image, &form, field, &whole[field])?;
            }
        }
    }
}

fn small(samples: &[&str], downsample: Downsample) -> ImageLayout {
    let options =
        FormOptions { chunk: Some(vec![8, 8, 4]), shard: Some(vec![16, 8, 8]), downsample, ..FormOptions::default() };
    form(&[40, 27, 33], samples, options)
}

#[test]
fn one_to_eight_ranks_write_the_files_of_one_process() {
    for downsample in [Downsample::Subsample, Downsample::Average] {
        let form = small(&["float32", "float64[3]"], downsample);
        let whole = arrays(&form);
        let alone = tempfile::tempdir().unwrap();
        for result in write(alone.path(), &form, &[vec![form.domain()]], &whole, &WriteOptions::default()) {
            result.unwrap();
        }
        let want = files_in(alone.path());
        for ranks in [2, 3, 4, 8] {
            for phases in [Phases::Two, Phases::Three] {
                let folder = tempfile::tempdir().unwrap();
                let options = WriteOptions { phases, ..WriteOptions::default() };
                let mut results = write(folder.path(), &form, &slabs(&form.domain(), ranks), &whole, &options);
                assert!(files_in(folder.path()) == want, "{ranks} ranks, {phases:?}");
                let report = results.swap_remove(0).unwrap();
                assert_eq!((report.ranks as u64, report.sample_len_bytes), (ranks, 40 * 27 * 33 * 28));
                assert_eq!(report.files as usize, want.keys().filter(|path| !path.ends_with("zarr.json")).count());
                let sent = |of: &[Traffic]| of.iter().map(|traffic| traffic.len_bytes).sum::<u64>();
                let moves = (sent(&report.restructure_messages), sent(&report.aggregate_messages));
                let is_restructured = phases == Phases::Three || downsample == Downsample::Average;
                assert_eq!((moves.0 > 0, moves.1 > 0), (is_restructured, true), "{moves:?}");
            }
        }
    }
}

#[test]
fn what_ranks_cannot_do_leaves_nothing() {
    let form = small(&["float32"], Downsample::Average);
    let whole = arrays(&form);
    let folder = tempfile::tempdir().unwrap();
    let check = |partition: &[Vec<SampleBox>], options: &WriteOptions, expected: fn(&IdxError) -> bool| {
        for (rank, result) in write(folder.path(), &form, partition, &whole, options).into_iter().enumerate() {
            let error = result.unwrap_err();
            assert!(expected(&error) || (rank > 0 && error.is_secondary()), "rank {rank}: {error}");
        }
        assert!(files_in(folder.path()).is_empty(), "something is left");
    };
    let good = slabs(&form.domain(), 3);
    let mut twice = good.clone();
    twice[2].push(good[0][0]);
    check(&twice, &WriteOptions::default(), |error| matches!(error, IdxError::Partition { .. }));
    check(&good[..2], &WriteOptions::default(), |error| matches!(error, IdxError::Partition { .. }));
    let one = WriteOptions { phases: Phases::One, ..WriteOptions::default() };
    check(
        &good,
        &one,
        |error| matches!(error, IdxError::Target { source, .. } if matches!(source.downcast_ref(), Some(ZarrFault::OnePhase))),
    );
    let narrow = WriteOptions { memory_limit_bytes: 1000, ..WriteOptions::default() };
    check(&good, &narrow, |error| matches!(error, IdxError::Core(CoreError::Memory { .. })));
    // Ranks with different arguments.
    let results = Threads::run(3, |ranks| {
        let mut form = form.clone();
        form.distances[0] += f64::from(u8::from(ranks.rank() == 2));
        let mut writer = ZarrWriter::new(&folder.path().join("d.zarr"), form.clone(), WriteOptions::default())?;
        let patches = vec![cut_patch(&form, &good[ranks.rank()][0], &whole)];
        writer.write_collective(patches, &Watch { observer: &Silent, cancel: &CancelToken::new() }, ranks)
    });
    let differs = |result: &Result<_>| matches!(result, Err(IdxError::Core(CoreError::PlansDiffer { rank: 2 })));
    assert!(results.iter().all(differs) && files_in(folder.path()).is_empty(), "{results:?}");
}

#[test]
fn a_rank_that_is_stopped_leaves_nothing() {
    let form = small(&["float32", "uint8"], Downsample::Subsample);
    let whole = arrays(&form);
    let partition = slabs(&form.domain(), 3);
    let folder = tempfile::tempdir().unwrap();
    let results = Threads::run(3, |ranks| {
        let (cancel, is_last) = (CancelToken::new(), ranks.rank() == 2);
        let observer = |event: &Event| {
            if is_last && matches!(event, Event::Advanced { .. }) {
                cancel.cancel();
            }
        };
        let options = WriteOptions { jobs: 1, ..WriteOptions::default() };
        let mut writer = ZarrWriter::new(&folder.path().join("d.zarr"), form.clone(), options).unwrap();
        let patches = vec![cut_patch(&form, &partition[ranks.rank()][0], &whole)];
        writer.write_collective(patches, &Watch { observer: &observer, cancel: &cancel }, ranks).map(|_| ())
    });
    assert!(results.iter().all(|result| matches!(result, Err(IdxError::Core(_)))), "{results:?}");
    assert!(files_in(folder.path()).is_empty(), "something is left");
}

#[test]
fn what_is_there_is_replaced_whole_or_not_at_all() {
    let form = small(&["uint8"], Downsample::Subsample);
    let whole = arrays(&form);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.zarr");
    let alone = [vec![form.domain()]];
    let replace = WriteOptions { existing: IfExists::Replace, ..WriteOptions::default() };
    let again = |options: &WriteOptions| write(folder.path(), &form, &alone, &whole, options).swap_remove(0);
    again(&WriteOptions::default()).unwrap();
    let want = files_in(folder.path());
    assert!(matches!(again(&WriteOptions::default()), Err(IdxError::Exists { .. })));
    std::fs::remove_file(path.join("0/c/0/0/0")).unwrap();
    again(&replace).unwrap();
    assert_eq!(files_in(folder.path()), want);
    std::fs::write(path.join("0/notes.txt"), b"mine").unwrap();
    assert!(matches!(again(&replace), Err(IdxError::Foreign { .. })));
    assert_eq!(files_in(folder.path()).len(), want.len() + 1);
    let mut writer = ZarrWriter::new(&folder.path().join("e.zarr"), form.clone(), WriteOptions::default()).unwrap();
    let watch = Watch { observer: &Silent, cancel: &CancelToken::new() };
    let mut report =
        writer.write_collective(vec![cut_patch(&form, &form.domain(), &whole)], &watch, &SingleProcess).unwrap();
    let twice = writer.write_collective(vec![cut_patch(&form, &form.domain(), &whole)], &watch, &SingleProcess);
    assert!(matches!(twice, Err(IdxError::Target { .. })), "{twice:?}");
    report.publish_s = 0.0;
    writer.publish(&mut report, &SingleProcess).unwrap();
    assert!(report.publish_s > 0.0);
}

#[test]
fn damage_is_found_and_named() {
    let form = small(&["uint16"], Downsample::Average);
    let whole = arrays(&form);
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), &form, &[vec![form.domain()]], &whole, &WriteOptions::default()).swap_remove(0).unwrap();
    let path = folder.path().join("d.zarr");
    let check = || {
        let check = Images::open(&path).unwrap().images[0].check(1, &CancelToken::new()).unwrap();
        check.bad.iter().map(|bad| format!("{}: {}", bad.path.display(), bad.why)).collect::<Vec<_>>()
    };
    assert_eq!(check(), Vec::<String>::new());
    let shard = path.join("1/c/1/0/0");
    let good = std::fs::read(&shard).unwrap();
    let put = |bytes: &[u8]| std::fs::write(&shard, bytes).unwrap();
    let mut flipped = good.clone();
    flipped[9] ^= 4;
    put(&flipped);
    assert!(check().iter().any(|bad| bad.contains("1/c/1/0/0") && bad.contains("checksum")), "{:?}", check());
    put(&good[..good.len() - 1]);
    assert!(!check().is_empty());
    // Replaces a shard by another valid one.
    put(&std::fs::read(path.join("1/c/0/0/0")).unwrap());
    assert!(check().iter().any(|bad| bad.contains("do not follow from level 0")), "{:?}", check());
    put(&good);
    std::fs::remove_file(path.join("0/c/0/0/0")).unwrap();
    assert!(check().iter().any(|bad| bad.contains("shards were written")), "{:?}", check());
}
