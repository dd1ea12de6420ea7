#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""reach_test.py - who reaches whom: processes of two users, with and without capabilities, in namespaces
of their own as containers have, without /proc; both sides find the same, and the refused ones say why

usage: reach_test.py REACH LIBPOLLUX
"""
import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile

import run_util as u

UNREACHABLE = "Destination is unreachable"
OK = "Success"
TIMEOUT = 60
NO_CAPS = ["--inh-caps=-all", "--ambient-caps=-all", "--bounding-set=-all"]
# Why, as the log says it.
USER = "its user is not in our shm.peers, or ours is not in its"
NAMESPACE = "another network namespace"
FOLDER = "FOLDER"  # one that all sides share


def user(uid, *more, gid=None):
    return ["setpriv", f"--reuid={uid}", f"--regid={gid or uid}", "--clear-groups", *more]


def setting(name, value):
    return ["env", f"PLX_SHM_{name}={value}"]


BY_FOLDER = setting("DIR", FOLDER)
PID_NS = ["unshare", "--fork", "--pid", "--mount-proc"]
USER_NS = ["unshare", "--user", "--map-root-user"]
NET_NS = ["unshare", "--net"]
CONTAINER = ["unshare", "--fork", "--pid", "--mount-proc", "--net", "--ipc", "--uts", "--cgroup"]
ROOTLESS = ["unshare", "--user", "--map-root-user", *CONTAINER[1:]]
NO_PROC = ["unshare", "--mount", "sh", "-c", 'umount -l /proc && exec "$@"', "sh"]
PIDS_ONLY = ["unshare", "--mount", "sh", "-c", 'mount -t proc -o subset=pid proc /proc && exec "$@"', "sh"]

# The sentence; how each side is started; what both say; the reason, if it is a refusal.
SCENES = [
    ("one_user_reaches_itself", user(65534), user(65534), OK, None),
    ("root_and_a_user_do_not_reach_each_other", [], user(65534), UNREACHABLE, USER),
    ("two_users_do_not_reach_each_other", user(65534), user(65533), UNREACHABLE, USER),
    ("two_groups_of_one_user_reach_each_other", user(65534), user(65534, gid=65533), OK, None),
    ("all_users_reach_each_other_where_the_setting_says_so", setting("PEERS", "all") + user(65534),
     setting("PEERS", "all") + user(65533), OK, None),
    ("users_that_name_each_other_do", setting("PEERS", "1,65533") + user(65534),
     setting("PEERS", "nobody") + user(65533), OK, None),
    ("users_that_name_their_groups_do", setting("PEERS", "@65533") + user(65534),
     setting("PEERS", "root,@nogroup") + user(65533), OK, None),
    ("root_and_root_without_rights_reach_each_other", [], ["setpriv", *NO_CAPS], OK, None),
    ("a_program_that_is_closed_to_others_is_reached", [*user(65534), "dark"], user(65534), OK, None),
    ("one_that_has_changed_its_user_is_reached", ["drops"], user(65534), OK, None),
    ("one_that_has_changed_its_user_is_no_longer_roots", ["drops"], [], UNREACHABLE, USER),
    ("two_pid_namespaces_reach_each_other", [], PID_NS, OK, None),
    ("two_pid_namespaces_with_equal_pids_reach_each_other", PID_NS, PID_NS, OK, None),
    ("two_user_namespaces_reach_each_other", [], USER_NS, OK, None),
    ("two_user_namespaces_of_a_user_reach_each_other", user(65534) + USER_NS, user(65534) + USER_NS, OK, None),
    ("without_proc_they_reach_each_other", NO_PROC, NO_PROC, OK, None),
    ("with_a_proc_of_pids_only_they_reach_each_other", PIDS_ONLY, [], OK, None),
    ("two_network_namespaces_do_not_reach_each_other", [], NET_NS, UNREACHABLE, NAMESPACE),
    ("two_network_namespaces_reach_each_other_by_a_folder", BY_FOLDER, BY_FOLDER + NET_NS, OK, None),
    ("two_containers_reach_each_other_by_a_folder", BY_FOLDER + CONTAINER, BY_FOLDER + CONTAINER, OK, None),
    ("two_rootless_containers_reach_each_other_by_a_folder", BY_FOLDER + user(65534) + ROOTLESS,
     BY_FOLDER + user(65534) + ROOTLESS, OK, None),
    ("users_of_two_containers_do_not_reach_each_other", BY_FOLDER + user(65534) + ROOTLESS,
     BY_FOLDER + user(65533) + ROOTLESS, UNREACHABLE, USER),
]


ARGUMENTS = ("dark", "drops")  # of the program itself


def die_with_parent():
    ctypes.CDLL(None).prctl(1, 9)


class Side:
    def __init__(self, how, exe, folder, level="warning"):
        argument = [x for x in how[-1:] if x in ARGUMENTS]
        argv = [*how[:len(how) - len(argument)], exe, *argument]
        argv = [x.replace(FOLDER, folder + "/meet") for x in argv]
        env = dict(os.environ, LD_LIBRARY_PATH=folder, HOME="/", PLX_LOG_LEVEL=level, PLX_WORKER_DEVICES="shm")
        self.p = subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True, cwd="/", start_new_session=True,
                                  preexec_fn=die_with_parent)

    def line(self):
        return self.p.stdout.readline().strip()

    def say(self, text):
        try:
            self.p.stdin.write(text + "\n")
            self.p.stdin.flush()
        except BrokenPipeError:
            pass

    def end(self):
        """What it said since, and what it wrote to the log."""
        try:
            return self.p.communicate("\n", timeout=TIMEOUT)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            u.kill_family(self.p)
            return self.p.communicate()


def meet(sides):
    """What each says, and what it writes to the log."""
    addresses = [s.line() for s in sides]
    for s, other in zip(sides, reversed(addresses)):
        s.say(other)
    # Both have to have said it before either goes.
    said = [[s.line()] for s in sides]
    for lines, s in zip(said, sides):
        if lines[0] == f"ep: {OK}":
            lines.append(s.line())
    logs = []
    for lines, s in zip(said, sides):
        out, err = s.end()
        lines += out.split("\n")
        logs.append(err)
    return said, logs


def told(exe, folder):
    """At log level info: that the library is there, with what, and what carries a peer."""
    sides = [Side([], exe, folder, "info") for _ in range(2)]
    _, logs = meet(sides)
    pids = [s.p.pid for s in sides]
    why = ""
    for log, own, other in zip(logs, pids, reversed(pids)):
        for want in (rf"version \d+\.\d+\.\d+ started in process {own}: devices shm.*; (huge|4 KiB) pages",
                     rf"worker 0 chooses shm for process {other}$"):
            if len(re.findall(want, log, re.M)) != 1:
                why += f"not once: {want}\n{log}"
    return why


def dead(exe, folder):
    """One that was killed and whose parent has not noticed: an ep to it fails, for that reason."""
    sides = [Side(user(65534), exe, folder) for _ in range(2)]
    address = [s.line() for s in sides][0]
    sides[0].p.kill()
    os.waitid(os.P_PID, sides[0].p.pid, os.WEXITED | os.WNOWAIT)
    sides[1].say(address)
    out, log = sides[1].end()
    sides[0].end()
    want = rf"ep: {OK}\nexchange: (Operation rejected|Connection reset) by remote peer\n"
    return "" if re.fullmatch(want, out) and not log else f"{out}{log}"


def scene(a, b, want, reason, exe, folder):
    """Returns what is wrong, or ''."""
    sides = [Side(how, exe, folder) for how in (a, b)]
    said, logs = meet(sides)
    why = ""
    for lines, log, s in zip(said, logs, sides):
        expected = [f"ep: {want}"] + ([f"exchange: {want}"] if want == OK else [])
        if [x for x in lines if x] != expected or s.p.returncode != 0:
            why += f"status {s.p.returncode}: {lines}, not {expected}\n{log}"
        if reason is not None and (reason not in log or "can't reach process" not in log):
            why += f"the log does not say \"{reason}\":\n{log}"
        if reason is None and log:
            why += f"wrote to the log:\n{log}"
    return why


def missing(how):
    """Why a side can't be started like this here, or ''."""
    command = [x for x in how if x not in ARGUMENTS]
    if not command:
        return ""
    p = subprocess.run([*command, "true"], capture_output=True, text=True, check=False, cwd="/")
    return p.stderr.strip() if p.returncode != 0 else ""


def main():
    exe, library = sys.argv[1:3]
    report = u.Report()
    with tempfile.TemporaryDirectory() as folder:
        # Other users may not be let into the build folder.
        os.chmod(folder, 0o755)
        os.mkdir(os.path.join(folder, "meet"))
        os.chmod(os.path.join(folder, "meet"), 0o1777)
        shutil.copy(exe, folder)
        shutil.copy(library, os.path.join(folder, "libpollux.so.0"))
        here = os.path.join(folder, os.path.basename(exe))
        for name, a, b, want, reason in SCENES:
            lacks = missing(a) or missing(b)
            if name.startswith("root_") and os.geteuid() != 0:
                lacks = "only root has rights to do without"
            if lacks:
                report.skip(name, lacks)
            else:
                report.result(name, scene(a, b, want, reason, here, folder))
        if os.geteuid() == 0:
            report.result("a_process_that_has_ended_is_not_one_that_may_not_be_reached", dead(here, folder))
        left = os.listdir(os.path.join(folder, "meet"))
        report.result("no_socket_is_left_in_the_folder", f"{left}" if left else "")
        report.result("the_log_tells_what_started_and_what_carries_a_peer", told(here, folder))
    return report.status()


sys.exit(main())
