#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""run_packages.py - packaged programs of others on our libucp: their results are those on UCX

usage: run_packages.py [--build DIR] [--long] [--reactor] [GROUP...]

Groups: scalapack netpipe lammps hdf5 mpi4py hpcc. Each is run on the system's UCX and on Pollux;
what it says of its results, without times, has to be the same, and nothing in it may have failed. A
group whose package is not installed is skipped: devtools/setup.sh test installs them. --long runs
more of each, for some minutes; --reactor once more with a reactor.
"""
import argparse
import os
import re
import shutil
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import run_mpi  # noqa: E402
import run_util as u  # noqa: E402

SCALAPACK = "/usr/lib/x86_64-linux-gnu/scalapack/mpich-tests"
SCALAPACK_DATA = "/usr/share/scalapack"
HDF5 = ["-I/usr/include/hdf5/mpich", "-L/usr/lib/x86_64-linux-gnu/hdf5/mpich", "-lhdf5"]
START = {"mpich": ["mpirun.mpich"], "openmpi": ["mpirun.openmpi", *run_mpi.OMPI]}

MELT = """units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 {cells} 0 {cells} 0 {cells}
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 1.44 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify delay 0 every 20 check no
fix 1 all nve
thermo 10
run {steps}
"""


class Case:
    """One command of a group, and which of its lines are its result."""

    def __init__(self, name, mpi, ranks, argv, lines, at_least, files=None, output=None, timeout=120):
        self.name, self.mpi, self.ranks, self.argv = name, mpi, ranks, argv
        self.lines = lines        # of a text: those that are to be the same
        self.at_least = at_least  # so many of them
        self.files = files or {}  # name: text, in the folder that it runs in
        self.output = output      # where it says its result: a file, or stderr; None: stdout
        self.timeout = timeout


BAD = re.compile(r"FAILED|failed$|Integrity check failed|Success=0|[1-9]\d* tests completed and failed|Errors=[1-9]|Found [1-9]")


def checks(text):
    """The lines of ScaLAPACK's testers with a verdict, without their times and speeds."""
    lines = [re.sub(r"\d+\.\d+(E[+-]\d+)?", "#", t.strip()) for t in text.splitlines()
             if re.search(r"PASSED|FAILED|[1-9]\d* tests completed", t)]
    return [re.sub(r"\s+", " ", t) for t in lines]


def table(text):
    """The table of PBLAS's testers: all, passed, failed, skipped; what failed is made visible."""
    rows = re.findall(r"\|\s+(P\w+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)", text)
    return [f"{name} {n} {ok}{' failed' if bad != '0' else ''}" for name, n, ok, bad, _ in rows]


def scalapack(long):
    some = ["xdlu", "xdqr", "xdhrd"] + (["xdllt", "xzlu", "xdbrd", "xdinv", "xdtrd", "xdls", "xdnep"] if long else [])
    # No more ranks than cores: on UCX they take minutes then.
    cases = [Case(name, "mpich", 2, [os.path.join(SCALAPACK, name)], checks, 5) for name in some]
    cases.append(Case("dpb1tst", "mpich", 2, [os.path.join(SCALAPACK, "PBLAS", "dpb1tst")], table, 8))
    return cases


def netpipe(long):
    def passed(text):
        return re.findall(r"Integrity check (?:passed|failed)[^\n]*", text)

    size = "8000000" if long else "200000"
    return [Case("NPmpich2 -i", "mpich", 2, ["NPmpich2", "-i", "-u", size, "-o", "np.out"], passed, 20, output="stderr")]


def thermo(text):
    """The table of a run of LAMMPS."""
    return [re.sub(r"\s+", " ", t.strip()) for t in text.splitlines() if re.fullmatch(r"[\s\d.eE+-]+", t) and
            len(t.split()) == 6]


