//! Measured runs of other programs, with the settings of an arm or unmodified.
//!
//! The program is started and measured by a small C program (`measure/measure.c`). What is compared, and how often, is
//! decided in `raddle_tune::campaign`. Invariants: a run with the defaults is a run of the unmodified program; a run
//! counts only if the program succeeded and left HDF5 files in its folder; a setting counts only if the log shows that
//! it was set.

use crate::install::Objects;
use crate::plan::{ApplyPlan, ApplyRequest};
use crate::program::{Program, Route, find};
use raddle_core::cancel::CancelToken;
use raddle_tune::contents;
use raddle_tune::error::{Result, TuneError};
use raddle_tune::kernel::{FOLDER_PLACEHOLDER, Kernel, Verify};
use raddle_tune::knob::{Knob, PropertyListKind, SettingValue, Settings};
use raddle_tune::runner::{Executor, ProcessEnd, end_group, late, wait};
use raddle_tune::worker::{Answer, Calls, KernelOutcome, Request, RunStage, StageTime};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Maximum length of a program's error output that is kept.
const LAST_WORDS_LEN_BYTES: usize = 500;

/// Executor of [`Kernel::Program`].
#[derive(Debug, Clone)]
pub struct Programs {
    objects: Objects,
    limit: Duration,
}

/// Output of the measuring program.
#[derive(Debug, Deserialize)]
struct MeasuringOutput {
    refused: Option<String>,
    #[serde(default)]
    wall_s: f64,
    #[serde(default)]
    cpu_s: f64,
    peak_rss_bytes: Option<u64>,
    calls: Option<Calls>,
    exit_code: Option<i32>,
    signal: Option<i32>,
}

impl Programs {
    /// Creates an executor of programs that uses `objects` and limits each run to `limit`.
    pub fn new(objects: Objects, limit: Duration) -> Self {
        Self { objects, limit }
    }

    fn try_run(&self, command: &[String], verify: Verify, request: &Request, cancel: &CancelToken) -> Result<Answer> {
        let folder = request.path.parent().unwrap_or(Path::new("."));
        let files = MeasureFiles::of(folder)?;
        let (words, runs_in) = words(command, folder);
        let program = match find(&words) {
            Ok(Program { path, route: Route::None { reason }, .. }) => {
                return Ok(Answer::Failed(format!("settings cannot be applied to {}: {reason}", path.display())));
            }
            Ok(program) => program,
            Err(error) => return Ok(Answer::Failed(error.to_string())),
        };
        let plan = match plan(&request.settings, &program, &self.objects, &files.log) {
            Ok(plan) => plan,
            Err(why) => return Ok(Answer::NotApplicable(why)),
        };
        self.objects.install().map_err(of_inject)?;
        if !plan.hints.is_empty() {
            self.objects.install_hints(&plan.hints).map_err(of_inject)?;
        }
        let errors = File::create(&files.last_words).map_err(|source| io(&files.last_words, "writing", source))?;
        let mut child = Command::new(&self.objects.measure);
        child.arg(&files.measured).args(&words).envs(plan.environment.iter().map(|(name, value)| (name, value)));
        child.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors).process_group(0);
        child.env("RADDLE_SCRATCH", folder);
        if let Some(runs_in) = runs_in {
            child.current_dir(runs_in);
        }
        let mut child = child.spawn().map_err(|source| io(&self.objects.measure, "starting", source))?;
        let ended = wait(&mut child, self.limit, cancel);
        end_group(&mut child);
        if matches!(ended?, ProcessEnd::Late) {
            return Ok(Answer::Failed(late(self.limit)));
        }
        match measured(&command[0], &files) {
            Ok(measured) => outcome(request, verify, folder, &measured, &files.log),
            Err(why) => Ok(Answer::Failed(why)),
        }
    }
}

/// Files of a run next to the program's folder, which the program may list.
struct MeasureFiles {
    /// File with the log of the settings that were applied.
    log: PathBuf,
    /// File with the output of the measuring program.
    measured: PathBuf,
    /// File with the standard error of the program.
    last_words: PathBuf,
}

