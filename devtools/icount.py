#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""icount.py - instructions of each call, counted by single steps, and the budget of each

usage: icount.py [--build DIR] [GROUP...]           the table: instructions, those with a lock, budget and goal
       icount.py [--build DIR] --check              fail when a row is over its budget, or well below it
       icount.py [--build DIR] --write              what is counted now is the budget of each row from now on
       icount.py [--build DIR] --where "GROUP: ROW" where its instructions are, function after function
       icount.py [--build DIR] --ucx PREFIX         the table beside that of the libucp.so.0 in PREFIX/lib

A group is one of those in test/icount/budgets.txt, as "ucp single". --lines, with --where, adds the
lines of the source; --runs prints the count of each repetition.
"""
import argparse
import bisect
import collections
import difflib
import functools
import glob
import json
import os
import platform
import re
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDER = os.path.join(TOP, "test", "icount")
BUDGETS = os.path.join(FOLDER, "budgets.txt")
PROFILES = os.path.join(FOLDER, "profiles.txt")

BELOW = 5	   # instructions that a row may be below its budget
OTHER_PERCENT = 5  # what another compiler or library may add, and
OTHER_COUNT = 5
OTHER_COPY = 480   # and for a row that copies KiB, where the processor does it otherwise
SKIPPED = 77
TIMEOUT_S = 120

Group = collections.namedtuple("Group", "program args env hold")  # hold: the library with the reactor, or None
UCP_MODES = ("single", "serialized", "multi")
REACTOR = {"PLX_REACTOR": f"lcore:{(os.cpu_count() or 1) - 1}", "PLX_REACTOR_IDLE": "spin"}
GROUPS = {f"ucp {m}": Group("ucp_calls", ["all", m], {}, None) for m in UCP_MODES}
GROUPS["ucp reactor"] = Group("ucp_calls", ["reactor", "single"], REACTOR, "libucp.so.0")
GROUPS["ucp multi reactor"] = Group("ucp_calls", ["reactor", "multi"], REACTOR, "libucp.so.0")
GROUPS["ucp net_mlx"] = Group("mlx5_calls", ["network", "single"], {"PLX_WORKER_DEVICES": "net_mlx"}, None)
GROUPS["cci"] = Group("cci_calls", ["all"], {}, None)
GROUPS["cci reactor"] = Group("cci_calls", ["reactor"], REACTOR, "libcci.so.2")

# Code of the system, which is counted for whoever called it.
SYSTEM = re.compile(r"/(libc|ld-linux-[^/]*|libpthread|libm)\.so|\[vdso\]")
# Of a program that the library is linked into: models of devices, and what drives them. Not counted.
MODELS = ("test/unit/libplx_mlx5_rig.a.p", "test/icount/mlx5_calls.p", "test/icount/mlx5_follow.p")
TURN = "worker_poll"  # what the reactor calls for each turn of a worker


class Skip(Exception):
    pass


class Failed(Exception):
    pass


def readelf(*args):
    return subprocess.run(["readelf", *args], check=True, text=True, capture_output=True).stdout


def functions(path):
    """Yield (address, size, name, file, is local) of each function of an ELF file."""
    file = ""
    for line in readelf("-sW", path).splitlines():
        part = line.split()
        if len(part) < 8 or not part[0].endswith(":"):
            continue
        _, value, size, kind, bind, _, section, name = part[:8]
        if kind == "FILE":
            file = name
        elif kind in ("FUNC", "IFUNC") and section != "UND":
            name = re.sub(r"@.*|\.(part|constprop|isra|cold|lto_priv)\b.*", "", name)
            yield int(value, 16), int(size, 0), name, file, bind == "LOCAL"


class Build:
    """A build folder: which source files its functions are from."""

    def __init__(self, path):
        self.path = os.path.abspath(path)

    def objects(self, folders):
        """Yield the object files in folders, which may be patterns."""
        for pattern in folders:
            for folder in sorted(glob.glob(os.path.join(self.path, pattern))):
                yield from (os.path.join(folder, f) for f in sorted(os.listdir(folder)) if f.endswith(".o"))

    @functools.cached_property
    def sources(self):
        """Functions of the library that are not static, and their files."""
        objs = self.objects(["lib/*.a.p", "drivers/*.a.p"])
        return {name: file for obj in objs for _, _, name, file, local in functions(obj) if not local}

    @functools.cached_property
    def foreign(self):
        """Of the models: functions that are not static, and files."""
        found = [(name, file, local) for obj in self.objects(MODELS) for _, _, name, file, local in functions(obj)]
        return {name for name, _, local in found if not local}, {file for _, file, _ in found}


class Code:
    """A file that a process has mapped."""

    def __init__(self, path, base, program, build):
        self.path, self.base = path, base
        self.system = SYSTEM.search(path) is not None
        self.is_program = os.path.realpath(path) == os.path.realpath(program)
        self.apart = self.is_program and "mlx5_" not in os.path.basename(path)  # the library is none of its parts
        self.build = build
        self.starts, self.symbols = [], []
        if not self.system and not self.apart:
            for address, size, name, file, local in sorted(functions(path), key=lambda f: f[0]):
                self.starts.append(address)
                self.symbols.append((size, name, file, local))
        self.entries = set(self.starts)  # relative to base
        self.ours = path.startswith(build.path)
        self.names = {}

    @functools.cached_property
    def bytes(self):
        try:
            with open(self.path, "rb") as f:
                return f.read()
        except OSError:
            return b""

    def name(self, address):
        """The function at an address: (name to show or None if unknown, whether it is counted)."""
        if address not in self.names:
            self.names[address] = self._name(address - self.base)
        return self.names[address]

    def _name(self, at):
        if self.apart:
            return None, False
        i = bisect.bisect_right(self.starts, at) - 1
        if self.system or i < 0 or at >= self.starts[i] + max(self.symbols[i][0], 1):
            return None, None  # code of the linker: as of whoever called it
        _, name, file, local = self.symbols[i]
        hidden = local and file in ("", "crtstuff.c")  # by the linker: it was not static
        if self.is_program:
            names, files = self.build.foreign
            if (file in files) if local and not hidden else (name in names):
                return None, False
        if hidden or not local:
            file = self.build.sources.get(name) if self.ours else None
        return (f"{file}:{name}" if file else name), True


def is_locked(code):
    """Has this instruction a lock prefix, or is it an exchange with memory?"""
    i = 0
    while i < 4 and code[i] in (0x66, 0xF2, 0xF3):
        i += 1
    if code[i] == 0xF0:
        return True
    if code[i] & 0xF0 == 0x40:
        i += 1
    return code[i] in (0x86, 0x87) and code[i + 1] < 0xC0


Run = collections.namedtuple("Run", "count locked steps")  # steps: (function, code, address), in order


class Trace:
    """What icount has written."""

    def __init__(self, lines, program, build, by_clock):
        self.by_clock = by_clock
        self.rows = {}
        self.code = {}
        self.parts = []  # (start, end, code, offset), in order
        row = None
        bases = {}
        for line in lines:
            if line.startswith("map "):
                part = line[4:].split(None, 5)
                path = part[5].strip()
                start, end = (int(x, 16) for x in part[0].split("-"))
                bases.setdefault(path, start)
                if "x" in part[1]:
                    if path not in self.code:
                        self.code[path] = Code(path, bases[path], program, build)
                    self.parts.append((start, end, self.code[path], int(part[2], 16)))
            elif line.startswith("row "):
                row = line[4:].strip()
            else:
                self.rows.setdefault(row, []).append(self.run(line))

    def run(self, line):
        steps, owner, last, counted, locked = [], None, None, False, 0
        for word in line.split():
            ip = int(word, 16)
            if last is None or not last[0] <= ip < last[1]:
                last = next((p for p in self.parts if p[0] <= ip < p[1]), None)
                if last is None:
                    raise Failed(f"no file is mapped at {ip:#x}")
            start, _, code, offset = last
            name, is_counted = code.name(ip)
            if is_counted is None:
                name = os.path.basename(code.path) if code.system else "(linker)"
            else:
                counted = is_counted
            if not counted:
                continue
            at = ip - start + offset
            locked += is_locked(code.bytes[at:at + 8].ljust(8, b"\0"))
            steps.append((name, code, ip))
        return Run(len(steps), locked, steps)

    def best(self, row):
        """The first run of the usual count. A reactor also acts by the clock, in as many of its turns as the machine
        is slow: of those that are alike, the shortest."""
        runs = self.rows[row]
        usual = collections.Counter(r.count for r in runs)
        if self.by_clock:
            count = min([n for n in usual if usual[n] > 1] or usual)
        else:
            count = min(usual, key=lambda n: (-usual[n], n))
        return next(r for r in runs if r.count == count)


def environment(more, ucx):
    """Of a program: nothing from ours that may change what it does."""
    env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "PLX_WORKER_WAIT": "spin",
           "PLX_SHM_FAR": "no", **more}
    if ucx is not None:
        env.update(LD_LIBRARY_PATH=ucx, UCX_WARN_UNUSED_ENV_VARS="n", UCX_LOG_LEVEL="error",
            UCX_TLS="posix,cma,self")
        env.update((k, v) for k, v in os.environ.items() if k.startswith("UCX_"))
    return env


def hold_arg(build, name):
    """Thread and function of a reactor's turn, see icount.c."""
    lib = os.path.join(build.path, "dropin", name)
    at = [(size, a) for a, size, name, _, _ in functions(lib) if name == TURN]
    if not at:
        raise Failed(f"{lib} has no function {TURN}() of its own")
    return f"worker:{name}:{max(at)[1]:x}"  # the compiler may split off a cold part


