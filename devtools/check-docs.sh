#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
#
# check-docs.sh - the guides agree with the code: every setting has a line in
# settings.md, every RPC method in rpc.md, every public function in ucp.md or cci.md and in
# a man page, every file.c:function() and every link exists; man pages are well formed
set -u
cd "$(dirname "$0")/.." || exit 1
guides=doc/guides
bad=0

complain()
{
	echo "$*"
	bad=1
}

# every NAME PAGE: each name has to stand in backquotes in the page
every()
{
	local name

	[ -n "$2" ] || { complain "found no $1 in the code"; return; }
	for name in $2; do
		grep -qE "^#+ $name\$|\`$name\`" "$3" 2>/dev/null || complain "$3: no line for $1 $name"
	done
}

# The setting's line, and back: what looks like a setting is one.
settings=$(sed -nE 's/^\s*PLX_ROW_[A-Z]+\([A-Z_]+, "([a-z_.]+)".*/\1/p' lib/conf/conf_table.c drivers/*/*.c)
every setting "$(grep -v '^skeleton\.' <<<"$settings")" $guides/settings.md # that one is an example
while IFS=: read -r page name; do
	[ -n "$page" ] || continue
	grep -qx "$name" <<<"$settings" || complain "$page: there is no setting $name"
done <<<"$(grep -roHE "(\`[a-z]+\.[a-z_]+\`|^\.BR? [a-z]+\.[a-z_]+)" doc README.md 2>/dev/null |
	sed -E 's/:(`|\.BR? )/:/; s/`$//' | grep -vE '\.(c|h|md|py|json|conf|build|pc|sh|so|map|in|d|log|txt|mpich|openmpi)$' | sort -u)"

# Rows of method tables are {"name", "parameters", ...
tables=$(grep -rlw plx_rpc_method lib --include='*.c' 2>/dev/null | grep -v _test)
[ -z "$tables" ] ||
	every method "$(sed -nE 's/^\s*\{"([a-z_]+)", ".*/\1/p' $tables | sort -u)" $guides/rpc.md

while IFS=: read -r page file function; do
	[ -n "$page" ] || continue
	paths=$(find lib drivers app test examples include -path "*/$file" 2>/dev/null)
	if [ -z "$paths" ]; then
		complain "$page: there is no $file"
	elif ! grep -qE "\b${function}\(" $paths; then # of several with this name, one
		complain "$page: $file has no $function()"
	fi
done <<<"$(grep -oHE '[A-Za-z0-9_/]+\.[ch]:[a-z_0-9]+\(\)' $guides/*.md README.md 2>/dev/null | tr -d '()' | sort -u)"

# Every public function has a line in the page of its interface, and man finds a page by its name.
found=$(sh doc/man_links.sh doc/man | cut -d ' ' -f 1; basename -s .3 doc/man/*.3)
for name in $(sort <<<"$found" | uniq -d); do
	complain "doc/man: two pages describe $name"
done
for api in ucp cci; do
	functions=$(sed -nE "s/^\s*(${api}_[a-z0-9_]+);.*/\1/p" pollux.map)
	every function "$functions" $guides/$api.md
	for name in $functions; do
		grep -qx "$name" <<<"$found" || complain "doc/man: no page describes $name"
	done
done

# Of CCI's names, and the tests that the page names: each is there.
every "constant of CCI" "$(grep -oE '\bCCI_(E|ERR_|FLAG_|OPT_|EVENT_|CONN_ATTR_|SUCCESS)[A-Z_]*\b' include/cci.h |
	sort -u)" $guides/cci.md
tests=$(sed -nE 's/^\s*T(_NEEDS)?\(([a-z_0-9]+)[,)].*/\2/p' test/cci_api_*.c)
for name in $(sed -nE '/^\| `CCI_|^\| `cci_/s/.*\| ([a-z_, ]*) \|$/\1/p' $guides/cci.md | tr -d ','); do
	[[ $name != *_*_* ]] || grep -qx "$name" <<<"$tests" || complain "$guides/cci.md: there is no test $name"
done

# What a page says to see has a page: ours, or one of the system's.
while IFS=: read -r page name section; do
	[ -n "$page" ] || continue
	case $name in
	ucp_* | cci_* | pollux* | plx-* | commperf | testcomm) ;;
	*) continue ;;
	esac
	[ -e "doc/man/$name.$section" ] || grep -qw "$name" doc/man/*."$section" ||
		complain "$page: there is no $name($section)"
done <<<"$(grep -oHE '^\.BR [a-z_-]+ \([0-9]\)' doc/man/* | sed -E 's/:\.BR ([^ ]+) \(([0-9])\)/:\1:\2/' | sort -u)"

if command -v groff >/dev/null; then
	for page in doc/man/*.[1-9]; do
		said=$(groff -man -ww -z "$page" 2>&1)
		[ -z "$said" ] || complain "$said"
	done
fi

# A link to another page of ours leads somewhere.
while IFS=: read -r page target; do
	[ -n "$page" ] || continue
	[ -e "$(dirname "$page")/$target" ] || complain "$page: link to $target leads nowhere"
done <<<"$(grep -oHE '\]\([A-Za-z0-9_./-]+' $guides/*.md README.md CONTRIBUTING.md SECURITY.md 2>/dev/null | sed 's/:\](/:/' | sort -u)"

# Text is read in a terminal: tables and code may be wider.
wide=$(awk 'FNR == 1 { code = 0 } /^```/ { code = !code } !code && !/^[|`]/ && length > 100 \
	{ print FILENAME ":" FNR ": longer than 100 columns" }' README.md CHANGELOG.md SECURITY.md CONTRIBUTING.md MAINTAINERS $guides/*.md)
[ -z "$wide" ] || complain "$wide"
exit $bad
