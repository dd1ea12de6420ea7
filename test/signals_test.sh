#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
#
# signals_test.sh - commperf where a signal interrupts every wait
#
# usage: signals_test.sh SIGNALS COMMPERF
export LD_PRELOAD=$1
commperf=$2
failed=0
n=0

# result NAME STATUS
result()
{
	n=$((n + 1))
	if [ "$2" -eq 0 ]; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		failed=1
	fi
}

"$commperf" -t startup -r 3 >/dev/null
result "what a start takes is read" $?

port=$((20000 + $$ % 10000))
"$commperf" --server 127.0.0.1:$port -t tag_lat -s 8 -n 100 >/dev/null &
"$commperf" --connect 127.0.0.1:$port -t tag_lat -s 8 -n 100 >/dev/null
client=$?
wait $!
result "a server waits for its client" $((client + $?))
echo "1..$n"
exit $failed
