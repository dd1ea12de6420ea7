#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""run_mpi.py - MPI programs on unmodified MPICH, with our libucp in place of UCX

usage: run_mpi.py [--build DIR] [--plain] [--ranks 1,2,4,8] [PROGRAM...]

A line on stderr, a wrong exit status or a missed deadline is a failure. --plain
runs the same on the system's own UCX, to compare.
"""
import argparse
import os
import re
import sys

import run_util as u

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = ["which", "pingpong", "wildcard", "collective", "modes", "datatype", "big", "overlap", "onesided"]
# MPI_Init under load; without load it takes well under 0.5 s.
INIT_LIMIT_S = 2.0
TIMEOUT_S = 120


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--build", default=os.path.join(HERE, "..", "build"))
    ap.add_argument("--plain", action="store_true")
    ap.add_argument("--ranks", default="1,2,4,8")
    ap.add_argument("programs", nargs="*", default=PROGRAMS)
    args = ap.parse_args()
    ranks = [int(n) for n in args.ranks.split(",")]
    u.need("mpicc.mpich", "mpirun.mpich")
    build = os.path.abspath(args.build)
    pollux_run = os.path.join(build, "pollux-run")
    if not args.plain and not os.access(pollux_run, os.X_OK):
        u.skip_all(f"{pollux_run} is not built")
    bin_dir = os.path.join(build if os.path.isdir(build) else "/tmp", "mpi-tests")
    os.makedirs(bin_dir, exist_ok=True)
    report = u.Report()
    traces = u.Traces()

    # (what, options of pollux-run, environment, ranks): all ranks inline, and
    # the other ways to run with two.
    ways = [("inline", [], {}, ranks)]
    if not args.plain:
        last = (os.sysconf("SC_NPROCESSORS_ONLN") or 1) - 1
        ways += [
            ("reactor", ["--reactor", f"lcore:{last}"], {}, [n for n in ranks if n <= 2]),
            ("no huge pages", [], {"PLX_SHM_HUGE": "no", "PLX_EAL_HUGE": "no"}, [2]),
            ("no cma", [], {"PLX_SHM_CMA": "no"}, [2]),
        ]
    for program in args.programs:
        exe = os.path.join(bin_dir, program)
        error = u.compile_c(["mpicc.mpich", "-Wno-stringop-overflow"],
                            [os.path.join(HERE, "mpi", f) for f in (program + ".c", "mpi_util.h")], exe)
        if error:
            report.fail(f"{program} compiles", error)
            continue
        for way, options, env, counts in ways:
            for n in counts:
                name = f"mpi {program}, {n} ranks, {'system UCX' if args.plain else way}"
                if program == "big" and n > 4:
                    continue
                if program == "big" and u.mem_available() < n * (200 << 20) + (1 << 30):
                    report.skip(name, "too little free memory")
                    continue
                command = ["mpirun.mpich", "-n", n, exe]
                if args.plain:
                    env = {"UCX_TLS": "posix,cma,self"}
                else:
                    command = [pollux_run, *options] + command
                r = u.run(command, TIMEOUT_S, env)
                why = r.why()
                note = f"{r.seconds:.1f} s"
                if program == "which" and not why:
                    lib = re.search(r"^libucp (.*)$", r.out, re.M)
                    init = re.search(r"^init_s (.*)$", r.out, re.M)
                    note = f"MPI_Init {init.group(1)} s" if init else ""
                    ours = lib and os.path.realpath(lib.group(1)).startswith(
                        os.path.realpath(build) + os.sep)
                    if not args.plain and not ours:
                        why = f"loaded {lib.group(1) if lib else 'no libucp'}, not ours"
                    elif not init or float(init.group(1)) > INIT_LIMIT_S:
                        why = f"slow start: {r.out}"
                elif not why and f"{program} ok" not in r.out:
                    why = "it did not say that all is well\n" + r.out
                m = re.search(r"^overlap_percent (.*)$", r.out, re.M)
                if m:
                    note += f", overlap {m.group(1)} %"
                if why:
                    report.fail(name, why)
                else:
                    report.ok(name, note)
    left = traces.left()
    if args.plain:
        pass
    elif left:
        report.fail("mpi leaves nothing behind", left)
    else:
        report.ok("mpi leaves nothing behind")
    return report.status()


sys.exit(main())
