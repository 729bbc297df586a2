"""Unions and outputs of external links, read by h5py."""

import os

import h5py
import numpy as np
import pytest
from conftest import write_frames


def stored_chunks(dataset):
    """Returns stored bytes and filter mask of every chunk, by origin."""
    chunks = {}
    for number in range(dataset.id.get_num_chunks()):
        origin = dataset.id.get_chunk_info(number).chunk_offset
        mask, raw = dataset.id.read_direct_chunk(origin)
        chunks[origin] = (mask, raw)
    return chunks


def test_a_union_moves_chunks_as_they_are_stored(raddle, tmp_path):
    rows = np.arange(1000, dtype=np.int32)
    filters = {
        "gzip": {"compression": "gzip", "shuffle": True, "fletcher32": True},
        "lzf": {"compression": "lzf"},
        "lossy": {"scaleoffset": 2},
        "zfp": {"compression": 32013, "compression_opts": (3, 0, 0, 0, 0, 0)},
        "plain": {},
    }
    for name, options in filters.items():
        data = rows.astype("f4") / 3 if name in ("lossy", "zfp") else rows
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            dataset = file.create_dataset(f"tables/{name}", data=data, chunks=(128,), maxshape=(2000,), **options)
            dataset.attrs["unit"] = name
    # An undecodable chunk is carried over without being examined.
    with h5py.File(tmp_path / "gzip.h5", "r+") as file:
        file["tables/gzip"].id.write_direct_chunk((256,), b"no deflate stream", 0)
    inputs = [tmp_path / f"{name}.h5" for name in filters]
    output = tmp_path / "union.h5"
    raddle("merge", *inputs, "-o", output, "--union")
    with h5py.File(output) as union:
        for name, path in zip(filters, inputs):
            with h5py.File(path) as file:
                expected, found = file[f"tables/{name}"], union[f"tables/{name}"]
                assert stored_chunks(found) == stored_chunks(expected)
                assert (found.shape, found.maxshape, found.chunks) == ((1000,), (2000,), (128,))
                assert found.attrs["unit"] == name
                if name != "gzip":
                    np.testing.assert_array_equal(found[()], expected[()])
    raddle("verify", output)


def test_a_union_rewrites_references_and_keeps_strings(raddle, tmp_path):
    for number in (1, 2):
        with h5py.File(tmp_path / f"part{number}.h5", "w") as file:
            file.attrs[f"part{number}"] = number
            file.attrs["experiment"] = "loom"
            group = file.create_group(f"det{number}")
            group["words"] = [f"wört {n}" * (n % 3) for n in range(50)]
            group["x"] = np.arange(50.0) * number
            group["x"].make_scale("x")
            group["y"] = np.arange(50.0)
            group["y"].dims[0].attach_scale(group["x"])
            group.create_dataset("to", data=np.array([group["x"].ref, group["y"].ref]), dtype=h5py.ref_dtype)
            group["again"] = group["y"]
    output = tmp_path / "union.h5"
    raddle("merge", tmp_path / "part1.h5", tmp_path / "part2.h5", "-o", output, "--union")
    with h5py.File(output) as file:
        assert dict(file.attrs) == {"part1": 1, "part2": 2, "experiment": "loom"}
        for number in (1, 2):
            group = file[f"det{number}"]
            assert group["words"].asstr()[7] == "wört 7"
            assert file[group["to"][0]].name == f"/det{number}/x"
            assert group["y"].dims[0][0] == group["x"]
            assert group["again"] == group["y"]


