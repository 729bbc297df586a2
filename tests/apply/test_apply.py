"""`raddle apply` on unmodified programs: the settings that HDF5 received are read back, and contents are equal."""


import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

MIB = 1 << 20
SETTINGS = ["--set", "alignment=1MiB", "--set", "meta_block=64KiB", "--set", "sieve=128KiB", "--set", "metadata_cache=4MiB"]


def printed(text):
    """Parses NAME VALUES lines; values of a repeated name are collected."""
    found = {}
    for line in text.splitlines():
        name, *values = line.split()
        found.setdefault(name, []).extend(values)
    return found


def contents(path):
    found = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: found.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
    return found


def assert_same(left, right):
    left, right = contents(left), contents(right)
    assert sorted(left) == sorted(right)
    for name, values in left.items():
        assert np.array_equal(values, right[name]), name


def test_a_program_linked_with_debian_s_library(apply, serial, tmp_path):
    program = serial("settings")
    plain, tuned = tmp_path / "plain.h5", tmp_path / "tuned.h5"
    subprocess.run([program, plain], check=True, capture_output=True)
    done = apply(SETTINGS, [program, tuned])
    found = printed(done.stdout)
    assert found["alignment"] == ["65536", str(MIB)]
    assert found["meta_block"] == ["65536"]
    assert found["sieve"] == ["131072"]
    assert found["metadata_cache"] == [str(4 * MIB), "evictions", "1"]
    assert [int(offset) % MIB for offset in found["offset"]] == [0, 0, 0]
    # One sweep along the rows, both when created and when reopened; HDF5 1.10 has a default of 1 MiB.
    assert found["cache"] == ["3200000", "3200000"]
    # The contents are unchanged.
    assert found["gzip"] == ["9", "9"]
    assert_same(plain, tuned)
    assert f"{tuned} (H5Fcreate, HDF5 1." in done.log
    assert "set alignment=1048576,alignment_threshold=65536 meta_block=65536" in done.log
    assert "chunk cache sized to a sweep 3 times, at most 3200000 bytes" in done.log


def test_what_the_program_chose_is_kept_unless_overridden(apply, serial, tmp_path):
    program = serial("settings")
    done = apply(SETTINGS, [program, tmp_path / "a.h5", "own"])
    assert printed(done.stdout)["alignment"] == ["1", "4096"]
    assert "kept alignment=4096" in done.log
    done = apply([*SETTINGS, "--override", "alignment"], [program, tmp_path / "a.h5", "own"])
    assert printed(done.stdout)["alignment"] == ["65536", str(MIB)]


def test_layout_is_changed_only_where_it_is_allowed(apply, serial, tmp_path):
    program = serial("settings")
    done = apply(["--set", "gzip=1", "--auto-cache", "0"], [program, tmp_path / "a.h5"])
    assert printed(done.stdout)["gzip"] == ["9", "9"]
    assert printed(done.stdout)["cache"] == [str(MIB), str(MIB)]
    assert "left out gzip=1: it changes what files hold" in done.stderr
    done = apply(["--set", "gzip=1", "--allow-layout"], [program, tmp_path / "b.h5"])
    assert printed(done.stdout)["gzip"] == ["1", "1"]
    assert "layout changed 1 times" in done.log
    assert_same(tmp_path / "a.h5", tmp_path / "b.h5")


@pytest.mark.parametrize("options", [["gzip=1", "shuffle=on"], ["fletcher32=on"]])
def test_chunks_that_the_program_writes_as_stored(apply, tmp_path, options):
    """Filters that were added to a dataset were not applied to these chunks, which must say so."""
    code = """
import sys, zlib, h5py, numpy as np
values = np.arange(64, dtype="u1")
with h5py.File(sys.argv[1], "w") as file:
    for at in range(300): file.create_dataset(f"empty{at}", (10,), "u1", chunks=(5,))
    for name, more in [("plain", {}), ("packed", dict(compression="gzip"))]:
        file.create_dataset(f"made/{name}", (64, 4), "u1", chunks=(64, 1), **more)
        file[f"made/{name}"].id.write_direct_chunk((0, 0), values.tobytes() if name == "plain" else zlib.compress(values))
with h5py.File(sys.argv[1], "a") as file:
    file["made/plain"].id.write_direct_chunk((0, 1), values.tobytes())
    file["made/packed"].id.write_direct_chunk((0, 1), zlib.compress(values))
    for name in file["made"]: file["made"][name][:, 2] = values
"""
    sets = [word for option in options for word in ("--set", option)]
    apply([*sets, "--allow-layout"], [sys.executable, "-c", code, tmp_path / "a.h5"])
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["made/plain"].id.get_create_plist().get_nfilters() == len(options)
        for name in file["made"]:
            assert np.array_equal(file["made"][name][:, :3], np.arange(64, dtype="u1")[:, None].repeat(3, axis=1)), name


