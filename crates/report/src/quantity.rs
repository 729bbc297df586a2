//! Formatting of numbers for people: sizes with binary units, counts with separators, times, rates, ratios.

/// Formats a number in the unit that its name implies: seconds if it ends in `_s`, bytes if in `len_bytes`.
pub fn named(name: &str, value: f64) -> String {
    if name.ends_with("_s") {
        brief_seconds(value)
    } else if name.ends_with("len_bytes") {
        size(value as u64)
    } else {
        count(value.round() as u64)
    }
}

/// Returns the text for a number with this name.
pub fn of_name(name: &str) -> String {
    name.trim_end_matches("_s").trim_end_matches("_len_bytes").replace('_', " ")
}

/// Formats `len_bytes` with three significant digits and a binary unit: `512 B`, `1.50 KiB`, `225 MiB`.
pub fn size(len_bytes: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if len_bytes < 1024 {
        return format!("{len_bytes} B");
    }
    let mut unit = (len_bytes.ilog2() / 10) as usize;
    let mut value = len_bytes as f64 / 2_f64.powi(10 * unit as i32);
    // 1023.7 KiB would be shown as `1024 KiB`.
    if value >= 999.5 && unit + 1 < UNITS.len() {
        (value, unit) = (value / 1024.0, unit + 1);
    }
    format!("{} {}", three_digits(value), UNITS[unit])
}

/// Formats `value` with three significant digits, or with all digits before the decimal point if there are more.
fn three_digits(value: f64) -> String {
    match value {
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 99.95 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

/// Formats `number` with a separator every three digits: `16,000`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats numbers of elements along axes: `9,810 x 1`.
pub fn shape(counts: &[u64]) -> String {
    counts.iter().map(|along| count(*along)).collect::<Vec<_>>().join(" x ")
}

/// Formats `number` with its noun, in the plural unless it is one: `1 file`, `1,200 files`.
pub fn counted(number: u64, noun: &str) -> String {
    let plural = match (number, noun) {
        (1, _) => noun.to_owned(),
        (_, noun) if noun.ends_with('y') => format!("{}ies", &noun[..noun.len() - 1]),
        (_, noun) if noun.ends_with('x') || noun.ends_with("ch") => format!("{noun}es"),
        (_, noun) => format!("{noun}s"),
    };
    format!("{} {plural}", count(number))
}

/// Formats a duration: `0.42 s`, `7.1 s`, `3 min 05 s`, `2 h 05 min`.
pub fn seconds(elapsed_s: f64) -> String {
    let whole = elapsed_s.round() as u64;
    match elapsed_s {
        s if s < 9.995 => format!("{s:.2} s"),
        s if s < 99.95 => format!("{s:.1} s"),
        _ if whole < 3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole % 3600 / 60),
    }
}

/// Formats a duration that may be much shorter than a second: `4.13 ms`, `0.42 s`.
pub fn brief_seconds(elapsed_s: f64) -> String {
    match elapsed_s * 1e3 {
        ms if ms < 0.0005 => "0 s".to_owned(),
        ms if ms < 99.95 => format!("{} ms", three_digits(ms)),
        _ => seconds(elapsed_s),
    }
}

/// Formats bytes per second: `412 MiB/s`; `-` if no time passed.
pub fn rate(len_bytes: u64, elapsed_s: f64) -> String {
    if elapsed_s <= 0.0 {
        return "-".to_owned();
    }
    format!("{}/s", size((len_bytes as f64 / elapsed_s) as u64))
}

/// Formats how many times smaller `stored` is than `logical`: `8.2x`; `-` if nothing is stored.
pub fn ratio(logical: u64, stored: u64) -> String {
    if stored == 0 {
        return "-".to_owned();
    }
    format!("{}x", three_digits(logical as f64 / stored as f64))
}

/// Formats `part` of `whole` as a percentage: `84 %`, `0.3 %`; `-` if the whole is zero.
pub fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    let percent = 100.0 * part as f64 / whole as f64;
    match percent {
        p if part == 0 || p >= 9.95 => format!("{p:.0} %"),
        p if p < 0.05 => "<0.1 %".to_owned(),
        p => format!("{p:.1} %"),
    }
}

