#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
#
# tsan.sh - build with the thread sanitizer, run the suite "threads", all of ucp with a reactor, and, of
# net_tcp, its contract and the programs with several threads, with and without a reactor
#
# usage: tsan.sh
# BUILD names the build folder, build-tsan when not set. The compiler is clang, whatever CC says: with
# this sanitizer gcc 12 loses a read in plx_ask_poll(), and two processes do not meet. DPDK's rings
# order by compiler barriers on this machine; RTE_USE_C11_MEM_MODEL makes them say so in a way that
# the sanitizer understands. Without die_after_fork=0 it ends a child that starts threads after fork().
set -u
cd "$(dirname "$0")/.." || exit 1

build=${BUILD:-build-tsan}
if [ ! -f "$build/build.ninja" ]; then
	CC="$(command -v ccache) clang" meson setup "$build" -Db_sanitize=thread -Db_lundef=false -Dapps=false \
		-Ddocs=false -Dbuildtype=debugoptimized \
		-Dc_args=-DRTE_USE_C11_MEM_MODEL || exit 1
fi
ninja -C "$build" test/ucp_threads_test test/cci_threads_test test/ucp_api_test test/unit/gate_test \
	test/unit/lock_test test/unit/dev_contract_test || exit 1
export TSAN_OPTIONS="suppressions=$PWD/test/tsan.supp history_size=4 halt_on_error=0 exitcode=66 die_after_fork=0"
meson test -C "$build" --no-rebuild --suite threads --print-errorlogs &&
	meson test -C "$build" --no-rebuild --print-errorlogs ucp_api_reactor &&
	"$build"/test/unit/dev_contract_test net_tcp || exit
for face in ucp cci; do
	for reactor in "" "lcore:$(($(nproc) - 1))"; do
		PLX_WORKER_DEVICES=net_tcp PLX_REACTOR=$reactor "$build"/test/${face}_threads_test || exit
	done
done
