#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""circles_test.py - devtools/check-circles.py finds circles that are planted

usage: circles_test.py CHECK COMPILER...
"""
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK, *COMPILER = sys.argv[1:]


class Circles(unittest.TestCase):
    """A library of a few lines in a folder of its own."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name)
        self.addCleanup(self.folder.cleanup)

    def compile(self, library, files):
        """Make a library of files {name: text}, where and as meson does."""
        archive = self.root / "build" / "lib" / f"libplx_{library}.a"
        archive.parent.mkdir(parents=True)
        objects = []
        for name, text in files.items():
            source = self.root / name
            source.write_text(text)
            objects.append(self.root / f"{library}_{name}.o")
            subprocess.run([*COMPILER, "-c", source, "-o", objects[-1]], check=True)
        subprocess.run(["ar", "csr", archive, *objects], check=True)

    def check(self):
        """Return the exit status of the check, and what it said."""
        done = subprocess.run([sys.executable, CHECK, "--source", self.root, self.root / "build"],
                              capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_calls_in_one_direction_pass(self):
        self.compile("straight", {"top.c": "int low(void); int top(void) { return low(); }",
                                  "low.c": "int low(void) { return 1; }"})
        self.assertEqual(self.check(), (0, ""))

    def test_two_files_that_call_each_other_fail(self):
        self.compile("planted", {"one.c": "int two(void); int one(void) { return two(); }",
                                 "two.c": "int one(void); int two(void) { return one(); }"})
        rc, said = self.check()
        self.assertEqual(rc, 1)
        self.assertIn("planted: a circle of 2 files", said)
        self.assertIn("one.c uses two.c: two", said)
        self.assertIn("two.c uses one.c: one", said)

    def test_a_circle_by_way_of_data_fails(self):
        self.compile("table", {"a.c": "extern int c; int a(void) { return c; }",
                               "b.c": "int a(void); int b(void) { return a(); }",
                               "c.c": "int b(void); int c = 1; int user(void) { return b(); }"})
        rc, said = self.check()
        self.assertEqual(rc, 1)
        self.assertIn("table: a circle of 3 files", said)

    def test_a_table_that_names_a_lower_file_passes(self):
        self.compile("hooks", {"ops.c": "int run(void); int (*const ops[])(void) = {run};",
                               "run.c": "int run(void) { return 0; }"})
        self.assertEqual(self.check(), (0, ""))

    def test_headers_that_include_each_other_fail(self):
        self.compile("straight", {"low.c": "int low(void) { return 1; }"})
        (self.root / "lib").mkdir()
        (self.root / "lib" / "x.h").write_text('#include "y.h"\n')
        (self.root / "lib" / "y.h").write_text('#include "x.h"\n')
        rc, said = self.check()
        self.assertEqual(rc, 1)
        self.assertIn("x.h includes y.h: y.h", said)

    def test_no_libraries_is_no_success(self):
        self.assertNotEqual(self.check()[0], 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
