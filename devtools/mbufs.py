#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""mbufs.py - 64 KiB between two processes with EALs of their own, beside memory of ucp_mem_map()

usage: mbufs.py [--build DIR] [--rounds N] [--near NS] [--cores A,B]

It measures the kinds of buffers in turn, N times (5), and compares their medians: mbufs in one piece, and
chains of 32 segments of 2 KiB. A sample counts only while the cores are near, as in compare.py.
The exit status is 0 when each reaches 0.9 of mapped memory, 1 when one does not, and 2 when
nothing could be measured.
"""
import argparse
import os
import statistics
import sys
import tempfile

import compare

GOAL = 0.9
KINDS = {  # name: options of commperf
    "mapped": ["--mem", "mapped"],
    "mbufs": ["--mem", "eal"],
    "chains": ["--mem", "eal", "--datatype", "iov:32"],
}


def program(buffers):
    """Its figure of a kind is MB/s."""
    def rate(setup, kind):
        row = compare.commperf(setup, "--", "-t", "tag_bw", "-s", "64k", "-n", "4000", "--buffers", buffers, *KINDS[kind])
        return row["value"]

    return compare.Program(buffers, rate, [])


def measure(setup, rounds):
    """Returns whether all reach the goal."""
    good = True
    for buffers in ("one", "window"):
        got = {kind: [] for kind in KINDS}
        for _ in range(rounds):
            for kind, values in got.items():
                values.append(compare.sample(setup, program(buffers), kind)[0])
        mapped = statistics.median(got["mapped"])
        for kind, values in got.items():
            part = statistics.median(values) / mapped
            good = good and part >= GOAL
            print(f"{buffers:7} {kind:7} {statistics.median(values):8.0f} MB/s  {part:.2f}  {[round(v) for v in values]}",
                  flush=True)
    return good


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--build", default=os.path.join(compare.TOP, "build"), help="build folder of Pollux")
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--near", type=float, default=60, help="ns; 0: all samples count")
    ap.add_argument("--cores", help="A,B (the first and the last allowed)")
    ap.set_defaults(osu=None)
    args = ap.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        try:
            return 0 if measure(compare.Setup(args, folder), args.rounds) else 1
        except compare.CannotMeasure as e:
            print(f"mbufs.py: {e}", file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main())
