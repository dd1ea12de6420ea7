# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""step_ports.py - in the guest: two hosts with two devices each, on two networks"""
import functools
import importlib.machinery
import importlib.util
import os
import re
import subprocess
import time

import net
import run_mp
import run_util as u
import step_mem
import step_mp
import step_mpi

RPC = os.path.join(net.HERE, "..", "..", "usertools", "plx_job.py")
NETS = (("rxe0", "rxe1"), ("rxe2", "rxe3"))
PEERS = 24  # that all go by one of two equal ports, once in 2^23 runs
QUIET = {"PLX_LOG_LEVEL": "error"}  # that a port is down is a warning


def env(n=2, **more):
    return step_mp.env(n=n, on=net.PAIRS, **QUIET, **more)


def sent(pair):
    """Packets that went over a network."""
    return sum(net.counters(device)["sent_pkts"] for device in pair)


def both(report, name, run):
    """run() has to use both networks."""
    before = [sent(pair) for pair in NETS]
    why = run()
    packets = [sent(pair) - was for pair, was in zip(NETS, before)]
    if not why and min(packets) == 0:
        why = f"a network was not used: {packets} packets"
    report.result(name, why, f"{packets} packets")


def mp(ground, program, n, args):
    exe, error = ground.program(program)
    return error or run_mp.Family(ground, exe, n, args, env(n)).wait(60)


def peers(ground):
    exe, error = ground.program("peers")
    return error or step_mem.grown(ground, exe, PEERS, env())[1]


def mpich(build, program):
    with open("/etc/hosts", "w", encoding="ascii") as f:
        f.write(f"127.0.0.1 localhost guest {' '.join(net.PAIRS)}\n")
    r = u.run([os.path.join(build, "pollux-run"), *step_mpi.FAMILY.start, "-launcher", "ssh",
               "-launcher-exec", net.HOST, "-hosts", ",".join(net.PAIRS), "-ppn", 1, "-n", 4,
               step_mpi.exe_of(build, program)], step_mpi.TIMEOUT_S, {"PLX_WORKER_DEVICES": "net_mlx"})
    return r.why() or ("" if f"{program} ok" in r.out else r.out)


@functools.cache
def rpc():
    """The client of plx-rpc: a program in Python takes long to start by emulation."""
    loader = importlib.machinery.SourceFileLoader("plx_job", RPC)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("plx_job", loader))
    loader.exec_module(module)
    return module


def ask(socket, method):
    """The answer, or none and why."""
    try:
        return "", rpc().ask(socket, method, timeout=60)
    except (rpc().CannotAsk, KeyError) as e:
        return f"{method}: {e!r}", []


def ports_of(socket):
    """By RPC: messages sent by each port; ports that have an ep to another host; or why not."""
    why, devices = ask(socket, "device_get_list")
    why2, eps = ask(socket, "ep_get_list")
    return (why + why2, {row["port"]: row["counters"]["tx_msgs"] for row in devices},
            [row["port"] for row in eps if row["state"] == "connected"])


def cut(report, ground):
    """The network that two processes use is gone for good; they go on by the other."""
    exe, error = ground.program("cut")
    if error:
        report.fail("cut compiles", error)
        return
    envs = env(**net.QUICK)
    envs[0]["PLX_RPC_SOCKET"] = socket = f"/tmp/ports.{os.getpid()}.sock"
    family = run_mp.Family(ground, exe, 2, ["long"], envs)
    if not net.wait_for(lambda: os.path.exists(family.path("busy")), 120):
        report.fail("two processes exchange messages on two networks", family.wait(1))
        return
    why, msgs, used = ports_of(socket)
    idle = [port for port in msgs if port not in used]
    if not why and (len(used) != 1 or len(idle) != 1 or msgs[used[0]] == 0 or msgs[idle[0]] != 0):
        why = f"{msgs}, eps by {used}"
    report.result("RPC tells what went by which port", why, f"{msgs}")
    k = 1 if used == ["rxe2:1"] else 0
    other = sent(NETS[1 - k])
    for device in NETS[k]:
        net.sh(f"tc qdisc add dev wire{device[3:]} root netem loss 100%")
    begin = time.monotonic()
    untold = step_mp.both_told(family)
    away = time.monotonic() - begin
    family.mark("mended")  # it is not
    why = family.wait(60) or untold
    for device in NETS[k]:
        net.sh(f"tc qdisc del dev wire{device[3:]} root")
    if not why and sent(NETS[1 - k]) == other:
        why = "nothing went over the other network"
    report.result(f"{NETS[k][0]}'s network is gone; then both connect by the other", why,
                  f"told after {away:.1f} s")


