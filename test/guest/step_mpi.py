# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""step_mpi.py - in the guest: programs on unmodified MPICH, on two hosts"""
import os

import net
import run_mpi
import run_util as u

FAMILY = run_mpi.FAMILIES[0]
# Not big: 200 MiB a rank; not overlap: a figure; not thread: it is the same by shm.
ALL = [p for p in FAMILY.programs if p not in ("big", "overlap")]
TIMEOUT_S = 120
# how, devices, ranks, ranks of a host in turn: with 1 the first neighbour is on the other host
WAYS = [("rxe only", "net_mlx", 2, 1), ("rxe only", "net_mlx", 4, 1),
        ("shm within a host and rxe between", "shm,net_mlx", 4, 1)]
LOCAL = ("shm only", "shm", 2, 2)


def exe_of(build, program):
    return os.path.join(build, "mpi-tests", f"{FAMILY.name}-{program}")


def prepare(build):
    """Compile, before boot; returns what is wrong."""
    os.makedirs(os.path.join(build, "mpi-tests"), exist_ok=True)
    return "\n".join(filter(None, (FAMILY.compile(p, exe_of(build, p)) for p in ALL)))


def names():
    """mpirun looks the hosts up, where it meets itself."""
    with open("/etc/hosts", "w", encoding="ascii") as f:
        f.write(f"127.0.0.1 localhost guest {' '.join(net.HOSTS)}\n")


def one(report, build, program, way):
    how, devices, ranks, ppn = way
    command = [os.path.join(build, "pollux-run"), *FAMILY.start, "-launcher", "ssh",
               "-launcher-exec", net.HOST, "-hosts", ",".join(net.HOSTS), "-ppn", ppn,
               "-n", ranks, exe_of(build, program)]
    before = net.sent()
    r = u.run(command, TIMEOUT_S, {"PLX_WORKER_DEVICES": devices})
    packets = net.sent() - before
    why = r.why()
    if not why and f"{program} ok" not in r.out:
        why = "it did not say that all is well\n" + r.out
    if not why and (packets > 0) != ("net_mlx" in devices):
        why = f"{packets} packets went over the wire"
    report.result(f"mpich {program}, {ranks} ranks, {how}", why, f"{r.seconds:.1f} s, {packets} packets")


def mpi(report, build):
    """MPICH programs on two hosts"""
    names()
    for program, way in (("collective", WAYS[0]), ("collective", WAYS[2]), ("rma", WAYS[0]),
                         ("point", LOCAL)):
        one(report, build, program, way)


def mpi_all(report, build):
    """all MPICH programs, by rxe, by shm, by both"""
    names()
    for program in ALL:
        for way in [*WAYS, LOCAL]:
            one(report, build, program, way)
