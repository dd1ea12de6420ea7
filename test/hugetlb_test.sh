#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
#
# hugetlb_test.sh - commperf and the library run where huge pages are free and a control group allows none
#
# usage: hugetlb_test.sh COMMPERF PROGRAM
# A pod has such a limit by default. Needs root, and the controller hugetlb.
set -u

skip()
{
	echo "$1"
	exit 77
}

[ "$(id -u)" -eq 0 ] || skip "only root makes a control group"
if [ "${HUGETLB_TEST:-}" != inside ]; then
	unshare --mount true || skip "no mount namespace can be had, as in a chroot whose root is no mount point"
	HUGETLB_TEST=inside exec unshare --mount "$0" "$@"
fi
[ "$(cat /sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages)" -ge 64 ] ||
	skip "fewer than 64 free huge pages: none would be asked for"
root=$(mktemp -d)
group=$root/pollux-test-$$
trap 'echo $$ > "$root/cgroup.procs"; rmdir "$group"; umount "$root"; rmdir "$root"' EXIT
if mount -t cgroup -o hugetlb none "$root" 2>/dev/null; then
	limit=hugetlb.2MB.limit_in_bytes
elif mount -t cgroup2 none "$root" 2>/dev/null && echo +hugetlb 2>/dev/null >"$root/cgroup.subtree_control"; then
	limit=hugetlb.2MB.max
else
	trap 'umount "$root" 2>/dev/null; rmdir "$root"' EXIT
	skip "no control group can be given a limit of huge pages here"
fi
mkdir "$group" && echo 0 >"$group/$limit" && echo $$ >"$group/cgroup.procs" || exit 1

n=0
failed=0

# runs NAME COMMAND...: it ends with 0 and says nothing on stderr
runs()
{
	local name=$1 said rc

	shift
	n=$((n + 1))
	said=$("$@" 2>&1 >/dev/null)
	rc=$?
	if [ $rc -eq 0 ] && [ -z "$said" ]; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name"
		echo "exit $rc, on stderr: $said"
		failed=1
	fi
}

runs commperf_starts_where_a_control_group_allows_no_huge_pages "$1" -t tag_lat -s 8 -n 1000
runs the_library_runs_where_a_control_group_allows_no_huge_pages "$2"
# Each number of pages denies another piece of memory: segments, heaps, then the data areas of peers.
for pages in 1 2 3 4 5 6 7 8 9 10 11 12; do
	echo $((pages << 21)) >"$group/$limit"
	runs "the_library_runs_with_${pages}_huge_pages" "$2"
	runs "long_messages_go_with_${pages}_huge_pages" "$1" -t tag_lat -s 4k -n 1000
done
echo 0 >"$group/$limit"
n=$((n + 1))
if "$1" --in-memory -- -t tag_lat -s 8 -n 1000 >/dev/null 2>&1; then
	echo "not ok $n - memory_options_of_the_user_are_obeyed"
	failed=1
else
	echo "ok $n - memory_options_of_the_user_are_obeyed"
fi
echo "1..$n"
exit $failed
