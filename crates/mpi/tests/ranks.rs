//! Tests that the communicator over MPI conforms, with any number of ranks, and that ranks that leave the common path
//! end all. This program starts itself under `mpirun` (or the command in `RADDLE_MPIRUN`) and is then one of the ranks.

use raddle_core::CoreError;
use raddle_core::engine::{OutputRun, SharedFiles};
use raddle_core::ranks::communicator::{Communicator, CommunicatorExt};
use raddle_core::ranks::conformance;
use raddle_mpi::{MpiCommunicator, MpiError, MpiFiles, World, launcher};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Output, Stdio};
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    match launcher::launched() {
        Some(launched) => rank(&launched),
        None => {
            start_all();
            ExitCode::SUCCESS
        }
    }
}

/// Returns the tested part, which is an argument of the ranks.
fn part() -> String {
    std::env::args().nth(1).unwrap_or_default()
}

/// Runs one rank of a test.
fn rank(launched: &launcher::LauncherInfo) -> ExitCode {
    let world = World::join(launched).expect("join");
    let ranks = world.communicator();
    assert_eq!((Some(ranks.rank()), Some(ranks.size())), (launched.rank, launched.size));
    let name = format!("rank {}", ranks.rank());
    let last = ranks.rank() + 1 == ranks.size();
    let (mut code, mut patience) = (0, None);
    match part().as_str() {
        "conform" => conformance::all(ranks),
        "pieces" => pieces(),
        "files" => files(),
        // The last rank fails while the others wait for it in a collective.
        "early" if last => (code, patience) = (5, Some(Duration::from_millis(500))),
        "early" => ranks.barrier().expect("never"),
        // All ranks have agreed on an error.
        "agreed" => {
            ranks.agree("test", if last { Err(CoreError::Cancelled) } else { Ok(()) }).expect_err("all fail");
            (code, patience) = (5, Some(Duration::from_secs(60)));
        }
        other => panic!("{other}"),
    }
    let received = world.end(name.as_bytes(), patience, code, || eprintln!("{name} gives up"));
    for (rank, words) in received.iter().enumerate() {
        assert_eq!(String::from_utf8_lossy(words), format!("rank {rank}"));
    }
    if name == "rank 0" && code != 0 {
        // Otherwise the others would end before.
        std::thread::sleep(Duration::from_millis(300));
        eprintln!("{} ranks end", received.len());
    }
    world.close();
    ExitCode::from(code)
}

/// Tests that messages split into pieces arrive complete, even with pieces of one byte.
fn pieces() {
    // The world of this process is already joined; its communicator is recreated with other limits.
    use mpi::traits::Communicator as _;
    let all = mpi::topology::SimpleCommunicator::world();
    for limit in [1, 7, 1000, 1 << 20] {
        let ranks = MpiCommunicator::among(&all).with_piece_limit(limit * all.size() as usize);
        let (rank, size) = (ranks.rank(), ranks.size());
        let message = |from: usize, to: usize| -> Vec<u8> {
            (0..(from * 70 + to * 40) * limit.min(5)).map(|at| (at * 7 + from + to) as u8).collect()
        };
        let gathered = ranks.all_gather_bytes(&message(rank, 0)).expect("all_gather_bytes");
        assert!(gathered.iter().enumerate().all(|(from, got)| *got == message(from, 0)), "limit {limit}");
        let send = (0..size).map(|to| message(rank, to)).collect();
        let got = ranks.exchange_bytes(send).expect("exchange_bytes");
        assert!(got.iter().enumerate().all(|(from, got)| *got == message(from, rank)), "limit {limit}");
    }
}

