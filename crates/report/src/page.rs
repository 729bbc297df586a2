//! The page: a single file without scripts or network access, in light and dark colours, for phones and paper.

use crate::compared;
use crate::figures;
use crate::markup::{self, facts, part, table};
use crate::measured::Measurement;
use crate::measured::comparisons;
use crate::measured::verdicts;
use crate::particulars;
use crate::phases;
use crate::quantity;
use crate::run::{FileResult, Run, StageResult, command};
use crate::svg::{Figure, html};
use crate::verified::Verification;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::path::Path;

const STYLE: &str = include_str!("page.css");

/// A report and its name.
#[derive(Debug, Clone)]
pub struct NamedReport {
    /// File name of the report.
    pub name: String,
    /// Subject of the report.
    pub subject: Subject,
}

/// Subject of a report.
#[derive(Debug, Clone)]
pub enum Subject {
    /// A run of merge, idx, events or other commands.
    Run(Box<NamedRun>),
    /// A measurement of bench or tune.
    Measurement(Box<Measurement>),
    /// A verification.
    Verification(Box<Verification>),
}

/// A run and its output file.
#[derive(Debug, Clone, Default)]
pub struct NamedRun {
    /// Report of the run.
    pub run: Run,
    /// The output file, if it could be inspected.
    pub file: Option<FileResult>,
    /// Reason why the file could not be inspected, if that was tried.
    pub file_missing: Option<String>,
}

impl Subject {
    /// Returns the subcommand, for example `merge`.
    fn command(&self) -> Option<&str> {
        command(self.invocation())
    }

    fn invocation(&self) -> &[String] {
        match self {
            Self::Run(report) => &report.run.invocation,
            Self::Measurement(done) => &done.invocation,
            Self::Verification(done) => &done.invocation,
        }
    }

    fn program(&self) -> Option<&str> {
        match self {
            Self::Run(report) => report.run.program.as_deref(),
            Self::Measurement(done) => done.program.as_deref(),
            Self::Verification(done) => done.program.as_deref(),
        }
    }

    /// Returns all figures.
    pub fn figures(&self) -> Vec<Figure> {
        match self {
            Self::Run(report) => figures::all(&report.run, report.file.as_ref()),
            Self::Measurement(done) => comparisons::all(done),
            Self::Verification(_) => Vec::new(),
        }
    }
}

/// Returns the page for `all` reports.
pub fn page(all: &[NamedReport]) -> String {
    let title = match all {
        [one] => format!("raddle {}", one.subject.command().unwrap_or("run")),
        several => format!("{} raddle runs", several.len()),
    };
    let runs = all.iter().filter_map(|report| match &report.subject {
        Subject::Run(of) => Some((report.name.as_str(), &of.run)),
        _ => None,
    });
    let runs: Vec<(&str, &Run)> = runs.collect();
    let compared = compared::runs(&runs) + &phases::compared(runs.into_iter());
    let sections: String = all.iter().map(|report| section(report, all)).collect();
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n{compared}{sections}</main>\n</body>\n</html>\n",
        title = html(&title)
    )
}

fn section(report: &NamedReport, all: &[NamedReport]) -> String {
    let subject = &report.subject;
    let mut text = String::new();
    if all.len() > 1 {
        text.push_str(&format!("<h2>{}</h2>\n", html(&report.name)));
    }
    text.push_str(&match subject {
        Subject::Run(run) => of_run(run, all),
        Subject::Measurement(done) => verdicts::section(done),
        Subject::Verification(done) => done.section(),
    });
    if !subject.invocation().is_empty() {
        let repeated = format!("<pre>{}</pre>\n", html(&command_line(subject.invocation())));
        text.push_str(&part("To repeat", &repeated));
    }
    if let Some(program) = subject.program() {
        text.push_str(&format!("<p class=\"soft\">{}</p>\n", html(program)));
    }
    text
}

