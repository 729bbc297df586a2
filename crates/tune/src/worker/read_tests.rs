//! Tests that a run of any kernel and interface fails if it reads values that differ from those written.

use super::clock::Clock;
use super::{Abilities, Kernel, KernelRun, Phase, Request, Team, TranslatedSettings, carry_out};
use crate::kernel::{Api, ReadBack};
use crate::knob::Settings;
use crate::worker::RunStage;
use raddle_hdf5::dynamic::DynamicLibrary;
use std::path::Path;

fn ior(api: Api, read_back: ReadBack) -> Kernel {
    let datasets = if api == Api::Hdf5 { 2 } else { 1 };
    Kernel::Ior {
        api,
        burst_len_bytes: 4096,
        bursts: 5,
        blocks_per_burst: 3,
        divided: false,
        datasets,
        collective: false,
        read_back: Some(read_back),
    }
}

fn random() -> Kernel {
    Kernel::Random { pattern: 3, longest_len_bytes: 8192, datasets: 4, read_back: Some(ReadBack::Random) }
}

/// Returns kernels that read, with the order of each.
fn readers() -> Vec<Kernel> {
    vec![
        ior(Api::Posix, ReadBack::Shifted),
        ior(Api::Hdf5, ReadBack::Shifted),
        ior(Api::Hdf5, ReadBack::Random),
        random(),
        Kernel::Bdcats { particles: 1000, parts: 7 },
        Kernel::Many { datasets: 5, elements: 300, attributes: 1, reads: true },
        Kernel::Read { datasets: 2, rows: 100, columns: 5, rows_per_read: 7, shuffled: true },
    ]
}

/// Writes with `kernel`, changes one byte of a value in the middle of the file, and reads.
fn read_of_changed_file(kernel: &Kernel, folder: &Path, is_changed: bool) -> Result<(), String> {
    let path = folder.join("run.h5");
    let chosen = DynamicLibrary::bundled();
    let abilities = Abilities { version: chosen.version(), filters: chosen.filters(), ranks: None, zlib: None };
    let settings = TranslatedSettings::of(&Settings::default(), &abilities).unwrap();
    let run =
        KernelRun { chosen: &chosen, kernel: kernel.clone(), settings, path: &path, seed: 5, team: Team::alone() };
    run.prepare().unwrap();
    let mut clock = Clock::default();
    if kernel.read_back().is_some()
        && let Some(done) = run.work(&mut clock).unwrap()
    {
        done.file.close().unwrap();
    }
    let mut bytes = std::fs::read(&path).unwrap();
    if is_changed {
        // Values of these kernels are close to 1: the last byte of a value holds the exponent, and so does the one
        // before.
        let place = (bytes.len() / 2..bytes.len()).find(|place| {
            let is_f64 = kernel.read_back().is_some() || matches!(kernel, Kernel::Many { .. });
            let exponents: &[u8] = if is_f64 { &[0x3f, 0x40] } else { &[0x3f, 0x40, 0xbf, 0xc0] };
            place % 8 == 7 && exponents.contains(&bytes[*place])
        });
        bytes[place.expect("a value in the second half of the file") - 1] ^= 1;
        std::fs::write(&path, bytes).unwrap();
    }
    match kernel.read_back() {
        Some(order) => run.read_back(order, &mut clock).map_err(|error| error.to_string()),
        None => match run.work(&mut clock) {
            Ok(done) => done.unwrap().file.close().map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        },
    }
}

#[test]
fn a_changed_byte_fails_the_run() {
    for kernel in readers() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read_of_changed_file(&kernel, folder.path(), false), Ok(()), "{kernel:?}");
        let folder = tempfile::tempdir().unwrap();
        let error = read_of_changed_file(&kernel, folder.path(), true).expect_err("a value differs");
        assert!(error.contains("was written"), "{kernel:?}: {error}");
    }
}

#[test]
fn writing_and_reading_are_distinguished() {
    for kernel in readers() {
        let folder = tempfile::tempdir().unwrap();
        let request = Request {
            kernel: kernel.clone(),
            settings: Settings::default(),
            path: folder.path().join("run.h5"),
            library: None,
            seed: 1,
            syncs: false,
            ranks: 1,
        };
        let outcome = carry_out(&request).unwrap();
        let reads = outcome.reads.expect("Linux counts what is read");
        let data_len_bytes = outcome.file_len_bytes.min(outcome.len_bytes);
        assert!(reads.len_bytes >= data_len_bytes / 2, "{kernel:?}: {reads:?} of {data_len_bytes}");
        let has = |phase, stage| outcome.stages.iter().any(|time| (time.phase, time.stage) == (phase, stage));
        if kernel.read_back().is_some() {
            let (write, read) = (Some(Phase::Write), Some(Phase::Read));
            for stage in [RunStage::Open, RunStage::Close] {
                assert!(has(write, stage) && has(read, stage), "{kernel:?}: {:?}", outcome.stages);
            }
            assert!(
                has(write, RunStage::Write) && has(read, RunStage::Read) && !has(read, RunStage::Write),
                "{kernel:?}"
            );
        } else {
            assert!(has(None, RunStage::Read) && outcome.stages.iter().all(|time| time.phase.is_none()), "{kernel:?}");
        }
    }
}
