#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
#
# spdk_test.sh - the sample with a poller of SPDK moves all of its messages
#
# usage: spdk_test.sh [SPDK_POLLER]
# Without the program: there was no SPDK to build it with. Exits 77 and says so.
set -u
program=${1-}

if [ -z "$program" ]; then
	echo "skipped: examples/spdk_poller.c is not built: pkg-config finds no spdk_thread >= 25.05 and spdk_env_dpdk"
	exit 77
fi
said=$("$program" --no-huge)
rc=$?
echo "$said"
[ $rc -eq 0 ] && [ "$said" = "100 of 100 messages moved by a poller" ]
