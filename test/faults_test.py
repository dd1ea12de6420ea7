#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""faults_test.py - hosts as in hosts_test.py, with networks and peers that fail: cables, middle boxes, crowds,
peers that compute, ports that are taken

usage: faults_test.py [--build DIR] [--long] [SCENE...]

--long: the times are those that are promised, and not scaled down. Needs root and iproute2.
"""
import argparse
import concurrent.futures
import itertools
import os
import re
import subprocess
import sys
import tempfile
import time

import hosts_test as h
import run_util as u

TIMEOUT = 120
next_port = itertools.count(21000)  # of a worker that is told of
TCP = ["env", "PLX_LOG_LEVEL=info", "PLX_WORKER_DEVICES=net_tcp"]
LONG = False


def scaled(seconds, long):
    return long if LONG else seconds


class Crowd:
    """crowd serve on a, crowd greet on the others."""

    def __init__(self, net, build, n, messages, before_ms=0, amid_ms=0, env=()):
        self.net, self.exe, self.env, self.n, self.messages = net, os.path.join(build, "test", "crowd"), env, n, messages
        self.err = tempfile.TemporaryFile("w+")
        self.port = next(next_port)
        self.server = self.start("a", ["serve", n, messages, before_ms, amid_ms], [f"PLX_NET_TCP_PORTS={self.port}-{self.port}"])
        self.address = self.server.stdout.readline()

    def start(self, host, args, env=()):
        return u.start(self.net.at(host, *TCP, *self.env, *env, self.exe, *args), stdin=subprocess.PIPE,
                       stdout=subprocess.PIPE, stderr=self.err, text=True)

    def greet(self, host, amid_ms=0, **kw):
        p = self.start(host, ["greet", self.n, self.messages, amid_ms], **kw)
        p.stdin.write(self.address)
        p.stdin.close()
        return p

    def end(self, clients, timeout=TIMEOUT):
        """@return what is wrong, else what both said"""
        why, said = "", ""
        for p in clients + [self.server]:
            if p is self.server and not why:
                p.stdin.close()
            try:
                status = u.wait(p, 5 if why else timeout)
            except subprocess.TimeoutExpired:
                status = "none in time"
            u.kill_family(p)
            p.wait()
            said += p.stdout.read()
            if status != 0:
                why += f"status {status}\n"
        self.err.seek(0)
        return (why + said + "".join(self.err.readlines()[-20:]) if why else ""), said


def one(net, build, n=1, messages=1, greet_ms=0, **kw):
    crowd = Crowd(net, build, n, messages, **kw)
    return crowd.end([crowd.greet("b", greet_ms)])[0]


def at_once(*scenes):
    """Those that wait, most of the time. @return what is wrong"""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        return "".join(pool.map(lambda scene: scene(), scenes))


def a_thousand_workers_connect_to_one_at_once(net, build):
    crowd = Crowd(net, build, 1000, 2)
    return crowd.end([crowd.greet("b")], 60)[0]


def peers_that_compute_are_waited_for(net, build):
    """Before their first turn; while they connect; while more is sent to them than their host takes."""
    soon = [f"PLX_NET_TCP_CONNECT_MS={scaled(1000, 10000)}", f"PLX_NET_TCP_DEAD_MS={scaled(2000, 20000)}"]
    ms = scaled(6000, 60000)  # longer than any guest may be silent
    return at_once(lambda: one(net, build, before_ms=ms, env=soon), lambda: one(net, build, greet_ms=ms, env=soon),
                   lambda: one(net, build, messages=2000, amid_ms=ms, env=soon))


def answered_in(said):
    """Seconds; the sentence is crowd's."""
    return float(re.search(r"answered \d+ in ([\d.]+) s", said).group(1))


