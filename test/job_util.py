# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""job_util.py - the processes of a job that the tests of the tools ask, and waiting for what they answer"""
import contextlib
import glob
import os
import signal
import subprocess
import time

PLAIN = {k: v for k, v in os.environ.items() if not k.startswith(("PLX_", "UCX_", "PMI"))}
WAIT_S = 30


def until(look):
    """What look() returns once it is true, or in the end."""
    end = time.monotonic() + WAIT_S
    while True:
        found = look()
        if found or time.monotonic() > end:
            return found
        time.sleep(0.1)


@contextlib.contextmanager
def talking(commperf, sockets, test="tag_lat", **env):
    """Two processes that exchange messages until the end of the block; the pattern of their sockets, whose names have %p."""
    pattern = sockets.replace("%p", "*")
    p = subprocess.Popen([commperf, "-t", test, "-s", "8", "-n", "30m", "-r", "99", "--no-eal", "--bind", "off", "--quiet"],
                         env={**PLAIN, **env, "PLX_RPC_SOCKET": sockets}, stdout=subprocess.DEVNULL,
                         stderr=subprocess.DEVNULL)
    try:
        until(lambda: len(glob.glob(pattern)) == 2)
        yield pattern
    finally:
        p.send_signal(signal.SIGINT)
        try:
            p.wait(WAIT_S)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()


@contextlib.contextmanager
def hanging(program, how, sockets, **env):
    """Two processes that wait as test/hang.c says; the ids of the first and the second."""
    p = subprocess.Popen([program, how], env={**PLAIN, **env, "PLX_RPC_SOCKET": sockets}, stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True)
    try:
        pids = {int(p.stdout.readline().split()[1]) for _ in range(2)}
        yield p.pid, (pids - {p.pid}).pop()
    finally:
        p.stdin.close()
        p.wait(WAIT_S)
