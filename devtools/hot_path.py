#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""hot_path.py - the functions and files that a message goes through, and the guide that lists them

usage: hot_path.py [--build DIR] [MESSAGE...]          the way of each message, as its tables in the guide
       hot_path.py [--build DIR] --check [MESSAGE...]  fail when the guide has another way, or a message too many files
       hot_path.py [--build DIR] --write [MESSAGE...]  put the ways into the guide, with the words that it has for them

A way is recorded: test/icount/follow is stepped instruction by instruction, and the debug lines say of
which function each is, inlined ones as well. doc/guides/hot_path.md says what is counted.
"""
import argparse
import collections
import difflib
import functools
import os
import re
import subprocess
import sys
import tempfile
import textwrap

sys.dont_write_bytecode = True
import icount  # pylint: disable=wrong-import-position

GUIDE = os.path.join(icount.TOP, "doc", "guides", "hot_path.md")
OWN = re.compile(r"(?:^|/)((?:lib|drivers|dropin)/.*)")
TIMEOUT_S = 500

Message = collections.namedtuple("Message", "program bytes env budget")
MESSAGES = {
    "8 B over shm": Message("follow", 8, {}, 8),
    "64 KiB over shm": Message("follow", 64 << 10, {}, 14),
    # By itself a sender on the same core is not asked to help.
    "1 MiB over shm": Message("follow", 1 << 20, {"PLX_RNDV_SCHEME": "split"}, 14),
    "4 MiB over net_mlx": Message("mlx5_follow", 4 << 20, {"PLX_WORKER_DEVICES": "net_mlx"}, 20),
}

# A send chooses its protocol once, a receiver how the data moves.
ONCE = ("send_choose", "recv_start")

Place = collections.namedtuple("Place", "file name")  # a function, and where it stands


def record(build, message):
    """Step a message's program. @return icount's Trace"""
    folder = os.path.join(build.path, "test", "icount")
    program = os.path.join(folder, message.program)
    with tempfile.NamedTemporaryFile("r", prefix="hot-path-") as out:
        run = subprocess.run([os.path.join(folder, "icount"), out.name, "-", program, str(message.bytes)],
            env=icount.environment(message.env, None), timeout=TIMEOUT_S, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, check=False)
        if run.returncode == icount.SKIPPED:
            raise icount.Skip(run.stdout.strip())
        if run.returncode != 0:
            raise icount.Failed(f"{message.program} {message.bytes}: {run.stdout.strip()}")
        return icount.Trace(out, program, build, by_clock=False)


@functools.lru_cache(maxsize=None)
def own_file(path):
    """The name in our tree of a file that debug lines name, wherever it was compiled, or None."""
    found = OWN.search(os.path.normpath(path))
    return found.group(1) if found and os.path.exists(os.path.join(icount.TOP, found.group(1))) else None


@functools.lru_cache(maxsize=None)
def defined_in(file):
    """The functions that stand in a file."""
    with open(os.path.join(icount.TOP, file), encoding="utf-8") as f:
        return set(re.findall(r"^([a-z]\w+)\(", f.read(), re.M))


def frames_at(path, addresses):
    """@return {address: the functions that an instruction is of, outermost first}: of those inlined, too"""
    out = subprocess.run(["addr2line", "-i", "-f", "-a", "-e", path], text=True, check=True, capture_output=True,
        input="".join(f"{a:x}\n" for a in sorted(addresses))).stdout.splitlines()
    at, name = {}, None
    for line in out:
        if line.startswith("0x"):
            frames, name = [], None
            at[int(line, 16)] = frames
        elif name is None:
            name = re.sub(r"\..*", "", line)
        else:
            file = own_file(line.split(" (")[0].rsplit(":", 1)[0])
            frames.insert(0, Place(file, name))
            name = None
    # The compiler may move instructions out of a function that is not entered: their lines name that one.
    return {a: [p for p in f if p.file] for a, f in at.items()
        if all(p.file is None or p.name in defined_in(p.file) for p in f)}


class Way:
    """What one message goes through: functions in the order in which they are first entered, each once a side."""

    def __init__(self, trace, number):
        calls = [(row.split()[2], run) for row, runs in trace.rows.items() if row.split()[0] == str(number)
            for run in runs]
        self.order = []  # (side, Place)
        self.leads = collections.defaultdict(set)    # a function, and those that it goes on to
        self.callers = collections.defaultdict(set)  # (side, Place), and where it is entered from
        addresses = collections.defaultdict(set)
        for _, run in calls:
            for _, code, ip in run.steps:
                if not code.system:
                    addresses[code].add(ip - code.base)
        frames = {code: frames_at(code.path, a) for code, a in addresses.items()}
        for side, run in calls:
            last = None
            for _, code, ip in run.steps:
                now = [] if code.system else frames[code].get(ip - code.base, [])
                if now:
                    self.step(side, last, now, ip - code.base in code.entries)
                    last = now
        self.steps = self.find_steps()

    def step(self, side, last, now, is_entry):
        for place in now:
            if (side, place) not in self.callers:
                self.order.append((side, place))
                self.callers[side, place] = set()
        for outer, inner in zip(now, now[1:]):
            self.lead(side, outer, inner)
        if last is not None and is_entry:
            self.lead(side, last[-1], now[0])

    def lead(self, side, outer, inner):
        self.leads[outer].add(inner)
        self.callers[side, inner].add(outer)

    def find_steps(self):
        """Functions that are no helpers: those of .c files, and in headers what goes on to one of these."""
        steps = {p for _, p in self.order if not p.file.endswith(".h")}
        while True:
            more = {p for _, p in self.order if p not in steps and self.leads[p] & steps}
            if not more:
                return steps
            steps |= more

    def files(self):
        return sorted({p.file for p in self.steps})

    def rows(self):
        """@return [(side, file, functions)]: those of one side and file together that follow each other"""
        rows = []
        for side, place in self.order:
            if place not in self.steps:
                continue
            if not rows or rows[-1][:2] != (side, place.file):
                rows.append((side, place.file, []))
            rows[-1][2].append(place.name)
        return [(side, file, tuple(names)) for side, file, names in rows]

    def helpers(self):
        """@return {header: functions} of what ends in itself"""
        found = collections.defaultdict(set)
        for _, place in self.order:
            if place not in self.steps:
                found[place.file].add(place.name)
        return {file: tuple(sorted(names)) for file, names in sorted(found.items())}

    def choices(self):
        """Yield what is wrong with the functions that a message passes once."""
        for (side, place), callers in self.callers.items():
            others = callers - {place}  # the compiler may split it, and inline the first part only
            if place.name in ONCE and len(others) > 1:
                yield (f"the {side} comes to {place.name}() from {' and '.join(sorted(c.name for c in others))}:"
                    " a protocol is chosen once")


def usual_way(build, message):
    """The way that most of the recorded messages go; of several, that of the last."""
    trace = record(build, message)
    numbers = sorted({int(row.split()[0]) for row in trace.rows}, reverse=True)
    ways = [Way(trace, n) for n in numbers]
    return max(ways, key=lambda w: sum(w.rows() == other.rows() for other in ways))


ROW = "| {} | `{}` | {} | {} |"
PARSED = re.compile(r"^\| (sender|receiver) \| `([^`]+)` \| (`[^|]*`) \| (.*) \|$")


def called(names):
    return ", ".join(f"`{n}()`" for n in names)


def names_in(text):
    return tuple(re.findall(r"`(\w+)\(\)`", text))


def marks(name):
    return f"<!-- recorded: {name} -->", "<!-- end of what is recorded -->"


class Listed:
    """What the guide says of a message."""

    def __init__(self, text, name):
        begin, end = marks(name)
        if begin not in text:
            raise icount.Failed(f"{GUIDE} has no line {begin}")
        self.head, rest = text.split(begin, 1)
        block, self.tail = rest.split(end, 1)
        self.rows, self.does = [], {}
        for line in block.splitlines():
            row = PARSED.match(line)
            if row:
                side, file, names = row.group(1), row.group(2), names_in(row.group(3))
                self.rows.append((side, file, names))
                self.does[side, file, names[0]] = row.group(4).strip()


def block_of(name, way, does, budget):
    """The part of the guide that is recorded."""
    begin, end = marks(name)
    lines = [begin, "", f"{len(way.files())} files of at most {budget}:", "",
        *textwrap.wrap(", ".join(f"`{f}`" for f in way.files()) + ".", 98, break_on_hyphens=False), "",
        "| side | file | functions | does |", "|---|---|---|---|"]
    for side, file, names in way.rows():
        lines.append(ROW.format(side, file, called(names), does.get((side, file, names[0]), "")))
    lines += ["", "Helpers on the way:", ""]
    for file, names in way.helpers().items():
        lines += textwrap.wrap(f"- `{file}`: {called(names)}", 98, subsequent_indent="  ", break_on_hyphens=False)
    return "\n".join([*lines, "", end])


def read_guide():
    with open(GUIDE, encoding="utf-8") as f:
        return f.read()


def write(name, way, message):
    text = read_guide()
    listed = Listed(text, name)
    with open(GUIDE, "w", encoding="utf-8") as f:
        f.write(listed.head + block_of(name, way, listed.does, message.budget) + listed.tail)


def check(name, way, message, exact):
    """Yield what is wrong."""
    if len(way.files()) > message.budget:
        yield f"goes through {len(way.files())} files, {message.budget} are allowed: {', '.join(way.files())}"
    yield from way.choices()
    if not exact:
        return
    text = read_guide()
    listed = Listed(text, name)
    whole = block_of(name, way, listed.does, message.budget)
    if whole not in text:
        there = text[len(listed.head):len(text) - len(listed.tail)]
        yield "the guide has another way; - the guide, + what is recorded:"
        yield from difflib.unified_diff(there.splitlines(), whole.splitlines(), lineterm="", n=0)
    for row in listed.rows:
        if not listed.does[row[0], row[1], row[2][0]]:
            yield f"the guide does not say what {row[1]}: {row[2][0]}() does for the {row[0]}"


def parse():
    p = argparse.ArgumentParser(usage=__doc__.split("usage: ", 1)[1], add_help=True)
    p.add_argument("--build", default=os.environ.get("BUILD", os.path.join(icount.TOP, "build")))
    p.add_argument("--check", action="store_true")
    p.add_argument("--write", action="store_true")
    p.add_argument("messages", nargs="*", metavar="MESSAGE")
    return p.parse_args()


def main():
    args = parse()
    build = icount.Build(args.build)
    exact = icount.known_for(build) == icount.read_budgets()[0]
    if args.check and not exact:
        print("# compiler or library is another than that of the guide: only files are counted")
    bad = skipped = 0
    names = args.messages or [m for m in MESSAGES if os.path.exists(os.path.join(build.path, "test", "icount",
        MESSAGES[m].program))]
    for name in names:
        if name not in MESSAGES:
            raise icount.Failed(f"no message {name}; there are: {', '.join(MESSAGES)}")
        try:
            way = usual_way(build, MESSAGES[name])
        except icount.Skip as why:
            print(f"ok - {name} # SKIP {why}")
            skipped += 1
            continue
        if args.write:
            write(name, way, MESSAGES[name])
        elif args.check:
            wrong = list(check(name, way, MESSAGES[name], exact))
            print("\n  ".join([f"{'not ok' if wrong else 'ok'} - {name}", *wrong]))
            bad += bool(wrong)
        else:
            print(block_of(name, way, {}, MESSAGES[name].budget))
    return 1 if bad else icount.SKIPPED if skipped == len(names) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (icount.Failed, subprocess.TimeoutExpired) as e:
        print(f"hot_path.py: {e}", file=sys.stderr)
        sys.exit(1)
