#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""metrics_test.py - operations of each kind are counted, and plx-metrics writes what Prometheus reads

usage: metrics_test.py COMMPERF TOOLS
"""
import glob
import json
import os
import re
import shutil
import subprocess
import sys

import run_util as u
from job_util import PLAIN, talking, until

COMMPERF, TOOLS = sys.argv[1:3]
SAMPLE = re.compile(r'^(pollux_[a-z0-9_]+)\{[a-z]+="[^"\\]*"(,[a-z]+="[^"\\]*")*\} \d+$')


def tool(name, *args):
    return subprocess.run([os.path.join(TOOLS, name), *args], capture_output=True, text=True, env=PLAIN)


def counter(pattern, method, name):
    """Its sum over the workers of both processes."""
    answers = [tool("plx-rpc", "-s", path, method).stdout for path in glob.glob(pattern)]
    return sum(w["counters"][name] for a in answers if a for w in json.loads(a))


def counts(folder, test, method, *names, **env):
    with talking(COMMPERF, os.path.join(folder, "%p.sock"), test, **env) as pattern:
        for name in names:
            if not until(lambda n=name: counter(pattern, method, n) > 10):
                yield f"{test} {env}: {method} does not count {name}"


def active_messages_are_counted(folder):
    yield from counts(folder, "am_lat", "am_get_stats", "sends", "rx_borrowed")


def streams_are_counted(folder):
    yield from counts(folder, "stream_lat", "stream_get_stats", "sends", "rx_direct_bytes")


def puts_and_gets_are_counted(folder):
    yield from counts(folder, "put_lat", "rma_get_stats", "msg", "puts", PLX_RMA_SCHEME="message")
    yield from counts(folder, "get_lat", "rma_get_stats", "msg", "gets", PLX_RMA_SCHEME="message")


def families_are_whole(text, form):
    """Each has a head, its samples stand together, and each sample is there once."""
    seen, samples, now = set(), set(), None
    for line in text.splitlines():
        if line.startswith("# HELP "):
            now = line.split()[2]
            if now in seen:
                yield f"{form}: {now} begins twice"
            seen.add(now)
        elif not line.startswith("#"):
            found = SAMPLE.match(line)
            family = found and (found[1].removesuffix("_total") if form == "openmetrics" else found[1])
            if not found or family != now or line.rpartition(" ")[0] in samples:
                yield f"{form}: {line}"
            samples.add(line.rpartition(" ")[0])
    if len(samples) < 200:
        yield f"{form}: {len(samples)} samples"
    if text.endswith("# EOF\n") != (form == "openmetrics"):
        yield f"{form}: how it ends"


def a_collector_reads_the_text(folder):
    with talking(COMMPERF, os.path.join(folder, "%p.sock")) as pattern:
        until(lambda: counter(pattern, "worker_get_list", "tag_sends") > 10)
        for form in ("prometheus", "openmetrics"):
            path = os.path.join(folder, form)
            p = tool("plx-metrics", "-f", form, "-o", path, pattern)
            if p.returncode != 0 or p.stderr:
                yield f"plx-metrics: {p.returncode} {p.stderr}"
                continue
            text = open(path, encoding="utf-8").read()
            yield from families_are_whole(text, form)
            pids = set(re.findall(r'pollux_worker_tag_sends_total\{pid="(\d+)"', text))
            if len(pids) != 2:
                yield f"{form}: processes {pids}"
            if form == "prometheus" and shutil.which("promtool"):
                p = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
                if p.returncode != 0 or p.stderr:
                    yield f"promtool: {p.returncode} {p.stdout}{p.stderr}"
        if left := glob.glob(os.path.join(folder, ".pollux-*")):
            yield f"left behind: {left}"
        if tool("plx-rpc", "-s", glob.glob(pattern)[0], "metrics_get", "format=xml").returncode != 1:
            yield "format=xml is taken"


def nobody_there_is_said(folder):
    p = tool("plx-metrics", os.path.join(folder, "none.sock"))
    if p.returncode != 1 or "none.sock: there is no such socket" not in p.stderr:
        yield f"{p.returncode} {p.stderr}"
    p = tool("plx-metrics", "-o", os.path.join(folder, "no", "file"), os.path.join(folder, "none.sock"))
    if p.returncode != 2 or not p.stderr.endswith(f"plx-metrics: {folder}/no: there is no such folder\n"):
        yield f"{p.returncode} {p.stderr}"


TESTS = [active_messages_are_counted, streams_are_counted, puts_and_gets_are_counted, a_collector_reads_the_text,
         nobody_there_is_said]


if __name__ == "__main__":
    sys.exit(u.run_tests_in_folders(TESTS, "pollux-metrics-"))
