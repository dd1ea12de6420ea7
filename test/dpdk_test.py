#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""dpdk_test.py - two unrelated DPDK programs exchange mbufs, or lend them; lcores of one do, and stay its own

usage: dpdk_test.py SINK SOURCE LCORES SERVICE LOAN OWN_EAL

Sink and source are different binaries, each with an EAL of its own.
"""
import glob
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time

import run_util as u

TIMEOUT = 60
ROOM = 65535 - 128  # of the largest mbuf
FIRST = 5  # messages that may come before two processes have met


def kinds():
    """Names and EAL options of the kinds of memory that this machine has."""
    found = [("no huge pages", ["--no-huge", "--no-shconf", "-m", "128"])]
    free = 0
    for path in glob.glob("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages"):
        with open(path, encoding="ascii") as f:
            free = int(f.read())
    if free >= 64 and os.geteuid() == 0:
        found.append(("huge pages", ["--in-memory"]))
    return found


def eal(memory, main, other):
    """Options of an EAL with two lcores on these cores."""
    return memory + ["--no-pci", "--no-telemetry", "--log-level=*:3", "--lcores", f"0@{main},1@{other}"]


def mapped(path):
    """rma_mapped of the sink, as JSON-RPC shows it now."""
    try:
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(5)
            s.connect(path)
            s.sendall(b'{"jsonrpc": "2.0", "id": 1, "method": "device_get_list"}\n')
            text = b""
            while True:
                text += s.recv(65536)
                try:
                    return max((d.get("counters", d).get("rma_mapped", 0) for d in json.loads(text)["result"]),
                               default=0)
                except ValueError:
                    continue
    except OSError:
        return 0


def two(server, client, port, env, folder, look):
    """Run two programs, and look meanwhile. Returns their exit statuses, client first, and what they said."""
    out = os.path.join(folder, "server.txt")
    with open(out, "w", encoding="utf-8") as f:
        s = u.start(server, env, stdout=f, stderr=subprocess.STDOUT)
    end = time.monotonic() + TIMEOUT
    try:
        while not u.listening(int(port)) and s.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        with tempfile.TemporaryFile("w+") as said:
            c = u.start(client, {}, stdout=said, stderr=subprocess.STDOUT)
            while c.poll() is None and time.monotonic() < end:
                look()
                time.sleep(0.01)
            rc = [u.wait(c, max(0.1, end - time.monotonic())), u.wait(s, max(0.1, end - time.monotonic()))]
            said.seek(0)
            told = said.read()
    except subprocess.TimeoutExpired:
        rc, told = "timeout", ""
    finally:
        if s.poll() is None:
            u.kill_family(s)
            s.wait()
    with open(out, encoding="utf-8") as f:
        return rc, f.read() + told


def pair(sink, source, memory, size, n, want_mapped, folder):
    """Returns what is wrong, or None."""
    port, last, rpc = str(u.free_port()), os.cpu_count() - 1, os.path.join(folder, "rpc.sock")
    seen = []

    def look():
        if want_mapped and not seen and mapped(rpc):
            seen.append(True)

    rc, told = two([sink, *eal(memory, 0, 0), "--", port, str(size)],
                   [source, *eal(memory, last, last), "--", port, str(size), str(n)], port, {"PLX_RPC_SOCKET": rpc},
                   folder, look)
    if rc != [0, 0] or f"received {n} messages, {n * size} bytes, 0 wrong" not in told or \
            told.count("mbufs in use: 0") != 2:
        return f"exit statuses {rc}\n{told}"
    return "no copy was made by mapped memory" if want_mapped and not seen else None


def loans(loan, memory, size, n, borrowed, folder):
    """Half of the messages are borrowed as mbufs and half in place, but for the first ones, as the processes may not
    have met; or none are. Returns what is wrong, or None."""
    port, last = str(u.free_port()), os.cpu_count() - 1
    rc, told = two([loan, *eal(memory, 0, 0), "--", port],
                   [loan, *eal(memory, last, last), "--", port, str(size), str(n)], port, {}, folder, lambda: None)
    got = re.search(f"^{n} messages, 0 wrong: (\\d+) borrowed as mbufs, (\\d+) in place, (\\d+) kept or copied$", told, re.M)
    halves = range(n // 2 - FIRST, n // 2 + 1) if borrowed else (0,)
    good = got and int(got[1]) in halves and int(got[2]) in halves and "mbufs in use: 0" in told
    return None if rc == [0, 0] and good else f"exit statuses {rc}\n{told}"


def says_why(exe):
    """With wrong options of the EAL its own reason stands, and not how the program is used."""
    r = u.run([exe, "--no-such-option"], TIMEOUT, {})
    return None if r.rc == 1 and "the EAL does not start" in r.err and "usage: dpdk" not in r.err else f"{r.rc}\n{r.out}{r.err}"


def reactors(report, own_eal, last):
    """A reactor takes an lcore that the program names, and no other."""
    memory = kinds()[0][1]
    for name, env, named, want, said in (
            ("none is taken", None, [], "during 42\nafter 42", ""),
            ("the environment names one: it stays the program's", "lcore:1", [], "during 42\nafter 42",
             "reactor started beside the program's lcore 1"),
            ("the environment names the main one", "lcore:0", [], "during 42\nafter 42",
             "no reactor on lcore 0: the program uses it"),
            ("the program names one: it is taken, then free again", None, ["lcore:1"], "during -16\nafter 42",
             "reactor started on lcore 1")):
        r = u.run([own_eal, *eal(memory, 0, last), "--", *named], TIMEOUT,
                  {"PLX_LOG_LEVEL": "info", **({"PLX_REACTOR": env} if env else {})})
        good = r.rc == 0 and want in r.out and said in r.err
        report.result(f"lcores, {name}", None if good else f"exit status {r.rc}\n{r.out}{r.err}")


def main():
    sink, source, lcores, service, loan, own_eal = sys.argv[1:]
    report = u.Report()
    with tempfile.TemporaryDirectory() as folder:
        for name, memory in kinds():
            for size, n, what in ((100, 1000, "short messages"), (30000, 10000, "mbufs, mapped"),
                                  (ROOM, 1000, "whole mbufs"),
                                  (65536, 1000, "chains of two"), (150000, 1000, "chains of three")):
                report.result(f"two programs, {name}, {what}",
                              pair(sink, source, memory, size, n, "mapped" in what, folder))
            for size, borrowed, what in ((100, False, "short messages"), (100000, True, "long ones"),
                                         (4 << 20, True, "the longest")):
                report.result(f"loans, {name}, {what}", loans(loan, memory, size, 100, borrowed, folder))
            for exe, wants, what in ((lcores, ("200 by UCP, 200 by CCI, 0 wrong", "mbufs in use: 0, messages kept: 0"),
                                      "lcores of one program"),
                                     (service, ("100 of 100 messages",), "a service core")):
                r = u.run([exe, *eal(memory, 0, os.cpu_count() - 1)], TIMEOUT, {})
                good = not r.why() and all(w in r.out for w in wants)
                report.result(f"{what}, {name}", None if good else r.why() or r.out)
    for exe in (sink, source, lcores, service, loan):
        report.result(f"{os.path.basename(exe)} says that the EAL does not start", says_why(exe))
    reactors(report, own_eal, os.cpu_count() - 1)
    return report.status()


sys.exit(main())
