#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""run_iodemo.py - servers of reads and writes and their clients, some of which are killed and
started again at random: all others go on, and all data is right

usage: run_iodemo.py [--build DIR] [--io-demo PROGRAM] [--seconds S] [--seed N] [--keep FOLDER]
                     [--plain] [WAY...]

WAY is tag, am or stream (all). Each takes S seconds (4) with io.c of this folder, inline and with
a reactor, and where UCX's own program is named, by --io-demo or IO_DEMO in the environment, as
long with that (tag and am: it has no more). It is built with UCX, from test/apps/iodemo, and not
packaged. --keep leaves what the last of them wrote in
FOLDER. --plain runs io.c on the system's UCX over TCP, to see that UCX allows what it does.
"""
import argparse
import os
import random
import re
import signal
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
import run_util as u  # noqa: E402

WAYS = ["tag", "am", "stream"]
END_S = 60  # within which all have to end who are told to
GROWTH = 16 << 20  # bytes of a survivor, from a third of the time to its end


class Io:
    """The program of this folder."""
    name, ways, signal = "io", WAYS, signal.SIGTERM

    def __init__(self, exe):
        self.exe = exe

    def server(self, way, port):
        return [self.exe, "server", way, port, random.randrange(1 << 30)]

    def client(self, way, seconds, ports):
        return [self.exe, "client", way, seconds, random.randrange(1 << 30), *ports]

    def server_ended(self, rc, text, survived):
        line = re.fullmatch(r"server (\d+) (\d+) \d+ \d+\n", text)
        if rc != 0 or line is None or (survived and int(line[2]) == 0):
            return f"ended with {rc}: {text[-2000:]}"
        return ""

    def client_ended(self, rc, text, kills):
        """(why, note)"""
        line = re.fullmatch(r"client (\d+) (\d+) (\d+) (\d+) (\d+) (\d+)\n", text)
        if rc != 0 or line is None:
            return f"ended with {rc}: {text[-2000:]}", ""
        conns, requests, _, _, *at = map(int, line.groups())
        if min(at) == 0 or conns < 2 + kills // 4:
            return f"too little happened, {kills} servers killed: {text}", ""
        return "", f"{requests} requests by {conns} connections"


class IoDemo:
    """UCX's."""
    name, ways, signal = "io_demo", ["tag", "am"], signal.SIGINT

    def __init__(self, exe, library):
        self.exe, self.library = exe, library

    def common(self, way):
        return [self.exe, "-q", "-d", "1:400000", "-o", "read,write", *(["-A"] if way == "am" else [])]

    def server(self, way, port):
        return [*self.common(way), "-p", port]

    def client(self, way, seconds, ports):
        return [*self.common(way), "-i", "0", "-l", f"{seconds}s", "-c", "inf", "-y", "0.1s", "-n", "5s",
                *[f"127.0.0.1:{p}" for p in ports]]

    def told(self, text):
        path = re.search(r"UCX library path: (.*)", text)
        if path is None or os.path.realpath(path[1]) != self.library:
            return f"runs on {path and path[1]}, not on {self.library}\n{text[-2000:]}"
        bad = [t for t in text.splitlines() if re.search(r"Assertion|corrupt|ERROR.*valid", t)]
        return "\n".join(bad)

    def server_ended(self, rc, text, _survived):
        return self.told(text) or ("" if rc == 0 else f"ended with {rc}: {text[-2000:]}")

    def client_ended(self, rc, text, kills):
        why = self.told(text)
        if not why and (rc != 0 or "Client exit with status" not in text):
            why = f"ended with {rc}: {text[-2000:]}"
        conns = len(re.findall("created new connection", text))
        ios = sum(map(int, re.findall(r"MBs .*?total:(\d+)", text)))
        if not why and (ios == 0 or conns < 2 + kills // 4):
            why = f"too little happened, {kills} servers killed: {ios} requests, {conns} connections\n{text[-2000:]}"
        return why, f"{ios} requests by {conns} connections"


class Scene:
    """Two servers and three clients; the last of each are shot again and again."""

    def __init__(self, args, prefix, program, way, what, env):
        self.prefix, self.program, self.way, self.what, self.env = prefix, program, way, what, env
        self.seconds, self.keep = args.seconds, args.keep
        self.ports = [u.free_port(), u.free_port()]
        self.outs, self.all = {}, {}
        self.kills = {"server": 0, "client": 0}

    def start(self, kind, i):
        p, way = self.program, self.way
        argv = p.server(way, self.ports[i]) if kind == "server" else \
            p.client(way, self.seconds, self.ports)
        key = (kind, i)
        if key in self.outs:
            self.outs[key].close()
        self.outs[key] = tempfile.TemporaryFile("w+") if self.keep is None else \
            open(os.path.join(self.keep, f"{p.name}.{way}.{self.what}.{kind}.{i}"), "w+", encoding="utf-8")
        self.all[key] = u.start([*self.prefix, *argv], self.env, stdout=self.outs[key], stderr=self.outs[key])

    def text(self, key):
        self.outs[key].seek(0)
        return self.outs[key].read()

    def of(self, kind):
        return [k for k in self.all if k[0] == kind]

    def memory(self, key):
        return u.private_memory(self.all[key])

    def shoot(self, key):
        u.kill_family(self.all[key])
        self.all[key].wait()
        self.kills[key[0]] += 1

    def died(self):
        """Who ended without being killed; a client may before its time is over only by an error."""
        return "\n".join(f"{k[0]} {k[1]} ended with {p.returncode} of itself: {self.text(k)[-3000:]}"
                         for k, p in self.all.items() if p.poll() is not None)

    def await_server(self, i):
        """What is wrong, or '': it listens, or has ended, which died() tells."""
        end = time.monotonic() + END_S
        while not u.listening(self.ports[i]) and self.all[("server", i)].poll() is None:
            if time.monotonic() > end:
                return f"server {i} does not listen"
            time.sleep(0.01)
        return ""

    def play(self):
        """What is wrong while it lasts, or ''."""
        for i in (0, 1):
            self.start("server", i)
        # io_demo gives UCP no turn while it has no connection at all: one server is always there.
        why = self.await_server(0)
        if why:
            return why
        for i in (0, 1, 2):
            self.start("client", i)
        begin = time.monotonic()
        # Until the clients that stay are about to end.
        end, early = begin + self.seconds * 0.85, None
        while True:
            time.sleep(0.1 + random.random() * 0.5)
            if time.monotonic() >= end:
                break
            why = self.died()
            if why:
                return why
            if early is None and time.monotonic() > begin + self.seconds / 3:
                early = self.memory(("server", 0))
            key = random.choice([("server", 1), ("client", 2)])
            self.shoot(key)
            time.sleep(random.random() * 0.1)
            self.start(*key)
        growth = self.memory(("server", 0)) - (early or 0)
        if early and growth > GROWTH:
            return f"the server has grown by {growth >> 10} KiB"
        return ""

    def end(self):
        """All end: the clients by their time, the killed one's, which began last, by a kill."""
        notes = []
        self.shoot(("client", 2))
        for i in (0, 1):
            key = ("client", i)
            try:
                u.wait(self.all[key], self.seconds + END_S)
            except Exception:  # noqa: BLE001: the deadline
                return f"client {i} has not ended: {self.text(key)[-2000:]}", ""
            why, note = self.program.client_ended(self.all[key].returncode, self.text(key), self.kills["server"])
            if why:
                return f"client {i}: {why}", ""
            notes.append(note)
        for i in (0, 1):
            key = ("server", i)
            # One that was started just now has no handler of the signal yet.
            why = self.await_server(i)
            if why:
                return why, ""
            for pid in u.descendants(self.all[key].pid):
                os.kill(pid, self.program.signal)
            try:
                u.wait(self.all[key], END_S)
            except Exception:  # noqa: BLE001
                return f"server {i} has not ended: {self.text(key)[-2000:]}", ""
            why = self.program.server_ended(self.all[key].returncode, self.text(key), i == 0)
            if why:
                return f"server {i}: {why}", ""
        return "", "; ".join(n for n in notes if n)

    def run(self):
        """(why, note)"""
        begin = time.monotonic()
        try:
            why, note = self.play(), ""
            if not why:
                why, note = self.end()
        finally:
            for p in self.all.values():
                if p.poll() is None:
                    u.kill_family(p)
                p.wait()
        kills = f"{self.kills['server']} servers and {self.kills['client']} clients killed"
        return why and f"after {time.monotonic() - begin:.0f} s: {why}", f"{kills}; {note}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.join(HERE, "..", "..", "build"))
    parser.add_argument("--io-demo", default=os.environ.get("IO_DEMO", ""))
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    parser.add_argument("--keep", metavar="FOLDER")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("ways", nargs="*", choices=[[], *WAYS])
    args = parser.parse_args()
    build = os.path.abspath(args.build)
    report = u.Report()
    print(f"# seed {args.seed}", flush=True)
    random.seed(args.seed)
    with tempfile.TemporaryDirectory(prefix="pollux-io-") as folder:
        exe = os.path.join(folder, "io")
        flags = [] if args.plain else ["-I" + os.path.join(HERE, "..", "..", "include")]
        why = u.compile_c(["cc", "-Wall", "-Wextra"], [os.path.join(HERE, "io.c")], exe, *flags, "-lucp", "-lucs")
        if why:
            report.fail("io compiles", why)
            return report.status()
        programs = [Io(exe)]
        if args.io_demo and not args.plain:
            library = os.path.realpath(os.path.join(build, "dropin", "libucp.so.0"))
            programs.append(IoDemo(os.path.abspath(args.io_demo), library))
        prefix = [] if args.plain else [os.path.join(build, "pollux-run")]
        last = (os.sysconf("SC_NPROCESSORS_ONLN") or 1) - 1
        envs = [("inline", {}), ("reactor", {"PLX_REACTOR": f"lcore:{last}"})]
        if args.plain:
            envs = [("plain", {
                "UCX_TLS": "tcp", "UCX_CM_REUSEADDR": "y", "UCX_LOG_LEVEL": "fatal", "IO_CAREFUL": "y"})]
        for program in programs:
            for way in [w for w in args.ways or WAYS if w in program.ways]:
                for what, env in envs:
                    why, note = Scene(args, prefix, program, way, what, env).run()
                    report.result(f"{program.name} {way}, {what}: nobody dies but who is killed", why, note)
    if not args.io_demo and not args.plain:
        report.skip("io_demo", "UCX's program is not given: --io-demo PROGRAM or IO_DEMO")
    return report.status()


if __name__ == "__main__":
    sys.exit(main())
