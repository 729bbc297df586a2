"""The C library of IDX as simulations use it: installed, compiled against, run, with and without MPI, from C and
Fortran. Its files equal those of the Python package, byte by byte."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import raddle
from conftest import BUILT, MPICC, MPIF90, MPIRUN, ROOT, STRICT, needs, run

PROGRAMS = Path(__file__).parent / "programs"
EXAMPLES = ROOT / "examples"
SIZES = [1, 2, 3, 4, 8]
# x first; neither powers of two nor divisible by the number of ranks.
GRID = (45, 20, 37)
VARIABLES = {"pressure": 1, "temperature": 1, "velocity": 3, "species": 11}


def variables(grid, step):
    """Returns the values that the example writes, as arrays with z first."""
    place = np.arange(np.prod(grid), dtype=np.uint64).reshape(grid[::-1])
    made = {}
    for number, (name, components) in enumerate(VARIABLES.items()):
        whole = place[..., None] * np.uint64(32) + np.uint64(step * 7 + number * 5) + np.arange(components, dtype=np.uint64)
        samples = whole.astype("f8") / 1024
        made[name] = samples[..., 0] if components == 1 else samples
    return made


def write_right(path, grid, steps, **options):
    for step in range(steps):
        raddle.idx.write(path, variables(grid, step), shape=grid[::-1], step=step, append=step > 0, **options)


def files_of(path):
    """Returns the bytes of every file of a dataset by path, with the dataset's name removed."""
    name = path.stem
    found = {file.relative_to(path.with_suffix("")): file.read_bytes() for file in path.with_suffix("").rglob("*.bin")}
    return {**found, "header": path.read_bytes().replace(name.encode(), b"NAME")}


def grid_argument(grid):
    return "grid=" + "x".join(map(str, grid))


@pytest.fixture(scope="session")
def right(tmp_path_factory):
    """The files of the example as written by one Python process, by options."""
    made = {}

    def files(**options):
        key = tuple(sorted(options.items()))
        if key not in made:
            path = tmp_path_factory.mktemp("right") / "right.idx"
            write_right(path, GRID, 2, **options)
            made[key] = files_of(path)
        return made[key]

    return files


OPTIONS = [
    {},
    {"compress": "none", "order": "hz", "bits_per_block": 9, "phases": "one"},
    {"compress": "lz4", "bits_per_block": 10, "blocks_per_file": 4, "phases": "two", "aggregators": 2},
    {"compress": "zfp:accuracy=0.001", "bits_per_block": 9},
    {"bits_per_block": 11, "box": "expanded", "jobs": 1, "memory": "64MiB"},
    {"split_vectors": "wide", "compress": "lz4"},
]


def words(options):
    return [f"{name.replace('_', '-')}={value}" for name, value in options.items()]


def test_the_example_writes_what_python_writes(installed, tmp_path):
    program = installed.c(EXAMPLES / "s3d_io.c")
    out, _ = run([program, "flow.idx"], tmp_path)
    assert out.startswith("20 steps of 30x30x30 samples by 1 ranks: 69.1 MB"), out
    assert raddle.idx.info(tmp_path / "flow.idx").steps == list(range(20))
    write_right(tmp_path / "right.idx", (30, 30, 30), 20)
    assert files_of(tmp_path / "flow.idx") == files_of(tmp_path / "right.idx")
    for name, samples in variables((30, 30, 30), 19).items():
        assert np.array_equal(raddle.idx.read(tmp_path / "flow.idx", name, step=19), samples)


@pytest.mark.parametrize("options", OPTIONS)
def test_options_are_those_of_the_command(installed, right, tmp_path, options):
    run([installed.c(EXAMPLES / "s3d_io.c"), "flow.idx", "steps=2", grid_argument(GRID), *words(options)], tmp_path)
    assert files_of(tmp_path / "flow.idx") == right(**options)


def test_the_static_library_is_enough(installed, tmp_path):
    static = installed.flags("--static", "--libs")
    libraries = [installed.prefix / "lib/libraddle_idx.a", *(word for word in static if not word.startswith("-L"))]
    libraries.remove("-lraddle_idx")
    program = tmp_path / "s3d_io"
    run(["cc", "-std=c11", EXAMPLES / "s3d_io.c", *installed.flags("--cflags"), *libraries, "-o", program], tmp_path)
    assert "libraddle" not in run(["ldd", program], tmp_path)[0]
    run([program, "flow.idx", "steps=1", "side=5"], tmp_path)
    assert raddle.idx.info(tmp_path / "flow.idx").shape == [5, 5, 5]


