#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""info_test.py - pollux_info says what is so

usage: info_test.py PROGRAM SOURCE
"""
import ctypes
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile

import run_util as u

PROGRAM, SOURCE = sys.argv[1:3]
PLAIN = {k: v for k, v in os.environ.items() if not k.startswith(("PLX_", "UCX_"))}


def run(*args, env=None, before=()):
    return subprocess.run([*before, PROGRAM, *args], capture_output=True, text=True, env={**PLAIN, **(env or {})})


def as_json(env=None, before=()):
    return json.loads(run("--json", env=env, before=before).stdout)


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def setting(info, name):
    return next(s for s in info["settings"] if s["name"] == name)


def build_is_that_of_the_source(folder):
    info = as_json()
    version = re.search(r"^    version: '([\d.]+)'", read(os.path.join(SOURCE, "meson.build")), re.M)[1]
    if info["build"]["version"] != version:
        yield f"version {info['build']['version']}, not {version}"
    if "shm" not in info["build"]["drivers"]:
        yield f"drivers are {info['build']['drivers']}"
    if run("--version").stdout != f"pollux_info {version}\n":
        yield "--version says another version"


def a_device_that_is_not_here_is_said_to_be_none(folder):
    devices = {d["name"]: d for d in as_json()["devices"]}
    if devices["shm"]["state"] != "up" or not devices["shm"]["used"]:
        yield f"shm: {devices['shm']}"
    here = os.path.isdir("/sys/class/infiniband") and os.listdir("/sys/class/infiniband")
    if "net_mlx" in devices and not here and devices["net_mlx"].get("reason") != "no such device here":
        yield f"net_mlx: {devices['net_mlx']}"
    used = {d["name"]: d["used"] for d in as_json({"PLX_WORKER_DEVICES": "net_mlx"})["devices"]}
    if used != {**used, "shm": False, "net_mlx": True}:
        yield f"with PLX_WORKER_DEVICES=net_mlx these are used: {used}"


def every_setting_has_value_and_source(folder):
    table = read(os.path.join(SOURCE, "lib", "conf", "conf_table.c"))
    names = re.findall(r'^\s*PLX_ROW_[A-Z]+\([A-Z_]+, "([a-z_.]+)"', table, re.M)
    have = {s["name"]: s for s in as_json()["settings"]}
    if missing := set(names) - set(have):
        yield f"without {sorted(missing)}"
    text = run("--all").stdout
    for name, s in have.items():
        if s["source"] != "default":
            yield f"{name} came from {s['source']}"
        if not re.search(rf"^  {re.escape(name)} +\S+ +default$", text, re.M):
            yield f"--all does not show {name}"


def sources_are_told_apart(folder):
    path = os.path.join(folder, "pollux.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"rndv": {"chunk": "1m"}, "shm": {"cma": "no"}}, f)
    info = as_json({"PLX_CONFIG": path, "PLX_SHM_CMA": "auto"})
    for name, want in {"rndv.chunk": ("1m", "file"), "shm.cma": ("auto", "environment"),
                       "rndv.scheme": ("auto", "default")}.items():
        s = setting(info, name)
        if (s["value"], s["source"]) != want:
            yield f"{name} is {s['value']} from {s['source']}, not {want}"
    text = run(env={"PLX_CONFIG": path}).stdout
    if not re.search(r"^  rndv.chunk +1m +file$", text, re.M) or "2 of" not in text:
        yield f"the text shows not what is changed:\n{text}"


def pages_are_those_of_the_kernel(folder):
    pages = as_json()["pages"]
    path = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
    if os.path.exists(path) and pages["reserved"] != int(read(path)):
        yield f"{pages['reserved']} reserved, not {read(path)}"
    none = as_json({"PLX_SHM_HUGE": "no"})["pages"]
    if none["wanted"]:
        yield "PLX_SHM_HUGE=no, and they are wanted"


def refuse_copies():
    """From now on process_vm_readv(2) of this process, and of what it becomes, is EPERM."""
    call = {"x86_64": 310, "aarch64": 270}[os.uname().machine]
    rules = [(0x20, 0, 0, 0), (0x15, 0, 1, call), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7FFF0000)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *r) for r in rules))
    program = struct.pack("HxxxxxxQ", len(rules), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) != 0 or libc.prctl(22, 2, program, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "no filter of system calls")


def a_refused_copy_is_seen(folder):
    if not as_json()["copies"]["allowed"]:
        u.skip_all("the kernel refuses copies here")
    if as_json({"PLX_SHM_CMA": "no"})["copies"]["wanted"]:
        yield "PLX_SHM_CMA=no, and they are wanted"
    p = subprocess.run([PROGRAM, "--json"], capture_output=True, text=True, env=PLAIN, preexec_fn=refuse_copies)
    copies = json.loads(p.stdout)["copies"]
    if copies["allowed"] or copies["reason"] != "Operation not permitted":
        yield f"in a sandbox that refuses them: {copies}"


def a_namespace_of_its_own_is_seen(folder):
    before = ("unshare", "--ipc")
    if subprocess.run([*before, "true"], capture_output=True).returncode != 0:
        return
    if as_json(before=before)["namespaces"]["ipc"]["host"]:
        yield "a new ipc namespace is taken for the host's"
    if "of its own: ipc" not in run(before=before).stdout:
        yield "the text does not say so"


def it_fits_a_terminal(folder):
    env = {"PLX_LOG_LEVEL": "error", "PLX_SHM_PEERS": "u" * 100, "UCX_LONG": "x" * 200}
    env |= {f"PLX_RNDV_{n}": "64k" for n in ("CHUNK", "SPLIT_MIN", "FRAG_MAX", "PUT_MIN")}
    env |= {f"PLX_TAG_{n}": "64k" for n in ("UNEXPECTED_MAX", "OFFLOAD_MIN")}
    for e in ({}, env):
        lines = run(env=e).stdout.splitlines()
        if len(lines) > 24 or max(map(len, lines)) > 80:
            yield f"{len(lines)} lines of up to {max(map(len, lines))} columns"
    if long := [line for line in run("--all").stdout.splitlines() if len(line) > 80]:
        yield f"over 80 columns: {long}"
    # The same on a terminal: no colours, no questions.
    here, there = pty.openpty()
    subprocess.run([PROGRAM], stdin=there, stdout=there, env=PLAIN, check=True)
    said = os.read(here, 1 << 16)
    if b"\x1b" in said or not said.startswith(b"Pollux"):
        yield f"on a terminal: {said}"


def wrong_options_are_refused(folder):
    for args in (["--nonsense"], ["extra"]):
        p = run(*args)
        if p.returncode != 2 or "--help" not in p.stderr or p.stdout:
            yield f"{args}: {p.returncode} {p.stdout} {p.stderr}"
    with open("/dev/full", "w", encoding="utf-8") as full:
        if subprocess.run([PROGRAM], stdout=full, env=PLAIN, check=False).returncode != 1:
            yield "a full disk is no error"


TESTS = [build_is_that_of_the_source, a_device_that_is_not_here_is_said_to_be_none,
         every_setting_has_value_and_source, sources_are_told_apart, pages_are_those_of_the_kernel,
         a_refused_copy_is_seen, a_namespace_of_its_own_is_seen, it_fits_a_terminal, wrong_options_are_refused]


def main():
    with tempfile.TemporaryDirectory(prefix="pollux-info-") as folder:
        return u.run_tests(TESTS, folder)


if __name__ == "__main__":
    sys.exit(main())
