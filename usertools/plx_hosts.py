# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""plx_hosts.py - a tool runs itself on other hosts, and hears answers as lines of JSON

Design notes: the launcher is called as ssh is, and our end of its standard input stays open as long as
answers are wanted. At its end the tool over there ends itself, so nothing is left behind, however this
one ends. One thread starts, reads and ends all launchers and never waits for one of them. An answer is
input: bounded, valid JSON, without control characters, and of a known shape before anything uses it.
"""

import argparse
import json
import math
import os
import re
import selectors
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time

import plx_job

HOSTS_MAX = 1024
LATE_S = 15.0          # an answer of a host, unless the option says otherwise
AGAIN_S = 10.0         # between the end of one attempt and the next
TERM_S = 1.0           # from SIGTERM to SIGKILL
NOISE_MAX = 64 << 10   # bytes that a login prints before the first answer
TEXT_MAX = 4096        # characters of one text
NUMBER_MAX = 1 << 64
READ_LEN = 1 << 16
SSH = "ssh"
OPTIONS = ["-T", "-oBatchMode=yes", "-oConnectTimeout=10"]  # each is one word: other launchers skip them
MARK = b'{"feed":'     # the beginning of an answer
ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
NAME = re.compile(r"[A-Za-z0-9_\[][A-Za-z0-9_.@:%\[\]-]*")


# --- names of hosts ---


def read_names(path):
    """The first word of each line, as in a hostfile of mpirun."""
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            lines = [line.partition("#")[0].split() for line in f]
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{path}: {error.strerror}") from error
    return [words[0] for words in lines if words]


def names(text):
    """The hosts of --hosts; slots behind a colon, as mpirun takes them, do not matter here."""
    given = read_names(text[1:]) if text.startswith("@") else [word for word in text.split(",") if word]
    found = list(dict.fromkeys(re.sub(r"^([^:]+):\d+$", r"\1", name) for name in given))
    for name in found:
        if not NAME.fullmatch(name):
            raise argparse.ArgumentTypeError(f"{name!r} is not the name of a host")
    if not 1 <= len(found) <= HOSTS_MAX:
        raise argparse.ArgumentTypeError(f"takes 1 to {HOSTS_MAX} hosts, and has {len(found)}")
    return found


def launcher(text):
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if not words:
        raise argparse.ArgumentTypeError("takes a command")
    return words


def add_options(parser):
    parser.add_argument("-H", "--hosts", type=names, metavar="HOST[,HOST...]|@FILE",
                        help="ask the processes of these hosts, or of those that a hostfile lists")
    parser.add_argument("--launcher", type=launcher, default=[SSH], metavar="COMMAND",
                        help="command that reaches a host, called as ssh is (default: ssh)")
    parser.add_argument("--remote", metavar="DIR", help="folder of this tool on these hosts (default: as here)")
    parser.add_argument("--answer-timeout", type=plx_job.seconds, default=LATE_S, metavar="SECONDS",
                        help=f"how late an answer of a host may be (default: {LATE_S:g})")
    parser.add_argument("--feed", action="store_true", help=argparse.SUPPRESS)


def command(args, options):
    """The command for a host's shell: this tool, on the same sockets."""
    here = os.path.abspath(sys.argv[0])
    tool = os.path.join(args.remote or os.path.dirname(here), os.path.basename(here))
    patterns = args.socket or list(filter(None, [os.environ.get("PLX_RPC_SOCKET")]))
    return shlex.join([tool, *options, *(word for p in patterns for word in ("-s", os.path.abspath(p)))])


def argv_of(name, launch, text):
    """The command that reaches a host; this one needs no ssh."""
    own = socket.gethostname()
    if launch == [SSH] and name in ("localhost", own, own.partition(".")[0]):
        return ["sh", "-c", text]
    return [*launch, *OPTIONS, name, text]


# --- answers ---


