#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""compare.py - Pollux, the system's UCX and, where its folder is given, another UCX in turn,
and whether each figure reaches its goal

usage: compare.py [--build DIR] [--other PREFIX] [--osu DIR] [--rounds N] [--near NS]
                  [--json FILE] [--list] [GROUP...]

Each program runs on each library in turn, until each has N samples (5), whose medians are
compared. The cores of some virtual machines change their distance from time to time: a sample
of what goes between two cores counts only if a cache line took less than NS (60) from one to
the other right before and right behind it. --near 0 takes all.

GROUP is the beginning of a program's name (--list); all when none is given. The programs of
OSU run on MPICH, and are left out unless --osu names the folder where they were built. Those of
the group tcp run between two network namespaces, which needs root, by TCP alone, and with
real-time priority (chrt -r 1) where the system permits it; beside the libraries they show what plain
sockets do (raw), and libfabric's tcp by its fi_pingpong (ofi) where that is installed.

The exit status is 0 when every goal is reached, 1 when one is not, and 2 when a figure could
not be measured or the command is wrong.
"""
import argparse
import contextlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOP, "test"))
import compare_net  # pylint: disable=wrong-import-position
import run_perftest  # pylint: disable=wrong-import-position
import run_util as u  # pylint: disable=wrong-import-position

HERE = os.path.join(TOP, "devtools", "compare")
KIB, MIB = 1 << 10, 1 << 20
TIMEOUT_S = 120
PATIENCE_S = 60  # for cores that are near
TRIES = 12       # programs that run for one sample
SHM = {"UCX_TLS": "posix,cma,self"}  # the best that UCX has on one host


class CannotMeasure(Exception):
    pass


class Side:
    """A library: how a command comes to use it."""

    def __init__(self, name, prefix=(), env=None, tool=None):
        self.name, self.prefix, self.env = name, list(prefix), env or {}
        self.tool = tool  # it is left out where that is not installed

    def is_here(self):
        return self.tool is None or shutil.which(self.tool) is not None

    def run(self, command, env=None, options=()):
        prefix = [*self.prefix, *options] if self.prefix else []
        r = u.run([*prefix, *command], TIMEOUT_S, {**self.env, **(env or {})})
        if r.timed_out or r.rc != 0:
            raise CannotMeasure(f"{self.name}: {' '.join(command)}: {r.why()}")
        return r.out


RAW = Side("raw")
OFI = Side("ofi", tool="fi_pingpong")


class Goal:
    """A figure is at most (at least, where more is better) FACTOR times that of AGAINST, plus PLUS.
    AGAINST: ucx, other, raw, ofi, best of the two, own (row KEY of Pollux itself), or a plain number."""

    def __init__(self, against, factor=1.0, plus=0.0, key=None):
        self.against, self.factor, self.plus, self.key = against, factor, plus, key

    def limit(self, row, medians):
        if isinstance(self.against, (int, float)):
            return self.against
        if self.against == "own":
            base = medians["pollux"].get(self.key)
        else:
            names = ["ucx", "other"] if self.against == "best" else [self.against]
            found = [medians[n][row.key] for n in names if row.key in medians.get(n, {})]
            base = (max(found) if row.more else min(found)) if found else None
        return None if base is None else base * self.factor + self.plus

    def text(self, row):
        sign = ">=" if row.more else "<="
        if isinstance(self.against, (int, float)):
            return f"{sign} {self.against:g}"
        base = f"{self.key}" if self.against == "own" else self.against
        factor = f"{self.factor:g} " if self.factor != 1 else ""
        return f"{sign} {factor}{base}" + (f" + {self.plus:g}" if self.plus else "")


class Row:
    """A figure of a program."""

    def __init__(self, key, unit, goals, more=False):
        self.key, self.unit, self.goals, self.more = key, unit, goals, more


class Program:
    """What runs as a whole; measure(setup, side) returns {key: figure}."""

    def __init__(self, name, measure, rows, near=True, ours_only=False, needs=(), beside=()):
        self.name, self.measure, self.rows = name, measure, rows
        self.near, self.ours_only, self.needs = near, ours_only, needs
        self.beside = list(beside)  # what is shown besides the libraries

    def sides(self, sides):
        mine = [s for s in sides if s.name == "pollux" or not self.ours_only]
        return mine + [s for s in self.beside if s.is_here()]


def size_text(n):
    return f"{n >> 20} MiB" if n >= MIB else f"{n >> 10} KiB" if n >= KIB else f"{n} B"


def doubling(lo, hi):
    sizes = [lo]
    while sizes[-1] < hi:
        sizes.append(sizes[-1] * 2)
    return sizes


# Programs

def perftest(test, size, more):
    def measure(setup, side):
        n = 300000
        env = {**side.env, **({} if side.prefix else SHM)}
        error, row = run_perftest.pair(side.prefix, env, test, size, n, setup.core_names, TIMEOUT_S)
        if error:
            raise CannotMeasure(f"{side.name}: {error}")
        return {size_text(size): row[7] / 1e6 if more else row[3] * 1e3}

    goals = [Goal("ucx", 2.0), Goal("other", 1.5)] if more else [Goal("ucx", 0.75), Goal("other", 0.85)]
    rows = [Row(size_text(size), "M/s" if more else "ns", goals, more)]
    return Program(f"perftest-{test.replace('ucp_', '')}-{size}", measure, rows, needs=["ucx_perftest"])


def mpich(setup, n):
    return ["mpirun.mpich", "-bind-to", "user:" + ",".join(setup.core_names), "-n", str(n)]


def osu_rows(out, sizes):
    found = re.findall(r"^(\d+)\s+([\d.]+)\s*$", out, re.M)
    return {size_text(int(a)): float(b) for a, b in found if int(a) in sizes}


def osu(folder, program, sizes, unit, goals, more=False):
    """goals: of a size, a list."""
    def measure(setup, side):
        path = os.path.join(setup.osu, folder, program)
        out = side.run([*mpich(setup, 2), path], {} if side.prefix else SHM)
        return osu_rows(out, sizes)

    rows = [Row(size_text(s), unit, goals(s), more) for s in sizes]
    return Program(program.replace("_", "-"), measure, rows, needs=["mpirun.mpich", "osu"])


def bandwidth_goals(size):
    if size < 16 * KIB:
        return []
    if size > 32 * KIB:
        return [Goal("best", 2.0)]
    return [Goal("best", 3.0), Goal("own", key=size_text(8 * KIB))]


def lines(out):
    return {k: float(v) for k, v in re.findall(r"^(\S+) ([\d.]+)$", out, re.M)}


def init(setup, side):
    return lines(side.run([setup.tool("start")]))


def mpi_init(ranks):
    def measure(setup, side):
        return lines(side.run(["mpirun.mpich", "-n", str(ranks), setup.tool("mpi_start")]))

    rows = [Row("start_ms", "ms", [Goal("ucx")]), Row("memory_kib", "KiB", [Goal("ucx")])]
    return Program(f"mpi-init-{ranks}", measure, rows, near=False, needs=["mpirun.mpich", "mpicc.mpich"])


def commperf(setup, *args):
    """The one line of commperf, which pins its sides itself."""
    path = os.path.join(setup.folder, "row.json")
    setup.call([os.path.join(setup.build, "app", "commperf", "commperf"), "-l", ",".join(setup.core_names), *args,
                "--quiet", "--json", path])
    with open(path, encoding="utf-8") as f:
        return json.load(f)["rows"][0]


def submit(setup, _side):
    """Each reactor shares its side's core."""
    fields = commperf(setup, "-t", "submit", "-s", "8", "--reactor", "own")["fields"]
    return {"send": fields["send p50"], "receive": fields["recv p50"]}


