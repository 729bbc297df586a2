//! Axes of CF variables: which coordinate is the time, and which one the height.
//!
//! Source: CF conventions 1.11, chapter 4. A coordinate is recognised by its attributes alone, whatever its name.

use crate::rules::time_units::is_time_units;
use crate::schema::AttributeValue;
use crate::schema::attribute::text;

/// Role of a coordinate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AxisRole {
    /// The time: attribute `axis` is `T`, or `standard_name` is `time`.
    Time,
    /// Another time: no attribute marks it as the time axis, but it has units such as `days since 1970-01-01`.
    OtherTime,
    /// Height, depth or pressure: `axis` is `Z`, or `positive` is given.
    Vertical,
    /// Anything else.
    Other,
}

impl AxisRole {
    /// Determines the role of a coordinate from its attributes.
    pub fn of(attributes: &[AttributeValue]) -> Self {
        let is = |name: &str, expected: &str| text(attributes, name).is_some_and(|text| text.trim() == expected);
        let has_time_units = text(attributes, "units").is_some_and(|units| is_time_units(&units));
        match text(attributes, "axis").as_deref().map(str::trim) {
            Some("T") => Self::Time,
            Some("Z") => Self::Vertical,
            Some("X" | "Y") => Self::Other,
            _ if has_time_units && is("standard_name", "time") => Self::Time,
            _ if has_time_units => Self::OtherTime,
            _ if text(attributes, "positive").is_some() => Self::Vertical,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::attribute::new;
    use raddle_hdf5::model::TypeClass;

    fn role(attributes: &[(&str, &str)]) -> AxisRole {
        let class = |len: usize| TypeClass::FixedString { len_bytes: len as u32, padding: 1, charset: 1 };
        let of = |&(name, value): &(&str, &str)| new(name, class(value.len()), &[1], value.as_bytes().to_vec());
        AxisRole::of(&attributes.iter().map(of).collect::<Vec<_>>())
    }

    #[test]
    fn attributes_decide_the_role() {
        let since = ("units", "days since 1970-01-01");
        assert_eq!(role(&[since]), AxisRole::OtherTime);
        assert_eq!(role(&[since, ("standard_name", "time")]), AxisRole::Time);
        assert_eq!(role(&[since, ("standard_name", "forecast_reference_time")]), AxisRole::OtherTime);
        assert_eq!(role(&[("axis", "T"), ("units", "1")]), AxisRole::Time);
        assert_eq!(role(&[("units", "hPa"), ("positive", "down")]), AxisRole::Vertical);
        assert_eq!(role(&[("units", "hours")]), AxisRole::Other);
        assert_eq!(role(&[("units", "degrees_north"), ("axis", "Y")]), AxisRole::Other);
    }
}
