#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
#
# loops_test.sh - commperf's measures with every byte compared, in every way to send, inline and
# with a reactor; and that each measure notices by itself what is wrong
#
# usage: loops_test.sh COMMPERF SPOIL
commperf=$1
spoil=$2
failed=0
n=0

# loops TESTS ROWS OPTION...: so many results, and no message that is wrong
loops()
{
	local tests=$1 rows=$2 out
	shift 2
	n=$((n + 1))
	if out=$("$commperf" -t "$tests" -s 8,104,4096 -n 2000 -r 1 --quiet --csv - --verify "$@" 2>&1) &&
		[ "$(grep -cE '^[a-z_]+,[a-z ]*,[0-9]+,' <<<"$out")" = "$rows" ]; then
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
for how in "" "--mem private" "--mem mapped" "--reactor 1"; do
	# shellcheck disable=SC2086 # no word, or two
	loops put,get,am,stream,unexpected,sleep 39 -s 8,104,65536 -n 300 $how
	# shellcheck disable=SC2086
	loops atomic 16 -s 4,8 $how
done

# notices TEST KIND OPTION...: without --verify it fails when an operation of this kind damages data
notices()
{
	local out rc
	local test=$1 kind=$2
	shift 2
	n=$((n + 1))
	out=$(SPOIL=$kind LD_PRELOAD=$spoil "$commperf" -t "$test" -n 100 -r 1 -s 8 --csv - --quiet "$@" 2>&1)
	rc=$?
	if [ $rc = 1 ] && grep -q "commperf: side .: [0-9]* wrong, first: " <<<"$out"; then
		echo "ok $n - $test notices damage by $kind"
	else
		echo "not ok $n - $test notices damage by $kind, exit $rc"
		echo "$out"
		failed=1
	fi
}

for test in tag_lat tag_bw tag_bidir tag_rate unexpected_lat unexpected_bw sleep_lat; do
	notices $test tag
done
for test in put_lat put_bw get_lat get_bw; do
	notices $test put
done
notices get_lat get
notices get_bw get
notices atomic_lat atomic
notices atomic_rate atomic
notices load tag --rounds 1 --ranks 2 --busy 0 --time-limit 0.05
for kind in am stream; do
	for test in lat bw rate; do
		notices ${kind}_$test $kind
	done
done
echo "1..$n"
exit $failed
