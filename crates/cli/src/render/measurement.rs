//! HDF5 measurements as tables of verdicts.

use super::table::{CellAlign, Columns};
use super::{counts, escape, quantity};
use raddle_tune::findings::{ArmFailure, Finding, Findings, PhaseFindings, WrittenValues};
use raddle_tune::kernel::Kernel;
use raddle_tune::measurement::{MeasuredExperiment, Measurement};
use raddle_tune::profile::{Evidence, Metric, Profile};
use raddle_tune::statistics::{self, MIN_BLOCKS, Verdict};
use raddle_tune::worker::{Phase, RunStage};
use raddle_tune::workload::{Scale, Workload};
use std::collections::BTreeSet;
use std::path::Path;

/// Formats the workloads and their experiments.
pub fn workloads(all: &[Workload]) -> String {
    let mut text = String::new();
    for workload in all {
        text.push_str(&format!("{}: {}\n", workload.name, workload.title));
        if !workload.parts.is_empty() {
            text.push_str(&format!(" all of {}\n\n", workload.parts.join(", ")));
            continue;
        }
        let mut columns =
            Columns::new(&[("experiment", CellAlign::Left), ("", CellAlign::Left), ("settings", CellAlign::Right)]);
        for experiment in &workload.experiments {
            let count = experiment.candidates().len() - experiment.cases.len();
            columns.row(&[experiment.name.clone(), experiment.title.clone(), count.to_string()]);
        }
        for table in &workload.planned {
            columns.row(&[table.name.clone(), table.title.clone(), "-".to_owned()]);
        }
        text.push_str(&columns.render());
        text.push('\n');
    }
    text
}

/// Formats the machine and a table for each experiment; no setting was measured more than `max_blocks` times.
pub fn text(done: &Measurement, max_blocks: usize) -> String {
    let size = if done.scale == Scale::Own { String::new() } else { format!(" at {}", done.scale.name()) };
    let zlib = done.experiments.iter().find_map(|experiment| experiment.search.sweep.zlib());
    let zlib = zlib.map_or_else(String::new, |version| format!(", zlib {}", escape::text(version)));
    let hdf5 = match done.hdf5.library.as_str() {
        "none" => String::new(),
        library => {
            let version = if done.hdf5.version.is_empty() { "?" } else { &done.hdf5.version };
            format!(", HDF5 {} ({}{zlib})", escape::text(version), escape::text(library))
        }
    };
    let head = format!(
        "{}{size}{hdf5}, {} on {}\n",
        escape::text(&done.workload),
        escape::text(&done.file_system.kind),
        escape::text(&done.machine.processor),
    );
    done.experiments.iter().fold(head, |text, experiment| text + "\n" + &of_experiment(experiment, max_blocks))
}

fn of_experiment(experiment: &MeasuredExperiment, max_blocks: usize) -> String {
    let sweep = &experiment.search.sweep;
    let mut text = format!("{}: {}\n", escape::text(&experiment.name), escape::text(&experiment.title));
    if let Some(paper) = &experiment.paper {
        text.push_str(&format!("  paper: {}\n", escape::text(paper)));
    }
    if let Some(ArmFailure::NotApplicable(why)) = &sweep.arms[0].arm.fault {
        text.push_str(&format!("  left out: {}\n", escape::text(why)));
        return text;
    }
    text.push_str(&notes(sweep, max_blocks));
    let what = if sweep.metric == Metric::CpuS { "cpu time" } else { "time" };
    let mut columns = Columns::new(&[
        ("setting", CellAlign::Left),
        (what, CellAlign::Right),
        ("calls", CellAlign::Right),
        ("file", CellAlign::Right),
        ("ratio", CellAlign::Right),
        ("95 % interval", CellAlign::Right),
        ("runs", CellAlign::Right),
        ("verdict", CellAlign::Left),
    ]);
    sweep.arms.iter().for_each(|finding| columns.row(&cells(finding, sweep.metric)));
    text.push_str(&columns.render());
    sweep.phases.iter().for_each(|half| text.push_str(&of_phase(sweep, half)));
    if matches!(experiment.kernel, Kernel::Nova(_)) {
        text.push_str(&of_stages(sweep));
    }
    text.push_str(&counts::text(sweep));
    for Finding { arm, .. } in &sweep.arms {
        let name = escape::text(&arm.candidate.name);
        match &arm.fault {
            Some(ArmFailure::NotApplicable(why)) => {
                text.push_str(&format!("  {name} was left out: {}\n", escape::text(why)))
            }
            Some(ArmFailure::Failed(why)) => text.push_str(&format!("  {name} failed: {}\n", escape::text(why))),
            None => {}
        }
    }
    text
}

