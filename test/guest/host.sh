#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
#
# host.sh - in the guest: run a command on one of the "hosts"
#
# usage: host.sh NAME COMMAND [ARG...]    NAME is host0 to host3, pair0, pair1, or @ for that in
#                                         GUEST_HOST
#        host.sh -OPTION... NAME TEXT     as mpirun calls what it takes for ssh
# GUEST_GID is the index of the gid that ours uses; without it that is IPv4.
# A host has processes, a name, shared memory and an RDMA device (rxe0 to rxe3) of its
# own: nothing of another is reached but over the wire. pair0 and pair1 have two, those of host0
# and host2, or of host1 and host3.
ssh=no
while [ "${1#-}" != "$1" ]; do
	ssh=yes
	shift
done
name=$1
shift
[ "$name" != @ ] || name=$GUEST_HOST
case $name in
host[0-3]) device=rxe${name#host} ;;
pair[01]) device=rxe${name#pair},rxe$((${name#pair} + 2)) ;;
*) echo "host.sh: no host '$name'" >&2; exit 2 ;;
esac
[ $ssh = no ] || set -- sh -c "$*"
export PLX_NET_MLX_DEVICE=$device${GUEST_GID:+:1:$GUEST_GID} UCX_NET_DEVICES=${device%,*}:1
# Its processes find each other in its own /dev/shm, as the network namespace is that of all hosts.
export PLX_SHM_DIR=/dev/shm
exec unshare --pid --fork --kill-child --mount-proc --uts --ipc --mount sh -c '
	hostname "$0" && mount -t tmpfs shm /dev/shm && exec "$@"' "$name" "$@"
