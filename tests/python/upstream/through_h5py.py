"""Plugin for pytest that repeats in raddle what tests read with h5py, and fails tests in which the results differ.

After each read access through h5py, the file is flushed and copied, and the copy is read with raddle. Values, types and classes
of exceptions must be the same.
"""

import functools
import os
import shutil
import threading

import h5py
import numpy as np
import pytest
import raddle
from comparing import same_types, same_values
from raddle import errors

PROPERTIES = [
    "shape", "dtype", "size", "ndim", "nbytes", "maxshape", "chunks", "compression", "compression_opts", "shuffle", "fletcher32",
    "scaleoffset", "external", "is_virtual", "fillvalue",
]  # fmt: skip

# Larger files are not copied.
MAX_LEN_BYTES = 32 << 20

LINKS = (h5py.HardLink, h5py.SoftLink, h5py.ExternalLink)

state = threading.local()
differences = []


def outcome(function):
    """Returns the value of a call, or its exception."""
    try:
        return function(), None
    except Exception as error:
        return None, error


def comparable(thing):
    """Whether an object has a file whose content another process can read, and a name in it."""
    identifier = thing._id if isinstance(thing, h5py.AttributeManager) else thing.id
    if not identifier.valid:
        return False
    file = h5py.File(h5py.h5i.get_file_id(identifier))
    name = h5py.h5i.get_name(identifier)
    if file.driver != "sec2" or name is None or not os.path.isfile(file.filename):
        return False
    return os.stat(file.filename).st_size < MAX_LEN_BYTES


def in_raddle(thing, use):
    """Calls a function with raddle's object for one of h5py, in a copy of its file."""
    identifier = thing._id if isinstance(thing, h5py.AttributeManager) else thing.id
    file, name = h5py.File(h5py.h5i.get_file_id(identifier)), h5py.h5i.get_name(identifier)
    if file.mode == "r+":
        file.flush()
    copy = f"{file.filename}.copy"
    shutil.copyfile(file.filename, copy)
    try:
        # External links lead to files that this process has open for writing. Their values are flushed as well.
        with pytest.MonkeyPatch.context() as patch, raddle.open(copy) as opened:
            patch.setenv("HDF5_USE_FILE_LOCKING", "FALSE")
            found = opened[name]
            return use(found.attrs if isinstance(thing, h5py.AttributeManager) else found)
    finally:
        os.remove(copy)


def same(ours, theirs):
    """Asserts that two results are the same: objects are of the same class and name, values are equal."""
    if isinstance(theirs, (h5py.Dataset, h5py.Group, h5py.Datatype)):
        kind = "Group" if isinstance(theirs, h5py.Group) else type(theirs).__name__
        assert kind in {base.__name__ for base in type(ours).__mro__}, (ours, theirs)
        # h5py has no name for some objects that links lead to.
        assert theirs.name is None or isinstance(theirs, h5py.File) or theirs.name == ours.name
    elif isinstance(theirs, type):
        assert ours.__name__ == theirs.__name__
    elif isinstance(theirs, LINKS):
        assert type(ours).__name__ == type(theirs).__name__
        assert [getattr(ours, name, None) for name in ("path", "filename")] == [
            getattr(theirs, name, None) for name in ("path", "filename")
        ]
    elif not isinstance(theirs, (np.ndarray, np.generic, h5py.Empty)) and theirs is ours:
        return
    elif isinstance(theirs, (h5py.h5r.Reference, h5py.h5r.RegionReference)):
        # A reference is only valid in its file.
        assert type(ours) is type(theirs)
    elif isinstance(theirs, np.ndarray) and theirs.dtype == object:
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        for our, their in zip(np.ravel(ours), np.ravel(theirs), strict=True):
            same(our, their)
    elif isinstance(theirs, (np.ndarray, np.void)) and theirs.dtype.names is not None:
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        for name in theirs.dtype.names:
            same(np.asarray(ours[name]), np.asarray(theirs[name]))
    else:
        same_values(ours, theirs)


def compare(what, thing, theirs, error, use, check):
    """Records a difference between a result of h5py and that of raddle."""
    if isinstance(error, AssertionError):
        return
    ours, our_error = outcome(lambda: in_raddle(thing, lambda found: outcome(lambda: check(use(found), error, theirs))))
    if our_error is None:
        ours, our_error = ours
    if isinstance(our_error, errors.InputError) and our_error.kind == "in_use":
        # Files of the format of HDF5 1.10 are marked while they are open for writing.
        return
    if error is not None and our_error is not None and not isinstance(our_error, AssertionError):
        if not isinstance(our_error, type(error)):
            differences.append(f"{what}: {our_error!r} instead of {error!r}")
    elif our_error is not None:
        differences.append(f"{what}: {our_error!r}")


def check_value(ours, error, theirs):
    assert error is None, f"{ours!r} instead of {error!r}"
    same(ours, theirs)


def check_property(ours, error, theirs):
    assert error is None, f"{ours!r} instead of {error!r}"
    if isinstance(theirs, np.dtype):
        same_types(ours, theirs)
    else:
        same(ours, theirs)


def repeat(owner, name, check=check_value):
    """Makes a method or property of h5py compare its result with raddle's."""
    original = owner.__dict__[name]
    is_property = not callable(original)
    call = original.__get__ if is_property else original

    def repeated(self, *arguments, **options):
        # h5py views pass it options that are not public.
        if getattr(state, "busy", False) or "new_dtype" in options:
            return call(self, *arguments, **options)
        state.busy = True
        try:
            theirs, error = outcome(lambda: call(self, *arguments, **options))
            if outcome(lambda: comparable(self))[0]:

                def use(found):
                    return getattr(found, name) if is_property else getattr(found, name)(*arguments, **options)

                compare(f"{owner.__name__}.{name}{arguments or ''}", self, theirs, error, use, check)
        finally:
            state.busy = False
        if error is not None:
            raise error
        return theirs

    setattr(owner, name, property(repeated) if is_property else functools.wraps(original)(repeated))


repeat(h5py.Dataset, "__getitem__")
repeat(h5py.Dataset, "__len__")
for name in PROPERTIES:
    repeat(h5py.Dataset, name, check_property)
for name in ("__getitem__", "get", "__contains__", "__len__"):
    repeat(h5py.Group, name)
for name in ("__getitem__", "__contains__", "__len__"):
    repeat(h5py.AttributeManager, name)


def leave_alone(owner, name):
    """Makes a method run without comparisons: a file cannot be flushed while libhdf5 visits its objects."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def alone(*arguments, **options):
        before, state.busy = getattr(state, "busy", False), True
        try:
            return original(*arguments, **options)
        finally:
            state.busy = before

    setattr(owner, name, alone)


for name in ("visit", "visititems", "visit_links", "visititems_links"):
    leave_alone(h5py.Group, name)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    differences.clear()
    result = yield
    if differences:
        pytest.fail("\n".join(dict.fromkeys(differences)), pytrace=False)
    return result