def test_a_fill_value_of_the_program_is_kept(apply, tmp_path):
    code = """
import sys, h5py
with h5py.File(sys.argv[1], "w") as file:
    for name, more in [("chosen", dict(fillvalue=7)), ("usual", {})]: file.create_dataset(name, (100,), "i4", **more)[:5] = 1
"""
    path = tmp_path / "a.h5"
    options = ["--set", "no_fill=on", "--allow-layout"]
    apply(options, [sys.executable, "-c", code, path])
    with h5py.File(path) as file:
        assert file["chosen"][:].sum() == 5 + 95 * 7
        assert [file[name].id.get_create_plist().get_fill_time() for name in file] == [h5py.h5d.FILL_TIME_IFSET, h5py.h5d.FILL_TIME_NEVER]
    apply([*options, "--override", "no_fill"], [sys.executable, "-c", code, path])
    with h5py.File(path) as file:
        assert file["chosen"].id.get_create_plist().get_fill_time() == h5py.h5d.FILL_TIME_NEVER


def test_a_log_that_cannot_be_written_stops_before_the_program(tmp_path):
    program = [sys.executable, "-c", "open('started', 'w')"]
    raddle = Path(os.environ.get("RADDLE", "target/debug/raddle")).resolve()
    words = [raddle, "apply", "--folder", tmp_path / "objects", "--log", tmp_path / "absent/log", "--", *program]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 5 and "absent/log: cannot be written" in done.stderr
    assert not (tmp_path / "started").exists()


def test_what_hdf5_refuses_is_reported_and_the_program_continues(apply, serial, tmp_path):
    program = serial("settings")
    done = apply(["--set", "page_buffer=1MiB", "--set", "sieve=128KiB"], [program, tmp_path / "a.h5"])
    assert printed(done.stdout)["sieve"] == ["131072"]
    assert "refused page_buffer" in done.log


@pytest.mark.parametrize("options", [["--set", "alignment=64KiB"], ["--set", "file_page=4096", "--allow-layout"],
                                     ["--adapt", "--block", "64KiB"]])
def test_a_user_block_in_a_file_that_must_be_new(apply, tmp_path, options):
    """HDF5 refuses the alignment after it has created the file, so no second attempt could create it."""
    code = """
import sys, h5py
with h5py.File(sys.argv[1], "x", userblock_size=512) as file: file["a"] = range(1000)
"""
    done = apply([*options, "--set", "sieve=128KiB"], [sys.executable, "-c", code, tmp_path / "a.h5"])
    assert "set sieve=131072" in done.log and "user block" in done.log and "refused" not in done.log
    with h5py.File(tmp_path / "a.h5") as file:
        assert file.userblock_size == 512 and file["a"][999] == 999


def test_pages_are_left_out_where_a_new_file_cannot_have_them(apply, tmp_path):
    code = """
import sys, h5py
with h5py.File(sys.argv[1], "x", **eval(sys.argv[2])) as file: file["a"] = range(1000)
"""
    options = ["--set", "file_page=4096", "--allow-layout"]
    for at, (more, reason) in enumerate([("dict(driver='split')", "another driver"), ("dict(libver=('earliest', 'v108'))", "HDF5 1.8")]):
        done = apply(options, [sys.executable, "-c", code, tmp_path / f"{at}.h5", more])
        assert f"kept file_page ({'exclusive creation with ' if at == 0 else 'format of '}{reason})" in done.log
    with h5py.File(tmp_path / "0.h5", driver="split") as file:
        assert file["a"][999] == 999


