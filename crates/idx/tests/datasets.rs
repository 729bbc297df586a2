//! Datasets written and read back, and the handling of missing, damaged and foreign files.

use proptest::prelude::*;
use raddle_core::cancel::CancelToken;
use raddle_idx::dataset::bitmask::{Bitmask, Point};
use raddle_idx::dataset::compression::BlockFault;
use raddle_idx::dataset::grid::ArrayGrid;
use raddle_idx::dataset::template::{FileTemplate, TimeTemplate};
use raddle_idx::{Dataset, Field, Header, IdxError, IfExists, Query, Readers, WriteOptions, Writer};
use std::path::Path;

/// Returns bytes that change gradually from sample to sample, like smooth data.
fn bytes(len: usize, seed: u64) -> Vec<u8> {
    (0..len).map(|at| ((at as u64 / 3).wrapping_mul(seed | 1) >> 3) as u8).collect()
}

fn replacing() -> WriteOptions {
    WriteOptions { existing: IfExists::Replace, ..WriteOptions::default() }
}

fn field(name: &str, sample: &str, layout: &str, compression: &str) -> Field {
    Field::new(name, sample.parse().expect("a sample type"))
        .with("default_layout", layout)
        .with("default_compression", compression)
        .with("default_value", "7")
}

/// Returns the expected result of a query: the array's samples at the grid's points.
fn picked(header: &Header, array: &[u8], sample_len_bytes: usize, grid: &ArrayGrid) -> Vec<u8> {
    let whole = header.grid(header.bitmask.max_level()).expect("the box is not empty");
    let strides = whole.strides();
    let mut out = Vec::new();
    for mut number in 0..grid.sample_count().expect("a small grid") {
        let mut at = 0;
        for (axis, stride) in strides.iter().enumerate() {
            let index = number % grid.counts[axis];
            number /= grid.counts[axis];
            at += (grid.origin[axis] + (index << grid.log2_spacing[axis]) - whole.origin[axis]) * stride;
        }
        out.extend_from_slice(&array[at as usize * sample_len_bytes..][..sample_len_bytes]);
    }
    out
}

fn small(fields: Vec<Field>) -> Header {
    let mut header = Header::new("small", &[22, 36, 22], fields).expect("a header");
    header.bits_per_block = 9;
    header.blocks_per_file = 16;
    header.files = FileTemplate::parse("./small/%04x.bin").expect("a template");
    header
}

fn write_small(folder: &Path, header: &Header) -> (std::path::PathBuf, Vec<Vec<u8>>) {
    let samples = 22 * 36 * 22;
    let arrays: Vec<Vec<u8>> =
        header.fields.iter().zip(3..).map(|(field, seed)| bytes(samples * field.sample.len_bytes(), seed)).collect();
    let path = folder.join("small.idx");
    let slices: Vec<&[u8]> = arrays.iter().map(Vec::as_slice).collect();
    Writer::new(&path, header.clone(), WriteOptions::default()).unwrap().write(None, &slices).unwrap();
    (path, arrays)
}

#[test]
fn all_resolutions_layouts_and_compressions() {
    for layout in ["hzorder", ""] {
        for (compression, of_vectors) in [("", ""), ("zip", "zip"), ("lz4", "lz4"), ("zfp", "zip")] {
            let folder = tempfile::tempdir().unwrap();
            let header =
                small(vec![field("rho", "float32", layout, compression), field("v", "float64[3]", layout, of_vectors)]);
            let (path, arrays) = write_small(folder.path(), &header);
            let dataset = Dataset::open(&path).unwrap();
            assert_eq!(dataset.header(), &header);
            for (number, array) in arrays.iter().enumerate() {
                for resolution in 0..=header.bitmask.max_level() {
                    let query = Query { resolution, ..dataset.whole(number) };
                    let want = picked(
                        &header,
                        array,
                        header.fields[number].sample.len_bytes(),
                        &dataset.grid(&query).unwrap(),
                    );
                    assert!(dataset.read(&query).unwrap() == want, "{layout} {compression} {number} {resolution}");
                }
            }
            let mut left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
            left.sort();
            assert_eq!(left, ["small", "small.idx"], "nothing hidden remains");
        }
    }
}

