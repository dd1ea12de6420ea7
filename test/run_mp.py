#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""run_mp.py - several processes over shared memory: many to many, huge messages,
killed peers, oversubscription, leaving early, messages taken back, soak, storm

usage: run_mp.py [--build DIR] [--plain] [--seed N] [--seconds S] [GROUP...]

Groups: all_to_all huge leave taken_back kill crowd rma soak storm. Soak and storm take S seconds (5) each
way; --seconds 300 soak runs for ten minutes, --seconds 200 storm as well. --plain runs on the system's own UCX
what UCX can do. The programs are linked to the system's libucp by name and meet
ours through pollux-run, as any application would.
"""
import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time

import run_util as u

HERE = os.path.dirname(os.path.abspath(__file__))
INCLUDE = os.path.join(HERE, "..", "include")
GROUPS = ["all_to_all", "huge", "leave", "taken_back", "kill", "crowd", "rma", "soak", "storm"]
SOAK_GROWTH = 8 << 20  # bytes of a survivor, from a third of the time to its end
STORM_RANKS = 6
STORM_FDS = 6  # descriptors of a survivor, the same; what waits for a kill to be noticed
HUGE_LEN = (4 << 30) + 1
HUGE_MEMORY = 12 << 30
NO_HUGE = {"PLX_SHM_HUGE": "no", "PLX_EAL_HUGE": "no"}
NO_CMA = {"PLX_SHM_CMA": "no"}


class Ground:
    """Where the programs are and how a process of a test is started."""

    def __init__(self, args):
        self.plain = args.plain
        self.build = os.path.abspath(args.build)
        self.pollux_run = os.path.join(self.build, "pollux-run")
        self.prefix = [self.pollux_run]
        self.bin = os.path.join(self.build if os.path.isdir(self.build) else "/tmp", "mp-tests")
        os.makedirs(self.bin, exist_ok=True)
        self.random = random.Random(args.seed)
        self.seconds = args.seconds
        last = (os.sysconf("SC_NPROCESSORS_ONLN") or 1) - 1
        self.reactor = {"PLX_REACTOR": f"lcore:{last}"}

    def program(self, name):
        """Compile it; returns (path, error)."""
        exe = os.path.join(self.bin, name)
        sources = [os.path.join(HERE, "mp", name + ".c"), os.path.join(HERE, "ucp_util.c"),
                   os.path.join(HERE, "ucp_util.h"), os.path.join(HERE, "mp", "mp.h")]
        flags = [] if self.plain else ["-I" + INCLUDE]
        return exe, u.compile_c(["cc", "-Wall", "-Wextra"], sources, exe, *flags, "-lucp", "-lucs")

    def start(self, exe, folder, rank, n, args, env, out, nobody=False):
        command = [exe, folder, rank, n, *args]
        env = dict(env)
        if self.plain:
            env.setdefault("UCX_TLS", "posix,cma,self")
            env["UCX_LOG_LEVEL"] = "error"
        elif nobody:
            # The build tree may be closed to other users: what is needed was copied.
            env["LD_LIBRARY_PATH"] = os.path.join(folder, "lib")
            command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                       os.path.join(folder, "lib", "program"), folder, rank, n, *args]
        else:
            command = [*self.prefix, *command]
        return u.start(command, env, stdout=out, stderr=out, cwd="/")


class Family:
    """n processes of one program in a folder of their own."""

    def __init__(self, ground, exe, n, args, env, nobody=False):
        self.folder = tempfile.mkdtemp(prefix="pollux-mp-")
        self.outs = []
        self.processes = []
        if nobody:
            os.chmod(self.folder, 0o777)
            lib = os.path.join(self.folder, "lib")
            os.mkdir(lib)
            shutil.copy(os.path.join(ground.build, "dropin", "libucp.so.0"), lib)
            shutil.copy(exe, os.path.join(lib, "program"))
            os.chmod(lib, 0o755)
        for rank in range(n):
            out = open(os.path.join(self.folder, f"out.{rank}"), "w+", encoding="utf-8",
                       errors="replace")
            self.outs.append(out)
            e = env[rank % len(env)] if isinstance(env, list) else env
            self.processes.append(ground.start(exe, self.folder, rank, n, args, e, out, nobody))

    def path(self, name):
        return os.path.join(self.folder, name)

    def mark(self, name):
        """Tell the processes that something was done."""
        open(self.path(name), "w", encoding="ascii").close()

    def restart(self, ground, exe, rank, env):
        """Kill one, for good, and start it again."""
        for pid in u.descendants(self.processes[rank].pid):
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        self.processes[rank].wait()
        self.processes[rank] = ground.start(exe, self.folder, rank, len(self.processes), [], env,
                                            self.outs[rank])

    def wait(self, timeout, killed=()):
        """Until all have ended; returns what is wrong or ''."""
        end = time.monotonic() + timeout
        why = []
        waiting = {r: p for r, p in enumerate(self.processes) if r not in killed}
        while waiting and time.monotonic() < end and not why:
            for rank, p in list(waiting.items()):
                rc = p.poll()
                if rc is None:
                    continue
                del waiting[rank]
                if rc != 0:
                    why.append(f"rank {rank}: exit status {rc}")
            time.sleep(0.01)
        if waiting and not why:
            why.append(f"ranks {sorted(waiting)[:8]} have not ended after {timeout} s")
        self.kill()
        for rank, out in enumerate(self.outs):
            out.seek(0)
            text = out.read().strip()
            out.close()
            if text and rank not in killed:
                why.append(f"rank {rank} wrote: {text[-600:]}")
        shutil.rmtree(self.folder, ignore_errors=True)
        return "\n".join(why[:12])

    def shoot(self, delay):
        """Kill rank 1 some time after rank 0 marked that all is at work."""
        end = time.monotonic() + 60
        while not os.path.exists(self.path("busy")) and time.monotonic() < end and \
                self.processes[0].poll() is None:
            time.sleep(0.001)
        time.sleep(delay)
        u.kill_family(self.processes[1])
        self.processes[1].wait()
        self.mark("killed")

    def kill(self):
        for p in self.processes:
            if p.poll() is None:
                u.kill_family(p)
            p.wait()


def one(report, ground, name, program, n, args, env, timeout=120, nobody=False):
    exe, error = ground.program(program)
    if error:
        report.fail(name, error)
        return
    begin = time.monotonic()
    try:
        why = Family(ground, exe, n, args, env, nobody).wait(timeout)
    except OSError as e:
        why = str(e)
    if why:
        report.fail(name, why)
    else:
        report.ok(name, f"{time.monotonic() - begin:.1f} s")


def all_to_all(report, ground):
    seed = ground.random.randrange(1 << 30)
    ways = [("inline", {}, False)]
    if not ground.plain:
        ways += [("reactor", ground.reactor, False), ("no huge pages", NO_HUGE, False),
                 ("no cma", NO_CMA, False), ("no huge pages, no cma", {**NO_HUGE, **NO_CMA}, False),
                 ("mixed", [{}, NO_HUGE, ground.reactor, NO_CMA], False), ("nobody", {}, True)]
    for way, env, nobody in ways:
        if nobody and (os.getuid() != 0 or shutil.which("setpriv") is None):
            report.skip(f"all to all, {way}", "only root can become nobody")
            continue
        for n, count, longest in ((2, 400, 600000), (8, 40, 300000)):
            if n == 8 and way in ("reactor", "no cma", "nobody"):
                n, count = 4, 60
            one(report, ground, f"all to all, {n} processes, {way}, seed {seed}", "all_to_all", n,
                [count, seed, longest], env, nobody=nobody)


def crowd(report, ground):
    seed = ground.random.randrange(1 << 30)
    one(report, ground, f"all to all, 64 processes on {os.cpu_count()} cores, seed {seed}",
        "all_to_all", 64, [4, seed, 50000], {}, timeout=150)


def huge(report, ground):
    name = f"one message of {HUGE_LEN} bytes"
    if u.mem_available() < HUGE_MEMORY:
        report.skip(name, f"{u.mem_available() >> 30} GiB free, {HUGE_MEMORY >> 30} needed")
        return
    one(report, ground, name, "huge", 2, [HUGE_LEN], {})


def leave(report, ground):
    ways = [("inline", {})]
    if not ground.plain:
        ways += [("reactor", ground.reactor), ("no huge pages", NO_HUGE), ("no cma", NO_CMA)]
    for way, env in ways:
        for how in ("destroy", "exit"):
            one(report, ground, f"nothing is lost by who closes and leaves by {how}, {way}", "leave",
                2, [how], env)


def taken_back(report, ground):
    seed = ground.random.randrange(1 << 30)
    ways = [("inline", {}), ("reactor", ground.reactor), ("no cma", NO_CMA),
            ("receiver reads", {"PLX_RNDV_SCHEME": "get"})]
    for way, env in [("inline", {})] if ground.plain else ways:
        for kind in ("tag", "am"):
            one(report, ground, f"a forced close of 200 {kind} messages harms none, {way}, seed {seed}",
                "taken_back", 2, [kind, 200, 10, seed], env)


def kill(report, ground):
    exe, error = ground.program("orphan")
    if error:
        report.fail("orphan compiles", error)
        return
    ways = [("inline", {}), ("reactor", ground.reactor), ("no cma", NO_CMA),
            ("no huge pages", NO_HUGE)]
    if ground.plain:
        # UCX has error handling over TCP, not over shared memory.
        ways = [("tcp", {"UCX_TLS": "tcp"})]
    for way, env in ways:
        for does in ("send", "receive"):
            for what, length in (("eager", 1000), ("fragments", 24000), ("rendezvous", 96 << 20)):
                for mode in ("peer", "none"):
                    if way != "inline" and (what == "fragments" or mode == "none"):
                        continue
                    traces = u.Traces()
                    why = ""
                    for _ in range(2):
                        family = Family(ground, exe, 2, [does, length, mode], env)
                        family.shoot(ground.random.random() * 0.05)
                        why = family.wait(60, killed=(1,)) or traces.left()
                        if why:
                            break
                    other = "receiver" if does == "send" else "sender"
                    name = f"{other} killed, {what}, error handling {mode}, {way}"
                    if why:
                        report.fail(name, why)
                    else:
                        report.ok(name)
    one(report, ground, "a later run starts clean", "all_to_all", 2, [50, 1, 100000], {})


def rma(report, ground):
    ways = [("inline", {}), ("reactor", ground.reactor), ("no cma", NO_CMA), ("no huge pages", NO_HUGE),
            ("by messages", {"PLX_RMA_SCHEME": "message"}),
            ("by messages, reactor", {"PLX_RMA_SCHEME": "message", **ground.reactor}),
            ("one in two by messages", [{"PLX_RMA_SCHEME": "message"}, {}])]
    if ground.plain:
        ways = ways[:1]
    for way, env in ways:
        for n in (2, 4):
            if n == 4 and "reactor" in way:
                continue
            one(report, ground, f"{n} put, get and count in each other's memory, {way}", "rma", n,
                [50 if "reactor" in way else 500, "work"], env)
    exe, error = ground.program("rma")
    if error or ground.plain:
        return
    for way, env in ways[:3] + ways[4:6]:
        family = Family(ground, exe, 2, [0, "killed"], env)
        family.shoot(ground.random.random() * 0.05)
        why = family.wait(60, killed=(1,))
        name = f"the target of puts and atomics is killed, {way}"
        if why:
            report.fail(name, why)
        else:
            report.ok(name)


def memory(family, rank):
    """Resident bytes of a process, without what it shares with its peers."""
    return u.private_memory(family.processes[rank])


def soak_one(ground, exe, env):
    """One survivor's partner is killed and started again at random: (why, note)."""
    family = Family(ground, exe, 3, [], env)
    begin = time.monotonic()
    end, early, kills = begin + ground.seconds, None, 0
    while time.monotonic() < end and all(family.processes[r].poll() is None for r in (0, 1)):
        time.sleep(0.05 + ground.random.random() * 0.4)
        family.restart(ground, exe, 2, env)
        kills += 1
        if early is None and time.monotonic() > begin + ground.seconds / 3:
            early = [memory(family, r) for r in (0, 1)]
    late = [memory(family, r) for r in (0, 1)]
    open(family.path("stop"), "w", encoding="ascii").close()
    counts = []
    limit = time.monotonic() + 60
    while len(counts) < 2 and time.monotonic() < limit:
        time.sleep(0.01)
        try:
            counts = [[int(n) for n in open(family.path(f"count.{r}"), encoding="ascii")
                       .read().split()] for r in (0, 1)]
        except OSError:
            pass
        if any(len(c) != 3 for c in counts):
            counts = []
    why = family.wait(60, killed=(2,))
    growth = max(b - a for a, b in zip(early or late, late))
    if not why and len(counts) < 2:
        why = "the survivors did not say what they have received"
    if not why and growth > SOAK_GROWTH:
        why = f"a survivor has grown by {growth >> 10} KiB"
    if not why and (min(c[0] for c in counts) == 0 or kills < 3 or
                    min(c[1] for c in counts) < kills // 4):
        why = f"too little happened: {counts}, {kills} killed"
    if why:
        return why, ""
    return "", (f"{sum(c[0] for c in counts)} messages, {kills} killed, "
                f"{counts[0][1]} and {counts[1][1]} met, growth {growth >> 10} KiB")


def soak(report, ground):
    exe, error = ground.program("soak")
    if error:
        report.fail("soak compiles", error)
        return
    for way, env in (("inline", {}), ("reactor", ground.reactor)):
        if ground.plain:
            break
        traces = u.Traces()
        why, note = soak_one(ground, exe, env)
        why = why or traces.left()
        if why:
            report.fail(f"survivors lose nothing, {way}", why)
        else:
            report.ok(f"survivors lose nothing, {way}", note)


class Storm:
    """Ranks that are killed and started again, stopped, and have to fork. Ranks 0 and 1 are not killed."""

    def __init__(self, ground, exe, env):
        self.ground, self.exe, self.env = ground, exe, env
        self.life = 0
        self.kills = self.stops = self.forks = 0
        self.all = []  # every process there ever was
        self.family = Family(ground, exe, 0, [], env)
        self.family.processes = [None] * STORM_RANKS
        self.family.outs = [tempfile.TemporaryFile("w+") for _ in range(STORM_RANKS)]
        self.lives = [0] * STORM_RANKS
        for rank in range(STORM_RANKS):
            self.begin(rank)

    def begin(self, rank):
        self.life += 1
        self.lives[rank] = self.life
        p = self.ground.start(self.exe, self.family.folder, rank, STORM_RANKS, [self.life],
                              self.env[self.life % len(self.env)], self.family.outs[rank])
        self.family.processes[rank] = p
        self.all.append(p)

    def alive(self):
        return all(p.poll() is None for p in self.family.processes)

    def pid(self, rank):
        """Of the program, which pollux-run becomes; 0: it is no more."""
        p = self.family.processes[rank]
        return 0 if p.poll() is not None else p.pid

    def has_begun(self, rank):
        try:
            with open(self.family.path(f"who.{rank}"), "rb") as f:
                return int.from_bytes(f.read(8), "little") == self.lives[rank]
        except OSError:
            return False

    def kill(self, rank):
        self.family.mark(f"killed.{self.lives[rank]}")
        if self.pid(rank):
            os.kill(self.pid(rank), signal.SIGKILL)
        self.family.processes[rank].wait()
        self.kills += 1
        self.begin(rank)

    def stop(self, rank, seconds):
        if not self.pid(rank):
            return
        os.kill(self.pid(rank), signal.SIGSTOP)
        time.sleep(seconds)
        os.kill(self.pid(rank), signal.SIGCONT)
        self.stops += 1

    def fork(self, rank):
        if self.pid(rank) and self.has_begun(rank):
            os.kill(self.pid(rank), signal.SIGUSR1)
            self.forks += 1

    def one(self):
        r = self.ground.random
        what = r.random()
        if what < 0.3:
            self.kill(r.randrange(2, STORM_RANKS))
        elif what < 0.6:
            self.stop(r.randrange(STORM_RANKS), r.random() * 0.3)
        else:
            self.fork(r.randrange(STORM_RANKS))
        time.sleep(r.random() * 0.3)

    def fds(self):
        return [len(os.listdir(f"/proc/{self.pid(rank)}/fd")) for rank in (0, 1)]

    def all_have_begun(self):
        end = time.monotonic() + 60
        while not all(self.has_begun(r) for r in range(STORM_RANKS)):
            if time.monotonic() > end or not self.alive():
                return False
            time.sleep(0.01)
        return True

    def left(self):
        """What stays: children that a rank forked just before its end take a moment."""
        end = time.monotonic() + 2
        while (found := self.found()) and time.monotonic() < end:
            time.sleep(0.05)
        return f"left behind: {found}" if found else ""

    def found(self):
        """Processes, and files that are named after one of ours."""
        found = []
        pids = {str(p.pid) for p in self.all}
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{entry}/stat", encoding="ascii", errors="replace") as f:
                    if f.read().rsplit(")", 1)[1].split()[3] in pids:
                        found.append(f"process {entry}")
            except (OSError, IndexError):
                pass
        for folder in ("/dev/shm", "/run/dpdk", "/tmp"):
            if os.path.isdir(folder):
                found += [f"{folder}/{n}" for n in os.listdir(folder)
                          if "pollux" in n and n.rsplit("_", 1)[-1] in pids]
        return sorted(set(found))


def storm_one(ground, exe, env):
    s = Storm(ground, exe, env)
    begin, early = time.monotonic(), None
    s.all_have_begun()
    while time.monotonic() < begin + ground.seconds and s.alive():
        s.one()
        if early is None and time.monotonic() > begin + ground.seconds / 3 and s.alive():
            early = s.fds(), [memory(s.family, r) for r in (0, 1)]
    begun = s.all_have_begun()
    time.sleep(0.5)  # for the last kill to be noticed
    late = (s.fds(), [memory(s.family, r) for r in (0, 1)]) if s.alive() else early
    s.family.mark("stop")
    counts, limit = [], time.monotonic() + 60
    while len(counts) < STORM_RANKS and time.monotonic() < limit and begun:
        time.sleep(0.01)
        counts = []
        for r in range(STORM_RANKS):
            try:
                counts.append([int(n) for n in open(s.family.path(f"count.{r}"), encoding="ascii").read().split()])
            except OSError:
                break
        if any(p.poll() for p in s.family.processes):
            break
    why = s.family.wait(60)
    if not why and not begun:
        why = "a rank that was started again says nothing"
    if not why and late is not None and early is not None:
        fds = max(b - a for a, b in zip(early[0], late[0]))
        growth = max(b - a for a, b in zip(early[1], late[1]))
        if fds > STORM_FDS:
            why = f"a survivor has {fds} descriptors more"
        elif growth > SOAK_GROWTH:
            why = f"a survivor has grown by {growth >> 10} KiB"
    if not why and (len(counts) < STORM_RANKS or min(min(c[:4]) for c in counts[:2]) == 0):
        why = f"too little happened: {counts}"
    why = why or s.left()
    if why:
        return why, ""
    total = [sum(c[k] for c in counts) for k in range(4)]
    return "", (f"{total[0]} tagged and {total[1]} active messages, {total[2] >> 20} MiB of streams, {total[3]} puts; "
                f"{s.kills} killed, {s.stops} stopped, {s.forks} forks; {fds:+d} descriptors, {growth >> 10} KiB")


def storm(report, ground):
    exe, error = ground.program("storm")
    if error:
        report.fail("storm compiles", error)
        return
    ways = [("inline", [{}]), ("one in two with a reactor", [{}, ground.reactor]),
            ("with and without cma", [NO_CMA, {}, {"PLX_SHM_FAST_PEERS": "2"}])]
    for way, env in ways:
        if ground.plain:
            break
        traces = u.Traces()
        why, note = storm_one(ground, exe, env)
        why = why or traces.left()
        if why:
            report.fail(f"those who live lose nothing, {way}", why)
        else:
            report.ok(f"those who live lose nothing, {way}", note)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--build", default=os.path.join(HERE, "..", "build"))
    ap.add_argument("--plain", action="store_true")
    ap.add_argument("--seed", type=int, default=random.randrange(1 << 20))
    ap.add_argument("--seconds", type=float, default=5)
    ap.add_argument("groups", nargs="*", default=GROUPS)
    args = ap.parse_args()
    u.need("cc")
    ground = Ground(args)
    if not args.plain and not os.access(ground.pollux_run, os.X_OK):
        u.skip_all(f"{ground.pollux_run} is not built")
    print(f"seed {args.seed}")
    report = u.Report()
    traces = u.Traces()
    for group in args.groups:
        globals()[group](report, ground)
    if not args.plain:
        left = traces.left()
        if left:
            report.fail("nothing is left behind", left)
        else:
            report.ok("nothing is left behind")
    return report.status()


if __name__ == "__main__":
    sys.exit(main())