def test_packagers_install_elsewhere_than_it_will_be(installed, tmp_path):
    script = ROOT / "scripts/install-capi.sh"
    run(["sh", script, "/opt/raddle", BUILT], tmp_path, DESTDIR=str(tmp_path / "package"))
    root = tmp_path / "package/opt/raddle"
    assert "prefix=/opt/raddle\n" in (root / "lib/pkgconfig/raddle-idx.pc").read_text()
    # A path relative to the caller's folder; links stay within the installation.
    run(["sh", script, "here", BUILT], tmp_path)
    library = tmp_path / "here/lib/libraddle_idx.so"
    assert library.resolve().name == f"libraddle_idx.so.{raddle.__version__}"
    assert "libraddle_idx.so.0" in run(["readelf", "-d", library], tmp_path)[0]
    _, err = run(["sh", script, "none", tmp_path], tmp_path, expect=1)
    assert "build it with cargo build --package raddle-capi" in err and not (tmp_path / "none").exists()


@needs("nm")
def test_the_library_exports_the_header_and_nothing_else(installed):
    library = installed.prefix / "lib/libraddle_idx.so"
    out, _ = run(["nm", "--dynamic", "--defined-only", library], ROOT)
    exported = {line.split()[-1] for line in out.splitlines()}
    header = (installed.prefix / "include/raddle_idx.h").read_text()
    declared = set(re.findall(r"^[a-z].*?\b(raddle_idx_\w+)\(", header, flags=re.MULTILINE))
    assert len(declared) > 20 and exported == declared
    interfaces = (installed.fortran_folder / "raddle_idx.f90").read_text()
    public = set(re.findall(r"\braddle_idx_\w+", interfaces.split("public :: raddle_idx_error_message")[1].split("!")[0]))
    # Pauses are for rank functions, which are written in C.
    assert declared - {"raddle_idx_pause"} <= public | {"raddle_idx_error_message"}


