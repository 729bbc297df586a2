//! Simulated merges: the work of all ranks adds up to the plan, and nothing is written.

use crate::folder::names;
use crate::ranks::{merge_by, numbers as files_of_numbers};
use crate::watched::watched;
use raddle_core::cancel::CancelToken;
use raddle_core::ranks::communicator::{Communicator, Rank};
use raddle_core::ranks::threads::Threads;
use raddle_core::report::progress::Silent;
use raddle_merge::simulate::{Rates, SimulatedInputs, SimulatedMachine, Simulation, Spread, Statistic, simulate};
use raddle_merge::{MergeOptions, ReadBy, Strategy, Watch, plan};
use raddle_testing::plain::{self, numbers};
use raddle_testing::spec::{DatasetSpec, FileSpec, FilterSpec, ObjectSpec};
use std::sync::Mutex;

const RATES: Rates = Rates {
    narrow_inflate_bytes_per_s: 400e6,
    narrow_deflate_bytes_per_s: 160e6,
    wide_inflate_bytes_per_s: 10e9,
    wide_deflate_bytes_per_s: 10e9,
    read_bytes_per_s: None,
    write_bytes_per_s: None,
    opens_per_s: None,
    network_bytes_per_s: 1e9,
    message_s: 1e-5,
    scan_object_s: 1e-5,
    commit_dataset_s: 5e-5,
    commit_chunk_s: 1e-6,
};

fn machine(ranks: usize) -> SimulatedMachine {
    SimulatedMachine { ranks, threads: 1, ranks_per_machine: 0, memory_limit_bytes: 1 << 30, rates: RATES }
}

fn run(inputs: SimulatedInputs<'_>, files: u32, machine: SimulatedMachine) -> Simulation {
    watched(|watch| simulate(inputs, Some(files), machine, Strategy::Auto, &MergeOptions::new(""), watch)).unwrap()
}

fn total(spread: Spread, ranks: usize) -> u64 {
    (spread.mean * ranks as f64).round() as u64
}

#[test]
fn files_are_repeated_and_their_tiles_assigned_once() {
    let folder = tempfile::tempdir().unwrap();
    let column = |rows: u64, path: &str| {
        let values = (0..rows as u32).flat_map(|row| (row * row).to_le_bytes()).collect();
        DatasetSpec::plain(numbers::u32(), &[rows, 1], values).chunked(&[64, 1], &[FilterSpec::Deflate(6)]).at(path)
    };
    let file = |rows| FileSpec {
        objects: vec![ObjectSpec::group("/t"), column(rows, "/t/a"), column(rows, "/t/b"), column(0, "/t/none")],
        ..FileSpec::default()
    };
    let inputs = plain::make_all(folder.path(), &[file(1000), file(300)]).unwrap();
    let before = names(folder.path());
    for ranks in [1, 3, 8] {
        let done = run(SimulatedInputs::Files(&inputs), 500, machine(ranks));
        assert_eq!((done.files, done.datasets, done.empty_datasets), (500, 3, 1));
        assert_eq!((done.pairs, done.pairs_with_rows), (1500, 1000));
        let rows = 250 * 1300;
        assert_eq!(done.raw_len_bytes, rows * 2 * 4);
        assert_eq!(total(done.ranks.raw_len_bytes, ranks), done.raw_len_bytes);
        assert_eq!(total(done.ranks.tiles, ranks), done.tiles);
        let expected_s = done.raw_len_bytes as f64 * (1.0 / 400e6 + 1.0 / 160e6);
        assert!((done.ranks.encode_s.mean * ranks as f64 / expected_s - 1.0).abs() < 1e-6);
        assert!(done.predicted.execute_s >= done.ranks.encode_s.most && done.predicted.wait_s >= 0.0);
        assert!(done.ranks.inputs.most <= 500.0 && done.engine_len_bytes <= 1 << 30);
        // Without a rate for opening files, reading by tiles is chosen.
        let by_tiles = done.readings[0];
        assert!(by_tiles.by == ReadBy::Tiles && by_tiles.is_chosen && by_tiles.sent_len_bytes == 0, "{by_tiles:?}");
        assert_eq!(done.readings.len(), if ranks == 1 { 1 } else { 2 });
    }
    // Without repetition, the same files are planned as in a merge.
    let once = run(SimulatedInputs::Files(&inputs), 2, machine(2));
    let planned = watched(|watch| plan(&inputs, &MergeOptions::new(""), watch)).unwrap();
    assert_eq!((once.tiles, once.raw_len_bytes), (planned.tiles.tile_count(), planned.logical_len_bytes()));
    assert_eq!(once.input_len_bytes, planned.input_len_bytes());
    assert_eq!(names(folder.path()), before, "nothing is written");
}

