#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""package_test.py - what an install puts in place is what config/debian packs, and works from there

usage: package_test.py --build DIR

Installs the build below a folder of its own, and checks without building a package: each file belongs to
exactly one package, symbols are those of pollux.map, versions agree, man finds each function, bash
completes each program, and the samples are well formed. devtools/package.sh builds the packages.
"""
import argparse
import fnmatch
import os
import re
import shutil
import subprocess
import sys
import tempfile

import run_util as u

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEBIAN = os.path.join(TOP, "config", "debian")
# What rules removes: packages have their own.
REMOVED = ["usr/share/doc/pollux/LICENSE", "usr/share/doc/pollux/CHANGELOG.md"]


def read(*path):
    with open(os.path.join(TOP, *path), encoding="utf-8") as f:
        return f.read()


def run(*command, **kwargs):
    return subprocess.run(command, capture_output=True, text=True, **kwargs)


def exported():
    text = re.sub(r"/\*.*?\*/", "", read("pollux.map"), flags=re.S)
    return set(re.findall(r"\b((?:ucp|cci|ucs|plx)_\w+);", text))


def install(build, root):
    log = os.path.join(build, "meson-logs", "install-log.txt")
    before = open(log, "rb").read() if os.path.exists(log) else None
    p = run("meson", "install", "-C", build, "--no-rebuild", "--quiet", env={**os.environ, "DESTDIR": root})
    if before is not None:
        with open(log, "wb") as f:
            f.write(before)  # what "ninja uninstall" removes is what the user has installed
    if p.returncode != 0:
        sys.exit(f"meson install: {p.stdout}{p.stderr}")


class Installed:
    """The install, with the paths as a package has them."""

    def __init__(self, build, root):
        install(build, root)
        options = run("meson", "introspect", "--buildoptions", build).stdout
        self.prefix = re.search(r'"name": "prefix", "value": "([^"]*)"', options)[1]
        self.libdir = re.search(r'"name": "libdir", "value": "([^"]*)"', options)[1]
        self.root = root
        self.top = root + self.prefix
        self.files = self.list_files()

    def list_files(self):
        return sorted(self.packed(os.path.join(d, n)) for d, dirs, names in os.walk(self.root)
                      for n in names + [x for x in dirs if os.path.islink(os.path.join(d, x))])

    def packed(self, path):
        path = os.path.relpath(path, self.top)
        if path.startswith(self.libdir + "/"):
            path = "lib/x86_64-linux-gnu" + path[len(self.libdir):]
        return "usr/" + path


def patterns():
    """Of every package: (package, pattern)."""
    for name in sorted(os.listdir(DEBIAN)):
        if name.endswith(".install") or name == "not-installed":
            for line in read("config", "debian", name).splitlines():
                yield name.removesuffix(".install"), line.split()[0], len(line.split()) > 1


def matches(path, pattern):
    return fnmatch.fnmatch(path, pattern) or fnmatch.fnmatch(path, pattern + "/*")


def each_file_is_in_one_package(inst):
    for path in inst.files:
        owners = [name for name, pattern, elsewhere in patterns() if matches(path, pattern) and not elsewhere]
        if len(owners) != 1 and path not in REMOVED:
            yield f"{path} is in {' and '.join(owners) or 'no package'}"


def each_line_of_a_package_finds_a_file(inst):
    for name, pattern, _ in patterns():
        if not any(matches(path, pattern) for path in inst.files):
            yield f"{name}: nothing is {pattern}"


def symbols_are_those_of_the_library(inst):
    listed = set(re.findall(r"^ (\w+)@POLLUX_[\d.]+ [\d.]+~$", read("config", "debian", "libpollux0.symbols"), re.M))
    listed = {name for name in listed if not name.startswith("POLLUX")}
    for name in sorted(listed ^ exported()):
        yield f"{name} is in one of pollux.map and libpollux0.symbols only"
    library = os.path.join(inst.top, inst.libdir, "libpollux.so.0")
    found = set(re.findall(r" T (\w+)@@POLLUX_", run("nm", "-D", library).stdout))
    for name in sorted(found ^ exported()):
        yield f"{name} is in one of pollux.map and {os.path.realpath(library)} only"


def versions_agree(inst):
    version = re.search(r"^    version: '([\d.]+)'", read("meson.build"), re.M)[1]
    texts = {"config/debian/changelog": rf"^pollux \({re.escape(version)}-",
             "CHANGELOG.md": rf"\A(?:(?!^## ).*\n)*## {re.escape(version)}\b"}
    for path, first in texts.items():
        if not re.match(first, read(path), re.M):
            yield f"{path} does not begin with version {version}"
    if f"usr/lib/x86_64-linux-gnu/libpollux.so.{version}" not in inst.files:
        yield f"no libpollux.so.{version} was installed"


def man_finds_each_function(inst):
    pages = os.path.join(inst.top, "share", "man", "man3")
    for name in sorted(exported()):
        if name != "ucs_status_string" and not os.path.exists(os.path.join(pages, name + ".3")):
            yield f"man {name} finds nothing"


def complete(inst, words, env=None):
    """What bash offers behind these words."""
    program = words[0]
    path = os.path.join(inst.top, "share", "bash-completion", "completions", program)
    code = f'. "{path}"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _pollux "$1"; printf "%s\\n" "${{COMPREPLY[@]}}"'
    where = {"PATH": os.path.join(inst.top, "bin") + ":" + os.environ["PATH"],
             "LD_LIBRARY_PATH": os.path.join(inst.top, inst.libdir)}
    p = run("bash", "-c", code, "bash", *words, env={**os.environ, **where, **(env or {})})
    return set(p.stdout.split()), p.stderr


def bash_completes_each_program(inst):
    cases = [(["pollux-run", "--ch"], "--check"), (["pollux-run", "--reactor", "l"], "lcore:"),
             (["pollux-run", "--check", "ta"], "tail"), (["commperf", "-t", "tag_lat,put_"], "tag_lat,put_bw"),
             (["commperf", "--ver"], "--verify"),
             (["commperf", "--datatype", "g"], "generic"), (["commperf", "--pai"], "--pairs"),
             (["commperf", "--rep"], "--report"), (["commperf", "--help", "da"], "data"), (["testcomm", "--comm"], "--command"),
             (["cci_info", "--en"], "--endpoint"), (["pollux_info", "--j"], "--json"), (["plx-rpc", "--so"], "--socket"),
             (["plx-top", "--on"], "--once"), (["plx-hugepages", "re"], "reserve")]
    for words, want in cases:
        got, said = complete(inst, words)
        if want not in got:
            yield f"{' '.join(words)}: bash offers {sorted(got)}, not {want} {said}"
    got, _ = complete(inst, ["commperf", "--nonsense"])
    if got:
        yield f"commperf --nonsense: bash offers {sorted(got)}"


def tools_leave_no_files_behind(inst):
    """None but those that an uninstall removes, also where who runs them may write."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    for tool in ("plx-rpc", "plx-top", "plx-metrics", "plx-hugepages"):
        p = run(os.path.join(inst.top, "bin", tool), "--help", env=env)
        if p.returncode != 0:
            yield f"{tool} --help: {p.stdout}{p.stderr}"
    for path in sorted(set(inst.list_files()) - set(inst.files)):
        yield f"{path} is new"


