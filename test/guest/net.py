# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""net.py - in the guest: its two RDMA devices, the wire between them, who uses which"""
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

DEVICES = ("rxe0", "rxe1")
WIRES = ("wire0", "wire1")
CORES = ("0", "1")
HOSTS = ("host0", "host1")  # host.sh: each has one of the devices
SWITCHED = ("host2", "host3")  # after switch()
PAIRS = ("pair0", "pair1")  # after switch(): each has two, on two networks
HOST = os.path.join(HERE, "host.sh")
# UCX's UD takes the IPv4 header of soft-RoCE for a foreign one; link-local IPv6 works.
UCX_ENV = {"UCX_TLS": "rc_verbs,ud_verbs,self", "UCX_IB_GID_INDEX": "0"}
OURS_ENV = {"PLX_WORKER_DEVICES": "net_mlx"}
# The wire is short: what is lost is sent again soon, who is silent is soon gone.
QUICK = {"PLX_NET_MLX_ACK_MS": "60", "PLX_NET_MLX_PROBE_MS": "400", "PLX_NET_MLX_DEAD_MS": "2000"}


def sh(command):
    """A command that must work; its output."""
    return subprocess.run(command, shell=True, check=True, capture_output=True, text=True).stdout


def on_hosts(env):
    """Server and client of perftest.pair(), each on its host; HOST, "@" begins the prefix."""
    return tuple({**env, "GUEST_HOST": host} for host in reversed(HOSTS))


def counters(device):
    """What the device counted: sent_pkts, rcvd_pkts, duplicate_request ..."""
    words = sh(f"rdma statistic show link {device}/1").split()
    return {name: int(value) for name, value in zip(words[2::2], words[3::2])}


def sent():
    """Packets sent by both."""
    return sum(counters(device)["sent_pkts"] for device in DEVICES)


def port_state(device):
    with open(f"/sys/class/infiniband/{device}/ports/1/state", encoding="ascii") as f:
        return f.read().split()[1]


def wait_for(condition, seconds):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


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


def switch():
    """Two more devices, whose cables can be pulled."""
    if not os.path.exists("/sys/class/net/switch"):
        sh(os.path.join(HERE, "rxe.sh") + " switch")


class Cables:
    """Those of switch(). Who moves them is started before, which takes a second by emulation."""

    def __init__(self):
        self.ip = subprocess.Popen(["ip", "-batch", "-"], stdin=subprocess.PIPE, text=True, bufsize=1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ip.stdin.close()
        self.ip.wait()

    def pull(self):
        self._all("down")

    def plug(self):
        self._all("up")

    def _all(self, state):
        for port in ("port2", "port3"):
            self.ip.stdin.write(f"link set {port} {state}\n")
