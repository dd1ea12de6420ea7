#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""testcomm_test.py - testcomm by scripts, by a pipe, and on a terminal of 80x24: editing, history, completion

usage: testcomm_test.py TESTCOMM edit|plain      plain: it was built without libedit
"""
import contextlib
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import termios
import time

import run_util as u
from term_util import Terminal

TESTCOMM, HOW = os.path.abspath(sys.argv[1]), sys.argv[2]
SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "testcomm")
PLAIN = {k: v for k, v in os.environ.items() if not k.startswith(("PLX_", "UCX_", "EDITRC"))}
UP, LEFT, RIGHT, HOME, DELETE = "\x1b[A", "\x1b[D", "\x1b[C", "\x1b[H", "\x1b[3~"


# --- scripts ---


def script(text, *options, cwd=None):
    """Exit status, output and errors of a script on its standard input."""
    p = subprocess.run([TESTCOMM, *options], input=text, capture_output=True, text=True, timeout=60, env=PLAIN, cwd=cwd)
    return p.returncode, p.stdout, p.stderr


def a_pipe_has_no_prompt(_):
    status, out, said = script("show settings\n# nothing\nset pattern 7; show settings\n")
    if status != 0 or said or out.count("pattern") != 2 or "pattern 7" not in out or "testcomm>" in out:
        yield f"{status}\n{out}{said}"
    status, out, said = script("worker create a\nexpect count 3\nshow version\n")
    if status != 1 or "version" in out or said != "error: expected count 3, got 0 (0x0)\nstdin:2: expect count 3\n":
        yield f"the script goes on after a failure, or does not say where it was: {status}\n{out}{said}"
    status, out, said = script("show nothing\nshow version\n", "-k")
    if status != 1 or "library" not in out or 'error: "show nothing" is not a command; try help show' not in said:
        yield f"{status}\n{out}{said}"
    status, out, said = script("worker\n", "-k")
    if 'error: "worker" is not all of a command; try help worker' not in said:
        yield said
    status, out, said = script("set pattern 1; quit\nshow version\n", "-i")
    if status != 0 or out != "testcomm> ":
        yield f"-i on a pipe: {status} {out!r}{said}"


def commands():
    """Name and arguments of each."""
    _, out, _ = script("help all\n")
    return [re.sub(r"\n +", " ", row) for row in re.findall(r"^(\w.*(?:\n {4}\S.*)*)\n {8}\S", out, re.M)]


def help_has_every_command(_):
    status, out, said = script("help all\n")
    rows = commands()
    if status != 0 or len(rows) < 80 or len(rows) != len(re.findall(r"(?m)^\w", out)):
        yield f"{status}, {len(rows)} commands\n{out}"
    _, names, _ = script("help\n")
    for lines, what in ((names, "help"), (out, "help all")):
        wide = [line for line in lines.splitlines() if len(line) > 80 or "\t" in line]
        if wide:
            yield f"{what} is wider than a terminal: {wide}"
    table = names.partition("\n\n")[0]
    if len(names.splitlines()) > 22 or table.count(",") + len(re.findall(r"(?m)^\S", table)) != len(rows):
        yield f"help does not name {len(rows)} commands on one screen:\n{names}"
    top = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with open(os.path.join(top, "doc/man/testcomm.1"), encoding="utf-8") as f:
        man = re.sub(r" \[> FILE\]$", "", f.read(), flags=re.M).splitlines()
    with open(os.path.join(top, "doc/guides/testcomm.md"), encoding="utf-8") as f:
        guide = " ".join(f.read().split())
    for row in rows:
        if row not in man:
            yield f"the man page lacks {row}"
        if f"**{row}**" not in guide:
            yield f"the guide lacks **{row}**"
    _, part, _ = script("help cci expect\n")
    if part.count("\n        ") != 4 or "cci expect status STATUS" not in part:
        yield part


def each_script_finds_what_it_expects(folder):
    for name in ("tag", "rma", "am", "stream", "listen", "cci"):
        status, out, said = script("", "-f", os.path.join(SCRIPTS, name + ".tc"), cwd=folder)
        if status != 0 or said:
            yield f"{name}.tc: {status}\n{out[-2000:]}{said}"


def two_processes_exchange_all_of_it(folder):
    sides = {}
    for name in ("server", "client"):
        with open(os.path.join(folder, name + ".out"), "w", encoding="utf-8") as f:
            sides[name] = u.start([TESTCOMM, "-f", os.path.join(SCRIPTS, name + ".tc")], PLAIN, cwd=folder, stdout=f,
                                  stderr=subprocess.STDOUT)
    for name, p in sides.items():
        try:
            status = u.wait(p, 60)
        except subprocess.TimeoutExpired:
            status = "none after 60 s"
            u.kill_family(p)
            p.wait()
        if status != 0:
            with open(os.path.join(folder, name + ".out"), encoding="utf-8") as f:
                yield f"{name}: {status}\n{f.read()}"


def what_is_wrong_is_said(folder):
    """The last command of each fails, and says this."""
    begin = "worker create a; worker create b; ep create ab a b; mem create m 100; mem key m > k; key create k ab @k\n"
    for text, want in (("mem fill m 3; mem check m", "m differs from the pattern at offset 0"),
                       ("put k 10 \"x\"; ep flush ab; mem check m", "m differs from the pattern at offset 10: 0x78"),
                       ("get k 0 50; wait last; check last 9", "r0 differs from the pattern at offset 0"),
                       ("mem check m 50 51", "m has only 100 bytes"),
                       ("mem create m 5", 'the name "m" is taken'), ("mem create n 0", "memory has 1 to 4294967296 bytes here"),
                       ("mem destroy q", 'there is no memory "q"'), ("put q 0 1", 'there is no key "q"'),
                       ("key create x ab 12:34", '"12:34" is no key: mem key writes one'),
                       ("key create x ab 1:2:zz", '"1:2:zz" is no key'), ("key create x ab 1:2:00112233", "the key cannot be used"),
                       ("atomic k 0 add 1 compare 2", "cswap, and no other, compares"), ("atomic k 0 cswap 1", "cswap, and no other"),
                       ("atomic k 0 div 1", '"div" is not add, and, or, xor, swap or cswap'),
                       ("atomic k 0 add 1 bits 16", "an atomic has 32 or 64 bits"),
                       ("atomic k 0 add 1; wait last; expect value 1", "the last command left no value"),
                       ("am handle a 65536", "an id is 0 to 65535"), ("am handle a 1 off", "id 1 has no handler"),
                       ("am handle a 1; am handle a 1", "id 1 has a handler"), ("am recv a 1", "id 1 has no handler: am handle"),
                       ("am handle b 1; am recv b 1 20", "no message of id 1 came in 20 ms"),
                       ("am handle b 1; am send ab 1 5; am recv b 1 reply w", "r1 was sent without reply"),
                       ("am send ab 1 5 header", "header needs a text"),
                       ("am handle b 1; am send ab 1 5 header x; am recv b 1; expect header y", 'expected header "y", got "x"'),
                       ("stream recv ab 5 now", '"now" is not "all"'), ("stream send q 5", 'there is no endpoint "q"'),
                       ("listener create l b 1.2.3:x", '"1.2.3:x" is not an address'), ("listener create l b [::1:5", '"[::1:5" is not an address'),
                       ("listener create l b; listener wait l 20", "no client has connected to l within 20 ms"),
                       ("ep connect c a nobody", '"nobody" is not an address'), ("ep accept c c7", 'there is no connection request "c7"')):
        status, out, said = script(begin + text + "\n", cwd=folder)
        if status != 1 or f"error: {want}" not in said:
            yield f"{text}: {status}, {said!r}\n{out[-500:]}"


# --- on a terminal ---


class Shell(Terminal):
    """At its prompt."""

    def __init__(self, state, *options, env=None):
        super().__init__([TESTCOMM, *options], {**PLAIN, "XDG_STATE_HOME": state, "LC_ALL": "C.UTF-8", **(env or {})})
        self.shows("(?m)^testcomm>$")

    def last(self):
        return next((row for row in reversed(self.screen.rows()) if row), "")

    def wait_for(self, last):
        return self.until(lambda rows: next((row for row in reversed(rows) if row), "") == last)

    def line(self, text):
        """Type it on a cleared screen, until the next prompt. @return what it printed"""
        self.key("\x0c" + text + "\n")
        begin = f"testcomm> {text}".rstrip()
        rows = self.until(lambda rows: rows[0] == begin and self.last() == "testcomm>" and
                          (begin != "testcomm>" or rows[1] == begin) and list(filter(None, rows)))
        return "\n".join(rows[1:-1]) if rows else self.text()

    def leave(self):
        self.key("\x15quit\n")  # ^U: without what stands there
        return self.status()


def history_file(state):
    return os.path.join(state, "pollux", "testcomm_history")


def kept(state):
    with contextlib.suppress(OSError):
        with open(history_file(state), encoding="utf-8") as f:
            return f.read().splitlines()
    return None


def keys_edit_the_line(state):
    t = Shell(state)
    t.key("worker crat" + LEFT + LEFT + "e" + RIGHT + RIGHT + "e ax" + "\x7f")
    if not t.wait_for("testcomm> worker create a"):
        yield "typed in between:\n" + t.text()
    t.key(HOME + "XY")
    t.wait_for("testcomm> XYworker create a")
    t.key(LEFT + DELETE + LEFT + DELETE + "\x05b")  # ^E: to the end
    if not t.wait_for("testcomm> worker create ab"):
        yield "deleted at the beginning:\n" + t.text()
    t.key("\n")
    if not t.shows("(?m)^worker ab$"):
        yield "the edited line does not run:\n" + t.text()
    t.line("ep create e ab ab")
    t.key('send e 1 "h\u00e4l' + LEFT + "\x7f" + "a" + "\x05" + 'lo"\n')
    if not t.shows("(?m)^r0: send of 5 bytes"):
        yield "a character of two bytes is not one on the line:\n" + t.text()
    if t.leave() != 0:
        yield "it did not end well"


def a_line_longer_than_the_terminal_is_edited(state):
    t = Shell(state)
    t.key("set pattern 0x" + "0" * 90 + "7" + HOME)
    t.key("\x05" + "8\n")
    t.shows("78\ntestcomm>")
    if not t.line("show settings").startswith("pattern 120\n"):
        yield t.text()
    if t.screen.scrolled > 10 or t.leave() != 0:
        yield "it scrolled, or did not end well"


def the_history_is_there_the_next_time(state):
    t = Shell(state)
    for text in ("set pattern 1", "set pattern 2", "set pattern 2", "  "):
        t.line(text)
    t.key(UP + UP)
    if not t.wait_for("testcomm> set pattern 1"):
        yield "two lines up:\n" + t.text()
    t.leave()
    if kept(state) != ["set pattern 1", "set pattern 2", "quit"]:
        yield f"it keeps {kept(state)}"
    modes = [stat.S_IMODE(os.stat(p).st_mode) for p in (history_file(state), os.path.dirname(history_file(state)))]
    if modes != [0o600, 0o700]:
        yield f"modes {[oct(m) for m in modes]}"
    os.chmod(history_file(state), 0o644)
    t, other = Shell(state), Shell(state)
    t.key(UP + UP)
    if not t.wait_for("testcomm> set pattern 2"):
        yield "the next time:\n" + t.text()
    t.key("\x12pattern 1")  # ^R
    if not t.shows("set pattern 1"):
        yield "searched for:\n" + t.text()
    t.key("\n")
    t.wait_for("testcomm>")
    other.line("set timeout 9")
    t.line("set timeout 8")
    if kept(state)[3:] != ["set pattern 1", "set timeout 9", "set timeout 8"]:
        yield f"of two shells it keeps {kept(state)}"
    if stat.S_IMODE(os.stat(history_file(state)).st_mode) != 0o600:
        yield "a file that others may read stays so"
    t.leave()
    other.leave()


def the_history_can_be_turned_off(state):
    t = Shell(state, "--no-history")
    t.line("set pattern 1")
    t.key(UP)
    if not t.wait_for("testcomm> set pattern 1"):
        yield "within a session there is none:\n" + t.text()
    t.leave()
    if kept(state) is not None:
        yield f"with --no-history it keeps {kept(state)}"
    t = Shell(state)
    for text in ("set pattern 2", "set history off", "set pattern 3", "set history on", "set pattern 4"):
        t.line(text)
    t.leave()
    if kept(state) != ["set pattern 2", "set history off", "set pattern 4", "quit"]:
        yield f"around set history off: {kept(state)}"


def a_bad_history_does_no_harm(state):
    os.makedirs(os.path.dirname(history_file(state)))
    with open(history_file(state), "wb") as f:
        f.write(b"\xff\x00 \x1b[2J junk\n" + b"x" * 300000 + b"\n" + b"set pattern 5\n" * 30000 + b"no end")
    t = Shell(state)
    if os.path.getsize(history_file(state)) > 256 * 1024:
        yield f"a file of 720 kB is not cut: {os.path.getsize(history_file(state))}"
    t.key(UP + UP)
    if not t.wait_for("testcomm> set pattern 5"):
        yield t.text()
    t.leave()
    os.unlink(history_file(state))
    os.mkfifo(history_file(state))
    t = Shell(state)
    if "the history cannot be saved" not in t.text() or t.line("show version")[:7] != "library":
        yield "with a FIFO in its place:\n" + t.text()
    if t.leave() != 0:
        yield "with a FIFO it does not end"
    home = os.path.join(state, "home")
    t = Shell("relative/path", env={"HOME": home})
    t.leave()
    if not os.path.exists(os.path.join(home, ".local/state/pollux/testcomm_history")) or os.path.exists("relative"):
        yield "a relative XDG_STATE_HOME is taken"


def tab_completes(state):
    t = Shell(state)
    for text in ("worker create alpha", "worker create beta", "ep create ab alpha beta", "recv beta 1 full 8", "cci create cc",
                 "mem create mm 8", f"mem key mm > {state}/key", f"key create kk ab @{state}/key", "listener create li beta"):
        t.line(text)
    open(os.path.join(state, "one.addr"), "w", encoding="ascii").close()
    for typed, want in (("wor", "worker"), ("worker des", "worker destroy"), ("worker destroy al", "worker destroy alpha"),
                        ("worker create x si", "worker create x single"), ("set id", "set idle"), ("set idle of", "set idle off"),
                        ("cci exp", "cci expect"), ("cci expect ev", "cci expect event"), ("cci destroy c", "cci destroy cc"),
                        ("cci option cc keep", "cci option cc keepalive"), ("ep create n beta al", "ep create n beta alpha"),
                        ("ep create n beta alpha wait p", "ep create n beta alpha wait peer"), ("wait r", "wait r0"), ("wait la", "wait last"),
                        ("wait al", "wait all"), ("gen ab 8 count 5 win", "gen ab 8 count 5 window"),
                        ("gen ab 8 sync ba", "gen ab 8 sync back"), ("expect status NOT_I", "expect status NOT_IMPLEMENTED"),
                        ("put k", "put kk"),
                        ("mem key m", "mem key mm"), ("listener wait l", "listener wait li"), ("am send ab 7 8 rn", "am send ab 7 8 rndv"),
                        ("atomic kk 0 csw", "atomic kk 0 cswap"), ("atomic kk 0 add 1 bits 3", "atomic kk 0 add 1 bits 32"),
                        ("help worker cr", "help worker create"), ("help cci ex", "help cci expect"),
                        ("show version; wai", "show version; wait"), ('send ab 1 "x y"; ep fl', 'send ab 1 "x y"; ep flush'),
                        (f"ep create n beta @{state}/on", f"ep create n beta @{state}/one.addr"),
                        (f"show version > {state}/on", f"show version > {state}/one.addr")):
        t.key(typed + "\t" + "|")  # the mark stands behind the space of a whole word
        if not t.until(lambda rows, want=want: "".join(rows).rstrip().endswith(f"testcomm> {want} |")):
            yield f"{typed}: {t.last()!r}, not {want!r}"
        t.key("\x15")
        t.wait_for("testcomm>")
    for typed in ("gen ab 8 count si", "send ab 1 5 w", 'send ab 1 "wor', "# wor", "worker create si", "nothing ", "gen ab 8 sync sy"):
        t.key(typed + "\t" + "|")
        if not t.wait_for(f"testcomm> {typed}|"):
            yield f"{typed} becomes {t.last()!r}"
        t.key("\x15")
        t.wait_for("testcomm>")
    t.key("s\t")
    if not t.shows(r"(?m)^send +set +show +sink +sleep.*\ntestcomm> s$"):
        yield "the choices are not shown:\n" + t.text()
    t.key("\x15send ab \t")
    if not t.shows(r'(?m)^usage: send EP TAG SIZE\|"TEXT" \[sync\]\ntestcomm> send ab$'):
        yield "the use is not shown:\n" + t.text()
    if t.leave() != 0:
        yield "it did not end well"


def every_command_is_completed(state):
    """From the shortest beginning that only it has."""
    names = [re.match(r"[a-z ]*[a-z](?= [^a-z]|$| [a-z]+\||\Z)", row)[0] for row in commands()]
    t = Shell(state, "--no-history")
    for name in names:
        *begin, word = name.split()
        beside = {n.split()[len(begin)] for n in names if n.split()[:len(begin)] == begin} - {word}
        short = next((word[:n] for n in range(1, len(word)) if not any(b.startswith(word[:n]) for b in beside)), None)
        if short is None:
            continue
        t.key(" ".join([*begin, short]) + "\t")
        if not t.wait_for(f"testcomm> {name}"):
            yield f"{' '.join([*begin, short])}: {t.last()!r}, not {name!r}"
        t.key("\x15")
        t.wait_for("testcomm>")
    t.leave()


def turns_run_while_a_line_is_typed(state):
    t = Shell(state)
    for text in ("worker create a", "worker create b", "ep create ab a b", "recv b 1 full 8", 'send ab 1 "hello"'):
        t.line(text)
    t.key("re")
    time.sleep(0.2)
    t.key("qs\n")
    if not t.shows("(?m)^r0: recv of 5 bytes, tag 0x1: OK"):
        yield "the message has not come:\n" + t.text()
    for text in ("set idle off", "recv b 2 full 8", 'send ab 2 "hello"'):
        t.line(text)
    time.sleep(0.2)
    if "r2: recv into 8 bytes, tag 0x2: INPROGRESS" not in t.line("reqs"):
        yield "it has come without turns:\n" + t.text()
    t.leave()


def signals_leave_the_terminal_well(state):
    t = Shell(state)
    t.key("half a line")
    t.wait_for("testcomm> half a line")
    t.key("\x03")
    if not t.shows(r"(?m)^testcomm> half a line\^C\ntestcomm>$"):
        yield "Ctrl-C:\n" + t.text()
    t.key("sleep 20000\n")
    t.shows("sleep 20000\n")
    time.sleep(0.2)
    t.key("\x03")
    if not t.wait_for("testcomm>"):
        yield "Ctrl-C does not end a command:\n" + t.text()
    t.key("show ver")
    t.wait_for("testcomm> show ver")
    os.kill(t.pid, signal.SIGSTOP)
    os.kill(t.pid, signal.SIGCONT)
    t.resize(24, 60)
    os.kill(t.pid, signal.SIGWINCH)
    t.key("sion\n")
    if not t.shows("(?m)^library "):
        yield "after a stop and a change of size:\n" + t.text()
    t.key("\x04")
    if t.status() != 0:
        yield "Ctrl-D does not end it well"
    t = Shell(state)
    t.key("half a line")
    t.wait_for("testcomm> half a line")
    fd = os.dup(t.fd)
    raw = termios.tcgetattr(fd)[3] & (termios.ICANON | termios.ECHO)
    os.kill(t.pid, signal.SIGTERM)
    status = t.status()
    cooked = termios.tcgetattr(fd)[3] & (termios.ICANON | termios.ECHO)
    os.close(fd)
    if status != 0 or raw != 0 or cooked != termios.ICANON | termios.ECHO:
        yield f"SIGTERM: status {status}, terminal {raw:#x} before, {cooked:#x} after"


def main():
    report = u.Report()
    scripts = (a_pipe_has_no_prompt, help_has_every_command, each_script_finds_what_it_expects,
               two_processes_exchange_all_of_it, what_is_wrong_is_said)
    terminal = (keys_edit_the_line, a_line_longer_than_the_terminal_is_edited, the_history_is_there_the_next_time,
                the_history_can_be_turned_off, a_bad_history_does_no_harm, tab_completes, every_command_is_completed,
                turns_run_while_a_line_is_typed, signals_leave_the_terminal_well)
    for test in scripts + terminal:
        name = test.__name__.replace("_", " ")
        if test in terminal and HOW != "edit":
            report.skip(name, "testcomm was built without libedit")
            continue
        with tempfile.TemporaryDirectory(prefix="testcomm_test_") as state:
            report.result(name, "\n".join(test(state)))
    return report.status()


if __name__ == "__main__":
    sys.exit(main())
