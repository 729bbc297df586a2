//! Search for the best settings of an experiment: sweeps of one setting at a time, then combinations of those that
//! help.
//!
//! Most settings have no effect (Hill, Smith and Trew 2005 found three of twelve that do, and so did we), so few
//! combinations remain, which are halved round by round. `campaign` runs them. Invariants: a candidate that breaks a
//! limit is never chosen; the winner is measured again, with values and orders that the search has not used, and is
//! rejected if it does not win again.

use crate::campaign::{self, Bench, TrialConditions};
use crate::error::Result;
use crate::findings::{Finding, Findings};
use crate::knob::{Knob, LibraryVersion, SettingValue, Settings};
use crate::profile::{Evidence, MeasuredValue};
use crate::statistics::{Estimate, MIN_BLOCKS, StopRule, Verdict};
use crate::workload::{Candidate, Experiment};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Instant;

/// Limits on the cost of settings.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SearchLimits {
    /// Maximum ratio of the file length to that of the default.
    pub max_inflation: f64,
    /// Maximum memory of a run.
    pub memory_bytes: Option<u64>,
    /// The oldest HDF5 that must be able to read the files.
    pub readable_by: Option<LibraryVersion>,
}

impl Default for SearchLimits {
    /// Lets files grow by a tenth, and requires that HDF5 1.10 can read them.
    fn default() -> Self {
        Self { max_inflation: 1.1, memory_bytes: None, readable_by: Some(LibraryVersion(1, 10)) }
    }
}

/// Maximum number of combinations: 7 rounds of halving, or 64 x 5 runs in the first.
const MAX_COMBINATIONS: usize = 64;

/// Share of the time for sweeps, and of the remaining time for halving; the rest is left for the proof.
const SWEEP_SHARE: f64 = 0.6;
const ROUNDS_SHARE: f64 = 0.6;

/// Number of runs of a search by halving, per combination. Each round runs [`MIN_BLOCKS`] blocks with half of the
/// previous round's arms, so all rounds together cost at most twice the first.
const RUNS_PER_COMBINATION: f64 = 2.0 * MIN_BLOCKS as f64;

/// Number of values of a setting that are combined, in addition to its default.
const MAX_VALUES: usize = 3;

/// A search and its findings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Search {
    /// Sweep of one setting at a time.
    pub sweep: Findings,
    /// Rounds of successive halving; empty if there was nothing to combine.
    pub rounds: Vec<Findings>,
    /// The winner compared with the default, on fresh values; absent if no setting helped within the limits.
    pub proof: Option<Findings>,
}

impl SearchLimits {
    /// Returns whether the arm may be chosen.
    pub fn allow(&self, finding: &Finding) -> bool {
        let Some(medians) = &finding.medians else { return false };
        let settings = &finding.arm.candidate.settings;
        let is_light =
            self.memory_bytes.is_none_or(|limit| medians.peak_rss_bytes.is_none_or(|peak| peak <= limit as f64));
        let is_readable =
            self.readable_by.is_none_or(|oldest| settings.readable_by().is_none_or(|needs| needs <= oldest));
        finding.inflation.is_some_and(|inflation| inflation <= self.max_inflation) && is_light && is_readable
    }
}

/// Returns the settings that a sweep found to help, each with its better values, best first.
pub fn living(sweep: &Findings, limits: &SearchLimits) -> BTreeMap<Knob, Vec<SettingValue>> {
    let mut better: BTreeMap<Knob, Vec<(f64, SettingValue)>> = BTreeMap::new();
    let first = sweep.arms.first().map(|finding| &finding.arm.candidate.case);
    for finding in &sweep.arms {
        let Candidate { knob: Some(knob), settings, case, .. } = &finding.arm.candidate else { continue };
        // Settings that help in another case do not count for this one.
        if first != Some(case) {
            continue;
        }
        let (Some(estimate), Some(value)) = (finding.estimate, settings.get(*knob)) else { continue };
        if finding.verdict == Some(Verdict::Better) && limits.allow(finding) {
            better.entry(*knob).or_default().push((estimate.ratio, value.clone()));
        }
    }
    let best_first = |mut values: Vec<(f64, SettingValue)>| {
        values.sort_by(|a, b| a.0.total_cmp(&b.0));
        values.into_iter().map(|(_, value)| value).take(MAX_VALUES).collect()
    };
    better.into_iter().map(|(knob, values)| (knob, best_first(values))).collect()
}

