"""Datasets that can be read at any resolution, from memory and into memory."""

import json
import subprocess
import sys

import h5py
import numpy as np
import pytest
import raddle
from hypothesis import given
from hypothesis import strategies as st
from idx_files import SMALL, files_of, numbers
from raddle import _core, errors

TYPES = ["u1", "i1", "u2", ">i2", "u4", "<i4", "u8", "i8", "f4", ">f8"]


def at_resolution(array, bitmask, resolution, axes):
    """Returns the samples of a resolution by its definition; the letters of the bitmask count axes from the last
    one."""
    spacing = [2 ** bitmask[1 + resolution :].count(str(axis)) for axis in reversed(range(axes))]
    return array[tuple(slice(None, None, step) for step in spacing)]


def drawn_bitmask(shape, random):
    """Draws a bitmask: each axis as often as its length requires, in any order; axis 0 is x, the last of an array's."""
    letters = [str(axis) for axis, count in enumerate(reversed(shape)) for _ in range((count - 1).bit_length())]
    random.shuffle(letters)
    return "V" + "".join(letters)


def highest_axis(shape):
    """Returns the number of axes up to the slowest one that is longer than 1."""
    longer = [axis for axis, count in enumerate(reversed(shape)) if count > 1]
    return max(longer, default=0) + 1


@given(
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=5),
    dtype=st.sampled_from(TYPES),
    components=st.integers(0, 12),
    order=st.sampled_from(["rows", "hz"]),
    compress=st.sampled_from(["zip", "lz4", "zfp", "none"]),
    bits=st.integers(1, 9),
    shuffle=st.none() | st.randoms(use_true_random=False),
)
def test_every_resolution_is_a_subsample(tmp_path_factory, shape, dtype, components, order, compress, bits, shuffle):
    path = tmp_path_factory.mktemp("idx") / "a.idx"
    array = numbers((*shape, components) if components else shape, dtype)
    layout = {"order": order, "compress": compress, "bits_per_block": bits, "bitmask": shuffle and drawn_bitmask(shape, shuffle)}
    takes_zfp = components < 2 and dtype.strip("<>") in ("i4", "i8", "f4", "f8") and 2 <= highest_axis(shape) <= 3
    if compress == "zfp" and not takes_zfp:
        with pytest.raises(errors.UsageError, match="no field has them"):
            raddle.idx.write(path, {"a": array}, shape=shape, **layout)
        layout["compress"] = "zip"
    raddle.idx.write(path, {"a": array}, shape=shape, **layout)
    info = raddle.idx.info(path)
    assert shuffle is None or info.bitmask == layout["bitmask"]
    assert info.shape == shape and [field.name for field in info.fields] == ["a"]
    for resolution in info.resolutions:
        got = raddle.idx.read(path, resolution=resolution.resolution)
        want = at_resolution(array, info.bitmask, resolution.resolution, len(shape))
        if components == 1:  # IDX does not distinguish one component from none
            want = want[..., 0]
        assert got.dtype == array.dtype.newbyteorder("<") and np.array_equal(got, want)


@pytest.mark.parametrize(("compress", "tolerance"), [("zfp", 0), ("zfp:accuracy=1e-3", 1e-3), ("zfp:precision=20", 1e-2)])
def test_zfp_rounds_what_it_takes(tmp_path, compress, tolerance):
    z, y, x = np.meshgrid(*[np.linspace(0, 3, n) for n in (21, 34, 40)], indexing="ij")
    rho = (np.sin(x * y) + z).astype("f4")
    path, ids = tmp_path / "a.idx", numbers(rho.shape, "u2")
    raddle.idx.write(path, {"rho": rho, "id": ids, "far": rho.astype("f8") * np.nan}, compress=compress, bits_per_block=9)
    name = compress.replace("1e-3", "0.001").partition(":")[2] or "reversible"
    named = [field.compression for field in raddle.idx.info(path).fields]
    assert named == [f"zfp-{name}-{name}", "zip", f"zfp-{name}-{name}"]
    assert np.array_equal(raddle.idx.read(path, "id"), ids) and np.isnan(raddle.idx.read(path, "far")).all()
    got = raddle.idx.read(path, "rho")
    assert np.abs(got - rho).max() <= tolerance and (tolerance > 0 or np.array_equal(got, rho))


