"""`raddle apply --adapt` on unmodified programs: its choices and their reasons, its savings, and unchanged contents.

Savings are counted, not timed: the bytes that a program has asked the system to read and write (`/proc/self/io`)."""

import subprocess
import sys

import h5py
import numpy as np
import pytest

KIB, MIB = 1 << 10, 1 << 20

# `moved()` returns the bytes read and written since the last call; `cache(d)` returns a dataset's cache.
HEAD = """
import sys, os, h5py, numpy as np
before = 0
def moved():
    global before
    fields = dict(line.split(": ") for line in open("/proc/self/io").read().splitlines())
    now = int(fields["rchar"]) + int(fields["wchar"])
    before, since = now, now - before
    return since
def cache(dataset): return dataset.id.get_access_plist().get_chunk_cache()[1]
values = np.arange(6400.0)
moved()
"""

# Each row of 6,400 numbers is a part of 128 chunks, 20 MB together; HDF5 2.0 has a cache of 8 MiB.
WRITE_ROWS = HEAD + """
with h5py.File(sys.argv[1], "w") as file:
    for step in range(3):
        plane = file.create_dataset(f"step{step}/plane", (200, 6400), "f8", chunks=(200, 50), **eval(sys.argv[2]))
        for row in range(0, 200, 10): plane[row:row + 10] = values + row + step
        print(cache(plane), moved())
"""

READ_ROWS = HEAD + """
total = 0
with h5py.File(sys.argv[1], "r") as file:
    for step in range(3):
        plane = file[f"step{step}/plane"]
        for row in range(0, 200, 10): total += plane[row:row + 10].sum()
        print(cache(plane), moved())
print(total)
"""


def in_steps_of(rows, code):
    """Returns a program that accesses this many rows at a time, instead of ten, and so fewer times."""
    return code.replace("range(0, 200, 10)", f"range(0, 200, {rows})").replace("row + 10", f"row + {rows}")


def columns(text):
    return list(zip(*[map(int, line.split()) for line in text.splitlines() if len(line.split()) == 2]))


def run(code, *arguments, expect=0):
    done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == expect, done.stderr
    return done


def assert_same(left, right):
    with h5py.File(left) as left, h5py.File(right) as right:
        names = []
        left.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
        others = []
        right.visititems(lambda name, item: others.append(name) if isinstance(item, h5py.Dataset) else None)
        assert sorted(names) == sorted(others) and names
        for name in names:
            assert np.array_equal(left[name][()], right[name][()]), name


def both(apply, tmp_path, code, *arguments, options=()):
    """Returns a program's outputs without and with adapting; the contents of their files are equal."""
    plain, adapted = tmp_path / "plain.h5", tmp_path / "adapted.h5"
    untouched = run(code, plain, *arguments)
    done = apply(["--adapt", *options], [sys.executable, "-c", code, adapted, *arguments])
    assert_same(plain, adapted)
    return untouched, done


def test_rows_of_later_datasets_get_the_cache_that_the_first_lacked(apply, tmp_path):
    untouched, done = both(apply, tmp_path, WRITE_ROWS, "{}")
    (usual, *_), plain = columns(untouched.stdout)
    caches, adapted = columns(done.stdout)
    # 128 chunks of 200x50 numbers. The first dataset is already open when its need is noticed, so its cache cannot be
    # changed.
    assert caches == (usual, 128 * 80000, 128 * 80000)
    assert adapted[1] < plain[1] / 8 and adapted[2] < plain[2] / 8, (plain, adapted)
    assert "step0/plane (chunks 200x50 of 8-byte elements, 80000 bytes): chunk cache left: nothing was observed" in done.log
    assert "returning to 128 chunks that it does not hold; HDF5 takes a larger cache only when a dataset is opened" in done.log
    assert "step1/plane and 1 more opened" in done.log and "10240000 bytes by accesses observed before" in done.log


def test_readers_get_it_while_the_dataset_is_open(apply, tmp_path):
    run(WRITE_ROWS, tmp_path / "in.h5", "{}")
    untouched = run(READ_ROWS, tmp_path / "in.h5")
    done = apply(["--adapt"], [sys.executable, "-c", READ_ROWS, tmp_path / "in.h5"])
    assert untouched.stdout.splitlines()[-1] == done.stdout.splitlines()[-1]
    caches, adapted = columns(done.stdout)
    _, plain = columns(untouched.stdout)
    assert caches == (64 * MIB, 128 * 80000, 128 * 80000)
    assert all(mine < theirs / 4 for mine, theirs in zip(adapted, plain)), (plain, adapted)
    assert "67108864 bytes by observed accesses, while it was open, because the file is only read" in done.log


