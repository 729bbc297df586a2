//! Running an experiment: blocks of runs in random order until the results are clear.
//!
//! Processes are started in `runner`; `search` chooses what to compare. Invariant: all arms of a block get the same
//! values. An additional arm, the sentinel, runs the default a second time: any difference between the two is noise.
//! Arms are compared with the mean of both, which is less noisy.

use crate::error::{Result, TuneError};
use crate::findings::{Arm, ArmFailure, ComparedQuantity, Findings, compare, default_of, is_default, phases};
use crate::kernel::{Kernel, Verify};
use crate::runner::{Executor, Scratch};
use crate::statistics::{self, StopRule};
use crate::worker::{Answer, Request};
use crate::workload::Candidate;
use raddle_core::cancel::CancelToken;
use raddle_core::random::Random;
use raddle_core::report::progress::{Event, Observer, Stage};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Conditions of running an experiment.
#[derive(Debug, Clone)]
pub struct TrialConditions {
    /// Library to measure; `None`: the bundled one.
    pub library: Option<PathBuf>,
    /// Seed of random orders and values.
    pub seed: u64,
    /// Whether to include the time of waiting for the disk.
    pub syncs: bool,
    /// Rule for ending the runs of an arm.
    pub rule: StopRule,
    /// Time by which blocks must end. A block that would end later, judged by the previous block, is not started.
    pub deadline: Option<Instant>,
}

/// Resources that an experiment needs to run.
pub struct Bench<'a> {
    /// Executor of runs.
    pub executor: &'a dyn Executor,
    /// Folder for files.
    pub scratch: &'a Scratch,
    /// Observer notified of every run.
    pub observer: &'a dyn Observer,
    /// Token that stops between runs and kills the current run.
    pub cancel: &'a CancelToken,
}

/// Runs an experiment on `candidates`, the first of which is the default.
///
/// # Errors
/// If no run can be started, the default fails, or the experiment is cancelled.
pub fn carry_out(candidates: &[Candidate], conditions: &TrialConditions, bench: &Bench<'_>) -> Result<Findings> {
    let mut campaign = Campaign::of(candidates)?;
    campaign.go_on(conditions, bench)?;
    Ok(campaign.findings(conditions))
}

/// An experiment in progress: it can report its findings so far and be continued later.
#[derive(Debug)]
pub struct Campaign {
    /// The default, the sentinel, then the others.
    arms: Vec<Arm>,
}

impl Campaign {
    /// Creates an experiment on `candidates`, the first of which is the default, without running anything.
    ///
    /// # Errors
    /// If there are no candidates.
    pub fn of(candidates: &[Candidate]) -> Result<Self> {
        let Some(default) = candidates.first() else { return Err(TuneError::NothingToCompare) };
        let arm = |candidate: &Candidate| Arm { candidate: candidate.clone(), runs: Vec::new(), fault: None };
        let sentinel = Candidate { name: "sentinel".to_owned(), ..default.clone() };
        Ok(Self { arms: [default, &sentinel].into_iter().chain(&candidates[1..]).map(arm).collect() })
    }

    /// Returns the arms that need more runs.
    pub fn open(&self, rule: &StopRule) -> Vec<usize> {
        let arms = &self.arms;
        // If runs write and read, an arm is done only when all its verdicts are.
        let halves = phases(arms).iter().map(|phase| Some(*phase));
        let all: Vec<ComparedQuantity> =
            std::iter::once(None).chain(halves).map(|phase| ComparedQuantity::of(arms, phase)).collect();
        let compared = arms.iter().filter(|arm| !is_default(arms, arm)).count() - 1;
        let comparisons = compared * phases(arms).len().max(1);
        let is_open = |arm: &Arm| {
            let blocks = arm.runs.iter().flatten().count();
            let is_done = |compared: &ComparedQuantity| {
                rule.is_done(blocks, compare(arms, arm, *compared, rule).as_ref(), comparisons)
            };
            arm.fault.is_none() && !is_default(arms, arm) && !all.iter().all(is_done)
        };
        (2..arms.len()).filter(|place| is_open(&arms[*place])).collect()
    }