/// Returns all combinations of these values and the defaults, except for the default alone, if there are at most
/// `limit`. Otherwise worse values are left out; in the last resort only the combination of all best values remains.
pub fn combinations(living: &BTreeMap<Knob, Vec<SettingValue>>, limit: usize) -> Vec<Settings> {
    for most in (1..=MAX_VALUES).rev() {
        let mut all = vec![Settings::default()];
        for (knob, values) in living {
            let with = |settings: &Settings, value: &SettingValue| settings.clone().and(*knob, value.clone());
            let more: Vec<Settings> =
                all.iter().flat_map(|settings| values.iter().take(most).map(|value| with(settings, value))).collect();
            all.extend(more);
            if all.len() > limit + 1 {
                break;
            }
        }
        if all.len() <= limit + 1 {
            return all.split_off(1);
        }
    }
    // All settings at their best values.
    let best = living.iter().filter_map(|(knob, values)| Some((*knob, values.first()?.clone())));
    vec![Settings(best.collect())]
}

/// Returns the better half of the arms of a round, best first, without those whose interval lies above the best one's.
pub fn survivors(round: &Findings, limits: &SearchLimits) -> Vec<Candidate> {
    let mut allowed: Vec<(&Finding, Estimate)> = round.arms[1..]
        .iter()
        .filter(|finding| limits.allow(finding))
        .filter_map(|finding| Some((finding, finding.estimate?)))
        .collect();
    allowed.sort_by(|a, b| a.1.ratio.total_cmp(&b.1.ratio));
    let Some(bound) = allowed.first().map(|(_, best)| best.interval[1]) else { return Vec::new() };
    let half = allowed.len().div_ceil(2);
    let near = allowed.into_iter().take(half).filter(|(_, estimate)| estimate.interval[0] <= bound);
    near.map(|(finding, _)| finding.arm.candidate.clone()).collect()
}

/// Finds the best settings for `experiment`.
///
/// # Errors
/// As for [`campaign::carry_out`].
pub fn search(
    experiment: &Experiment,
    limits: &SearchLimits,
    conditions: &TrialConditions,
    bench: &Bench<'_>,
) -> Result<Search> {
    let started = Instant::now();
    let sweep_conditions =
        TrialConditions { deadline: share_of(conditions.deadline, SWEEP_SHARE), ..conditions.clone() };
    let sweep = campaign::carry_out(&experiment.candidates(), &sweep_conditions, bench)?;
    let run_s = started.elapsed().as_secs_f64() / sweep.runs().max(1) as f64;
    let rounds_deadline = share_of(conditions.deadline, ROUNDS_SHARE);
    let affordable = rounds_deadline.map_or(MAX_COMBINATIONS, |deadline| {
        let left_s = deadline.saturating_duration_since(Instant::now()).as_secs_f64();
        (left_s / (run_s * RUNS_PER_COMBINATION)) as usize
    });
    let default = sweep.arms[0].arm.candidate.clone();
    let of = |settings: &Settings| Candidate {
        name: settings.words(),
        knob: None,
        settings: default.settings.with(settings),
        ..default.clone()
    };
    let mut left: Vec<Candidate> =
        combinations(&living(&sweep, limits), affordable.min(MAX_COMBINATIONS)).iter().map(of).collect();
    let mut rounds = Vec::new();
    let reseeded = |step: u64| conditions.seed.wrapping_add(step.wrapping_mul(0x9E37_79B9));
    while left.len() > 1 {
        // Each arm gets only the minimum number of blocks: halving saves the time.
        let rule = StopRule { max_blocks: MIN_BLOCKS, ..conditions.rule };
        let seed = reseeded(rounds.len() as u64 + 1);
        let conditions = TrialConditions { rule, seed, deadline: rounds_deadline, ..conditions.clone() };
        let arms: Vec<Candidate> = std::iter::once(default.clone()).chain(left).collect();
        let round = campaign::carry_out(&arms, &conditions, bench)?;
        left = survivors(&round, limits);
        rounds.push(round);
    }
    let proof = match left.pop() {
        None => None,
        Some(winner) => {
            let conditions = TrialConditions { seed: reseeded(u64::MAX), ..conditions.clone() };
            Some(campaign::carry_out(&[default, winner], &conditions, bench)?)
        }
    };
    Ok(Search { sweep, rounds, proof })
}

