//! NeXus: events, pulses and log entries are concatenated, everything else is kept once.
//!
//! Tests compare outputs with scippnexus. Sources: the NeXus definitions NXevent_data and NXlog, 2024.02. Invariant:
//! anything other than events, pulses and log entries must be equal in all inputs, including totals and durations, unless
//! an option takes the first input's. Coordinates must be equal under any option.

mod axes;
mod links;

use super::{Choice, Completion, Convention, ConventionOptions, FileView, Refusal};
use crate::rules::calendar::Calendar;
use crate::rules::time_units::{reference_ns, unit_ns};
use crate::rules::{NexusReference, Placement, PositionForm, Rule, TimeAttributes, ValueMeaning};
use crate::schema::attribute::{named, numbers, strings};
use crate::schema::join::Difference;
use crate::schema::{AttributeValue, child_path, display_path, last_name, parent_path};

/// The NeXus convention.
pub struct Nexus;

/// Attributes that determine the meaning of values.
const MEANING: [&str; 11] = [
    "NX_class",
    "units",
    "offset",
    "offset_units",
    "scaling_factor",
    "signal",
    "axes",
    "depends_on",
    "vector",
    "transformation_type",
    "start",
];
/// Fields with one element per event.
pub(super) const EVENT_FIELDS: [&[u8]; 3] = [b"event_id", b"event_time_offset", b"pulse_height"];
/// Fields with one element per pulse or per event.
const PULSE_FIELDS: [&[u8]; 5] =
    [b"event_id", b"event_index", b"event_time_offset", b"event_time_zero", b"pulse_height"];
/// Fields that summarise all events or entries, even if they are arrays of one element.
const SUMMARIES: [&[u8]; 8] = [
    b"average_value",
    b"average_value_error",
    b"average_value_errors",
    b"description",
    b"duration",
    b"maximum_value",
    b"minimum_value",
    b"total_counts",
];
/// Classes of groups whose fields readers assemble to one object with axes.
const ASSEMBLED: [&str; 4] = ["NXdata", "NXdetector", "NXlog", "NXmonitor"];
/// Fields of a detector to whose elements events refer.
const PIXELS: [&[u8]; 3] = [b"detector_number", b"pixel_id", b"spectrum_index"];
/// Fields of a detector or monitor that hold a place for each pixel.
const PLACES: [&[u8]; 7] = [
    b"azimuthal_angle",
    b"distance",
    b"polar_angle",
    b"time_of_flight",
    b"x_pixel_offset",
    b"y_pixel_offset",
    b"z_pixel_offset",
];

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
        let has_events = (0..file.len()).any(|at| last_name(file.path_of(at)) == b"event_index");
        for (at, mut rule) in links::placed(file)?.into_iter().enumerate() {
            rule.stays_scalar = stays_scalar(file, at);
            rule.is_coordinate = rule.placement == Placement::Once && is_coordinate(file, at, has_events);
            // Attributes that name the axes of fields: `NAME_indices`.
            let names = file.attributes(at).iter().map(|attribute| &attribute.name);
            rule.attributes.extend(names.filter(|name| name.ends_with(b"_indices")).cloned());
            if is_time(file, at) && !matches!(rule.values, ValueMeaning::Time(_)) {
                rule.attributes.extend(dates(file, at));
            }
            rule.attributes.retain(|name| !MEANING.iter().any(|known| known.as_bytes() == name));
            rules.push((at, rule.with_attributes(&MEANING)));
        }
        Ok(rules)
    }

    fn settle(&self, completion: &mut Completion<'_>) -> Vec<Difference> {
        axes::settle(completion)
    }
}

