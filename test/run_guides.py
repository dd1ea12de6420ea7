#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""run_guides.py - every command block of README.md and of the guides does what it says

usage: run_guides.py [--build DIR] [--source DIR] [--list] [PAGE[:LINE]...]

A block that begins with ```sh is run by bash, from the top folder, and has to exit with 0: it stops
at the first command that fails. Words behind sh say otherwise:

  ```sh exit: 3              it exits with 3
  ```sh not-run: REASON      it can't be run here; it is listed as skipped, with the reason

All runs in mount and pid namespaces of its own, on a copy-on-write view of the source, of /usr, /etc and
/var: Pollux is installed there, and nothing stays. Needs root.
"""
import argparse
import glob
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import run_util as u

HERE = os.path.dirname(os.path.abspath(__file__))
TIMEOUT = 300 # most take a second; a loaded machine takes its time with those that measure
FENCE = re.compile(r"^( *)```(.*)$")
INSIDE = "RUN_GUIDES_INSIDE"
SHELLS = ("bash", "shell", "console", "terminal", "zsh")


class Block:
    def __init__(self, page, line, info):
        self.page, self.line = page, line
        self.code = ""
        self.reason = None
        self.exit = 0
        self.bad = ""
        if info.startswith("not-run: "):
            self.reason = info[len("not-run: "):].strip()
        elif re.fullmatch(r"exit: \d+", info):
            self.exit = int(info[len("exit: "):])
        elif info:
            self.bad = f"sh is followed by \"{info}\", which is neither \"not-run: REASON\" nor \"exit: N\""

    def name(self):
        lines = [c for c in self.code.split("\n") if c and not c.startswith("#!")]
        first = lines[0] if lines else ""
        return f"{self.page}:{self.line} {first.partition('  #')[0].strip()[:60]}".replace("#", "")


def blocks_of(source, page):
    """All command blocks of a page, and those that only look like one."""
    found, block, inside = [], None, False
    with open(os.path.join(source, page), encoding="utf-8") as f:
        for n, line in enumerate(f, 1):
            fence = FENCE.match(line)
            if not fence:
                if block is not None:
                    block.code += line
                continue
            inside = not inside
            if not inside:
                block = None
                continue
            language, _, info = fence.group(2).strip().partition(" ")
            if language == "sh":
                block = Block(page, n, info.strip())
                found.append(block)
            elif language in SHELLS:
                found.append(Block(page, n, f"{language}, not sh,"))
    return found


def pages(source):
    """In the order in which a newcomer reads them."""
    guides = sorted(glob.glob(os.path.join(source, "doc", "guides", "*.md")))
    first = ["README.md", "doc/guides/getting_started.md"]
    return first + [p for p in (os.path.relpath(g, source) for g in guides) if p not in first]


def mount(*args):
    subprocess.run(["mount", *args], check=True, capture_output=True, text=True)


def overlay(path, upper):
    """What is written below path stays in upper."""
    name = path.strip("/").replace("/", "-")
    dirs = [os.path.join(upper, kind, name) for kind in ("upper", "work")]
    for d in dirs:
        os.makedirs(d)
    mount("-t", "overlay", "overlay", "-o", f"lowerdir={path},upperdir={dirs[0]},workdir={dirs[1]}", path)


def sandbox(source, build, upper):
    """Returns why it can't be made, or ''."""
    try:
        mount("--make-rprivate", "/")
        mount("-t", "tmpfs", "tmpfs", upper)
        for path in ("/usr", "/etc", "/var", source):
            overlay(path, upper)
        if not build.startswith(source + "/"):
            overlay(build, upper)
    except subprocess.CalledProcessError as error:
        return f"{' '.join(error.cmd)}: {error.stderr.strip()}"
    if build != os.path.join(source, "build"):
        shutil.rmtree(os.path.join(source, "build"), ignore_errors=True)
        os.symlink(build, os.path.join(source, "build"))
    return ""


def run(block, source, env):
    """Returns what is wrong, or ''."""
    with tempfile.TemporaryFile("w+") as out:
        p = u.start(["bash", "-e", "-c", block.code], env, stdout=out, stderr=subprocess.STDOUT, cwd=source)
        try:
            rc = u.wait(p, TIMEOUT)
        except subprocess.TimeoutExpired:
            rc = f"none after {TIMEOUT} s"
        # What it left in the background goes with it, as with a terminal that is closed.
        try:
            os.killpg(p.pid, signal.SIGKILL)
        except OSError:
            pass
        p.wait()
        out.seek(0)
        text = out.read()
    return "" if rc == block.exit else f"exit status {rc}, not {block.exit}\n{block.code}---\n{text}"


def install(source, env):
    p = subprocess.run(["meson", "install", "-C", "build", "--no-rebuild"], cwd=source, env={**os.environ, **env},
                       capture_output=True, text=True, check=False)
    return "" if p.returncode == 0 else p.stdout + p.stderr


def inside(args, source, build):
    upper = os.environ[INSIDE]
    why = sandbox(source, build, upper)
    if why:
        u.skip_all(f"no sandbox can be made here: {why}")
    home = os.path.join(upper, "home")
    os.mkdir(home)
    # Open MPI refuses root, and wants a core for each rank, unless its options say so.
    env = {"HOME": home, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
           "OMPI_MCA_rmaps_base_oversubscribe": "1", "LC_ALL": "C.UTF-8"}
    report = u.Report()
    report.result("meson install -C build", install(source, env))
    for block in chosen(args, source):
        begin = time.monotonic()
        if block.reason is not None:
            report.skip(block.name(), block.reason)
        else:
            why = block.bad or run(block, source, env)
            report.result(block.name(), why, f"{time.monotonic() - begin:.1f} s")
    return report.status()


def chosen(args, source):
    found = [b for page in pages(source) for b in blocks_of(source, page)]
    return [b for b in found if not args.blocks or
            any(w in (b.page, os.path.basename(b.page), f"{os.path.basename(b.page)}:{b.line}")
                for w in args.blocks)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", default=os.path.join(HERE, "..", "build"))
    parser.add_argument("--source", default=os.path.join(HERE, ".."))
    parser.add_argument("--list", action="store_true", help="the blocks, and which are not run")
    parser.add_argument("blocks", nargs="*", metavar="PAGE[:LINE]")
    args = parser.parse_args()
    source, build = os.path.realpath(args.source), os.path.realpath(args.build)
    if args.list:
        for b in chosen(args, source):
            print(b.name() + (f"   [not run: {b.reason}]" if b.reason is not None else ""))
        return 0
    if INSIDE in os.environ:
        return inside(args, source, build)
    u.need("unshare", "meson", "ninja", "bash")
    if os.geteuid() != 0:
        u.skip_all("only root installs to /usr/local, also where that is a copy")
    upper = tempfile.mkdtemp(prefix="pollux-guides-")
    try:
        own = ["unshare", "--mount", "--propagation", "unchanged", "--pid", "--fork", "--kill-child",
               "--mount-proc"]
        return subprocess.run([*own, sys.executable, os.path.abspath(__file__), *sys.argv[1:]],
                              env={**os.environ, INSIDE: upper}, check=False).returncode
    finally:
        os.rmdir(upper)


sys.exit(main())
