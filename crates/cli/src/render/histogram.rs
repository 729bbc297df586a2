//! A histogram as lines of text: label, bar, count.

use super::quantity;

/// Width of the longest bar, in characters.
const BAR_WIDTH: u64 = 40;

/// Formats `bars` (label, count), each proportional to the largest count; a count above zero is always visible.
pub fn lines(bars: &[(String, u64)]) -> String {
    let largest = bars.iter().map(|&(_, count)| count).max().unwrap_or(0).max(1);
    let label_width = bars.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (label, count) in bars {
        // In eighths of a character, rounded up; u128: a count times 320 may not fit in 64 bits.
        let eighths = (u128::from(*count) * u128::from(BAR_WIDTH * 8)).div_ceil(u128::from(largest)) as usize;
        let mut bar = "█".repeat(eighths / 8);
        bar.push_str(["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8]);
        let line =
            format!("  {label:>label_width$} {bar:<width$} {}", quantity::count(*count), width = BAR_WIDTH as usize);
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_in_proportion_and_none_vanishes() {
        let bars = [("512 B".to_owned(), 1_000_000), ("1 MiB".to_owned(), 1), ("2 MiB".to_owned(), 0)];
        let text = lines(&bars);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0].matches('█').count(), 40);
        assert!(lines[1].contains('▏') && lines[1].ends_with(" 1"));
        assert!(!lines[2].contains(['█', '▏']) && lines[2].ends_with(" 0"));
    }

    #[test]
    fn the_largest_count_does_not_overflow() {
        assert_eq!(lines(&[("x".to_owned(), u64::MAX)]).matches('█').count(), 40);
    }
}
