"""Partition keys of a growing file equal those of a single merge of all inputs."""

import shutil

import h5py
import numpy as np
import pytest
from conftest import visit

KEYS = {
    "file": ["--keys", "/spill/run,/spill/evt"],
    "input": ["--keys", "/spill/evt", "--key-scope", "input"],
}
RUN = ["/spill/run", "/spill/evt"]


def write(path, run, events, tables, *, first_event=0, chunk=16):
    """Writes a file of one run. ``tables`` maps the name of each table to its number of rows per event."""
    options = {"maxshape": (None, 1), "chunks": (chunk, 1), "compression": 1}
    ids = first_event + np.arange(events, dtype="i4")
    with h5py.File(path, "w") as file:
        file.create_dataset("header/cycle", data=np.full(1, 7, "i4"), maxshape=(None,))
        for name, rows in {"spill": np.ones(events, int), **tables}.items():
            group = file.create_group(name)
            of_rows = np.repeat(ids, rows)
            columns = {"run": np.full_like(of_rows, run), "evt": of_rows, "x": np.arange(len(of_rows)) + 1000.0 * run}
            for column, values in columns.items():
                group.create_dataset(column, data=values[:, None], **options)
    return path


def random_inputs(folder, seed, count=6, most=40):
    random = np.random.default_rng(seed)
    paths = []
    for run in range(count):
        events = int(random.integers(0, most))
        tables = {name: random.integers(0, 4, events) for name in ["trk", "hit"]}
        tables["empty"] = np.zeros(events, int)
        paths.append(write(folder / f"run{run}.h5", run, events, tables))
    return paths


def assert_same(found, wanted):
    found, wanted = visit(found), visit(wanted)
    assert sorted(found) == sorted(wanted)
    for name, values in wanted.items():
        assert found[name].shape == values.shape and found[name].tobytes() == values.tobytes(), name