def sgl(setup, side):
    return lines(side.run([setup.tool("sgl"), *setup.core_names]))


def overlap(setup, side):
    """The reactors of both ranks on the first core, where rank 0 is."""
    first, last = setup.core_names
    command = ["mpirun.mpich", "-bind-to", f"user:{first},{last}", "-n", "2", setup.tool("overlap")]
    out = side.run(command, {} if side.prefix else SHM, ["--reactor", f"lcore:{first}"])
    found = re.findall(r"^overlap_(sent_)?percent (\d+) (-?[\d.]+) .* post_us ([\d.]+)", out, re.M)
    figures = {}
    for sent, size, hidden, post in found:
        key = size_text(int(size)) + (" sent" if sent else "")
        figures.update({key: float(hidden), key + " post": float(post)})
    return figures


def overlap_rows():
    keys = [size_text(s) + order for s in (256 * KIB, MIB, 4 * MIB) for order in ("", " sent")]
    return [*(Row(k, "%", [Goal(90)], True) for k in keys), *(Row(k + " post", "us", [Goal(3)]) for k in keys)]


def between_hosts(setup, port, server, client):
    """The output of the client."""
    net = setup.hosts()
    s = u.start([*net.at(0), "taskset", "-c", setup.core_names[0], *server], stdout=subprocess.DEVNULL)
    try:
        while not u.listening(port, s.pid) and s.poll() is None:
            time.sleep(0.01)
        out = setup.call([*net.at(1), "taskset", "-c", setup.core_names[1], *client])
        s.wait(TIMEOUT_S)
    finally:
        u.kill_family(s)
    return out


