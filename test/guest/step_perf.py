# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""step_perf.py - in the guest: ucx_perftest over ours and over UCX's rc_verbs in turn"""
import os
import re
import statistics
import tempfile

import net
import run_perftest as perftest

PAIRS = 3
# test, bytes, iterations, column of the result row: 1 is the median time in us, 5 is MB/s
LATENCY = [("tag_lat", 8, 2000, 1), ("ucp_put_lat", 8, 2000, 1), ("ucp_fadd", 8, 1000, 1)]
BANDWIDTH = [("tag_bw", 65536, 100, 5), ("tag_bw", 1048576, 10, 5), ("ucp_get", 1048576, 10, 5)]
FEW, MANY = 20, 120  # iterations of which the difference counts


def sides(build):
    """Prefix and environments of each."""
    host = [net.HOST, "@"]
    ours = {**net.OURS_ENV, "GUEST_GID": net.UCX_ENV["UCX_IB_GID_INDEX"]}  # one way for both
    return {"pollux": ([*host, os.path.join(build, "pollux-run")], net.on_hosts(ours)),
            "ucx": (host, net.on_hosts(net.UCX_ENV))}


def messages(n):
    """A tenth comes on top, to warm up."""
    return n + max(1, n // 10)


def compare(report, build, tests):
    for test, size, n, column in tests:
        got, packets, errors = {}, {}, ""
        for _ in range(PAIRS):
            for side, (prefix, env) in sides(build).items():
                before = net.sent()
                error, row = perftest.pair(prefix, env, test, size, n, net.CORES, 120)
                if error:
                    errors = errors or f"{side}: {error}"
                    continue
                got.setdefault(side, []).append(row[column])
                packets.setdefault(side, []).append((net.sent() - before) / messages(n))
        report.result(f"{test} {size} bytes runs on both, {PAIRS} times", errors)
        if errors:
            continue
        ours, ucx = (statistics.median(got[side]) for side in ("pollux", "ucx"))
        unit = "us" if column == 1 else "MB/s"
        print(f"# {test:12}{size:9}{ours:11.2f}{ucx:11.2f} {unit:5}{ours / ucx:6.2f}  packets "
              f"{min(packets['pollux']):.1f} {min(packets['ucx']):.1f}  {got}", flush=True)


def perf_lat(report, build):
    """ours and UCX in turn: small messages, put, fetch and add"""
    compare(report, build, LATENCY)


def perf_bw(report, build):
    """ours and UCX in turn: large messages and get"""
    compare(report, build, BANDWIDTH)


def calls(prefix, env, test, size, n):
    """System calls of client and server together, by name."""
    with tempfile.TemporaryDirectory() as folder:
        wrapped = tuple({**e, "STRACE_OUT": os.path.join(folder, str(i))} for i, e in enumerate(env))
        shell = ["sh", "-c", 'exec strace -f -c -U name,calls -o "$STRACE_OUT" "$@"', "sh"]
        error, _ = perftest.pair([*prefix[:2], *shell, *prefix[2:]], wrapped, test, size, n,
                                 net.CORES, 120)
        total = {}
        for i in range(0 if error else len(env)):
            with open(os.path.join(folder, str(i)), encoding="utf-8") as f:
                for name, count in re.findall(r"^ *(\w+) +(\d+) *$", f.read(), re.M):
                    total[name] = total.get(name, 0) + int(count)
    total.pop("total", None)
    return error, total


def perf_calls(report, build):
    """ours and UCX in turn: system calls of a message, by strace"""
    for test, size, _, _ in [*LATENCY, BANDWIDTH[0]]:
        for side, (prefix, env) in sides(build).items():
            error, few = calls(prefix, env, test, size, FEW)
            if not error:
                error, many = calls(prefix, env, test, size, MANY)
            report.result(f"{test} {size} bytes, {side}, runs under strace", error)
            if error:
                continue
            n = messages(MANY) - messages(FEW)
            each = {name: (many[name] - few.get(name, 0)) / n for name in many}
            print(f"# {test} {size}, {side}, system calls a message: "
                  + ", ".join(f"{name} {x:.1f}" for name, x in each.items() if x >= 0.05), flush=True)
