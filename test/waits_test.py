#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""waits_test.py - plx-rpc waits finds out why two processes wait for ever

usage: waits_test.py HANG TOOLS [COMMPERF]
"""
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import job_util
import run_util as u
from job_util import PLAIN, WAIT_S, until

HANG, TOOLS = sys.argv[1:3]
LONG_S = 1.3  # what waits longer is a finding
TITLE = re.compile(r"^\d+ processes, \d+ workers: ", re.M)


@contextlib.contextmanager
def hanging(how, **env):
    """Two processes that wait; (the pattern of their sockets, their ids: the first, the second)."""
    with tempfile.TemporaryDirectory(prefix="plx_waits_test_", ignore_cleanup_errors=True) as folder, \
            job_util.hanging(HANG, how, os.path.join(folder, "%p.sock"), **env) as pids:
        yield os.path.join(folder, "*.sock"), *pids


def waits(pattern, *options, **env):
    return subprocess.run([sys.executable, os.path.join(TOOLS, "plx-rpc"), "waits", *options,
                           *(["-s", pattern] if pattern else [])],
                          capture_output=True, text=True, env={**PLAIN, **env}, timeout=60)


def finds(how, sentence, **env):
    """Nothing, or why the sentence, a pattern with {0} and {1} for the processes, is not found."""
    with hanging(how, **env) as (pattern, first, second):
        sentence = sentence.format(first, second)
        last = [None]

        def look():
            last[0] = waits(pattern)
            return re.search(r"^found: " + sentence, last[0].stdout, re.M) and last[0].returncode == 1
        if not until(look):
            return f"not found: {sentence}\n{last[0].stdout}{last[0].stderr}"
    return ""


def answer(pattern):
    return json.loads(waits(pattern, "--json").stdout)


def a_reader_that_has_gone_is_no_fault():
    with hanging("close") as (pattern, *_):
        for options in ([], ["--dot"], ["--json"]):
            r, w = os.pipe()
            os.close(r)
            p = subprocess.run([sys.executable, os.path.join(TOOLS, "plx-rpc"), "waits", *options, "-s", pattern], stdout=w,
                               stderr=subprocess.PIPE, text=True, env=PLAIN, timeout=60)
            os.close(w)
            if p.returncode or p.stderr:
                return f"{options}: {p.returncode} {p.stderr}"
    return ""


def a_receive_is_told_whole():
    """Operation, tag, bytes, and an age that grows as time does."""
    with hanging("recv") as (pattern, first, _):
        def look():
            mine = [w for w in answer(pattern)["workers"] if w["pid"] == first]
            return mine[0]["waits"] if mine and mine[0].get("waits") else None
        begin = time.monotonic()
        one = until(look)[0]
        time.sleep(LONG_S)
        two = look()[0]
        took = time.monotonic() - begin
    wrong = {k: one[k] for k, v in {"op": "tag_recv", "tag": "0x7", "bytes": 8, "peer": None, "sender": 0}.items()
             if one[k] != v}
    if wrong:
        return f"{wrong} in {one}"
    return "" if LONG_S * 0.7 <= two["age_s"] <= took + WAIT_S else f"its age was {one['age_s']}, then {two['age_s']}"


def a_send_names_its_peer():
    with hanging("cycle") as (pattern, first, second):
        until(lambda: all(w.get("waits") for w in answer(pattern)["workers"]))
        job = answer(pattern)
    uids = {uid: w["pid"] for w in job["workers"] for uid in w["uids"]}
    sends = {(w["pid"], uids.get(x["peer"]), x["op"], x["bytes"], x["tag"]) for w in job["workers"] for x in w["waits"]}
    want = {(a, b, "tag_send", 1 << 20, "0x9") for a, b in ((first, second), (second, first))}
    return "" if sends == want else f"{sends} and not {want}"


def an_answer_is_bounded():
    """Of 1000 receives the oldest are listed, and all are counted."""
    with hanging("many") as (pattern, first, _):
        def mine():
            return next(w for w in answer(pattern)["workers"] if w["pid"] == first)
        until(lambda: "receives any of 256 tags" in waits(pattern).stdout)
        worker, text = mine(), waits(pattern).stdout
    tags = [int(w["tag"], 16) for w in worker["waits"]]
    if worker["n_waits"] != 1000 or tags != list(range(100, 356)):
        return f"{worker['n_waits']} {tags}"
    return "" if "... and 744 more operations" in text and "receives any of 256 tags" in text else text


def a_graph_is_drawn():
    with hanging("cycle") as (pattern, first, second):
        until(lambda: waits(pattern, "--dot").stdout.count("color=red,") == 2)
        graph = waits(pattern, "--dot").stdout
    if not (re.search(rf'w\d \[label="{first}/0 \(rank 0\)\\nhang"\];', graph) and "w0 -> w1" in graph and
            "w1 -> w0" in graph and f"{second}/0" in graph):
        return graph
    if shutil.which("dot") is None:
        return ""
    drawn = subprocess.run(["dot", "-Tsvg"], input=graph, capture_output=True, text=True)
    return "" if drawn.returncode == 0 and str(first) in drawn.stdout else drawn.stderr


def nothing_is_found_where_all_is_well():
    with hanging("none") as (pattern, _, _):
        r = waits(pattern)
    return "" if r.returncode == 0 and "found: nothing" in r.stdout and TITLE.search(r.stdout) else r.stdout + r.stderr


def a_stopped_process_is_named():
    with hanging("none") as (pattern, _, second):
        os.kill(second, signal.SIGSTOP)
        try:
            r = waits(pattern, "-t", "1")
        finally:
            os.kill(second, signal.SIGCONT)
    return "" if r.returncode == 1 and f"{second}.sock: no answer: is the process stopped?" in r.stdout else r.stdout


def the_processes_of_this_user_are_found():
    """Also without -s, and with a path that is relative to another folder."""
    with hanging("none") as (_, first, second):
        r = waits(None, "--json")
    pids = {w["pid"] for w in json.loads(r.stdout)["workers"]} if r.stdout else set()
    return "" if {first, second} <= pids else f"{pids} {r.stderr}"


def who_does_not_exist_is_told():
    r = waits("/nonexistent/*.sock")
    return "" if r.returncode == 2 and "/nonexistent/*.sock: there is no such socket" in r.stderr else r.stdout + r.stderr


CYCLE = r"a cycle: ({0}/0 \(rank 0\) waits for {1}/0 \(rank 1\)|{1}/0 \(rank 1\) waits for {0}/0 \(rank 0\)) waits for "
FOUND = {
    "a receive that nobody sends to": ("recv", r"{0}/0 \(rank 0\) receives tag 0x7, and nobody here is sending it"),
    "a receive in a program that sleeps": ("sleep", r"{0}/0 \(rank 0\) receives tag 0x7, and nobody"),
    "two sends that nobody receives": ("cycle", CYCLE),
    "two receives from each other": ("each", CYCLE),
    "a peer without progress": ("idle", r"{1}/0 \(rank 1\) has called no progress for [0-9.]+ s; waiting for it: 1 op"),
    "an active message to it": ("am", r"{1}/0 \(rank 1\) has called no progress for [0-9.]+ s; waiting for it: 1 op"),
    "a closed endpoint": ("close", r"{1}/0 \(rank 1\) has called no progress for [0-9.]+ s; waiting for it: 2 op"),
    "another tag": ("tag", r"{1}/0 \(rank 1\) receives tag 0x7, and has an unexpected message with tag 0x9 from {0}/0"),
    "a stream without a writer": ("stream", r"{1}/0 \(rank 1\) reads a stream, and {0}/0 \(rank 0\) writes nothing"),
}


def main():
    report = u.Report()
    for name, (how, sentence) in FOUND.items():
        report.result(f"found: {name}", finds(how, sentence))
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) > 1:
        for how in ("recv", "cycle", "sleep"):
            sentence = next(s for h, s in FOUND.values() if h == how)
            report.result(f"found with a reactor: {how}", finds(how, sentence, PLX_REACTOR=f"lcore:{cores[-1]}"))
    for test in (a_receive_is_told_whole, a_send_names_its_peer, an_answer_is_bounded, a_graph_is_drawn, nothing_is_found_where_all_is_well,
                 a_stopped_process_is_named, the_processes_of_this_user_are_found, who_does_not_exist_is_told,
                 a_reader_that_has_gone_is_no_fault):
        report.result(test.__name__.replace("_", " "), test())
    return report.status()


if __name__ == "__main__":
    sys.exit(main())