@pytest.mark.parametrize("scope", KEYS)
@pytest.mark.parametrize("parts", [[1, 5], [3, 2, 1], [1, 1, 1, 1, 1, 1], [5, 1]], ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_keys_continue(raddle, tmp_path, scope, parts, seed):
    inputs = random_inputs(tmp_path, seed)
    output, wanted = tmp_path / "out.h5", tmp_path / "wanted.h5"
    raddle("merge", *inputs, "-o", wanted, *KEYS[scope])
    rest = list(inputs)
    for number, count in enumerate(parts):
        some, rest = rest[:count], rest[count:]
        if number == 0:
            raddle("merge", *some, "-o", output, *KEYS[scope])
        else:
            raddle("append", output, *some)
    assert_same(output, wanted)
    raddle("verify", output)
    raddle("verify", output, "--against", *inputs)
    raddle("keys", "check", output)
    raddle("keys", "add", wanted, "-k", KEYS[scope][1], *KEYS[scope][2:], "--force")
    assert_same(output, wanted)


@pytest.mark.parametrize("chunks", [[], ["--chunk", "1rows"]], ids=["chosen", "one row"])
def test_keys_continue_where_chunks_are_moved(raddle, tmp_path, chunks):
    # No input stores keys, so their chunks cannot be moved, even if the old rows fill whole chunks.
    inputs = random_inputs(tmp_path, 6)
    output, wanted = tmp_path / "out.h5", tmp_path / "wanted.h5"
    raddle("merge", *inputs, "-o", wanted, *KEYS["file"])
    raddle("merge", *inputs[:3], "-o", output, *KEYS["file"], *chunks)
    raddle("keys", "spill-index", "/header/cycle", output)
    raddle("keys", "spill-index", "/header/cycle", wanted)
    raddle("append", output, *inputs[3:], "-c", "keep")
    assert_same(output, wanted)
    raddle("verify", output)


@pytest.mark.parametrize("join", ["outer", "inner"])
def test_keys_continue_in_files_of_other_joins(raddle, tmp_path, join):
    inputs = random_inputs(tmp_path, 7)
    for path in inputs[:2]:
        with h5py.File(path, "a") as file:
            del file["hit/x"]
    # Columns of the second file are the template; an inner join leaves one out.
    output, wanted = tmp_path / "out.h5", tmp_path / "wanted.h5"
    raddle("merge", *inputs, "-o", wanted, "--join", join, *KEYS["file"])
    raddle("merge", *inputs[:3], "-o", output, "--join", join, *KEYS["file"])
    raddle("append", output, *inputs[3:])
    assert_same(output, wanted)


def test_keys_continue_next_to_added_columns(raddle, tmp_path):
    inputs = random_inputs(tmp_path, 5)
    for number, path in enumerate(inputs):
        with h5py.File(path, "a") as file:
            file.attrs["site"] = np.int32(number)
    options = [*KEYS["file"], "--add-column", "site=@site"]
    output, wanted, again = (tmp_path / f"{name}.h5" for name in ("out", "wanted", "again"))
    raddle("merge", *inputs, "-o", wanted, *options)
    raddle("merge", *inputs[:3], "-o", output, *options)
    raddle("append", output, *inputs[3:])
    assert_same(output, wanted)
    raddle("verify", output)
    raddle("verify", output, "--against", *inputs)
    # The keys of inputs are computed again, so their numbers of rows do not matter.
    keyed = [path.rename(path.with_stem(f"keyed{number}")) for number, path in enumerate(inputs)]
    for path in keyed:
        raddle("keys", "add", path, "-k", KEYS["file"][1])
    raddle("merge", *keyed, "-o", again, *options)
    assert_same(again, wanted)
    raddle("verify", again, "--against", *keyed)


def test_skipped_groups_and_first_values_continue(raddle, tmp_path):
    inputs = random_inputs(tmp_path, 3)
    skipping = [*KEYS["file"], "--key-skip", "/hit"]
    output, wanted = tmp_path / "out.h5", tmp_path / "wanted.h5"
    for path, some in [(wanted, inputs), (output, inputs[:2])]:
        raddle("merge", *some, "-o", path, *skipping)
        raddle("keys", "spill-index", "/header/cycle", path)
    assert "hit/evt.seq" not in visit(output) and "spill/cycle" in visit(output)
    raddle("append", output, *inputs[2:])
    found, wanted = visit(output), visit(wanted)
    assert sorted(found) == sorted(wanted)
    assert all(found[name].tobytes() == values.tobytes() for name, values in wanted.items())
    raddle("verify", output)


def test_keys_that_were_added_later_continue(raddle, tmp_path):
    inputs = random_inputs(tmp_path, 4)
    output, wanted = tmp_path / "out.h5", tmp_path / "wanted.h5"
    raddle("merge", *inputs, "-o", wanted, *KEYS["input"])
    raddle("merge", *inputs[:3], "-o", output)
    raddle("keys", "add", output, "-k", "/spill/evt", "--key-scope", "input")
    raddle("append", output, *inputs[3:])
    assert_same(output, wanted)


@pytest.mark.parametrize("in_place", [False, True])
def test_a_rechunked_file_knows_its_keys(raddle, tmp_path, in_place):
    inputs = random_inputs(tmp_path, 8)
    output, wanted, again = tmp_path / "out.h5", tmp_path / "wanted.h5", tmp_path / "again.h5"
    raddle("merge", *inputs, "-o", wanted, *KEYS["file"])
    raddle("merge", *inputs[:3], "-o", output, *KEYS["file"])
    raddle("keys", "spill-index", "/header/cycle", output)
    if in_place:
        shutil.copy(output, again)
    raddle("rechunk", *([again, "--in-place"] if in_place else [output, "-o", again]), "--for", "random")
    raddle("verify", again, "--against", output)
    raddle("verify", again, "--against", *inputs[:3])
    raddle("select", again, "--where", "trk: x > 0", "-o", tmp_path / "skim.h5")
    raddle("append", again, *inputs[3:])
    raddle("verify", again)
    raddle("verify", again, "--against", *inputs)
    with h5py.File(again, "a") as file:
        assert (file["spill/cycle"][:] == 7).all()
        del file["spill/cycle"]
    assert_same(again, wanted)


def test_ids_of_single_inputs_are_those_of_one_after_rechunk(raddle, tmp_path):
    """The rows of a rechunked file come from one input, in which event numbers repeat."""
    inputs = [write(tmp_path / f"{run}.h5", run, 4, {"trk": np.full(4, 2)}) for run in range(3)]
    output, again, both = tmp_path / "out.h5", tmp_path / "again.h5", tmp_path / "both.h5"
    raddle("merge", *inputs[:2], "-o", output, *KEYS["input"], "--repeated-ids", "first")
    raddle("rechunk", output, "-o", again)
    raddle("verify", again, "--against", output)
    raddle("verify", again, "--against", *inputs[:2])
    refused(raddle, again, inputs[2], names=["/spill", "ids that an earlier row has"])
    assert "--keys" in raddle("merge", again, output, "-o", both, "--duplicates", "keep", expect=3).stderr


@pytest.mark.parametrize("made", ["seq", "seq,offsets", "seq,seq-cnt"])
def test_only_existing_keys_continue(raddle, tmp_path, made):
    inputs = random_inputs(tmp_path, 5)
    output, wanted = tmp_path / "out.h5", tmp_path / "wanted.h5"
    keys = [*KEYS["file"], "--key-datasets", made]
    raddle("merge", *inputs, "-o", wanted, *keys)
    raddle("merge", *inputs[:3], "-o", output, *keys)
    raddle("append", output, *inputs[3:])
    assert_same(output, wanted)


def test_inputs_may_have_keys_of_their_own(raddle, tmp_path):
    inputs = random_inputs(tmp_path, 6)
    wanted, output, second = (tmp_path / name for name in ["wanted.h5", "out.h5", "second.h5"])
    raddle("merge", *inputs, "-o", wanted, *KEYS["file"])
    raddle("merge", *inputs[:3], "-o", output, *KEYS["file"])
    raddle("merge", *inputs[3:], "-o", second, *KEYS["file"])
    raddle("append", output, second)
    assert_same(output, wanted)


def refused(raddle, output, *inputs, names=()):
    """Appends inputs that must be refused; the file stays unchanged."""
    before = output.read_bytes()
    message = " ".join(raddle("append", output, *inputs, expect=3).stderr.split())
    assert output.read_bytes() == before
    missing = [name for name in names if name not in message]
    assert not missing, message


def test_events_that_the_file_has_are_refused(raddle, tmp_path):
    first = write(tmp_path / "first.h5", 1, 5, {"trk": np.full(5, 2)})
    again = write(tmp_path / "again.h5", 1, 3, {"trk": np.full(3, 1)}, first_event=4)
    output = tmp_path / "out.h5"
    raddle("merge", first, "-o", output, *KEYS["file"])
    refused(raddle, output, again, names=["/spill", "leave out the inputs with these rows"])
    # Ids that are unique only within each input may repeat.
    raddle("merge", first, "-o", output, *KEYS["input"], "--force")
    raddle("append", output, again)


def test_rows_of_events_that_the_file_has_are_refused(raddle, tmp_path):
    first = write(tmp_path / "first.h5", 1, 5, {"trk": np.array([1, 2, 0, 0, 1])})
    more = write(tmp_path / "more.h5", 1, 0, {"trk": np.zeros(0, int)})
    output, wanted = tmp_path / "out.h5", tmp_path / "wanted.h5"

    def with_rows(events):
        with h5py.File(more, "a") as file:
            for name, values in [("run", np.ones(len(events))), ("evt", events), ("x", np.zeros(len(events)))]:
                file[f"trk/{name}"].resize((len(events), 1))
                file[f"trk/{name}"][:, 0] = values

    raddle("merge", first, "-o", output, *KEYS["file"])
    # Rows of the last event, which would change its number of rows; and rows of an earlier event, after its rows.
    for events in [[4], [2, 3]]:
        with_rows(events)
        refused(raddle, output, more, names=["/trk", "merge all inputs again"])
    # Without numbers of rows, the event numbers continue.
    only = [*KEYS["file"], "--key-datasets", "seq"]
    raddle("merge", first, "-o", output, *only, "--force")
    raddle("merge", first, more, "-o", wanted, *only)
    raddle("append", output, more)
    assert_same(output, wanted)


def test_a_table_without_order_keeps_its_numbers_of_events(raddle, tmp_path):
    inputs = [write(tmp_path / f"{run}.h5", run, 6, {"trk": np.full(6, 2)}) for run in range(3)]
    with h5py.File(inputs[0], "a") as file:
        file["trk/evt"][:] = file["trk/evt"][:][::-1]
    output, wanted = tmp_path / "out.h5", tmp_path / "wanted.h5"
    raddle("merge", *inputs, "-o", wanted, *KEYS["file"])
    raddle("merge", *inputs[:1], "-o", output, *KEYS["file"])
    assert "trk/evt.seq_cnt" not in visit(output)
    raddle("append", output, *inputs[1:])
    assert_same(output, wanted)
    # A file that loses its order also loses its row counts per event, so it cannot be appended to.
    raddle("merge", *inputs[1:], "-o", output, *KEYS["file"], "--force")
    refused(raddle, output, inputs[0], names=["/trk", "merge all inputs again"])


def test_ids_that_the_index_lacks_are_refused(raddle, tmp_path):
    first = write(tmp_path / "first.h5", 1, 5, {"trk": np.full(5, 2)})
    other = write(tmp_path / "other.h5", 2, 3, {"trk": np.full(3, 1)})
    with h5py.File(other, "a") as file:
        file["trk/evt"][1] = 99
    output = tmp_path / "out.h5"
    raddle("merge", first, "-o", output, *KEYS["file"])
    refused(raddle, output, other, names=["/trk", "99"])


def part_of(path, source, groups):
    """Writes some groups of a file to another one."""
    with h5py.File(source) as file, h5py.File(path, "w") as part:
        for group in groups:
            file.copy(group, part)
    return path


def test_a_union_knows_the_keys_of_its_inputs(raddle, tmp_path):
    """Concatenated keys would count the events of each file from 0."""
    inputs = random_inputs(tmp_path, 9, count=4)
    unions = []
    for number, path in enumerate(inputs[:2]):
        tables = part_of(tmp_path / f"tables{number}.h5", path, ["spill", "trk"])
        raddle("keys", "add", tables, "-k", KEYS["file"][1])
        # Has ids, but no index of its events.
        others = part_of(tmp_path / f"others{number}.h5", path, ["hit", "header"])
        unions.append(tmp_path / f"union{number}.h5")
        raddle("merge", tables, others, "-o", unions[-1], "--union")
        raddle("verify", unions[-1], "--against", tables, others)
    both, wanted = tmp_path / "both.h5", tmp_path / "wanted.h5"
    refused = raddle("merge", *unions, "-o", both, expect=3).stderr
    assert f"--keys {KEYS['file'][1]} recreates them" in " ".join(refused.split()), refused
    raddle("merge", *unions, "-o", both, *KEYS["file"], "--key-skip", "/hit")
    raddle("merge", *(part_of(tmp_path / f"whole{path.name}", path, ["spill", "trk", "hit", "header"]) for path in inputs[:2]),
           "-o", wanted, *KEYS["file"], "--key-skip", "/hit")
    assert_same(both, wanted)


def test_keys_that_were_left_out_are_not_expected(raddle, tmp_path):
    inputs = random_inputs(tmp_path, 11, count=3)
    output, part = tmp_path / "out.h5", tmp_path / "part.h5"
    raddle("merge", *inputs[:2], "-o", output, *KEYS["file"])
    raddle("merge", output, "-o", part, "--exclude", "*.offsets")
    raddle("verify", part, "--against", output)
    raddle("verify", part, "--against", *inputs[:2])
    raddle("append", part, inputs[2])
    assert not any(name.endswith(".offsets") for name in visit(part))
    raddle("verify", part, "--against", *inputs)
