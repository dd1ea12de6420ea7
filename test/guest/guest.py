#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""guest.py - run a command in a virtual machine that has two RDMA devices

usage: guest.py [options] [--] COMMAND [ARG...]
       guest.py [options] --shell

The guest sees the whole root of this machine, read-only; what it writes is lost with
it. The command runs as root in the current folder, with the current PATH and the
variables given by --env; its output and its errors come here as they are written, and
its exit status is ours. rxe0 and rxe1 (soft-RoCE) are the two ends of one cable, see
rxe.sh. Exit status 124: the time was over; 125: the guest failed; 77: no guest can be
had on this machine.
"""
import argparse
import base64
import ctypes
import os
import re
import selectors
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
QEMU = "qemu-system-x86_64"
PACKAGES = "qemu-system-x86 busybox-static kmod cpio"
BOOT_S = 90
SKIP, TIME_OVER, BROKEN = 77, 124, 125
PR_SET_PDEATHSIG = 1
MARK_MAX = 64  # bytes of a mark and its exit status, at most


class Missing(Exception):
    """No guest can be had on this machine."""


class Broken(Exception):
    """The guest did not boot, or went away."""


def cache_folder():
    """Where kernel and initrd are kept: in the build folder."""
    build = os.environ.get("BUILD") or os.path.join(HERE, "..", "..", "build")
    return os.path.join(os.path.abspath(build), "guest")


def make_image(folder):
    if shutil.which(QEMU) is None:
        raise Missing(f"{QEMU} is not installed (packages {PACKAGES})")
    p = subprocess.run([os.path.join(HERE, "image.sh"), folder], capture_output=True, text=True,
                       check=False)
    if p.returncode == SKIP:
        raise Missing(p.stderr.strip())
    if p.returncode != 0:
        raise Broken(f"no kernel or no initrd: {p.stdout}{p.stderr}")


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Port:
    """A serial port of the guest, and what came from it and was not passed on."""

    def __init__(self, sink=None):
        self.ours, self.theirs = socket.socketpair()
        self.sink = sink
        self.tail = b""

    def receive(self):
        """False when the guest is gone."""
        try:
            data = self.ours.recv(1 << 16)
        except ConnectionError:
            data = b""
        self.tail += data
        return bool(data)

    def pass_on(self, pattern):
        """Write what is before the mark; returns the match of the mark or None."""
        found = pattern.search(self.tail)
        held = self.tail.rfind(b"\x1e", -MARK_MAX)
        end = found.start() if found else held if held >= 0 else len(self.tail)
        self.sink.write(self.tail[:end])
        self.sink.flush()
        self.tail = self.tail[found.end() if found else end:]
        return found


class Guest:
    """One virtual machine, for one command."""

    def __init__(self, accel="tcg", cpus=2, memory=2048):
        self.accel, self.cpus, self.memory = accel, cpus, memory
        self.folder = cache_folder()
        make_image(self.folder)

    def qemu(self, extra, append=""):
        accel = "tcg,thread=multi" if self.accel == "tcg" else self.accel
        return [QEMU, "-accel", accel, "-cpu", "max", "-smp", str(self.cpus),
                "-m", str(self.memory), "-kernel", os.path.join(self.folder, "vmlinuz"),
                "-initrd", os.path.join(self.folder, "initrd.gz"),
                "-append", f"console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable {append}",
                "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
                "-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,"
                "multidevs=remap", *extra]

    def shell(self):
        """A shell on this terminal; does not return."""
        argv = self.qemu(["-serial", "mon:stdio"], "guest.shell")
        os.execvp(argv[0], argv)

    def run(self, command, timeout, out, err):
        """Boot, run it, copy what it writes to the files; returns its exit status."""
        console, *ports = every = [Port(), Port(out), Port(err)]
        extra = ["-chardev", f"socket,id=console,fd={console.theirs.fileno()}",
                 "-serial", "chardev:console", "-device", "virtio-serial-pci"]
        for nr, port in enumerate(ports, 1):
            extra += ["-chardev", f"socket,id=port{nr},fd={port.theirs.fileno()}",
                      "-device", f"virtserialport,nr={nr},chardev=port{nr}"]
        process = subprocess.Popen(self.qemu(extra), pass_fds=[p.theirs.fileno() for p in every],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, preexec_fn=die_with_parent)
        try:
            for p in every:
                p.theirs.close()
            return self.serve(console, ports, command, timeout)
        except Broken as e:
            process.kill()
            errors = process.stderr.read().decode(errors="replace")
            text = console.tail.decode(errors="replace").strip()
            raise Broken(f"the guest {e}\n{errors}{text}") from None
        finally:
            process.kill()
            process.wait()
            process.stderr.close()
            for p in every:
                p.ours.close()

    def serve(self, console, ports, command, timeout):
        mark = uuid.uuid4().hex
        # With an exit status: the end. Without: of the first port, the beginning.
        pattern = re.compile(rb"\x1e" + mark.encode() + rb"(?: (\d+))?\n")
        text = base64.b64encode(command.encode()).decode()
        ports[0].ours.sendall(f"{mark} {text}\n".encode())
        status = {}
        booted = False
        end = time.monotonic() + BOOT_S
        with selectors.DefaultSelector() as selector:
            for p in [console, *ports]:
                selector.register(p.ours, selectors.EVENT_READ, p)
            while len(status) < len(ports):
                left = end - time.monotonic()
                if left <= 0 and booted:
                    return TIME_OVER
                if left <= 0:
                    raise Broken(f"has not booted after {BOOT_S} s")
                for key, _ in selector.select(left):
                    if not key.data.receive():
                        raise Broken("went away")
                    if key.data is console:
                        console.tail = console.tail[-4096:]
                        continue
                    found = key.data.pass_on(pattern)
                    if found and found.group(1) is None:
                        booted = True
                        end = time.monotonic() + timeout
                    elif found:
                        status[key.data] = int(found.group(1))
        return status[ports[0]]


def in_guest(argv, env, folder):
    """The command line that runs argv there as it would run here."""
    words = ["env", f"PATH={os.environ['PATH']}", "HOME=/root", "LC_ALL=C", *env, *argv]
    return f"{shlex.quote(os.path.join(HERE, 'rxe.sh'))} && cd {shlex.quote(folder)} && " \
        f"exec {shlex.join(words)}"


def main():
    ap = argparse.ArgumentParser(usage=__doc__.split("usage: ", 1)[1].split("\n\n")[0])
    ap.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
    ap.add_argument("--timeout", type=float, default=300, help="seconds after boot (300)")
    ap.add_argument("--cpus", type=int, default=2)
    ap.add_argument("--memory", type=int, default=2048, help="MiB (2048)")
    ap.add_argument("--accel", default="tcg", help="of QEMU (tcg); kvm where it works")
    ap.add_argument("--shell", action="store_true", help="a shell on this terminal")
    ap.add_argument("command", nargs=argparse.REMAINDER)
    args = ap.parse_args()
    command = args.command[1:] if args.command[:1] == ["--"] else args.command
    if bool(command) == args.shell:
        ap.error("either a command or --shell")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(BROKEN))
    try:
        guest = Guest(args.accel, args.cpus, args.memory)
        if args.shell:
            guest.shell()
        rc = guest.run(in_guest(command, args.env, os.getcwd()), args.timeout, sys.stdout.buffer,
                       sys.stderr.buffer)
    except Missing as e:
        print(f"guest.py: {e}", file=sys.stderr)
        return SKIP
    except Broken as e:
        print(f"guest.py: {e}", file=sys.stderr)
        return BROKEN
    if rc == TIME_OVER:
        print(f"guest.py: no end after {args.timeout:g} s", file=sys.stderr)
    return rc


if __name__ == "__main__":
    sys.exit(main())
