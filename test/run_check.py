#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""run_check.py - pollux-run: who used Pollux and with whom, and why nobody did

usage: run_check.py [--build DIR]
"""
import argparse
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile

import run_util as u

HERE = os.path.dirname(os.path.abspath(__file__))
INCLUDE = os.path.join(HERE, "..", "include")
MANY = 300
NOBODY = 65534


class Ground:
    def __init__(self, build, folder):
        self.run = os.path.join(build, "pollux-run")
        self.dropin = os.path.join(build, "dropin")
        self.folder = folder
        self.tmp = os.path.join(folder, "tmp")
        os.mkdir(self.tmp)
        self.env = dict(os.environ, TMPDIR=self.tmp)

    def path(self, name):
        return os.path.join(self.folder, name)

    def compile(self, name, source, *flags):
        exe = self.path(name)
        why = u.compile_c(["cc"], [source], exe, "-I" + INCLUDE, *flags)
        if why:
            raise RuntimeError(why)
        return exe

    def check(self, *argv, options=("--check",), env=None):
        return subprocess.run([self.run, *options, *argv], env=dict(self.env, **(env or {})), timeout=120,
                              capture_output=True, text=True, check=False, cwd=self.folder)


def expect(p, rc, *patterns):
    """What is wrong with the end of a command, or ''."""
    why = "" if p.returncode == rc else f"exit status {p.returncode}, not {rc}\n"
    for pattern in patterns:
        if not re.search(pattern, p.stderr, re.M):
            why += f"does not say: {pattern}\n"
    return why + p.stdout + p.stderr if why else ""


def two_processes_that_talk_are_told_with_device_and_peers(g, progs):
    if "hello" not in progs:
        return None
    return expect(g.check(progs["hello"]), 0, r"^pollux-run: 2 processes used Pollux \d+\.\d+\.\d+$",
                  r"(process \d+ hello: shm with 1 peer$\n?.*){2}")


def a_process_alone_is_told(g, progs):
    return expect(g.check(progs["check"], "start"), 0, "1 process used Pollux",
                  r"process \d+ check: with no other process$")


def a_library_that_is_only_loaded_is_not_used(g, progs):
    return expect(g.check(progs["check"], "load"), 3, "no process used Pollux: .* never started")


def a_process_that_is_killed_is_told(g, progs):
    return expect(g.check(progs["check"], "kill"), 128 + 9, "1 process used Pollux", "ended without ucp_cleanup")


def children_of_a_fork_are_told(g, progs):
    return expect(g.check(progs["check"], "fork"), 0, "3 processes used Pollux", "no process found another")


def a_process_that_runs_another_program_is_told_twice(g, progs):
    return expect(g.check(progs["check"], "exec"), 0, "2 processes used Pollux")


def many_processes_are_told_in_one_line(g, progs):
    loop = f'i=0; while [ $i -lt {MANY} ]; do {progs["check"]} load & i=$((i + 1)); done; wait; ' \
           f'i=0; while [ $i -lt 20 ]; do {progs["check"]} start; i=$((i + 1)); done'
    return expect(g.check("sh", "-c", loop), 0, "20 processes used Pollux",
                  r"^pollux-run:   20 processes check: with no other process$")


def the_status_of_the_command_comes_first(g, progs):
    return expect(g.check("sh", "-c", f'{progs["check"]} start; exit 7'), 7, "1 process used Pollux") or \
        expect(g.check("sh", "-c", "exit 7"), 7, "no process used Pollux")


def a_program_that_is_not_linked_is_named(g, _):
    return expect(g.check("ls", "/"), 3, "no process used Pollux", "ls is not linked to libucp")


def a_static_program_is_named(g, _):
    source = g.path("static.c")
    with open(source, "w", encoding="ascii") as f:
        f.write("int main(void)\n{\n\treturn 0;\n}\n")
    exe = g.compile("static", source, "-static")
    return expect(g.check(exe), 3, "no process used Pollux", r"static is a static program")


def a_setgid_program_is_named(g, progs):
    exe = g.path("setuid")
    shutil.copy(progs["check"], exe)
    os.chmod(exe, 0o755 | stat.S_ISGID)
    # a group other than the caller's, or it is not one
    if os.geteuid() == 0:
        os.chown(exe, -1, NOBODY)
        os.chmod(exe, 0o755 | stat.S_ISGID)
    return expect(g.check("sh", "-c", f"{exe} load || :; : {exe}", exe), 3, "setuid is setuid or setgid")


def a_program_with_an_rpath_is_named(g, progs):
    other = g.path("other")
    os.mkdir(other)
    shutil.copy(os.path.join(g.dropin, "libucp.so.0"), other)
    exe = g.compile("rpath", os.path.join(HERE, "mp", "check.c"), "-L" + g.dropin, "-lucp",
                    "-Wl,--disable-new-dtags,-rpath," + other)
    env = {"POLLUX_CHECK": ""}
    return expect(g.check("env", "-u", "POLLUX_CHECK", exe, "start", env=env), 3,
                  rf"rpath takes {other}/libucp.so.0, by a RPATH")


def a_cleared_library_path_is_named(g, progs):
    return expect(g.check("env", "-i", "PATH=/bin:/usr/bin", progs["check"], "load"),
                  3 if shutil.which("ucx_info") else 127, "check would load Pollux from here, but did not")


def no_file_stays_behind(g, progs):
    g.check(progs["check"], "kill")
    g.check(progs["check"], "load")
    return "\n".join(os.listdir(g.tmp))


def nothing_is_written_where_others_may_write(g, progs):
    """The variable comes from anywhere: where others may write nothing is written."""
    why = ""
    for name, mode in (("open", 0o777), ("group", 0o770), ("own", 0o700)):
        folder = g.path(name)
        os.mkdir(folder)
        os.chmod(folder, mode)
        p = g.check(progs["check"], "start", options=(), env={"POLLUX_CHECK": folder})
        if p.returncode != 0 or p.stderr or len(os.listdir(folder)) != (name == "own"):
            why += f"{name}: status {p.returncode}, {os.listdir(folder)} {p.stderr}\n"
    for text in ("", "own", "/no/such/folder", progs["check"], "/" + "x" * 5000):
        p = g.check(progs["check"], "start", options=(), env={"POLLUX_CHECK": text})
        if p.returncode != 0 or p.stderr:
            why += f"{text[:40]}: status {p.returncode} {p.stderr}\n"
    return why


def names_in_the_folder_cannot_be_foreseen(g, progs):
    """So nobody can put a link there before."""
    folder = g.path("names")
    os.mkdir(folder, 0o700)
    names = set()
    for _ in range(2):
        g.check(progs["check"], "start", options=(), env={"POLLUX_CHECK": folder})
        names |= {n.partition(".")[2] for n in os.listdir(folder)}
    bad = [n for n in names if not re.fullmatch("[0-9a-f]{16}", n)]
    return "" if len(names) == 2 and not bad else f"names {sorted(names)}"


def the_version_is_printed(g, _):
    p = g.check(options=("--version",))
    return "" if re.fullmatch(r"pollux-run \d+\.\d+\.\d+\n", p.stdout) and p.returncode == 0 else str(p)


def libucs_catches_no_signals(g, progs):
    """An older libucs that the program loads, too, would install some."""
    if "segv" not in progs:
        return None
    ours = g.check(progs["segv"], "segv", options=()).stdout.strip()
    asked = g.check(progs["segv"], "segv", options=(), env={"UCX_HANDLE_ERRORS": "bt"}).stdout.strip()
    return "" if ours == "default" and asked in ("default", "caught") else f"{ours}, and {asked} if asked for"


def an_mpich_job_is_told(g, progs):
    if "mpich" not in progs:
        return None
    return expect(g.check("mpirun.mpich", "-n", "3", progs["mpich"]), 0, "3 processes used Pollux",
                  "(mpich: shm with 2 peers$\n?.*){3}")


def open_mpi_uses_ucx_only_with_the_option(g, progs):
    if "openmpi" not in progs:
        return None
    env = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    run = ["mpirun.openmpi", "--oversubscribe", "-n", "2", progs["openmpi"]]
    return expect(g.check(*run, env=env), 3, "no process used Pollux", "openmpi is an Open MPI program") or \
        expect(g.check(*run, env=env, options=("--check", "--openmpi")), 0, "2 processes used Pollux",
               "shm with 1 peer")


def the_option_is_not_asked_for_twice(g, progs):
    if "openmpi" not in progs:
        return None
    return expect(g.check("false", progs["openmpi"], options=("--check", "--openmpi")), 1,
                  "no process used Pollux", "openmpi is an Open MPI program, and did not start UCX")


def the_launcher_of_another_mpi_is_guessed(g, progs):
    if "openmpi" not in progs or "mpich" not in progs:
        return None
    env = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return expect(g.check("mpirun.openmpi", "--oversubscribe", "-n", "2", progs["mpich"], env=env), 0,
                  "2 processes used Pollux", "no process found another: does the launcher belong")


LAUNCHER = """#!/bin/sh
case $1 in
--version) echo "$VERSION" ;;
*) printf '%s\\n' "$@" ;;
esac
"""


def launched(g, name, *argv, env=None):
    """The words that a launcher of this name gets."""
    path = g.path(name)
    with open(path, "w", encoding="ascii") as f:
        f.write(LAUNCHER)
    os.chmod(path, 0o755)
    own = {k: v for k, v in os.environ.items() if not k.startswith(("PLX_", "UCX_", "OMPI_"))}
    p = subprocess.run([g.run, path, *argv], env={**own, "VERSION": "mpirun (Open MPI) 5.0.1", **(env or {})}, timeout=20,
                       capture_output=True, text=True, check=False)
    return p.stdout.splitlines() if p.returncode == 0 else [p.stderr]


def open_mpi_carries_the_variables_to_each_command(g, _):
    """Between colons; those of the user come later, and count."""
    env = {"PLX_LOG_LEVEL": "info", "UCX_TLS": "tcp", "PLX_X Y": "no name", "OTHER": "1\nPLX_FALSE=1"}
    x = ["-x", "LD_LIBRARY_PATH", "-x", "PLX_LOG_LEVEL", "-x", "UCX_HANDLE_ERRORS", "-x", "UCX_TLS"]
    got = launched(g, "mpirun", "-x", "UCX_TLS=shm", "-n", "1", "a b", ":", "-n", "1", "./b", env=env)
    want = [*x, "-x", "UCX_TLS=shm", "-n", "1", "a b", ":", *x, "-n", "1", "./b"]
    return "" if got == want else f"{got}, and not {want}"


def no_other_command_gets_these_options(g, _):
    """And no launcher where Open MPI would refuse them."""
    words = ["-n", "1", "./a", ":", "./b"]
    listed = ["--mca", "mca_base_env_list", "A", *words]
    cases = [("mpirun.mpich", words, {"VERSION": "HYDRA build details:"}), ("a.out", words, {}), ("mpirun", listed, {}),
             ("mpirun", ["--tune", "file", *words], {}), ("mpirun", words, {"OMPI_MCA_mca_base_env_list": ""})]
    why = ""
    for name, argv, env in cases:
        got = launched(g, name, *argv, env=env)
        why += "" if got == argv else f"{name} {argv} {env}: {got}\n"
    return why


def open_mpi_runs_with_options_of_its_user(g, progs):
    """Of which some exclude each other."""
    if "openmpi" not in progs:
        return None
    home = g.path("home")
    os.makedirs(os.path.join(home, ".openmpi"))
    with open(os.path.join(home, ".openmpi", "mca-params.conf"), "w", encoding="ascii") as f:
        f.write("mca_base_env_list = PLX_LOG_LEVEL\n")
    tune = g.path("tune")
    with open(tune, "w", encoding="ascii") as f:
        f.write("-mca mca_base_env_list PLX_LOG_LEVEL\n")
    listed = ["--mca", "mca_base_env_list", "PLX_LOG_LEVEL"]
    cases = [([], {}), (["-x", "PATH"], {}), (listed, {}), (["--tune", tune], {}), ([], {"HOME": home}),
             ([], {"OMPI_MCA_mca_base_env_list": "PLX_LOG_LEVEL"}), ([], {"OMPI_MCA_mca_base_envar_file_prefix": tune})]
    env = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "PLX_LOG_LEVEL": "error"}
    why = ""
    for argv, more in cases:
        run = ["mpirun.openmpi", "--oversubscribe", *argv, "-n", "1", progs["openmpi"], ":", "-n", "1", progs["openmpi"]]
        p = g.check(*run, env={**env, **more}, options=("--check", "--openmpi"))
        if bad := expect(p, 0, "2 processes used Pollux", "shm with 1 peer"):
            why += f"{argv} {more}: {bad}"
    return why


TESTS = [
    two_processes_that_talk_are_told_with_device_and_peers,
    a_process_alone_is_told,
    a_library_that_is_only_loaded_is_not_used,
    a_process_that_is_killed_is_told,
    children_of_a_fork_are_told,
    a_process_that_runs_another_program_is_told_twice,
    many_processes_are_told_in_one_line,
    the_status_of_the_command_comes_first,
    a_program_that_is_not_linked_is_named,
    a_static_program_is_named,
    a_setgid_program_is_named,
    a_program_with_an_rpath_is_named,
    a_cleared_library_path_is_named,
    no_file_stays_behind,
    nothing_is_written_where_others_may_write,
    names_in_the_folder_cannot_be_foreseen,
    the_version_is_printed,
    libucs_catches_no_signals,
    an_mpich_job_is_told,
    open_mpi_uses_ucx_only_with_the_option,
    the_option_is_not_asked_for_twice,
    the_launcher_of_another_mpi_is_guessed,
    open_mpi_carries_the_variables_to_each_command,
    no_other_command_gets_these_options,
    open_mpi_runs_with_options_of_its_user,
]

MPI = """#include <mpi.h>
int main(int argc, char **argv)
{
	MPI_Init(&argc, &argv);
	MPI_Barrier(MPI_COMM_WORLD);
	return MPI_Finalize();
}
"""


def programs(g):
    link = ["-L" + g.dropin, "-lucp"]
    progs = {"check": g.compile("check", os.path.join(HERE, "mp", "check.c"), *link)}
    if os.path.exists("/usr/include/ucs/type/status.h"):
        progs["hello"] = g.compile("hello", os.path.join(HERE, "..", "examples", "ucp_hello.c"), *link,
                                   "-lucs")
        progs["segv"] = g.compile("segv", os.path.join(HERE, "mp", "check.c"), "-Wl,--no-as-needed", *link,
                                  "-lucs")
    source = g.path("mpi.c")
    with open(source, "w", encoding="ascii") as f:
        f.write(MPI)
    for mpi in ("mpich", "openmpi"):
        if shutil.which("mpicc." + mpi):
            why = u.compile_c(["mpicc." + mpi], [source], g.path(mpi))
            if why:
                raise RuntimeError(why)
            progs[mpi] = g.path(mpi)
    return progs


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.join(HERE, "..", "build"))
    args = parser.parse_args()
    u.need("cc")
    report = u.Report()
    with tempfile.TemporaryDirectory(prefix="pollux-check-") as folder:
        g = Ground(os.path.abspath(args.build), folder)
        progs = programs(g)
        for test in TESTS:
            why = test(g, progs)
            if why is None:
                report.skip(test.__name__, "its MPI, or libucs, is not installed")
            else:
                report.result(test.__name__, why)
    return report.status()


sys.exit(main())
