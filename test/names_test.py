#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""names_test.py - devtools/check-names.sh finds violations that are planted

usage: names_test.py CHECK
"""
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK = sys.argv[1]
HEAD = "/* SPDX-License-Identifier: BSD-3-Clause */\n"


class Names(unittest.TestCase):
    """A source tree of a few files, with a copy of the check."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        (self.root / "devtools").mkdir()
        shutil.copy(CHECK, self.root / "devtools")
        for name in ("lib/ucp", "lib/cci", "lib/worker", "drivers/tin", "dropin", "app", "test/unit", "examples", "include",
                     "usertools"):
            (self.root / name).mkdir(parents=True)

    def write(self, name, text):
        (self.root / name).write_text(HEAD + text)

    def check(self):
        """Return the exit status of the check, and what it said."""
        done = subprocess.run(["bash", self.root / "devtools" / "check-names.sh"], capture_output=True, text=True,
                              check=False)
        return done.returncode, done.stdout

    def assert_found(self, part):
        rc, said = self.check()
        self.assertEqual(rc, 1)
        self.assertIn(part, said)

    def test_nothing_to_say_of_a_tidy_tree(self):
        self.write("lib/worker/worker.c", "")
        self.assertEqual(self.check(), (0, ""))

    def test_one_name_for_two_files_fails(self):
        self.write("lib/worker/ring.c", "")
        self.write("drivers/tin/ring.c", "")
        self.assert_found("ring.c: the name of several files: drivers/tin/ring.c lib/worker/ring.c")

    def test_a_face_that_includes_another_header_of_the_core_fails(self):
        self.write("lib/ucp/tag.c", '#include "plx_worker.h"\n#include "plx_ep.h"\n')
        self.assert_found("lib/ucp/tag.c:3: a face does not include plx_ep.h")

    def test_a_face_that_reads_a_field_of_the_core_fails(self):
        self.write("lib/cci/rma.c", "int f(struct cci_ep *ep)\n{\n\treturn ep->core->dedicated;\n}\n")
        self.assert_found("lib/cci/rma.c:4:")

    def test_a_face_that_reads_a_field_of_an_ep_fails(self):
        self.write("lib/ucp/eps.c", "int f(ucp_ep_h ep)\n{\n\treturn ep->user.ep->peer->mtu;\n}\n")
        self.assert_found("a face reads no field of the core's")

    def test_a_private_header_of_another_folder_fails(self):
        self.write("lib/worker/worker_int.h", "")
        self.write("lib/ucp/tag.c", '#include "worker_int.h"\n')
        self.assert_found("lib/ucp/tag.c:2: worker_int.h is private to another folder")

    def test_a_driver_that_is_named_in_the_core_fails(self):
        self.write("lib/worker/worker.c", "/* for tin */\n")
        self.assert_found("names the driver tin")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
