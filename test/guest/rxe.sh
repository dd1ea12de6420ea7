#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
#
# rxe.sh - in the guest: two soft-RoCE devices with a cable or a switch between them
#
# usage: rxe.sh [cable]   rxe0 is 10.7.0.1 on wire0, rxe1 is 10.7.0.2 on wire1
#        rxe.sh switch    rxe2 is 10.7.1.3 on wire2, rxe3 is 10.7.1.4 on wire3; each wire
#                         ends in a switch, as port2 and port3: who takes a port down
#                         pulls the cable, and both stay as they are but for their carrier
#
# This kernel's rxe works in the first network namespace only, so both ends are in it,
# and the rules below make packets from one to the other go over the wires instead of
# the loopback: there netem can lose them, and a cable can be pulled.
set -e
case ${1:-cable} in
cable)
	a=0 b=1 net=10.7.0
	ip link add wire0 mtu 4200 type veth peer name wire1 mtu 4200
	echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter
	ip rule add pref 20 lookup 7
	ip rule add pref 30 lookup local
	ip rule del pref 0
	;;
switch)
	a=2 b=3 net=10.7.1
	ip link add switch mtu 4200 type bridge
	for i in 2 3; do
		ip link add wire$i mtu 4200 type veth peer name port$i mtu 4200
		ip link set port$i master switch up
	done
	ip link set switch up
	;;
*)
	sed -n 's/^# usage: /usage: /p' "$0" >&2
	exit 2
	;;
esac

# end OWN PEER: the end of a wire that belongs to a device
end()
{
	wire=wire$1 from=$net.$(($1 + 1)) to=$net.$(($2 + 1))
	echo 1 >/proc/sys/net/ipv4/conf/"$wire"/accept_local
	echo 0 >/proc/sys/net/ipv4/conf/"$wire"/rp_filter
	# Only the end whose address it is answers.
	echo 1 >/proc/sys/net/ipv4/conf/"$wire"/arp_ignore
	ip addr add "$from"/24 dev "$wire" noprefixroute
	ip link set "$wire" up
	ip rule add pref 10 iif "$wire" lookup local
	ip route add "$to" dev "$wire" src "$from" table 7
	rdma link add rxe"$1" type rxe netdev "$wire"
}
end $a $b
end $b $a
