"""Measures the peak memory of the command under test."""

import subprocess
import sys

from command import RADDLE

# The peak memory of a process includes the time before it executes the program, so pytest's own memory would count.
# Therefore a small process starts it.
MEASURE = """
import os, sys
pid = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, 2, 1)])
_, status, usage = os.wait4(pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024)
"""


def peak(*arguments):
    """Returns exit code, messages and peak memory of a run, in bytes."""
    command = [RADDLE, *map(str, arguments)]
    run = subprocess.run([sys.executable, "-S", "-c", MEASURE, *command], capture_output=True, text=True, check=True)
    code, most = map(int, run.stdout.split())
    return code, run.stderr, most
