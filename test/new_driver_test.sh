#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
#
# new_driver_test.sh - a driver is added by its folder and a word in meson_options.txt, and is tried
#
# usage: new_driver_test.sh SOURCE
# A copy of the sources gets a driver "copycat", made of drivers/skeleton, and is built with it: it passes the
# contract, and its setting and its name are where those of other drivers are.
set -eu
source=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# Only what is under version control, or would be: a build folder may be inside.
for f in meson.build meson_options.txt pollux.map LICENSE config lib drivers include dropin usertools app examples test doc; do
	[ ! -e "$source/$f" ] || cp -r "$source/$f" "$dir"
done
cd "$dir"
# The page's commands, and no others.
steps=$(sed -n '/^ *```sh .*new_driver_test/,/^ *```$/p' doc/guides/new_driver.md | sed '1d; $d; s/NAME/copycat/g')
[ -n "$steps" ]
(eval "$steps")
if ls drivers/copycat/*skel* 2>/dev/null || grep -n 'skel_\|skeleton' drivers/copycat/*; then
	echo "the steps leave the skeleton's name"
	exit 1
fi
sed -i "s/'skeleton'\]/'skeleton', 'copycat']/" meson_options.txt

meson setup build -Ddrivers=shm,copycat -Dapps=false -Ddocs=false -Dbuildtype=plain -Dc_args=-O0 >setup.log ||
	{ tail -n 20 setup.log; exit 1; }
ninja -C build test/unit/dev_contract_test >build.log || { tail -n 40 build.log; exit 1; }
build/test/unit/dev_contract_test copycat
grep -q '"shm,copycat"' build/lib/init/drivers.c
