#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""steps.py - what is tested in the guest; run_guest.py starts it there

usage: steps.py --build DIR GROUP...
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

import run_perftest as perftest  # noqa: E402
import run_util as u             # noqa: E402

DEVICES = ("rxe0", "rxe1")
WIRES = ("wire0", "wire1")
# Its UD takes the IPv4 header of soft-RoCE for a foreign one; link-local IPv6 works.
UCX_ENV = {"UCX_TLS": "rc_verbs,ud_verbs,self", "UCX_IB_GID_INDEX": "0"}
PINGPONG_PORT = 18515


def sh(command):
    """A command that must work; its output."""
    return subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout


def counters(device):
    """What the device counted: sent_pkts, rcvd_pkts, duplicate_request ..."""
    words = sh(f"rdma statistic show link {device}/1").split()
    return {name: int(value) for name, value in zip(words[2::2], words[3::2])}


def ucx_env():
    """Server and client of UCX, each on its own device."""
    return tuple({**UCX_ENV, "UCX_NET_DEVICES": f"{device}:1"} for device in reversed(DEVICES))


def wait_for(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


def pingpong(n, timeout):
    """rdma-core's own program from one device to the other; returns what is wrong. The
    side that ends first may leave the other without its last acknowledgement."""
    base = ["ibv_rc_pingpong", "-g", "1", "-n", str(n), "-d"]
    both = []
    with tempfile.TemporaryFile("w+") as out:
        try:
            both.append(u.start([*base, DEVICES[1]], stdout=out, stderr=out))
            if not wait_for(lambda: u.listening(PINGPONG_PORT), 20):
                return "the server does not listen"
            both.append(u.start([*base, DEVICES[0], "127.0.0.1"], stdout=out, stderr=out))
            wait_for(lambda: any(p.poll() is not None for p in both), timeout)
            wait_for(lambda: all(p.poll() is not None for p in both), 2)
        finally:
            for p in both:
                u.kill_family(p)
                p.wait()
        out.seek(0)
        text = out.read()
    return "" if f"{n} iters in" in text else text + "no end"


class Loss:
    """A part of the packets is lost on both ends of the wire."""

    def __init__(self, percent):
        self.percent = percent

    def __enter__(self):
        for wire in WIRES:
            sh(f"tc qdisc add dev {wire} root netem loss {self.percent}%")

    def __exit__(self, *_):
        for wire in WIRES:
            sh(f"tc qdisc del dev {wire} root")


def port_state(device):
    with open(f"/sys/class/infiniband/{device}/ports/1/state", encoding="ascii") as f:
        return f.read().split()[1]


def rdma(report, _build):
    """the devices themselves: two ends of a wire that loses packets and can be pulled"""
    before = counters("rxe0")
    why = pingpong(200, 30)
    sent = counters("rxe0")["sent_pkts"] - before["sent_pkts"]
    if not why and sent < 200:
        why = f"only {sent} packets went over the wire"
    report.result("rxe0 and rxe1 exchange messages over the wire", why, f"{sent} packets")
    with Loss(10):
        before = counters("rxe1")
        why = pingpong(20, 30)
        again = counters("rxe1")["duplicate_request"] + counters("rxe1")["out_of_seq_request"] - \
            before["duplicate_request"] - before["out_of_seq_request"]
    if not why and not again:
        why = "no packet was sent again"
    report.result("lost packets are sent again", why)
    sh("ip link set wire0 down")
    down = wait_for(lambda: port_state("rxe0") == "DOWN", 5)
    sh("ip link set wire0 up")
    up = wait_for(lambda: all(port_state(d) == "ACTIVE" for d in DEVICES), 5)
    report.result("the port follows the cable", "" if down and up else f"down {down}, up {up}")


def ucx(report, _build):
    """the system's UCX by rc_verbs, which ours is compared to"""
    for test, size, n in (("tag_lat", 8, 200), ("tag_bw", 65536, 20)):
        error, row = perftest.pair([], ucx_env(), test, size, n, ("0", "1"), 60)
        report.result(f"UCX's own rc_verbs, {test} {size} bytes", error,
                      " ".join(f"{x:g}" for x in row or []))


GROUPS = {"rdma": rdma, "ucx": ucx}
DEFAULT = ["rdma", "ucx"]


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--build", required=True)
    ap.add_argument("groups", nargs="+", choices=GROUPS)
    args = ap.parse_args()
    report = u.Report()
    for name in args.groups:
        begin = time.monotonic()
        GROUPS[name](report, args.build)
        print(f"# {name}: {time.monotonic() - begin:.1f} s", flush=True)
    return report.status()


if __name__ == "__main__":
    sys.exit(main())
