//! `raddle idx write --tune`: writes the first time step in several ways next to the output, and reports which are
//! faster.
//!
//! The trials use the samples and ranks of the actual run, so nothing is estimated. Runs are organised in blocks, each
//! containing the default and every candidate once in random order, and are judged as in `raddle tune`. One setting is
//! changed at a time. Invariant: all ranks see the same times, so they make the same choice.

use crate::ranks::Ranks;
use raddle::Error;
use raddle::tuned::idx::{has, set};
use raddle_core::output::folder_of;
use raddle_core::ranks::communicator::CommunicatorExt;
use raddle_core::report::progress::{Silent, Watch};
use raddle_idx::dataset::sample::SampleType;
use raddle_idx::dataset::vectors::FieldSplit;
use raddle_idx::request::{BoxSize, WriteRequest};
use raddle_idx::{BoxData, Header, IdxError, Phases, WriteOptions, Writer};
use raddle_tune::fingerprint::{FileSystem, Machine};
use raddle_tune::knob::SettingValue;
use raddle_tune::profile::{Evidence, FORM, IdxOption, MeasuredLibrary, MeasuredValue, Metric, Profile};
use raddle_tune::statistics::{MIN_BLOCKS, StopRule, Verdict, estimate, order_of_block};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Maximum number of blocks: enough for a quick look, with a median of seven ratios.
const MAX_BLOCKS: usize = 7;

/// Time after which no further block is begun, once there are enough blocks for a verdict.
const ENOUGH_S: f64 = 30.0;

/// Ratio of times in the first block above which a candidate is not tried again.
const HOPELESS: f64 = 1.5;

/// Fixed seed, so that the random orders are the same in every run.
const SEED: u64 = 6;

/// A setting that was tried.
#[derive(Debug, Clone, Serialize)]
pub struct TriedSetting {
    /// Option.
    pub option: IdxOption,
    /// Value of the option.
    pub value: SettingValue,
    /// Elapsed time relative to the default, if there were enough blocks.
    pub ratio: Option<f64>,
    /// Bounds of the 95 % confidence interval of `ratio`.
    pub interval: Option<[f64; 2]>,
    /// Number of blocks.
    pub blocks: u32,
    /// Verdict.
    pub verdict: Verdict,
    /// Whether the output is written with this setting.
    pub is_taken: bool,
}

/// Data that the trials write, with the current settings.
pub struct Subject<'a> {
    /// Header of the dataset with the current settings.
    pub header: &'a Header,
    /// Names and sample types of the input fields.
    pub fields: &'a [(String, SampleType)],
    /// Current options.
    pub options: &'a WriteOptions,
    /// Time step.
    pub step: Option<u64>,
    /// Boxes of samples that this rank holds.
    pub patches: &'a [BoxData<'a>],
}

/// Result: all candidates, and the request with those that help.
pub struct TuningResult {
    /// All candidates.
    pub tried: Vec<TriedSetting>,
    /// Request with the settings that help.
    pub request: WriteRequest,
}

/// Collective. Tries settings that were not given as options.
///
/// # Errors
/// If a trial cannot be written.
pub fn tune(
    request: &WriteRequest,
    subject: &Subject<'_>,
    team: &Ranks,
    watch: &Watch<'_>,
) -> Result<TuningResult, Error> {
    let ranks = team.ranks();
    let candidates = candidates(request, subject, ranks.size());
    let folder = folder_of(&request.output);
    let make = || tempfile::Builder::new().prefix(".raddle-tune-").tempdir_in(folder);
    let created = team.leads().then(make).transpose().map_err(|cause| Error::writing(folder, &cause));
    let scratch = team.agree("make a folder for trials", created)?;
    let path = team.paths_of_first(|| Ok(scratch.iter().map(|folder| folder.path().to_path_buf()).collect()))?;
    let axes = subject.header.rank;
    let mut arms = vec![request.clone()];
    for (option, value) in &candidates {
        let mut arm = request.clone();
        set(&mut arm, *option, value)?;
        arms.push(arm);
    }
    let (mut times, mut alive) = (vec![Vec::new(); arms.len()], vec![true; arms.len()]);
    let mut spent_s = 0.0;
    for block in 0..MAX_BLOCKS {
        if arms.len() == 1 || (block >= MIN_BLOCKS && spent_s > ENOUGH_S) {
            break;
        }
        for at in order_of_block(SEED, block as u64, arms.len()).into_iter().filter(|at| alive[*at]) {
            let elapsed_s = trial(&arms[at], subject, (&path[0], axes), team, watch)?;
            times[at].push(elapsed_s);
            spent_s += elapsed_s;
        }
        let default_s = times[0].last().copied().unwrap_or(0.0);
        for at in (1..arms.len()).filter(|_| block == 0) {
            alive[at] = times[at].last().is_some_and(|elapsed_s| *elapsed_s < HOPELESS * default_s);
        }
    }
    let rule = StopRule::of_one_look();
    let estimates: Vec<_> = times[1..].iter().map(|of_arm| estimate(&times[0], of_arm, rule.error())).collect();
    let verdicts = rule.verdicts(&estimates, 1.0);
    let mut tried: Vec<TriedSetting> = candidates
        .into_iter()
        .zip(estimates.iter().zip(&verdicts))
        .map(|((option, value), (estimate, verdict))| TriedSetting {
            option,
            value,
            ratio: estimate.map(|of| of.ratio),
            interval: estimate.map(|of| of.interval),
            blocks: estimate.map_or(0, |of| of.blocks),
            verdict: *verdict,
            is_taken: false,
        })
        .collect();
    let mut chosen = request.clone();
    for option in [IdxOption::Box, IdxOption::BlocksPerFile, IdxOption::Aggregators] {
        let better = tried.iter_mut().filter(|of| of.option == option && of.verdict == Verdict::Better);
        let best = better.min_by(|a, b| a.ratio.unwrap_or(1.0).total_cmp(&b.ratio.unwrap_or(1.0)));
        if let Some(best) = best {
            best.is_taken = true;
            set(&mut chosen, option, &best.value)?;
        }
    }
    Ok(TuningResult { tried, request: chosen })
}