def raw_tcp(setup, kind, size, n):
    """Plain sockets."""
    port, tool = u.free_port(), setup.tool("raw_tcp")
    return lines(between_hosts(setup, port, [tool, "serve", str(port)],
                               [tool, kind, setup.hosts().address(0), str(port), str(size), str(n)]))["figure"]


def ofi_pingpong(setup, size, n):
    """Half of a round trip by libfabric's tcp, ns."""
    port = u.free_port()
    command = ["fi_pingpong", "-p", "tcp", "-e", "rdm", "-m", "tagged", "-I", str(n), "-S", str(size)]
    out = between_hosts(setup, port, [*command, "-B", str(port)],
                        [*command, "-P", str(port), setup.hosts().address(0)])
    return float(out.splitlines()[-1].split()[-2]) * 1e3  # usec/xfer


def tcp(test, size, n, column, unit, goals, kind=None, ofi=False, window=()):
    """A row of ucx_perftest's, by TCP between two hosts; kind is what plain sockets do like it."""
    def measure(setup, side):
        if side is OFI:
            return {size_text(size): ofi_pingpong(setup, size, n)}
        if side is RAW:
            return {size_text(size): raw_tcp(setup, kind, size, n)}
        net = setup.hosts()
        env = {**side.env, "UCX_TLS": "tcp", "UCX_NET_DEVICES": net.device}
        error, row = run_perftest.pair(side.prefix, env, test, size, n, setup.core_names, TIMEOUT_S, window,
                                       at=(net.at(0), net.at(1)), host=net.address(0))
        if error:
            raise CannotMeasure(f"{side.name}: {error}")
        return {size_text(size): row[column] * {"ns": 1e3, "MB/s": 1, "M/s": 1e-6}[unit]}

    name = f"tcp-{test.replace('ucp_', '')}-{size}{'-window' if window else ''}"
    return Program(name, measure, [Row(size_text(size), unit, goals, unit != "ns")],
                   needs=["ucx_perftest", "ip", "cc"], beside=[RAW] * bool(kind) + [OFI] * ofi)


def tcp_osu(program, sizes, n, unit, more=False):
    """A program of OSU's, by MPICH and TCP between two hosts, n iterations of each size."""
    def measure(setup, side):
        net = setup.hosts()
        agent = net.agent(os.path.join(setup.folder, "agent"), setup.core_names)
        argv = [*net.at(0), *side.prefix, "mpirun.mpich", "-launcher", "rsh", "-launcher-exec", agent, "-iface", net.device,
                "-hosts", ",".join(net.names), "-ppn", "1", "-n", "2", os.path.join(setup.osu, "mpi", "pt2pt", program),
                "-i", n]
        r = u.run(argv, TIMEOUT_S, {**side.env, "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": net.device})
        if r.timed_out or r.rc != 0:
            raise CannotMeasure(f"{side.name}: {program}: {r.why()}")
        return osu_rows(r.out, sizes)

    rows = [Row(size_text(s), unit, [Goal("ucx")], more) for s in sizes]
    return Program("tcp-" + program.replace("_", "-"), measure, rows, needs=["mpirun.mpich", "osu", "ip"])


