# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""plx_job.py - what the tools share: the processes of a job, and how to ask them"""

import argparse
import concurrent.futures
import glob
import json
import os
import pathlib
import socket
import sys

ANSWER_MAX = 16 << 20  # bytes of one answer
AT_ONCE = 32           # processes that are asked at the same time
RANKS = ["OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"]
LISTENS = 0x10000      # /proc/net/unix: flags of a socket that accepts connections


def seconds(text, least=0.1):
    """The value of an option."""
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not least <= value <= 86400:
        raise argparse.ArgumentTypeError(f"must be {least} to 86400 seconds")
    return value


class CannotAsk(Exception):
    """The process does not answer."""


class Refused(Exception):
    """The process answers with an error."""

    def __init__(self, method, error):
        super().__init__(error.get("message", "it gives no reason"))
        self.method, self.code, self.data = method, error.get("code"), error.get("data")


def why(error):
    """The reason of an OSError, in words that say what to do."""
    if isinstance(error, FileNotFoundError):
        return "there is no such socket: has the process ended?"
    if isinstance(error, ConnectionRefusedError):
        return "nobody listens there: the process has ended"
    if isinstance(error, PermissionError):
        return "the process belongs to another user"
    if isinstance(error, TimeoutError):
        return "no answer: is the process stopped?"
    return error.strerror or str(error)


class Client:
    """One connection to a process, for any number of requests."""

    def __init__(self, path, timeout=10.0):
        self.path = path
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(timeout)
        try:
            self.sock.connect(path)
        except OSError as error:
            self.sock.close()
            raise CannotAsk(f"{path}: {why(error)}") from error
        self.file = self.sock.makefile("rb")

    def close(self):
        self.file.close()
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def ask(self, method, params=None):
        """The result; Refused, or CannotAsk."""
        request = {"jsonrpc": "2.0", "id": 1, "method": method}
        if params is not None:
            request["params"] = params
        try:
            self.sock.sendall(json.dumps(request).encode() + b"\n")
            line = self.file.readline(ANSWER_MAX)
            answer = json.loads(line) if line else None
        except OSError as error:
            raise CannotAsk(f"{self.path}: {why(error)}") from error
        except ValueError as error:
            raise CannotAsk(f"{self.path}: a program that is not Pollux answers there") from error
        if answer is None:
            raise CannotAsk(f"{self.path}: the process has closed the connection")
        if isinstance(answer, dict) and isinstance(answer.get("error"), dict):
            raise Refused(method, answer["error"])
        if not isinstance(answer, dict) or "result" not in answer:
            raise CannotAsk(f"{self.path}: a program that is not Pollux answers there")
        return answer["result"]


def ask(path, method, params=None, timeout=10.0):
    with Client(path, timeout) as client:
        return client.ask(method, params)


def ask_all(paths, method, params=None, timeout=10.0):
    """(path, result or exception) of each, in their order; all are asked at the same time."""
    def one(path):
        try:
            return ask(path, method, params, timeout)
        except (CannotAsk, Refused) as error:
            return error
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        return list(zip(paths, pool.map(one, paths)))


def serves(pid):
    """Whether one of its threads is that of a control socket."""
    for comm in pathlib.Path(f"/proc/{pid}/task").glob("*/comm"):
        try:
            if comm.read_text().strip() == "plx-rpc":
                return True
        except OSError:
            pass
    return False


def listening(pid):
    """Paths of the sockets that a process accepts connections on, as they are reached from here."""
    inodes = set()
    for fd in pathlib.Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = os.readlink(fd)
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(target[8:-1])
    for line in pathlib.Path(f"/proc/{pid}/net/unix").read_text(errors="replace").splitlines()[1:]:
        words = line.split(maxsplit=7)
        if len(words) == 8 and words[6] in inodes and int(words[3], 16) & LISTENS and words[4] == "0001":
            path = words[7]
            if not path.startswith("@"):
                yield path if path.startswith("/") else f"/proc/{pid}/cwd/{path}"


def reachable(pid, path):
    """The same socket seen from here, if the process lives in another root."""
    other = f"/proc/{pid}/root{path}"
    return path if os.path.exists(path) or not path.startswith("/") else other


def of_this_user():
    """Control sockets of all processes of this user on this host."""
    found = []
    for entry in sorted(filter(str.isdigit, os.listdir("/proc")), key=int):
        try:
            if os.stat(f"/proc/{entry}").st_uid == os.getuid() and serves(entry):
                found += [reachable(entry, path) for path in listening(entry)]
        except OSError:
            continue  # it ends, or hides its descriptors
    found = list(dict.fromkeys(found))
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        return [path for path, ours in zip(found, pool.map(is_ours, found)) if ours]


def is_ours(path):
    """A program may listen on sockets of its own as well."""
    try:
        return "pid" in ask(path, "get_version", timeout=2.0)
    except CannotAsk as error:
        return "no answer" in str(error)  # stopped: say so later
    except (Refused, TypeError):
        return False


def sockets(patterns):
    """The sockets that patterns name, as from -s; without any those of $PLX_RPC_SOCKET, or of this user."""
    if not patterns and os.environ.get("PLX_RPC_SOCKET"):
        patterns = [os.environ["PLX_RPC_SOCKET"]]
    if not patterns:
        return of_this_user()
    paths = []
    for pattern in patterns:
        pattern = pattern.replace("%p", "*")
        paths += sorted(glob.glob(pattern)) or [pattern]
    return list(dict.fromkeys(paths))


def rank_of(pid):
    """The rank that the process's launcher has given it, or None."""
    try:
        env = dict(item.split("=", 1) for item in
                   pathlib.Path(f"/proc/{pid}/environ").read_text(errors="replace").split("\0") if "=" in item)
        return next((int(env[name]) for name in RANKS if env.get(name, "").isdigit()), None)
    except OSError:
        return None


def program_of(pid):
    try:
        return os.path.basename(pathlib.Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")[0])
    except OSError:
        return ""


def human(number):
    """A number in at most 7 characters."""
    for unit in ["", "k", "M", "G", "T"]:
        if abs(number) < 10000:
            return f"{number:.0f}{unit}" if unit == "" else f"{number:.4g}{unit}"
        number /= 1000
    return f"{number:.4g}P"


def human_time(seconds):
    if seconds is None:
        return "-"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def run(main):
    """Run a tool to its end. The reader of its output may have exited, as head does, or never have been there."""
    try:
        code = main()
        sys.stdout.flush()  # or the interpreter does, and complains
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)
