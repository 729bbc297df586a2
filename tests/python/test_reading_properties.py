"""For any dataset and any selection, raddle's values equal h5py's."""

import h5py
import numpy as np
import raddle
from comparing import same_datasets, same_values
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst


def numbers():
    """Draws types of one number, of both byte orders."""
    order = st.sampled_from("<>")
    return st.one_of(
        npst.integer_dtypes(endianness="<"),
        npst.integer_dtypes(endianness=">"),
        npst.unsigned_integer_dtypes(endianness="<"),
        npst.unsigned_integer_dtypes(endianness=">"),
        st.builds(lambda order, size: np.dtype(f"{order}f{size}"), order, st.sampled_from([2, 4, 8])),
        st.builds(lambda order, size: np.dtype(f"{order}c{size}"), order, st.sampled_from([8, 16])),
        st.just(np.dtype(bool)),
    )


def leaves():
    """Draws types without parts."""
    return st.one_of(
        numbers(),
        st.integers(1, 20).map(lambda size: np.dtype(f"S{size}")),
        st.integers(1, 9).map(lambda size: np.dtype(f"V{size}")),
        st.integers(1, 9).map(lambda size: h5py.string_dtype("utf-8", size)),
        st.dictionaries(st.text("abcäß", min_size=1, max_size=4), st.integers(-100, 100), min_size=1, max_size=4).map(
            lambda symbols: h5py.enum_dtype(symbols, np.dtype("<i2"))
        ),
    )


def compounds(parts):
    """Draws compounds of such members, some of them arrays, packed or aligned."""
    names = st.lists(st.text("abcdrixyzÄ_", min_size=1, max_size=4), min_size=1, max_size=4, unique=True)
    member = st.one_of(parts, st.tuples(parts, st.integers(1, 3)))

    def build(names, members, align):
        fields = [
            (name, *found) if isinstance(found, tuple) else (name, found)
            for name, found in zip(names, members, strict=False)
        ]
        return np.dtype(fields, align=align)

    return st.builds(build, names, st.lists(member, min_size=4, max_size=4), st.booleans())


TYPES = st.one_of(leaves(), compounds(leaves()), compounds(compounds(leaves())))


@st.composite
def datasets(draw):
    """Draws a dataset as arguments for h5py, and its values."""
    dtype = draw(TYPES)
    shape = draw(npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=25))
    length = int(np.prod(shape, dtype=int)) * dtype.itemsize
    seed = draw(st.integers(0, 2**32 - 1))
    raw = np.random.default_rng(seed).integers(0, draw(st.sampled_from([2, 128, 256])), length).astype("u1")
    values = np.frombuffer(raw.tobytes(), dtype).reshape(shape) if length else np.zeros(shape, dtype)
    values = readable(values.copy())
    options = {}
    if shape and all(shape) and draw(st.booleans()):
        options["chunks"] = tuple(draw(st.integers(1, side)) for side in shape)
        options["maxshape"] = tuple(draw(st.sampled_from([side, side + 7, None])) for side in shape)
        options["compression"] = draw(st.sampled_from([None, "gzip", "lzf"]))
        options["shuffle"] = draw(st.booleans())
        options["fletcher32"] = draw(st.booleans()) and dtype.itemsize > 0
    return dtype, values, options


def readable(values):
    """Returns the values after replacing the bits that libhdf5 changes: booleans and enumerations."""
    if values.dtype.names is not None:
        for name in values.dtype.names:
            values[name] = readable(np.ascontiguousarray(values[name]))
        return values
    symbols = h5py.check_enum_dtype(values.dtype)
    if symbols:
        known = np.array(list(symbols.values()), values.dtype)
        return known[np.abs(values.astype("i8")) % len(known)].reshape(values.shape).astype(values.dtype)
    if values.dtype == bool:
        return (values.view("u1") & 1).astype(bool)
    return values


@st.composite
def selections(draw, shape):
    """Draws the contents of the brackets, within h5py's limits: at most one list, ascending."""
    items, listed = [], False
    for side in shape[: draw(st.integers(0, len(shape)))]:
        kinds = ["slice", "step"]
        if side:
            kinds += ["number"] if listed else ["number", "list", "mask"]
        kind = draw(st.sampled_from(kinds))
        if kind == "number":
            items.append(draw(st.integers(-side, side - 1)))
        elif kind == "list":
            items.append(sorted(draw(st.sets(st.integers(0, side - 1), min_size=1))))
            listed = True
        elif kind == "mask":
            items.append(draw(npst.arrays(bool, side)))
            listed = True
        else:
            start, stop = sorted(draw(st.lists(st.integers(0, side), min_size=2, max_size=2)))
            items.append(slice(start, stop, draw(st.integers(1, 9)) if kind == "step" else None))
    if len(items) < len(shape) and draw(st.booleans()):
        items.append(Ellipsis)
    return tuple(items)


