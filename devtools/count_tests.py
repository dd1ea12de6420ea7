#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""count_tests.py - single results in meson's testlog.json files

usage: count_tests.py LOG...

Prints what failed and why, what was skipped, and last "PASSED FAILED SKIPPED".
A test program counts as many times as it says it ran tests: by CUnit's summary,
by lines "ok N - name", "not ok N - name" and "ok N - name # SKIP why", or by
unittest's summary; otherwise as one.
"""
import json
import re
import sys

CUNIT = re.compile(r"^\s*tests\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s*$", re.M)
POINT = re.compile(r"^(not )?ok \d+(?: - )?(.*)$", re.M)
RAN = re.compile(r"^Ran (\d+) tests? in", re.M)
DETAIL = re.compile(r"(failures|errors|skipped)=(\d+)")
LAST = 60  # lines of output that are shown, after those that report a failure
AFTER = 8  # lines that are shown with each of those
FAILURE = re.compile(r"^not ok|^FAIL: |^ERROR: |FAILED|^\s+\d+\. .*:\d+|: FAIL:")
BAD = {"FAIL", "TIMEOUT", "ERROR", "INTERRUPT", "UNEXPECTEDPASS"}


def count(test):
    """Return (passed, failed, skipped, reasons) of one meson test."""
    out, err = test.get("stdout") or "", test.get("stderr") or ""
    passed = failed = skipped = 0
    reasons = re.findall(r"^# skipped: (.*)$", out, re.M)
    for m in CUNIT.finditer(out):
        passed += int(m.group(3))
        failed += int(m.group(4))
    for m in POINT.finditer(out):
        if m.group(1):
            failed += 1
        elif "# SKIP" in m.group(2).upper():
            reasons.append(m.group(2))
        else:
            passed += 1
    m = RAN.search(err) or RAN.search(out)
    if m:
        detail = dict((k, int(v)) for k, v in DETAIL.findall(err or out))
        bad = detail.get("failures", 0) + detail.get("errors", 0)
        left_out = detail.get("skipped", 0)
        failed += bad
        skipped += left_out
        passed += int(m.group(1)) - bad - left_out
    skipped += len(reasons)
    result = test["result"]
    if result in BAD and not failed:
        failed = 1
    elif not passed + failed + skipped:
        if result == "SKIP":
            skipped = 1
            reasons = [(out + err).strip().splitlines()[-1] if (out + err).strip() else "exit 77"]
        else:
            passed = 1
    return passed, failed, skipped, reasons


def main():
    total = [0, 0, 0]
    for path in sys.argv[1:]:
        try:
            lines = open(path, encoding="utf-8", errors="replace").read().splitlines()
        except OSError as e:
            print(f"count_tests: {e}", file=sys.stderr)
            total[1] += 1
            continue
        for line in lines:
            test = json.loads(line)
            passed, failed, skipped, reasons = count(test)
            for i, n in enumerate((passed, failed, skipped)):
                total[i] += n
            for reason in reasons:
                print(f"skipped: {test['name']}: {reason}")
            if failed:
                print(f"FAILED: {test['name']} ({test['result']}, {test['duration']:.1f} s)")
                text = (test.get("stdout") or "") + (test.get("stderr") or "")
                rows = text.splitlines()
                at = {i + n for i, r in enumerate(rows) if FAILURE.search(r) for n in range(AFTER + 1)}
                why = [r for i, r in enumerate(rows) if i in at]
                for row in why + ["[...]"] * bool(why) + rows[-LAST:]:
                    print("    " + row)
    print(*total)


main()
