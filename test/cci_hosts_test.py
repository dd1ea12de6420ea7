#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""cci_hosts_test.py - CCI between hosts that have only TCP and UDP: connections of each kind, RMA, peers that die,
groups, packets that are lost, strangers

usage: cci_hosts_test.py [--build DIR] [SCENE...]

The hosts are those of hosts_test.py. Needs root and iproute2.
"""
import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile

import hosts_test as h
import run_util as u

TIMEOUT = 100
N = 300
PORTS = "21000-21009"
GROUP = "net_tcp://mc/hosts"
CCI = ["PLX_WORKER_DEVICES=net_tcp", "PLX_LOG_LEVEL=info"]
# Of the promises that cci_api_test tries, those with another process, which is on another host then.
PROMISES = ("an_armed_handle_wakes_for_what_comes_later,as_many_sends_are_kept_as_there_are_buffers,"
            "a_peer_killed_while_it_holds_messages,a_peer_that_hangs_up_is_disconnected,sends_to_a_killed_peer,"
            "the_last_message_to_a_peer_that_exits,a_keepalive_that_is_set_again,unreliable_sends_to_a_killed_peer")
# A program of the kernel's packet filter: 30 % of the datagrams of UDP by IPv4 are dropped.
LOSES = "8,40 0 0 12,21 0 5 2048,48 0 0 23,21 0 3 17,32 0 0 4294963256,37 1 0 1288490188,6 0 0 2,6 0 0 0"


def rpc_file(folder):
    return os.path.join(folder, "rpc")


def counter(path, name):
    """Of the process that has this control socket."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(path)
        s.sendall(b'{"jsonrpc":"2.0","id":1,"method":"device_get_list"}\n')
        text = s.makefile().readline()
    json.loads(text)
    return int(re.search(rf'"{name}":\s*(\d+)', text).group(1))


def api(net, build, names, env=()):
    """cci_api_test on a, whose other process is on b."""
    with tempfile.TemporaryDirectory() as folder:
        argv = net.at("a", "env", *CCI, f"PLX_RPC_SOCKET={rpc_file(folder)}", "PLX_NET_TCP_INTERFACES=eth0", *env,
                      f"CCI_TEST_CHILD_RUN=ip netns exec {net.names['b']}",
                      os.path.join(build, "test", "cci_api_test"), names)
        result = u.run(argv, TIMEOUT)
    ran = re.search(r"tests +(\d+) +(\d+) +(\d+)", result.out)
    if result.timed_out or result.rc != 0 or ran is None or int(ran.group(2)) < len(names.split(",")):
        return f"status {result.rc} after {result.seconds:.0f} s\n{result.out}{result.err}"
    return ""


def perf(net, build, tests, sizes, attr, more=(), env=()):
    pair = h.Pair(net, build, tests, sizes, env=[*CCI, *env], more=["--attr", attr, "--verify", "-n", "200", *more])
    return h.is_good(pair.run(), "connected to queue")


def each_kind_of_connection_sends_between_hosts(net, build):
    for attr, sizes in (("ro", "8,1k,8k"), ("ru", "8,1k,8k"), ("uu", "8,1k")):
        why = perf(net, build, "msg_lat", sizes, attr)
        if why:
            return attr + ": " + why
    return ""


def memory_of_another_host_is_written_and_read(net, build):
    tests = "rma_write_lat,rma_read_lat,rma_write_bw,rma_read_bw"
    for attr in ("ro", "ru"):
        why = perf(net, build, tests, "8,20k,1m", attr)
        if why:
            return attr + ": " + why
    return ""


def over_ipv6_alone_too(net, build):
    return perf(net, build, "msg_lat", "8,1k", "uu", env=["PLX_NET_TCP_FAMILY=inet6"]) or \
        api(net, build, "unreliable_messages_are_datagrams", ["PLX_NET_TCP_FAMILY=inet6"])


def promises_hold_between_hosts(net, build):
    return api(net, build, PROMISES)


def unreliable_messages_are_datagrams(net, build):
    return api(net, build, "unreliable_messages_are_datagrams")


def lost_datagrams_are_no_error(net, build):
    name = net.names["a"]
    tc = ["tc", "-n", name]
    done = u.run([*tc, "qdisc", "add", "dev", "eth0", "clsact"], 10)
    if done.rc == 0:
        done = u.run([*tc, "filter", "add", "dev", "eth0", "ingress", "bpf", "da", "bytecode", LOSES], 10)
    if done.rc != 0:
        return h.Skip("the kernel filters no packets here: " + done.err.strip())
    why = api(net, build, "unreliable_messages_are_datagrams,unreliable_sends_to_a_killed_peer",
              ["CCI_TEST_LOSS=1", "PLX_NET_TCP_FAMILY=inet"])
    u.run([*tc, "qdisc", "del", "dev", "eth0", "clsact"], 10)
    return why


# -- groups --

