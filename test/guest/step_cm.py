# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""step_cm.py - in the guest: listeners and their clients by the RDMA connection manager"""
import os
import subprocess

import net
import run_util as u
import step_api

PORT = 7100
# Of the second host: what the first sends there goes over the wire.
ADDRESS = "10.7.0.2"
FEW = ["way_that_is_set", "stashed_request", "rejected_client", "nobody_listening"]
MORE = ["before_the_connection", "accept_handler", "request_tells", "server_that_closes", "workers_may_go",
        "of_one_pair", "wake_who_sleeps"]


def env(transport, **more):
    return {**net.OURS_ENV, **net.QUICK, "PLX_CM_TRANSPORT": transport, **more}


def in_one_process(report, build, transport, tests):
    step_api.cunit(report, f"ucp_api {transport}", [os.path.join(build, "test", "ucp_api_test"), ",".join(tests)], 200,
                   env(transport, PLX_NET_MLX_DEVICE=net.DEVICES[0], UCP_TEST_ADDRESS=ADDRESS, UCP_TEST_BY_DEVICE="1"))


def program(build):
    """The example, as a program of UCX's, which starts faster; its path, what is wrong with it."""
    folder = os.path.join(build, "mp-tests")
    os.makedirs(folder, exist_ok=True)
    exe = os.path.join(folder, "client_server")
    sources = [os.path.join(net.HERE, "..", "..", "examples", "ucp_client_server.c")]
    return exe, u.compile_c(["cc"], sources, exe, "-I" + os.path.join(net.HERE, "..", "..", "include"), "-lucp",
                            "-lucs")


def prepare(build):
    """Compile, before boot; returns what is wrong."""
    return program(build)[1]


def between_hosts(build, port, by_server, by_client, tcp):
    """A client on one host asks a server on the other; returns what is wrong."""
    exe, error = program(build)
    if error:
        return error
    command = [os.path.join(build, "pollux-run"), exe, str(port)]
    s = u.start([net.HOST, net.HOSTS[1], *command], env(by_server), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        text = s.stdout.readline().decode()
        listens = u.listening(port)
        r = u.run([net.HOST, net.HOSTS[0], *command, ADDRESS, "what?"], 60, env(by_client))
        text += s.communicate(timeout=30)[0].decode()
    except subprocess.TimeoutExpired:
        return f"the server does not end\n{text}"
    finally:
        if s.poll() is None:
            u.kill_family(s)
            s.wait()
    if r.why() or "answer: " not in r.out or "asked: what?" not in text or s.returncode != 0:
        return f"server {s.returncode}: {text}client {r.why()}: {r.out}"
    return "" if listens == tcp else f"it listens by TCP: {listens}"


def on_two_hosts(report, build, port, server, client, tcp):
    report.result(f"a client ({client}) finds a server ({server}) on another host",
                  between_hosts(build, port, server, client, tcp))


def cm(report, build):
    """listeners by the RDMA connection manager, in one process and on two hosts"""
    in_one_process(report, build, "rdma", FEW)
    on_two_hosts(report, build, PORT, "rdma", "rdma", False)


def cm_all(report, build):
    """more of them, and with TCP beside it"""
    in_one_process(report, build, "rdma", MORE)
    in_one_process(report, build, "auto", FEW)
    on_two_hosts(report, build, PORT + 1, "auto", "auto", True)
    on_two_hosts(report, build, PORT + 2, "tcp", "auto", True)
