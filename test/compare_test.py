#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""compare_test.py - devtools/compare.py judges figures as its goals say, and drops samples of far cores"""
import contextlib
import io
import os
import sys
import unittest
from types import SimpleNamespace

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "devtools"))
import compare as c  # pylint: disable=wrong-import-position

SIDES = [c.Side("pollux", ["pollux-run"]), c.Side("ucx"), c.Side("other")]


class Machine:
    """A setup whose cores are as far apart as told, one figure after the other."""

    near_ns = 60

    def __init__(self, *distances):
        self.distances = list(distances)

    def wait_near(self):
        return 36

    def core_ns(self):
        return self.distances.pop(0) if self.distances else 36


def program(figures, *goals, more=False):
    """Measures figures[side], a list that is used up."""
    return c.Program("p", lambda _, side: {"k": figures[side.name].pop(0)}, [c.Row("k", "us", goals, more)])


def run(figures, *goals, more=False, rounds=1, sides=SIDES, machine=None):
    """The exit status, and what it says."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        status = c.compare(SimpleNamespace(rounds=rounds, json=None, osu=None, near=60),
                           [program(figures, *goals, more=more)], machine or Machine(), sides)
    return status, out.getvalue()


def once(pollux, ucx, other):
    return {"pollux": [pollux], "ucx": [ucx], "other": [other]}


class Compare(unittest.TestCase):
    def test_goal_of_less(self):
        self.assertEqual(run(once(0.75, 1, 9), c.Goal("ucx", 0.75))[0], 0)
        self.assertEqual(run(once(0.76, 1, 9), c.Goal("ucx", 0.75))[0], 1)

    def test_goal_of_more(self):
        self.assertEqual(run(once(3, 1, 2), c.Goal("ucx", 2), c.Goal("other", 1.5), more=True)[0], 0)
        self.assertEqual(run(once(2.9, 1, 2), c.Goal("ucx", 2), c.Goal("other", 1.5), more=True)[0], 1)

    def test_best_of_two(self):
        self.assertEqual(run(once(1.5, 1, 2), c.Goal("best"))[0], 1)
        self.assertEqual(run(once(1.5, 1, 2), c.Goal("best"), more=True)[0], 1)

    def test_own_figure_and_sum(self):
        self.assertEqual(run(once(9, 7, 7), c.Goal("ucx", plus=2), c.Goal("own", key="k"), c.Goal(9))[0], 0)

    def test_no_other_library(self):
        figures = {"pollux": [1], "ucx": [1]}
        self.assertEqual(run(figures, c.Goal("other"), c.Goal("best"), sides=SIDES[:2])[0], 0)

    def beside(self, here):
        """Exit status and output of a program beside which something is shown, if it is installed."""
        what = c.Side("ofi", tool=sys.executable if here else "no_such_pingpong")
        p = c.Program("p", lambda _, side: {"k": {"pollux": 2, "ucx": 1}.get(side.name, 3)},
                      [c.Row("k", "MB/s", [c.Goal("ofi", 0.5), c.Goal("ucx", 2)], True)], near=False, beside=[c.RAW, what])
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = c.compare(SimpleNamespace(rounds=1, json=None, osu=None, near=60), [p], Machine(), SIDES)
        return status, out.getvalue()

    def test_what_is_beside_the_libraries(self):
        status, out = self.beside(True)
        self.assertEqual(status, 0)
        self.assertRegex(out, r"pollux +ucx +other +raw +ofi +/ucx +/other +/raw +/ofi +goals")
        self.assertRegex(out, r"MB/s +2 +1 +3 +3 +3 +2\.00 +0\.67 +0\.67 +0\.67 +>= 0\.5 ofi yes; >= 2 ucx yes")

    def test_what_is_beside_them_and_not_installed_has_no_goal(self):
        status, out = self.beside(False)
        self.assertEqual(status, 0)
        self.assertRegex(out, r"MB/s +2 +1 +3 +3 +- +2\.00 +0\.67 +0\.67 +- +>= 2 ucx yes")

    def test_real_time_priority_where_it_is_permitted(self):
        self.assertTrue(c.compare_net.may_run(["env"]))
        self.assertFalse(c.compare_net.may_run(["false"]))
        self.assertFalse(c.compare_net.may_run(["no_such_chrt", "-r", "1"]))

    def test_a_program_that_is_not_installed_is_said(self):
        p = c.Program("p", None, [], needs=["no_such_pingpong"])
        self.assertEqual(c.missing(p, SimpleNamespace(osu=None)), "no_such_pingpong not installed")

    def test_medians(self):
        figures = {"pollux": [9, 1, 2], "ucx": [2, 2, 2], "other": [2, 2, 2]}
        self.assertEqual(run(figures, c.Goal("ucx"), rounds=3)[0], 0)

    def test_far_cores(self):
        figures = {"pollux": [9, 1], "ucx": [1], "other": [1]}
        self.assertEqual(run(figures, c.Goal("ucx"), machine=Machine(110, 36))[0], 0)
        self.assertEqual(figures["pollux"], [])

    def test_always_far(self):
        figures = {"pollux": [1] * c.TRIES, "ucx": [1], "other": [1]}
        status, out = run(figures, c.Goal("ucx"), machine=Machine(*[110] * c.TRIES))
        self.assertEqual(status, 2)
        self.assertIn("not measured", out)

    def test_every_program_has_its_name(self):
        names = [p.name for p in c.programs()]
        self.assertEqual(len(names), len(set(names)))


if __name__ == "__main__":
    unittest.main()
