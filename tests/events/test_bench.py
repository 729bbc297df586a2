"""``raddle events bench`` with events whose durations come from a file."""

import json

import pytest
from converting import run_events


def bench(*arguments, code=0):
    finished = run_events("bench", "--rounds", "1", "--threads", "1", "--sinks", "null", *arguments, code=code)
    return json.loads(finished.stdout) if code == 0 else finished.stderr


@pytest.mark.parametrize("source", ["empty", "test"])
def test_events_wait_as_long_as_a_file_says(tmp_path, source):
    times = tmp_path / "times.txt"
    times.write_text("1000 3000\n\n 2000.5\n")
    # 100 times all three, and the first again.
    (measured,) = bench("--source", source, "--events", 301, "--wait-file", times, "--json")
    waited_s = 100 * 6000.5e-6 + 1000e-6
    assert measured["entries"] == 301
    assert waited_s <= measured["read_s"] < waited_s + 5


@pytest.mark.parametrize(("text", "printed"), [("", "no times"), ("1 2 x", 'word 3, "x"'), ("-1", "not a time in microseconds")])
def test_files_that_hold_no_times_are_refused(tmp_path, text, printed):
    times = tmp_path / "times.txt"
    times.write_text(text)
    stderr = bench("--wait-file", times, code=3)
    assert printed in stderr and "times.txt" in stderr
    assert "absent.txt" in bench("--wait-file", tmp_path / "absent.txt", code=3)
