//! Tables of a paper's results next to those measured here: one line per figure, and planned numbers.

use crate::markup::{part, table, text_table};
use crate::measured::comparisons::words;
use crate::measured::{Line, Measurement, PlannedRow, PlannedTable};
use crate::quantity;
use crate::svg::html;
use std::collections::BTreeSet;

/// Returns both tables; empty if no experiment is from a paper.
pub(crate) fn section(done: &Measurement) -> String {
    let mut text: String = done.planned.iter().map(planned).collect();
    if done.summary.iter().any(|line| line.place.is_some()) {
        let rows: Vec<Vec<String>> = done.summary.iter().map(row).collect();
        text.push_str(&part("The paper and this measurement", &text_table(&["figure", "the paper", "here"], &rows)));
    }
    text
}

fn row(line: &Line) -> Vec<String> {
    let name = line.experiment.as_str();
    let verdict = match (&line.reason, line.default_s) {
        (Some(_), _) => "left out",
        (None, None) => "not measured",
        (None, Some(_)) => words(line.verdict.as_deref()),
    };
    vec![
        line.place.as_ref().map_or_else(|| name.to_owned(), |place| format!("{place}, {name}")),
        line.paper.clone().unwrap_or_else(|| "-".to_owned()),
        format!("{verdict}: {}", here(line)),
    ]
}

fn here(line: &Line) -> String {
    let Some(default_s) = line.default_s else { return line.reason.clone().unwrap_or_else(|| "-".to_owned()) };
    let mut text = quantity::brief_seconds(default_s);
    if let Some(rate) = line.bytes_per_s {
        text.push_str(&format!(", {}", quantity::rate(rate as u64, 1.0)));
    }
    if let Some((setting, estimate)) = line.setting.as_ref().zip(line.estimate.filter(|estimate| estimate.is_fit())) {
        let [low, high] = estimate.interval;
        text.push_str(&format!("; {setting} takes {:.2} times its default ({low:.2} to {high:.2})", estimate.ratio));
    }
    text
}

fn planned(table_of: &PlannedTable) -> String {
    let names: BTreeSet<&String> = table_of.rows.iter().flat_map(|row| row.here.keys()).collect();
    let cell = |row: &PlannedRow, name: &str| {
        let Some(here) = row.here.get(name) else { return "-".to_owned() };
        match row.paper.get(name) {
            Some(paper) if paper != here => {
                format!("{} (paper: {})", quantity::named(name, *here), quantity::named(name, *paper))
            }
            _ => quantity::named(name, *here),
        }
    };
    let rows = table_of.rows.iter().map(|row| {
        let numbers = names.iter().map(|name| cell(row, name));
        let verdict = match row.verdict.as_str() {
            "equal" => "as in the paper",
            "differs" => "differs",
            _ => "predicted",
        };
        let command = format!("raddle {}", row.command);
        [row.name.clone()].into_iter().chain(numbers).chain([verdict.to_owned(), command]).collect()
    });
    let heads: Vec<String> = names.iter().map(|name| html(&quantity::of_name(name))).collect();
    let heads = [""].into_iter().chain(heads.iter().map(String::as_str)).chain(["verdict", "command"]);
    let paper = table_of
        .paper
        .as_ref()
        .map_or(String::new(), |paper| format!("<p class=\"soft\">The paper: {}</p>\n", html(paper)));
    let drawn = table(&heads.collect::<Vec<_>>(), &rows.collect::<Vec<Vec<String>>>());
    part(&table_of.title, &(paper + &drawn))
}
