//! Every kernel with every available library, at a tiny size: checks the contents of the files, not the speed.

use raddle_tune::kernel::{Api, Data, Kernel, ReadBack};
use raddle_tune::knob::{Knob, SettingValue, Settings};
use raddle_tune::worker::{KernelOutcome, Request, RunStage, carry_out};
use raddle_tune::{Result, TuneError};
use std::path::{Path, PathBuf};

/// The bundled HDF5, and Debian's 1.10 if installed.
fn libraries() -> Vec<Option<PathBuf>> {
    let debian = PathBuf::from("libhdf5_serial.so.103");
    let mut all = vec![None];
    match raddle_hdf5::dynamic::DynamicLibrary::load(&debian) {
        Ok(_) => all.push(Some(debian)),
        Err(error) => eprintln!("only the bundled HDF5 is tested: {error}"),
    }
    all
}

fn run(kernel: Kernel, settings: Settings, library: Option<PathBuf>) -> Result<KernelOutcome> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.h5");
    carry_out(&Request { kernel, settings, path, library, seed: 7, syncs: true, ranks: 1 })
}

fn occam(rows_per_write: u64, converts: bool) -> Kernel {
    Kernel::Occam { levels: 11, rows: 16, longitudes: 360, rows_per_write, converts, data: Data::default() }
}

fn many(reads: bool) -> Kernel {
    Kernel::Many { datasets: 50, elements: 16, attributes: 2, reads }
}

fn set(all: &[(Knob, SettingValue)]) -> Settings {
    all.iter().fold(Settings::default(), |settings, (knob, value)| settings.and(*knob, value.clone()))
}

const CHUNK: [u64; 3] = [11, 8, 90];

fn ior(api: Api, datasets: u64, read_back: Option<ReadBack>) -> Kernel {
    Kernel::Ior {
        api,
        burst_len_bytes: 4096,
        bursts: 4,
        blocks_per_burst: 1,
        divided: false,
        datasets,
        collective: false,
        read_back,
    }
}

#[test]
fn every_kernel_writes_what_it_says() {
    let kernels = [
        occam(8, false),
        occam(1, true),
        many(false),
        many(true),
        ior(Api::Hdf5, 3, None),
        ior(Api::Posix, 1, None),
        ior(Api::Posix, 1, Some(ReadBack::Shifted)),
        Kernel::Vpic { particles: 1000 },
        Kernel::Bdcats { particles: 1000, parts: 7 },
        Kernel::Amrex { levels: 2, boxes: 5, longest_edge: 5, components: 2 },
        Kernel::Random { pattern: 1, longest_len_bytes: 8192, datasets: 5, read_back: None },
        Kernel::Concat { inputs: 3, datasets: 2, rows: 100, columns: 5 },
        Kernel::Read { datasets: 2, rows: 100, columns: 5, rows_per_read: 7, shuffled: false },
        Kernel::Read { datasets: 2, rows: 100, columns: 5, rows_per_read: 100, shuffled: true },
    ];
    for library in libraries() {
        for kernel in &kernels {
            kernel.check().unwrap();
            let outcome = run(kernel.clone(), Settings::default(), library.clone()).unwrap();
            let reported = format!("{} with {}: {outcome:?}", kernel.name(), outcome.hdf5);
            let is_exact = !matches!(kernel, Kernel::Amrex { .. } | Kernel::Random { .. });
            assert!(outcome.file_len_bytes >= outcome.len_bytes || !is_exact, "{reported}");
            assert!(outcome.file_len_bytes > 1000 && outcome.wall_s() > 0.0 && outcome.cpu_s() > 0.0, "{reported}");
            let stages: Vec<RunStage> = outcome.stages.iter().map(|stage| stage.stage).collect();
            let ends = if kernel.read_back().is_some() { RunStage::Close } else { RunStage::Sync };
            assert!(stages.starts_with(&[RunStage::Open]) && stages.ends_with(&[ends]), "{reported}");
            assert!(stages.windows(2).any(|pair| pair == [RunStage::Close, RunStage::Sync]), "{reported}");
            let calls = outcome.calls.unwrap();
            let reads =
                matches!(kernel, Kernel::Bdcats { .. } | Kernel::Many { reads: true, .. } | Kernel::Read { .. });
            // The test harness may write a line at the same time.
            assert_eq!(calls.write < 4, reads, "{reported}");
            if *kernel == kernels[5] {
                assert!((4..8).contains(&calls.write) && outcome.file_len_bytes == 4 * 4096, "{reported}");
            }
        }
    }
}

