//! An experiment carried out: blocks of runs in drawn order until enough is known, and what they say.
//!
//! Not for starting processes (`runner`) nor for choosing what to compare (`search`). Invariants: in a block all arms get
//! the same values; every arm is compared with the default of its own blocks only; a block that was cut short counts for
//! the arms that ran in it together with the default. One more arm, the sentinel, is the default once again: what differs
//! between the two is noise, and arms are compared with both, whose mean has less of it.

use crate::error::{Result, TuneError};
use crate::kernel::{Kernel, Verify};
use crate::knob::Settings;
use crate::profile::Metric;
use crate::runner::{Executor, Scratch};
use crate::statistics::{self, Estimate, StopRule, Verdict};
use crate::worker::{Answer, Outcome, Request};
use crate::workload::Candidate;
use raddle_core::cancel::CancelToken;
use raddle_core::progress::{Event, Observer, Stage};
use raddle_core::random::Random;
use serde::Serialize;
use std::path::PathBuf;
use std::time::Instant;

/// Elapsed times of the default that vary more than this are of no use: a laptop with a browser, a shared node.
pub const LARGEST_VARIATION: f64 = 0.15;

/// The sentinel may differ from the default by this much before the whole experiment is called noise.
const SENTINEL_MARGIN: f64 = 0.10;

/// How an experiment is carried out.
#[derive(Debug, Clone)]
pub struct Conditions {
    /// Library to measure; without, the bundled one.
    pub library: Option<PathBuf>,
    /// Decides on orders and values.
    pub seed: u64,
    /// Whether waiting for the disk counts.
    pub syncs: bool,
    /// When an arm has run often enough.
    pub rule: StopRule,
    /// No block begins after this.
    pub deadline: Option<Instant>,
}

/// What carries out runs, and who watches.
pub struct Bench<'a> {
    /// Runs.
    pub executor: &'a dyn Executor,
    /// Files.
    pub scratch: &'a Scratch,
    /// Told of every run.
    pub observer: &'a dyn Observer,
    /// Stops between runs, and kills one that goes on.
    pub cancel: &'a CancelToken,
}

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
    /// Whether the sentinel differs from the default so much that nothing can be told.
    pub is_noise: bool,
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

/// Carries out an experiment on `candidates`, the first of which is the default.
///
/// # Errors
/// If runs cannot be tried at all, the default fails, or the whole is cancelled.
pub fn carry_out(candidates: &[Candidate], conditions: &Conditions, bench: &Bench<'_>) -> Result<Findings> {
    let Some(default) = candidates.first() else { return Err(TuneError::NothingToCompare) };
    let arm = |candidate: &Candidate| Arm { candidate: candidate.clone(), runs: Vec::new(), fault: None };
    // The sentinel is arm 1.
    let sentinel = Candidate { name: "sentinel".to_owned(), ..default.clone() };
    let mut arms: Vec<Arm> = [default, &sentinel].into_iter().chain(&candidates[1..]).map(arm).collect();
    for block in 0..conditions.rule.most_blocks {
        let metric = metric_of(&arms);
        let is_over = conditions.deadline.is_some_and(|deadline| Instant::now() >= deadline);
        let left = |arm: &Arm| {
            let blocks = arm.runs.iter().flatten().count();
            let found = compare(&arms, arm, metric, &conditions.rule);
            arm.fault.is_none() && !conditions.rule.is_done(blocks, found.as_ref(), candidates.len() - 1)
        };
        let waiting: Vec<usize> = (2..arms.len()).filter(|place| left(&arms[*place])).collect();
        if waiting.is_empty() || is_over {
            break;
        }
        let running: Vec<usize> = [0, 1].into_iter().chain(waiting).collect();
        for arm in &mut arms {
            arm.runs.push(None);
        }
        for place in statistics::order_of_block(conditions.seed, block as u64, running.len()) {
            run_one(&mut arms[running[place]], block, conditions, bench)?;
            match arms[0].fault.clone().or_else(|| arms[1].fault.clone()) {
                Some(Fault::Failed(message)) => return Err(TuneError::Run { message }),
                Some(fault @ Fault::NotApplicable(_)) => {
                    // Without its default there is no experiment.
                    arms.iter_mut().for_each(|arm| (arm.fault, arm.runs) = (Some(fault.clone()), Vec::new()));
                    return Ok(findings(arms, conditions));
                }
                None => {}
            }
        }
        check_values(&mut arms, block)?;
    }
    Ok(findings(arms, conditions))
}

