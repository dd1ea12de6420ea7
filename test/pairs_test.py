#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""pairs_test.py - commperf with several pairs of ranks: under the launchers of MPICH and Open MPI, on two hosts

usage: pairs_test.py COMMPERF

The two hosts are network namespaces, which need root and iproute2: ranks are started there as a launcher would.
"""
import csv
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile

import hosts_test as hosts
import run_util as u

PROGRAM = os.path.abspath(sys.argv[1])
LAUNCHERS = {"mpich": ["mpirun.mpich"], "openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"]}
LIMIT_S = 100
PLAIN = {k: v for k, v in os.environ.items() if not k.startswith(("PMI", "OMPI_", "SLURM_"))}


def launched(launcher, n, *args):
    return u.run([*LAUNCHERS[launcher], "-n", str(n), PROGRAM, "--pairs", f"127.0.0.1:{u.free_port()}", *args], LIMIT_S)


def table(path):
    with open(path, encoding="utf-8") as f:
        return list(csv.DictReader(f))


def right(row, pairs):
    """What is wrong with a line of that number of pairs."""
    value, low, mid, high = (float(row[k]) for k in ("value", "min", "median", "max"))
    if row["label"] != f"{pairs} pair{'s' if pairs > 1 else ''}" or not 0 < low <= mid <= high:
        return f"{row}"
    if row["unit"] == "us":
        return "" if value == mid else f"not the median: {row}"
    tight = low + high if pairs == 2 else low + 2 * mid + high if pairs == 4 else value
    return "" if abs(value - tight) < 1e-3 * value and value == float(row["total"]) else f"not the sum: {row}"


def launcher_starts(folder, launcher, n):
    if shutil.which(LAUNCHERS[launcher][0]) is None:
        print(f"# {launcher} is not here")
        return
    path = os.path.join(folder, "out.csv")
    r = launched(launcher, n, "-t", "tag_lat,tag_rate,put_lat,am_bw", "-s", "8,4k", "-n", "200", "--verify", "--csv", path)
    rows = table(path) if os.path.exists(path) else []
    wide = [x for x in r.out.splitlines() if len(x) > 80]
    if r.rc != 0 or len(rows) != 8 or wide or r.out.count("# library") != 1:
        yield f"status {r.rc}, {len(rows)} rows, {wide}\n{r.out}{r.err}"
    yield from filter(None, (right(row, n // 2) for row in rows))
    if [row for row in rows if int(row["n"]) != 200 * n // 2 or row["errors"] != "0"]:
        yield f"messages: {rows}"


def mpich_starts_four(folder):
    yield from launcher_starts(folder, "mpich", 4)


def mpich_starts_eight(folder):
    yield from launcher_starts(folder, "mpich", 8)


def open_mpi_starts_four(folder):
    yield from launcher_starts(folder, "openmpi", 4)


def open_mpi_starts_eight(folder):
    yield from launcher_starts(folder, "openmpi", 8)


class Ranks:
    """Ranks that are started here, with the variables of a launcher."""

    def __init__(self, n, args, port=None, host="127.0.0.1", at=lambda rank: [], names=("PMI_RANK", "PMI_SIZE"),
                 local=lambda rank: rank):
        self.port, self.files, self.rank = port or u.free_port(), [], []
        for i in range(n):
            self.files.append([tempfile.TemporaryFile("w+") for _ in range(2)])
            env = {**PLAIN, names[0]: str(i), names[1]: str(n), "MPI_LOCALRANKID": str(local(i))}
            self.rank.append(u.start([*at(i), PROGRAM, "--pairs", f"{host}:{self.port}", *args], env,
                                     stdout=self.files[-1][0], stderr=self.files[-1][1]))

    def text(self, rank, which):
        self.files[rank][which].seek(0)
        return self.files[rank][which].read()

    def said(self):
        return "\n".join(self.text(i, 0) + self.text(i, 1) for i in range(len(self.rank)))

    def end(self, seconds=LIMIT_S):
        """The status of each; None: it had to be killed."""
        status = []
        for p in self.rank:
            try:
                status.append(u.wait(p, seconds))
            except subprocess.TimeoutExpired:
                u.kill_family(p)
                p.wait()
                status.append(None)
        return status


def many_seconds_are_summed(folder):
    ranks = Ranks(4, ["-t", "tag_rate", "--duration", "2.2"])
    status = ranks.end()
    live = re.findall(r"^# tag_rate 8, [\d.]+ of 2.2 s: ([\d.]+) Mmsg/s$", ranks.text(0, 0), re.M)
    if status != [0] * 4 or not 1 <= len(live) <= 2 or ranks.text(1, 0):
        yield f"{status} {live}\n{ranks.said()}"


def slurm_and_pmix_variables_are_read(folder):
    for names in (("SLURM_PROCID", "SLURM_NTASKS"), ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE")):
        ranks = Ranks(2, ["-t", "tag_lat", "-s", "8", "-n", "50"], names=names)
        if ranks.end() != [0, 0] or "1 pair" not in ranks.text(0, 0):
            yield f"{names}: {ranks.said()}"


def a_rank_that_dies_ends_all(folder):
    for victim in (1, 3):
        ranks = Ranks(4, ["-t", "tag_rate", "--duration", "60"])
        hosts.until(lambda: "# tag_rate" in ranks.text(0, 0))
        u.kill_family(ranks.rank[victim])
        status = ranks.end(30)
        if 0 in status or None in status or "rank" not in ranks.text(0, 1):
            yield f"{victim}: {status}\n{ranks.said()}"


def a_rank_that_does_not_come_is_said(folder):
    r = u.run([PROGRAM, "--pairs", f"127.0.0.1:{u.free_port()}", "--timeout", "2"], LIMIT_S,
              {**PLAIN, "PMI_RANK": "0", "PMI_SIZE": "4"})
    if r.rc != 1 or "only 1 of 4 ranks connected within 2 s" not in r.err or r.seconds > 20:
        yield f"status {r.rc} after {r.seconds:.0f} s: {r.err}"
    r = u.run([PROGRAM, "--pairs", f"127.0.0.1:{u.free_port()}", "--timeout", "1"], LIMIT_S,
              {**PLAIN, "PMI_RANK": "1", "PMI_SIZE": "4"})
    if r.rc != 1 or "rank 1: " not in r.err:
        yield f"without a hub: status {r.rc}: {r.err}"


def strangers_are_sent_away(folder):
    port = u.free_port()
    argv = [PROGRAM, "--pairs", f"127.0.0.1:{port}", "-t", "tag_lat", "-s", "8", "-n", "50"]
    err = tempfile.TemporaryFile("w+")
    first = u.start(argv, {"PMI_RANK": "0", "PMI_SIZE": "2"}, stdout=subprocess.DEVNULL, stderr=err)
    hosts.until(lambda: u.listening(port))
    for data in (b"GET / HTTP/1.0\r\n\r\n", b"\xff" * 64, b"\x24\0\0\0" + b"commprf\0" + b"\xff" * 24):
        with socket.create_connection(("127.0.0.1", port)) as s:
            s.sendall(data)
            try:
                s.shutdown(socket.SHUT_WR)
                s.recv(1)
            except OSError:  # it was faster
                pass
    second = u.run(argv, LIMIT_S, {"PMI_RANK": "1", "PMI_SIZE": "2"})
    status = u.wait(first, LIMIT_S)
    err.seek(0)
    said = err.read()
    if status != 0 or second.rc != 0 or said.count("not from a rank of this job") != 3:
        yield f"status {status} and {second.rc}: {said}{second.err}"


def what_is_no_job_is_refused(folder):
    cases = (({}, [], "under mpirun or srun"), ({"PMI_RANK": "0", "PMI_SIZE": "3"}, [], "even number"),
             ({"PMI_RANK": "4", "PMI_SIZE": "4"}, [], "is rank 4"), ({"PMI_RANK": "x", "PMI_SIZE": "4"}, [], "mpirun"),
             ({"PMI_RANK": "0", "PMI_SIZE": "99999"}, [], "at most 1024"),
             ({"PMI_RANK": "0", "PMI_SIZE": "2"}, ["-t", "startup"], 'does not take --pairs: "startup"'),
             ({"PMI_RANK": "0", "PMI_SIZE": "2"}, ["--vs", "ucx"], "are both sides"))
    for env, args, why in cases:
        r = u.run([PROGRAM, "--pairs", f"127.0.0.1:{u.free_port()}", *args], LIMIT_S, {**PLAIN, **env})
        if r.rc != 2 or why not in r.err:
            yield f"{env} {args}: status {r.rc}: {r.err}"


def pairs_are_of_two_hosts(folder):
    """Ranks 0 and 1 on one host, 2 and 3 on another: no pair has shared memory."""
    if os.geteuid() != 0 or subprocess.run(["ip", "netns", "add", "plxprobe"], check=False).returncode != 0:
        print("# no network namespaces can be made here")
        return
    hosts.ip("netns", "del", "plxprobe")
    with hosts.Net() as net:
        path = os.path.join(folder, "out.csv")
        ranks = Ranks(4, ["-t", "tag_lat,tag_bw", "-s", "8,64k", "-n", "50", "--verify", "--csv", path, "--no-eal"],
                      port=17771, host="10.77.0.1",
                      at=lambda i: net.at("ab"[i // 2], "env", "PLX_LOG_LEVEL=info", "PLX_WORKER_DEVICES=shm,net_tcp"),
                      local=lambda i: i % 2)
        status = ranks.end()
        said = ranks.said()
    rows = table(path) if os.path.exists(path) else []
    if status != [0] * 4 or len(rows) != 4 or "net_tcp" not in said:
        yield f"{status} {rows}\n{said}"
    yield from filter(None, (right(row, 2) for row in rows))


TESTS = (mpich_starts_four, mpich_starts_eight, open_mpi_starts_four, open_mpi_starts_eight, many_seconds_are_summed,
         slurm_and_pmix_variables_are_read, a_rank_that_dies_ends_all, a_rank_that_does_not_come_is_said,
         strangers_are_sent_away, what_is_no_job_is_refused, pairs_are_of_two_hosts)


if __name__ == "__main__":
    sys.exit(u.run_tests_in_folders(TESTS, "pollux-pairs-"))
