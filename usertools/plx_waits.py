# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""plx_waits.py - who waits for what in a job, and what that means"""

import re

import plx_hosts
import plx_job

METHOD = "worker_get_waits"
FEED = "waits 1"  # version of the lines from other hosts: another form has another number
LONG_S = 1.0  # so long an operation waits, or a worker takes no turn, before that is a finding
ANYONE = "anyone"
OTHER_FORM = "its answer has another form: does it run another version?"
NUMBER, NONE = (int, float), type(None)


def is_hex(text):
    return isinstance(text, str) and re.fullmatch(r"0x[0-9a-f]{1,16}", text) is not None


WAIT = {"op": str, "state": str, "peer": (str, NONE), "bytes": int, "done": int, "age_s": (int, float, NONE),
        "tag?": is_hex, "mask?": is_hex, "sender?": (int, NONE)}
TAGGED = {**WAIT, "tag": is_hex, "mask": is_hex}


def wait_fits(wait):
    tagged = isinstance(wait, dict) and ("tag" in wait or wait.get("op") == "tag_recv")
    return plx_hosts.fits(wait, TAGGED if tagged else WAIT)


SILENT = {"worker": int, "name": str, "mode": str, "uids": [str], "answered": bool, "turn_age_s": NUMBER}
ANSWERED = {**SILENT, "quiet_s": NUMBER, "n_waits": int, "n_unexpected": int,
            "waits": [wait_fits], "unexpected": [TAGGED]}


def row_fits(row):
    """Whether a process describes a worker in the form that the rest of this file relies on."""
    return plx_hosts.fits(row, ANSWERED if isinstance(row, dict) and row.get("answered") else SILENT)


def answer_fits(answer):
    told = {"socket": str, "pid": int, "rank": (int, NONE), "program": str, "rows": [row_fits]}
    return plx_hosts.fits(answer, told) or plx_hosts.fits(answer, {"socket": str, "error": str})


SHAPE = {"answers": [answer_fits]}


class Worker:
    """One worker of one process."""

    def __init__(self, answer, row):
        self.host, self.pid = answer.get("host"), answer["pid"]
        self.row = row if row["answered"] else {key: row[key] for key in SILENT}
        self.rank, self.program = answer["rank"], answer["program"]
        self.waits = self.row.get("waits", [])
        self.unexpected = self.row.get("unexpected", [])
        self.answered = row["answered"]

    def name(self):
        rank = f" (rank {self.rank})" if self.rank is not None else ""
        return f"{self.host + ':' if self.host else ''}{self.pid}/{self.row['worker']}{rank}"

    def key(self):
        return (*([self.host] if self.host else []), self.pid, self.row["worker"])

    def asleep(self):
        return not self.answered and self.row["turn_age_s"] >= LONG_S

    def is_long(self, wait):
        """Whether an operation has waited for long; without its age, that nothing has come meanwhile must do."""
        age = wait["age_s"] if wait["age_s"] is not None else self.row["quiet_s"]
        return age >= LONG_S and wait["state"] != "data moves"

    def idle_recvs(self):
        return [w for w in self.waits if w["op"] == "tag_recv" and self.is_long(w)]


class Edge:
    """Operations of one worker that wait for the same other one."""

    def __init__(self, worker, to, guess, wait):
        self.worker, self.to, self.guess, self.waits = worker, to, guess, [wait]


def matches(recv, tag):
    mask = int(recv["mask"], 16)
    return int(recv["tag"], 16) & mask == int(tag, 16) & mask