@pytest.mark.parametrize("which", ["wide", "all", "never"])
@given(number=st.sampled_from(TYPES), components=st.integers(1, 12), cut=st.integers(1, 6), compress=st.sampled_from(["zip", "zfp"]))
def test_vectors_become_fields(tmp_path_factory, which, number, components, cut, compress):
    """From the whole array and from boxes of it."""
    path = tmp_path_factory.mktemp("idx") / "a.idx"
    vector, scalar = numbers((5, 6, 7, components), number), numbers((5, 6, 7), "f4")
    parts = [slice(0, cut), slice(cut, 5)] if cut < 5 else [slice(0, 5)]
    boxes = [raddle.idx.Box((part.start, 0, 0), {"v": vector[part], "p": scalar[part]}) for part in parts]
    raddle.idx.write(path, boxes, shape=scalar.shape, split_vectors=which, compress=compress, **SMALL)
    # The lengths that OpenVisus reads; tests/interop checks them with OpenVisus.
    is_read = vector.dtype.itemsize * components <= 32 or vector.dtype.itemsize * components == 64
    fields = {field.name: field.is_read_by_openvisus for field in raddle.idx.info(path).fields}
    if components == 1 or which == "never" or (which == "wide" and is_read):
        assert fields == {"v": is_read, "p": True}
        assert np.array_equal(raddle.idx.read(path, "v").reshape(vector.shape), vector)
    else:
        assert list(fields) == [f"v_{component}" for component in range(components)] + ["p"] and all(fields.values())
        for component in range(components):
            assert np.array_equal(raddle.idx.read(path, f"v_{component}"), vector[..., component])
    assert np.array_equal(raddle.idx.read(path, "p"), scalar)


def test_names_of_components_may_be_taken(tmp_path):
    arrays = {"v": numbers((3, 4, 5)), "v_1": numbers((3, 4))}
    with pytest.raises(errors.UsageError, match="v_1"):
        raddle.idx.write(tmp_path / "a.idx", arrays, shape=(3, 4), split_vectors="all")
    with pytest.raises(errors.UsageError, match="split_vectors is an IDX option"):
        raddle.idx.write(tmp_path / "a.zarr", arrays, shape=(3, 4), split_vectors="all")


def test_keywords_and_words_that_do_not_exist_are_named(tmp_path):
    def refused(**options):
        with pytest.raises(errors.UsageError) as caught:
            _core.idx_write(tmp_path / "a.idx", json.dumps(options), [3, 4], [("a", "uint8")], [])
        return str(caught.value)

    assert "unknown keyword chunks" in refused(chunks="2x2") and "chunk is meant" in refused(chunks="2x2")
    assert "blocks_per_file, " in refused(unheard_of=1)
    assert all(word in refused(order="columns") for word in ("order", '"rows"', '"hz"'))
    assert "phases" in refused(phases="four") and '"three"' in refused(phases="four")
    assert "box" in refused(box="4x0") and "expanded" in refused(box="4x0")
    assert "memory" in refused(memory="much") and "jobs" in refused(jobs=0)
    with pytest.raises(errors.UsageError, match="resolution"):
        _core.idx_read(tmp_path / "a.idx", json.dumps({"resolution": "high"}))
    assert not list(tmp_path.iterdir())


