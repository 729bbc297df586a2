//! Properties of every conversion: order, failures, cancellation.

#[path = "support/ranks.rs"]
mod ranks;
mod support;

use raddle_core::CoreError;
use raddle_core::cancel::CancelToken;
use raddle_core::ranks::communicator::Communicator;
use raddle_core::report::progress::Silent;
use raddle_events::pds::{PdsCodec, PdsOptions, PdsSink};
use raddle_events::sinks::{CheckSink, NullSink};
use raddle_events::sources::generated::TestProducts;
use raddle_events::{
    Block, ColumnsError, ConvertOptions, EventsError, Location, NoTile, Prepare, RangeReader, Schema, Serialization,
    Sink, Source, UnlocatedError, convert,
};
use ranks::run_collective;
use std::ops::Range;
use std::sync::Mutex;
use support::{options, run};

/// Source of test products in which some entries cannot be read; earlier entries take longer to read.
struct Failing {
    inner: TestProducts,
    bad: Vec<u64>,
}

impl Source for Failing {
    fn place(&self) -> Location {
        self.inner.place()
    }

    fn schema(&self) -> &Schema {
        self.inner.schema()
    }

    fn len_entries(&self) -> u64 {
        self.inner.len_entries()
    }

    fn has_ids(&self) -> bool {
        self.inner.has_ids()
    }

    fn unit_end(&self, start: u64, target_len_bytes: u64) -> u64 {
        self.inner.unit_end(start, target_len_bytes)
    }

    fn batch_len_bytes(&self, entries: Range<u64>) -> u64 {
        self.inner.batch_len_bytes(entries)
    }

    fn reader<'source>(&'source self, products: &[usize]) -> Result<Box<dyn RangeReader + 'source>, ColumnsError> {
        Ok(Box::new(FailingReader { inner: self.inner.reader(products)?, source: self }))
    }
}

struct FailingReader<'source> {
    inner: Box<dyn RangeReader + 'source>,
    source: &'source Failing,
}

impl RangeReader for FailingReader<'_> {
    fn read(&mut self, entries: Range<u64>) -> Result<Block, ColumnsError> {
        std::thread::sleep(std::time::Duration::from_micros(300 / (1 + entries.start)));
        if let Some(entry) = self.source.bad.iter().find(|entry| entries.contains(entry)) {
            let place = self.source.place().entries(entries);
            return Err(UnlocatedError::Differs { entry: *entry, what: "it is bad" }.at(&place));
        }
        self.inner.read(entries)
    }
}

#[test]
fn the_first_failure_is_reported_whatever_the_threads_do() {
    for jobs in [1, 2, 5] {
        for round in 0..20 {
            let source = Failing { inner: TestProducts::new(400, None), bad: vec![301, 33 + round, 34 + round] };
            // Memory for three ranges of ten entries.
            let entry_len_bytes = source.batch_len_bytes(0..1);
            let options = ConvertOptions {
                batch_len_bytes: 10 * entry_len_bytes,
                memory_len_bytes: 2 * 30 * entry_len_bytes,
                ..options(jobs)
            };
            let EventsError::Columns(ColumnsError::Bad { fault: UnlocatedError::Differs { entry, .. }, place }) =
                run(&source, NullSink::default(), &options).unwrap_err()
            else {
                panic!("another error")
            };
            assert_eq!(entry, 33 + round);
            assert_eq!(place.entries, Some((33 + round) / 10 * 10..(33 + round) / 10 * 10 + 10));
        }
    }
}

