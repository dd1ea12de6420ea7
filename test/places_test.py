#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""places_test.py - two processes in each kind of place where programs run: namespaces, sandboxes, limits,
without huge pages, with clocks that jump; what works there, and at what speed

usage: places_test.py [--build DIR] [PLACE...]
       places_test.py [--build DIR] --measure [--rounds N] [--cores A,B] [PLACE...]

In each place one side of commperf runs in each of its two halves: with every message verified (tags, active
messages, puts and gets, both directions, sleepers; 8 bytes to 1 MiB, in private memory and in memory of the library),
and then until the counters tell whether the kernel copies between the two.

--measure compares the speed of each place with the plain one, which runs beside it, and prints a table.
"""
import argparse
import collections
import concurrent.futures
import csv
import ctypes
import fcntl
import io
import json
import os
import select
import shutil
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

import run_util as u

HERE = os.path.dirname(os.path.abspath(__file__))
DEADLINE_S = 120
AT_A_TIME = 3
NOBODY = 65534
FOLDER, MEET = "FOLDER", "MEET"  # replaced by the folder with the programs, and by one that both sides share

COPIES = "the kernel copies"
REFUSED = "in pieces"
UNREACHABLE = "another network namespace"

# --- what a place is made of: commands in front of the program ---


def setting(name, value):
    return ["env", f"PLX_{name}={value}"]


def user(uid):
    return ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]


def script(text):
    return ["sh", "-c", f'{text} && exec "$@"', "sh"]


def preload(name, *env):
    return ["env", f"LD_PRELOAD={FOLDER}/{name}.so", *env]


def filtered(way):
    return [f"{FOLDER}/place", way]


# Who becomes another user is asked again.
WITH_US = ["setpriv", "--pdeathsig=KILL"]
BY_FOLDER = setting("SHM_DIR", MEET)
PID_NS = ["unshare", "--fork", "--kill-child", "--pid", "--mount-proc"]
USER_NS = ["unshare", "--user", "--map-root-user"]
ALL_NS = [*PID_NS, "--net", "--ipc", "--uts", "--cgroup"]
MOUNTS = ["unshare", "--mount"]
LATER = ["unshare", "--fork", "--kill-child", "--time", "--monotonic", "1000000", "--boottime", "1000000"]
# What container runtimes leave to root.
CAPS = ["setpriv", "--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all,+chown,+dac_override,+fowner,"
        "+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+net_raw,+sys_chroot,+mknod,+audit_write,+setfcap"]
# The folder with the programs stays where it is, whatever is mounted over the one that it is in.
BARE = script(f"mount -t tmpfs -o size=64m,mode=1777 tmpfs /dev/shm && mount --bind {FOLDER} /mnt && "
              f"mount -t tmpfs -o mode=1777 tmpfs /tmp && mkdir -p {FOLDER} && mount --move /mnt {FOLDER} && "
              "mount -o remount,bind,ro /")
SANDBOX = [*MOUNTS, *BARE, *CAPS, *filtered("container")]
STRICT = [*MOUNTS, *BARE, *CAPS, *filtered("strict")]
CONTAINER = [*BY_FOLDER, *ALL_NS, *BARE, *CAPS, *filtered("container")]
ROOTLESS = [*BY_FOLDER, *user(NOBODY), *USER_NS, *ALL_NS[1:], *filtered("container")]
NO_PROC = [*MOUNTS, *script("umount -l /proc")]
PIDS_ONLY = [*MOUNTS, *script("mount -t proc -o subset=pid proc /proc")]
NO_SHM = [*MOUNTS, *script("mount -t tmpfs -o ro,size=4k tmpfs /dev/shm")]
NO_HUGE = preload("scarce", "SCARCE_PIECES=0")
FEW_HUGE = preload("scarce", "SCARCE_PIECES=1")
NO_COPIES = filtered("copies")

# Its name; where the two processes are; what stands in front of each; how large private messages come.
Place = collections.namedtuple("Place", "name where a b large")
PLACES = [Place(*p) for p in [
    ("plain", "on the host", [], [], COPIES),
    ("pid", "in two pid namespaces", PID_NS, PID_NS, REFUSED),
    ("pid-one", "on the host and in a pid namespace", [], PID_NS, REFUSED),
    ("user", "in two user namespaces", USER_NS, USER_NS, REFUSED),
    ("user-one", "on the host and in a user namespace", [], USER_NS, REFUSED),
    ("pod", "in two containers of a pod that shares pids", SANDBOX, SANDBOX, COPIES),
    ("strict", "in a sandbox that refuses copies", STRICT, STRICT, REFUSED),
    ("containers", "in two containers with a folder", CONTAINER, CONTAINER, REFUSED),
    ("container-one", "on the host and in a container, with a folder", BY_FOLDER, CONTAINER, REFUSED),
    ("rootless", "in two rootless containers with a folder", ROOTLESS, ROOTLESS, REFUSED),
    ("apart", "in two containers without a folder", ALL_NS, ALL_NS, UNREACHABLE),
    ("yama", "where no process may look into another", NO_COPIES, NO_COPIES, REFUSED),
    ("yama-one", "where one may not look into the other", [], NO_COPIES, REFUSED),
    ("no-huge", "without huge pages", NO_HUGE, NO_HUGE, COPIES),
    ("few-huge", "where huge pages run out", FEW_HUGE, FEW_HUGE, COPIES),
    ("huge-one", "where one side has no huge pages", [], NO_HUGE, COPIES),
    ("nofile", "with 64 descriptors", ["prlimit", "--nofile=64"], ["prlimit", "--nofile=64"], COPIES),
    ("user-plain", "as an ordinary user", user(NOBODY), user(NOBODY), COPIES),
    ("memlock", "as a user with 64 KiB of locked memory", ["prlimit", "--memlock=65536", *user(NOBODY)],
     ["prlimit", "--memlock=65536", *user(NOBODY)], COPIES),
    ("no-proc", "without /proc", NO_PROC, NO_PROC, COPIES),
    ("pids-proc", "with a /proc of pids only", PIDS_ONLY, PIDS_ONLY, COPIES),
    ("no-shm", "with a /dev/shm that takes nothing", NO_SHM, NO_SHM, COPIES),
    ("old-kernel", "without membarrier and pidfds", filtered("alone"), filtered("alone"), COPIES),
    ("day", "where the time of day jumps", preload("jumps"), preload("jumps"), COPIES),
    ("time", "on the host and in a time namespace", [], LATER, COPIES),
]]
HUGE_ENOUGH = 64  # free pages, so that those who may have some do


# commperf's options: what verifies every message, and what goes on until it is stopped.
VERIFY = ["--verify", "-w", "1", "-n", "8", "-s", "8,4k,1m"]
VERIFIED = [["-t", "tag_lat,tag_bidir,am_lat,put_bw,get_bw,sleep_lat", "--mem", "private", *VERIFY],
            ["-t", "tag_bidir,am_bw,put_lat,get_lat", "--mem", "mapped", *VERIFY]]
ENDLESS = ["-t", "tag_bw", "-s", "1m", "--mem", "private", "-n", "10m", "-w", "1"]


# --- a way between two network namespaces, for what commperf's sides agree on ---


def in_net_of(pid, what):
    """What a function returns that a thread calls in the network namespace of a process."""
    got = []

    def work():
        try:
            with open(f"/proc/{pid}/ns/net", encoding="ascii") as ns:
                if ctypes.CDLL(None, use_errno=True).setns(ns.fileno(), 0x40000000) != 0:
                    raise OSError(ctypes.get_errno(), "setns")
            with socket.socket() as s:  # the loopback device is down at first: SIOCGIFFLAGS, SIOCSIFFLAGS
                name = struct.pack("16sh14x", b"lo", 0)
                flags = struct.unpack("16sh14x", fcntl.ioctl(s, 0x8913, name))[1]
                fcntl.ioctl(s, 0x8914, struct.pack("16sh14x", b"lo", flags | 1))
            got.append(what())
        except OSError as e:
            got.append(e)
    t = threading.Thread(target=work)
    t.start()
    t.join()
    if isinstance(got[0], OSError):
        raise got[0]
    return got[0]


def listener(port):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("127.0.0.1", port))
    s.listen(4)
    return s


def relay_one(a, b):
    with a, b:
        while True:
            for s in select.select([a, b], [], [])[0]:
                data = s.recv(1 << 16)
                if not data:
                    return
                (b if s is a else a).sendall(data)


def relay(pid_a, pid_b, port):
    """Who connects to the port at a reaches the one at b, once."""
    s = in_net_of(pid_a, lambda: listener(port))

    def work():
        try:
            # Two programs that poll have all cores, and wait for this thread.
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), -10)
            with s:
                a = s.accept()[0]
            relay_one(a, in_net_of(pid_b, lambda: socket.create_connection(("127.0.0.1", port))))
        except OSError:
            pass  # a side has ended, and the other says so
    threading.Thread(target=work, daemon=True).start()


# --- two processes ---


class Side:
    """A program in its half of a place. It waits for a line before it begins."""

    def __init__(self, ground, name, how, argv, env=None):
        self.out, self.err = (tempfile.TemporaryFile("w+") for _ in range(2))
        self.rpc = os.path.join(ground.meet, name)
        full = dict(os.environ, LD_LIBRARY_PATH=ground.folder, HOME="/", PLX_RPC_SOCKET=self.rpc, **(env or {}))
        argv = [*WITH_US, *how, *WITH_US, *script("read -r line"), *argv]
        argv = [x.replace(FOLDER, ground.folder).replace(MEET, ground.meet) for x in argv]
        self.user = next((x.split("=")[1] for x in how if x.startswith("--reuid=")), None)
        self.p = subprocess.Popen(argv, env=full, stdin=subprocess.PIPE, stdout=self.out, stderr=self.err,
                                  text=True, cwd="/", start_new_session=True)

    def go(self):
        try:
            self.p.stdin.write("go\n")
            self.p.stdin.flush()
        except BrokenPipeError:
            pass

    def text(self, f):
        f.seek(0)
        return f.read()

    def net(self):
        try:
            return os.readlink(f"/proc/{self.p.pid}/ns/net")
        except OSError:
            return ""

    def end(self, deadline):
        """Its status, what it printed, and what it said that is not commperf's."""
        try:
            u.wait(self.p, max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.kill()
        said = [x for x in self.text(self.err).splitlines() if not x.startswith("commperf: ")]
        return self.p.returncode, self.text(self.out), "\n".join(said)

    def kill(self):
        if self.p.poll() is None:
            u.kill_family(self.p)
        self.p.wait()
        self.p.stdin.close()


class Pair:
    """commperf's two sides in a place, with options of the client."""

    def __init__(self, ground, place, options, cores=None, env=None):
        port = u.free_port()
        pin = [["-l", c] for c in cores] if cores else [["--bind", "off"]] * 2
        program = [os.path.join(ground.folder, "commperf")]
        self.deadline = time.monotonic() + DEADLINE_S
        self.b = Side(ground, f"b.{port}", place.b, [*program, "--no-eal", "--server", f"0.0.0.0:{port}", *pin[1]], env)
        self.a = Side(ground, f"a.{port}", place.a,
                      [*program, "--no-eal", "--connect", f"127.0.0.1:{port}", *pin[0], *options], env)
        self.b.go()
        while "waiting on" not in self.b.text(self.b.err):
            if self.b.p.poll() is not None or time.monotonic() > self.deadline:
                break  # end() tells
            time.sleep(0.005)
        self.between_nets(place.a, place.b, port)
        self.a.go()

    def between_nets(self, a, b, port):
        for how, side in ((a, self.a), (b, self.b)):
            while "--net" in how and side.net() == os.readlink("/proc/self/ns/net"):
                if time.monotonic() > self.deadline:
                    return
                time.sleep(0.005)
        if "--net" in a or "--net" in b:
            relay(self.a.p.pid, self.b.p.pid, port)

    def end(self):
        """Two times status, output, words."""
        return [s.end(self.deadline) for s in (self.a, self.b)]

    def kill(self):
        self.a.kill()
        self.b.kill()


class Ground:
    """A folder with the programs, as other users may not be let into the build folder."""

    def __init__(self, build, folder):
        self.folder, self.meet = folder, os.path.join(folder, "meet")
        os.chmod(folder, 0o755)
        os.mkdir(self.meet)
        os.chmod(self.meet, 0o1777)
        for path, name in ((("app", "commperf", "commperf"), "commperf"), (("libpollux.so.0",), "libpollux.so.0"),
                           (("test", "place"), "place"), (("test", "jumps.so"), "jumps.so"),
                           (("test", "scarce.so"), "scarce.so")):
            shutil.copy(os.path.join(build, *path), os.path.join(folder, name))
        for tool in ("plx-rpc", "plx_job.py", "plx_hosts.py", "plx_waits.py"):
            shutil.copy(os.path.join(HERE, "..", "usertools", tool), folder)

    def lacks(self, how):
        """Why a side can't be started like this here, or ''."""
        if not how:
            return ""
        argv = [x.replace(FOLDER, self.folder).replace(MEET, self.meet) for x in [*how, "true"]]
        p = subprocess.run(argv, capture_output=True, text=True, check=False, cwd="/")
        return p.stderr.strip().replace("\n", "; ") or f"exit status {p.returncode}" if p.returncode else ""

    def ask(self, side, method):
        """What its control socket answers, or {}: not yet, or no more."""
        command = [*(user(side.user) if side.user else []), sys.executable, os.path.join(self.folder, "plx-rpc"),
                   "-s", side.rpc, method]
        p = subprocess.run(command, capture_output=True, text=True, check=False)
        try:
            return json.loads(p.stdout)
        except ValueError:
            return {}

    def counters(self, side):
        """Of large messages."""
        rows = self.ask(side, "device_get_list")
        return {name: sum(row["counters"][name] for row in rows) for name in ("rma_ops", "rma_refused")}


# --- the test ---


def wrong(ends):
    """What is wrong with a run that has to go well, or ''."""
    why = ""
    for name, (status, out, said) in zip("ab", ends):
        if status != 0 or said:
            why += f"side {name}: status {status}\n{out}{said}\n"
    return why


def verified(ground, place):
    why = ""
    for options in VERIFIED:
        why = why or wrong(Pair(ground, place, options).end())
    return why


def refused_to_start(ground, place):
    """Neither side reaches the other: the run fails, and the log says why."""
    ends = Pair(ground, place, VERIFIED[0]).end()
    if all(status != 0 for status, _, _ in ends) and any(place.large in said for _, _, said in ends):
        return ""
    return f"it was to fail with \"{place.large}\":\n{ends}"


def huge_kib(side):
    """What the processes of a side have mapped, their peer's included."""
    total = 0
    for pid in u.descendants(side.p.pid):
        try:
            with open(f"/proc/{pid}/status", encoding="utf-8") as f:
                total += sum(int(x.split()[1]) for x in f if x.startswith("HugetlbPages:"))
        except OSError:
            pass
    return total


def huge(ground, pair, place):
    """Whether huge pages are as scarce as the place says: none at all, or none for what comes after the first."""
    if "huge" not in place.name or u.huge_free() < HUGE_ENOUGH:
        return ""
    kib = [huge_kib(s) for s in (pair.a, pair.b)]
    heap = ground.ask(pair.a, "mem_get_stats").get("heap_huge_bytes", -1) >> 10
    if place.name == "no-huge":
        good = kib == [0, 0]
    else:  # of the heap and the rings, one has them
        good = all(kib) and (place.name == "huge-one" or heap in (0, kib[0]))
    return "" if good else f"{kib} KiB of huge pages, {heap} KiB of the heap's"


def counted(ground, place):
    """Whether large private messages are copied by the kernel, as the counters tell."""
    plenty = u.huge_free() >= HUGE_ENOUGH  # or others have them
    pair = Pair(ground, place, ENDLESS)
    want = "rma_ops" if place.large == COPIES else "rma_refused"
    total, why = {}, ""
    try:
        while not total.get(want) and time.monotonic() < pair.deadline and pair.a.p.poll() is None:
            got = [ground.counters(s) for s in (pair.a, pair.b)]
            total = {k: sum(g.get(k, 0) for g in got) for k in ("rma_ops", "rma_refused")}
        why = huge(ground, pair, place) if plenty else ""
    finally:
        pair.kill()
    if not total.get(want) or (place.large == COPIES and total["rma_refused"]):
        return f"counted {total} where the messages come so: {place.large}\n{wrong(pair.end())}"
    return why


def skip_reason(ground, place):
    return ground.lacks(place.a) or ground.lacks(place.b)


def one(ground, place):
    """Why a place can't be made here, what is wrong there, and how long that took to find out."""
    begin = time.monotonic()
    lacks, why = skip_reason(ground, place), ""
    if not lacks and place.large == UNREACHABLE:
        why = refused_to_start(ground, place)
    elif not lacks:
        why = verified(ground, place) or counted(ground, place)
    return lacks, why, f"{time.monotonic() - begin:.1f} s"


def ptrace_scope():
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope", encoding="ascii") as f:
            return int(f.read())
    except OSError:
        return None


def yama(report, scope):
    """The setting belongs to the whole machine: it is looked at, and not changed."""
    name = "yama: what its ptrace_scope says here"
    if scope is None:
        report.skip(name, "this kernel has no Yama; the places yama and yama-one refuse the same calls")
    else:
        report.ok(name, f"it is {scope}")


def under_yama(place, scope):
    """From 1 on only those with the right to look into others do, from 3 on nobody."""
    able = not any(x.startswith(("--bounding-set", "--reuid")) for x in [*place.a, *place.b])
    return place._replace(large=REFUSED) if place.large == COPIES and scope and (scope == 3 or not able) else place


def test(ground, report, places):
    scope = ptrace_scope()
    yama(report, scope)
    places = [under_yama(p, scope) for p in places]
    # Much of the time goes by with waiting for processes to start.
    with concurrent.futures.ThreadPoolExecutor(AT_A_TIME) as pool:
        for place, (lacks, why, seconds) in zip(places, pool.map(lambda p: one(ground, p), places)):
            name = f"{place.name}: {place.where}"
            if lacks:
                report.skip(name, lacks)
            else:
                report.result(name, why, f"{place.large}; {seconds}")


# --- speed ---

# Short runs of which the best is taken: who else uses the machine is out of most of them.
BEST = ["-w", "8", "--pick", "best", "--quiet", "--csv", "-"]
SPEEDS = [["-t", "tag_lat,tag_bw", "-s", "8,64k", "-r", "15", "-n", "300", "--mem", "private", *BEST],
          ["-t", "tag_bw", "-s", "1m", "-r", "25", "-n", "32", "--mem", "private", *BEST],
          ["-t", "tag_bw", "-s", "1m", "-r", "25", "-n", "32", "--mem", "mapped", *BEST]]
COLUMNS = [("tag_lat", 8, "private"), ("tag_bw", 1 << 16, "private"), ("tag_bw", 1 << 20, "private"),
           ("tag_bw", 1 << 20, "mapped")]


def speeds(ground, place, cores):
    """{column: figure, less is better}; raises RuntimeError."""
    found = {}
    for options in SPEEDS:
        ends = Pair(ground, place, options, cores).end()
        if wrong(ends):
            raise RuntimeError(wrong(ends))
        for row in csv.DictReader(io.StringIO(ends[0][1])):
            what = (row["test"], int(row["size"]), options[options.index("--mem") + 1])
            if what in COLUMNS:
                found[what] = float(row["p50"]) if row["test"] == "tag_lat" else 1 / float(row["value"])
    return found


def measure(ground, places, args):
    """Rounds of pairs: the plain place, and another."""
    cores, plain = args.cores.split(","), PLACES[0]
    places = [p for p in places if p.large != UNREACHABLE and not skip_reason(ground, p)]
    ratios, base = {(p.name, c): [] for p in places for c in COLUMNS}, {c: [] for c in COLUMNS}
    for r in range(args.rounds):
        for place in places:
            order = [plain, place] if r % 2 == 0 else [place, plain]
            got = [speeds(ground, p, cores) for p in order]
            reference, here = got if r % 2 == 0 else reversed(got)
            for c in COLUMNS:
                base[c].append(reference[c])
                ratios[place.name, c].append(reference[c] / here[c])
        print(f"round {r + 1} of {args.rounds}", file=sys.stderr, flush=True)
    print("| place | large private buffers | 8 B latency | 64 KiB | 1 MiB | 1 MiB, mapped |\n|---|---|---|---|---|---|")
    for place in places:
        cells = [f"{statistics.median(ratios[place.name, c]):.2f}" for c in COLUMNS]
        print(f"| {place.where} | {place.large} | {' | '.join(cells)} |")
    figures = [statistics.median(base[c]) for c in COLUMNS]
    print(f"plain: {figures[0]:.3f} us, " + ", ".join(f"{1 / f / 1000:.1f} GB/s" for f in figures[1:]))
    return 0


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--build", default=os.path.join(HERE, "..", "build"))
    ap.add_argument("--measure", action="store_true")
    ap.add_argument("--rounds", type=int, default=5)
    ap.add_argument("--cores", default="0,1")
    ap.add_argument("places", nargs="*")
    args = ap.parse_args()
    u.need("setpriv", "unshare", "prlimit", "mount")
    report = u.Report()
    places = [p for p in PLACES if not args.places or p.name in args.places]
    with tempfile.TemporaryDirectory() as folder:
        ground = Ground(os.path.abspath(args.build), folder)
        if args.measure:
            return measure(ground, places, args)
        test(ground, report, places)
    return report.status()


if __name__ == "__main__":
    sys.exit(main())
