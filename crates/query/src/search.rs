//! Searches as plain data, which name tables instead of holding them.

use crate::column_name::QuotedName;
use crate::error::{QueryError, Result};
use crate::events::{EventSet, SearchContext, events_of, key_of, row_count, rows_of};
use crate::expression::Expression;
use crate::index::Index;
use crate::parse::quoted;
use crate::scan::Scan;
use crate::table::Table;
use crate::values::Values;
use raddle_core::rows::Rows;
use raddle_hdf5::open_file::OpenFile;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// Rows of a table to find.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Search {
    /// Path of the table.
    pub table: String,
    /// Condition; `None` for all rows.
    pub condition: Option<Expression>,
    /// Columns to read.
    pub columns: Vec<String>,
    /// Dataset whose rows are those of the table, if no column is read or tested.
    pub rows_of: Option<String>,
    /// Whether the numbers of rows are requested.
    pub is_numbered: bool,
    /// Rows to which the search is restricted; `None` for all.
    pub rows: Option<Range<u64>>,
    /// Conditions on the events to which the rows must belong.
    pub events: Vec<EventCondition>,
    /// Values of netCDF variables, also in conditions on events; `None` if not chosen.
    pub values: Option<Values>,
}

/// Events that have a row in a table that satisfies a condition.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct EventCondition {
    /// Path of the table.
    pub table: String,
    /// Condition; `None` for all rows.
    pub condition: Option<Expression>,
    /// Name of the key in both tables; `None` for the only one.
    pub key: Option<String>,
    /// Conditions on the events to which these rows must belong.
    pub events: Vec<EventCondition>,
}

/// Events that satisfy the conditions of a search, found once for searches of several ranges of rows.
#[derive(Debug, Clone, Default)]
pub struct FoundEvents(Vec<(String, EventSet)>);

impl Search {
    /// Finds the events to which the rows must belong.
    ///
    /// # Errors
    /// As for [`Search::scan`].
    pub fn find_events(
        &self,
        file: &OpenFile,
        index: Option<&Index>,
        running: SearchContext<'_>,
    ) -> Result<FoundEvents> {
        find(&Table::of(file, &self.table)?.with_values(self.values), &self.events, index, running)
    }

    /// Returns the scan. If `events` are not known, they are found first, by reading keys and the columns of conditions
    /// on events.
    ///
    /// # Errors
    /// If a table, column or key does not exist, or values cannot be read or compared, or are not chosen.
    pub fn scan<'f>(
        &self,
        file: &'f OpenFile,
        index: Option<&'f Index>,
        events: Option<&FoundEvents>,
        running: SearchContext<'_>,
    ) -> Result<Scan<'f>> {
        let table = Table::of(file, &self.table)?.with_values(self.values);
        let mut scan = Scan::new(table.clone(), self.condition.as_ref(), &self.columns)?;
        if let Some(name) = &self.rows_of {
            scan = scan.of_length(name)?;
        }
        if self.is_numbered {
            scan = scan.numbered();
        }
        if let Some(rows) = &self.rows {
            scan = scan.within(&Rows::of([rows.clone()]));
        }
        for key in self.events.iter().map(|condition| key_of(&table, condition.key.as_deref())) {
            let key = key?;
            let of_key = row_count(&table, &key)?;
            if of_key != scan.rows() {
                return Err(QueryError::Rows {
                    table: table.path().to_owned(),
                    column: format!("{key}.seq"),
                    rows: of_key,
                    other: self.columns.first().or(self.rows_of.as_ref()).cloned().unwrap_or_default(),
                    other_rows: scan.rows(),
                });
            }
        }
        let rows = match events {
            Some(found) => found.rows(&table, self.rows.as_ref(), running)?,
            None => find(&table, &self.events, index, running)?.rows(&table, self.rows.as_ref(), running)?,
        };
        let scan = rows.iter().fold(scan, Scan::within);
        Ok(index.into_iter().fold(scan, Scan::with_index))
    }
}

