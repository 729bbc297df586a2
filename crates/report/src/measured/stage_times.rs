//! Distributions of the times of stages (opening, writing, reading, closing), by setting and by rank.
//!
//! A total does not show which call is slow on which rank; a sample here is the time of one rank in one run.

use crate::measured::curves::{Curve, chosen, distribute, legend_of};
use crate::measured::{Experiment, Finding, MeasuredRun, StageTime, drawable};
use crate::svg::{Anchor, Figure};

/// Stages to draw, in order, with their titles.
const STAGES: [(&str, &str); 7] = [
    ("collect", "collecting sizes"),
    ("open", "opening the file"),
    ("objects", "datasets and attributes"),
    ("write", "writing"),
    ("read", "reading"),
    ("close", "closing the file"),
    ("sync", "waiting for the disk"),
];
/// Maximum number of ranks with a curve each; if there are more, an even selection is shown.
const MAX_RANKS: usize = 8;
/// Height of a panel, and distance between panels.
const PANEL: f64 = 60.0;
const STEP: f64 = 112.0;

/// A stage of one phase of a run, with its title.
struct TitledStage {
    stage: &'static str,
    phase: Option<String>,
    title: String,
}

impl TitledStage {
    /// Returns the total time of the stage in `stages`; `None` if the stage does not occur.
    fn seconds(&self, stages: &[StageTime]) -> Option<f64> {
        let times = stages.iter().filter(|time| time.stage == self.stage && time.phase == self.phase);
        times.map(|time| time.wall_s).reduce(|sum, more| sum + more)
    }
}

/// Returns the stages of each rank of a run, or of the run itself if it has no ranks.
fn of_ranks(run: &MeasuredRun) -> Vec<&[StageTime]> {
    match run.ranks.as_slice() {
        [] => vec![&run.stages],
        ranks => ranks.iter().map(Vec::as_slice).collect(),
    }
}

/// Returns the stages that runs of an experiment have.
fn measured_stages(experiment: &Experiment) -> Vec<TitledStage> {
    let runs = || experiment.sweep.arms.iter().flat_map(|finding| finding.arm.runs.iter().flatten());
    let phases: [Option<&str>; 3] = [None, Some("write"), Some("read")];
    let all = phases.into_iter().flat_map(|phase| STAGES.map(|(stage, title)| (phase, stage, title)));
    let all = all.map(|(phase, stage, title)| TitledStage {
        stage,
        phase: phase.map(str::to_owned),
        title: match phase {
            Some("read") if stage != "read" => format!("{title}, reading back"),
            _ => title.to_owned(),
        },
    });
    all.filter(|one| runs().any(|run| of_ranks(run).iter().any(|stages| one.seconds(stages).is_some()))).collect()
}

/// Draws a panel per stage, with the curves that `of` returns.
fn panels<'a>(
    experiment: &Experiment,
    (name, title): (&str, &str),
    caption: String,
    names: &[&'a str],
    of: impl Fn(&TitledStage, usize) -> Vec<f64>,
) -> Option<Figure> {
    let mut figure = Figure::new(name, title, caption);
    let mut top = 0.0;
    for stage in measured_stages(experiment) {
        let curves: Vec<Curve<'a>> = names.iter().enumerate().map(|(place, name)| (*name, of(&stage, place))).collect();
        if curves.iter().all(|(_, times)| times.is_empty()) {
            continue;
        }
        figure.text(0.0, top + 12.0, Anchor::Start, 400.0, &stage.title);
        distribute(&mut figure, top + 24.0, PANEL, &curves);
        top += STEP;
    }
    if top == 0.0 {
        return None;
    }
    figure.legend(&legend_of(names.iter().copied()));
    Some(figure)
}

/// Draws the distribution of stage times across ranks and runs, for the default and the settings that differ most from
/// it.
pub(crate) fn by_setting(experiment: &Experiment) -> Option<Figure> {
    let has_run = |finding: &&Finding| finding.arm.runs.iter().flatten().next().is_some();
    let arms: Vec<&Finding> = chosen(&experiment.sweep).into_iter().filter(has_run).collect();
    let names: Vec<&str> = arms.iter().map(|finding| finding.arm.candidate.name.as_str()).collect();
    let of = |stage: &TitledStage, place: usize| {
        let ranks = arms[place].arm.runs.iter().flatten().flat_map(of_ranks);
        drawable(ranks.filter_map(|stages| stage.seconds(stages)))
    };
    let caption = "Share of runs, of each rank where there are several, in which a stage took at most so long: the default, and \
                   the settings that differ most from it.";
    panels(experiment, ("stages", "Distribution of times by stage"), caption.to_owned(), &names, of)
}

