#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""commperf_report_test.py - the report of commperf, and the results of several runs in one plot

usage: commperf_report_test.py COMMPERF POLLUX_INFO (which commperf finds in the build)
"""
import html.parser
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as xml

import run_util as u

PROGRAM = os.path.abspath(sys.argv[1])
COLUMNS, LINES = 80, 24
FEW = ("-s", "8:64", "-n", "50", "--quiet")
PLAIN = {k: v for k, v in os.environ.items() if not k.startswith(("PLX_", "UCX_"))}
EVIL = "<script>alert(1)</script>&\"'"
SVG = "{http://www.w3.org/2000/svg}"


def run(*args, env=None, cwd=None):
    return u.run([PROGRAM, *args], 100, env={**PLAIN, **(env or {})}, cwd=cwd)


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as f:
        return f.read()


class Page(html.parser.HTMLParser):
    """The elements of a page, the texts of its cells, and links to anything outside. Elements have to nest."""
    VOID = {"meta", "br"}

    def __init__(self, text):
        super().__init__()
        self.open, self.seen, self.outside, self.rows, self.wrong = [], [], [], [], []
        self.feed(text)
        self.close()
        self.wrong += self.open

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.outside += [v for k, v in attrs if k in ("src", "href", "srcset", "data", "action")]
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def report(folder, *args, env=None):
    """Run it, and return the data and the page of the report."""
    where = os.path.join(folder, "report")
    r = run("-t", "tag_lat,tag_rate", *FEW, "--report", where, *args, env=env, cwd=folder)
    if r.rc != 0 or sorted(os.listdir(where)) != ["data.json", "index.html"]:
        raise AssertionError(f"status {r.rc}: {r.err}")
    return json.loads(read(where, "data.json")), Page(read(where, "index.html"))


def a_report_has_results_machine_and_build(folder):
    data, page = report(folder)
    if page.wrong:
        yield f"elements do not nest: {page.wrong}"
    if [r["size"] for r in data["rows"] if r["test"] == "tag_lat"] != [8, 16, 32, 64]:
        yield f"rows: {data['rows']}"
    if page.seen.count("svg") != 2 or page.seen.count("polyline") != 3:
        yield f"{page.seen.count('svg')} charts, {page.seen.count('polyline')} curves"
    rows = {r[0]: r[1:] for r in page.rows if len(r) > 1}
    kernel = " ".join(os.uname()[i] for i in (0, 2, 4))
    for name, want in (("kernel", kernel), ("cores online", str(os.cpu_count())), ("drivers", "shm")):
        if want not in rows.get(name, [""])[0]:
            yield f"{name}: {rows.get(name)}, not {want}"
    if not re.fullmatch(r"[\d.]+ to [\d.]+", rows.get("cache line from core to core ns", [""])[0]):
        yield "no time from core to core"
    if "up" not in rows.get("shm", []):
        yield f"device shm: {rows.get('shm')}"
    if data["pollux_info"]["build"]["version"] not in rows.get("version", []):
        yield f"version: {rows.get('version')}"


def it_says_each_setting_that_is_changed_and_its_source(folder):
    with open(os.path.join(folder, "ucx.conf"), "w", encoding="utf-8") as f:
        f.write("UCX_RNDV_THRESH=32k\n")
    _, page = report(folder, env={"PLX_WORKER_WAIT": "yield"})
    found = [r[:4] for r in page.rows if len(r) == 5 and r[0] == "worker.wait"]
    if found != [["worker.wait", "yield", "environment", "auto"]]:
        yield f"worker.wait: {found}"
    if [r for r in page.rows if r and r[0] == "rndv.chunk"]:
        yield "rndv.chunk is at its default, and shown"


def it_loads_nothing_and_follows_light_and_dark(folder):
    _, page = report(folder)
    text = read(folder, "report", "index.html")
    urls = set(re.findall(r"\w+://[^\s\"'<)]*", text)) - {"http://www.w3.org/2000/svg"}
    if page.outside or urls or "url(" in text or "@import" in text or "script" in page.seen:
        yield f"from elsewhere: {page.outside} {urls}"
    if "color-scheme:light dark" not in text or text.count("prefers-color-scheme:dark") < 2:
        yield "one of light and dark is missing"


def text_from_outside_is_escaped(folder):
    data, page = report(folder, "--csv", os.path.join(folder, EVIL.replace("/", "")), env={"PLX_LOG_FILE": EVIL})
    if "script" in page.seen or page.wrong:
        yield "the page has an element from a setting"
    if [r[1] for r in page.rows if r and r[0] == "log.file"] != [EVIL]:
        yield "the setting is not shown as it is"
    if not data["command"][-1].endswith(EVIL.replace("/", "")):
        yield f"command: {data['command']}"
    _, page = report(folder, env={"PLX_LOG_FILE": b"\xff\x80x".decode("utf-8", "surrogateescape")})
    if page.wrong:
        yield "a setting that is no UTF-8 breaks the page"


def a_folder_that_cannot_be_is_refused_at_once(folder):
    file = os.path.join(folder, "file")
    open(file, "w", encoding="utf-8").close()
    for where, why in ((os.path.join(folder, "no", "folder"), "No such file"), (file, "Not a directory")):
        r = run("-n", "60000000", "--report", where)
        if r.rc != 2 or where not in r.err or why not in r.err or r.seconds > 10:
            yield f"{where}: status {r.rc} after {r.seconds:.0f} s: {r.err}"


def a_comparison_has_a_report(folder):
    if subprocess.run("PATH=$PATH:/sbin ldconfig -p | grep -q libucp.so.0", shell=True, check=False).returncode != 0:
        print("# no UCX: nothing to compare with")
        return
    where = os.path.join(folder, "vs")
    r = run("-t", "tag_lat", *FEW, "--vs", "ucx", "-r", "1", "--report", where)
    data, page = json.loads(read(where, "data.json")), Page(read(where, "index.html"))
    if r.rc != 0 or page.wrong or page.seen.count("polyline") != 2 or len(data["rows"]) != 4:
        yield f"status {r.rc}, {page.wrong}, {page.seen.count('polyline')} curves: {r.err}"
    drawn = run("--plot", os.path.join(where, "data.json"))
    if drawn.out.count("vs: ucp") != 2:
        yield f"the two libraries are not in the plot:\n{drawn.out}"


def results(folder, name, *args):
    path = os.path.join(folder, name)
    run("-t", "tag_lat", *FEW, "--json", path, *args)
    return path


def several_runs_are_in_one_picture(folder):
    one, two = results(folder, "one.json"), results(folder, "two.json", "--mem", "mapped")
    out = os.path.join(folder, "both.svg")
    r = run("--plot", out, one, two)
    tree = xml.parse(out)
    texts = [t.text for t in tree.iter(SVG + "text")]
    if r.rc != 0 or len(tree.findall(f".//{SVG}polyline")) != 2:
        yield f"status {r.rc}, {len(tree.findall(f'.//{SVG}polyline'))} curves: {r.err}"
    for name in ("one: ucp", "two: ucp"):
        if not [t for t in texts if t.startswith(name)]:
            yield f"the legend has no {name}: {texts}"


def several_runs_are_on_one_screen(folder):
    report(folder)
    files = [results(folder, "one.json"), os.path.join(folder, "one.json"), os.path.join(folder, "report", "data.json")]
    r = run("--plot", *files)
    for chart in r.out.split("\n\n"):
        lines = chart.splitlines()
        if len(lines) >= LINES or max(map(len, lines)) > COLUMNS:
            yield f"{len(lines)} lines of {max(map(len, lines))}"
    legend = re.findall(r"^([a-z]) (.*?):", r.out.split("\n\n")[0], re.M)
    if r.rc != 0 or legend != [("a", "one"), ("b", "one (2)"), ("c", "report")]:
        yield f"status {r.rc}, legend {legend}: {r.err}"
    drawn = run(*files)
    if drawn.out != r.out:
        yield "the files alone draw something else"


def its_axes_have_round_labels_up_to_the_end(folder):
    path = os.path.join(folder, "axes.json")
    for values, want in (((3.0, 4.0, 6.07), ["6", "4", "2", "0"]), ((0.3, 4.0, 60.7), ["100", "10", "1", "0.1"])):
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"library": "x", "rows": [{"test": "t", "unit": "us", "size": s, "value": v}
                                                for s, v in zip((8, 1024, 1 << 20), values)]}, f)
        r = run(path)
        beside, below = re.findall(r"^ *(\S+) \|", r.out, re.M), re.findall(r"^ +bytes (.*)$", r.out, re.M)
        if beside != want or [line.split() for line in below] != [["8", "1k", "1m"]] or max(map(len, r.out.splitlines())) > COLUMNS:
            yield f"beside {beside}, below {below}\n{r.out}"


def sixteen_runs_fit_and_one_more_is_refused(folder):
    one = results(folder, "one.json")
    r = run(*[one] * 16)
    if r.rc != 0 or len(r.out.splitlines()) >= LINES or max(map(len, r.out.splitlines())) > COLUMNS:
        yield f"status {r.rc}\n{r.out}{r.err}"
    r = run(*[one] * 17)
    if r.rc != 2 or "more files to plot than 16" not in r.err:
        yield f"status {r.rc}: {r.err}"


def files_that_hold_no_results_are_refused(folder):
    good = {"test": "t", "unit": "us", "size": 8, "value": 1.0}
    bad = ({"value": 1e300}, {"size": -1}, {"size": 1 << 60}, {"value": "x"}, {"depth": -5}, {"raw_ns": 1e99})
    texts = ["", "[", "{}", '{"rows": 5}', '{"library": "x", "rows": []}']
    texts += [json.dumps({"library": "x", "rows": [{**good, **b}]}) for b in bad]
    for text in texts:
        path = os.path.join(folder, "bad.json")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        r = run("--plot", path)
        if r.rc != 1 or "commperf: " not in r.err or r.out:
            yield f"{text}: status {r.rc}: {r.err}"
    name = os.path.join(folder, "odd.json")
    with open(name, "w", encoding="utf-8") as f:
        json.dump({"library": EVIL, "rows": [{**good, "test": EVIL[:9], "label": "&", "value": v, "size": s}
                                             for s, v in ((8, -5.0), (16, 0.0), (0, 3.0))]}, f)
    out = os.path.join(folder, "odd.svg")
    r = run("--plot", out, name)
    if r.rc != 0 or EVIL[:9] not in "".join(t.text for t in xml.parse(out).iter(SVG + "text")):
        yield f"odd but right: status {r.rc}: {r.err}"


def what_does_not_go_together_is_refused(folder):
    one = results(folder, "one.json")
    for args in (["--csv", "x", one], ["--vs", "ucx", one], ["--server", "127.0.0.1:1", one], ["--report", "x", one],
                 ["one.csv"], ["--plot", "x.png"]):
        r = run(*args, cwd=folder)
        if r.rc != 2:
            yield f"{args}: status {r.rc}: {r.err}"


TESTS = (a_report_has_results_machine_and_build, it_says_each_setting_that_is_changed_and_its_source,
         it_loads_nothing_and_follows_light_and_dark, text_from_outside_is_escaped,
         a_folder_that_cannot_be_is_refused_at_once, a_comparison_has_a_report, several_runs_are_in_one_picture,
         several_runs_are_on_one_screen, its_axes_have_round_labels_up_to_the_end, sixteen_runs_fit_and_one_more_is_refused,
         files_that_hold_no_results_are_refused, what_does_not_go_together_is_refused)


if __name__ == "__main__":
    sys.exit(u.run_tests_in_folders(TESTS, "pollux-report-"))