def tcp_programs():
    latency, rate, band = (3, "ns"), (7, "M/s"), (5, "MB/s")

    def goals(factor, raw=None):
        return [Goal("raw", raw)] * bool(raw) + [Goal("ucx", factor), Goal("other", factor)]

    return [
        tcp("tag_lat", 8, 50000, *latency, [*goals(0.9, 1.1), Goal("ofi", 0.9)], "lat", ofi=True),
        tcp("tag_bw", 8, 1000000, *rate, [Goal(3), *goals(5)]),
        tcp("tag_bw", 64 * KIB, 30000, *band, goals(1.3), "stream"),
        *[tcp(t, MIB, 4000, *band, goals(1.1, 0.9), "stream") for t in ("tag_bw", "ucp_put_bw")],
        # One at a time: the server sleeps 1 ms between two turns, but not that of another ucx_perftest.
        tcp("ucp_get", MIB, 2000, *band, [Goal("ucx", 1.1)]),
        tcp("ucp_get", MIB, 4000, *band, goals(1.1, 0.9), "stream", window=["-O", "16"]),
        tcp("tag_lat", MIB, 1000, *latency, [Goal("ofi", 0.9)], ofi=True),
        tcp_osu("osu_latency", [8, KIB, 8 * KIB, 64 * KIB, MIB], 1000, "us"),
        tcp_osu("osu_bw", [8, KIB, 8 * KIB, 64 * KIB, MIB], 50, "MB/s", True),
    ]


def programs():
    lat = [perftest(t, s, False) for t, s in (("tag_lat", 8), ("tag_lat", KIB), ("ucp_am_lat", 8))]
    rate = [perftest(t, 8, True) for t in ("tag_bw", "ucp_am_bw", "stream_bw")]
    everything = [1, 8, *doubling(64, 4 * MIB)]
    pt2pt, rma = os.path.join("mpi", "pt2pt"), os.path.join("mpi", "one-sided")
    small = [Goal("ucx", 0.8)]
    return [
        *lat, *rate,
        osu(pt2pt, "osu_latency", doubling(KIB, 4 * MIB), "us",
            lambda s: [Goal("best", 0.8 if s <= 64 * KIB else 0.55)]),
        osu(pt2pt, "osu_bw", doubling(8 * KIB, 4 * MIB), "MB/s", bandwidth_goals, True),
        osu(rma, "osu_put_latency", [8], "us", lambda s: small),
        osu(rma, "osu_get_latency", [8], "us", lambda s: small),
        osu(rma, "osu_put_bw", everything, "MB/s", lambda s: [Goal("best")], True),
        osu(rma, "osu_get_bw", everything, "MB/s", lambda s: [Goal("best")], True),
        osu(rma, "osu_acc_latency", everything, "us", lambda s: [Goal("best", 0.9)]),
        Program("overlap", overlap, overlap_rows(), needs=["mpirun.mpich", "mpicc.mpich"]),
        Program("submit", submit, [Row("send", "ns", [Goal(40)]), Row("receive", "ns", [Goal(40)])],
                ours_only=True),
        Program("sgl", sgl, [Row(f"list_{d}", "MB/s", [Goal("own", 3.0, key=f"kernel_{d}")], True)
                             for d in ("put", "get")], ours_only=True, needs=["cc"]),
        Program("init", init, [Row("start_ms", "ms", [Goal("ucx", plus=2)]),
                               Row("memory_kib", "KiB", [Goal("ucx")])], near=False, needs=["cc"]),
        *[mpi_init(n) for n in (1, 8, 16)],
        *tcp_programs(),
    ]