def trace(build, group, ucx=None):
    """Run a group's program. @return its Trace"""
    folder = os.path.join(build.path, "test", "icount")
    program = os.path.join(folder, group.program)
    if group.hold and (os.cpu_count() or 1) < 2:
        raise Skip("a reactor needs a core of its own")
    with tempfile.NamedTemporaryFile("r", prefix="icount-") as out:
        hold = hold_arg(build, group.hold) if group.hold else "-"
        run = subprocess.run([os.path.join(folder, "icount"), out.name, hold, program, *group.args],
            env=environment(group.env, ucx), timeout=TIMEOUT_S, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, check=False)
        if run.returncode == SKIPPED:
            raise Skip(run.stdout.strip())
        if run.returncode != 0:
            raise Failed(f"{group.program} {' '.join(group.args)}: {run.stdout.strip()}")
        return Trace(out, program, build, by_clock=group.hold is not None)


def profile(run):
    """Instructions of each function, the largest first."""
    n = collections.Counter(name for name, _, _ in run.steps)
    return sorted(n.items(), key=lambda kv: (-kv[1], kv[0]))


def copies():
    """What of the processor copies depend on, the C library's and those of lib/mem/copy.c."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
        cpu = f.read()
    has = [name.upper() for name in ("avx2", "avx512_vbmi2") if re.search(rf"^flags\s.*\b{name}\b", cpu, re.M)]
    return " ".join(has) or "no AVX2"


def known_for(build):
    """What counts depend on beside our code."""
    comment = readelf("-p", ".comment", os.path.join(build.path, "dropin", "libucp.so.0"))
    compiler = re.search(r"\]\s+(\S.*)", comment).group(1)
    dpdk = subprocess.run(["pkg-config", "--modversion", "libdpdk"], text=True, capture_output=True, check=False)
    known = f"{compiler}; DPDK {dpdk.stdout.strip()}; {' '.join(platform.libc_ver())}; {copies()}"
    with open(os.path.join(build.path, "meson-info", "intro-buildoptions.json"), encoding="utf-8") as f:
        values = {option["name"]: option["value"] for option in json.load(f)}
    for name, usual in (("optimization", "3"), ("c_args", []), ("b_lto", False), ("asserts", False)):
        if values.get(name, usual) != usual:
            known += f"; {name} {values[name]}"
    return known


Budget = collections.namedtuple("Budget", "count locked goal")


def read_budgets():
    """@return (what they are exact for, {(group, row): Budget}, goals of rows that have one)"""
    exact, group, found = None, None, {}
    with open(BUDGETS, encoding="utf-8") as f:
        for line in f:
            if line.startswith("# exact for: "):
                exact = line[13:].strip()
            elif line.startswith("["):
                group = line.strip().strip("[]")
            elif line.strip() and not line.startswith("#"):
                count, locked, goal, row = line.split(None, 3)
                found[group, row.strip()] = Budget(int(count), int(locked), None if goal == "-" else int(goal))
    return exact, found


def read_profiles():
    found, key = {}, None
    with open(PROFILES, encoding="utf-8") as f:
        for line in f:
            if line.startswith("#") or not line.strip():
                continue
            if line[0].isspace():
                n, name = line.split(None, 1)
                found[key][name.strip()] = int(n)
            else:
                group, row = line.strip().split(": ", 1)
                key = group, row
                found[key] = {}
    return found


HEAD = """\
# Instructions that each call may take; see "Budgets" in doc/guides/contributing.md.
# Written by devtools/icount.py --write, but for the goals, which are ours to set.
#
# exact for: {exact}
#
# count: today's; lock: how many of them lock the bus or the line; goal: what it is to become, - none
"""
PROFILE_HEAD = """\
# Functions of the rows of budgets.txt, so that a row over its budget can say which have grown.
# Written by devtools/icount.py --write.
"""


def write(build, traces):
    _, old = read_budgets() if os.path.exists(BUDGETS) else (None, {})
    with open(BUDGETS, "w", encoding="utf-8") as b, open(PROFILES, "w", encoding="utf-8") as p:
        b.write(HEAD.format(exact=known_for(build)))
        p.write(PROFILE_HEAD)
        for group in GROUPS:
            b.write(f"\n[{group}]\n# count lock  goal  row\n")
            rows = traces[group].rows if group in traces else [r for g, r in old if g == group]
            for row in rows:
                goal = old[group, row].goal if (group, row) in old else None
                run = traces[group].best(row)
                b.write(f"{run.count:7d} {run.locked:4d} {'-' if goal is None else goal:>5}  {row}\n")
                p.write(f"\n{group}: {row}\n")
                for name, n in profile(run):
                    p.write(f"{n:7d} {name}\n")
                if (group, row) in old and old[group, row].count != run.count:
                    print(f"{group}: {row}: {old[group, row].count} is now {run.count}")


def grown(was, now):
    """Lines that say which functions differ, the most first."""
    lines = []
    for name in sorted(set(was) | set(now), key=lambda f: (was.get(f, 0) - now.get(f, 0), f)):
        a, b = was.get(name, 0), now.get(name, 0)
        if a != b:
            lines.append(f"    {b - a:+5d}  {name}: {a} to {b}")
    return lines


def check(build, traces, skipped):
    """Compare with the budgets. @return exit status"""
    exact_for, budgets = read_budgets()
    profiles = read_profiles()
    here = known_for(build)
    exact = here == exact_for
    bad = n = 0

    def complain(name, text, lines=()):
        nonlocal bad
        bad += 1
        print(f"not ok {n} - {name}\n  {text}")
        for line in lines:
            print(line)

    if not exact:
        print(f"# the budgets are of {exact_for}\n# here is {here}:"
            f" {OTHER_PERCENT} % and {OTHER_COUNT} instructions more are allowed")
    for group, why in skipped.items():
        n += 1
        print(f"ok {n} - {group} # SKIP {why}")
    for group, t in traces.items():
        for row in t.rows:
            n += 1
            name, run, budget = f"{group}: {row}", t.best(row), budgets.get((group, row))
            if budget is None:
                complain(name, f"has no budget: devtools/icount.py --write gives it {run.count}")
                continue
            more = 0 if exact else OTHER_COUNT + budget.count * OTHER_PERCENT // 100
            if not exact_for.endswith(f"; {copies()}") and " KiB" in row:
                more += OTHER_COPY
            changes = grown(profiles.get((group, row), {}), dict(profile(run)))
            if run.count > budget.count + more:
                complain(name, f"{run.count} instructions, {run.count - budget.count} more than its budget"
                    f" of {budget.count}:", changes)
            elif exact and run.locked > budget.locked:
                complain(name, f"{run.locked} locked instructions, {budget.locked} are allowed", changes)
            elif exact and run.count < budget.count - BELOW:
                complain(name, f"{run.count} instructions, the budget is {budget.count}: lower it"
                    " by devtools/icount.py --write, so that it stays so", changes)
            else:
                print(f"ok {n} - {name}")
    for group, row in budgets:
        if group in traces and row not in traces[group].rows:
            n += 1
            complain(f"{group}: {row}", "has a budget, and is not counted")
    if not traces:
        return SKIPPED
    return 1 if bad else 0


def table(traces, ucx, runs):
    budgets = read_budgets()[1] if os.path.exists(BUDGETS) else {}
    for group, t in traces.items():
        beside = f" {'ucx':>6} {'lock':>4}" if group in ucx else ""
        print(f"\n{group:40} {'now':>6} {'lock':>4} {'budget':>6} {'goal':>5}{beside}")
        for row in t.rows:
            run, budget = t.best(row), budgets.get((group, row))
            line = f"  {row:38} {run.count:6d} {run.locked:4d}"
            line += f" {budget.count if budget else '-':>6} {budget.goal if budget and budget.goal else '-':>5}"
            if group in ucx and row in ucx[group].rows:
                other = ucx[group].best(row)
                line += f" {other.count:6d} {other.locked:4d}"
            if runs:
                line += "  " + " ".join(str(r.count) for r in t.rows[row])
            print(line)


def source_lines(run):
    """Instructions of each function's lines: {function: {(file, line): n}}; of inlined ones, theirs."""
    by_code = {}
    for _, code, ip in run.steps:
        by_code.setdefault(code, set()).add(ip)
    at = {}
    for code, ips in by_code.items():
        if code.system:
            continue
        # relative names are seen from the build folder
        out = subprocess.run(["addr2line", "-a", "-e", code.path], text=True, check=True, capture_output=True,
            input="".join(f"{ip - code.base:x}\n" for ip in sorted(ips))).stdout.splitlines()
        for address, line in zip(out[::2], out[1::2]):
            file, number = line.split(" (")[0].rsplit(":", 1)
            at[int(address, 16) + code.base] = (file, int(number) if number.isdigit() else 0)
    found = {}
    for name, _, ip in run.steps:
        found.setdefault(name, collections.Counter())[at.get(ip, ("??", 0))] += 1
    return found


