# SPDX-License-Identifier: Apache-2.0
"""A real Prometheus scrapes a real daemon under load: every expression of
dashboard and alerts returns data, nothing fires while all is well, and what
should fire does when the function goes, and then the daemon."""
import json
import math
import os
import re
import time
import unittest
import urllib.error
import urllib.parse
import urllib.request

import pending
import promql
import tools
from sidebyside.processes import (Child, Nursery, free_port, run_tool,
                                  wait_for_port)

# Series of these appear with their first value, so a daemon that is well has
# few of them. The label, and the values that it can have.
CODES = set("""OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND
    ALREADY_EXISTS PERMISSION_DENIED RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED
    OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS
    UNAUTHENTICATED""".split())
LATER = {
    "fncache_responses_total": ("code", CODES),
    "fncache_upstream_requests_total": ("code", CODES),
    "fncache_stale_if_error_total": ("code", CODES),
    "fncache_connections_ended_total": (
        "reason", {"done", "peer_left", "error", "handshake", "not_http2", "timeout",
                   "protocol", "too_much", "idle", "closed"})}

# Expressions that return nothing here, and why that is right.
NOTHING = {}

# A proxy of the environment has no business on loopback.
urllib.request.install_opener(
    urllib.request.build_opener(urllib.request.ProxyHandler({})))

LISTENING = r"listening on 127\.0\.0\.1:(\d+)"


