# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""compare_net.py - two hosts, which are network namespaces with a cable between them; needs root and iproute2"""
import os
import subprocess
import time

UP_S = 10  # for the cable
REALTIME = ["chrt", "-r", "1"]


def ip(*args, check=True):
    return subprocess.run(["ip", *args], check=check, capture_output=True, text=True)


def may_run(prefix):
    try:
        return subprocess.run([*prefix, "true"], check=False, capture_output=True).returncode == 0
    except OSError:
        return False


class Pair:
    """Until close()."""

    device = "eth0"

    def __init__(self):
        self.names = [f"plx{os.getpid()}-{i}" for i in range(2)]
        self.priority = REALTIME if may_run(REALTIME) else []
        try:
            self.open()
        except subprocess.CalledProcessError:
            self.close()
            raise

    def open(self):
        for name in self.names:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        ip("-n", self.names[0], "link", "add", self.device, "type", "veth", "peer", "name", self.device,
           "netns", self.names[1])
        for i, name in enumerate(self.names):
            ip("-n", name, "addr", "add", f"{self.address(i)}/24", "dev", self.device)
            ip("-n", name, "link", "set", self.device, "up")
        end = time.monotonic() + UP_S
        while not all(self.is_up(name) for name in self.names) and time.monotonic() < end:
            time.sleep(0.01)

    def is_up(self, name):
        """Programs ignore an interface until the kernel reports it up, which takes a while."""
        return " state UP " in ip("-n", name, "-o", "link", "show", self.device).stdout

    def close(self):
        for name in self.names:
            ip("netns", "del", name, check=False)

    @staticmethod
    def address(i):
        return f"10.78.0.{i + 1}"

    def agent(self, path, cores):
        """Write what MPICH's launcher calls instead of ssh: the processes of each host on its core."""
        cases = "".join(f"{name}) core={core} ;; " for name, core in zip(self.names, cores))
        with open(path, "w", encoding="ascii") as f:
            f.write('#!/bin/sh\nwhile [ "${1#-}" != "$1" ]; do shift; done\nhost=$1; shift\n'
                    f'case $host in {cases}esac\n'
                    f'exec ip netns exec "$host" {" ".join(self.priority)} taskset -c "$core" sh -c "$*"\n')
        os.chmod(path, 0o755)
        return path

    def at(self, i):
        """What runs a command there."""
        return ["ip", "netns", "exec", self.names[i], *self.priority]

    def priority_text(self):
        return f"with real-time priority ({' '.join(self.priority)})" if self.priority else "without real-time priority"