@given(data=st.data())
def test_any_dataset_any_selection(tmp_path_factory, data):
    dtype, values, options = data.draw(datasets())
    path = tmp_path_factory.mktemp("property") / "file.h5"
    with h5py.File(path, "w", libver=data.draw(st.sampled_from(["earliest", "latest"]))) as file:
        dataset = file.create_dataset("d", values.shape, dtype, **options)
        hole = data.draw(st.booleans())
        if values.size and values.shape and hole:
            half = values.shape[0] // 2
            dataset[:half] = values[:half]
        elif values.size:
            dataset[...] = values
        if values.size:
            dataset.attrs["a"] = values.reshape(-1)[:3]
    with raddle.open(path, threads=data.draw(st.integers(1, 3))) as ours, h5py.File(path) as theirs:
        same_datasets(ours["d"], theirs["d"])
        for _ in range(4):
            selection = data.draw(selections(values.shape))
            try:
                expected = theirs["d"][selection]
            except (IndexError, ValueError, TypeError) as error:
                # For example masks without a hit, which h5py refuses: raddle follows numpy.
                assert values.shape, error
                continue
            same_values(ours["d"][selection], expected)


@given(data=st.data())
def test_any_list_of_rows_is_numpy_s(tmp_path_factory, data):
    shape = (data.draw(st.integers(1, 60)), data.draw(st.integers(1, 6)))
    values = np.arange(shape[0] * shape[1]).reshape(shape)
    path = tmp_path_factory.mktemp("property") / "file.h5"
    with h5py.File(path, "w") as file:
        chunks = data.draw(st.one_of(st.none(), st.tuples(st.integers(1, shape[0]), st.integers(1, shape[1]))))
        file.create_dataset("d", data=values, chunks=chunks)
    rows = data.draw(st.lists(st.integers(-shape[0], shape[0] - 1), max_size=100))
    columns = data.draw(st.lists(st.integers(0, shape[1] - 1), max_size=10))
    with raddle.open(path) as ours:
        assert np.array_equal(ours["d"][rows], values[np.array(rows, int)])
        assert np.array_equal(ours["d"][1:, columns], values[1:, np.array(columns, int)])


@given(data=st.data())
def test_any_selection_of_what_others_read_for_us(tmp_path_factory, data):
    """Compounds with strings, which h5py reads, and virtual datasets: selections, fields, and lists in any order."""
    shape = data.draw(npst.array_shapes(min_dims=0, max_dims=3, min_side=1, max_side=6))
    count = int(np.prod(shape, dtype=int))
    mixed = np.dtype([("n", "<i4"), ("v", ">f4", (2,)), ("t", h5py.string_dtype())])
    values = np.array([(row, (row, row / 2), f"t{row}") for row in range(count)], mixed).reshape(shape)
    path = tmp_path_factory.mktemp("property") / "file.h5"
    with h5py.File(path, "w") as file:
        file["mixed"], file["plain"] = values, values["n"]
        layout = h5py.VirtualLayout(shape, "<i4")
        layout[...] = h5py.VirtualSource(file["plain"])
        file.create_virtual_dataset("virtual", layout)
    with raddle.open(path) as ours, h5py.File(path) as theirs:
        for _ in range(3):
            selection = data.draw(selections(shape))
            fields = data.draw(st.sampled_from([(), ("n",), ("t",), ("v",), ("t", "n")]))
            for name, chosen in (("mixed", (*selection, *fields)), ("virtual", selection), ("plain", selection)):
                try:
                    expected = theirs[name][chosen]
                except (IndexError, ValueError, TypeError):
                    continue
                same_values(ours[name][chosen], expected)
        if shape:
            rows = data.draw(st.lists(st.integers(-shape[0], shape[0] - 1), max_size=9))
            listed = np.array(rows, int)
            same_values(ours["mixed"][rows], theirs["mixed"][()][listed])
            same_values(ours["mixed"][rows, "n"], values["n"][listed])
            same_values(ours["virtual"][rows], values["n"][listed])
