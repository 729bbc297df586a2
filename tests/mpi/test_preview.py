"""``merge --preview`` on ranks: the preview of one process, byte for byte."""

import json

import h5py
import numpy as np
import pytest
from conftest import GOES_ON, Ranks, command_of, kill, wait_for_records


@pytest.fixture
def cubes(tmp_path):
    """Two inputs with arrays of three and two axes."""
    paths = []
    (tmp_path / "in").mkdir(exist_ok=True)
    for seed in (1, 2):
        path = tmp_path / "in" / f"cube{seed}.h5"
        random = np.random.default_rng(seed)
        with h5py.File(path, "w") as file:
            cube = random.random((60 + seed, 64, 50), np.float32)
            file.create_dataset("cube", data=cube, chunks=(4, 64, 50), compression="gzip")
            file.create_dataset("map", data=random.integers(0, 9, (300, 40)).astype(">i2"), chunks=(7, 40))
        paths.append(path)
    return paths


def files_of(folder):
    """Returns the files of a preview by name, except for the one that names its output."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != ".preview-of")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize("options", [[], ["-c", "keep"], ["--for", "random"]])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_the_preview_of_one_process(ranks, alone, cubes, tmp_path, size, options):
    options = [*options, "--preview-samples", 20_000, "-q"]
    alone("merge", *cubes, "-o", "one.h5", "--preview", *options)
    ranks(size, "merge", *cubes, "-o", "all.h5", "--preview", *options, "--report", "all.json")
    assert (tmp_path / "all.h5").read_bytes() == (tmp_path / "one.h5").read_bytes()
    assert files_of(tmp_path / "all.h5.preview") == files_of(tmp_path / "one.h5.preview")
    assert len(files_of(tmp_path / "all.h5.preview")) == 4
    assert len(json.loads((tmp_path / "all.json").read_text())["preview"]["datasets"]) == 2
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_one_voice_where_the_preview_is_taken(ranks, cubes, tmp_path):
    (tmp_path / "all.h5.preview").mkdir()
    _, err = ranks(3, "merge", *cubes, "-o", "all.h5", "--preview", "-q", expect=5)
    assert err.count("error:") == 1 and "all.h5.preview exists" in err
    assert not (tmp_path / "all.h5").exists()
    _, err = ranks(2, "merge", *cubes, "-o", "all.h5", "--preview=look", "--io", "collective", "-q", expect=2)
    assert err.count("error:") == 1 and "--preview and --index are of values that raddle moves" in err


@pytest.fixture(scope="module")
def tall(tmp_path_factory):
    """Inputs whose merge takes long enough to be killed before its end."""
    folder = tmp_path_factory.mktemp("tall")
    for seed in range(4):
        with h5py.File(folder / f"run{seed}.h5", "w") as file:
            data = np.random.default_rng(seed).integers(0, 1 << 16, (1500, 64, 64)).astype(np.int32)
            file.create_dataset("cube", data=data, chunks=(16, 64, 64), maxshape=(None, 64, 64))
    return folder


@pytest.fixture(scope="module")
def right(tall, tmp_path_factory):
    """The output of one process, and its preview."""
    folder = tmp_path_factory.mktemp("right")
    code, out, err = Ranks(folder, 0, preview_of(tall, folder / "out.h5")).end()
    assert code == 0, out + err
    return files_of(folder)


def preview_of(inputs, output):
    return [*command_of(inputs, output), "--preview", "--preview-samples", 30_000]


@pytest.mark.parametrize("size", [0, 2, 3])
def test_after_a_killed_rank_others_complete_the_preview(tmp_path, tall, right, size):
    command = preview_of(tall, tmp_path / "out.h5")
    started = Ranks(tmp_path, 3, command)
    assert wait_for_records(tmp_path, started)
    assert kill(started.ranks()[1])
    code, out, err = started.end()
    assert code != 0 and not (tmp_path / "out.h5").exists() and not (tmp_path / "out.h5.preview").exists(), out + err
    code, out, err = Ranks(tmp_path, size, command).end()
    assert code == 0 and GOES_ON in err, out + err
    assert files_of(tmp_path) == right