/// Whether the runs of a block wrote the same values as the default: an arm that did not is not run any more.
fn check_values(arms: &mut [Arm], block: usize) -> Result<()> {
    let digest = |arm: &Arm| arm.runs[block].as_ref()?.values;
    let (Some(expected), Some(again)) = (digest(&arms[0]), digest(&arms[1])) else { return Ok(()) };
    if expected != again {
        let is_wanted = matches!(arms[0].candidate.kernel, Kernel::Program { verify: Verify::Always, .. });
        let message = "two runs with the same settings write different values".to_owned();
        return if is_wanted { Err(TuneError::Run { message }) } else { Ok(()) };
    }
    for arm in &mut arms[2..] {
        if digest(arm).is_some_and(|found| found != expected) {
            arm.fault = Some(Fault::Failed("its files hold other values than with the defaults".to_owned()));
            arm.runs[block] = None;
        }
    }
    Ok(())
}

fn run_one(arm: &mut Arm, block: usize, conditions: &Conditions, bench: &Bench<'_>) -> Result<()> {
    let request = Request {
        kernel: arm.candidate.kernel.clone(),
        settings: arm.candidate.settings.clone(),
        path: bench.scratch.fresh()?,
        library: conditions.library.clone(),
        seed: Random::of(&[conditions.seed, block as u64, 1]).bits(),
        syncs: conditions.syncs,
        ranks: arm.candidate.ranks,
    };
    match bench.executor.run(&request, bench.cancel)? {
        Answer::Done(outcome) => {
            arm.runs[block] = Some(outcome);
        }
        Answer::NotApplicable(why) => arm.fault = Some(Fault::NotApplicable(why)),
        Answer::Failed(why) => arm.fault = Some(Fault::Failed(why)),
    }
    bench.observer.event(&Event::Advanced { stage: Stage::Measure, bytes: 0, items: 1 });
    Ok(())
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
fn compare(arms: &[Arm], arm: &Arm, metric: Metric, rule: &StopRule) -> Option<Estimate> {
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
fn metric_of(arms: &[Arm]) -> Metric {
    if variation(arms, Metric::WallS) > LARGEST_VARIATION { Metric::CpuS } else { Metric::WallS }
}

fn findings(arms: Vec<Arm>, conditions: &Conditions) -> Findings {
    let (metric, rule) = (metric_of(&arms), &conditions.rule);
    let of = |arm: &Arm, metric| compare(&arms, arm, metric, rule);
    let sentinel = of(&arms[1], metric);
    let is_noise = sentinel.is_some_and(|found| {
        let is_far = (found.ratio.ln()).abs() > (1.0 + SENTINEL_MARGIN).ln();
        is_far && !matches!(statistics::verdict(Some(&found), found.p, rule.error()), Verdict::CannotTell)
    });
    let estimates: Vec<Option<Estimate>> = arms[2..].iter().map(|arm| of(arm, metric)).collect();
    let mut verdicts = statistics::verdicts(&estimates, rule.error());
    let alone = |found: &Option<Estimate>| {
        statistics::verdict(found.as_ref(), found.map_or(1.0, |found| found.p), rule.error())
    };
    let mut alone: Vec<Verdict> = estimates.iter().map(alone).collect();
    if is_noise {
        verdicts.fill(Verdict::CannotTell);
        alone.fill(Verdict::CannotTell);
    }
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
    let others = others.map(|(((arm, estimate), verdict), alone)| finding(arm, estimate, Some(verdict), Some(alone)));
    Findings {
        metric,
        wall_variation: variation(&arms, Metric::WallS),
        cpu_variation: variation(&arms, Metric::CpuS),
        sentinel,
        is_noise,
        values: values_of(&arms),
        arms: std::iter::once(default).chain(others).collect(),
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knob::{Knob, Value};
    use crate::worker::{self, Calls, StageTime};
    use raddle_core::progress::Silent;
    use std::sync::Mutex;

    /// Runs that take what `gzip` says, with noise: level 1 takes 1, level 6 takes 2.5, level 0 fails, level 9 is not to be
    /// had.
    struct Made {
        noise: f64,
        asked: Mutex<Vec<Request>>,
    }

    impl Made {
        fn new(noise: f64) -> Self {
            Self { noise, asked: Mutex::default() }
        }
    }

    impl Executor for Made {
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
            Ok(Answer::Done(Outcome {
                hdf5: "0.0.0".to_owned(),
                zlib: None,
                stages: vec![StageTime { stage: worker::Stage::Write, wall_s, cpu_s }],
                len_bytes: 100,
                calls: Some(Calls { read: 1, write: 10 * level }),
                file_len_bytes: 1000 / level,
                peak_rss_bytes: None,
                found: Settings::default(),
                offset: None,
                values: None,
                ranks: Vec::new(),
            }))
        }
    }

    fn candidates(levels: &[u64]) -> Vec<Candidate> {
        let of = |level: &u64| Candidate {
            name: format!("gzip={level}"),
            knob: Some(Knob::Gzip),
            kernel: Kernel::Vpic { particles: 1 },
            settings: Settings::default().and(Knob::Gzip, Value::Whole(*level)),
            ranks: 1,
        };
        levels.iter().map(of).collect()
    }

    fn conditions() -> Conditions {
        Conditions { library: None, seed: 3, syncs: false, rule: StopRule::default(), deadline: None }
    }

    fn found(made: &Made, levels: &[u64], conditions: &Conditions) -> Result<Findings> {
        let folder = tempfile::tempdir().unwrap();
        let scratch = Scratch::in_folder(folder.path(), 1).unwrap();
        let cancel = CancelToken::new();
        let bench = Bench { executor: made, scratch: &scratch, observer: &Silent, cancel: &cancel };
        carry_out(&candidates(levels), conditions, &bench)
    }

    #[test]
    fn a_quiet_machine_tells_all() {
        let findings = found(&Made::new(0.01), &[1, 6, 2, 0, 9], &conditions()).unwrap();
        assert_eq!((findings.metric, findings.is_noise), (Metric::WallS, false));
        let verdicts: Vec<Option<Verdict>> = findings.arms.iter().map(|finding| finding.verdict).collect();
        let (worse, none, open) = (Some(Verdict::Worse), Some(Verdict::NoEffect), Some(Verdict::CannotTell));
        assert_eq!(verdicts, [None, worse, none, open, open]);
        let slow = &findings.arms[1];
        let estimate = slow.estimate.unwrap();
        assert!((2.3..2.7).contains(&estimate.ratio) && estimate.interval[0] > 2.0, "{estimate:?}");
        assert!((slow.inflation.unwrap() - 166.0 / 1000.0).abs() < 1e-9);
        assert_eq!(slow.medians.unwrap().write_calls, Some(60.0));
        assert_eq!(findings.arms[3].arm.fault, Some(Fault::Failed("a fault".to_owned())));
        assert_eq!(findings.arms[4].arm.fault, Some(Fault::NotApplicable("no gzip".to_owned())));
        assert!(findings.arms[3].medians.is_none());
    }

    #[test]
    fn a_default_that_is_not_to_be_had_leaves_the_experiment_out() {
        let findings = found(&Made::new(0.01), &[9, 1, 6], &conditions()).unwrap();
        assert_eq!(findings.runs(), 0);
        let fault = Some(Fault::NotApplicable("no gzip".to_owned()));
        assert!(findings.arms.iter().all(|finding| finding.arm.fault == fault));
    }

    #[test]
    fn arms_that_write_other_values_are_told_and_not_run_on() {
        let of = |values: [u64; 4]| {
            let findings = found(&Made::new(0.01), &[1, 6, 2], &conditions()).unwrap();
            let mut arms: Vec<Arm> = findings.arms.into_iter().map(|finding| finding.arm).collect();
            arms.insert(1, arms[0].clone());
            for (arm, digest) in arms.iter_mut().zip(values) {
                arm.runs[0].as_mut().unwrap().values = Some(digest);
            }
            check_values(&mut arms, 0).map(|()| arms.iter().map(|arm| arm.fault.is_some()).collect::<Vec<_>>())
        };
        assert_eq!(of([1, 1, 1, 2]).unwrap(), [false, false, false, true]);
        // Where equal runs differ, nothing follows from others that do.
        assert_eq!(of([1, 2, 1, 3]).unwrap(), [false; 4]);
        assert_eq!(of([1, 1, 1, 1]).unwrap(), [false; 4]);
    }

    #[test]
    fn elapsed_times_that_vary_much_are_not_compared() {
        let findings = found(&Made::new(0.6), &[1, 6], &conditions()).unwrap();
        assert!(findings.wall_variation > LARGEST_VARIATION && findings.cpu_variation < LARGEST_VARIATION);
        assert_eq!(findings.metric, Metric::CpuS);
        assert_eq!(findings.arms[1].verdict, Some(Verdict::Worse));
    }

    #[test]
    fn a_default_that_differs_from_itself_says_that_nothing_can_be_told() {
        let mut findings = found(&Made::new(0.01), &[1, 6], &conditions()).unwrap();
        assert!(!findings.is_noise);
        // A sentinel that is slower in every block.
        let slow = |arm: &Arm| {
            let mut arm = arm.clone();
            for run in arm.runs.iter_mut().flatten() {
                run.stages[0].wall_s *= 1.3;
            }
            arm
        };
        let default = findings.arms.remove(0).arm;
        let arms = vec![default.clone(), slow(&default), findings.arms.remove(0).arm];
        let findings = super::findings(arms, &conditions());
        assert!(findings.is_noise);
        assert_eq!(findings.arms[1].verdict, Some(Verdict::CannotTell));
    }

    #[test]
    fn blocks_have_equal_values_and_orders_of_their_own() {
        let made = Made::new(0.3);
        found(&made, &[1, 2, 3], &conditions()).unwrap();
        let asked = made.asked.into_inner().unwrap();
        let blocks: Vec<&[Request]> = asked.chunk_by(|a, b| a.seed == b.seed).collect();
        assert!(blocks.len() >= statistics::LEAST_BLOCKS);
        assert!(blocks[..5].iter().all(|block| block.len() == 4));
        let orders = blocks[..5].iter().map(|block| block.iter().map(|request| &request.settings).collect::<Vec<_>>());
        let orders: Vec<_> = orders.collect();
        assert!(orders.iter().any(|order| *order != orders[0]));
    }

    #[test]
    fn it_ends_when_time_is_over_or_it_is_cancelled() {
        let over = Conditions { deadline: Some(Instant::now()), ..conditions() };
        let findings = found(&Made::new(0.1), &[1, 6], &over).unwrap();
        assert_eq!(findings.arms[1].verdict, Some(Verdict::CannotTell));
        assert!(matches!(found(&Made::new(0.1), &[0, 1], &conditions()), Err(TuneError::Run { .. })));
        assert!(matches!(found(&Made::new(0.1), &[], &conditions()), Err(TuneError::NothingToCompare)));
    }
}
