#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""hosts_test.py - several hosts, which are network namespaces: every operation by TCP, MPI jobs with their
own launchers, peers that die or vanish, strangers, few descriptors

usage: hosts_test.py [--build DIR] [SCENE...]

The hosts a, b and c have an interface eth0 on one bridge, and two decoys with the same address on each: docker0,
which is left out by its name, and other0. Needs root and iproute2.
"""
import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import run_util as u

HERE = os.path.dirname(os.path.abspath(__file__))
TIMEOUT = 100
PORT = 17770
HOSTS = "abc"
BRIDGE = "s"
SIZES = "8,1k,8k,20k,100k,4m"
TESTS = "tag_lat,tag_bw,am,stream,put,get,atomic"
OMPI = ["--allow-run-as-root", "--oversubscribe", "--mca", "btl", "self", "--mca", "plm", "rsh",
        "--mca", "oob_tcp_if_include", "eth0"]
PROGRAMS = [("collective", 3), ("collective", 6), ("pingpong", 2), ("point", 3), ("rma", 6)]
# The command that a launcher calls instead of ssh. Its arguments are options, a host, and a command for the shell of
# that host. Like ssh, it takes no environment along. Each host has a folder for temporary files: daemons of Open MPI
# write files of the same name there.
AGENT = """#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1; shift
case $host in *c) set -- "PLX_NET_TCP_FAMILY=${FAMILY_OF_C:-any}; export PLX_NET_TCP_FAMILY;" "$@" ;; esac
mkdir -p "$TMPDIR/$host"
exec ip netns exec "$host" env -i PATH="$PATH" HOME="$HOME" TMPDIR="$TMPDIR/$host" PMIX_MCA_gds=hash sh -c "$*"
"""


class Skip(str):
    """Why a scene can't be had here."""


def ip(*args, check=True):
    return subprocess.run(["ip", *args], check=check, capture_output=True, text=True)


class Net:
    """Hosts on a bridge, gone at the end."""

    def __init__(self):
        self.tag = f"plx{os.getpid()}"
        self.names = {h: f"{self.tag}{h}" for h in HOSTS + BRIDGE}

    def __enter__(self):
        for name in self.names.values():
            ip("netns", "add", name)
            self.on(name, "link", "set", "lo", "up")
        self.on(self.names[BRIDGE], "link", "add", "br0", "type", "bridge")
        self.on(self.names[BRIDGE], "link", "set", "br0", "up")
        for h in HOSTS:
            self.host_open(h)
        return self

    def __exit__(self, *_):
        for name in self.names.values():
            ip("netns", "del", name, check=False)

    @staticmethod
    def on(name, *args):
        return ip("-n", name, *args)

    def wire(self, h):
        """Its interface, and the cable to the bridge."""
        name, bridge, i = self.names[h], self.names[BRIDGE], HOSTS.index(h) + 1
        self.on(bridge, "link", "add", f"to-{h}", "type", "veth", "peer", "name", "eth0", "netns", name)
        self.on(bridge, "link", "set", f"to-{h}", "master", "br0", "up")
        self.on(name, "addr", "add", f"10.77.0.{i}/24", "dev", "eth0")
        self.on(name, "addr", "add", f"fd77::{i}/64", "dev", "eth0", "nodad")
        self.on(name, "link", "set", "eth0", "up")

    def host_open(self, h):
        self.wire(h)
        name = self.names[h]
        for decoy, addr in (("docker0", "172.17.0.1/16"), ("other0", "192.168.99.1/24")):
            self.on(name, "link", "add", decoy, "type", "veth", "peer", "name", decoy + "x")
            self.on(name, "link", "set", decoy + "x", "up")
            self.on(name, "addr", "add", addr, "dev", decoy)
            self.on(name, "link", "set", decoy, "up")

    def at(self, h, *argv):
        return ["ip", "netns", "exec", self.names[h], *argv]


