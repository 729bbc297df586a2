//! Figures of HDF5 measurements in the forms used by papers: sweeps with intervals, box plots of rates, distributions
//! of times, sorted speed-ups.

use crate::measured::axis::{Axis, LEFT, plain};
use crate::measured::curves::{Curve, chosen, distribute, legend_of};
use crate::measured::scaling::scaling;
use crate::measured::stage_times as stages;
use crate::measured::{Estimate, Experiment, Finding, Findings, Measurement, Phase};
use crate::quantity;
use crate::svg::{Anchor, COLOURS, Figure, WIDTH};

/// Height of an arm's row.
const ROW: f64 = 18.0;
/// Maximum number of bars in a list.
const MAX_BARS: usize = 60;

/// Names, labels and colours of verdicts.
const VERDICTS: [(&str, &str, &str); 4] = [
    ("better", "better", "#229944"),
    ("worse", "worse", "#cc3311"),
    ("no_effect", "no effect", "#4477aa"),
    ("cannot_tell", "cannot tell", "#888888"),
];

/// Returns the label of a verdict.
pub fn words(verdict: Option<&str>) -> &'static str {
    VERDICTS.iter().find(|(name, ..)| Some(*name) == verdict).map_or("-", |(_, words, _)| words)
}

fn colour(verdict: Option<&str>) -> &'static str {
    VERDICTS.iter().find(|(name, ..)| Some(*name) == verdict).map_or("#888888", |(.., colour)| colour)
}

/// Returns all figures of an experiment; `place` makes their names unique.
pub fn of_experiment(experiment: &Experiment, place: usize) -> Vec<Figure> {
    let halves = &experiment.sweep.phases;
    let sweeps = halves.iter().map(|half| sweep_of_phase(experiment, half));
    let all = std::iter::once(sweep(experiment)).chain(sweeps);
    let rates: Vec<_> = match halves.as_slice() {
        [] => vec![boxes(experiment, None)],
        halves => halves.iter().map(|half| boxes(experiment, Some(half))).collect(),
    };
    let times =
        [scaling(experiment), distribution(experiment), stages::by_setting(experiment), stages::by_rank(experiment)];
    all.chain(rates)
        .chain(times)
        .flatten()
        .map(|mut figure| {
            figure.name = format!("{}-{}", place + 1, figure.name);
            figure
        })
        .collect()
}

/// Returns all figures of a measurement.
pub fn all(done: &Measurement) -> Vec<Figure> {
    let of_experiments = done.experiments.iter().enumerate().flat_map(|(place, one)| of_experiment(one, place));
    speed_ups(done).into_iter().chain(of_experiments).collect()
}

/// Draws each setting's ratio to the default, with its interval.
pub fn sweep(experiment: &Experiment) -> Option<Figure> {
    let findings = &experiment.sweep;
    let of = |finding: &Finding| (finding.estimate, finding.verdict.clone());
    let paper = experiment.paper.as_ref().map(|paper| format!(" The paper: {paper}.")).unwrap_or_default();
    ratios(findings, of, ("sweep", "Settings against the default"), &findings.metric, &paper)
}

/// Draws the ratios of writing or reading only.
pub fn sweep_of_phase(experiment: &Experiment, half: &Phase) -> Option<Figure> {
    let findings = &experiment.sweep;
    let of = |finding: &Finding| {
        let found = finding.phases.iter().find(|found| found.phase == half.phase);
        (found.and_then(|found| found.estimate), found.and_then(|found| found.verdict.clone()))
    };
    let (name, title) = match half.phase.as_str() {
        "read" => ("sweep-read", "Settings against the default, reading back only"),
        _ => ("sweep-write", "Settings against the default, writing only"),
    };
    ratios(findings, of, (name, title), &half.metric, "")
}

