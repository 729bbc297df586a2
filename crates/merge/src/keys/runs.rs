//! The events of one table in row order, as runs: an event number and the number of consecutive rows that belong to it.
//!
//! They are created once by the join, kept in pages of a scratch file, and read whenever a tile of `NAME.seq`,
//! `NAME.seq_cnt` or `NAME.offsets` is computed. Invariants: all pages except the last hold [`PAGE_RUNS`] runs;
//! adjacent runs differ in event.

use crate::error::Result;
use raddle_core::output::scratch::Scratch;
use std::ops::Range;
use std::sync::{PoisonError, RwLock};

/// Number of runs per page: 128 KiB of the scratch file, 32 bytes of memory.
const PAGE_RUNS: usize = 8192;
/// Length of a run: event and number of rows.
const RUN_LEN_BYTES: usize = 16;

/// Consecutive rows of one event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventRun {
    /// The event, as its row in the index group.
    pub event: u64,
    /// Number of rows.
    pub rows: u64,
}

#[derive(Debug, Clone, Copy)]
struct Page {
    offset_bytes: u64,
    runs: u32,
    first_row: u64,
    first_event: u64,
}

/// Runs of one table.
#[derive(Debug, Default)]
pub struct TableRuns {
    pages: Vec<Page>,
    /// Number of rows of the table.
    pub rows: u64,
    /// Number of runs; this equals the number of events if they ascend.
    pub runs: u64,
    /// First row whose event is before that of the previous row.
    pub descends_at: Option<u64>,
}

/// Scratch file that tables share.
#[derive(Debug)]
pub struct RunStore(RwLock<Scratch>);

impl RunStore {
    /// Creates a store in `scratch`.
    pub fn new(scratch: Scratch) -> Self {
        Self(RwLock::new(scratch))
    }

    fn write(&self, runs: &[EventRun]) -> Result<u64> {
        let words = runs.iter().flat_map(|run| [run.event.to_le_bytes(), run.rows.to_le_bytes()]);
        let bytes: Vec<u8> = words.flatten().collect();
        Ok(self.0.write().unwrap_or_else(PoisonError::into_inner).append(&bytes)?)
    }

    fn read(&self, page: &Page) -> Result<Vec<EventRun>> {
        let mut bytes = vec![0; page.runs as usize * RUN_LEN_BYTES];
        self.0.read().unwrap_or_else(PoisonError::into_inner).read(page.offset_bytes, &mut bytes)?;
        let words = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
        let words: Vec<u64> = words.collect();
        Ok(words.chunks_exact(2).map(|run| EventRun { event: run[0], rows: run[1] }).collect())
    }
}

/// Writer of runs.
#[derive(Debug)]
pub struct RunWriter<'s> {
    store: &'s RunStore,
    done: TableRuns,
    page: Vec<EventRun>,
    /// First row of `page`.
    page_row: u64,
}

impl<'s> RunWriter<'s> {
    /// Creates a writer for a table whose rows arrive in order.
    pub fn new(store: &'s RunStore) -> Self {
        Self { store, done: TableRuns::default(), page: Vec::new(), page_row: 0 }
    }

    /// Adds the next `rows` rows (at least one) as rows of `event`.
    pub fn push(&mut self, event: u64, rows: u64) -> Result<()> {
        match self.page.last_mut() {
            Some(run) if run.event == event => run.rows += rows,
            last => {
                if last.is_some_and(|run| event < run.event) {
                    self.done.descends_at.get_or_insert(self.done.rows);
                }
                if self.page.len() > PAGE_RUNS {
                    self.write_page()?;
                }
                self.page.push(EventRun { event, rows });
            }
        }
        self.done.rows += rows;
        Ok(())
    }

    /// Writes all runs except the last, which may grow and must be compared with the next.
    fn write_page(&mut self) -> Result<()> {
        let growing = self.page.split_off(PAGE_RUNS);
        self.write_runs()?;
        self.page = growing;
        Ok(())
    }

    fn write_runs(&mut self) -> Result<()> {
        let Some(first) = self.page.first() else { return Ok(()) };
        let page = Page {
            offset_bytes: self.store.write(&self.page)?,
            runs: self.page.len() as u32,
            first_row: self.page_row,
            first_event: first.event,
        };
        self.page_row += self.page.iter().map(|run| run.rows).sum::<u64>();
        self.done.runs += self.page.len() as u64;
        self.done.pages.push(page);
        self.page.clear();
        Ok(())
    }

    /// Returns the runs, after all rows have been added.
    pub fn finish(mut self) -> Result<TableRuns> {
        if self.page.len() > PAGE_RUNS {
            self.write_page()?;
        }
        self.write_runs()?;
        Ok(self.done)
    }
}

