"""`raddle tune -- COMMAND` with unmodified programs, and the MPI ranks that `raddle bench` starts."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import RADDLE

ROWS = Path(__file__).parents[2] / "benches/row_by_row.c"
WRITER = """
import sys, h5py, numpy as np
with h5py.File(sys.argv[1], "w") as file:
    file["values"] = np.arange(50000.0)
    file["values"].attrs["unit"] = "m"
"""


@pytest.fixture
def raddle(tmp_path):
    """Runs the command in a separate folder; returns the outcome, and the report if one is requested."""

    def run(*words, expect=0, **variables):
        environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path), "RADDLE_APPLY_FOLDER": str(tmp_path / "objects"), **variables}
        words = [str(Path(RADDLE).resolve()), *map(str, words)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False, env=environment, cwd=tmp_path)
        assert done.returncode == expect, f"{words}\nrc {done.returncode}\n{done.stdout}{done.stderr}"
        assert not list(tmp_path.glob(".raddle-bench-*"))
        report = tmp_path / "run.json"
        done.report = json.loads(report.read_text()) if report.exists() else None
        return done

    return run


# Experiments with ranks that read nothing.
WRITE_ONLY = {"ranks-4-together", "ranks-write-16KiB", "ranks-vpic", "ranks-amrex"}


def arms(report):
    return {arm["arm"]["candidate"]["name"]: arm for arm in report["experiments"][0]["sweep"]["arms"]}


def test_a_program_that_writes_row_by_row(raddle, serial_flags, tmp_path):
    """The setting that helps is found, verified, written into a profile, and applied from it."""
    program, source = tmp_path / "rows", tmp_path / "rows.c"
    # A quarter of the rows: each still covers an eighth of 24 chunks.
    source.write_text(ROWS.read_text().replace("ROWS = 64", "ROWS = 16"))
    subprocess.run(["cc", "-O2", source, "-o", program, *serial_flags, "-lm"], check=True)
    # Other load may leave one experiment undecided, but hardly three.
    for seed in range(3):
        done = raddle("tune", "-o", "mine.toml", "-f", "-q", "--report", "run.json", "--blocks", "5", "--seed", seed,
                      "--try", "auto_chunk_cache=256MiB", "--try", "sieve=1MiB", "--", "./rows", "{scratch}/out.h5")
        if (tmp_path / "mine.toml").exists():
            break
    found = arms(done.report)
    cached = found["auto_chunk_cache=256MiB"]
    assert cached["verdict"] == "better" and cached["estimate"]["ratio"] < 0.7, done.stdout
    assert "all runs wrote the same values" in done.stdout
    assert cached["arm"]["runs"][0]["calls"]["write"] < found["default"]["arm"]["runs"][0]["calls"]["write"]
    assert done.report["hdf5"]["version"].startswith("1.") and done.report["experiments"][0]["sweep"]["values"] == "equal"
    assert "auto_chunk_cache" in (tmp_path / "mine.toml").read_text()
    shown = raddle("apply", "mine.toml", "--dry-run", "--", "./rows", "x.h5").stdout
    assert "chunk cache  one sweep of each dataset, at most 256 MiB" in shown


def test_where_its_files_go(raddle, tmp_path):
    """Unless its command line names a folder, the program runs in the folder of the run; settings chosen by the program
    are left out."""
    script = tmp_path / "write.py"
    script.write_text(WRITER.replace('"w")', '"w", alignment_threshold=1, alignment_interval=512)'))
    done = raddle("tune", "-o", "mine.toml", "-q", "--report", "run.json", "--blocks", "1", "--try", "alignment=4KiB", "--try", "sieve=1MiB",
                  "--", sys.executable, script, "out.h5")
    found = arms(done.report)
    assert "a value of its own" in found["alignment=4KiB"]["arm"]["fault"]["not_applicable"]
    assert found["sieve=1MiB"]["arm"]["fault"] is None and found["sieve=1MiB"]["arm"]["runs"][0]["found"] == {"sieve": 1 << 20}
    assert "1 of the 5 blocks" in done.stdout and not (tmp_path / "out.h5").exists()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import sys; print('it is over', file=sys.stderr); sys.exit(3)", ["exit code 3", "it is over"]),
        ("print('no file')", ["no HDF5 file", "{scratch}"]),
        ("import os; os.abort()", ["signal 6"]),
    ],
)
def test_unmeasurable_settings_are_reported(raddle, code, words):
    done = raddle("tune", "-o", "mine.toml", "-q", "--", sys.executable, "-c", code, expect=3)
    assert all(word in done.stderr for word in words), done.stderr


def test_wrong_words(raddle):
    assert "no such program" in raddle("tune", "-o", "mine.toml", "--", "no-such-program", expect=2).stderr
    assert "--allow-layout" in raddle("tune", "-o", "m.toml", "--try", "gzip=1", "--", "true", expect=2).stderr
    assert "cannot be used with" in raddle("tune", "--hdf5", "x.so", "-o", "m.toml", "--", "true", expect=2).stderr
    raddle("tune", "tables", "-o", "m.toml", "--", "true", expect=2)


def test_values_that_differ_from_run_to_run(raddle, tmp_path):
    script = tmp_path / "write.py"
    script.write_text(WRITER.replace("np.arange(50000.0)", "np.random.default_rng().random(50000)"))
    words = ["-o", "mine.toml", "-q", "--blocks", "1", "--try", "sieve=1MiB", "--", sys.executable, script, "{scratch}/out.h5"]
    assert "values were not compared" in raddle("tune", *words).stdout
    assert "different values" in raddle("tune", "--verify", "always", *words, expect=3).stderr


def test_a_static_program(raddle, bundled, tmp_path):
    bundled("settings")
    done = raddle("tune", "-o", "mine.toml", "-q", "--report", "run.json", "--blocks", "1", "--try", "alignment=1MiB", "--try", "sieve=1MiB",
                  "--try", "auto_chunk_cache=1MiB", "--", "./settings", "{scratch}/out.h5")
    found = arms(done.report)
    assert found["alignment=1MiB"]["arm"]["fault"] is None
    for name in ["sieve=1MiB", "auto_chunk_cache=1MiB"]:
        assert "only placement" in found[name]["arm"]["fault"]["not_applicable"]


@pytest.fixture
def ranks(raddle, mpi, tmp_path):
    """Runs an experiment with MPI ranks started by `launcher`, or by a script in its place."""

    def run(name, experiment, *words, launcher=mpi.launcher, script=None, **options):
        if script:
            launcher = tmp_path / "launcher"
            launcher.write_text(f"#!/bin/sh\n{script}\n")
            launcher.chmod(0o755)
        # The default launcher is not named.
        default = shutil.which("mpirun")
        named = [] if default and Path(default).resolve() == Path(launcher).resolve() else ["--mpirun", launcher]
        words = ["--scale", "tiny", "--blocks", "1", "-q", "--hdf5", mpi.library, *named, *words]
        return raddle("bench", name, "--only", experiment, *words, **{**mpi.variables, **options})

    return run


@pytest.mark.parametrize(
    ("name", "experiment"),
    [
        ("battle-layout", "ranks-baseline-16KiB"),
        ("battle-layout", "ranks-multi-core-16KiB"),
        ("battle-layout", "ranks-4-together"),
        ("battle-metadata", "ranks-write-16KiB"),
        ("battle-metadata", "ranks-read-16KiB"),
        ("battle-apps", "ranks-vpic"),
        ("battle-apps", "ranks-bdcats"),
        ("battle-apps", "ranks-amrex"),
    ],
)
def test_ranks_of_a_parallel_library(ranks, name, experiment):
    """Interfaces, alignment and collective metadata, with ranks that this raddle knows only through the library."""
    done = ranks(name, experiment, "--report", "run.json")
    count = 2 if experiment.startswith("ranks-baseline") else 4
    for arm, found in arms(done.report).items():
        assert found["arm"]["fault"] is None, (arm, found["arm"]["fault"])
        run = found["arm"]["runs"][0]
        assert len(run["ranks"]) == count and all(stages for stages in run["ranks"]), arm
        if arm == "alignment=1MiB":
            assert run["offset"] % (1 << 20) == 0 and run["found"]["alignment"] == 1 << 20
        if arm in ("posix", "mpiio"):
            assert run["file_len_bytes"] == (32 << 10 if count == 2 else 16 << 10)
        reads = any(stage["stage"] == "read" for stage in run["stages"])
        assert reads == (run.get("reads", {}).get("len_bytes", 0) > 0) == (experiment not in WRITE_ONLY), (arm, run)
        if experiment.startswith(("ranks-baseline", "ranks-multi-core")):
            phases = [{stage["phase"] for stage in stages} for stages in run["ranks"]]
            assert phases == [{"write", "read"}] * count, (arm, phases)


def test_nova_files_are_concatenated_by_ranks(ranks):
    """Each step on ranks: creating, shared reading, and the number of ranks; every value is compared."""
    stages = {}
    for experiment in ["ranks-create", "ranks-empty-layout", "ranks-chunk-1d", "ranks-partition-1d", "ranks-partition-2d", "ranks-scaling-1d"]:
        done = ranks("nova-2021", experiment, "--report", "run.json")
        assert "elapsed times by stage, medians:" in done.stdout
        for arm, found in arms(done.report).items():
            assert found["arm"]["fault"] is None, (experiment, arm, found["arm"]["fault"])
            run = found["arm"]["runs"][0]
            count = {"2 ranks": 2, "4 ranks": 4}.get(arm, 0 if experiment.startswith("ranks-scaling") else 2)
            assert len(run.get("ranks", [])) == count, (experiment, arm)
            of_ranks = run["ranks"] if count else [run["stages"]]
            stages[experiment, arm] = {stage["stage"] for of_rank in of_ranks for stage in of_rank}
            if (experiment, arm) == ("ranks-create", "default"):
                writes = run["calls"]["write"]
            if arm == "collective_metadata=on":
                # Metadata is gathered, because each write is a round trip on a parallel file system.
                assert run["calls"]["write"] < writes / 2, (run["calls"], writes)
    assert stages["ranks-create", "single"] == {"open", "objects", "close"}
    assert stages["ranks-partition-2d", "datasets"] == {"collect", "open", "objects", "read", "write", "close"}
    assert stages["ranks-partition-2d", "datasets"] == stages["ranks-scaling-1d", "default"] == stages["ranks-scaling-1d", "4 ranks"]


def test_more_ranks_have_more_work(ranks):
    """If each rank has separate work, the file grows with the number of ranks; if they divide the work, it does not."""
    for experiment, len_bytes in [("ranks-baseline-16KiB", 3 * (16 << 10)), ("ranks-multi-core-16KiB", 16 << 10)]:
        found = arms(ranks("battle-layout", experiment, "--ranks", 3, "--report", "run.json").report)
        run = found["posix"]["arm"]["runs"][0]
        assert (len(run["ranks"]), run["file_len_bytes"], run["len_bytes"]) == (3, len_bytes, len_bytes)


def test_interleaved_libraries(raddle, serial, tmp_path):
    """A second libhdf5 in every experiment, and libraries named by a workload."""
    words = ["occam-2005", "--only", "chunk-plain", "--scale", "tiny", "--blocks", "1", "-q", "--report", "run.json"]
    done = raddle("bench", *words, "--hdf5", "libhdf5_serial.so.103", "--hdf5", "/absent/libhdf5.so", "--hdf5", "libhdf5_serial.so.103")
    found = arms(done.report)
    default, other, absent = found["default"], found["hdf5=libhdf5_serial.so.103"], found["hdf5=/absent/libhdf5.so"]
    assert default["arm"]["runs"][0]["hdf5"] == other["arm"]["runs"][0]["hdf5"] and other["arm"]["fault"] is None
    assert "/absent/libhdf5.so" in absent["arm"]["fault"]["not_applicable"]
    assert "library" not in default["arm"]["candidate"]
    workload = tmp_path / "mine.toml"
    workload.write_text("""
