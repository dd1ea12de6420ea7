#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""hot_path_test.py - devtools/hot_path.py finds what is planted: another way, too many files, a second choice"""
import collections
import os
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "devtools"))
import hot_path  # pylint: disable=wrong-import-position
from hot_path import Message, Place  # pylint: disable=wrong-import-position

FACE, FIRST, LAST = Place("lib/a/face.c", "send"), Place("lib/b/first.c", "begin"), Place("lib/b/last.c", "end")
WORD, DOOR = Place("lib/b/word.h", "is_open"), Place("lib/b/door.h", "go_on")
NAME = "a message"


def way_of(*chain):
    """Each function is called by the one before it."""
    way = object.__new__(hot_path.Way)
    way.order, way.leads, way.callers = [], collections.defaultdict(set), collections.defaultdict(set)
    for last, place in zip((None, *chain), chain):
        way.step("sender", [last] if last else None, [place], True)
    way.steps = way.find_steps()
    return way


class HotPath(unittest.TestCase):
    def setUp(self):
        self.guide = tempfile.NamedTemporaryFile("w+", suffix=".md")
        self.addCleanup(self.guide.close)
        self.before = hot_path.GUIDE
        hot_path.GUIDE = self.guide.name
        self.addCleanup(setattr, hot_path, "GUIDE", self.before)

    def guide_has(self, way, words="goes on", budget=3):
        does = {(side, file, names[0]): words for side, file, names in way.rows()}
        self.guide.seek(0)
        self.guide.truncate()
        self.guide.write(f"before\n{hot_path.block_of(NAME, way, does, budget)}\nbehind\n")
        self.guide.flush()

    def wrong(self, way, budget=3, exact=True):
        return "\n".join(hot_path.check(NAME, way, Message("", 8, {}, budget), exact))

    def test_the_same_way_is_good(self):
        way = way_of(FACE, FIRST, LAST)
        self.guide_has(way)
        self.assertEqual(self.wrong(way), "")

    def test_a_header_counts_if_it_goes_on_to_a_step(self):
        self.assertEqual(way_of(FACE, DOOR, FIRST).files(), [FACE.file, DOOR.file, FIRST.file])
        ends = way_of(FACE, WORD)
        self.assertEqual(ends.files(), [FACE.file])
        self.assertEqual(ends.helpers(), {WORD.file: (WORD.name,)})
        self.assertEqual(way_of(FACE, WORD, DOOR, FIRST).helpers(), {})

    def test_a_function_or_a_helper_more_or_less_is_told(self):
        for there, here in (((FACE, FIRST), (FACE, FIRST, LAST)), ((FACE, FIRST, LAST), (FACE, FIRST)),
                ((FACE, FIRST), (FACE, FIRST, WORD)), ((FACE, FIRST, LAST), (FACE, LAST, FIRST))):
            self.guide_has(way_of(*there))
            self.assertIn("another way", self.wrong(way_of(*here)))
            self.assertEqual(self.wrong(way_of(*here), exact=False), "")

    def test_too_many_files_are_named(self):
        way = way_of(FACE, FIRST, LAST)
        self.guide_has(way, budget=2)
        self.assertRegex(self.wrong(way, 2), "3 files, 2 are allowed: .*first.c.*last.c")

    def test_a_row_needs_words(self):
        way = way_of(FACE, FIRST)
        self.guide_has(way, words="")
        self.assertIn("does not say what", self.wrong(way))

    def test_a_second_choice_is_told(self):
        choice = Place("lib/b/first.c", hot_path.ONCE[0])
        way = way_of(FACE, choice, LAST, choice)
        self.guide_has(way)
        self.assertIn("a protocol is chosen once", self.wrong(way))

    def test_a_choice_that_the_compiler_has_split_is_one(self):
        choice = Place("lib/b/first.c", hot_path.ONCE[0])
        way = way_of(FACE, choice, choice, LAST)
        self.guide_has(way)
        self.assertEqual(self.wrong(way), "")

    def test_writing_keeps_the_words(self):
        self.guide_has(way_of(FACE, FIRST), words="kept words")
        way = way_of(FACE, FIRST, LAST)
        hot_path.write(NAME, way, Message("", 8, {}, 3))
        with open(self.guide.name, encoding="utf-8") as f:
            text = f.read()
        self.assertEqual(text.count("kept words"), 2)
        self.assertTrue(text.startswith("before\n") and text.endswith("\nbehind\n"))
        self.assertIn("does not say what lib/b/last.c", self.wrong(way))


if __name__ == "__main__":
    unittest.main()
