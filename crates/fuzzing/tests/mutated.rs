//! Runs every target on its seeds and mutated copies: no panic, no slow case, no large memory request. `make soak` runs
//! the long version, `make fuzz` the one guided by coverage.

use raddle_fuzzing::mutate::mutated;
use raddle_fuzzing::{TARGETS, Target};
use raddle_hdf5::child::{OwnProgram, serve};
use raddle_testing::requests::LargestRequest;
use raddle_testing::strategy::Draw;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: LargestRequest = LargestRequest::new();

/// The engine may use 32 MiB in the target `merge`; all others need far less.
const MAX_REQUEST_BYTES: u64 = 48 << 20;

/// No case takes a tenth of this, but the machine may be busy.
const MAX_CASE: Duration = Duration::from_secs(20);

/// Runs one target at a time, so that the largest request is attributed to it.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

fn seed_of_draws() -> u64 {
    std::env::var("PROPTEST_RNG_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1)
}

fn check(target: &Target, cases: u32) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(|poison| poison.into_inner());
    declare_reader();
    let seeds = (target.seeds)();
    assert!(!seeds.is_empty());
    let mut draw = Draw::new(seed_of_draws());
    let changed: Vec<Vec<u8>> = (0..cases).map(|_| mutated(&seeds, &mut draw)).collect();
    for input in seeds.iter().chain(&changed) {
        ALLOCATOR.reset();
        let started = Instant::now();
        let outcome = catch_unwind(AssertUnwindSafe(|| (target.run)(input)));
        let (elapsed, largest) = (started.elapsed(), ALLOCATOR.len_bytes());
        let failed = outcome.is_err() || elapsed > MAX_CASE || largest > MAX_REQUEST_BYTES;
        assert!(!failed, "{}: {elapsed:?}, request of {largest} bytes, input:\n{}", target.name, input.escape_ascii());
    }
}

macro_rules! targets {
    ($($name:ident)*) => {
        mod quick {
            $(#[test]
            fn $name() {
                let target = super::target(stringify!($name));
                super::check(target, target.quick_cases);
            })*
        }
        mod soak {
            $(#[test]
            #[ignore = "make soak"]
            fn $name() {
                let target = super::target(stringify!($name));
                super::check(target, target.quick_cases * 50);
            })*
        }
        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

targets! { pipeline deflate encode file edited_file library merge digests journal protocol idx_header idx_blocks index zarr_folder tree stream event_file arguments }

/// The reader process of other tests; not a test itself.
#[test]
#[ignore = "runs as the child process of other tests"]
fn reader_child() {
    // Skipped if all ignored tests run, because it would lower the limits of the process.
    if std::env::args().any(|argument| argument == "reader_child") {
        serve().unwrap();
    }
}

/// Registers this executable as the reader process of the targets that start one.
fn declare_reader() {
    let arguments = ["reader_child", "--exact", "--ignored", "--nocapture"].map(Into::into).to_vec();
    OwnProgram { executable: std::env::current_exe().unwrap(), arguments }.declare();
}

fn target(name: &str) -> &'static Target {
    TARGETS.iter().find(|target| target.name == name).unwrap()
}

#[test]
fn every_target_is_run_here_and_under_the_fuzzer() {
    let listed: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    assert_eq!(listed, NAMES);
    let manifest = include_str!("../../../fuzz/Cargo.toml");
    for name in listed {
        assert!(manifest.contains(&format!("name = \"{name}\"\n")), "fuzz/ lacks {name}");
    }
}
