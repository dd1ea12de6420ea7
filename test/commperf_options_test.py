#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""commperf_options_test.py - lines that take a time, payloads that are datatypes, one core for both sides

usage: commperf_options_test.py COMMPERF SPOIL

SPOIL is spoil.so, to be preloaded.
"""
import csv
import io
import os
import re
import signal
import sys
import tempfile
import time

import run_util as u

PROGRAM, SPOIL = map(os.path.abspath, sys.argv[1:3])
UCP_TIMED = "tag,unexpected_lat,put,get,atomic,am,stream"
CCI_TIMED = "msg,rma_write_lat,rma_read_lat,rma_write_bw,rma_read_bw"
LIVE = r"^# (\w+) (\w+), ([\d.]+) of 2.5 s: [\d.]+k? (\S+)$"


def run(*args, env=None):
    return u.run([PROGRAM, *args], 200, env=env)


def rows(*args, env=None):
    """The lines of its table, by the name of each column."""
    r = run("--quiet", "--csv", "-", *args, env=env)
    if r.why():
        raise AssertionError(r.why())
    return list(csv.DictReader(io.StringIO(r.out)))


def a_line_takes_its_time():
    for test in ("tag_lat", "tag_rate"):
        start = time.monotonic()
        r = run("-t", test, "-s", "8", "--duration", "2.5")
        took = time.monotonic() - start
        live = re.findall(LIVE, r.out, re.M)
        if r.why() or not 2.5 <= took < 30:
            yield f"{test}: {took:.1f} s {r.why()}"
        unit = "us" if test == "tag_lat" else "Mmsg/s"
        if len(live) != 2 or {x[0] for x in live} != {test} or {x[3] for x in live} != {unit}:
            yield f"{test}: its seconds are {live}\n{r.out}"
        if max(map(len, r.out.splitlines())) > 80:
            yield f"{test}: wide\n{r.out}"


def quiet_has_no_live_line():
    r = run("-t", "tag_rate", "--duration", "1.2", "--quiet")
    if r.why() or r.out:
        yield f"{r.out}{r.why()}"


def every_timed_test_is_right_for_its_time():
    for tests in (UCP_TIMED, CCI_TIMED):
        got = rows("-t", tests, "-s", "8", "--duration", "0.05", "--verify", "--batch", "3")
        if len(got) < 8 or [r for r in got if float(r["value"]) <= 0 or int(r["errors"]) or int(r["n"]) < 2]:
            yield f"{tests}: {got}"


def samples_are_thinned_and_not_lost():
    """The clock has room for about a million round trips. The median of more stays that of a get."""
    few, many = (rows("-t", "get_lat", "-s", "8", *how)[0] for how in (["-n", "20000"], ["--duration", "3"]))
    if int(many["n"]) < 3 << 20:
        print(f"# only {many['n']} gets in 3 s: no sample is thinned here")
    if not 0.2 <= float(many["p50"]) / max(float(few["p50"]), 0.001) <= 5 or float(many["max"]) < float(many["p50"]):
        yield f"{few}\n{many}"


def with_server(*args, env=None):
    """A client's result, and the status of its server, which has env; None: the client failed."""
    port = u.free_port()
    server = u.start([PROGRAM, "--server", f"127.0.0.1:{port}"], env=env)
    try:
        r = run("--connect", f"127.0.0.1:{port}", *args)
        return r, server.wait(20) if r.rc == 0 else None
    finally:
        u.kill_family(server)


def a_server_hears_of_the_duration():
    r, status = with_server("-t", "tag_bw,tag_lat", "-s", "1k", "--duration", "1", "--quiet", "--csv", "-")
    if status != 0 or r.seconds < 2:
        yield f"status {r.rc} {r.out}{r.err}"


def bad_durations_are_refused():
    for args, why in ((["0"], "not seconds"), (["-1"], "not seconds"), (["x"], "not seconds"), (["1s"], "not seconds"),
                      (["nan"], "not seconds"), (["100000"], "not seconds"), (["1", "-n", "5"], "--iters and --duration"),
                      (["1", "-t", "match"], 'does not take --duration: "match"'),
                      (["1", "-t", "tag_lat,overlap"], 'does not take --duration: "overlap"')):
        r = run("--duration", *args)
        if r.rc != 2 or why not in r.err:
            yield f"--duration {args}: status {r.rc}: {r.err}"


def said(file):
    file.seek(0)
    return file.read()


def stop(pid, seconds, after):
    for number, pause in ((signal.SIGSTOP, seconds), (signal.SIGCONT, after)):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return
        time.sleep(pause)


