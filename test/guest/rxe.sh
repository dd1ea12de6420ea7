#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
#
# rxe.sh - in the guest: rxe0 and rxe1, soft-RoCE on the two ends of a veth pair
#
# rxe0 is 10.7.0.1 on wire0, rxe1 is 10.7.0.2 on wire1. This kernel's rxe works in the
# first network namespace only, so both ends are in it, and the rules below make
# packets from one to the other go over the wire instead of the loopback: there
# netem can lose them and the link can go down.
set -e
ip link add wire0 type veth peer name wire1
for i in 0 1; do
	echo 1 >/proc/sys/net/ipv4/conf/wire$i/accept_local
	echo 0 >/proc/sys/net/ipv4/conf/wire$i/rp_filter
	# Only the end whose address it is answers.
	echo 1 >/proc/sys/net/ipv4/conf/wire$i/arp_ignore
	ip addr add 10.7.0.$((i + 1))/24 dev wire$i
	ip link set wire$i mtu 4200 up
	ip rule add pref 10 iif wire$i lookup local
done
echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter
ip route add 10.7.0.2 dev wire0 src 10.7.0.1 table 7
ip route add 10.7.0.1 dev wire1 src 10.7.0.2 table 7
ip rule add pref 20 lookup 7
ip rule add pref 30 lookup local
ip rule del pref 0
rdma link add rxe0 type rxe netdev wire0
rdma link add rxe1 type rxe netdev wire1
