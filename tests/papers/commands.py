"""Commands that demonstrate items of the papers, each with a check of its answer."""

import json
import os
import subprocess
from pathlib import Path

RADDLE = os.environ.get("RADDLE", str(Path(__file__).parents[2] / "target/debug/raddle"))

CHECKS = {}
# Commands that take tens of seconds: only --run executes them.
SLOW = set()


def check(words, slow=False):
    """Registers a function that executes a command, which `words` describe, and checks its answer."""

    def register(function):
        CHECKS[function.__name__] = (words, function)
        if slow:
            SLOW.add(function.__name__)
        return function

    return register


def raddle(*words, expect=0):
    environment = {**os.environ, "NO_COLOR": "1"}
    done = subprocess.run([RADDLE, *map(str, words)], capture_output=True, text=True, timeout=600, check=False, env=environment)
    assert done.returncode == expect, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout


def answer(*words):
    return json.loads(raddle(*words, "--json"))


def inputs(folder):
    """Makes files like those of NOvA."""
    files = folder / "files"
    if not files.exists():
        raddle("demo", "--workload", "tiny", "--only-generate", "--keep", files, "-q")
    return sorted(files.glob("*.h5"))


def columns(path):
    """Returns all datasets of a file except raddle's own, by path."""
    import h5py

    found = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, node: found.update({name: node[()]}) if isinstance(node, h5py.Dataset) and not name.startswith("_raddle") else None)
    return found


def equal(one, other):
    import numpy as np

    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


def concatenated(paths):
    import numpy as np

    parts = [columns(path) for path in paths]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


@check("raddle demo --workload tiny --only-generate --keep FOLDER")
def made_files(folder):
    for path in inputs(folder):
        found = columns(path)
        spill = len(found["spill/evt"])
        assert {"spill/run", "spill/subrun", "spill/evt"} <= found.keys()
        assert spill == len(found["spill/run"]) > 0
        assert any(len(values) == 0 for values in found.values())


@check("raddle inspect --total --json FILES")
def total(folder):
    paths = inputs(folder)
    all_of_them = answer("inspect", "--total", *paths)
    assert all_of_them["files"] == len(paths)
    assert all_of_them["file_len_bytes"] == sum(path.stat().st_size for path in paths)


@check("raddle merge FILES -o OUTPUT")
def concatenation(folder):
    output = folder / "merged.h5"
    raddle("merge", *inputs(folder), "-o", output, "-q")
    assert equal(columns(output), concatenated(inputs(folder)))


@check("raddle append OUTPUT FILE")
def append(folder):
    output = folder / "appended.h5"
    *first, last = inputs(folder)
    raddle("merge", *first, "-o", output, "--extendible", "-q")
    raddle("append", output, last, "-q")
    assert equal(columns(output), concatenated(inputs(folder)))


@check("raddle append KEYED FILE")
def append_with_keys(folder):
    grown, whole = folder / "grown.h5", folder / "whole.h5"
    options = ["--keys", "/spill/evt", "--key-scope", "input", "-q"]
    *first, last = inputs(folder)
    raddle("merge", *first, "-o", grown, "--extendible", *options)
    raddle("append", grown, last, "-q")
    raddle("merge", *inputs(folder), "-o", whole, *options)
    assert equal(columns(grown), columns(whole))


def keyed(folder):
    output = folder / "keyed.h5"
    if not output.exists():
        raddle("merge", *inputs(folder), "-o", output, "--keys", "/spill/evt", "--key-scope", "input", "-q")
    return output


@check("raddle merge FILES -o OUTPUT --keys /spill/evt --key-scope input")
def keys(folder):
    import numpy as np

    found = columns(keyed(folder))
    parts = [columns(path) for path in inputs(folder)]
    for group in ["rec.me.kalman", "rec.training.cvnmaps"]:
        first, expected = 0, []
        for part in parts:
            # The position of each event in the index group of its file.
            place = {event: number for number, event in enumerate(part["spill/evt"][:, 0].tolist())}
            expected += [first + place[event] for event in part[f"{group}/evt"][:, 0].tolist()]
            first += len(place)
        assert np.array_equal(found[f"{group}/evt.seq"][:, 0], expected), group