def lammps(long):
    shapes = [(2, 8, 100), (4, 8, 100)] + ([(2, 16, 400), (4, 20, 400)] if long else [])
    return [Case(f"melt, {4 * cells ** 3} atoms, {ranks} ranks", "openmpi", ranks, ["lmp", "-in", "in.melt", "-log", "none"],
                 thermo, steps // 10, {"in.melt": MELT.format(cells=cells, steps=steps)}, timeout=300)
            for ranks, cells, steps in shapes]


def hdf5(long):
    def sums(text):
        return re.findall(r"dataset \d+ sum .*", text)

    return [Case(f"three datasets, {ranks} ranks", "mpich", ranks, [os.path.join("..", "hdf5"), "file.h5"], sums, 3)
            for ranks in ([2, 3, 4, 8] if long else [2, 3])]


def mpi4py(long):
    def counts(text):
        return re.findall(r"^\w+(?: \d+)? \d+$", text, re.M)

    return [Case(f"mpi4py_ranks.py, {ranks} ranks", "openmpi", ranks, ["/usr/bin/python3", os.path.join(HERE, "mpi4py_ranks.py")],
                 counts, 28) for ranks in ([2, 3, 4] if long else [2])]


def hpcc_input(n):
    return "\n".join([
        "HPL", "input", "HPL.out", "8 device", "1 sizes", f"{n} Ns", "1 blocks", "40 NBs", "0 map", "1 grids", "1 Ps",
        "2 Qs", "16.0 threshold", "1 fact", "2 PFACTs", "1 stop", "4 NBMINs", "1 panels", "2 NDIVs", "1 rfact",
        "1 RFACTs", "1 bcast", "1 BCASTs", "1 ahead", "1 DEPTHs", "2 SWAP", "64 swap", "0 L1", "0 U", "1 equil",
        "8 align", "##### ignored", "0 more sizes", "1200 values", "0 more blocks", "40 values", ""])


def hpcc(long):
    def verdicts(text):
        # How often a part is repeated depends on its speed: once each.
        return sorted(set(re.findall(r"^(?:Success=\d|\w+Errors=\d+)$|[.]{3,} ?PASSED|[.]{3,} ?FAILED|"
                                     r"Found \d+ errors", text, re.M)))

    return [Case("HPL, PTRANS, RandomAccess, FFT and more", "openmpi", 2, ["hpcc"], verdicts, 4,
                 {"hpccinf.txt": hpcc_input(960 if long else 200)}, "hpccoutf.txt", 600)]


GROUPS = {"scalapack": (scalapack, os.path.join(SCALAPACK, "xdlu"), "scalapack-mpi-test"),
          "netpipe": (netpipe, "NPmpich2", "netpipe-mpich2"), "lammps": (lammps, "lmp", "lammps"),
          "hdf5": (hdf5, "/usr/include/hdf5/mpich/hdf5.h", "libhdf5-mpich-dev"),
          "mpi4py": (mpi4py, "/usr/lib/python3/dist-packages/mpi4py", "python3-mpi4py"),
          "hpcc": (hpcc, "hpcc", "hpcc")}


class Runner:
    def __init__(self, args, folder):
        self.build = os.path.abspath(args.build)
        self.folder = folder
        self.long = args.long
        self.report = u.Report()
        self.ways = [("inline", [])]
        if args.reactor:
            last = (os.sysconf("SC_NPROCESSORS_ONLN") or 1) - 1
            self.ways.append(("reactor", ["--reactor", f"lcore:{last}"]))

    def run(self, case, group, prefix, env):
        """(lines, what is wrong, seconds)"""
        with tempfile.TemporaryDirectory(dir=self.folder) as cwd:
            if group == "scalapack":
                for folder in (SCALAPACK_DATA, os.path.join(SCALAPACK_DATA, "PBLAS")):
                    shutil.copytree(folder, cwd, dirs_exist_ok=True)
            for name, text in case.files.items():
                with open(os.path.join(cwd, name), "w", encoding="ascii") as f:
                    f.write(text)
            r = u.run([*prefix, *START[case.mpi], "-n", case.ranks, *case.argv], case.timeout, env, cwd=cwd)
            text = r.out + (r.err if case.output == "stderr" else "")
            if case.output not in (None, "stderr") and os.path.exists(os.path.join(cwd, case.output)):
                with open(os.path.join(cwd, case.output), encoding="utf-8", errors="replace") as f:
                    text += f.read()
        lines = case.lines(text)
        if r.timed_out or r.rc != 0:
            return lines, f"ended with {r.rc}, time-out {r.timed_out}\n{r.out[-2000:]}{r.err[-2000:]}", r
        return lines, "", r

    def case(self, group, case):
        name = f"{group}: {case.name}"
        wanted, why, ucx = self.run(case, group, [], run_mpi.UCX_ENV)
        if why:
            self.report.fail(name, f"on UCX: {why}")
            return
        if len(wanted) < case.at_least:
            self.report.fail(name, f"only {len(wanted)} results on UCX:\n{ucx.out[-3000:]}{ucx.err[-2000:]}")
            return
        for way, options in self.ways:
            pollux_run = [os.path.join(self.build, "pollux-run"), "--check", *options]
            lines, why, ours = self.run(case, group, pollux_run, {})
            if not why and not re.search(rf"^pollux-run: {case.ranks} processes used Pollux", ours.err, re.M):
                why = f"does not run on Pollux:\n{ours.err[-2000:]}"
            if not why and any(BAD.search(t) for t in lines):
                why = "failed: " + "\n".join(t for t in lines if BAD.search(t))
            if not why and lines != wanted:
                why = "other results than on UCX: " + "\n".join(
                    f"{a!r} instead of {b!r}" for a, b in zip(lines, wanted) if a != b) + \
                    f"\n{len(lines)} lines, {len(wanted)} on UCX"
            self.report.result(f"{name}, {way}", why,
                               f"{len(lines)} results, {ours.seconds:.1f} s, on UCX {ucx.seconds:.1f} s")

    def group(self, name):
        cases, there, package = GROUPS[name]
        if not os.path.exists(there) and shutil.which(there) is None:
            self.report.skip(name, f"package {package} is not installed")
            return
        if name == "hdf5":
            why = u.compile_c(["mpicc.mpich"], [os.path.join(HERE, "hdf5.c")], os.path.join(self.folder, "hdf5"), *HDF5)
            if why:
                self.report.fail("hdf5 compiles", why)
                return
        for case in cases(self.long):
            self.case(name, case)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.join(HERE, "..", "..", "build"))
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--reactor", action="store_true")
    parser.add_argument("groups", nargs="*", choices=[[], *GROUPS])
    args = parser.parse_args()
    u.need("mpirun.mpich", "mpirun.openmpi")
    with tempfile.TemporaryDirectory(prefix="pollux-packages-") as folder:
        runner = Runner(args, folder)
        for name in args.groups or GROUPS:
            runner.group(name)
        return runner.report.status()


if __name__ == "__main__":
    sys.exit(main())
