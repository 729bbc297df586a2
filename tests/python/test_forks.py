"""Forks of a process whose other threads work with files: the new process has none of these threads, and continues."""

import os
import threading
import time

import h5py
import numpy as np
import pytest
import raddle

COUNT = 10
FORKS = 60
WAIT_S = 60


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("forks") / "file.h5"
    with h5py.File(path, "w") as file:
        for number in range(COUNT):
            file[f"texts/{number}"] = [f"text {row}" for row in range(5)]
            file[f"table/{number}"] = np.arange(50) + number
    return path


def read_texts(file, path):
    for number in range(COUNT):
        assert file[f"texts/{number}"][()].tolist() == [f"text {row}".encode() for row in range(5)]


def read_rows(file, path):
    for number in range(COUNT):
        assert file[f"table/{number}"][10:20].tolist() == list(range(10 + number, 20 + number))


def scan(file, path):
    found = raddle.scan(path)["table"].filter(raddle.col("3") > 50).select("5").to_numpy()
    assert found["5"].tolist() == [53, 54]


def open_again(file, path):
    with raddle.open(path) as other:
        assert len(other["texts"]) == COUNT


def merge(file, path):
    output = path.with_name(f"{os.getpid()}-{threading.get_ident()}.h5")
    raddle.merge([path], output, progress=False)
    output.unlink()


def fork(work):
    """Returns the number of a process that does the work."""
    child = os.fork()
    if child:
        return child
    try:
        work()
        os._exit(0)
    finally:
        os._exit(1)


def wait(child):
    deadline = time.monotonic() + WAIT_S
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, 9)
            os.waitpid(child, 0)
            pytest.fail("a forked process waits for a thread that it does not have")
        time.sleep(0.001)
    assert ended[1] == 0


@pytest.mark.parametrize("work", [read_texts, read_rows, scan, open_again, merge])
def test_forked_processes_go_on(path, work):
    # Modules that are imported at the first use: an import in another thread during a fork never ends in the new process.
    with raddle.open(path) as shared:
        work(shared, path)
        stop = threading.Event()

        def repeat():
            with raddle.open(path, threads=3) as file:
                while not stop.is_set():
                    work(file, path)

        threads = [threading.Thread(target=repeat) for _ in range(4)]
        for thread in threads:
            thread.start()
        try:
            for _ in range(FORKS):
                wait(fork(lambda: work(shared, path)))
        finally:
            stop.set()
            for thread in threads:
                thread.join()