def test_caches_of_all_open_datasets_are_limited(apply, tmp_path):
    """Rows are written to many datasets in turn, so each would fill the cache of a sweep, 16 MiB."""
    code = """
import resource, sys, h5py, numpy as np
with h5py.File(sys.argv[1], "w") as file:
    planes = [file.create_dataset(f"{at}", (8, 1 << 21), "u1", chunks=(8, 1 << 15)) for at in range(24)]
    for row in range(2):
        for at, plane in enumerate(planes): plane[row] = np.full(1 << 21, at + row, "u1")
    del planes[:12], plane
    caches = [file.create_dataset(f"later{at}", (8, 1 << 21), "u1", chunks=(8, 1 << 15)) for at in range(2)]
    print(*[plane.id.get_access_plist().get_chunk_cache()[1] for plane in planes + caches])
"""
    done = apply(["--auto-cache", "16MiB"], [sys.executable, "-c", code, tmp_path / "a.h5"])
    # Four of them get it, and the others the usual cache, until the first four are closed.
    assert [int(bytes) == 16 * MIB for bytes in done.stdout.split()] == [False] * 12 + [True] * 2
    assert "chunk cache sized to a sweep 6 times, at most 16777216 bytes, left 20 times" in done.log


def test_failures_are_the_program_s_own(apply, serial, tmp_path):
    program = serial("settings")
    path = tmp_path / "a.h5"
    path.write_text("something else")
    done = apply(SETTINGS, [program, path, "exclusive"], expect=3)
    assert done.stderr.count("HDF5-DIAG") == 1
    assert path.read_text() == "something else"


WHEELS = """
import sys, h5py, tables, netCDF4, numpy as np
folder, values = sys.argv[1], np.arange(150000.0)
with h5py.File(folder + "/h5py.h5", "w") as file:
    for number in range(3): file[f"d{number}"] = values + number
    print("h5py", *file.id.get_access_plist().get_alignment())
    file.create_dataset("plane", (2000, 20000), "f8", chunks=(100, 100))
    print("made", file["plane"].id.get_access_plist().get_chunk_cache()[1])
with h5py.File(folder + "/h5py.h5", "r") as file:
    print("opened", file["plane"].id.get_access_plist().get_chunk_cache()[1])
    try: file["nothing"]
    except KeyError as error: print("error", error)
try: h5py.File(folder + "/nothing.h5")
except FileNotFoundError as error: print("error", error)
with tables.open_file(folder + "/tables.h5", "w") as file:
    for number in range(3): file.create_array("/", f"d{number}", values + number)
with netCDF4.Dataset(folder + "/netcdf.nc", "w") as file:
    file.createDimension("x", values.size)
    for number in range(3): file.createVariable(f"d{number}", "f8", ("x",))[:] = values + number
"""


def test_three_wheels_in_one_process(apply, tmp_path):
    plain, tuned = tmp_path / "plain", tmp_path / "tuned"
    plain.mkdir()
    tuned.mkdir()
    subprocess.run([sys.executable, "-c", WHEELS, plain], check=True, capture_output=True)
    done = apply(SETTINGS, [sys.executable, "-c", WHEELS, tuned])
    lines = done.stdout.splitlines()
    assert lines[0] == "h5py 65536 1048576"
    # 200 chunks of 80,000 bytes along a row.
    assert lines[1:3] == ["made 16000000", "opened 16000000"]
    assert "nothing" in lines[3] and "No such file" in lines[4]
    for name in ["h5py.h5", "tables.h5", "netcdf.nc"]:
        assert_same(plain / name, tuned / name)
        with h5py.File(tuned / name) as file:
            assert [file[f"d{number}"].id.get_offset() % MIB for number in range(3)] == [0, 0, 0], name
        with h5py.File(plain / name) as file:
            assert any(file[f"d{number}"].id.get_offset() % MIB for number in range(3)), name
    # Each has a separate libhdf5.
    versions = {line.split("HDF5 ")[1].split(")")[0] for line in done.log.splitlines() if "H5Fcreate" in line}
    assert len(versions) == 3, done.log


def test_h5repack(apply, tmp_path):
    h5repack = shutil.which("h5repack")
    if not h5repack:
        pytest.skip("h5repack is not installed")
    with h5py.File(tmp_path / "in.h5", "w") as file:
        for number in range(3):
            file[f"d{number}"] = np.arange(150000.0) + number
    apply(["--set", "alignment=1MiB"], [h5repack, tmp_path / "in.h5", tmp_path / "out.h5"])
    assert_same(tmp_path / "in.h5", tmp_path / "out.h5")
    with h5py.File(tmp_path / "out.h5") as file:
        assert [file[f"d{number}"].id.get_offset() % MIB for number in range(3)] == [0, 0, 0]


