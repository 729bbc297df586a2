//! Findings of an experiment: every arm compared with the default of its own blocks.
//!
//! `campaign` runs the arms; the mathematics is in `statistics`. Invariants: an arm is compared only with the default
//! of its own blocks; an incomplete block counts for the arms that ran in it together with the default.

use crate::knob::Settings;
use crate::profile::Metric;
use crate::statistics::{self, Estimate, StopRule, Verdict};
use crate::worker::{KernelOutcome, Phase, Reads};
use crate::workload::Candidate;
use serde::Serialize;
use std::path::Path;

/// Maximum variation of the elapsed times of the default. Times that vary more than this are useless, as on a laptop
/// with a browser or on a shared node.
pub const MAX_VARIATION: f64 = 0.15;

/// Difference between sentinel and default above which other arms need more than their interval for a verdict.
const SENTINEL_MARGIN: f64 = 0.10;

/// An arm and its runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Arm {
    /// Candidate that was run.
    pub candidate: Candidate,
    /// One outcome per block; `None` for blocks without a run.
    pub runs: Vec<Option<KernelOutcome>>,
    /// Reason why the runs of the arm ended.
    pub fault: Option<ArmFailure>,
}

/// Reason why an arm cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ArmFailure {
    /// A setting is not available with the library, machine or file system.
    NotApplicable(String),
    /// A run failed.
    Failed(String),
}

/// Findings of an experiment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Findings {
    /// Metric that was compared.
    pub metric: Metric,
    /// Coefficient of variation of the default's elapsed times.
    pub wall_variation: f64,
    /// Coefficient of variation of the default's processor times.
    pub cpu_variation: f64,
    /// Ratio of the sentinel to the default.
    pub sentinel: Option<Estimate>,
    /// Effects below this share count as none.
    pub margin: f64,
    /// Factor by which equal runs differ, if that is more than chance explains; intervals are widened by it before a
    /// verdict.
    pub doubt: Option<f64>,
    /// Findings of writing and reading separately, if runs do both; otherwise empty.
    pub phases: Vec<PhaseFindings>,
    /// Share of the bytes read that came from storage instead of the page cache, over all runs that read; absent if
    /// none does, or the system does not count them.
    pub cold_share: Option<f64>,
    /// Whether all runs of a program wrote the same values; absent if that was not checked.
    pub values: Option<WrittenValues>,
    /// Findings of the arms, the default first, without the sentinel.
    pub arms: Vec<Finding>,
}

/// Findings about one phase of the runs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PhaseFindings {
    /// Phase of the runs.
    pub phase: Phase,
    /// See [`Findings::metric`].
    pub metric: Metric,
    /// See [`Findings::wall_variation`].
    pub wall_variation: f64,
    /// See [`Findings::doubt`].
    pub doubt: Option<f64>,
}

/// Findings of one phase of an arm.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PhaseFinding {
    /// Phase of the runs.
    pub phase: Phase,
    /// Median seconds, in the metric [`PhaseFindings::metric`].
    pub time_s: f64,
    /// Ratio to the same phase of the default; absent for the default itself.
    pub estimate: Option<Estimate>,
    /// Verdict, corrected for the family of all arms and both phases; absent for the default.
    pub verdict: Option<Verdict>,
}

/// Result of comparing the values that a program wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WrittenValues {
    /// The runs whose times count wrote equal values.
    Equal,
    /// The values differ from run to run, even with the defaults.
    Vary,
}

/// Findings of one arm.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// Arm that was run.
    pub arm: Arm,
    /// Ratio to the default in the metric [`Findings::metric`]; absent for the default itself.
    pub estimate: Option<Estimate>,
    /// Ratio of elapsed times to the default.
    pub wall: Option<Estimate>,
    /// Ratio of processor times to the default.
    pub cpu: Option<Estimate>,
    /// Medians of the arm's runs.
    pub medians: Option<Medians>,
    /// Ratio of the file length to that of the default.
    pub inflation: Option<f64>,
    /// Verdict; absent for the default.
    pub verdict: Option<Verdict>,
    /// Verdict if nothing else had been compared. Of twenty arms without effect, one shows an effect by chance;
    /// [`Finding::verdict`] corrects for that.
    pub alone: Option<Verdict>,
    /// Findings of both phases, in the order of [`Findings::phases`].
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseFinding>,
}