/// Formats a number in any unit with four digits: `1.211`, `0.00017`, `2.5e-9`.
pub fn number(value: f64) -> String {
    // Rounding to four digits gives a number again.
    let rounded = format!("{value:.3e}").parse().unwrap_or(value);
    match rounded.abs() {
        0.0 | 1e-4..1e6 => format!("{rounded}"),
        _ => format!("{rounded:e}"),
    }
}

/// Formats a time in seconds since 1970 as date and time of day: `2026-05-03 12:34 UTC`.
pub fn date(unix_s: f64) -> String {
    let seconds = unix_s.max(0.0) as u64;
    let (days, minutes) = (seconds / 86_400, seconds % 86_400 / 60);
    // Periods of 400 years, counted in days from 1 March of the year 0, so that a leap day is the last day of its year.
    const DAYS_TO_1970: u64 = 719_468;
    let (era, day) = ((days + DAYS_TO_1970) / 146_097, (days + DAYS_TO_1970) % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    format!("{:04}-{month:02}-{day:02} {:02}:{:02} UTC", 400 * era + year + later, minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_four_digits() {
        let texts = [0.0, 1.211_34, -0.000_17, 2.5e-9, 123_456.0, f64::INFINITY].map(number);
        assert_eq!(texts, ["0", "1.211", "-0.00017", "2.5e-9", "123500", "inf"]);
    }

    #[test]
    fn sizes_have_three_digits_and_never_reach_the_next_unit() {
        let texts = [0, 1023, 1024, 1536, 1_048_575, 235_929_600, u64::MAX].map(size);
        assert_eq!(texts, ["0 B", "1023 B", "1.00 KiB", "1.50 KiB", "1.00 MiB", "225 MiB", "16.0 EiB"]);
    }

    #[test]
    fn counts_are_grouped_and_nouns_inflected() {
        assert_eq!([count(7), count(1000), count(190_000_000)], ["7", "1,000", "190,000,000"]);
        assert_eq!([counted(1, "file"), counted(0, "file"), counted(2, "entry")], ["1 file", "0 files", "2 entries"]);
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        let dates = [0.0, 951_782_399.0, 951_782_400.0, 951_868_800.0, 1_735_689_599.9, 4_102_444_800.0].map(date);
        let known = ["1970-01-01 00:00", "2000-02-28 23:59", "2000-02-29 00:00", "2000-03-01 00:00"];
        let later = ["2024-12-31 23:59", "2100-01-01 00:00"];
        for (date, known) in dates.iter().zip(known.iter().chain(&later)) {
            assert_eq!(*date, format!("{known} UTC"));
        }
    }

    #[test]
    fn durations_rates_and_shares() {
        assert_eq!(
            [seconds(0.4249), seconds(71.0), seconds(185.4), seconds(7500.0)],
            ["0.42 s", "71.0 s", "3 min 05 s", "2 h 05 min"]
        );
        let brief = [0.0, 0.000_12, 0.004_127, 0.0999, 0.0999_9, 0.4249].map(brief_seconds);
        assert_eq!(brief, ["0 s", "0.12 ms", "4.13 ms", "99.9 ms", "0.10 s", "0.42 s"]);
        assert_eq!([rate(1 << 20, 0.5), rate(1, 0.0)], ["2.00 MiB/s", "-"]);
        assert_eq!([ratio(300, 100), ratio(1, 0)], ["3.00x", "-"]);
        assert_eq!(
            [share(84, 100), share(3, 1000), share(1, 1_000_000), share(0, 5)],
            ["84 %", "0.3 %", "<0.1 %", "0 %"]
        );
    }
}
