#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
#
# check-commit.sh - the form of commit messages: "tag: match wildcards in post
# order", at most 60 characters, body wrapped at 72
#
# usage: check-commit.sh [COMMIT | RANGE]   the last commit when not given
set -u
cd "$(dirname "$0")/.." || exit 1
range=${1:-HEAD}
bad=0

case $range in
*..*) commits=$(git rev-list --no-merges "$range") ;;
*) commits=$(git rev-parse --verify "$range") ;;
esac || exit 1

for c in $commits; do
	short=$(git rev-parse --short=12 "$c")
	subject=$(git log -1 --format=%s "$c")
	grep -qE '^[a-z0-9_/., -]+: [a-z0-9]' <<<"$subject" ||
		{ echo "$short: '$subject' is not 'library: what it does', in lower case"; bad=1; }
	[ ${#subject} -le 60 ] || { echo "$short: subject of ${#subject} characters, at most 60"; bad=1; }
	case $subject in
	*.) echo "$short: subject ends with a dot"; bad=1 ;;
	esac
	git log -1 --format=%b "$c" | awk -v c="$short" '
		length($0) > 72 && / / && !/https?:/ && !/^[ \t]/ { print c ": body line over 72 characters: " $0; bad = 1 }
		END { exit bad }' || bad=1
done
exit $bad
