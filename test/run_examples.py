#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""run_examples.py - the example programs of UCX, unchanged, and our own

usage: run_examples.py [--build DIR] [--source DIR]

Those of the distribution's libucx-dev are compiled twice, against its headers and
against ours, and run under pollux-run. One that needs a function which answers
"Unsupported operation" is reported as skipped.
"""
import argparse
import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import run_util as u
from run_util import free_port, listening

HERE = os.path.dirname(os.path.abspath(__file__))
TIMEOUT = 60
SLOW = 9  # pairs that go on beside the others, at most


def find_sources():
    """The folder with ucp_hello_world.c, or None."""
    found = []
    if shutil.which("dpkg"):
        p = subprocess.run(["dpkg", "-L", "libucx-dev"], capture_output=True, text=True, check=False)
        found += [line for line in p.stdout.splitlines() if line.endswith("/ucp_hello_world.c")]
    for base in ("/usr/share/doc/libucx-dev", "/usr/share/ucx", "/usr/local/share/ucx"):
        found += glob.glob(base + "/**/ucp_hello_world.c", recursive=True)
    found = [f for f in found if os.path.exists(f)]
    return os.path.dirname(found[0]) if found else None


def tail(path):
    with open(path, errors="replace", encoding="utf-8") as f:
        return f.read()[-2000:]


def pair(server, client, port, env, folder, want=(0, 0)):
    """Run both; returns an error text, and all that they wrote."""
    paths = [os.path.join(folder, f"{n}.{port}.txt") for n in ("server", "client")]
    with open(paths[0], "w", encoding="utf-8") as s_out, open(paths[1], "w", encoding="utf-8") as c_out:
        s = u.start(server, env, stdout=s_out, stderr=subprocess.STDOUT)
        c = None
        end = time.monotonic() + TIMEOUT
        try:
            while not listening(port) and s.poll() is None and time.monotonic() < end:
                time.sleep(0.01)
            c = u.start(client, env, stdout=c_out, stderr=subprocess.STDOUT)
            codes = [u.wait(p, max(0.1, end - time.monotonic())) for p in (c, s)][::-1]
        except subprocess.TimeoutExpired:
            codes = "timeout"
        finally:
            for p in (s, c):
                if p is not None and p.poll() is None:
                    u.kill_family(p)
                    p.wait()
    text = "server:\n" + tail(paths[0]) + "\nclient:\n" + tail(paths[1])
    if list(codes) != list(want):
        return f"exit status {codes}, not {list(want)}\n{text}", text
    return "", text


def one(report, name, run, folder, server, client, port, env=None, want=(0, 0), stop=False):
    if stop:  # a server that goes on: its end is ours to make
        error, text = pair_and_stop(run + server, run + client, port, env, folder)
    else:
        error, text = pair(run + server, run + client, port, env, folder, want)
    tell(report, name, error, text)


def tell(report, name, error, text):
    if error and "nsupported" in text:
        report.skip(name, "needs a function that is not there yet")
    elif error:
        report.fail(name, error)
    else:
        report.ok(name)


def pair_and_stop(server, client, port, env, folder):
    path = os.path.join(folder, "server.txt")
    with open(path, "w", encoding="utf-8") as out:
        s = u.start(server, env, stdout=out, stderr=subprocess.STDOUT)
        end = time.monotonic() + TIMEOUT
        while not listening(port) and s.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        r = u.run(client, TIMEOUT, env)
        u.kill_family(s)
        s.wait()
    text = "server:\n" + tail(path) + "\nclient:\n" + r.out[-2000:] + r.err[-2000:]
    if r.timed_out or r.rc != 0:
        return f"client's exit status {r.rc}\n{text}", text
    return "", text


def hello(report, run, exe, folder, label, env, pool):
    """Returns what goes on beside the others: the name and the future of each."""
    slow = []
    for mode in ("-w", "-f", "-b"):
        for size in (16, 100000):
            port = free_port()
            base = [exe, mode, "-s", str(size), "-p", str(port)]
            one(report, f"ucp_hello_world {mode} {size} bytes, {label}", run, folder, base,
                base + ["-n", "127.0.0.1"], port, env)
        # exit statuses as with UCX's own library
        for kind, want in (("recv", (255, -signal.SIGKILL)), ("send", (-signal.SIGKILL, 255)),
                           ("keepalive", (0, -signal.SIGKILL))):
            port = free_port()
            name = f"ucp_hello_world {mode} -e {kind}, {label}"
            base = [exe, mode, "-e", kind, "-p", str(port)]
            client = base + ["-n", "127.0.0.1"]
            if kind == "recv":  # it sleeps for 5 s
                slow.append((name, pool.submit(pair, run + base, run + client, port, env, folder, want)))
            else:
                one(report, name, run, folder, base, client, port, env, want)
    return slow


def client_server(report, run, exe, folder, label, env, _pool):
    for way in ("tag", "stream", "am"):
        for extra in ([], ["-s", "500000"], ["-v", "3", "-s", "1000"]):
            port = free_port()
            base = [exe, "-c", way, "-i", "3", "-p", str(port), *extra]
            one(report, " ".join(["ucp_client_server -c", way, *extra]) + ", " + label, run, folder,
                base, base + ["-a", "127.0.0.1"], port, env, stop=True)
    return []


def ours(report, build, folder):
    for label, env in (("inline", {}), ("reactor", {"PLX_REACTOR": f"lcore:{os.cpu_count() - 1}"})):
        r = u.run([os.path.join(build, "examples", "example_ucp_hello")], TIMEOUT, env)
        if r.why() or "the answer: hello, world" not in r.out:
            report.fail(f"our ucp_hello, {label}", r.why() or r.out)
        else:
            report.ok(f"our ucp_hello, {label}")
        r = u.run([os.path.join(build, "examples", "example_ucp_am")], TIMEOUT, env)
        if r.why() or "1 to 1000000: 500000500000" not in r.out:
            report.fail(f"our ucp_am, {label}", r.why() or r.out)
        else:
            report.ok(f"our ucp_am, {label}")
        port = free_port()
        exe = os.path.join(build, "examples", "example_ucp_client_server")
        one(report, f"our ucp_client_server, {label}", [], folder, [exe, str(port)],
            [exe, str(port), "127.0.0.1", "what?"], port, env)


def ours_cci(report, build, folder):
    exe = {n: os.path.join(build, "examples", "example_cci_" + n)
           for n in ("init", "devices", "server", "client", "rma", "multicast")}
    conf = os.path.join(folder, "cci.ini")
    with open(conf, "w", encoding="utf-8") as f:
        f.write("[second]\ntransport = shm\npriority = 10\n[first]\ntransport = shm\nkey = value\n")
    for label, env in (("inline", {}), ("reactor", {"PLX_REACTOR": f"lcore:{os.cpu_count() - 1}"})):
        for name, want in (("init", "CCI is ready"), ("rma", '"written by the child"'),
                           ("multicast", "receiver 2: 10 of 10 messages"),
                           ("devices", "first: transport shm, up")):
            r = u.run([exe[name]], TIMEOUT, {**env, "CCI_CONFIG": conf} if name == "devices" else env)
            if r.why() or want not in r.out or (name == "devices" and "\tkey=value" not in r.out):
                report.fail(f"our cci_{name}, {label}", r.why() or r.out)
            else:
                report.ok(f"our cci_{name}, {label}")
        for attribute in ("ro", "ru", "uu"):
            error = cci_pair(exe["server"], exe["client"], attribute, env, folder)
            if error:
                report.fail(f"our cci_server and cci_client, {attribute}, {label}", error)
            else:
                report.ok(f"our cci_server and cci_client, {attribute}, {label}")


def cci_dropin(report, build, source, folder):
    """A program that was linked to libcci.so.2 finds ours by pollux-run, which exports no more than CCI."""
    lib = os.path.join(build, "dropin")
    exe = os.path.join(folder, "cci_rma")
    error = u.compile_c(["cc"], [os.path.join(source, "examples", "cci_rma.c")], exe,
                        "-I", os.path.join(source, "include"), "-L", lib, "-l:libcci.so.2")
    r = u.run([os.path.join(build, "pollux-run"), exe], TIMEOUT, {}) if not error else None
    p = subprocess.run(["nm", "-D", "--defined-only", os.path.join(lib, "libcci.so.2")], capture_output=True,
                       text=True, check=False)
    foreign = [line for line in p.stdout.splitlines() if " T cci_" not in line]
    if error or r.why() or '"written by the child"' not in r.out:
        report.fail("cci_rma on libcci.so.2", error or r.why() or r.out)
    elif p.returncode != 0 or foreign:
        report.fail("libcci.so.2 exports cci_ only", p.stderr + "\n".join(foreign))
    else:
        report.ok("cci_rma on libcci.so.2, which exports cci_ only")


def cci_pair(server, client, attribute, env, folder):
    """The server says its URI, ends after five messages, and each has come back."""
    path = os.path.join(folder, "cci_server.txt")
    with open(path, "w", encoding="utf-8") as out:
        s = u.start([server, "5"], env, stdout=out, stderr=subprocess.STDOUT)
    end = time.monotonic() + TIMEOUT
    while "\n" not in tail(path) and s.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
    uri = tail(path).split("\n")[0].removeprefix("Opened ")
    r = u.run([client, uri, "5", attribute], TIMEOUT, env)
    try:
        rc = u.wait(s, max(0.1, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        rc = "timeout"
        u.kill_family(s)
        s.wait()
    if r.why() or rc != 0 or "received: hello number 4" not in r.out:
        return f"server {rc}\n{tail(path)}\nclient: {r.why()}\n{r.out}"
    return ""


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--build", default=os.path.join(HERE, "..", "build"))
    ap.add_argument("--source", default=os.path.join(HERE, ".."))
    args = ap.parse_args()
    build = os.path.abspath(args.build)
    run = [os.path.join(build, "pollux-run")]
    report = u.Report()
    traces = u.Traces()
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(SLOW) as pool:
        slow = []
        ours(report, build, folder)
        ours_cci(report, build, folder)
        if shutil.which("cc") and os.access(run[0], os.X_OK):
            cci_dropin(report, build, args.source, folder)
        else:
            report.skip("cci_rma on libcci.so.2", "a compiler or pollux-run is missing")
        sources = find_sources()
        if sources is None or shutil.which("cc") is None or not os.access(run[0], os.X_OK):
            report.skip("examples of UCX", "libucx-dev, a compiler or pollux-run is missing")
            return report.status()
        for headers, flags in (("its headers", []),
                               ("our headers", ["-I", os.path.join(args.source, "include")])):
            for name, test in (("ucp_hello_world", hello), ("ucp_client_server", client_server)):
                exe = os.path.join(folder, name)
                if os.path.exists(exe):
                    os.unlink(exe)
                error = u.compile_c(["cc"], [os.path.join(sources, name + ".c")], exe, "-w", *flags,
                                    "-lucp", "-lucs")
                if error:
                    report.fail(f"{name} compiles against {headers}", error)
                    continue
                slow += test(report, run, exe, folder, headers + ", inline", {}, pool)
                if not flags:
                    slow += test(report, run, exe, folder, headers + ", reactor",
                                 {"PLX_REACTOR": f"lcore:{os.cpu_count() - 1}"}, pool)
        for name, ended in slow:
            tell(report, name, *ended.result())
        left = traces.left()
        if left:
            report.fail("examples leave nothing behind", left)
        else:
            report.ok("examples leave nothing behind")
    return report.status()


sys.exit(main())