#[test]
fn a_rank_that_fails_ends_all_and_nothing_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("events.pds");
    for bad in [0, 33, 399] {
        let source = Failing { inner: TestProducts::new(400, Some(Serialization::Root)), bad: vec![bad] };
        let entry_len_bytes = source.batch_len_bytes(0..1);
        let rounds = ConvertOptions {
            batch_len_bytes: 10 * entry_len_bytes,
            round_len_bytes: 30 * entry_len_bytes,
            ..options(2)
        };
        let pds = PdsOptions { codec: PdsCodec::None, replace: false };
        let begin = |ranks: &dyn Communicator| PdsSink::begin_collective(&path, source.schema(), pds, ranks);
        let ended = run_collective(3, &source, begin, &rounds);
        let errors: Vec<EventsError> = ended.into_iter().map(|ended| ended.map(drop).unwrap_err()).collect();
        let found = |error: &EventsError| matches!(error, EventsError::Columns(ColumnsError::Bad { fault: UnlocatedError::Differs { entry, .. }, .. }) if *entry == bad);
        assert_eq!(errors.iter().filter(|error| found(error)).count(), 1, "{errors:?}");
        assert_eq!(errors.iter().filter(|error| error.is_secondary()).count(), 2, "{errors:?}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
    // An existing output cannot be begun by any rank; rank 0 reports why.
    std::fs::write(&path, "old").unwrap();
    let source = TestProducts::new(4, Some(Serialization::Root));
    let pds = PdsOptions { codec: PdsCodec::None, replace: false };
    let begin = |ranks: &dyn Communicator| PdsSink::begin_collective(&path, source.schema(), pds, ranks);
    let ended = run_collective(2, &source, begin, &options(1));
    assert!(matches!(ended[0], Err(EventsError::Columns(ColumnsError::OutputExists { .. }))));
    assert!(ended[1].as_ref().is_err_and(EventsError::is_secondary));
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
}

/// Sink that records the ranges in the order in which they are committed.
#[derive(Default)]
struct Noting {
    ranges: Vec<Range<u64>>,
    fails_at: Option<usize>,
}

struct Ranges;

impl Sink for Noting {
    type Preparer = Ranges;
    type Prepared = Range<u64>;
    type Tile = NoTile;
    type Encoded = NoTile;
    type Summary = Vec<Range<u64>>;

    fn preparer(&self) -> Result<Ranges, ColumnsError> {
        Ok(Ranges)
    }

    fn commit(&mut self, range: Range<u64>) -> Result<Vec<NoTile>, ColumnsError> {
        if self.fails_at == Some(self.ranges.len()) {
            return Err(ColumnsError::OutputExists { path: "full".into() });
        }
        self.ranges.push(range);
        Ok(Vec::new())
    }

    fn place(&mut self, encoded: NoTile) -> Result<(), ColumnsError> {
        match encoded {}
    }

    fn finish(self) -> Result<Vec<Range<u64>>, ColumnsError> {
        Ok(self.ranges)
    }
}

impl Prepare for Ranges {
    type Prepared = Range<u64>;
    type Tile = NoTile;
    type Encoded = NoTile;

    fn prepare(&mut self, block: Block) -> Result<Range<u64>, ColumnsError> {
        Ok(block.entries)
    }

    fn encode(&mut self, tile: NoTile) -> Result<NoTile, ColumnsError> {
        match tile {}
    }
}

#[test]
fn ranges_are_put_in_place_in_order_and_each_once() {
    for jobs in [1, 3, 8] {
        let source = TestProducts::new(1000, None);
        let options = ConvertOptions { entries: Some(5..998), batch_len_bytes: 700, ..options(jobs) };
        let (converted, ranges) = run(&source, Noting::default(), &options).unwrap();
        assert_eq!((converted.entries, converted.units), (993, ranges.len() as u64));
        assert_eq!((ranges[0].start, ranges[ranges.len() - 1].end), (5, 998));
        assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
    }
}

#[test]
fn a_failing_sink_ends_the_run() {
    let source = TestProducts::new(1000, None);
    let entry_len_bytes = source.batch_len_bytes(0..1);
    for jobs in [1, 4] {
        let options = ConvertOptions {
            batch_len_bytes: 10 * entry_len_bytes,
            memory_len_bytes: 2 * 25 * entry_len_bytes,
            ..options(jobs)
        };
        let sink = Noting { fails_at: Some(7), ..Noting::default() };
        assert!(matches!(run(&source, sink, &options), Err(EventsError::Columns(ColumnsError::OutputExists { .. }))));
    }
}

#[test]
fn a_cancelled_run_is_not_a_result() {
    let cancel = CancelToken::new();
    cancel.cancel();
    let source = TestProducts::new(10, None);
    let result = convert(&source, NullSink::default(), &options(2), &Silent, &cancel);
    assert!(matches!(result, Err(EventsError::Columns(ColumnsError::Core(CoreError::Cancelled)))));
}

#[test]
fn missing_entries_and_products_are_refused() {
    let source = TestProducts::new(10, None);
    let beyond = ConvertOptions { entries: Some(5..11), ..options(2) };
    assert!(matches!(
        run(&source, NullSink::default(), &beyond),
        Err(EventsError::Columns(ColumnsError::NoSuchEntries { .. }))
    ));
    let product = ConvertOptions { products: Some(vec![2]), ..options(2) };
    let error = run(&source, NullSink::default(), &product).unwrap_err();
    assert!(error.to_string().contains("ints, floats"), "{error}");
}

#[test]
fn a_difference_is_found_where_it_is() {
    let (ten, eleven) = (TestProducts::new(10, None), TestProducts::new(11, None));
    let check = || CheckSink::new(ten.schema(), &ten, false).unwrap();
    assert_eq!(run(&ten, check(), &options(2)).unwrap().1.entries, 10);
    // First fewer entries, then more.
    let fewer = ConvertOptions { entries: Some(0..9), ..options(2) };
    assert!(matches!(run(&ten, check(), &fewer), Err(EventsError::Columns(ColumnsError::NoSuchEntries { .. }))));
    assert!(matches!(
        run(&eleven, check(), &options(2)),
        Err(EventsError::Columns(ColumnsError::NoSuchEntries { .. }))
    ));
    // Entries shifted by one.
    let shifted = Shifted { inner: TestProducts::new(11, None), asked: Mutex::default() };
    let error = run(&shifted, check(), &options(1)).unwrap_err();
    assert_eq!(error.to_string(), "generated events, branch ints: entry 0 differs from what was expected: its value");
    assert_eq!(shifted.asked.lock().unwrap().as_slice(), std::slice::from_ref(&(0..10)));
}

/// Source whose entry n is test product n + 1; records the requested ranges.
struct Shifted {
    inner: TestProducts,
    asked: Mutex<Vec<Range<u64>>>,
}

impl Source for Shifted {
    fn place(&self) -> Location {
        self.inner.place()
    }

    fn schema(&self) -> &Schema {
        self.inner.schema()
    }

    fn len_entries(&self) -> u64 {
        self.inner.len_entries() - 1
    }

    fn has_ids(&self) -> bool {
        false
    }

    fn unit_end(&self, _start: u64, _target_len_bytes: u64) -> u64 {
        self.len_entries()
    }

    fn batch_len_bytes(&self, entries: Range<u64>) -> u64 {
        self.inner.batch_len_bytes(entries)
    }

    fn reader<'source>(&'source self, products: &[usize]) -> Result<Box<dyn RangeReader + 'source>, ColumnsError> {
        Ok(Box::new(ShiftedReader { inner: self.inner.reader(products)?, source: self }))
    }
}

struct ShiftedReader<'source> {
    inner: Box<dyn RangeReader + 'source>,
    source: &'source Shifted,
}

impl RangeReader for ShiftedReader<'_> {
    fn read(&mut self, entries: Range<u64>) -> Result<Block, ColumnsError> {
        self.source.asked.lock().unwrap().push(entries.clone());
        let block = self.inner.read(entries.start + 1..entries.end + 1)?;
        Ok(Block { entries, ids: Vec::new(), ..block })
    }
}
