//! Running a workload: its experiments in sequence, within a time limit, and the resulting profile.
//!
//! Single experiments are run in `campaign` and `search`. Invariants: time that an experiment does not need goes to the
//! following ones, and time left at the end to those still open; a profile contains only settings that won twice, in
//! the search and against the default on fresh values.

use crate::campaign::{Bench, Campaign, TrialConditions};
use crate::error::Result;
use crate::fingerprint::{FileSystem, Machine};
use crate::kernel::Kernel;
use crate::planned::ResultTable;
use crate::profile::{FORM, MeasuredLibrary, Profile};
use crate::search::{self, Search, SearchLimits, share_of};
use crate::summary::Line;
use crate::workload::{Experiment, Scale, Workload};
use raddle_core::report::progress::{RunningStage, Stage};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A workload and its findings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Measurement {
    /// Name of the workload.
    pub workload: String,
    /// One-line title.
    pub title: String,
    /// Scale of the workload.
    pub scale: Scale,
    /// Machine of the measurement.
    pub machine: Machine,
    /// File system written to.
    pub file_system: FileSystem,
    /// HDF5 library that was measured.
    pub hdf5: MeasuredLibrary,
    /// Seed of random orders and values.
    pub seed: u64,
    /// Whether waiting for the disk was included.
    pub syncs: bool,
    /// Limits on the cost of settings; absent without a search.
    pub limits: Option<SearchLimits>,
    /// Elapsed seconds in total.
    pub elapsed_s: f64,
    /// Experiments of the workload, in order.
    pub experiments: Vec<MeasuredExperiment>,
    /// One summary line per experiment, with the paper's result.
    pub summary: Vec<Line>,
    /// Tables of planned numbers, added by the caller.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub planned: Vec<ResultTable>,
    /// Index in [`Measurement::experiments`] of the experiment that gives the profile.
    #[serde(skip)]
    source: Option<usize>,
}

/// An experiment and its findings.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasuredExperiment {
    /// Name of the experiment.
    pub name: String,
    /// One-line title.
    pub title: String,
    /// Result of a paper.
    pub paper: Option<String>,
    /// Kernel of the experiment.
    pub kernel: Kernel,
    /// Elapsed time in seconds.
    pub elapsed_s: f64,
    /// Sweep, rounds and proof.
    #[serde(flatten)]
    pub search: Search,
}