/// Returns the latest verification among `all` of the output file of `run`, in the state that `run` left.
fn verification_of<'a>(run: &Run, all: &'a [NamedReport]) -> Option<&'a Verification> {
    let output = run.output.as_ref()?;
    // The times of the other runs that wrote the file, for example of appends.
    let written = all.iter().filter_map(|report| match &report.subject {
        Subject::Run(other) if other.run.output.as_ref().is_some_and(|path| is_same(path, output)) => {
            Some(other.run.finished_unix_s)
        }
        _ => None,
    });
    let next_write = written.filter(|time| *time > run.finished_unix_s).min_by(|a, b| order(*a, *b));
    let found = all.iter().filter_map(|report| match &report.subject {
        Subject::Verification(done)
            if is_same(Path::new(&done.file), output)
                && done.finished_unix_s >= run.finished_unix_s
                && next_write.is_none_or(|time| done.finished_unix_s < time) =>
        {
            Some(&**done)
        }
        _ => None,
    });
    found.max_by(|a, b| order(a.finished_unix_s, b.finished_unix_s))
}

/// Compares two times; a missing one is the earliest.
fn order(one: Option<f64>, other: Option<f64>) -> Ordering {
    one.unwrap_or(0.0).total_cmp(&other.unwrap_or(0.0))
}

/// Returns whether two paths in reports name the same file. Some runs report the absolute path.
fn is_same(one: &Path, other: &Path) -> bool {
    one == other || std::path::absolute(one).ok() == std::path::absolute(other).ok()
}

fn of_run(report: &NamedRun, all: &[NamedReport]) -> String {
    let run = &report.run;
    let mut text = String::new();
    if let Some(output) = &run.output {
        text.push_str(&format!("<p>{}</p>\n", html(&output.to_string_lossy())));
    }
    let verification = verification_of(run, all);
    text.push_str(&facts_of_run(run, verification));
    if run.digest.is_some() && verification.is_none() {
        text.push_str(
            "<p class=\"soft\">Not verified on this page: also pass the report of <code>raddle verify</code>.</p>\n",
        );
    }
    text.extend(verification.map(Verification::differences));
    text.push_str(&particulars::of(run));
    for figure in figures::all(run, report.file.as_ref()) {
        text.push_str(&markup::figure(&figure));
        if figure.name == "stages" {
            text.push_str(&stage_table(run));
            text.push_str(&phases::phase_table(run));
            text.push_str(&predictions(run));
        }
    }
    if let Some(reason) = &report.file_missing {
        text.push_str(&format!("<p class=\"soft\">The file is not shown: {}</p>\n", html(reason)));
    }
    text
}

/// Returns the most important numbers.
fn facts_of_run(run: &Run, verification: Option<&Verification>) -> String {
    let size = |len_bytes: Option<u64>| len_bytes.map(quantity::size);
    let rate =
        run.input_len_bytes.zip(run.elapsed_s).map(|(len_bytes, elapsed_s)| quantity::rate(len_bytes, elapsed_s));
    facts(&[
        ("date", run.finished_unix_s.map(quantity::date)),
        ("host", run.host.clone()),
        ("verified", verification.map(Verification::outcome)),
        ("digest", run.digest.clone()),
        ("time", run.elapsed_s.map(quantity::seconds)),
        ("inputs", run.inputs.map(quantity::count)),
        ("input", size(run.input_len_bytes)),
        ("output", size(run.output_len_bytes)),
        ("uncompressed", size(run.logical_len_bytes)),
        ("samples", size(run.sample_len_bytes)),
        ("stored", size(run.stored_len_bytes)),
        ("phases", run.phases.clone()),
        ("ranks", run.phases.as_ref().and(run.ranks).map(quantity::count)),
        ("input rate", rate),
        ("datasets", run.datasets.map(quantity::count)),
        ("metadata", size(run.metadata_len_bytes)),
        ("threads", run.engine.jobs.map(quantity::count)),
        ("peak memory", size(run.memory.peak_rss_bytes)),
        ("buffers, peak", size(run.memory.budget_peak_bytes)),
    ])
}