/// Returns the time at which `share` of the time to `deadline` has passed.
pub(crate) fn share_of(deadline: Option<Instant>, share: f64) -> Option<Instant> {
    let now = Instant::now();
    deadline.map(|deadline| now + deadline.saturating_duration_since(now).mul_f64(share))
}

impl Search {
    /// Creates the result of a sweep without a search.
    pub fn of_sweep(sweep: Findings) -> Self {
        Self { sweep, rounds: Vec::new(), proof: None }
    }

    /// Returns the winner with the evidence for all its settings together; `None` if it did not win again.
    pub fn winner(&self, limits: &SearchLimits) -> Option<(&Settings, Evidence)> {
        let proof = self.proof.as_ref()?;
        let finding = proof.arms.get(1)?;
        let is_proven = finding.verdict == Some(Verdict::Better) && limits.allow(finding);
        is_proven.then_some((&finding.arm.candidate.settings, evidence(proof, finding)?))
    }

    /// Returns the settings in which the winner differs from the default, each with the evidence of the sweep.
    pub fn measured(&self, limits: &SearchLimits) -> Vec<(Knob, MeasuredValue)> {
        let Some((settings, _)) = self.winner(limits) else { return Vec::new() };
        let changed = settings.0.iter().filter(|(knob, value)| self.sweep.base().get(**knob) != Some(*value));
        let of = |knob: &Knob, value: &SettingValue| {
            let is_it = |finding: &&Finding| {
                let candidate = &finding.arm.candidate;
                let is_of_first = candidate.case == self.sweep.arms[0].arm.candidate.case;
                is_of_first && candidate.knob == Some(*knob) && candidate.settings.get(*knob) == Some(value)
            };
            let evidence = evidence(&self.sweep, self.sweep.arms.iter().find(is_it)?)?;
            Some((*knob, MeasuredValue { value: value.clone(), force: false, evidence }))
        };
        changed.filter_map(|(knob, value)| of(knob, value)).collect()
    }
}