/// Returns the candidate values of options that the user did not give.
fn candidates(request: &WriteRequest, subject: &Subject<'_>, ranks: usize) -> Vec<(IdxOption, SettingValue)> {
    let mut all = Vec::new();
    if ranks > 1 && subject.options.phases == Phases::Three && !has(request, IdxOption::Box) {
        all.push((IdxOption::Box, SettingValue::Text(BoxSize::Expanded.to_string())));
    }
    if !has(request, IdxOption::BlocksPerFile) {
        let (usual, blocks) = (subject.header.blocks_per_file, subject.header.block_count());
        let sizes = [usual / 4, usual * 4].into_iter().filter(|size| *size > 0);
        // Larger values are pointless: all blocks are already in one file.
        all.extend(
            sizes.filter(|size| *size < 4 * blocks).map(|size| (IdxOption::BlocksPerFile, SettingValue::Whole(size))),
        );
    }
    if !has(request, IdxOption::Aggregators) && subject.options.phases != Phases::One {
        let fewer = [ranks / 2, ranks / 4].into_iter().filter(|fewer| *fewer > 0);
        all.extend(fewer.map(|fewer| (IdxOption::Aggregators, SettingValue::Whole(fewer as u64))));
    }
    all
}

/// Collective. Writes the step with one setting, removes it again, and returns the time of the slowest rank.
fn trial(
    arm: &WriteRequest,
    subject: &Subject<'_>,
    (folder, axes): (&Path, usize),
    team: &Ranks,
    watch: &Watch<'_>,
) -> Result<f64, Error> {
    let failed = |error| Error::of_idx(&error);
    let ranks = team.ranks();
    let mut header = subject.header.clone();
    header.blocks_per_file = arm.blocks.blocks_per_file.unwrap_or(header.blocks_per_file);
    let options = apply_ranks(arm, subject.options.clone(), axes)?;
    let split = FieldSplit::new(subject.fields, arm.blocks.split_vectors);
    let created =
        Writer::new(&folder.join("trial.idx"), header, options).map(|writer| writer.split(split)).map_err(failed);
    let mut writer = team.agree("begin a trial", created)?;
    let patches = subject.patches.iter().map(borrowed).collect();
    let started = Instant::now();
    let silent = Watch { observer: &Silent, cancel: watch.cancel };
    writer.write_collective(subject.step, patches, &silent, ranks).map_err(failed)?;
    let received = ranks.all_gather_u64(started.elapsed().as_secs_f64().to_bits());
    let times = received.map_err(|error| failed(IdxError::Core(error)))?;
    let cleared = if team.leads() { clear(folder) } else { Ok(()) };
    team.agree("remove a trial", cleared)?;
    Ok(times.into_iter().map(f64::from_bits).fold(0.0, f64::max))
}

/// Borrows the samples of a patch.
fn borrowed<'s>(patch: &'s BoxData<'_>) -> BoxData<'s> {
    let arrays = patch.arrays.iter().map(|array| Cow::Borrowed(array.as_ref())).collect();
    BoxData { region: patch.region, arrays }
}

/// Removes the contents of a folder.
fn clear(folder: &Path) -> Result<(), Error> {
    let remove = || {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() { std::fs::remove_dir_all(path)? } else { std::fs::remove_file(path)? }
        }
        Ok(())
    };
    remove().map_err(|cause: std::io::Error| Error::writing(folder, &cause))
}

/// Adds the settings that help to the profile at `path`, which may already exist.
///
/// # Errors
/// If it is not a valid profile or cannot be written.
pub fn save(path: &Path, tried: &[TriedSetting], output: &Path) -> Result<(), Error> {
    let failed = |error| Error::of_tune(&error);
    let mut profile = match path.exists() {
        true => Profile::read(path).map_err(failed)?,
        false => Profile {
            form: FORM,
            program: concat!("raddle ", env!("CARGO_PKG_VERSION")).to_owned(),
            workload: "idx write".to_owned(),
            measured_unix_s: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            readable_by: None,
            max_inflation: 1.0,
            machine: Machine::here(),
            file_system: FileSystem::of_folder(folder_of(output)).map_err(failed)?,
            hdf5: MeasuredLibrary { version: "none".to_owned(), library: "none".to_owned() },
            together: None,
            settings: BTreeMap::new(),
            layout: BTreeMap::new(),
            idx: BTreeMap::new(),
        },
    };
    profile.idx.clear();
    for of in tried.iter().filter(|of| of.is_taken) {
        let (Some(ratio), Some(interval)) = (of.ratio, of.interval) else { continue };
        let evidence = Evidence { ratio, interval, blocks: of.blocks, metric: Metric::WallS, inflation: 1.0 };
        profile.idx.insert(of.option, MeasuredValue { value: of.value.clone(), force: false, evidence });
    }
    profile.write(path).map_err(failed)
}

/// Returns `options` with the options for ranks of a request, for samples with `axes` axes.
///
/// # Errors
/// If the size of boxes has a different number of axes.
pub fn apply_ranks(request: &WriteRequest, options: WriteOptions, axes: usize) -> Result<WriteOptions, Error> {
    Ok(WriteOptions { aggregators: request.aggregators, imposed: request.imposed(axes)?, ..options })
}
