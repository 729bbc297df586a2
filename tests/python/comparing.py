"""Compares values with h5py's, in everything that numpy can show."""

import h5py
import numpy as np


def same_types(ours, theirs):
    """Asserts that two numpy types are the same, including h5py's metadata."""
    assert ours == theirs and ours.str == theirs.str, (ours, theirs)
    assert h5py.check_enum_dtype(ours) == h5py.check_enum_dtype(theirs)
    assert h5py.check_vlen_dtype(ours) == h5py.check_vlen_dtype(theirs)
    assert h5py.check_string_dtype(ours) == h5py.check_string_dtype(theirs)
    if theirs.names is not None:
        assert ours.names == theirs.names and ours.itemsize == theirs.itemsize
        for name in theirs.names:
            assert ours.fields[name][1] == theirs.fields[name][1]
            same_types(ours[name], theirs[name])


def same_values(ours, theirs):
    """Asserts that two values are the same: type, shape and every visible bit."""
    if isinstance(theirs, h5py.Empty):
        assert ours == theirs and ours.shape is None
        return
    assert type(ours) is type(theirs), (type(ours), type(theirs))
    if not isinstance(theirs, (np.ndarray, np.generic)):
        assert ours == theirs
        return
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype, (ours.shape, theirs.shape, ours.dtype)
    if theirs.dtype == object:
        for our, their in zip(np.ravel(ours), np.ravel(theirs), strict=True):
            same_values(our, their)
    elif theirs.dtype.names is not None:
        for name in theirs.dtype.names:
            same_values(np.asarray(ours[name]), np.asarray(theirs[name]))
    else:
        assert np.asarray(ours).tobytes() == np.asarray(theirs).tobytes()


def same_datasets(ours, theirs):
    """Asserts that everything about two datasets is the same."""
    same_types(ours.dtype, theirs.dtype)
    for name in ("shape", "maxshape", "chunks", "size", "ndim", "name", "compression", "shuffle", "fletcher32"):
        assert getattr(ours, name) == getattr(theirs, name), name
    if theirs.compression == "gzip":
        assert ours.compression_opts == theirs.compression_opts
    if theirs.shape is not None:
        same_values(ours.fillvalue, theirs.fillvalue)
        assert ours.nbytes == theirs.nbytes
    same_values(ours[()], theirs[()])
    same_values(ours[...], theirs[...])
    same_attributes(ours, theirs)


def same_attributes(ours, theirs):
    """Asserts that two objects have the same attributes."""
    assert list(ours.attrs) == list(theirs.attrs)
    for name in theirs.attrs:
        assert name in ours.attrs
        same_values(ours.attrs[name], theirs.attrs[name])
