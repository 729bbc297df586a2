//! Settings that `raddle apply` would apply, or applies, to a program.

use super::{escape, quantity};
use raddle_inject::plan::{ApplyPlan, ApplyRequest};
use raddle_inject::program::{Program, Route};
use std::path::Path;

/// Formats everything, for `--dry-run`.
pub fn text(program: &Program, plan: &ApplyPlan, profile: Option<&Path>, wishes: &ApplyRequest) -> String {
    let mut lines = Vec::new();
    let mut add = |title: &str, text: String| lines.push(format!("{title:<12} {text}\n"));
    add("program", escape::path(&program.path));
    if !program.through.is_empty() {
        add("through", program.through.iter().map(|path| escape::path(path)).collect::<Vec<_>>().join(", "));
    }
    add("way", way(&program.route));
    if let Route::Preload { libraries } = &program.route {
        for library in libraries {
            add("HDF5", format!("{} {}", library.version.as_deref().unwrap_or("?"), escape::path(&library.path)));
        }
    }
    add("MPI", if program.has_mpi { "yes" } else { "no" }.to_owned());
    add("profile", profile.map_or_else(|| "none".to_owned(), escape::path));
    add("set", if plan.applied.0.is_empty() { "nothing".to_owned() } else { plan.applied.to_string() });
    let most = quantity::size(wishes.auto_chunk_cache_bytes);
    match (wishes.adapt, plan.not_adapted) {
        (_, Some(reason)) => add("adapt", format!("no: {reason}")),
        (Some(adapt), None) => {
            add("chunk cache", format!("what accesses need, at most {most} each"));
            let alignment = format!("large objects of new files, to {}", quantity::size(adapt.block_bytes));
            add("alignment", if adapt.block_bytes > 0 { alignment } else { "none".to_owned() });
        }
        _ if wishes.auto_chunk_cache_bytes > 0 && matches!(program.route, Route::Preload { .. }) => {
            add("chunk cache", format!("one sweep of each dataset, at most {most}"));
        }
        _ => {}
    }
    if !plan.hints.is_empty() {
        add("MPI-IO hints", plan.hints.trim_end().replace('\n', ", "));
    }
    if !plan.stripes.0.is_empty() {
        add("stripes", format!("{} of the folders that --stripe names", plan.stripes));
    }
    for left in &plan.left_out {
        add("left out", format!("{}={}: {}", left.knob, left.value, left.reason));
    }
    lines.concat()
}

fn way(route: &Route) -> String {
    match route {
        Route::Preload { libraries } if libraries.is_empty() => {
            "a preloaded object, before any HDF5 that it may load (it is linked with none)".to_owned()
        }
        Route::Preload { .. } => "a preloaded object, before the HDF5 that it is linked with".to_owned(),
        Route::Driver { version } => {
            format!(
                "a driver plugin, because HDF5 {} is linked into it",
                version.as_deref().unwrap_or("of an unknown version")
            )
        }
        Route::None { reason } => format!("none: {reason}"),
    }
}

/// Returns notes to print before the program starts.
pub fn notes(program: &Program, plan: &ApplyPlan) -> Vec<String> {
    let mut notes = Vec::new();
    if let Route::None { reason } = &program.route {
        notes.push(format!("{} is started as it is: {reason}", escape::path(&program.path)));
        return notes;
    }
    notes.extend(plan.not_adapted.map(|reason| format!("the program is not adapted to: {reason}")));
    notes.extend(plan.left_out.iter().map(|left| format!("left out {}={}: {}", left.knob, left.value, left.reason)));
    notes
}

/// Formats the environment as shell commands.
pub fn exports(plan: &ApplyPlan) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "'\\''"));
    plan.environment
        .iter()
        .map(|(name, value)| format!("export {name}={}\n", quoted(&value.to_string_lossy())))
        .collect()
}
