#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""job_hosts_test.py - plx-top and plx-rpc waits over several hosts, by a launcher that plays ssh

usage: job_hosts_test.py COMMPERF HANG TOOLS

A host is a folder of sockets here. Others never answer, print what is no answer, or end.
"""
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import run_util as u
from job_util import PLAIN, hanging, talking, until
from term_util import Terminal

COMMPERF, HANG, TOOLS = sys.argv[1:4]
SOON = ("--answer-timeout", "4")  # for a host that does not answer
ENDS_S = 5  # for the end of all processes that a tool has started

# Called as ssh is: options, a host, a command for its shell. The command runs in a session of its own, so that no
# signal from here reaches it.
LAUNCHER = r"""#!/bin/sh
while :; do
	case $1 in
	-*) shift ;;
	*) break ;;
	esac
done
host=$1
shift
case $host in
silent) exec sleep 1000 ;;
dies) echo "ssh: connect to host dies port 22: Connection refused" >&2; exit 255 ;;
quits) exit 3 ;;
colours) printf 'ssh: \033[31mred\233 \007alert\n' >&2; exit 255 ;;
rubbish) while :; do echo "Welcome to the machine"; done ;;
endless) printf '{"feed": "'; exec tr '\0' x </dev/zero ;;
noisy) echo "Last login: yesterday" ;;
esac
if [ -f "$FOLDER/$host.out" ]; then
	cat "$FOLDER/$host.out"
	exec sleep 1000
fi
[ -f "$FOLDER/$host.sockets" ] || { echo "ssh: no such host" >&2; exit 255; }
PLX_RPC_SOCKET=$(cat "$FOLDER/$host.sockets")
export PLX_RPC_SOCKET
exec setsid --wait sh -c "$*"
"""


class Rig:
    """A folder with the launcher, and the hosts that it knows."""

    def __init__(self, folder):
        self.folder, self.launcher = folder, os.path.join(folder, "launcher")
        self.env = {**PLAIN, "FOLDER": folder}
        with open(self.launcher, "w", encoding="utf-8") as f:
            f.write(LAUNCHER)
        os.chmod(self.launcher, 0o755)

    def put(self, name, text):
        with open(os.path.join(self.folder, name), "w", encoding="utf-8") as f:
            f.write(text)

    def sockets(self, host, pattern):
        self.put(host + ".sockets", pattern)

    def says(self, host, answer):
        self.put(host + ".out", (answer if isinstance(answer, str) else json.dumps(answer)) + "\n")

    def argv(self, tool, hosts, *options):
        return [sys.executable, os.path.join(TOOLS, tool), *options, "-H", hosts, "--launcher", self.launcher]

    def run(self, tool, hosts, *options, env=None):
        return subprocess.run(self.argv(tool, hosts, *options), capture_output=True, text=True, timeout=90,
                              env={**self.env, **(env or {})}, stdin=subprocess.DEVNULL)

    def left(self):
        """Processes that belong to a tool of this test, as their environment shows."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{pid}/environ", "rb") as f:
                    mine = b"FOLDER=" + self.folder.encode() in f.read().split(b"\0")
                with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
                    mine = mine and f.read().rsplit(")", 1)[1].split()[0] != "Z"
            except OSError:
                continue
            if mine:
                found.append(int(pid))
        return found

    def none_left(self):
        """'' once nothing is left; else the commands that are."""
        end = time.monotonic() + ENDS_S
        while self.left() and time.monotonic() < end:
            time.sleep(0.05)
        return " ".join(open(f"/proc/{pid}/cmdline").read().replace("\0", " ") for pid in self.left())


def samples(text):
    return [json.loads(line) for line in text.splitlines()]


# --- plx-top ---


def rows_carry_their_host(rig):
    r = rig.run("plx-top", "one,two,three", "--json", "-n", "4", "-i", "0.5")
    last = samples(r.stdout)[-1]
    if {(p["host"], p["pid"]) for p in last["processes"]} != rig.where or last["silent"] or last["silent_hosts"]:
        yield f"{r.stdout[:500]}{r.stderr}"
    for p in last["processes"]:
        turns = [row["per_second"] for row in p["rows"] if row["counter"] == "turns" and row["value"]]
        if not turns or None in turns or max(turns) <= 0:
            yield f"no rate of turns of {p['host']}: {turns}"