/// Quantity that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ComparedQuantity {
    metric: Metric,
    /// The phase; `None` for whole runs.
    phase: Option<Phase>,
}

impl ComparedQuantity {
    /// Chooses elapsed time, or processor time if elapsed time varies too much. Arms with different numbers of ranks
    /// are compared by elapsed time, because more ranks always use more processor time.
    pub(crate) fn of(arms: &[Arm], phase: Option<Phase>) -> Self {
        let wall = Self { metric: Metric::WallS, phase };
        let are_ranks_equal = arms.iter().all(|arm| arm.candidate.ranks == arms[0].candidate.ranks);
        if are_ranks_equal && variation(arms, wall) > MAX_VARIATION {
            Self { metric: Metric::CpuS, phase }
        } else {
            wall
        }
    }

    fn with(self, metric: Metric) -> Self {
        Self { metric, ..self }
    }

    fn value(self, outcome: &KernelOutcome) -> f64 {
        let stages = outcome.stages_of(self.phase);
        match self.metric {
            Metric::WallS => stages.map(|stage| stage.wall_s).sum(),
            Metric::CpuS => stages.map(|stage| stage.cpu_s).sum(),
            Metric::Calls => outcome.calls.map_or(0.0, |calls| (calls.read + calls.write) as f64),
        }
    }
}

/// Returns the phases that runs have.
pub(crate) fn phases(arms: &[Arm]) -> &'static [Phase] {
    let mut stages = arms.iter().flat_map(|arm| arm.runs.iter().flatten()).flat_map(|run| &run.stages);
    if stages.any(|stage| stage.phase.is_some()) { &Phase::ALL } else { &[] }
}

/// Medians over the runs of an arm.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Medians {
    /// Elapsed time in seconds.
    pub wall_s: f64,
    /// Processor time in seconds.
    pub cpu_s: f64,
    /// Number of read calls.
    pub read_calls: Option<f64>,
    /// Number of write calls.
    pub write_calls: Option<f64>,
    /// Length of the file.
    pub file_len_bytes: f64,
    /// Peak memory, in bytes.
    pub peak_rss_bytes: Option<f64>,
}

/// Returns the index of the default that `arm` is compared with: the first arm of its case.
pub(crate) fn default_of(arms: &[Arm], arm: &Arm) -> usize {
    arms.iter().position(|other| other.candidate.case == arm.candidate.case).unwrap_or(0)
}

/// Returns whether `arm` is the default of its case.
pub(crate) fn is_default(arms: &[Arm], arm: &Arm) -> bool {
    std::ptr::eq(&raw const arms[default_of(arms, arm)], arm)
}

/// Compares `arm` with the default of its own blocks: with the geometric mean of both runs of the default, which has
/// half the noise of one. The sentinel, one of the two, is compared with the other. The defaults of further cases have
/// no sentinel, so a single run counts. A default is not compared with itself.
pub(crate) fn compare(arms: &[Arm], arm: &Arm, compared: ComparedQuantity, rule: &StopRule) -> Option<Estimate> {
    let (default, sentinel) = (&arms[default_of(arms, arm)], &arms[1]);
    let has_sentinel = std::ptr::eq(default, &raw const arms[0]) && !std::ptr::eq(arm, sentinel);
    if std::ptr::eq(arm, default) {
        return None;
    }
    let pairs = (0..arm.runs.len()).filter_map(|block| {
        let of = |arm: &Arm| Some(compared.value(arm.runs.get(block)?.as_ref()?));
        let (first, candidate) = (of(default)?, of(arm)?);
        let second = of(sentinel).filter(|_| has_sentinel).unwrap_or(first);
        Some(((first * second).sqrt(), candidate))
    });
    let (default, candidate): (Vec<f64>, Vec<f64>) = pairs.unzip();
    statistics::estimate(&default, &candidate, rule.error())
}

fn variation(arms: &[Arm], compared: ComparedQuantity) -> f64 {
    // Each block has its own values: runs of the same block should agree, while the mean of a block may vary.
    let runs = arms[0].runs.iter().zip(&arms[1].runs).filter_map(|(a, b)| Some((a.as_ref()?, b.as_ref()?)));
    let halves = runs.flat_map(|(a, b)| {
        let (a, b) = (compared.value(a), compared.value(b));
        [a / (a + b), b / (a + b)]
    });
    statistics::variation(&halves.filter(|share| share.is_finite()).collect::<Vec<_>>())
}

