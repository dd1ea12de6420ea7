#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
#
# seed_test.sh - whether the inputs that the fuzz targets begin with are those that fuzz_seed makes
#
# usage: seed_test.sh FUZZ_SEED CORPUS
# Those without a number were found, and stay.
set -u
seed=$1 corpus=$2
made=$(mktemp -d) || exit 1
trap 'rm -rf "$made"' EXIT

"$seed" "$made"
case $? in
0) ;;
126) echo "# skipped: $seed is for another processor"; exit 77 ;;
*) exit 1 ;;
esac
if ! diff -rq -x '*[a-z]*_*' "$made" "$corpus"; then
	echo "after a change of the wire or of fuzz_seed.c: remove the numbered ones, then $seed $corpus"
	exit 1
fi