/// Returns the rule of a dataset as a field at `path`, which may be a link to it.
fn field(file: &FileView<'_>, at: usize, path: &[u8]) -> Result<Rule, Refusal> {
    let (group, name) = (parent_path(path), last_name(path));
    let sibling = |name: &[u8]| file.find(&child_path(group, name));
    let class = file.find(group).and_then(|at| file.text(at, "NX_class")).unwrap_or_default();
    let rows = |at: usize| file.dims(file.resolved(at)).and_then(|dims| dims.first().copied());
    let is_as_long_as =
        |other: &[u8]| !SUMMARIES.contains(&name) && rows(at).is_some() && sibling(other).and_then(rows) == rows(at);
    if sibling(b"event_index").is_some() && sibling(b"event_time_zero").is_some() {
        if name.starts_with(b"cue_") {
            let reason = "counts events in an index that cannot be combined: leave it out with --exclude".to_owned();
            return Err(Refusal { object: display_path(path), reason });
        }
        let pulses = sibling(b"event_time_zero").and_then(rows);
        if name == b"event_index" && rows(at) == pulses.map(|pulses| pulses + 1) {
            let reason =
                "has one entry more than event_time_zero: leave out the last, which starts no pulse".to_owned();
            return Err(Refusal { object: display_path(path), reason });
        }
        let events = EVENT_FIELDS.into_iter().find(|field| sibling(field).is_some());
        let is_of_pixels = PIXELS.contains(&name) || PLACES.contains(&name);
        let is_per_row =
            !is_of_pixels && [Some(b"event_time_zero".as_slice()), events].into_iter().flatten().any(is_as_long_as);
        if is_per_row && !PULSE_FIELDS.contains(&name) && PIXELS.into_iter().any(is_as_long_as) {
            let reason =
                "may have an element for each pixel or for each pulse or event, of which there are equally many: \
                          leave it out with --exclude"
                    .to_owned();
            return Err(Refusal { object: display_path(path), reason });
        }
        return Ok(match (name, events) {
            (b"event_index", Some(events)) => Rule::positions(child_path(group, events), PositionForm::Starts),
            (b"event_time_zero", _) => time(file, at),
            _ if EVENT_FIELDS.contains(&name) || is_per_row => Rule::along(0),
            _ => Rule::once(),
        });
    }
    if class == "NXlog" {
        if name.starts_with(b"cue_") {
            let reason = "counts entries in an index that cannot be combined: leave it out with --exclude".to_owned();
            return Err(Refusal { object: display_path(path), reason });
        }
        let has_time = sibling(b"time").is_some();
        return Ok(match (name, times_of_further_log(file, group, name)) {
            (b"time", _) => time(file, at),
            (b"value" | b"raw_value", _) if has_time => Rule::along(0),
            (_, Some(times)) if times == name => time(file, at),
            (_, Some(times)) if is_as_long_as(&times) => Rule::along(0),
            _ if is_as_long_as(b"time") => Rule::along(0),
            _ => Rule::once(),
        });
    }
    if class == "NXdata" {
        return data(file, at, path);
    }
    Ok(Rule::once())
}

/// Returns the rule of a field of an NXdata group: fields with the length of the signal's first axis are concatenated
/// along it.
fn data(file: &FileView<'_>, at: usize, path: &[u8]) -> Result<Rule, Refusal> {
    let group = parent_path(path);
    let Some(of_group) = file.find(group) else { return Ok(Rule::once()) };
    let signal = file.text(of_group, "signal").and_then(|name| file.find(&child_path(group, name.as_bytes())));
    let axes = named(file.attributes(of_group), "axes").and_then(strings).unwrap_or_default();
    let (Some(signal), Some(first)) = (signal, axes.first()) else { return Ok(Rule::once()) };
    let (Some(lengths), Some(dims)) = (file.dims(file.resolved(signal)), file.dims(at)) else {
        return Ok(Rule::once());
    };
    let is_axis = child_path(group, first.as_bytes()) == path;
    let edges = || {
        let reason = "holds edges of bins, one more than bins, which cannot be concatenated: merge the histograms in \
                      the program that made them, or leave the group out with --exclude"
            .to_owned();
        Err(Refusal { object: display_path(path), reason })
    };
    let are_edges =
        |length: Option<&u64>| length.is_some() && length == lengths.first().map(|length| length + 1).as_ref();
    if is_axis {
        return if are_edges(dims.first()) { edges() } else { Ok(Rule::along(0)) };
    }
    // Errors of a field have its dimensions.
    let name = String::from_utf8_lossy(last_name(path)).into_owned();
    let of = name.strip_suffix("_errors").or(name.strip_suffix("_error")).unwrap_or(&name);
    let indices = named(file.attributes(of_group), format!("{of}_indices")).and_then(numbers);
    let axis = match indices {
        Some(indices) => indices.iter().position(|&index| index == 0.0),
        None if axes.iter().any(|axis| *axis == of) => (axes[0] == of).then_some(0),
        None => {
            let fits = |from: usize| lengths[from..].starts_with(&dims);
            let is_ambiguous = !dims.is_empty() && fits(0) && (1..lengths.len()).any(fits);
            if is_ambiguous {
                let reason = format!(
                    "may lie along several axes of the signal: name its axis in the attribute {name}_indices of its \
                     group, or leave it out with --exclude"
                );
                return Err(Refusal { object: display_path(path), reason });
            }
            match !dims.is_empty() && fits(0) {
                true => Some(0),
                false => axes::guess(&lengths, &dims).and_then(|axes| axes.iter().position(|&axis| axis == 0)),
            }
        }
    };
    match axis {
        Some(axis) if are_edges(dims.get(axis)) => edges(),
        Some(axis) if axis < dims.len() => Ok(Rule::along(axis)),
        _ => Ok(Rule::once()),
    }
}