def test_the_files_are_those_of_the_command(environment, tmp_path):
    rho, velocity = numbers((11, 20, 7)), numbers((11, 20, 7, 3), "i2")
    for name, array in (("rho", rho), ("velocity", velocity)):
        np.save(tmp_path / f"{name}.npy", array)
    for folder in ("ours", "theirs"):
        (tmp_path / folder).mkdir()
    report = raddle.idx.write(tmp_path / "ours/d.idx", {"velocity": velocity}, shape=(11, 20, 7), **SMALL)
    command = [sys.executable, "-m", "raddle", "idx", "write", str(tmp_path / "velocity.npy"), "--vector"]
    line = [*command, "-o", str(tmp_path / "theirs/d.idx"), "--bits-per-block=5", "--blocks-per-file=8", "-q"]
    subprocess.run(line, check=True, env=environment)
    assert files_of(tmp_path / "ours") == files_of(tmp_path / "theirs")
    assert report.sample_len_bytes == velocity.nbytes and report.ranks == 1 and "d.idx" in repr(report)
    both = tmp_path / "both.idx"
    raddle.idx.write(both, {"velocity": velocity, "rho": rho})
    assert np.array_equal(raddle.idx.read(both, "rho"), rho)
    assert np.array_equal(raddle.idx.read(both), velocity)


def test_boxes_are_the_whole(tmp_path):
    array = numbers((13, 9, 21))
    for folder in ("whole", "boxes"):
        (tmp_path / folder).mkdir()
    raddle.idx.write(tmp_path / "whole/d.idx", {"a": array}, **SMALL)
    cuts = [(0, 5), (5, 13)]
    boxes = [raddle.idx.Box((0, 0, 0), {"a": array[:, :, :8]})]
    boxes += [raddle.idx.Box((first, 0, 8), {"a": array[first:end, :, 8:]}) for first, end in cuts]
    raddle.idx.write(tmp_path / "boxes/d.idx", boxes, shape=array.shape, **SMALL)
    assert files_of(tmp_path / "whole") == files_of(tmp_path / "boxes")
    with pytest.raises(errors.InputError):
        raddle.idx.write(tmp_path / "less.idx", boxes[:2], shape=array.shape)
    assert not (tmp_path / "less.idx").exists()


def test_parts_and_refinement(tmp_path):
    array = numbers((30, 17, 23))
    path = tmp_path / "a.idx"
    raddle.idx.write(path, {"a": array}, bits_per_block=6)
    part = np.s_[3:20, :, 5:]
    assert np.array_equal(raddle.idx.read(path, box=part), array[part])
    info = raddle.idx.info(path)
    last = info.resolutions[-1].resolution
    seen = list(raddle.idx.refine(path))
    assert [resolution for resolution, _ in seen] == list(range(last % 3, last + 1, 3))
    for resolution, got in seen:
        assert np.array_equal(got, at_resolution(array, info.bitmask, resolution, 3))
    # One sample, which is on the finest level: coarser levels have no samples there.
    odd = np.s_[3:4, 5:6, 7:8]
    assert [(resolution, got.item()) for resolution, got in raddle.idx.refine(path, box=odd)] == [(last, array[3, 5, 7])]


def test_time_steps(tmp_path):
    path = tmp_path / "t.idx"
    steps = {step: numbers((8, 9), seed=step) for step in (2, 3, 7)}
    for step, array in steps.items():
        raddle.idx.write(path, {"a": array}, step=step, append=step != 2)
    assert raddle.idx.info(path).steps == [2, 3, 7]
    for step, array in steps.items():
        assert np.array_equal(raddle.idx.read(path, step=step), array)
    with pytest.raises(errors.InputError, match="time step"):
        raddle.idx.read(path, step=9)
    # Between others, where no step was written.
    with pytest.raises(errors.InputError, match="has no time step 5; available: 2 to 3, 7$"):
        raddle.idx.read(path, step=5)
    assert not raddle.idx.read(path, step=5, missing="default").any()
    with pytest.raises(errors.InputError, match="set of fields"):
        raddle.idx.write(path, {"b": steps[2]}, step=8, append=True)
    with pytest.raises(errors.InputError, match="has time steps, so the one to add must have a number"):
        raddle.idx.write(path, {"a": steps[2]}, append=True)
    raddle.idx.write(tmp_path / "still.idx", {"a": steps[2]})
    with pytest.raises(errors.InputError, match="has no time steps, so none can be added"):
        raddle.idx.write(tmp_path / "still.idx", {"a": steps[2]}, step=8, append=True)


