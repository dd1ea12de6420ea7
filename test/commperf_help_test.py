#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""commperf_help_test.py - the help of commperf names all that there is, in pieces of 80x24

usage: commperf_help_test.py COMMPERF SOURCE
"""
import os
import re
import sys

import run_util as u

PROGRAM, SOURCE = os.path.abspath(sys.argv[1]), sys.argv[2]
COLUMNS, LINES = 80, 24
INNER = {"gate"}  # between commperf and itself


def text(*args):
    return u.run([PROGRAM, *args], 20)


def read(*path):
    with open(os.path.join(SOURCE, *path), encoding="utf-8") as f:
        return f.read()


def options():
    table = re.search(r"opts_long\[\] = \{(.*?)\n\};", read("app", "commperf", "opts.c"), re.S)[1]
    return set(re.findall(r'\{"([a-z-]+)"', table)) - INNER


def topics():
    return re.findall(r"^  ([a-z]+) ", text("--help").out.split("\ntopics\n")[1], re.M)


def each_topic_fits_a_terminal():
    pages = [["--help"], ["-h"], *([f"--help={t}"] for t in topics()), *(["--help", t] for t in topics())]
    if len(pages) < 15:
        yield f"only these topics: {topics()}"
    for page in pages:
        r = text(*page)
        lines = r.out.splitlines()
        if r.rc != 0 or r.err or not 3 <= len(lines) < LINES or max(map(len, lines)) > COLUMNS:
            yield f"{page}: status {r.rc}, {len(lines)} lines, {max(map(len, lines))} columns"


def all_of_it_is_the_topics_together():
    whole = text("--help=all").out
    for topic in topics():
        if text(f"--help={topic}").out not in whole:
            yield f"--help=all leaves out {topic}"


def every_option_is_in_help_man_and_guide():
    whole, man, guide = text("--help=all").out, read("doc", "man", "commperf.1"), read("doc", "guides", "commperf.md")
    for name in sorted(options()):
        if not re.search(rf"--{name}\b", whole):
            yield f"--help=all has no --{name}"
        if "\\-\\-" + name.replace("-", "\\-") not in man:
            yield f"the man page has no --{name}"
        if f"--{name}" not in guide:
            yield f"the guide has no --{name}"


def every_test_is_in_help_man_and_guide():
    table = re.search(r"perf_tests\[\] = \{(.*?)\n\};", read("app", "commperf", "run.c"), re.S)[1]
    names = set(re.findall(r'^\t\{"([a-z_]+)"', table, re.M)) - {"load_pair"}
    whole, man, guide = text("--help=all").out, read("doc", "man", "commperf.1"), read("doc", "guides", "commperf.md")
    for name in sorted(names):
        if not all(re.search(rf"\b{name}\b", where) for where in (whole, man, guide)):
            yield f"{name} is missing in the help, the man page or the guide"
    if len(names) < 35:
        yield f"only {len(names)} tests"


def a_topic_that_is_not_there_is_refused():
    r = text("--help=nothing")
    if r.rc != 2 or 'no such topic: "nothing"' not in r.err:
        yield f"status {r.rc}: {r.err}"


TESTS = (each_topic_fits_a_terminal, all_of_it_is_the_topics_together, every_option_is_in_help_man_and_guide,
         every_test_is_in_help_man_and_guide, a_topic_that_is_not_there_is_refused)


if __name__ == "__main__":
    sys.exit(u.run_tests(TESTS))