def no_sample_comes_twice(rig):
    """However fast they are asked for: a host measures at times of its own."""
    r = rig.run("plx-top", "one", "--json", "-n", "10", "-i", "0.01")
    seen = {json.dumps(p["rows"]) for sample in samples(r.stdout) for p in sample["processes"]}
    if len(seen) != 10:
        yield f"of 10 samples {len(seen)} differ {r.stderr}"


def text_is_sorted_over_all_hosts(rig):
    r = rig.run("plx-top", "one,two,three", "-n", "4", "-i", "0.5")
    last = r.stdout.split("\n\n")[3].splitlines()
    if not re.fullmatch(r"pollux \S+  3 of 3 hosts  4 processes", last[0]) or not last[1].startswith("host  process  object"):
        yield "\n".join(last[:3]) + r.stderr
    seen = {tuple(line.split()[:2]) for line in last[2:]}
    if seen != {(host, str(pid)) for host, pid in rig.where}:
        yield f"rows are of {seen}"
    rates = [int(m[1].replace(",", "")) for line in last[2:] if (m := re.search(r"\S +[\d,.]+ +(-?[\d,]+)$", line))]
    if len(rates) < 10 or rates != sorted(rates, key=lambda rate: -abs(rate)):
        yield f"not sorted: {rates}"


def totals_are_of_all_hosts(rig):
    r = rig.run("plx-top", "one,two,three", "--json", "--once", "--total")
    total = {(row["object"], row["counter"]): row["value"] for row in samples(r.stdout)[0]["total"]}
    if total.get(("device shm", "peers")) != 4:
        yield f"{total.get(('device shm', 'peers'))} peers, and not one of each of 4 processes"


def a_pattern_goes_along(rig):
    """Also one that a shell would split; and it takes precedence over the variable that is set there."""
    r = rig.run("plx-top", "three", "--json", "--once", "-s", os.path.join(rig.folder, "perf *.sock"))
    if {p["pid"] for p in samples(r.stdout)[0]["processes"]} != set(rig.perf):
        yield r.stdout[:300] + r.stderr
    r = rig.run("plx-top", "three", "--json", "--once", env={"PLX_RPC_SOCKET": os.path.join(rig.folder, "perf %p.sock")})
    if {p["pid"] for p in samples(r.stdout)[0]["processes"]} != set(rig.perf):
        yield r.stdout[:300] + r.stderr


def hosts_come_from_a_file(rig):
    rig.put("hosts", "# of the job\none slots=2\n\n  two:4 # again\none\n")
    for hosts in ("@" + os.path.join(rig.folder, "hosts"), "one:2,two,one"):
        r = rig.run("plx-top", hosts, "--json", "--once")
        if [p["host"] for p in samples(r.stdout)[0]["processes"]] != ["one", "two"]:
            yield hosts + r.stdout[:300] + r.stderr
    for hosts, why in (("@/nonexistent", "No such file"), ("one,-oProxyCommand=x", "not the name of a host"),
                       ("a b", "not the name of a host"), (",", "takes 1 to 1024 hosts")):
        r = rig.run("plx-top", hosts, "--once")
        if r.returncode != 2 or why not in r.stderr:
            yield f"{hosts}: {r.returncode} {r.stderr}"


def this_host_needs_no_ssh(rig):
    argv = [sys.executable, os.path.join(TOOLS, "plx-top"), "-H", "localhost", "--json", "--once", "-s",
            os.path.join(rig.folder, "perf *.sock")]
    r = subprocess.run(argv, capture_output=True, text=True, timeout=90, env={**PLAIN, "PATH": "/usr/bin:/bin"})
    if {p["pid"] for p in samples(r.stdout)[0]["processes"]} != set(rig.perf):
        yield r.stdout[:300] + r.stderr


