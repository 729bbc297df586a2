//! CF calendars: the number of days between two dates.
//!
//! Invariant: days are counted from 0000-01-01 of the calendar itself, so that only differences within one calendar are
//! meaningful. Source: CF conventions 1.11, section 4.4.2.

/// Calendar of the CF conventions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calendar {
    /// Julian calendar before 1582-10-15, Gregorian from then on (`standard`, `gregorian`).
    Standard,
    /// Gregorian calendar at all times.
    ProlepticGregorian,
    /// Julian calendar at all times.
    Julian,
    /// Years without leap days.
    NoLeap,
    /// Years that all have a leap day.
    AllLeap,
    /// Years of twelve months with 30 days each.
    Days360,
}

/// Number of days before each month of a year that is not a leap year.
const DAYS_BEFORE: [i64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];

impl Calendar {
    /// Returns the calendar that a `calendar` attribute names; the default is the standard calendar.
    pub fn named(name: Option<&str>) -> Option<Self> {
        Some(match name.map(str::to_ascii_lowercase).as_deref() {
            None | Some("standard" | "gregorian" | "") => Self::Standard,
            Some("proleptic_gregorian") => Self::ProlepticGregorian,
            Some("julian") => Self::Julian,
            Some("noleap" | "365_day") => Self::NoLeap,
            Some("all_leap" | "366_day") => Self::AllLeap,
            Some("360_day") => Self::Days360,
            Some(_) => return None,
        })
    }

    /// Returns the number of days from the calendar's origin to a date; `None` if the date does not exist in the
    /// calendar.
    pub fn days(self, year: i64, month: u32, day: u32) -> Option<i64> {
        if !(1..=12).contains(&month) || day == 0 || day > self.month_days(year, month) {
            return None;
        }
        let (before, day) = (DAYS_BEFORE[month as usize - 1], i64::from(day) - 1);
        let after_february = i64::from(month > 2);
        let in_year = before + day;
        Some(match self {
            Self::Days360 => year * 360 + i64::from(month - 1) * 30 + day,
            Self::NoLeap => year * 365 + in_year,
            Self::AllLeap => year * 366 + in_year + after_february,
            Self::Julian => julian_years(year) + in_year + after_february * i64::from(is_julian_leap(year)),
            Self::ProlepticGregorian => {
                gregorian_years(year) + in_year + after_february * i64::from(is_gregorian_leap(year))
            }
            Self::Standard if (year, month, i64::from(day as u32) + 1) >= (1582, 10, 15) => {
                Self::ProlepticGregorian.days(year, month, day as u32 + 1)?
            }
            // The Julian date 1582-10-05 is the Gregorian date 1582-10-15.
            Self::Standard if (year, month, day + 1) <= (1582, 10, 4) => {
                Self::Julian.days(year, month, day as u32 + 1)? - 2
            }
            Self::Standard => return None,
        })
    }

    fn month_days(self, year: i64, month: u32) -> u32 {
        let is_leap = match self {
            Self::Days360 => return 30,
            Self::NoLeap => false,
            Self::AllLeap => true,
            Self::Julian => is_julian_leap(year),
            Self::ProlepticGregorian => is_gregorian_leap(year),
            Self::Standard if year <= 1582 => is_julian_leap(year),
            Self::Standard => is_gregorian_leap(year),
        };
        match month {
            2 => 28 + u32::from(is_leap),
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        }
    }
}

fn is_julian_leap(year: i64) -> bool {
    year.rem_euclid(4) == 0
}

fn is_gregorian_leap(year: i64) -> bool {
    is_julian_leap(year) && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0)
}

/// Returns the number of days of all years from 0 to `year`, exclusive.
fn julian_years(year: i64) -> i64 {
    year * 365 + (year + 3).div_euclid(4)
}

fn gregorian_years(year: i64) -> i64 {
    year * 365 + (year + 3).div_euclid(4) - (year + 99).div_euclid(100) + (year + 399).div_euclid(400)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_those_of_the_calendar() {
        let between = |calendar: Calendar, from: (i64, u32, u32), to: (i64, u32, u32)| {
            calendar.days(to.0, to.1, to.2).unwrap() - calendar.days(from.0, from.1, from.2).unwrap()
        };
        use Calendar::*;
        let year = ((2000, 1, 1), (2001, 1, 1));
        let of_year = |calendar| between(calendar, year.0, year.1);
        assert_eq!([Standard, NoLeap, AllLeap, Days360, Julian].map(of_year), [366, 365, 366, 360, 366]);
        // Values from cftime: the difference of `date2num` of both dates.
        assert_eq!(between(ProlepticGregorian, (1850, 1, 1), (2000, 1, 1)), 54_786);
        assert_eq!(between(Standard, (1582, 10, 4), (1582, 10, 15)), 1);
        assert_eq!(between(Standard, (1, 1, 1), (2000, 1, 1)), 730_121);
        assert_eq!(between(ProlepticGregorian, (1, 1, 1), (2000, 1, 1)), 730_119);
        assert_eq!(between(Julian, (1900, 2, 28), (1900, 3, 1)), 2);
        assert_eq!(between(NoLeap, (1999, 12, 31), (2000, 3, 1)), 60);
    }

    #[test]
    fn every_day_follows_the_one_before() {
        for calendar in [Calendar::Standard, Calendar::ProlepticGregorian, Calendar::Julian, Calendar::AllLeap] {
            let mut last = None;
            for year in 1580..1610 {
                for (month, day) in (1..=12).flat_map(|month| (1..=31).map(move |day| (month, day))) {
                    let Some(days) = calendar.days(year, month, day) else { continue };
                    assert!(last.is_none_or(|last| days == last + 1), "{calendar:?} {year}-{month}-{day}");
                    last = Some(days);
                }
            }
        }
    }

    #[test]
    fn dates_that_do_not_exist_are_rejected() {
        assert_eq!(Calendar::Standard.days(1582, 10, 10), None);
        assert_eq!(Calendar::NoLeap.days(2000, 2, 29), None);
        assert_eq!(Calendar::Days360.days(2000, 2, 30), Some(2000 * 360 + 59));
    }
}
