#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Pollux Authors
"""rpc_test.py - the control socket of a real program, its two clients and its guides

usage: rpc_test.py PROGRAM [ARGUMENT...]

PROGRAM is rpc_host. It is started with PLX_RPC_SOCKET naming the socket it must serve,
and a pipe on its standard input, where it takes orders; it should end when that is closed.
It is started twice: inline, and with a reactor on the last core if there are two.
"""

import contextlib
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
            "conf_set", "save_config", "load_config", "reactor_get_list", "worker_get_list",
            "ep_get_list", "device_get_list", "device_fail", "tag_get_stats", "rndv_get_stats",
            "mem_get_stats", "worker_move", "rma_get_stats", "am_get_stats", "stream_get_stats",
            "metrics_get", "worker_get_waits"}
OF_WORKERS = ["worker_get_list", "worker_get_waits", "ep_get_list", "device_get_list", "tag_get_stats",
              "rndv_get_stats", "rma_get_stats", "am_get_stats", "stream_get_stats"]
SHOWING = OF_WORKERS + ["reactor_get_list", "mem_get_stats"]
WAIT_S = 30


class Program:
    def __init__(self, argv, lcore=None):
        self.lcore = lcore
        self.folder = tempfile.mkdtemp(prefix="plx_rpc_test_")
        self.path = os.path.join(self.folder, "rpc.sock")
        env = {key: value for key, value in os.environ.items()
               if not key.startswith(("PLX_", "UCX_"))}
        env["PLX_RPC_SOCKET"] = self.path
        if lcore is not None:
            env["PLX_REACTOR"] = f"lcore:{lcore}"
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

    def order(self, letter):
        self.process.stdin.write(letter)
        self.process.stdin.flush()

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


class Case(unittest.TestCase):
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

    def until(self, what):
        """The first true result of what()."""
        end = time.monotonic() + WAIT_S
        while True:
            found = what()
            if found:
                return found
            self.assertLess(time.monotonic(), end, "it did not come")
            time.sleep(0.01)

    def tool(self, *args, code=0):
        run = subprocess.run([sys.executable, *map(str, args)], capture_output=True, text=True,
                             timeout=30, check=False,
                             env={**os.environ, "PLX_RPC_SOCKET": program.path})
        self.assertEqual(run.returncode, code, run.stderr)
        return run.stdout


