//! Files whose contents must not be concatenated, whatever their datasets look like. Each kind is recognised by a mark
//! that its own library checks, and refused by name.
//!
//! Invariant: only marks that no other kind of file has are checked.

use super::refusal::{refuse, refuse_without_rules};
use super::{FileView, Refusal, marks, row_numbers};
use crate::rules::user::UserRule;
use crate::schema::{child_path, display_path, last_name, parent_path};

/// Returns the reason why the file must not be concatenated with others, if there is one. Some formats can be merged by
/// rules of the user: with `rules` they are not refused, unless no rule matches a dataset of row numbers.
pub(super) fn refusal(file: &FileView<'_>, rules: &[UserRule]) -> Option<Refusal> {
    let known = [events, keras, matlab, cooler, jld2, hdf_eos, pandas_fixed, anndata_parts, loom, cgns, odim];
    let by_rules =
        [ten_x, gadget, h5md, ice_cube, ctapipe, open_pmd, vtk, sonata, hepfile, marked, h5io_objects, awkward];
    let by_rules = if rules.is_empty() { &by_rules[..] } else { &[] };
    let found = known.iter().chain(by_rules).find_map(|kind| kind(file));
    found.or_else(|| row_numbers::refusal(file, rules))
}

/// What to do with event files.
const EVENTS_MERGE: &str = "use raddle events merge";

/// Returns the reason why not even a copy of the file alone has what its readers need, if there is one.
pub(super) fn refusal_of_copy(file: &FileView<'_>) -> Option<Refusal> {
    let lumi = cce_events(file)?;
    file.find(b"/Lumi/EventIDs")?;
    file.find(b"/Lumi/Offsets")?;
    let reason = format!(
        "an event file of HEP-CCE, which numbers its products by the order of attributes; a copy does not keep this \
         order: {EVENTS_MERGE}"
    );
    Some(Refusal { object: display_path(file.path_of(lumi)), reason })
}

/// Returns the group of an event file of HEP-CCE.
fn cce_events(file: &FileView<'_>) -> Option<usize> {
    let lumi = file.find(b"/Lumi").filter(|&at| file.is_group(at) && file.has(at, "run") && file.has(at, "lumisec"))?;
    [b"/Lumi/Event_IDs".as_slice(), b"/Lumi/EventIDs"].iter().find_map(|ids| file.find(ids))?;
    Some(lumi)
}

fn events(file: &FileView<'_>) -> Option<Refusal> {
    let is_ours = |at: &usize| file.is_group(*at) && file.has(*at, "raddle_layout");
    if let Some(at) = (0..file.len()).find(is_ours) {
        return refuse(file.path_of(at), "an event file of raddle", EVENTS_MERGE);
    }
    let what = "an event file of HEP-CCE, which stores running sums of sizes and depends on the order of attributes";
    refuse(file.path_of(cce_events(file)?), what, EVENTS_MERGE)
}

fn keras(file: &FileView<'_>) -> Option<Refusal> {
    let is_keras = file.has(0, "keras_version") || file.has(0, "layer_names") || file.find(b"/model_weights").is_some();
    let is_layer = |at: &usize| {
        let path = file.path_of(*at);
        let is_of_layers = || path.starts_with(b"/layers/") || file.find(&child_path(path, b"0")).is_some();
        path.ends_with(b"/vars") && file.is_group(*at) && is_of_layers()
    };
    let weights = if is_keras { Some(0) } else { (0..file.len()).find(is_layer) }?;
    let what = "weights of a Keras model, which belong to one network";
    refuse(file.path_of(weights), what, "load the models in Keras and average or ensemble them there")
}

fn matlab(file: &FileView<'_>) -> Option<Refusal> {
    let at = (1..file.len()).find(|&at| file.has(at, "MATLAB_class"))?;
    let class = file.text(at, "MATLAB_class").unwrap_or_default();
    let what = format!(
        "a MATLAB {class}: files of MATLAB begin with a header that a merge does not write, and axis 0 is the last axis in \
         MATLAB"
    );
    refuse(file.path_of(at), &what, "concatenate in MATLAB and save again")
}

fn cooler(file: &FileView<'_>) -> Option<Refusal> {
    let is_cooler = |at: &usize| {
        file.is_group(*at)
            && file.text(*at, "format").is_some_and(|format| {
                ["HDF5::Cooler", "HDF5::MCOOL", "HDF5::SCOOL"].iter().any(|known| format.starts_with(known))
            })
    };
    let at = (0..file.len()).find(is_cooler)?;
    refuse(file.path_of(at), "a contact matrix of cooler, whose bins must be summed", "use cooler merge")
}