#[test]
fn zfp_rounds_as_requested_and_keeps_what_cannot_be_rounded() {
    let at = |index: usize| (index as f32 * 0.01).sin() * 30.0;
    let mut values: Vec<f32> = (0..22 * 36 * 22).map(at).collect();
    values[4000] = f32::NAN;
    values[9000] = f32::INFINITY;
    let array: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let readers = Readers { jobs: 1, cancel: &CancelToken::new() };
    for (compression, tolerance) in [("zfp-accuracy=0.01-accuracy=0.01", 0.01), ("zfp-precision=18-precision=18", 0.1)]
    {
        let folder = tempfile::tempdir().unwrap();
        let header = small(vec![field("rho", "float32", "", compression)]);
        let path = folder.path().join("small.idx");
        let report = Writer::new(&path, header, WriteOptions::default()).unwrap().write(None, &[&array]).unwrap();
        assert!(report.stored_len_bytes < report.sample_len_bytes, "{report:?}");
        let dataset = Dataset::open(&path).unwrap();
        let got = dataset.read(&dataset.whole(0)).unwrap();
        let (got, _) = got.as_chunks::<4>();
        for (value, got) in values.iter().zip(got) {
            let got = f32::from_le_bytes(*got);
            let is_near = (value - got).abs() <= tolerance;
            assert!(is_near || (!value.is_finite() && value.to_bits() == got.to_bits()), "{value} {got}");
        }
        let check = dataset.check(0, None, &readers).unwrap();
        assert_eq!((check.bad.len(), check.blocks - check.compressed), (0, 2), "blocks without finite numbers are raw");
        // Every bit of the first block's record and stream.
        let file = folder.path().join("small/0000.bin");
        let stored = std::fs::read(&file).unwrap();
        let first = u32::from_be_bytes(stored[48..52].try_into().unwrap()) as usize;
        for at in (first..first + 64).chain(40..64) {
            let mut damaged = stored.clone();
            damaged[at] ^= 0x41;
            std::fs::write(&file, damaged).unwrap();
            let check = dataset.check(0, None, &readers).unwrap();
            assert!(check.bad.len() <= 1 && check.blocks + check.bad.len() as u64 > 20);
        }
    }
}

#[test]
fn zfp_is_refused_for_what_it_does_not_take() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |sample: &str, counts: &[u64], compression: &str| {
        let header = Header::new("d", counts, vec![field("a", sample, "", compression)]).unwrap();
        let result = Writer::new(&folder.path().join("d.idx"), header, WriteOptions::default());
        matches!(result, Err(IdxError::Compression { .. }))
    };
    for (sample, counts, compression, is_refused) in [
        ("float32", [9, 9, 9].as_slice(), "zfp", false),
        ("int64", &[9, 9], "zfp-precision=8-precision=8", false),
        ("uint8", &[9, 9, 9], "zfp", true),
        ("float32[2]", &[9, 9, 9], "zfp", true),
        ("float32", &[9, 9, 9, 9], "zfp", true),
        ("float32", &[9], "zfp", true),
        ("int32", &[9, 9, 9], "zfp-accuracy=1-accuracy=1", true),
    ] {
        assert_eq!(refused(sample, counts, compression), is_refused, "{sample} {counts:?} {compression}");
    }
}

