"""Outputs of earlier versions are read, verified and continued, and outputs of newer formats are refused.

Sets are written by scripts/keep-outputs.py; each has a folder named after its version.
"""

import json
import warnings

import awkward
import h5py
import numpy as np
import pytest
import raddle as package
from conftest import SETS
from values import plain

MAPS = "/maps/pixels"


def read(path, name):
    """Returns the values of a dataset as the package reads them."""
    with package.open(path) as file:
        return plain(file[name][:, -1] if name == MAPS else file[name][()])


def test_a_set_is_kept():
    assert SETS


def test_values_are_those_of_the_inputs(kept):
    for output, about in kept["outputs"].items():
        assert about["values"]
        for name, expected in about["values"].items():
            assert read(kept.path(output), name) == expected, (output, name)


def test_digests_are_verified(raddle, kept):
    verified = [output for output, about in kept["outputs"].items() if about["digests"]]
    assert verified
    for output in verified:
        raddle("verify", output, cwd=kept.folder)


def test_files_are_verified_against_their_inputs(raddle, kept):
    compared = {output: about["against"] for output, about in kept["outputs"].items() if about["against"]}
    assert compared
    for output, against in compared.items():
        raddle("verify", output, "--against", *against, cwd=kept.folder)


def test_a_changed_value_is_found(raddle, kept):
    stored = [output for output, about in kept["outputs"].items() if about["digests"] and output != "linked.h5"]
    assert stored
    for output in stored:
        with h5py.File(kept.path(output), "r+") as file:
            name = next(name for name in ("trk/x", "both", "tas") if name in file)
            file[name][-1] = 7
        raddle("verify", output, cwd=kept.folder, expect=8)


def test_rows_are_appended(raddle, kept):
    appended = {output: about for output, about in kept["outputs"].items() if about["append"]}
    assert appended
    for output, about in appended.items():
        raddle("append", output, about["append"], cwd=kept.folder)
        raddle("verify", output, cwd=kept.folder)
        for name, rows in kept["appended_values"].items():
            assert read(kept.path(output), name) == about["values"][name] + rows, (output, name)
        raddle("append", output, about["append"], cwd=kept.folder, expect=3)


def test_keys_continue(raddle, kept):
    raddle("append", "keys.h5", kept["outputs"]["keys.h5"]["append"], cwd=kept.folder)
    raddle("keys", "check", "keys.h5", cwd=kept.folder)
    assert read(kept.path("keys.h5"), "/spill/evt.seq") == [[event] for event in range(12)]


def test_events_are_read(raddle, kept):
    assert kept["events"]
    for name, products in kept["events"].items():
        path = kept.path(name)
        shown = json.loads(raddle("events", "inspect", path, "--json").stdout)
        assert len(shown["products"]) == len(products), name
        with package.events.open(path) as events:
            assert {product: awkward.to_list(events[product]) for product in events} == products, name


def test_events_are_merged(raddle, kept):
    # Only `convert` writes RNTuples.
    merged = {name: products for name, products in kept["events"].items() if not name.endswith(".root")}
    assert merged
    for name, products in merged.items():
        output = kept.path("merged-" + name)
        raddle("events", "merge", name, name, "--duplicates", "keep", "-o", output, cwd=kept.folder)
        with package.events.open(output) as events:
            found = {product: awkward.to_list(events[product]) for product in events}
        assert found == {product: values * 2 for product, values in products.items()}, name


def test_idx_is_read(raddle, kept):
    about = kept["idx"]
    expected = np.load(kept.path(about["input"]))
    for name in about["datasets"]:
        np.testing.assert_array_equal(package.idx.read(kept.path(name)), expected)
        raddle("idx", "verify", name, "--against", about["input"], cwd=kept.folder)
    raddle("idx", "verify", about["zarr"], "--against", about["input"], cwd=kept.folder)


def test_the_index_is_used(kept):
    path = kept.path(kept["indexed"]["file"])
    with warnings.catch_warnings():
        # An index that was written for a different state of the file is not used, with a warning.
        warnings.simplefilter("error")
        table = package.scan(path)["trk"]
        assert table.filter(package.col("x") > 200.5).select("x").to_numpy()["x"].tolist() == [[201.0], [202.0]]


def test_reports_and_profiles_are_read(raddle, kept):
    raddle("report", kept["report"], "-o", "page.html", cwd=kept.folder)
    page = kept.path("page.html").read_text()
    assert "plain.h5" in page
    raddle("idx", "write", kept["idx"]["input"], "-o", "again.idx", "--profile", kept["profile"], cwd=kept.folder)


def edited(path, old, new):
    """Replaces the only occurrence of `old` in a file."""
    content = path.read_bytes()
    assert content.count(old) == 1
    path.write_bytes(content.replace(old, new))


@pytest.fixture
def newer(kept):
    """A set whose `plain.h5` has digests of a newer format."""
    with h5py.File(kept.path("plain.h5"), "r+") as file:
        file["_raddle"].attrs.modify("format", np.uint64(1000))
    return kept


def test_digests_of_a_newer_format_are_refused(raddle, newer):
    for command in (["verify", "plain.h5"], ["append", "plain.h5", newer["outputs"]["plain.h5"]["append"]]):
        before = newer.path("plain.h5").read_bytes()
        shown = raddle(*command, cwd=newer.folder, expect=3).stderr
        assert "have format 1000" in shown and "use a newer raddle" in shown
        assert newer.path("plain.h5").read_bytes() == before
    for name, expected in newer["outputs"]["plain.h5"]["values"].items():
        assert read(newer.path("plain.h5"), name) == expected


def test_digests_of_an_older_format_are_reported(raddle, kept):
    with h5py.File(kept.path("plain.h5"), "r+") as file:
        file["_raddle"].attrs.modify("format", np.uint64(1))
    assert "by an older raddle" in raddle("verify", "plain.h5", cwd=kept.folder, expect=3).stderr
    raddle("verify", "plain.h5", "--against", *kept["outputs"]["plain.h5"]["against"], cwd=kept.folder)


def test_an_index_of_a_newer_format_is_refused(kept):
    path = kept.path(kept["indexed"]["index"])
    content = bytearray(path.read_bytes())
    content[len(b"raddlest")] = 99
    path.write_bytes(content)
    with pytest.raises(package.errors.InputError, match=r"has version \d+, and this raddle knows \d+"):
        package.scan(kept.path(kept["indexed"]["file"]))["trk"]


def test_idx_of_a_newer_version_is_refused(raddle, kept):
    edited(kept.path("cube.idx"), b"(version)\n6\n", b"(version)\n1000\n")
    assert "version 1000 is unknown" in raddle("idx", "info", "cube.idx", cwd=kept.folder, expect=3).stderr


def test_a_profile_of_a_newer_format_is_refused(raddle, kept):
    edited(kept.path(kept["profile"]), b"form = 1\n", b"form = 1000\n")
    options = ["-o", "again.idx", "--profile", kept["profile"]]
    shown = raddle("idx", "write", kept["idx"]["input"], *options, cwd=kept.folder, expect=3).stderr
    assert "has format 1000" in shown and "newer" in shown