class Live(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        binary, prometheus = tools.fncache(), tools.need("prometheus")
        cls.nursery = Nursery()
        cls.addClassCleanup(cls.nursery.__exit__)

        def start(*command):
            return cls.nursery.adopt(Child(command))
        folder = str(cls.nursery.directory)

        cls.functions = {
            name: start(binary, "function", "--insecure", "--listen", "127.0.0.1:0",
                        "--cost", "sleep=20ms", "--ttl", "60s")
            for name in ("function-buckets", "function-policy")}
        upstream = {name: child.wait_for_line(LISTENING)[0][1]
                    for name, child in cls.functions.items()}

        config = os.path.join(folder, "fncache.yaml")
        with open(config, "w", encoding="utf-8") as file:
            json.dump({
                "tls_dir": tools.path("tests/data/certificates/server"),
                "admin": "127.0.0.1:0", "admin_socket": "", "generation": "one",
                "cache": {"dir": os.path.join(folder, "cache"), "memory": "64KiB",
                          "disk": "16MiB"},
                "mask": ["@versions", "@times", "@composite-conditions"],
                "functions": [
                    {"name": name, "listen": "127.0.0.1:0",
                     "upstream": f"127.0.0.1:{port}", "vary": "on"}
                    for name, port in upstream.items()]}, file)
        cls.daemon = start(binary, "serve", "--config", config)
        ports = [match[1] for match in cls.daemon.wait_for_line(LISTENING, count=3)]
        cls.admin = cls.daemon.wait_for_line(LISTENING + r" \(admin")[0][1]
        ports.remove(cls.admin)
        targets = dict(zip(upstream, ports))

        # A second daemon, of the last function's calls, has the shared tier.
        server = os.path.join(folder, "redis-server")
        os.symlink(tools.need("redis-check-rdb"), server)
        start(server, "--port", "0", "--unixsocket", f"{server}.sock", "--save", "",
              "--appendonly", "no", "--dir", folder)
        cls.wait_until(lambda: os.path.exists(f"{server}.sock"))
        secret = os.path.join(folder, "secret")
        with open(secret, "w", encoding="utf-8") as file:
            file.write("s" * 32)
        name = list(upstream)[-1]
        cls.sharing = start(
            binary, "serve", "--tls-dir", tools.path("tests/data/certificates/server"),
            "--function", name, "--upstream", f"127.0.0.1:{upstream[name]}",
            "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--admin-socket=",
            "--generation", "one", "--cache-memory", "64KiB",
            # A busy machine can miss the default of 50ms, and an alert fires.
            "--shared-url", f"unix:{server}.sock", "--shared-secret-file", secret,
            "--shared-timeout", "1s")
        ports = [match[1] for match in cls.sharing.wait_for_line(LISTENING, count=2)]
        cls.shared_admin = cls.sharing.wait_for_line(LISTENING + r" \(admin")[0][1]
        ports.remove(cls.shared_admin)
        targets[name], = ports
        cls.targets = [option for name, port in targets.items()
                       for option in ("--function", f"{name}=localhost:{port}")]

        rules = tools.yaml.safe_load(tools.read("deploy/prometheus/fncache.rules.yaml"))
        for group in rules["groups"]:
            for rule in group["rules"]:
                rule["for"] = "0s"
        with open(os.path.join(folder, "rules.yaml"), "w", encoding="utf-8") as file:
            json.dump(rules, file)
        with open(os.path.join(folder, "prometheus.yaml"), "w", encoding="utf-8") as file:
            json.dump({
                "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
                "rule_files": ["rules.yaml"],
                "scrape_configs": [{
                    "job_name": "fncache", "static_configs": [
                        {"targets": [f"127.0.0.1:{cls.admin}",
                                     f"127.0.0.1:{cls.shared_admin}"]}]}]}, file)
        cls.port = free_port()
        wait_for_port(start(
            prometheus, f"--config.file={folder}/prometheus.yaml",
            f"--storage.tsdb.path={folder}/tsdb", "--log.level=warn",
            f"--web.listen-address=127.0.0.1:{cls.port}"), cls.port)

        cls.wait_until(cls.ready)
        # A rate needs two scrapes.
        cls.wait_until(lambda: len(cls.values(
            "count_over_time(fncache_ready[1m]) > 1")) == 2)
        # Histograms appear with their first value, and have a rate from the next
        # scrape on: the first composite makes them appear, others make them rise.
        for composites, duration, calls in (1, "1s", 1), (40, "8s", 100):
            done = run_tool(cls.loading("--composites", str(composites), "--rate", "25",
                                        "--duration", duration), 60)
            assert done.returncode == 0, done.stdout + done.stderr
            cls.wait_until(lambda calls=calls: cls.values(
                f"sum(fncache_requests_total) > {calls}"))

    @classmethod
    def loading(cls, *arguments):
        return [tools.fncache(), "load", tools.path("examples/xr.yaml"),
                tools.path("examples/composition.yaml"), *cls.targets, "--tls-dir",
                tools.path("tests/data/certificates/client"), "--progress", "none",
                *arguments]

    @classmethod
    def ready(cls):
        """It listens, and answers 503, before it has read its storage."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{cls.port}/-/ready", timeout=10):
                return True
        except urllib.error.HTTPError:
            return False

    @classmethod
    def ask(cls, what, **parameters):
        url = (f"http://127.0.0.1:{cls.port}/api/v1/{what}?"
               + urllib.parse.urlencode(parameters))
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from error

    @classmethod
    def values(cls, expression):
        result = cls.ask("query", query=expression)["result"]
        return [float(sample["value"][1]) for sample in result]

    @classmethod
    def firing(cls):
        return {alert["labels"]["alertname"] for alert in cls.ask("alerts")["alerts"]}

    @staticmethod
    def wait_until(holds, seconds=120):
        deadline = time.monotonic() + seconds
        while not holds():
            if time.monotonic() > deadline:
                raise AssertionError("it never came")
            time.sleep(0.2)

    def check(self, name, expression):
        values = self.values(expression)
        if promql.metrics(expression) & pending.METRICS:
            return
        if name in NOTHING:
            self.assertEqual(values, [], f"{name}: it returns something now")
            return
        self.assertTrue([v for v in values if math.isfinite(v)],
                        f"{name}: no data for {expression}")

    def test_1_every_query_of_the_dashboard_returns_data(self):
        queries = list(promql.panels())
        self.assertGreater(len(queries), 40)
        for name, expression in queries:
            with self.subTest(name):
                self.check(name, promql.of_all(expression))

    def test_2_every_alerts_operands_return_data(self):
        for rule in promql.rules():
            with self.subTest(rule["alert"]):
                self.check(rule["alert"], promql.always(rule["expr"]))

    # A case that feeds a rule with a label value that no daemon has proves nothing.
    def test_3_the_rules_are_tried_with_series_that_there_are(self):
        tests = tools.yaml.safe_load(tools.read(
            "deploy/prometheus/fncache.rules.test.yaml"))["tests"]
        series = {one["series"] for test in tests for one in test["input_series"]}
        self.assertGreater(len(series), 20)
        for one in series:
            metric, labels = one.rstrip("}").split("{")
            if metric in pending.METRICS:
                continue
            kept = [label for label in labels.split(", ") if not label.startswith(
                ("job=", "instance=", "function_name=", "version="))]
            with self.subTest(one):
                if metric in LATER:
                    label, values = LATER[metric]
                    self.assertIn(kept, [[f'{label}="{value}"'] for value in values])
                    continue
                self.assertTrue(self.values(f"{metric}{{{', '.join(kept)}}}"))

    def test_3_what_appears_later_has_the_values_that_the_page_names(self):
        page = tools.read("docs/metrics.md")
        row, = [line for line in page.splitlines()
                if line.startswith("| `fncache_connections_ended_total`")]
        self.assertEqual(set(re.findall(r"[a-z_0-9]+", row.split("(")[1])),
                         LATER["fncache_connections_ended_total"][1])
        for metric in LATER:
            found = self.ask("label/" + LATER[metric][0] + "/values",
                             **{"match[]": metric})
            self.assertLessEqual(set(found), LATER[metric][1])

    def test_3_the_variables_find_functions_and_daemons(self):
        self.assertEqual(
            self.ask("label/function_name/values", **{"match[]": "fncache_requests_total"}),
            sorted(self.functions))
        self.assertEqual(
            self.ask("label/instance/values", **{"match[]": "fncache_build_info"}),
            sorted([f"127.0.0.1:{self.admin}", f"127.0.0.1:{self.shared_admin}"]))

    def test_4_while_all_is_well_nothing_fires(self):
        groups = self.ask("rules")["groups"]
        for group in groups:
            for rule in group["rules"]:
                self.assertEqual(rule["health"], "ok", rule.get("lastError"))
        # 64 KiB of memory for 40 composites are too few on purpose, and what a
        # hit takes on a machine that others use is theirs to say.
        self.assertEqual(self.firing() - {"FncacheEvictionStorm", "FncacheHitsSlow"},
                         set())
        self.assertGreater(self.values("sum(rate(fncache_requests_total{outcome=\"hit\"}[1m]))")[0], 0)

    def test_5_a_function_that_goes_is_told_and_then_the_daemon(self):
        self.nursery.end(self.functions["function-buckets"], hard=True)
        caller = self.nursery.adopt(Child(self.loading(
            "--composites", "3", "--seed", "7", "--duration", "30s",
            "--reconcile-timeout", "5s")))
        self.wait_until(lambda: "FncacheFunctionUnreachable" in self.firing())
        at = self.ask("query", query='ALERTS{alertname="FncacheFunctionUnreachable"}')
        self.assertEqual({sample["metric"]["function_name"] for sample in at["result"]},
                         {"function-buckets"})
        self.nursery.end(caller, hard=True)
        self.nursery.end(self.daemon, hard=True)
        self.wait_until(lambda: "FncacheDown" in self.firing())


if __name__ == "__main__":
    unittest.main()
