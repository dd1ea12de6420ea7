# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""mpi4py_ranks.py - what mpi4py offers, by objects and by buffers: every rank checks, rank 0 prints"""
import array
import random

from mpi4py import MPI

comm = MPI.COMM_WORLD
rank, size = comm.rank, comm.size


def thing(of, n):
    return {"rank": of, "list": list(range(n)), "text": "x" * n, "bytes": bytes([of & 255]) * n}


def want(name, got, expected):
    if got != expected:
        raise SystemExit(f"rank {rank}: {name} is wrong")
    total = comm.reduce(1, MPI.SUM, 0)
    if rank == 0:
        print(f"{name} {total}", flush=True)


for n in (1, 100, 20000):
    right, left = (rank + 1) % size, (rank - 1) % size
    want(f"sendrecv {n}", comm.sendrecv(thing(rank, n), right, source=left), thing(left, n))
    want(f"bcast {n}", comm.bcast(thing(0, n) if rank == 0 else None), thing(0, n))
    want(f"gather {n}", comm.gather(thing(rank, n)), [thing(r, n) for r in range(size)] if rank == 0 else None)
    want(f"scatter {n}", comm.scatter([thing(r, n) for r in range(size)] if rank == 0 else None), thing(rank, n))
    want(f"allgather {n}", comm.allgather(thing(rank, n)), [thing(r, n) for r in range(size)])
    want(f"alltoall {n}", comm.alltoall([thing(rank * size + r, n) for r in range(size)]),
         [thing(r * size + rank, n) for r in range(size)])

for n in (1, 1000, 300000):
    mine = array.array("d", (rank + i for i in range(n)))
    total = array.array("d", bytes(8 * n))
    comm.Allreduce([mine, MPI.DOUBLE], [total, MPI.DOUBLE], MPI.SUM)
    want(f"Allreduce {n}", total, array.array("d", (size * i + size * (size - 1) // 2 for i in range(n))))
    got = array.array("d", bytes(8 * n))
    reqs = [comm.Irecv([got, MPI.DOUBLE], left, 7), comm.Isend([mine, MPI.DOUBLE], right, 7)]
    MPI.Request.Waitall(reqs)
    want(f"Isend {n}", got, array.array("d", (left + i for i in range(n))))
    window = MPI.Win.Allocate(8 * n, 8, comm=comm)
    window.Fence()
    window.Put([mine, MPI.DOUBLE], right)
    window.Fence()
    want(f"Put {n}", array.array("d", bytes(window.tomemory())), array.array("d", (left + i for i in range(n))))
    window.Free()

# Messages that wait, taken out of order.
tags = list(range(50))
random.Random(1).shuffle(tags)
sends = [comm.isend(thing(rank, t), right, t) for t in range(50)]
want("tags", [comm.recv(source=left, tag=t) for t in tags], [thing(left, t) for t in tags])
MPI.Request.waitall(sends)
