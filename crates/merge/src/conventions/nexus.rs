//! NeXus: events, pulses and log entries are concatenated, everything else is kept once.
//!
//! Tests compare outputs with scippnexus. Sources: the NeXus definitions NXevent_data and NXlog, 2024.02. Invariant:
//! anything other than events, pulses and log entries must be equal in all inputs, including totals and durations.

use super::{Choice, Convention, ConventionOptions, FileView, Refusal};
use crate::rules::{NexusReference, PositionForm, Rule, TimeAttributes, ValueMeaning};
use crate::schema::attribute::{named, texts};
use crate::schema::parent_path;
use crate::schema::{child_path, display_path};

/// The NeXus convention.
pub struct Nexus;

/// Attributes that determine the meaning of values.
const MEANING: [&str; 9] =
    ["NX_class", "units", "scaling_factor", "signal", "axes", "depends_on", "vector", "transformation_type", "start"];
/// Fields with one element per event.
const EVENT_FIELDS: [&[u8]; 3] = [b"event_id", b"event_time_offset", b"pulse_height"];

impl Convention for Nexus {
    fn choice(&self) -> Choice {
        Choice::Nexus
    }

    fn recognise(&self, file: &FileView<'_>) -> Option<String> {
        if file.root_text("NX_class").is_some_and(|class| class == "NXroot") {
            return Some("the root group is an NXroot".to_owned());
        }
        let is_entry = |at: &usize| {
            parent_path(file.path_of(*at)) == b"/" && file.text(*at, "NX_class").is_some_and(|class| class == "NXentry")
        };
        let at = (1..file.len()).find(is_entry)?;
        Some(format!("{} is an NXentry", display_path(file.path_of(at))))
    }

    fn rules(&self, file: &FileView<'_>, _: &ConventionOptions) -> Result<Vec<(usize, Rule)>, Refusal> {
        let mut rules = Vec::new();
        for at in 0..file.len() {
            let rule = match file.column(at) {
                Some(_) => field(file, at)?,
                None => Rule::default(),
            };
            rules.push((at, rule.with_attributes(&MEANING).with_attributes(&["offset"])));
        }
        Ok(rules)
    }
}

fn field(file: &FileView<'_>, at: usize) -> Result<Rule, Refusal> {
    let path = file.path_of(at);
    let (group, name) = (parent_path(path), path.rsplit(|&byte| byte == b'/').next().unwrap_or_default());
    let sibling = |name: &[u8]| file.find(&child_path(group, name));
    let class = file.find(group).and_then(|at| file.text(at, "NX_class")).unwrap_or_default();
    if sibling(b"event_index").is_some() && sibling(b"event_time_zero").is_some() {
        if name.starts_with(b"cue_") {
            let reason = "counts events in an index that cannot be combined: leave it out with --exclude".to_owned();
            return Err(Refusal { object: display_path(path), reason });
        }
        let events = EVENT_FIELDS.into_iter().find(|field| sibling(field).is_some());
        return Ok(match (name, events) {
            (b"event_index", Some(events)) => Rule::positions(child_path(group, events), PositionForm::Starts),
            (b"event_time_zero", _) => time(file, at),
            _ if EVENT_FIELDS.contains(&name) => Rule::along(0),
            _ => Rule::once(),
        });
    }
    if class == "NXlog" {
        if name.starts_with(b"cue_") {
            let reason = "counts entries in an index that cannot be combined: leave it out with --exclude".to_owned();
            return Err(Refusal { object: display_path(path), reason });
        }
        return Ok(match name {
            b"time" => time(file, at),
            b"value" | b"raw_value" if sibling(b"time").is_some() => Rule::along(0),
            _ => Rule::once(),
        });
    }
    if class == "NXdata" {
        return data(file, at, group);
    }
    Ok(Rule::once())
}

/// Returns the rule of a field of an NXdata group: fields with the length of the signal's first axis are concatenated
/// along it.
fn data(file: &FileView<'_>, at: usize, group: &[u8]) -> Result<Rule, Refusal> {
    let Some(of_group) = file.find(group) else { return Ok(Rule::once()) };
    let signal = file.text(of_group, "signal").and_then(|name| file.find(&child_path(group, name.as_bytes())));
    let axes = named(file.attributes(of_group), "axes").and_then(texts).unwrap_or_default();
    let (Some(signal), Some(first)) = (signal, axes.first()) else { return Ok(Rule::once()) };
    let (Some(lengths), Some(dims)) = (file.dims(signal), file.dims(at)) else { return Ok(Rule::once()) };
    let is_axis = child_path(group, first.as_bytes()) == file.path_of(at);
    if is_axis && dims.first() == lengths.first().map(|length| length + 1).as_ref() {
        let reason = "holds edges of bins, one more than bins, which cannot be concatenated: merge the histograms in \
                      the program that made them, or leave the group out with --exclude"
            .to_owned();
        return Err(Refusal { object: display_path(file.path_of(at)), reason });
    }
    let is_other_axis = !is_axis && axes[1..].iter().any(|axis| child_path(group, axis.as_bytes()) == file.path_of(at));
    let is_along = dims.first() == lengths.first() && !is_other_axis && (is_axis || dims == lengths);
    Ok(if is_along { Rule::along(0) } else { Rule::once() })
}

/// Returns the rule of a time, whose reference is in `offset` or `start`.
fn time(file: &FileView<'_>, at: usize) -> Rule {
    let reference = if file.has(at, "start") { NexusReference::Start } else { NexusReference::Offset };
    Rule { values: ValueMeaning::Time(TimeAttributes::Reference(reference)), ..Rule::default() }
}