fn jld2(file: &FileView<'_>) -> Option<Refusal> {
    let types = file.find(b"/_types")?;
    let is_julia = file.inside(b"/_types").any(|at| file.has(at, "julia type") || file.has(at, "julia_type"));
    if !is_julia && !file.has(types, "julia type") {
        return None;
    }
    refuse(b"/_types", "a JLD2 file, whose types are numbered within it", "use JLD2 in Julia")
}

fn hdf_eos(file: &FileView<'_>) -> Option<Refusal> {
    let metadata = file.find(b"/HDFEOS INFORMATION/StructMetadata.0")?;
    let what = "HDF-EOS structure metadata, which describes the shape of every dataset";
    refuse(file.path_of(metadata), what, "convert the swaths or grids to netCDF first, with gdal_translate or HEG")
}

fn pandas_fixed(file: &FileView<'_>) -> Option<Refusal> {
    let at = (0..file.len())
        .find(|&at| matches!(file.text(at, "pandas_type").as_deref(), Some("frame" | "series" | "index" | "wide")))?;
    let what = "a frame in pandas' fixed format, whose blocks and index cannot be extended";
    refuse(file.path_of(at), what, "write it with format='table', or read the frames, pandas.concat and write once")
}

/// Refuses anndata elements outside of an AnnData file, such as those of MuData and those that were written into a
/// group.
fn anndata_parts(file: &FileView<'_>) -> Option<Refusal> {
    const PARTS: [&str; 6] = ["MuData", "anndata", "csr_matrix", "csc_matrix", "dataframe", "categorical"];
    if is_anndata(file) {
        return None;
    }
    let is_part = |at: &usize| {
        file.is_group(*at) && file.text(*at, "encoding-type").is_some_and(|encoding| PARTS.contains(&encoding.as_str()))
    };
    let at = (0..file.len()).find(is_part)?;
    let encoding = file.text(at, "encoding-type").unwrap_or_default();
    let what = format!("an anndata element ({encoding}) in a file that is not an AnnData file");
    refuse(file.path_of(at), &what, "use mudata.concat or anndata.concat")
}

fn is_anndata(file: &FileView<'_>) -> bool {
    file.root_text("encoding-type").is_some_and(|encoding| encoding == "anndata")
}

fn loom(file: &FileView<'_>) -> Option<Refusal> {
    let version = file.has(0, "LOOM_SPEC_VERSION") || file.find(b"/attrs/LOOM_SPEC_VERSION").is_some();
    let has_all = [b"/matrix".as_slice(), b"/row_attrs", b"/col_attrs"].iter().all(|path| file.find(path).is_some());
    if !version && !has_all {
        return None;
    }
    let what = "a loom file, whose cells are the second axis of the matrix";
    refuse(b"/matrix", what, "use loompy.combine, or anndata.io.read_loom and write .h5ad, which raddle merges")
}

fn cgns(file: &FileView<'_>) -> Option<Refusal> {
    let is_base = |at: &usize| file.is_group(*at) && file.text(*at, "label").is_some_and(|label| label == "CGNSBase_t");
    let at = (1..file.len()).find(is_base)?;
    let what = "a CGNS base, whose zones state their sizes and number their nodes";
    refuse(file.path_of(at), what, "use the CGNS tools, or --union for bases with different names")
}

fn odim(file: &FileView<'_>) -> Option<Refusal> {
    file.root_text("Conventions").filter(|conventions| conventions.starts_with("ODIM_H5"))?;
    let what = "a product of a weather radar (ODIM_H5), whose time and scale are attributes of each file";
    refuse(b"/", what, "read the products with xradar or wradlib")
}

/// Refuses Python objects that h5io wrote into a group with a title of the user.
fn h5io_objects(file: &FileView<'_>) -> Option<Refusal> {
    let is_key = |at: &usize| {
        let path = file.path_of(*at);
        let is_of_dict = |group: usize| file.text(group, "TITLE").is_some_and(|title| title == "dict");
        last_name(path).starts_with(b"key_")
            && file.has(*at, "TITLE")
            && file.find(parent_path(path)).is_some_and(is_of_dict)
    };
    let at = (1..file.len()).find(is_key)?;
    let what = "Python objects in h5io, which stores strings as arrays of their bytes";
    refuse_without_rules(parent_path(file.path_of(at)), what, "read the files with h5io and write one")
}