def test_a_union_that_was_appended_to_is_compared_with_all_inputs(raddle, tmp_path):
    def write(name, number, tables):
        with h5py.File(tmp_path / name, "w") as file:
            file.attrs[name] = number
            file["version"] = 7
            for table in tables:
                file.create_dataset(f"{table}/x", data=np.arange(4) + 10 * number).attrs["unit"] = "cm"
        return tmp_path / name

    united = [write("tracks.h5", 0, ["trk"]), write("hits.h5", 1, ["hit"])]
    late = [write(f"late{number}.h5", number, ["trk", "hit"]) for number in (2, 3)]
    output, again = tmp_path / "all.h5", tmp_path / "again.h5"
    raddle("merge", *united, "-o", output, "--union", "--extendible")
    for number, path in enumerate(late):
        raddle("append", output, path)
        raddle("verify", output, "--against", *united, *late[: number + 1], "--order", "given")
    raddle("rechunk", output, "-o", again)
    for path in [output, again]:
        with h5py.File(path) as file:
            assert file["hit/x"][:].tolist() == [*range(10, 14), *range(20, 24), *range(30, 34)]
        raddle("verify", path, "--against", *united, *late, "--order", "given")
        swapped = raddle("verify", path, "--against", *united, *reversed(late), "--order", "given", expect=8)
        assert "/trk/x" in swapped.stdout
        with h5py.File(path, "r+") as file:
            file["hit/x"][5] += 1
        assert "/hit/x" in raddle("verify", path, "--against", *united, *late, "--order", "given", expect=8).stdout
    # The inputs of the union itself must have different datasets.
    refused = raddle("verify", output, "--against", united[0], united[0], *late, "--duplicates", "keep", expect=3)
    assert "in more than one input" in refused.stderr


def test_a_union_refuses_what_two_inputs_have(raddle, events, tmp_path):
    refused = raddle("merge", *events, "-o", tmp_path / "out.h5", "--union", expect=3)
    assert "in more than one input" in refused.stderr and "/spill/evt" in refused.stderr
    assert not (tmp_path / "out.h5").exists()


def test_external_links_lead_to_the_inputs(raddle, events, tmp_path):
    output = tmp_path / "links.h5"
    raddle("merge", *events, "-o", output, "--link", "external")
    with h5py.File(output) as file:
        names = [name for name in file if name != "_raddle"]
        assert names == [path.stem for path in events]
        for path in events:
            link = file.get(path.stem, getlink=True)
            assert (link.filename, link.path) == (path.name, "/")
            with h5py.File(path) as own:
                np.testing.assert_array_equal(file[f"{path.stem}/spill/evt"][()], own["spill/evt"][()])
    raddle("verify", output)
    raddle("verify", output, "--against", *events)
    os.remove(events[2])
    assert "run3.h5" in raddle("verify", output, expect=8).stdout


def test_external_links_need_no_schema_in_common(raddle, tmp_path):
    for number, name in enumerate(("a/x", "b/x", "b/y")):
        path = tmp_path / f"{name}.h5"
        path.parent.mkdir(exist_ok=True)
        with h5py.File(path, "w") as file:
            file[f"only{number}"] = np.arange(number + 1)
    raddle("merge", tmp_path / "a", tmp_path / "b", "-o", tmp_path / "links.h5", "--link", "external")
    with h5py.File(tmp_path / "links.h5") as file:
        assert [name for name in file if name != "_raddle"] == ["a_x", "b_x", "y"]
        assert file["b_x/only1"].shape == (2,)


