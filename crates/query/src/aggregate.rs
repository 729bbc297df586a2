//! Aggregates of a column in the rows that match: their number, limits and sum.
//!
//! A block in which all rows match is not read if the index holds the requested aggregates. Invariant: the result does
//! not depend on the index, or on the number of threads.

use crate::error::{QueryError, Result};
use crate::numbers::{Number, with_words};
use crate::scan::{RowBlock, Scan};
use crate::statistics::{BlockStatistics, Limits, OrderedType};
use crate::sum::FloatSum;
use raddle_core::cancel::CancelToken;
use raddle_hdf5::number::NumberType;
use std::ops::Range;

/// Aggregate of numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Aggregate {
    /// Number of rows.
    pub count: u64,
    /// Limits, with the number of NaN values.
    pub limits: Limits,
    /// Sum of the numbers that are not NaN.
    pub sum: Sum,
}

/// Sum of numbers.
#[derive(Debug, Clone, PartialEq)]
pub enum Sum {
    /// Sum of integers.
    Integers(i128),
    /// Exact sum of floating-point numbers.
    Floats(Box<FloatSum>),
}

/// Aggregates requested of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AggregateKind {
    /// Number of rows and limits.
    Limits,
    /// Number of rows, limits and sum.
    Sum,
}

impl Aggregate {
    /// Returns the aggregate of an empty set of numbers of a type.
    fn empty(number: NumberType) -> Self {
        let sum = match number.is_integer() {
            true => Sum::Integers(0),
            false => Sum::Floats(Box::default()),
        };
        Self { count: 0, limits: Limits::Empty, sum }
    }

    /// Adds numbers as stored.
    fn add(&mut self, number: NumberType, bytes: &[u8], wanted: AggregateKind) {
        let known = BlockStatistics::of(OrderedType::Number(number), bytes);
        self.count += (bytes.len() / number.len_bytes()) as u64;
        self.limits = self.limits.union(known.limits);
        match (&mut self.sum, wanted) {
            (_, AggregateKind::Limits) => {}
            (Sum::Integers(sum), AggregateKind::Sum) => *sum = sum.saturating_add(known.sum.unwrap_or_default()),
            (Sum::Floats(sum), AggregateKind::Sum) => with_words!(number, bytes, |words| {
                words.filter(|word| !word.is_nan()).for_each(|word| sum.add(word.to_float()));
            }),
        }
    }

    /// Adds the statistics of `count` rows, which contain the requested aggregates.
    fn add_known(&mut self, count: u64, known: &BlockStatistics) {
        self.count += count;
        self.limits = self.limits.union(known.limits);
        if let (Sum::Integers(sum), Some(more)) = (&mut self.sum, known.sum) {
            *sum = sum.saturating_add(more);
        }
    }

    /// Adds the aggregate of other rows.
    fn add_other(&mut self, other: &Self) {
        self.count += other.count;
        self.limits = self.limits.union(other.limits);
        match (&mut self.sum, &other.sum) {
            (Sum::Integers(sum), Sum::Integers(more)) => *sum = sum.saturating_add(*more),
            (Sum::Floats(sum), Sum::Floats(more)) => sum.add_sum(more),
            _ => {}
        }
    }
}

impl Scan<'_> {
    /// Aggregates the only requested column in the rows that match.
    ///
    /// # Errors
    /// If the column does not hold numbers, values cannot be read, or the scan is cancelled.
    pub fn aggregate(&self, wanted: AggregateKind, threads: usize, cancel: &CancelToken) -> Result<Aggregate> {
        let column = self.only_requested();
        let number = column.kind.number().ok_or_else(|| QueryError::Column {
            table: self.table().path().to_owned(),
            column: column.name.clone(),
            reason: format!(
                "holds {}, and only numbers have a sum, a mean, a minimum and a maximum",
                column.kind.described()
            ),
        })?;
        let mut total = Aggregate::empty(number);
        let mut rest: Vec<RowBlock> = Vec::new();
        let blocks = self.blocks();
        for run in blocks.chunk_by(|one, next| one.is_whole() && next.is_whole() && one.rows.end == next.rows.start) {
            let rows = run[0].rows.start..run[run.len() - 1].rows.end;
            let known = run[0].is_whole().then(|| self.known(&rows, wanted)).flatten();
            let Some((inner, known)) = known else {
                rest.extend_from_slice(run);
                continue;
            };
            total.add_known(inner.end - inner.start, &known);
            rest.extend(self.whole_blocks(rows.start..inner.start));
            rest.extend(self.whole_blocks(inner.end..rows.end));
        }
        let parts = self.for_each_value(&rest, threads, cancel, |values| {
            let mut part = Aggregate::empty(number);
            part.add(number, values, wanted);
            Ok(part)
        })?;
        parts.iter().for_each(|part| total.add_other(part));
        Ok(total)
    }

    /// Returns the longest range within `rows` for which the index has the requested aggregates of the column.
    fn known(&self, rows: &Range<u64>, wanted: AggregateKind) -> Option<(Range<u64>, BlockStatistics)> {
        let column = self.only_requested();
        // Limits of decoded values may be those of missing ones.
        if column.decoding.is_some() {
            return None;
        }
        let path = self.table().path_of(&column.name);
        let (inner, known) = self.index()?.within(&path, column.rows, column.kind.ordered()?, rows)?;
        (wanted == AggregateKind::Limits || known.sum.is_some()).then_some((inner, known))
    }
}
