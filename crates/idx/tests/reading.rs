//! Reading on several threads and ranks gives the values of a single thread, and errors reach all ranks.

use proptest::prelude::*;
use raddle_core::CoreError;
use raddle_core::cancel::CancelToken;
use raddle_core::ranks::threads::Threads;
use raddle_idx::dataset::bitmask::Point;
use raddle_idx::dataset::compression::BlockFault;
use raddle_idx::dataset::template::FileTemplate;
use raddle_idx::{Dataset, Field, Header, IdxError, Query, Readers, WriteOptions, Writer};
use std::path::Path;

fn write(folder: &Path, header: &Header, seed: u64) -> Dataset {
    let samples: u64 = (0..5).map(|axis| header.end[axis] - header.start[axis]).product();
    let array: Vec<u8> = (0..samples * header.fields[0].sample.len_bytes() as u64)
        .map(|at| ((at / 3).wrapping_mul(seed | 1) >> 3) as u8)
        .collect();
    let path = folder.join("d.idx");
    Writer::new(&path, header.clone(), WriteOptions::default()).unwrap().write(None, &[&array]).unwrap();
    Dataset::open(&path).unwrap()
}

fn header(counts: &[u64], sample: &str, layout: &str, bits: u32, blocks_per_file: u64) -> Header {
    let field = Field::new("a", sample.parse().unwrap()).with("default_layout", layout).with("default_value", "7");
    let mut header = Header::new("d", counts, vec![field.with("default_compression", "zip")]).unwrap();
    header.bits_per_block = bits.min(header.bitmask.max_level());
    header.blocks_per_file = blocks_per_file;
    header.files = FileTemplate::parse("./d/%01x.bin").unwrap();
    header
}

/// Returns a box between two points chosen by `seeds`, which may be empty.
fn part(header: &Header, (low, high): (u64, u64)) -> (Point, Point) {
    let inside = |seed: u64| -> Point { std::array::from_fn(|axis| (seed >> (axis * 11)) % (header.end[axis] + 1)) };
    let (a, b) = (inside(low), inside(high));
    (std::array::from_fn(|axis| a[axis].min(b[axis])), std::array::from_fn(|axis| a[axis].max(b[axis])))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn threads_and_ranks_read_what_one_thread_reads(
        counts in prop::collection::vec(1u64..24, 1..5),
        sample in prop::sample::select(vec!["uint8", "float32", "float64[3]", "uint8[5]"]),
        layout in prop::sample::select(vec!["hzorder", ""]),
        (bits, blocks_per_file, cut, seed) in (0u32..9, 1u64..9, any::<u32>(), any::<u64>()),
        boxes in prop::collection::vec(any::<(u64, u64)>(), 1..5),
        jobs in 1usize..5,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let header = header(&counts, sample, layout, bits, blocks_per_file);
        let dataset = write(folder.path(), &header, seed);
        let whole = Query { resolution: cut % (header.bitmask.max_level() + 1), ..dataset.whole(0) };
        let cancel = CancelToken::new();
        let readers = Readers { jobs, cancel: &cancel };
        prop_assert_eq!(dataset.read_by(&whole, &readers).unwrap(), dataset.read(&whole).unwrap());
        let query = |rank: usize| {
            let (start, end) = part(&header, boxes[rank]);
            Query { start, end, ..whole }
        };
        let wanted = |query: &Query| match dataset.part(query).unwrap() {
            Some(_) => dataset.read(query).unwrap(),
            None => Vec::new(),
        };
        let got = Threads::run(boxes.len(), |ranks| dataset.read_collective(&query(ranks.rank()), &readers, ranks).unwrap());
        for (rank, got) in got.into_iter().enumerate() {
            prop_assert_eq!(got, wanted(&query(rank)), "rank {}", rank);
        }
    }
}

/// Returns the query of one of three ranks that read a third of a dataset each.
fn thirds(dataset: &Dataset, rank: usize) -> Query {
    let mut query = dataset.whole(0);
    let rows = query.end[2];
    (query.start[2], query.end[2]) = (rows * rank as u64 / 3, rows * (rank as u64 + 1) / 3);
    query
}

#[test]
fn a_bad_block_is_an_error_on_all_ranks() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), &header(&[22, 36, 22], "float32", "", 9, 16), 5);
    let gone = folder.path().join(dataset.header().files.path(16, ""));
    std::fs::remove_file(&gone).unwrap();
    let cancel = CancelToken::new();
    let readers = Readers { jobs: 2, cancel: &cancel };
    let outcomes = Threads::run(3, |ranks| dataset.read_collective(&thirds(&dataset, ranks.rank()), &readers, ranks));
    let is_missing_block = |outcome: &Result<Vec<u8>, IdxError>| matches!(outcome, Err(IdxError::Block { path, source: BlockFault::NoFile, .. }) if *path == gone);
    let is_secondary = |outcome: &Result<Vec<u8>, IdxError>| outcome.as_ref().is_err_and(IdxError::is_secondary);
    assert!(
        outcomes.iter().any(is_missing_block) && outcomes.iter().all(|of| is_missing_block(of) || is_secondary(of)),
        "{outcomes:?}"
    );
    // If the query asks for it, every rank gets the default value for samples of missing blocks.
    let with_default = |query: Query| Query { missing_as_default: true, ..query };
    let got = Threads::run(3, |ranks| {
        let query = with_default(thirds(&dataset, ranks.rank()));
        dataset.read_collective(&query, &readers, ranks).unwrap() == dataset.read(&query).unwrap()
    });
    assert_eq!(got, [true; 3]);
    cancel.cancel();
    let outcomes = Threads::run(3, |ranks| dataset.read_collective(&thirds(&dataset, ranks.rank()), &readers, ranks));
    assert!(outcomes.iter().all(Result::is_err));
}

#[test]
fn ranks_that_ask_for_different_things_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let dataset = write(folder.path(), &header(&[22, 36, 22], "float32", "", 9, 16), 5);
    let cancel = CancelToken::new();
    let readers = Readers { jobs: 1, cancel: &cancel };
    let outcomes = Threads::run(3, |ranks| {
        let query = Query { resolution: 10 + u32::from(ranks.rank() == 1), ..thirds(&dataset, ranks.rank()) };
        dataset.read_collective(&query, &readers, ranks)
    });
    assert!(outcomes.iter().all(|of| matches!(of, Err(IdxError::Core(CoreError::PlansDiffer { .. })))), "{outcomes:?}");
    let outcomes = Threads::run(3, |ranks| {
        let query = Query { field: usize::from(ranks.rank() == 2), ..thirds(&dataset, ranks.rank()) };
        dataset.read_collective(&query, &readers, ranks)
    });
    assert!(matches!(outcomes[2], Err(IdxError::NoField { .. })), "{outcomes:?}");
    assert!(outcomes[..2].iter().all(|of| of.as_ref().is_err_and(IdxError::is_secondary)), "{outcomes:?}");
}
