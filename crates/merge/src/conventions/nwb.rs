//! NWB and other HDMF files: rows of tables and samples of series are concatenated, everything else is kept once.
//!
//! Tests compare outputs with pynwb. Sources: the NWB schema 2.8 and the HDMF common schema 1.8. Invariant: anything
//! other than columns of tables and samples of series must be equal in all inputs, unless an option takes the first input's.
//! What describes the channels of series must be equal under any option.

use super::{Choice, Convention, ConventionOptions, FileView, Refusal};
use crate::rules::{Placement, PositionForm, Rule, ValueMeaning};
use crate::schema::attribute::{named, strings};
use crate::schema::{AttributeValue, child_path, display_path, last_name, parent_path};
use raddle_hdf5::model::{ReferenceKind, TypeClass};

/// The convention of NWB and HDMF.
pub struct Nwb;

/// Attributes that determine the meaning of the values of a series or a column.
const MEANING: [&str; 24] = [
    "neurodata_type",
    "data_type",
    "namespace",
    "unit",
    "conversion",
    "offset",
    "resolution",
    "rate",
    "sampling_rate",
    "target",
    "table",
    "continuity",
    "stimulus_description",
    "sweep_number",
    "filtering",
    "exposure_time",
    "scan_line_rate",
    "power",
    "intensity",
    "pmt_gain",
    "binning",
    "field_of_view",
    "dimension",
    "interval",
];
/// Datasets of a series that have one element per sample.
const SAMPLES: [&[u8]; 3] = [b"data", b"timestamps", b"control"];
/// Datasets of a series that describe an axis other than that of the samples, or the values of `control`.
const OF_OTHER_AXES: [&[u8]; 7] = [
    b"channel_conversion",
    b"control_description",
    b"dimension",
    b"electrodes",
    b"feature_description",
    b"rois",
    b"source_channels",
];
/// Columns of a table in `/general` that state which electrode or cell a row describes, and where it lies.
const OF_ELECTRODES: [&[u8]; 7] = [b"id", b"x", b"y", b"z", b"location", b"group", b"group_name"];
/// Kind of tables that describe the values of other datasets, so that their rows do not follow those of inputs.
const MEANINGS: &str = "MeaningsTable";
/// Kinds of objects whose references to parts of other objects no rule can update.
const UNMERGED: [&str; 3] = ["TimeSeriesReferenceVectorData", "IndexSeries", "CSRMatrix"];

impl Convention for Nwb {
    fn choice(&self) -> Choice {
        Choice::Nwb
    }

    fn recognise(&self, file: &FileView<'_>) -> Option<String> {
        let version = file.root_text("nwb_version");
        if let Some(kind) = file.root_text("neurodata_type").or(version) {
            return Some(format!("the root group is an NWB {kind}"));
        }
        let (kind, namespace) = (file.root_text("data_type")?, file.root_text("namespace")?);
        Some(format!("the root group is a {kind} of HDMF ({namespace})"))
    }

    fn rules(&self, file: &FileView<'_>, _: &ConventionOptions) -> Result<Vec<(usize, Rule)>, Refusal> {
        let mut rules = Vec::new();
        for at in 0..file.len() {
            let path = file.path_of(at);
            let kind = kind_of(file, at);
            if UNMERGED.contains(&kind.as_str())
                || path.ends_with(b"/starting_time")
                || path.ends_with(b"/external_file")
            {
                return Err(refusal(path, &kind));
            }
            let rule = if file.column(at).is_some() {
                let rule = dataset(file, at, &kind)?;
                Rule { is_coordinate: rule.placement == Placement::Once && is_of_channels(file, path), ..rule }
            } else if REFERENCE_TIMES.contains(&path) {
                Rule::strictly_once()
            } else if file.is_group(at) {
                Rule::default().with_attributes(&["colnames"])
            } else {
                Rule { stays_scalar: true, ..Rule::default() }
            };
            rules.push((at, rule.with_attributes(&MEANING).ignoring(&["object_id"])));
        }
        Ok(rules)
    }
}

/// Returns the type of an object in NWB or another format of HDMF.
pub(super) fn kind_of(file: &FileView<'_>, at: usize) -> String {
    file.text(at, "neurodata_type").or_else(|| file.text(at, "data_type")).unwrap_or_default()
}

/// Paths of the reference times of a file.
const REFERENCE_TIMES: [&[u8]; 2] = [b"/session_start_time", b"/timestamps_reference_time"];

fn refusal(path: &[u8], kind: &str) -> Refusal {
    let reason = if path.ends_with(b"/starting_time") {
        "is the start of samples at a fixed rate, which those of another file do not follow: write the series with \
         timestamps, or leave it out with --exclude"
            .to_owned()
    } else if path.ends_with(b"/external_file") {
        "names files by their frames, which are counted in one file: leave the series out with --exclude".to_owned()
    } else {
        format!("is a {kind}, which refers to parts of other objects: leave it out with --exclude")
    };
    Refusal { object: display_path(path), reason }
}

