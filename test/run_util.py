# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""run_util.py - what the runners of multi-process tests share: commands with a
deadline whose whole family is killed, results as lines, traces left behind"""
import itertools
import os
import random
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

SKIP = 77


class Report:
    """Prints one line a result; the last word on the exit status."""

    def __init__(self):
        self.n = 0
        self.failed = 0
        self.passed = 0

    def ok(self, name, note=""):
        self.n += 1
        self.passed += 1
        print(f"ok {self.n} - {name}{' (' + note + ')' if note else ''}", flush=True)

    def fail(self, name, why):
        self.n += 1
        self.failed += 1
        print(f"not ok {self.n} - {name}", flush=True)
        for line in str(why).rstrip().splitlines()[-40:]:
            print(f"#   {line}", flush=True)

    def result(self, name, why, note=""):
        """Failed if there is anything wrong."""
        if why:
            self.fail(name, why)
        else:
            self.ok(name, note)

    def skip(self, name, why):
        self.n += 1
        print(f"ok {self.n} - {name} # SKIP {why}", flush=True)

    def status(self):
        print(f"1..{self.n}", flush=True)
        if self.failed:
            return 1
        return 0 if self.passed else SKIP


def run_tests(tests, *args):
    """Call each with args; it yields what is wrong. @return the exit status"""
    report = Report()
    for test in tests:
        report.result(test.__name__, "\n".join(test(*args)))
    return report.status()


def run_tests_in_folders(tests, prefix):
    """The same; each test gets an empty folder of its own."""
    report = Report()
    for test in tests:
        with tempfile.TemporaryDirectory(prefix=prefix) as folder:
            report.result(test.__name__, "\n".join(test(folder)))
    return report.status()


def skip_all(why):
    print(why)
    sys.exit(SKIP)


def descendants(pid):
    """pid and all below it, the youngest last."""
    children = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="ascii", errors="replace") as f:
                parent = int(f.read().rsplit(")", 1)[1].split()[1])
        except (OSError, IndexError, ValueError):
            continue
        children.setdefault(parent, []).append(int(entry))
    found, i = [pid], 0
    while i < len(found):
        found += children.get(found[i], [])
        i += 1
    return found


def private_memory(process):
    """Resident bytes of a process and those it began, without what they share with their peers."""
    total = 0
    for pid in descendants(process.pid):
        try:
            with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
                total += sum(int(t.split()[1]) << 10 for t in f if t.startswith("Private_"))
        except OSError:
            pass
    return total


def kill_family(process):
    for pid in descendants(process.pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except OSError:
        pass


def start(argv, env=None, **kw):
    full = dict(os.environ)
    full.update(env or {})
    return subprocess.Popen([str(a) for a in argv], env=full, start_new_session=True,
                            stdin=kw.pop("stdin", subprocess.DEVNULL), **kw)


def wait(process, timeout):
    """process.wait(timeout), without its naps of up to 50 ms between two looks."""
    if process.poll() is None:
        fd = os.pidfd_open(process.pid)
        try:
            select.select([fd], [], [], timeout)
        finally:
            os.close(fd)
    return process.wait(0)


class Result:
    def __init__(self, rc, out, err, seconds, timed_out):
        self.rc, self.out, self.err = rc, out, err
        self.seconds, self.timed_out = seconds, timed_out

    def why(self):
        """What is wrong, or an empty text. A line on stderr is a failure."""
        if self.timed_out:
            return f"no end after {self.seconds:.0f} s\n{self.out}{self.err}"
        if self.rc != 0:
            return f"exit status {self.rc}\n{self.out}{self.err}"
        if self.err.strip():
            return f"wrote to stderr:\n{self.err}"
        return ""


def run(argv, timeout, env=None, **kw):
    """Run to its end or its deadline; then the whole family is killed."""
    begin = time.monotonic()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        p = start(argv, env, stdout=out, stderr=err, **kw)
        timed_out = False
        try:
            wait(p, timeout)
        except subprocess.TimeoutExpired:
            timed_out = True
            kill_family(p)
            p.wait()
        except BaseException:
            kill_family(p)
            raise
        texts = []
        for f in (out, err):
            f.seek(0)
            texts.append(f.read())
    return Result(p.returncode, texts[0], texts[1], time.monotonic() - begin, timed_out)


def compile_c(compiler, sources, output, *flags):
    """Compile when a source is younger; returns an error text or ''."""
    newest = max(os.path.getmtime(s) for s in sources)
    if os.path.exists(output) and os.path.getmtime(output) > newest:
        return ""
    cmd = [*compiler, "-std=gnu11", "-O2", "-g", *[s for s in sources if s.endswith(".c")], "-o", output,
           *flags]
    p = subprocess.run(cmd, capture_output=True, text=True, check=False)
    return "" if p.returncode == 0 else p.stdout + p.stderr


def huge_free():
    for line in open("/proc/meminfo", encoding="ascii"):
        if line.startswith("HugePages_Free:"):
            return int(line.split()[1])
    return 0


def mem_available():
    for line in open("/proc/meminfo", encoding="ascii"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 0


def hugetlbfs_files():
    found = []
    for line in open("/proc/mounts", encoding="utf-8"):
        fields = line.split()
        if fields[2] == "hugetlbfs":
            for root, _, names in os.walk(fields[1]):
                found += [os.path.join(root, n) for n in names]
    return found


def huge_held():
    """Who has huge pages mapped: the machine's count is of all, also of what runs beside a test."""
    held = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status", encoding="utf-8"))
        except OSError:
            continue
        kib = int(fields.get("HugetlbPages", "0").split()[0])
        if kib:
            held.append(f"{fields['Name'].strip()} ({pid}) {kib} KiB")
    return ", ".join(held) or "nobody"


class Traces:
    """What is there before; left() tells what a test left behind."""

    def __init__(self):
        self.shm = set(os.listdir("/dev/shm"))
        self.files = set(hugetlbfs_files())
        self.huge = huge_free()

    def left(self, patience=10):
        end = time.monotonic() + patience
        while True:
            new = sorted(set(os.listdir("/dev/shm")) - self.shm) + \
                sorted(set(hugetlbfs_files()) - self.files)
            missing = self.huge - huge_free()
            if not new and missing <= 0:
                return ""
            if time.monotonic() > end:
                return (f"left behind: files {new}, {max(missing, 0)} huge pages; "
                        f"now mapped by {huge_held()}")
            time.sleep(0.2)


def need(*programs):
    for p in programs:
        if shutil.which(p) is None:
            skip_all(f"{p} is not installed")


PORTS = range(15000, 32000)  # below those that the kernel gives to who names none
next_port = itertools.cycle(random.sample(PORTS, len(PORTS)))


def free_port():
    """One that nobody uses, is given to nobody else here, and that no connection gets by chance."""
    while True:
        port = next(next_port)
        with socket.socket() as s:
            try:
                s.bind(("", port))
            except OSError:
                continue
        return port


def listening(port, pid="self"):
    """Whether somebody listens there, in the network of a process."""
    want = f":{port:04X}"
    for table in (f"/proc/{pid}/net/tcp", f"/proc/{pid}/net/tcp6"):
        try:
            for line in open(table, encoding="ascii"):
                f = line.split()
                if len(f) > 3 and f[1].endswith(want) and f[3] == "0A":
                    return True
        except OSError:
            pass
    return False
