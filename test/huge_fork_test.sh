#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
#
# huge_fork_test.sh - children of a process on huge pages when no more of them are free
#
# usage: huge_fork_test.sh UCP_API_TEST CCI_API_TEST
# Runs the tests of ucp_api_fork.c and cci_api_fork.c, each with all huge pages free before it. Needs root.
set -u

pool=/sys/kernel/mm/hugepages/hugepages-2048kB
[ "$(id -u)" -eq 0 ] || { echo "only root may set the number of huge pages"; exit 77; }
before=$(cat $pool/nr_hugepages) || exit 77
[ "$(cat $pool/free_hugepages)" -ge 128 ] || { echo "fewer than 128 huge pages are free"; exit 77; }
trap 'echo "$before" >$pool/nr_hugepages' EXIT

n=0
failed=0

# each TABLE PROGRAM: runs the tests that the table names
each()
{
	local test said

	for test in $(sed -n 's/^\tT[A-Z_]*(\([a-z_]*\)[,)].*/\1/p' "$(dirname "$0")/$1"); do
		n=$((n + 1))
		echo "$before" >$pool/nr_hugepages
		if said=$(TEST_NO_FREE_HUGE_PAGE=1 "$2" "$test" 2>&1); then
			echo "ok $n - $test"
		else
			echo "not ok $n - $test"
			echo "$said"
			failed=1
		fi
	done
}

each ucp_api_fork.c "$1"
each cci_api_fork.c "$2"
echo "1..$n"
exit $failed