@pytest.mark.parametrize("outside", [True, False])
def test_ranks(apply, mpi, parallel, tmp_path, outside):
    """Tests both MPIs; their MPI-IO prints the hints that it accepted."""
    program, variables = parallel("ranks"), {**mpi.variables, "ROMIO_PRINT_HINTS": "1"}
    options = ["--set", "alignment=1MiB", "--set", "collective_metadata=on", "--set", "cb_buffer_size=2MiB"]
    command = [*mpi.start(2), program, tmp_path / "a.h5"]
    if outside:
        done = apply(options, command, **variables)
        assert "left out collective_metadata=on: it hangs" in done.stderr
        assert printed(done.stdout)["collective"] == ["0", "0"]
        done = apply([*options, "--collective-metadata"], command, **variables)
        assert done.log.count("a.h5 (H5Fcreate, HDF5 1.") == 2, "one line from each rank"
    else:
        raddle = Path(os.environ.get("RADDLE", "target/debug/raddle")).resolve()
        words = [raddle, "apply", "--folder", tmp_path / "objects", *options, "--collective-metadata", "--", program, tmp_path / "a.h5"]
        environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path), **variables}
        done = subprocess.run([*mpi.start(2), *words], check=True, capture_output=True, text=True, timeout=300, env=environment)
    found = printed(done.stdout)
    assert found["alignment"] == [str(MIB)] and int(found["offset"][0]) % MIB == 0
    assert found["collective"] == ["1", "1"]
    assert re.search(rf"key = cb_buffer_size +value = {2 * MIB}\b", done.stdout), done.stdout
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["rows"].shape == (2, 100000)
        assert np.array_equal(file["rows"][1], 1e6 + np.arange(100000))


def test_ranks_that_do_not_act_together(apply, mpi, parallel, tmp_path):
    """Ranks write on their own, and only one opens a dataset: nothing that needs all ranks may be added."""
    program = parallel("independent")
    layout = ["--set", "gzip=1", "--set", "fletcher32=on", "--set", "compact=60000", "--allow-layout"]
    for options in [[], layout]:
        done = apply(options, [*mpi.start(2), program, tmp_path / "a.h5"], **mpi.variables)
        assert done.stdout.split() == ["read", "120007"]
        with h5py.File(tmp_path / "a.h5") as file:
            for name, columns in [("small", 100), ("plain", 40000), ("chunked", 40000)]:
                rows = np.arange(10 * columns).reshape(10, columns)
                assert np.array_equal(file[name], np.concatenate([rows, rows + 1e6])), name
                assert file[name].compression is None and file[name].id.get_offset() != 0
    assert "kept compact (parallel) filters of datasets without any (parallel)" in done.log


def test_a_program_without_standard_error_keeps_its_files(apply, tmp_path):
    """The file that takes the number of standard error receives no log."""
    code = """
import os, sys, h5py
try: os.close(2)
except OSError: pass
for mode in "wa":
    with h5py.File(sys.argv[1], mode) as file: file.require_group("group")[mode] = 3
"""
    exports = apply([*SETTINGS, "--emit", "env"], []).stdout + "RADDLE_APPLY_LOG=-\n"
    for start in ['exec "$@"', 'exec "$@" 2>&-']:
        subprocess.run(["sh", "-c", exports + start, "sh", sys.executable, "-c", code, tmp_path / "a.h5"], check=True)
        with h5py.File(tmp_path / "a.h5") as file:
            assert sorted(file["group"]) == ["a", "w"]


def test_a_static_program_gets_the_driver(apply, bundled, tmp_path):
    program = bundled("settings")
    plain, tuned = tmp_path / "plain.h5", tmp_path / "tuned.h5"
    subprocess.run([program, plain], check=True, capture_output=True)
    done = apply(SETTINGS, [program, tuned])
    assert [int(offset) % MIB for offset in printed(done.stdout)["offset"]] == [0, 0, 0]
    assert "(driver raddle_apply): set alignment=1048576" in done.log
    assert "left out sieve=131072: HDF5 is linked statically into the program" in done.stderr
    assert_same(plain, tuned)
    # An ordinary file that grows with the default driver.
    with h5py.File(tuned, "a") as file:
        file["more"] = np.arange(1000)
    with h5py.File(tuned) as file:
        assert np.array_equal(file["more"][()], np.arange(1000))


