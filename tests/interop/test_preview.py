"""``merge --preview``: small IDX datasets of the arrays of a merge, against the merged file at every resolution."""

import json
import os

import h5py
import numpy as np
import pytest

KINDS = {"rho": ("<f4", (48, 70, 33)), "big": (">i2", (50, 40)), "deep": ("<f8", (20, 33, 1, 40)), "wide": ("u1", (6, 3, 2, 64, 36))}


def write_arrays(path, seed, chunked=True, **more):
    """Writes arrays of two to five axes in two groups, and datasets that have no preview."""
    random = np.random.default_rng(seed)
    with h5py.File(path, "w") as file:
        for name, (kind, shape) in KINDS.items():
            rows = shape[0] + 5 * seed
            values = random.integers(0, 200, (rows, *shape[1:])).astype(kind)
            chunks = tuple(max(1, length // 3) for length in values.shape) if chunked else None
            file.create_dataset(f"fields/{name}", data=values, chunks=chunks, **more)
        file["fields.rho"] = random.random((40, 40), np.float32)
        file["column"] = np.arange(500 + seed)
        file["vectors"] = random.random((2000, 3))
        file["words"] = np.full((64, 64), b"abc")
        file["complex"] = np.zeros((64, 64), "c8")
        file.create_dataset("empty", (0, 64, 64), "f4", maxshape=(None, 64, 64))
    return path


@pytest.fixture
def inputs(tmp_path):
    return [write_arrays(tmp_path / f"in{seed}.h5", seed) for seed in [1, 2, 3]]


def header_of(path):
    """Returns the keys of an .idx file with their values."""
    lines = path.read_text().splitlines()
    return {key[1:-1]: value for key, value in zip(lines[::2], lines[1::2], strict=True)}


def lattice(values, spacing):
    """Returns every n-th element along each axis; ``spacing`` is a string with one number per axis, x first."""
    return values[tuple(slice(None, None, int(step)) for step in reversed(spacing.split()))]


def assert_is_preview(raddle, folder, output, names, scratch):
    """Asserts that every dataset of ``folder`` is the merged array at every resolution."""
    assert sorted(path.stem for path in folder.glob("*.idx")) == sorted(names)
    with h5py.File(output) as file:
        for path in folder.glob("*.idx"):
            raddle("idx", "verify", path, "--quiet")
            header = header_of(path)
            values = file[header["preview of"]][()]
            whole = lattice(values, header["preview spacing"])
            for resolution in range(len(header["bits"])):
                digits = header["bits"][1 + resolution :]
                wanted = lattice(whole, " ".join(str(2 ** digits.count(str(axis))) for axis in range(values.ndim)))
                raddle("idx", "read", path, "-o", scratch, "-f", "--resolution", resolution)
                got = np.load(scratch)
                assert got.dtype == values.dtype.newbyteorder("<")
                assert np.array_equal(got, wanted), (path, resolution)


NAMES = ["fields.rho", "fields_rho", "fields.big", "fields.deep", "fields.wide"]


@pytest.mark.parametrize("samples", [1024, 30_000, 1 << 22])
@pytest.mark.parametrize("how", [(), ("-c", "keep"), ("-c", "keep", "--no-provenance"), ("--for", "random", "-c", "none")])
def test_every_resolution_is_the_merged_data(raddle, inputs, tmp_path, samples, how):
    output = tmp_path / "out.h5"
    message = raddle("merge", *inputs, "-o", output, "--preview", "--preview-samples", samples, *how).stdout
    assert "preview: 5 datasets in " in message
    assert_is_preview(raddle, tmp_path / "out.h5.preview", output, NAMES, tmp_path / "part.npy")
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_stored_chunks_of_a_union_are_decoded_for_it(raddle, tmp_path):
    """Chunks moved as stored and not decoded for digests, some of them never written."""
    first, second = tmp_path / "a.h5", tmp_path / "b.h5"
    with h5py.File(first, "w") as file:
        sparse = file.create_dataset("sparse", (90, 80), "i4", chunks=(16, 16), compression="gzip", fillvalue=7)
        sparse[20:30, 5:50] = np.arange(450).reshape(10, 45)
    with h5py.File(second, "w") as file:
        values = np.random.default_rng(1).random((64, 64, 20))
        file.create_dataset("cube", data=values, chunks=(5, 64, 20), compression="lzf", shuffle=True)
    output = tmp_path / "out.h5"
    raddle("merge", first, second, "-o", output, "--union", "--preview", "--preview-samples", 1024)
    assert_is_preview(raddle, tmp_path / "out.h5.preview", output, ["sparse", "cube"], tmp_path / "part.npy")


def files_of(folder):
    """Returns the files of a preview by name, except for the one that names its output."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != ".preview-of")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_the_same_files_for_any_number_of_threads(raddle, inputs, tmp_path):
    written = []
    for jobs in [1, 2, 5]:
        output, folder = tmp_path / f"out{jobs}.h5", tmp_path / f"look{jobs}"
        raddle("merge", *inputs, "-o", output, f"--preview={folder}", "--preview-samples", 9000, "-j", jobs)
        written.append((output.read_bytes(), files_of(folder)))
    assert written[0] == written[1] == written[2]


def test_the_output_is_that_of_a_merge_without(raddle, inputs, tmp_path):
    with_it, without = tmp_path / "with.h5", tmp_path / "without.h5"
    raddle("merge", *inputs, "-o", with_it, "--preview")
    raddle("merge", *inputs, "-o", without)
    assert with_it.read_bytes() == without.read_bytes()


def test_a_rechunk_has_one_too(raddle, inputs, tmp_path):
    output = tmp_path / "out.h5"
    raddle("rechunk", inputs[0], "-o", output, "--preview")
    assert_is_preview(raddle, tmp_path / "out.h5.preview", output, NAMES, tmp_path / "part.npy")


def test_openvisus_reads_it(raddle, inputs, tmp_path):
    os.environ.setdefault("VISUS_DISABLE_WRITE_LOCK", "1")
    openvisus = pytest.importorskip("OpenVisus", reason="OpenVisus is not installed (pip install OpenVisusNoGui)")
    output = tmp_path / "out.h5"
    raddle("merge", *inputs, "-o", output, "--preview", "--preview-samples", 9000)
    with h5py.File(output) as file:
        for name in NAMES:
            path = tmp_path / "out.h5.preview" / f"{name}.idx"
            header = header_of(path)
            wanted = lattice(file[header["preview of"]][()], header["preview spacing"])
            dataset = openvisus.LoadDataset(str(path))
            assert np.array_equal(np.asarray(dataset.read()).reshape(wanted.shape), wanted)
            if wanted.ndim > 3:
                continue
            # It has the position of the merged array: sample i at i times the spacing.
            placed = dataset.db.getDatasetBounds().toAxisAlignedBox()
            steps = [int(step) for step in header["preview spacing"].split()]
            far = [step * count for step, count in zip(steps, reversed(wanted.shape), strict=True)]
            assert [float(word) for word in placed.p2.toString().split()] == far
            assert set(placed.p1.toString().split()) == {"0"}


@pytest.mark.parametrize("chunk", ["64x64x64", "7x64x64"])
def test_memory_stays_within_the_budget(raddle, tmp_path, chunk):
    source, output, report = tmp_path / "in.h5", tmp_path / "out.h5", tmp_path / "report.json"
    with h5py.File(source, "w") as file:
        values = np.random.default_rng(5).random((200, 256, 256), np.float32)
        file.create_dataset("cube", data=values, chunks=(16, 256, 256))
        file.create_dataset("again", data=values, chunks=(16, 256, 256))
    options = ["--memory", "128MiB", "-j", 2, "--report", report, "-c", "fast", "--chunk", chunk]
    message = raddle("merge", source, "-o", output, "--preview", "--preview-samples", 1 << 24, *options)
    assert "at most 4,194,304 samples each: all must fit a quarter of --memory" in message.stderr
    found = json.loads(report.read_text())
    assert found["preview"]["held_len_bytes"] <= 32 << 20
    # The code of a build without optimisation takes up to 16 MiB more.
    assert found["memory"]["peak_rss_bytes"] < 1.1 * (128 << 20) + (16 << 20)
    assert_is_preview(raddle, tmp_path / "out.h5.preview", output, ["cube", "again"], tmp_path / "part.npy")


def test_what_cannot_be_is_refused_before_anything_is_written(raddle, inputs, tmp_path):
    output = tmp_path / "out.h5"

    def refused(expect, *arguments):
        before = sorted(tmp_path.iterdir())
        message = raddle("merge", *arguments, "-o", output, expect=expect).stderr
        assert sorted(tmp_path.iterdir()) == before
        return message

    assert "none has numbers along 2 to 5 axes" in refused(3, *inputs, "--preview", "--exclude", "fields*")
    assert "no part sees all values" in refused(2, *inputs, "--preview", "--part", "1/2")
    assert "leave out --link" in refused(2, *inputs, "--preview", "--link", "virtual")
    assert "--preview names the output" in refused(2, *inputs, f"--preview={output}")
    assert "--preview" in refused(2, *inputs, "--preview-samples", 5000)
    assert "--preview-samples 1023: a dataset has at least 1024 samples" in refused(2, *inputs, "--preview", "--preview-samples", 1023)
    assert "do not fit" in refused(6, *inputs, "--preview", "--memory", "20KiB")
    taken = tmp_path / "out.h5.preview"
    taken.mkdir()
    (taken / "notes.txt").write_text("mine")
    assert "exists" in refused(5, *inputs, "--preview")
    assert "contains files that are not blocks" in refused(5, *inputs, "--preview", "--force")
    assert (taken / "notes.txt").read_text() == "mine"


def test_an_older_preview_is_replaced_with_force_alone(raddle, inputs, tmp_path):
    output = tmp_path / "out.h5"
    raddle("merge", inputs[0], "-o", output, "--preview", "--preview-samples", 1024)
    before = files_of(tmp_path / "out.h5.preview")
    raddle("merge", *inputs, "-o", tmp_path / "other.h5", f"--preview={tmp_path / 'out.h5.preview'}", expect=5)
    assert files_of(tmp_path / "out.h5.preview") == before and not (tmp_path / "other.h5").exists()
    raddle("merge", *inputs, "-o", output, "--preview", "--force")
    assert_is_preview(raddle, tmp_path / "out.h5.preview", output, NAMES, tmp_path / "part.npy")


def test_outputs_of_one_stem_have_previews_of_their_own(raddle, inputs, tmp_path):
    first, second = tmp_path / "pv.nc", tmp_path / "pv.h5"
    options = ["--preview", "--preview-samples", 1024]
    raddle("merge", inputs[0], "-o", first, *options)
    before = files_of(tmp_path / "pv.nc.preview")
    raddle("merge", *inputs, "-o", second, *options, "--force")
    assert files_of(tmp_path / "pv.nc.preview") == before and (tmp_path / "pv.h5.preview").is_dir()
    # Also if the folder is named.
    named = f"--preview={tmp_path / 'pv.nc.preview'}"
    message = raddle("merge", *inputs, "-o", second, named, "--force", expect=5).stderr
    assert "pv.nc" in message and "--preview=FOLDER" in message and files_of(tmp_path / "pv.nc.preview") == before


def test_a_dry_run_says_what_there_would_be(raddle, inputs, tmp_path):
    message = raddle("merge", *inputs, "-o", tmp_path / "out.h5", "--preview", "-n", "--preview-samples", 9000).stdout
    assert "preview: 5 datasets in " in message and "of /fields/rho" in message
    assert not list(tmp_path.glob("*.preview"))
