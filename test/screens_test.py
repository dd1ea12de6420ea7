#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""screens_test.py - what a terminal of 80x24 shows of a job of 8 ranks: plx-top, testcomm, bench.sh

usage: screens_test.py --build DIR [--show]      --show: print each screen

The terminal is a model (term_util.py): a line that is too long wraps there, and is found.
"""
import argparse
import contextlib
import glob
import os
import re
import subprocess
import sys
import tempfile
import time

import run_util as u
from term_util import Terminal

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "..", "usertools", "plx-top")
BENCH = os.path.join(HERE, "..", "devtools", "bench.sh")
RANKS = 8
PLAIN = {k: v for k, v in os.environ.items() if not k.startswith(("PLX_", "UCX_"))}
ROW = re.compile(r"(\d+) +(\S.*?) +(\S+) +(\S+)(?: +-?[\d.,kMGT]+)?$")


class Recorder:
    """Screens with their names, for --show, and what is wrong with each."""

    def __init__(self, show):
        self.show = show

    def look(self, name, terminal):
        if self.show:
            print(f"--- {name}")
            for row in terminal.screen.rows():
                print(f"|{row:<80}|")
        wrapped, terminal.screen.wrapped = terminal.screen.wrapped, 0
        if wrapped:
            yield f"{name}: {wrapped} lines are longer than the terminal\n{terminal.text()}"


@contextlib.contextmanager
def job(build):
    """8 ranks of MPI until the end of the block; the pattern of their sockets."""
    with tempfile.TemporaryDirectory(prefix="plx_screens_") as folder:
        exe, stop = os.path.join(folder, "job"), os.path.join(folder, "stop")
        subprocess.run(["mpicc.mpich", os.path.join(HERE, "screens_job.c"), "-o", exe], check=True)
        p = u.start([os.path.join(build, "pollux-run"), "--rpc", os.path.join(folder, "%p.sock"), "mpirun.mpich",
                     "-n", str(RANKS), exe, stop], PLAIN, stdout=subprocess.DEVNULL)
        pattern, end = os.path.join(folder, "*.sock"), time.monotonic() + 60
        try:
            while len(glob.glob(pattern)) < RANKS and p.poll() is None and time.monotonic() < end:
                time.sleep(0.05)
            yield pattern
        finally:
            open(stop, "w", encoding="ascii").close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                u.wait(p, 30)
            u.kill_family(p)
            p.wait()


def page(rows):
    """First, last and all of the rows that plx-top says it shows."""
    match = re.search(r" (\d+)-(\d+) of (\d+)$", rows[23])
    return tuple(map(int, match.groups())) if match else None


def header_is_there(rows):
    return rows[0].startswith("pollux ") and re.match(r"(process )?object +counter +value +per second$", rows[1])


def top_keeps_its_rows(pattern, _, record):
    t = Terminal([sys.executable, TOP, "-s", pattern, "-i", "0.5", "-a", "--sort", "name"], PLAIN)
    if not t.shows(rf"^pollux \S+  {RANKS} processes  by name") or not t.until(lambda rows: page(rows)):
        yield t.text()
        return
    yield from record.look("plx-top", t)
    total, seen = page(t.screen.rows())[2], {}
    while True:  # page by page, to the end
        rows = t.screen.rows()
        first, last, _ = page(rows)
        if not header_is_there(rows) or any(not ROW.match(row) for row in rows[2:2 + last - first + 1]):
            yield f"no header, or not a row a line:\n{t.text()}"
        seen.update({first + i: rows[2 + i] for i in range(last - first + 1)})
        if last == total:
            break
        t.key("\x1b[6~")
        if not t.until(lambda rows, last=last, total=total: page(rows) and page(rows)[1] == min(last + 21, total)):
            yield f"page down behind {last}:\n{t.text()}"
            break
    yield from record.look("plx-top, the last page", t)
    if sorted(seen) != list(range(1, total + 1)) or total < 500:
        yield f"of {total} rows, {total - len(seen)} are never shown"
    if len({row.split()[0] for row in seen.values()}) != RANKS:
        yield "not all ranks are there"
    t.key("t")
    if not t.shows(", totals") or page(t.screen.rows())[0] != 1:
        yield "the totals do not begin at their first row:\n" + t.text()
    yield from record.look("plx-top, totals", t)
    t.key("tsa")
    if not t.until(lambda rows: "by rate" in rows[0] and re.search(r"(?m)^\d+ +worker 0 \S*_\d+ +turns ", "\n".join(rows))):
        yield "the name of a worker is cut:\n" + t.text()
    yield from record.look("plx-top, by rate", t)
    if t.screen.scrolled:
        yield f"it scrolled the terminal by {t.screen.scrolled} lines"
    t.key("q")
    if t.status() != 0:
        yield "it did not end well"


def a_shell_beside_it_fits(_, build, record):
    t = Terminal([os.path.join(build, "app", "testcomm", "testcomm"), "--no-history"], PLAIN)
    t.shows("(?m)^testcomm>$")
    for text in ("help", "worker create; worker create b multi", "ep create ab w0 b peer; ep create ba b w0",
                 'recv b 1 full 100; send ab 1 "hello"; wait all', "show data r0", "show worker b full",
                 "gen ab 8 count 20; worker list; ep list; reqs", "help all", "show settings; show offload b",
                 "mem create m 1m; mem list; cci create c; cci list"):
        t.raw = ""
        t.key(f"\x0c{text}\n")
        if not t.until(lambda _, text=text: re.search(re.escape(text) + r"\r\n(?s:.*)\ntestcomm> $", t.raw)):
            yield f"{text}: no prompt\n{t.text()}"
        yield from record.look(f"testcomm, {text}", t)
        if text == "help" and (t.screen.scrolled or not t.screen.rows()[0].startswith("testcomm> help")):
            yield "the beginning of help is lost:\n" + t.text()
    for text in ("cci \t", "atomic k \t"):
        t.key(f"\x15\x0c{text}")
        t.shows(r"testcomm> (?s:.*)\n(?s:.*)\ntestcomm> \w+")
        yield from record.look(f"testcomm, {text!r}", t)
    t.key("\x15quit\n")
    if t.status() != 0:
        yield "it did not end well"


def benches_fit(_, build, record):
    for options, head, rows in ((["-t", "tag_lat,tag_bw", "-s", "8,1k,64k", "-n", "300"], r"^ +size +n +min .* raw ns$", 6),
                                (["-t", "load", "--ranks", str(RANKS), "--busy", "0", "-s", "8,4k", "--rounds", "1",
                                  "--time-limit", "0.05"], r"^ +size +n +ours +spin", 8)):
        t = Terminal([BENCH, *options], {**PLAIN, "BUILD": build}, limit_s=200)
        meanwhile = t.shows("run 1 of 1|round 1 of 1")
        yield from record.look(f"bench.sh {' '.join(options)}, meanwhile", t)
        if not meanwhile:
            yield f"bench.sh {options} shows no progress:\n{t.text()}"
        if t.status() != 0:
            yield f"bench.sh {options} fails"
        yield from record.look(f"bench.sh {' '.join(options)}", t)
        shown = t.screen.rows()
        found = [row for row in shown if re.match(rf"^({RANKS}r 0b \w+ +| +)\d+k? +\d+ +[\d.]", row)]
        late = "did not end in time" in t.raw  # of 8 ranks, on a machine that does other things too: it says so
        if not any(re.match(head, row) for row in shown) or not late and (len(found) != rows or t.screen.scrolled):
            yield f"not {rows} rows with their header on one screen, but {len(found)}:\n{t.text()}"
        if any("run 1 of" in row or "round 1 of" in row for row in shown):
            yield f"a line of progress is left:\n{t.text()}"


def bench_says_what_spoils_figures(build):
    """Busy programs on all cores, and cores that are further apart than asked for."""
    cores = os.sched_getaffinity(0)
    busy = [subprocess.Popen(["taskset", "-c", str(core), "sh", "-c", "while :; do :; done"]) for core in cores]
    try:
        said = subprocess.run([BENCH, "-t", "tag_lat", "-s", "8", "-n", "300", "--quiet"], stdout=subprocess.DEVNULL, check=False,
                              stderr=subprocess.PIPE, text=True, env={**PLAIN, "BUILD": build, "FAR_NS": "0.1"}, timeout=200).stderr
    finally:
        for p in busy:
            p.kill()
            p.wait()
    found = re.search(r"^bench: ([\d.]+) of (\d+) cores are busy with other programs", said, re.M)
    if not found or int(found[2]) != len(cores) or not 0.5 * len(cores) < float(found[1]) <= len(cores):
        yield f"it says nothing of {len(cores)} busy cores: {said}"
    if len(cores) > 1 and not re.search(r"^bench: cores \d+ and \d+ are [\d.]+ ns apart", said, re.M):
        yield f"it says nothing of far cores: {said}"
    if any(len(line) > 80 for line in said.splitlines()):
        yield f"wide: {said}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", required=True)
    parser.add_argument("--show", action="store_true")
    args = parser.parse_args()
    u.need("mpicc.mpich", "mpirun.mpich")
    report, record, build = u.Report(), Recorder(args.show), os.path.abspath(args.build)
    with job(build) as pattern:
        for test in (top_keeps_its_rows, a_shell_beside_it_fits):
            report.result(test.__name__.replace("_", " "), "\n".join(test(pattern, build, record)))
    report.result("benches fit", "\n".join(benches_fit(None, build, record)))
    report.result("bench says what spoils figures", "\n".join(bench_says_what_spoils_figures(build)))
    return report.status()


if __name__ == "__main__":
    sys.exit(main())
