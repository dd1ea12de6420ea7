#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
#
# bench.sh - build what is needed, measure between two processes, print the table
#
# usage: bench.sh [OPTION...]   the options go to commperf; see bench.sh --help
# Without options: latency, bandwidth and message rate of tagged messages. With
# --vs ucx the installed UCX runs in turn and the ratio is printed.
set -u
cd "$(dirname "$0")/.." || exit 1

build=${BUILD:-build}
./devtools/setup.sh || exit 1
if [ ! -f "$build/build.ninja" ]; then
	meson setup "$build" --buildtype=release >"/tmp/pollux-bench.$$.log" 2>&1 ||
		{ cat "/tmp/pollux-bench.$$.log" >&2; exit 1; }
	rm -f "/tmp/pollux-bench.$$.log"
fi
log=$(ninja -C "$build" 2>&1) || { printf '%s\n' "$log" >&2; exit 1; }
[ $# -gt 0 ] || set -- --test tag_lat,tag_bw,tag_rate
exec "$build/app/commperf/commperf" "$@"
