//! Opening of the arrays that are written to a dataset or compared with one.

use super::{ArraySource, RawForm};
use crate::error::Error;
use crate::options::ReaderOptions;
use raddle_idx::inputs::{DatasetInput, Inputs};
use raddle_idx::request::InputRequest;

/// Opens the inputs at `paths` as `request` specifies.
///
/// # Errors
/// If an input cannot be read, or they do not fit together.
pub fn open(request: &InputRequest, paths: &[String], reader: &ReaderOptions) -> Result<Inputs<ArraySource>, Error> {
    let cast = |array: ArraySource| match request.cast {
        Some(number) => array.cast(number),
        None => array,
    };
    if let Some(path) = request.dataset_of(paths)? {
        let input = DatasetInput::open(path, request)?;
        return Ok(Inputs::of_dataset(request, input, |array| cast(ArraySource::of_field(array)))?);
    }
    let raw = request.raw_form()?.map(|(shape, number)| RawForm { shape: shape.0.clone(), number });
    let open = |path: &String| ArraySource::open(path, raw.as_ref(), reader).map(cast);
    Ok(Inputs::arrange(request, paths.iter().map(open).collect::<Result<_, _>>()?)?)
}
