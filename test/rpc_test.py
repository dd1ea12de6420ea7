#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""rpc_test.py - the control socket of a real program, its two clients and its guides

usage: rpc_test.py PROGRAM [ARGUMENT...]

PROGRAM is started with PLX_RPC_SOCKET naming the socket it must serve, and a pipe
on its standard input; it should end when that is closed.
"""

import json
import os
import pathlib
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOLS = ROOT / "usertools"
START_S = 30
BUILT_IN = {"rpc_get_methods", "get_version", "log_get_level", "log_set_level", "conf_get",
            "conf_set", "save_config", "load_config"}


class Program:
    def __init__(self, argv):
        self.folder = tempfile.mkdtemp(prefix="plx_rpc_test_")
        self.path = os.path.join(self.folder, "rpc.sock")
        env = {key: value for key, value in os.environ.items()
               if not key.startswith(("PLX_", "UCX_"))}
        env["PLX_RPC_SOCKET"] = self.path
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                        env=env)
        self.wait_for_socket()

    def wait_for_socket(self):
        end = time.monotonic() + START_S
        while True:
            try:
                Client(self.path).close()
                return
            except OSError as error:
                if self.process.poll() is not None:
                    raise SystemExit(f"the program ended with {self.process.returncode} "
                                     "before it served the socket") from error
                if time.monotonic() > end:
                    self.stop()
                    raise SystemExit("the program does not serve the socket") from error
            time.sleep(0.01)

    def stop(self):
        """Returns whether it ended by itself, with 0 and without leaving the socket."""
        try:
            self.process.stdin.close()
            self.process.wait(10)
            clean = self.process.returncode == 0 and not os.path.exists(self.path)
        except (subprocess.TimeoutExpired, BrokenPipeError):
            self.process.kill()
            self.process.wait()
            clean = False
        shutil.rmtree(self.folder, ignore_errors=True)
        return clean


class Client:
    def __init__(self, path):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(15)
        try:
            self.sock.connect(path)
        except OSError:
            self.sock.close()
            raise
        self.file = self.sock.makefile("rb")

    def close(self):
        self.file.close()
        self.sock.close()

    def say(self, text):
        self.sock.sendall(text if isinstance(text, bytes) else text.encode())

    def hear(self):
        line = self.file.readline()
        return json.loads(line) if line else None

    def is_closed(self):
        try:
            return self.file.read(1) == b""
        except ConnectionResetError:
            return True


program = None


class RpcTest(unittest.TestCase):
    def setUp(self):
        self.client = Client(program.path)
        self.addCleanup(self.client.close)

    def call(self, method, params=None):
        request = {"jsonrpc": "2.0", "id": method, "method": method}
        if params is not None:
            request["params"] = params
        self.client.say(json.dumps(request))
        answer = self.client.hear()
        self.assertEqual(answer["id"], method)
        self.assertEqual(answer["jsonrpc"], "2.0")
        return answer

    def result(self, method, params=None):
        answer = self.call(method, params)
        self.assertNotIn("error", answer)
        return answer["result"]

    def refused(self, code, method, params=None):
        error = self.call(method, params)["error"]
        self.assertEqual(error["code"], code, error)
        self.assertTrue(error["message"])
        return error

    def test_the_socket_is_for_its_owner_only(self):
        mode = os.stat(program.path).st_mode
        self.assertTrue(stat.S_ISSOCK(mode))
        self.assertEqual(stat.S_IMODE(mode), 0o600)

    def test_rpc_get_methods_lists_name_params_and_help(self):
        rows = self.result("rpc_get_methods")
        names = [row["name"] for row in rows]
        self.assertLessEqual(BUILT_IN, set(names))
        self.assertEqual(len(names), len(set(names)))
        for row in rows:
            self.assertEqual(set(row), {"name", "params", "help"})
            self.assertTrue(row["help"], row)

    def test_methods_that_list_need_no_parameters(self):
        for row in self.result("rpc_get_methods"):
            if row["name"].endswith("_get_list"):
                self.assertIsInstance(self.result(row["name"]), list, row["name"])

    def test_get_version_names_the_process(self):
        version = self.result("get_version")
        self.assertRegex(version["version"], r"^\d+\.\d+\.\d+")
        self.assertIn("DPDK", version["dpdk"])
        self.assertEqual(version["pid"], program.process.pid)

    def test_the_log_level_can_be_set_and_read(self):
        before = self.result("log_get_level")["level"]
        self.assertEqual(self.result("log_set_level", {"level": "error"}), {"level": "error"})
        self.assertEqual(self.result("log_get_level"), {"level": "error"})
        self.assertEqual(self.result("conf_get", {"name": "log.level"})["value"], "error")
        self.refused(-32602, "log_set_level", {"level": "shouting"})
        self.refused(-32602, "log_set_level", {"level": 4})
        self.refused(-32602, "log_set_level")
        self.result("log_set_level", {"level": before})

    def test_conf_get_tells_all_of_every_setting(self):
        rows = self.result("conf_get")
        for row in rows:
            self.assertEqual(set(row), {"name", "value", "source", "default", "type", "unit",
                                        "range", "runtime", "help"})
            self.assertEqual(self.result("conf_get", {"name": row["name"]}), row)
        sources = {row["name"]: row["source"] for row in rows}
        self.assertEqual(sources["rpc.socket"], "environment")
        self.refused(-32000, "conf_get", {"name": "no.such"})
        self.refused(-32602, "conf_get", {"name": 3})
        self.refused(-32602, "conf_get", {"naem": "log.level"})

    def test_conf_set_changes_runtime_settings_only(self):
        before = self.result("conf_get", {"name": "rndv.chunk"})["value"]
        row = self.result("conf_set", {"name": "rndv.chunk", "value": "64k"})
        self.assertEqual((row["value"], row["source"]), (65536, "rpc"))
        self.assertEqual(self.result("conf_set", {"name": "rndv.chunk",
                                                  "value": 4096})["value"], 4096)
        for bad in (-1, 1, 1.5, True, None, [], "", "64kb", "nan", 10 ** 15):
            self.refused(-32602, "conf_set", {"name": "rndv.chunk", "value": bad})
        for row in self.result("conf_get"):
            if not row["runtime"]:
                error = self.refused(-32000, "conf_set",
                                     {"name": row["name"], "value": row["value"]})
                self.assertEqual(error["data"]["name"], "EPERM")
        self.assertEqual(self.result("conf_get", {"name": "rndv.chunk"})["value"], 4096)
        self.result("conf_set", {"name": "rndv.chunk", "value": before})

    def test_save_config_gives_what_load_config_takes(self):
        saved = self.result("save_config")
        self.assertEqual(self.result("load_config", saved), True)
        self.assertEqual(self.result("save_config"), saved)
        changed = self.result("save_config", {"changed": True})
        self.assertIn("socket", changed["rpc"])
        for section in changed:
            self.assertLessEqual(set(changed[section]), set(saved[section]))

    def test_load_config_is_all_or_nothing(self):
        before = self.result("save_config")
        scheme = "get" if before["rndv"]["scheme"] != "get" else "frag"
        for wrong in ({"shm": {"cma": "no" if before["shm"]["cma"] == "auto" else "auto"}},
                      {"no": {"such": 1}}, {"proto": {"eager_max": -1}}, {"shm": 3}):
            answer = self.call("load_config", {"rndv": {"scheme": scheme}, **wrong})
            self.assertIn("error", answer)
            self.assertEqual(self.result("save_config"), before)
        self.result("load_config", {"rndv": {"scheme": scheme}})
        self.assertEqual(self.result("save_config")["rndv"]["scheme"], scheme)
        self.result("load_config", {"rndv": {"scheme": before["rndv"]["scheme"]}})

    def test_wrong_requests_get_the_code_of_the_specification(self):
        version = {"jsonrpc": "2.0", "id": 1, "method": "get_version"}
        for request, code in (({}, -32600), ([], -32600), ({**version, "jsonrpc": 2}, -32600),
                              ({**version, "id": {}}, -32600), ({**version, "params": 1}, -32600),
                              ({**version, "method": "nope"}, -32601),
                              ({**version, "params": [1]}, -32602),
                              ({**version, "params": {"a": 1}}, -32602)):
            self.client.say(json.dumps(request))
            self.assertEqual(self.client.hear()["error"]["code"], code, request)

    def test_what_is_no_json_ends_the_connection(self):
        for text in (b"hello\n", b"{]", b"\x00\xff", b"{\"a\":\"\xff\"}", b"[" * 1000,
                     b"{\"a\":" * 10000):
            client = Client(program.path)
            client.say(text)
            self.assertEqual(client.hear()["error"]["code"], -32700, text[:20])
            self.assertTrue(client.is_closed())
            client.close()

    def test_a_request_over_256_kib_ends_the_connection(self):
        client = Client(program.path)
        try:
            client.say(b'{"a":"' + b"x" * (300 << 10))
        except (BrokenPipeError, ConnectionResetError):
            pass
        self.assertEqual(client.hear()["error"]["code"], -32600)
        self.assertTrue(client.is_closed())
        client.close()

    def test_a_batch_is_answered_in_one_array_and_notifications_not_at_all(self):
        version = {"jsonrpc": "2.0", "method": "get_version"}
        self.client.say(json.dumps([version, {**version, "id": "a"}, 5, {**version, "id": 2}]))
        answers = self.client.hear()
        self.assertEqual([answer["id"] for answer in answers], ["a", None, 2])
        self.client.say(json.dumps(version) + json.dumps([version]))
        self.result("get_version")

    def test_requests_come_in_pieces_and_together(self):
        version = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "get_version"})
        for byte in version:
            self.client.say(byte)
        self.client.say(f"\n{version}{version}\n")
        for _ in range(3):
            self.assertIn("result", self.client.hear())

    def test_who_does_not_read_holds_up_nobody(self):
        lazy = Client(program.path)
        lazy.sock.settimeout(0.2)
        try:
            for _ in range(2000):
                lazy.say('{"jsonrpc": "2.0", "id": 1, "method": "conf_get"}')
        except (socket.timeout, BlockingIOError):
            pass
        begin = time.monotonic()
        for _ in range(20):
            self.result("get_version")
        self.assertLess(time.monotonic() - begin, 5)
        lazy.close()

    def test_half_requests_of_others_hold_up_nobody(self):
        halves = [Client(program.path) for _ in range(10)]
        for half in halves:
            half.say('{"jsonrpc": "2.0", "id"')
        self.result("get_version")
        for half in halves:
            half.close()

    def tool(self, *args, code=0):
        run = subprocess.run([sys.executable, *map(str, args)], capture_output=True, text=True,
                             timeout=30, check=False,
                             env={**os.environ, "PLX_RPC_SOCKET": program.path})
        self.assertEqual(run.returncode, code, run.stderr)
        return run.stdout

    @unittest.skipUnless((TOOLS / "plx-rpc").exists(), "no usertools here")
    def test_plx_rpc_asks_and_tells_by_its_exit_status(self):
        tool = TOOLS / "plx-rpc"
        self.assertIn("conf_get", self.tool(tool))
        self.assertEqual(json.loads(self.tool(tool, "conf_get", "name=log.level")),
                         self.result("conf_get", {"name": "log.level"}))
        level = self.result("log_get_level")["level"]
        self.tool(tool, "load_config", json.dumps({"log": {"level": level}}))
        self.tool(tool, "-s", program.path, "get_version")
        self.tool(tool, "no_such_method", code=1)
        self.tool(tool, "conf_get", "name", code=2)
        self.tool(tool, "-s", "/no/such/socket", "get_version", code=2)

    @unittest.skipUnless((TOOLS / "plx-top").exists(), "no usertools here")
    def test_plx_top_shows_counters_once_or_with_rates(self):
        tool = TOOLS / "plx-top"
        out = self.tool(tool, "--once", "-a", "-m", "get_version")
        self.assertRegex(out, r"pid +[\d,]+")
        out = self.tool(tool, "-n", "2", "-i", "0.05", "-a", "-m", "get_version")
        self.assertRegex(out, r"pid +[\d,]+ +0\n")
        if "worker_get_list" in [row["name"] for row in self.result("rpc_get_methods")]:
            self.assertIn("worker", self.tool(tool, "--once", "-a"))
        self.tool(tool, "-s", "/no/such/socket", "--once", code=2)

    @unittest.skipUnless((ROOT / "doc/guides/settings.md").exists(), "no guides here")
    def test_the_settings_guide_has_every_row_of_the_table(self):
        text = (ROOT / "doc/guides/settings.md").read_text()
        missing = [setting_line(row) for row in self.result("conf_get")
                   if setting_line(row) not in text]
        self.assertEqual(missing, [])

    @unittest.skipUnless((ROOT / "doc/guides/rpc.md").exists(), "no guides here")
    def test_the_rpc_guide_has_every_method(self):
        text = (ROOT / "doc/guides/rpc.md").read_text()
        missing = [row["name"] for row in self.result("rpc_get_methods")
                   if f"### {row['name']}\n" not in text]
        self.assertEqual(missing, [])

    @unittest.skipUnless((ROOT / "config/pollux.json").exists(), "no sample here")
    def test_the_sample_file_has_every_setting_at_its_default(self):
        sample = json.loads((ROOT / "config/pollux.json").read_text())
        for row in self.result("conf_get"):
            section, _, name = row["name"].partition(".")
            self.assertIn(name, sample.get(section, {}), row["name"])
            self.assertEqual(str(sample[section].pop(name)), row["default"], row["name"])
        self.assertEqual([section for section in sample if sample[section]], [])


def setting_line(row):
    env = "PLX_" + row["name"].upper().replace(".", "_")
    default = f"`{row['default']}`" if row["default"] else "(empty)"
    runtime = "yes" if row["runtime"] else "no"
    return (f"| `{row['name']}` | `{env}` | {row['unit']} | {default} | {row['range']} | "
            f"{runtime} | {row['help']} |")


def main():
    global program
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    program = Program(sys.argv[1:])
    try:
        ok = unittest.main(argv=sys.argv[:1], exit=False).result.wasSuccessful()
    finally:
        clean = program.stop()
    if not clean:
        print("the program did not end cleanly, or left its socket", file=sys.stderr)
    return 0 if ok and clean else 1


if __name__ == "__main__":
    sys.exit(main())
