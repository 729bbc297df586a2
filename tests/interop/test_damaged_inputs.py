"""Inputs that raddle wrote and that changed afterwards: their values are not copied unnoticed."""

import shutil
import subprocess

import h5py
import numpy as np
import pytest
from command import run_command


@pytest.fixture
def merged(tmp_path, raddle):
    """Returns a merged file without compression."""
    inputs = [tmp_path / f"in{number}.h5" for number in range(2)]
    for number, path in enumerate(inputs):
        with h5py.File(path, "w") as file:
            file["energy"] = np.arange(5000.0) + number
            file["name"] = [f"event {row}" for row in range(20)]
            file["energy"].attrs["unit"] = "GeV"
    output = tmp_path / "merged.h5"
    raddle("merge", *inputs, "-o", output, "-c", "none")
    return output


def damage(path):
    """Changes a byte of the values of a chunk."""
    with h5py.File(path) as file:
        address = file["energy"].id.get_chunk_info(0).byte_offset
    with path.open("r+b") as file:
        file.seek(address + 8 * 700 + 6)
        file.write(b"\x7f")


@pytest.mark.parametrize(
    "command",
    [
        ["rechunk", "merged.h5", "-o", "out.h5"],
        ["rechunk", "merged.h5", "-o", "out.h5", "-c", "keep"],
        ["rechunk", "merged.h5", "--dir", "folder"],
        ["rechunk", "merged.h5", "--in-place"],
        ["merge", "merged.h5", "in0.h5", "-o", "out.h5"],
        ["split", "merged.h5", "--by", "variable", "--dir", "parts"],
    ],
    ids=" ".join,
)
def test_damage_is_refused_and_accepted_on_request(tmp_path, raddle, merged, command):
    damage(merged)
    before = merged.read_bytes()
    refused = run_command(*command, cwd=tmp_path)
    assert refused.returncode == 3, refused.stderr
    found = "the values differ" if command[0] == "merge" else "rows 512 to 1023 differ"
    assert f"merged.h5: /energy: {found} from what was written: the file was damaged or changed" in refused.stderr
    assert "--ignore-digests" in refused.stderr
    assert not (tmp_path / "out.h5").exists() and merged.read_bytes() == before
    accepted = run_command(*command, "--ignore-digests", cwd=tmp_path)
    assert accepted.returncode == 0, accepted.stderr


@pytest.mark.skipif(shutil.which("h5repack") is None, reason="h5repack is not installed")
@pytest.mark.parametrize("options", [["-f", "GZIP=1"], ["-l", "CHUNK=100"], ["-f", "SHUF", "-f", "GZIP=9", "-L"]], ids=" ".join)
def test_another_layout_keeps_the_digests(tmp_path, raddle, merged, options):
    """h5repack also changes the layout of the digests."""
    again = tmp_path / "again.h5"
    subprocess.run(["h5repack", *options, merged, again], check=True)
    raddle("verify", again)
    damage(merged)
    subprocess.run(["h5repack", *options, merged, again], check=True)
    assert "rows 512 to 1023 differ" in raddle("verify", again, expect=8).stdout
    refused = raddle("rechunk", again, "-o", tmp_path / "out.h5", expect=3)
    assert "again.h5: /energy: rows 512 to 1023 differ" in refused.stderr


def test_a_file_that_another_program_rewrote_is_accepted(tmp_path, raddle, merged):
    """Its digests are those of other datasets: a part of the rows, or rows of another length."""
    for number, values in enumerate([np.arange(100.0), np.arange(10000.0).reshape(10000, 1), np.arange(10000, dtype="f4")]):
        changed = tmp_path / f"changed{number}.h5"
        shutil.copy(merged, changed)
        with h5py.File(changed, "r+") as file:
            del file["energy"]
            file["energy"] = values
        output = tmp_path / f"out{number}.h5"
        raddle("rechunk", changed, "-o", output)
        with h5py.File(output) as file:
            np.testing.assert_array_equal(file["energy"], values)


def test_tables_of_any_length_are_not_read(tmp_path, raddle, merged):
    """A table of digests that another program has compressed may claim 128 MiB in a few kilobytes."""
    with h5py.File(merged, "r+") as file:
        del file["_raddle/block_digest"]
        file.create_dataset("_raddle/block_digest", (1 << 24,), "u8", chunks=(1 << 16,), compression="gzip")
    found = raddle("verify", merged, expect=8).stdout
    assert "/_raddle/block_digest does not have the dimensions that raddle writes" in " ".join(found.split())
    raddle("rechunk", merged, "-o", tmp_path / "out.h5")
