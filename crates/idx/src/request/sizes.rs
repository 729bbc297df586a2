//! Sizes, boxes and ranges of requests: numbers of samples along axes, as users write them.

use super::fault::RequestFault;
use crate::dataset::bitmask::{AXES, MAX_RANK, Point};
use crate::dataset::region::SampleBox;
use crate::error::{IdxError, Result};
use crate::write::restructure::ImposedBox;
use std::fmt::{Display, Formatter};
use std::ops::Range;
use std::str::FromStr;

/// Number of samples along each axis, slowest first, none of them 0: `64x128x128`, or a single number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape(pub Vec<u64>);

/// Error for a string that is not a [`Shape`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a shape is numbers above 0 with x between them, for example 64x128x128")]
pub struct ParseShapeError;

impl FromStr for Shape {
    type Err = ParseShapeError;

    fn from_str(text: &str) -> Result<Self, ParseShapeError> {
        let counts: Result<Vec<u64>, _> = text.split('x').map(str::parse).collect();
        counts.ok().filter(|counts| !counts.contains(&0)).map(Self).ok_or(ParseShapeError)
    }
}

impl Display for Shape {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0.iter().map(u64::to_string).collect::<Vec<_>>().join("x"))
    }
}

impl Shape {
    /// Returns the numbers of samples with axis x first, for samples with `axes` axes. `option` names the shape in
    /// errors.
    ///
    /// # Errors
    /// If the number of axes differs.
    pub(crate) fn x_first(&self, option: &'static str, axes: usize) -> Result<Vec<u64>> {
        match self.0.len() {
            named if named == axes => Ok(self.0.iter().rev().copied().collect()),
            named => Err(IdxError::Request { option, fault: RequestFault::SizeAxes { named, axes } }),
        }
    }
}

/// Size of the power-of-two boxes that samples are moved to: `default`, `expanded`, `cube` or a [`Shape`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BoxSize {
    /// The longest share of any rank along each axis.
    Default,
    /// Twice the default.
    Expanded,
    /// The longest share along any axis, used for every axis.
    Cube,
    /// Explicit number of samples along each axis, rounded up to powers of two.
    Counts(Shape),
}

/// Error for a string that is not a [`BoxSize`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("default, expanded, cube, or a size, for example 64x64x64")]
pub struct ParseBoxSizeError;

impl FromStr for BoxSize {
    type Err = ParseBoxSizeError;

    fn from_str(text: &str) -> Result<Self, ParseBoxSizeError> {
        match text {
            "default" => Ok(Self::Default),
            "expanded" => Ok(Self::Expanded),
            "cube" => Ok(Self::Cube),
            _ => text.parse().map(Self::Counts).map_err(|ParseShapeError| ParseBoxSizeError),
        }
    }
}

impl Display for BoxSize {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::Expanded => formatter.write_str("expanded"),
            Self::Cube => formatter.write_str("cube"),
            Self::Counts(shape) => shape.fmt(formatter),
        }
    }
}

impl BoxSize {
    /// Converts to the form of the writer, for samples with `axes` axes.
    ///
    /// # Errors
    /// If the number of axes differs.
    pub fn imposed(&self, axes: usize) -> Result<ImposedBox> {
        Ok(match self {
            Self::Default => ImposedBox::Default,
            Self::Expanded => ImposedBox::Expanded,
            Self::Cube => ImposedBox::Cube,
            Self::Counts(shape) => {
                let counts = shape.x_first("box", axes)?;
                let count = |axis: usize| counts.get(axis).copied().unwrap_or(1);
                ImposedBox::Counts(std::array::from_fn::<_, MAX_RANK, _>(count))
            }
        })
    }
}

/// Range of samples along an axis, end excluded: `z=5:9`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AxisRange {
    /// Number of the axis, 0 for x.
    pub axis: usize,
    /// Samples along the axis.
    pub range: Range<u64>,
}