def clean(text):
    """A text that does nothing to a terminal."""
    text = text[:TEXT_MAX]
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def cleaned(value):
    """The same JSON with clean texts; ValueError: a number is out of range."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [cleaned(item) for item in value]
    if isinstance(value, dict):
        return {clean(key): cleaned(item) for key, item in value.items()}
    if isinstance(value, (int, float)) and not abs(value) <= NUMBER_MAX:
        raise ValueError("a number is out of range")
    return value


def fits(value, shape):
    """A shape is a type or several, a function, [of each item], or {key: shape}, where "key?" may be missing."""
    if isinstance(shape, dict):
        return isinstance(value, dict) and all(
            fits(value[key.rstrip("?")], item) if key.rstrip("?") in value else key.endswith("?")
            for key, item in shape.items())
    if isinstance(shape, list):
        return isinstance(value, list) and all(fits(item, shape[0]) for item in value)
    if not isinstance(shape, (type, tuple)):
        return shape(value)
    return isinstance(value, shape) and (shape is bool or not isinstance(value, bool))


def parse(line, feed, shape):
    """The answer of a line; ValueError, in words."""
    try:
        answer = cleaned(json.loads(line))
    except (ValueError, RecursionError) as error:
        raise ValueError("its answer is not valid JSON") from error
    if not isinstance(answer, dict) or answer.get("feed") != feed:
        raise ValueError("another version of this tool answers there")
    if not fits(answer, shape):
        raise ValueError("its answer cannot be read: it has another form")
    return answer


def feed_line(feed, **what):
    return json.dumps({"feed": feed, **what})


def where(host):
    """Of a process, in JSON."""
    return {"host": host} if host else {}


def end_with_input():
    """For the tool on another host: end with the standard input, which its starter holds open."""
    def wait():
        while os.read(0, READ_LEN):
            pass
        os._exit(0)
    threading.Thread(target=wait, daemon=True).start()


# --- the hosts ---


class Host:
    """A host: its launcher, and its last answer."""

    def __init__(self, name, argv):
        self.name, self.argv = name, argv
        self.process, self.streams = None, []
        self.answer, self.why = None, None  # one of both, once it is settled
        self.given = None                   # the answer that was given out last
        self.due = 0.0                      # time of its next answer, or of the next attempt
        self.line, self.noise, self.err = bytearray(), b"", b""

    def settled(self):
        return self.answer is not None or self.why is not None

    def start(self, now, late_s):
        self.line, self.noise, self.err, self.due = bytearray(), b"", b"", now + late_s
        self.process = subprocess.Popen(self.argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, bufsize=0, start_new_session=True)
        self.streams = [self.process.stdout, self.process.stderr]

    def said(self, why=""):
        """A reason, and its last line that is no answer."""
        lines = (self.noise + b"\n" + self.err).decode(errors="replace").split("\n")
        last = next((line.strip() for line in reversed(lines) if line.strip()), "")
        return ": ".join(filter(None, [why, clean(last)[:200]]))

    def take(self, data):
        """Add data to its line; give the whole lines that are answers."""
        self.line += data
        lines = self.line.split(b"\n") if b"\n" in data else [self.line]
        self.line = lines.pop()
        for line in lines:
            if line.startswith(MARK):
                yield line
            else:
                self.noise += line + b"\n"
        if len(self.noise) > NOISE_MAX or (len(self.line) > NOISE_MAX and not self.line.startswith(MARK)):
            raise ValueError("its output is not an answer")
        if len(self.line) > plx_job.ANSWER_MAX:
            raise ValueError("its answer is too long")


class Hosts:
    """The hosts, asked within a with block. Another thread hears them: answers() and reasons() never wait."""

    def __init__(self, args, options, feed, shape, gap_s=None):
        """@param gap_s between two answers; None: each host gives only one"""
        text = command(args, options)
        self.hosts = [Host(name, argv_of(name, args.launcher, text)) for name in args.hosts]
        self.feed, self.shape, self.gap_s = feed, shape, gap_s
        self.late_s = args.answer_timeout
        self.selector, self.changed = selectors.DefaultSelector(), threading.Condition()
        self.closing, self.ending = False, []
        self.thread = threading.Thread(target=self.run, daemon=True)

    def __enter__(self):
        self.wake_r, self.wake_w = os.pipe()
        self.selector.register(self.wake_r, selectors.EVENT_READ)
        early = []
        on_ends(lambda sig, _: early.append(sig))  # none may come between the start of the thread and the try
        self.thread.start()
        try:
            on_ends(lambda sig, _: sys.exit(128 + sig))
            if early:
                sys.exit(128 + early[0])
        except SystemExit:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        on_ends(signal.SIG_IGN)  # it ends already
        self.closing = True
        os.write(self.wake_w, b"x")
        self.thread.join()

    def settle(self):
        """Wait until each host has answered, or failed; its first answer is due within late_s."""
        with self.changed:
            self.changed.wait_for(lambda: all(host.settled() for host in self.hosts))

    def news(self, limit_s):
        """Wait until each host that answers has a newer answer than the one given out; at most limit_s."""
        with self.changed:
            self.changed.wait_for(lambda: all(h.answer is None or h.answer is not h.given for h in self.hosts), limit_s)

    def answers(self):
        """(host, its newest answer) of those that answer."""
        with self.changed:
            for host in self.hosts:
                host.given = host.answer
            return [(host.name, host.answer) for host in self.hosts if host.answer is not None]

    def reasons(self):
        """{host: why it does not answer}"""
        with self.changed:
            return {host.name: host.why or "no answer yet" for host in self.hosts if host.answer is None}

    # -- the thread --

    def run(self):
        try:
            self.serve()
        finally:
            for host in self.hosts:
                self.end(host)
                self.settled(host, host.answer, host.why or "it is not asked any more")
            while self.ending:
                self.bury(time.monotonic())
                time.sleep(0.01)

    def serve(self):
        while not self.closing:
            now = time.monotonic()
            for host in self.hosts:
                if host.due <= now:
                    self.is_due(host, now)
            self.bury(now)
            ends = [host.due for host in self.hosts] + [at for _, at in self.ending]
            for key, _ in self.selector.select(min(max(min(ends) - time.monotonic(), 0), 3600)):
                if key.data is not None:
                    self.read(key.data, key.fileobj)

    def is_due(self, host, now):
        if host.process is not None:
            self.fail(host, host.said("it does not answer"))
            return
        try:
            host.start(now, self.late_s)
        except OSError as error:
            self.fail(host, f"{host.argv[0]}: {error.strerror}")
            return
        for stream in host.streams:
            self.selector.register(stream, selectors.EVENT_READ, host)

    def read(self, host, stream):
        if stream not in host.streams:
            return  # it has failed in the same round
        data = os.read(stream.fileno(), READ_LEN)
        if not data:
            self.selector.unregister(stream)
            host.streams.remove(stream)
            if not host.streams:
                self.fail(host, host.said() or "it has ended without an answer")
        elif stream is host.process.stderr:
            host.err = (host.err + data)[-TEXT_MAX:]
        else:
            self.hear(host, data)

    def hear(self, host, data):
        try:
            lines = list(host.take(data))
            answer = parse(lines[-1], self.feed, self.shape) if lines else None
        except ValueError as error:
            self.fail(host, host.said(str(error)))
            return
        if answer is None:
            return
        host.due = math.inf if self.gap_s is None else time.monotonic() + self.gap_s + self.late_s
        if self.gap_s is None:
            self.end(host)
        host.noise = b""
        self.settled(host, answer, None)

    def settled(self, host, answer, why):
        with self.changed:
            host.answer, host.why = answer, why
            self.changed.notify_all()

    def fail(self, host, why):
        self.end(host)
        host.due = time.monotonic() + AGAIN_S
        self.settled(host, None, why)

    def end(self, host):
        """End its launcher, and all that this has started, without waiting."""
        process, host.process = host.process, None
        if process is None:
            return
        for stream in host.streams:
            self.selector.unregister(stream)
        host.streams = []
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()
        kill(process, signal.SIGTERM)
        self.ending.append((process, time.monotonic() + TERM_S))

    def bury(self, now):
        """Reap those that have ended; kill those that have not ended in time."""
        left = []
        for process, at in self.ending:
            if now < at and os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                left.append((process, at))
                continue
            kill(process, signal.SIGKILL)
            process.wait()
        self.ending = left


def on_ends(handler):
    """What is ignored already stays so, as nohup wants it."""
    for sig in ENDS:
        if signal.getsignal(sig) != signal.SIG_IGN:
            signal.signal(sig, handler)


def kill(process, sig):
    """Signal its process group. It is not reaped yet, so that its id belongs to nobody else."""
    try:
        os.killpg(process.pid, sig)
    except ProcessLookupError:
        pass