/// Finds the events that satisfy conditions, using the keys of a table.
fn find(
    table: &Table<'_>,
    conditions: &[EventCondition],
    index: Option<&Index>,
    running: SearchContext<'_>,
) -> Result<FoundEvents> {
    let found = conditions.iter().map(|condition| {
        let key = key_of(table, condition.key.as_deref())?;
        let events = condition.find(table, &key, index, running)?;
        Ok((key, events))
    });
    found.collect::<Result<_>>().map(FoundEvents)
}

impl FoundEvents {
    /// Returns the rows of a table that belong to these events, among some rows; `None` if there were no conditions.
    fn rows(&self, table: &Table<'_>, among: Option<&Range<u64>>, running: SearchContext<'_>) -> Result<Option<Rows>> {
        let mut common: Option<Rows> = None;
        for (key, events) in &self.0 {
            let rows = rows_of(table, key, events, among, running)?;
            common = Some(common.map_or_else(|| rows.clone(), |known| known.intersection(&rows)));
        }
        Ok(common)
    }
}

impl EventCondition {
    /// Finds the events in the file of another table, with its choice of values.
    fn find(
        &self,
        other: &Table<'_>,
        key: &str,
        index: Option<&Index>,
        running: SearchContext<'_>,
    ) -> Result<EventSet> {
        let table = Table::of(other.file(), &self.table)?.with_values(other.values());
        let within = find(&table, &self.events, index, running)?.rows(&table, None, running)?;
        events_of(&table, key, self.condition.as_ref(), within.as_ref(), index, running)
    }
}

/// A condition on the rows of a table, as text: `rec.slc: calE > 2`. A path with a colon is in backticks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TableCondition {
    /// Path of the table.
    pub table: String,
    /// Condition.
    pub condition: Expression,
}

impl FromStr for TableCondition {
    type Err = QueryError;

    fn from_str(text: &str) -> Result<Self> {
        let failed = |reason: String| QueryError::Condition { text: text.to_owned(), reason };
        let unnamed = || failed("name the table first, as in 'rec.slc: calE > 2'".to_owned());
        if let Some(inside) = text.trim_start().strip_prefix('`') {
            let mut chars = inside.char_indices().peekable();
            let table = quoted(&mut chars, '`').map_err(&failed)?;
            let rest = chars.peek().map_or("", |(at, _)| &inside[*at..]);
            let condition = rest.trim_start().strip_prefix(':').ok_or_else(unnamed)?;
            return Ok(Self { table, condition: condition.parse()? });
        }
        let (table, condition) = text.split_once(':').ok_or_else(unnamed)?;
        let parsed = condition.parse().map_err(|error| match error {
            QueryError::Condition { reason, .. } if condition.contains(':') => {
                failed(format!("{reason}; if the path of the table has a colon, put the path in backticks"))
            }
            error => error,
        });
        Ok(Self { table: table.trim().to_owned(), condition: parsed? })
    }
}

impl fmt::Display for TableCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let table = &self.table;
        match table.contains(':') || table.starts_with('`') || table.trim() != table {
            true => write!(f, "{}: {}", QuotedName(table), self.condition),
            false => write!(f, "{table}: {}", self.condition),
        }
    }
}

raddle_core::serde_as_text!(TableCondition);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_of_a_table_is_read_back() {
        for table in ["rec.slc", "/a/b", "a:b", " a: ", "`a`", "a`:b\\", "::", "a b"] {
            let text = TableCondition { table: table.to_owned(), condition: "x > 2".parse().unwrap() }.to_string();
            assert_eq!(text.parse::<TableCondition>().unwrap().table, table, "{text}");
        }
        assert_eq!(" `a:b` : x > 2".parse::<TableCondition>().unwrap().table, "a:b");
        assert_eq!("a: text == 'b:c'".parse::<TableCondition>().unwrap().table, "a");
        let refused = |text: &str| text.parse::<TableCondition>().unwrap_err().to_string();
        assert!(refused("a:b: x > 2").ends_with("if the path of the table has a colon, put the path in backticks"));
        assert!(refused("`a:b` x > 2").contains("name the table first"));
        assert!(refused("`a:b").contains("a ` is missing"));
    }
}
