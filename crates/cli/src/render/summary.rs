//! Comparison of a workload with its paper: predicted numbers, followed by a paragraph for each experiment.

use super::table::{CellAlign, Columns};
use super::{escape, quantity};
use raddle_tune::measurement::Measurement;
use raddle_tune::planned::{PlannedRow, ResultTable};
use raddle_tune::profile::Metric;
use raddle_tune::summary::{Here, Line, Tally};
use std::collections::BTreeSet;

/// Formats tables and paragraphs; empty if the workload is not from a paper.
pub fn text(done: &Measurement) -> String {
    let mut text: String = done.planned.iter().map(|table| format!("\n{}", of_table(table))).collect();
    if done.summary.iter().any(|line| line.place.is_some()) {
        text.push_str("\nsummary: the paper, then this machine\n");
        text.extend(done.planned.iter().map(short));
        text.extend(done.summary.iter().map(line));
    }
    text
}

/// Returns the location of a table in the paper, which precedes the quotation.
fn place(table: &ResultTable) -> &str {
    table.paper.as_deref().and_then(|paper| paper.split_once(": ")).map_or("planned", |(place, _)| place)
}

fn short(table: &ResultTable) -> String {
    let mut verdicts: Vec<&str> = Vec::new();
    for row in &table.rows {
        if !verdicts.contains(&row.verdict.words()) {
            verdicts.push(row.verdict.words());
        }
    }
    format!("{}, {}: {}\n", escape::text(place(table)), escape::text(&table.name), verdicts.join(", "))
}

fn of_table(table: &ResultTable) -> String {
    let mut text = format!("{}: {}\n", escape::text(&table.name), escape::text(&table.title));
    if let Some(paper) = &table.paper {
        text.push_str(&format!("  paper: {}\n", escape::text(paper)));
    }
    let names: BTreeSet<&String> = table.rows.iter().flat_map(|row| row.here.keys()).collect();
    let words: Vec<String> = names.iter().map(|name| quantity::of_name(name)).collect();
    let heads =
        std::iter::once(("", CellAlign::Left)).chain(words.iter().map(|name| (name.as_str(), CellAlign::Right)));
    let mut columns = Columns::new(&heads.chain([("verdict", CellAlign::Left)]).collect::<Vec<_>>());
    for row in &table.rows {
        let mut cells = vec![escape::text(&row.name).into_owned()];
        cells.extend(names.iter().map(|name| number(row, name)));
        cells.push(row.verdict.words().to_owned());
        columns.row(&cells);
    }
    text + &columns.render()
}

/// Formats a number, followed by the paper's number if it differs.
fn number(row: &PlannedRow, name: &str) -> String {
    let Some(here) = row.here.get(name) else { return "-".to_owned() };
    let text = quantity::named(name, *here);
    match row.paper.get(name).map(|paper| quantity::named(name, *paper)) {
        Some(paper) if paper != text => format!("{text} (paper: {paper})"),
        _ => text,
    }
}

fn line(line: &Line) -> String {
    let name = escape::text(&line.experiment);
    let head = line.place.as_ref().map_or(name.to_string(), |place| format!("{}, {name}", escape::text(place)));
    let paper = line.paper.as_ref().map_or(String::new(), |paper| format!("  paper: {}\n", escape::text(paper)));
    match &line.here {
        Here::LeftOut { reason } => format!("{head}: left out\n{paper}  here:  {}\n", escape::text(reason)),
        Here::NotReached => {
            format!("{head}: not measured\n{paper}  here:  there was no time for it: give more --time\n")
        }
        Here::Measured { default_s, bytes_per_s, metric, setting, estimate, verdict, tally } => {
            let clock = if *metric == Metric::CpuS { " of processor time" } else { "" };
            let rate = bytes_per_s.map_or(String::new(), |rate| format!(", {}", quantity::rate(rate as u64, 1.0)));
            let mut here = format!("default {}{clock}{rate}", quantity::brief_seconds(*default_s));
            if let Some((setting, estimate)) = setting.as_ref().zip(*estimate) {
                let ([low, high], setting) = (estimate.interval, escape::text(setting));
                let ratio = estimate.ratio;
                here.push_str(&format!("; {setting} takes {ratio:.2} times its default ({low:.2} to {high:.2})"));
            }
            let who = setting
                .as_ref()
                .filter(|_| verdict.is_effect())
                .map_or(String::new(), |setting| format!("{} is ", escape::text(setting)));
            format!("{head}: {who}{}\n{paper}  here:  {here}{}\n", verdict.words(), of_tally(tally))
        }
    }
}

/// Formats the number of settings with each verdict, if there are several.
fn of_tally(tally: &Tally) -> String {
    let counts = [
        (tally.better, "better"),
        (tally.worse, "worse"),
        (tally.no_effect, "without effect"),
        (tally.cannot_tell, "undecided"),
        (tally.left_out, "left out"),
    ];
    let all: usize = counts.iter().map(|(count, _)| count).sum();
    if all < 2 {
        return String::new();
    }
    let parts = counts.iter().filter(|(count, _)| *count > 0).map(|(count, words)| format!("{count} {words}"));
    format!("; of {}: {}", quantity::counted(all as u64, "setting"), parts.collect::<Vec<_>>().join(", "))
}