fn evidence(findings: &Findings, finding: &Finding) -> Option<Evidence> {
    let Estimate { ratio, interval, blocks, .. } = finding.estimate?;
    Some(Evidence { ratio, interval, blocks, metric: findings.metric, inflation: finding.inflation? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::TuneError;
    use crate::kernel::Kernel;
    use crate::runner::{Executor, Scratch};
    use crate::worker::{Answer, KernelOutcome, Request, RunStage, StageTime};
    use raddle_core::cancel::CancelToken;
    use raddle_core::random::Random;
    use raddle_core::report::progress::Silent;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Runs in which a chunk cache of 4 MiB takes 0.5 of the time, gzip 0 takes 0.4 but five times the length, a
    /// metadata block takes 0.7, and a sieve has no effect.
    #[derive(Default)]
    struct SimulatedRuns {
        runs: AtomicU64,
    }

    impl Executor for SimulatedRuns {
        fn run(&self, request: &Request, cancel: &CancelToken) -> Result<Answer> {
            cancel.check().map_err(|_| TuneError::Cancelled)?;
            let settings = &request.settings;
            let mut time = 1.0;
            for (knob, value, factor) in
                [(Knob::ChunkCache, 4 << 20, 0.5), (Knob::Gzip, 0, 0.4), (Knob::MetaBlock, 1 << 20, 0.7)]
            {
                time *= if settings.whole(knob) == Some(value) { factor } else { 1.0 };
            }
            let file_len_bytes = if settings.whole(Knob::Gzip) == Some(0) { 5000 } else { 1000 };
            let mut random = Random::of(&[self.runs.fetch_add(1, Ordering::Relaxed)]);
            let wall_s = time * (0.03 * random.normal()).exp();
            Ok(Answer::Done(KernelOutcome {
                hdf5: "0.0.0".to_owned(),
                stages: vec![StageTime { stage: RunStage::Write, phase: None, wall_s, cpu_s: wall_s }],
                len_bytes: 100,
                file_len_bytes,
                peak_rss_bytes: Some(1 << 20),
                ..KernelOutcome::default()
            }))
        }
    }

    fn experiment() -> Experiment {
        let whole = |values: &[u64]| values.iter().copied().map(SettingValue::Whole).collect::<Vec<_>>();
        let knobs = [
            (Knob::ChunkCache, whole(&[0, 4 << 20])),
            (Knob::Gzip, whole(&[0, 1])),
            (Knob::MetaBlock, whole(&[1 << 20])),
            (Knob::Sieve, whole(&[1 << 20])),
        ];
        let mut experiment = Experiment::of_kernel(Kernel::Vpic { particles: 1 });
        experiment.cases[0].base = Settings::default().and(Knob::Gzip, SettingValue::Whole(1));
        Experiment { name: "made".to_owned(), knobs: knobs.into(), ..experiment }
    }

    fn found(limits: &SearchLimits) -> Search {
        let folder = tempfile::tempdir().unwrap();
        let scratch = Scratch::in_folder(folder.path(), 1).unwrap();
        let (simulated, cancel) = (SimulatedRuns::default(), CancelToken::new());
        let bench = Bench { executor: &simulated, scratch: &scratch, observer: &Silent, cancel: &cancel };
        let conditions =
            TrialConditions { library: None, seed: 5, syncs: false, rule: StopRule::default(), deadline: None };
        search(&experiment(), limits, &conditions, &bench).unwrap()
    }

    #[test]
    fn the_best_combination_within_the_limits_is_found() {
        let limits = SearchLimits::default();
        let search = found(&limits);
        let (settings, together) = search.winner(&limits).unwrap();
        let expected = [(Knob::Gzip, 1), (Knob::ChunkCache, 4 << 20), (Knob::MetaBlock, 1 << 20)];
        let expected = expected.into_iter().fold(Settings::default(), |all, (k, v)| all.and(k, SettingValue::Whole(v)));
        assert_eq!(*settings, expected);
        assert!((together.ratio - 0.35).abs() < 0.03, "{together:?}");
        let measured = search.measured(&limits);
        let knobs: Vec<Knob> = measured.iter().map(|(knob, _)| *knob).collect();
        assert_eq!(knobs, [Knob::MetaBlock, Knob::ChunkCache]);
        assert!((measured[1].1.evidence.ratio - 0.5).abs() < 0.05);
        // 3 combinations of two settings: 3, then 2 or 1.
        assert!((1..=2).contains(&search.rounds.len()));
    }

    #[test]
    fn a_limit_that_is_lifted_lets_more_win() {
        let limits = SearchLimits { max_inflation: 10.0, ..SearchLimits::default() };
        let search = found(&limits);
        let (settings, together) = search.winner(&limits).unwrap();
        assert_eq!(settings.whole(Knob::Gzip), Some(0));
        assert!((together.ratio - 0.14).abs() < 0.02 && (together.inflation - 5.0).abs() < 1e-9, "{together:?}");
    }

    #[test]
    fn where_nothing_may_be_chosen_nothing_is() {
        let limits = SearchLimits { memory_bytes: Some(1000), ..SearchLimits::default() };
        let search = found(&limits);
        assert!(search.proof.is_none() && search.rounds.is_empty());
        assert!(search.winner(&limits).is_none() && search.measured(&limits).is_empty());
    }

    #[test]
    fn combinations_are_all_or_the_best() {
        let of = |knobs: &[Knob], values: u64| {
            let values: Vec<SettingValue> = (1..=values).map(SettingValue::Whole).collect();
            combinations(&knobs.iter().map(|knob| (*knob, values.clone())).collect(), MAX_COMBINATIONS)
        };
        assert!(of(&[], 3).is_empty());
        assert_eq!(of(&Knob::ALL[..2], 3).len(), 15);
        assert_eq!(of(&Knob::ALL[..3], 3).len(), 63);
        // 4^4 and 3^4 are too many, 2^4 are not.
        assert_eq!(of(&Knob::ALL[..4], 3).len(), 15);
        assert_eq!(of(&Knob::ALL[..6], 3).len(), 63);
        let little_time = BTreeMap::from([
            (Knob::Gzip, vec![SettingValue::Whole(1), SettingValue::Whole(2)]),
            (Knob::Sieve, vec![SettingValue::Whole(3)]),
        ]);
        let best = Settings::default().and(Knob::Gzip, SettingValue::Whole(1)).and(Knob::Sieve, SettingValue::Whole(3));
        assert_eq!(combinations(&little_time, 0), [best]);
        assert_eq!(combinations(&little_time, 3).len(), 3);
        let all = of(&Knob::ALL[..20], 3);
        assert_eq!((all.len(), all[0].0.len()), (1, 20));
    }
}
