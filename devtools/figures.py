#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""figures.py - measure Pollux and UCX in turn, and write the picture and the table of README.md

usage: figures.py [--repeat N] [--iters N] [OPTION...]

Writes doc/figures/tag.svg and tag.json, and the part of README.md between its two marks. Pairs are
measured N times (5). Other options go to commperf, as --ucx-lib FILE. On a quiet machine, since what
else runs is measured, too.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import time

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BEGIN, END = "<!-- figures: devtools/figures.py writes what follows -->\n", "<!-- end of figures -->\n"
SIZES = "8,64,512,1k,4k,8k,16k,32k,64k,256k,1m,4m"
PLOT = os.path.join("doc", "figures", "tag.svg")

# What the table shows: test, label, size, depth, and what it is called there.
ROWS = [
    ("tag_lat", "", 8, 0, "latency, 8 B"),
    ("tag_lat", "", 1024, 0, "latency, 1 KiB"),
    ("tag_lat", "", 65536, 0, "latency, 64 KiB"),
    ("tag_rate", "", 8, 0, "message rate, 8 B"),
    ("tag_bw", "", 8192, 0, "bandwidth, 8 KiB"),
    ("tag_bw", "", 65536, 0, "bandwidth, 64 KiB"),
    ("tag_bw", "", 1 << 20, 0, "bandwidth, 1 MiB"),
    ("match", "posted exact", 8, 10000, "match among 10,000 posted receives"),
    ("match", "posted partial", 8, 10000, "the same with the masks that MPI uses"),
    ("match", "unexpected partial", 8, 10000, "match among 10,000 unexpected messages, such masks"),
]


def bench(args, *options):
    """One run of commperf on both libraries; returns what it says as JSON."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "figures.json")
        command = ["./devtools/bench.sh", "--vs", "ucx", "-r", str(args.repeat), "--json", path, *options,
                   *(["-n", str(args.iters)] if args.iters else []), *args.options]
        subprocess.run(command, cwd=TOP, check=True)
        with open(path, encoding="utf-8") as f:
            return json.load(f)


def value(number, unit):
    if unit == "ns" and number >= 1000:
        number, unit = number / 1000, "us"
    if unit == "MB/s" and number >= 1000:
        number, unit = number / 1000, "GB/s"
    unit = {"Mmsg/s": "M/s"}.get(unit, unit)
    return f"{number:.3g} {unit}" if number < 100 else f"{number:.0f} {unit}"


def library(name):
    """ "ucp 1.13.1" and "ucp 1.22.0 (pollux)", as a column is called."""
    if "pollux" not in name:
        return name.replace("ucp", "UCX")
    with open(os.path.join(TOP, "meson.build"), encoding="utf-8") as f:
        return "Pollux " + re.search(r"version: '([0-9.]+)'", f.read()).group(1)


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        model = re.search(r"model name\s*: (.*)", f.read())
    name = re.sub(r"\((R|TM)\)| CPU| @.*", "", model.group(1)) if model else os.uname().machine
    return f"{name.strip()}, {os.cpu_count()} cores, Linux {os.uname().release.split('-')[0]}"


def table(runs, repeat):
    found = {(r["test"], r["label"], r["size"], r["depth"]): r for run in runs for r in run["rows"]}
    lines = [f"| two processes of one host | {library(runs[0]['first'])} | {library(runs[0]['second'])} |",
             "|---|---|---|"]
    for *key, text in ROWS:
        row = found.get(tuple(key))
        if row is None:
            raise SystemExit(f"figures: commperf has no result for {text}: {key}")
        lines.append(f"| {text} | {value(row['first'], row['unit'])} | {value(row['second'], row['unit'])} |")
    said = (f"Medians of {repeat} pairs, in turn on the same two cores: {machine()}, {time.strftime('%Y-%m-%d')}. "
            "`devtools/figures.py` measures and writes this.")
    lines += ["", textwrap.fill(said, 100)]
    return "\n".join(lines) + "\n"


def write_readme(text):
    path = os.path.join(TOP, "README.md")
    with open(path, encoding="utf-8") as f:
        readme = f.read()
    before, mark, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not mark or not end:
        raise SystemExit("figures: README.md has lost the marks of its figures")
    with open(path, "w", encoding="utf-8") as f:
        f.write(before + BEGIN + text + END + after)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition(" - ")[2].partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="pairs of each line (5)")
    parser.add_argument("--iters", type=int, metavar="N", help="iterations of each, for a trial")
    args, args.options = parser.parse_known_args()
    os.makedirs(os.path.join(TOP, "doc", "figures"), exist_ok=True)
    runs = [bench(args, "-t", "tag_lat,tag_bw", "-s", SIZES, "--plot", PLOT),
            bench(args, "-t", "tag_rate"),
            bench(args, "-t", "match", "--depth", "10k")]
    text = f"![Latency and bandwidth of tagged messages]({PLOT})\n\n{table(runs, args.repeat)}"
    write_readme("\n" + text + "\n")
    with open(os.path.join(TOP, "doc", "figures", "tag.json"), "w", encoding="utf-8") as f:
        json.dump(runs, f, indent="\t")
        f.write("\n")
    print(text)


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