#[test]
fn missing_and_damaged_blocks_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let header = small(vec![field("rho", "float32", "", "zip")]);
    let (path, arrays) = write_small(folder.path(), &header);
    let dataset = Dataset::open(&path).unwrap();
    let (file, query) = (folder.path().join("small/0010.bin"), dataset.whole(0));
    let stored = std::fs::read(&file).unwrap();
    let fault = |expected: fn(&BlockFault) -> bool| match dataset.read(&query) {
        Err(IdxError::Block { path, field, block, source }) if expected(&source) => {
            assert_eq!((path, field.as_str()), (file.clone(), "rho"));
            block
        }
        other => panic!("{other:?}"),
    };
    // The record of the file's first block follows the file's header.
    let damage = |at: usize, with: &[u8]| {
        let mut bytes = stored.clone();
        bytes[at..at + with.len()].copy_from_slice(with);
        std::fs::write(&file, bytes).unwrap();
    };
    damage(40 + 16, &[0; 4]);
    assert_eq!(fault(|fault| matches!(fault, BlockFault::NotStored)), 16);
    let with_default = dataset.read(&Query { missing_as_default: true, ..query }).unwrap();
    let (chunks, _) = with_default.as_chunks::<4>();
    let differ = chunks.iter().zip(arrays[0].as_chunks::<4>().0).filter(|(got, want)| got != want);
    assert!(differ.clone().count() > 100 && differ.clone().all(|(got, _)| *got == 7f32.to_le_bytes()));
    damage(40 + 8, &[0xff; 4]);
    assert_eq!(fault(|fault| matches!(fault, BlockFault::Outside { .. })), 16);
    damage(40 + 23, &[6]);
    assert_eq!(fault(|fault| matches!(fault, BlockFault::Unsupported { name: "png", .. })), 16);
    damage(40 + 23, &[8]);
    assert_eq!(fault(|fault| matches!(fault, BlockFault::ZfpMode { name } if name == "zip")), 16);
    let first_block = u32::from_be_bytes(stored[48..52].try_into().unwrap()) as usize;
    damage(first_block + 9, &[stored[first_block + 9] ^ 0x55]);
    assert_eq!(fault(|fault| matches!(fault, BlockFault::Codec(_))), 16);
    std::fs::write(&file, &stored[..50]).unwrap();
    assert_eq!(fault(|fault| matches!(fault, BlockFault::NoRecord)), 16);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(fault(|fault| matches!(fault, BlockFault::NoFile)), 16);
}

#[test]
fn a_check_counts_every_block() {
    let folder = tempfile::tempdir().unwrap();
    let header = small(vec![field("rho", "float32", "", "zip"), field("id", "uint8", "hzorder", "")]);
    let (path, _) = write_small(folder.path(), &header);
    let dataset = Dataset::open(&path).unwrap();
    let (cancel, grid) = (CancelToken::new(), header.grid(16).unwrap());
    let all = raddle_idx::dataset::grid::blocks(&header.bitmask, 9, &grid, 16).len() as u64;
    let readers = Readers { jobs: 2, cancel: &cancel };
    let check = |field| dataset.check(field, None, &readers).unwrap();
    let (rho, id) = (check(0), check(1));
    assert_eq!((rho.blocks, rho.in_hz_order, rho.raw_len_bytes, rho.bad.len()), (all, 0, (all * 4) << 9, 0));
    assert_eq!((id.blocks, id.in_hz_order, id.compressed, id.stored_len_bytes), (all, all, 0, all << 9));
    assert!(rho.compressed > 0 && rho.stored_len_bytes < rho.raw_len_bytes);
    assert_eq!((rho.levels[0].levels, rho.levels[0].blocks), ((0, 9), 1));
    assert_eq!(rho.levels.iter().map(|level| level.blocks).sum::<u64>(), all);
    assert_eq!(rho.levels.last().unwrap().levels, (16, 16));
    std::fs::remove_file(folder.path().join("small/0010.bin")).unwrap();
    let damaged = check(0);
    assert!(damaged.bad.len() > 3 && damaged.blocks + damaged.bad.len() as u64 == all);
    assert_eq!((damaged.bad[0].block, damaged.bad[0].why.as_str()), (16, "the file does not exist"));
    cancel.cancel();
    assert!(matches!(dataset.check(0, None, &readers), Err(IdxError::Core(_))));
}

#[test]
fn time_steps_appear_one_by_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.idx");
    let mut header = Header::new("t", &[10, 6], vec![Field::new("a", "uint8".parse().unwrap())]).unwrap();
    header.time =
        Some(raddle_idx::dataset::header::Time { range: None, template: TimeTemplate::parse("time_%04d/").unwrap() });
    let mut writer = Writer::new(&path, header, WriteOptions::default()).unwrap();
    let steps = [3u64, 0, 4].map(|step| (step, bytes(60, 11 + step)));
    for (step, array) in &steps {
        writer.write(Some(*step), &[array]).unwrap();
    }
    assert!(matches!(writer.write(Some(3), &[&steps[0].1]), Err(IdxError::StepExists { .. })));
    assert!(matches!(writer.write(None, &[&steps[0].1]), Err(IdxError::NoTime { .. })));
    assert!(folder.path().join("t/time_0003/0000.bin").exists());
    let dataset = Dataset::open(&path).unwrap();
    assert_eq!(dataset.steps().unwrap(), [Some(0), Some(3), Some(4)]);
    assert_eq!(dataset.header().time.as_ref().unwrap().range, Some((0, 4)));
    for (step, array) in &steps {
        assert_eq!(dataset.read(&Query { time: Some(*step), ..dataset.whole(0) }).unwrap(), *array);
    }
    assert!(matches!(dataset.read(&Query { time: Some(5), ..dataset.whole(0) }), Err(IdxError::NoTime { .. })));
    let missing = dataset.read(&Query { time: Some(1), ..dataset.whole(0) });
    assert!(missing.is_err_and(|error| error.to_string().ends_with("has no time step 1; available: 0, 3 to 4")));
}

