//! Rules of datasets to which fields of other groups lead: a scan links the positions of a motor, the data of a detector or
//! shared times.
//!
//! Invariant: the fields of a group whose rows are concatenated are all concatenated, wherever their datasets are.

use super::{PIXELS, PLACES, field};
use crate::conventions::{FileView, Refusal};
use crate::rules::{Placement, Rule};
use crate::schema::{child_path, display_path, last_name, parent_path};

/// Returns the rules of all objects, in order, without what they take into account besides values.
pub(super) fn placed(file: &FileView<'_>) -> Result<Vec<Rule>, Refusal> {
    let own = |at: usize| match file.column(at) {
        Some(_) => field(file, at, file.path_of(at)),
        None => Ok(Rule::default()),
    };
    let mut rules: Vec<Rule> = (0..file.len()).map(own).collect::<Result<_, _>>()?;
    for at in 0..file.len() {
        let target = file.resolved(at);
        if target == at || file.column(target).is_none() || rules[target].placement != Placement::Once {
            continue;
        }
        let rule = field(file, target, file.path_of(at))?;
        if rule.placement != Placement::Once {
            rules[target] = linked(file, at, target, rule)?;
        }
    }
    for at in 0..file.len() {
        if is_of_frames(file, at, &rules)? {
            rules[at] = Rule::along(0);
        }
    }
    Ok(rules)
}

/// Returns the rule of a dataset elsewhere to which a field of a group leads whose rows are concatenated, given the
/// `rule` of the field. Refuses a dataset of which another group needs a single copy.
fn linked(file: &FileView<'_>, at: usize, target: usize, rule: Rule) -> Result<Rule, Refusal> {
    let path = file.path_of(target);
    let name = last_name(path);
    let class = file.find(parent_path(path)).and_then(|at| file.text(at, "NX_class")).unwrap_or_default();
    if PIXELS.contains(&name) || PLACES.contains(&name) || ["NXdata", "NXevent_data", "NXlog"].contains(&class.as_str())
    {
        let reason = format!(
            "is a link to {}, of which one copy is kept, but belongs to rows that are concatenated: leave the group out \
             with --exclude",
            display_path(path)
        );
        return Err(Refusal { object: display_path(file.path_of(at)), reason });
    }
    Ok(rule)
}

/// Returns whether a field of a detector or monitor has an element for each frame of its data, which another group
/// concatenates. Refuses a field that may also belong to another axis of the data.
fn is_of_frames(file: &FileView<'_>, at: usize, rules: &[Rule]) -> Result<bool, Refusal> {
    let path = file.path_of(at);
    let (group, name) = (parent_path(path), last_name(path));
    let class = file.find(group).and_then(|at| file.text(at, "NX_class")).unwrap_or_default();
    if !["NXdetector", "NXmonitor"].contains(&class.as_str()) || PIXELS.contains(&name) || PLACES.contains(&name) {
        return Ok(false);
    }
    let frames = file.find(&child_path(group, b"data")).map(|data| file.resolved(data));
    let Some(frames) = frames.filter(|&data| rules[data].placement == Placement::Along(0)) else { return Ok(false) };
    let (Some(lengths), Some(dims)) = (file.dims(frames), file.dims(at)) else { return Ok(false) };
    let is_of_pixels = dims.len() > 1 && lengths[1..].ends_with(&dims);
    if rules[at].placement != Placement::Once || lengths.first() != dims.first() || is_of_pixels {
        return Ok(false);
    }
    if dims != lengths && lengths[1..].contains(&dims[0]) {
        let reason = "may belong to the frames or to another axis of the data, which is as long: leave it out with \
                      --exclude"
            .to_owned();
        return Err(Refusal { object: display_path(path), reason });
    }
    Ok(true)
}