@functools.lru_cache(maxsize=None)
def text_of(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read().splitlines()
    except OSError:
        return []


def print_lines(build, lines):
    for (file, number), n in sorted(lines.items()):
        text = text_of(os.path.join(build.path, file))
        code = text[number - 1].strip() if 0 < number <= len(text) else ""
        print(f"        {n:5d} {os.path.basename(file)}:{number} {code[:90]}")


def where(build, run, with_lines):
    last, parts = None, []
    for name, _, _ in run.steps:
        if name != last:
            parts.append([name, 0])
            last = name
        parts[-1][1] += 1
    print(f"{run.count} instructions, {run.locked} with a lock; in this order:")
    for name, n in parts:
        print(f"{n:7d} {name}")
    print("by function:")
    lines = source_lines(run) if with_lines else {}
    for name, n in profile(run):
        print(f"{n:7d} {name}")
        if with_lines:
            print_lines(build, lines[name])


def lib_folder(prefix):
    for folder in ("lib", "lib/x86_64-linux-gnu", "lib64", "."):
        if os.path.exists(os.path.join(prefix, folder, "libucp.so.0")):
            return os.path.join(prefix, folder)
    raise Failed(f"{prefix}: no libucp.so.0 in its lib")


def parse():
    p = argparse.ArgumentParser(usage=__doc__.split("usage: ", 1)[1], add_help=True)
    p.add_argument("--build", default=os.environ.get("BUILD", os.path.join(TOP, "build")))
    p.add_argument("--check", action="store_true")
    p.add_argument("--write", action="store_true")
    p.add_argument("--where", metavar="ROW")
    p.add_argument("--lines", action="store_true")
    p.add_argument("--runs", action="store_true")
    p.add_argument("--ucx", metavar="PREFIX")
    p.add_argument("groups", nargs="*", metavar="GROUP")
    return p.parse_args()


def main():
    args = parse()
    build = Build(args.build)
    names = args.groups or list(GROUPS)
    if args.where is not None:
        if ": " not in args.where:
            args.where = "ucp single: " + args.where
        names = [args.where.split(": ", 1)[0]]
    for name in names:
        if name not in GROUPS:
            raise Failed(f"no group {name}; there are: {', '.join(GROUPS)}")
    if args.write and (args.groups or args.ucx):
        raise Failed("--write is of all groups, and of ours")
    traces, ucx, skipped = {}, {}, {}
    for name in names:
        try:
            if args.ucx is not None and GROUPS[name].args[:1] == ["all"]:
                ucx[name] = trace(build, GROUPS[name], lib_folder(args.ucx))
            if args.ucx is None or args.where is None:
                traces[name] = trace(build, GROUPS[name])
        except Skip as why:
            skipped[name] = str(why)
    if args.check:
        return check(build, traces, skipped)
    for name, why in skipped.items():
        print(f"{name} is left out: {why}")
    if args.write and skipped:
        raise Failed("not all groups can be counted here: nothing is written")
    if args.write:
        write(build, traces)
        return 0
    if args.where is not None:
        group, row = args.where.split(": ", 1)
        t = (ucx if args.ucx is not None else traces).get(group)
        if t is None or row not in t.rows:
            close = difflib.get_close_matches(row, t.rows if t else [], 3)
            raise Failed(f"no row {args.where}" + (f"; is it {' or '.join(close)}?" if close else ""))
        where(build, t.best(row), args.lines)
        return 0
    table(traces, ucx, args.runs)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (Failed, subprocess.TimeoutExpired) as e:
        print(f"icount.py: {e}", file=sys.stderr)
        sys.exit(1)