#[test]
fn a_statistic_makes_a_plan_of_its_size() {
    let statistic = Statistic::NOVA_ND;
    let done = run(SimulatedInputs::Stated(statistic), 12, machine(40));
    assert_eq!((done.statistic, done.datasets), (Some("NOvA-ND"), 15_973));
    assert_eq!(done.empty_datasets, 13_396);
    assert_eq!(done.pairs_with_rows, 12 * (15_973 - 13_396));
    let share = 12.0 / f64::from(statistic.files);
    let raw = (statistic.narrow_len_bytes.0 + statistic.wide_len_bytes.0) as f64 * share;
    assert!((done.raw_len_bytes as f64 / raw - 1.0).abs() < 0.15, "{} of {raw}", done.raw_len_bytes);
    assert!(done.ranks.dealt_cost.imbalance() < 0.05, "{:?}", done.ranks.dealt_cost);
    assert!(done.ranks.encode_s.imbalance() < 0.10, "{:?}", done.ranks.encode_s);
    // Repeating the simulation gives the same result.
    let again = run(SimulatedInputs::Stated(statistic), 12, machine(40));
    assert_eq!((again.ranks, again.rounds, again.readings), (done.ranks, done.rounds, done.readings));
}

#[test]
fn reading_by_files_opens_fewer_and_sends_what_others_need() {
    let rates = Rates { opens_per_s: Some(20.0), ..RATES };
    let machine = SimulatedMachine { ranks_per_machine: 10, rates, ..machine(40) };
    let done = run(SimulatedInputs::Stated(Statistic::NOVA_ND), 160, machine);
    let [by_tiles, by_machine, by_all] = done.readings.as_slice() else { panic!("{:?}", done.readings) };
    assert_eq!([by_tiles, by_machine, by_all].map(|way| way.ranks_per_group), [1, 10, 40]);
    assert_eq!([by_tiles, by_machine, by_all].map(|way| way.by), [ReadBy::Tiles, ReadBy::Files, ReadBy::Files]);
    assert!(by_tiles.inputs.least > 100.0 && by_tiles.opens > 4000, "{by_tiles:?}");
    // Each node opens each input at most once, and each rank a tenth of them.
    assert!(by_machine.opens <= 640 && by_machine.inputs.most <= 20.0, "{by_machine:?}");
    assert_eq!((by_all.opens, by_all.inputs.most), (160, 4.0));
    assert_eq!(by_tiles.open_s, by_tiles.opens as f64 / 20.0);
    let raw_len_bytes = done.raw_len_bytes as f64;
    for way in [by_machine, by_all] {
        assert!(way.sent_len_bytes as f64 > 0.5 * raw_len_bytes && (way.sent_len_bytes as f64) < raw_len_bytes);
        assert!(way.messages > 0 && way.messages <= (40 * (way.ranks_per_group as u64 - 1)) * (done.rounds + 2));
        assert!(way.execute_s < by_tiles.execute_s);
    }
    assert_eq!(done.readings.iter().filter(|way| way.is_chosen).count(), 1);
    assert!(!by_tiles.is_chosen);
    let inflated = done.ranks.read_len_bytes.mean * 40.0;
    assert!(inflated > 0.0 && total(done.ranks.raw_len_bytes, 40) == done.raw_len_bytes);
}

#[test]
fn ranks_without_room_to_read_for_others_are_simulated_reading_for_themselves() {
    let small = SimulatedMachine { memory_limit_bytes: 128 << 20, ..machine(16) };
    let run = |strategy| {
        let inputs = SimulatedInputs::Stated(Statistic::NOVA_ND);
        watched(|watch| simulate(inputs, Some(16), small, strategy, &MergeOptions::new(""), watch))
    };
    let ways: Vec<ReadBy> = run(Strategy::Auto).unwrap().readings.iter().map(|way| way.by).collect();
    assert_eq!(ways, [ReadBy::Tiles]);
    assert!(run(Strategy::Files(None)).unwrap_err().to_string().contains("memory"));
}