fn with_steps(name: &str) -> Header {
    let mut header = Header::new(name, &[10, 6], vec![Field::new("a", "uint8".parse().unwrap())]).unwrap();
    header.time =
        Some(raddle_idx::dataset::header::Time { range: None, template: TimeTemplate::parse("time_%04d/").unwrap() });
    header
}

#[test]
fn steps_far_apart_are_found_by_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.idx");
    let mut writer = Writer::new(&path, with_steps("t"), WriteOptions::default()).unwrap();
    for step in [20_261_124, 1, 2_147_483_647] {
        writer.write(Some(step), &[&bytes(60, 3)]).unwrap();
    }
    // OpenVisus would read none of the steps.
    let refused = writer.write(Some(2_147_483_648), &[&bytes(60, 3)]).unwrap_err().to_string();
    assert!(refused.contains("cannot have time step 2147483648"), "{refused}");
    std::fs::create_dir(folder.path().join("t/time_0007x")).unwrap();
    let dataset = Dataset::open(&path).unwrap();
    assert_eq!(dataset.steps().unwrap(), [Some(1), Some(20_261_124), Some(2_147_483_647)]);
    let refused = dataset.read(&Query { time: Some(0), ..dataset.whole(0) }).unwrap_err().to_string();
    assert!(refused.ends_with("has no time step 0; available: 1, 20261124, 2147483647"), "{refused}");
}

#[test]
fn the_first_and_the_last_step_must_be_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.idx");
    let mut writer = Writer::new(&path, with_steps("t"), WriteOptions::default()).unwrap();
    for step in [2, 5, 9] {
        writer.write(Some(step), &[&bytes(60, 3)]).unwrap();
    }
    let (cancel, dataset) = (CancelToken::new(), Dataset::open(&path).unwrap());
    let check = || dataset.check_all(&dataset.steps().unwrap(), &Readers { jobs: 1, cancel: &cancel }).unwrap();
    assert!(check().is_whole());
    // The header does not name the steps in between.
    std::fs::remove_dir_all(folder.path().join("t/time_0005")).unwrap();
    assert!(check().is_whole());
    std::fs::remove_dir_all(folder.path().join("t/time_0009")).unwrap();
    assert_eq!((check().is_whole(), check().missing_steps), (false, vec![9]));
    std::fs::remove_dir_all(folder.path().join("t")).unwrap();
    assert_eq!((check().is_whole(), check().missing_steps), (false, vec![2, 9]));
}

#[test]
fn a_header_of_more_blocks_than_memory_holds_ends_a_check() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = write_small(folder.path(), &small(vec![field("rho", "float32", "", "zip")]));
    let mut huge = Header::new("small", &[1_000_001; 3], vec![field("rho", "float32", "", "zip")]).unwrap();
    huge.bits_per_block = 9;
    std::fs::write(&path, huge.to_text()).unwrap();
    let (cancel, dataset) = (CancelToken::new(), Dataset::open(&path).unwrap());
    let found = dataset.check_all(&[None], &Readers { jobs: 2, cancel: &cancel }).unwrap();
    assert!(found.is_stopped && !found.is_whole() && found.checks[0].bad.len() < 1 << 17);
}