/// Runs `workload`; with `limits`, also searches for the best settings in the experiment that gives the profile.
/// `reported` is called after each experiment, and again if it was continued.
///
/// # Errors
/// As for [`crate::campaign::carry_out`].
pub fn measure(
    workload: &Workload,
    limits: Option<&SearchLimits>,
    conditions: &TrialConditions,
    bench: &Bench<'_>,
    reported: &mut dyn FnMut(&MeasuredExperiment),
) -> Result<Measurement> {
    let started = Instant::now();
    let source = limits.map(|_| workload.profile_from);
    let weights: Vec<f64> =
        (0..).zip(&workload.experiments).map(|(place, e)| weight(e, source == Some(place))).collect();
    let mut experiments: Vec<MeasuredExperiment> = Vec::new();
    let mut campaigns: Vec<(usize, Campaign)> = Vec::new();
    for (place, experiment) in workload.experiments.iter().enumerate() {
        let share = weights[place] / weights[place..].iter().sum::<f64>();
        let conditions = TrialConditions { deadline: share_of(conditions.deadline, share), ..conditions.clone() };
        let carry_out = || match limits {
            Some(limits) if source == Some(place) => search::search(experiment, limits, &conditions, bench),
            _ => {
                let mut campaign = Campaign::of(&experiment.candidates())?;
                campaign.go_on(&conditions, bench)?;
                let sweep = campaign.findings(&conditions);
                campaigns.push((place, campaign));
                Ok(Search::of_sweep(sweep))
            }
        };
        let (search, elapsed_s) = timed(bench, carry_out)?;
        let (name, title, paper) = (experiment.name.clone(), experiment.title.clone(), experiment.paper.clone());
        let kernel = experiment.kernel().clone();
        let done = MeasuredExperiment { name, title, paper, kernel, elapsed_s, search };
        reported(&done);
        experiments.push(done);
    }
    campaigns.retain(|(_, campaign)| !campaign.open(&conditions.rule).is_empty());
    let open: Vec<f64> = campaigns.iter().map(|(place, _)| weights[*place]).collect();
    for (at, (place, campaign)) in campaigns.iter_mut().enumerate() {
        let share = open[at] / open[at..].iter().sum::<f64>();
        let conditions = TrialConditions { deadline: share_of(conditions.deadline, share), ..conditions.clone() };
        let ((), elapsed_s) = timed(bench, || campaign.go_on(&conditions, bench))?;
        let done = &mut experiments[*place];
        let sweep = campaign.findings(&conditions);
        if sweep.runs() > done.search.sweep.runs() {
            (done.search.sweep, done.elapsed_s) = (sweep, done.elapsed_s + elapsed_s);
            reported(done);
        }
    }
    Ok(Measurement {
        workload: workload.name.clone(),
        title: workload.title.clone(),
        scale: workload.scale,
        machine: Machine::here(),
        file_system: FileSystem::of_folder(bench.scratch.folder())?,
        hdf5: measured_library(&experiments, workload, conditions),
        seed: conditions.seed,
        syncs: conditions.syncs,
        limits: limits.copied(),
        elapsed_s: started.elapsed().as_secs_f64(),
        summary: experiments.iter().map(MeasuredExperiment::line).collect(),
        planned: Vec::new(),
        experiments,
        source,
    })
}

/// Returns the HDF5 library that the experiments used.
fn measured_library(
    experiments: &[MeasuredExperiment],
    workload: &Workload,
    conditions: &TrialConditions,
) -> MeasuredLibrary {
    let hdf5 = experiments.iter().find_map(|experiment| experiment.search.sweep.hdf5());
    let (version, named) = hdf5.unwrap_or_default();
    let is_without_hdf5 = workload.experiments.iter().all(|experiment| experiment.kernel().local_processes().is_some());
    let library = match workload.scale {
        Scale::Own => "the program's own".to_owned(),
        _ if is_without_hdf5 => "none".to_owned(),
        _ => name_of(named.or(conditions.library.as_deref())),
    };
    MeasuredLibrary { version: version.to_owned(), library }
}

/// Runs `work` as a stage; returns its result and the elapsed seconds.
fn timed<T>(bench: &Bench<'_>, work: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let measuring = RunningStage::start(bench.observer, Stage::Measure, None);
    let done = work()?;
    Ok((done, measuring.finish()))
}

/// Cost of starting a process, and of starting ranks, as the bytes that could be written in that time: about ten
/// milliseconds, and half a second.
const START_LEN_BYTES: f64 = (4 << 20) as f64;
const START_OF_RANKS_LEN_BYTES: f64 = (256 << 20) as f64;

/// Returns the share of the time that an experiment should get: the bytes that a block writes plus the cost of starting
/// its runs, doubled if a search follows.
fn weight(experiment: &Experiment, is_searched: bool) -> f64 {
    let start = |ranks: u32| if ranks > 1 { START_OF_RANKS_LEN_BYTES } else { START_LEN_BYTES };
    let bytes: f64 = experiment.candidates().iter().map(|run| start(run.ranks) + run.kernel.len_bytes() as f64).sum();
    if is_searched { 2.0 * bytes } else { bytes }
}

fn name_of(library: Option<&Path>) -> String {
    library.map_or_else(|| "bundled".to_owned(), |path| path.to_string_lossy().into_owned())
}

impl MeasuredExperiment {
    /// Returns the summary line.
    fn line(&self) -> Line {
        Line::of(&self.name, self.paper.as_deref(), &self.search.sweep)
    }
}

