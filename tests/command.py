"""Finds and runs the command under test. Shared by the suites that run it as a process."""

import os
import subprocess
from pathlib import Path

import pytest

# Absolute, because tests change the current folder.
RADDLE = str(Path(os.environ.get("RADDLE", Path(__file__).parents[1] / "target/debug/raddle")).resolve())


def run_command(*arguments, **options):
    """Runs the command and returns the finished process, with any exit code."""
    command = [RADDLE, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **options)


@pytest.fixture(scope="session")
def raddle():
    """Runs the command: ``raddle("merge", ..., expect=0)`` returns the finished process."""

    def run(*arguments, expect=0, **options):
        finished = run_command(*arguments, **options)
        code, text = finished.returncode, finished.stdout + finished.stderr
        assert code == expect, f"{finished.args}\nrc {code}\n{text}"
        return finished

    return run