def samples_are_well_formed(inst):
    share = os.path.join(inst.top, "share", "pollux")
    for name in os.listdir(share):
        text = open(os.path.join(share, name), encoding="utf-8").read() if name.count(".") else ""
        for left in re.findall(r"@[A-Z]+@", text):
            yield f"{name} still has {left}"
    unit = os.path.join(share, "pollux-hugepages.service")
    if shutil.which("systemd-analyze"):
        said = run("systemd-analyze", "verify", "--man=no", unit).stderr
        # The program is not where the unit looks for it before it is installed.
        said = [line for line in said.splitlines() if "pollux" in line and "is not executable" not in line]
        yield from said
    module = os.path.join(share, "modulefiles", "pollux")
    if shutil.which("tclsh"):
        p = run("tclsh", "-", input=MODULE % os.path.join(module, os.listdir(module)[0]))
        if p.returncode != 0 or "prepend LD_LIBRARY_PATH" not in p.stdout:
            yield f"the module file: {p.stdout}{p.stderr}"


MODULE = """
proc module-whatis {args} {}
proc conflict {args} {}
proc setenv {args} {puts "setenv $args"}
proc prepend-path {args} {puts "prepend $args"}
proc append-path {args} {puts "append $args"}
source %s
"""


def the_source_is_no_prefix(_inst):
    """An install there would copy the headers into themselves without end."""
    with tempfile.TemporaryDirectory(prefix="pollux-package-") as build:
        p = run("meson", "setup", "--prefix", TOP, build, TOP)
    if p.returncode == 0 or "the prefix is the folder of the source" not in p.stdout:
        yield f"meson setup --prefix {TOP}: exit {p.returncode}: {p.stdout[-300:]}"


TESTS = [each_file_is_in_one_package, each_line_of_a_package_finds_a_file, symbols_are_those_of_the_library,
         versions_agree, man_finds_each_function, bash_completes_each_program, tools_leave_no_files_behind,
         samples_are_well_formed,
         the_source_is_no_prefix]


def main():
    ap = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    ap.add_argument("--build", default=os.path.join(TOP, "build"))
    args = ap.parse_args()
    report = u.Report()
    with tempfile.TemporaryDirectory(prefix="pollux-package-") as root:
        inst = Installed(os.path.abspath(args.build), root)
        for test in TESTS:
            report.result(test.__name__, "\n".join(test(inst)))
    return report.status()


if __name__ == "__main__":
    sys.exit(main())
