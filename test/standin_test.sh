#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
#
# standin_test.sh - a program that needs libucs and libuct starts where there is no UCX, and takes UCX's
# where there is one
#
# usage: standin_test.sh POLLUX_RUN PROGRAM STANDIN_FOLDER
# In a mount namespace the folder of the system's libraries is one of links to all but UCX's.
set -u
run=$1 program=$2 standin=$3
bad=0

say() { # GOOD WHAT
	if [ "$1" = 0 ]; then echo "ok - $2"; else echo "not ok - $2"; bad=1; fi
}

if [ "${STANDIN_INSIDE:-}" = yes ]; then
	libs=/usr/lib/$(uname -m)-linux-gnu
	mount -t tmpfs none "$STANDIN_GROUND" || exit 77
	mkdir "$STANDIN_GROUND/all" "$STANDIN_GROUND/some"
	mount --bind "$libs" "$STANDIN_GROUND/all" || exit 77
	for f in "$STANDIN_GROUND"/all/*; do
		case ${f##*/} in
		libuc[pstm].so*) ;;
		*) echo "$f" ;;
		esac
	done | xargs ln -st "$STANDIN_GROUND/some" || exit 77
	mount --bind "$STANDIN_GROUND/some" "$libs" || exit 77
	! ldd "$program" | grep -q "libucs.so.0 => /" || exit 77
	"$program" 2>/dev/null
	say $((! $?)) "without UCX the program does not start by itself"
	text=$("$run" "$program")
	say $? "with pollux-run it does"
	[ "$text" = "libucs $standin/libucs.so.0" ]
	say $? "by the library that stands in: $text"
	exit $bad
fi

"$program" >/dev/null 2>&1
[ $? -ne 126 ] || { echo "# skipped: $program is for another processor"; exit 77; }
if ldd "$standin/probe" | grep -q "libucs.so.0 => /"; then
	text=$("$run" "$program")
	say $? "the program starts beside UCX"
	case $text in
	"libucs $standin/"*) say 1 "and takes UCX's libraries: $text" ;;
	*) say 0 "and takes UCX's libraries: $text" ;;
	esac
fi
STANDIN_GROUND=$(mktemp -d) || exit 1
export STANDIN_GROUND
trap 'rm -rf "$STANDIN_GROUND"' EXIT
unshare -m true 2>/dev/null || { echo "no mount namespaces here"; [ $bad = 0 ] && exit 77; exit 1; }
STANDIN_INSIDE=yes unshare -m "$0" "$@"
rc=$?
[ $rc -ne 0 ] || rc=$bad
exit $rc
