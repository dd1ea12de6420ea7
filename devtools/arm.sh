#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
#
# arm.sh - build for aarch64 by Debian's cross compiler, and run the tests under qemu
#
# usage: arm.sh [--quick] [setup] [build] [test [NAME...]]
#   setup    the compiler and qemu, installed; and Debian's arm64 packages, unpacked into a folder
#   build    everything, in the folder build-arm; a warning is an error
#   test     the suites unit and api, or the tests of these names
#   --quick  libraries, drivers and a few tests that say something about the processor
# The first three when none is given. BUILD names the build folder; ARM_ROOT the one of the packages, BUILD-root
# when not set. No arm64 package is installed on this machine, so none of its own is replaced.
# Exits 77 where the packages can't be had. The last line of the tests is "N passed, N failed, N skipped".
set -u
cd "$(dirname "$0")/.." || exit 1

build=${BUILD:-build-arm}
root=$(realpath -m "${ARM_ROOT:-$build-root}")
quick=no steps=() names=()
packages=(libdpdk-dev libjansson-dev libedit-dev libibverbs-dev librdmacm-dev libcunit1-dev libmd-dev)
# These depend on the processor: orders, copies, layouts, byte order. And one API as a whole, in half a minute.
quick_tests=(gate_gate gate_lock mem_mem mem_window wire_wire cci_api)
quick_targets=(test/unit/{gate,lock,mem,window,wire}_test test/cci_api_test)
version=$(sed -n "s/^ *version: '\(.*\)',/\1/p" meson.build | head -n 1)

for arg in "$@"; do
	case $arg in
	--quick) quick=yes ;;
	setup | build | test) steps+=("$arg") ;;
	-*) sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2 ;;
	*) names+=("$arg") ;;
	esac
done
[ ${#steps[@]} -gt 0 ] || steps=(setup build test)

say()
{
	echo "arm: $*"
}

# apt-get as on a machine of arm64 where nothing is installed, with this machine's sources.
apt_arm()
{
	apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Install-Recommends=false \
		-o APT::Sandbox::User=root -o Dir::State="$root.apt" -o Dir::State::status="$root.apt/status" \
		-o Dir::Cache="$root.apt" -o Debug::NoLocking=true "$@"
}

# Links to absolute places would lead out of the folder.
mend_links()
{
	local link to

	find "$1" -type l -lname '/*' | while IFS= read -r link; do
		to=$1$(readlink "$link")
		ln -sfn "$(realpath -m --relative-to="$(dirname "$link")" -s "$to")" "$link"
	done
}

unpack_packages()
{
	local deb

	mkdir -p "$root.apt/lists/partial" "$root.apt/archives/partial" && : >"$root.apt/status" &&
		apt_arm update && apt_arm install -y --download-only "${packages[@]}" || return
	rm -rf "$root.new" && mkdir "$root.new" || return
	for deb in "$root.apt"/archives/*.deb; do
		dpkg-deb -x "$deb" "$root.new" || return
	done
	mend_links "$root.new"
	rm -rf "$root" "$root.apt" && mv "$root.new" "$root"
}

setup()
{
	local log

	log=$(./devtools/setup.sh arm 0 2>&1) || { tail -n 20 <<<"$log"; say "SKIPPED: no cross compiler or qemu"; return 77; }
	[ ! -f "$root/usr/lib/aarch64-linux-gnu/pkgconfig/libdpdk.pc" ] || return 0
	say "unpacking ${packages[*]} of arm64, and what they need, into $root"
	log=$(unpack_packages 2>&1) || { tail -n 20 <<<"$log"; say "SKIPPED: no packages of arm64"; return 77; }
}

constants()
{
	local launch=

	! command -v ccache >/dev/null || launch="'ccache'"
	printf "[constants]\nroot = '%s'\nlaunch = [%s]\n" "$root" "$launch"
}

compile()
{
	if [ ! -f "$build/build.ninja" ]; then
		mkdir -p "$build"
		constants >"$build/constants.ini"
		meson setup "$build" --cross-file "$build/constants.ini" --cross-file config/aarch64.ini -Dwerror=true || return
	fi
	if [ $quick = no ]; then
		ninja -C "$build"
	else
		ninja -C "$build" libpollux.so."$version" dropin/libucp.so.0.0.0 dropin/libcci.so.2.0.1 "${quick_targets[@]}"
	fi
}

# run LOG ARGUMENT...: tests that meson chooses by these, if there are any. An emulated processor is ten times slower.
run()
{
	local log=$1

	shift
	[ $# -gt 0 ] || return
	meson test -C "$build" --no-rebuild -t 4 --logbase "$log" "$@" 2>&1 | grep --line-buffered -E '^ *[0-9]+/[0-9]+ '
	logs+=("$build/meson-logs/$log.json")
}

# Not from huge pages: qemu maps files at addresses which the kernel refuses for those.
run_api()
{
	PLX_SHM_HUGE=no PLX_EAL_HUGE=no run arm-api "$@"
}

check()
{
	local chosen=("${names[@]}") unit=() api=() logs=() name

	[ $quick = no ] || chosen=("${quick_tests[@]}")
	for name in "${chosen[@]}"; do
		if [[ $name == *_api* ]]; then api+=("$name"); else unit+=("$name"); fi
	done
	[ ${#chosen[@]} -gt 0 ] || { unit=(--suite unit) && api=(--suite api); }
	rm -f "$build"/meson-logs/arm-{unit,api}.json
	run arm-unit "${unit[@]}"
	run_api "${api[@]}"
	python3 devtools/count_tests.py "${logs[@]}" | counts
}

# The last line of count_tests.py is three numbers.
counts()
{
	local text p f s

	text=$(cat)
	sed '$d' <<<"$text"
	read -r p f s <<<"$(tail -n 1 <<<"$text")"
	echo "$p passed, $f failed, $s skipped"
	[ "$f" -eq 0 ] && [ "$p" -gt 0 ]
}

for step in "${steps[@]}"; do
	case $step in
	setup) setup || exit ;;
	build) compile || exit ;;
	test) check || exit ;;
	esac
done