    /// Runs blocks until no arm is open or the time is over.
    ///
    /// # Errors
    /// As for [`carry_out`].
    pub fn go_on(&mut self, conditions: &TrialConditions, bench: &Bench<'_>) -> Result<()> {
        let mut last_took = Duration::ZERO;
        for block in self.arms[0].runs.len()..conditions.rule.max_blocks {
            let began = Instant::now();
            let open = self.open(&conditions.rule);
            if open.is_empty() || conditions.deadline.is_some_and(|deadline| began + last_took >= deadline) {
                break;
            }
            if !self.run_block(block, &open, conditions, bench)? {
                break;
            }
            last_took = began.elapsed();
        }
        Ok(())
    }

    /// Runs the default, the sentinel, the `open` arms and the defaults of their cases in random order. Returns whether
    /// the default could run.
    fn run_block(
        &mut self,
        block: usize,
        open: &[usize],
        conditions: &TrialConditions,
        bench: &Bench<'_>,
    ) -> Result<bool> {
        let arms = &mut self.arms;
        let defaults = open.iter().map(|place| default_of(arms, &arms[*place]));
        let running: BTreeSet<usize> = [0, 1].into_iter().chain(open.iter().copied()).chain(defaults).collect();
        let running: Vec<usize> = running.into_iter().collect();
        for arm in &mut *arms {
            arm.runs.push(None);
        }
        for place in statistics::order_of_block(conditions.seed, block as u64, running.len()) {
            run_one(&mut arms[running[place]], block, conditions, bench)?;
            match arms[0].fault.clone().or_else(|| arms[1].fault.clone()) {
                Some(ArmFailure::Failed(message)) => return Err(TuneError::Run { message }),
                Some(fault @ ArmFailure::NotApplicable(_)) => {
                    // Without the default, the experiment fails.
                    arms.iter_mut().for_each(|arm| (arm.fault, arm.runs) = (Some(fault.clone()), Vec::new()));
                    return Ok(false);
                }
                None => {}
            }
        }
        for place in 2..arms.len() {
            // Without the default of its case, an arm cannot be compared.
            let fault = arms[default_of(arms, &arms[place])].fault.clone();
            if arms[place].fault.is_none() {
                arms[place].fault = fault;
            }
        }
        check_values(arms, block)?;
        Ok(true)
    }

    /// Returns the findings so far.
    pub fn findings(&self, conditions: &TrialConditions) -> Findings {
        Findings::of(&self.arms, &conditions.rule)
    }
}

/// Checks that the runs of a block wrote the same values as the default; an arm that did not is not run again.
fn check_values(arms: &mut [Arm], block: usize) -> Result<()> {
    let digest = |arm: &Arm| arm.runs[block].as_ref()?.values;
    let (Some(expected), Some(again)) = (digest(&arms[0]), digest(&arms[1])) else { return Ok(()) };
    if expected != again {
        let is_wanted = matches!(arms[0].candidate.kernel, Kernel::Program { verify: Verify::Always, .. });
        let message = "two runs with the same settings wrote different values".to_owned();
        return if is_wanted { Err(TuneError::Run { message }) } else { Ok(()) };
    }
    for arm in &mut arms[2..] {
        if digest(arm).is_some_and(|found| found != expected) {
            arm.fault = Some(ArmFailure::Failed("its files differ in values from those of the defaults".to_owned()));
            arm.runs[block] = None;
        }
    }
    Ok(())
}