def ten_thousand_silent_strangers_keep_nobody_out(net, build):
    crowd = Crowd(net, build, 8, 50)
    strangers = u.start(net.at("c", "prlimit", "--nofile=10100", sys.executable, "-c", STRANGERS, crowd.port, 10000),
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    ready = strangers.stdout.readline()
    why, said = crowd.end([crowd.greet("b")])
    u.kill_family(strangers)
    strangers.wait()
    if why or ready != "ready\n":
        return why or "the strangers do not come"
    return "" if answered_in(said) < 10 else said


STRANGERS = """
import socket, sys
port, n = int(sys.argv[1]), int(sys.argv[2])
kept = []
for i in range(n):
    s = socket.socket()
    s.setblocking(False)
    s.connect_ex(("10.77.0.1", port))
    kept.append(s)
print("ready", flush=True)
sys.stdin.read()
"""


def who_listens_and_never_answers_is_an_error_in_time(net, build):
    """Somebody else, where the peer was."""
    crowd = Crowd(net, build, 1, 1, env=["PLX_NET_TCP_CONNECT_MS=500", "PLX_NET_TCP_ANSWER_MS=3000"])
    u.kill_family(crowd.server)
    crowd.server.wait()
    silent = u.start(net.at("a", sys.executable, "-c", SILENT, crowd.port), stdout=subprocess.PIPE, text=True)
    silent.stdout.readline()
    client = crowd.greet("b")
    why = ends_with(crowd, client, 15, "it computes, or somebody else listens there", "can't be reached: .*no answer")
    u.kill_family(silent)
    silent.wait()
    return why


SILENT = """
import socket, sys, time
s = socket.create_server(("::", int(sys.argv[1])), family=socket.AF_INET6, dualstack_ipv6=True)
print("ready", flush=True)
time.sleep(60)
"""


def ends_with(crowd, client, seconds, *says):
    """@return what is wrong with a client that should end with an error and say this"""
    try:
        status = u.wait(client, seconds)
    except subprocess.TimeoutExpired:
        u.kill_family(client)
        client.wait()
        status = None
    u.kill_family(crowd.server)
    crowd.server.wait()
    crowd.err.seek(0)
    err = crowd.err.read()
    missing = [t for t in says if not re.search(t, err)]
    if status == 1 and not missing:
        return ""
    return f"status {status}, it does not say {missing}\n{err}"


def where_no_port_is_free_the_error_says_so(net, build):
    few = ["PLX_NET_TCP_PORTS=22000-22000", "PLX_NET_TCP_CONNECT_MS=1000"]
    crowd = Crowd(net, build, 2, 1)
    why = ends_with(crowd, crowd.greet("b", env=few), 15, "nobody can connect to this worker: no port of net_tcp.ports is free",
                    "can't be reached: .*10.77.0.1:\\d+: no port of net_tcp.ports is free")
    if why:
        return why
    with Sysctl(net, "b", "net.ipv4.ip_local_port_range", "22000 22000"):
        crowd = Crowd(net, build, 2, 1)
        return ends_with(crowd, crowd.greet("b", env=few[1:]), 15, "can't be reached: .*10.77.0.1:\\d+: no port is free")


class Sysctl:
    def __init__(self, net, host, name, value):
        self.net, self.host, self.path, self.value = net, host, "/proc/sys/" + name.replace(".", "/"), value

    def put(self, value):
        subprocess.run(self.net.at(self.host, "tee", self.path), input=value, text=True, check=True, stdout=subprocess.DEVNULL)

    def __enter__(self):
        self.old = subprocess.run(self.net.at(self.host, "cat", self.path), capture_output=True, text=True, check=True).stdout
        self.put(self.value)

    def __exit__(self, *_):
        self.put(self.old)


def cable(net, state):
    net.on(net.names[h.BRIDGE], "link", "set", "to-a", state)


def a_cable_that_was_out_loses_nothing(net, build):
    """Pulled while messages are under way in both directions."""
    crowd = Crowd(net, build, 4, 2000, amid_ms=1000)
    clients = [crowd.greet("b")]
    time.sleep(0.5)
    cable(net, "down")
    time.sleep(scaled(2, 10))
    cable(net, "up")
    return crowd.end(clients)[0]


def gone(net, build, fault, env=()):
    """@return what is wrong with a client that waits for its answer and should learn that nobody is there any more"""
    crowd = Crowd(net, build, 1, 1, amid_ms=30000, env=["PLX_NET_TCP_FAMILY=inet", *env])
    client = crowd.greet("b")
    if h.until(lambda: h.is_connected(crowd.err)):
        time.sleep(0.3)
        fault(crowd)
    return ends_with(crowd, client, 10, "the one that was greeted is gone: ")


def a_connection_that_only_we_know_of_is_an_error_in_time(net, build):
    """Nothing is under way, and nobody says that it is over."""
    def fault(crowd):
        cable(net, "down")
        u.kill_family(crowd.server)

    why = gone(net, build, fault, ["PLX_NET_TCP_DEAD_MS=2000"])
    cable(net, "up")
    return why


def a_host_that_has_forgotten_us_is_an_error_soon(net, build):
    """It was restarted, and has the same address."""
    def fault(crowd):
        cable(net, "down")
        u.kill_family(crowd.server)
        subprocess.run(net.at("a", "ss", "-K", "dst", "10.77.0.2"), check=True, capture_output=True)
        cable(net, "up")

    return gone(net, build, fault)


def a_middle_box_that_resets_is_an_error_at_once(net, build):
    """When messages go, and when only probes do."""
    def reset(scene):
        box = []
        argv = ["ip", "netns", "exec", net.names[h.BRIDGE], sys.executable, os.path.join(h.HERE, "reset.py"), "to-a", "to-b"]
        try:
            return scene(lambda _: box.append(u.start(argv)))
        finally:
            for p in box:
                u.kill_family(p)
                p.wait()

    return reset(lambda fault: h.while_it_runs(net, build, fault, 10)) or reset(lambda fault: gone(net, build, fault))


def a_network_that_loses_delays_and_reorders_loses_nothing(net, build):
    """1 % is lost, all is 50 ms late, and a quarter comes before its time."""
    return h.over_bad_network(net, lambda: one(net, build, n=2, messages=100) or h.is_good(
        h.Pair(net, build, "tag_lat,put", "8,100k", more=["-n", "2", "--warmup", "1", "--verify"]).run(200)))


SCENES = [a_thousand_workers_connect_to_one_at_once, ten_thousand_silent_strangers_keep_nobody_out,
          peers_that_compute_are_waited_for, who_listens_and_never_answers_is_an_error_in_time,
          where_no_port_is_free_the_error_says_so, a_cable_that_was_out_loses_nothing,
          a_connection_that_only_we_know_of_is_an_error_in_time, a_host_that_has_forgotten_us_is_an_error_soon,
          a_middle_box_that_resets_is_an_error_at_once, a_network_that_loses_delays_and_reorders_loses_nothing]


def main():
    global LONG
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--build", default=os.path.join(h.HERE, "..", "build"))
    args.add_argument("--long", action="store_true")
    args.add_argument("scenes", nargs="*")
    args = args.parse_args()
    LONG = args.long
    u.need("ip", "ss", "tc", "prlimit")
    return h.run_scenes(SCENES, args.scenes, os.path.abspath(args.build))


if __name__ == "__main__":
    sys.exit(main())
