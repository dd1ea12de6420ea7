# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""step_api.py - in the guest: the contract of devices and the UCP tests, by net_mlx"""
import os
import re

import net
import run_util as u

# Parts of the names of tests that go through every kind of message; "am_" is in "stream_".
FEW = ["every_size", "am_", "no_wakeup"]
# And through all that the device does with memory, which is all at hand here.
BY_DEVICE = ["put_and_get_move", "every_atomic", "two_workers_add"]
# All of groups, and of the rest what is different on a network.
CCI_FEW = ["group", "come_and_go", "two_devices", "rma_with_a_killed", "keeps_the_order"]
# A group that is joined by the RDMA connection manager, as on InfiniBand.
CCI_BY_MANAGER = ["group_has_members_on_two"]
# Some ask what the device has done.
ASKED = {"PLX_RPC_SOCKET": "/tmp/cci_api_test.sock"}


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
    """the contract of devices, more peers than may be connected, and queue pairs that fail, on rxe"""
    unit = os.path.join(build, "test", "unit")
    cunit(report, "contract", [os.path.join(unit, "dev_contract_test"), "net_mlx"], 60)
    cunit(report, "park", [os.path.join(unit, "mlx_park_test")], 120)
    cunit(report, "mend", [os.path.join(unit, "mlx_mend_test")], 60)


def face(report, build, name, parts, prefix=(), **more):
    """The tests of a face that have one of the parts in their names; a start takes seconds."""
    env = {**net.OURS_ENV, "PLX_NET_MLX_DEVICE": net.DEVICES[0], "CCI_TEST_DEVICES": ",".join(net.DEVICES),
           **net.QUICK, **more}
    cunit(report, name, [*prefix, os.path.join(build, "test", f"{name}_test"), ",".join(parts)], 500, env)


def api(report, build):
    """some of the UCP tests, over rxe"""
    face(report, build, "ucp_api", FEW)
    face(report, build, "ucp_api", BY_DEVICE, PLX_RMA_SCHEME="device")


def api_all(report, build):
    """all UCP tests, over rxe"""
    face(report, build, "ucp_api", [""])


def cci(report, build):
    """some of the CCI tests, over rxe, groups included"""
    face(report, build, "cci_api", CCI_FEW, **ASKED)
    face(report, build, "cci_api", CCI_BY_MANAGER, **ASKED, PLX_NET_MLX_GROUPS_BY_CM="yes", CCI_TEST_BY_MANAGER="1")


def uu(report, build):
    """unreliable connections of CCI between two hosts that lose packets: datagrams, kill -9"""
    here, there = (("taskset", "-c", core) for core in net.CORES)
    more = {"CCI_TEST_CHILD_RUN": f"{net.HOST} host1 {' '.join(there)}", "CCI_TEST_LOSS": "1",
            "PLX_NET_MLX_DEAD_MS": "5000", **ASKED}  # who only lost packets is not gone
    with net.Loss(10):
        face(report, build, "cci_api", ["unreliable_messages", "unreliable_sends_to"], here, **more)
        face(report, build, "cci_api", ["unreliable_sends_without"], here, **more, CCI_TEST_PARKED="1",
             PLX_NET_MLX_CONNECTED="2")


def cci_all(report, build):
    """all CCI tests, over rxe"""
    face(report, build, "cci_api", [""], **ASKED)