@pytest.mark.parametrize("second", ["file['step0/plane']", "h5py.File(sys.argv[1], 'r')['step0/plane']", "file['link']"])
def test_datasets_that_are_open_twice_are_not_refreshed(apply, tmp_path, second):
    """Refreshing one identifier of a dataset makes HDF5 lose the index of its chunks for the other."""
    run(WRITE_ROWS, tmp_path / "in.h5", "{}")
    with h5py.File(tmp_path / "in.h5", "a") as file:
        file["link"] = file["step0/plane"]
    code = HEAD + f"""
with h5py.File(sys.argv[1], "r") as file:
    plane, again = file["step0/plane"], {second}
    print(sum(plane[row].sum() for row in range(200)), again[7].sum(), again[...].sum())
    del plane
    print(sum(again[row].sum() for row in range(200)))
"""
    untouched = run(code, tmp_path / "in.h5")
    done = apply(["--adapt"], [sys.executable, "-c", code, tmp_path / "in.h5"])
    assert (untouched.stdout, untouched.stderr) == (done.stdout, done.stderr)
    assert "left: the dataset is open already" in done.log


def test_debian_s_library(apply, serial, tmp_path):
    """HDF5 1.10 has a cache of 1 MiB: the 32 chunks of a row of 1,600 columns fit, the 128 of 6,400 columns do not."""
    program = serial("rows")

    def caches(text):
        return [int(words[1]) for words in map(str.split, text.splitlines()) if words[0] in ("before", "after")]

    done = apply(["--adapt"], [program, tmp_path / "narrow.h5", "write", 1600])
    assert caches(done.stdout) == [MIB] * 4
    assert "left: the usual cache holds the chunks that are accessed again" in done.log
    # A cache set explicitly is kept.
    done = apply(["--adapt", "--set", "chunk_cache=512KiB"], [program, tmp_path / "narrow.h5", "write", 1600])
    assert caches(done.stdout) == [512 * KIB] * 4 and "kept: it was set already" in done.log
    plain, adapted = tmp_path / "plain.h5", tmp_path / "adapted.h5"
    untouched = subprocess.run([program, plain, "write", "6400"], check=True, capture_output=True, text=True)
    done = apply(["--adapt"], [program, adapted, "write", 6400])
    assert_same(plain, adapted)
    assert caches(untouched.stdout) == [MIB] * 4 and caches(done.stdout) == [MIB, MIB, 128 * 20000, 128 * 20000]
    done = apply(["--adapt"], [program, plain, "read", 6400])
    assert caches(done.stdout) == [MIB, 64 * MIB, 128 * 20000, 128 * 20000]
    assert done.stdout.splitlines()[-1] == untouched.stdout.splitlines()[-1]


WRITE_CHUNKS = HEAD + """
with h5py.File(sys.argv[1], "w") as file:
    for step in range(3):
        plane = file.create_dataset(f"step{step}", (2000, 2000), "f8", chunks=(200, 200), **eval(sys.argv[2]))
        for row in range(0, 2000, 200):
            for column in range(0, 2000, 200): plane[row:row + 200, column:column + 200] = row + column + step
        print(cache(plane), moved())
"""


@pytest.mark.parametrize("layout", ["{}", "dict(compression='gzip', compression_opts=1)"])
def test_whole_chunks_need_no_cache(apply, tmp_path, layout):
    untouched, done = both(apply, tmp_path, WRITE_CHUNKS, layout)
    (usual, *_), plain = columns(untouched.stdout)
    caches, adapted = columns(done.stdout)
    assert caches == (usual,) * 3
    assert all(abs(mine - theirs) < 64 * KIB for mine, theirs in zip(adapted[1:], plain[1:])), (plain, adapted)
    assert "left: whole chunks are accessed" in done.log and "100 of whole chunks" not in done.log.splitlines()[-1]


