#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""run_perftest.py - the distribution's ucx_perftest, unchanged, on our libucp

usage: run_perftest.py [--build DIR] [--plain] [--cores A,B]
       run_perftest.py --compare N [--tests tag_lat,tag_bw] [--sizes 8,65536]

Without --compare each test runs a few iterations and has to print its result.
With --compare N each test runs N times on Pollux and on UCX in turn, and the
medians and their ratio are printed (for reading, nothing is asserted).
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

import run_util as u

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = ["tag_lat", "tag_bw", "tag_sync_lat", "ucp_put_lat", "ucp_put_bw", "ucp_get", "ucp_add",
         "ucp_fadd", "ucp_swap", "ucp_cswap", "ucp_am_lat", "ucp_am_bw", "stream_lat", "stream_bw",
         "ucp_am_bw:iov", "stream_bw:iov"]  # name, or name:layout of the data on both sides
ATOMICS = ["ucp_add", "ucp_fadd", "ucp_swap", "ucp_cswap"]
SIZES = [8, 64, 1024, 4096, 8192, 16384, 65536, 262144, 1048576, 4194304]
UCX_BEST = {"UCX_TLS": "posix,cma,self"}


def pair(prefix, env, test, size, n, cores, timeout, extra=(), at=((), ()), host="127.0.0.1"):
    """Server and client; env is that of both or one for each, and so are the commands `at` that
    run them somewhere else, where the server is known as host. Returns (error text, last result
    line's numbers)."""
    port = str(u.free_port())
    server_env, client_env = env if isinstance(env, tuple) else (env, env)
    name, _, layout = test.partition(":")
    lengths = f"{size // 2},{size - size // 2}" if layout == "iov" else str(size)
    base = ["ucx_perftest", "-t", name, "-s", lengths, "-n", str(n), "-w", str(max(1, n // 10)),
            "-p", port, *(["-D", f"{layout},{layout}"] if layout else []), *extra]
    with tempfile.TemporaryFile("w+") as s_out, tempfile.TemporaryFile("w+") as c_out:
        server = u.start([*at[0], "taskset", "-c", cores[0], *prefix, *base], server_env, stdout=s_out,
                         stderr=subprocess.STDOUT)
        client = None
        try:
            end = time.monotonic() + timeout
            # The server listens when it is ready; a client that comes early gives up.
            while not u.listening(int(port), server.pid):
                if server.poll() is not None or time.monotonic() > end:
                    s_out.seek(0)
                    return "server: " + s_out.read(), None
                time.sleep(0.01)
            client = u.start([*at[1], "taskset", "-c", cores[1], *prefix, *base, host],
                             client_env, stdout=c_out, stderr=subprocess.STDOUT)
            codes = [u.wait(p, max(0.1, end - time.monotonic())) for p in (client, server)]
        except subprocess.TimeoutExpired:
            codes = ["timeout"]
        finally:
            for p in (server, client):
                if p is not None and p.poll() is None:
                    u.kill_family(p)
                    p.wait()
        s_out.seek(0)
        c_out.seek(0)
        text = c_out.read()
        both = text + s_out.read()
    if any(codes):
        return f"exit status {codes}\n{both}", None
    if re.search(r"ERROR|WARN|[Aa]ssert", both):
        return f"complaints\n{both}", None
    rows = re.findall(r"^(?:Final:|\[thread \d+\])?\s*(\d[\d.\s]+)$", text, re.M)
    rows = [[float(x) for x in row.split()] for row in rows]
    rows = [row for row in rows if len(row) == 8]
    if not rows:
        return f"no result line\n{both}", None
    return "", rows[-1]


def sizes_of(test, sizes):
    """The words of atomics, or every size."""
    return [4, 8] if test in ATOMICS else [int(s) for s in sizes.split(",")]


def iterations(size, test, quick):
    if quick:
        return 1000 if size <= 8192 else 100 if size <= 65536 else 20
    return 200000 if size <= 1024 else 20000 if size <= 65536 else 2000 if size <= 1 << 20 else 300


def compare(prefix, args, cores):
    # columns: iterations, us (typical, average, overall), MB/s (average, overall),
    # messages/s (average, overall)
    print(f"{'test':14}{'bytes':>9} {'pollux':>12} {'ucx':>12}  unit     ratio")
    for test in args.tests.split(","):
        for size in sizes_of(test, args.sizes):
            column, unit = (3, "us") if test.endswith("lat") else \
                (7, "msg/s") if size <= 1024 else (5, "MB/s")
            got = {"pollux": [], "ucx": []}
            for _ in range(args.compare):
                for side, pre, env in (("pollux", prefix, {}), ("ucx", [], UCX_BEST)):
                    error, row = pair(pre, env, test, size, iterations(size, test, False), cores, 120)
                    if error:
                        print(f"{test} {size} {side}: {error}", file=sys.stderr)
                        return 1
                    got[side].append(row[column])
            a, b = (statistics.median(got[s]) for s in ("pollux", "ucx"))
            print(f"{test:14}{size:9} {a:12.3f} {b:12.3f}  {unit:8}{a / b:6.2f}", flush=True)
    return 0


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--build", default=os.path.join(HERE, "..", "build"))
    ap.add_argument("--plain", action="store_true")
    ap.add_argument("--cores", default="")
    ap.add_argument("--compare", type=int, default=0)
    ap.add_argument("--tests", default=",".join(TESTS))
    ap.add_argument("--sizes", default=",".join(str(s) for s in SIZES))
    args = ap.parse_args()
    u.need("ucx_perftest", "taskset")
    pollux_run = os.path.join(os.path.abspath(args.build), "pollux-run")
    if not args.plain and not os.access(pollux_run, os.X_OK):
        u.skip_all(f"{pollux_run} is not built")
    allowed = sorted(os.sched_getaffinity(0))
    cores = args.cores.split(",") if args.cores else [str(allowed[0]), str(allowed[-1])]
    prefix = [] if args.plain else [pollux_run]
    if args.compare:
        return compare(prefix, args, cores)
    report = u.Report()
    traces = u.Traces()
    ways = [("inline", {})]
    if args.plain:
        ways = [("system UCX", UCX_BEST)]
    for way, env in ways:
        for test in args.tests.split(","):
            for size in sizes_of(test, args.sizes):
                error, row = pair(prefix, env, test, size, iterations(size, test, True), cores, 60)
                name = f"ucx_perftest {test} {size} bytes, {way}"
                if error:
                    report.fail(name, error)
                else:
                    report.ok(name, " ".join(f"{x:g}" for x in row))
    if not args.plain:
        for test in args.tests.split(","):
            size = sizes_of(test, "65536")[0]
            # An atomic takes some 10 ns: 50 of them are less than a coarse clock's step.
            n = 1000 if test in ATOMICS else 50
            name = f"ucx_perftest {test} {size} bytes, reactor"
            error, row = pair([pollux_run, "--reactor", f"lcore:{cores[-1]}"], {}, test, size, n,
                              cores, 60)
            if error:
                report.fail(name, error)
            else:
                report.ok(name)
        for way, pre in (("inline", [pollux_run]),
                         ("reactor", [pollux_run, "--reactor", f"lcore:{cores[-1]}"])):
            for test in ("tag_lat", "tag_bw"):
                name = f"ucx_perftest {test} 8 bytes, sleeping, {way}"
                error, row = pair(pre, {}, test, 8, 1000, cores, 60, ["-E", "sleep"])
                if error:
                    report.fail(name, error)
                else:
                    report.ok(name, " ".join(f"{x:g}" for x in row))
        left = traces.left()
        if left:
            report.fail("ucx_perftest leaves nothing behind", left)
        else:
            report.ok("ucx_perftest leaves nothing behind")
    return report.status()


if __name__ == "__main__":
    sys.exit(main())
