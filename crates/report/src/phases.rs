//! Runs of idx: the times of the phases, the messages and memory of ranks, and a comparison of runs with one, two and
//! three phases.
//!
//! Follows figures 4 and 5 of Kumar et al., SC12: throughput and memory by phases, messages by size. Stages have the
//! same names as in every report: regroup stands for the messages that aggregate parts of blocks, place for the writes.
//! Invariant: a run without phases gives an empty string.

use crate::histogram::histogram;
use crate::markup::{part, table};
use crate::quantity;
use crate::run::{Bucket, Messages, Run};
use crate::svg::{Anchor, COLOURS, Figure, WIDTH};

/// Maximum number of ranks with a bar each.
const MAX_RANKS: usize = 48;

/// Names of the stages of the phases.
const STAGES: [&str; 5] = ["restructure", "regroup", "encode", "place", "commit"];

/// Draws the messages between ranks by size.
pub fn messages(run: &Run) -> Option<Figure> {
    let buckets = |all: &[Messages]| -> Vec<Bucket> {
        let counts = Messages::sum(all).by_log2_len.into_iter().enumerate().filter(|(_, count)| *count > 0);
        counts
            .filter_map(|(log2, count)| Some(Bucket { from_len_bytes: 1u64.checked_shl(log2 as u32)?, count }))
            .collect()
    };
    let caption = "Messages of all ranks by size, from each power of two to the next: those that bring samples into \
                   power-of-two boxes, and those that bring parts of blocks to the ranks that write them."
        .to_owned();
    let (restructure, aggregate) = (buckets(&run.restructure_messages), buckets(&run.aggregate_messages));
    let figure = Figure::new("messages", "Messages between ranks", caption);
    histogram(figure, [(&restructure, "restructure"), (&aggregate, "aggregate (regroup)")])
}

/// Draws the memory of each rank as a bar.
pub fn memory(run: &Run) -> Option<Figure> {
    let resident = |at: usize| run.rank_memory[at].peak_rss_bytes.unwrap_or(0);
    let buffers = |at: usize| run.rank_memory[at].budget_peak_bytes.unwrap_or(0);
    let count = run.rank_memory.len();
    let most = (0..count).map(|at| resident(at).max(buffers(at))).max().filter(|most| *most > 0 && count > 1)?;
    let drawn_ranks: Vec<usize> = match count {
        0..=MAX_RANKS => (0..count).collect(),
        _ => (0..MAX_RANKS).map(|at| at * (count - 1) / (MAX_RANKS - 1)).collect(),
    };
    let of = match count > MAX_RANKS {
        true => format!(" {MAX_RANKS} of {} ranks.", quantity::count(count as u64)),
        false => String::new(),
    };
    let caption = format!("Peak memory of each rank, and the part of it in buffers of the writer.{of}");
    let mut figure = Figure::new("memory", "Memory of ranks", caption);
    let (left, right, height) = (72.0, WIDTH - 80.0, if drawn_ranks.len() > 16 { 10.0 } else { 22.0 });
    for (row, rank) in drawn_ranks.into_iter().enumerate() {
        let y = row as f64 * (height + 4.0);
        let width = |len_bytes: u64| len_bytes as f64 / most as f64 * (right - left);
        let (all, part) = (quantity::size(resident(rank)), quantity::size(buffers(rank)));
        figure.rectangle([left, y, width(resident(rank)), height], COLOURS[0], &format!("resident: {all}"));
        figure.rectangle([left, y, width(buffers(rank)), height], COLOURS[1], &format!("buffers: {part}"));
        let foot = y + height / 2.0 + 4.0;
        figure.text(0.0, foot, Anchor::Start, 70.0, &format!("rank {rank}"));
        figure.text(WIDTH, foot, Anchor::End, 78.0, &all);
    }
    figure.legend(&[("resident".to_owned(), COLOURS[0]), ("buffers".to_owned(), COLOURS[1])]);
    Some(figure)
}

/// Returns the table of the minimum, mean and maximum over the ranks of times, messages and memory.
pub fn phase_table(run: &Run) -> String {
    let (Some(phases), Some(ranks)) = (&run.phases, run.ranks.filter(|ranks| *ranks > 0)) else { return String::new() };
    let mut rows = Vec::new();
    let mut row = |title: &str, values: &[f64], format_value: &dyn Fn(f64) -> String| {
        let (least, most) =
            (values.iter().copied().fold(f64::INFINITY, f64::min), values.iter().copied().fold(0.0, f64::max));
        if most > 0.0 {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            rows.push(vec![title.to_owned(), format_value(least), format_value(mean), format_value(most)]);
        }
    };
    for stage in STAGES {
        let mut times = vec![0.0; ranks as usize];
        for of_rank in run.all_stages().filter(|of| of.stage == stage) {
            if let Some(time) = times.get_mut(of_rank.rank as usize) {
                *time += of_rank.wall_s.max(0.0);
            }
        }
        row(stage, &times, &quantity::seconds);
    }
    let count = |value: f64| quantity::count(value.round() as u64);
    let size = |value: f64| quantity::size(value as u64);
    for (title, all) in [("restructure", &run.restructure_messages), ("regroup", &run.aggregate_messages)] {
        let of = |value: fn(&Messages) -> u64| all.iter().map(|of_rank| value(of_rank) as f64).collect::<Vec<_>>();
        row(&format!("{title}: messages"), &of(|of| of.messages), &count);
        row(&format!("{title}: bytes sent"), &of(|of| of.len_bytes), &size);
    }
    let peak_rss_bytes: Vec<f64> = run.rank_memory.iter().map(|of| of.peak_rss_bytes.unwrap_or(0) as f64).collect();
    row("memory", &peak_rss_bytes, &size);
    part(&format!("Phases of ranks ({phases} phases)"), &table(&["per rank", "minimum", "mean", "maximum"], &rows))
}