impl Measurement {
    /// Returns the experiment that gives the profile; absent without a search.
    pub fn source(&self) -> Option<&MeasuredExperiment> {
        self.experiments.get(self.source?)
    }

    /// Returns the profile, measured by `program` at `now_unix_s`; `None` if no setting was found to help.
    pub fn profile(&self, program: &str, now_unix_s: u64) -> Option<Profile> {
        let (limits, search) = (self.limits?, &self.source()?.search);
        let (_, together) = search.winner(&limits)?;
        let mut profile = Profile {
            form: FORM,
            program: program.to_owned(),
            workload: match self.scale {
                Scale::Own => self.workload.clone(),
                scale => format!("{} at {}", self.workload, scale.name()),
            },
            measured_unix_s: now_unix_s,
            readable_by: None,
            max_inflation: limits.max_inflation,
            machine: self.machine.clone(),
            file_system: self.file_system.clone(),
            hdf5: self.hdf5.clone(),
            together: Some(together),
            settings: Default::default(),
            layout: Default::default(),
            idx: Default::default(),
        };
        for (knob, measured) in search.measured(&limits) {
            profile.put(knob, measured);
        }
        Some(profile)
    }
}

/// Returns the number of bytes that must be free for runs of `workload`: four times the largest run, for alignment and
/// metadata, plus some reserve.
pub fn needed_len_bytes(workload: &Workload) -> u64 {
    // 16 datasets of 4 MiB, aligned to 16 MiB, took 273 MB: four times the bytes of their values.
    workload.largest_run_len_bytes().saturating_mul(4).saturating_add(16 << 20)
}