/// Returns the table of the stages of all ranks.
fn stage_table(run: &Run) -> String {
    let mut sums: BTreeMap<usize, StageResult> = BTreeMap::new();
    let mut places: Vec<&str> = Vec::new();
    for stage in run.all_stages() {
        let place = places.iter().position(|name| *name == stage.stage).unwrap_or_else(|| {
            places.push(&stage.stage);
            places.len() - 1
        });
        let sum = sums.entry(place).or_insert_with(|| StageResult {
            wall_s: 0.0,
            cpu_s: 0.0,
            bytes: 0,
            calls: 0,
            ..stage.clone()
        });
        sum.wall_s += stage.wall_s;
        sum.cpu_s += stage.cpu_s;
        sum.bytes = sum.bytes.saturating_add(stage.bytes);
        sum.calls = sum.calls.saturating_add(stage.calls);
    }
    let row = |stage: &StageResult| {
        vec![
            stage.stage.clone(),
            quantity::seconds(stage.wall_s),
            quantity::seconds(stage.cpu_s),
            quantity::size(stage.bytes),
            quantity::count(stage.calls),
        ]
    };
    let rows: Vec<Vec<String>> = sums.values().map(row).collect();
    table(&["stage", "time", "processor", "bytes", "calls"], &rows)
}

/// Returns the prediction next to the actual values.
fn predictions(run: &Run) -> String {
    let Some(prediction) = &run.prediction else { return String::new() };
    let chunks_len_bytes = run.output_len_bytes.zip(run.metadata_len_bytes).map(|(all, part)| all.saturating_sub(part));
    // An error that would be rounded to 0 % is not shown.
    let error = prediction.size_error.filter(|error| *error >= 0.005);
    let sizes = [
        ("chunks", prediction.stored_len_bytes, chunks_len_bytes, error),
        ("metadata and other values", prediction.metadata_len_bytes, run.metadata_len_bytes, error),
        ("memory of buffers", prediction.memory_len_bytes, run.memory.budget_peak_bytes, None),
    ];
    let ratio =
        |predicted: f64, actual: f64| if actual > 0.0 { format!("{:.2}", predicted / actual) } else { "-".to_owned() };
    let mut rows = Vec::new();
    for (name, predicted, actual, error) in sizes {
        if let (Some(predicted), Some(actual)) = (predicted, actual) {
            let ratio = ratio(predicted as f64, actual as f64);
            let error = error.map_or(String::new(), |error| format!(" ± {:.0} %", error * 100.0));
            rows.push(vec![name.to_owned(), quantity::size(predicted) + &error, quantity::size(actual), ratio]);
        }
    }
    // Reports without an error come from versions that predicted only the execution.
    let (elapsed_s, what) = match prediction.size_error {
        Some(_) => (run.elapsed_s, "scan, plan and execution"),
        None => (run.engine.elapsed_s, "execution"),
    };
    if let (Some(predicted), Some(actual)) = (prediction.elapsed_s, elapsed_s) {
        rows.push(vec![
            what.to_owned(),
            quantity::seconds(predicted),
            quantity::seconds(actual),
            ratio(predicted, actual),
        ]);
    }
    if rows.is_empty() {
        return String::new();
    }
    part("Predicted and actual", &table(&["", "predicted", "found", "ratio"], &rows))
}

