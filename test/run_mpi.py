#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""run_mpi.py - programs on unmodified MPICH, Open MPI and OpenSHMEM, with our libucp
in place of UCX

usage: run_mpi.py [--build DIR] [--plain] [--mpi NAME,...] [--ranks 1,2,4,8] [PROGRAM...]

A line on stderr that the same program does not write on the system's UCX as well, a
wrong exit status or a missed deadline is a failure. --plain runs all on the system's
own UCX, to compare.
"""
import argparse
import os
import re
import shutil
import sys

import run_util as u

HERE = os.path.dirname(os.path.abspath(__file__))
# MPI_Init under load; without load it takes well under 0.5 s.
INIT_LIMIT_S = 2.0
TIMEOUT_S = 120
UCX_ENV = {"UCX_TLS": "posix,cma,self"}
OMPI = ["--allow-run-as-root", "--oversubscribe", "--mca", "pml", "ucx", "--mca", "osc", "ucx",
        "--mca", "opal_common_ucx_tls", "any", "--mca", "opal_common_ucx_devices", "any",
        "--mca", "btl", "self"]
# All ranks of this machine; more of them only where many peers matter.
MANY = ["which", "wildcard", "collective", "modes", "group"]
# The reactors of both ranks share the last core with whatever the kernel puts there. Overlap
# is measured with the receiver, rank 1, on another core than theirs, and must reach this share.
OVERLAP_PERCENT = "80"
REACTOR = ["which", "pingpong", "wildcard", "collective", "modes", "layout", "group",
           "rma", "thread", "both", "fork"]
PATHS = ["pingpong", "modes", "datatype", "layout", "rma"]
FLAGS = {"thread": ["-pthread"], "both": ["-lucp", "-lucs"]}
MPI_PROGRAMS = ["which", "pingpong", "wildcard", "collective", "modes", "datatype", "big",
                "overlap", "point", "layout", "reduce", "group", "rma", "thread", "both", "fork"]


class Family:
    """One MPI: its programs, how to compile and to start them, what they must load."""

    def __init__(self, name, folder, compiler, start, programs, header, ranks, loads=(), apart=None):
        self.name, self.folder, self.compiler, self.start = name, folder, compiler, start
        self.programs, self.header, self.ranks, self.loads = programs, header, ranks, loads
        self.apart = apart  # (core of the reactors, how to start rank 1 elsewhere)

    def command(self, n, exe, apart=False):
        if apart:
            return [*self.start, *self.apart[1], "-n", n, exe, OVERLAP_PERCENT]
        return [*self.start, "-n", n, exe]

    def compile(self, program, exe):
        sources = [os.path.join(HERE, self.folder, f) for f in (program + ".c", self.header)]
        return u.compile_c(self.compiler, sources, exe, *FLAGS.get(program, []))


FAMILIES = [
    Family("mpich", "mpi", ["mpicc.mpich", "-Wno-stringop-overflow"], ["mpirun.mpich"],
           MPI_PROGRAMS, "mpi_util.h", [1, 2, 4, 8], apart=(1, ["-bind-to", "user:1,0"])),
    Family("openmpi", "mpi", ["mpicc.openmpi"], ["mpirun.openmpi", *OMPI],
           [p for p in MPI_PROGRAMS if p != "big"], "mpi_util.h", [1, 2, 4],
           ("pml_ucx", "osc_ucx"), (0, ["--bind-to", "core"])),
    Family("oshmem", "oshmem", ["oshcc", "-Wno-deprecated-declarations"],
           ["oshrun", *OMPI, "--mca", "spml", "ucx", "--mca", "atomic", "ucx",
            "--mca", "sshmem", "ucx"],
           ["which", "putget", "atomic", "collective"], "shmem_util.h", [1, 2, 4],
           ("spml_ucx", "atomic_ucx", "sshmem_ucx", "pml_ucx")),
]


class Runner:
    def __init__(self, args, build):
        self.args, self.build = args, build
        self.report = u.Report()
        self.programs = 0
        self.runs = 0
        self.plain_lines = {}

    def ways(self, family, program, ranks):
        """(what, options of pollux-run, environment, ranks)"""
        if self.args.plain:
            return [("system UCX", [], UCX_ENV, ranks if program != "overlap" else [2])]
        last = (os.sysconf("SC_NPROCESSORS_ONLN") or 1) - 1
        two = [n for n in ranks if n == 2]
        if program == "overlap":
            ranks = two
        ways = [("inline", [], {}, ranks)]
        if program == "overlap":
            if last > 0:
                ways.append(("apart", ["--reactor", f"lcore:{family.apart[0]}"], {}, two))
        elif program in REACTOR:
            ways.append(("reactor", ["--reactor", f"lcore:{last}"], {}, two))
        if family.name == "mpich" and program in PATHS:
            ways += [
                ("no huge pages", [], {"PLX_SHM_HUGE": "no", "PLX_EAL_HUGE": "no"}, two),
                ("no cma", [], {"PLX_SHM_CMA": "no"}, two),
            ]
        return ways

    def wrap(self, options, command):
        if self.args.plain:
            return command
        return [os.path.join(self.build, "pollux-run"), *options, *command]

    def known_lines(self, family, exe, n):
        """What the system's UCX makes it write to stderr; numbers do not count."""
        key = (family.name, exe, n)
        if key not in self.plain_lines:
            r = u.run(family.command(n, exe), TIMEOUT_S, UCX_ENV)
            self.plain_lines[key] = {re.sub(r"\d+", "0", t) for t in r.err.splitlines()}
        return self.plain_lines[key]

    def run(self, family, exe, n, way, options, env):
        r = u.run(self.wrap(options, family.command(n, exe, way == "apart")), TIMEOUT_S, env)
        self.runs += 1
        if r.err.strip() and r.rc == 0 and not r.timed_out and not self.args.plain:
            known = self.known_lines(family, exe, n)
            r.err = "\n".join(t for t in r.err.splitlines()
                              if re.sub(r"\d+", "0", t) not in known)
        return r

    def check_which(self, family, out):
        """Ours was loaded and nobody else's, and the components that use it."""
        loaded = re.findall(r"^loaded (.*)$", out, re.M)
        ucp = [p for p in loaded if "/libucp.so" in p]
        below = os.path.realpath(self.build) + os.sep
        if not ucp:
            return "no libucp was loaded\n" + out
        if not self.args.plain and not all(os.path.realpath(p).startswith(below) for p in ucp):
            return f"loaded {', '.join(ucp)}, not ours alone"
        for part in family.loads:
            if not any(f"/mca_{part}.so" in p for p in loaded):
                return f"component {part} was not loaded\n{out}"
        for p in loaded:
            kind = re.search(r"/mca_([a-z]+)_[a-z0-9]+\.so", p)
            if kind and f"{kind.group(1)}_ucx" in family.loads and "_ucx.so" not in p:
                return f"another component is there: {p}"
        init = re.search(r"^init_s (.*)$", out, re.M)
        if init and float(init.group(1)) > INIT_LIMIT_S * (1 if family.name == "mpich" else 2):
            return f"slow start: {out}"
        return ""

    def one(self, family, program, exe, n, way, options, env):
        name = f"{family.name} {program}, {n} ranks, {way}"
        if program == "big" and u.mem_available() < n * (200 << 20) + (1 << 30):
            self.report.skip(name, "too little free memory")
            return
        r = self.run(family, exe, n, way, options, env)
        why = r.why()
        note = f"{r.seconds:.1f} s"
        if not why and f"{program} ok" not in r.out:
            why = "it did not say that all is well\n" + r.out
        if not why and program == "which":
            why = self.check_which(family, r.out)
        init = re.search(r"^init_s (.*)$", r.out, re.M)
        note += f", {init.group(1)} s MPI_Init" if init else ""
        hidden = re.findall(r"^overlap_(?:sent_)?percent \d+ (\S+)", r.out, re.M)
        note += f", {'/'.join(hidden)} % overlap" if hidden else ""
        if why:
            self.report.fail(name, why)
        else:
            self.report.ok(name, note)

    def selects(self, family, exe):
        """Where Open MPI may not take UCX nothing else may carry the program."""
        argv = [a if a != "any" else "none" for a in family.command(2, exe)]
        r = u.run(self.wrap([], argv), TIMEOUT_S)
        name = f"{family.name} does not start without pml ucx"
        if r.timed_out or r.rc == 0:
            self.report.fail(name, f"exit status {r.rc}\n{r.out}{r.err}")
        else:
            self.report.ok(name)

    def family(self, family, bin_dir):
        programs = [p for p in self.args.programs or family.programs if p in family.programs]
        for program in programs:
            exe = os.path.join(bin_dir, f"{family.name}-{program}")
            error = family.compile(program, exe)
            if error:
                self.report.fail(f"{family.name} {program} compiles", error)
                continue
            self.programs += 1
            ranks = [n for n in family.ranks if n in self.args.rank_list and
                     (n <= 4 or program in MANY)]
            for way, options, env, counts in self.ways(family, program, ranks):
                for n in counts:
                    self.one(family, program, exe, n, way, options, env)
            if program == "which" and family.name == "openmpi":
                self.selects(family, exe)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--build", default=os.path.join(HERE, "..", "build"))
    ap.add_argument("--plain", action="store_true")
    ap.add_argument("--mpi", default=",".join(f.name for f in FAMILIES))
    ap.add_argument("--ranks", default="1,2,4,8")
    ap.add_argument("programs", nargs="*")
    args = ap.parse_args()
    args.rank_list = [int(n) for n in args.ranks.split(",")]
    build = os.path.abspath(args.build)
    pollux_run = os.path.join(build, "pollux-run")
    if not args.plain and not os.access(pollux_run, os.X_OK):
        u.skip_all(f"{pollux_run} is not built")
    bin_dir = os.path.join(build if os.path.isdir(build) else "/tmp", "mpi-tests")
    os.makedirs(bin_dir, exist_ok=True)
    runner = Runner(args, build)
    traces = u.Traces()
    for family in FAMILIES:
        if family.name not in args.mpi.split(","):
            continue
        missing = [c for c in (family.compiler[0], family.start[0]) if shutil.which(c) is None]
        if missing:
            runner.report.skip(family.name, f"{', '.join(missing)} not installed")
            continue
        runner.family(family, bin_dir)
    left = traces.left()
    if not args.plain and left:
        runner.report.fail("mpi leaves nothing behind", left)
    elif not args.plain and runner.runs:
        runner.report.ok("mpi leaves nothing behind")
    print(f"# {runner.programs} programs, {runner.runs} runs")
    return runner.report.status()


if __name__ == "__main__":
    sys.exit(main())