/// Returns whether scalars and attributes must remain such, because readers could not assemble their group, or the
/// transformation that they describe, from arrays.
fn stays_scalar(file: &FileView<'_>, at: usize) -> bool {
    let group = if file.is_group(at) { Some(at) } else { file.find(parent_path(file.path_of(at))) };
    let class = group.and_then(|group| file.text(group, "NX_class")).unwrap_or_default();
    file.has(at, "transformation_type") || ASSEMBLED.contains(&class.as_str())
}

/// Returns whether a field that is carried once holds coordinates of fields that are concatenated: coordinates of a
/// signal or, if the file `has_events`, of the pixels to which events refer.
fn is_coordinate(file: &FileView<'_>, at: usize, has_events: bool) -> bool {
    let path = file.path_of(at);
    let (group, name) = (parent_path(path), last_name(path));
    let Some(of_group) = file.find(group) else { return false };
    // Readers take an array of one element for a scalar, unless it is an axis.
    let has_elements = file.dims(at).is_some_and(|dims| dims.iter().product::<u64>() > 1);
    match file.text(of_group, "NX_class").unwrap_or_default().as_str() {
        "NXdata" => {
            let name = String::from_utf8_lossy(name);
            let name = name.strip_suffix("_errors").or(name.strip_suffix("_error")).unwrap_or(&name);
            let names = |attribute| {
                named(file.attributes(of_group), attribute).and_then(strings).unwrap_or_default().into_iter()
            };
            let is_signal = names("signal").chain(names("auxiliary_signals")).any(|signal| signal == name);
            let is_axis = names("axes").any(|axis| axis == name) || file.has(of_group, &format!("{name}_indices"));
            !is_signal && (is_axis || has_elements)
        }
        "NXdetector" | "NXmonitor" => has_events && (PIXELS.contains(&name) || has_elements && PLACES.contains(&name)),
        _ => false,
    }
}

/// Returns the name of the times of a further log in the group of an NXlog, if the field belongs to one: an alarm or
/// the state of a connection has its own times. The names of all fields of such a log begin with its name.
fn times_of_further_log(file: &FileView<'_>, group: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    let sibling = |log: &[u8], end: &[u8]| file.find(&child_path(group, &[log, end].concat()));
    let has_times = |log: &[u8]| {
        sibling(log, b"_time").and_then(|at| file.dims(file.resolved(at))).is_some_and(|dims| !dims.is_empty())
    };
    // Readers take these fields for its values.
    let has_values = |log: &[u8]| sibling(log, if log == b"alarm" { b"_severity" } else { b"" }).is_some();
    let log = (1..=name.len()).rev().map(|end| &name[..end]).find(|log| has_times(log) && has_values(log))?;
    Some([log, b"_time"].concat())
}

/// Returns the rule of a time, whose reference is in `offset` or `start`.
fn time(file: &FileView<'_>, at: usize) -> Rule {
    let reference = if file.has(at, "start") { NexusReference::Start } else { NexusReference::Offset };
    let rule = Rule { values: ValueMeaning::Time(TimeAttributes::Reference(reference)), ..Rule::default() };
    let others = dates(file, at).filter(|name| name != reference.attribute().as_bytes());
    Rule { attributes: others.collect(), ..rule }
}

/// Returns whether the values of a field are times, which readers count from a date in its attributes.
fn is_time(file: &FileView<'_>, at: usize) -> bool {
    file.column(at).is_some() && file.text(at, "units").is_some_and(|units| unit_ns(&units).is_some())
}

/// Returns the names of the attributes of an object that are dates. Readers accept any of them as a reference.
fn dates<'a>(file: &FileView<'a>, at: usize) -> impl Iterator<Item = Vec<u8>> + use<'a> {
    let is_date = |attribute: &&AttributeValue| {
        let date = strings(attribute).and_then(|strings| reference_ns(strings.first()?, Calendar::ProlepticGregorian));
        date.is_some()
    };
    file.attributes(at).iter().filter(is_date).map(|attribute| attribute.name.clone())
}