fn ratios(
    findings: &Findings,
    of: impl Fn(&Finding) -> (Option<Estimate>, Option<String>),
    (name, title): (&str, &str),
    metric: &str,
    paper: &str,
) -> Option<Figure> {
    let found = findings.arms.iter().map(|finding| (finding, of(finding)));
    let known: Vec<(&Finding, Estimate, Option<String>)> = found
        .filter_map(|(finding, (estimate, verdict))| Some((finding, estimate.filter(Estimate::is_fit)?, verdict)))
        .collect();
    if known.is_empty() {
        return None;
    }
    let caption = format!(
        "{} of each setting as a ratio to the default, left of 1 is less, with 95 % intervals. Between the thin lines there is no effect.{paper}",
        if metric == "cpu_s" { "Processor time" } else { "Time" },
    );
    let mut figure = Figure::new(name, title, caption);
    let bounds = known.iter().flat_map(|(_, estimate, _)| [estimate.ratio, estimate.interval[0], estimate.interval[1]]);
    let margin = findings.margin;
    let axis = Axis::of(bounds.chain([1.0 - 2.0 * margin, 1.0 + 2.0 * margin]), WIDTH - 44.0);
    let foot = known.len() as f64 * ROW + 4.0;
    for value in [1.0 - margin, 1.0, 1.0 + margin] {
        figure.line([axis.at(value), 0.0, axis.at(value), foot]);
    }
    for (at, (finding, estimate, verdict)) in known.iter().enumerate() {
        let y = at as f64 * ROW + ROW / 2.0;
        let (name, verdict) = (&finding.arm.candidate.name, verdict.as_deref());
        let [low, high] = estimate.interval;
        let what = format!("{name}: {:.2} ({low:.2} to {high:.2}), {}", estimate.ratio, words(verdict));
        figure.text(LEFT - 8.0, y + 4.0, Anchor::End, LEFT - 8.0, name);
        figure.stroke(&[[axis.at(low), y], [axis.at(high), y]], 2.0, colour(verdict), &what);
        figure.rectangle([axis.at(estimate.ratio) - 4.0, y - 4.0, 8.0, 8.0], colour(verdict), &what);
        figure.text(WIDTH, y + 4.0, Anchor::End, 44.0, &format!("{:.2}", estimate.ratio));
    }
    figure.line([LEFT, foot, axis.right, foot]);
    for tick in axis.ticks() {
        figure.text(axis.at(tick), foot + 14.0, Anchor::Middle, 40.0, &plain(tick));
    }
    let used = VERDICTS.iter().filter(|(name, ..)| known.iter().any(|(.., verdict)| verdict.as_deref() == Some(name)));
    figure.legend(&used.map(|(_, words, colour)| ((*words).to_owned(), *colour)).collect::<Vec<_>>());
    Some(figure)
}

/// Returns a quantile of sorted values, interpolated between neighbours.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = share * (sorted.len() - 1) as f64;
    let (low, high) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    low + (high - low) * at.fract()
}

/// Draws the rates of each setting's runs, or of one phase of them, as box plots: the middle half as a box with the
/// median, and lines to the extremes.
pub fn boxes(experiment: &Experiment, half: Option<&Phase>) -> Option<Figure> {
    let findings = &experiment.sweep;
    let rates = |finding| {
        let len_bytes = |finding: &Finding| finding.arm.runs.iter().flatten().next().map(|run| run.len_bytes);
        let len_bytes = len_bytes(finding).unwrap_or(0) as f64;
        let times = half.map_or_else(|| findings.times(finding), |half| half.times(finding));
        let mut rates: Vec<f64> = times.iter().map(|time| len_bytes / time).collect();
        rates.sort_by(f64::total_cmp);
        rates
    };
    let known: Vec<(&str, Vec<f64>)> =
        findings.arms.iter().map(|finding| (finding.arm.candidate.name.as_str(), rates(finding))).collect();
    let known: Vec<_> = known.into_iter().filter(|(_, rates)| rates.first().is_some_and(|rate| *rate > 0.0)).collect();
    if known.is_empty() {
        return None;
    }
    let caption =
        "Bytes of values per second in the runs of each setting: extremes, the middle half, the median.".to_owned();
    let (name, title) = match half.map(|half| half.phase.as_str()) {
        None => ("rates", "Rates"),
        Some("read") => ("rates-read", "Rates of reading back"),
        Some(_) => ("rates-write", "Rates of writing"),
    };
    let mut figure = Figure::new(name, title, caption);
    let axis = Axis::of(known.iter().flat_map(|(_, rates)| rates.iter().copied()), WIDTH - 70.0);
    for (at, (name, rates)) in known.iter().enumerate() {
        let y = at as f64 * ROW + ROW / 2.0;
        let [least, low, median, high, most] = [0.0, 0.25, 0.5, 0.75, 1.0].map(|share| quantile(rates, share));
        let reported = quantity::rate(median as u64, 1.0);
        let what = format!("{name}: median {reported} of {}", quantity::counted(rates.len() as u64, "run"));
        let colour = COLOURS[usize::from(at > 0) * 5];
        figure.text(LEFT - 8.0, y + 4.0, Anchor::End, LEFT - 8.0, name);
        figure.stroke(&[[axis.at(least), y], [axis.at(most), y]], 1.0, colour, &what);
        figure.rectangle([axis.at(low), y - 5.0, (axis.at(high) - axis.at(low)).max(1.0), 10.0], colour, &what);
        figure.stroke(&[[axis.at(median), y - 6.0], [axis.at(median), y + 6.0]], 2.0, "currentColor", &what);
        figure.text(WIDTH, y + 4.0, Anchor::End, 76.0, &reported);
    }
    Some(figure)
}

