#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
#
# setup.sh - install the packages that are missing and reserve huge pages; does
# nothing, quickly and without root, where all is there
#
# usage: setup.sh [HUGEPAGES]   2 MiB pages to have, 512 when not given, 0 for none
set -u

build_packages=(gcc libc6-dev meson ninja-build pkg-config libdpdk-dev libjansson-dev
	libibverbs-dev librdmacm-dev)
test_packages=(libcunit1-dev mpich libmpich-dev openmpi-bin libopenmpi-dev ucx-utils libucx-dev
	python3 util-linux procps clang libclang-rt-dev)
# For the virtual machine with RDMA devices. Its tests are skipped without.
guest_packages=(qemu-system-x86 busybox-static kmod cpio ibverbs-providers ibverbs-utils iproute2
	strace)
want_pages=${1:-${PLX_HUGEPAGES:-512}}

case $want_pages in
'' | *[!0-9]*)
	echo "setup: '$want_pages' is not a number of pages" >&2
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

install_packages()
{
	local install=(env DEBIAN_FRONTEND=noninteractive
		apt-get install -y -q --no-install-recommends)

	as_root "${install[@]}" "$@" >/dev/null 2>&1 && return
	as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q >/dev/null &&
		as_root "${install[@]}" "$@"
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

missing=$(missing_packages "${build_packages[@]}" "${test_packages[@]}")
if [ -n "$missing" ]; then
	echo "setup: installing" $missing
	if ! install_packages $missing; then
		echo "setup: could not install them; as root: apt-get install" $missing >&2
		exit 1
	fi
fi
missing=$(missing_packages "${guest_packages[@]}")
if [ -n "$missing" ]; then
	echo "setup: installing" $missing
	install_packages $missing >/dev/null 2>&1 ||
		echo "setup: could not install them, nothing will be tested on RDMA devices;" \
			"as root: apt-get install" $missing >&2
fi
reserve_pages
exit 0
