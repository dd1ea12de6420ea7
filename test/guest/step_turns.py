# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""step_turns.py - in the guest: latency of ours and of UCX, each going on for a second in turn

A run of ucx_perftest is as fast as its host is then, which may be half as fast a second later. So
both pairs of processes live at once, one pair is stopped while the other measures, and only rows
of neighbouring seconds are compared.
"""
import os
import re
import signal
import statistics
import tempfile
import time

import net
import run_util as u
import step_perf

ROUNDS = 30
WAIT_S = 60  # for a row, which comes once a second


class Pair:
    """Server and client, which go on until they are ended."""

    def __init__(self, folder, side, prefix, env, test):
        self.path = os.path.join(folder, side)
        self.processes = []
        self.error = ""
        port = u.free_port()
        base = ["ucx_perftest", "-t", test, "-s", 8, "-n", 10**9, "-w", 100, "-p", port]
        with open(self.path, "w", encoding="utf-8") as out:
            for i, more in enumerate(([], ["127.0.0.1"])):
                self.processes.append(u.start(["taskset", "-c", net.CORES[i], *prefix, *base, *more],
                                              env[i], stdout=out, stderr=out))
                end = time.monotonic() + WAIT_S
                while not more and not u.listening(port) and time.monotonic() < end:
                    time.sleep(0.05)
        self.await_rows(2)
        self.signal(signal.SIGSTOP)

    def rows(self):
        """Medians in us, one a second."""
        with open(self.path, encoding="utf-8") as f:
            return [float(x) for x in re.findall(r"^\[thread \d+\]\s+\d+\s+([\d.]+)\s.*\n",
                                                  f.read(), re.M)]

    def await_rows(self, n):
        n += len(self.rows())
        end = time.monotonic() + WAIT_S
        while len(self.rows()) < n and not self.error:
            if time.monotonic() > end or any(p.poll() is not None for p in self.processes):
                with open(self.path, encoding="utf-8") as f:
                    self.error = "no further row\n" + f.read()[-2000:]
            time.sleep(0.05)

    def signal(self, number):
        for process in self.processes:
            for pid in u.descendants(process.pid):
                try:
                    with open(f"/proc/{pid}/comm", encoding="utf-8") as f:
                        if f.read().strip() == "ucx_perftest":
                            os.kill(pid, number)
                except OSError:
                    pass  # gone, and await_rows() says so

    def measure(self, got):
        """The second row of a turn: the first has begun before it."""
        self.signal(signal.SIGCONT)
        self.await_rows(2)
        self.signal(signal.SIGSTOP)
        if not self.error:
            got.append(self.rows()[-1])
        return self.error

    def close(self):
        for process in self.processes:
            u.kill_family(process)
            process.wait()


def compare(folder, build, test):
    """(error, medians of ours, medians of UCX)"""
    pairs, got = {}, {"pollux": [], "ucx": []}
    try:
        for side, (prefix, env) in step_perf.sides(build).items():
            pairs[side] = Pair(folder, side, prefix, env, test)
        for i in range(ROUNDS):
            for side in sorted(pairs, reverse=i % 2 == 1):
                error = pairs[side].measure(got[side])
                if error:
                    return f"{side}: {error}", [], []
    finally:
        for pair in pairs.values():
            pair.close()
    return "", got["pollux"], got["ucx"]


def perf_turns(report, build):
    """ours and UCX, a second each in turn: small messages, put, fetch and add"""
    for test, size, _, _ in step_perf.LATENCY:
        with tempfile.TemporaryDirectory() as folder:
            error, ours, ucx = compare(folder, build, test)
        report.result(f"{test} {size} bytes goes on on both, {ROUNDS} times in turn", error)
        if error:
            continue
        low, middle, high = statistics.quantiles([a / b for a, b in zip(ours, ucx)], n=4)
        print(f"# {test:12}{size:9}{statistics.median(ours):11.2f}{statistics.median(ucx):11.2f} us   "
              f"{middle:6.3f} ({low:.3f} to {high:.3f})  least {min(ours)} {min(ucx)}", flush=True)