fn dataset(file: &FileView<'_>, at: usize, kind: &str) -> Result<Rule, Refusal> {
    let path = file.path_of(at);
    let (group, name) = (parent_path(path), last_name(path));
    if path == b"/file_create_date" {
        return Ok(Rule::along(0));
    }
    if path.starts_with(b"/general/") || path.starts_with(b"/specifications/") {
        return Ok(Rule::once());
    }
    let parent = file.find(group);
    let is_in_table = parent.is_some_and(|parent| file.has(parent, "colnames"));
    let timestamps = file.find(&child_path(group, b"timestamps"));
    let is_synchronised = group.ends_with(b"/sync");
    let reference = |name: &str| named(file.attributes(at), name).and_then(object_path);
    if !is_in_table {
        if kind == "DynamicTableRegion" {
            let Some(table) = reference("table") else { return Err(without(path, "table")) };
            return Ok(match table.starts_with(b"/general/") {
                true => Rule::once(),
                false => Rule {
                    placement: Placement::Once,
                    ..Rule::positions(child_path(&table, b"id"), PositionForm::Rows)
                },
            });
        }
        let is_sample = match timestamps {
            Some(timestamps) => SAMPLES.contains(&name) || has_samples(file, at, timestamps)?,
            None => false,
        };
        return Ok(if is_sample || is_synchronised { Rule::along(0) } else { Rule::once() });
    }
    if is_description(file, group) {
        return Ok(Rule::strictly_once());
    }
    Ok(match kind {
        "VectorIndex" => {
            let Some(target) = reference("target") else { return Err(without(path, "target")) };
            Rule::positions(target, PositionForm::Ends)
        }
        "DynamicTableRegion" => {
            let Some(table) = reference("table") else { return Err(without(path, "table")) };
            match table.starts_with(b"/general/") {
                true => Rule::along(0),
                false => Rule::positions(child_path(&table, b"id"), PositionForm::Rows),
            }
        }
        "ElementIdentifiers" => Rule { values: ValueMeaning::Unique, ..Rule::along(0) },
        _ if is_elements_of_another(file, group, path) => Rule::strictly_once(),
        _ => Rule::along(0),
    })
}

/// Returns whether the dataset at `path` states which channels a series has, or where these are.
fn is_of_channels(file: &FileView<'_>, path: &[u8]) -> bool {
    let (group, name) = (parent_path(path), last_name(path));
    let has_columns = file.find(group).is_some_and(|at| file.has(at, "colnames"));
    match path.starts_with(b"/general/") {
        true => has_columns && OF_ELECTRODES.contains(&name),
        false => OF_OTHER_AXES.contains(&name) && file.find(&child_path(group, b"data")).is_some(),
    }
}

/// Returns whether a dataset of a series has an element for each of the `timestamps`, which may be a link to those of
/// another series. Refuses a dataset that may also describe another axis of the data.
fn has_samples(file: &FileView<'_>, at: usize, timestamps: usize) -> Result<bool, Refusal> {
    let path = file.path_of(at);
    let dims_of = |at: usize| file.dims(file.resolved(at));
    let data = file.find(&child_path(parent_path(path), b"data")).and_then(dims_of).unwrap_or_default();
    let samples = dims_of(timestamps).map_or(data.first().copied(), |dims| dims.first().copied());
    let rows = file.dims(at).and_then(|dims| dims.first().copied());
    if OF_OTHER_AXES.contains(&last_name(path)) || rows.is_none() || rows != samples {
        return Ok(false);
    }
    if data.iter().skip(1).any(|length| Some(*length) == rows) {
        let reason =
            "may describe the samples or another axis of the data, which is as long: leave it out with --exclude";
        return Err(Refusal { object: display_path(path), reason: reason.to_owned() });
    }
    Ok(true)
}

/// Returns whether the table at `path` describes values or axes of other datasets: the bands of a series, or meanings
/// of values.
fn is_description(file: &FileView<'_>, path: &[u8]) -> bool {
    let is_of_series = [b"timestamps".as_slice(), b"data"]
        .into_iter()
        .any(|name| file.find(&child_path(parent_path(path), name)).is_some());
    is_of_series || file.find(path).is_some_and(|at| kind_of(file, at) == MEANINGS)
}

fn without(path: &[u8], attribute: &str) -> Refusal {
    let reason = format!("has no attribute {attribute} that leads to a dataset: is the file damaged?");
    Refusal { object: display_path(path), reason }
}

/// Returns whether a dataset holds the labels to which the codes of another one refer.
fn is_elements_of_another(file: &FileView<'_>, group: &[u8], path: &[u8]) -> bool {
    let mut inside = file.inside(group);
    inside.any(|at| named(file.attributes(at), "elements").and_then(object_path).as_deref() == Some(path))
}

/// Returns the path to which an object reference leads.
pub(super) fn object_path(attribute: &AttributeValue) -> Option<Vec<u8>> {
    match &*attribute.datatype.class {
        TypeClass::Reference(ReferenceKind::Object) => {
            attribute.value.get(8..).filter(|path| !path.is_empty()).map(<[u8]>::to_vec)
        }
        _ => strings(attribute)?.into_iter().next().map(String::into_bytes),
    }
}