class Job:
    """The answers of all processes, and the graph that they make."""

    def __init__(self, answers):
        self.silent = [a for a in answers if "error" in a]
        self.workers = [Worker(a, row) for a in answers if "error" not in a for row in a["rows"]]
        self.by_uid = {uid: w for w in self.workers for uid in w.row["uids"]}
        self.by_rank = {w.rank: w for w in self.workers if w.rank is not None}
        self.edges = []
        for w in self.workers:
            self.add_edges(w)

    def target(self, wait):
        """(the worker that an operation waits for, or a text; whether that is a guess)"""
        if wait["peer"] is not None:
            return self.by_uid.get(wait["peer"], f"peer {wait['peer']}"), False
        sender = wait.get("sender")
        if sender is not None and sender in self.by_rank:
            return self.by_rank[sender], True
        return ANYONE, False

    def add_edges(self, worker):
        mine = {}
        for wait in worker.waits:
            to, guess = self.target(wait)
            key = (to if isinstance(to, str) else to.key(), wait["op"], wait["state"])
            if key in mine:
                mine[key].waits.append(wait)
            else:
                mine[key] = Edge(worker, to, guess, wait)
        self.edges += mine.values()

    def cycles(self):
        """Lists of workers, each of which waits for the next, and the last for the first."""
        next_of = {}
        for e in self.edges:
            if not isinstance(e.to, str) and e.to is not e.worker and any(map(e.worker.is_long, e.waits)):
                next_of.setdefault(e.worker.key(), {})[e.to.key()] = e.to
        found, done = [], set()
        by_key = {w.key(): w for w in self.workers}
        for start in next_of:
            path, at = [], start
            while at in next_of and at not in path and at not in done:
                path.append(at)
                at = self.step(next_of[at], path)
            done.update(path)
            if at in path:
                found.append([by_key[k] for k in path[path.index(at):]])
        return found

    @staticmethod
    def step(choices, path):
        """Back to where the path has been, if it can be: a cycle is what is looked for."""
        return next((k for k in choices if k in path), next(iter(choices)))

    def may_come(self, recv):
        """Whether a message that a receive would take is on its way, as far as is known."""
        return any(w["op"] == "tag_send" and "tag" in w and matches(recv, w["tag"])
                   for worker in self.workers for w in worker.waits)

    def found_of_recvs(self, w):
        recvs = w.idle_recvs()
        if not recvs or any(map(self.may_come, recvs)):
            return
        what = f"tag {recvs[0]['tag']}" if len(recvs) == 1 else f"any of {len(recvs)} tags"
        others = [m for m in w.unexpected if not any(matches(r, m["tag"]) for r in recvs)]
        if others:
            yield (f"{w.name()} receives {what}, and has an unexpected message with tag {others[0]['tag']} "
                   f"from {self.peer_name(others[0])}")
        else:
            yield f"{w.name()} receives {what}, and nobody here is sending it"

    def found_of_streams(self, w):
        for e in self.edges:
            if e.worker is w and e.waits[0]["op"] == "stream_recv" and any(map(w.is_long, e.waits)):
                yield f"{w.name()} reads a stream, and {self.shown(e.to, e.guess)} writes nothing to it"

    def found_of_turns(self, w):
        n = sum(len(e.waits) for e in self.edges if e.to is w)
        if w.asleep():
            yield (f"{w.name()} has called no progress for {plx_job.human_time(w.row['turn_age_s'])}" +
                   (f"; waiting for it: {n} operation{'' if n == 1 else 's'}" if n else ""))
        elif not w.answered:
            yield f"{w.name()} has not answered in time: it calls progress too rarely; ask again"

    def found(self):
        """Sentences: what is wrong, the surest first."""
        for answer in self.silent:
            names = filter(None, [answer.get("host"), answer["socket"]])
            yield ": ".join([*names, answer["error"].removeprefix(answer["socket"] + ": ")])
        for cycle in self.cycles():
            yield "a cycle: " + " waits for ".join(w.name() for w in [*cycle, cycle[0]])
        for find in (self.found_of_turns, self.found_of_recvs, self.found_of_streams):
            for w in self.workers:
                yield from find(w)
        for e in self.edges:
            if isinstance(e.to, str) and e.to != ANYONE and any(map(e.worker.is_long, e.waits)):
                yield f"{e.worker.name()} waits for {e.to}, which belongs to no process that was asked: it is on another host, or has ended"

    @staticmethod
    def shown(to, guess):
        return to if isinstance(to, str) else to.name() + ("?" if guess else "")

    def peer_name(self, wait):
        return self.shown(*self.target(wait))


def asked(paths, timeout):
    """The answers of the processes of these sockets."""
    def failed(path, error):
        return {"socket": path, "error": str(error)}
    versions = plx_job.ask_all(paths, "get_version", timeout=timeout)
    alive = {path: v["pid"] for path, v in versions if plx_hosts.fits(v, {"pid": int})}
    answers = [failed(path, v if isinstance(v, Exception) else OTHER_FORM) for path, v in versions if path not in alive]
    for path, rows in plx_job.ask_all(list(alive), METHOD, timeout=timeout):
        pid = alive[path]
        if isinstance(rows, Exception):
            answers.append(failed(path, rows))
        elif not plx_hosts.fits(rows, [row_fits]):
            answers.append(failed(path, OTHER_FORM))
        else:
            answers.append({"socket": path, "pid": pid, "rank": plx_job.rank_of(pid), "program": plx_job.program_of(pid),
                            "rows": plx_hosts.cleaned(rows)})
    return answers


def asked_far(args):
    """The answers of the processes of other hosts; all are asked at the same time."""
    hosts = plx_hosts.Hosts(args, ["waits", "--feed", "-t", str(args.timeout)], FEED, SHAPE)
    hosts.late_s += 2 * args.timeout  # of the two questions to each process
    with hosts:
        hosts.settle()
        told, silent = hosts.answers(), hosts.reasons()
    return [{"socket": "", "host": host, "error": why} for host, why in silent.items()] + \
        [{**answer, "host": host} for host, said in told for answer in said["answers"]]