/// Formats the findings for writing or reading alone.
fn of_phase(findings: &Findings, half: &PhaseFindings) -> String {
    let name = match half.phase {
        Phase::Write => "writing alone".to_owned(),
        Phase::Read => {
            let cold = findings.cold_share.map_or_else(String::new, |share| format!(", {}", cold(share)));
            format!("reading back alone{cold}")
        }
    };
    let doubt = half.doubt.map_or_else(String::new, |doubt| {
        format!("; two equal defaults differ: effects below {doubt:.2} times cannot be resolved")
    });
    let mut text = format!("  {name}{doubt}:\n");
    let what = if half.metric == Metric::CpuS { "cpu time" } else { "time" };
    let mut columns = Columns::new(&[
        ("setting", CellAlign::Left),
        (what, CellAlign::Right),
        ("ratio", CellAlign::Right),
        ("95 % interval", CellAlign::Right),
        ("verdict", CellAlign::Left),
    ]);
    for finding in &findings.arms {
        let Some(found) = finding.phases.iter().find(|found| found.phase == half.phase) else { continue };
        let none = || "-".to_owned();
        columns.row(&[
            escape::text(&finding.arm.candidate.name).into_owned(),
            quantity::brief_seconds(found.time_s),
            found.estimate.map_or_else(none, |estimate| format!("{:.2}", estimate.ratio)),
            found.estimate.map_or_else(none, |estimate| interval(estimate.interval)),
            found.verdict.map_or_else(none, |verdict| verdict.words().to_owned()),
        ]);
    }
    text.push_str(&columns.render());
    text
}

/// Stages of concatenating files, with their column headers.
const STAGES: [(RunStage, &str); 7] = [
    (RunStage::Collect, "metadata"),
    (RunStage::Open, "open"),
    (RunStage::Objects, "creation"),
    (RunStage::Read, "read"),
    (RunStage::Write, "write"),
    (RunStage::Close, "close"),
    (RunStage::Sync, "sync"),
];

/// Formats the median elapsed times of the stages that runs have.
fn of_stages(findings: &Findings) -> String {
    let time_s = |finding: &Finding, stage: RunStage| {
        let runs = finding.arm.runs.iter().flatten();
        let times = runs.filter_map(|run| run.stages.iter().find(|time| time.stage == stage));
        let mut times: Vec<f64> = times.map(|time| time.wall_s).collect();
        (!times.is_empty()).then(|| statistics::median(&mut times))
    };
    let has = |stage| findings.arms.iter().any(|finding| time_s(finding, stage).is_some());
    let stages: Vec<(RunStage, &str)> = STAGES.into_iter().filter(|(stage, _)| has(*stage)).collect();
    if stages.is_empty() {
        return String::new();
    }
    let titles = stages.iter().map(|(_, title)| (*title, CellAlign::Right));
    let mut columns = Columns::new(&std::iter::once(("setting", CellAlign::Left)).chain(titles).collect::<Vec<_>>());
    for finding in &findings.arms {
        let times = stages
            .iter()
            .map(|(stage, _)| time_s(finding, *stage).map_or_else(|| "-".to_owned(), quantity::brief_seconds));
        let name = escape::text(&finding.arm.candidate.name).into_owned();
        columns.row(&std::iter::once(name).chain(times).collect::<Vec<_>>());
    }
    format!("  elapsed times by stage, medians:\n{}", columns.render())
}

/// Formats the share of cold reads, to follow the description of the reads.
fn cold(share: f64) -> String {
    format!("{} ({:.0} % of the bytes came from storage)", statistics::coldness(share), 100.0 * share)
}