#[test]
fn settings_are_found_in_the_file() {
    for library in libraries() {
        let settings = set(&[
            (Knob::Chunk, SettingValue::Shape(CHUNK.to_vec())),
            (Knob::Gzip, SettingValue::Whole(4)),
            (Knob::Shuffle, SettingValue::Flag(true)),
            (Knob::Fletcher32, SettingValue::Flag(true)),
            (Knob::ChunkCache, SettingValue::Whole(1 << 20)),
            (Knob::ChunkCacheSlots, SettingValue::Whole(1009)),
            (Knob::ChunkCachePreemption, SettingValue::Number(0.5)),
            (Knob::MetaBlock, SettingValue::Whole(65_536)),
            (Knob::SmallDataBlock, SettingValue::Whole(8192)),
            (Knob::Sieve, SettingValue::Whole(131_072)),
            (Knob::Alignment, SettingValue::Whole(4096)),
            (Knob::AlignmentThreshold, SettingValue::Whole(1024)),
            (Knob::MetadataCache, SettingValue::Whole(4 << 20)),
            (Knob::DeferFlush, SettingValue::Flag(true)),
            (Knob::Libver, SettingValue::Text("v110".to_owned())),
        ]);
        let outcome = run(occam(8, false), settings.clone(), library).unwrap();
        assert_eq!(outcome.found, settings, "{}", outcome.hdf5);
    }
}

#[test]
fn settings_have_their_effect() {
    for library in libraries() {
        let of = |kernel, all: &[(Knob, SettingValue)]| run(kernel, set(all), library.clone()).unwrap();
        let chunk = (Knob::Chunk, SettingValue::Shape(CHUNK.to_vec()));
        let plain = of(occam(8, false), std::slice::from_ref(&chunk));
        let compressed = of(occam(8, false), &[chunk.clone(), (Knob::Gzip, SettingValue::Whole(1))]);
        assert!(compressed.file_len_bytes * 2 < plain.file_len_bytes, "{plain:?} {compressed:?}");

        // A row at a time: without a cache, each chunk is written eight times.
        let cached =
            |len_bytes| of(occam(1, false), &[chunk.clone(), (Knob::ChunkCache, SettingValue::Whole(len_bytes))]);
        let (none, enough) = (cached(0).calls.unwrap(), cached(1 << 20).calls.unwrap());
        assert!(none.write > 2 * enough.write, "{none:?} {enough:?}");

        let aligned = Kernel::Ior {
            api: Api::Hdf5,
            burst_len_bytes: 1 << 17,
            bursts: 1,
            blocks_per_burst: 1,
            divided: false,
            datasets: 3,
            collective: false,
            read_back: None,
        };
        let outcome = of(aligned, &[(Knob::Alignment, SettingValue::Whole(1 << 20))]);
        assert_eq!(outcome.offset.map(|offset| offset % (1 << 20)), Some(0));

        let calls = |all: &[(Knob, SettingValue)]| of(many(false), all).calls.unwrap().write;
        assert!(calls(&[(Knob::Compact, SettingValue::Whole(8192))]) < calls(&[]));
        let paged = [(Knob::FilePage, SettingValue::Whole(65_536)), (Knob::PageBuffer, SettingValue::Whole(1 << 20))];
        assert!(calls(&paged) < calls(&[]));
    }
}