name = "mine"
title = "Two libraries"
[[experiment]]
name = "both"
title = "The bundled one and Debian's"
kernel = { kind = "vpic", particles = 100 }
cases = [{ name = "few" }, { name = "many", kernel = { particles = 1000 } }]
variants.debian = { library = "libhdf5_serial.so.103" }
variants.none = { library = "/absent/libhdf5.so" }
""")
    done = raddle("bench", workload, "--blocks", "2", "-q", "--report", "run.json")
    found = arms(done.report)
    version = {name: arm["arm"]["runs"][0]["hdf5"] for name, arm in found.items() if arm["arm"]["fault"] is None}
    assert set(version) == {"few: default", "few: debian", "many: default", "many: debian"}
    assert version["few: debian"].startswith("1.") and version["few: default"].startswith("2."), version
    assert "libhdf5_serial.so.103: HDF5 1." in done.stdout and "few: none was left out" in done.stdout
    # A library named by the user must exist.
    assert "/absent/libhdf5.so" in raddle("bench", workload, "--hdf5", "/absent/libhdf5.so", "-q", expect=3).stderr


def test_szip_with_both_codings(raddle, serial):
    found = arms(raddle("bench", "occam-2005", "--only", "szip", "--scale", "tiny", "--blocks", "1", "-q", "--report", "run.json",
                        "--hdf5", "libhdf5_serial.so.103").report)
    default = found["default"]["arm"]["runs"][0]["file_len_bytes"]
    for name in ["szip=8", "szip_entropy=8"]:
        run = found[name]["arm"]["runs"][0]
        knob = name.split("=")[0]
        assert run["found"][knob] == 8 and run["file_len_bytes"] < default, name
    bundled = raddle("bench", "occam-2005", "--only", "szip", "--scale", "tiny", "--blocks", "1", "-q").stdout
    assert "szip_entropy=8 was left out: " in bundled and "built without this filter" in bundled


def test_a_rank_that_dies(ranks, mpi):
    """The launcher ends the other rank, which waits for the dead one."""
    # Only after a rank has received the request: until then ranks count as unavailable.
    rank = '"${PMIX_RANK:-$PMI_RANK}"'
    one = f'if [ {rank} = 1 ]; then until [ -e "${{3%/*}}/started" ]; do sleep 0.01; done; kill -KILL $$; fi; exec "$@"'
    script = f'shift 2; exec {shlex.join(mpi.start(2))} sh -c {shlex.quote(one)} sh "$@"'
    started = time.monotonic()
    done = ranks("battle-layout", "ranks-baseline-16KiB", script=script, expect=3)
    # Open MPI ends with 128 + the signal, and does not always name it; MPICH's message does.
    assert re.search(r"/launcher ended: exit status: (137:|\d+: .*\b9\b)", done.stderr, re.DOTALL), done.stderr
    assert time.monotonic() - started < 60, done.stderr


def test_ranks_that_are_not_to_be_had(raddle, ranks, mpi):
    words = ["bench", "battle-layout", "--only", "ranks-baseline-16KiB", "--scale", "tiny", "--blocks", "1", "-q"]
    assert "name one with --hdf5" in raddle(*words).stdout
    assert "built without MPI" in raddle(*words, "--hdf5", "libhdf5_serial.so.103", "--mpirun", mpi.launcher, **mpi.variables).stdout
    absent = ranks("battle-layout", "ranks-baseline-16KiB", launcher="/absent/mpirun").stdout
    assert "/absent/mpirun, which does not exist" in absent
    assert "give more --time" not in absent, "time is not what was missing"
    alone = ranks("battle-layout", "ranks-baseline-16KiB", script='shift 2; exec "$@"', expect=3).stderr
    assert f"the MPI of {mpi.library} sees 1" in alone and "--mpirun" in alone
    refused = ranks("battle-layout", "ranks-baseline-16KiB", script="echo not as root >&2; exit 1").stdout
    assert "no rank was started" in refused and "not as root" in refused


def test_the_launcher_of_another_mpi(ranks, mpi, other):
    """Each of its ranks is alone in the MPI of the library."""
    done = ranks("battle-layout", "ranks-baseline-16KiB", launcher=other.launcher, expect=3, **{**other.variables, **mpi.variables})
    assert f"2 ranks were started, but the MPI of {mpi.library} sees 1" in done.stderr and "--mpirun" in done.stderr


def test_another_zlib(raddle, serial, tmp_path):
    """A zlib that replaces the system's: a copy, which is a different object."""
    found = next((path for path in map(Path, ["/lib/x86_64-linux-gnu/libz.so.1", "/usr/lib64/libz.so.1"]) if path.exists()), None)
    if not found:
        pytest.skip("libz.so.1 is not installed")
    own = tmp_path / "libz.so.1"
    shutil.copy(found.resolve(), own)
    done = raddle("bench", "occam-2005", "--only", "filters", "--scale", "tiny", "--blocks", "1", "-q", "--report", "run.json",
                  "--hdf5", "libhdf5_serial.so.103", "--zlib", own)
    arm = arms(done.report)[f"zlib={own}"]
    assert arm["arm"]["fault"] is None and arm["arm"]["runs"][0]["zlib"], arm
    assert "zlib 1." in done.stdout
