#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""slurm_test.py - jobs that Slurm starts: its daemons on two hosts, which are network namespaces

usage: slurm_test.py [--build DIR] [SCENE...]

munged, slurmctld and a slurmd on each host have all of their files in a folder of this test. Needs root, iproute2,
and Debian's packages munge, slurmctld, slurmd and slurm-client.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import hosts_test as h
import run_util as u

TIMEOUT = 100
HOSTS = "ab"
CONF = """ClusterName=plx
SlurmctldHost=a(10.77.0.1)
AuthType=auth/munge
AuthInfo=socket={d}/munge
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={d}/state
SlurmdSpoolDir={d}/%n
SlurmctldPidFile={d}/slurmctld.pid
SlurmdPidFile={d}/slurmd-%n.pid
SlurmctldLogFile={d}/slurmctld.log
SlurmdLogFile={d}/slurmd-%n.log
MailProg=/bin/true
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/linear
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SchedulerType=sched/builtin
SlurmdParameters=config_overrides
PropagateResourceLimits=NONE
ReturnToService=2
NodeName=a NodeAddr=10.77.0.1 NodeHostname=a CPUs=4
NodeName=b NodeAddr=10.77.0.2 NodeHostname=b CPUs=4
PartitionName=all Nodes=a,b Default=YES MaxTime=INFINITE State=UP
"""
PROGRAMS = [("collective", 4), ("rma", 4)]


class Slurm:
    """The daemons, gone at the end."""

    def __init__(self, net, folder):
        self.net, self.d, self.daemons = net, folder, []
        self.env = {"SLURM_CONF": self.file("slurm.conf")}

    def file(self, name):
        return os.path.join(self.d, name)

    def write(self, name, data):
        with open(self.file(name), "wb") as f:
            os.fchmod(f.fileno(), 0o600 if name == "key" else 0o644)
            f.write(data)

    def start(self, *argv):
        self.daemons.append(u.start(argv, self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))

    def at(self, host, *argv):
        return self.net.at(host, "unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', host, *argv)

    def __enter__(self):
        for folder in ("state", *HOSTS):
            os.mkdir(self.file(folder))
        self.write("key", os.urandom(128))
        self.write("slurm.conf", CONF.format(d=self.d).encode())
        self.write("cgroup.conf", b"CgroupPlugin=cgroup/v1\n")  # there may be none at all
        self.start("munged", "-F", "--force", "--socket", self.file("munge"), "--key-file", self.file("key"), "--pid-file",
                   self.file("munge.pid"), "--log-file", self.file("munge.log"), "--seed-file", self.file("seed"))
        if not h.until(lambda: os.path.exists(self.file("munge"))):
            raise RuntimeError("munged does not begin")
        self.start(*self.at("a", "slurmctld", "-D", "-f", self.file("slurm.conf")))
        for host in HOSTS:
            self.start(*self.at(host, "slurmd", "-D", "-N", host, "-f", self.file("slurm.conf")))
        if not h.until(self.is_ready):
            raise RuntimeError(self.logs())
        return self

    def __exit__(self, *_):
        for p in reversed(self.daemons):
            u.kill_family(p)
            p.wait()

    def is_ready(self):
        """Asked only where it would be answered: else sinfo goes on asking."""
        if any(p.poll() is not None for p in self.daemons):
            raise RuntimeError(self.logs())
        if 6817 not in h.ports_of(self.net, "a"):
            return False
        return u.run(self.net.at("a", "sinfo", "-h", "-N", "-o", "%T"), 20, self.env).out.count("idle") == len(HOSTS)

    def logs(self):
        text = ""
        for name in ("slurmctld.log", *(f"slurmd-{host}.log" for host in HOSTS)):
            if os.path.exists(self.file(name)):
                text += name + "\n" + "".join(open(self.file(name), encoding="utf-8").readlines()[-8:])
        return text

    def run(self, *argv, **env):
        return u.run(self.net.at("a", "srun", *argv), TIMEOUT, {**self.env, **env})


def mpich_is_started_by_srun(net, build):
    """Two ranks a host, which meet by pmi2, and talk by shared memory and TCP."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        with Slurm(net, folder) as slurm:
            for program, n in PROGRAMS:
                exe = slurm.file(program)
                why = u.compile_c(["mpicc.mpich"], [os.path.join(h.HERE, "mpi", f) for f in (program + ".c", "mpi_util.h")], exe)
                if why:
                    return why
                result = slurm.run("-N", 2, "-n", n, "--mpi=pmi2", os.path.join(build, "pollux-run"), exe, PLX_LOG_LEVEL="info")
                why = h.is_good(result, r"chooses shm for", h.CARRIED)
                if why:
                    return f"{program}: {why}\n{slurm.logs()}"
    return ""


SCENES = [mpich_is_started_by_srun]


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--build", default=os.path.join(h.HERE, "..", "build"))
    args.add_argument("scenes", nargs="*")
    args = args.parse_args()
    u.need("ip", "ss", "unshare", "mpicc.mpich", "munged", "slurmctld", "slurmd", "srun")
    return h.run_scenes(SCENES, args.scenes, os.path.abspath(args.build))


if __name__ == "__main__":
    sys.exit(main())
