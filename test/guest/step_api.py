# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""step_api.py - in the guest: the contract of devices and the UCP tests, by net_mlx"""
import os
import re

import net
import run_util as u

# Parts of the names of tests that go through every kind of message; "am_" is in "stream_".
FEW = ["every_size", "am_"]
# And through all that the device does with memory, which is all at hand here.
BY_DEVICE = ["put_and_get_move", "every_atomic", "two_workers_add"]


def cunit(report, name, argv, timeout, env=None):
    """A program of the unit or api suite: its tests as results."""
    r = u.run(argv, timeout, env)
    tests = re.findall(r"^(?:  Test: )?(\w+) \.\.\. ?(passed|FAILED)?(.*(?:\n    .*)*)", r.out, re.M)
    for test, verdict, more in tests:
        report.result(f"{name}: {test}", "" if verdict == "passed" else verdict + more)
    if r.rc != 0 or r.timed_out or not tests:
        report.fail(f"{name} ends well", r.why() or r.out)
    print(f"# {name}: {r.seconds:.1f} s", flush=True)


def contract(report, build):
    """the contract of devices, on rxe"""
    exe = os.path.join(build, "test", "unit", "dev_contract_test")
    cunit(report, "contract", [exe, "net_mlx"], 60)


def ucp(report, build, parts, **more):
    env = {**net.OURS_ENV, "PLX_NET_MLX_DEVICE": net.DEVICES[0], **net.QUICK, **more}
    for part in parts:
        cunit(report, f"ucp_api {part}", [os.path.join(build, "test", "ucp_api_test"), *filter(None, [part])],
              500, env)


def api(report, build):
    """some of the UCP tests, over rxe"""
    ucp(report, build, FEW)
    ucp(report, build, BY_DEVICE, PLX_RMA_SCHEME="device")


def api_all(report, build):
    """all UCP tests, over rxe"""
    ucp(report, build, [""])