/// Returns the comparison of runs of idx; empty if there are fewer than two.
pub fn compared<'r>(runs: impl Iterator<Item = (&'r str, &'r Run)>) -> String {
    let runs: Vec<_> = runs.filter(|(_, run)| run.phases.is_some()).collect();
    if runs.len() < 2 {
        return String::new();
    }
    let row = |(name, run): &(&str, &Run)| {
        let mean = |stage: &str| {
            let sum: f64 = run.all_stages().filter(|of| of.stage == stage).map(|of| of.wall_s.max(0.0)).sum();
            quantity::seconds(sum / run.ranks.unwrap_or(1).max(1) as f64)
        };
        let mut sent = Messages::sum(&run.restructure_messages);
        sent.add(&Messages::sum(&run.aggregate_messages));
        let rate =
            run.sample_len_bytes.zip(run.elapsed_s).map(|(len_bytes, elapsed_s)| quantity::rate(len_bytes, elapsed_s));
        let peak_rss_bytes = run.rank_memory.iter().filter_map(|of| of.peak_rss_bytes).max();
        let mut cells = vec![
            (*name).to_owned(),
            run.phases.clone().unwrap_or_default(),
            quantity::count(run.ranks.unwrap_or(1)),
            run.elapsed_s.map(quantity::seconds).unwrap_or_default(),
            rate.unwrap_or_default(),
        ];
        cells.extend(STAGES.map(mean));
        let mean_len = sent.len_bytes.checked_div(sent.messages);
        cells.extend([quantity::count(sent.messages), mean_len.map_or("-".to_owned(), quantity::size)]);
        cells.push(peak_rss_bytes.map_or("-".to_owned(), quantity::size));
        cells
    };
    let titles: Vec<&str> = ["run", "phases", "ranks", "time", "rate"]
        .into_iter()
        .chain(STAGES)
        .chain(["messages", "mean length", "peak memory"])
        .collect();
    let rows: Vec<Vec<String>> = runs.iter().map(row).collect();
    part("Phases compared", &format!("<p>Stages: mean of the ranks.</p>\n{}", table(&titles, &rows)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn run(phases: &str) -> Run {
        let text = format!(
            r#"{{"steps": [{{"phases": "{phases}", "ranks": 2, "elapsed_s": 2, "sample_len_bytes": 4096,
            "stages": [{{"rank": 0, "stage": "restructure", "wall_s": 1}}, {{"rank": 1, "stage": "restructure", "wall_s": 3}}],
            "engine": {{"stages": [{{"rank": 1, "stage": "encode", "wall_s": 4}}]}},
            "restructure_messages": [{{"messages": 2, "len_bytes": 2048, "by_log2_len": [0,0,0,0,0,0,0,0,0,0,2]}}, {{}}],
            "aggregate_messages": [{{"messages": 1, "len_bytes": 5, "by_log2_len": [0,0,1]}}, {{"messages": 1, "len_bytes": 4, "by_log2_len": [0,0,1]}}],
            "rank_memory": [{{"peak_rss_bytes": 1048576, "budget_peak_bytes": 1024}}, {{"peak_rss_bytes": 2097152}}]}}]}}"#
        );
        Run::parse(Path::new("run.json"), text.as_bytes()).unwrap()
    }

    #[test]
    fn a_run_shows_its_phases_messages_and_memory() {
        let run = run("three");
        let text = messages(&run).unwrap().inline();
        assert!(
            text.contains("restructure, 1.00 KiB or more: 2") && text.contains("aggregate (regroup), 4 B or more: 2"),
            "{text}"
        );
        let text = memory(&run).unwrap().inline();
        assert!(text.contains("resident: 2.00 MiB") && text.contains("buffers: 1.00 KiB"), "{text}");
        let text = phase_table(&run);
        for row in [
            "<td>restructure</td><td>1.00 s</td><td>2.00 s</td><td>3.00 s</td>",
            "<td>encode</td><td>0",
            "<td>restructure: messages</td><td>0</td><td>1</td><td>2</td>",
            "<td>memory</td><td>1.00 MiB</td><td>1.50 MiB</td><td>2.00 MiB</td>",
        ] {
            assert!(text.contains(row), "{row}\n{text}");
        }
        assert!(!text.contains("place"), "what nobody did is left out");
    }

    #[test]
    fn runs_of_other_kinds_show_nothing_here() {
        let other = Run::default();
        assert!(messages(&other).is_none() && memory(&other).is_none() && phase_table(&other).is_empty());
        let (two, three) = (run("two"), run("three"));
        assert!(compared([("a", &two), ("b", &other)].into_iter()).is_empty());
        let text = compared([("two.json", &two), ("three.json", &three)].into_iter());
        assert!(text.contains("<td>two.json</td><td>two</td><td>2</td><td>2.00 s</td>"), "{text}");
        assert!(text.contains("<td>4</td><td>514 B</td><td>2.00 MiB</td>"), "{text}");
    }
}