BAD = {  # the output of a host, and the reason that the tool gives
    "cut": ('{"feed": "plx-top 1", "silent"', "not valid JSON"),
    "deep": ('{"feed": ' + "[" * 100000, "not valid JSON"),
    "nan": ('{"feed": "plx-top 1", "silent": {}, "processes": [{"pid": 1, "socket": "s", "version": "v", '
            '"rows": [["o", "c", NaN, null]]}]}', "not valid JSON"),
    "huge": ('{"feed": "plx-top 1", "silent": {}, "processes": [{"pid": 1, "socket": "s", "version": "v", '
             '"rows": [["o", "c", 1' + "0" * 400 + ', null]]}]}', "not valid JSON"),
    "form": ({"feed": "plx-top 1", "silent": {}, "processes": [{"pid": "1", "socket": "s", "version": "v", "rows": []}]},
             "another form"),
    "row": ({"feed": "plx-top 1", "silent": {}, "processes": [{"pid": 1, "socket": "s", "version": "v",
                                                              "rows": [["o", "c", [], None]]}]}, "another form"),
    "old": ({"feed": "plx-top 0"}, "another version"),
}
SAID = {"silent": "it does not answer", "dies": "ssh: connect to host dies port 22: Connection refused",
        "quits": "it has ended without an answer", "colours": "ssh: ?[31mred\ufffd ?alert",
        "rubbish": "its output is not an answer: Welcome to the machine", "endless": "its answer is too long",
        "unknown": "ssh: no such host"}


def who_does_not_answer_is_named(rig):
    for host, (answer, _) in BAD.items():
        rig.says(host, answer)
    hosts = ["one", "noisy", *SAID, *BAD]
    rig.sockets("noisy", os.path.join(rig.folder, f"perf {rig.perf[1]}.sock"))
    begin = time.monotonic()
    r = rig.run("plx-top", ",".join(hosts), "--json", "--once", "--answer-timeout", "8")
    took = time.monotonic() - begin
    if r.returncode != 0 or took > 14:
        yield f"{r.returncode} after {took:.0f} s: {r.stderr}"
        return
    sample = samples(r.stdout)[0]
    if {p["host"] for p in sample["processes"]} != {"one", "noisy"}:
        yield f"{[p['host'] for p in sample['processes']]} {sample['silent_hosts']}"
    for host, want in [*SAID.items(), *((host, why) for host, (_, why) in BAD.items())]:
        if want not in sample["silent_hosts"].get(host, ""):
            yield f"{host}: {sample['silent_hosts'].get(host)}, and not: {want}"
    r = rig.run("plx-top", "dies,quits", "--once")
    if r.returncode != 2 or r.stderr.splitlines() != [f"plx-top: {host}: {SAID[host]}" for host in ("dies", "quits")]:
        yield f"{r.returncode} {r.stderr}"
    r = rig.run("plx-top", "one", "--once", "--answer-timeout", "0")
    if r.returncode != 2 or "must be 0.1 to 86400 seconds" not in r.stderr:
        yield f"{r.returncode} {r.stderr}"
    r = rig.run("plx-top", "one", "--once", "--remote", "/nonexistent/folder")
    if r.returncode != 2 or "/nonexistent/folder/plx-top" not in r.stderr:
        yield f"{r.returncode} {r.stderr}"


def control_characters_stay_there(rig):
    evil = "x\x1b[31m\x9b2J\r\n\x07\u202ey"
    rig.says("evil", {"feed": "plx-top 1", "silent": {evil: evil}, "processes": [
        {"pid": 1, "socket": evil, "version": evil, "rows": [[evil, evil, evil, None], ["o", "c", 5, 7.0]]}]})
    r = rig.run("plx-top", "evil,colours", "-n", "1")
    if bad := re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", r.stdout + r.stderr):
        yield repr(bad[0])
    if "x?[31m?2J????y" not in r.stdout:
        yield r.stdout
    t = Terminal(rig.argv("plx-top", "evil,colours", "-i", "0.3"), rig.env)
    if not t.shows(r"(?s)\[31mred.*\nevil +1 +x\?\[31m") or "\x1b[31m" in t.raw or "\x9b" in t.raw:
        yield t.text()
    t.key("q")
    t.status()


def a_screen_waits_for_nobody(rig):
    t = Terminal(rig.argv("plx-top", "one,silent,mended,dies", "-i", "0.3", *SOON), rig.env)
    begin = time.monotonic()
    if not t.shows(rf"(?m)^one +{rig.perf[0]} +\S.* turns +\S+ +[1-9]\S*$"):
        yield "no rates:\n" + t.text()
    if time.monotonic() - begin > 10 or not t.shows(r"^pollux \S+  1 of 4 hosts  1 processes  by rate\nno answer: silent "):
        yield f"after {time.monotonic() - begin:.0f} s:\n{t.text()}"
    rig.sockets("mended", os.path.join(rig.folder, f"perf {rig.perf[1]}.sock"))
    if not t.shows(rf"(?m)^mended +{rig.perf[1]} +\S"):
        yield "a host that comes back is not asked again:\n" + t.text()
    t.resize(24, 200)
    if not t.shows(r"\nno answer: silent \(it does not answer\); dies \(ssh: connect to host dies port 22: Connection refused\)"):
        yield t.text()
    t.key("q")
    if t.status() != 0:
        yield "it did not end well"
    yield rig.none_left()


