"""Links, references and dimension scales, compared with h5py."""

import h5py
import numpy as np
import pytest
import raddle
from comparing import same_values
from raddle import errors


@pytest.fixture
def pair(tmp_path):
    """A file with links of all kinds, some of them dangling, in raddle and in h5py."""
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["d"] = np.arange(5)
        file["inside/d"] = 1
    with h5py.File(tmp_path / "file.h5", "w") as file:
        file["d"] = np.arange(12).reshape(3, 4)
        file["g/d"] = np.arange(3)
        file["g/again"] = file["d"]
        file["g/up"] = file["g"]
        file["to/soft"] = h5py.SoftLink("/g/d")
        file["to/nothing"] = h5py.SoftLink("/none")
        file["to/group"] = h5py.SoftLink("/g")
        file["other"] = h5py.ExternalLink("other.h5", "/d")
        file["no file"] = h5py.ExternalLink("none.h5", "/d")
        file["no object"] = h5py.ExternalLink("other.h5", "/none")
        file["inside"] = h5py.ExternalLink("other.h5", "/inside")
        file["type"] = np.dtype("f4")
    with raddle.open(tmp_path / "file.h5") as ours, h5py.File(tmp_path / "file.h5") as theirs:
        yield ours, theirs


NAMES = [
    "d", "g", "g/", "/", "//", "//g/d", "///to/soft", ".", "./g/d", "g/.", "d/.", "d/x", "", "none", "none/d", "g/d", "/g//d", "g/up/up/d", "g/..",
    "to/soft", "to/nothing", "to/nothing/x", "to/group", "to/group/d", "to/group/none", "other", "no file", "no file/x",
    "no object", "inside", "inside/d", "inside/none", "type", "type/x",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_names_that_are_there(pair, name):
    ours, theirs = pair
    assert (name in ours) is (name in theirs)
    assert (name.encode() in ours) is (name in theirs)
    assert (ours.get(name) is None) is (theirs.get(name) is None)


@pytest.mark.parametrize("name", [name for name in NAMES if not name.endswith((".", "/"))])
def test_links_by_name(pair, name):
    ours, theirs = pair
    link, expected = ours.get(name, getlink=True), theirs.get(name, getlink=True)
    assert type(link).__name__ == type(expected).__name__
    for attribute in ("path", "filename"):
        assert getattr(link, attribute, None) == getattr(expected, attribute, None)
    found, expected = (file.get(name, getclass=True, getlink=True) for file in pair)
    assert getattr(found, "__name__", None) == getattr(expected, "__name__", None)
    if name in theirs and theirs.get(name) is not None:
        assert ours.get(name, getclass=True).__name__ == theirs.get(name, getclass=True).__name__
    assert ours.get("none", 7, getlink=True) == theirs.get("none", 7, getlink=True) == 7
    assert isinstance(ours.get("d", getlink=True), raddle.HardLink)


@pytest.fixture
def circles(tmp_path):
    """Circular links, within a file and through others, and chains of the maximum length and one more."""
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["d"] = 1
        file["circle"] = h5py.SoftLink("circle")
        file["back"] = h5py.ExternalLink("file.h5", "/through other")
        for number in range(20):
            file[f"{number}"] = h5py.SoftLink(f"{number - 1}" if number else "d")
    with h5py.File(tmp_path / "file.h5", "w") as file:
        file["d"], file["g/d"] = 1, 2
        file["a"], file["b"] = h5py.SoftLink("b"), h5py.SoftLink("a")
        file["self"] = h5py.SoftLink("self")
        file["deeper"] = h5py.SoftLink("deeper/x")
        file["g/up"] = h5py.SoftLink("/g/up/d")
        file["to a"], file["in a"] = h5py.SoftLink("a"), h5py.SoftLink("a/x")
        file["through other"] = h5py.ExternalLink("other.h5", "back")
        file["to circle"] = h5py.ExternalLink("other.h5", "circle")
        file["to to circle"] = h5py.SoftLink("to circle")
        file["own"] = h5py.ExternalLink("file.h5", "own")
        for number in range(20):
            file[f"{number}"] = h5py.SoftLink(f"{number - 1}" if number else "g")
            file[f"other {number}"] = h5py.ExternalLink("other.h5", f"{number}")
            file[f"own {number}"] = h5py.ExternalLink("file.h5", f"own {number - 1}" if number else "d")
    with raddle.open(tmp_path / "file.h5") as ours, h5py.File(tmp_path / "file.h5") as theirs:
        yield ours, theirs


def outcome(call):
    """Returns the result of a call in a form common to both libraries, or the class of the exception that it raises."""
    try:
        found = call()
    except (KeyError, RuntimeError) as error:
        assert "too many links" in str(error)
        return KeyError if isinstance(error, KeyError) else RuntimeError
    return found if found in (None, True, False, 7) else type(found).__name__ if not isinstance(found, type) else found.__name__


@pytest.mark.parametrize(
    "name",
    [
        "a", "a/x", "self", "deeper", "g/up", "g/up/x", "to a", "in a", "through other", "to circle", "to circle/x",
        "to to circle", "to to circle/x", "own", "own/x", "through other/x",
        "14", "15", "15/d", "16", "16/d", "other 13", "other 14", "other 15", "own 15", "own 16",
    ],
)  # fmt: skip
def test_links_in_circles(circles, name):
    calls = [
        lambda file: file[name],
        lambda file: file[name.encode()],
        lambda file: name in file,
        lambda file: file.get(name),
        lambda file: file.get(name, 7),
        lambda file: file.get(name, getlink=True),
        lambda file: file.get(name, getclass=True, getlink=True),
    ]
    for number, call in enumerate(calls):
        ours, theirs = (outcome(lambda file=file, call=call: call(file)) for file in circles)
        assert ours == theirs, number


def test_links_in_circles_among_others(circles):
    ours, theirs = circles
    for kind in (errors.TooManyLinksError, errors.RaddleError, RuntimeError):
        with pytest.raises(kind, match="too many links"):
            ours["a"]
    # h5py's iterations end there.
    assert dict(ours.items())["a"] is None and list(ours) == list(theirs)
    with pytest.raises(RuntimeError):
        list(theirs.items())
    visited = [[], []]
    for file, names in zip(circles, visited, strict=True):
        file.visit(names.append)
        file.visit_links(names.append)
    assert visited[0] == visited[1]


def test_anything_but_a_name(pair):
    for file in pair:
        for name in (None, 1, 1.5):
            with pytest.raises(TypeError):
                file[name]
            with pytest.raises(TypeError):
                assert name in file
            with pytest.raises(TypeError):
                file.attrs[name]


def test_every_link_is_visited_as_h5py_visits(pair):
    seen = []
    for file in pair:
        names, links = [], []
        file.visit_links(names.append)
        file.visititems_links(
            lambda name, link, links=links: links.append((name, type(link).__name__, getattr(link, "path", None)))
        )
        seen.append((names, links))
        assert file.visit_links(lambda name: name if "soft" in name else None) == "to/soft"
        assert file["g"].visititems_links(lambda name, link: name) == "again"
    assert seen[0] == seen[1] and len(seen[0][0]) > 10


def test_one_dataset_that_cannot_be_read_leaves_the_others(tmp_path):
    path = tmp_path / "file.h5"
    with h5py.File(path, "w") as file:
        file["a"], file["z/d"] = 1, 2
        layout = h5py.VirtualLayout((2, 4), "f8", maxshape=(None, 4))
        source = h5py.VirtualSource("none.h5", "d", (2, 4), maxshape=(None, 4))
        layout[0 : h5py.h5s.UNLIMITED, :] = source[0 : h5py.h5s.UNLIMITED, :]
        file.create_virtual_dataset("virtual", layout)
        file["soft"] = h5py.SoftLink("virtual")
    with raddle.open(path) as ours, h5py.File(path) as theirs:
        assert "virtual" in ours and "virtual" in theirs
        found = dict(ours.items())
        assert list(found) == list(theirs) and len(list(ours.values())) == 4
        assert found["a"][()] == 1 and found["z"]["d"][()] == 2
        for name in ("virtual", "soft"):
            assert isinstance(found[name], raddle.Unreadable) and "none.h5" in found[name].reason
        visited = [[], []]
        ours.visit(visited[0].append)
        theirs.visit(visited[1].append)
        assert visited[0] == visited[1]
        with pytest.raises(OSError, match="none.h5"):
            ours["virtual"]
        # Not left out silently.
        with pytest.raises(OSError, match="none.h5"):
            ours.read_columns()


def test_references(tmp_path):
    path = tmp_path / "file.h5"
    values = np.arange(120).reshape(12, 10)
    with h5py.File(path, "w") as file:
        file["g/d"] = values
        file["g"].attrs["to"] = file["g/d"].ref
        file["objects"] = np.array([file["g/d"].ref, file["g"].ref, file.ref], h5py.ref_dtype)
        file.create_dataset("null", (1,), h5py.ref_dtype)
        regions = [file["g/d"].regionref[2:5, ::3], file["g/d"].regionref[:, 4], file["g/d"].regionref[values % 7 == 0]]
        file["regions"] = np.array(regions, h5py.regionref_dtype)
        file["lost"] = 1
        file["objects of lost"] = np.array([file["lost"].ref], h5py.ref_dtype)
        del file["lost"]
    with raddle.open(path) as ours, h5py.File(path) as theirs:
        for number in range(3):
            assert ours[ours["objects"][number]].name == theirs[theirs["objects"][number]].name
            region = ours["regions"][number]
            assert ours[region] == ours["g/d"]
            expected = theirs["g/d"][theirs["regions"][number]]
            same_values(ours["g/d"][region], expected)
            target = np.zeros(expected.shape, "f4")
            assert np.array_equal(ours["g/d"].read(region, out=target), expected)
        assert ours["g"][ours["objects"][0]] == ours[ours["g"].attrs["to"]] == ours["g/d"]
        assert ours[ours["g/d"].ref] == ours["g/d"] and theirs[ours["g"].ref] == theirs["g"]
        with pytest.raises(ValueError):
            ours[ours["null"][0]]
        with pytest.raises((KeyError, ValueError)):
            ours[ours["objects of lost"][0]]
        with pytest.raises(errors.UsageError):
            ours["g/d"].read(ours["regions"][0], out=np.zeros(3))


def test_dimension_scales(tmp_path):
    path = tmp_path / "file.h5"
    with h5py.File(path, "w") as file:
        file["d"] = np.zeros((3, 4, 5))
        file["x"], file["y"], file["t"] = np.arange(3), np.arange(3) * 2.0, np.arange(5)
        file["x"].make_scale("x name")
        file["y"].make_scale()
        file["t"].make_scale("time")
        file["d"].dims[0].label = "rows"
        file["d"].dims[2].label = "ü"
        file["d"].dims[0].attach_scale(file["x"])
        file["d"].dims[0].attach_scale(file["y"])
        file["d"].dims[2].attach_scale(file["t"])
        file["plain"], file["scalar"] = np.zeros((2, 2)), 1
    with raddle.open(path) as ours, h5py.File(path) as theirs:
        for name in ("d", "x", "plain", "scalar"):
            assert ours[name].is_scale is theirs[name].is_scale
            dims, expected = ours[name].dims, theirs[name].dims
            assert len(dims) == len(expected)
            for dim, wanted in zip(dims, expected, strict=True):
                assert dim.label == wanted.label and len(dim) == len(wanted) and list(dim) == list(wanted)
                assert dim.keys() == wanted.keys()
                assert [(key, scale.name) for key, scale in dim.items()] == [(k, scale.name) for k, scale in wanted.items()]
        first = ours["d"].dims[0]
        same_values(first[1][:], theirs["d"].dims[0][1][:])
        assert first["x name"] == first[0] == ours["x"] and "rows" in repr(first)
        for number, error in ((3, IndexError), (-4, IndexError)):
            with pytest.raises(error):
                ours["d"].dims[number]
        with pytest.raises(KeyError):
            first["none"]


@pytest.mark.parametrize("compression", ["lzf", "szip", "zstd"])
def test_virtual_datasets_of_filters_that_libhdf5_may_lack(tmp_path, monkeypatch, compression):
    """Read in the process that runs the bundled libhdf5, not by h5py."""
    if compression == "szip" and not h5py.h5z.filter_avail(h5py.h5z.FILTER_SZIP):
        pytest.skip("h5py without szip")
    filters = pytest.importorskip("hdf5plugin").Zstd() if compression == "zstd" else {"compression": compression}
    values = np.arange(4000).reshape(1000, 4) // 9
    with h5py.File(tmp_path / "source.h5", "w") as file:
        file.create_dataset("d", data=values, chunks=(128, 4), **filters)
    layout = h5py.VirtualLayout((1000, 4), values.dtype)
    layout[:] = h5py.VirtualSource("source.h5", "d", (1000, 4))
    with h5py.File(tmp_path / "view.h5", "w") as file:
        file.create_virtual_dataset("d", layout)
    monkeypatch.setattr(raddle.File, "_h5py", lambda self: None)
    with raddle.open(tmp_path / "view.h5") as ours, h5py.File(tmp_path / "view.h5") as theirs:
        same_values(ours["d"][:], theirs["d"][:])
        same_values(ours["d"][130:700:7], theirs["d"][130:700:7])