/// Tests that runs written collectively arrive complete, even if they are split into steps of a few bytes, in any
/// order, with gaps, and by some ranks only.
fn files() {
    let all = mpi::topology::SimpleCommunicator::world();
    let ranks = MpiCommunicator::among(&all);
    let (rank, size) = (ranks.rank(), ranks.size());
    let path = std::env::args().nth(2).map(PathBuf::from).expect("a path");
    let hints = [("romio_cb_write", "enable"), ("cb_buffer_size", "4096"), ("no_such_hint", "at all")];
    let hints = hints.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let long = [("k".repeat(1000), "1".to_owned())];
    assert!(matches!(MpiFiles::new(&ranks, &long), Err(MpiError::Hint { .. })));
    let content: Vec<u8> = (0..40_000_u32).map(|at| (at % 251) as u8).collect();
    for limit in [1 << 20, 1000, 50_000] {
        if rank == 0 {
            // The bytes between the runs must be preserved, within the file and after its end.
            std::fs::write(&path, [9; 15_000]).expect("the file");
        }
        ranks.barrier().expect("barrier");
        let files = MpiFiles::new(&ranks, &hints).expect("hints").with_step_limit(limit);
        let sink = files.open(&path).expect("open");
        for round in 0..4_usize {
            // The first rank has nothing in the third round.
            let is_local = |number: usize| match size {
                1 => round != 2,
                _ if round == 2 => 1 + number % (size - 1) == rank,
                _ => number * 5 % size == rank,
            };
            let local_numbers = (0..50).rev().filter(|number| is_local(*number));
            let runs = local_numbers.map(|number| {
                let (start, end) = (round * 10_000 + number * 200, round * 10_000 + number * 200 + 50 + number * 3);
                OutputRun { file: 0, address: 5 + start as u64, bytes: &content[start..end] }
            });
            sink.write_together(&runs.collect::<Vec<_>>()).expect("write");
        }
        assert_eq!(sink.describe().interface, "MPI-IO");
        sink.finish().expect("finish");
        ranks.barrier().expect("barrier");
        let mut right = vec![9; 5];
        let before = |at: usize| if 5 + at < 15_000 { 9 } else { 0 };
        for (at, byte) in content.iter().enumerate() {
            let (round, number, within) = (at / 10_000, at % 10_000 / 200, at % 200);
            let is_written = within < 50 + number * 3 && !(size == 1 && round == 2);
            right.push(if is_written { *byte } else { before(at) });
        }
        let mut got = std::fs::read(&path).expect("the file");
        got.resize(right.len(), 0);
        let differs = got.iter().zip(&right).position(|(got, right)| got != right);
        assert_eq!((differs, got.len()), (None, right.len()), "limit {limit}");
        // The first rank recreates the file once all have read it.
        ranks.barrier().expect("barrier");
    }
    // Lost data is reported by the rank that wrote it.
    let sink = MpiFiles::new(&ranks, &[]).expect("hints");
    let sink = sink.open(&path).expect("open");
    let bytes = [rank as u8; 100];
    sink.write_together(&[OutputRun { file: 0, address: 100 * rank as u64, bytes: &bytes }]).expect("write");
    ranks.barrier().expect("barrier");
    if rank == 0 {
        let file = std::fs::OpenOptions::new().write(true).open(&path).expect("the file");
        std::os::unix::fs::FileExt::write_all_at(&file, &[77], 100 * size as u64 - 1).expect("damage");
    }
    ranks.barrier().expect("barrier");
    assert_eq!(sink.finish().is_err(), rank + 1 == size);
    // There is no file to open.
    let nothing = MpiFiles::new(&ranks, &[]).expect("hints").open(&path.with_extension("none")).map(|_| ());
    assert_eq!(nothing.expect_err("no such file").kind(), std::io::ErrorKind::NotFound);
}

/// Runs this program on `size` ranks; returns `None` if there is no `mpirun`.
fn start(size: usize, part: &str) -> Option<Output> {
    let mpirun = std::env::var_os("RADDLE_MPIRUN").unwrap_or_else(|| "mpirun".into());
    let mut command = Command::new(mpirun);
    command.arg("-n").arg(size.to_string()).arg(std::env::current_exe().expect("own path")).arg(part);
    command.arg(scratch());
    // Required by Open MPI to run as root and with more ranks than cores; ignored by others.
    for (name, value) in [
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ] {
        command.env(name, value);
    }
    command.stdin(Stdio::null()).output().ok()
}

/// Returns the path of a file that is specific to this run.
fn scratch() -> PathBuf {
    std::env::temp_dir().join(format!("raddle-mpi-{}", std::process::id()))
}

fn start_all() {
    if start(1, "conform").is_none() {
        println!("skipped: no mpirun");
        return;
    }
    for size in [1, 2, 3, 4, 7] {
        for part in ["conform", "pieces", "files"] {
            let output = start(size, part).expect("mpirun");
            assert!(output.status.success(), "{part} on {size} ranks: {output:?}");
        }
        let started = Instant::now();
        let agreed = start(size, "agreed").expect("mpirun");
        let received = String::from_utf8_lossy(&agreed.stderr).into_owned();
        assert!(agreed.status.code() == Some(5) && !received.contains("gives up"), "{agreed:?}");
        assert!(received.contains(&format!("{size} ranks end")), "{received}");
        if size > 1 {
            let early = start(size, "early").expect("mpirun");
            let received = String::from_utf8_lossy(&early.stderr).into_owned();
            assert!(early.status.code() == Some(5), "{early:?}");
            assert!(received.contains(&format!("rank {} gives up", size - 1)), "{received}");
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
        println!("{size} ranks: well");
    }
    // Only a failed run leaves anything else behind.
    let _ = std::fs::remove_file(scratch());
}