class Pair:
    """commperf between a, which serves at this address, and b; or two others."""

    def __init__(self, net, build, tests, sizes, env=(), server=(), client=(), more=(), hosts="ab", address="10.77.0.1"):
        exe = os.path.join(build, "app", "commperf", "commperf")
        common = ["env", "PLX_LOG_LEVEL=info", "PLX_WORKER_DEVICES=shm,net_tcp", *env]
        self.server = u.start(net.at(hosts[0], *common, *server, exe, "--no-eal", "--bind", "off", "--server",
                                     f"{address}:{PORT}"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.argv = net.at(hosts[1], *common, *client, exe, "--no-eal", "--bind", "off", "--connect", f"{address}:{PORT}",
                           "-t", tests, "-s", sizes, *more)
        if not until(lambda: PORT in ports_of(net, hosts[0])):
            raise RuntimeError("the server does not listen")

    def run(self, timeout=TIMEOUT):
        """Up to the client's end."""
        result = u.run(self.argv, timeout)
        self.close()
        return result

    def begin(self):
        out = tempfile.TemporaryFile("w+")
        client = u.start(self.argv, stdout=out, stderr=subprocess.STDOUT)
        return client, out

    def close(self):
        u.kill_family(self.server)
        self.server.wait()


def until(what, timeout=20):
    end = time.monotonic() + timeout
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def ports_of(net, h, by="t"):
    """Where somebody listens on a host, by TCP or ("u") by UDP."""
    out = subprocess.run(net.at(h, "ss", "-Hln" + by), capture_output=True, text=True, check=False).stdout
    return {int(line.split()[3].rsplit(":", 1)[1]) for line in out.splitlines()}


def is_good(result, *says):
    """@return what is wrong with a client that should have ended well, and said all this"""
    if result.timed_out or result.rc != 0:
        return f"status {result.rc} after {result.seconds:.0f} s\n{result.out}{result.err}"
    missing = [t for t in says if not re.search(t, result.err)]
    return f"it does not say {missing}:\n{result.err}" if missing else ""


CARRIED = "chooses net_tcp for a process at .*, not shm"


def every_operation(net, build, **kw):
    says = kw.pop("says", [CARRIED])
    return is_good(Pair(net, build, TESTS, SIZES, more=["-n", "60", "--verify"], **kw).run(), *says)


def every_operation_goes_between_hosts(net, build):
    return every_operation(net, build)


def over_ipv6_alone_too(net, build):
    return every_operation(net, build, env=["PLX_NET_TCP_FAMILY=inet6"], says=[CARRIED, r"connected to queue \w+ at \[fd77"])


def by_the_ports_and_the_interface_that_are_named(net, build):
    env = ["PLX_NET_TCP_PORTS=20000-20009", "UCX_TLS=tcp", "UCX_NET_DEVICES=eth0"]
    return every_operation(net, build, env=env, says=[r"connected to queue \w+ at 10\.77\.0\.1:2000\d"])


def a_host_that_has_ipv6_only_takes_part(net, build):
    """On either side; the decoys have IPv4."""
    old = ["10.77.0.3/24", "dev", "eth0"]
    net.on(net.names["c"], "addr", "del", *old)
    try:
        for hosts, address in (("ca", "fd77::3"), ("ac", "fd77::1")):
            pair = Pair(net, build, "tag_lat,put", "8,100k", more=["-n", "20", "--verify"], hosts=hosts, address=address)
            why = is_good(pair.run(), CARRIED, r"connected to queue \w+ at \[fd77")
            if why:
                return f"{hosts}: {why}"
    finally:
        net.on(net.names["c"], "addr", "add", *old)
    return ""


def connections_of(net, h):
    """Pairs of ports, ours and theirs."""
    out = subprocess.run(net.at(h, "ss", "-Htn", "state", "established"), capture_output=True, text=True, check=False).stdout
    return [tuple(int(place.rsplit(":", 1)[1]) for place in line.split()[2:4]) for line in out.splitlines()]


def both_ends_have_ports_that_are_named(net, build):
    """And the network is named, not the interface."""
    env = ["PLX_NET_TCP_PORTS=20000-20009", "PLX_NET_TCP_INTERFACES=10.77.0.0/16"]
    pair = Pair(net, build, "tag_lat", "8", env=env, more=["-n", "10000000"])
    client, out = pair.begin()
    until(lambda: is_connected(out))
    ends = [e for e in connections_of(net, "b") if PORT not in e]
    for p in (client, pair.server):
        u.kill_family(p)
        p.wait()
    out.seek(0)
    return "" if ends and all(20000 <= port <= 20009 for e in ends for port in e) else f"ports {ends}\n{out.read()}"


def with_a_reactor_that_sleeps(net, build):
    env = ["PLX_REACTOR_IDLE=sleep"]
    return is_good(Pair(net, build, "tag_lat,tag_bw", "8,100k", env=env, more=["-n", "200", "--verify", "--reactor", "0"]).run(), CARRIED)


def where_no_address_leads_an_error_names_each(net, build):
    """Only the decoy is told of, which the other host has itself."""
    result = Pair(net, build, "tag_lat", "8", env=["PLX_NET_TCP_INTERFACES=other0"], more=["--timeout", "8"]).run()
    if result.rc == 0 or result.timed_out:
        return "it was reached by a decoy, or nobody noticed\n" + result.err
    if "192.168.99.1" not in result.err or "has the address itself" not in result.err:
        return "it does not say what each address answered:\n" + result.err
    return "" if result.seconds < 20 else f"only after {result.seconds:.0f} s"


def ends_soon(client, out, seconds):
    """@return what is wrong with a client whose server has gone"""
    begin = time.monotonic()
    try:
        status = u.wait(client, seconds)
    except subprocess.TimeoutExpired:
        u.kill_family(client)
        client.wait()
        return f"the client goes on after {seconds} s"
    out.seek(0)
    if status == 0:
        return "the client ended as if nothing had happened\n" + out.read()
    return "" if status > 0 else f"the client died of signal {-status} after {time.monotonic() - begin:.1f} s"


def status_of(client):
    """@return the exit status of a client; None: it does not end, and is killed"""
    try:
        return u.wait(client, TIMEOUT)
    except subprocess.TimeoutExpired:
        u.kill_family(client)
        return None


def is_connected(out, said=b"connected to queue"):
    """It has said so; its place in the file stays as it is."""
    return said in os.pread(out.fileno(), 1 << 16, 0)


def while_it_runs(net, build, fault, seconds, env=(), tests="tag_bw", size="8", until_said=b"connected to queue"):
    pair = Pair(net, build, tests, size, env=env, more=["-n", "10000000"])
    client, out = pair.begin()
    if not until(lambda: is_connected(out, until_said)):
        pair.close()
        u.kill_family(client)
        out.seek(0)
        return "it is not connected\n" + out.read()
    time.sleep(0.3)
    fault(pair)
    why = ends_soon(client, out, seconds)
    pair.close()
    return why


def a_peer_that_is_killed_is_an_error_at_once(net, build):
    return while_it_runs(net, build, lambda pair: u.kill_family(pair.server), 10)


def a_host_that_is_deleted_is_an_error_in_time(net, build):
    """Its interface and the bridge's port, as with its namespace."""
    why = while_it_runs(net, build, lambda _: net.on(net.names[BRIDGE], "link", "del", "to-a"), 40,
                        env=["PLX_NET_TCP_DEAD_MS=2000"])
    net.wire("a")
    return why


def while_it_vanishes(net, build, before):
    def fault(pair):
        before(pair)
        net.on(net.names["a"], "link", "set", "eth0", "down")

    why = while_it_runs(net, build, fault, 40, env=["PLX_NET_TCP_DEAD_MS=2000"])
    net.on(net.names["a"], "link", "set", "eth0", "up")
    ip("-n", net.names["a"], "addr", "add", "fd77::1/64", "dev", "eth0", "nodad", check=False)
    return why


def a_host_that_vanishes_is_an_error_in_time(net, build):
    return while_it_vanishes(net, build, lambda _: None)


def a_host_that_vanishes_is_an_error_for_who_only_waits_too(net, build):
    """All that the client has sent is acknowledged, and it waits for a word of the server's."""
    def stop(pair):
        for pid in u.descendants(pair.server.pid):
            os.kill(pid, signal.SIGSTOP)
        time.sleep(0.5)

    return while_it_vanishes(net, build, stop)


STRANGER = """
import os, socket, sys
port, n, what = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
kept = []
HELLO = 144  # its length: so much is answered, by the end of the connection
for i in range(n):
    s = socket.create_connection(("10.77.0.1", port))
    if what == "rubbish":
        s.sendall(os.urandom(1 + i * 37 % 400))
        s.settimeout(10)
        if 1 + i * 37 % 400 >= HELLO:
            try:
                assert s.recv(64) == b""
            except ConnectionResetError:
                pass
    kept.append(s)
print("ready", flush=True)
sys.stdin.read()
"""


def beside_strangers(net, build, n, what):
    """They come to the worker of a server while it serves."""
    server = ["env", "PLX_NET_TCP_PORTS=21000-21000"]
    pair = Pair(net, build, TESTS, "8,20k,1m", server=server, more=["-n", "300", "--verify"])
    client, out = pair.begin()
    stranger, said = None, "found nobody"
    if until(lambda: 21000 in ports_of(net, "a")):
        stranger = u.start(net.at("c", sys.executable, "-c", STRANGER, 21000, n, what), stdin=subprocess.PIPE,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said = stranger.stdout.readline()
    status = status_of(client)
    pair.close()
    if stranger is not None:
        u.kill_family(stranger)
        said += stranger.communicate()[0]
    out.seek(0)
    if status == 0 and said == "ready\n":
        return ""
    return f"the client has status {status}:\n{out.read()}\nthe strangers: {said}"


def strangers_that_send_rubbish_do_no_harm(net, build):
    return beside_strangers(net, build, 200, "rubbish")


def strangers_that_say_nothing_do_no_harm(net, build):
    return beside_strangers(net, build, 900, "silence")


def few_descriptors_are_enough(net, build):
    few = ["prlimit", "--nofile=24"]
    return every_operation(net, build, server=few, client=few)


def long_data_goes_by_several_connections(net, build):
    return every_operation(net, build, env=["PLX_NET_TCP_FLOWS=3"], says=[CARRIED, "connection 3 to queue"])


def few_descriptors_are_enough_for_few_connections(net, build):
    few = ["prlimit", "--nofile=24"]
    return every_operation(net, build, server=few, client=few, env=["PLX_NET_TCP_FLOWS=16"], says=["fewer than 16 connections"])


def a_peer_that_is_killed_with_several_connections_is_an_error(net, build):
    """While long data goes by all of them."""
    return while_it_runs(net, build, lambda pair: u.kill_family(pair.server), 10, env=["PLX_NET_TCP_FLOWS=3"],
                         tests="put", size="1m", until_said=b"connection 3 to queue")


def an_ordinary_user_has_all_of_it(net, build):
    user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"]
    return every_operation(net, build, server=user, client=user)


def over_bad_network(net, scene):
    """Between a and b 1 % is lost, all is 50 ms late, and a quarter comes before its time."""
    tc = [["tc", "-n", net.names[host], "qdisc"] for host in "ab"]
    for qdisc in tc:
        added = subprocess.run([*qdisc, "add", "dev", "eth0", "root", "netem", "loss", "1%", "delay", "50ms", "reorder",
                                "25%", "50%"], capture_output=True, text=True, check=False)
        if "qdisc kind is unknown" in added.stderr:
            return Skip("this kernel has no netem; the guest has")
        if added.returncode != 0:
            return added.stderr
    try:
        return scene()
    finally:
        for qdisc in tc:
            subprocess.run([*qdisc, "del", "dev", "eth0", "root"], check=True)


class Kind:
    """How programs are compiled, and started with so many ranks."""

    def __init__(self, folder, compiler, programs):
        self.folder, self.compiler, self.programs = folder, compiler, programs

    def compile(self, program, exe):
        sources = [os.path.join(HERE, self.folder, f) for f in (program + ".c", UTIL[self.folder])]
        return u.compile_c(self.compiler, sources, exe)


UTIL = {"mpi": "mpi_util.h", "oshmem": "shmem_util.h"}
MPICH = Kind("mpi", ["mpicc.mpich"], PROGRAMS)
MPICH_MIXED = Kind("mpi", ["mpicc.mpich"], [("collective", 6)])
MPICH_MANY = Kind("mpi", ["mpicc.mpich"], [("collective", 8)])
OPEN_MPI = Kind("mpi", ["mpicc.openmpi"], PROGRAMS)
OPENSHMEM = Kind("oshmem", ["oshcc", "-Wno-deprecated-declarations"], [("putget", 3), ("collective", 4)])


def launch(kind, net, agent, n):
    hosts = [net.names[h] for h in HOSTS]
    if kind.compiler[0] == "mpicc.mpich":
        return ["mpirun.mpich", "-launcher", "rsh", "-launcher-exec", agent, "-iface", "eth0", "-hosts", ",".join(hosts),
                "-ppn", -(-n // 3), "-n", n]
    shmem = ["--mca", "spml", "ucx", "--mca", "atomic", "ucx"]
    return ["--openmpi", *(["oshrun", *shmem] if kind is OPENSHMEM else ["mpirun.openmpi"]), *OMPI, "--mca", "plm_rsh_agent", agent,
            "-H", ",".join(h + ":2" for h in hosts), "--map-by", "node", "-n", n]


def programs_run(net, build, agent, folder, kind, env):
    for program, n in kind.programs:
        exe = os.path.join(folder, f"{program}.{kind.compiler[0]}")
        why = kind.compile(program, exe)
        if not why:
            result = u.run(net.at("a", os.path.join(build, "pollux-run"), *launch(kind, net, agent, n), exe), TIMEOUT,
                           env={"TMPDIR": folder, "PMIX_MCA_gds": "hash", "PLX_LOG_LEVEL": "info", **env})
            why = is_good(result, CARRIED)
        if why:
            return f"{program} of {n} ranks: {why}"
    return ""


def with_agent(net, build, kind, **env):
    with tempfile.TemporaryDirectory() as folder:
        agent = os.path.join(folder, "agent")
        with open(agent, "w", encoding="ascii") as f:
            f.write(AGENT)
        os.chmod(agent, 0o755)
        return programs_run(net, build, agent, folder, kind, env)


def mpich_runs_over_three_hosts(net, build):
    return with_agent(net, build, MPICH)


def mpich_runs_over_ipv6_with_eight_ranks(net, build):
    return with_agent(net, build, MPICH_MANY, PLX_NET_TCP_FAMILY="inet6")


def mpich_runs_with_a_host_that_uses_ipv6_alone(net, build):
    return with_agent(net, build, MPICH_MIXED, FAMILY_OF_C="inet6")


def open_mpi_runs_over_three_hosts(net, build):
    return with_agent(net, build, OPEN_MPI)


def openshmem_runs_over_three_hosts(net, build):
    return with_agent(net, build, OPENSHMEM)


SCENES = [every_operation_goes_between_hosts, over_ipv6_alone_too, by_the_ports_and_the_interface_that_are_named,
          a_host_that_has_ipv6_only_takes_part, both_ends_have_ports_that_are_named,
          with_a_reactor_that_sleeps, where_no_address_leads_an_error_names_each,
          a_peer_that_is_killed_is_an_error_at_once, a_host_that_vanishes_is_an_error_in_time,
          a_host_that_vanishes_is_an_error_for_who_only_waits_too, a_host_that_is_deleted_is_an_error_in_time,
          strangers_that_send_rubbish_do_no_harm, strangers_that_say_nothing_do_no_harm, few_descriptors_are_enough,
          long_data_goes_by_several_connections, few_descriptors_are_enough_for_few_connections,
          a_peer_that_is_killed_with_several_connections_is_an_error,
          an_ordinary_user_has_all_of_it,
          mpich_runs_over_three_hosts, mpich_runs_over_ipv6_with_eight_ranks,
          mpich_runs_with_a_host_that_uses_ipv6_alone, open_mpi_runs_over_three_hosts,
          openshmem_runs_over_three_hosts]


def can_make_hosts():
    if os.geteuid() != 0:
        return False
    name = f"plx{os.getpid()}t"
    done = ip("netns", "add", name, check=False).returncode == 0
    done = done and ip("-n", name, "link", "add", "br0", "type", "bridge", check=False).returncode == 0
    ip("netns", "del", name, check=False)
    return done


def run_scenes(scenes, names, build):
    """@return the exit status"""
    if not can_make_hosts():
        u.skip_all("no network namespaces can be made here")
    report = u.Report()
    with Net() as net:
        for scene in scenes:
            if names and not any(s in scene.__name__ for s in names):
                continue
            begin = time.monotonic()
            try:
                why = scene(net, build)
            except (RuntimeError, OSError, subprocess.SubprocessError) as e:
                why = repr(e)
            if isinstance(why, Skip):
                report.skip(scene.__name__, why)
            else:
                report.result(scene.__name__, why, f"{time.monotonic() - begin:.0f} s")
    return report.status()


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--build", default=os.path.join(HERE, "..", "build"))
    args.add_argument("scenes", nargs="*")
    args = args.parse_args()
    u.need("ip", "ss", "prlimit", "setpriv", "mpirun.mpich", "mpirun.openmpi", "oshcc", "oshrun")
    return run_scenes(SCENES, args.scenes, os.path.abspath(args.build))


if __name__ == "__main__":
    sys.exit(main())
