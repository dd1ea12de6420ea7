# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""step_mem.py - in the guest: what a peer costs in memory, ours and UCX in turn"""
import os

import net
import run_mp
import step_mp

BOTH = 12  # workers in one process; more of UCX's need more memory than a guest has
MANY = 60
ROUNDS = 1


def grown(ground, exe, n, env):
    """What rank 0 writes, and what is wrong."""
    family = run_mp.Family(ground, exe, 2, [n], env)
    text = ""
    if net.wait_for(lambda: os.path.exists(family.path("told")), 60):
        with open(family.path("grown"), encoding="ascii") as f:
            text = f.read().strip()
    return text, family.wait(30)


def memory(report, build):
    """bytes of a peer that is known, and of one that is connected; beside UCX"""
    ground = step_mp.hosts(build)
    exe, error = ground.program("peers")
    if error:
        report.fail("peers compiles", error)
        return
    ours = ground.prefix
    for side, n in [("pollux", BOTH), ("ucx", BOTH)] * ROUNDS + [("pollux", MANY)]:
        ground.prefix = ours if side == "pollux" else ours[:2]
        more = net.OURS_ENV if side == "pollux" else net.UCX_ENV
        text, why = grown(ground, exe, n, [{**more, "GUEST_HOST": host} for host in net.HOSTS])
        report.result(f"{n} peers, {side}", why, text)
