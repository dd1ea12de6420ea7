# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""step_tcp.py - in the guest: hosts joined by TCP over a network that loses, delays and reorders"""
import os
import sys

import net
import run_util as u

SCENES = {"faults_test.py": "a_network_that_loses_delays_and_reorders_loses_nothing",
          "cci_hosts_test.py": "a_network_that_loses_delays_and_reorders_spoils_nothing"}


def tcp(report, build):
    """1 % of the packets lost, 50 ms of delay, 25 % before their time: everything arrives, or, of datagrams, most"""
    for program, scene in SCENES.items():
        result = u.run([sys.executable, os.path.join(os.path.dirname(net.HERE), program), "--build", build, scene], 400)
        if f"ok 1 - {scene} (" not in result.out:
            report.fail(scene, result.out + result.err)
        else:
            report.ok(scene, f"{result.seconds:.0f} s")