def nothing_is_left_behind(rig):
    """However it ends, and whether the host answers or not; long before the next sample."""
    for how in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL, "reader"):
        hosts, n = ("one,two", 5) if how == signal.SIGKILL else ("one,silent", 4)  # itself, and one or two for each host
        p = subprocess.Popen(rig.argv("plx-top", hosts, "--json", "-i", "60", *SOON), env=rig.env, stdout=subprocess.PIPE,
                             stdin=subprocess.DEVNULL)
        if not until(lambda: len(rig.left()) >= n):
            yield f"{how}: only {rig.left()}"
        if how == "reader":
            p.stdout.close()
        else:
            p.send_signal(how)
        try:
            p.wait(25)
        except subprocess.TimeoutExpired:
            p.kill()
            p.wait()
            yield f"{how}: it goes on"
        if how != "reader":
            p.stdout.close()
        if found := rig.none_left():
            yield f"after {how} there is {found}"


# Runs a tool, and sends it a signal as soon as the thread that hears the hosts has started launchers.
EARLY = """
import os, runpy, sys, threading, time
sys.argv.pop(0)
sig = int(sys.argv.pop(0))
start = threading.Thread.start
def interrupted(thread):
    start(thread)
    time.sleep(1)
    os.kill(os.getpid(), sig)
threading.Thread.start = interrupted
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def an_early_signal_leaves_nothing_either(rig):
    for sig in (signal.SIGINT, signal.SIGTERM):
        python, *argv = rig.argv("plx-top", "silent", "--json")
        r = subprocess.run([python, "-c", EARLY, str(int(sig)), *argv], env=rig.env, timeout=90,
                           capture_output=True, text=True, stdin=subprocess.DEVNULL)
        if r.returncode != 128 + sig or r.stdout or r.stderr:
            yield f"{sig}: {r.returncode} {r.stdout}{r.stderr}"
        yield rig.none_left()


# --- plx-rpc waits ---


def a_cycle_over_two_hosts_is_found(rig):
    with hanging(HANG, "cycle", os.path.join(rig.folder, "hang%p.sock")) as pids:
        names = dict(zip(("first", "second"), pids))
        for host, pid in names.items():
            rig.sockets(host, os.path.join(rig.folder, f"hang{pid}.sock"))
        a, b = (rf"{host}:{pid}/0 \(rank {i}\)" for i, (host, pid) in enumerate(names.items()))
        want = rf"^found: a cycle: ({a} waits for {b} waits for {a}|{b} waits for {a} waits for {b})$"
        last = [None]

        def look():
            last[0] = rig.run("plx-rpc", "first,second,three", "waits")
            return re.search(want, last[0].stdout, re.M) and last[0].returncode == 1
        if not until(look) or not last[0].stdout.startswith("3 hosts, 4 processes, 4 workers: 2 wait, 0 do not answer\n"):
            yield last[0].stdout + last[0].stderr
        job = json.loads(rig.run("plx-rpc", "first,second", "waits", "--json").stdout)
        if {(w["host"], w["pid"], w["rank"]) for w in job["workers"]} != {("first", pids[0], 0), ("second", pids[1], 1)} or \
                sorted(job["cycles"][0]) != [["first", pids[0], 0], ["second", pids[1], 0]]:
            yield f"{job}"
        graph = rig.run("plx-rpc", "first,second", "waits", "--dot").stdout
        if graph.count("color=red,") != 2 or f'label="first:{pids[0]}/0 (rank 0)\\nhang"' not in graph or "w1 -> w0" not in graph:
            yield graph
        r = rig.run("plx-rpc", "first,dies", "waits")
        if r.returncode != 1 or "found: dies: " + SAID["dies"] not in r.stdout or "which belongs to no process that was asked" not in r.stdout:
            yield r.stdout + r.stderr
    yield rig.none_left()


def nothing_is_found_where_all_is_well(rig):
    r = rig.run("plx-rpc", "three", "waits")
    if r.returncode != 0 or "found: nothing" not in r.stdout:
        yield r.stdout + r.stderr


def waits_are_bounded_in_time(rig):
    begin = time.monotonic()
    r = rig.run("plx-rpc", "silent,dies", "waits", "-t", "1", *SOON)
    took = time.monotonic() - begin
    if r.returncode != 2 or took > 14 or "plx-rpc: silent: it does not answer\n" not in r.stderr:
        yield f"{r.returncode} after {took:.0f} s: {r.stderr}"
    yield rig.none_left()


def a_graph_of_strange_names_is_one(rig):
    wait = {"op": 'put" \x1b[31m', "state": "x", "peer": '"];\n', "bytes": 1, "done": 0, "age_s": 5}
    row = {"worker": 0, "name": "w", "mode": "inline", "uids": ["1"], "answered": True, "turn_age_s": 0, "quiet_s": 0,
           "n_waits": 1, "waits": [wait], "n_unexpected": 0, "unexpected": []}
    answer = {"socket": "s", "pid": 1, "rank": None, "program": 'a"\\b', "rows": [row]}
    rig.says("strange", {"feed": "waits 1", "answers": [answer]})
    graph = rig.run("plx-rpc", "strange", "waits", "--dot").stdout
    if "\x1b" in graph or r'label="put\" ?[31m \n' not in graph or r'label="peer \"];?"' not in graph or \
            r'\na\"\\b"' not in graph:
        yield graph
    for key, value in (("tag", "zz"), ("age_s", "old"), ("op", None)):
        rig.says("strange", {"feed": "waits 1", "answers": [{**answer, "rows": [{**row, "waits": [{**wait, key: value}]}]}]})
        r = rig.run("plx-rpc", "strange", "waits")
        if r.returncode != 2 or "strange: its answer cannot be read" not in r.stderr:
            yield f"{key}: {r.stdout}{r.stderr}"
    rig.says("strange", {"feed": "waits 1", "answers": [{**answer, "rows": [{**row, "answered": False, "waits": 3}]}]})
    r = rig.run("plx-rpc", "strange", "waits")
    if r.returncode != 1 or "strange:1/0 has not answered in time" not in r.stdout:
        yield r.stdout + r.stderr


def only_waits_takes_hosts(rig):
    r = rig.run("plx-rpc", "one", "get_version")
    if r.returncode != 2 or "only waits takes --dot" not in r.stderr:
        yield r.stderr


TOP = (rows_carry_their_host, no_sample_comes_twice, text_is_sorted_over_all_hosts, totals_are_of_all_hosts, a_pattern_goes_along,
       hosts_come_from_a_file, this_host_needs_no_ssh, who_does_not_answer_is_named,
       control_characters_stay_there, a_screen_waits_for_nobody, nothing_is_left_behind, an_early_signal_leaves_nothing_either)
WAITS = (a_cycle_over_two_hosts_is_found, nothing_is_found_where_all_is_well, waits_are_bounded_in_time,
         a_graph_of_strange_names_is_one, only_waits_takes_hosts)


def main():
    report = u.Report()
    for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(sig, signal.SIG_DFL)  # the tools leave ignored what nohup or a shell ignores
    folder = tempfile.mkdtemp(prefix="plx_job_hosts_")
    try:
        rig = Rig(folder)
        with talking(COMMPERF, os.path.join(folder, "perf %p.sock")) as pattern, \
                hanging(HANG, "none", os.path.join(folder, "hang%p.sock")) as idle:
            rig.perf = [int(re.search(r"(\d+)\.sock", path)[1]) for path in sorted(glob.glob(pattern))]
            rig.where = {("one", rig.perf[0]), ("two", rig.perf[1]), ("three", idle[0]), ("three", idle[1])}
            for host, pid in zip(("one", "two"), rig.perf):
                rig.sockets(host, os.path.join(folder, f"perf {pid}.sock"))
            for i, pid in enumerate(idle):
                os.symlink(os.path.join(folder, f"hang{pid}.sock"), os.path.join(folder, f"three{i}.sock"))
            rig.sockets("three", os.path.join(folder, "three*.sock"))
            for test in (*TOP, *WAITS):
                report.result(test.__name__.replace("_", " "), "\n".join(filter(None, test(rig))))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return report.status()


if __name__ == "__main__":
    sys.exit(main())