def messages_that_come_are_progress():
    """A line takes longer than --timeout, because its sender runs only a moment of each second."""
    with tempfile.TemporaryFile("w+") as err:
        p = u.start([PROGRAM, "-t", "am_bw", "-s", "64k", "-n", "4000", "--verify", "--timeout", "4", "--quiet",
                     "--progress"], stderr=err)
        end = time.monotonic() + 60
        while "run 1 of 1" not in said(err) and p.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        sender = next(iter(u.descendants(p.pid)[1:]), None)  # side A is forked first
        for _ in range(8 if sender else 0):
            stop(sender, 1, 0.05)
        if u.wait(p, 100) != 0 or not sender:
            yield said(err)
        u.kill_family(p)


def one_core_for_both_sides_takes_no_minute():
    """What the machine is measured by would take a time slice a round there, thousands of them for each line."""
    core = str(min(os.sched_getaffinity(0)))
    r = u.run(["taskset", "-c", core, PROGRAM, "-t", "tag_lat", "-s", "8,64", "-n", "20", "-w", "0", "-r", "1", "--no-eal",
               "--bind", "off"], 20)
    if r.rc != 0 or "both sides share one core" not in r.err:
        yield f"status {r.rc} after {r.seconds:.1f} s: {r.out}{r.err}"


def every_datatype_moves_every_byte():
    for kind in ("contig", "iov:1", "iov:3", "iov:1000", "generic"):
        for tests, sizes in (("tag,unexpected,am", "0,1,3,1k,64k,1m"), ("stream", "1,3,1k,64k,1m")):
            got = rows("-t", tests, "-s", sizes, "-n", "30", "--verify", "--datatype", kind)
            label = "" if kind == "contig" else kind
            if len(got) < 15 or [r for r in got if int(r["errors"]) or r["label"] != label]:
                yield f"{kind} {tests}: {got}"
    for mem in ("mapped", "eal"):
        got = rows("-t", "tag", "-s", "1k,64k", "-n", "30", "--verify", "--datatype", "iov:32", "--mem", mem)
        if len(got) < 4 or any(int(r["errors"]) for r in got):
            yield f"iov:32 in {mem} memory: {got}"


def a_datatype_is_given_to_the_library():
    """The callbacks of a generic type cost another copy of a message, a contiguous buffer does not."""
    plain, packed = (float(rows("-t", "tag_lat", "-s", "4m", "-n", "40", "--datatype", kind)[0]["min"])
                     for kind in ("contig", "generic"))
    if packed < 1.1 * plain:
        yield f"4 MiB: {plain} us contiguous, {packed} us of a generic type"


def a_server_hears_of_the_datatype():
    """A byte is spoiled of what the server sends as one buffer of 1 KiB, none of what it sends as three pieces."""
    spoils = {"LD_PRELOAD": SPOIL, "SPOIL": "tag"}
    args = ("-t", "tag_lat", "-s", "1k", "-n", "50", "--verify")
    r, status = with_server(*args, "--datatype", "iov:3", env=spoils)
    if status != 0 or "tag_lat, us, iov:3" not in r.out:
        yield f"status {r.rc} {r.out}{r.err}"
    r, status = with_server(*args, env=spoils)
    if status == 0:
        yield f"nothing is spoiled: {r.out}{r.err}"


def bad_datatypes_are_refused():
    for args, why in ((["iov"], "not contig, iov:N or generic"), (["iov:0"], "not iov:1 to iov:1024"),
                      (["iov:1025"], "not iov:1 to iov:1024"), (["iov:x"], "not iov:1"), (["iov:3x"], "not iov:1"),
                      (["strided"], "not contig"), (["generic", "-t", "put_lat"], 'does not take --datatype: "put_lat"'),
                      (["iov:2", "-t", "msg_lat"], 'does not take --datatype: "msg_lat"')):
        r = run("--datatype", *args)
        if r.rc != 2 or why not in r.err:
            yield f"--datatype {args}: status {r.rc}: {r.err}"


TESTS = (a_line_takes_its_time, quiet_has_no_live_line, every_timed_test_is_right_for_its_time,
         samples_are_thinned_and_not_lost, a_server_hears_of_the_duration, bad_durations_are_refused,
         messages_that_come_are_progress, one_core_for_both_sides_takes_no_minute, every_datatype_moves_every_byte,
         a_datatype_is_given_to_the_library, a_server_hears_of_the_datatype, bad_datatypes_are_refused)


if __name__ == "__main__":
    sys.exit(u.run_tests(TESTS))