@check("raddle keys check OUTPUT")
def checked_keys(folder):
    import h5py

    path = folder / "changed.h5"
    path.write_bytes(keyed(folder).read_bytes())
    raddle("keys", "check", path)
    with h5py.File(path, "r+") as file:
        file["rec.me.kalman/evt.seq"][0] = 10**6
    done = subprocess.run([RADDLE, "keys", "check", path], capture_output=True, check=False)
    assert done.returncode != 0


@check("raddle merge --union FILES -o OUTPUT")
def union(folder):
    import h5py
    import numpy as np

    paths = [folder / "one.h5", folder / "other.h5"]
    for path, name in zip(paths, "ab", strict=True):
        with h5py.File(path, "w") as file:
            file.create_dataset(f"{name}/values", data=np.arange(1000.0), chunks=(100,), compression="gzip")
    raddle("merge", "--union", *paths, "-o", folder / "union.h5", "-q")
    assert equal(columns(folder / "union.h5"), columns(paths[0]) | columns(paths[1]))


@check("raddle keys events OUTPUT --json")
def events(folder):
    sizes = answer("keys", "events", keyed(folder))
    assert sizes["events"] == len(columns(keyed(folder))["spill/evt"])
    assert sizes["least_len_bytes"] <= sizes["median_len_bytes"] <= sizes["greatest_len_bytes"]
    assert sum(part["events"] for part in sizes["histogram"]) == sizes["events"]


@check("raddle rechunk FILE -o OUTPUT --chunk 1000rows -c gzip:1")
def rechunk(folder):
    output, source = folder / "rechunked.h5", inputs(folder)[0]
    raddle("rechunk", source, "-o", output, "--chunk", "1000rows", "-c", "gzip:1", "-q")
    assert equal(columns(output), columns(source))


@check("raddle merge FILES -o OUTPUT --contiguous")
def contiguous(folder):
    import h5py

    output = folder / "contiguous.h5"
    raddle("merge", *inputs(folder), "-o", output, "--contiguous", "-q")
    assert equal(columns(output), concatenated(inputs(folder)))
    with h5py.File(output) as file:
        assert all(file[name].chunks is None for name in columns(output))


@check("raddle rechunk FILE -o OUTPUT --rank-1")
def rank_1(folder):
    output, source = folder / "rank1.h5", inputs(folder)[0]
    raddle("rechunk", source, "-o", output, "--rank-1", "-q")
    before = {name: values[:, 0] if values.shape[1:] == (1,) else values for name, values in columns(source).items()}
    assert equal(columns(output), before)
    assert any(values.ndim == 1 for values in before.values())


@check("raddle merge FILES -o OUTPUT --link external-objects")
def links(folder):
    import h5py

    paths = [folder / "left.h5", folder / "right.h5"]
    for path, name in zip(paths, "ab", strict=True):
        with h5py.File(path, "w") as file:
            file[f"{name}/values"] = range(10)
    raddle("merge", *paths, "-o", folder / "links.h5", "--link", "external-objects", "-q")
    with h5py.File(folder / "links.h5") as file:
        found = {name: file.get(name, getlink=True) for name in "ab"}
        assert {name: (link.filename, link.path) for name, link in found.items()} == {"a": ("left.h5", "/a"), "b": ("right.h5", "/b")}
        assert list(file["b/values"]) == list(range(10))


@check("raddle plan --stat NOvA-ND --simulate ranks=40 files=160 per-machine=10 opens=20")
def reading(folder):
    words = ["plan", "--stat", "NOvA-ND", "--simulate", "ranks=40", "files=160", "per-machine=10", "opens=20"]
    by_tiles, by_machine, by_all = answer(*words)["readings"]
    assert [way["ranks_per_group"] for way in (by_tiles, by_machine, by_all)] == [1, 10, 40]
    assert by_all["opens"] == 160 < by_machine["opens"] <= 640 < 4000 < by_tiles["opens"]
    assert not by_tiles["is_chosen"] and by_all["execute_s"] < by_tiles["execute_s"]