class RpcTest(Case):
    def test_a_missing_folder_is_told_once_and_by_its_name(self):
        env = {**os.environ, "PLX_RPC_SOCKET": program.folder + "/none/%p.sock"}
        run = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                             stdout=subprocess.DEVNULL, timeout=START_S, check=False, env=env)
        self.assertEqual(run.returncode, 0, run.stderr)
        told = [line for line in run.stderr.splitlines() if "socket" in line]
        self.assertEqual(len(told), 1, run.stderr)
        self.assertRegex(told[0], r"/none/\d+\.sock: its folder does not exist$")

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

    def test_wrong_parameters_are_told_in_words(self):
        for method, params, message in (
                ("log_set_level", None, 'parameter "level" is missing'),
                ("conf_set", {"name": "log.level"}, 'parameter "value" is missing'),
                ("conf_get", {"naem": "log.level"}, 'it has no parameter "naem"'),
                ("conf_get", {"name": 3}, 'parameter "name" must be string, not integer'),
                ("save_config", {"changed": "x"}, 'parameter "changed" must be true or false, not string'),
                ("worker_move", {"worker": "a", "lcore": "b"}, "a parameter must be integer, not string")):
            self.assertEqual(self.refused(-32602, method, params)["message"], message)

    @unittest.skipUnless((TOOLS / "plx-rpc").exists(), "no usertools here")
    def test_plx_rpc_describes_each_method(self):
        tool = TOOLS / "plx-rpc"
        for row in self.result("rpc_get_methods"):
            out = self.tool(tool, row["name"], "--help")
            self.assertIn(f"usage: plx-rpc [-s SOCKET] {row['name']}", out)
            self.assertIn(row["help"], out)
        self.assertIn("conf_set name=... value=...\n", self.tool(tool, "conf_set", "-h"))
        self.assertIn("worker_get_waits [worker=...] [timeout_ms=...]\n", self.tool(tool, "--help", "worker_get_waits"))
        run = subprocess.run([sys.executable, tool, "conf_gte", "--help"], capture_output=True, text=True,
                             env={**os.environ, "PLX_RPC_SOCKET": program.path})
        self.assertEqual((run.returncode, run.stderr.splitlines()[0]),
                         (2, "plx-rpc: the process has no method conf_gte; plx-rpc without a method lists them"))

    def offered(self, *words):
        """What bash offers for the last of these words."""
        code = '. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _pollux "$1"; printf "%s\\n" "${COMPREPLY[@]}"'
        env = {**os.environ, "PATH": f"{TOOLS}:{os.environ['PATH']}", "PLX_RPC_SOCKET": program.path}
        run = subprocess.run(["bash", "-c", code, "bash", TOOLS / "completion.bash", "plx-rpc", *words],
                             capture_output=True, text=True, env=env, timeout=30, check=False)
        return run.stdout.split()

    @unittest.skipUnless((TOOLS / "completion.bash").exists() and shutil.which("bash"), "no completion here")
    def test_bash_completes_methods_parameters_and_settings(self):
        self.assertEqual(self.offered("worker_get_w"), ["worker_get_waits"])
        self.assertEqual(self.offered("wait"), ["waits"])
        self.assertEqual(self.offered("-s", program.path, "worker_move", "l"), ["lcore="])
        self.assertEqual(self.offered("conf_set", ""), ["name=", "value="])
        self.assertEqual(self.offered("conf_get", "name", "=", "log.l"), ["log.level"])
        self.assertEqual(self.offered("waits", ""), [])
        self.assertEqual(self.offered("--hosts", "node1", "wait"), ["waits"])
        self.assertEqual(self.offered("waits", "--launcher", "ssh", "--hos"), ["--hosts"])
        self.assertEqual(self.offered("--answer-timeout", "3", "wait"), ["waits"])
        self.assertEqual(self.offered("waits", "--hosts", f"@{TOOLS}/completion.b"), [f"@{TOOLS}/completion.bash"])

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


def is_count(value):
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