#[test]
fn what_is_in_the_way_is_reported_as_what_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = write_small(folder.path(), &small(vec![field("rho", "uint16", "", "lz4")]));
    let header = Dataset::open(&path).unwrap().header().clone();
    let write = |path: &Path, options: WriteOptions| {
        Writer::new(path, header.clone(), options)
            .and_then(|mut writer| writer.write(None, &[&bytes(22 * 36 * 22 * 2, 3)]))
    };
    // A dataset that would not be replaced either.
    std::fs::write(folder.path().join("small/diary.txt"), b"mine").unwrap();
    assert!(matches!(write(&path, WriteOptions::default()), Err(IdxError::Foreign { .. })));
    let mut later = Writer::resume(&path, &header, WriteOptions::default()).unwrap();
    std::fs::remove_file(folder.path().join("small/diary.txt")).unwrap();
    assert!(matches!(later.write(None, &[&bytes(22 * 36 * 22 * 2, 3)]), Err(IdxError::NoTime { .. })));
    let special = folder.path().join("folder.idx");
    std::fs::create_dir(&special).unwrap();
    assert!(matches!(write(&special, replacing()), Err(IdxError::NotAFile { .. })));
}

#[test]
fn files_of_a_dataset_are_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = write_small(folder.path(), &small(vec![field("rho", "uint16", "", "lz4")]));
    std::os::unix::fs::symlink("small", folder.path().join("also")).unwrap();
    let dataset = Dataset::open(&path).unwrap();
    let owns = |name: &str| dataset.owns(&folder.path().join(name));
    assert!(owns("small.idx") && owns("small/0000.bin") && owns("also/0000.bin") && owns("small/../small/0010.bin"));
    assert!(!owns("other.idx") && !owns("small/a.npy") && !owns("0000.bin") && !owns("nowhere/0000.bin"));
}

#[test]
fn replacing_leaves_no_older_steps() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.idx");
    let mut header = Header::new("t", &[10, 6], vec![Field::new("a", "uint8".parse().unwrap())]).unwrap();
    header.time =
        Some(raddle_idx::dataset::header::Time { range: None, template: TimeTemplate::parse("time_%04d/").unwrap() });
    let write = |steps: &[u64], options: WriteOptions| {
        let mut writer = Writer::new(&path, header.clone(), options)?;
        steps.iter().try_for_each(|step| writer.write(Some(*step), &[&bytes(60, *step)]).map(drop))
    };
    let there = || Dataset::open(&path).and_then(|dataset| dataset.steps()).unwrap();
    write(&[0, 3, 7], WriteOptions::default()).unwrap();
    write(&[2, 7, 8], replacing()).unwrap();
    assert_eq!(there(), [Some(2), Some(7), Some(8)]);
    // Without a header, old steps must not reappear in the range of a new one.
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(write(&[9], WriteOptions::default()), Err(IdxError::Exists { .. })));
    std::fs::write(folder.path().join("t/time_0008/diary.txt"), b"mine").unwrap();
    assert!(matches!(write(&[9], replacing()), Err(IdxError::Foreign { .. })));
    std::fs::remove_file(folder.path().join("t/time_0008/diary.txt")).unwrap();
    write(&[9], replacing()).unwrap();
    assert_eq!(there(), [Some(9)]);
    // The same applies to a dataset without steps.
    let mut plain = Writer::new(&path, Header { time: None, ..header.clone() }, replacing()).unwrap();
    plain.write(None, &[&bytes(60, 4)]).unwrap();
    write(&[5], replacing()).unwrap();
    let left: Vec<_> =
        std::fs::read_dir(folder.path().join("t")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!((there(), left), (vec![Some(5)], vec!["time_0005".into()]));
}

#[test]
fn what_is_there_is_replaced_only_when_asked_and_only_if_it_is_a_dataset() {
    let folder = tempfile::tempdir().unwrap();
    let header = small(vec![field("rho", "uint16", "", "lz4")]);
    let (path, arrays) = write_small(folder.path(), &header);
    let other = bytes(arrays[0].len(), 99);
    let refused = Writer::new(&path, header.clone(), WriteOptions::default()).unwrap().write(None, &[&other]);
    assert!(matches!(refused, Err(IdxError::Exists { .. })), "{refused:?}");
    let read = || Dataset::open(&path).and_then(|dataset| dataset.read(&dataset.whole(0))).unwrap();
    assert_eq!(read(), arrays[0]);
    let mut replacing = Writer::new(&path, header, replacing()).unwrap();
    replacing.write(None, &[&other]).unwrap();
    assert_eq!(read(), other);
    std::fs::write(folder.path().join("small/diary.txt"), b"mine").unwrap();
    assert!(matches!(replacing.write(None, &[&arrays[0]]), Err(IdxError::Foreign { .. })));
    assert_eq!(std::fs::read(folder.path().join("small/diary.txt")).unwrap(), b"mine");
    assert_eq!(read(), other);
}

