#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
#
# bench.sh - install and build what measuring needs, measure between two processes, print the table
#
# usage: bench.sh [OPTION...]   the options go to commperf; see bench.sh --help
# Without options: latency, bandwidth and message rate of tagged messages of some lengths. With
# --vs ucx the installed UCX runs in turn and the ratio is printed.
# BUILD names the build folder: build when it is there, else build-bench, without tests. It says when fewer than two
# cores are idle, or the two that are used by default are FAR_NS apart, 100 ns when not set.
set -u
cd "$(dirname "$0")/.." || exit 1

build=${BUILD:-}
[ -n "$build" ] || { build=build && [ -f build/build.ninja ]; } || build=build-bench
targets=(app/commperf/commperf dropin/libucp.so.0.0.0)
log=$(mktemp) core_time=$(mktemp)
trap 'rm -f "$log" "$core_time"' EXIT

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

# The cores that this shell may run on, one a line.
cores()
{
	local part

	for part in $(sed -n 's/^Cpus_allowed_list:[[:blank:]]*//p' /proc/self/status | tr , ' '); do
		seq "${part%-*}" "${part#*-}"
	done
}

# busy CORE...: how many of them are not idle, of half a second
busy()
{
	{ cat /proc/stat; sleep 0.5; cat /proc/stat; } | awk -v cores=" $* " '
		/^cpu[0-9]/ && index(cores, " " substr($1, 4) " ") {
			all = 0
			for (i = 2; i <= 9; i++)
				all += $i
			idle = $5 + $6
			if ($1 in was && all > was[$1])
				n += 1 - (idle - idled[$1]) / (all - was[$1])
			was[$1] = all
			idled[$1] = idle
		}
		END { printf "%.1f\n", n }'
}

# Warn of busy cores and of far ones: the figures do not tell.
look_around()
{
	local allowed n ns other

	mapfile -t allowed < <(cores)
	n=$(busy "${allowed[@]}")
	awk "BEGIN { exit !(${#allowed[@]} - $n < 1.7) }" &&
		echo "bench: $n of ${#allowed[@]} cores are busy with other programs: figures will be worse"
	case " $* " in
	*" -l"* | *" --lcores"* | *" -c"* | *" --server"* | *" --reactor"*) return ;;
	esac
	[ ${#allowed[@]} -ge 2 ] && cc -O2 -pthread -o "$core_time" devtools/compare/core_time.c || return
	ns=$("$core_time" "${allowed[@]:0:2}") && awk "BEGIN { exit !($ns >= ${FAR_NS:-100}) }" || return
	other="not comparable with near cores"
	[ ${#allowed[@]} -eq 2 ] || other="-l A,B chooses other cores"
	echo "bench: cores ${allowed[0]} and ${allowed[1]} are $ns ns apart: $other"
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
look_around "$@" >&2
echo "bench: commperf $*" >&2
rm -f "$log" "$core_time"
exec "$build/app/commperf/commperf" "$@"
