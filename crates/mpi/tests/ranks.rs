//! The communicator over MPI conforms, with any number of ranks; and ranks that go their own way end all. This program
//! starts itself under `mpirun` (or what `RADDLE_MPIRUN` names) and is then one of the ranks.

use raddle_core::communicator::{Communicator, CommunicatorExt};
use raddle_core::conformance;
use raddle_mpi::{MpiCommunicator, World, launcher};
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

/// What is tested; an argument of the ranks.
fn part() -> String {
    std::env::args().nth(1).unwrap_or_default()
}

/// One rank of a test.
fn rank(launched: &launcher::Launched) -> ExitCode {
    let world = World::join(launched).expect("join");
    let ranks = world.communicator();
    assert_eq!((Some(ranks.rank()), Some(ranks.size())), (launched.rank, launched.size));
    let own = format!("rank {}", ranks.rank());
    let last = ranks.rank() + 1 == ranks.size();
    let (mut code, mut patience) = (0, None);
    match part().as_str() {
        "conform" => conformance::all(ranks),
        "pieces" => pieces(),
        // The last rank fails while the others wait for it in a collective.
        "early" if last => (code, patience) = (5, Some(Duration::from_millis(500))),
        "early" => ranks.barrier().expect("never"),
        // All have agreed on an error.
        "agreed" => {
            ranks.agree("test", if last { Err("no") } else { Ok(()) }).expect_err("all fail");
            (code, patience) = (5, Some(Duration::from_secs(60)));
        }
        other => panic!("{other}"),
    }
    let told = world.end(own.as_bytes(), patience, code, || eprintln!("{own} gives up"));
    for (rank, words) in told.iter().enumerate() {
        assert_eq!(String::from_utf8_lossy(words), format!("rank {rank}"));
    }
    if own == "rank 0" && code != 0 {
        // The others would end before.
        std::thread::sleep(Duration::from_millis(300));
        eprintln!("{} ranks end", told.len());
    }
    world.close();
    ExitCode::from(code)
}

/// Messages that are cut into pieces arrive whole; also where the pieces are of one byte.
fn pieces() {
    // The world of this process was joined; its communicator is made again with other limits.
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

/// Runs this program on `size` ranks; `None` where there is no `mpirun`.
fn start(size: usize, part: &str) -> Option<Output> {
    let mpirun = std::env::var_os("RADDLE_MPIRUN").unwrap_or_else(|| "mpirun".into());
    let mut command = Command::new(mpirun);
    command.arg("-n").arg(size.to_string()).arg(std::env::current_exe().expect("own path")).arg(part);
    // What Open MPI asks for to run as root and with more ranks than cores; others do not look.
    for (name, value) in [
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
    ] {
        command.env(name, value);
    }
    command.stdin(Stdio::null()).output().ok()
}

fn start_all() {
    if start(1, "conform").is_none() {
        println!("skipped: no mpirun");
        return;
    }
    for size in [1, 2, 3, 4, 7] {
        for part in ["conform", "pieces"] {
            let output = start(size, part).expect("mpirun");
            assert!(output.status.success(), "{part} on {size} ranks: {output:?}");
        }
        let started = Instant::now();
        let agreed = start(size, "agreed").expect("mpirun");
        let told = String::from_utf8_lossy(&agreed.stderr).into_owned();
        assert!(agreed.status.code() == Some(5) && !told.contains("gives up"), "{agreed:?}");
        assert!(told.contains(&format!("{size} ranks end")), "{told}");
        if size > 1 {
            let early = start(size, "early").expect("mpirun");
            let told = String::from_utf8_lossy(&early.stderr).into_owned();
            assert!(early.status.code() == Some(5), "{early:?}");
            assert!(told.contains(&format!("rank {} gives up", size - 1)), "{told}");
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
        println!("{size} ranks: well");
    }
}