fn run_one(arm: &mut Arm, block: usize, conditions: &TrialConditions, bench: &Bench<'_>) -> Result<()> {
    let request = Request {
        kernel: arm.candidate.kernel.clone(),
        settings: arm.candidate.settings.clone(),
        path: bench.scratch.fresh()?,
        library: arm.candidate.library.clone().or_else(|| conditions.library.clone()),
        seed: Random::of(&[conditions.seed, block as u64, 1]).bits(),
        syncs: conditions.syncs,
        ranks: arm.candidate.ranks,
    };
    match bench.executor.run(&request, bench.cancel)? {
        Answer::Done(outcome) => {
            arm.runs[block] = Some(outcome);
        }
        // A library named by the workload may be missing on this machine; one named by the user must exist.
        Answer::Unusable(why) if arm.candidate.library.is_some() => arm.fault = Some(ArmFailure::NotApplicable(why)),
        Answer::Unusable(why) => arm.fault = Some(ArmFailure::Failed(why)),
        Answer::NotApplicable(why) => arm.fault = Some(ArmFailure::NotApplicable(why)),
        Answer::Failed(why) => arm.fault = Some(ArmFailure::Failed(why)),
    }
    bench.observer.event(&Event::Advanced { stage: Stage::Measure, bytes: 0, items: 1 });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::MAX_VARIATION;
    use crate::knob::{Knob, SettingValue, Settings};
    use crate::profile::Metric;
    use crate::statistics::Verdict;
    use crate::worker::{self, Calls, KernelOutcome, StageTime};
    use raddle_core::report::progress::Silent;
    use std::sync::Mutex;

    /// Runs whose time depends on `gzip`, with noise: level 1 takes 1, level 6 takes 2.5, level 0 fails, level 9 is not
    /// available.
    struct SimulatedRuns {
        noise: f64,
        asked: Mutex<Vec<Request>>,
    }

    impl SimulatedRuns {
        fn new(noise: f64) -> Self {
            Self { noise, asked: Mutex::default() }
        }
    }

    impl Executor for SimulatedRuns {
        fn run(&self, request: &Request, cancel: &CancelToken) -> Result<Answer> {
            if cancel.is_cancelled() {
                return Err(TuneError::Cancelled);
            }
            let mut asked = self.asked.lock().unwrap();
            asked.push(request.clone());
            let level = request.settings.whole(Knob::Gzip).unwrap_or(1);
            let mut random = Random::of(&[asked.len() as u64]);
            let mean = if level == 6 { 2.5 } else { 1.0 };
            let mut time = |noise: f64| mean * (noise * random.normal()).exp();
            let (wall_s, cpu_s) = (time(self.noise), time(self.noise.min(0.02)));
            match level {
                0 => return Ok(Answer::Failed("a fault".to_owned())),
                9 => return Ok(Answer::NotApplicable("no gzip".to_owned())),
                _ => {}
            }
            Ok(Answer::Done(KernelOutcome {
                hdf5: "0.0.0".to_owned(),
                stages: vec![StageTime { stage: worker::RunStage::Write, phase: None, wall_s, cpu_s }],
                len_bytes: 100,
                calls: Some(Calls { read: 1, write: 10 * level }),
                file_len_bytes: 1000 / level,
                ..KernelOutcome::default()
            }))
        }
    }

    fn candidates(levels: &[u64]) -> Vec<Candidate> {
        let of = |level: &u64| Candidate {
            name: format!("gzip={level}"),
            knob: Some(Knob::Gzip),
            case: None,
            kernel: Kernel::Vpic { particles: 1 },
            settings: Settings::default().and(Knob::Gzip, SettingValue::Whole(*level)),
            ranks: 1,
            library: None,
        };
        levels.iter().map(of).collect()
    }

    fn conditions() -> TrialConditions {
        TrialConditions { library: None, seed: 3, syncs: false, rule: StopRule::default(), deadline: None }
    }

    fn found(simulated: &SimulatedRuns, levels: &[u64], conditions: &TrialConditions) -> Result<Findings> {
        found_of(simulated, &candidates(levels), conditions)
    }

    fn found_of(simulated: &SimulatedRuns, candidates: &[Candidate], conditions: &TrialConditions) -> Result<Findings> {
        let folder = tempfile::tempdir().unwrap();
        let scratch = Scratch::in_folder(folder.path(), 1).unwrap();
        let cancel = CancelToken::new();
        let bench = Bench { executor: simulated, scratch: &scratch, observer: &Silent, cancel: &cancel };
        carry_out(candidates, conditions, &bench)
    }

    #[test]
    fn a_quiet_machine_reports_all() {
        let findings = found(&SimulatedRuns::new(0.01), &[1, 6, 2, 0, 9], &conditions()).unwrap();
        assert_eq!((findings.metric, findings.doubt), (Metric::WallS, None));
        let verdicts: Vec<Option<Verdict>> = findings.arms.iter().map(|finding| finding.verdict).collect();
        let (worse, none, open) = (Some(Verdict::Worse), Some(Verdict::NoEffect), Some(Verdict::CannotTell));
        assert_eq!(verdicts, [None, worse, none, open, open]);
        let slow = &findings.arms[1];
        let estimate = slow.estimate.unwrap();
        assert!((2.3..2.7).contains(&estimate.ratio) && estimate.interval[0] > 2.0, "{estimate:?}");
        assert!((slow.inflation.unwrap() - 166.0 / 1000.0).abs() < 1e-9);
        assert_eq!(slow.medians.unwrap().write_calls, Some(60.0));
        assert_eq!(findings.arms[3].arm.fault, Some(ArmFailure::Failed("a fault".to_owned())));
        assert_eq!(findings.arms[4].arm.fault, Some(ArmFailure::NotApplicable("no gzip".to_owned())));
        assert!(findings.arms[3].medians.is_none());
    }

    #[test]
    fn a_default_that_is_not_to_be_had_leaves_the_experiment_out() {
        let findings = found(&SimulatedRuns::new(0.01), &[9, 1, 6], &conditions()).unwrap();
        assert_eq!(findings.runs(), 0);
        let fault = Some(ArmFailure::NotApplicable("no gzip".to_owned()));
        assert!(findings.arms.iter().all(|finding| finding.arm.fault == fault));
    }

    #[test]
    fn arms_that_write_other_values_are_reported_and_not_run_on() {
        let of = |values: [u64; 4]| {
            let findings = found(&SimulatedRuns::new(0.01), &[1, 6, 2], &conditions()).unwrap();
            let mut arms: Vec<Arm> = findings.arms.into_iter().map(|finding| finding.arm).collect();
            arms.insert(1, arms[0].clone());
            for (arm, digest) in arms.iter_mut().zip(values) {
                arm.runs[0].as_mut().unwrap().values = Some(digest);
            }
            check_values(&mut arms, 0).map(|()| arms.iter().map(|arm| arm.fault.is_some()).collect::<Vec<_>>())
        };
        assert_eq!(of([1, 1, 1, 2]).unwrap(), [false, false, false, true]);
        // If runs with equal settings differ, other differences prove nothing.
        assert_eq!(of([1, 2, 1, 3]).unwrap(), [false; 4]);
        assert_eq!(of([1, 1, 1, 1]).unwrap(), [false; 4]);
    }

    #[test]
    fn elapsed_times_that_vary_much_are_not_compared() {
        let findings = found(&SimulatedRuns::new(0.6), &[1, 6], &conditions()).unwrap();
        assert!(findings.wall_variation > MAX_VARIATION && findings.cpu_variation < MAX_VARIATION);
        assert_eq!(findings.metric, Metric::CpuS);
        assert_eq!(findings.arms[1].verdict, Some(Verdict::Worse));
    }

    #[test]
    fn unequal_ranks_are_compared_by_elapsed_time_however_it_varies() {
        let mut arms = candidates(&[1, 6]);
        arms[1].ranks = 2;
        let findings = found_of(&SimulatedRuns::new(0.6), &arms, &conditions()).unwrap();
        assert!(findings.wall_variation > MAX_VARIATION);
        assert_eq!(findings.metric, Metric::WallS);
    }

    #[test]
    fn where_equal_defaults_differ_only_what_is_far_beyond_that_is_reported() {
        let mut findings = found(&SimulatedRuns::new(0.01), &[1, 6, 2], &conditions()).unwrap();
        assert_eq!(findings.doubt, None);
        // A sentinel that is slower in every block.
        let slow = |arm: &Arm| {
            let mut arm = arm.clone();
            for run in arm.runs.iter_mut().flatten() {
                run.stages[0].wall_s *= 1.3;
            }
            arm
        };
        let default = findings.arms.remove(0).arm;
        let arms = vec![default.clone(), slow(&default), findings.arms.remove(0).arm, findings.arms.remove(0).arm];
        let findings = Findings::of(&arms, &StopRule::default());
        assert!(findings.doubt.is_some_and(|doubt| (1.25..1.4).contains(&doubt)), "{:?}", findings.doubt);
        let verdicts: Vec<_> = findings.arms[1..].iter().map(|finding| finding.verdict).collect();
        // 2.5 times as long, and equally long.
        assert_eq!(verdicts, [Some(Verdict::Worse), Some(Verdict::CannotTell)]);
    }

    #[test]
    fn blocks_have_equal_values_and_orders_of_their_own() {
        let simulated = SimulatedRuns::new(0.3);
        found(&simulated, &[1, 2, 3], &conditions()).unwrap();
        let asked = simulated.asked.into_inner().unwrap();
        let blocks: Vec<&[Request]> = asked.chunk_by(|a, b| a.seed == b.seed).collect();
        assert!(blocks.len() >= statistics::MIN_BLOCKS);
        assert!(blocks[..5].iter().all(|block| block.len() == 4));
        let orders = blocks[..5].iter().map(|block| block.iter().map(|request| &request.settings).collect::<Vec<_>>());
        let orders: Vec<_> = orders.collect();
        assert!(orders.iter().any(|order| *order != orders[0]));
    }

    /// Executor of runs that write and read. Level 2 of gzip halves the time of writing, but not of reading.
    struct Halves;

    impl Executor for Halves {
        fn run(&self, request: &Request, _: &CancelToken) -> Result<Answer> {
            let mut random = Random::of(&[request.seed, request.settings.whole(Knob::Gzip).unwrap_or(0)]);
            let mut stage = |stage, phase, mean: f64| {
                let wall_s = mean * (0.01 * random.normal()).exp();
                StageTime { stage, phase: Some(phase), wall_s, cpu_s: wall_s }
            };
            let is_fast = request.settings.whole(Knob::Gzip) == Some(2);
            Ok(Answer::Done(KernelOutcome {
                hdf5: "0.0.0".to_owned(),
                stages: vec![
                    stage(worker::RunStage::Write, worker::Phase::Write, if is_fast { 0.1 } else { 0.2 }),
                    stage(worker::RunStage::Read, worker::Phase::Read, 1.0),
                ],
                len_bytes: 100,
                reads: Some(worker::Reads { len_bytes: 100, from_storage_len_bytes: 25 }),
                file_len_bytes: 1000,
                ..KernelOutcome::default()
            }))
        }
    }

    #[test]
    fn writing_and_reading_have_verdicts_of_their_own() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = Scratch::in_folder(folder.path(), 1).unwrap();
        let cancel = CancelToken::new();
        let bench = Bench { executor: &Halves, scratch: &scratch, observer: &Silent, cancel: &cancel };
        let findings = carry_out(&candidates(&[1, 2, 3]), &conditions(), &bench).unwrap();
        let phases: Vec<worker::Phase> = findings.phases.iter().map(|half| half.phase).collect();
        assert_eq!((phases, findings.cold_share), (worker::Phase::ALL.to_vec(), Some(0.25)));
        let verdicts = |place: usize| findings.arms[place].phases.iter().map(|half| half.verdict).collect::<Vec<_>>();
        let (better, none) = (Some(Verdict::Better), Some(Verdict::NoEffect));
        assert_eq!([verdicts(0), verdicts(1), verdicts(2)], [vec![None; 2], vec![better, none], vec![none, none]]);
        // The total hides that: 1.1 of 1.2.
        assert_eq!(findings.arms[1].verdict, none);
        let write = findings.arms[1].phases[0];
        assert!((write.estimate.unwrap().ratio - 0.5).abs() < 0.02 && (write.time_s - 0.1).abs() < 0.01, "{write:?}");
        let json = serde_json::to_value(&findings).unwrap();
        assert_eq!(json["arms"][1]["phases"][0]["verdict"], "better");
        assert_eq!(json["arms"][1]["arm"]["runs"][0]["stages"][1]["phase"], "read");
    }

    /// Executor of runs of two cases, which take times of 1 and 10; level 2 of gzip halves the time of the second.
    struct Cases;

    impl Executor for Cases {
        fn run(&self, request: &Request, _: &CancelToken) -> Result<Answer> {
            let level = request.settings.whole(Knob::Gzip).unwrap_or(0);
            let Kernel::Vpic { particles } = request.kernel else { panic!("another kernel") };
            if request.library.as_deref() == Some(std::path::Path::new("absent.so")) {
                return Ok(Answer::Unusable("absent.so cannot be used as libhdf5".to_owned()));
            }
            let mut random = Random::of(&[request.seed, level, particles]);
            let mean = if particles == 1 { 1.0 } else { 10.0 / level as f64 };
            let wall_s = mean * (0.01 * random.normal()).exp();
            Ok(Answer::Done(KernelOutcome {
                hdf5: "0.0.0".to_owned(),
                stages: vec![StageTime { stage: worker::RunStage::Write, phase: None, wall_s, cpu_s: wall_s }],
                len_bytes: 100,
                file_len_bytes: 1000 * particles * level,
                ..KernelOutcome::default()
            }))
        }
    }

    #[test]
    fn arms_are_compared_with_the_default_of_their_case() {
        let of_case = |case: &str, particles, levels: &[u64]| {
            let kernel = Kernel::Vpic { particles };
            let all = candidates(levels).into_iter();
            let all = all.map(|arm| Candidate { case: Some(case.to_owned()), kernel: kernel.clone(), ..arm });
            all.collect::<Vec<_>>()
        };
        let found = |arms: &[Candidate]| {
            let folder = tempfile::tempdir().unwrap();
            let scratch = Scratch::in_folder(folder.path(), 1).unwrap();
            let cancel = CancelToken::new();
            let bench = Bench { executor: &Cases, scratch: &scratch, observer: &Silent, cancel: &cancel };
            carry_out(arms, &conditions(), &bench)
        };
        let mut arms = [of_case("small", 1, &[1, 2]), of_case("large", 2, &[1, 2])].concat();
        let findings = found(&arms).unwrap();
        let (none, better) = (Some(Verdict::NoEffect), Some(Verdict::Better));
        let verdicts: Vec<_> = findings.arms.iter().map(|finding| finding.verdict).collect();
        assert_eq!(verdicts, [None, none, None, better]);
        let large = &findings.arms[3];
        assert!((large.estimate.unwrap().ratio - 0.5).abs() < 0.02, "{large:?}");
        // Twice as long as the default of its case, not four times as that of the first.
        assert_eq!(large.inflation, Some(2.0));
        let blocks = |place: usize| findings.arms[place].arm.runs.iter().flatten().count();
        assert_eq!(blocks(2), blocks(3), "the default of a case runs as long as one of its arms is open");

        // If a library named by the workload does not exist, its arms are left out; if it is that of a default, the
        // whole case.
        arms[1].library = Some("absent.so".into());
        arms[2].library = Some("absent.so".into());
        let findings = found(&arms).unwrap();
        let faults: Vec<bool> = findings.arms.iter().map(|finding| finding.arm.fault.is_some()).collect();
        assert_eq!(faults, [false, true, true, true]);
        assert!(
            matches!(&findings.arms[3].arm.fault, Some(ArmFailure::NotApplicable(why)) if why.contains("absent.so"))
        );
        arms[0].library = Some("absent.so".into());
        assert_eq!(found(&arms).unwrap().runs(), 0);
        // A library named by the user must exist.
        let of_user = TrialConditions { library: Some("absent.so".into()), ..conditions() };
        let folder = tempfile::tempdir().unwrap();
        let scratch = Scratch::in_folder(folder.path(), 1).unwrap();
        let cancel = CancelToken::new();
        let bench = Bench { executor: &Cases, scratch: &scratch, observer: &Silent, cancel: &cancel };
        assert!(matches!(carry_out(&of_case("small", 1, &[1, 2]), &of_user, &bench), Err(TuneError::Run { .. })));
    }

    #[test]
    fn an_experiment_that_time_ended_continues_as_if_it_had_not() {
        let folder = tempfile::tempdir().unwrap();
        let scratch = Scratch::in_folder(folder.path(), 1).unwrap();
        let (simulated, cancel) = (SimulatedRuns::new(0.1), CancelToken::new());
        let bench = Bench { executor: &simulated, scratch: &scratch, observer: &Silent, cancel: &cancel };
        let few = TrialConditions { rule: StopRule { max_blocks: 3, ..StopRule::default() }, ..conditions() };
        let mut campaign = Campaign::of(&candidates(&[1, 6, 2])).unwrap();
        campaign.go_on(&few, &bench).unwrap();
        assert_eq!(campaign.findings(&conditions()).runs(), 9);
        assert_eq!(campaign.open(&conditions().rule), [2, 3]);
        let over = TrialConditions { deadline: Some(Instant::now()), ..conditions() };
        campaign.go_on(&over, &bench).unwrap();
        assert_eq!(campaign.findings(&conditions()).runs(), 9);
        campaign.go_on(&conditions(), &bench).unwrap();
        assert_eq!(campaign.open(&conditions().rule), [0; 0]);
        // `SimulatedRuns` derives its noise from the number of the run, so blocks numbered consecutively give the same
        // result as one call.
        assert_eq!(
            campaign.findings(&conditions()),
            found(&SimulatedRuns::new(0.1), &[1, 6, 2], &conditions()).unwrap()
        );
    }

    #[test]
    fn it_ends_when_time_is_over_or_it_is_cancelled() {
        let over = TrialConditions { deadline: Some(Instant::now()), ..conditions() };
        let findings = found(&SimulatedRuns::new(0.1), &[1, 6], &over).unwrap();
        assert_eq!(findings.arms[1].verdict, Some(Verdict::CannotTell));
        assert!(matches!(found(&SimulatedRuns::new(0.1), &[0, 1], &conditions()), Err(TuneError::Run { .. })));
        assert!(matches!(found(&SimulatedRuns::new(0.1), &[], &conditions()), Err(TuneError::NothingToCompare)));
    }
}