/// Joins the words of a command line, quoted for a shell if necessary.
fn command_line(words: &[String]) -> String {
    let is_plain =
        |word: &str| !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "-_./=:,+@%".contains(c));
    let quoted =
        |word: &String| if is_plain(word) { word.clone() } else { format!("'{}'", word.replace('\'', "'\\''")) };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report_of(text: &str) -> NamedReport {
        let run = Run::parse(Path::new("run.json"), text.as_bytes()).unwrap();
        let subject = Subject::Run(Box::new(NamedRun { run, ..NamedRun::default() }));
        NamedReport { name: "run.json".to_owned(), subject }
    }

    const RUN: &str = r#"{"program": "raddle 1", "invocation": ["raddle", "merge", "a b.h5", "<x>"], "output": "o<&>.h5",
        "input_len_bytes": 1000, "output_len_bytes": 900, "metadata_len_bytes": 100, "elapsed_s": 2.0,
        "prediction": {"stored_len_bytes": 400, "metadata_len_bytes": 100},
        "stages": [{"rank": 0, "stage": "scan", "wall_s": 1.0, "cpu_s": 0.5, "bytes": 10, "calls": 2}],
        "engine": {"stages": [{"rank": 1, "stage": "scan", "wall_s": 1.0, "cpu_s": 0.5, "bytes": 10, "calls": 2}]}}"#;

    #[test]
    fn a_page_is_whole_and_asks_nothing_of_a_network() {
        let page = page(&[report_of(RUN)]);
        for part in [
            "<svg",
            "Time by stage",
            "Predicted and actual",
            "raddle merge &#39;a b.h5&#39; &#39;&lt;x&gt;&#39;",
            "o&lt;&amp;&gt;.h5",
        ] {
            assert!(page.contains(part), "{part}\n{page}");
        }
        assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("<script"));
        // Both ranks together: 2 seconds, 20 bytes, 4 calls; predicted were 400, found 800.
        assert!(page.contains("<tr><td>scan</td><td>2.00 s</td><td>1.00 s</td><td>20 B</td><td>4</td></tr>"), "{page}");
        assert!(page.contains("<td>400 B</td><td>800 B</td><td>0.50</td>"), "{page}");
    }

    #[test]
    fn verdicts_and_figures_are_shown_of_what_was_measured() {
        let run = |wall_s: f64| {
            format!(
                r#"{{"stages": [{{"stage": "write", "wall_s": {wall_s}, "cpu_s": 9}}], "len_bytes": 1000, "file_len_bytes": 2048, "calls": {{"read": 1, "write": 4}}}}"#
            )
        };
        let arm = |name: &str, wall_s: f64, found: &str| {
            let runs = [run(wall_s), run(wall_s * 2.0), "null".to_owned()].join(",");
            format!(r#"{{"arm": {{"candidate": {{"name": "{name}"}}, "runs": [{runs}]}}, {found}}}"#)
        };
        let found = r#""estimate": {"ratio": 0.5, "interval": [0.4, 0.6]}, "verdict": "better""#;
        let worse = r#""estimate": {"ratio": 4.0, "interval": [3.0, 5.0]}, "verdict": "worse""#;
        let text = format!(
            r#"{{"invocation": ["raddle", "tune"], "workload": "<mine>", "experiments": [{{"name": "one", "paper": "3 < 4 times", "sweep": {{"metric": "wall_s", "arms": [{}, {}, {}, {}]}}}}]}}"#,
            arm("default", 1.0, r#""estimate": null"#),
            arm("gzip=<1>", 0.5, found),
            arm("gzip=9", 4.0, worse),
            arm("szip=8", 0.0, r#""verdict": "cannot_tell", "estimate": {"ratio": 0, "interval": [0, 1]}"#)
                .replace(r#"{"arm": {"#, r#"{"arm": {"fault": {"not_applicable": "no \"szip\""}, "#,),
        );
        let done = Measurement::parse(Path::new("tune.json"), text.as_bytes()).unwrap();
        let page = page(&[NamedReport {
            name: "tune.json".to_owned(),
            subject: Subject::Measurement(Box::new(done.clone())),
        }]);
        for part in [
            "<title>raddle tune</title>",
            "&lt;mine&gt; at ",
            "The paper: 3 &lt; 4 times",
            "<td>gzip=&lt;1&gt;</td><td>better</td><td>0.50</td><td>0.40 to 0.60</td><td>2</td><td>1.00 s</td><td>5</td><td>2.00 KiB</td>",
            "<td>szip=8</td><td>-</td><td>-</td>",
            "szip=8 was left out: no &quot;szip&quot;",
            "Sorted speed-ups",
            "one: gzip=&lt;1&gt;: 2.00 times, better",
            "default: median 750 B/s of 2 runs",
        ] {
            assert!(page.contains(part), "{part}\n{page}");
        }
        assert!(!page.contains("NaN") && !page.contains("inf"), "{page}");
        let names: Vec<String> = comparisons::all(&done).into_iter().map(|figure| figure.name).collect();
        assert_eq!(names, ["speed-ups", "1-sweep", "1-rates", "1-times", "1-stages"]);
        assert!(Measurement::parse(Path::new("x"), b"{\"experiments\": []}").is_err());
    }

    #[test]
    fn a_run_shows_where_and_when_it_was_of_what_and_whether_it_was_verified() {
        let text = RUN.replacen(
            "{",
            r#"{"host": "<node7>", "finished_unix_s": 1735689599, "warnings": ["a <warning>"], "digest": "00ff",
            "differences": [{"path": "/x", "kind": "link_target", "expected": "1", "found": "<2>", "inputs": ["d/b.h5"]}],
            "skipped": [{"path": "bad.h5", "reason": "cut off"}], "input_files": [{"path": "d/a.h5", "len_bytes": 1024}],"#,
            1,
        );
        let run = report_of(&text);
        let alone = page(std::slice::from_ref(&run));
        for part in [
            "<dt>date</dt><dd>2024-12-31 23:59 UTC</dd>",
            "<dt>host</dt><dd>&lt;node7&gt;</dd>",
            "<dt>digest</dt><dd>00ff</dd>",
            "Not verified on this page",
            "<li>a &lt;warning&gt;</li>",
            "<td>/x</td><td>link target</td><td>1</td><td>&lt;2&gt;</td><td>b.h5</td>",
            "<td>bad.h5</td><td>cut off</td>",
            "<td>d/a.h5</td><td>1.00 KiB</td>",
        ] {
            assert!(alone.contains(part), "{part}\n{alone}");
        }
        let verification = |mismatches: &str, finished_unix_s: u64| {
            let text = format!(
                r#"{{"invocation": ["raddle", "verify"], "file": "o<&>.h5", "against": 3, "datasets": 2,
                "compared_len_bytes": 2048, "finished_unix_s": {finished_unix_s}, "mismatches": [{mismatches}]}}"#
            );
            assert!(crate::verified::is_verification(text.as_bytes()));
            let done = Verification::parse(Path::new("v.json"), text.as_bytes()).unwrap();
            NamedReport { name: "v.json".to_owned(), subject: Subject::Verification(Box::new(done)) }
        };
        let both = page(&[run.clone(), verification("", 1_735_689_600)]);
        assert_eq!(both.matches("<dt>verified</dt><dd>equal to 3 inputs</dd>").count(), 2, "{both}");
        assert!(!both.contains("Not verified"));
        let mismatch = r#"{"path": "/y", "what": "other values", "row": 7, "input": "b.h5"}"#;
        let both = page(&[run.clone(), verification(mismatch, 1_735_689_600)]);
        assert!(both.contains("1 difference from 3 inputs") && both.contains("<td>/y</td>"), "{both}");
        // Older than the file.
        assert!(page(&[run.clone(), verification("", 1)]).contains("Not verified"));

        // Only the last of several runs that wrote the file is verified, whatever the form of its path.
        let path = std::path::absolute("o<&>.h5").unwrap();
        let later = text.replace("1735689599", "1735689602").replace("\"o<&>.h5\"", &format!("{path:?}"));
        let runs = [run, report_of(&later)];
        let verified = |finished_unix_s: u64| {
            let page = page(&[&runs[..], &[verification("", finished_unix_s)]].concat());
            let sections: Vec<&str> = page.split("<h2>").skip(1).collect();
            sections.iter().map(|section| section.contains("equal to 3 inputs")).collect::<Vec<_>>()
        };
        assert_eq!(
            (verified(1_735_689_600), verified(1_735_689_603)),
            (vec![true, false, true], vec![false, true, true])
        );
    }

    /// A heading must not be printed at the end of a page: the style keeps sections whole if they fit.
    #[test]
    fn headings_are_printed_with_what_follows() {
        let page = page(&[report_of(RUN), report_of(RUN)]);
        assert!(
            STYLE.contains("h2, h3, summary { break-after: avoid; }")
                && STYLE.contains("section { break-inside: avoid; }")
        );
        assert_eq!(page.matches("<h3>").count(), page.matches("<section>\n<h3>").count());
        assert!(page.matches("<h3>").count() >= 7);
    }

    #[test]
    fn several_runs_have_names() {
        let page = page(&[report_of(RUN), report_of(RUN)]);
        assert!(page.find("Runs compared").unwrap() < page.find("<h2>run.json</h2>").unwrap());
        assert_eq!(page.matches("<h2>run.json</h2>").count(), 2);
        assert!(page.contains("<title>2 raddle runs</title>"));
    }
}
