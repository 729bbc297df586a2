//! What the runs of an experiment say: every arm against the default of its own blocks.
//!
//! Not for running (`campaign`) nor for the mathematics (`statistics`). Invariants: an arm is compared with the default of
//! its own blocks only; a block that was cut short counts for the arms that ran in it together with the default.

use crate::knob::Settings;
use crate::profile::Metric;
use crate::statistics::{self, Estimate, StopRule, Verdict};
use crate::worker::Outcome;
use crate::workload::Candidate;
use serde::Serialize;

/// Elapsed times of the default that vary more than this are of no use: a laptop with a browser, a shared node.
pub const LARGEST_VARIATION: f64 = 0.15;

/// The sentinel may differ from the default by this much before other arms are held to more than their intervals.
const SENTINEL_MARGIN: f64 = 0.10;

/// An arm and its runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Arm {
    /// What was run.
    pub candidate: Candidate,
    /// One per block; none for blocks that it did not run in.
    pub runs: Vec<Option<Outcome>>,
    /// Why it was not run any more, if it could not be.
    pub fault: Option<Fault>,
}

/// Why an arm cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The library, the machine or the file system does not have a setting.
    NotApplicable(String),
    /// A run failed.
    Failed(String),
}

/// What an experiment says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Findings {
    /// What was compared.
    pub metric: Metric,
    /// Variation of the default's elapsed times.
    pub wall_variation: f64,
    /// Variation of its processor times.
    pub cpu_variation: f64,
    /// The sentinel against the default.
    pub sentinel: Option<Estimate>,
    /// Effects below this share are none.
    pub margin: f64,
    /// Where the sentinel differs from the default by more than chance explains, the factor by which it may: intervals are
    /// widened by it before anything is told.
    pub doubt: Option<f64>,
    /// Whether runs that write files of a program's own wrote the same values; absent where that was not asked.
    pub values: Option<Values>,
    /// Arms, the default first, without the sentinel.
    pub arms: Vec<Finding>,
}

/// What was found of the values that a program wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Values {
    /// All runs whose times count wrote the same.
    Equal,
    /// They differ from run to run, also with the defaults.
    Vary,
}

/// What an experiment says of one arm.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Arm.
    pub arm: Arm,
    /// By [`Findings::metric`]; of the default itself nothing.
    pub estimate: Option<Estimate>,
    /// Elapsed time against the default.
    pub wall: Option<Estimate>,
    /// Processor time against the default.
    pub cpu: Option<Estimate>,
    /// Medians of its runs.
    pub medians: Option<Medians>,
    /// File length against that of the default.
    pub inflation: Option<f64>,
    /// Verdict; of the default none.
    pub verdict: Option<Verdict>,
    /// What the verdict would be if nothing else were compared: one of twenty arms without effect is called something by
    /// chance, which [`Finding::verdict`] takes into account.
    pub alone: Option<Verdict>,
}

/// Medians over runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Medians {
    /// Elapsed seconds.
    pub wall_s: f64,
    /// Processor seconds.
    pub cpu_s: f64,
    /// Read calls.
    pub read_calls: Option<f64>,
    /// Write calls.
    pub write_calls: Option<f64>,
    /// Length of the file.
    pub file_len_bytes: f64,
    /// Most memory.
    pub peak_rss_bytes: Option<f64>,
}

fn value(outcome: &Outcome, metric: Metric) -> f64 {
    match metric {
        Metric::WallS => outcome.wall_s(),
        Metric::CpuS => outcome.cpu_s(),
        Metric::Calls => outcome.calls.map_or(0.0, |calls| (calls.read + calls.write) as f64),
    }
}

/// `arm` against the default of its own blocks: the geometric mean of both runs of it, which has half of the noise of one.
/// The sentinel, one of the two, is compared with the other.
pub(crate) fn compare(arms: &[Arm], arm: &Arm, metric: Metric, rule: &StopRule) -> Option<Estimate> {
    let (default, sentinel) = (&arms[0], &arms[1]);
    let is_sentinel = std::ptr::eq(arm, sentinel);
    let pairs = (0..arm.runs.len()).filter_map(|block| {
        let of = |arm: &Arm| Some(value(arm.runs.get(block)?.as_ref()?, metric));
        let (first, own) = (of(default)?, of(arm)?);
        let second = of(sentinel).filter(|_| !is_sentinel).unwrap_or(first);
        Some(((first * second).sqrt(), own))
    });
    let (default, own): (Vec<f64>, Vec<f64>) = pairs.unzip();
    statistics::estimate(&default, &own, rule.error())
}

fn variation(arms: &[Arm], metric: Metric) -> f64 {
    // Blocks have values of their own, so that it is runs of the same block that should be alike, and their mean that
    // may differ from block to block.
    let runs = arms[0].runs.iter().zip(&arms[1].runs).filter_map(|(a, b)| Some((a.as_ref()?, b.as_ref()?)));
    let halves = runs.flat_map(|(a, b)| {
        let (a, b) = (value(a, metric), value(b, metric));
        [a / (a + b), b / (a + b)]
    });
    statistics::variation(&halves.filter(|share| share.is_finite()).collect::<Vec<_>>())
}

