//! Ranges of events, as users write them: `0..1000`, `1000..`.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

/// Requested range of events; all by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct EntryRange {
    /// First event.
    pub start: u64,
    /// End of the range (exclusive); `None` for the end of the source.
    pub end: Option<u64>,
}

impl EntryRange {
    /// Resolves the range for a source of `len_entries` events. A start past the end is kept, and reading then refuses
    /// it.
    pub fn of(self, len_entries: u64) -> Range<u64> {
        self.start..self.end.unwrap_or(len_entries.max(self.start))
    }
}

/// Error for a string that is not a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryRangeError(String);

impl fmt::Display for EntryRangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not a range: give the first event and the one after the last, as in 0..1000, or one of them",
            self.0
        )
    }
}

impl std::error::Error for EntryRangeError {}

impl FromStr for EntryRange {
    type Err = EntryRangeError;

    fn from_str(text: &str) -> Result<Self, EntryRangeError> {
        let wrong = || EntryRangeError(text.to_owned());
        let (start, end) = text.split_once("..").ok_or_else(wrong)?;
        let number = |digits: &str| match digits.trim() {
            "" => Ok(None),
            digits => digits.parse::<u64>().map(Some).map_err(|_| wrong()),
        };
        let (start, end) = (number(start)?.unwrap_or(0), number(end)?);
        if end.is_none_or(|end| start <= end) { Ok(Self { start, end }) } else { Err(wrong()) }
    }
}

impl fmt::Display for EntryRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.end {
            Some(end) => write!(f, "{}..{end}", self.start),
            None => write!(f, "{}..", self.start),
        }
    }
}

raddle_core::serde_as_text!(EntryRange);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_may_be_open() {
        let range = |text: &str| text.parse().map(|range: EntryRange| range.of(10));
        for (text, expected) in [
            ("2..5", 2..5),
            ("3..", 3..10),
            ("..4", 0..4),
            ("..", 0..10),
            (" 2 .. 2 ", 2..2),
            ("12..", 12..12),
            ("5..99", 5..99),
        ] {
            assert_eq!(range(text), Ok(expected), "{text}");
            let parsed: EntryRange = text.parse().unwrap();
            assert_eq!(parsed.to_string().parse(), Ok(parsed), "{text}");
        }
        for text in ["", "5", "5..3", "a..b", "-1..3", "1..2..3", "1...3", "18446744073709551616.."] {
            assert!(range(text).is_err_and(|why| why.to_string().contains("is not a range")), "{text}");
        }
    }
}