def test_the_driver_on_many_changes(apply, tmp_path):
    """Creates, resizes and deletes datasets, through the driver and then without it; every value is read back."""
    code = """
import sys, h5py, numpy as np
path, seed = sys.argv[1], int(sys.argv[2])
random, wanted = np.random.default_rng(seed), {}
with h5py.File(path, "w", userblock_size=512 * (seed % 2)) as file:
    for step in range(200):
        name = f"d{random.integers(40)}"
        if name in file:
            if random.integers(2): del file[name], wanted[name]; continue
            if file[name].chunks:
                more = random.random(random.integers(1, 3000)); old = wanted[name]
                file[name].resize((old.size + more.size,)); file[name][old.size:] = more
                wanted[name] = np.concatenate([old, more]); continue
            continue
        values = random.random(random.integers(1, 30000))
        chunked = dict(chunks=(1000,), maxshape=(None,), compression="gzip") if random.integers(2) else {}
        file.create_dataset(name, data=values, **chunked); wanted[name] = values
        file[name].attrs["text"] = "x" * int(random.integers(2000))
np.savez(path + ".npz", **wanted)
"""
    objects = tmp_path / "objects"
    apply(["--set", "alignment=64KiB"], [sys.executable, "-c", "pass"])
    drivers = next(objects.glob("apply-*/drivers"))
    driver = {"HDF5_DRIVER": "raddle_apply", "HDF5_PLUGIN_PATH": str(drivers),
              "RADDLE_APPLY": "alignment=65536;alignment_threshold=4096;meta_block=65536", "RADDLE_APPLY_LOG": str(tmp_path / "log")}
    for seed in range(4):
        path = tmp_path / f"{seed}.h5"
        subprocess.run([sys.executable, "-c", code, path, str(seed)], check=True, env={**os.environ, **driver})
        wanted = np.load(f"{path}.npz")
        with h5py.File(path) as file:
            assert sorted(file) == sorted(wanted)
            for name in wanted:
                assert np.array_equal(file[name][()], wanted[name]), name
        if h5dump := shutil.which("h5dump"):
            subprocess.run([h5dump, path], check=True, stdout=subprocess.DEVNULL)
    assert "(driver raddle_apply): set alignment=65536" in (tmp_path / "log").read_text()


def test_dry_run_says_which_way_each_program_gets(apply, serial, bundled, tmp_path):
    def way(*command):
        lines = apply([*SETTINGS, "--dry-run"], command).stdout.splitlines()
        return dict(line.split(maxsplit=1) for line in lines if not line.startswith("chunk cache"))

    linked, static = serial("settings"), None
    assert way(linked, "a.h5")["way"].startswith("a preloaded object, before the HDF5 that it is linked with")
    assert "libhdf5_serial.so" in way(linked, "a.h5")["HDF5"] and way(linked)["HDF5"].startswith("1.")
    assert "before any HDF5 that it may load" in way(sys.executable, "x.py")["way"]
    assert "through" in way("env", "A=1", linked)
    linked.unlink()
    static = bundled("settings")
    assert way(static)["way"].startswith("a driver plugin, because HDF5 2.")
    assert not (tmp_path / "a.h5").exists()


def test_source_code_does_what_the_settings_say(apply, serial_flags, tmp_path):
    def emitted(form):
        return apply([*SETTINGS, "--set", "chunk_cache=16MiB", "--emit", form], []).stdout

    namespace = {}
    exec(emitted("h5py"), namespace)
    with h5py.File(tmp_path / "a.h5", "w", **namespace["tuned"]) as file:
        access = file.id.get_access_plist()
        assert access.get_alignment() == (65536, MIB)
        assert access.get_cache()[2] == 16 * MIB
    exec(emitted("netcdf"), namespace)
    import netCDF4

    assert netCDF4.get_alignment() == (65536, MIB)
    assert netCDF4.get_chunk_cache()[0] == 16 * MIB
    netCDF4.set_alignment(1, 1)
    source = tmp_path / "emitted.c"
    source.write_text(emitted("c") + """
#include <stdio.h>
int main(void) {
    hid_t list = tuned_file_access();
    hsize_t threshold, alignment, meta;
    size_t sieve;
    H5Pget_alignment(list, &threshold, &alignment);
    H5Pget_meta_block_size(list, &meta);
    H5Pget_sieve_buf_size(list, &sieve);
    printf("%llu %llu %llu %zu\\n", threshold, alignment, meta, sieve);
    return 0;
}
""")
    subprocess.run(["cc", source, "-o", tmp_path / "emitted", *serial_flags], check=True)
    assert subprocess.check_output([tmp_path / "emitted"], text=True).split() == ["65536", str(MIB), "65536", "131072"]
    for form in ["c", "h5py", "netcdf"]:
        assert f"not set here: auto_chunk_cache={256 * MIB}: give each dataset a cache" in emitted(form)
    exports = emitted("env")
    assert "left out gzip=1: it changes what files hold" in apply(["--set", "gzip=1", "--emit", "env"], []).stderr
    shown = subprocess.check_output(["sh", "-c", exports + "LD_PRELOAD= env"], text=True)
    assert "RADDLE_APPLY=alignment=1048576" in shown