# Measuring

class Setup:
    """Where all is, and the programs that are compiled when they are needed."""

    def __init__(self, args, folder):
        self.build, self.osu, self.folder = os.path.abspath(args.build), args.osu, folder
        self.near_ns = args.near
        allowed = sorted(os.sched_getaffinity(0))
        self.core_names = args.cores.split(",") if args.cores else [str(allowed[0]), str(allowed[-1])]
        self.made = {}
        self.net = None

    def hosts(self):
        """Two hosts, made when they are needed."""
        if self.net is None:
            try:
                self.net = compare_net.Pair()
                print(f"programs between hosts run {self.net.priority_text()}", flush=True)
            except subprocess.CalledProcessError as e:
                raise CannotMeasure(f"no network namespaces: {e.stderr.strip()}") from e
        return self.net

    def close(self):
        if self.net is not None:
            self.net.close()

    def sources(self, name):
        include = ["-I", os.path.join(TOP, "include"), "-I", HERE]
        if name == "overlap":
            mpi = os.path.join(TOP, "test", "mpi")
            return ["mpicc.mpich"], [os.path.join(mpi, "overlap.c")], ["-I", mpi, "-Wno-stringop-overflow"]
        compiler = ["mpicc.mpich"] if name == "mpi_start" else ["cc"]
        links = name in ("start", "sgl")
        libs = ["-l:libucp.so.0", "-L", os.path.join(self.build, "dropin"), "-Wl,--unresolved-symbols=ignore-all"]
        return compiler, [os.path.join(HERE, name + ".c")], \
            {"core_time": ["-pthread"], "raw_tcp": ["-O2", "-I", HERE]}.get(name, [*include, *(libs if links else [])])

    def tool(self, name):
        if name not in self.made:
            path = os.path.join(self.folder, name)
            compiler, sources, flags = self.sources(name)
            error = u.compile_c(compiler, sources, path, *flags)
            if error:
                raise CannotMeasure(f"{name} does not compile: {error}")
            self.made[name] = path
        return self.made[name]

    def call(self, command):
        r = u.run(command, TIMEOUT_S)
        if r.why():
            raise CannotMeasure(f"{command[0]}: {r.why()}")
        return r.out

    def core_ns(self):
        return float(self.call([self.tool("core_time"), *self.core_names]))

    def wait_near(self):
        """Returns the time between the cores when it is short."""
        end = time.monotonic() + PATIENCE_S
        while True:
            ns = self.core_ns()
            if ns < self.near_ns:
                return ns
            if time.monotonic() > end:
                raise CannotMeasure(f"the cores are {ns:.0f} ns apart")
            time.sleep(1)


def sample(setup, program, side):
    """One that counts, and how many do not."""
    if not program.near or not setup.near_ns:
        return program.measure(setup, side), 0
    for dropped in range(TRIES):
        setup.wait_near()
        figures = program.measure(setup, side)
        if setup.core_ns() < setup.near_ns:
            return figures, dropped
    raise CannotMeasure(f"the cores were no longer near, {TRIES} times")


def run_program(setup, program, sides, rounds):
    """{side: {key: [figures]}}, and how many samples were dropped"""
    got = {s.name: {} for s in sides}
    dropped = 0
    for _ in range(rounds):
        for side in sides:
            figures, n = sample(setup, program, side)
            dropped += n
            for key, value in figures.items():
                got[side.name].setdefault(key, []).append(value)
    return got, dropped


def number(x):
    return "-" if x is None else f"{x:.0f}" if abs(x) >= 1000 else f"{x:.3g}"


