#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""steps.py - what is tested in the guest; run_guest.py starts it there

usage: steps.py --build DIR GROUP...
"""
import argparse
import sys
import time

import net  # noqa: F401, the path of what follows
import run_util as u
import step_api
import step_cm
import step_mem
import step_mp
import step_mpi
import step_perf
import step_ports
import step_rdma
import step_tcp
import step_turns

GROUPS = {
    "rdma": step_rdma.rdma, "ucx": step_rdma.ucx,
    "contract": step_api.contract, "api": step_api.api, "api_all": step_api.api_all,
    "cci": step_api.cci, "uu": step_api.uu, "cci_all": step_api.cci_all,
    "cm": step_cm.cm, "cm_all": step_cm.cm_all,
    "mp": step_mp.mp, "loss": step_mp.loss, "cable": step_mp.cable, "kill": step_mp.kill,
    "ports": step_ports.ports, "ports_all": step_ports.ports_all,
    "mpi": step_mpi.mpi, "mpi_all": step_mpi.mpi_all,
    "perf_lat": step_perf.perf_lat, "perf_bw": step_perf.perf_bw,
    "perf_calls": step_perf.perf_calls, "perf_turns": step_turns.perf_turns,
    "memory": step_mem.memory, "tcp": step_tcp.tcp,
}
DEFAULT = ["rdma", "ucx", "contract", "api", "cci", "uu", "cm", "mp", "loss", "cable", "kill", "mpi",
           "ports", "tcp"]


def prepare(build):
    """What is better done before the guest boots; returns what is wrong."""
    return step_mp.prepare(build) or step_mpi.prepare(build) or step_cm.prepare(build)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--build", required=True)
    ap.add_argument("groups", nargs="+", choices=GROUPS)
    args = ap.parse_args()
    report = u.Report()
    for name in args.groups:
        begin = time.monotonic()
        GROUPS[name](report, args.build)
        print(f"# {name}: {time.monotonic() - begin:.1f} s", flush=True)
    return report.status()


if __name__ == "__main__":
    sys.exit(main())