def test_a_compressed_dataset_gets_a_sweep_at_once(apply, tmp_path):
    code = in_steps_of(100, WRITE_ROWS.replace("(200, 6400)", "(1000, 6400)"))
    untouched, done = both(apply, tmp_path, code, "dict(compression='gzip', compression_opts=1)")
    assert columns(untouched.stdout)[0][0] < columns(done.stdout)[0][0] == 128 * 80000
    assert "10240000 bytes by its shape, because it is compressed and was not observed before" in done.log
    assert "10240000 bytes by accesses observed before it was opened" in done.log


@pytest.mark.parametrize("where", ["dataset", "file"])
def test_caches_that_the_program_sets_are_kept(apply, tmp_path, where):
    code = WRITE_ROWS if where == "dataset" else WRITE_ROWS.replace('"w")', '"w", rdcc_nbytes=2 << 20)')
    own = "dict(rdcc_nbytes=2 << 20, rdcc_nslots=101)" if where == "dataset" else "{}"
    _, done = both(apply, tmp_path, code, own)
    assert columns(done.stdout)[0] == (2 * MIB,) * 3
    assert "chunk cache kept: it was set already" in done.log or where == "dataset"
    if where == "dataset":
        # Observes only if a cache could help.
        assert "by accesses observed" not in done.log and "by observed accesses" not in done.log


def test_time_steps_in_files_of_their_own(apply, tmp_path):
    code = HEAD + """
for step in range(3):
    with h5py.File(f"{sys.argv[1]}{step}.h5", "w") as file:
        plane = file.create_dataset("plane", (200, 6400), "f8", chunks=(200, 50))
        for row in range(0, 200, 10): plane[row:row + 10] = values + row + step
        print(cache(plane), moved())
sys.exit(7)
"""
    run(code, tmp_path / "plain", expect=7)
    done = apply(["--adapt"], [sys.executable, "-c", code, tmp_path / "adapted"], expect=7)
    assert columns(done.stdout)[0][1:] == (128 * 80000,) * 2
    for step in range(3):
        assert_same(tmp_path / f"plain{step}.h5", tmp_path / f"adapted{step}.h5")
    assert [f"adapted{step}.h5: /plane" in done.log for step in range(3)] == [True] * 3


def test_the_limit_of_one_and_of_all(apply, tmp_path):
    _, done = both(apply, tmp_path, in_steps_of(40, WRITE_ROWS), "{}", options=["--auto-cache", "9MiB"])
    assert len(set(columns(done.stdout)[0])) == 1 and "exceed the limit" in done.log
    code = in_steps_of(50, WRITE_ROWS).replace("range(3)", "range(7)").replace("print(", "kept = [*globals().get('kept', []), plane]; print(")
    _, done = both(apply, tmp_path, code, "{}", options=["--auto-cache", "10MiB"])
    caches = columns(done.stdout)[0]
    assert caches[1:5] == (128 * 80000,) * 4 and len(set(caches[5:])) == 1 and caches[5] != caches[4]
    assert "the caches of open datasets have reached their limit" in done.log


ALIGNED = HEAD + """
for step in range(2):
    with h5py.File(f"{sys.argv[1]}{step}.h5", "w") as file:
        for number in range(40): file[f"small{number}"] = np.arange(1000.0)
        for number in range(10): file[f"d{number}"] = np.full(eval(sys.argv[2]) // 8, 1.0 + number)
        print(*file.id.get_access_plist().get_alignment())
"""


@pytest.mark.parametrize("size, is_aligned", [("1 << 20", False), ("100 * 65536 + 8", True)])
def test_large_objects_of_new_files_are_aligned_within_one_percent(apply, tmp_path, size, is_aligned):
    run(ALIGNED, tmp_path / "plain", size)
    done = apply(["--adapt", "--block", "64KiB"], [sys.executable, "-c", ALIGNED, tmp_path / "adapted", size])
    # A hundred blocks, so that alignment adds at most 1 %.
    assert columns(done.stdout) == [(6400 * KIB,) * 2, (64 * KIB,) * 2]
    for step in range(2):
        plain, adapted = tmp_path / f"plain{step}.h5", tmp_path / f"adapted{step}.h5"
        assert_same(plain, adapted)
        assert adapted.stat().st_size <= 1.01 * plain.stat().st_size
    with h5py.File(tmp_path / "adapted1.h5") as file:
        offsets = [file[f"d{number}"].id.get_offset() % (64 * KIB) for number in range(10)]
        assert (offsets == [0] * 10) == is_aligned
    assert "adapted1.h5 (H5Fcreate, HDF5 2." in done.log and "set alignment=65536,alignment_threshold=6553600" in done.log
    # On other file systems alignment gains nothing.
    assert columns(apply(["--adapt"], [sys.executable, "-c", ALIGNED, tmp_path / "b", size]).stdout)[1] == (1, 1)