impl TableRuns {
    /// Calls `each` with each event of `rows` and the number of rows that belong to it.
    pub fn events(&self, store: &RunStore, rows: Range<u64>, mut each: impl FnMut(EventRun)) -> Result<()> {
        let first = self.pages.partition_point(|page| page.first_row <= rows.start).saturating_sub(1);
        for page in self.pages[first..].iter().take_while(|page| page.first_row < rows.end) {
            let mut row = page.first_row;
            for run in store.read(page)? {
                let end = row + run.rows;
                if let Some(rows) = end.min(rows.end).checked_sub(row.max(rows.start)).filter(|&rows| rows > 0) {
                    each(EventRun { event: run.event, rows });
                }
                row = end;
            }
        }
        Ok(())
    }

    /// Calls `each` with the runs numbered `wanted`.
    pub fn runs(&self, store: &RunStore, wanted: Range<u64>, mut each: impl FnMut(EventRun)) -> Result<()> {
        let per_page = PAGE_RUNS as u64;
        for page in wanted.start / per_page..wanted.end.div_ceil(per_page) {
            let runs = store.read(&self.pages[page as usize])?;
            let first = page * per_page;
            let (start, end) = (wanted.start.max(first) - first, (wanted.end - first).min(runs.len() as u64));
            runs[start as usize..end as usize].iter().for_each(|run| each(*run));
        }
        Ok(())
    }

    /// Calls `each` for each of `events` with the number of rows that belong to earlier events. Events must ascend.
    pub fn offsets(&self, store: &RunStore, events: Range<u64>, mut each: impl FnMut(u64)) -> Result<()> {
        let first = self.pages.partition_point(|page| page.first_event < events.start).saturating_sub(1);
        let (mut next, mut row) = (events.start, self.pages.get(first).map_or(0, |page| page.first_row));
        for page in &self.pages[first..] {
            if next >= events.end {
                break;
            }
            for run in store.read(page)? {
                // All events up to this one begin at or before its first row.
                while next <= run.event && next < events.end {
                    each(row);
                    next += 1;
                }
                row += run.rows;
            }
        }
        (next..events.end).for_each(|_| each(row));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(events: &[u64], index_rows: u64) {
        let folder = tempfile::tempdir().unwrap();
        let store = RunStore::new(Scratch::create(&folder.path().join("out")).unwrap());
        let mut writer = RunWriter::new(&store);
        events.iter().for_each(|event| writer.push(*event, 1).unwrap());
        let table = writer.finish().unwrap();
        assert_eq!((table.rows, table.descends_at), (events.len() as u64, None));
        let mut pairs: Vec<(u64, u64)> = Vec::new();
        for event in events {
            match pairs.last_mut() {
                Some(last) if last.0 == *event => last.1 += 1,
                _ => pairs.push((*event, 1)),
            }
        }
        let offsets: Vec<u64> =
            (0..=index_rows).map(|event| events.partition_point(|other| *other < event) as u64).collect();
        assert_eq!(table.runs, pairs.len() as u64);
        // In pieces of several lengths, like requests for tiles.
        for step in [1000, 8192, 10_000, 1 << 20] {
            let pieces =
                |total: u64| (0..total).step_by(step).map(move |start| start..(start + step as u64).min(total));
            let (mut found, mut found_pairs, mut found_offsets) = (Vec::new(), Vec::new(), Vec::new());
            pieces(table.rows).for_each(|rows| {
                let push = |run: EventRun| found.extend(std::iter::repeat_n(run.event, run.rows as usize));
                table.events(&store, rows, push).unwrap();
            });
            pieces(table.runs)
                .for_each(|runs| table.runs(&store, runs, |run| found_pairs.push((run.event, run.rows))).unwrap());
            pieces(index_rows + 1)
                .for_each(|events| table.offsets(&store, events, |offset| found_offsets.push(offset)).unwrap());
            assert!(found == events && found_pairs == pairs && found_offsets == offsets, "pieces of {step}");
        }
    }

    #[test]
    fn many_pages_are_read_in_any_pieces() {
        let events: Vec<u64> = (0..40_000_u64).flat_map(|event| vec![event * 2; (event % 4) as usize]).collect();
        check(&events, 80_100);
        // One run over as many rows as many pages hold, page-sized numbers of runs, and none.
        check(&[7; 30_000], 10);
        check(&(0..8192).collect::<Vec<_>>(), 8192);
        check(&(0..8193).collect::<Vec<_>>(), 8200);
        check(&[], 5);
    }

    proptest! {
        #[test]
        fn runs_are_the_rows(steps in prop::collection::vec(0_u64..3, 0..200)) {
            let events: Vec<u64> = steps.iter().scan(0, |event, step| { *event += step; Some(*event) }).collect();
            let last = events.last().copied().unwrap_or(0);
            check(&events, last + 3);
        }
    }

    #[test]
    fn the_first_row_out_of_order_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let store = RunStore::new(Scratch::create(&folder.path().join("out")).unwrap());
        let mut writer = RunWriter::new(&store);
        [1, 1, 5, 4, 2].iter().for_each(|event| writer.push(*event, 1).unwrap());
        assert_eq!(writer.finish().unwrap().descends_at, Some(3));
    }
}
