"""Writing through MPI-IO: the bytes of posix, whatever the hints are; one message on failure; resuming."""

import json
import re
import shutil
import subprocess

import pytest
from conftest import MPIRUN, Ranks, command_of, kill, run_again, wait_for_records, write_tables

HINTS = """\
# Collective buffering in small buffers, so that a round takes several exchanges.
romio_cb_write = enable
cb_buffer_size = "65536"
striping_unit = 4096
cb_nodes = 2
"""


MPIIO = ["--io", "mpiio"]


def report_in(folder, name):
    return json.loads((folder / name).read_text())


@pytest.fixture
def many(tmp_path):
    folder = tmp_path / "many"
    folder.mkdir()
    return [write_tables(folder / f"run{seed}.h5", seed, rows=10_000, tables=3) for seed in range(1, 4)]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7])
def test_the_bytes_are_those_of_posix(ranks, alone, many, tmp_path, size):
    (tmp_path / "hints").write_text(HINTS)
    options = ["--chunk", "512rows", "-q", "-j", 1 + size % 2]
    through = ["--io", "mpiio", "--io-hints", "hints", "--report", "all.json"]
    for placing in ([], ["--align", "4096"]):
        alone("merge", *many, "-o", "one.h5", "-f", "--report", "one.json", *options, *placing)
        ranks(size, "merge", *many, "-o", "all.h5", "-f", *options, *placing, *through)
        assert (tmp_path / "all.h5").read_bytes() == (tmp_path / "one.h5").read_bytes(), placing
        one, report = report_in(tmp_path, "one.json"), report_in(tmp_path, "all.json")
        assert report["digest"] == one["digest"] and one["shared_io"] is None
        assert report["shared_io"]["interface"] == "MPI-IO"
        placed = sum(stage["bytes"] for stage in report["engine"]["stages"] if stage["stage"] == "place")
        assert placed == report["engine"]["stored_len_bytes"]
    ranks(size, "merge", *many, "-o", "any.h5", "--unordered", *options, "--io", "mpiio")
    alone("verify", "any.h5", "-q", "--against", *many)
    alone("verify", "any.h5", "-q")
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["all.h5", "all.json", "any.h5", "hints", "many", "one.h5", "one.json"]


def test_little_memory_makes_many_rounds(ranks, alone, many, tmp_path):
    alone("merge", *many, "-o", "one.h5", "-q")
    ranks(3, "merge", *many, "-o", "all.h5", "-q", "--io", "mpiio", "--memory", "24MiB", "-j", 1)
    assert (tmp_path / "all.h5").read_bytes() == (tmp_path / "one.h5").read_bytes()


def test_rechunk_and_its_messages(ranks, inputs, tmp_path):
    out, _ = ranks(2, "rechunk", inputs[0], "-o", "new.h5", "--io", "mpiio")
    assert out.count("written through MPI-IO") == 1
    assert (tmp_path / "new.h5").exists()


def test_a_disk_that_takes_no_more_is_reported_once_and_ends_all(tmp_path, large, merged, ranks):
    # On all ranks, because any of them may write for the others.
    command = [*command_of(large, tmp_path / "out.h5"), *MPIIO]
    _, err = ranks(2, *command, expect=5, shell="ulimit -f 30000")
    assert err.count("error:") == 1 and "failed: " in err, err
    assert err.count("finished chunks are kept") == 1, err
    assert run_again(tmp_path, large, tmp_path / "out.h5", 3, merged[0], "after a full file", more=MPIIO)


