#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
#
# setup.sh - install the packages that are missing and reserve huge pages; does
# nothing, quickly and without root, where all is there
#
# usage: setup.sh [WHAT] [HUGEPAGES]
#   WHAT       build: what compiling needs; bench: the same, and the UCX that is compared;
#              test: the same, MPI libraries and clang; guest: a virtual machine with RDMA devices;
#              arm: what building for aarch64 needs beside that, see arm.sh. All but arm when not given
#   HUGEPAGES  pages of 2 MiB to have, 512 when not given, 0 for none
set -u

build_packages=(gcc libc6-dev meson ninja-build pkg-config libdpdk-dev libjansson-dev
	libibverbs-dev librdmacm-dev libcunit1-dev libedit-dev)
bench_packages=(ucx-utils libfabric-bin)
test_packages=(mpich libmpich-dev openmpi-bin libopenmpi-dev libucx-dev
	python3 util-linux procps clang libclang-rt-dev)
# Programs that test/foreign/run_packages.py runs: 25 MB.
test_packages+=(hpcc netpipe-mpich2 scalapack-mpi-test lammps libhdf5-mpich-dev python3-mpi4py)
# Their tests are skipped without.
guest_packages=(qemu-system-x86 busybox-static kmod cpio ibverbs-providers ibverbs-utils iproute2
	strace)
arm_packages=(gcc-aarch64-linux-gnu qemu-user-static)
what=all
case ${1-} in
build | bench | test | guest | arm | all)
	what=$1
	shift
	;;
esac
want_pages=${1:-${PLX_HUGEPAGES:-512}}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

case $want_pages in
'' | *[!0-9]*)
	echo "setup: '$want_pages' is neither build, bench, test, guest or arm nor a number of pages" >&2
	exit 2
	;;
esac

as_root()
{
	if [ "$(id -u)" -eq 0 ]; then
		"$@"
	else
		sudo -n "$@" 2>/dev/null
	fi
}

missing_packages()
{
	command -v dpkg-query >/dev/null || return 0
	local have p
	have=$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' "$@" 2>/dev/null |
		awk '$1 == "ii" { print $2 }')
	for p in "$@"; do
		grep -qx "$p" <<<"$have" || echo "$p"
	done
}

# Of what apt-get says, a line now and then.
progress()
{
	local line n=0 all=0

	while IFS= read -r line; do
		case $line in
		*" newly installed"*) all=$(sed -E 's/.* ([0-9]+) newly installed.*/\1/' <<<"$line") ;;
		"Need to get "*) echo "setup: $all packages, ${line#Need to get }" ;;
		"Setting up "*)
			n=$((n + 1))
			[ $((n % 50)) -ne 0 ] || echo "setup: $n of $all packages are set up"
			;;
		esac
	done
}

apt()
{
	as_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get "$@" 2>&1 | tee "$log" | progress
	return "${PIPESTATUS[0]}"
}

install_packages()
{
	local install=(install -y -q --no-install-recommends)

	apt "${install[@]}" "$@" && return
	apt update -q && apt "${install[@]}" "$@"
}

reserve_pages()
{
	local file=/proc/sys/vm/nr_hugepages have limit

	[ -r $file ] || return 0
	have=$(<$file)
	# Never more than a quarter of what is free.
	limit=$(awk '/^MemAvailable:/ { print int($2 / 2048 / 4) }' /proc/meminfo)
	[ "$want_pages" -le $((limit + have)) ] || want_pages=$((limit + have))
	[ "$have" -lt "$want_pages" ] || return 0
	if as_root sh -c "echo $want_pages > $file" 2>/dev/null; then
		have=$(<$file)
	fi
	[ "$have" -ge "$want_pages" ] ||
		echo "setup: $have of $want_pages huge pages; Pollux runs with 4 KiB pages too," \
			"for more: echo $want_pages > $file (as root)"
}

# have PURPOSE PACKAGE...: @return whether they are there now
have()
{
	local purpose=$1 missing

	shift
	missing=$(missing_packages "$@")
	[ -n "$missing" ] || return 0
	echo "setup: installing what is needed to $purpose:" $missing
	install_packages $missing && return
	tail -n 20 "$log" >&2
	echo "setup: could not install them; as root: apt-get install" $missing >&2
	return 1
}

packages=("${build_packages[@]}")
case $what in
bench) packages+=("${bench_packages[@]}") ;;
test | guest | all) packages+=("${bench_packages[@]}" "${test_packages[@]}") ;;
esac
have "${what/all/test}" "${packages[@]}" || exit 1
case $what in
arm) have "build for aarch64" "${arm_packages[@]}" || exit 1 ;;
guest | all)
	# Without them nothing is tested on RDMA devices: no reason to stop, unless they were asked for.
	have "test on RDMA devices" "${guest_packages[@]}" || [ $what = all ] || exit 1
	;;
esac
reserve_pages
exit 0