impl MeasureFiles {
    /// Returns the files of the run in `folder`, after removing those of the previous run.
    fn of(folder: &Path) -> Result<Self> {
        let [log, measured, last_words] =
            ["log", "measured.json", "last-words"].map(|name| folder.with_file_name(name));
        for path in [&log, &measured] {
            match std::fs::remove_file(path) {
                Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
                    return Err(io(path, "removing", source));
                }
                _ => {}
            }
        }
        Ok(Self { log, measured, last_words })
    }
}

/// Returns the measurement of a run of `name`, or why it does not count.
fn measured(name: &str, files: &MeasureFiles) -> Result<MeasuringOutput, String> {
    let text = std::fs::read(&files.measured).map_err(|error| error.to_string());
    let measured =
        text.and_then(|text| serde_json::from_slice::<MeasuringOutput>(&text).map_err(|error| error.to_string()));
    let measured = measured.map_err(|why| format!("it was not measured: {why}"))?;
    let how = match measured {
        MeasuringOutput { refused: Some(why), .. } => return Err(format!("{name} cannot be started: {why}")),
        MeasuringOutput { signal: Some(signal), .. } => format!("by signal {signal}"),
        MeasuringOutput { exit_code: Some(0), .. } => return Ok(measured),
        MeasuringOutput { exit_code, .. } => format!("with exit code {}", exit_code.unwrap_or(-1)),
    };
    Err(format!("{name} ended {how}{}", last_words(&files.last_words)))
}

impl Executor for Programs {
    fn run(&self, request: &Request, cancel: &CancelToken) -> Result<Answer> {
        match &request.kernel {
            Kernel::Program { command, verify } => self.try_run(command, *verify, request, cancel),
            other => Ok(Answer::Failed(format!("the kernel {} is not a program", other.name()))),
        }
    }
}

/// Returns the words of a command with the folder of the run substituted. Also returns that folder if no word names it,
/// because the program must then run in the folder.
fn words<'a>(command: &[String], folder: &'a Path) -> (Vec<OsString>, Option<&'a Path>) {
    let named = command.iter().any(|word| word.contains(FOLDER_PLACEHOLDER));
    let text = folder.to_string_lossy();
    let mut words: Vec<OsString> = command.iter().map(|word| word.replace(FOLDER_PLACEHOLDER, &text).into()).collect();
    // `./sim` is relative to the current folder, wherever it runs.
    if let Some(program) = words.first_mut().filter(|program| Path::new(program).components().count() > 1)
        && let Ok(path) = std::path::absolute(&*program)
    {
        *program = path.into();
    }
    (words, (!named).then_some(folder))
}

/// Returns the plan of the settings for the program, or the reason why a setting cannot be applied.
fn plan(settings: &Settings, program: &Program, objects: &Objects, log: &Path) -> Result<ApplyPlan, String> {
    let mut wishes = ApplyRequest {
        settings: settings.clone(),
        // The user has allowed these settings.
        allow_layout: true,
        allow_collective_metadata: true,
        auto_chunk_cache_bytes: 0,
        log: Some(log.to_path_buf()),
        ..ApplyRequest::default()
    };
    wishes.take_auto();
    if wishes.auto_chunk_cache_bytes > 0 && !matches!(program.route, Route::Preload { .. }) {
        return Err("HDF5 is linked statically into the program, where only placement can be set".to_owned());
    }
    let plan = ApplyPlan::new(&wishes, program, objects, |name| std::env::var_os(name));
    match plan.left_out.first() {
        Some(left_out) => Err(format!("{} is not applied: {}", left_out.knob, left_out.reason)),
        None if !plan.stripes.0.is_empty() => Err("stripes belong to a folder, not to a run".to_owned()),
        None => Ok(plan),
    }
}