class ObjectTest(Case):
    """The objects that rpc_host says it has."""

    def setUp(self):
        super().setUp()
        self.until(lambda: self.failed_eps())
        self.mode = "inline" if program.lcore is None else "dedicated"

    def failed_eps(self):
        return [ep for ep in self.result("ep_get_list") if ep["state"] == "failed"]

    def counters(self, method, index=0):
        return self.result(method)[index]["counters"]

    def check_counters(self, counters, *some):
        self.assertLessEqual(set(some), set(counters))
        self.assertTrue(all(map(is_count, counters.values())), counters)

    def check_uid(self, uid):
        self.assertRegex(uid, "^[0-9a-f]{16}$")

    def test_reactors_are_those_of_the_setting(self):
        reactors = self.result("reactor_get_list")
        self.assertEqual([row["lcore"] for row in reactors],
                         [] if program.lcore is None else [program.lcore])
        for row in reactors:
            self.assertEqual(set(row), {"lcore", "beside", "pollers", "busy_share", "counters"})
            self.assertEqual(row["pollers"], 2)
            self.assertTrue(0 < row["busy_share"] < 1, row)
            self.check_counters(row["counters"], "turns", "busy_turns", "busy_ticks",
                                "idle_ticks", "idles")
            self.assertGreater(row["counters"]["turns"], 0)

    def test_workers_show_what_they_hold(self):
        # The socket is there before the program has all it shows.
        def busy():
            workers = self.result("worker_get_list")
            return len(workers) == 2 and all(w["counters"]["tag_recvs"] for w in workers) and workers

        workers = self.until(busy)
        self.assertEqual([w["id"] for w in workers[:2]], [0, 1])
        for w in workers:
            self.assertEqual(set(w), {"id", "name", "uid", "mode", "reactor", "devices", "eps",
                                      "kept_bytes", "reqs", "counters", "ep_counters",
                                      "chan_counters", "cm_counters"})
            self.check_uid(w["uid"])
            self.assertEqual((w["mode"], w["devices"]), (self.mode, ["shm", "net_tcp"]))
            self.assertEqual(w["reactor"], program.lcore)
            self.assertTrue(w["name"])
            self.assertEqual(set(w["reqs"]), {"used", "made", "bytes"})
            self.check_counters(w["reqs"])
            self.assertGreaterEqual(w["reqs"]["made"], w["reqs"]["used"])
            self.check_counters(w["ep_counters"], "eps", "eps_failed", "tx_pending", "tx_failed")
            self.check_counters(w["counters"], "turns", "busy_turns", "tag_sends", "tag_recvs")
            self.assertGreater(w["counters"]["tag_recvs"], 0)
        self.assertEqual([w["eps"] for w in workers], [3, 1])
        self.assertEqual([w["ep_counters"]["eps_failed"] for w in workers], [1, 0])
        self.assertGreaterEqual(workers[0]["reqs"]["used"], 3)
        self.assertGreaterEqual(workers[1]["kept_bytes"], 1000)

    def test_eps_show_their_state_and_whom_they_reach(self):
        uids = [device["uid"] for device in self.result("device_get_list") if device["device"] == "shm"]
        eps = self.result("ep_get_list")
        for ep in eps:
            self.assertEqual(set(ep), {"worker", "peer", "device", "port", "state", "err", "handles",
                                       "pending", "waits", "kept_msgs", "mtu"})
            self.check_uid(ep["peer"])
            self.assertEqual((ep["device"], ep["port"]), ("shm", None))
            self.assertIsInstance(ep["pending"], bool)
            for key in ("handles", "waits", "kept_msgs", "mtu"):
                self.assertTrue(is_count(ep[key]), ep)
            self.assertEqual(ep["err"] is not None, ep["state"] == "failed")
        known = {(ep["worker"], ep["peer"]): (ep["state"], ep["handles"]) for ep in eps}
        self.assertEqual(len(known), len(eps))
        self.assertEqual(known.pop((0, uids[1])), ("connected", 2))
        self.assertEqual(known.pop((1, uids[0])), ("connected", 1))
        self.assertEqual(known.pop((0, uids[0])), ("new", 1))
        self.assertEqual(list(known.values()), [("failed", 1)])
        self.assertEqual([ep["err"] for ep in self.failed_eps()], ["Connection reset by peer"])

    def test_devices_show_each_worker_s_queue(self):
        devices = self.result("device_get_list")
        self.assertEqual([(d["worker"], d["device"]) for d in devices],
                         [(worker, device) for worker in (0, 1) for device in ("shm", "net_tcp")])
        self.assertEqual(len({device["uid"] for device in devices}), 4)
        for device in devices:
            self.assertEqual(set(device), {"worker", "device", "port", "uid", "counters"})
            self.assertIsNone(device["port"])
            self.check_uid(device["uid"])
            self.check_counters(device["counters"], "tx_msgs", "tx_bytes", "rx_msgs", "rx_bytes")
        for device in devices[1::2]: # shared memory reaches all peers
            self.assertEqual(device["counters"]["tx_msgs"], 0)
        for device in devices[::2]:
            self.assertGreater(device["counters"]["tx_msgs"], 0)
            # The large messages are sent from memory that UCP allocated.
            self.assertGreater(device["counters"]["rma_mapped"], 0)
        self.assertEqual([d["counters"]["peers_dead"] for d in devices[::2]], [1, 0])

    def test_matching_shows_what_waits(self):
        tags = self.result("tag_get_stats")
        self.assertEqual([set(tag) for tag in tags], [{"worker", "counters", "offload"}] * 2)
        self.assertEqual([tag["worker"] for tag in tags], [0, 1])
        for tag in tags:
            self.check_counters(tag["counters"], "posted", "posted_max", "kept", "classes")
            self.assertEqual(set(tag["offload"]), {"on", "counters"})
            self.assertIs(tag["offload"]["on"], False)
            self.check_counters(tag["offload"]["counters"], "posts", "posted", "consumed", "soft")
        self.assertGreaterEqual(tags[0]["counters"]["posted"], 3)
        self.assertGreaterEqual(tags[1]["counters"]["kept"], 1)

    def test_waits_show_posted_receives_and_unexpected_messages(self):
        rows = self.result("worker_get_waits")
        self.assertEqual([row["worker"] for row in rows], [0, 1])
        for row in rows:
            self.assertEqual(set(row), {"worker", "name", "mode", "uids", "answered", "turn_age_s", "quiet_s", "n_waits",
                                        "waits", "n_unexpected", "unexpected"})
            self.assertEqual((row["mode"], row["answered"]), (self.mode, True))
            self.assertLess(row["turn_age_s"], WAIT_S)
        recvs = [wait for wait in rows[0]["waits"] if int(wait["tag"], 16) >= 3]
        self.assertEqual([(w["op"], w["tag"], w["mask"], w["bytes"], w["done"], w["peer"], w["state"])
                          for w in recvs],
                         [("tag_recv", f"0x{3 + i:x}", "0x" + 16 * "f", 64, 0, None, "no message has come")
                          for i in range(3)])
        self.assertTrue(all(0 <= w["age_s"] < 600 for w in recvs), recvs)
        kept = [m for m in rows[1]["unexpected"] if m["bytes"] == 1000]
        uids = [d["uid"] for d in self.result("device_get_list", {"worker": 0})]
        self.assertEqual([(m["tag"], m["peer"] in uids, m["state"]) for m in kept], [("0x2", True, "data is here")])
        for wrong in (0, 5001, "1", 1.5):
            self.refused(-32602, "worker_get_waits", {"timeout_ms": wrong})

    def test_a_worker_without_turns_has_no_list_of_waits(self):
        if program.lcore is not None:
            return
        with self.ordered(b"p"):
            time.sleep(0.3)
            begin = time.monotonic()
            for row in self.until(lambda: (r := self.result("worker_get_waits", {"timeout_ms": 100})) and
                                  not r[0]["answered"] and r):
                self.assertIs(row["answered"], False)
                self.assertNotIn("waits", row)
                self.assertGreater(row["turn_age_s"], 0.2)
            self.assertLess(time.monotonic() - begin, 5)
        self.until(lambda: all(row["answered"] for row in self.result("worker_get_waits")))

    def test_rendezvous_counts_large_messages(self):
        before = self.counters("rndv_get_stats", 1)
        self.check_counters(before, "sends", "recvs", "get", "split", "frag", "errors")
        self.until(lambda: self.counters("rndv_get_stats", 1)["recvs"] > before["recvs"] + 1)
        for row in self.result("rndv_get_stats"):
            self.assertEqual(set(row), {"worker", "scheme", "counters"})
            self.assertEqual(row["scheme"], "auto")
            self.assertEqual(row["counters"]["errors"], 0)

    def test_memory_shows_the_heap(self):
        mem = self.result("mem_get_stats")
        self.assertEqual(set(mem), {"heap_bytes", "heap_huge_bytes"})
        self.assertGreater(mem["heap_bytes"], 0)
        self.assertTrue(0 <= mem["heap_huge_bytes"] <= mem["heap_bytes"], mem)

    def test_one_worker_can_be_asked_for_and_an_unknown_one_is_refused(self):
        for method in OF_WORKERS:
            for row in self.result(method, {"worker": 1}):
                self.assertEqual(row.get("worker", row.get("id")), 1)
            for unknown in (77777, -1, 2 ** 32, 2 ** 32 + 1):
                error = self.refused(-32602, method, {"worker": unknown})
                self.assertEqual(error["message"], f"no worker {unknown}")
            for wrong in ("0", None, True, 1.0, [], {}):
                self.refused(-32602, method, {"worker": wrong})
            self.refused(-32602, method, {"wroker": 0})
        for method in ("reactor_get_list", "mem_get_stats"):
            self.refused(-32602, method, {"worker": 0})

    def test_counters_never_go_back(self):
        for _ in range(20):
            before = self.counters("worker_get_list")
            after = self.counters("worker_get_list")
            for name, value in before.items():
                self.assertGreaterEqual(after[name], value, name)

    def turns(self):
        return [w["counters"]["turns"] for w in self.result("worker_get_list")]

    @contextlib.contextmanager
    def ordered(self, letter):
        """The program follows an order, until it is told to go on."""
        program.order(letter)
        try:
            yield
        finally:
            program.order(b"g")

    def recvs(self):
        return self.counters("worker_get_list")["tag_recvs"]

    def test_workers_without_turns_are_shown(self):
        seen = []

        def stopped():
            time.sleep(0.1)
            seen.append(self.recvs())
            return len(seen) > 2 and len(set(seen[-3:])) == 1

        with self.ordered(b"p"):
            self.until(stopped)
            turns = self.turns()
            begin = time.monotonic()
            for method in SHOWING:
                self.assertTrue(self.result(method) or method == "reactor_get_list")
            self.assertLess(time.monotonic() - begin, 5)
            if program.lcore is None:
                self.assertEqual(self.turns(), turns)
        self.until(lambda: self.recvs() > seen[-1])

    def test_workers_come_and_go_while_they_are_shown(self):
        met = set()

        def many():
            for method in SHOWING:
                rows = self.result(method)
                if method == "worker_get_list":
                    ids = [w["id"] for w in rows]
                    self.assertEqual(ids, sorted(set(ids)))
                    self.assertEqual(ids[:2], [0, 1])
                    met.update(ids)
            return len(met) > 12

        with self.ordered(b"m"):
            self.until(many)
        self.until(lambda: len(self.result("worker_get_list")) == 2)

    def test_the_idle_policy_is_in_force_at_once(self):
        settings = ("reactor.idle", "reactor.idle_turns")
        before = {name: self.result("conf_get", {"name": name})["value"] for name in settings}
        for name in settings:
            self.addCleanup(self.result, "conf_set", {"name": name, "value": before[name]})
        # Not auto: that one waits for fewer turns when others want the core.
        self.result("load_config", {"reactor": {"idle": "yield", "idle_turns": 1 << 30}})
        if program.lcore is not None:
            first = self.counters("reactor_get_list")
            self.until(lambda: self.counters("reactor_get_list")["turns"] > first["turns"] + 9999)
            # One that had begun when the setting changed.
            self.assertLessEqual(self.counters("reactor_get_list")["idles"], first["idles"] + 1)
        self.result("load_config", {"reactor": {"idle": "sleep", "idle_turns": 1}})
        if program.lcore is not None:
            self.until(self.sleeps)

    def test_a_worker_moves_between_reactors(self):
        self.refused(-32602, "worker_move", {"worker": 77, "lcore": 0})
        self.refused(-32602, "worker_move", {"worker": 0})
        for lcore in (-1, 4096, 1 << 40):
            self.refused(-32000, "worker_move", {"worker": 0, "lcore": lcore})
        if program.lcore is None:
            self.refused(-32000, "worker_move", {"worker": 0, "lcore": 0})
            return
        # Where it is it may stay, and it goes on: a second reactor is the unit test's.
        self.assertIs(self.result("worker_move", {"worker": 0, "lcore": program.lcore}), True)
        before = self.turns()
        self.until(lambda: self.turns()[0] > before[0])

    def sleeps_while_posting(self, worker):
        """How often the reactor slept while 100 receives were posted, and all of them seen."""
        def recvs():
            return self.result("worker_get_list")[worker]["counters"]["tag_recvs"]

        with self.ordered(b"p"):
            time.sleep(0.05)
            first = self.counters("reactor_get_list")["sleeps"]
            before = recvs()
            program.order(b"01"[worker:worker + 1])
            self.until(lambda: recvs() >= before + 100)
            return self.counters("reactor_get_list")["sleeps"] - first

    def test_a_receive_wakes_the_reactor_only_where_messages_are_kept(self):
        if program.lcore is None:
            return
        before = self.result("conf_get", {"name": "reactor.idle"})["value"]
        self.addCleanup(self.result, "conf_set", {"name": "reactor.idle", "value": before})
        self.result("conf_set", {"name": "reactor.idle", "value": "sleep"})

        def differ():
            # Worker 1 keeps a message: each receive may be for it. Our looks wake the reactor too.
            sleeps = [self.sleeps_while_posting(worker) for worker in (0, 1)]
            return sleeps[0] < sleeps[1] / 2

        self.until(differ) # what has no core does not sleep either

    def sleeps(self):
        """Whether the talk of its workers wakes it, and it does not poll in between."""
        time.sleep(0.01)
        begin = time.monotonic()
        first = self.counters("reactor_get_list")
        time.sleep(0.2)
        last = self.counters("reactor_get_list")
        took = time.monotonic() - begin
        idle = (last["turns"] - last["busy_turns"]) - (first["turns"] - first["busy_turns"])
        return idle < took / 1e-6 / 10 and last["sleeps"] > first["sleeps"] + idle / 10

    @unittest.skipUnless((TOOLS / "plx-top").exists(), "no usertools here")
    def test_plx_top_shows_workers_eps_and_depth(self):
        tool = TOOLS / "plx-top"
        out = self.tool(tool, "--once")
        self.assertRegex(out, rf"\nworker 0 \S+ +mode +{self.mode}\n")
        self.assertRegex(out, r"\nworker 1 \S+ +turns +[\d,]+\n")
        self.assertRegex(out, r"\ntag 0 +posted +[3-9]\n")
        self.assertRegex(out, r"\ntag 1 +kept +[1-9]\n")
        self.assertRegex(out, r"\nep 0 shm [0-9a-f]{16} +state +failed\n")
        self.assertRegex(out, r"\ndevice 1 shm +tx_msgs +[\d,]+\n")
        self.assertRegex(out, r"\nmem +heap_bytes +[\d,]+\n")
        if program.lcore is not None:
            self.assertRegex(out, rf"\nreactor {program.lcore} +busy_share +0\.\d+\n")
        out = self.tool(tool, "-n", "2", "-i", "0.2")
        self.assertRegex(out, r"\nworker 0 \S+ +turns +[\d,]+ +[\d,]+\n")


