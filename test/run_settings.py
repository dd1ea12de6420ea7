#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""run_settings.py - ucp_config_modify() and ucp_config_print() as the distribution's UCX has them

usage: run_settings.py [--build DIR]

Every name that `ucx_info -f` prints is set to the value it prints, and every name of UCP to each of
VALUES, on UCX and on our libucp: both have to answer the same status and to print the same value.
Then what variables are told, and where the log goes. TYPES and DEFAULTS are what later releases of UCX have otherwise than 1.13.
"""
import argparse
import ctypes
import json
import os
import subprocess
import sys
import tempfile

import run_util as u

VALUES = ["y", "NO", "try", "true", "0", "3", "-1", "-2", "4x", "1.5", "8k", "1MB", "3gb",
          "1kx", "inf", "auto", "10us", "1.5m", "5h", "1s", "80b/s", "1GBps", "2.5Mb/s", "v2", "get_zcopy",
          "GET_PPLN", "cpu", "host", "cuda,rocm", "sm,tcp", "^sm,tcp", "all,sm", "^all", "a,,b",
          "mlx5_[0-3]:1,eth0", "64,1024", "host:1m", "", ",", "@!?"]

# Names whose type or default is another in later releases, which Pollux follows.
TYPES = ["RNDV_THRESH",  # of two keys, intra and inter
         "RNDV_FRAG_MEM_TYPE",  # another name of RNDV_FRAG_MEM_TYPES, a list
         "TM_SW_RNDV",  # may be try
         "PROTO_INFO"]  # a pattern, too
DEFAULTS = ["ALLOC_PRIO", "PROTO_ENABLE", "RESOLVE_REMOTE_EP_ID", "SA_DATA_VERSION"]
# Without those with which UCX ends the process: LOG_LEVEL_TRIGGER, MEMTRACK_LIMIT, DEBUG_SIGNO=-1.
GLOBAL = ["LOG_LEVEL", "HANDLE_ERRORS", "MEMTYPE_CACHE", "MODULE_LOG_LEVEL", "LOG_PRINT_ENABLE"]


def probe(lib, jobs):
    """In a child: [[status, {name: printed value}] for each (name, value)]."""
    libc = ctypes.CDLL(None)
    ucp = ctypes.CDLL(lib)
    ucp.ucp_config_read.restype = ucp.ucp_config_modify.restype = ctypes.c_int8
    libc.fopen.restype = ctypes.c_void_p
    libc.fclose.argtypes = [ctypes.c_void_p]
    ucp.ucp_config_read.argtypes = [ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p]
    ucp.ucp_config_modify.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p]
    ucp.ucp_config_print.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_uint]
    ucp.ucp_config_release.argtypes = [ctypes.c_void_p]
    out = []
    with tempfile.TemporaryDirectory() as d:
        path = os.path.join(d, "print").encode()
        for name, value in jobs:
            config = ctypes.c_void_p()
            if ucp.ucp_config_read(None, None, ctypes.byref(config)) != 0:
                sys.exit("ucp_config_read failed")
            status = 0
            if name is not None:
                status = ucp.ucp_config_modify(config, name.encode(), value.encode())
            f = libc.fopen(path, b"w")
            ucp.ucp_config_print(config, f, b"", 1)
            libc.fclose(f)
            ucp.ucp_config_release(config)
            with open(path, encoding="utf-8", errors="replace") as text:
                lines = [line.rstrip("\n").partition("=") for line in text]
            out.append([status, {n.removeprefix("UCX_"): v for n, _, v in lines
                                 if not n.startswith("PLX_") and name in (None, n.removeprefix("UCX_"))}])
    print("\n" + json.dumps(out))  # behind what UCX logs


def init(lib, prefix):
    """In a child: ucp_init() and ucp_cleanup(); prints the status."""
    ucp = ctypes.CDLL(lib)
    ucp.ucp_init_version.restype = ctypes.c_int8
    params = (ctypes.c_uint64 * 64)(1, 1)  # field_mask: features; those: tags
    config, context = ctypes.c_void_p(), ctypes.c_void_p()
    if ucp.ucp_config_read(prefix.encode() or None, None, ctypes.byref(config)) != 0:
        sys.exit("ucp_config_read failed")
    status = ucp.ucp_init_version(1, 22, params, config, ctypes.byref(context))
    if status == 0:
        ucp.ucp_cleanup(context)
    print(status)


def start(lib, env, prefix=""):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("UCX_", "PLX_", "APP_"))}
    return subprocess.run([sys.executable, __file__, "--init", lib, "--prefix", prefix], text=True,
                          capture_output=True, env={**clean, **env}, timeout=120, check=False)


def log_goes(report, lib):
    """What is logged, and where to."""
    with tempfile.TemporaryDirectory() as d:
        p = start(lib, {"UCX_NO_SUCH": "1", "UCX_TLS": "sm", "UCX_LOG_FILE": f"{d}/log.%p.%e"})
        files = os.listdir(d)
        text = open(os.path.join(d, files[0]), encoding="utf-8").read() if len(files) == 1 else ""
        report.result("UCX_LOG_FILE names the file for the log", [p.stdout, p.stderr, files, text]
                      if p.stdout != "0\n" or p.stderr or "UCX_NO_SUCH" not in text
                      or not files[0].startswith("log.") or "%" in files[0] else "")
        report.result("and a variable that is set right is not in it", text if "UCX_TLS" in text else "")
        p = start(lib, {"UCX_LOG_FILE": f"{d}/no/such/folder", "UCX_NO_SUCH": "1"})
        report.result("a file that cannot be made is told on standard error", [p.stdout, p.stderr]
                      if p.stdout != "0\n" or "no log file" not in p.stderr
                      or "UCX_NO_SUCH" not in p.stderr else "")
    p = start(lib, {"UCX_NO_SUCH": "1", "APP_UCX_WRONG": "1", "OTHER_UCX_WRONG": "1"}, "APP")
    report.result("unknown variables are told, with the prefix's", p.stderr if
                  "UCX_NO_SUCH APP_UCX_WRONG " not in p.stderr or "OTHER" in p.stderr else "")
    p = start(lib, {"UCX_NO_SUCH": "1", "UCX_WARN_UNUSED_ENV_VARS": "n"})
    report.result("but not with UCX_WARN_UNUSED_ENV_VARS=n", p.stderr)
    p = start(lib, {"UCX_CONFIG_DIR": "/", "UCX_IB_SEG_SIZE": "8k", "UCX_HANDLE_ERRORS": "none"})
    report.result("variables of UCX are not", p.stderr)
    p = start(lib, {"UCX_ZCOPY_THRESH": "much"})
    report.result("a value that is none is told and skipped", [p.stdout, p.stderr]
                  if p.stdout != "0\n" or "UCX_ZCOPY_THRESH is ignored" not in p.stderr else "")
    p = start(lib, {"UCX_TLS": "cuda"})
    report.result("a list without any of our devices is refused", [p.stdout, p.stderr]
                  if p.stdout != "-14\n" or "UCX_TLS=cuda" not in p.stderr else "")


def ask(lib, jobs):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("UCX_", "PLX_"))}
    p = subprocess.run([sys.executable, __file__, "--probe", lib], input=json.dumps(jobs), text=True,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, timeout=120,
                       check=False)
    if p.returncode != 0:
        sys.exit(f"{lib}: {p.stderr[-2000:]}")
    return json.loads(p.stdout.splitlines()[-1])


def ucx_names():
    env = {k: v for k, v in os.environ.items() if not k.startswith("UCX_")}
    text = subprocess.run(["ucx_info", "-f"], stdout=subprocess.PIPE, text=True, env=env, timeout=60,
                          check=True).stdout
    pairs = [line[4:].partition("=") for line in text.splitlines() if line.startswith("UCX_")]
    return [(name, value) for name, _, value in pairs]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default="build")
    parser.add_argument("--probe")
    parser.add_argument("--init")
    parser.add_argument("--prefix", default="")
    args = parser.parse_args()
    if args.probe:
        probe(args.probe, json.load(sys.stdin))
        return 0
    if args.init:
        init(args.init, args.prefix)
        return 0
    try:
        names = ucx_names()
    except (OSError, subprocess.SubprocessError) as e:
        u.skip_all(f"no ucx_info: {e}")
    ours = os.path.join(os.path.abspath(args.build), "dropin", "libucp.so.0")
    theirs = "libucp.so.0"
    report = u.Report()

    (_, want), = ask(theirs, [(None, None)])
    (_, have), = ask(ours, [(None, None)])
    report.result("every line of UCX's print is in ours",
                  [n for n in want if n not in have and n not in TYPES])
    report.result("with the same default", [(n, want[n], have.get(n)) for n in want
                  if want[n] != have.get(n) and n not in TYPES + DEFAULTS])

    bad = [(n, v, s) for (n, v), (s, _) in zip(names, ask(ours, names)) if s != 0]
    report.result(f"{len(names)} names of ucx_info -f are taken with the values it prints", bad)

    jobs = [(n, v) for n in want if n not in TYPES for v in VALUES
            if not (n.endswith("_DEVICES") and ("all" in v or "[" in v))  # lists of names, without all
            and not (n == "KEEPALIVE_INTERVAL" and v[:1] == "-")]
    bad = [f"{n}={v}: UCX {s} {a.get(n)}, ours {t} {b.get(n)}" for (n, v), (s, a), (t, b)
           in zip(jobs, ask(theirs, jobs), ask(ours, jobs)) if s != t or (s == 0 and a != b)]
    report.result(f"{len(jobs)} values of settings of UCP end as on UCX", "\n".join(bad))

    jobs = [(n, v) for n in GLOBAL for v in [*VALUES, "warn", "Data", "trace_req", "bt,freeze", "none"]]
    bad = [f"{n}={v}: UCX {s}, ours {t}" for (n, v), (s, _), (t, _)
           in zip(jobs, ask(theirs, jobs), ask(ours, jobs)) if s != t]
    report.result(f"{len(jobs)} values of global settings end as on UCX", "\n".join(bad))

    jobs = [("NO_SUCH_NAME", "1"), ("RC_NO_SUCH", "1"), ("tls", "all"), ("", "1")]
    bad = [(j, s) for j, (s, _) in zip(jobs, ask(ours, jobs)) if s != -5]
    report.result("names that UCX does not have are refused, as by its later releases", bad)
    log_goes(report, ours)
    return report.status()


if __name__ == "__main__":
    sys.exit(main())
