"""Ranks, started by the command itself, share measured runs of raddle's own writers."""

import json
import subprocess

from conftest import ENVIRONMENT, MPIRUN, RADDLE, TIMEOUT_S


def bench(folder, *arguments):
    words = [RADDLE, "bench", *arguments, "--scale", "tiny", "--blocks", "1", "--json", "-q", "--mpirun", MPIRUN]
    done = subprocess.run(words, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (experiment,) = json.loads(done.stdout)["experiments"]
    return {arm["arm"]["candidate"]["name"]: arm["arm"] for arm in experiment["sweep"]["arms"]}


def test_boxes_of_samples_are_written_by_ranks(tmp_path):
    arms = bench(tmp_path, "pidx-sc12", "--only", "phases")
    assert arms.keys() == {"default", "one-phase", "two-phases"}
    for name, arm in arms.items():
        assert arm["fault"] is None, f"{name}: {arm['fault']}"
        (run,) = arm["runs"]
        assert run["processes"] == "ranks" and len(run["ranks"]) == 4
        assert run["counts"]["files"] == 1
    assert arms["two-phases"]["runs"][0]["counts"]["restructure_messages"] == 0


def test_events_are_written_by_ranks(tmp_path):
    arms = bench(tmp_path, "hep-cce-2023", "--only", "processes")
    ranks = {name: len(arm["runs"][0].get("ranks", [])) for name, arm in arms.items()}
    # A single process has no list of ranks.
    assert ranks == {"default": 2, "process-1": 0, "processes-4": 4, "processes-8": 8}
    assert len({arm["runs"][0]["file_len_bytes"] for arm in arms.values()}) == 1


def test_without_a_launcher_processes_are_threads(tmp_path):
    words = [RADDLE, "bench", "pidx-sc12", "--only", "box-60", "--scale", "tiny", "--blocks", "1", "-q", "--mpirun", "/absent/mpirun"]
    done = subprocess.run(words, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    assert done.returncode == 0 and "processes are threads of one" in done.stdout, done.stdout + done.stderr