/// Elapsed time, unless it varies so much that only processor time can be compared.
pub(crate) fn metric_of(arms: &[Arm]) -> Metric {
    if variation(arms, Metric::WallS) > LARGEST_VARIATION { Metric::CpuS } else { Metric::WallS }
}

/// By how much equal runs may differ, if `sentinel` differs from the default by more than chance explains.
fn doubt(sentinel: &Estimate, rule: &StopRule) -> Option<f64> {
    let is_far = sentinel.ratio.ln().abs() > (1.0 + SENTINEL_MARGIN).ln();
    let is_told = matches!(rule.verdict(Some(sentinel), sentinel.p, 1.0), Verdict::Better | Verdict::Worse);
    let [low, high] = sentinel.interval;
    (is_far && is_told).then(|| high.max(1.0 / low))
}

fn values_of(arms: &[Arm]) -> Option<Values> {
    let digests = |arm: &Arm| arm.runs.iter().map(|run| run.as_ref()?.values).collect::<Vec<_>>();
    let (first, second) = (digests(&arms[0]), digests(&arms[1]));
    let mut pairs = first.iter().zip(&second).filter_map(|(first, second)| Some(((*first)?, (*second)?))).peekable();
    pairs.peek()?;
    Some(if pairs.all(|(first, second)| first == second) { Values::Equal } else { Values::Vary })
}

fn medians(arm: &Arm) -> Option<Medians> {
    let runs: Vec<&Outcome> = arm.runs.iter().flatten().collect();
    let median = |of: &dyn Fn(&Outcome) -> Option<f64>| {
        let mut values: Vec<f64> = runs.iter().filter_map(|run| of(run)).collect();
        (!values.is_empty()).then(|| statistics::median(&mut values))
    };
    Some(Medians {
        wall_s: median(&|run| Some(run.wall_s()))?,
        cpu_s: median(&|run| Some(run.cpu_s()))?,
        read_calls: median(&|run| Some(run.calls?.read as f64)),
        write_calls: median(&|run| Some(run.calls?.write as f64)),
        file_len_bytes: median(&|run| Some(run.file_len_bytes as f64))?,
        peak_rss_bytes: median(&|run| Some(run.peak_rss_bytes? as f64)),
    })
}

impl Findings {
    /// What these arms say: the default, the sentinel, the others.
    pub fn of(arms: &[Arm], rule: &StopRule) -> Self {
        let metric = metric_of(arms);
        let of = |arm: &Arm, metric| compare(arms, arm, metric, rule);
        let sentinel = of(&arms[1], metric);
        let doubt = sentinel.and_then(|found| doubt(&found, rule));
        let factor = doubt.unwrap_or(1.0);
        let estimates: Vec<Option<Estimate>> = arms[2..].iter().map(|arm| of(arm, metric)).collect();
        let verdicts = rule.verdicts(&estimates, factor);
        let alone = |found: &Option<Estimate>| rule.verdict(found.as_ref(), found.map_or(1.0, |found| found.p), factor);
        let alone: Vec<Verdict> = estimates.iter().map(alone).collect();
        let default_len = medians(&arms[0]).map(|medians| medians.file_len_bytes);
        let finding = |arm: &Arm, estimate, verdict, alone| {
            let medians = medians(arm);
            let inflation = medians.zip(default_len).map(|(own, default)| own.file_len_bytes / default);
            let (wall, cpu) = match verdict {
                Some(_) => (of(arm, Metric::WallS), of(arm, Metric::CpuS)),
                None => (None, None),
            };
            Finding { arm: arm.clone(), estimate, wall, cpu, medians, inflation, verdict, alone }
        };
        let default = finding(&arms[0], None, None, None);
        let others = arms[2..].iter().zip(estimates).zip(verdicts).zip(alone);
        let others =
            others.map(|(((arm, estimate), verdict), alone)| finding(arm, estimate, Some(verdict), Some(alone)));
        Self {
            metric,
            wall_variation: variation(arms, Metric::WallS),
            cpu_variation: variation(arms, Metric::CpuS),
            sentinel,
            margin: rule.margin,
            doubt,
            values: values_of(arms),
            arms: std::iter::once(default).chain(others).collect(),
        }
    }

    /// Runs that were done, without the sentinel's.
    pub fn runs(&self) -> usize {
        self.arms.iter().map(|finding| finding.arm.runs.iter().flatten().count()).sum()
    }

    /// The version of HDF5 that was measured, if anything ran.
    pub fn hdf5(&self) -> Option<&str> {
        let mut runs = self.arms.iter().flat_map(|finding| finding.arm.runs.iter().flatten());
        // An unmodified program does not tell.
        runs.find_map(|run| Some(run.hdf5.as_str()).filter(|version| !version.is_empty()))
    }

    /// The version of the zlib that it was loaded with, if that is told.
    pub fn zlib(&self) -> Option<&str> {
        self.arms[0].arm.runs.iter().flatten().find_map(|run| run.zlib.as_deref())
    }

    /// The settings of the default.
    pub fn base(&self) -> &Settings {
        &self.arms[0].arm.candidate.settings
    }
}