def test_alignment_that_the_program_or_the_user_sets_is_kept(apply, tmp_path):
    code = ALIGNED.replace('"w")', '"w", alignment_threshold=1 << 16, alignment_interval=4096)')
    done = apply(["--adapt", "--block", "64KiB"], [sys.executable, "-c", code, tmp_path / "a", "1 << 20"])
    assert columns(done.stdout)[1] == (4096,) * 2 and "kept alignment=4096" in done.log
    done = apply(["--adapt", "--block", "64KiB", "--set", "alignment=8KiB"], [sys.executable, "-c", ALIGNED, tmp_path / "b", "1 << 20"])
    assert columns(done.stdout)[1] == (8192,) * 2


def test_files_that_ranks_share_are_left_alone(apply, mpi, parallel, tmp_path):
    program = parallel("ranks")
    done = apply(["--adapt", "--block", "64KiB"], [*mpi.start(2), program, tmp_path / "a.h5"], **mpi.variables)
    assert "alignment 1\n" in done.stdout
    assert done.log.count("a.h5: left as it is: ranks share it through MPI-IO") == 2
    with h5py.File(tmp_path / "a.h5") as file:
        assert np.array_equal(file["rows"][1], 1e6 + np.arange(100000))


def test_what_others_may_see_is_left_alone(apply, tmp_path):
    """Files with SWMR, also if they were opened before without it; and a file that is also open for writing."""
    code = HEAD + """
with h5py.File(sys.argv[1], "w", libver="latest") as file:
    plane = file.create_dataset("plane", (200, 6400), "f8", chunks=(200, 50))
    plane[...] = np.zeros((200, 6400)) + values
with h5py.File(sys.argv[1], "r", swmr=True) as file:
    plane = file["plane"]
    total = sum(plane[row].sum() for row in range(20))
    print(cache(plane), moved())
os.environ["HDF5_USE_FILE_LOCKING"] = "FALSE"
with h5py.File(sys.argv[1], "a") as writable:
    kept = writable["plane"]
    with h5py.File(sys.argv[1], "r") as file:
        plane = file["plane"]
        total += sum(plane[row].sum() for row in range(20))
        print(cache(plane), moved())
print(total)
"""
    untouched, done = both(apply, tmp_path, code)
    assert untouched.stdout.splitlines()[-1] == done.stdout.splitlines()[-1]
    assert columns(untouched.stdout)[0] == columns(done.stdout)[0]
    assert "adapted.h5: left as it is: one process writes it while others read" in done.log
    assert "left: the dataset is open already" in done.log and "while it was open" not in done.log


def test_forks_and_threads(apply, tmp_path):
    code = HEAD + """
import threading
def write(name):
    with h5py.File(f"{sys.argv[1]}.{name}", "w") as file:
        for step in range(2):
            plane = file.create_dataset(f"plane{step}", (40, 6400), "f8", chunks=(40, 50), compression="gzip", compression_opts=1)
            for row in range(0, 40, 4): plane[row:row + 4] = values + row
threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
for thread in threads: thread.start()
children = []
for name in "efgh":
    child = os.fork()
    if not child:
        threading.excepthook = None
        os.execv(sys.executable, [sys.executable, "-c", open(sys.argv[2]).read(), sys.argv[1] + "." + name])
    children.append(child)
for thread in threads: thread.join()
child = os.fork()
if not child:
    write("i")
    sys.exit(0)
assert all(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0 for child in [*children, child])
"""
    one = tmp_path / "one.py"
    one.write_text(HEAD + "with h5py.File(sys.argv[1], 'w') as file: file['plane0'] = values")
    apply(["--adapt"], [sys.executable, "-c", code, tmp_path / "out", one])
    for name in "abcdi":
        with h5py.File(f"{tmp_path}/out.{name}") as file:
            assert np.array_equal(file["plane1"][39], np.arange(6400.0) + 36), name
    for name in "efgh":
        with h5py.File(f"{tmp_path}/out.{name}") as file:
            assert np.array_equal(file["plane0"], np.arange(6400.0))


