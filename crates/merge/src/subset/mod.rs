//! Restriction of the output to ranges of dimensions (`--select`), as text: `time=0:100`, `lat=-30..30`.
//!
//! `resolve` turns the ranges into ranges of element indices, for which it may read coordinates, and `cut` restricts
//! the columns of a schema to them. `tables` restricts tables to rows of events. Invariant: all datasets of a dimension
//! are restricted alike.

pub(crate) mod cut;
mod longitude;
mod of_values;
pub(crate) mod resolve;
pub(crate) mod selected;
pub mod tables;

use crate::named_values;
use crate::schema::is_named;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Range of a dimension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DimensionRange {
    /// Name of the dimension: the path of its dimension scale or the last part of it, or a label.
    pub dimension: String,
    /// Limits of the range.
    pub limits: DimensionLimits,
}

/// Limits of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DimensionLimits {
    /// Numbers of elements, from 0. Negative numbers count from the end.
    Elements {
        /// First element; `None` for the first of all.
        start: Option<i64>,
        /// Element after the last one; `None` for the end.
        end: Option<i64>,
    },
    /// Values of the coordinate, both included: numbers, or dates for a time.
    Values {
        /// Smallest value.
        from: Option<String>,
        /// Largest value.
        to: Option<String>,
    },
}

/// Error for a string that is not a range of a dimension.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is not a range of a dimension: give numbers of elements, END not included (time=0:100, time=-12:), or values of \
     the coordinate (lat=-30..30, time=2001-01..2001-12)"
)]
pub struct ParseRangeError {
    text: String,
}

impl FromStr for DimensionRange {
    type Err = ParseRangeError;

    fn from_str(text: &str) -> Result<Self, ParseRangeError> {
        let parse = || {
            let (dimension, limits) = text.rsplit_once('=')?;
            let dimension = dimension.trim().to_owned();
            (!dimension.is_empty()).then_some(Self { dimension, limits: DimensionLimits::parse(limits.trim())? })
        };
        parse().ok_or_else(|| ParseRangeError { text: text.to_owned() })
    }
}

/// Ranges of several dimensions, separated by commas. Names may hold commas, too: one that follows no range belongs to a
/// name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DimensionRanges(pub Vec<DimensionRange>);

impl FromStr for DimensionRanges {
    type Err = ParseRangeError;

    fn from_str(text: &str) -> Result<Self, ParseRangeError> {
        named_values::split(text).into_iter().map(str::parse).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for DimensionRanges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(","))
    }
}

impl DimensionRange {
    /// Returns whether the range is of the dimension at `path`.
    pub fn is_of(&self, path: &str) -> bool {
        is_named(path.as_bytes(), &self.dimension)
    }
}

impl DimensionLimits {
    fn parse(text: &str) -> Option<Self> {
        if let Some((from, to)) = text.split_once("..") {
            let bound = |text: &str| match text.trim() {
                "" => None,
                text => Some(text.to_owned()),
            };
            let (from, to) = (bound(from), bound(to));
            return (from.is_some() || to.is_some()).then_some(Self::Values { from, to });
        }
        let number = |text: &str| match text.trim() {
            "" => Some(None),
            digits => digits.parse().ok().map(Some),
        };
        match text.split_once(':') {
            Some((start, end)) => Some(Self::Elements { start: number(start)?, end: number(end)? }),
            None => {
                let only: i64 = text.parse().ok()?;
                // The element after -1 is the end.
                let end = only.checked_add(1)?;
                Some(Self::Elements { start: Some(only), end: (end != 0).then_some(end) })
            }
        }
    }
}

impl fmt::Display for DimensionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |number: &Option<i64>| number.map(|number| number.to_string()).unwrap_or_default();
        match &self.limits {
            DimensionLimits::Elements { start, end } => {
                write!(f, "{}={}:{}", self.dimension, number(start), number(end))
            }
            DimensionLimits::Values { from, to } => {
                let [from, to] = [from, to].map(|bound| bound.as_deref().unwrap_or_default());
                write!(f, "{}={from}..{to}", self.dimension)
            }
        }
    }
}

raddle_core::serde_as_text!(DimensionRange);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_of_elements_or_values() {
        let limits = |text: &str| text.parse::<DimensionRange>().unwrap().limits;
        assert_eq!(limits("time=0:100"), DimensionLimits::Elements { start: Some(0), end: Some(100) });
        assert_eq!(limits("time = -12:"), DimensionLimits::Elements { start: Some(-12), end: None });
        assert_eq!(limits("time=:"), DimensionLimits::Elements { start: None, end: None });
        assert_eq!(limits("lev=3"), DimensionLimits::Elements { start: Some(3), end: Some(4) });
        assert_eq!(limits("lev=-1"), DimensionLimits::Elements { start: Some(-1), end: None });
        let values = |from: &str, to: &str| {
            let bound = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            DimensionLimits::Values { from: bound(from), to: bound(to) }
        };
        assert_eq!(limits("lat=-30..30"), values("-30", "30"));
        assert_eq!(limits("/grid/lat=..30.5"), values("", "30.5"));
        assert_eq!(limits("time=2001-01-01T06:00.."), values("2001-01-01T06:00", ""));
        for text in
            ["", "time", "=0:1", "time=", "time=..", "time=0:1:2", "time=a:b", "lev=500.0", "time=1:x", "lev=nan"]
        {
            let error = text.parse::<DimensionRange>().unwrap_err();
            assert!(error.to_string().starts_with(&format!("{text:?} is not")), "{error}");
        }
    }

    #[test]
    fn ranges_of_dimensions_are_separated_by_commas() {
        for (text, ranges) in [("time=0:3,lat=-30..30", 2), ("a,b=0:3", 1), ("a,b=0:3,c=..5", 2)] {
            let parsed: DimensionRanges = text.parse().unwrap();
            assert_eq!((parsed.0.len(), parsed.to_string().as_str()), (ranges, text));
        }
        for text in ["time=0:3,", ",time=0:3", "time=0:3,lat", "time,lat"] {
            assert!(text.parse::<DimensionRanges>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_range_is_read_back_from_its_text() {
        for text in ["time=0:100", "time=-12:", "time=:7", "lat=-30..30", "lat=..30", "a=b=2:3", "t=2001-02.."] {
            let range: DimensionRange = text.parse().unwrap();
            assert_eq!(range.to_string(), text);
            assert_eq!(serde_json::to_value(&range).unwrap(), text);
        }
    }
}