fn outcome(request: &Request, verify: Verify, folder: &Path, measured: &MeasuringOutput, log: &Path) -> Result<Answer> {
    let files = contents::hdf5_files(folder)?;
    if files.is_empty() {
        return Ok(Answer::Failed(
            "it wrote no HDF5 file into the folder of the run: have a word of the command name it, as in -o \
             {scratch}/out.h5; without one, the program runs in that folder"
                .to_owned(),
        ));
    }
    let reported = std::fs::read_to_string(log).unwrap_or_default();
    if let Some(why) = unset(&request.settings, &reported) {
        return Ok(Answer::NotApplicable(why));
    }
    let mut stages =
        vec![StageTime { stage: RunStage::Program, phase: None, wall_s: measured.wall_s, cpu_s: measured.cpu_s }];
    if request.syncs {
        let started = Instant::now();
        for path in &files {
            let synced = File::open(path).and_then(|file| file.sync_all());
            synced.map_err(|source| io(path, "waiting for the disk", source))?;
        }
        stages.push(StageTime {
            stage: RunStage::Sync,
            phase: None,
            wall_s: started.elapsed().as_secs_f64(),
            cpu_s: 0.0,
        });
    }
    let mut file_len_bytes = 0;
    for path in &files {
        file_len_bytes += std::fs::metadata(path).map_err(|source| io(path, "asking for the length", source))?.len();
    }
    let values = match verify {
        Verify::Never => None,
        // Files that cannot be read without libhdf5 are compared only if required.
        Verify::Auto => contents::digest(folder, &files).ok(),
        Verify::Always => match contents::digest(folder, &files) {
            Ok(digest) => Some(digest),
            Err(error) => return Ok(Answer::Failed(format!("its values cannot be compared: {error}"))),
        },
    };
    Ok(Answer::Done(KernelOutcome {
        hdf5: version(&reported).unwrap_or_default(),
        stages,
        len_bytes: file_len_bytes,
        calls: measured.calls,
        file_len_bytes,
        peak_rss_bytes: measured.peak_rss_bytes,
        found: request.settings.clone(),
        values,
        ..KernelOutcome::default()
    }))
}

/// Returns the first setting that the log does not show as applied, and why.
fn unset(settings: &Settings, log: &str) -> Option<String> {
    let has_calls = log.lines().any(|line| line.contains("(H5F") || line.contains("(driver "));
    for knob in settings.0.keys() {
        let is_set = match (knob, knob.place()) {
            // Hints are not logged.
            (_, PropertyListKind::MpiHints) => true,
            (Knob::AutoChunkCache, _) => log.contains("chunk cache sized"),
            (_, PropertyListKind::DatasetCreation) => log.contains("layout changed"),
            _ => log.lines().any(|line| part(line, " set ").is_some_and(|part| names(part, *knob))),
        };
        if is_set {
            continue;
        }
        return Some(match knob {
            _ if !has_calls && !log.contains("datasets:") => "the program was not seen to open an HDF5 file".to_owned(),
            Knob::AutoChunkCache => "no dataset needs a larger cache".to_owned(),
            knob if knob.place() == PropertyListKind::DatasetCreation => "it fits no dataset".to_owned(),
            knob if log.lines().any(|line| part(line, " kept ").is_some_and(|part| names(part, *knob))) => {
                "the program has chosen a value of its own".to_owned()
            }
            _ => "HDF5 refuses it".to_owned(),
        });
    }
    None
}

/// Returns the part of a line after `word`, up to the next semicolon.
fn part<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(word)?;
    Some(rest.split(';').next().unwrap_or(rest))
}

/// Returns whether a setting is named in `alignment=1048576,alignment_threshold=65536 sieve=131072`.
fn names(part: &str, knob: Knob) -> bool {
    part.split([' ', ',']).any(|pair| pair.split('=').next() == Some(knob.name()))
}

/// Returns the version in the log: `x.h5 (H5Fcreate, HDF5 1.10.8): …`.
fn version(log: &str) -> Option<String> {
    let (_, rest) = log.split_once(", HDF5 ")?;
    Some(rest.split(')').next()?.to_owned())
}

fn last_words(path: &Path) -> String {
    let words = std::fs::read(path).unwrap_or_default();
    let words = String::from_utf8_lossy(&words[words.len().saturating_sub(LAST_WORDS_LEN_BYTES)..]).trim().to_owned();
    if words.is_empty() { words } else { format!(": {words}") }
}