def shell_on(build, devices):
    """testcomm with a worker at these ports."""
    env = {**net.OURS_ENV, **QUIET, "PLX_NET_MLX_DEVICE": devices}
    shell = u.start([os.path.join(build, "app", "testcomm", "testcomm"), "-f", "-"], env, stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    shell.stdin.write("worker create w\n")
    return shell


def told(shell):
    """How long the address of testcomm's worker is, as text, once it has looked."""
    shell.stdin.write("sleep 300 turns\nworker address w\n")
    shell.stdin.flush()
    line = shell.stdout.readline()
    while line and not re.search(r"[0-9a-f]{64}", line):
        line = shell.stdout.readline()
    return len(line)


def moved(report, build):
    """A port without its address is told to nobody, until it has it again."""
    shell = shell_on(build, "rxe0,rxe2")
    lengths = [told(shell)]
    net.sh("ip addr del 10.7.1.3/24 dev wire2")
    lengths.append(told(shell))
    net.sh("ip addr add 10.7.1.3/24 dev wire2 noprefixroute && "
           "ip route replace 10.7.1.4 dev wire2 src 10.7.1.3 table 7")
    lengths.append(told(shell))
    text = shell.communicate("quit\n", timeout=30)[0]
    report.result("a port without its address is left out until it has it again",
                  "" if 0 < lengths[1] < lengths[0] == lengths[2] else f"{lengths} {text}", f"{lengths}")


def plugged(report, build):
    """A cable is put in when the worker is there already."""
    with net.Cables() as cables:
        cables.pull()
        down = net.wait_for(lambda: net.port_state("rxe2") == "DOWN", 20)
        shell = shell_on(build, "rxe0:1,rxe2:1")
        lengths = [told(shell)]
        cables.plug()
        up = net.wait_for(lambda: net.port_state("rxe2") == "ACTIVE", 20)
    lengths.append(told(shell))
    text = shell.communicate("quit\n", timeout=30)[0]
    report.result("a port that was down at the start is told of when it is up",
                  "" if down and up and 0 < lengths[0] < lengths[1] else f"{lengths} {text}", f"{lengths}")


def ports(report, build):
    """two hosts with two devices each, on two networks, of which one goes"""
    net.switch()
    ground = step_mp.hosts(build)
    moved(report, build)
    plugged(report, build)
    cut(report, ground)


def ports_all(report, build):
    """more of them: many peers and processes, MPICH, a cable that is out before"""
    net.switch()
    ground = step_mp.hosts(build)
    both(report, f"{PEERS} peers are spread over two networks", lambda: peers(ground))
    report.result("all to all, 4 processes on two networks",
                  mp(ground, "all_to_all", 4, [15, step_mp.SEED, 100000]))
    report.result("put, get and count on two networks", mp(ground, "rma", 2, [20, "work"]))
    report.result("mpich collective, 4 ranks on two networks", mpich(build, "collective"))
    with net.Cables() as cables:
        cables.pull()
        before = sent(NETS[1])
        why = mp(ground, "all_to_all", 2, [15, step_mp.SEED, 100000])
        if not why and sent(NETS[1]) != before:
            why = "packets were sent where the cable is out"
        cables.plug()
    report.result("with the cable of one network out, all go by the other", why)
