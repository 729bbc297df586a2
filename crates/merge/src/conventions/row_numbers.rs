//! Datasets of row numbers that no convention describes, so that a merge needs a rule of the user for each of them.
//!
//! Such a dataset is recognised by its name, and by the names of those next to it. Invariant: no dataset found here is
//! merged without a rule.

use super::refusal::{refuse, refuse_without_rules};
use super::{Convention, FileView, Refusal, nexus, nwb};
use crate::rules::user::UserRule;
use crate::schema::attribute::named;
use crate::schema::{child_path, display_path, last_name, parent_path};
use raddle_hdf5::number::NumberType;

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

const SPARSE: &str = "positions in the rows of a sparse matrix";
const FACES: &str = "numbers of the points of a mesh";

const FORMS: [Form; 20] = [
    Form { name: "indptr", target: "indices", word: "bounds", what: SPARSE },
    Form { name: "crow_indices", target: "col_indices", word: "bounds", what: SPARSE },
    Form { name: "rowptr", target: "col", word: "bounds", what: SPARSE },
    Form { name: "rowptr", target: "colind", word: "bounds", what: SPARSE },
    Form { name: "row_ptr", target: "col_ind", word: "bounds", what: SPARSE },
    Form { name: "row_ptr", target: "col_idx", word: "bounds", what: SPARSE },
    Form { name: "row_splits", target: "values", word: "bounds", what: "bounds of the rows of a ragged tensor" },
    Form { name: "row_splits", target: "flat_values", word: "bounds", what: "bounds of the rows of a ragged tensor" },
    Form { name: "faces", target: "vertices", word: "rows", what: FACES },
    Form { name: "faces", target: "points", word: "rows", what: FACES },
    Form { name: "triangles", target: "vertices", word: "rows", what: FACES },
    Form { name: "triangles", target: "points", word: "rows", what: FACES },
    Form { name: "cells", target: "points", word: "rows", what: FACES },
    Form { name: "cells", target: "vertices", word: "rows", what: FACES },
    Form { name: "elements", target: "nodes", word: "rows", what: FACES },
    Form { name: "connectivity", target: "coordinates", word: "rows", what: FACES },
    Form { name: "connectivity", target: "points", word: "rows", what: FACES },
    Form { name: "topology", target: "geometry", word: "rows", what: FACES },
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
const NAMES: [(&str, &str); 14] = [
    ("/ph_index_beg", "a granule of ICESat-2"),
    ("/ph_ndx_beg", "a granule of ICESat-2"),
    ("/rx_sample_start_index", "a granule of GEDI"),
    ("/tx_sample_start_index", "a granule of GEDI"),
    ("/ref_region", "a file of h5flow"),
    ("/template_boundaries", "triggers of PyCBC"),
    ("/ms_to_idx", "events of DSEC"),
    ("/ms_map_idx", "events of M3ED"),
    ("/image_raw_event_inds", "events of MVSEC"),
    ("/mergerTreeStartIndex", "merger trees of Galacticus"),
    ("/img_to_first_box", "boxes of Visual Genome"),
    ("/img_to_first_rel", "relationships of Visual Genome"),
    ("/label_start_ix", "captions of neuraltalk2"),
    ("/pos_boxes", "features of bottom-up attention"),
];

/// Returns the reason for refusing a file with row numbers that no rule of the user matches, if there are any.
pub(super) fn refusal(file: &FileView<'_>, rules: &[UserRule]) -> Option<Refusal> {
    let is_open = |at: &usize| !rules.iter().any(|rule| rule.matches(file.path_of(*at)));
    let refusal = |at| {
        of_name(file, at)
            .or_else(|| of_larcv(file, at))
            .or_else(|| of_other_convention(file, at))
            .or_else(|| of_form(file, at))
            .or_else(|| of_names(file, at))
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
    let forms = FORMS.iter().filter(|form| last_name(path) == form.name.as_bytes());
    let beside = |form: &'static Form| {
        let rows = file.find(&child_path(parent_path(path), form.target.as_bytes()))?;
        Some((form, rows))
    };
    let (Form { name, target, word, what }, rows) = forms.filter_map(beside).next()?;
    let is_meant = match *name {
        "indptr" => !is_of_anndata(file, parent_path(path)),
        "indices" => file.text(rows, "dtype").is_some_and(|kind| kind == "str"),
        _ if *word == "rows" => numbers_points(file, at, rows),
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

/// Returns whether a dataset has one element for each atom of the conformations next to it, whose first axis counts the
/// conformations.
fn describes_atoms(file: &FileView<'_>, at: usize) -> bool {
    const POSITIONS: [&[u8]; 3] = [b"coordinates", b"conformations", b"positions"];
    let beside = |name: &[u8]| file.find(&child_path(parent_path(file.path_of(at)), name));
    let of_atoms = file.dims(at);
    let mut conformations = POSITIONS.into_iter().filter_map(beside).filter_map(|at| file.dims(at));
    conformations
        .any(|dims| matches!((dims.as_slice(), of_atoms.as_deref()), ([_, count, 3], Some([atoms])) if count == atoms))
}

/// Returns whether the dataset `points` holds points of two or three coordinates, and `at` lists of their numbers.
fn numbers_points(file: &FileView<'_>, at: usize, points: usize) -> bool {
    let is_integer = |at: usize| file.class(at).and_then(NumberType::of).map(NumberType::is_integer);
    let width = |at: usize| file.dims(at).filter(|dims| dims.len() == 2).map(|dims| dims[1]);
    is_integer(at) == Some(true)
        && is_integer(points) == Some(false)
        && width(at).is_some_and(|count| count > 1)
        && width(points).is_some_and(|count| count == 2 || count == 3)
}

/// Returns the refusal of other positions in the rows of a sparse matrix, and of codes of categories, that are
/// recognised by the names of the datasets.
fn of_names(file: &FileView<'_>, at: usize) -> Option<Refusal> {
    let path = file.path_of(at);
    let has = |name: &[u8]| file.find(&child_path(parent_path(path), name)).is_some();
    let name = last_name(path);
    if name.ends_with(b"indptr") && !is_of_anndata(file, parent_path(path)) {
        let from = display_path(path);
        let hint = format!(
            "--rule '{from}: bounds of TARGET' renumbers them, with the dataset whose rows they bound as TARGET"
        );
        return refuse(path, SPARSE, &hint);
    }
    if name == b"colptr" && has(b"rowval") {
        let what = "positions in a sparse matrix of Julia, which count from 1";
        return refuse_without_rules(path, what, "concatenate in Julia");
    }
    if [b"atomic_numbers".as_slice(), b"species"].contains(&name) && describes_atoms(file, at) {
        let from = display_path(path);
        let hint = format!(
            "--rule '{from}: once' carries them once, --rule '{}: once' those of all groups",
            display_path(name)
        );
        return refuse(path, "atoms that all conformations of the group share", &hint);
    }
    if name == b"edge_index" && file.dims(at).is_some_and(|dims| dims.len() == 2 && dims[0] == 2) {
        let what = "edges of a graph, which number its nodes and have the edges on the last axis";
        return refuse_without_rules(path, what, "give each graph a group of its own, then use --union");
    }
    let is_coded = |group: usize| file.text(group, "type").is_some_and(|kind| kind == "dictionary_encoded");
    if parent_path(path).ends_with(b"/indices") || name == b"indices" {
        let group = if name == b"indices" { parent_path(path) } else { parent_path(parent_path(path)) };
        if file.find(group).is_some_and(is_coded) {
            let what = "codes of a vaex column, which number the values of its dictionary";
            return refuse_without_rules(path, what, "write the column without its dictionary");
        }
    }
    None
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
