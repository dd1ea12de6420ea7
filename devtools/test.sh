#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
#
# test.sh - build, run every test, meanwhile build with sanitizers, and fuzz; then run more, and count
#
# usage: test.sh [--no-asan] [--no-fuzz] [--no-arm] [--quick]
#   --no-asan  leave the sanitizer build out
#   --no-fuzz  leave the fuzz targets out, up to a minute each
#   --no-arm   leave the build for aarch64 out
#   --quick    unit and api tests only, in one build
# BUILD names the build folder, build when not set.
# The last line is "N passed, N failed", with ", N skipped" where there are any.
set -u
cd "$(dirname "$0")/.." || exit 1

export build=${BUILD:-build} asan=yes fuzz=yes arm=yes
export asan_build=$build-asan
quick=no
passed=0 failed=0 skipped=0
slower=1 # how much longer a test may take
without=() # suites that are left out
behind= # process that builds beside the tests
guest=	# and one that runs the guest's

for arg in "$@"; do
	case $arg in
	--no-asan) asan=no ;;
	--no-fuzz) fuzz=no ;;
	--no-arm) arm=no ;;
	--quick) quick=yes asan=no fuzz=no arm=no ;;
	*) sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2 ;;
	esac
done

finish()
{
	local line="$passed passed, $failed failed" group

	for group in $behind $guest; do
		kill -- "-$group" 2>/dev/null
	done
	[ "$skipped" -eq 0 ] || line="$line, $skipped skipped"
	echo "$line"
	trap - EXIT
	[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
	exit $? # without it, in a trap: the status from before
}
trap finish EXIT
trap 'failed=$((failed + 1)); finish' INT TERM

# step NAME COMMAND...: one result, shown only when it fails
step()
{
	local name=$1 log

	shift
	if log=$("$@" 2>&1); then
		passed=$((passed + 1))
	else
		failed=$((failed + 1))
		printf 'FAILED: %s\n%s\n' "$name" "$(tail -n 60 <<<"$log")"
		return 1
	fi
}

make_build()
{
	local dir=$1

	shift
	[ -f "$dir/build.ninja" ] || meson setup "$dir" "$@" || return
	ninja -C "$dir"
}

fuzz_run()
{
	BUILD=$build-fuzz ./devtools/fuzz.sh 30 >"$build/meson-logs/fuzz.txt" 2>&1
	echo $? >"$build/meson-logs/fuzz.rc"
}

# Builds what the later steps need, then runs the fuzz targets.
builds()
{
	[ $asan = no ] || make_build "$asan_build" --buildtype=debugoptimized -Doptimization=1 \
		-Db_sanitize=address,undefined -Db_lundef=false -Dasserts=true || return
	[ $fuzz = no ] || BUILD=$build-fuzz ./devtools/fuzz.sh 0 || return
	# 77: the packages can't be had
	[ $arm = no ] || BUILD=$build-arm ./devtools/arm.sh --quick setup build || [ $? -eq 77 ] || return
	[ $fuzz = no ] || fuzz_run
}

# Begin them, on what the tests leave of the cores: many tests wait. In a session of its own, whose
# weight is what counts where the kernel shares the cores among sessions.
builds_begin()
{
	[ $asan$fuzz$arm != nonono ] || return
	mkdir -p "$build/meson-logs"
	rm -f "$build/meson-logs/fuzz.rc"
	export -f make_build builds fuzz_run
	setsid nice -n 19 bash -c 'echo 19 2>/dev/null >/proc/self/autogroup; builds' \
		>"$build/meson-logs/behind.txt" 2>&1 &
	behind=$!
}

builds_end()
{
	local rc

	[ -n "$behind" ] || return 0
	wait "$behind"
	rc=$?
	behind=
	step "builds with sanitizers" bash -c 'cat "$0"; exit "$1"' "$build/meson-logs/behind.txt" $rc
}

# run_suites DIR LOG OPTION...: the tests that meson chooses by these options
run_suites()
{
	rm -f "$1/meson-logs/$2.json"
	meson test -C "$1" --logbase "$2" --no-rebuild -t "$slower" "${@:3}" 2>&1 |
		grep --line-buffered -E '^ *[0-9]+/[0-9]+ '
}

# run DIR SUITE...: every test of these suites, or of all; adds to the counts
run()
{
	local dir=$1 suites=() s

	shift
	for s in "$@"; do
		suites+=(--suite "$s")
	done
	for s in "${without[@]}"; do
		suites+=(--no-suite "$s")
	done
	run_suites "$dir" testlog "${suites[@]}"
	count "$dir/meson-logs/testlog.json"
}

# count LOG: add a log of meson to the counts
count()
{
	local counts p f s

	counts=$(python3 devtools/count_tests.py "$1")
	sed '$d' <<<"$counts"
	read -r p f s <<<"$(tail -n 1 <<<"$counts")"
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

# The guest's processors are emulated: its tests run beside others that do not measure.
guest_begin()
{
	export -f run_suites
	slower=2 setsid bash -c 'run_suites "$build" guest --suite guest' >"$build/meson-logs/guest_beside.txt" 2>&1 &
	guest=$!
}

guest_end()
{
	wait "$guest"
	guest=
	echo "== guest"
	cat "$build/meson-logs/guest_beside.txt"
	count "$build/meson-logs/guest.json"
}

# Some tests on another processor, which is emulated; adds to the counts
run_arm()
{
	local out p f s

	echo "== $build-arm"
	if [ ! -f "$build-arm/build.ninja" ]; then
		echo "SKIPPED: aarch64, as its compiler or its packages can't be had"
		skipped=$((skipped + 1))
		return
	fi
	out=$(BUILD=$build-arm ./devtools/arm.sh --quick test)
	echo "$out"
	read -r p _ f _ s _ < <(tail -n 1 <<<"$out" | tr -d ,)
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
}

what=all
[ $quick = no ] || what=build
step "setup" ./devtools/setup.sh $what || exit
step "build" make_build "$build" --buildtype=release || exit
builds_begin
suites=()
[ $quick = no ] || suites=(unit api)
echo "== $build"
# mpi measures: not beside a build. Calm tests mostly wait: later, beside the guest.
[ $quick = yes ] || without=(mpi guest calm)
run "$build" "${suites[@]}"
builds_end || asan=no fuzz=no arm=no
without=()
[ $quick = yes ] || run "$build" mpi
[ $quick = yes ] || guest_begin
if [ $asan = yes ]; then
	echo "== $asan_build"
	export LSAN_OPTIONS=suppressions=$PWD/devtools/lsan.supp:print_suppressions=0
	export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
	slower=4 without=(plain)
	run "$asan_build" unit api fuzz
fi
slower=2 without=()
[ $quick = yes ] || echo "== $build, beside the guest"
[ $quick = yes ] || run "$build" calm
[ $arm = no ] || run_arm
if [ $fuzz = yes ]; then
	grep -h ": ok, " "$build/meson-logs/fuzz.txt"
	step "fuzz" bash -c 'cat "$0.txt"; exit "$(cat "$0.rc")"' "$build/meson-logs/fuzz"
fi
step "names" ./devtools/check-names.sh
step "documentation" ./devtools/check-docs.sh
step "words" ./devtools/check-words.py
! git rev-parse -q --verify HEAD >/dev/null 2>&1 ||
	step "commit subject" ./devtools/check-commit.sh HEAD
# Last, as the guest takes longest.
[ $quick = yes ] || guest_end
