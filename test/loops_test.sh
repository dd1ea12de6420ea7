#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
#
# loops_test.sh - commperf's loops of messages with every byte compared, in every way to send
#
# usage: loops_test.sh COMMPERF
commperf=$1
failed=0
n=0

# loops TESTS ROWS OPTION...: so many results, and no message that is wrong
loops()
{
	local tests=$1 rows=$2 out
	shift 2
	n=$((n + 1))
	if out=$("$commperf" -t "$tests" -s 8,104,4096 -n 2000 -r 1 --verify "$@" 2>&1) &&
		[ "$(grep -cE '^(us|MB/s|Mmsg/s) .*[0-9]$' <<<"$out")" = "$rows" ]; then
		echo "ok $n - $tests $*"
	else
		echo "not ok $n - $tests $*, $rows rows"
		echo "$out"
		failed=1
	fi
}

for attr in ro ru; do
	loops msg_lat,msg_bw,msg_bidir,msg_rate 12 --attr $attr
	loops msg_lat,msg_bw,msg_bidir,msg_rate 12 --attr $attr --silent
	loops msg_lat,msg_bw,msg_bidir,msg_rate 12 --attr $attr --no-copy
done
loops msg_lat 3 --attr uu
loops msg_bw 3 --attr ro -w 1
loops tag_lat,tag_bw,tag_bidir,tag_rate 12
echo "1..$n"
exit $failed