def test_each_object_of_the_root_groups_gets_a_link(raddle, tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    inputs = [folder / f"part{number}.h5" for number in (1, 2, 10)]
    for number, path in enumerate(inputs):
        with h5py.File(path, "w") as file:
            file[f"z{9 - number}/deep/x"] = np.arange(number + 3)
            file[f"täble{number}"] = np.arange(5) * number
            file[f"alias{number}"] = h5py.SoftLink(f"/z{9 - number}/deep")
    # A merged file has raddle's own group, which does not belong to the user.
    raddle("merge", inputs[0], "-o", folder / "part1.new.h5")
    (folder / "part1.new.h5").replace(inputs[0])
    output = tmp_path / "links.h5"
    raddle("merge", folder, "-o", output, "--link", "external-objects")
    with h5py.File(output) as file:
        expected = {}
        for number, path in enumerate(inputs):
            with h5py.File(path) as own:
                expected.update((name, path) for name in own if name != "_raddle")
                assert list(file[f"z{9 - number}/deep/x"][()]) == list(own[f"z{9 - number}/deep/x"][()])
                assert list(file[f"alias{number}/x"][()]) == list(range(number + 3))
                assert list(file[f"täble{number}"][()]) == list(own[f"täble{number}"][()])
        assert sorted(name for name in file if name != "_raddle") == sorted(expected) and len(expected) == 9
        for name, path in expected.items():
            link = file.get(name, getlink=True)
            assert (link.filename, link.path) == (f"parts/{path.name}", f"/{name}")
    assert "9 links found" in raddle("verify", output).stdout
    raddle("verify", output, "--against", folder)
    with h5py.File(inputs[1], "r+") as file:
        del file["täble1"]
    assert "täble1" in raddle("verify", output, "--against", folder, expect=8).stdout
    os.remove(inputs[2])
    assert "part10.h5" in raddle("verify", output, expect=8).stdout


def test_objects_of_one_name_get_no_links(raddle, tmp_path):
    inputs = [tmp_path / f"part{number}.h5" for number in range(3)]
    for number, path in enumerate(inputs):
        with h5py.File(path, "w") as file:
            file[f"own{number}"] = number
            if number != 1:
                file["shared/x"] = np.arange(3)
    output = tmp_path / "links.h5"
    message = raddle("merge", *inputs, "-o", output, "--link", "external-objects", expect=3).stderr
    assert "/shared" in message and "part0.h5" in message and "part2.h5" in message and "part1.h5" not in message, message
    assert "--link external " in message and not output.exists(), message
    raddle("merge", *inputs, "-o", output, "--link", "external-objects", "--exclude", "/shared")
    with h5py.File(output) as file:
        assert sorted(name for name in file if name != "_raddle") == ["own0", "own1", "own2"]
    message = raddle("merge", *inputs, "-o", output, "-f", "--link", "external-objects", "--keys", "/own0", expect=2).stderr
    assert "--keys" in message, message


def test_options_without_effect_on_links_are_refused(raddle, events, tmp_path):
    output = tmp_path / "links.h5"
    of_values = [
        ["-c", "fast"], ["--chunk", "10rows"], ["--for", "scan"], ["--shuffle", "yes"], ["--fletcher32"], ["--extendible"],
        ["--empty", "compact"], ["--layout", "evt: contiguous"], ["--contiguous"], ["--align", "4KiB"], ["--profile", "auto"],
    ]  # fmt: skip
    of_joins = [
        ["--union"], ["--join", "outer"], ["--scalars", "first"], ["--attributes", "stack"], ["--add-column", "run=@run"],
        ["--keep", "evt"], ["--dim", "x"], ["--rule", "evt: once"], ["--tolerance", "1"], ["--units", "convert"],
        ["--require-equal", "run"],
    ]  # fmt: skip
    of_objects = [["--exclude", "evt"], ["--include", "evt"]]
    # The profile is read before the merge is planned, which decides whether a view holds values.
    refused = {"virtual": of_values[:-1], "external-objects": of_values + of_joins}
    refused["external"] = of_values + of_joins + of_objects
    for kind, refused_options in refused.items():
        for options in refused_options:
            message = raddle("merge", *events, "-o", output, "--link", kind, *options, expect=2).stderr
            assert f"--link {kind}" in message, message
            assert ("--compress" if options[0] == "-c" else options[0]) in message, message
            assert not output.exists()
            assert f"--link {kind}" in raddle("plan", *events, "--link", kind, *options, expect=2).stderr
    # Keys are copied.
    keys = ["--keys", "/spill/run,/spill/subrun,/spill/evt"]
    raddle("merge", *events, "-o", output, "--link", "virtual", *keys, "-c", "gzip:9", "--fletcher32")
    with h5py.File(output) as file:
        assert file["spill/evt.seq"].fletcher32 and file["spill/evt"].is_virtual


def test_links_to_objects_lead_to_whole_groups(raddle, tmp_path):
    inputs = [tmp_path / f"part{number}.h5" for number in range(2)]
    for number, path in enumerate(inputs):
        with h5py.File(path, "w") as file:
            file[f"own{number}/x"], file[f"own{number}/y"] = 1, 2
    output = tmp_path / "links.h5"
    for options in (["--exclude", "x"], ["--include", "/own*/y"]):
        message = raddle("merge", *inputs, "-o", output, "--link", "external-objects", *options, expect=3).stderr
        assert "/own0/x" in message and "/own1/x" in message and "whole groups" in message, message
        assert not output.exists()
    raddle("merge", *inputs, "-o", output, "--link", "external-objects", "--exclude", "own1")
    with h5py.File(output) as file:
        assert sorted(name for name in file if name != "_raddle") == ["own0"]


def test_a_scale_that_parts_share_is_attached_to_the_datasets_of_all(raddle, tmp_path):
    for number in (1, 2):
        with h5py.File(tmp_path / f"part{number}.h5", "w") as file:
            file["bins"] = np.arange(5.0)
            file["bins"].make_scale("bins")
            file[f"counts{number}"] = np.arange(15).reshape(3, 5)
            file[f"counts{number}"].dims[1].attach_scale(file["bins"])
    output = tmp_path / "union.h5"
    raddle("merge", tmp_path / "part1.h5", tmp_path / "part2.h5", "-o", output, "--union")
    with h5py.File(output) as file:
        assert [file[ref].name for ref, _ in file["bins"].attrs["REFERENCE_LIST"]] == ["/counts1", "/counts2"]
        for number in (1, 2):
            assert file[f"counts{number}"].dims[1][0] == file["bins"]


def test_external_links_that_differ_are_reported_by_their_targets(raddle, tmp_path):
    inputs = [tmp_path / f"part{number}.h5" for number in range(2)]
    for number, path in enumerate(inputs):
        with h5py.File(path, "w") as file:
            file["x"] = np.arange(3)
            file["calibration"] = h5py.ExternalLink(f"cal{number}.h5", "/table")
    message = raddle("merge", *inputs, "-o", tmp_path / "out.h5", expect=3).stderr
    assert "cal0.h5:/table" in message and "cal1.h5:/table" in message, message


def write_master(folder, name, number, **links):
    """Writes a file with external links: the texts of the file's name by the name of the link."""
    folder.mkdir(exist_ok=True)
    with h5py.File(folder / name, "w") as file:
        file["x"] = np.arange(3) + number
        for link, text in links.items():
            file[f"entry/{link}"] = h5py.ExternalLink(text, "/frames")
    return folder / name


def links_of(path):
    with h5py.File(path) as file:
        return {name: file["entry"].get(name, getlink=True).filename for name in file["entry"]}


@pytest.mark.parametrize("place", ["run0", ".", "other"])
def test_links_of_one_name_that_lead_to_different_files_are_refused(raddle, tmp_path, place):
    """Runs that each have a folder with a master file and a file of frames."""
    inputs = []
    for number in range(2):
        write_frames(tmp_path / f"run{number}/frames.h5", 100 * number)
        inputs.append(write_master(tmp_path / f"run{number}", "master.h5", number, frames="frames.h5"))
    (tmp_path / "other").mkdir()
    output = tmp_path / place / "out.h5"
    message = raddle("merge", *inputs, "-o", output, "--order", "given", expect=3).stderr
    assert "/entry/frames" in message, message
    assert not list(output.parent.glob("*out.h5*"))


@pytest.mark.parametrize("command", ["merge two", "merge one", "rechunk"])
@pytest.mark.parametrize("place", ["other", ".", "in/deeper"])
def test_an_external_link_leads_to_the_same_file_from_another_folder(raddle, tmp_path, command, place):
    """The folder of the output has a file of the same name. A link to a missing file keeps its text."""
    frames, far = write_frames(tmp_path / "in/frames.h5", 100), write_frames(tmp_path / "far/frames.h5", 200)
    links = {"near": "./frames.h5", "up": "../far/frames.h5", "absolute": str(far), "absent": "absent.h5"}
    inputs = [write_master(tmp_path / "in", f"{name}.h5", number, **links) for number, name in enumerate("ab")]
    inputs = inputs[: 2 if command == "merge two" else 1]
    output = write_frames(tmp_path / place / "frames.h5", 777).with_name("out.h5")
    raddle(command.split()[0], *inputs, "-o", output)
    with h5py.File(output) as file:
        for name, target in {"near": frames, "up": far, "absolute": far}.items():
            with h5py.File(target) as expected:
                np.testing.assert_array_equal(file[f"entry/{name}"][()], expected["frames"][()])
    assert links_of(output)["absolute"] == str(far)
    assert links_of(output)["absent"] == "absent.h5"
    raddle("verify", output, "--against", *inputs)
    # Next to the inputs, all links keep their texts.
    output = tmp_path / "in/out.h5"
    raddle(command.split()[0], *inputs, "-o", output)
    assert links_of(output) == links
    raddle("verify", output, "--against", *inputs)


def write_view(path, source):
    """Writes a file whose dataset maps the frames of another one."""
    layout = h5py.VirtualLayout((2, 2), int)
    layout[...] = h5py.VirtualSource(source, "frames", (2, 2))
    with h5py.File(path, "w") as file:
        file.create_virtual_dataset("frames", layout, fillvalue=-1)
    return path


@pytest.mark.parametrize("place", ["links", ".", "real"])
def test_files_behind_symbolic_links_find_what_lies_next_to_them(raddle, tmp_path, monkeypatch, place):
    """HDF5 looks next to the link, and then next to the file to which it leads."""
    monkeypatch.chdir("/")
    frames = write_frames(tmp_path / "real/frames.h5", 100)
    write_master(tmp_path / "real", "master.h5", 0, frames="frames.h5")
    write_view(tmp_path / "real/view.h5", "frames.h5")
    (tmp_path / "links").mkdir()
    master, view = (tmp_path / "links" / name for name in ("master.h5", "view.h5"))
    for link in (master, view):
        link.symlink_to(tmp_path / "real" / link.name)
    with h5py.File(frames) as file:
        expected = file["frames"][()]
    output = tmp_path / place / "out.h5"
    for inputs, name, options in [
        ([master], "entry/frames", []),
        ([view], "frames", []),
        ([view], "frames", ["--link", "virtual"]),
    ]:
        raddle("merge", *inputs, "-o", output, "--force", *options)
        with h5py.File(output) as file:
            np.testing.assert_array_equal(file[name][()], expected)
        foreign = ["--follow-foreign-files"] if options else []
        raddle("verify", output, *foreign)
        raddle("verify", output, "--against", *inputs, *foreign)


def test_linked_outputs_are_intact_behind_symbolic_links(raddle, tmp_path):
    inputs = [write_frames(tmp_path / f"real/run{number}.h5", number) for number in range(2)]
    for kind in ("virtual", "external"):
        real, link = tmp_path / f"real/{kind}.h5", tmp_path / f"{kind}.h5"
        raddle("merge", *inputs, "-o", real, "--link", kind)
        link.symlink_to(real)
        raddle("verify", link)
        raddle("verify", link, "--against", *inputs)
        os.remove(inputs[1])
        assert "run1.h5" in raddle("verify", link, expect=8).stdout
        write_frames(inputs[1], 1)


@pytest.mark.parametrize("command", ["merge", "merge --link virtual", "rechunk", "merge --part 1/1"])
@pytest.mark.parametrize("kind", ["virtual", "external"])
def test_a_file_to_which_an_input_refers_is_not_replaced(raddle, tmp_path, command, kind):
    inputs = [write_frames(tmp_path / f"run{number}.h5", number) for number in range(2)]
    view, alias = tmp_path / "view.h5", tmp_path / "alias.h5"
    raddle("merge", *inputs, "-o", view, "--link", kind)
    alias.symlink_to(inputs[0])
    before = inputs[0].read_bytes()
    name, *options = command.split()
    for output in (inputs[0], alias):
        refused = raddle(name, view, "-o", output, "--force", *options, expect=5)
        assert "name another output" in refused.stderr
        assert inputs[0].read_bytes() == before
    raddle(name, view, "-o", tmp_path / "other.h5", *options)
    raddle(name, view, "-o", tmp_path / "other.h5", "--force", *options)