/// Draws the distribution of stage times of the default for each rank.
pub(crate) fn by_rank(experiment: &Experiment) -> Option<Figure> {
    let default = experiment.sweep.arms.first()?;
    let count = default.arm.runs.iter().flatten().map(|run| run.ranks.len()).min().filter(|count| *count > 1)?;
    let drawn = count.min(MAX_RANKS);
    let ranks: Vec<usize> = (0..drawn).map(|at| at * (count - 1) / (drawn - 1)).collect();
    let names: Vec<String> = ranks.iter().map(|rank| format!("rank {rank}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let of = |stage: &TitledStage, place: usize| {
        let runs = default.arm.runs.iter().flatten().filter_map(|run| run.ranks.get(ranks[place]));
        drawable(runs.filter_map(|stages| stage.seconds(stages)))
    };
    let mut caption = "Share of the default's runs in which a stage took at most this time on a rank.".to_owned();
    if drawn < count {
        caption.push_str(&format!(" {drawn} of {count} ranks."));
    }
    panels(experiment, ("ranks", "Distribution of times by rank"), caption, &names, of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measured::Measurement;
    use std::path::Path;

    /// Returns two settings with three runs each on two ranks, the second of which takes ten times as long to write.
    fn measured(ranks: usize) -> Experiment {
        let stage = |stage: &str, phase: &str, wall_s: f64| {
            format!(r#"{{"stage": "{stage}", "phase": "{phase}", "wall_s": {wall_s}, "cpu_s": 0}}"#)
        };
        let of_rank = |wall_s: f64| {
            [
                stage("open", "write", 0.001),
                stage("objects", "write", 0.001),
                stage("write", "write", wall_s),
                stage("open", "read", 0.002),
                stage("read", "read", 0.5),
            ]
            .join(",")
        };
        let run = |wall_s: f64| {
            let all: Vec<String> =
                (0..ranks).map(|rank| format!("[{}]", of_rank(wall_s * 10_f64.powi(rank as i32)))).collect();
            format!(r#"{{"stages": [{}], "len_bytes": 8, "ranks": [{}]}}"#, of_rank(wall_s), all.join(","))
        };
        let arm = |name: &str, wall_s: f64| {
            let runs = [run(wall_s), run(wall_s * 1.1), "null".to_owned(), run(wall_s * 1.2)].join(",");
            format!(r#"{{"arm": {{"candidate": {{"name": "{name}"}}, "runs": [{runs}]}}}}"#)
        };
        // Without HDF5 there are no datasets.
        let posix = arm("posix", 0.03).replace("objects", "of no figure");
        let arms = [arm("default", 0.01), posix].join(",");
        let text =
            format!(r#"{{"experiments": [{{"name": "one", "sweep": {{"metric": "wall_s", "arms": [{arms}]}}}}]}}"#);
        Measurement::parse(Path::new("x"), text.as_bytes()).unwrap().experiments.remove(0)
    }

    #[test]
    fn every_stage_has_a_panel_and_every_rank_a_sample() {
        let experiment = measured(2);
        let figure = by_setting(&experiment).unwrap();
        let text = figure.inline();
        for title in [
            "opening the file<",
            "datasets and attributes<",
            "writing<",
            "opening the file, reading back<",
            ">reading<",
        ] {
            assert!(text.contains(title), "{title}\n{text}");
        }
        assert!(!text.contains("closing"), "{text}");
        // A curve has two points per sample: three runs on two ranks.
        let lines: Vec<&str> = text.split("<polyline points=\"").skip(1).collect();
        assert_eq!(lines.len(), 2 * 4 + 1);
        assert!(lines.iter().all(|line| line.split('"').next().unwrap().split(' ').count() == 12), "{lines:?}");
        let alone = by_setting(&measured(0)).unwrap().inline();
        let points = alone.split("<polyline points=\"").nth(1).unwrap().split('"').next().unwrap();
        assert_eq!(points.split(' ').count(), 6);
    }

    #[test]
    fn collecting_sizes_comes_before_the_other_stages() {
        let mut experiment = measured(2);
        let runs = experiment.sweep.arms.iter_mut().flat_map(|finding| finding.arm.runs.iter_mut().flatten());
        for stage in runs.flat_map(|run| run.ranks.iter_mut().flatten()).filter(|stage| stage.stage == "read") {
            (stage.stage, stage.phase) = ("collect".to_owned(), None);
        }
        let text = by_setting(&experiment).unwrap().inline();
        let place = |title: &str| text.find(title).unwrap_or_else(|| panic!("{title}\n{text}"));
        assert!(place(">collecting sizes<") < place(">opening the file<"), "{text}");
    }

    #[test]
    fn ranks_have_curves_of_their_own() {
        let text = by_rank(&measured(2)).unwrap().inline();
        assert!(text.contains(">rank 0<") && text.contains(">rank 1<") && !text.contains("posix"), "{text}");
        let lines: Vec<&str> = text.split("<polyline points=\"").skip(1).collect();
        assert_eq!(lines.len(), 2 * 5);
        // Opening takes the same time for both, but the second writes longer: its curve is farther right.
        let first_x = |line: &str| line.split(',').next().unwrap().parse::<f64>().unwrap();
        assert!((first_x(lines[0]) - first_x(lines[1])).abs() < 0.01 && first_x(lines[5]) > first_x(lines[4]) + 50.0);
        assert!(by_rank(&measured(0)).is_none() && by_rank(&measured(1)).is_none());
        let many = by_rank(&measured(30)).unwrap();
        assert!(many.caption.contains("8 of 30 ranks") && many.inline().contains(">rank 29<"), "{}", many.caption);
    }
}