def test_any_accesses_read_and_write_the_same(apply, tmp_path):
    """Random shapes, chunks, filters and selections, written, rewritten, resized and read; contents and values read are
    equal."""
    code = """
import sys, h5py, numpy as np, zlib
random, checksum = np.random.default_rng(int(sys.argv[2])), 0
def some(shape):
    kind = random.integers(5)
    if kind == 0: return np.s_[...]
    if kind == 1: return int(random.integers(shape[0]))
    bounds = [sorted(random.integers(0, length + 1, 2)) for length in shape]
    step = int(random.integers(1, 4)) if kind == 4 else 1
    return tuple(slice(int(a), int(b), step) for a, b in bounds)
for turn in range(2):
    with h5py.File(sys.argv[1], "a") as file:
        for number in range(6):
            name = f"g{number % 2}/d{turn}{number}"
            rank = int(random.integers(1, 4))
            shape = tuple(int(random.integers(1, (100000, 700, 100)[rank - 1])) for _ in range(rank))
            chunk = tuple(int(random.integers(1, length + 1)) for length in shape)
            least = [max(1, length // 40) for length in shape]
            chunk = tuple(max(c, l) for c, l in zip(chunk, least))
            more = [{}, dict(compression="gzip", compression_opts=1), dict(shuffle=True, compression="lzf"), dict(fletcher32=True)]
            dataset = file.create_dataset(name, shape, "f4", chunks=chunk, maxshape=(None, *shape[1:]), **more[random.integers(4)])
            for access in range(int(random.integers(1, 60))):
                where = some(dataset.shape)
                if random.integers(3): dataset[where] = random.random() + np.zeros(dataset[where].shape, "f4")
                else: checksum = zlib.crc32(dataset[where].tobytes(), checksum)
                if random.integers(20) == 0: dataset.resize((dataset.shape[0] + int(random.integers(1, 50)), *shape[1:]))
    with h5py.File(sys.argv[1], "r") as file:
        datasets = [file[f"g{number % 2}/d{turn}{number}"] for number in range(6)]
        for access in range(150):
            dataset = datasets[random.integers(6)]
            checksum = zlib.crc32(dataset[some(dataset.shape)].tobytes(), checksum)
print(checksum)
"""
    for seed in range(2):
        for name in ["plain.h5", "adapted.h5"]:
            (tmp_path / name).unlink(missing_ok=True)
        untouched, done = both(apply, tmp_path, code, str(seed), options=["--auto-cache", "16MiB"])
        assert untouched.stdout == done.stdout, seed


def test_failures_are_the_program_s_own(apply, tmp_path):
    (tmp_path / "text.h5").write_text("something else")
    code = HEAD + "h5py.File(sys.argv[1], 'r')"
    done = apply(["--adapt"], [sys.executable, "-c", code, tmp_path / "text.h5"], expect=1)
    assert "file signature not found" in done.stderr
    code = HEAD + """
with h5py.File(sys.argv[1], "w") as file:
    file.create_dataset("x", (2000, 2000), chunks=(10, 10))
    try: file.create_dataset("x", (2000, 2000), chunks=(10, 10))
    except ValueError as error: print(error)
    try: file["x"][3000]
    except IndexError as error: print(error)
"""
    untouched, done = both(apply, tmp_path, code)
    assert untouched.stdout == done.stdout and "name already exists" in done.stdout


def test_dry_run_and_programs_that_cannot_be_observed(apply, bundled, tmp_path):
    shown = apply(["--adapt", "--block", "1MiB", "--dry-run"], [sys.executable]).stdout
    assert "what accesses need, at most 256 MiB each" in shown and "large objects of new files, to 1.00 MiB" in shown
    assert "alignment    none" in apply(["--adapt", "--dry-run"], [sys.executable]).stdout
    done = apply(["--adapt"], [bundled("settings"), tmp_path / "a.h5"])
    assert "not adapted to: HDF5 is linked statically into the program" in done.stderr