def test_blocks_of_the_input_are_never_replaced(environment, tmp_path):
    array = numbers((64, 64))
    (tmp_path / "sub").mkdir()
    small = {"bits_per_block": 6, "blocks_per_file": 8}
    raddle.idx.write(tmp_path / "sub/old.idx", {"f": array}, **small)
    header = (tmp_path / "sub/old.idx").read_text()
    (template,) = [line for line in header.splitlines() if "%" in line]
    for step in (3, 4):
        raddle.idx.write(tmp_path / "sub/t.idx", {"f": array + step}, step=step, append=step == 4, **small)
    of_steps = (tmp_path / "sub/t.idx").read_text()

    def run(view, output, code):
        line = ["idx", "write", view, "-o", output, "--crop", "x=0:8", "--force", "-q"]
        done = subprocess.run(
            [sys.executable, "-m", "raddle", *line], env=environment, cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == code, done.stderr
        assert code == 0 or "has its blocks" in done.stderr

    # The template, a link to the folder of blocks, and links to the folders of time steps lead into the output.
    (tmp_path / "nested.idx").write_text(header.replace(template, template.replace("./old", "./sub/old")))
    (tmp_path / "linked.idx").write_text(header.replace("./old", "./linked"))
    (tmp_path / "linked").symlink_to("sub/old")
    (tmp_path / "steps.idx").write_text(of_steps.replace("./t/", "./steps/"))
    (tmp_path / "steps").mkdir()
    for step in (3, 4):
        (tmp_path / f"steps/time_000{step}").symlink_to(f"../sub/t/time_000{step}")
    (tmp_path / "alias").symlink_to("sub")
    # Blocks whose numbers exceed the template lie in folders that have the name of the output.
    (tmp_path / "flat").mkdir()
    (tmp_path / "flat/d.idx").write_text(header.replace(template, "./%01x.bin"))
    for file in (tmp_path / "sub/old").glob("*.bin"):
        digits = file.stem.lstrip("0") or "0"
        target = tmp_path / "flat" / "/".join(digits[:-1]) / f"{digits[-1]}.bin"
        target.parent.mkdir(exist_ok=True)
        target.write_bytes(file.read_bytes())
    before = files_of(tmp_path)
    for output in ("sub/old.idx", "alias/old.idx"):
        run("nested.idx", output, 5)
        run("linked.idx", output, 5)
    run("steps.idx", "sub/t.idx", 5)
    run("flat/d.idx", "flat/3.idx", 5)
    assert files_of(tmp_path) == before
    for name in ("nested", "linked", "flat/d"):
        assert np.array_equal(raddle.idx.read(tmp_path / f"{name}.idx"), array)
    for view, output in (("nested.idx", "sub/new.idx"), ("linked.idx", "old.idx"), ("flat/d.idx", "flat/new.idx")):
        for _ in range(2):
            run(view, output, 0)
            assert np.array_equal(raddle.idx.read(tmp_path / output), array[:, :8])
    for name in ("nested", "linked", "flat/d"):
        assert np.array_equal(raddle.idx.read(tmp_path / f"{name}.idx"), array)


@pytest.mark.parametrize(("name", "part"), [("a\udcff.idx", "*/*.bin"), ("a\udcff.zarr", "0/c/0/0")])
def test_reports_name_files_whose_names_are_not_text(environment, tmp_path, name, part):
    shown = name.replace("\udcff", "\ufffd")  # bytes that are not UTF-8
    report = raddle.idx.write(tmp_path / name, numbers((8, 8)))
    assert report.output == str(tmp_path / shown)
    (stored,) = (tmp_path / name if name.endswith(".zarr") else tmp_path).glob(part)
    stored.write_bytes(b"damaged")
    command = [sys.executable, "-m", "raddle", "idx", "verify", tmp_path / name, "--json"]
    verified = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert verified.returncode == 8, verified.stderr
    assert "\ufffd" in json.dumps(json.loads(verified.stdout), ensure_ascii=False)


@pytest.mark.parametrize("name", ["a.idx", "a.zarr"])
def test_masked_elements_are_refused(tmp_path, name):
    array = np.ma.masked_equal(numbers((4, 5)), 1e20)
    raddle.idx.write(tmp_path / name, {"rho": array})
    array[2, 3] = np.ma.masked
    with pytest.raises(errors.UsageError, match=r"'rho' has masked elements.*filled"):
        raddle.idx.write(tmp_path / name, {"rho": array}, force=True)


def test_what_cannot_be_done_is_said(tmp_path):
    path, array = tmp_path / "a.idx", numbers((40, 40), "u2") + 1
    raddle.idx.write(path, {"a": array}, bits_per_block=6, blocks_per_file=4)
    with pytest.raises(errors.OutputError, match="exists"):
        raddle.idx.write(path, {"a": array})
    raddle.idx.write(path, {"a": array}, force=True, bits_per_block=6, blocks_per_file=4)
    for samples, more in [
        ({}, {}),
        ([], {"shape": (3, 3)}),
        ({"a": array, "b": array[1:]}, {}),
        ({"a": array.astype("c8")}, {}),
        ({"a": array.astype("f2")}, {}),
        ({"a": array}, {"start": (0,)}),
        ({"a": array}, {"start": (-1, 0)}),
        ({"a": array}, {"compress": "bzip2"}),
        ({"a": array}, {"box": (4, 4, 4)}),
        ({"a b": array}, {}),
        ([raddle.idx.Box((0, 0), {"a": array}), raddle.idx.Box((0, 0), {"b": array})], {"shape": (40, 40)}),
        ([raddle.idx.Box((0, 0), {"a": array})] * 2, {}),
    ]:
        with pytest.raises(errors.UsageError):
            raddle.idx.write(tmp_path / "no.idx", samples, **more)
    with pytest.raises(errors.UsageError, match="NAME.idx"):
        raddle.idx.write(tmp_path / "no.dat", {"a": array})
    # The reference describes this refusal.
    assert "zfp does not support use zip if it supports another field" in " ".join(raddle.idx.write.__doc__.split())
    for compress, printed in [("zfp", "no field has them"), ("zfp:rate=8", "zfp:accuracy=X"), ("zfp:accuracy=0", "above 0")]:
        with pytest.raises(errors.UsageError, match=printed):
            raddle.idx.write(tmp_path / "no.idx", {"a": array}, compress=compress)
    for bitmask, printed in [("V10", "room for 0 to before"), ("V0123", "splits 4 axes"), ("0101", "V"), ("V0197", "9")]:
        with pytest.raises(errors.UsageError, match=printed):
            raddle.idx.write(tmp_path / "no.idx", {"a": array}, bitmask=bitmask)
    with pytest.raises(errors.UsageError, match="at least 1"):
        raddle.idx.write(tmp_path / "no.idx", {"a": array}, bits_per_block=0)
    for wrong in [np.s_[:], np.s_[::2, :], np.s_[3, :], np.s_[5:5, :], np.s_[:, 0:41]]:
        with pytest.raises(errors.UsageError):
            raddle.idx.read(path, box=wrong if isinstance(wrong, tuple) else (wrong,))
    for more in [{"field": "b"}, {"step": 1}, {"resolution": 99}]:
        with pytest.raises(errors.InputError):
            raddle.idx.read(path, **more)
    with pytest.raises(errors.InputError):
        raddle.idx.info(tmp_path / "none.idx")
    (gone,) = [file for file in (tmp_path / "a").glob("*") if file.name == "0004.bin"]
    gone.unlink()
    with pytest.raises(errors.InputError, match="block 4 of field"):
        raddle.idx.read(path)
    assert (raddle.idx.read(path, missing="default") == 0).any()


def test_a_folder_of_images(tmp_path):
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    array = numbers((2, 21, 10, 13), "i2")
    path = tmp_path / "a.zarr"
    report = raddle.idx.write(path, {"a": array}, axes="tzyx", chunk=(1, 4, 4, 4), spacing=(1, 0.5, 0.25, 0.25), unit="meter")
    assert report.sample_len_bytes == array.nbytes
    group = zarr.open_group(path, mode="r")
    described = raddle.idx.zarr_info(path)
    (image,) = described.images
    assert (image.name, image.axes, image.unit, len(image.levels)) == ("a", "tzyx", "meter", 4) and "tzyx" in repr(described)
    for number, level in enumerate(image.levels):
        assert np.array_equal(group[str(number)][...], array[(slice(None), *[slice(None, None, 2**number)] * 3)])
        assert level.scale == [1, 0.5 * 2**number, 0.25 * 2**number, 0.25 * 2**number]
    vectors = numbers((9, 10, 11, 3))
    raddle.idx.write(tmp_path / "v", {"v": vectors, "a": vectors[..., 0]}, format="zarr", shape=(9, 10, 11))
    assert np.array_equal(zarr.open_group(tmp_path / "v", mode="r")["v/0"][...], np.moveaxis(vectors, -1, 0))
    with pytest.raises(errors.UsageError, match="zarr_info"):
        raddle.idx.info(path)
    for wrong in [{"order": "hz"}, {"append": True}, {"axes": "xyzt"}, {"compress": "lz4"}, {"step": 4}]:
        with pytest.raises(errors.UsageError):
            raddle.idx.write(tmp_path / "no.zarr", {"a": array}, **wrong)
    with pytest.raises(errors.UsageError, match="OME-Zarr"):
        raddle.idx.write(tmp_path / "no.idx", {"a": array}, levels=3)
    assert sorted(found.name for found in tmp_path.iterdir()) == ["a.zarr", "v"]


@pytest.mark.parametrize("name", ["d.idx", "d.zarr"])
def test_the_disk_need_not_be_waited_for(tmp_path, name):
    array = numbers((12, 10, 4))
    reports = {}
    for folder, options in (("usual", {}), ("synced", {"sync": True}), ("unsynced", {"sync": False})):
        (tmp_path / folder).mkdir()
        reports[folder] = raddle.idx.write(tmp_path / folder / name, {"a": array}, **options).durability
    assert reports == {"usual": "synced", "synced": "synced", "unsynced": "unsynced"}
    assert files_of(tmp_path / "usual") == files_of(tmp_path / "synced") == files_of(tmp_path / "unsynced")


def test_an_array_alone_is_the_only_field(tmp_path):
    array = numbers((8, 9))
    raddle.idx.write(tmp_path / "my data.idx", array)
    assert [field.name for field in raddle.idx.info(tmp_path / "my data.idx").fields] == ["my_data"]
    assert np.array_equal(raddle.idx.read(tmp_path / "my data.idx"), array)
    for wrong in (array.tolist(), [array], 3, "array", [(array, (0, 0))], {"a": array}.items()):
        with pytest.raises(errors.UsageError):
            raddle.idx.write(tmp_path / "other.idx", wrong)
    assert not (tmp_path / "other.idx").exists()


def test_a_slice_alone_is_a_box_of_one_axis(tmp_path):
    array = numbers((20,))
    raddle.idx.write(tmp_path / "a.idx", {"a": array})
    assert np.array_equal(raddle.idx.read(tmp_path / "a.idx", box=np.s_[2:4]), array[2:4])
    assert [got.size for _, got in raddle.idx.refine(tmp_path / "a.idx", box=np.s_[4:8])][-1] == 4
    raddle.idx.write(tmp_path / "b.idx", {"b": numbers((4, 5))})
    for path, box in (("b.idx", np.s_[2:4]), ("a.idx", 3), ("a.idx", "2:4"), ("a.idx", [2, 4]), ("a.idx", range(2, 4))):
        with pytest.raises(errors.UsageError):
            raddle.idx.read(tmp_path / path, box=box)


def test_datasets_that_links_name(environment, tmp_path):
    array = numbers((3, 4))
    with h5py.File(tmp_path / "far.h5", "w") as file:
        file["x"] = array
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["g/x"] = array
        file["hard"] = file["g/x"]
        file["soft"], file["of_group"] = h5py.SoftLink("/g/x"), h5py.SoftLink("g")
        file["cycle"], file["external"] = h5py.SoftLink("/cycle"), h5py.ExternalLink("far.h5", "/x")
        file["complex"], file["scalar"] = np.zeros(3, complex), 1.0
        # A float of 32 bits whose exponent has another bias than that of IEEE 754.
        biased = h5py.h5t.IEEE_F32LE.copy()
        biased.set_ebias(120)
        h5py.h5d.create(file.id, b"biased", biased, h5py.h5s.create_simple((3, 4)))

    def run(name):
        command = [sys.executable, "-m", "raddle", "idx", "write", f"a.h5:/{name}", "-o", "out.idx", "--force", "-q"]
        return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)

    for name in ("g/x", "hard", "soft", "of_group/x"):
        done = run(name)
        assert done.returncode == 0, done.stderr
        assert np.array_equal(raddle.idx.read(tmp_path / "out.idx"), array)
    for name, words in (
        ("cycle", "/cycle leads through more than 16 links"),
        ("external", "name it as far.h5:/x"),
        ("complex", "dataset /complex holds no numbers that IDX supports"),
        ("biased", "dataset /biased holds no numbers that IDX supports"),
        ("scalar", "dataset /scalar has no axis"),
        ("g", "/g is not a dataset"),
    ):
        refused = run(name)
        assert refused.returncode == 3 and words in refused.stderr, refused.stderr


