"""Sums of `raddle inspect` over files, compared with h5py's counts."""

import json

import h5py
import pytest
from conftest import write_events


def counted(paths):
    """Counts groups, empty datasets and attributes, and for narrow and wide datasets their number, bytes of values and
    stored bytes."""
    sums = {"groups": 0, "empty_datasets": 0, "attributes": 0}
    kinds = {kind: {"datasets": 0, "logical_len_bytes": 0, "stored_len_bytes": 0} for kind in ["narrow", "wide"]}
    for path in paths:
        with h5py.File(path) as file:
            sums["groups"] += 1
            sums["attributes"] += len(file.attrs)

            def count(_, item):
                sums["attributes"] += len(item.attrs)
                if isinstance(item, h5py.Group):
                    sums["groups"] += 1
                    return
                kind = kinds["narrow" if all(size == 1 for size in item.shape[1:]) else "wide"]
                kind["datasets"] += 1
                kind["logical_len_bytes"] += item.size * item.dtype.itemsize
                kind["stored_len_bytes"] += item.id.get_storage_size()
                sums["empty_datasets"] += item.size == 0

            file.visititems(count)
    return {**sums, **kinds}


def test_the_sum_over_files(raddle, events, tmp_path):
    found = json.loads(raddle("inspect", *events, "--total", "--json").stdout)
    wanted = counted(events)
    assert {name: found[name] for name in wanted} == wanted
    lengths = [path.stat().st_size for path in events]
    assert found["files"] == len(events) and found["faults"] == 0
    assert found["file_len_bytes"] == sum(lengths) == sum(found["space"].values())
    assert [found[f"{which}_file_len_bytes"] for which in ["shortest", "longest"]] == [min(lengths), max(lengths)]
    each = raddle("inspect", *events, "--json").stdout
    assert each.count('"file"') == len(events) and "shortest_file_len_bytes" not in each
    text = raddle("inspect", *events, "--total").stdout
    assert text.startswith("4 files: ") and "one value a row" in text and str(events[0]) not in text
    # For several files the sum comes last; for one file there is no sum.
    assert raddle("inspect", *events).stdout.endswith(text)
    assert "one value a row" not in raddle("inspect", events[0]).stdout


@pytest.mark.parametrize("options", [[], ["--total"]])
def test_a_file_that_cannot_be_read_is_named_and_not_counted(raddle, tmp_path, options):
    good, bad = write_events(tmp_path / "a.h5", 1), tmp_path / "b.h5"
    bad.write_bytes(b"no HDF5")
    finished = raddle("inspect", good, bad, "--json", *options, expect=3)
    assert "b.h5" in finished.stderr
    if options:
        assert json.loads(finished.stdout)["files"] == 1
