# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""step_rdma.py - in the guest, without our libraries: do the devices and UCX work?"""
import tempfile

import net
import run_perftest as perftest
import run_util as u

PORT = 18515  # of ibv_rc_pingpong


def pingpong(n, timeout, devices=net.DEVICES):
    """rdma-core's own program from one device to the other; returns what is wrong. The
    side that ends first may leave the other without its last acknowledgement."""
    base = ["ibv_rc_pingpong", "-g", "1", "-n", str(n), "-d"]
    both = []
    with tempfile.TemporaryFile("w+") as out:
        try:
            both.append(u.start([*base, devices[1]], stdout=out, stderr=out))
            if not net.wait_for(lambda: u.listening(PORT), 20):
                return "the server does not listen"
            both.append(u.start([*base, devices[0], "127.0.0.1"], stdout=out, stderr=out))
            net.wait_for(lambda: any(p.poll() is not None for p in both), timeout)
            net.wait_for(lambda: all(p.poll() is not None for p in both), 2)
        finally:
            for p in both:
                u.kill_family(p)
                p.wait()
        out.seek(0)
        text = out.read()
    return "" if f"{n} iters in" in text else text + "no end"


def rdma(report, _build):
    """the devices themselves: two ends of a wire that loses packets and can be pulled"""
    before = net.sent()
    why = pingpong(200, 30)
    packets = net.sent() - before
    if not why and packets < 400:
        why = f"only {packets} packets went over the wire"
    report.result("rxe0 and rxe1 exchange messages over the wire", why, f"{packets} packets")
    with net.Loss(10):
        before = net.counters("rxe1")
        why = pingpong(20, 30)
        after = net.counters("rxe1")
    names = ("duplicate_request", "out_of_seq_request")
    if not why and not any(after[name] > before[name] for name in names):
        why = "no packet was sent again"
    report.result("lost packets are sent again", why)
    net.switch()
    pair = ("rxe2", "rxe3")
    states = []
    with net.Cables() as cables:
        for change, state in ((cables.pull, "DOWN"), (cables.plug, "ACTIVE")):
            change()
            net.wait_for(lambda: all(net.port_state(d) == state for d in pair), 20)
            states.append([net.port_state(d) for d in pair])
    why = "" if states == [["DOWN"] * 2, ["ACTIVE"] * 2] else f"the ports are {states}"
    report.result("a cable is pulled and plugged in again", why or pingpong(20, 30, pair))


def ucx(report, _build):
    """the system's UCX by rc_verbs, which ours is compared to"""
    error, row = perftest.pair([net.HOST, "@"], net.on_hosts(net.UCX_ENV), "tag_lat", 8, 200,
                               net.CORES, 60)
    report.result("UCX's own rc_verbs, tag_lat 8 bytes", error,
                  " ".join(f"{x:g}" for x in row or []))
