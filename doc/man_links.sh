#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
#
# man_links.sh - the functions that pages of section 3 describe, one to a line: "FUNCTION PAGE"
#
# usage: man_links.sh DIR   the folder of the pages
for page in "$1"/*.3; do
	awk -v page="${page##*/}" '
		/^\.SH/ { named = $2 == "NAME"; next }
		named {
			last = sub(/\\-.*/, "")
			gsub(/,/, "")
			for (i = 1; i <= NF; i++)
				if ($i ".3" != page)
					print $i, page
			if (last)
				exit
		}' "$page"
done