def test_datasets_whose_values_lie_in_other_files(environment, tmp_path, monkeypatch):
    """Virtual datasets and external files are read by libhdf5 in a separate process."""
    # h5py creates external files relative to the working folder.
    monkeypatch.chdir(tmp_path)
    array = numbers((50, 6, 7))
    (tmp_path / "far").mkdir()
    for number in range(5):
        with h5py.File(tmp_path / f"part{number}.h5", "w") as file:
            file.create_dataset("x", data=array[10 * number : 10 * number + 10], chunks=(4, 6, 7), compression="lzf")
    with h5py.File(tmp_path / "far.h5", "w") as file:
        file["x"] = array
    layout = h5py.VirtualLayout(array.shape, ">f4")
    for number in range(5):
        layout[10 * number : 10 * number + 10] = h5py.VirtualSource(f"part{number}.h5", "x", (10, 6, 7))
    foreign, missing = (h5py.VirtualLayout(array.shape, "f4") for _ in range(2))
    foreign[:] = h5py.VirtualSource("../far.h5", "x", array.shape)
    missing[:] = h5py.VirtualSource("gone.h5", "x", array.shape)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_virtual_dataset("virtual", layout)
        file.create_virtual_dataset("missing", missing)
        file["soft"] = h5py.SoftLink("virtual")
        file.create_dataset("raw", data=array, external=[("raw.bin", 0, h5py.h5f.UNLIMITED)])
    with h5py.File(tmp_path / "far" / "a.h5", "w") as file:
        file.create_virtual_dataset("foreign", foreign)

    def run(*arguments):
        command = [sys.executable, "-m", "raddle", *arguments]
        return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)

    for name in ("virtual", "soft", "raw"):
        done = run("idx", "write", f"a.h5:/{name}", "-o", "out.idx", "--force", "-q")
        assert done.returncode == 0, done.stderr
        with h5py.File(tmp_path / "a.h5") as file:
            assert np.array_equal(raddle.idx.read(tmp_path / "out.idx"), file[name][:])
        assert run("idx", "verify", "out.idx", "--against", f"a.h5:/{name}", "-q").returncode == 0
    for name, words in (
        ("a.h5:/missing", "gone.h5 is missing"),
        ("far/a.h5:/foreign", "copy the values with `raddle merge --follow-foreign-files`"),
    ):
        refused = run("idx", "write", name, "-o", "new.idx", "-q")
        assert refused.returncode == 3 and words in refused.stderr, refused.stderr
        assert not list(tmp_path.glob("*new*"))
    # Following the advice helps.
    assert run("merge", "far/a.h5", "-o", "copy.h5", "--follow-foreign-files", "-q").returncode == 0
    done = run("idx", "write", "copy.h5:/foreign", "-o", "out.idx", "--force", "-q")
    assert done.returncode == 0 and np.array_equal(raddle.idx.read(tmp_path / "out.idx"), array), done.stderr
