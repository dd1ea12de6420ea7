# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""step_mp.py - in the guest: processes on two hosts, and what goes wrong between them"""
import argparse
import os
import time

import net
import run_mp

PROGRAMS = ["all_to_all", "leave", "orphan", "rma", "cut", "peers"]
SEED = 1
SHORT_S = 2
TOLD_S = 25  # 1 s until a probe and 3.5 s after it, and all of it by emulation


def ground_of(build):
    return run_mp.Ground(argparse.Namespace(plain=False, build=build, seed=SEED, seconds=0))


def prepare(build):
    """Compile, before boot; returns what is wrong."""
    return "\n".join(filter(None, (ground_of(build).program(name)[1] for name in PROGRAMS)))


def hosts(build):
    """Where each process runs on the host that its environment names."""
    ground = ground_of(build)
    ground.prefix = [net.HOST, "@", *ground.prefix]
    return ground


def env(devices="net_mlx", n=2, on=net.HOSTS, **more):
    """Of each rank: those with even numbers are on one host."""
    return [{"PLX_WORKER_DEVICES": devices, "GUEST_HOST": on[rank % 2], **more} for rank in range(n)]


def mp(report, build):
    """processes on two hosts: many to many, put and get, leaving early"""
    ground = hosts(build)
    run_mp.one(report, ground, "all to all, 2 processes by net_mlx", "all_to_all", 2,
               [40, SEED, 200000], env())
    run_mp.one(report, ground, "all to all, 4 processes, shm within a host and net_mlx between",
               "all_to_all", 4, [15, SEED, 100000], env("shm,net_mlx", 4))
    run_mp.one(report, ground, "all to all, 4 processes by net_mlx, each connected to two at once",
               "all_to_all", 4, [6, SEED, 50000], env("net_mlx", 4, PLX_NET_MLX_CONNECTED="2"))
    run_mp.one(report, ground, "put, get and count by net_mlx", "rma", 2, [20, "work"], env())
    run_mp.one(report, ground, "nothing is lost by who closes and leaves", "leave", 2, ["destroy"],
               env())


def loss(report, build):
    """a tenth of the packets is lost"""
    ground = hosts(build)
    with net.Loss(10):
        before = net.sent()
        run_mp.one(report, ground, "all arrives in order although 10 % of the packets are lost",
                   "all_to_all", 2, [20, SEED, 30000], env(**net.QUICK))
        packets = net.sent() - before
    print(f"# {packets} packets", flush=True)


def pulled(ground, exe, how, cables, until):
    """Two processes exchange messages, and their cables are out until until() returns; what is
    wrong, and how long they were out."""
    # That a port is down is a warning, and what a program writes is a failure.
    family = run_mp.Family(ground, exe, 2, [how], env(on=net.SWITCHED, PLX_LOG_LEVEL="error"))
    if not net.wait_for(lambda: os.path.exists(family.path("busy")), 60):
        return family.wait(1), 0
    begin = time.monotonic()
    cables.pull()
    why = until(family)
    cables.plug()
    away = time.monotonic() - begin
    family.mark("mended")
    return family.wait(60) or why, away


def short_while(_):
    time.sleep(SHORT_S)


def both_told(family):
    told = net.wait_for(lambda: all(os.path.exists(family.path(f"told.{r}")) for r in (0, 1)), TOLD_S)
    return "" if told else f"nobody is told within {TOLD_S} s"


def cable(report, build):
    """the cable is pulled for two seconds, and for longer than a peer may be silent"""
    net.switch()
    ground = hosts(build)
    exe, error = ground.program("cut")
    if error:
        report.fail("cut compiles", error)
        return
    with net.Cables() as cables:
        for _ in range(3):
            why, away = pulled(ground, exe, "short", cables, short_while)
            if not why or away < 1.5 * SHORT_S:
                break
            print(f"# {away:.1f} s by a machine that is slow: {why}", flush=True)
        report.result(f"a cable pulled for {SHORT_S} s delays messages", why, f"{away:.1f} s")
        why, away = pulled(ground, exe, "long", cables, both_told)
        report.result("a cable pulled for long is an error; then both connect again", why,
                      f"told after {away:.1f} s")


def kill(report, build):
    """kill -9 of a peer"""
    ground = hosts(build)
    for does, what, length in (("send", "eager", 1000), ("receive", "rendezvous", 1 << 20)):
        exe, error = ground.program("orphan")
        if error:
            report.fail("orphan compiles", error)
            return
        family = run_mp.Family(ground, exe, 2, [does, length, "peer"], env(**net.QUICK))
        begin = time.monotonic()
        family.shoot(0.1)
        why = family.wait(60, killed=(1,))
        report.result(f"kill -9 of a peer on the other host, {what}", why,
                      f"{time.monotonic() - begin:.1f} s")
