#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""tele_test.py - the EAL's telemetry socket answers commands under /pollux

usage: tele_test.py TELE_HOST HANG HANG_DROPIN

A DPDK program's own EAL has the socket; one that Pollux starts, in libpollux or in the drop-in, has it
when the setting eal.telemetry says so. The socket is asked as dpdk-telemetry.py asks it.
"""
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time

import run_util as u

HOST, HANG, DROPIN = sys.argv[1:4]
PLAIN = {k: v for k, v in os.environ.items() if not k.startswith(("PLX_", "UCX_", "PMI"))}
WAIT_S = 30


class Telemetry:
    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(10)
        self.sock.connect(path)
        self.hello = json.loads(self.sock.recv(1024))

    def ask(self, command):
        self.sock.sendall(command.encode())
        answer = json.loads(self.sock.recv(self.hello["max_output_len"]))
        return answer[command.partition(",")[0]]


@contextlib.contextmanager
def running(argv, folder, n, **env):
    """n processes; their ids, the program's first."""
    p = subprocess.Popen(argv, env={**PLAIN, "RUNTIME_DIRECTORY": folder, **env}, stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        pids = []
        while len(pids) < n:
            line = p.stdout.readline()
            if not line:
                raise RuntimeError(f"{argv[0]} ended with {p.wait()}")
            if line.startswith("ready "):
                pids.append(int(line.split()[1]))
        yield sorted(pids, key=lambda pid: pid != p.pid)
    finally:
        p.stdin.close()
        p.wait(WAIT_S)


def sockets(folder):
    return sorted(os.path.join(top, name) for top, _, names in os.walk(folder) for name in names
                  if name.startswith("dpdk_telemetry.v2"))


def check(path, waits):
    """What is wrong with the answers of a process whose worker waits for such an operation."""
    t = Telemetry(path)
    commands = t.ask("/")
    missing = {"/pollux/version", "/pollux/workers", "/pollux/worker", "/pollux/devices", "/pollux/waits"} - set(commands)
    if missing:
        yield f"{missing} are not in {commands}"
        return
    version = t.ask("/pollux/version")
    if version["pid"] != t.hello["pid"] or not version["version"][0].isdigit() or version["heap_bytes"] <= 0:
        yield f"version: {version}"
    ids = t.ask("/pollux/workers")
    if ids != [0]:
        yield f"workers: {ids}"
    first = t.ask("/pollux/worker,0")
    time.sleep(0.05)
    second = t.ask("/pollux/worker,0")
    if first["mode"] != "inline" or second["worker_turns"] <= first["worker_turns"] or first["tag_posted"] < 1:
        yield f"worker: {first} and then {second}"
    if "shm_tx_msgs" not in (devices := t.ask("/pollux/devices,0")):
        yield f"devices: {devices}"
    said = t.ask("/pollux/waits,0")
    if not [line for line in said if line.startswith(waits) and line.endswith(" s")]:
        yield f"waits: {said}"
    for wrong in ("/pollux/worker", "/pollux/worker,7", "/pollux/worker,x", "/pollux/waits,-1"):
        if t.ask(wrong) is not None:
            yield f"{wrong} is answered by {t.ask(wrong)}"
    if "id" not in json.dumps(t.ask("/help,/pollux/worker")):
        yield "no help"


def a_dpdk_program(folder):
    argv = [HOST, "--no-huge", "-m", "64", "--no-pci", "--file-prefix", "tele", "-l", str(min(os.sched_getaffinity(0)))]
    with running(argv, folder, 1) as pids:
        found = sockets(folder)
        if len(found) != 1:
            yield f"sockets: {found}"
            return
        yield from check(found[0], "tag_recv tag 0x7 of 0xffffffffffffffff 8 B: no message has come")
        if Telemetry(found[0]).hello["pid"] != pids[0]:
            yield "another process answers"


def asked(program):
    def test(folder):
        with running([program, "recv"], folder, 2, PLX_EAL_TELEMETRY="yes") as pids:
            found = sockets(folder)
            told = {Telemetry(path).hello["pid"]: path for path in found}
            if set(told) != set(pids):
                yield f"{found} are of {set(told)}, not of {pids}"
                return
            yield from check(told[pids[0]], "tag_recv tag 0x7 of 0xffffffffffffffff 8 B: no message has come")
    return test


def not_asked(program):
    def test(folder):
        with running([program, "recv"], folder, 2):
            if sockets(folder):
                yield f"there is a telemetry socket: {sockets(folder)}"
    return test


def main():
    report = u.Report()
    tests = {"a DPDK program answers": a_dpdk_program, "libpollux when it is asked": asked(HANG),
             "the drop-in when it is asked": asked(DROPIN), "libpollux by default has none": not_asked(HANG),
             "the drop-in by default has none": not_asked(DROPIN)}
    for name, test in tests.items():
        folder = tempfile.mkdtemp(prefix="plx_tele_")
        try:
            report.result(name, "\n".join(test(folder)))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return report.status()


if __name__ == "__main__":
    sys.exit(main())
