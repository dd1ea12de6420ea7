#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""top_test.py - plx-top on a terminal of 80x24, over the processes of a job

usage: top_test.py COMMPERF TOOLS
"""
import contextlib
import glob
import json
import os
import re
import runpy
import signal
import subprocess
import sys
import tempfile

import run_util as u
from job_util import PLAIN, talking
from term_util import Terminal

COMMPERF, TOOLS = sys.argv[1:3]
TOP = os.path.join(TOOLS, "plx-top")
ROW = re.compile(r"^(\d+) +(\S.*?) +(\S+) +([\d.,kMGT]+) +(-?[\d.,kMGT]*)$")


@contextlib.contextmanager
def job():
    """Two processes that talk until the end of the block; the pattern of their sockets, and their ids."""
    with tempfile.TemporaryDirectory(prefix="plx_top_test_", ignore_cleanup_errors=True) as folder, \
            talking(COMMPERF, os.path.join(folder, "%p.sock")) as pattern:
        yield pattern, {int(os.path.basename(path)[:-5]) for path in glob.glob(pattern)}


def top(pattern, *options):
    return Terminal([sys.executable, TOP, "-s", pattern, "-i", "0.3", *options], PLAIN, limit_s=40)


def plain(*options):
    return subprocess.run([sys.executable, TOP, *options], capture_output=True, text=True, env=PLAIN, timeout=60)


def rates(rows):
    """Of the rows of a screen, as numbers."""
    units = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
    for row in rows:
        if match := ROW.match(row):
            if text := match[5].replace(",", ""):
                yield float(text.rstrip("kMGT")) * units[text[-1] if text[-1] in "kMGT" else ""]


def it_fits_and_is_sorted_by_rate(pattern, pids):
    t = top(pattern)
    if not t.shows(r"(?m)^\d+ +worker \d .* turns +\S+ +[1-9]\S*$"):
        yield "no rate of turns:\n" + t.text()
    rows = t.screen.rows()
    found = list(rates(rows))
    if len(found) < 15 or found != sorted(found, key=lambda rate: -abs(rate)):
        yield f"not sorted: {found}\n{t.text()}"
    if not re.match(r"pollux \d+\.\d+\.\d+  2 processes  by rate$", rows[0]) or not rows[1].startswith("process object"):
        yield t.text()
    if not re.search(r"^q quit .* 1-21 of \d+$", rows[23]):
        yield "the last line is " + rows[23]
    if {int(r.split()[0]) for r in rows[2:23]} != pids:
        yield f"rows are of {rows[2:23]}, not of {pids}"
    t.key("q")
    if t.status() != 0 or t.screen.scrolled != 0:
        yield f"it has scrolled the terminal by {t.screen.scrolled}, or did not end well"


def it_scrolls(pattern, _):
    t = top(pattern, "--sort", "name", "-a")
    t.shows(r"1-21 of \d+")
    total = int(re.search(r"of (\d+)$", t.screen.rows()[23])[1])
    for key, want in (("\x1b[B", "2-22"), ("j", "3-23"), ("\x1b[6~", "24-44"), ("\x1b[5~", "3-23"), ("k", "2-22"),
                      ("\x1b[F", f"{total - 20}-{total}"), ("\x1b[H", "1-21")):
        t.key(key)
        if not t.shows(rf"{want} of {total}"):
            yield f"after {key!r} it shows {t.screen.rows()[23]}, not {want}"
    t.key("q")
    t.status()


def its_keys_do_what_they_say(pattern, pids):
    t = top(pattern)
    t.shows("2 processes  by rate")
    for key, want in (("s", r"2 processes  by name"), ("t", r"by name, totals"), ("s", r"by rate, totals"),
                      ("t", r"by rate\n"), ("p", r"by rate, paused"), ("p", r"by rate\n")):
        t.key(key)
        if not t.shows(want):
            yield f"after {key!r}:\n{t.text()}"
    few = int(re.search(r"of (\d+)$", t.screen.rows()[23])[1])
    t.key("a")
    if not t.until(lambda rows: (m := re.search(r"of (\d+)$", rows[23])) and int(m[1]) > few + 20):
        yield f"a shows no zeros: {few}\n{t.text()}"
    t.key("\x03")
    if t.status() not in (0, 130):
        yield "Ctrl-C does not end it"
    if not re.search(r"\x1b\[\?2026h[^\x1b]*(\x1b\[[HK][^\x1b]*)+\x1b\[\?2026l", t.raw):
        yield "it does not tell where a screen begins and ends"
    if "\x1b[?1049l" not in t.raw or not t.raw.rstrip().endswith("\x1b[?1049l"):
        yield "it does not leave its screen"


def it_follows_the_size_and_the_processes(pattern, _):
    t = top(pattern)
    t.shows("2 processes")
    t.resize(30, 60)
    if not t.until(lambda rows: len(rows) == 30 and re.search(r"1-27 of \d+$", rows[29])):
        yield "after a change of size:\n" + t.text()
    t.resize(8, 80)
    if not t.until(lambda rows: re.search(r"1-5 of \d+$", rows[7])):
        yield "on 8 lines:\n" + t.text()
    t.resize(24, 80)
    victim = int(os.path.basename(sorted(glob.glob(pattern))[0])[:-5])
    os.kill(victim, signal.SIGKILL)
    if not t.shows(r"^pollux .* do not answer"):
        yield "it does not tell that one has gone:\n" + t.text()
    t.key("q")
    if t.status() != 0:
        yield "it did not end well"


def what_it_tells_programs(pattern, pids):
    r = plain("-s", pattern, "--json", "-n", "2", "-i", "0.3")
    first, second = [json.loads(line) for line in r.stdout.splitlines()]
    for sample in (first, second):
        if {p["pid"] for p in sample["processes"]} != pids or sample["silent"]:
            yield f"{sample}"
    turns = [row for p in second["processes"] for row in p["rows"] if row["counter"] == "turns" and row["value"]]
    if not turns or not all(row["per_second"] > 0 for row in turns):
        yield f"no rates: {turns}"
    if any(row["per_second"] is not None for p in first["processes"] for row in p["rows"]):
        yield "the first sample has rates"
    r = plain("-s", pattern, "--json", "--once", "--total")
    total = {(row["object"], row["counter"]): row["value"] for row in json.loads(r.stdout)["total"]}
    mtus = {row["value"] for p in second["processes"] for row in p["rows"] if row["counter"] == "mtu"}
    if total.get(("device shm", "peers")) != 2 or not mtus or total.get(("ep shm", "mtu")) != max(mtus):
        yield f"the totals are {total}, each mtu is one of {mtus}"
    r = plain("-s", pattern, "--once")
    for pid in pids:
        if not re.search(rf"^{pid} +worker 0 \S+ +turns +[\d,]+$", r.stdout, re.M):
            yield f"{pid} is not in:\n{r.stdout[:2000]}"


def its_totals_add_what_can_be_added(*_):
    tool = runpy.run_path(TOP)
    rows = [tool["Row"](None, obj, counter, value, 1.0) for obj, counter, value in (
        ("tag 0", "posts", 3), ("tag 1", "posts", 4), ("tag 0", "offload.posted_max", 5), ("tag 1", "offload.posted_max", 4),
        ("reactor 1", "busy_share", 0.25), ("reactor 2", "busy_share", 0.75), ("worker 0", "turn_age_s", 2.0),
        ("worker 1", "turn_age_s", 1.0), ("worker 0", "reactor", 1), ("worker 1", "reactor", 2), ("worker 0", "mode", "inline"))]
    found = {(row.obj, row.counter): (row.value, row.rate) for row in tool["totals"](rows)}
    if found != {("tag", "posts"): (7, 2.0), ("tag", "offload.posted_max"): (5, None),
                 ("reactor", "busy_share"): (0.75, None), ("worker", "turn_age_s"): (2.0, None)}:
        yield f"{found}"


def what_it_says_when_nobody_is_there(_, pids):
    r = plain("-s", "/nonexistent/x.sock", "--once")
    if r.returncode != 2 or r.stderr != "plx-top: /nonexistent/x.sock: there is no such socket: has the process ended?\n":
        yield f"{r.returncode}: {r.stderr}"
    r = plain("--once", "--json")
    if not pids <= {p["pid"] for p in json.loads(r.stdout)["processes"]}:
        yield f"without -s it finds {r.stdout[:500]}"


def main():
    report = u.Report()
    with job() as (pattern, pids):
        for test in (it_fits_and_is_sorted_by_rate, it_scrolls, its_keys_do_what_they_say, what_it_tells_programs,
                     its_totals_add_what_can_be_added, what_it_says_when_nobody_is_there, it_follows_the_size_and_the_processes):
            report.result(test.__name__.replace("_", " "), "\n".join(test(pattern, pids)))
    return report.status()


if __name__ == "__main__":
    sys.exit(main())