def tag_text(wait):
    if "tag" not in wait:
        return ""
    full = int(wait["mask"], 16) == (1 << 64) - 1
    return wait["tag"] + ("" if full else "/" + wait["mask"])


def row(wait, on, n):
    more = f" (and {n - 1} more)" if n > 1 else ""
    done = f"{plx_job.human(wait['done'])} of " if wait["done"] else ""
    return (f"  {plx_job.human_time(wait['age_s']):>7}  {wait['op']:<12} {tag_text(wait):<18} "
            f"{done + plx_job.human(wait['bytes']) + ' B':>9}  {on}: {wait['state']}{more}")


def table(job):
    """Lines for people."""
    waiting = [w for w in job.workers if w.waits]
    hosts = {w.host for w in job.workers if w.host}
    yield ((f"{len(hosts)} hosts, " if hosts else "") +
           f"{len({w.key()[:-1] for w in job.workers})} processes, {len(job.workers)} workers: {len(waiting)} wait, "
           f"{sum(not w.answered for w in job.workers)} do not answer")
    for w in job.workers:
        if not w.waits and w.answered:
            continue
        state = (f"nothing has come for {plx_job.human_time(w.row['quiet_s'])}" if w.answered
                 else f"no turn for {plx_job.human_time(w.row['turn_age_s'])}")
        yield ""
        yield f"{w.name()} {w.program}, {w.row['mode']}, {state}"
        for e in (e for e in job.edges if e.worker is w):
            oldest = max(e.waits, key=lambda wait: wait["age_s"] or 0)
            on = job.shown(e.to, e.guess)
            yield row(oldest, on, len(e.waits))
        more = w.row.get("n_waits", 0) - len(w.waits)
        if more:
            yield f"  ... and {more} more operations"
        for msg in w.unexpected[:3]:
            yield f"  unexpected: tag {msg['tag']}, {plx_job.human(msg['bytes'])} B, from {job.peer_name(msg)}"
        if w.row.get("n_unexpected", 0) > 3:
            yield f"  ... and {w.row['n_unexpected'] - 3} more unexpected messages"
    found = list(job.found())
    yield ""
    yield from [f"found: {sentence}" for sentence in found] or ["found: nothing that is certainly stuck"]


def quote(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def dot(job):
    """The graph for dot(1): cycles red, workers that take no turns grey, guesses dashed."""
    ids = {w.key(): f"w{i}" for i, w in enumerate(job.workers)}
    cycles = [[w.key() for w in c] for c in job.cycles()]
    red = {(c[i], c[(i + 1) % len(c)]) for c in cycles for i in range(len(c))}
    yield "digraph waits {"
    yield "\tnode [shape=box, fontname=\"sans-serif\"]; edge [fontname=\"sans-serif\", fontsize=10];"
    for w in job.workers:
        style = ", style=filled, fillcolor=lightgrey" if not w.answered else ""
        lines = [w.name(), w.program]
        if not w.answered:
            lines.append(f"no turn for {plx_job.human_time(w.row['turn_age_s'])}")
        yield f"\t{ids[w.key()]} [label={quote(chr(10).join(lines))}{style}];"
    texts = {e.to for e in job.edges if isinstance(e.to, str)}
    others = {text: f"x{i}" for i, text in enumerate(sorted(texts))}
    for text, name in others.items():
        yield f"\t{name} [label={quote(text)}, shape=ellipse];"
    for e in job.edges:
        oldest = max(e.waits, key=lambda wait: wait["age_s"] or 0)
        label = (f"{len(e.waits)} x " if len(e.waits) > 1 else "") + oldest["op"] + f" {tag_text(oldest)}\n"
        label += f"{plx_job.human(oldest['bytes'])} B, {plx_job.human_time(oldest['age_s'])}"
        to = others[e.to] if isinstance(e.to, str) else ids[e.to.key()]
        style = ", style=dashed" if e.guess else ""
        if not isinstance(e.to, str) and (e.worker.key(), e.to.key()) in red:
            style += ", color=red, fontcolor=red"
        yield f"\t{ids[e.worker.key()]} -> {to} [label={quote(label)}{style}];"
    yield "}"


def as_json(job):
    return {"workers": [{**plx_hosts.where(w.host), "pid": w.pid, "rank": w.rank, "program": w.program, **w.row}
                        for w in job.workers],
            "silent": [{**plx_hosts.where(a.get("host")), "socket": a["socket"], "why": a["error"]} for a in job.silent],
            "cycles": [[list(w.key()) for w in c] for c in job.cycles()],
            "found": list(job.found())}