def test_the_patch_applies_to_hdf5_s_source(apply, tmp_path):
    sources = sorted(Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")).glob("registry/src/*/hdf5-metno-src-*/ext/hdf5"))
    if not sources or not shutil.which("patch"):
        pytest.skip("the HDF5 sources or patch are missing")
    patch = apply([*SETTINGS, "--emit", "hdf5-patch", "--hdf5-source", sources[-1]], [])
    assert "metadata_cache has no single place" in patch.stderr
    (tmp_path / "src").mkdir()
    for name in ["H5Fprivate.h", "H5Pfapl.c"]:
        shutil.copy(sources[-1] / "src" / name, tmp_path / "src" / name)
    subprocess.run(["patch", "-p1", "--fuzz=0"], input=patch.stdout, text=True, check=True, cwd=tmp_path, capture_output=True)
    header = (tmp_path / "src/H5Fprivate.h").read_text()
    assert "#define H5F_ALIGN_DEF 1048576\n" in header and "#define H5F_META_BLOCK_SIZE_DEF 65536\n" in header


def test_a_profile_and_stripes(apply, tmp_path):
    (tmp_path / "bin").mkdir()
    lfs = tmp_path / "bin/lfs"
    lfs.write_text(f'#!/bin/sh\necho "$@" > {tmp_path}/asked\ntest ! -e {tmp_path}/refuse || {{ echo "not on Lustre" >&2; exit 1; }}\n')
    lfs.chmod(0o755)
    path = f"{tmp_path}/bin:{os.environ['PATH']}"
    options = ["--set", "stripe_count=8", "--set", "stripe_size=16MiB", "--stripe", tmp_path]
    done = apply(options, ["true"], PATH=path)
    assert (tmp_path / "asked").read_text() == f"setstripe -c 8 -S 16777216 {tmp_path}\n"
    assert "set stripe_count=8 stripe_size=16777216" in done.stderr
    (tmp_path / "refuse").touch()
    assert "refused stripes (not on Lustre)" in apply(options, ["true"], PATH=path).stderr
    profile = Path(__file__).parents[2] / "crates/tune/examples/profile.toml"
    shown = apply([profile, "--dry-run"], ["true"]).stdout
    assert "chunk_cache=4194304" in shown and "left out     chunk=11x360x32" in shown


def test_the_program_takes_the_command_s_place(apply):
    done = apply([], ["sh", "-c", "echo $PPID; exit 42"], expect=42)
    assert int(done.stdout) == os.getpid()


def test_the_objects_need_nothing_but_the_c_library(apply, tmp_path):
    apply(["--set", "sieve=128KiB"], ["true"])
    objects = [*tmp_path.glob("objects/apply-*/*/*.so")]
    assert len(objects) == 2
    for path in objects:
        listed = subprocess.check_output(["readelf", "-d", path], text=True)
        needed = [line.split("[")[1].rstrip("]") for line in listed.splitlines() if "NEEDED" in line]
        # The loader is part of it, and resolves thread-local variables.
        assert all(name.startswith(("libc.", "ld-linux")) for name in needed), (path, needed)
        undefined = subprocess.check_output(["nm", "-D", "--undefined-only", path], text=True)
        assert not any(name.startswith(("H5", "MPI")) for name in undefined.split())


def test_files_that_the_shell_would_not_start_are_explained(apply, tmp_path):
    (tmp_path / "analysis.py").write_text("print(1)")
    for name, words in [("./analysis.py", ["is not executable", "python3 analysis.py"]), ("analysis.py", ["write ./analysis.py"])]:
        done = apply([], [name], expect=2)
        assert all(word in done.stderr for word in words), done.stderr