@needs("g++")
def test_the_headers_are_cpp(installed, tmp_path):
    source = tmp_path / "use.cpp"
    source.write_text("#include <raddle_idx.h>\nint main() { return raddle_idx_close(nullptr); }\n")
    program = installed.compile("use", "g++", [source], ["-std=c++11", *STRICT])
    run([program], tmp_path)
    if shutil.which("mpicxx"):
        source.write_text("#include <raddle_idx_mpi.h>\nint main() { return raddle_idx_close(nullptr); }\n")
        # Without the C++ classes that MPI has removed, but Open MPI 4 still provides.
        strict = ["-Wall", "-Wextra", "-Werror", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"]
        run(["mpicxx", *strict, "-fsyntax-only", *installed.flags("--cflags"), source], tmp_path)


@pytest.mark.parametrize("axes", [1, 2, 3, 4, 5])
@pytest.mark.parametrize(("no_sync", "durability"), [("false", "synced"), ("true", "unsynced")])
def test_boxes_without_steps_of_any_rank(installed, tmp_path, axes, no_sync, durability):
    out, _ = run([installed.c(PROGRAMS / "boxes.c"), "boxes.idx", axes, no_sync], tmp_path)
    assert (json.loads(out)["ranks"], json.loads(out)["durability"]) == (1, durability)
    shape = [7, 5, 4, 3, 3][:axes][::-1]
    height = (np.arange(np.prod(shape), dtype="f4") / 4).reshape(shape)
    colour = (np.arange(np.prod(shape) * 3, dtype=np.uint64) * 37).astype("u1").reshape(*shape, 3)
    fields = {"height": height, "colour": colour}
    raddle.idx.write(tmp_path / "right.idx", fields, shape=shape, order="hz", bits_per_block=4)
    assert files_of(tmp_path / "boxes.idx") == files_of(tmp_path / "right.idx")


# Status, call, text of the message.
MISUSE = """
2 create null path: path is NULL
2 create null counts: counts is NULL
2 create null writer: writer is NULL
2 create no axes: 0 axes; a dataset has 1 to 5
2 create six axes: 6 axes
2 create no rank: rank 0 of 0 ranks
2 create null function: all_gather_words of ranks is NULL
0 create:
2 option null writer: writer is NULL
2 option null value: value is NULL
2 option unknown: options are compress, order
2 option value: zip, lz4, none, zfp, zfp:precision=N or zfp:accuracy=X
2 option text: value is not text
2 imposed null: counts is NULL
2 field type: types are uint8
2 field components: 0 components
2 field space: field "mass density" cannot have this name
2 field plus: rho.idx: field "a+b" cannot have this name
2 field empty: field "" cannot have this name
0 step without fields:
2 end without fields: 0 fields
0 field:
2 field twice: field rho was already added
2 box null: start is NULL
2 box beyond: ends beyond 64 bits
2 write without step: no step is open
2 end without step: no step is open
0 begin:
2 begin twice: a step is open
2 option late: options cannot change once the first step has begun
2 field late: fields cannot change
2 box late: the boxes cannot change while a step is open
2 write unknown: unknown field "p"; the dataset has rho
2 write no box: box 1 does not exist; this rank holds 1
2 write short: 184 bytes were given, but a box of [4, 3, 2] samples needs 192
2 write null: samples is NULL
2 end without samples: field rho of box 0 was not given
0 box outside:
0 begin outside:
0 write outside:
3 end outside: reaches beyond the dataset
0 box:
0 begin again:
0 write:
2 write twice: was already given in this step
0 end:
2 begin unnumbered: numbered steps or one without a number
0 begin open:
2 close open: discarded
0 close null:
0 create again:
0 field again:
0 begin there:
0 write there:
5 end there: exists; set option force to replace it, append to add steps
0 append:
0 begin appended:
0 write appended:
0 end appended:
0 close:
3 open missing: no/such.idx
2 open null: path is NULL
0 open:
2 info null: reader is NULL
2 info no place: info is NULL
0 info:
2 get field: unknown field "1"; the dataset has rho
2 query unknown: the dataset has rho
0 query:
2 read short: 8 bytes were given
2 read null: samples is NULL
3 read missing step: has no time step 5
3 counts no step: has no time step 77
3 counts resolution: resolution 40 is beyond
2 counts beyond: ends beyond 64 bits
2 counts null: query is NULL
0 close reader:
0 close no reader:
"""


def test_misuse_is_refused_with_words(installed, tmp_path):
    out, _ = run([installed.c(PROGRAMS / "misuse.c"), "rho.idx"], tmp_path)
    lines = out.splitlines()
    for line in ['first message: ""', "writer is NULL", "steps 3 to 9"]:
        lines.remove(line)
    expected = MISUSE.strip().splitlines()
    assert len(lines) == len(expected)
    for line, wanted in zip(lines, expected, strict=True):
        call, says = wanted.split(":", 1)
        assert line.startswith(f"{call}:") and says.strip() in line and (says or line == f"{call}: "), f"{line}\n{wanted}"
    assert raddle.idx.info(tmp_path / "rho.idx").steps == [3, 9]


def test_a_handle_stays_with_its_files_when_the_folder_changes(installed, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    out, _ = run([installed.c(PROGRAMS / "changes_folder.c"), "rho.idx", "elsewhere"], tmp_path)
    assert out.split() == ["5", "6", "7", "8"]
    assert raddle.idx.info(tmp_path / "rho.idx").steps == [0, 1]
    assert not list((tmp_path / "elsewhere").iterdir())


def test_boxes_are_read_at_a_resolution(installed, tmp_path):
    write_right(tmp_path / "flow.idx", GRID, 2)
    program = installed.c(PROGRAMS / "read.c")
    resolution = raddle.idx.info(tmp_path / "flow.idx").resolutions[-1].resolution
    for field, step, level, box in [
        ("pressure", 0, resolution, ()),
        ("species", 1, resolution - 4, ()),
        ("velocity", 1, resolution - 1, (3, 30, 5, 9, 0, 37)),
    ]:
        (tmp_path / "out.raw").unlink(missing_ok=True)
        out, _ = run([program, "flow.idx", field, step, level, "out.raw", *box], tmp_path)
        assert out.splitlines() == [
            f"3 axes 4 fields resolution {resolution} counts 45 20 37",
            *(f"{name} float64 {components}" for name, components in VARIABLES.items()),
        ]
        ranges = [slice(first, first + count) for first, count in zip(box[::2], box[1::2], strict=True)][::-1]
        wanted = raddle.idx.read(tmp_path / "flow.idx", field, step=step, resolution=level, box=ranges or None)
        assert (tmp_path / "out.raw").read_bytes() == wanted.tobytes()
    # The error for a damaged block names file, field and block, and the block is not read.
    for file in (tmp_path / "flow/time_0001").rglob("*.bin"):
        file.write_bytes(file.read_bytes()[:5000])
    _, err = run([program, "flow.idx", "species", 1, resolution, "bad.raw"], tmp_path, expect=3)
    assert "time_0001" in err and "species" in err and "block" in err, err


@needs("gfortran")
def test_fortran_writes_and_reads_the_same(installed, right, tmp_path):
    program = installed.fortran(EXAMPLES / "s3d_io.F90")
    for number, options in enumerate(OPTIONS):
        out, _ = run([program, f"flow{number}.idx", "steps=2", grid_argument(GRID), *words(options)], tmp_path)
        assert out.startswith("2 steps of 45x20x37 samples by 1 ranks: "), out
        assert files_of(tmp_path / f"flow{number}.idx") == right(**options)
    _, err = run([program, "flow0.idx", "steps=2"], tmp_path, expect=5)
    assert "flow0.idx exists; set option force" in err, err
    resolution = raddle.idx.info(tmp_path / "flow0.idx").resolutions[-1].resolution
    reader = installed.fortran(PROGRAMS / "read.f90")
    out, _ = run([reader, "flow0.idx", "velocity", 1, resolution - 3, "out.raw"], tmp_path)
    lines = out.splitlines()
    assert lines[0] == f"3 axes 4 fields resolution {resolution} counts 45 20 37"
    assert lines[1:5] == [f"{name} float64 {components}" for name, components in VARIABLES.items()]
    assert "8 bytes were given" in lines[5] and "zip, lz4, none, zfp" in lines[6] and lines[7] == raddle.__version__
    wanted = raddle.idx.read(tmp_path / "flow0.idx", "velocity", step=1, resolution=resolution - 3)
    assert (tmp_path / "out.raw").read_bytes() == wanted.tobytes()


@needs(MPICC, MPIRUN)
@pytest.mark.parametrize("size", SIZES)
def test_any_number_of_ranks_writes_the_same(installed, right, tmp_path, size):
    program = installed.mpi(EXAMPLES / "s3d_io.c")
    # The library does not link MPI.
    assert "libmpi" not in run(["ldd", installed.prefix / "lib/libraddle_idx.so"], tmp_path)[0]
    for number, options in enumerate(OPTIONS):
        command = [MPIRUN, "-n", size, program, f"flow{number}.idx", "steps=2", grid_argument(GRID), *words(options)]
        out, _ = run(command, tmp_path)
        assert out.startswith(f"2 steps of 45x20x37 samples by {size} ranks: "), out
        assert files_of(tmp_path / f"flow{number}.idx") == right(**options), options
    before = sorted(tmp_path.rglob("*"))
    # The launcher exits with the status of one of them.
    _, err = run([MPIRUN, "-n", size, program, "flow0.idx", "steps=2"], tmp_path, expect={5} if size == 1 else {5, 9})
    assert err.count("exists; set option force") == 1, err
    assert sorted(tmp_path.rglob("*")) == before


@needs(MPICC, MPIRUN)
@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_rank_that_fails_makes_all_fail_and_resume(installed, tmp_path, size):
    program = installed.mpi(PROGRAMS / "one_rank_fails.c")
    out, _ = run([MPIRUN, "-n", size, program, "rho.idx"], tmp_path)
    printed = out.splitlines()
    assert len(printed) == size
    for rank, line in enumerate(printed):
        assert line.startswith(f"{rank} {2 if rank == size - 1 else 9} "), out
        assert "field rho of box 0 was not given" in line, out
        assert (f"rank {size - 1} failed" in line) == (rank < size - 1), out
    assert np.array_equal(raddle.idx.read(tmp_path / "rho.idx"), np.tile([1.0, 2, 3, 4], (size, 1)))


@needs(MPICC, MPIF90, MPIRUN, "gfortran")
@pytest.mark.parametrize("size", [1, 2, 3, 4, 8])
def test_ranks_of_fortran_write_the_same(installed, right, tmp_path, size):
    program = installed.mpi_fortran(EXAMPLES / "s3d_io.F90")
    run([MPIRUN, "-n", size, program, "flow.idx", "steps=2", grid_argument(GRID)], tmp_path)
    assert files_of(tmp_path / "flow.idx") == right()
