#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
#
# check-names.sh - rules of names that the compiler does not see: a header not
# named plx_*.h stays in its folder, no two files of the libraries and drivers have one
# name, a face includes two headers of the core and reads no field of it, no library and
# no test of the drivers' contract names a driver, a plx_ function in a header has a
# comment, a code file begins with its licence
set -u
cd "$(dirname "$0")/.." || exit 1
bad=0

complain()
{
	echo "$*"
	bad=1
}

code=$(find lib drivers app test examples -name '*.[ch]' 2>/dev/null | sort)

while IFS=: read -r file line header; do
	[ -n "$file" ] || continue
	case $file in
	test/*/*) continue ;; # programs of one test folder
	esac
	base=${header##*/}
	case $base in
	plx_*.h) continue ;;
	esac
	[ -f "$(dirname "$file")/$base" ] ||
		find include -path "include/$header" 2>/dev/null | grep -q . ||
		complain "$file:$line: $header is private to another folder"
done <<<"$(grep -nE '^#include "' $code /dev/null | sed -E 's/^([^:]+):([0-9]+):#include "([^"]+)".*/\1:\2:\3/')"

# Guides, perf and gdb name a file without its folder.
while read -r name; do
	[ -z "$name" ] || complain "$name: the name of several files:" $(find lib drivers dropin -name "$name" | sort)
done <<<"$(find lib drivers dropin -name '*.[ch]' -exec basename {} \; 2>/dev/null | sort | uniq -d)"

# What a face needs of the core comes by plx_worker.h and plx_init.h, and it reads no field of a worker, an ep or a peer.
faces=$(find lib/ucp lib/cci dropin -name '*.[ch]' ! -name '*_test.c' 2>/dev/null)
while IFS=: read -r file line header; do
	[ -z "$file" ] || complain "$file:$line: a face does not include $(cut -d'"' -f2 <<<"$header")"
done <<<"$(grep -nE '^#include "plx_' $faces /dev/null | grep -vE '"plx_(worker|init)\.h"')"
while IFS= read -r line; do
	[ -z "$line" ] || complain "$line: a face reads no field of the core's"
done <<<"$(grep -nE '\b(core|peer|pool)->[a-z]|\bep->(err|peer|eps|stub|connected|pending|eager_end)\b' $faces /dev/null)"

# perf, gdb and grep know a function by its name alone. Of these folders all files keep to it so far.
worded="lib/am lib/chan lib/cm lib/ep lib/link lib/req lib/rma lib/rndv lib/rpc lib/stream lib/wire"
for file in $(find $worded -name '*.[ch]' ! -name '*_test.*' 2>/dev/null); do
	awk -v file="$file" '
		was_static && match($0, /^[a-z]+\(/) {
			print file ": the name of a static function is one bare word: " substr($0, 1, RLENGTH - 1)
			bad = 1
		}
		{ was_static = /^static / && !/[;=(]/ }
		END { exit bad }
	' "$file" || bad=1
done

for header in $(find lib drivers -name 'plx_*.h' 2>/dev/null); do
	awk -v file="$header" '
		BEGIN { RS = ""; FS = "\n" }
		{
			for (i = 1; i <= NF; i++) {
				if ($i ~ /\*\//)
					commented = 1
				if ($i !~ /^([a-z].*[ *])?plx_[a-z0-9_]+\(/ || $i ~ /^(return|typedef)/ ||
				    $i ~ /_(open|close|create|destroy)\(/ || commented)
					continue
				print file ": no comment above: " $i
				bad = 1
			}
			commented = 0
		}
		END { exit bad }
	' "$header" || bad=1
done

# Which drivers there are is known to the generated table only. Tests beside the code run on real ones.
for driver in drivers/*/; do
	driver=$(basename "$driver")
	while IFS= read -r line; do
		[ -z "$line" ] || complain "$line: names the driver $driver"
	done <<<"$(grep -rnE "(^|[^a-zA-Z])$driver([^a-zA-Z]|\$)" lib dropin --include='*.[ch]' --exclude='*_test.c'
	grep -nE "(^|[^a-zA-Z])$driver([^a-zA-Z]|\$)" test/dev_contract_t*.c test/unit/plx_unit_dev.h)"
done

for file in $code $(find devtools usertools test -name '*.sh' -o -name '*.py' -o -name '*.in' 2>/dev/null); do
	head -n 3 "$file" | grep -q 'SPDX-License-Identifier: BSD-3-Clause' ||
		complain "$file: no SPDX line at its head"
done
exit $bad
