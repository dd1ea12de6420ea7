# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""term_util.py - a program on a terminal of 80x24: keys in, and the screen that a user would see"""
import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time

TOKEN = re.compile(r"\x1b\[([?>=]?)([0-9;]*)([@-~])|\x1b[()][A-Z0-9]|\x1b[=>78cDEHM]|([\r\n\b\t\a])|([^\x00-\x1f\x7f])")


class Screen:
    """What the bytes leave on it. Raises ValueError for what it does not know: no guess."""

    def __init__(self, lines, columns):
        self.lines, self.columns = lines, columns
        self.cells, self.x, self.y, self.scrolled, self.wrapped = self.blank(), 0, 0, 0, 0
        self.is_whole = True  # False: the program has begun to draw, and has not said that it has ended

    def blank(self):
        return [[" "] * self.columns for _ in range(self.lines)]

    def feed(self, text):
        """@return the beginning of a sequence that goes on"""
        at = 0
        while at < len(text):
            match = TOKEN.match(text, at)
            if match is None:
                if text[at] == "\x1b" and len(text) - at < 16:
                    return text[at:]
                raise ValueError(f"no such sequence: {text[at:at + 16]!r}")
            private, numbers, final, control, char = match.groups()
            if final:
                self.sequence(private, [int(n or 0) for n in numbers.split(";")], final)
            elif control:
                self.control(control)
            elif char:
                self.put(char)
            at = match.end()
        return ""

    def put(self, char):
        if self.x == self.columns:  # it wraps with the next character, not before
            self.x = 0
            self.wrapped += 1
            self.down()
        self.cells[self.y][self.x] = char
        self.x += 1

    def down(self):
        if self.y + 1 < self.lines:
            self.y += 1
            return
        self.cells = self.cells[1:] + [[" "] * self.columns]
        self.scrolled += 1

    def control(self, char):
        if char == "\r":
            self.x = 0
        elif char == "\n":
            self.down()
        elif char == "\b":
            self.x = max(0, min(self.x, self.columns) - 1)
        elif char == "\t":
            self.x = min(self.columns - 1, self.x // 8 * 8 + 8)

    def clear(self, y, begin, end):
        self.cells[y][begin:end] = [" "] * (end - begin)

    def sequence(self, private, n, final):
        first = max(n[0], 1)
        x = min(self.x, self.columns - 1)
        if private:
            if final in "hl" and n[0] in (1049, 47):
                self.cells = self.blank()
            elif final in "hl" and n[0] == 2026:
                self.is_whole = final == "l"
        elif final == "H":
            self.y, self.x = min(first, self.lines) - 1, min(max(n[1] if len(n) > 1 else 1, 1), self.columns) - 1
        elif final == "A":
            self.y = max(0, self.y - first)
        elif final == "B":
            self.y = min(self.lines - 1, self.y + first)
        elif final == "C":
            self.x = min(self.columns - 1, x + first)
        elif final == "D":
            self.x = max(0, x - first)
        elif final == "G":
            self.x = min(first, self.columns) - 1
        elif final == "K":
            self.clear(self.y, *{0: (x, self.columns), 1: (0, x + 1), 2: (0, self.columns)}[n[0]])
        elif final == "J":
            if n[0] == 2:
                self.cells = self.blank()
            else:
                self.clear(self.y, x, self.columns)
                for y in range(self.y + 1, self.lines):
                    self.clear(y, 0, self.columns)
        elif final == "P":
            row = self.cells[self.y]
            row[x:] = row[x + first:] + [" "] * min(first, self.columns - x)
        elif final == "@":
            row = self.cells[self.y]
            row[x:] = ([" "] * first + row[x:])[:self.columns - x]
        elif final not in "mhlnr":
            raise ValueError(f"no such sequence: {n} {final}")

    def rows(self):
        return ["".join(row).rstrip() for row in self.cells]


class Terminal:
    """A program on a terminal of its own, which it controls."""

    def __init__(self, argv, env=None, lines=24, columns=80, limit_s=60):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            time.sleep(0.05)  # for the size
            os.execvpe(argv[0], argv, {**(env or os.environ), "TERM": "xterm"})
        self.size(lines, columns)
        self.screen, self.left, self.raw = Screen(lines, columns), "", ""
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.end = time.monotonic() + limit_s

    def size(self, lines, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def resize(self, lines, columns):
        self.screen, self.left = Screen(lines, columns), ""
        self.size(lines, columns)

    def key(self, text):
        os.write(self.fd, text.encode())

    def take(self, seconds):
        """What it prints within that time. @return False: it has ended"""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.fd, 500)  # in pieces, as a slow terminal takes a screen
        except OSError:
            return False
        text = self.decoder.decode(data)
        self.raw += text
        self.left = self.screen.feed(self.left + text)
        return data != b""

    def until(self, look):
        """@return the first true look(rows) at a complete screen; None when the program ends or the time is over"""
        going = True
        while time.monotonic() < self.end:
            found = self.screen.is_whole and look(self.screen.rows())
            if found or not going:
                return found or None
            going = self.take(0.2)
        return None

    def shows(self, pattern):
        return self.until(lambda rows: re.search(pattern, "\n".join(rows)))

    def status(self):
        """Its exit status; it is killed if it does not end in time."""
        while time.monotonic() < self.end and self.take(0.2):
            continue
        if time.monotonic() >= self.end:
            os.kill(self.pid, signal.SIGKILL)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def text(self):
        return "\n".join(self.screen.rows())