def setting_line(row):
    env = "PLX_" + row["name"].upper().replace(".", "_")
    default = f"`{row['default']}`" if row["default"] else "(empty)"
    runtime = "yes" if row["runtime"] else "no"
    return (f"| `{row['name']}` | `{env}` | {row['unit']} | {default} | {row['range']} | "
            f"{runtime} | {row['help']} |")


def run(argv, lcore, cases):
    """Whether the cases hold for one start of the program."""
    global program
    print("inline" if lcore is None else f"reactor on core {lcore}", file=sys.stderr)
    program = Program(argv, lcore)
    suite = unittest.TestSuite(map(unittest.defaultTestLoader.loadTestsFromTestCase, cases))
    try:
        ok = unittest.TextTestRunner().run(suite).wasSuccessful()
    finally:
        clean = program.stop()
    if not clean:
        print("the program did not end cleanly, or left its socket", file=sys.stderr)
    return ok and clean


def main():
    if len(sys.argv) < 2:
        print(__doc__, file=sys.stderr)
        return 2
    cores = sorted(os.sched_getaffinity(0))
    ok = run(sys.argv[1:], None, [RpcTest, ObjectTest])
    if len(cores) > 1:
        ok = run(sys.argv[1:], cores[-1], [ObjectTest]) and ok
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
