//! numpy arrays whose memory is reused when the array is freed.
#![allow(unsafe_code, reason = "numpy takes memory of an owner that it keeps alive by a pointer only")]

use numpy::ndarray::ArrayView1;
use numpy::{IntoPyArray, PyArray1};
use pyo3::prelude::*;
use raddle_hdf5::reuse::Buffer;

/// Owner of an array's memory.
#[pyclass(frozen, module = "raddle._core")]
struct Memory {
    #[expect(dead_code, reason = "the array reads and writes it")]
    buffer: Buffer,
}

/// Maximum length of an array that gets separate memory, which is faster to make than an owner.
const COPIED_LEN_BYTES: usize = 4096;

/// Returns an array of the bytes.
pub(crate) fn array(py: Python<'_>, mut buffer: Buffer) -> PyResult<Bound<'_, PyArray1<u8>>> {
    if buffer.len() <= COPIED_LEN_BYTES {
        return Ok(buffer.to_vec().into_pyarray(py));
    }
    let (place, len) = (buffer.as_mut_ptr(), buffer.len());
    let owner = Bound::new(py, Memory { buffer })?.into_any();
    // SAFETY: the owner, which the array keeps alive, holds these bytes at this place: a buffer's memory does not move,
    // and nothing but the array has access to it until the owner is dropped.
    Ok(unsafe { PyArray1::borrow_from_array(&ArrayView1::from_shape_ptr(len, place), owner) })
}
