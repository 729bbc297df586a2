"""What surrounds a run: environment variables for other programs."""

import os

import pytest

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
