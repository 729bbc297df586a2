//! Datasets of row numbers that no convention describes, so that a merge needs a rule of the user for each of them.
//!
//! Such a dataset is recognised by its name, and by the names of those next to it. Invariant: no dataset found here is
//! merged without a rule.

use super::refusal::{refuse, refuse_without_rules};
use super::{Convention, FileView, Refusal, nexus, nwb};
use crate::rules::user::UserRule;
use crate::schema::attribute::named;
use crate::schema::{child_path, display_path, last_name, parent_path};

/// Row numbers with a form that `--rule` supports.
struct Form {
    /// Name of the dataset.
    name: &'static str,
    /// Name of the dataset next to it to whose rows the numbers refer.
    target: &'static str,
    /// Word of the form in a rule.
    word: &'static str,
    /// What the numbers are.
    what: &'static str,
}

const FORMS: [Form; 3] = [
    Form { name: "indptr", target: "indices", word: "bounds", what: "positions in the rows of a sparse matrix" },
    Form {
        name: "cumulative_length",
        target: "flattened_data",
        word: "ends",
        what: "ends of the rows of a vector of vectors (LH5)",
    },
    Form {
        name: "indices",
        target: "data",
        word: "bounds",
        what: "positions of strings in the bytes of a vaex column",
    },
];

/// Names of datasets of row numbers with other forms, and their formats.
const NAMES: [(&str, &str); 7] = [
    ("/ph_index_beg", "a granule of ICESat-2"),
    ("/rx_sample_start_index", "a granule of GEDI"),
    ("/tx_sample_start_index", "a granule of GEDI"),
    ("/ref_region", "a file of h5flow"),
    ("/template_boundaries", "triggers of PyCBC"),
    ("/ms_to_idx", "events of DSEC"),
    ("/ms_map_idx", "events of M3ED"),
];

/// Returns the reason for refusing a file with row numbers that no rule of the user matches, if there are any.
pub(super) fn refusal(file: &FileView<'_>, rules: &[UserRule]) -> Option<Refusal> {
    let is_open = |at: &usize| !rules.iter().any(|rule| rule.matches(file.path_of(*at)));
    let refusal = |at| {
        of_name(file, at)
            .or_else(|| of_larcv(file, at))
            .or_else(|| of_other_convention(file, at))
            .or_else(|| of_form(file, at))
    };
    (1..file.len()).filter(|&at| file.column(at).is_some()).find_map(|at| refusal(at).filter(|_| is_open(&at)))
}

/// Returns the refusal of row numbers that are recognised by the name of the dataset alone.
fn of_name(file: &FileView<'_>, at: usize) -> Option<Refusal> {
    let path = file.path_of(at);
    let (_, format) = NAMES.iter().find(|(name, _)| path.ends_with(name.as_bytes()))?;
    let what = format!("{format}, in which this dataset holds row numbers of the file");
    refuse_without_rules(path, &what, "analyse the files one by one")
}

/// Returns the refusal of extents of larcv3: pairs of a first row and a number of rows.
fn of_larcv(file: &FileView<'_>, at: usize) -> Option<Refusal> {
    let path = file.path_of(at);
    let is_extents = path.starts_with(b"/Data/") && last_name(path) == b"extents";
    file.find(b"/Events/event_id").filter(|_| is_extents)?;
    let what = "a file of larcv3, in which this dataset holds row numbers of the file";
    refuse_without_rules(path, what, "use merge_larcv3_files.py")
}

/// Returns the refusal of row numbers of a convention that the file as a whole does not follow: an HDMF table, or
/// NeXus events, in a group of some other file.
fn of_other_convention(file: &FileView<'_>, at: usize) -> Option<Refusal> {
    let path = file.path_of(at);
    let sibling = |name: &[u8]| Some(child_path(parent_path(path), name)).filter(|path| file.find(path).is_some());
    let reference = |name: &str| named(file.attributes(at), name).and_then(nwb::object_path);
    let (rule, kind, choice) = match nwb::kind_of(file, at).as_str() {
        "VectorIndex" => (reference("target").map(|target| ("ends", target)), "the rows of an HDMF table", "nwb"),
        "DynamicTableRegion" => {
            let ids = reference("table").map(|table| child_path(&table, b"id"));
            (ids.map(|ids| ("rows", ids)), "the rows of an HDMF table", "nwb")
        }
        _ if last_name(path) == b"event_index" && sibling(b"event_time_zero").is_some() => {
            let events = nexus::EVENT_FIELDS.into_iter().find_map(sibling);
            (events.map(|events| ("starts", events)), "the NeXus events", "nexus")
        }
        _ => return None,
    };
    let is_known = match choice {
        "nwb" => nwb::Nwb.recognise(file).is_some(),
        _ => nexus::Nexus.recognise(file).is_some(),
    };
    if is_known {
        return None;
    }
    let what = format!("positions in {kind} in a file of another kind");
    let whole = format!("--convention {choice} merges the whole file by the rules of that convention");
    let hint = match rule {
        Some((word, target)) => {
            format!("--rule '{}: {word} of {}' renumbers them, {whole}", display_path(path), display_path(&target))
        }
        None => whole,
    };
    refuse(path, &what, &hint)
}

/// Returns the refusal of row numbers that `--rule` can renumber.
fn of_form(file: &FileView<'_>, at: usize) -> Option<Refusal> {
    let path = file.path_of(at);
    let Form { name, target, word, what } = FORMS.iter().find(|form| last_name(path) == form.name.as_bytes())?;
    let rows = file.find(&child_path(parent_path(path), target.as_bytes()))?;
    let is_meant = match *name {
        "indptr" => !is_of_anndata(file, parent_path(path)),
        "indices" => file.text(rows, "dtype").is_some_and(|kind| kind == "str"),
        _ => true,
    };
    if !is_meant {
        return None;
    }
    let from = display_path(path);
    let one = |rows| format!("--rule '{from}: {word} of {}' renumbers them", display_path(file.path_of(rows)));
    let hint = match file.is_group(rows) {
        true => one(rows_of_group(file, rows, name)?),
        false => format!("{}, --rule '{name}: {word} of {target}' those of all groups", one(rows)),
    };
    refuse(path, what, &hint)
}

/// Returns a dataset that has the rows of a group: the row numbers called `name`, if the group nests rows in rows, or a
/// column of a table.
fn rows_of_group(file: &FileView<'_>, group: usize, name: &str) -> Option<usize> {
    let path = file.path_of(group);
    file.find(&child_path(path, name.as_bytes())).or_else(|| file.inside(path).find(|&at| file.column(at).is_some()))
}

/// Returns whether a group is an anndata sparse matrix.
fn is_of_anndata(file: &FileView<'_>, group: &[u8]) -> bool {
    let marks = ["encoding-type", "h5sparse_format"];
    file.find(group).is_some_and(|at| marks.iter().any(|mark| file.has(at, mark)))
}