def judge(program, row, medians, columns):
    """Prints a line a goal; returns the same as dicts."""
    values = {name: m.get(row.key) for name, m in medians.items()}
    mine, found = values["pollux"], []
    for goal in row.goals:
        limit = goal.limit(row, medians)
        if goal.against in ("other", "ofi") and goal.against not in medians:
            continue
        ok = None if mine is None or limit is None else mine >= limit if row.more else mine <= limit
        found.append({"goal": goal.text(row), "limit": limit, "reached": ok})
    base = {n: mine / v for n, v in values.items() if n != "pollux" and v and v > 0 and mine is not None}
    text = "  ".join(f"{number(values.get(n)):>8}" for n in columns)
    ratios = "  ".join(f"{base[n]:6.2f}" if n in base else f"{'-':>6}" for n in columns[1:])
    marks = "; ".join(f"{f['goal']} {'?' if f['reached'] is None else 'yes' if f['reached'] else 'NO'}"
                      for f in found)
    print(f"{program.name:22} {row.key:11} {row.unit:5} {text}  {ratios}  {marks}", flush=True)
    return {"program": program.name, "key": row.key, "unit": row.unit, "more_is_better": row.more,
            "medians": values, "ratios": base, "goals": found}


def missing(program, args):
    if "osu" in program.needs and not args.osu:
        return "no --osu"
    lacks = [p for p in program.needs if p != "osu" and shutil.which(p) is None]
    return f"{', '.join(lacks)} not installed" if lacks else ""


def columns_of(chosen, sides):
    return [s.name for s in sides] + list(dict.fromkeys(s.name for p in chosen for s in p.beside))


def compare(args, chosen, setup, sides):
    rows, status = [], 0
    columns = columns_of(chosen, sides)
    print(f"{'program':22} {'':11} {'unit':5} " + "  ".join(f"{n:>8}" for n in columns) + "  " +
          "  ".join(f"{'/' + n:>6}" for n in columns[1:]) + "  goals")
    for program in chosen:
        why = missing(program, args)
        if why:
            print(f"{program.name:22} left out: {why}")
            continue
        try:
            got, dropped = run_program(setup, program, program.sides(sides), args.rounds)
        except CannotMeasure as e:
            print(f"{program.name:22} not measured: {e}")
            status = 2
            continue
        medians = {side: {k: statistics.median(v) for k, v in keys.items()} for side, keys in got.items()}
        for row in program.rows:
            rows.append({**judge(program, row, medians, columns), "dropped": dropped,
                         "samples": {side: keys.get(row.key) for side, keys in got.items()}})
    reached = [g["reached"] for r in rows for g in r["goals"]]
    print(f"{sum(g is True for g in reached)} of {len(reached)} goals reached")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump({"rounds": args.rounds, "near_ns": args.near, "rows": rows}, f, indent=1)
    return status or (2 if None in reached else 0 if all(reached) else 1)


def parse():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--build", default=os.path.join(TOP, "build"), help="build folder of Pollux")
    ap.add_argument("--other", help="where another UCX is installed")
    ap.add_argument("--osu", help="folder where OSU's programs were built")
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--near", type=float, default=60, help="ns")
    ap.add_argument("--cores", default="", help="A,B (the first and the last allowed)")
    ap.add_argument("--json", help="file for all samples")
    ap.add_argument("--list", action="store_true", help="names of the programs")
    ap.add_argument("groups", nargs="*")
    return ap.parse_args()


def main():
    args = parse()
    chosen = [p for p in programs() if not args.groups or any(p.name.startswith(g) for g in args.groups)]
    if args.list:
        print("\n".join(p.name for p in chosen))
        return 0
    run = os.path.join(os.path.abspath(args.build), "pollux-run")
    if not chosen or args.rounds < 1 or not os.access(run, os.X_OK):
        print("no such program" if not chosen else f"{run} is not built, or --rounds is below 1", file=sys.stderr)
        return 2
    sides = [Side("pollux", [run]), Side("ucx")]
    if args.other:
        other = os.path.abspath(args.other)
        sides.append(Side("other", env={"LD_LIBRARY_PATH": os.path.join(other, "lib"),
                                        "PATH": os.path.join(other, "bin") + ":" + os.environ["PATH"]}))
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Setup(args, folder)) as setup:
        return compare(args, chosen, setup, sides)


if __name__ == "__main__":
    sys.exit(main())
