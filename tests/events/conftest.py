"""Reads raddle's columns of event files as awkward arrays, through the example program ``dump``."""

import json
import os
import subprocess
from pathlib import Path

import awkward as ak
import numpy as np
import pytest

DUMP = os.environ.get("RADDLE_DUMP", str(Path(__file__).parents[2] / "target/debug/examples/dump"))


class Dumped:
    """The columns of a file, by product."""

    def __init__(self, folder, notes):
        about = json.loads((folder / "schema.json").read_text())
        self.entries = about["entries"]
        self.ids = about["ids"]
        self.notes = notes
        self.products = {product["name"]: product for product in about["products"]}
        self.arrays = {}
        for number, product in enumerate(about["products"]):
            files = sorted(folder.glob(f"{number}.*.*"), key=lambda path: int(path.name.split(".")[1]))
            buffers = iter([np.frombuffer(path.read_bytes(), path.suffix[1:]) for path in files])
            layout = _layout(product["form"], buffers)
            assert next(buffers, None) is None
            self.arrays[product["name"]] = ak.Array(layout)

    def __getitem__(self, name):
        return self.arrays[name]

    def form(self, name):
        return self.products[name]["form"]

    def raw(self, name):
        """Returns the bytes of each entry."""
        assert self.form(name) == {"blob": "basket"}
        return [bytes(entry) for entry in ak.to_list(self.arrays[name])]


def _layout(form, buffers):
    from awkward.contents import ListOffsetArray, NumpyArray, RecordArray, RegularArray
    from awkward.index import Index64

    def offsets():
        return Index64(next(buffers).astype(np.int64))

    if form == "string":
        starts = offsets()
        text = NumpyArray(next(buffers), parameters={"__array__": "char"})
        return ListOffsetArray(starts, text, parameters={"__array__": "string"})
    ((kind, inner),) = form.items()
    if kind == "number":
        return NumpyArray(next(buffers))
    if kind == "regular":
        content = _layout(inner["content"], buffers)
        return RegularArray(content, inner["length"])
    if kind == "list":
        starts = offsets()
        return ListOffsetArray(starts, _layout(inner, buffers))
    if kind == "record":
        return RecordArray([_layout(field["form"], buffers) for field in inner], [field["name"] for field in inner])
    if kind == "blob":
        starts = offsets()
        return ListOffsetArray(starts, NumpyArray(next(buffers), parameters={"__array__": "byte"}), parameters={"__array__": "bytestring"})
    raise AssertionError(form)


@pytest.fixture
def dump(tmp_path):
    """Reads a file with raddle: ``dump(path, tree=None, raw=False)``; ``expect`` is the expected text of a refusal."""
    count = iter(range(10**6))

    def run(path, tree=None, raw=False, expect=None):
        out = tmp_path / f"dumped{next(count)}"
        command = [DUMP, str(path), str(out), *([tree] if tree else []), *(["--raw"] if raw else [])]
        finished = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if expect is not None:
            assert finished.returncode == 1, f"{command}: {finished.stderr}"
            assert expect in finished.stderr
            return None
        assert finished.returncode == 0, f"{command}: {finished.stderr}"
        return Dumped(out, finished.stderr)

    return run
