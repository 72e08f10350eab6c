# SPDX-License-Identifier: Apache-2.0
import json
import unittest

import samples  # noqa: F401 (the path to the modules)
from sidebyside import load
from sidebyside.load import LoadClient
from sidebyside.processes import Failure
from sidebyside.profiles import Load

REPORT = {
    "calls": 2000,
    "errors": 1,
    "seconds": 0.1,
    "rate": 20000.0,
    "latency_us": {"p50": 40.5, "p99.9": 100.0},
    "cache_status": {"hit": 1999, "miss": 1},
    "server_cpu_us_per_call": 15.0,
    "client_cpu_us_per_call": 8.0,
}


class Reports(unittest.TestCase):
    def test_are_read(self):
        run = load.parse(json.dumps(REPORT))
        self.assertEqual(run["cpu_us"], 15.0)
        self.assertEqual(run["errors"], 1)
        self.assertEqual(run["statuses"], {"hit": 1999, "miss": 1})
        self.assertEqual(run["latency"]["p99.9"], 100.0)

    def test_anything_else_is_a_failure(self):
        for text in ("", "[]", "{}", json.dumps({**REPORT, "calls": None})):
            with self.assertRaises(Failure):
                load.parse(text)


class Commands(unittest.TestCase):
    def test_name_every_target_and_process(self):
        client = LoadClient("load", {"13k": "a13", "small": "asmall"})
        command = client.command(
            ["x:1", "x:2"], "4k", Load(16, 4), keys=9, seconds=0.25, pids=[7, 8]
        )
        text = " ".join(command)
        self.assertIn("--target x:1 --target x:2", text)
        self.assertIn("--server-pid 7 --server-pid 8", text)
        self.assertIn("--duration 250ms", text)
        self.assertIn("--expect-response a13", text)
        self.assertIn("--connections 16 --streams 4", text)

    def test_small_requests_get_small_answers(self):
        client = LoadClient("load", {"13k": "a13", "small": "asmall"})
        command = client.command(["x:1"], "small", Load(1, 1), keys=1)
        self.assertIn("asmall", command)
