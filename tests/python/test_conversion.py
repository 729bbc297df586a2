"""Values read as another type, compared with libhdf5's conversion in h5py."""

import itertools
import platform

import h5py
import numpy as np
import pytest
import raddle
from comparing import same_values
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

INTEGERS = [f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)]
FLOATS = ["f2", "f4", "f8"]
POWERS = [2**power + more for power in (7, 8, 15, 16, 31, 32, 63, 64) for more in (-1, 0, 1)]


def integers(dtype):
    """Returns integers around the limits of all types, as far as the type can represent them."""
    limits = np.iinfo(dtype)
    some = [0, 1, -1, *POWERS, *(-power for power in POWERS)]
    return np.array([number for number in some if limits.min <= number <= limits.max], dtype)


def floats(dtype):
    """Returns floats around the limits of all types, including infinities and NaN."""
    some = [0.5, -0.5, 0.99, -0.99, np.nan, np.inf, -np.inf, 1e-8, 1e-46, 65504, 3.4e38, 1e39, -1e39, 1e300]
    some += [sign * (power + half) for power in POWERS for half in (-0.5, 0, 0.5) for sign in (1, -1)]
    some += [np.nextafter(2.0**power, 0) for power in (31, 32, 63, 64)]
    with np.errstate(over="ignore"):
        return np.array(some, "f8").astype(dtype)


def clipped(values, dtype):
    """Returns the expected values, computed with Python's numbers; NaN is tested separately."""
    limits = np.iinfo(dtype)

    def one(value):
        if value != value:
            return 0
        if abs(value) == np.inf:
            return limits.max if value > 0 else limits.min
        return min(max(int(value), limits.min), limits.max)

    return np.array([one(value) for value in values.tolist()], dtype)


@pytest.fixture(scope="module")
def numbers(tmp_path_factory):
    path = tmp_path_factory.mktemp("numbers") / "numbers.h5"
    with h5py.File(path, "w") as file:
        for order, name in itertools.product("<>", [*INTEGERS, *FLOATS]):
            made = floats if name in FLOATS else integers
            file[f"{order}{name}"] = made(f"{order}{name}")
    with raddle.open(path) as ours, h5py.File(path) as theirs:
        yield ours, theirs


@pytest.mark.parametrize("wanted", INTEGERS)
def test_what_does_not_fit_an_integer_is_clipped(numbers, wanted):
    ours, theirs = numbers
    for name, order in itertools.product(theirs, "<>"):
        values = theirs[name][:]
        dtype = np.dtype(f"{order}{wanted}")
        whole = values == values
        expected = clipped(values, dtype)
        read = [ours[name].astype(dtype)[:], np.asarray(ours[name], dtype), np.empty(values.shape, dtype)]
        ours[name].read_direct(read[2])
        read.append(ours[name].read(np.s_[:], out=np.empty(values.shape, dtype)))
        for found in read:
            assert found.dtype == dtype and np.array_equal(found[whole], expected[whole]), (name, dtype)
        # libhdf5 2.0 wraps 2**63 and similar floats, and wraps signs if only the byte order differs.
        if name[0] == "<" == order and name[1] != "f":
            same_values(read[0], theirs[name].astype(dtype)[:])


@pytest.mark.skipif(platform.machine() != "x86_64", reason="other processors convert them differently")
@pytest.mark.parametrize("wanted", [f"{order}{name}" for order in "<>" for name in INTEGERS])
@pytest.mark.parametrize("name", ["<f4", ">f4", "<f8", ">f8"])
def test_anything_but_a_number_becomes_what_h5py_shows(numbers, name, wanted):
    ours, theirs = numbers
    nothing = np.isnan(theirs[name][:])
    same_values(ours[name].astype(wanted)[:][nothing], theirs[name].astype(wanted)[:][nothing])


@pytest.mark.parametrize("wanted", FLOATS)
def test_what_does_not_fit_a_float_is_infinite(numbers, wanted):
    ours, theirs = numbers
    for name in theirs:
        found, expected = ours[name].astype(wanted)[:], theirs[name].astype(wanted)[:]
        # The maximum of a type and values that round to it: libhdf5 shows infinity, or the other way round.
        edge = np.abs(theirs[name][:].astype("f8")) >= float(np.finfo(wanted).max)
        edge &= np.isfinite(theirs[name][:].astype("f8"))
        assert found.dtype == wanted and np.array_equal(found[~edge], expected[~edge], equal_nan=True), name
        assert (np.isinf(found) | (np.abs(found) == np.finfo(wanted).max))[edge].all()


@given(data=st.data())
def test_any_integers_as_any_integers(tmp_path_factory, data):
    source, wanted = (np.dtype(data.draw(st.sampled_from(INTEGERS))) for _ in range(2))
    values = data.draw(npst.arrays(source, st.integers(1, 50)))
    path = tmp_path_factory.mktemp("integers") / "file.h5"
    with h5py.File(path, "w") as file:
        file["d"] = values
    with raddle.open(path) as ours, h5py.File(path) as theirs:
        same_values(ours["d"].astype(wanted)[:], theirs["d"].astype(wanted)[:])
        for selection in (0, ..., np.s_[::2]):
            same_values(ours["d"].astype(wanted)[selection], theirs["d"].astype(wanted)[selection])


def test_fields_are_matched_by_name(tmp_path):
    values = np.array([(300, 2.5, (1, 70000)), (-300, -0.5, (3, 4))], [("x", "i4"), ("y", "f8"), ("z", "i4", (2,))])
    with h5py.File(tmp_path / "file.h5", "w") as file:
        file["d"] = values
    with raddle.open(tmp_path / "file.h5") as ours, h5py.File(tmp_path / "file.h5") as theirs:
        for wanted in (
            [("y", "f4"), ("x", "i1")], [("x", "u2")], [("other", "f4"), ("x", "i8")], [("z", "i2", (2,)), ("y", "i4")],
            values.dtype,
        ):  # fmt: skip
            for selection in (np.s_[:], 0, ...):
                same_values(ours["d"].astype(wanted)[selection], theirs["d"].astype(wanted)[selection])
        targets = [np.full(2, 7, [("x", "i2"), ("kept", "i4")]) for _ in range(2)]
        ours["d"].read_direct(targets[0])
        theirs["d"].read_direct(targets[1])
        assert np.array_equal(targets[0]["x"], targets[1]["x"]) and targets[0]["kept"].tolist() == [7, 7]
