#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""commperf_test.py - commperf as a user sees it: a terminal of 80 columns, Ctrl-C, nobody to connect to

usage: commperf_test.py COMMPERF
"""
import fcntl
import json
import os
import pty
import re
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time

COLUMNS = 80
LIMIT_S = 100
commperf = os.path.abspath(sys.argv[1])
results = []


def result(name, ok, why=""):
    results.append(ok)
    print(f"{'ok' if ok else 'not ok'} {len(results)} - {name}")
    if not ok:
        print(why)
    sys.stdout.flush()


class Terminal:
    """A program on a terminal of its own, which it controls."""

    def __init__(self, *args):
        self.raw = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execv(commperf, [commperf, *args])
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
        self.end = time.monotonic() + LIMIT_S

    def read(self, until=None):
        """Take in what it prints until this pattern is there (True), or it ends (False)."""
        while until is None or not re.search(until, self.raw):
            left = self.end - time.monotonic()
            if left <= 0:
                os.kill(self.pid, signal.SIGKILL)
                self.raw += "\n[killed: no end in time]\n"
            if not select.select([self.fd], [], [], max(left, 1))[0]:
                continue
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                data = b""
            if not data:
                return False
            self.raw += data.decode(errors="replace")
        return True

    def status(self):
        self.read()
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def key(self, key):
        os.write(self.fd, key)

    def screen(self):
        """The lines that are left when all that moves the cursor is done, unbroken."""
        lines, x = [[]], 0
        for token in re.findall(r"\x1b\[K|\r|\n|[^\r\n\x1b]", self.raw):
            line = lines[-1]
            if token == "\n":
                lines.append([])
            elif token == "\r":
                x = 0
            elif token == "\x1b[K":
                del line[x:]
            else:
                line[x:x + 1] = [token]
                x += 1
        return ["".join(line) for line in lines]


def terminal_is_not_garbled():
    t = Terminal("-t", "tag_lat,tag_bw", "-s", "8:512", "-n", "300", "-r", "2")
    status = t.status()
    lines = t.screen()
    rows = [x for x in lines if re.fullmatch(r" +\d+k? +300( +[0-9.]+k?)+\+?", x)]
    other = [x for x in lines if x not in rows and x != "" and
             not re.fullmatch(r"# library .*|tag_lat, us|tag_bw, MB/s| +size +n .* raw ns", x)]
    result("a progress line is there, and no table line is garbled by it",
           status == 0 and "run 1 of 2" in t.raw and len(rows) == 14 and other == [],
           f"exit {status}, {len(rows)} rows\n{other}\n{t.raw}")


def tables_fit():
    for what in (["-t", "all", "--depth", "100"], ["-t", "cci", "--silent", "--no-copy", "-s", "8"], ["--help"],
                 ["--verify", "--mem", "mapped", "-t", "tag_lat"],
                 *([["--vs", "ucx", "-t", "tag,atomic,match", "--depth", "100", "-r", "1"]]
                   if has_ucx() else [])):
        p = subprocess.run([commperf, "-s", "8,1m", "-n", "30", "--eps", "10", *what],
                           capture_output=True, text=True, timeout=LIMIT_S, check=False)
        wide = [x for x in p.stdout.splitlines() if len(x) > COLUMNS]
        result(f"the output of {' '.join(what)} fits {COLUMNS} columns",
               p.returncode == 0 and len(p.stdout) > 100 and wide == [],
               "\n".join([f"exit {p.returncode}", *wide, p.stderr]))


def has_ucx():
    p = subprocess.run("PATH=$PATH:/sbin:/usr/sbin ldconfig -p", shell=True, capture_output=True,
                       text=True, check=False)
    return "libucp.so.0 " in p.stdout


def ctrl_c_keeps(name, first, *args):
    """Ctrl-C behind the first row: the files have that row, the exit status says why."""
    with tempfile.TemporaryDirectory() as d:
        csv, js, svg = (os.path.join(d, x) for x in ("a.csv", "a.json", "a.svg"))
        t = Terminal(*args, "--csv", csv, "--json", js, "--plot", svg)
        shown = t.read(first)
        t.key(b"\x03")
        start = time.monotonic()
        status = t.status()
        took = time.monotonic() - start
        try:
            with open(csv, encoding="utf-8") as f:
                rows = len(f.readlines()) - 1
            with open(js, encoding="utf-8") as f:
                same = len(json.load(f)["rows"]) == rows
            with open(svg, encoding="utf-8") as f:
                drawn = "</svg>" in f.read()
        except (OSError, ValueError) as e:
            rows, same, drawn = 0, False, e
        result(f"Ctrl-C keeps what was measured: {name}",
               shown and status == 130 and took < 10 and rows >= 1 and same and drawn is True,
               f"exit {status} after {took:.1f} s, {rows} rows, {same}, {drawn}\n{t.raw}")


def ctrl_c():
    row = r"\n +8 +\d+ .*\n"
    many = ["-t", "tag_lat", "-s", "8,64m,128m,256m", "-n", "20000", "--timeout", "90"]
    ctrl_c_keeps("two sides", row, *many)
    port = free_port()
    with subprocess.Popen([commperf, "--server", f"127.0.0.1:{port}"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True) as server:
        server.stderr.readline()  # waiting on
        ctrl_c_keeps("a client", row, "--connect", f"127.0.0.1:{port}", *many)
        try:
            code = server.wait(timeout=20)
        except subprocess.TimeoutExpired:
            server.kill()
            code = None
        result("its server ends", code == 1, f"exit {code}")
    if has_ucx():
        ctrl_c_keeps("--vs ucx", r"\n8 +[0-9.]+ .*\n", "--vs", "ucx", "-r", "1", "-t", "tag_lat",
                     "-s", "8,256m", "-n", "3000")
    t = Terminal("-t", "tag_lat", "-s", "256m", "-n", "20000")
    t.read("run 1 of 1")
    t.key(b"\x03")
    result("Ctrl-C before any row", t.status() == 130, t.raw)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def nobody_is_there():
    start = time.monotonic()
    p = subprocess.run([commperf, "--connect", f"localhost:{free_port()}"], capture_output=True,
                       text=True, timeout=LIMIT_S, check=False)
    took = time.monotonic() - start
    result("to connect to nobody fails at once",
           p.returncode == 1 and took < 10 and "Connection refused: no commperf --server" in p.stderr,
           f"exit {p.returncode} after {took:.1f} s\n{p.stderr}")


def files_are_looked_at_first():
    start = time.monotonic()
    p = subprocess.run([commperf, "-s", "256m", "-n", "20000", "--csv", "/nonexistent/x"],
                       capture_output=True, text=True, timeout=LIMIT_S, check=False)
    took = time.monotonic() - start
    result("a file that cannot be written is said at once",
           p.returncode == 2 and took < 10 and "/nonexistent/x: No such file" in p.stderr,
           f"exit {p.returncode} after {took:.1f} s\n{p.stderr}")


def cores_that_are_not_there():
    n = os.sysconf("SC_NPROCESSORS_CONF")
    p = subprocess.run([commperf, "-l", f"0,{n}", "-t", "tag_lat", "-s", "8", "-n", "10"],
                       capture_output=True, text=True, timeout=LIMIT_S, check=False)
    result("a core that is not there is told with the number of those that are",
           p.returncode != 0 and f"cannot run on core {n}: Invalid argument (of {n}, from 0 on)" in p.stderr, p.stderr)


def names():
    p = subprocess.run([commperf, "-t", "put,nothing"], capture_output=True, text=True,
                       timeout=LIMIT_S, check=False)
    result("a test that is not there is refused",
           p.returncode == 2 and 'no such test: "nothing"' in p.stderr, p.stderr)


def load():
    """Every cell has a figure of each way, in 80 columns and in its time."""
    with tempfile.TemporaryDirectory() as d:
        csv = os.path.join(d, "a.csv")
        start = time.monotonic()
        p = subprocess.run([commperf, "-t", "load", "--ranks", "2", "--busy", "0,1", "-s", "8,4k",
                            "--rounds", "2", "--time-limit", "0.05", "--csv", csv],
                           capture_output=True, text=True, timeout=200, check=False)
        took = time.monotonic() - start
        rows = []
        if os.path.exists(csv):
            with open(csv, encoding="utf-8") as f:
                rows = [x.strip().split(",") for x in f]
        ways = ["ours", "spin", "yield", "/own"] + (["ucx", "/ucx"] if has_ucx() else [])
        missing = [r for r in rows[1:] for w in ways if float(r[rows[0].index(w)]) <= 0]
        labels = {r[1] for r in rows[1:]}
        wide = [x for x in p.stdout.splitlines() if len(x) > COLUMNS]
        ok = (p.returncode == 0 and len(rows) == 1 + 2 * 2 * 2 * 2 and missing == [] and wide == [] and
              labels == {f"{load} {how}" for load in ("2r 0b", "2r 1b")
                         for how in ("inline", "reactor")})
        result("load has every cell", ok,
               f"exit {p.returncode}, {took:.0f} s, {missing}\n{p.stdout}\n{p.stderr}")
    # A start of many beside others may take longer than load waits: it says so, and goes on.
    p = subprocess.run([commperf, "-t", "load", "--ranks", "4", "-s", "8", "--rounds", "1",
                        "--time-limit", "0.05"], capture_output=True, text=True, timeout=400, check=False)
    shown = re.findall(r"^4r 0b (inline|reactor) +8 +1( +[0-9.]+k?){6}$", p.stdout, re.M)
    result("load has pairs that run at once",
           p.returncode == 0 and (len(shown) == 4 or shown and "load: 4 ranks" in p.stderr),
           f"exit {p.returncode}\n{p.stdout}\n{p.stderr}")
    p = subprocess.run([commperf, "-t", "load", "--ranks", "3"], capture_output=True, text=True,
                       timeout=LIMIT_S, check=False)
    result("ranks that are no pairs are refused", p.returncode == 2 and "ranks form pairs" in p.stderr,
           p.stderr)
    p = subprocess.run([commperf, "-t", "load", "--ucx", "/nonexistent"], capture_output=True,
                       text=True, timeout=LIMIT_S, check=False)
    result("a UCX that is not there is refused",
           p.returncode == 1 and "not found under /nonexistent" in p.stderr, p.stderr)
    row = "load: round 1 of 9, 2 ranks, 1 busy"
    t = Terminal("-t", "load", "--ranks", "2", "--busy", "0,1", "-s", "8", "--rounds", "9",
                 "--time-limit", "0.05")
    shown = t.read(row)
    t.key(b"\x03")
    status = t.status()
    result("Ctrl-C keeps the cells that were measured",
           shown and status == 130 and "2r 0b inline" in t.raw, f"exit {status}\n{t.raw}")


terminal_is_not_garbled()
tables_fit()
load()
ctrl_c()
nobody_is_there()
files_are_looked_at_first()
cores_that_are_not_there()
names()
print(f"1..{len(results)}")
sys.exit(0 if all(results) else 1)