/// Returns the factor by which equal runs may differ; `None` if chance explains the difference between `sentinel` and
/// the default.
fn doubt(sentinel: &Estimate, rule: &StopRule) -> Option<f64> {
    let is_far = sentinel.ratio.ln().abs() > (1.0 + SENTINEL_MARGIN).ln();
    let is_effect = rule.verdict(Some(sentinel), sentinel.p, 1.0).is_effect();
    let [low, high] = sentinel.interval;
    (is_far && is_effect).then(|| high.max(1.0 / low))
}

/// Compares the arms for writing and for reading. Returns the comparison of each phase, and the findings of each arm,
/// the default first, without the sentinel.
fn by_phase(arms: &[Arm], rule: &StopRule) -> (Vec<PhaseFindings>, std::vec::IntoIter<Vec<PhaseFinding>>) {
    let halves: Vec<(ComparedQuantity, PhaseFindings)> = phases(arms)
        .iter()
        .map(|phase| {
            let compared = ComparedQuantity::of(arms, Some(*phase));
            let sentinel = compare(arms, &arms[1], compared, rule);
            let found = PhaseFindings {
                phase: *phase,
                metric: compared.metric,
                wall_variation: variation(arms, compared.with(Metric::WallS)),
                doubt: sentinel.and_then(|found| doubt(&found, rule)),
            };
            (compared, found)
        })
        .collect();
    let others: Vec<&Arm> = arms[2..].iter().filter(|arm| !is_default(arms, arm)).collect();
    let pairs = || halves.iter().flat_map(|half| others.iter().map(move |arm| (half, *arm)));
    let estimates: Vec<Option<Estimate>> =
        pairs().map(|((compared, _), arm)| compare(arms, arm, *compared, rule)).collect();
    // One family: for twenty arms, forty phases are compared.
    let probabilities: Vec<f64> = estimates.iter().map(|found| found.map_or(1.0, |found| found.p)).collect();
    let corrected = statistics::holm(&probabilities);
    let verdicts: Vec<Verdict> = pairs()
        .zip(estimates.iter().zip(corrected))
        .map(|(((_, half), _), (found, p))| rule.verdict(found.as_ref(), p, half.doubt.unwrap_or(1.0)))
        .collect();
    let of_arm = |arm: &Arm| {
        let place = others.iter().position(|other| std::ptr::eq(*other, arm));
        let of_half = |(number, (compared, half)): (usize, &(ComparedQuantity, PhaseFindings))| {
            let mut times: Vec<f64> = arm.runs.iter().flatten().map(|run| compared.value(run)).collect();
            let at = place.map(|place| number * others.len() + place);
            PhaseFinding {
                phase: half.phase,
                time_s: statistics::median(&mut times),
                estimate: at.and_then(|at| estimates[at]),
                verdict: at.map(|at| verdicts[at]),
            }
        };
        let has_run = arm.runs.iter().flatten().next().is_some();
        if has_run { halves.iter().enumerate().map(of_half).collect() } else { Vec::new() }
    };
    let all: Vec<Vec<PhaseFinding>> = std::iter::once(&arms[0]).chain(&arms[2..]).map(of_arm).collect();
    (halves.into_iter().map(|(_, found)| found).collect(), all.into_iter())
}

fn cold_share(arms: &[Arm]) -> Option<f64> {
    let runs = arms.iter().flat_map(|arm| arm.runs.iter().flatten());
    // A sieve buffer reads some bytes again, which are then cached; only the first read of a value counts. Metadata has
    // no values.
    let of = |run: &KernelOutcome| {
        let reads = run.reads?;
        let max_len_bytes = if run.len_bytes == 0 { reads.len_bytes } else { run.len_bytes };
        Some(Reads { len_bytes: reads.len_bytes.min(max_len_bytes), ..reads })
    };
    runs.filter_map(of).reduce(Reads::plus)?.cold_share()
}

fn values_of(arms: &[Arm]) -> Option<WrittenValues> {
    let digests = |arm: &Arm| arm.runs.iter().map(|run| run.as_ref()?.values).collect::<Vec<_>>();
    let (first, second) = (digests(&arms[0]), digests(&arms[1]));
    let mut pairs = first.iter().zip(&second).filter_map(|(first, second)| Some(((*first)?, (*second)?))).peekable();
    pairs.peek()?;
    Some(if pairs.all(|(first, second)| first == second) { WrittenValues::Equal } else { WrittenValues::Vary })
}

