"""Progress on terminals of any width: no line is longer than the terminal, where it would wrap and be drawn again
below."""

import fcntl
import json
import os
import re
import struct
import subprocess
import termios

import h5py
import numpy as np
import pytest
from conftest import RADDLE

STAGES = {"scan", "plan", "create", "read", "decode", "regroup", "encode", "place", "commit"}


def on_terminal(columns, folder, *words):
    """Returns the command's output on a terminal with this number of columns."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {**os.environ, "TERM": "xterm"}
    command = [RADDLE, *map(str, words)]
    with subprocess.Popen(command, stderr=theirs, stdout=subprocess.DEVNULL, cwd=folder, env=environment) as process:
        os.close(theirs)
        drawn = b""
        while True:
            try:
                part = os.read(ours, 1 << 16)
            except OSError:
                part = b""
            if not part:
                break
            drawn += part
    os.close(ours)
    assert process.returncode == 0, drawn
    return drawn.decode()


@pytest.mark.parametrize("columns", [120, 80, 60, 40, 24])
def test_no_line_is_longer_than_the_terminal(columns, tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as file:
        values = np.random.default_rng(0).integers(0, 1000, 2_000_000)
        file.create_dataset("x", data=values, chunks=(100_000,), compression="gzip", compression_opts=1)
    drawn = on_terminal(columns, tmp_path, "merge", "in.h5", "-o", "out.h5", "-c", "small", "-j", 1)
    lines = re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "\n", drawn))
    bars = [line for line in lines if line.startswith("encode") and " in " not in line]
    assert len(bars) > 3, drawn
    # Bars are padded with blanks to the width of the terminal, and follow one another without line breaks.
    rows = [line[start : start + columns] for line in lines if " in " not in line for start in range(0, len(line), columns)]
    wrapped = [row for row in rows if row.strip() and row.split()[0] not in STAGES]
    assert not wrapped, wrapped


def test_verification_advances_through_variable_length_data(tmp_path):
    """All values are counted, although they are not read in blocks of a known length."""
    with h5py.File(tmp_path / "in.h5", "w") as file:
        texts = [f"text {number}" for number in range(400_000)]
        file.create_dataset("texts", data=texts, dtype=h5py.string_dtype(), chunks=(20_000,), maxshape=(None,))
    subprocess.run([RADDLE, "merge", "in.h5", "-o", "out.h5", "-q"], cwd=tmp_path, check=True)
    for against in [], ["--against", "in.h5"]:
        command = [RADDLE, "verify", "out.h5", *against, "--json"]
        report = json.loads(subprocess.run(command, cwd=tmp_path, check=True, stdout=subprocess.PIPE).stdout)
        # Each value has an address of 16 bytes.
        assert report["compared_len_bytes"] == 400_000 * 16
        drawn = on_terminal(100, tmp_path, *command[1:])
        total = 400_000 * 16 * (2 if against else 1) / 2**20
        assert re.search(rf"verify\s+{total:.3g}\d* MiB in", drawn), drawn
