"""What surrounds a run: environment variables for other programs, and inputs that other programs write."""

import os
import subprocess

import h5py
import numpy as np
import pytest
from command import RADDLE, run_command


@pytest.mark.parametrize(
    "variable",
    [
        {"HDF5_VOL_CONNECTOR": "missing"},
        {"HDF5_VOL_CONNECTOR": "pass_through under_vol=0;under_info={}"},
        {"HDF5_DRIVER": "missing"},
        {"HDF5_DRIVER": "core", "HDF5_VOL_CONNECTOR": "pass_through"},
        {"HDF5_PLUGIN_PATH": "/missing"},
    ],
    ids=str,
)
def test_settings_of_other_programs_do_not_change_the_output(tmp_path, raddle, events, variable):
    """libhdf5 takes the driver and the connector of all files from the environment, and fails if it lacks them."""
    outputs = [tmp_path / name for name in ("plain.h5", "set.h5")]
    for output, more in zip(outputs, [{}, variable], strict=True):
        raddle("merge", *events, "-o", output, "--extendible", env={**os.environ, **more})
        raddle("append", output, events[0], "--again", env={**os.environ, **more})
    assert outputs[0].read_bytes() == outputs[1].read_bytes()


@pytest.fixture
def written(tmp_path):
    """Returns a file that is open for writing, and lacks its last values."""
    path = tmp_path / "written.h5"
    with h5py.File(path, "w", locking=True) as file:
        file.create_dataset("adc", data=np.zeros(100, "i4"))
        file.create_dataset("hits", data=np.zeros(10, "i4"), maxshape=(None,), chunks=(10,))
        file.flush()
        file["hits"].resize((30,))
        file["adc"][50:] = 7
        yield path


@pytest.mark.parametrize(
    "command",
    [
        ["merge", "written.h5", "-o", "out.h5"],
        ["merge", "whole.h5", "written.h5", "-o", "out.h5"],
        ["append", "whole.h5", "written.h5"],
        ["rechunk", "written.h5", "-o", "out.h5"],
        ["split", "written.h5", "--by", "variable", "--dir", "parts"],
        ["idx", "write", "written.h5:/adc", "-o", "out.idx"],
        ["events", "convert", "written.h5", "-o", "out.h5"],
        ["plan", "written.h5"],
        ["verify", "written.h5", "--against", "whole.h5"],
        ["index", "written.h5"],
        ["inspect", "written.h5"],
        ["inspect", "--refs", "out.json", "written.h5"],
    ],
    ids=" ".join,
)
def test_an_input_that_another_program_writes_is_refused(tmp_path, raddle, written, command):
    with h5py.File(tmp_path / "whole.h5", "w") as file:
        for name, rows in [("adc", 100), ("hits", 10)]:
            file.create_dataset(name, data=np.zeros(rows, "i4"), maxshape=(None,), chunks=(10,))
    before = (tmp_path / "whole.h5").read_bytes()
    refused = raddle(*command, expect=7, cwd=tmp_path).stderr
    assert "written.h5: is open in another program, or in this one, for writing" in refused
    assert sorted(path.name for path in tmp_path.iterdir()) == ["whole.h5", "written.h5"]
    assert (tmp_path / "whole.h5").read_bytes() == before


def test_an_input_that_another_program_writes_is_left_out_or_accepted_on_request(tmp_path, raddle, written):
    whole = tmp_path / "whole.h5"
    with h5py.File(whole, "w") as file:
        file["adc"], file["hits"] = np.arange(100, dtype="i4"), np.arange(10, dtype="i4")
    raddle("merge", whole, written, "-o", tmp_path / "left.h5", "--skip-bad", expect=4)
    with h5py.File(tmp_path / "left.h5") as file:
        assert np.array_equal(file["adc"], np.arange(100))
    raddle("merge", written, "-o", tmp_path / "now.h5", env={**os.environ, "HDF5_USE_FILE_LOCKING": "FALSE"})
    with h5py.File(tmp_path / "now.h5") as file:
        assert file["adc"].shape == (100,)


def test_an_input_that_another_program_reads_is_accepted(tmp_path, raddle, events):
    with h5py.File(events[0], locking=True):
        raddle("merge", *events, "-o", tmp_path / "out.h5")
    assert run_command("verify", tmp_path / "out.h5", "--against", *events).returncode == 0


@pytest.mark.parametrize("report", ["locked/report.json", "old.json"])
def test_a_report_that_cannot_be_written_is_refused_before_the_run(tmp_path, events, report):
    (tmp_path / "locked").mkdir(mode=0o555)
    (tmp_path / "old.json").write_text("{}")
    (tmp_path / "old.json").chmod(0o444)
    # Root may write to any file, unless it gives up this right.
    command = ["setpriv", "--bounding-set=-dac_override"] if os.geteuid() == 0 else []
    command += [RADDLE, "merge", *events, "-o", "out.h5", "--report", report]
    finished = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert finished.returncode == 5 and "cannot be written to: Permission denied" in finished.stderr, finished.stderr
    assert "nothing was written" in finished.stderr and not (tmp_path / "out.h5").exists()
