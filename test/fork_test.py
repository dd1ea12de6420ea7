#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""fork_test.py - Python programs that fork while they use the library: os.fork(), multiprocessing, subprocess

usage: fork_test.py LIBUCP
"""
import atexit
import ctypes
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import run_util as u

TAG, ALL_BITS = 1, (1 << 64) - 1
INPROGRESS = 1
PATIENCE_S = 30

libc = ctypes.CDLL(None, use_errno=True)
lib = None


class Params(ctypes.Structure):
    """The beginning of ucp_params_t, ucp_worker_params_t and ucp_ep_params_t, and room for the rest."""
    _fields_ = [("mask", ctypes.c_uint64), ("value", ctypes.c_uint64), ("rest", ctypes.c_uint8 * 512)]


class Info(ctypes.Structure):
    _fields_ = [("sender_tag", ctypes.c_uint64), ("length", ctypes.c_size_t)]


def load(path):
    global lib
    lib = ctypes.CDLL(path)
    for name in ("ucp_tag_send_nb", "ucp_tag_recv_nb", "ucp_ep_close_nb"):
        getattr(lib, name).restype = ctypes.c_void_p
    lib.ucp_tag_send_nb.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64,
                                    ctypes.c_uint64, ctypes.c_void_p]
    lib.ucp_tag_recv_nb.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64,
                                    ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p]
    lib.ucp_ep_close_nb.argtypes = [ctypes.c_void_p, ctypes.c_uint]
    for name in ("ucp_request_free", "ucp_request_check_status", "ucp_worker_destroy", "ucp_cleanup",
                 "ucp_worker_progress"):
        getattr(lib, name).argtypes = [ctypes.c_void_p]


def good(status):
    if status != 0:
        raise RuntimeError(f"status {status}")


SENT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int)(lambda req, status: None)
RECEIVED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)(lambda req, status, info: None)


class Worker:
    """A context with one worker, whose progress is asked for by who waits."""

    def __init__(self, context=None):
        self.context = context or ctypes.c_void_p()
        if context is None:
            good(lib.ucp_init_version(1, 12, ctypes.byref(Params(mask=1, value=1)), None,
                                      ctypes.byref(self.context)))
        self.worker = ctypes.c_void_p()
        good(lib.ucp_worker_create(self.context, ctypes.byref(Params()), ctypes.byref(self.worker)))
        self.eps = []

    def address(self):
        text, n = ctypes.c_void_p(), ctypes.c_size_t()
        good(lib.ucp_worker_get_address(self.worker, ctypes.byref(text), ctypes.byref(n)))
        return ctypes.string_at(text, n.value)

    def connect(self, address):
        where = ctypes.create_string_buffer(address, len(address))
        ep = ctypes.c_void_p()
        good(lib.ucp_ep_create(self.worker, ctypes.byref(Params(mask=1, value=ctypes.addressof(where))),
                               ctypes.byref(ep)))
        self.eps.append(ep)
        return ep

    def wait(self, req):
        end = time.monotonic() + PATIENCE_S
        if not req:
            return
        if req > (1 << 64) - 200:
            raise RuntimeError(f"status {req - (1 << 64)}")
        while lib.ucp_request_check_status(req) == INPROGRESS:
            lib.ucp_worker_progress(self.worker)
            if time.monotonic() > end:
                raise RuntimeError("not over")
        good(lib.ucp_request_check_status(req))
        lib.ucp_request_free(req)

    def send(self, ep, data):
        self.wait(lib.ucp_tag_send_nb(ep, data, len(data), 1 << 3, TAG, SENT))

    def receive(self, n):
        room = ctypes.create_string_buffer(n)
        self.wait(lib.ucp_tag_recv_nb(self.worker, room, n, 1 << 3, TAG, ALL_BITS, RECEIVED))
        return room.raw

    def close(self):
        for ep in self.eps:
            self.wait(lib.ucp_ep_close_nb(ep, 1))
        lib.ucp_worker_destroy(self.worker)
        lib.ucp_cleanup(self.context)


def to_and_fro(server, client):
    """Of two workers of this process."""
    there, back = server.connect(client.address()), client.connect(server.address())
    for data in (b"short", b"long" * 50000):
        for a, ep, b in ((server, there, client), (client, back, server)):
            room = ctypes.create_string_buffer(len(data))
            recv = lib.ucp_tag_recv_nb(b.worker, room, len(data), 1 << 3, TAG, ALL_BITS, RECEIVED)
            send = lib.ucp_tag_send_nb(ep, data, len(data), 1 << 3, TAG, SENT)
            end = time.monotonic() + PATIENCE_S
            while any(r and lib.ucp_request_check_status(r) == INPROGRESS for r in (recv, send)):
                lib.ucp_worker_progress(server.worker)
                lib.ucp_worker_progress(client.worker)
                if time.monotonic() > end:
                    raise RuntimeError("not over")
            for w, r in ((b, recv), (a, send)):
                w.wait(r)
            if room.raw != data:
                raise RuntimeError("other bytes")


def waited(pid, turns=()):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        got, status = os.waitpid(pid, os.WNOHANG)
        if got == pid:
            return os.waitstatus_to_exitcode(status)
        for w in turns:
            lib.ucp_worker_progress(w.worker)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    raise RuntimeError("the child hangs")


def fork(child):
    sys.stdout.flush()
    pid = os.fork()
    if pid != 0:
        return pid
    try:
        child()
        sys.exit(0)  # with atexit and all that
    except SystemExit as e:
        if e.code:
            os._exit(1)
        atexit._run_exitfuncs()
        libc.exit(0)
    except BaseException as e:
        print(f"# in the child: {e!r}", flush=True)
    os._exit(1)


class Two:
    def __init__(self):
        self.a, self.b = Worker(), Worker()
        to_and_fro(self.a, self.b)

    def close(self):
        self.a.close()
        self.b.close()


def a_child_exits(two):
    good(waited(fork(lambda: None), (two.a, two.b)))


def a_child_closes_all(two):
    good(waited(fork(two.close), (two.a, two.b)))


def a_child_starts_afresh(two):
    def child():
        own = Two()
        own.close()
        two.close()
        Two().close()
    good(waited(fork(child), (two.a, two.b)))


def a_child_talks_to_its_parent(two):
    address = two.a.address()
    r, w = os.pipe()

    def child():
        own = Worker()
        os.write(w, own.address())
        own.send(own.connect(address), b"from a child")
        if own.receive(200000) != b"p" * 200000:
            raise RuntimeError("other bytes")
        own.close()
    pid = fork(child)
    ep = two.a.connect(os.read(r, 4096))
    if two.a.receive(12) != b"from a child":
        raise RuntimeError("other bytes")
    two.a.send(ep, b"p" * 200000)
    good(waited(pid, (two.a, two.b)))
    os.close(r)
    os.close(w)


contexts = []


def square(n):
    """In a process of a pool: on the context that was made before it was forked."""
    w, own = Worker(contexts[0]), Worker()
    to_and_fro(w, own)
    own.close()
    return n * n


def a_pool_works(two):
    contexts[:] = [two.a.context]
    with multiprocessing.get_context("fork").Pool(3) as pool:
        if pool.map(square, range(12), chunksize=1) != [n * n for n in range(12)]:
            raise RuntimeError("other squares")


def a_process_ends_by_itself(two):
    p = multiprocessing.get_context("fork").Process(target=square, args=(3,))
    contexts[:] = [two.a.context]
    p.start()
    good(waited(p.pid, (two.a, two.b)))


def programs_are_run(two):
    good(os.system("true"))
    good(subprocess.run(["true"], check=False).returncode)
    good(subprocess.run(["true"], check=False, preexec_fn=lambda: None).returncode)
    if os.popen("echo word").read() != "word\n":
        raise RuntimeError("other words")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    load(sys.argv[1])
    report = u.Report()
    for case in (a_child_exits, a_child_closes_all, a_child_starts_afresh, a_child_talks_to_its_parent,
                 a_pool_works, a_process_ends_by_itself, programs_are_run):
        two, why = Two(), None
        try:
            case(two)
            to_and_fro(two.a, two.b)  # as if nothing had been
            two.close()
        except (RuntimeError, OSError) as e:
            why = repr(e)
        report.result(case.__name__, why)
    sys.exit(report.status())


if __name__ == "__main__":
    main()
