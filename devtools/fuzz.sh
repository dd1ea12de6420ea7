#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
#
# fuzz.sh - build the fuzz targets with clang and run each for a while, one a core at a time
#
# usage: fuzz.sh [SECONDS] [TARGET...]
# SECONDS for each target, 10 when not given, 0 to build only. TARGET=N takes N seconds. All targets
# when none is named: those with most states, and of all that net_tcp reads from sockets, twice as long,
# those of short texts and of packed bytes half as long.
# BUILD names the build folder, build-fuzz when not set. What is found new goes to
# BUILD/corpus, what fails to BUILD/found; test/fuzz/corpus is only read.
set -u
cd "$(dirname "$0")/.." || exit 1

build=${BUILD:-build-fuzz}
seconds=${1:-10}
[[ $seconds =~ ^[0-9]+$ ]] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2; }
shift
targets=("$@")
[ ${#targets[@]} -gt 0 ] ||
	targets=({wire,chan,tcp,udp}=$((2 * seconds)) conn shm {addr,rkey,ini,uri,ucx,meet}=$((seconds / 2)))
failed=0

if [ ! -f "$build/build.ninja" ]; then
	CC=${CC:-clang} meson setup "$build" -Dfuzzers=true -Dtests=false -Dapps=false -Ddocs=false \
		-Dasserts=true -Dbuildtype=debugoptimized -Db_sanitize=address,undefined \
		-Db_lundef=false || exit 1
fi
programs=("${targets[@]/#/test/fuzz/fuzz_}")
ninja -C "$build" "${programs[@]%=*}" || exit 1
[ "$seconds" -gt 0 ] || exit 0
build=$(cd "$build" && pwd)
mkdir -p "$build/found"

export LSAN_OPTIONS=suppressions=$PWD/devtools/lsan.supp:print_suppressions=0
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1

fuzz()
{
	local t=${1%=*} s=$seconds
	local log=$build/fuzz_$t.log

	[ "$t" = "$1" ] || s=${1#*=}
	mkdir -p "$build/corpus/$t"
	if "$build/test/fuzz/fuzz_$t" -max_total_time="$s" -max_len=2048 -len_control=0 \
		-timeout=20 -rss_limit_mb=4096 -artifact_prefix="$build/found/$t-" \
		"$build/corpus/$t" "test/fuzz/corpus/$t" >"$log" 2>&1; then
		echo "$t: ok, $(sed -n 's/^Done \([0-9]* runs\).*/\1/p' "$log")"
	else
		echo "$t: FOUND, see $log and $build/found/$t-*"
		tail -n 40 "$log"
		return 1
	fi
}

cores=$(nproc)
running=0
for t in "${targets[@]}"; do
	if [ "$running" -ge "$cores" ]; then
		wait -n || failed=1
		running=$((running - 1))
	fi
	fuzz "$t" &
	running=$((running + 1))
done
for ((; running > 0; running--)); do
	wait -n || failed=1
done
exit $failed