#[test]
fn wrong_requests_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let (path, _) = write_small(folder.path(), &small(vec![field("rho", "uint8", "", "")]));
    let dataset = Dataset::open(&path).unwrap();
    let whole = dataset.whole(0);
    assert!(matches!(dataset.read(&Query { field: 1, ..whole }), Err(IdxError::NoField { .. })));
    assert!(matches!(dataset.read(&Query { resolution: 17, ..whole }), Err(IdxError::NoResolution { .. })));
    assert!(matches!(
        dataset.read(&Query { end: [23, 36, 22, 1, 1], ..whole }),
        Err(IdxError::BoxOutside { axis: 'x', limit: 22, .. })
    ));
    let between = Query { start: [1, 1, 1, 0, 0], end: [2, 2, 2, 1, 1], resolution: 3, ..whole };
    assert!(matches!(dataset.read(&between), Err(IdxError::EmptyBox { .. })));
    assert!(matches!(dataset.read_into(&whole, &mut [0; 5]), Err(IdxError::Buffer { .. })));
    assert!(matches!(Dataset::open(folder.path().join("none.idx").as_path()), Err(IdxError::Read { .. })));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn any_dataset_comes_back(
        counts in prop::collection::vec(1u64..12, 1..6),
        sample in prop::sample::select(vec!["uint8", "int16", "float32", "float64[3]", "float64[11]", "uint8[3]"]),
        layout in prop::sample::select(vec!["hzorder", ""]),
        compression in prop::sample::select(vec!["", "zip", "lz4"]),
        (bits, blocks_per_file, low, high, cut) in any::<(u32, u8, u64, u64, u32)>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("d.idx");
        let mut header = Header::new("d", &counts, vec![field("a", sample, layout, compression)]).unwrap();
        let levels = header.bitmask.max_level() + 1;
        header.bits_per_block = bits % levels;
        header.blocks_per_file = u64::from(blocks_per_file) % 40 + 1;
        header.files = FileTemplate::parse("./d/%01x.bin").unwrap();
        let sample_len_bytes = header.fields[0].sample.len_bytes();
        let array = bytes(counts.iter().product::<u64>() as usize * sample_len_bytes, low);
        Writer::new(&path, header.clone(), WriteOptions::default()).unwrap().write(None, &[&array]).unwrap();
        let dataset = Dataset::open(&path).unwrap();
        let inside = |seed: u64| -> Point {
            std::array::from_fn(|axis| (seed >> (axis * 11)) % header.end[axis])
        };
        let (a, b) = (inside(low), inside(high));
        let query = Query {
            start: std::array::from_fn(|axis| a[axis].min(b[axis])),
            end: std::array::from_fn(|axis| a[axis].max(b[axis]) + 1),
            resolution: cut % levels,
            ..dataset.whole(0)
        };
        match dataset.grid(&query) {
            Ok(grid) => prop_assert_eq!(dataset.read(&query).unwrap(), picked(&header, &array, sample_len_bytes, &grid)),
            Err(error) => assert!(matches!(error, IdxError::EmptyBox { .. })),
        }
        prop_assert_eq!(dataset.read(&dataset.whole(0)).unwrap(), array);
    }
}

/// PIDX fails if offsets need more than 32 bits: this file has its table beyond 4 GiB of holes.
#[test]
fn offsets_beyond_4_gib() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("far.idx");
    let mut header = Header::new("far", &[4, 4], vec![Field::new("a", "uint16".parse().unwrap())]).unwrap();
    header.bitmask = Bitmask::parse("V0101").unwrap();
    header.bits_per_block = 2;
    // 40 bytes of record per block: the blocks themselves come after 8 GiB.
    header.blocks_per_file = 8 * (1 << 30) / 40;
    let array = bytes(32, 5);
    Writer::new(&path, header, WriteOptions::default()).unwrap().write(None, &[&array]).unwrap();
    assert!(std::fs::metadata(folder.path().join("far/0000.bin")).unwrap().len() > 1 << 33);
    let dataset = Dataset::open(&path).unwrap();
    assert_eq!(dataset.read(&dataset.whole(0)).unwrap(), array);
}