fn io(path: &Path, operation: &'static str, source: std::io::Error) -> TuneError {
    TuneError::Io { path: path.to_path_buf(), operation, source }
}

fn of_inject(error: crate::InjectError) -> TuneError {
    TuneError::Run { message: error.to_string() }
}

/// Returns the values to try for a program by default: for settings that affect how its files are written and, with
/// `allow_layout`, for settings that change the contents of the files other than values.
///
/// # Errors
/// If the program does not exist.
pub fn usual_knobs(command: &[String], allow_layout: bool) -> crate::Result<BTreeMap<Knob, Vec<SettingValue>>> {
    let words: Vec<OsString> = command.iter().map(OsString::from).collect();
    let program = find(&words)?;
    let whole = |values: &[u64]| values.iter().copied().map(SettingValue::Whole).collect::<Vec<_>>();
    let mut knobs = BTreeMap::from([
        (Knob::Alignment, whole(&[4096, 1 << 20])),
        (Knob::MetaBlock, whole(&[64 << 10, 1 << 20])),
        (Knob::SmallDataBlock, whole(&[1 << 20])),
        (Knob::Sieve, whole(&[1 << 20])),
        (Knob::AutoChunkCache, whole(&[crate::plan::AUTO_CHUNK_CACHE_BYTES])),
        (Knob::ChunkCache, whole(&[64 << 20])),
        (Knob::MetadataCache, whole(&[16 << 20])),
        (Knob::DeferFlush, vec![SettingValue::Flag(true)]),
    ]);
    if program.has_mpi {
        knobs.insert(Knob::CollectiveBuffering, vec![SettingValue::Text("enable".to_owned())]);
        knobs.insert(Knob::CbNodes, whole(&[1]));
    }
    if allow_layout {
        knobs.insert(Knob::Libver, vec![SettingValue::Text("v110".to_owned())]);
        knobs.insert(Knob::FilePage, whole(&[64 << 10]));
        knobs.insert(Knob::Gzip, whole(&[1, 4]));
        knobs.insert(Knob::Compact, whole(&[8192]));
    }
    Ok(knobs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_names_the_folder_or_the_program_runs_in_it() {
        let folder = Path::new("/scratch/run");
        let of = |command: &[&str]| {
            let command: Vec<String> = command.iter().map(|word| (*word).to_owned()).collect();
            let (words, runs_in) = words(&command, folder);
            (words.into_iter().map(|word| word.into_string().unwrap()).collect::<Vec<_>>().join(" "), runs_in)
        };
        assert_eq!(of(&["sim", "-o", "{scratch}/a.h5"]), ("sim -o /scratch/run/a.h5".to_owned(), None));
        assert_eq!(of(&["sim", "a.h5"]), ("sim a.h5".to_owned(), Some(folder)));
        let (text, _) = of(&["./sim", "a.h5"]);
        assert!(text.starts_with('/') && text.ends_with("/sim a.h5"), "{text}");
    }

    #[test]
    fn the_log_lists_the_settings() {
        let log = "raddle apply: x.h5 (H5Fcreate, HDF5 1.10.8): set alignment=4096,alignment_threshold=65536 sieve=1; kept \
                   meta_block=4096; refused libver\nraddle apply: datasets: layout changed 2 times\n";
        let of = |knob, value: u64| unset(&Settings::default().and(knob, SettingValue::Whole(value)), log);
        assert_eq!((of(Knob::Alignment, 4096), of(Knob::Sieve, 1), of(Knob::Gzip, 1)), (None, None, None));
        assert!(of(Knob::MetaBlock, 1).unwrap().contains("of its own"));
        assert!(of(Knob::Libver, 1).unwrap().contains("refuses"));
        assert!(of(Knob::AutoChunkCache, 1).unwrap().contains("no dataset"));
        let nothing = unset(&Settings::default().and(Knob::Sieve, SettingValue::Whole(1)), "");
        assert!(nothing.unwrap().contains("not seen to open"));
        assert_eq!(version(log).as_deref(), Some("1.10.8"));
        assert_eq!(unset(&Settings::default(), ""), None);
    }
}
