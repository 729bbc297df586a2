"""Two network namespaces as two hosts: each has its own name, address and loopback, and messages between them go over a
virtual cable. They share a file system, like the machines of a cluster, and the cores."""

import os
import shutil
import signal
import subprocess

import pytest
from conftest import IS_SLURM, MPIRUN, Ranks, command_of, run_again, wait_for, wait_for_records

pytestmark = pytest.mark.skipif(IS_SLURM, reason="Slurm has its own hosts")

# A lost host ends all within this time.
LONGEST_S = 30


def is_mpich():
    """Returns whether the launcher is that of MPICH."""
    return "HYDRA" in subprocess.run([MPIRUN, "--version"], capture_output=True, text=True, check=True).stdout


class Hosts:
    """Two hosts of this process, the first of which starts ranks on both."""

    def __init__(self, folder):
        self.names = [f"raddle-{os.getpid()}-{letter}" for letter in "ab"]
        self.cables = [f"rdl{os.getpid()}{letter}" for letter in "ab"]
        addresses = ["10.213.7.1", "10.213.7.2"]
        hosts = folder / "hosts"
        lines = ["127.0.0.1 localhost", *(" ".join(pair) for pair in zip(addresses, self.names, strict=True))]
        hosts.write_text("\n".join(lines) + "\n")
        # Called like rsh: a host, then the words of a shell command. Only the host knows the names.
        self.agent = folder / "on_host.sh"
        self.agent.write_text(
            "#!/bin/sh\n"
            "host=$1; shift\n"
            f'exec ip netns exec "$host" unshare --uts --mount sh -c "'
            f'mount --bind {hosts} /etc/hosts && hostname $host && $*"\n'
        )
        self.agent.chmod(0o755)
        for name in self.names:
            ip("netns", "add", name)
        (first, second), (one, other) = self.names, self.cables
        ip("link", "add", one, "netns", first, "type", "veth", "peer", "name", other, "netns", second)
        for name, cable, address in zip(self.names, self.cables, addresses, strict=True):
            ip("-n", name, "addr", "add", f"{address}/24", "dev", cable)
            ip("-n", name, "link", "set", cable, "up")
            ip("-n", name, "link", "set", "lo", "up")

    def launcher(self, names, slots):
        """Returns the launcher of ranks on the hosts with these names, with ``slots`` ranks on each."""
        hosts = ",".join(f"{name}:{slots}" for name in names)
        if is_mpich():
            options = ["-hosts", hosts, "-launcher", "rsh", "-launcher-exec", self.agent]
        else:
            options = ["--host", hosts, "--mca", "plm_rsh_agent", self.agent]
        return [self.agent, self.names[0], MPIRUN, *options]

    def received_bytes(self):
        """Returns the bytes that the second host has received over the cable."""
        counter = f"/sys/class/net/{self.cables[1]}/statistics/rx_bytes"
        # `ip netns exec` mounts the host's own sysfs.
        show = ["ip", "netns", "exec", self.names[1], "cat", counter]
        return int(subprocess.run(show, capture_output=True, text=True, check=True).stdout)

    def processes(self, name):
        return [int(pid) for pid in ip("netns", "pids", name).split()]

    def remove(self):
        for name in self.names:
            if name in ip("netns", "list"):
                for pid in self.processes(name):
                    os.kill(pid, signal.SIGKILL)
                ip("netns", "del", name)


def ip(*arguments):
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise OSError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    missing = [program for program in ("ip", "unshare") if shutil.which(program) is None]
    if missing or os.geteuid() != 0:
        pytest.skip(f"network namespaces need root and {', '.join(missing) or 'its rights'}")
    try:
        made = Hosts(tmp_path_factory.mktemp("hosts"))
        for name in made.names:
            subprocess.run([made.agent, name, "true"], capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError) as refused:
        pytest.skip(f"no network namespaces here: {refused}")
    try:
        yield made
    finally:
        made.remove()


@pytest.mark.parametrize("slots", [1, 2])
def test_ranks_on_two_hosts_make_the_bytes_of_one_process(hosts, tmp_path, large, merged, slots):
    before = hosts.received_bytes()
    output, launcher = tmp_path / "out.h5", hosts.launcher(hosts.names, slots)
    code, out, err = Ranks(tmp_path, 2 * slots, command_of(large, output), launcher=launcher).end()
    assert code == 0, out + err
    assert output.read_bytes() == merged[0]
    # MPICH over UCX detects that the hosts are one machine, and communicates through its memory.
    assert hosts.received_bytes() - before > (0 if is_mpich() else 10_000), "ranks talk over the cable"


def test_a_host_that_is_lost_ends_all_and_the_other_resumes(hosts, tmp_path, large, merged):
    output = tmp_path / "out.h5"
    started = Ranks(tmp_path, 4, command_of(large, output), launcher=hosts.launcher(hosts.names, 2))
    assert wait_for_records(tmp_path, started)
    lost = hosts.processes(hosts.names[1])
    assert len(lost) >= 3, "two ranks and the processes that started them"
    for pid in lost:
        os.kill(pid, signal.SIGKILL)
    code, out, err = started.end(LONGEST_S)
    assert code != 0 and not output.exists(), out + err
    assert wait_for(lambda: not hosts.processes(hosts.names[0])) is not None
    alone = hosts.launcher(hosts.names[:1], 2)
    assert run_again(tmp_path, large, output, 2, merged[0], "after a lost host", launcher=alone)