@pytest.fixture
def full_disk(tmp_path):
    """A launcher on a machine where the folder ``disk`` holds only 6 MiB."""
    (tmp_path / "disk").mkdir()
    mount = f'mount -t tmpfs -o size=6m none "{tmp_path}/disk"'
    launcher = ["unshare", "--mount", "sh", "-c", f'{mount} && exec "$@"', "sh"]
    try:
        subprocess.run([*launcher, "true"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as refused:
        pytest.skip(f"no file systems can be mounted here: {refused}")
    return [*launcher, MPIRUN]


@pytest.mark.parametrize("size", [2, 3, 4])
def test_a_full_disk_ends_all(tmp_path, large, full_disk, size):
    command = ["merge", large, "-o", tmp_path / "disk/out.h5", "-q", "-c", "none", "--memory", "24MiB", *MPIIO]
    code, out, err = Ranks(tmp_path, size, command, launcher=full_disk).end(60)
    assert code == 5, f"rc {code}\n{out}{err}"
    assert err.count("error:") == 1 and "bytes are needed, and " in err, err


# Rust's library calls pwrite64, so only MPI-IO's own writes to files fail.
FAILING = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/stat.h>
#include <sys/uio.h>

static int is_file(int file) {
    struct stat found;
    return fstat(file, &found) == 0 && S_ISREG(found.st_mode);
}

ssize_t pwrite(int file, const void *bytes, size_t len, off_t address) {
    ssize_t (*next)(int, const void *, size_t, off_t) = dlsym(RTLD_NEXT, "pwrite");
    return is_file(file) ? (errno = EIO, -1) : next(file, bytes, len, address);
}

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t address) {
    ssize_t (*next)(int, const struct iovec *, int, off_t) = dlsym(RTLD_NEXT, "pwritev");
    return is_file(file) ? (errno = EIO, -1) : next(file, parts, count, address);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    ssize_t (*next)(int, const struct iovec *, int) = dlsym(RTLD_NEXT, "writev");
    return is_file(file) ? (errno = EIO, -1) : next(file, parts, count);
}
"""


def test_a_device_that_fails_for_one_rank_ends_all(tmp_path, tmp_path_factory, large, merged):
    """OMPIO of Open MPI 4.1 reports it when the file is synced, and only to this rank, while the others wait for it."""
    cc = shutil.which("cc")
    if cc is None:
        pytest.skip("no C compiler is installed")
    source = tmp_path_factory.mktemp("shim") / "failing.c"
    source.write_text(FAILING)
    subprocess.run([cc, "-shared", "-fPIC", "-o", source.with_suffix(".so"), source, "-ldl"], check=True)
    fails = f'if [ "$RANK" = 0 ]; then export LD_PRELOAD={source.with_suffix(".so")}; fi'
    code, out, err = Ranks(tmp_path, 3, [*command_of(large, tmp_path / "out.h5"), *MPIIO], shell=fails).end(60)
    assert code == 5, f"rc {code}\n{out}{err}"
    assert len(re.findall("^(rank [0-9]+: )?error:", err, re.M)) == 1 and not (tmp_path / "out.h5").exists(), err
    run_again(tmp_path, large, tmp_path / "out.h5", 2, merged[0], "after a failing device", more=MPIIO)


@pytest.mark.parametrize(("first", "second"), [(MPIIO, []), ([], MPIIO)], ids=["from mpiio", "to mpiio"])
def test_a_killed_rank_ends_all_and_either_way_resumes_from_the_other(tmp_path, large, merged, first, second):
    started = Ranks(tmp_path, 3, [*command_of(large, tmp_path / "out.h5"), *first])
    assert wait_for_records(tmp_path, started)
    assert kill(started.ranks()[1])
    code, out, err = started.end(30)
    assert code != 0 and not (tmp_path / "out.h5").exists(), out + err
    assert run_again(tmp_path, large, tmp_path / "out.h5", 2, merged[0], "after a kill", more=second)


def test_mpi_io_needs_mpi(alone, inputs, tmp_path):
    _, err = alone("merge", *inputs, "-o", "all.h5", "--io", "mpiio", expect=2)
    assert "mpirun" in err and "--io mpiio" in err
    _, err = alone("merge", *inputs, "-o", "all.h5", "--io-hints", "hints", expect=2)
    assert "--io mpiio" in err
    assert not (tmp_path / "all.h5").exists()


def test_invalid_hints(ranks, inputs, tmp_path):
    (tmp_path / "hints").write_text("cb_nodes = 2\n[romio]\n")
    merge = ["merge", *inputs, "-o", "all.h5", "--io", "mpiio", "--io-hints"]
    _, err = ranks(2, *merge, "hints", expect=2)
    assert err.count("error:") == 1 and "line 2" in err and "KEY = VALUE" in err, err
    _, err = ranks(2, *merge, "none", expect=2)
    assert err.count("error:") == 1 and "none" in err, err
    (tmp_path / "long").write_text("k" * 400 + " = 1\n")
    _, err = ranks(2, *merge, "long", expect=2)
    assert err.count("error:") == 1 and "is not a valid hint for this MPI" in err, err
    assert not (tmp_path / "all.h5").exists()
