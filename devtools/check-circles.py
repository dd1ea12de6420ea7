#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""check-circles.py - no file of a library or driver needs one that needs it

usage: check-circles.py [--source FOLDER] BUILD

Reads the symbols of the static libraries in the build folder BUILD, and the includes of the headers in
the source tree. Prints a shortest circle of each library that has one, with the symbols or includes
that make it, and exits with 1. Needs nm.
"""
import argparse
import collections
import re
import subprocess
import sys
from pathlib import Path

INCLUDE = re.compile(r'^#include "(?:.*/)?([^"/]+)"', re.M)


def symbols(archive):
    """Return {file: (defined, used)}: the names that each file of a library gives to others, and those it takes."""
    of = collections.defaultdict(lambda: (set(), set()))
    out = subprocess.run(["nm", "-g", "-A", "-P", archive], capture_output=True, text=True, check=True).stdout
    for line in out.splitlines():
        where, rest = line.split("]: ", 1)
        symbol, kind = rest.split()[:2]
        of[source_name(where.rsplit("[", 1)[1])][kind in "Uvw"].add(symbol)
    return of


def source_name(member):
    """Meson puts the folder of a source before its name: rndv_rndv_get.c.o of rndv/rndv_get.c."""
    return Path(member).name.split("_", 1)[-1].removesuffix(".o")


def graph_of_library(archive):
    """Return {file: {other file: symbols that it uses of it}}."""
    of = symbols(archive)
    owner = {s: f for f, (defined, _) in of.items() for s in defined}
    graph = {f: collections.defaultdict(set) for f in of}
    for f, (_, used) in of.items():
        for s in used:
            if owner.get(s, f) != f:
                graph[f][owner[s]].add(s)
    return graph


def graph_of_headers(source):
    """Return {header: {other header: its name}} of all headers of libraries and drivers."""
    headers = [h for top in ("lib", "drivers") for h in sorted((source / top).rglob("*.h"))]
    names = {h.name for h in headers}
    return {h.name: {i: {i} for i in INCLUDE.findall(h.read_text()) if i in names} for h in headers}


def circle_from(graph, start):
    """Return the files of a shortest way from start back to it, or None."""
    came = {}
    queue = collections.deque([start])
    while queue:
        at = queue.popleft()
        for to in sorted(graph.get(at, ())):
            if to == start:
                way = [at]
                while way[-1] != start:
                    way.append(came[way[-1]])
                return way[::-1]
            if to not in came:
                came[to] = at
                queue.append(to)
    return None


def shortest_circle(graph):
    """Return the files of a shortest circle, or None."""
    circles = [c for c in (circle_from(graph, f) for f in sorted(graph)) if c]
    return min(circles, key=len, default=None)


def describe(graph, circle, verb):
    """Return lines that say which symbols lead around."""
    for at, to in zip(circle, circle[1:] + circle[:1]):
        names = sorted(graph[at][to])
        more = f" and {len(names) - 6} more" if len(names) > 6 else ""
        yield f"    {at} {verb} {to}: {', '.join(names[:6])}{more}"


def check(what, graph, verb):
    """Print a circle of what, if there is one. Return whether there is."""
    circle = shortest_circle(graph)
    if circle is None:
        return False
    print(f"{what}: a circle of {len(circle)} files")
    print("\n".join(describe(graph, circle, verb)))
    return True


def main():
    """Check headers, libraries and drivers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--source", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("build", type=Path)
    args = parser.parse_args()
    libraries = sorted(f for top in ("lib", "drivers") for f in (args.build / top).glob("libplx_*.a"))
    if not libraries:
        sys.exit(f"{args.build}: no libraries")
    bad = check("headers", graph_of_headers(args.source), "includes")
    for f in libraries:
        bad |= check("library " + f.stem.removeprefix("libplx_"), graph_of_library(f), "uses")
    sys.exit(bad)


if __name__ == "__main__":
    main()
