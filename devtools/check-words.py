#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
#
# check-words.py - comments, guides and man pages use the terms of doc/guides/glossary.md, and
# none of the words that it retired. Code is exempt: what is in backquotes, and man pages'
# macros of a name, as old names of settings are documented.
import pathlib
import re
import sys

RETIRED = {
    r"lend(s|ing)?|lent": "grant, or expose (memory), or send without a copy",
    r"naps?|napping|doz(e|es|ed|ing)": "sleep",
    r"favou?r(s|ed)?": "bias",
    r"shun(s|ned)?": "avoid",
    r"unasked": "eager, or without asking",
    r"whom": "which thread, process or peer",
    r"stands? by": "is used again when",
    r"gives? way": "is disconnected, or makes room",
    r"makes? no sense": "is malformed",
    r"(gives?|giving|given|gave) (it |him |them )?(the |its |their |no )?turns|turns are given":
        "run turns, or grant the worker",
    r"(is|are|was|were) told|told of|tells? of": "report, notify, or announce",
}
FOLDERS = "lib drivers app usertools examples include dropin devtools test doc config".split()
TEXT = {".md", ".c", ".h", ".sh", ".py", ".in", ".1", ".3", ".7", ".8", ".conf", ".json"}
ROOT = pathlib.Path(__file__).resolve().parent.parent
COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|/\*.*?\*/|//[^\n]*', re.S)


def blank(match):
    return re.sub(r"[^\n]", " ", match.group(0))


def prose(path, text):
    """The text with all but its prose blanked, so that positions stay."""
    if path.suffix in (".c", ".h"):
        out, end = [], 0
        for m in COMMENT.finditer(text):
            if m.group(0)[0] == "/":
                out += [re.sub(r"[^\n]", " ", text[end:m.start()]), m.group(0)]
                end = m.end()
        return "".join(out) + re.sub(r"[^\n]", " ", text[end:])
    if path.suffix in (".sh", ".py", ".in", ".conf"):
        return re.sub(r"^(?!\s*#).*$", blank, text, flags=re.M)
    text = re.sub(r"```.*?```|`[^`\n]*`", blank, text, flags=re.S)
    return re.sub(r"^\.(B|I|BR|BI|IR|RB|TP|TH)\b.*$|\\f[BI][^\\]*\\f[RP]", blank, text, flags=re.M)


def complaints(path):
    text = prose(path, path.read_text(errors="replace"))
    text = re.sub(r"^( \*|#)(?= )", lambda m: " " * len(m.group(0)), text, flags=re.M)
    for words, instead in RETIRED.items():
        spaced = words.replace(" ", r"\s+")
        for m in re.finditer(rf"(?<![\w.>])({spaced})(?![\w(])", text, re.I):
            line = text.count("\n", 0, m.start()) + 1
            word = " ".join(m.group(1).split())
            yield f'{path.relative_to(ROOT)}:{line}: "{word}": say {instead}'


def main():
    paths = list(ROOT.glob("*.md"))
    for folder in FOLDERS:
        paths += [p for p in (ROOT / folder).rglob("*") if p.suffix in TEXT and p.is_file()]
    me = pathlib.Path(__file__).resolve()
    found = [c for p in sorted(paths) if p != me for c in complaints(p)]
    print(*found, sep="\n", end="\n" if found else "")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
