//! Files whose contents must not be concatenated, whatever their datasets look like: each is known by a mark that its own
//! library looks for, and refused by name.
//!
//! Invariant: only marks are looked at that no other kind of file has.

use super::{FileView, Refusal};
use crate::schema::display_path;

/// Why the file must not be concatenated with others, if so.
pub(super) fn refusal(file: &FileView<'_>) -> Option<Refusal> {
    let known = [events, keras, matlab, cooler, jld2, hdf_eos, pandas_fixed];
    known.into_iter().find_map(|kind| kind(file))
}

/// What to do where the user knows better.
const OVERRIDE: &str = "--convention none concatenates the datasets as they are";

fn refuse(object: &[u8], what: &str, instead: &str) -> Option<Refusal> {
    Some(Refusal { object: display_path(object), reason: format!("{what}: {instead}; {OVERRIDE}") })
}

fn events(file: &FileView<'_>) -> Option<Refusal> {
    file.has(0, "raddle_layout").then(|| refuse(b"/", "an event file of raddle", "use raddle events merge")).flatten()
}

fn keras(file: &FileView<'_>) -> Option<Refusal> {
    let is_keras = file.has(0, "keras_version") || file.has(0, "layer_names");
    let weights = file
        .find(b"/model_weights")
        .or_else(|| file.find(b"/layers").filter(|_| file.find(b"/_layer_checkpoint_dependencies").is_some()));
    if !is_keras && weights.is_none() {
        return None;
    }
    let what = "weights of a Keras model, which belong to one network";
    refuse(b"/", what, "load the models in Keras and average or ensemble them there")
}

fn matlab(file: &FileView<'_>) -> Option<Refusal> {
    let at = (1..file.len()).find(|&at| {
        matches!(
            file.text(at, "MATLAB_class").as_deref(),
            Some("struct" | "cell" | "function_handle" | "table" | "categorical" | "string")
        )
    })?;
    let class = file.text(at, "MATLAB_class").unwrap_or_default();
    let what = format!("a MATLAB {class}, whose parts are tied by references");
    refuse(file.path_of(at), &what, "concatenate in MATLAB with [a; b] and save again")
}

fn cooler(file: &FileView<'_>) -> Option<Refusal> {
    let format = file.root_text("format").unwrap_or_default();
    let is_cooler = format.starts_with("HDF5::Cooler") || format.starts_with("HDF5::MCOOL");
    if !is_cooler {
        return None;
    }
    refuse(b"/", "a contact matrix of cooler, whose bins must be summed", "use cooler merge")
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
