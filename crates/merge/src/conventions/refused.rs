//! Files whose contents must not be concatenated, whatever their datasets look like. Each kind is recognised by a mark
//! that its own library checks, and refused by name.
//!
//! Invariant: only marks that no other kind of file has are checked.

use super::{FileView, Refusal};
use crate::schema::display_path;

/// Returns the reason why the file must not be concatenated with others, if there is one.
pub(super) fn refusal(file: &FileView<'_>) -> Option<Refusal> {
    let known = [events, keras, matlab, cooler, jld2, hdf_eos, pandas_fixed];
    known.into_iter().find_map(|kind| kind(file))
}

/// Hint for users who know better.
const OVERRIDE: &str = "--convention none concatenates the datasets as they are";

fn refuse(object: &[u8], what: &str, instead: &str) -> Option<Refusal> {
    Some(Refusal { object: display_path(object), reason: format!("{what}: {instead}; {OVERRIDE}") })
}

fn events(file: &FileView<'_>) -> Option<Refusal> {
    let at = (0..file.len()).find(|&at| file.is_group(at) && file.has(at, "raddle_layout"))?;
    refuse(file.path_of(at), "an event file of raddle", "use raddle events merge")
}

fn keras(file: &FileView<'_>) -> Option<Refusal> {
    let is_keras = file.has(0, "keras_version") || file.has(0, "layer_names") || file.find(b"/model_weights").is_some();
    let is_layer = |at: &usize| {
        let path = file.path_of(*at);
        file.is_group(*at) && path.starts_with(b"/layers/") && path.ends_with(b"/vars")
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
