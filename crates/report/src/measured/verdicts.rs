//! The part of a page about an HDF5 measurement: tables of verdicts and their figures.

use crate::markup::{self, facts, part, table};
use crate::measured::comparisons::{self, words};
use crate::measured::papers;
use crate::measured::{ArmFailure, Estimate, Experiment, Finding, Findings, Measurement, Phase};
use crate::quantity;
use crate::svg::html;

/// Returns the section of a measurement.
pub(crate) fn section(done: &Measurement) -> String {
    let mut text = format!("<p>{}</p>\n", html(&done.title));
    text.push_str(&facts(&[
        (
            "workload",
            Some(if done.scale == "own" {
                done.workload.clone()
            } else {
                format!("{} at {}", done.workload, done.scale)
            }),
        ),
        ("HDF5", (done.hdf5.library != "none").then(|| format!("{} ({})", done.hdf5.version, done.hdf5.library))),
        ("time", done.elapsed_s.map(quantity::seconds)),
        ("file system", Some(done.file_system.kind.clone())),
        ("processor", Some(format!("{}, {}", done.machine.processor, quantity::counted(done.machine.cores, "core")))),
        ("system", Some(done.machine.system.clone())),
    ]));
    text.push_str(&papers::section(done));
    text.extend(comparisons::speed_ups(done).as_ref().map(markup::figure));
    for (place, experiment) in done.experiments.iter().enumerate() {
        text.push_str(&format!("<h2>{}</h2>\n<p>{}</p>\n", html(&experiment.name), html(&experiment.title)));
        text.push_str(&of_experiment(experiment));
        comparisons::of_experiment(experiment, place).iter().for_each(|figure| text.push_str(&markup::figure(figure)));
    }
    text
}

fn of_experiment(experiment: &Experiment) -> String {
    let sweep = &experiment.sweep;
    let mut text = String::new();
    text.extend(experiment.paper.as_ref().map(|paper| format!("<p class=\"soft\">The paper: {}</p>\n", html(paper))));
    if let Some(doubt) = sweep.doubt {
        text.push_str(&format!(
            "<p>Two equal defaults differed: in this measurement, effects below {doubt:.2} times cannot be resolved.</p>\n"
        ));
    }
    if sweep.metric == "cpu_s" {
        let variation = 100.0 * sweep.wall_variation;
        text.push_str(&format!(
            "<p class=\"soft\">Elapsed times of equal runs vary by {variation:.0} %: processor times are compared.</p>\n"
        ));
    }
    if let Some(share) = sweep.cold_share {
        text.push_str(&format!(
            "<p class=\"soft\">Of the bytes read, {:.0} % came from storage, the others from the page cache.</p>\n",
            100.0 * share
        ));
    }
    text.push_str(&verdicts(sweep));
    text.extend(sweep.phases.iter().map(|half| of_phase(sweep, half)));
    if let Some(proof) = &experiment.proof {
        text.push_str(&part("The winner, measured again on other values", &verdicts(proof)));
    }
    text
}

fn verdicts(findings: &Findings) -> String {
    let time = if findings.metric == "cpu_s" { "cpu time" } else { "time" };
    let titles = ["setting", "verdict", "ratio", "95 % interval", "runs", time, "calls", "file"];
    let rows: Vec<Vec<String>> = findings.arms.iter().map(|finding| row(findings, finding)).collect();
    let faults = findings.arms.iter().filter_map(|finding| {
        let (what, why) = match finding.arm.fault.as_ref()? {
            ArmFailure::NotApplicable(why) => ("was left out", why),
            ArmFailure::Failed(why) => ("failed", why),
        };
        let name = html(&finding.arm.candidate.name);
        Some(format!("<p class=\"soft\">{name} {what}: {}</p>\n", html(why)))
    });
    table(&titles, &rows) + &faults.collect::<String>()
}

/// Returns the table of writing or reading only.
fn of_phase(findings: &Findings, half: &Phase) -> String {
    let time = if half.metric == "cpu_s" { "cpu time" } else { "time" };
    let rows = findings.arms.iter().filter_map(|finding| {
        let found = finding.phases.iter().find(|found| found.phase == half.phase)?;
        let estimate = found.estimate.filter(Estimate::is_fit);
        let none = || "-".to_owned();
        Some(vec![
            finding.arm.candidate.name.clone(),
            words(found.verdict.as_deref()).to_owned(),
            estimate.map_or_else(none, |estimate| format!("{:.2}", estimate.ratio)),
            estimate
                .map_or_else(none, |estimate| format!("{:.2} to {:.2}", estimate.interval[0], estimate.interval[1])),
            quantity::brief_seconds(found.time_s),
        ])
    });
    let doubt = half.doubt.map_or_else(String::new, |doubt| {
        format!("<p>Two equal defaults differed: effects below {doubt:.2} times cannot be resolved.</p>\n")
    });
    let drawn = doubt + &table(&["setting", "verdict", "ratio", "95 % interval", time], &rows.collect::<Vec<_>>());
    part(if half.phase == "read" { "Reading back only" } else { "Writing only" }, &drawn)
}

/// Formats a verdict, with the uncorrected one if that shows more.
fn verdict(finding: &Finding) -> String {
    let reported = words(finding.verdict.as_deref().filter(|_| finding.arm.fault.is_none()));
    match finding.alone.as_deref() {
        Some(alone) if finding.arm.fault.is_none() && finding.alone != finding.verdict => {
            format!("{reported} (alone: {})", words(Some(alone)))
        }
        _ => reported.to_owned(),
    }
}

fn row(findings: &Findings, finding: &Finding) -> Vec<String> {
    let times = findings.times(finding);
    let none = || "-".to_owned();
    let median = times.get(times.len() / 2).map(|time| quantity::brief_seconds(*time));
    let last = finding.arm.runs.iter().flatten().last();
    let estimate = finding.estimate.filter(|estimate| estimate.is_fit());
    vec![
        finding.arm.candidate.name.clone(),
        verdict(finding),
        estimate.map_or_else(none, |estimate| format!("{:.2}", estimate.ratio)),
        estimate.map_or_else(none, |estimate| format!("{:.2} to {:.2}", estimate.interval[0], estimate.interval[1])),
        times.len().to_string(),
        median.unwrap_or_else(none),
        last.and_then(|run| run.calls)
            .map_or_else(none, |calls| quantity::count(calls.read.saturating_add(calls.write))),
        last.map_or_else(none, |run| quantity::size(run.file_len_bytes)),
    ]
}