/// Formats the notes needed to read the table.
fn notes(findings: &Findings, max_blocks: usize) -> String {
    let mut text = String::new();
    if findings.metric == Metric::CpuS {
        let variation = 100.0 * findings.wall_variation;
        text.push_str(&format!(
            "  elapsed times of equal runs vary by {variation:.0} %: processor times are compared\n"
        ));
    }
    if let Some((sentinel, doubt)) = findings.sentinel.zip(findings.doubt) {
        let ratio = sentinel.ratio;
        text.push_str(&format!(
            "  two equal defaults differ (ratio {ratio:.2}): on this machine, at present, effects below {doubt:.2} times cannot be resolved\n"
        ));
    }
    if findings.arms.iter().any(|finding| finding.arm.candidate.library.is_some()) {
        for (library, version) in libraries(findings) {
            text.push_str(&format!("  {}: HDF5 {}\n", escape::text(&library), escape::text(&version)));
        }
    }
    if let Some(share) = findings.cold_share.filter(|_| findings.phases.is_empty()) {
        text.push_str(&format!("  reads: {}\n", cold(share)));
    }
    match findings.values {
        Some(WrittenValues::Equal) => text.push_str("  all runs wrote the same values\n"),
        Some(WrittenValues::Vary) => {
            text.push_str("  two runs with the defaults write different values: values were not compared\n");
        }
        None => {}
    }
    let blocks = findings.arms[0].arm.runs.iter().flatten().count();
    let has_settings = findings.arms[1..].iter().any(|finding| finding.arm.fault.is_none());
    if blocks < MIN_BLOCKS && has_settings {
        let advice = if blocks >= max_blocks { "more --blocks" } else { "more --time, or compare less" };
        text.push_str(&format!("  {blocks} of the {MIN_BLOCKS} blocks needed for a verdict: give {advice}\n"));
    }
    if findings.arms.iter().any(|finding| finding.verdict != finding.alone) {
        let count = findings.arms.iter().filter(|finding| finding.verdict.is_some()).count();
        text.push_str(&format!(
            "  (alone: …) is the verdict if nothing else were compared: of {count} settings, some differ by chance\n"
        ));
    }
    text
}

/// Returns the libraries, with versions, of an experiment that compares several.
fn libraries(findings: &Findings) -> BTreeSet<(String, String)> {
    let of = |finding: &Finding| {
        let library = finding.arm.candidate.library.as_ref();
        let name = library.map_or_else(|| "default".to_owned(), |path| path.display().to_string());
        Some((name, finding.arm.runs.iter().flatten().next()?.hdf5.clone()))
    };
    findings.arms.iter().filter_map(of).collect()
}

/// Formats a verdict, together with the verdict for the setting alone if that differs.
fn verdict(finding: &Finding) -> Option<String> {
    let verdict = finding.verdict.filter(|_| finding.arm.fault.is_none())?;
    Some(match finding.alone {
        Some(alone) if alone != verdict => format!("{} (alone: {})", verdict.words(), alone.words()),
        _ => verdict.words().to_owned(),
    })
}

fn cells(finding: &Finding, metric: Metric) -> [String; 8] {
    let none = || "-".to_owned();
    let of_medians = finding.medians.map(|medians| {
        let time_s = if metric == Metric::CpuS { medians.cpu_s } else { medians.wall_s };
        let calls =
            medians.read_calls.zip(medians.write_calls).map(|(read, write)| quantity::count((read + write) as u64));
        (quantity::brief_seconds(time_s), calls, quantity::size(medians.file_len_bytes as u64))
    });
    let (time, calls, file) =
        of_medians.map_or((None, None, None), |(time, calls, file)| (Some(time), calls, Some(file)));
    let runs = finding.arm.runs.iter().flatten().count();
    [
        escape::text(&finding.arm.candidate.name).into_owned(),
        time.unwrap_or_else(none),
        calls.unwrap_or_else(none),
        file.unwrap_or_else(none),
        finding.estimate.map_or_else(none, |estimate| format!("{:.2}", estimate.ratio)),
        finding.estimate.map_or_else(none, |estimate| interval(estimate.interval)),
        runs.to_string(),
        verdict(finding).unwrap_or_else(none),
    ]
}

fn interval([low, high]: [f64; 2]) -> String {
    format!("{low:.2} to {high:.2}")
}

/// Explains why the search in an experiment produced no profile.
fn without_profile(source: &MeasuredExperiment) -> String {
    let name = escape::text(&source.name);
    let again = source.search.proof.as_ref().and_then(|proof| {
        let finding = proof.arms.get(1)?;
        // A better setting was rejected because of a limit.
        let verdict = finding.verdict.filter(|verdict| *verdict != Verdict::Better)?;
        Some((&finding.arm.candidate.name, verdict, finding.estimate?))
    });
    match again {
        Some((settings, verdict, estimate)) => format!(
            "{name}: {} won the search, but measured again on other values it took {:.2} ({}) of the default's time, {}: no \
             profile is written.",
            escape::text(settings),
            estimate.ratio,
            interval(estimate.interval),
            verdict.words(),
        ),
        None => format!("{name}: no setting was found to help within the limits: no profile is written."),
    }
}

