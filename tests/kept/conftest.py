"""The kept sets, the command under test, and the package in python/."""

import json
import sys
import tarfile
from pathlib import Path

import hdf5plugin  # noqa: F401  (before netCDF4, whose plugins h5py would load instead and fail with)
import pytest
from command import raddle  # noqa: F401

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "python"))
SETS = sorted(path.parent for path in HERE.glob("*/set.json"))


class KeptSet:
    """The unpacked files of a set, and its description."""

    def __init__(self, source, folder):
        self.folder = folder
        self.about = json.loads((source / "set.json").read_text(encoding="utf-8"))
        with tarfile.open(source / "files.tar.xz") as archive:
            archive.extractall(folder, filter="data")

    def __getitem__(self, name):
        return self.about[name]

    def path(self, name):
        return self.folder / name


@pytest.fixture(params=SETS, ids=lambda path: path.name)
def kept(request, tmp_path):
    return KeptSet(request.param, tmp_path / "kept")