/// Draws the distribution of times: the share of runs up to each time, for the default and the settings that differ
/// most from it.
pub fn distribution(experiment: &Experiment) -> Option<Figure> {
    let findings = &experiment.sweep;
    let curves: Vec<Curve<'_>> = chosen(findings)
        .into_iter()
        .map(|finding| (finding.arm.candidate.name.as_str(), findings.times(finding)))
        .filter(|(_, times)| !times.is_empty())
        .collect();
    if curves.len() < 2 {
        return None;
    }
    let caption =
        "Share of runs that took at most this time, for the default and the settings that differ most from it."
            .to_owned();
    let mut figure = Figure::new("times", "Distribution of times", caption);
    distribute(&mut figure, 8.0, 150.0, &curves);
    figure.legend(&legend_of(curves.iter().map(|(name, _)| *name)));
    Some(figure)
}

/// Draws the sorted speed-ups of all settings of all experiments relative to their defaults.
pub fn speed_ups(done: &Measurement) -> Option<Figure> {
    let mut bars: Vec<(String, f64, Option<&str>)> = Vec::new();
    for experiment in &done.experiments {
        for finding in &experiment.sweep.arms {
            let Some(estimate) = finding.estimate.filter(|estimate| estimate.is_fit()) else { continue };
            let name = format!("{}: {}", experiment.name, finding.arm.candidate.name);
            bars.push((name, 1.0 / estimate.ratio, finding.verdict.as_deref()));
        }
    }
    if bars.len() < 2 {
        return None;
    }
    bars.sort_by(|a, b| a.1.total_cmp(&b.1));
    let count = bars.len();
    if count > MAX_BARS {
        bars = (0..MAX_BARS).map(|at| bars[at * (count - 1) / (MAX_BARS - 1)].clone()).collect();
    }
    const HEIGHT: f64 = 160.0;
    let caption = format!(
        "Speed-up of {} over their defaults, sorted, on a logarithmic scale: up is faster, down is slower.",
        quantity::counted(count as u64, "setting")
    );
    let mut figure = Figure::new("speed-ups", "Sorted speed-ups", caption);
    let largest = bars.iter().map(|(_, ratio, _)| ratio.ln().abs()).fold(0.1, f64::max);
    let middle = 16.0 + HEIGHT / 2.0;
    let width = WIDTH / bars.len() as f64;
    for (at, (name, ratio, verdict)) in bars.iter().enumerate() {
        let height = ratio.ln() / largest * HEIGHT / 2.0;
        let y = middle - height.max(0.0);
        let what = format!("{name}: {ratio:.2} times, {}", words(*verdict));
        let wide = (width - 1.0).max(0.5);
        figure.rectangle([at as f64 * width, y, wide, height.abs().max(1.0)], colour(*verdict), &what);
    }
    figure.line([0.0, middle, WIDTH, middle]);
    for (x, anchor, (_, ratio, _)) in [(0.0, Anchor::Start, &bars[0]), (WIDTH, Anchor::End, &bars[bars.len() - 1])] {
        let y = if *ratio < 1.0 { HEIGHT + 30.0 } else { 12.0 };
        let digits = if *ratio < 10.0 { 2 } else { 1 };
        figure.text(x, y, anchor, 100.0, &format!("{ratio:.digits$} times"));
    }
    let used = VERDICTS.iter().filter(|(name, ..)| bars.iter().any(|(.., verdict)| *verdict == Some(name)));
    figure.legend(&used.map(|(_, words, colour)| ((*words).to_owned(), *colour)).collect::<Vec<_>>());
    Some(figure)
}
