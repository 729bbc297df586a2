//! One line per experiment: its place in the paper, the paper's result, and the result here.
//!
//! Computed from findings, not from runs. Invariant: a line has a value and a verdict, or a reason why it has none.

use crate::findings::{ArmFailure, Finding, Findings};
use crate::profile::Metric;
use crate::statistics::{Estimate, Verdict, median};
use crate::worker::KernelOutcome;
use serde::Serialize;

/// Summary of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// Name of the experiment.
    pub experiment: String,
    /// Figures, tables or sections of the paper; absent if the experiment is not from a paper.
    pub place: Option<String>,
    /// Result of the paper; absent if only the place is known.
    pub paper: Option<String>,
    /// Result of this measurement.
    #[serde(flatten)]
    pub here: Here,
}

/// Result of an experiment, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Here {
    /// The experiment was measured.
    Measured {
        /// Median seconds of the default, in the metric [`Findings::metric`].
        default_s: f64,
        /// Bytes of values per elapsed second with the default; absent for kernels of metadata.
        bytes_per_s: Option<f64>,
        /// Metric of `default_s`.
        metric: Metric,
        /// The setting that differs most from the default, preferring those with an effect; absent if there were too
        /// few runs.
        setting: Option<String>,
        /// Ratio of `setting` to the default.
        estimate: Option<Estimate>,
        /// Verdict on `setting`.
        verdict: Verdict,
        /// Number of settings by verdict.
        tally: Tally,
    },
    /// The library or the machine cannot run it.
    LeftOut {
        /// Reason why the experiment was left out.
        reason: String,
    },
    /// There was no time for the experiment.
    NotReached,
}

/// Number of settings by verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// Number of settings that are faster than the default.
    pub better: usize,
    /// Number of settings that are slower than the default.
    pub worse: usize,
    /// Number of settings without an effect.
    pub no_effect: usize,
    /// Number of undecided settings, because their runs vary too much.
    pub cannot_tell: usize,
    /// Number of settings that failed or were not run.
    pub left_out: usize,
}

impl Tally {
    fn of(findings: &Findings) -> Self {
        let mut tally = Self::default();
        for finding in &findings.arms {
            match (&finding.arm.fault, finding.verdict) {
                (Some(_), _) => tally.left_out += 1,
                (None, Some(Verdict::Better)) => tally.better += 1,
                (None, Some(Verdict::Worse)) => tally.worse += 1,
                (None, Some(Verdict::NoEffect)) => tally.no_effect += 1,
                (None, Some(Verdict::CannotTell)) => tally.cannot_tell += 1,
                // A default is not compared.
                (None, None) => {}
            }
        }
        tally
    }
}

/// Splits the reference to a paper at `: ` into the place and the result.
fn parts(paper: &str) -> (Option<String>, Option<String>) {
    const PLACES: [&str; 6] = ["figure", "table", "section", "appendix", "Figure", "Table"];
    if !PLACES.iter().any(|place| paper.starts_with(place)) {
        return (None, Some(paper.to_owned()));
    }
    match paper.split_once(": ") {
        Some((place, words)) => (Some(place.to_owned()), Some(words.to_owned())),
        None => (Some(paper.to_owned()), None),
    }
}

impl Line {
    /// Summarises the findings of the experiment `name`; `paper` is its reference to a paper and the paper's result.
    pub fn of(name: &str, paper: Option<&str>, findings: &Findings) -> Self {
        let (place, paper) = paper.map_or((None, None), parts);
        Self { experiment: name.to_owned(), place, paper, here: Here::of(findings) }
    }
}

impl Here {
    fn of(findings: &Findings) -> Self {
        let default = &findings.arms[0];
        if let Some(ArmFailure::NotApplicable(reason) | ArmFailure::Failed(reason)) = &default.arm.fault {
            return Self::LeftOut { reason: reason.clone() };
        }
        let seconds = |finding: &Finding| {
            let medians = finding.medians?;
            Some(if findings.metric == Metric::CpuS { medians.cpu_s } else { medians.wall_s })
        };
        let Some(default_s) = seconds(default) else { return Self::NotReached };
        let farthest = standout(findings);
        Self::Measured {
            default_s,
            bytes_per_s: rate(default),
            metric: findings.metric,
            setting: farthest.map(|finding| finding.arm.candidate.name.clone()),
            estimate: farthest.and_then(|finding| finding.estimate),
            verdict: farthest.and_then(|finding| finding.verdict).unwrap_or(Verdict::CannotTell),
            tally: Tally::of(findings),
        }
    }
}

/// Returns the bytes of values per elapsed second, as the median of all runs.
fn rate(finding: &Finding) -> Option<f64> {
    let of =
        |run: &KernelOutcome| (run.len_bytes > 0 && run.wall_s() > 0.0).then(|| run.len_bytes as f64 / run.wall_s());
    let mut rates: Vec<f64> = finding.arm.runs.iter().flatten().filter_map(of).collect();
    (!rates.is_empty()).then(|| median(&mut rates))
}

/// Returns the setting that differs most from the default, preferring those with an effect.
fn standout(findings: &Findings) -> Option<&Finding> {
    let measured = findings.arms.iter().filter(|finding| finding.arm.fault.is_none() && finding.estimate.is_some());
    let distance = |finding: &Finding| finding.estimate.map_or(0.0, |estimate| estimate.ratio.ln().abs());
    let is_effect = |finding: &Finding| finding.verdict.is_some_and(Verdict::is_effect);
    measured.max_by(|a, b| is_effect(a).cmp(&is_effect(b)).then(distance(a).total_cmp(&distance(b))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_and_words_are_separated() {
        let words = |text: &str| Some(text.to_owned());
        assert_eq!(parts("figure 2a, 2c: 1 MB is best"), (words("figure 2a, 2c"), words("1 MB is best")));
        assert_eq!(parts("figures 7a, 7d"), (words("figures 7a, 7d"), None));
        assert_eq!(parts("not in the paper: it is new"), (None, words("not in the paper: it is new")));
    }
}