/// Returns the path in `folder` of the profile of this workload.
pub fn profile_path(folder: &Path, workload: &str) -> PathBuf {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    folder.join(format!("{}.toml", workload.chars().map(plain).collect::<String>()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::TuneError;
    use crate::knob::{Knob, SettingValue};
    use crate::runner::{Executor, Scratch};
    use crate::statistics::StopRule;
    use crate::worker::{Answer, KernelOutcome, Request, RunStage, StageTime};
    use raddle_core::cancel::CancelToken;
    use raddle_core::random::Random;
    use raddle_core::report::progress::Silent;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    const TEXT: &str = r#"
name = "mine"
title = "A test"
profile_from = "two"
[[experiment]]
name = "one"
title = "One"
kernel = { kind = "vpic", particles = 10 }
knobs = { sieve = [1024] }
[[experiment]]
name = "two"
title = "Two"
kernel = { kind = "vpic", particles = 10 }
knobs = { alignment = [4096], meta_block = [65536] }
"#;

    /// Runs in which alignment halves the time, and a sieve makes times random.
    #[derive(Default)]
    struct SimulatedRuns {
        runs: AtomicU64,
        /// Real duration of a run.
        run: Duration,
    }

    impl Executor for SimulatedRuns {
        fn run(&self, request: &Request, _: &CancelToken) -> Result<Answer, TuneError> {
            let count = self.runs.fetch_add(1, Ordering::Relaxed);
            // The period does not match that of blocks, so it affects all arms alike.
            let wall_s = 1.0 + (count % 7) as f64 * 0.001;
            let wall_s = if request.settings.whole(Knob::Alignment).is_some() { wall_s / 2.0 } else { wall_s };
            let is_sieved = request.settings.whole(Knob::Sieve).is_some() && !self.run.is_zero();
            let wall_s = if is_sieved { wall_s * Random::of(&[count]).normal().exp() } else { wall_s };
            std::thread::sleep(self.run);
            Ok(Answer::Done(KernelOutcome {
                hdf5: "9.9.9".to_owned(),
                stages: vec![StageTime { stage: RunStage::Write, phase: None, wall_s, cpu_s: wall_s }],
                len_bytes: 1,
                file_len_bytes: 1000,
                found: request.settings.clone(),
                ..KernelOutcome::default()
            }))
        }
    }

    fn measured(limits: Option<&SearchLimits>, time: Option<Duration>) -> (Measurement, Vec<String>) {
        measured_by(&SimulatedRuns::default(), limits, time)
    }

    fn measured_by(
        simulated: &SimulatedRuns,
        limits: Option<&SearchLimits>,
        time: Option<Duration>,
    ) -> (Measurement, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let scratch = Scratch::in_folder(folder.path(), 1).unwrap();
        let cancel = CancelToken::new();
        let bench = Bench { executor: simulated, scratch: &scratch, observer: &Silent, cancel: &cancel };
        let deadline = time.map(|time| Instant::now() + time);
        let conditions = TrialConditions { library: None, seed: 5, syncs: false, rule: StopRule::default(), deadline };
        let workload = Workload::parse(Path::new("mine.toml"), TEXT, Scale::Tiny).unwrap();
        let mut reported = Vec::new();
        let done =
            measure(&workload, limits, &conditions, &bench, &mut |done| reported.push(done.name.clone())).unwrap();
        (done, reported)
    }

    #[test]
    fn what_won_twice_becomes_the_profile() {
        let (done, reported) = measured(Some(&SearchLimits::default()), None);
        assert_eq!(reported, ["one", "two"]);
        assert!(done.experiments[0].search.proof.is_none() && done.experiments[1].search.proof.is_some());
        let profile = done.profile("raddle 0", 7).unwrap();
        assert_eq!(profile.settings.keys().copied().collect::<Vec<_>>(), [Knob::Alignment]);
        assert_eq!(profile.settings[&Knob::Alignment].value, SettingValue::Whole(4096));
        assert_eq!((profile.workload.as_str(), profile.hdf5.version.as_str()), ("mine at tiny", "9.9.9"));
        let again = Profile::parse(Path::new("mine.toml"), &profile.to_toml()).unwrap();
        assert_eq!(again, profile);
        let json = serde_json::to_value(&done).unwrap();
        assert_eq!(json["experiments"][1]["proof"]["arms"][1]["verdict"], "better");
        assert_eq!(json["experiments"][0]["sweep"]["arms"][1]["verdict"], "no_effect");
    }

    #[test]
    fn without_limits_nothing_is_searched_for() {
        let (done, _) = measured(None, None);
        assert!(done.experiments.iter().all(|experiment| experiment.search.proof.is_none()));
        assert_eq!(done.profile("raddle 0", 7), None);
    }

    #[test]
    fn time_that_is_left_is_theirs_that_are_open() {
        // The first experiment would need 165 runs, but its share of the time allows at most 100; the second needs 60.
        // Runs are long compared with the delays of a busy machine.
        let run = Duration::from_millis(12);
        let (done, reported) = measured_by(&SimulatedRuns { run, ..SimulatedRuns::default() }, None, Some(run * 250));
        assert_eq!(reported, ["one", "two", "one"]);
        let arm = &done.experiments[0].search.sweep.arms[1];
        assert!(
            arm.arm.runs.len() > 35 && done.elapsed_s < (run * 300).as_secs_f64(),
            "{} blocks in {} s",
            arm.arm.runs.len(),
            done.elapsed_s
        );
    }

    #[test]
    fn unmeasured_settings_are_not_reported() {
        let (done, _) = measured(Some(&SearchLimits::default()), Some(Duration::ZERO));
        let sweeps: Vec<usize> = done.experiments.iter().map(|experiment| experiment.search.sweep.runs()).collect();
        assert_eq!((sweeps, done.profile("raddle 0", 7)), (vec![0, 0], None));
        let json = serde_json::to_value(&done).unwrap();
        assert_eq!(json["experiments"][0]["sweep"]["arms"][1]["verdict"], "cannot_tell");
    }

    #[test]
    fn names_of_workloads_are_file_names() {
        assert_eq!(profile_path(Path::new("/p"), "../a b"), Path::new("/p/..-a-b.toml"));
    }
}