fn ten_x(file: &FileView<'_>) -> Option<Refusal> {
    let has = |group: &[u8], names: &[&str]| {
        names.iter().all(|name| file.find(&[group, b"/", name.as_bytes()].concat()).is_some())
    };
    let is_matrix = |at: &usize| has(file.path_of(*at), &["barcodes", "indices", "indptr", "shape"]);
    let groups = (1..file.len()).filter(|&at| file.is_group(at));
    let found = groups.into_iter().find(is_matrix).map(|at| file.path_of(at));
    let found = found.or_else(|| has(b"", &["barcodes", "barcode_idx", "umi"]).then_some(b"/barcode_idx"))?;
    let what = "counts of 10x Genomics, whose cells are numbered within the file";
    let instead = "use scanpy.read_10x_h5 and write .h5ad, which raddle merges, or cellranger aggr";
    refuse_without_rules(found, what, instead)
}

fn gadget(file: &FileView<'_>) -> Option<Refusal> {
    const COUNTS: [&str; 3] = ["NumPart_ThisFile", "Ngroups_ThisFile", "Ntrees_ThisFile"];
    let header = file.find(b"/Header").filter(|&at| COUNTS.iter().any(|count| file.has(at, count)))?;
    let what = "a snapshot or catalogue of Gadget, AREPO or SWIFT, whose header counts the particles or groups of the file \
                (NumPart_ThisFile)";
    refuse_without_rules(file.path_of(header), what, "read the files of a snapshot together with yt or pynbody")
}

fn h5md(file: &FileView<'_>) -> Option<Refusal> {
    let mark = file.find(b"/h5md").filter(|&at| file.is_group(at) && file.has(at, "version"))?;
    let what = "a trajectory in H5MD, which stores elements that do not depend on time without an axis of time";
    refuse_without_rules(file.path_of(mark), what, "concatenate with MDAnalysis")
}

fn ice_cube(file: &FileView<'_>) -> Option<Refusal> {
    let index = file.find(b"/__I3Index__").filter(|&at| file.is_group(at))?;
    let what = "tables of IceCube, whose index holds row numbers";
    refuse_without_rules(file.path_of(index), what, "use the merge script of hdfwriter")
}

fn ctapipe(file: &FileView<'_>) -> Option<Refusal> {
    file.root_text("CTA PRODUCT DATA MODEL NAME")?;
    refuse_without_rules(b"/", "a file of ctapipe, which describes its instrument once", "use ctapipe-merge")
}

fn open_pmd(file: &FileView<'_>) -> Option<Refusal> {
    file.root_text("openPMD")?;
    let what = "an openPMD file, whose meshes and particle patches state their extent and offsets";
    refuse_without_rules(b"/", what, "use openpmd-pipe, or --union for iterations in files of their own")
}

fn vtk(file: &FileView<'_>) -> Option<Refusal> {
    let data = file.find(b"/VTKHDF").filter(|&at| file.is_group(at) && file.has(at, "Type"))?;
    let what = "a data set of VTK, whose cells number the points of their own piece";
    refuse_without_rules(file.path_of(data), what, "use vtkAppendDataSets or ParaView")
}

fn sonata(file: &FileView<'_>) -> Option<Refusal> {
    if !file.has(0, "magic") || !file.has(0, "version") {
        return None;
    }
    let circuit = file.find(b"/edges").or_else(|| file.find(b"/nodes"))?;
    let what = "a circuit in SONATA, whose edges number the nodes of populations";
    refuse_without_rules(file.path_of(circuit), what, "use libsonata")
}

fn hepfile(file: &FileView<'_>) -> Option<Refusal> {
    if !file.has(0, "_NUMBER_OF_BUCKETS_") {
        return None;
    }
    let what = "a hepfile, whose root states the number of its buckets (_NUMBER_OF_BUCKETS_)";
    refuse_without_rules(b"/", what, "read the files with hepfile.load and write one")
}

fn marked(file: &FileView<'_>) -> Option<Refusal> {
    let (at, format) = marks::find(file)?;
    refuse_without_rules(file.path_of(at), format.what, format.instead)
}

fn awkward(file: &FileView<'_>) -> Option<Refusal> {
    if is_anndata(file) {
        return None;
    }
    let is_offsets = |at: &usize| {
        let name = last_name(file.path_of(*at));
        let rest = name.strip_prefix(b"node").unwrap_or_default();
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        digits > 0 && [b"-offsets".as_slice(), b"-starts", b"-stops", b"-index"].contains(&&rest[digits..])
    };
    let at = (1..file.len()).find(is_offsets)?;
    let what = "awkward-array buffers, whose lengths belong to the form of one array";
    refuse_without_rules(file.path_of(at), what, "use awkward.concatenate, or raddle events for data from ROOT")
}
