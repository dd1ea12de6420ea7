#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""probes_test.py - a build with probes has them, and tracers see them

usage: probes_test.py LIBPOLLUX COMMPERF TELE_HOST SCRIPT

SCRIPT is plx-latency.bt. Where bpftrace can't attach to probes the note of that test says so.
"""
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import run_util as u

LIBRARY, COMMPERF, HOST, SCRIPT = sys.argv[1:5]
PLAIN = {k: v for k, v in os.environ.items() if not k.startswith(("PLX_", "UCX_"))}
NAMES = {"send": 4, "match": 2, "complete": 2, "stall": 2}  # and how many arguments
ATTACH_S = 60


def the_library_has_the_probes():
    notes = subprocess.run(["readelf", "-n", LIBRARY], capture_output=True, text=True, check=True).stdout
    found = {}
    for note in re.findall(r"Provider: pollux\n(.*?)Arguments: ?(.*?)\n", notes, re.S):
        found[re.search(r"Name: (\w+)", note[0])[1]] = len(note[1].split())
    return "" if found == NAMES else f"{found}, not {NAMES}\n{notes}"


def the_eal_records_its_trace_points():
    """A receive that is cancelled is complete; the EAL writes what it has recorded when the program ends."""
    folder = tempfile.mkdtemp(prefix="plx_probes_")
    try:
        p = subprocess.run([HOST, "--no-huge", "-m", "64", "--no-pci", "--file-prefix", "probes", "--no-telemetry",
                            "-l", str(min(os.sched_getaffinity(0))), "--trace=plx.*", f"--trace-dir={folder}"],
                           env={**PLAIN, "RUNTIME_DIRECTORY": folder}, stdin=subprocess.DEVNULL, capture_output=True,
                           text=True, timeout=60)
        meta = "".join(open(path).read() for path in glob.glob(f"{folder}/*/metadata"))
        missing = [name for name in NAMES if f'name = "plx.{name}"' not in meta]
        size = sum(os.path.getsize(path) for path in glob.glob(f"{folder}/*/channel*"))
        return "" if p.returncode == 0 and not missing and size > 0 else f"{p.returncode} {missing} {size} {p.stderr}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def cannot_trace():
    """Why bpftrace can't attach to a probe here, or ''."""
    if shutil.which("bpftrace") is None:
        return "no bpftrace here"
    p = traced([f"usdt:{os.path.realpath(LIBRARY)}:pollux:stall {{ }} BEGIN {{ exit(); }}"], "-e", 30)
    return "" if p.returncode == 0 and "Attaching" in p.stdout + p.stderr else (p.stderr.strip().splitlines() or ["no answer"])[-1]


def traced(args, flag, seconds):
    """bpftrace in a mount namespace with tracefs, which a container may lack; ended by Ctrl-C."""
    inner = f'mount -t tracefs none /sys/kernel/tracing 2>/dev/null; exec timeout -s INT {seconds} bpftrace "$@"'
    return subprocess.run(["unshare", "-m", "sh", "-c", inner, "sh", *([flag] if flag else []), *args],
                          capture_output=True, text=True, timeout=seconds + 60)


def the_script_prints_a_histogram():
    p = subprocess.Popen([COMMPERF, "-t", "tag_bw", "-s", "65536", "-n", "30m", "--no-eal", "--bind", "off", "--quiet"],
                         env=PLAIN, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(2)
        sides = [pid for pid in u.descendants(p.pid) if pid != p.pid]
        said = [traced(["-p", str(pid), SCRIPT], None, 15).stdout for pid in sides[:2]]
    finally:
        p.send_signal(signal.SIGINT)
        p.wait(30)
    text = "\n".join(said)
    return "" if re.search(r"@send_us\[tag\]: \n\[", text) else text


def main():
    report = u.Report()
    for test in (the_library_has_the_probes, the_eal_records_its_trace_points):
        report.result(test.__name__.replace("_", " "), test())
    why = cannot_trace()
    if why:
        report.skip("the script prints a histogram", why)
    else:
        report.result("the script prints a histogram", the_script_prints_a_histogram())
    return report.status()


if __name__ == "__main__":
    sys.exit(main())