fn medians(arm: &Arm) -> Option<Medians> {
    let runs: Vec<&KernelOutcome> = arm.runs.iter().flatten().collect();
    let median = |of: &dyn Fn(&KernelOutcome) -> Option<f64>| {
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
    /// Computes the findings of these arms: the default, the sentinel, then the others.
    pub fn of(arms: &[Arm], rule: &StopRule) -> Self {
        let compared = ComparedQuantity::of(arms, None);
        let of = |arm: &Arm, compared| compare(arms, arm, compared, rule);
        let sentinel = of(&arms[1], compared);
        let doubt = sentinel.and_then(|found| doubt(&found, rule));
        let factor = doubt.unwrap_or(1.0);
        let others: Vec<&Arm> = arms[2..].iter().filter(|arm| !is_default(arms, arm)).collect();
        let estimates: Vec<Option<Estimate>> = others.iter().map(|arm| of(arm, compared)).collect();
        let alone = |found: &Option<Estimate>| rule.verdict(found.as_ref(), found.map_or(1.0, |found| found.p), factor);
        let alone: Vec<Verdict> = estimates.iter().map(alone).collect();
        let verdicts = rule.verdicts(&estimates, factor);
        let mut compared_with = estimates.into_iter().zip(verdicts).zip(alone);
        let (phases, mut of_phases) = by_phase(arms, rule);
        let mut finding = |arm: &Arm| {
            let medians = medians(arm);
            let default_len = self::medians(&arms[default_of(arms, arm)]).map(|medians| medians.file_len_bytes);
            let inflation = medians.zip(default_len).map(|(medians, default)| medians.file_len_bytes / default);
            let (arm, phases) = (arm.clone(), of_phases.next().unwrap_or_default());
            let (estimate, verdict) = (None, None);
            Finding { arm, estimate, wall: None, cpu: None, medians, inflation, verdict, alone: None, phases }
        };
        let found = |arm: &Arm| {
            let none = finding(arm);
            if is_default(arms, arm) {
                return none;
            }
            let Some(((estimate, verdict), alone)) = compared_with.next() else { return none };
            let wall = of(arm, compared.with(Metric::WallS));
            let cpu = of(arm, compared.with(Metric::CpuS));
            Finding { estimate, wall, cpu, verdict: Some(verdict), alone: Some(alone), ..none }
        };
        let found: Vec<Finding> = std::iter::once(&arms[0]).chain(&arms[2..]).map(found).collect();
        Self {
            metric: compared.metric,
            wall_variation: variation(arms, compared.with(Metric::WallS)),
            cpu_variation: variation(arms, compared.with(Metric::CpuS)),
            sentinel,
            margin: rule.margin,
            doubt,
            phases,
            cold_share: cold_share(arms),
            values: values_of(arms),
            arms: found,
        }
    }

    /// Returns the number of completed runs, not counting runs of the sentinel.
    pub fn runs(&self) -> usize {
        self.arms.iter().map(|finding| finding.arm.runs.iter().flatten().count()).sum()
    }

    /// Returns the HDF5 version of the default, if anything ran with it, and the library that the experiment names for
    /// it.
    pub fn hdf5(&self) -> Option<(&str, Option<&Path>)> {
        let library = &self.arms.first()?.arm.candidate.library;
        let same = self.arms.iter().filter(|finding| finding.arm.candidate.library == *library);
        let mut runs = same.flat_map(|finding| finding.arm.runs.iter().flatten());
        // An unmodified program does not report a version unless it was given settings.
        let version = runs.find_map(|run| Some(run.hdf5.as_str()).filter(|version| !version.is_empty()))?;
        Some((version, library.as_deref()))
    }

    /// Returns the version of the zlib with which the HDF5 of the default was loaded; `None` if it was not reported.
    pub fn zlib(&self) -> Option<&str> {
        self.arms[0].arm.runs.iter().flatten().find_map(|run| run.zlib.as_deref())
    }

    /// Returns the settings of the default.
    pub fn base(&self) -> &Settings {
        &self.arms[0].arm.candidate.settings
    }
}
