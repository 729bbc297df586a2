//! Scaling figures: rates over the number of processes, with a line per setting.

use crate::measured::{Experiment, Finding};
use crate::quantity;
use crate::svg::{Anchor, COLOURS, Figure, WIDTH};
use std::collections::{BTreeMap, BTreeSet};

/// Space for rates at the side.
const SIDE: f64 = 84.0;
/// Height of the plot area, without the labels below the axis.
const HEIGHT: f64 = 160.0;
/// Vertical position of the top of the plot area.
const TOP: f64 = 10.0;
/// Maximum number of lines.
const MAX_LINES: usize = 8;

/// Returns whether a label only states a number of processes: `4 ranks`, `processes-4`.
fn is_of_processes(words: &str) -> bool {
    let parts: Vec<&str> = words.split([' ', '-']).collect();
    let is_number = |word: &&str| word.replace(',', "").parse::<u64>().is_ok();
    let is_noun = |word: &&str| ["process", "processes", "rank", "ranks"].contains(word);
    parts.len() == 2 && parts.iter().any(is_number) && parts.iter().any(is_noun)
}

/// Returns the name of a setting without its number of processes.
fn series(finding: &Finding) -> String {
    let candidate = &finding.arm.candidate;
    let case = candidate.case.as_deref().unwrap_or_default();
    let name = candidate.name.strip_prefix(case).map_or(candidate.name.as_str(), |name| name.trim_start_matches(": "));
    let name = if is_of_processes(name) { "default" } else { name };
    let others = case.split(", ").filter(|part| !part.is_empty() && !is_of_processes(part));
    others.chain([name]).collect::<Vec<_>>().join(": ")
}

/// Returns the median rate, in bytes of values per second.
fn rate(finding: &Finding) -> Option<f64> {
    let mut rates: Vec<f64> = finding
        .arm
        .runs
        .iter()
        .flatten()
        .map(|run| run.len_bytes as f64 / run.stages.iter().map(|stage| stage.wall_s).sum::<f64>())
        .filter(|rate| rate.is_finite() && *rate > 0.0)
        .collect();
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied()
}

/// Draws the figure; `None` if all settings have the same number of processes.
pub fn scaling(experiment: &Experiment) -> Option<Figure> {
    let mut lines: BTreeMap<String, BTreeMap<u32, f64>> = BTreeMap::new();
    for finding in &experiment.sweep.arms {
        if let (Some(rate), Some(ranks)) = (rate(finding), finding.arm.candidate.ranks) {
            lines.entry(series(finding)).or_default().insert(ranks, rate);
        }
    }
    lines.retain(|_, points| points.len() > 1);
    let counts: BTreeSet<u32> = lines.values().flat_map(|points| points.keys().copied()).collect();
    let (first, last) = (*counts.first()?, *counts.last()?);
    let rates = || lines.values().flat_map(|points| points.values().copied());
    let (low, high) = (rates().fold(f64::MAX, f64::min) / 1.1, rates().fold(0.0, f64::max) * 1.1);
    let caption = "Bytes of values per second over the number of processes, medians; both scales are logarithmic.";
    let mut figure = Figure::new("scaling", "Scaling over processes", caption.to_owned());
    let x = |count: u32| {
        SIDE + 12.0
            + (f64::from(count) / f64::from(first)).ln() / (f64::from(last) / f64::from(first)).ln()
                * (WIDTH - SIDE - 30.0)
    };
    let y = |rate: f64| TOP + HEIGHT * (1.0 - (rate / low).ln() / (high / low).ln());
    for share in [0.0, 0.5, 1.0] {
        let rate = low * (high / low).powf(share);
        figure.line([SIDE, y(rate), WIDTH, y(rate)]);
        figure.text(SIDE - 6.0, y(rate) + 4.0, Anchor::End, SIDE, &quantity::rate(rate as u64, 1.0));
    }
    for (place, (name, points)) in lines.iter().take(MAX_LINES).enumerate() {
        let line: Vec<[f64; 2]> = points.iter().map(|(count, rate)| [x(*count), y(*rate)]).collect();
        let colour = COLOURS[place % COLOURS.len()];
        figure.stroke(&line, 1.5, colour, name);
        for ((count, rate), [x, y]) in points.iter().zip(&line) {
            let what = format!("{name}, {count}: {}", quantity::rate(*rate as u64, 1.0));
            figure.rectangle([x - 3.0, y - 3.0, 6.0, 6.0], colour, &what);
        }
    }
    let mut free = f64::MIN;
    for count in &counts {
        // Labels that would overlap are left out.
        if x(*count) > free {
            figure.text(x(*count), TOP + HEIGHT + 18.0, Anchor::Middle, 40.0, &count.to_string());
            free = x(*count) + 34.0;
        }
    }
    let names = lines.keys().take(MAX_LINES).enumerate();
    figure.legend(&names.map(|(place, name)| (name.clone(), COLOURS[place % COLOURS.len()])).collect::<Vec<_>>());
    Some(figure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::{Arm, MeasuredCandidate, MeasuredRun, StageTime};

    fn finding(name: &str, case: Option<&str>, ranks: u32, wall_s: f64) -> Finding {
        let stages = vec![StageTime { wall_s, ..StageTime::default() }];
        let candidate = MeasuredCandidate { name: name.to_owned(), case: case.map(str::to_owned), ranks: Some(ranks) };
        let runs = vec![Some(MeasuredRun { stages, len_bytes: 1 << 20, ..MeasuredRun::default() })];
        Finding { arm: Arm { candidate, runs, fault: None }, ..Finding::default() }
    }

    #[test]
    fn settings_are_lines_over_processes() {
        let mut experiment = Experiment::default();
        for (case, ranks) in [("60^3, 1 process", 1), ("60^3, 8 processes", 8)] {
            for name in ["default", "expanded"] {
                experiment.sweep.arms.push(finding(&format!("{case}: {name}"), Some(case), ranks, 0.5));
            }
        }
        let drawn = scaling(&experiment).unwrap().file();
        assert!(drawn.contains("60^3: default") && drawn.contains("60^3: expanded, 8: 2.00 MiB/s"), "{drawn}");
        let mut experiment = Experiment::default();
        experiment.sweep.arms.push(finding("default", None, 2, 0.5));
        assert_eq!(scaling(&experiment), None);
        experiment.sweep.arms.push(finding("4 ranks", None, 4, 0.5));
        assert!(scaling(&experiment).unwrap().file().contains("default, 4: 2.00 MiB/s"));
    }

    #[test]
    fn words_that_count_processes_are_known() {
        assert!(["4 ranks", "processes-4", "1 process", "32,768 processes"].into_iter().all(is_of_processes));
        assert!(!["default", "one-phase", "30^3", "batch-10", "4 threads"].into_iter().any(is_of_processes));
    }
}
