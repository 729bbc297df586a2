//! Comparison of several runs on one page: times and sizes, relative to the first run.

use crate::markup::{part, table};
use crate::quantity;
use crate::run::{Run, command};

/// Returns the comparison of the runs; empty for a single run.
pub(crate) fn runs(runs: &[(&str, &Run)]) -> String {
    let [(_, first), _, ..] = runs else { return String::new() };
    let against = |value: Option<f64>, first: Option<f64>| match (value, first) {
        (Some(value), Some(first)) if first > 0.0 => format!("{:.2}", value / first),
        _ => "-".to_owned(),
    };
    let size = |len_bytes: Option<u64>| len_bytes.map_or_else(|| "-".to_owned(), quantity::size);
    let number = |value: Option<u64>| value.map(|value| value as f64);
    let row = |(name, run): &(&str, &Run)| {
        let rate = run.input_len_bytes.zip(run.elapsed_s).map(|(len_bytes, time)| quantity::rate(len_bytes, time));
        vec![
            (*name).to_owned(),
            command(&run.invocation).unwrap_or_default().to_owned(),
            run.elapsed_s.map_or_else(|| "-".to_owned(), quantity::seconds),
            against(run.elapsed_s, first.elapsed_s),
            size(run.output_len_bytes),
            against(number(run.output_len_bytes), number(first.output_len_bytes)),
            rate.unwrap_or_else(|| "-".to_owned()),
            size(run.memory.peak_rss_bytes),
            run.warnings.len().to_string(),
        ]
    };
    let titles = ["run", "command", "time", "ratio", "output", "ratio", "input rate", "memory", "warnings"];
    let compared = table(&titles, &runs.iter().map(row).collect::<Vec<_>>());
    part("Runs compared", &format!("<p class=\"soft\">Ratios are to the first run.</p>\n{compared}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_run_is_the_measure() {
        let run = |elapsed_s, output_len_bytes| Run {
            invocation: vec!["raddle".to_owned(), "merge".to_owned()],
            elapsed_s: Some(elapsed_s),
            output_len_bytes: Some(output_len_bytes),
            ..Run::default()
        };
        let (fast, small) = (run(2.0, 1000), run(5.0, 700));
        let text = runs(&[("fast.json", &fast), ("small.json", &small)]);
        for cells in [
            "<td>fast.json</td><td>merge</td><td>2.00 s</td><td>1.00</td><td>1000 B</td><td>1.00</td>",
            "<td>small.json</td><td>merge</td><td>5.00 s</td><td>2.50</td><td>700 B</td><td>0.70</td>",
        ] {
            assert!(text.contains(cells), "{cells}\n{text}");
        }
        assert!(runs(&[("fast.json", &fast)]).is_empty() && runs(&[]).is_empty());
    }
}