/// The published size: about 83 million pairs of input and dataset.
#[test]
#[ignore = "make soak"]
fn the_published_size_is_planned_within_4_gib_and_assigned_evenly() {
    // Rates of one core of the machine whose report is in the docs.
    let rates = Rates {
        narrow_inflate_bytes_per_s: 181e6,
        narrow_deflate_bytes_per_s: 60.7e6,
        wide_inflate_bytes_per_s: 4.21e9,
        wide_deflate_bytes_per_s: 4.23e9,
        ..RATES
    };
    let done = run(SimulatedInputs::Stated(Statistic::NOVA_FD), 6400, SimulatedMachine { rates, ..machine(1600) });
    assert_eq!(done.pairs, 6400 * 12_931);
    assert!(done.ranks.encode_s.imbalance() <= 0.05, "{:?}", done.ranks.encode_s);
    assert!(done.planner.peak_rss_bytes.is_some_and(|len_bytes| len_bytes < 4 << 30), "{:?}", done.planner);
}

#[test]
fn a_rank_too_small_for_its_largest_tile_is_an_error() {
    let small = SimulatedMachine { memory_limit_bytes: 1 << 20, ..machine(4) };
    let inputs = SimulatedInputs::Stated(Statistic::NOVA_ND);
    let refused = watched(|watch| simulate(inputs, Some(2), small, Strategy::Tiles, &MergeOptions::new(""), watch));
    assert!(refused.unwrap_err().to_string().contains("memory"));
}

/// Communicator that counts the bytes that a rank sends to the first rank, one number per exchange.
#[derive(Debug)]
struct Counted<'a> {
    ranks: &'a dyn Communicator,
    sent_len_bytes: Mutex<Vec<u64>>,
}

impl Communicator for Counted<'_> {
    fn rank(&self) -> Rank {
        self.ranks.rank()
    }

    fn size(&self) -> usize {
        self.ranks.size()
    }

    fn barrier(&self) -> raddle_core::error::Result<()> {
        self.ranks.barrier()
    }

    fn all_gather_bytes(&self, send: &[u8]) -> raddle_core::error::Result<Vec<Vec<u8>>> {
        self.ranks.all_gather_bytes(send)
    }

    fn exchange_bytes(&self, send: Vec<Vec<u8>>) -> raddle_core::error::Result<Vec<Vec<u8>>> {
        self.sent_len_bytes.lock().unwrap().push(send[0].len() as u64);
        self.ranks.exchange_bytes(send)
    }
}

#[test]
fn rank_0_receives_as_many_bytes_as_ranks_send_it() {
    let folder = tempfile::tempdir().unwrap();
    let (inputs, options) = files_of_numbers(folder.path(), 3, 40);
    let options = MergeOptions { jobs: 1, force: true, ..options };
    for size in [2, 3] {
        let sent: Vec<Vec<u64>> = Threads::run(size, |ranks| {
            let counted = Counted { ranks, sent_len_bytes: Mutex::default() };
            merge_by(&counted, &inputs, &options, &Watch { observer: &Silent, cancel: &CancelToken::new() }).unwrap();
            counted.sent_len_bytes.into_inner().unwrap()
        });
        let machine = SimulatedMachine { memory_limit_bytes: options.memory_limit_bytes, ..machine(size) };
        let done =
            watched(|watch| simulate(SimulatedInputs::Files(&inputs), None, machine, Strategy::Tiles, &options, watch));
        let done = done.unwrap();
        // One exchange per round; the last exchange gathers the digests after all rounds.
        let of_rounds: Vec<&[u64]> = sent.iter().map(|sent| &sent[..sent.len() - 1]).collect();
        assert_eq!(of_rounds[0].len() as u64, done.rounds);
        let reported: u64 = of_rounds.concat().iter().sum();
        assert_eq!(done.claims_len_bytes, reported, "{size} ranks");
    }
}
