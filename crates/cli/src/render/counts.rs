//! Counters of runs of raddle's own writers: rates, shares of steps, messages, files.

use super::table::{CellAlign, Columns};
use super::{escape, quantity};
use raddle_tune::findings::{Finding, Findings};
use raddle_tune::kernel::Kernel;
use raddle_tune::statistics::median;
use raddle_tune::worker::{KernelOutcome, Processes};

/// Steps, in order, with their column headers.
const STEPS: [(&str, &str); 10] = [
    ("restructure_s", "restructure"),
    ("aggregate_s", "aggregate"),
    ("encode_and_write_s", "encode, write"),
    ("publish_s", "publish"),
    ("read_s", "read"),
    ("prepare_s", "prepare"),
    ("encode_s", "encode"),
    ("write_s", "write"),
    ("metadata_s", "metadata"),
    ("messages_s", "messages"),
];

/// Other counters, with their column headers.
const COUNTS: [(&str, &str); 8] = [
    ("holders", "holders"),
    ("files", "files"),
    ("blocks", "blocks"),
    ("restructure_messages", "to restructure"),
    ("aggregate_messages", "to aggregate"),
    ("aggregate_messages_of_rank_0", "of rank 0"),
    ("longest_of_rank_0_len_bytes", "longest"),
    ("memory_of_a_process_len_bytes", "memory"),
];

/// Formats two tables, of steps and of counters; empty if runs have none.
pub fn text(findings: &Findings) -> String {
    let runs = || findings.arms.iter().flat_map(|finding| finding.arm.runs.iter().flatten());
    if runs().all(|run| run.counts.is_empty()) {
        return String::new();
    }
    let note = match runs().find_map(|run| run.processes) {
        None => "",
        Some(Processes::Ranks) => "  processes are MPI ranks\n",
        Some(Processes::Threads) => {
            "  processes are threads of one: this raddle was built without MPI, or no launcher starts its ranks\n"
        }
    };
    let has = |name: &str| runs().any(|run| run.counts.contains_key(name));
    let steps: Vec<_> = STEPS.into_iter().filter(|(name, _)| has(name)).collect();
    let counts: Vec<_> = COUNTS.into_iter().filter(|(name, _)| has(name)).collect();
    let head = |all: &[(&'static str, &'static str)]| {
        let titles = all.iter().map(|(_, title)| (*title, CellAlign::Right));
        [("setting", CellAlign::Left), ("rate", CellAlign::Right)].into_iter().chain(titles).collect::<Vec<_>>()
    };
    let (mut shares, mut numbers) = (Columns::new(&head(&steps)), Columns::new(&head(&counts)));
    for finding in &findings.arms {
        let Some(medians) = finding.medians else { continue };
        let name = escape::text(&finding.arm.candidate.name).into_owned();
        let len_bytes = finding.arm.runs.iter().flatten().map(|run| run.len_bytes).next().unwrap_or(0);
        let rate = quantity::rate(len_bytes, medians.wall_s);
        let share = |name: &str| {
            let seconds = median_count(finding, name)?;
            let workers = workers(&finding.arm.candidate.kernel, name);
            Some(format!("{:.0} %", 100.0 * seconds / (medians.wall_s * workers)))
        };
        let cells = steps.iter().map(|(name, _)| share(name).unwrap_or_else(none));
        shares.row(&[name.clone(), rate.clone()].into_iter().chain(cells).collect::<Vec<_>>());
        let cells = counts
            .iter()
            .map(|(name, _)| median_count(finding, name).map_or_else(none, |value| quantity::named(name, value)));
        numbers.row(&[name, rate].into_iter().chain(cells).collect::<Vec<_>>());
    }
    let shares = match steps.is_empty() {
        true => String::new(),
        false => format!("  shares of the time:\n{}", shares.render()),
    };
    format!("{note}{shares}  counts:\n{}", numbers.render())
}

fn none() -> String {
    "-".to_owned()
}

/// Returns the number of workers over which the seconds of a step are summed: for events, the threads of all processes,
/// except for messages.
fn workers(kernel: &Kernel, step: &str) -> f64 {
    match kernel {
        Kernel::Events(events) if step != "messages_s" => (events.threads * events.processes) as f64,
        _ => 1.0,
    }
}

fn median_count(finding: &Finding, name: &str) -> Option<f64> {
    let of = |run: &KernelOutcome| run.counts.get(name).copied();
    let mut values: Vec<f64> = finding.arm.runs.iter().flatten().filter_map(of).collect();
    (!values.is_empty()).then(|| median(&mut values))
}
