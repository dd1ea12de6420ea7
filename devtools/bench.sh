#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
#
# bench.sh - install and build what measuring needs, measure between two processes, print the table
#
# usage: bench.sh [OPTION...]   the options go to commperf; see bench.sh --help
# Without options: latency, bandwidth and message rate of tagged messages of some lengths. With
# --vs ucx the installed UCX runs in turn and the ratio is printed.
# BUILD names the build folder: build when it is there, else build-bench, without tests.
set -u
cd "$(dirname "$0")/.." || exit 1

build=${BUILD:-}
[ -n "$build" ] || { build=build && [ -f build/build.ninja ]; } || build=build-bench
targets=(app/commperf/commperf dropin/libucp.so.0.0.0)
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# Of what ninja says, a line for each tenth.
progress()
{
	local line tenth=0 now

	while IFS= read -r line; do
		[[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
		now=$((BASH_REMATCH[1] * 10 / BASH_REMATCH[2]))
		[ "${BASH_REMATCH[2]}" -lt 20 ] || [ $now -le $tenth ] ||
			echo "bench: built ${BASH_REMATCH[1]} of ${BASH_REMATCH[2]}"
		tenth=$now
	done
}

# step WHAT COMMAND...: all that it says only if it fails
step()
{
	echo "bench: $1" >&2
	shift
	"$@" 2>&1 | tee "$log" | progress >&2
	[ "${PIPESTATUS[0]}" -eq 0 ] || { cat "$log" >&2; exit 1; }
}

case " $* " in
*" --vs"*) what=bench ;;
*) what=build ;;
esac
./devtools/setup.sh $what >&2 || exit 1
[ -f "$build/build.ninja" ] ||
	step "configuring $build" meson setup "$build" --buildtype=release -Dtests=false -Ddocs=false
if [ -n "$(ninja -C "$build" -n "${targets[@]}" | grep '^\[')" ]; then
	step "building in $build" ninja -C "$build" "${targets[@]}"
fi
[ $# -gt 0 ] || set -- -t tag_lat,tag_bw -s 8,64,1k,8k,64k,1m
echo "bench: commperf $*" >&2
rm -f "$log"
exec "$build/app/commperf/commperf" "$@"
