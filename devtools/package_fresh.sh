#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
#
# package_fresh.sh - build, test, install, use and remove the Debian packages, each in a fresh Debian 12
#
# usage: package_fresh.sh [--keep] [build] [autopkgtest] [traces]
#   build        devtools/package.sh in a root where nothing else is installed
#   autopkgtest  config/debian/tests, among them an MPI job, by the program autopkgtest
#   traces       all packages installed, used and purged: no file is left, and none is changed
#   --keep       keep the roots, and say where they are
# All when none is given; the later ones take the packages of build-package. Needs root, debootstrap and the
# network.
set -eu
cd "$(dirname "$0")/.."
source=$PWD
packages=$source/build-package
mirror=${MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' | head -n 1)} # of this machine
mirror=${mirror%/}
keep=no steps=()

for arg in "$@"; do
	case $arg in
	--keep) keep=yes ;;
	build | autopkgtest | traces) steps+=("$arg") ;;
	*) sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 2 ;;
	esac
done
[ ${#steps[@]} -gt 0 ] || steps=(build autopkgtest traces)
[ "$(id -u)" -eq 0 ] || { echo "fresh: it needs root" >&2; exit 2; }
command -v debootstrap >/dev/null || { echo "fresh: apt-get install debootstrap first" >&2; exit 2; }

say()
{
	echo "fresh: $*"
}

# inside ROOT COMMAND...: with /proc, /sys, devices, an empty /dev/shm, and the source at /src
inside()
{
	unshare --mount --pid --fork --kill-child bash -eu -c '
		root=$1 source=$2 packages=$3
		shift 3
		mount --make-rprivate /
		mkdir -p "$root/src" "$root/packages"
		mount -t proc proc "$root/proc"
		mount -t sysfs -o ro sys "$root/sys"
		mount --bind /dev "$root/dev"
		mount -t devpts -o newinstance,ptmxmode=0666 devpts "$root/dev/pts"
		mount -t tmpfs shm "$root/dev/shm"
		mount --bind "$source" "$root/src"
		mount --bind "$packages" "$root/packages"
		exec chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
			HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"' inside "$root" "$source" "$packages" "$@"
}

# root_begin NAME: a fresh Debian 12
root_begin()
{
	if [ ! -d "$work/base" ]; then
		say "making a root"
		debootstrap --variant=minbase bookworm "$work/base" "$mirror" >"$work/debootstrap.log" ||
			{ tail -n 20 "$work/debootstrap.log" >&2; exit 1; }
		echo "deb $mirror-security bookworm-security main" >>"$work/base/etc/apt/sources.list"
		cp /etc/resolv.conf "$work/base/etc/"
		root=$work/base
		inside apt-get update -q >/dev/null
	fi
	root=$work/$1
	cp -a "$work/base" "$root"
}

apt()
{
	inside apt-get "$@" -y -q >"$work/apt.log" 2>&1 || { tail -n 40 "$work/apt.log" >&2; exit 1; }
}

step_build()
{
	inside sh -c 'cd /src && ./devtools/package.sh /packages'
}

step_autopkgtest()
{
	apt install --no-install-recommends autopkgtest gpgv
	inside sh -c 'cd / && autopkgtest --summary-file /summary /packages/*pollux*.deb /packages/*.dsc -- null' \
		>"$work/autopkgtest.log" 2>&1 || { tail -n 60 "$work/autopkgtest.log" >&2; exit 1; }
	grep -E '^(process|pollux-run:|[0-9]+ ranks)' "$work/autopkgtest.log" | head -n 8 || :
	cat "$root/summary"
	! grep -qv PASS "$root/summary"
}

# Every file with its content and rights, but what the package manager keeps for itself.
list_files()
{
	(cd "$root" && find . -xdev \( -path ./var/lib/dpkg -o -path ./var/lib/apt -o -path ./var/cache -o -path ./var/log \
		-o -path ./etc/ld.so.cache -o -path ./src -o -path ./packages \) -prune -o -type f -printf '%p %M %u ' \
		-exec md5sum {} + -o -printf '%p %M %u %l\n') | LC_ALL=C sort
}

step_traces()
{
	# What the tests use, and what the packages need, is there before.
	apt install --no-install-recommends mpich libmpich-dev gcc libc6-dev pkg-config man-db libdpdk-dev libjansson-dev \
		python3 ibverbs-providers libibverbs1 librdmacm1 libbsd0 libedit2 libnuma1
	list_files >"$work/before"
	inside sh -c 'apt-get install -y -q --no-install-recommends /packages/*pollux*_*.deb' >"$work/apt.log" 2>&1 ||
		{ tail -n 40 "$work/apt.log" >&2; exit 1; }
	for test in mpi compile tools; do
		inside sh -c 'AUTOPKGTEST_TMP=$(mktemp -d) "/src/config/debian/tests/$0"; rc=$?; rm -rf /tmp/tmp.*; exit $rc' \
			$test >"$work/log" 2>&1 || { tail -n 40 "$work/log" >&2; say "$test fails"; exit 1; }
		say "$test: works"
	done
	inside sh -c 'ls -A /dev/shm; apt-get purge -y -q "*pollux*"' >"$work/apt.log" 2>&1
	list_files >"$work/after"
	diff "$work/before" "$work/after" || { say "these are traces" >&2; exit 1; }
	[ "$(inside dpkg -l | grep -c pollux)" -eq 0 ] || { say "dpkg knows a pollux" >&2; exit 1; }
	say "removed: $(wc -l <"$work/after") files, links and folders, all as before"
}

finish()
{
	[ $keep = no ] || { say "all is in $work"; return; }
	rm -rf --one-file-system "$work"
}

work=$(mktemp -d "${TMPDIR:-/tmp}/pollux-fresh.XXXXXX")
trap finish EXIT
mkdir -p "$packages"
for step in "${steps[@]}"; do
	root_begin "$step"
	say "$step"
	"step_$step"
	[ $keep = yes ] || rm -rf --one-file-system "$root"
done
