#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""run_guest.py - the steps of steps.py in one boot of the guest

usage: run_guest.py [--build DIR] [--timeout SEC] [--list] [--] [GROUP...]

The results come from the guest line by line. A guest that can't be had here is one
skipped result, said loudly; one that breaks or needs too long is a failed one.
"""
import argparse
import os
import sys

import guest as g
import steps

HERE = os.path.dirname(os.path.abspath(__file__))


class Results:
    """Passes the guest's output on and counts its results."""

    def __init__(self):
        self.n = 0
        self.rest = b""

    def write(self, data):
        lines = (self.rest + data).split(b"\n")
        self.rest = lines.pop()
        self.n += sum(1 for line in lines if line.startswith((b"ok ", b"not ok ")))
        sys.stdout.buffer.write(data)

    def flush(self):
        sys.stdout.flush()

    def fail(self, name, why):
        print(f"not ok {self.n + 1} - {name}")
        for line in str(why).splitlines():
            print(f"#   {line}")


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--build", default=os.path.join(HERE, "..", "..", "build"))
    ap.add_argument("--timeout", type=float, default=1100)
    ap.add_argument("--list", action="store_true", help="name the groups")
    ap.add_argument("groups", nargs="*", default=steps.DEFAULT)
    args = ap.parse_args()
    unknown = [name for name in args.groups if name not in steps.GROUPS]
    if unknown:
        ap.error(f"no group {' '.join(unknown)}")
    if args.list:
        for name, function in steps.GROUPS.items():
            print(f"{name:12}{'' if name in steps.DEFAULT else '(only by name) '}{function.__doc__}")
        return 0
    build = os.path.abspath(args.build)
    os.environ["BUILD"] = build
    results = Results()
    inside = [sys.executable, os.path.join(HERE, "steps.py"), "--build", build, *args.groups]
    why = steps.prepare(build)
    if why:
        results.fail("the programs compile", why)
        return 1
    try:
        guest = g.Guest()
        rc = guest.run(g.in_guest(inside, [], "/"), args.timeout, results, sys.stderr.buffer)
    except g.Missing as e:
        print(f"NO GUEST, NOTHING IS TESTED ON RDMA: {e}")
        return g.SKIP
    except g.Broken as e:
        results.fail("the guest lives to the end", e)
        return 1
    if rc == g.TIME_OVER:
        results.fail("the guest ends in time", f"no end after {args.timeout:g} s")
        return 1
    return rc


sys.exit(main())