@check("raddle keys partition OUTPUT -n 7 --json")
def shares(folder):
    import numpy as np

    found, parts = columns(keyed(folder)), answer("keys", "partition", keyed(folder), "-n", "7")
    sequence = found["rec.me.kalman/evt.seq"][:, 0]
    for part in parts:
        rows = next(table["rows"] for table in part["tables"] if table["group"] == "/rec.me.kalman")
        bounds = [part["events"]["start"], part["events"]["end"]]
        assert [rows["start"], rows["end"]] == np.searchsorted(sequence, bounds).tolist()


@check("raddle keys partition OUTPUT -n 3 --chunks --json")
def shared_chunks(folder):
    groups = answer("keys", "partition", keyed(folder), "-n", "3", "--chunks")
    for group in groups:
        assert group["chunks"] <= group["reads"] <= 3 * group["chunks"] and group["shared"] <= group["chunks"]
    assert any(group["shared"] for group in groups)


@check("raddle plan --stat NOvA-ND --simulate ranks=165")
def predicted_nova(folder):
    few, many = (answer("plan", "--stat", "NOvA-ND", "--simulate", f"ranks={ranks}") for ranks in (3, 165))
    assert few["predicted"]["execute_s"] > 10 * many["predicted"]["execute_s"]


@check("raddle plan --stat NOvA-ND --simulate ranks=128 files=128 memory=256MiB")
def rounds(folder):
    words = ["plan", "--stat", "NOvA-ND", "--simulate", "ranks=128", "files=128"]
    few, some, most = (answer(*words, f"memory={memory}")["rounds"] for memory in ("1GiB", "256MiB", "128MiB"))
    assert few < some < most


@check("raddle idx plan --ranks 32768 --per-rank 30x30x30 --box default,expanded")
def table_2(folder):
    boxes = answer("idx", "plan", "--ranks", "32768", "--per-rank", "30x30x30", "--field", "float64[11]")["boxes"]
    assert [box["holders"] for box in boxes] == [27000, 3375]


@check("raddle idx plan --ranks 131072 --per-rank 30x30x30", slow=True)
def many_ranks(folder):
    (box,) = answer("idx", "plan", "--ranks", "131072", "--per-rank", "30x30x30", "--box", "default")["boxes"]
    assert box["ranks"] == 131072 and box["aggregators"]["count"] > 0


@check("raddle idx plan --ranks 16384 --per-rank 30x30x30 --field float64,float64,float64[3],float64[11]")
def balance(folder):
    fields = "float64,float64,float64[3],float64[11]"
    # Bytes to owners, as a part of the samples: five eighths if every block goes to the rank that holds most of it.
    for ranks in ("8", "16384"):
        (box,) = answer("idx", "plan", "--ranks", ranks, "--per-rank", "30x30x30", "--field", fields, "--box", "default")["boxes"]
        share, sent = box["aggregators"]["raw_len_bytes"], box["aggregate"]["len_bytes"]
        assert share["most"] < 1.1 * share["mean"], share
        assert sent["mean"] < 1.15 * 5 / 8 * 30**3 * 16 * 8, sent


@check("raddle bench occam-2005 --scale full --time 0 --blocks 1")
def full_field(folder):
    words = ["bench", "occam-2005", "--scale", "full", "--time", "0", "--blocks", "1", "--only", "chunk-gzip", "--scratch", folder]
    (experiment,) = answer(*words)["experiments"]
    kernel = experiment["kernel"]
    assert kernel["levels"] * kernel["rows"] * kernel["longitudes"] * 4 == 1_970_749_440


@check("raddle events bench --sinks pds,batch")
def streams(folder):
    words = ["events", "bench", "--source", "test", "--events", "500", "--threads", "1", "--rounds", "1", "--folder", folder]
    measured = answer(*words, "--sinks", "pds,batch,cce-batch")
    assert [one["sink"] for one in measured] == ["pds", "batch", "cce-batch"]
    assert all(one["entries"] == 500 and one["len_bytes"] > 0 for one in measured)