#[test]
fn szip_is_there_where_the_library_encodes_it() {
    for library in libraries() {
        let coded = [Knob::Szip, Knob::SzipEntropy].map(|knob| {
            let settings = set(&[(Knob::Chunk, SettingValue::Shape(CHUNK.to_vec())), (knob, SettingValue::Whole(8))]);
            match run(occam(8, false), settings.clone(), library.clone()) {
                Ok(outcome) => {
                    assert_eq!(outcome.found.get(knob), Some(&SettingValue::Whole(8)));
                    assert!(outcome.file_len_bytes < outcome.len_bytes, "{outcome:?}");
                    Some(outcome.file_len_bytes)
                }
                // Debian's HDF5 includes libaec.
                Err(error) => {
                    let error = error.to_string();
                    assert!(library.is_none() && error.contains("without this filter"), "{library:?}: {error}");
                    None
                }
            }
        });
        // Neighbours in a smooth field differ little: their differences need fewer bits.
        assert!(coded[0] <= coded[1], "{coded:?}");
    }
}

#[test]
fn another_zlib_is_one_that_the_library_was_loaded_with() {
    let gzip = |zlib: &str, library| {
        let settings = [
            (Knob::Chunk, SettingValue::Shape(CHUNK.to_vec())),
            (Knob::Gzip, SettingValue::Whole(1)),
            (Knob::Zlib, SettingValue::Text(zlib.to_owned())),
        ];
        run(occam(8, false), set(&settings), library)
    };
    let error = gzip("/absent/libz.so.1", None).unwrap_err().to_string();
    assert!(error.contains("brings its own zlib"), "{error}");
    for library in libraries().into_iter().flatten() {
        let error = gzip("/absent/libz.so.1", Some(library.clone())).unwrap_err().to_string();
        assert!(error.contains("not loaded in place of libz"), "{error}");
        let plain = run(occam(8, false), Settings::default(), Some(library)).unwrap();
        assert!(plain.zlib.is_some_and(|version| version.starts_with("1.")));
    }
}

#[test]
fn the_same_seed_gives_the_same_file() {
    for kernel in [occam(8, false), many(false)] {
        let written = |seed| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("run.h5");
            let request = Request {
                kernel: kernel.clone(),
                settings: Settings::default(),
                path,
                library: None,
                seed,
                syncs: false,
                ranks: 1,
            };
            let outcome = carry_out(&request).unwrap();
            assert!(outcome.stages.iter().all(|stage| stage.stage != RunStage::Sync));
            std::fs::read(&request.path).unwrap()
        };
        // Objects store their creation time in seconds, so lengths alone would not distinguish these files.
        let (first, second, other) = (written(1), written(1), written(2));
        assert_eq!(first.len(), second.len());
        assert!(differing(&first, &second) < differing(&first, &other), "{}", kernel.name());
    }
}

fn differing(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).filter(|(a, b)| a != b).count()
}

#[test]
fn unavailable_values_are_reported() {
    let latest = set(&[(Knob::CollectiveMetadata, SettingValue::Flag(true))]);
    let error = run(many(false), latest, None).unwrap_err();
    assert!(matches!(error, TuneError::NotApplicable { .. }), "{error}");
    let absent = run(many(false), Settings::default(), Some(PathBuf::from("/absent/libhdf5.so"))).unwrap_err();
    assert!(absent.to_string().contains("/absent/libhdf5.so"), "{absent}");
    let request = Request {
        kernel: many(false),
        settings: Settings::default(),
        path: Path::new("/absent/folder/run.h5").to_path_buf(),
        library: None,
        seed: 1,
        syncs: true,
        ranks: 1,
    };
    let error = carry_out(&request).unwrap_err().to_string();
    assert!(error.contains("H5Fcreate") && error.contains("No such file"), "{error}");
}
