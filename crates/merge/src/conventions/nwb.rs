//! NWB and other files of HDMF: rows of tables and samples of series are concatenated, everything else is kept once.
//!
//! Tests compare outputs with pynwb. Sources: the NWB schema 2.8 and the HDMF common schema 1.8. Invariant: anything
//! other than columns of tables and samples of series must be equal in all inputs.

use super::{Choice, Convention, ConventionOptions, FileView, Refusal};
use crate::rules::{PositionForm, Rule, ValueMeaning};
use crate::schema::attribute::{named, texts};
use crate::schema::parent_path;
use crate::schema::{AttributeValue, child_path, display_path};
use raddle_hdf5::model::{ReferenceKind, TypeClass};

/// The convention of NWB and HDMF.
pub struct Nwb;

/// Attributes that determine the meaning of the values of a series or a column.
const MEANING: [&str; 9] =
    ["neurodata_type", "namespace", "unit", "conversion", "offset", "resolution", "rate", "target", "table"];
/// Datasets of a series that have one element per sample.
const SAMPLES: [&[u8]; 3] = [b"data", b"timestamps", b"control"];
/// Kinds of objects whose references to parts of other objects no rule can update.
const UNMERGED: [&str; 3] = ["TimeSeriesReferenceVectorData", "IndexSeries", "CSRMatrix"];

impl Convention for Nwb {
    fn choice(&self) -> Choice {
        Choice::Nwb
    }

    fn recognise(&self, file: &FileView<'_>) -> Option<String> {
        let version = file.root_text("nwb_version");
        let kind = file.root_text("neurodata_type").or(version)?;
        Some(format!("the root group is a {kind} of NWB"))
    }

    fn rules(&self, file: &FileView<'_>, _: &ConventionOptions) -> Result<Vec<(usize, Rule)>, Refusal> {
        let mut rules = Vec::new();
        for at in 0..file.len() {
            let path = file.path_of(at);
            let kind = file.text(at, "neurodata_type").unwrap_or_default();
            if UNMERGED.contains(&kind.as_str())
                || path.ends_with(b"/starting_time")
                || path.ends_with(b"/external_file")
            {
                return Err(refusal(path, &kind));
            }
            let rule = if file.column(at).is_some() {
                dataset(file, at, &kind)?
            } else if REFERENCE_TIMES.contains(&path) {
                Rule::strictly_once()
            } else if file.is_group(at) {
                Rule::default().with_attributes(&["colnames"])
            } else {
                Rule::default()
            };
            rules.push((at, rule.with_attributes(&MEANING).ignoring(&["object_id"])));
        }
        Ok(rules)
    }
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
    let (group, name) = (parent_path(path), path.rsplit(|&byte| byte == b'/').next().unwrap_or_default());
    if path == b"/file_create_date" {
        return Ok(Rule::along(0));
    }
    if path.starts_with(b"/general/") || path.starts_with(b"/specifications/") {
        return Ok(Rule::once());
    }
    let parent = file.find(group);
    let is_in_table = parent.is_some_and(|parent| file.has(parent, "colnames"));
    let is_in_series = file.find(&child_path(group, b"timestamps")).is_some();
    let is_synchronised = group.ends_with(b"/sync");
    if !is_in_table {
        let is_sample = is_in_series && SAMPLES.contains(&name) || is_synchronised;
        return Ok(if is_sample { Rule::along(0) } else { Rule::once() });
    }
    let reference = |name: &str| named(file.attributes(at), name).and_then(object_path);
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

fn without(path: &[u8], attribute: &str) -> Refusal {
    let reason = format!("has no attribute {attribute} that leads to a dataset: is the file damaged?");
    Refusal { object: display_path(path), reason }
}

/// Whether a dataset holds the labels to which the codes of another one refer.
fn is_elements_of_another(file: &FileView<'_>, group: &[u8], path: &[u8]) -> bool {
    let mut inside = file.inside(group);
    inside.any(|at| named(file.attributes(at), "elements").and_then(object_path).as_deref() == Some(path))
}

/// Returns the path to which an object reference leads.
fn object_path(attribute: &AttributeValue) -> Option<Vec<u8>> {
    match &*attribute.datatype.class {
        TypeClass::Reference(ReferenceKind::Object) => {
            attribute.value.get(8..).filter(|path| !path.is_empty()).map(<[u8]>::to_vec)
        }
        _ => texts(attribute)?.into_iter().next().map(String::into_bytes),
    }
}
