//! Tests that any number of ranks write the same files as one process, byte for byte as defined, for any boxes and
//! phases.

use super::*;
use crate::dataset::bitmask::{MAX_RANK, Point};
use crate::dataset::compression::{BlockEncoder, DatasetBlock, RECORD_LEN_BYTES};
use crate::dataset::grid::Layout;
use crate::dataset::region::copy_part;
use crate::dataset::template::FileTemplate;
use crate::write::restructure::tests::partitions;
use crate::write::restructure::{ImposedBox, PartitionFault};
use proptest::prelude::*;
use raddle_codec::Effort;
use raddle_core::CoreError;
use raddle_core::ranks::threads::Threads;
use raddle_core::report::progress::Event;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// Returns all files below a folder with their bytes.
pub(crate) fn files_in(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.insert(path.strip_prefix(folder).unwrap().to_path_buf(), std::fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// Returns whole arrays, x fastest, smooth enough for compressors.
fn arrays(header: &Header) -> Vec<Vec<u8>> {
    let samples = header.grid(header.bitmask.max_level()).unwrap().sample_count().unwrap() as usize;
    let array = |(number, field): (usize, &Field)| {
        (0..samples * field.sample.len_bytes()).map(|at| (((at / (3 + number)) * 7) >> 2) as u8).collect()
    };
    header.fields.iter().enumerate().map(array).collect()
}

fn cut_patch<'a>(domain: &SampleBox, region: &SampleBox, whole: &[Vec<u8>], header: &Header) -> BoxData<'a> {
    let cut = |(array, field): (&Vec<u8>, &Field)| {
        let len = field.sample.len_bytes();
        let mut out = vec![0; region.sample_count().unwrap() as usize * len];
        copy_part((domain, array), (region, &mut out), region, len).unwrap();
        Cow::Owned(out)
    };
    BoxData { region: *region, arrays: whole.iter().zip(&header.fields).map(cut).collect() }
}

fn header(domain: &SampleBox, samples: &[(&str, &str, &str)], bits: u32, blocks_per_file: u64) -> Header {
    let field = |(number, (sample, layout, compression)): (usize, &(&str, &str, &str))| {
        Field::new(&format!("f{number}"), sample.parse().unwrap())
            .with("default_layout", layout)
            .with("default_compression", compression)
            .with("default_value", "5")
    };
    let fields = samples.iter().enumerate().map(field).collect();
    let rank = (1..=MAX_RANK).rev().find(|rank| domain.end[rank - 1] > 1).unwrap_or(1);
    let mut header = Header::new("d", &domain.end[..rank], fields).unwrap();
    header.start = domain.start;
    header.bits_per_block = bits.min(header.bitmask.max_level());
    header.blocks_per_file = blocks_per_file;
    header.files = FileTemplate::parse("./d/%01x.bin").unwrap();
    let rank = header.bitmask.rank();
    for field in &mut header.fields {
        let wanted = Compression::from_name(field.attribute("default_compression").unwrap()).unwrap();
        if !wanted.takes(field.sample, rank) {
            *field = field.clone().with("default_compression", "lz4");
        }
    }
    header
}

/// Returns the files as the format defines them: every sample placed at its address, one by one.
fn defined(header: &Header, whole: &[Vec<u8>]) -> BTreeMap<PathBuf, Vec<u8>> {
    let (bitmask, bits) = (&header.bitmask, header.bits_per_block);
    let grid = header.grid(bitmask.max_level()).unwrap();
    let strides = grid.strides();
    let inside = |point: &Point| {
        let is_inside = (0..MAX_RANK).all(|axis| (header.start[axis]..header.end[axis]).contains(&point[axis]));
        is_inside.then(|| (0..MAX_RANK).map(|axis| (point[axis] - header.start[axis]) * strides[axis]).sum::<u64>())
    };
    let mut files: BTreeMap<PathBuf, Vec<u8>> = BTreeMap::new();
    let tables = RECORD_LEN_BYTES * (1 + header.fields.len() as u64 * header.blocks_per_file);
    let mut encoder = BlockEncoder::new(Effort::Balanced);
    for (number, field) in header.fields.iter().enumerate() {
        let len = field.sample.len_bytes();
        for block in 0..header.block_count() {
            let mut points: Vec<Point> =
                (block << bits..(block + 1) << bits).map(|hz| bitmask.point_of_hz(hz)).collect();
            if field.default_layout() == Layout::RowMajor {
                points.sort_by_key(|point| std::array::from_fn::<u64, MAX_RANK, _>(|axis| point[MAX_RANK - 1 - axis]));
            }
            if points.iter().all(|point| inside(point).is_none()) {
                continue;
            }
            let sample = |point: &Point| match inside(point) {
                Some(at) => whole[number][at as usize * len..][..len].to_vec(),
                None => field.default_sample(),
            };
            let raw: Vec<u8> = points.iter().flat_map(sample).collect();
            let place = block % header.blocks_per_file;
            let file = files.entry(header.files.path(block - place, "")).or_default();
            let offset = (file.len() as u64).max(tables.next_multiple_of(4096));
            file.resize(offset as usize, 0);
            let wanted = Compression::from_name(field.attribute("default_compression").unwrap()).unwrap();
            let coding =
                encoder.append(wanted, DatasetBlock { header, field: number, number: block }, &raw, file).unwrap();
            let len_bytes = (file.len() as u64 - offset) as u32;
            let record = Record { offset, len_bytes, coding, layout: field.default_layout() };
            let at = RECORD_LEN_BYTES * (1 + number as u64 * header.blocks_per_file + place);
            file[at as usize..][..RECORD_LEN_BYTES as usize].copy_from_slice(&record.to_bytes());
        }
    }
    files.insert("d.idx".into(), header.to_text().into_bytes());
    files
}

fn write(
    folder: &Path,
    header: &Header,
    partition: &[Vec<SampleBox>],
    whole: &[Vec<u8>],
    options: &WriteOptions,
) -> Vec<Result<WriteReport>> {
    let domain = SampleBox { start: header.start, end: header.end };
    Threads::run(partition.len(), |ranks| {
        let options = WriteOptions { jobs: 1 + ranks.rank() % 2, ..options.clone() };
        let mut writer = Writer::new(&folder.join("d.idx"), header.clone(), options)?;
        let patches = partition[ranks.rank()].iter().map(|region| cut_patch(&domain, region, whole, header)).collect();
        writer.write_collective(None, patches, &Watch { observer: &Silent, cancel: &CancelToken::new() }, ranks)
    })
}

const KINDS: [(&str, &str, &str); 8] = [
    ("float32", "", ""),
    ("float64[11]", "hzorder", ""),
    ("uint8[3]", "", ""),
    ("float64", "", "zip"),
    ("int16", "hzorder", "lz4"),
    ("uint8", "hzorder", "zip"),
    ("int32", "hzorder", "zfp-reversible-reversible"),
    ("float32", "", "zfp-precision=12-precision=12"),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_ranks_write_what_is_defined(
        (domain, partition) in partitions(),
        (bits, blocks_per_file) in (0u32..9, 1u64..40),
        (first, second) in (0usize..8, 0usize..8),
        (side, imposed, owners) in (1u64..9, 0usize..4, 0usize..5),
    ) {
        let header = header(&domain, &[KINDS[first], KINDS[second]], bits, blocks_per_file);
        let whole = arrays(&header);
        let want = defined(&header, &whole);
        for phases in [Phases::One, Phases::Two, Phases::Three] {
            if phases == Phases::One && first.max(second) > 2 {
                continue;
            }
            let folder = tempfile::tempdir().unwrap();
            let options = WriteOptions {
                phases,
                imposed: [ImposedBox::Default, ImposedBox::Expanded, ImposedBox::Cube, ImposedBox::Counts([side; MAX_RANK])][imposed],
                aggregators: NonZeroUsize::new(owners),
                ..WriteOptions::default()
            };
            for result in write(folder.path(), &header, &partition, &whole, &options) {
                result.unwrap();
            }
            let got = files_in(folder.path());
            prop_assert_eq!(got.keys().collect::<Vec<_>>(), want.keys().collect::<Vec<_>>());
            for (path, bytes) in &got {
                prop_assert!(*bytes == want[path], "{} in {phases:?} phases", path.display());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Updating boxes of a step yields the same files as writing the changed samples from scratch.
    #[test]
    fn any_ranks_put_boxes_into_a_step(
        (domain, partition) in partitions(),
        (bits, blocks_per_file) in (0u32..9, 1u64..40),
        (first, second, field_mask) in (0usize..7, 0usize..7, 1usize..4),
        (kept, owners) in (0usize..4, 0usize..5),
    ) {
        let header = header(&domain, &[KINDS[first], KINDS[second]], bits, blocks_per_file);
        let old = arrays(&header);
        let other: Vec<Vec<u8>> = old.iter().map(|array| array.iter().map(|byte| byte ^ 0x15).collect()).collect();
        let fields: Vec<usize> = (0..2).filter(|field| field_mask >> field & 1 == 1).rev().collect();
        let boxes: Vec<Vec<SampleBox>> =
            partition.iter().map(|of| of.iter().copied().enumerate().filter(|(at, _)| at % 4 >= kept).map(|(_, of)| of).collect()).collect();
        let mut new = old.clone();
        for (region, field) in boxes.iter().flatten().flat_map(|region| fields.iter().map(move |field| (region, *field))) {
            let len = header.fields[field].sample.len_bytes();
            copy_part((&domain, &other[field]), (&domain, &mut new[field]), region, len).unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let slices: Vec<&[u8]> = old.iter().map(Vec::as_slice).collect();
        Writer::new(&folder.path().join("d.idx"), header.clone(), WriteOptions::default()).unwrap().write(None, &slices).unwrap();
        let results = Threads::run(boxes.len(), |ranks| {
            let options = WriteOptions { aggregators: NonZeroUsize::new(owners), jobs: 1 + ranks.rank() % 2, ..WriteOptions::default() };
            let mut writer = Writer::of_existing(&folder.path().join("d.idx"), options)?;
            let patch = |region: &SampleBox| {
                let mut whole = cut_patch(&domain, region, &other, &header);
                let arrays = fields.iter().map(|field| std::mem::take(&mut whole.arrays[*field])).collect();
                BoxData { region: *region, arrays }
            };
            let patches = boxes[ranks.rank()].iter().map(patch).collect();
            writer.update_collective(None, &fields, patches, &Watch { observer: &Silent, cancel: &CancelToken::new() }, ranks)
        });
        for result in results {
            match result {
                Err(IdxError::Update { fault: crate::UpdateFault::NoSamples, .. }) => prop_assert!(boxes.iter().all(Vec::is_empty)),
                result => prop_assert_eq!(result.unwrap().ranks, boxes.len()),
            }
        }
        let (got, want) = (files_in(folder.path()), defined(&header, &new));
        prop_assert_eq!(got.keys().collect::<Vec<_>>(), want.keys().collect::<Vec<_>>());
        for (path, bytes) in &got {
            prop_assert!(*bytes == want[path], "{}", path.display());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    /// Writing the blocks of a dataset as another dataset yields the same files as writing the samples from memory.
    #[test]
    fn blocks_of_a_dataset_become_those_of_another(
        (domain, _) in partitions(),
        (bits, per_file, other_per_file) in (0u32..9, 1u64..40, 1u64..40),
        (first, second, wanted, also) in (0usize..7, 0usize..7, 0usize..8, 0usize..8),
        ranks in 1usize..4,
    ) {
        let from = header(&domain, &[KINDS[first], KINDS[second]], bits, per_file);
        let old = arrays(&from);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.idx");
        let slices: Vec<&[u8]> = old.iter().map(Vec::as_slice).collect();
        Writer::new(&path, from.clone(), WriteOptions::default()).unwrap().write(None, &slices).unwrap();
        let dataset = Dataset::open(&path).unwrap();
        // The fields in reverse, with a different order and compression.
        let types = [from.fields[1].sample.to_string(), from.fields[0].sample.to_string()];
        let like = |kind: usize, sample| (sample, KINDS[kind].1, KINDS[kind].2);
        let to = header(&domain, &[like(wanted, types[0].as_str()), like(also, &types[1])], bits, other_per_file);
        let want = defined(&to, &[old[1].clone(), old[0].clone()]);
        let source = BlockSource { dataset: &dataset, time: None, fields: &[1, 0], missing_as_default: false };
        prop_assert!(source.has_blocks_of(&to));
        let target = tempfile::tempdir().unwrap();
        let results = Threads::run(ranks, |ranks| {
            let options = WriteOptions { jobs: 1 + ranks.rank() % 2, ..WriteOptions::default() };
            let mut writer = Writer::new(&target.path().join("d.idx"), to.clone(), options)?;
            writer.rewrite_collective(None, &source, &Watch { observer: &Silent, cancel: &CancelToken::new() }, ranks)
        });
        for result in results {
            result.unwrap();
        }
        let got = files_in(target.path());
        prop_assert_eq!(got.keys().collect::<Vec<_>>(), want.keys().collect::<Vec<_>>());
        for (path, bytes) in &got {
            prop_assert!(*bytes == want[path], "{}", path.display());
        }
    }
}

#[test]
fn ranks_that_contradict_each_other_leave_the_step_as_it_was() {
    let domain = SampleBox::new(&[0; 2], &[40, 27]);
    let header = header(&domain, &[("float32", "", "zip")], 6, 4);
    let whole = arrays(&header);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.idx");
    Writer::new(&path, header.clone(), WriteOptions::default()).unwrap().write(None, &[&whole[0]]).unwrap();
    let before = files_in(folder.path());
    let update = |boxes: &[SampleBox], steps: &[Option<u64>], fields: &[usize]| {
        Threads::run(2, |ranks| {
            let mut writer = Writer::of_existing(&path, WriteOptions::default())?;
            let patches = vec![cut_patch(&domain, &boxes[ranks.rank()], &whole, &header)];
            let watch = Watch { observer: &Silent, cancel: &CancelToken::new() };
            writer.update_collective(steps[ranks.rank()], fields, patches, &watch, ranks)
        })
    };
    let (left, right) = (SampleBox::new(&[0; 2], &[20, 27]), SampleBox::new(&[20, 0], &[20, 27]));
    let meeting = SampleBox::new(&[19, 0], &[20, 27]);
    for result in update(&[left, meeting], &[None, None], &[0]) {
        assert!(matches!(result, Err(IdxError::Partition { .. })), "{result:?}");
    }
    let results = update(&[left, right], &[None, Some(3)], &[0]);
    assert!(results[0].as_ref().is_err_and(IdxError::is_secondary), "{results:?}");
    assert!(matches!(results[1], Err(IdxError::NoTime { fault: TimeFault::None { asked: 3 }, .. })), "{results:?}");
    assert!(update(&[left, right], &[None, None], &[1]).iter().all(Result::is_err));
    assert!(update(&[left, right], &[None, None], &[0, 0]).iter().all(Result::is_err));
    assert!(files_in(folder.path()) == before);
}

/// Returns a volume cut into `ranks` slabs of unequal height.
pub(crate) fn slabs(domain: &SampleBox, ranks: u64) -> Vec<Vec<SampleBox>> {
    let height = domain.end[2];
    let bound = |rank: u64| (rank * height / ranks + u64::from(rank % 2 == 1 && rank < ranks)).min(height);
    let slab = |rank: u64| {
        let mut of = *domain;
        (of.start[2], of.end[2]) = (bound(rank), bound(rank + 1));
        vec![of]
    };
    (0..ranks).map(slab).collect()
}

#[test]
fn one_to_eight_ranks_write_the_files_of_one_process() {
    let domain = SampleBox::new(&[0; 3], &[40, 27, 33]);
    let header = header(&domain, &[("float32", "", "zip"), ("float64[3]", "hzorder", "")], 9, 16);
    let whole = arrays(&header);
    let alone = tempfile::tempdir().unwrap();
    let slices: Vec<&[u8]> = whole.iter().map(Vec::as_slice).collect();
    let mut writer = Writer::new(&alone.path().join("d.idx"), header.clone(), WriteOptions::default()).unwrap();
    writer.write(None, &slices).unwrap();
    let want = files_in(alone.path());
    assert!(want == defined(&header, &whole), "one process");
    for ranks in [1, 2, 3, 4, 8] {
        for phases in [Phases::Two, Phases::Three] {
            let folder = tempfile::tempdir().unwrap();
            let options = WriteOptions { phases, ..WriteOptions::default() };
            let mut results = write(folder.path(), &header, &slabs(&domain, ranks), &whole, &options);
            assert!(files_in(folder.path()) == want, "{ranks} ranks, {phases:?}");
            let report = results.swap_remove(0).unwrap();
            let samples: u64 = 40 * 27 * 33;
            assert_eq!((report.ranks as u64, report.sample_len_bytes), (ranks, samples * 28));
            assert_eq!(report.restructure_messages.len() as u64, ranks);
            let sent = |of: &[crate::Traffic]| of.iter().map(|traffic| traffic.len_bytes).sum::<u64>();
            let moves = (sent(&report.restructure_messages), sent(&report.aggregate_messages));
            match (ranks, phases) {
                (1, _) => assert_eq!(moves, (0, 0)),
                (_, Phases::Two) => assert!(moves.0 == 0 && moves.1 > 0, "{moves:?}"),
                _ => assert!(moves.0 > 0 && moves.1 > 0, "{moves:?}"),
            }
            assert_eq!(report.rank_memory.len() as u64, ranks);
            let engine = report.engine.as_ref().unwrap();
            let of = |stage: Stage| engine.stages.iter().chain(&report.stages).filter(move |of| of.stage == stage);
            let restructured = of(Stage::Restructure).map(|of| (of.bytes, of.rank)).collect::<Vec<_>>();
            match (ranks, phases) {
                (2.., Phases::Three) => {
                    let sent = report.restructure_messages.iter().map(|sent| sent.len_bytes);
                    assert_eq!(restructured, sent.zip(0..).collect::<Vec<_>>());
                }
                _ => assert!(restructured.is_empty(), "{restructured:?}"),
            }
            assert!(of(Stage::Encode).all(|of| of.wall_s > 0.0) && of(Stage::Place).count() > 0);
            assert_eq!(report.stages.iter().filter(|of| of.stage == Stage::Commit).count() as u64, ranks);
        }
    }
}

#[test]
fn what_ranks_cannot_do_leaves_nothing() {
    let domain = SampleBox::new(&[0; 3], &[20, 20, 20]);
    let header = header(&domain, &[("float32", "", "zip")], 6, 16);
    let whole = arrays(&header);
    let folder = tempfile::tempdir().unwrap();
    let check = |partition: &[Vec<SampleBox>], options: &WriteOptions, expected: fn(&IdxError) -> bool| {
        for (rank, result) in write(folder.path(), &header, partition, &whole, options).into_iter().enumerate() {
            let error = result.unwrap_err();
            assert!(expected(&error) || (rank > 0 && error.is_secondary()), "rank {rank}: {error}");
        }
        assert!(files_in(folder.path()).is_empty(), "something is left");
    };
    let good = slabs(&domain, 3);
    let mut twice = good.clone();
    twice[2].push(good[0][0]);
    check(
        &twice,
        &WriteOptions::default(),
        |error| matches!(error, IdxError::Partition { source, .. } if matches!(**source, PartitionFault::Overlap { .. })),
    );
    check(
        &good[..2],
        &WriteOptions::default(),
        |error| matches!(error, IdxError::Partition { source, .. } if matches!(**source, PartitionFault::Missing { .. })),
    );
    let one = WriteOptions { phases: Phases::One, ..WriteOptions::default() };
    check(&good, &one, |error| matches!(error, IdxError::OnePhase { .. }));
    let narrow = WriteOptions { memory_limit_bytes: 1000, ..WriteOptions::default() };
    check(&good, &narrow, |error| matches!(error, IdxError::Core(CoreError::Memory { .. })));
    // Ranks with different arguments.
    let results = Threads::run(3, |ranks| {
        let mut header = header.clone();
        header.bits_per_block += u32::from(ranks.rank() == 2);
        let mut writer = Writer::new(&folder.path().join("d.idx"), header.clone(), WriteOptions::default())?;
        let patches = vec![cut_patch(&domain, &good[ranks.rank()][0], &whole, &header)];
        writer.write_collective(None, patches, &Watch { observer: &Silent, cancel: &CancelToken::new() }, ranks)
    });
    let differs = |result: &Result<_>| matches!(result, Err(IdxError::Core(CoreError::PlansDiffer { rank: 2 })));
    assert!(results.iter().all(differs) && files_in(folder.path()).is_empty(), "{results:?}");
    // The name is taken.
    std::fs::write(folder.path().join("d.idx"), b"mine").unwrap();
    let results = write(folder.path(), &header, &good, &whole, &WriteOptions::default());
    assert!(matches!(results[0], Err(IdxError::Exists { .. })), "{results:?}");
    assert_eq!(files_in(folder.path()).len(), 1);
}

#[test]
fn a_rank_that_is_stopped_leaves_nothing() {
    let domain = SampleBox::new(&[0; 3], &[40, 40, 40]);
    let header = header(&domain, &[("float32", "", "zip"), ("uint8", "", "lz4")], 6, 16);
    let whole = arrays(&header);
    let partition = slabs(&domain, 3);
    let folder = tempfile::tempdir().unwrap();
    let results = Threads::run(3, |ranks| {
        let (cancel, is_last) = (CancelToken::new(), ranks.rank() == 2);
        let observer = |event: &Event| {
            if is_last && matches!(event, Event::Advanced { .. }) {
                cancel.cancel();
            }
        };
        let options = WriteOptions { jobs: 1, ..WriteOptions::default() };
        let mut writer = Writer::new(&folder.path().join("d.idx"), header.clone(), options).unwrap();
        let region = &partition[ranks.rank()][0];
        let patches = vec![cut_patch(&domain, region, &whole, &header)];
        writer.write_collective(None, patches, &Watch { observer: &observer, cancel: &cancel }, ranks).map(|_| ())
    });
    assert!(results.iter().all(|result| matches!(result, Err(IdxError::Core(_)))), "{results:?}");
    assert!(files_in(folder.path()).is_empty(), "something is left");
}

#[test]
fn more_steps_are_added_to_what_is_there() {
    let domain = SampleBox::new(&[0; 3], &[8, 8, 8]);
    let mut header = header(&domain, &[("float32", "", "")], 6, 16);
    let template = crate::dataset::template::TimeTemplate::parse("time_%04d/").unwrap();
    header.time = Some(crate::dataset::header::Time { range: None, template });
    let whole = arrays(&header);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("d.idx");
    let mut first = Writer::new(&path, header.clone(), WriteOptions::default()).unwrap();
    first.write(Some(3), &[&whole[0]]).unwrap();
    let again = Writer::new(&path, header.clone(), WriteOptions::default()).unwrap().write(Some(4), &[&whole[0]]);
    assert!(matches!(again, Err(IdxError::Exists { .. })), "{again:?}");
    let mut later = Writer::resume(&path, &header, WriteOptions::default()).unwrap();
    later.write(Some(1), &[&whole[0]]).unwrap();
    assert_eq!(Dataset::open(&path).unwrap().header().time.as_ref().unwrap().range, Some((1, 3)));
    // Both know only steps 1 to 3.
    later.write(Some(7), &[&whole[0]]).unwrap();
    first.write(Some(5), &[&whole[0]]).unwrap();
    assert_eq!(Dataset::open(&path).unwrap().header().time.as_ref().unwrap().range, Some((1, 7)));
    header.blocks_per_file = 8;
    let differs = Writer::resume(&path, &header, WriteOptions::default());
    assert!(matches!(differs, Err(IdxError::HeaderDiffers { what: "number of blocks per file", .. })));
}