def cast(net, build, on, how, to, folder, env=()):
    rpc = [f"PLX_RPC_SOCKET={os.path.join(folder, on)}"] if how == "rx" else []
    argv = net.at(on, "env", *CCI, *rpc, "PLX_NET_TCP_INTERFACES=eth0", *env, os.path.join(build, "test", "cast"), how, to, N)
    return u.start(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def group(net, build, hears, env=(), meanwhile=lambda: None):
    """From a to all of these. @return the output of each, or why there is none"""
    with tempfile.TemporaryDirectory() as folder:
        members = [cast(net, build, on, "rx", GROUP, folder, env) for on in hears]
        said = [m.stdout.readline() for m in members]
        if said == ["joined\n"] * len(members):
            meanwhile()
            sender = cast(net, build, "a", "tx", GROUP, folder, env)
            said = [sender.communicate(timeout=TIMEOUT)[0]] + [m.communicate(timeout=TIMEOUT)[0] for m in members]
        else:
            for m in members:
                u.kill_family(m)
                m.wait()
            return "not all joined: " + repr(said)
    return said[1:]


def all_came(said, wrong):
    """@param wrong: whether anything that is no message of the group came"""
    if isinstance(said, str):
        return said
    for text in said:
        m = re.search(r"came (\d+) twice (\d+)\nbad (\d+) not_ours (\d+)", text)
        if m is None or int(m.group(1)) != N or int(m.group(2)) != 0:
            return f"{N} were sent: {text}"
        if (int(m.group(3)) + int(m.group(4)) != 0) != wrong:
            return f"of strangers: {text}"
    return ""


def a_group_has_receivers_on_all_hosts(net, build):
    return all_came(group(net, build, "abc"), False)


def a_group_is_there_by_ipv6_too(net, build):
    return all_came(group(net, build, "bc", ["PLX_NET_TCP_FAMILY=inet6"]), False)


def from_process_to_process(net, build):
    """Unreliable messages from a to b. @return the output of b"""
    with tempfile.TemporaryDirectory() as folder:
        b = cast(net, build, "b", "rx", "-", folder)
        a = cast(net, build, "a", "tx", b.stdout.readline().strip(), folder)
        a.wait(TIMEOUT)
        return b.communicate(timeout=TIMEOUT)[0]


def most_came(text):
    """Once, and whole, which the receiver has checked."""
    m = re.search(r"came (\d+) twice 0\nbad 0 not_ours 0", text)
    return "" if m is not None and N // 2 < int(m.group(1)) <= N else f"{N} were sent: {text}"


def a_network_that_loses_delays_and_reorders_spoils_nothing(net, build):
    def scene():
        said = group(net, build, "b")
        return said if isinstance(said, str) else most_came(said[0]) or most_came(from_process_to_process(net, build))

    return h.over_bad_network(net, scene)


CASTER = """
import os, re, socket, subprocess, struct
out = subprocess.run(["ip", "maddr", "show", "dev", "eth0"], capture_output=True, text=True).stdout
groups = re.findall(r"239\\.\\d+\\.\\d+\\.\\d+", out)
assert groups, out
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("10.77.0.3"))
for i in range(100):
    for g in groups:
        s.sendto(os.urandom(i * 13 % 1300), (g, 27180))
        s.sendto(b"plu1\\2\\0\\0\\0" + os.urandom(24 + i), (g, 27180))
"""


def rubbish_to_a_group_does_no_harm(net, build):
    def shout():
        subprocess.run(net.at("c", sys.executable, "-c", CASTER), check=True, timeout=20)

    return all_came(group(net, build, "bc", meanwhile=shout), True)


# -- strangers --

# With the address of b as the source, and with our own.
SPOOFER = """
import os, socket, struct, sys
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
ip = socket.inet_aton
for port in map(int, sys.argv[1:]):
    for i in range(200):
        rubbish = os.urandom(i * 7 % 300)
        stamp = b"plu1\\1\\0\\0\\0" + os.urandom(24 + i)
        for data in (rubbish, stamp):
            own.sendto(data, ("10.77.0.1", port))
            udp = struct.pack("!HHHH", port, port, 8 + len(data), 0) + data
            head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), i, 0, 64, 17, 0, ip("10.77.0.2"), ip("10.77.0.1"))
            raw.sendto(head + udp, ("10.77.0.1", 0))
"""


def strangers_and_forged_sources_do_no_harm(net, build):
    with tempfile.TemporaryDirectory() as folder:
        env = [*CCI, f"PLX_NET_TCP_PORTS={PORTS}", "PLX_NET_TCP_FAMILY=inet"]
        pair = h.Pair(net, build, "msg_lat", "8", env=env, server=[f"PLX_RPC_SOCKET={rpc_file(folder)}"],
                      more=["--attr", "uu", "--verify", "-n", "20000"])
        client, out = pair.begin()
        ports = set()

        def is_open():
            ports.update(p for p in h.ports_of(net, "a", "u") if 21000 <= p <= 21009)
            return ports and h.is_connected(out)

        if h.until(is_open):
            subprocess.run(net.at("c", sys.executable, "-c", SPOOFER, *map(str, ports)), check=True, timeout=30)
            counts = [counter(rpc_file(folder), name) for name in ("udp_drop_bad", "lossy_drop_not_ours")]
        else:
            counts = [0, 0]
        status = h.status_of(client)
        pair.close()
    out.seek(0)
    # from either source, rubbish and stamps that are nobody's
    return "" if status == 0 and min(counts) >= 300 else f"status {status}, dropped {counts}\n{out.read()}"


SCENES = [each_kind_of_connection_sends_between_hosts, memory_of_another_host_is_written_and_read, over_ipv6_alone_too,
          promises_hold_between_hosts, unreliable_messages_are_datagrams, lost_datagrams_are_no_error,
          a_group_has_receivers_on_all_hosts, a_group_is_there_by_ipv6_too, rubbish_to_a_group_does_no_harm,
          strangers_and_forged_sources_do_no_harm, a_network_that_loses_delays_and_reorders_spoils_nothing]


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--build", default=os.path.join(h.HERE, "..", "build"))
    args.add_argument("scenes", nargs="*")
    args = args.parse_args()
    u.need("ip", "ss", "tc")
    return h.run_scenes(SCENES, args.scenes, os.path.abspath(args.build))


if __name__ == "__main__":
    sys.exit(main())