/// Error for a string that is not an [`AxisRange`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("samples along an axis are AXIS=START:END, for example z=5:9")]
pub struct ParseAxisRangeError;

impl FromStr for AxisRange {
    type Err = ParseAxisRangeError;

    fn from_str(text: &str) -> Result<Self, ParseAxisRangeError> {
        let parsed = text.split_once('=').and_then(|(name, range)| {
            let (start, end) = range.split_once(':')?;
            Some(Self { axis: axis_named(name)?, range: start.parse().ok()?..end.parse().ok()? })
        });
        parsed.filter(|parsed| parsed.range.start <= parsed.range.end).ok_or(ParseAxisRangeError)
    }
}

impl Display for AxisRange {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}={}:{}", AXES.get(self.axis).unwrap_or(&'?'), self.range.start, self.range.end)
    }
}

/// Returns the number of the axis with this name: 0 for `x`.
pub fn axis_named(name: &str) -> Option<usize> {
    AXES.iter().position(|axis| name.chars().eq([*axis]))
}

/// Restricts a box of samples with `rank` axes to `ranges`; other axes stay. `option` names the ranges in errors.
///
/// # Errors
/// If an axis does not exist, or is named twice.
pub fn restrict(region: &mut SampleBox, option: &'static str, ranges: &[AxisRange], rank: usize) -> Result<()> {
    let SampleBox { start, end }: &mut SampleBox = region;
    let (start, end): (&mut Point, &mut Point) = (start, end);
    for (at, AxisRange { axis, range }) in ranges.iter().enumerate() {
        let name = AXES.get(*axis).copied().unwrap_or('?');
        if *axis >= rank.min(MAX_RANK) {
            let axes = AXES[..rank.min(MAX_RANK)].to_vec();
            return Err(IdxError::Request { option, fault: RequestFault::NoAxis { axis: name, axes } });
        }
        if ranges[..at].iter().any(|other| other.axis == *axis) {
            return Err(IdxError::Request { option, fault: RequestFault::AxisTwice { axis: name } });
        }
        (start[*axis], end[*axis]) = (range.start, range.end);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_and_printed() {
        for text in ["default", "expanded", "cube", "64x32", "7"] {
            assert_eq!(text.parse().map(|size: BoxSize| size.to_string()), Ok(text.to_owned()));
        }
        assert_eq!("64x32".parse(), Ok(BoxSize::Counts(Shape(vec![64, 32]))));
        for wrong in ["64x0", "large", "", "x", "4x"] {
            assert_eq!(wrong.parse::<BoxSize>(), Err(ParseBoxSizeError), "{wrong}");
        }
    }

    #[test]
    fn ranges_along_axes() {
        assert_eq!("z=5:9".parse(), Ok(AxisRange { axis: 2, range: 5..9 }));
        assert_eq!(AxisRange { axis: 0, range: 0..4 }.to_string(), "x=0:4");
        for wrong in ["z=5", "w=1:2", "z=9:5", "=1:2", "zz=1:2", "z=-1:2"] {
            assert_eq!(wrong.parse::<AxisRange>(), Err(ParseAxisRangeError), "{wrong}");
        }
    }

    #[test]
    fn boxes_are_restricted_axis_by_axis() {
        let whole = SampleBox::new(&[0, 0], &[8, 8]);
        let restricted = |ranges: &[&str]| {
            let ranges: Vec<AxisRange> = ranges.iter().map(|range| range.parse().unwrap()).collect();
            let mut region = whole;
            restrict(&mut region, "crop", &ranges, 2).map(|()| region).map_err(|error| error.to_string())
        };
        assert_eq!(restricted(&["y=2:5"]), Ok(SampleBox::new(&[0, 2], &[8, 3])));
        assert_eq!(restricted(&["z=0:1"]), Err("crop names axis z, but the dataset has x y".to_owned()));
        assert_eq!(restricted(&["x=0:1", "x=2:3"]), Err("crop names axis x twice".to_owned()));
    }
}