/// Formats the result of the search in `done`.
pub fn profile(done: &Measurement, profile: Option<&Profile>, path: &Path) -> String {
    let Some(profile) = profile else {
        return done.source().map_or_else(String::new, |source| format!("\n{}\n", without_profile(source)));
    };
    let all =
        profile.settings.iter().map(|found| (found, "")).chain(profile.layout.iter().map(|found| (found, "layout")));
    let mut columns = Columns::new(&[
        ("profile", CellAlign::Left),
        ("ratio", CellAlign::Right),
        ("95 % interval", CellAlign::Right),
        ("runs", CellAlign::Right),
        ("file", CellAlign::Right),
        ("", CellAlign::Left),
    ]);
    let cells = |name: String, evidence: &Evidence, kind: &str| {
        let Evidence { ratio, interval: bounds, blocks, inflation, .. } = *evidence;
        [name, format!("{ratio:.2}"), interval(bounds), blocks.to_string(), format!("{inflation:.2}x"), kind.to_owned()]
    };
    for ((knob, measured), kind) in all {
        columns.row(&cells(knob.assignment(&measured.value), &measured.evidence, kind));
    }
    if let Some(together) = &profile.together {
        columns.row(&cells("together, on other values".to_owned(), together, ""));
    }
    format!("\n{}written to {}\n", columns.render(), escape::path(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use raddle_core::cancel::CancelToken;
    use raddle_core::random::Random;
    use raddle_core::report::progress::Silent;
    use raddle_tune::campaign::{Bench, TrialConditions};
    use raddle_tune::error::Result;
    use raddle_tune::knob::Knob;
    use raddle_tune::measurement::measure;
    use raddle_tune::runner::{Executor, Scratch};
    use raddle_tune::search::SearchLimits;
    use raddle_tune::statistics::StopRule;
    use raddle_tune::worker::{Answer, KernelOutcome, Request, RunStage, StageTime};
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicU64, Ordering};

    const SEED: u64 = 5;

    /// Executor whose runs take 0.7 of the time with a metadata block on the values of the sweep, and the share
    /// `elsewhere` of the time on other values.
    struct SimulatedExecutor {
        runs: AtomicU64,
        of_sweep: BTreeSet<u64>,
        elsewhere: f64,
    }

    impl Executor for SimulatedExecutor {
        fn run(&self, request: &Request, _: &CancelToken) -> Result<Answer> {
            let factor = match request.settings.whole(Knob::MetaBlock) {
                None => 1.0,
                Some(_) if self.of_sweep.contains(&request.seed) => 0.7,
                Some(_) => self.elsewhere,
            };
            // The period differs from every block length, so all arms meet every factor.
            let wall_s = factor * (1.0 + (self.runs.fetch_add(1, Ordering::Relaxed) % 7) as f64 * 0.001);
            Ok(Answer::Done(KernelOutcome {
                hdf5: "0.0.0".to_owned(),
                stages: vec![StageTime { stage: RunStage::Write, phase: None, wall_s, cpu_s: wall_s }],
                len_bytes: 1,
                file_len_bytes: 1000,
                ..KernelOutcome::default()
            }))
        }
    }

    fn reported(elsewhere: f64, limits: &SearchLimits) -> String {
        let text = "name = \"mine\"\ntitle = \"A test\"\nprofile_from = \"one\"\n[[experiment]]\nname = \"one\"\ntitle = \"One\"\n\
                    kernel = { kind = \"vpic\", particles = 10 }\nknobs = { meta_block = [65536] }\n";
        let workload = Workload::parse(Path::new("mine.toml"), text, Scale::Tiny).unwrap();
        let of_sweep = (0..200).map(|block| Random::of(&[SEED, block, 1]).bits()).collect();
        let executor = SimulatedExecutor { runs: AtomicU64::new(0), of_sweep, elsewhere };
        let folder = tempfile::tempdir().unwrap();
        let scratch = Scratch::in_folder(folder.path(), 1).unwrap();
        let cancel = CancelToken::new();
        let bench = Bench { executor: &executor, scratch: &scratch, observer: &Silent, cancel: &cancel };
        let conditions =
            TrialConditions { library: None, seed: SEED, syncs: false, rule: StopRule::default(), deadline: None };
        let done = measure(&workload, Some(limits), &conditions, &bench, &mut |_| {}).unwrap();
        profile(&done, done.profile("raddle 0", 7).as_ref(), Path::new("mine.toml"))
    }

    #[test]
    fn the_reason_for_no_profile_is_reported() {
        let won = reported(0.7, &SearchLimits::default());
        assert!(won.contains("meta_block=64KiB") && won.contains("written to mine.toml"), "{won}");
        let lost = reported(1.0, &SearchLimits::default());
        let words = "one: meta_block=64KiB won the search, but measured again on other values it took 1.00 (";
        assert!(lost.contains(words) && lost.contains("no effect: no profile is written."), "{lost}");
        let limited = reported(0.7, &SearchLimits { max_inflation: 0.5, ..SearchLimits::default() });
        assert!(limited.contains("one: no setting was found to help within the limits: no profile"), "{limited}");
    }
}
