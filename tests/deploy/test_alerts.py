# SPDX-License-Identifier: Apache-2.0
"""Alerts and dashboard: well made, of metrics that exist, each alert tried and
told of in docs/runbooks.md."""
import json
import re
import unittest

import pending
import promql
import tools

RULES = tools.path("deploy/prometheus/fncache.rules.yaml")
TESTS = tools.path("deploy/prometheus/fncache.rules.test.yaml")
PAGE = "https://example.org/fncache/docs/runbooks.md"


def runbooks():
    """Heading -> paragraph of the section Runbooks."""
    section = tools.read("docs/runbooks.md").split("\n## Runbooks\n", 1)
    if len(section) < 2:
        return {}
    text = re.split(r"^## ", section[1], flags=re.M)[0]
    parts = re.split(r"^### (\w+)\n", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


class Expressions(unittest.TestCase):
    """What both name is there."""

    def test_metrics_exist(self):
        known = set(promql.catalogue()) | promql.FOREIGN | pending.METRICS
        self.assertGreater(len(known), 60)
        for name, expression in self.expressions():
            with self.subTest(name):
                named = promql.metrics(expression)
                self.assertTrue(named, expression)
                self.assertEqual(named - known, set())

    def test_labels_exist(self):
        known = promql.catalogue()
        labels = set().union(*(of for _, of in known.values())) | promql.TARGET_LABELS
        for name, expression in self.expressions():
            with self.subTest(name):
                for metric, label in promql.matched_labels(expression):
                    if metric in known:
                        self.assertIn(label, known[metric][1] | promql.TARGET_LABELS,
                                      metric)
                self.assertEqual(set(promql.grouped_labels(expression)) - labels, set())

    def test_pending_metrics_are_not_there_yet(self):
        self.assertEqual(pending.METRICS & set(promql.catalogue()), set(),
                         "these are there now: take them out of pending.py")

    def expressions(self):
        found = [(f"alert {rule['alert']}", rule["expr"]) for rule in promql.rules()]
        return found + list(promql.panels())


class Alerts(unittest.TestCase):
    def test_promtool_accepts_the_rules(self):
        done = tools.run(tools.need("promtool"), "check", "rules", RULES)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_each_fires_when_it_should_and_not_when_not(self):
        done = tools.run(tools.need("promtool"), "test", "rules", TESTS)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        tried = {}
        for test in tools.yaml.safe_load(tools.read(
                "deploy/prometheus/fncache.rules.test.yaml"))["tests"]:
            for case in test["alert_rule_test"]:
                tried.setdefault(case["alertname"], set()).add(bool(case["exp_alerts"]))
        self.assertEqual(tried, {rule["alert"]: {True, False}
                                 for rule in promql.rules()})

    def test_each_says_what_is_wrong_and_where_to_read_on(self):
        names = [rule["alert"] for rule in promql.rules()]
        self.assertEqual(len(set(names)), len(names))
        for rule in promql.rules():
            with self.subTest(rule["alert"]):
                self.assertIn(rule["labels"]["severity"], ("critical", "warning"))
                told = rule["annotations"]
                self.assertEqual(set(told), {"summary", "description", "runbook_url"})
                self.assertEqual(told["runbook_url"],
                                 f"{PAGE}#{rule['alert'].lower()}")

    def test_each_has_its_runbook_and_no_runbook_is_left_over(self):
        told = runbooks()
        self.assertEqual(set(told), {rule["alert"] for rule in promql.rules()})
        for name, text in told.items():
            with self.subTest(name):
                for part in ("**Symptom.**", "**Check.**", "**Do.**"):
                    self.assertIn(part, text)

    def test_the_chart_brings_the_same_rules_with_other_addresses(self):
        values = tools.path("deploy/chart/examples/everything.yaml")
        made = next(o for o in tools.objects(values) if o["kind"] == "PrometheusRule")
        text = json.dumps(made["spec"])
        self.assertNotIn("example.org/fncache/docs", text)
        self.assertEqual(
            json.loads(text.replace("https://runbooks.example.org/fncache.md", PAGE)),
            tools.yaml.safe_load(tools.read("deploy/prometheus/fncache.rules.yaml")))


class Dashboard(unittest.TestCase):
    def setUp(self):
        self.made = json.loads(tools.read("deploy/grafana/fncache.json"))

    def test_it_is_what_the_script_makes(self):
        done = tools.run(tools.path("scripts/dashboard"), "--check")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_chart_brings_it(self):
        values = tools.path("deploy/chart/examples/everything.yaml")
        maps = {o["metadata"]["name"]: o for o in tools.objects(values)
                if o["kind"] == "ConfigMap"}
        there = maps["platform-cache-dashboard"]
        self.assertEqual(json.loads(there["data"]["fncache.json"]), self.made)
        self.assertEqual(there["metadata"]["labels"]["grafana_dashboard"], "1")

    def test_panels_have_places_and_names_of_their_own(self):
        ids = [panel["id"] for panel in self.made["panels"]]
        self.assertEqual(len(set(ids)), len(ids))
        titles = [panel["title"] for panel in self.made["panels"]]
        self.assertEqual(len(set(titles)), len(titles))
        taken = set()
        for panel in self.made["panels"]:
            at = panel["gridPos"]
            self.assertLessEqual(at["x"] + at["w"], 24)
            cells = {(x, y) for x in range(at["x"], at["x"] + at["w"])
                     for y in range(at["y"], at["y"] + at["h"])}
            self.assertEqual(cells & taken, set(), panel["title"])
            taken |= cells

    def test_every_query_goes_to_the_chosen_source(self):
        names = [v["name"] for v in self.made["templating"]["list"]]
        self.assertEqual(names, ["datasource", "instance", "function_name"])
        for panel in self.made["panels"]:
            if panel["type"] == "row":
                continue
            self.assertTrue(panel["description"], panel["title"])
            for target in panel["targets"]:
                self.assertEqual(target["datasource"]["uid"], "${datasource}")

    def test_crossplanes_own_cache_is_not_ours(self):
        # It counts under the same names, so every query says whose it wants, and
        # `All` is the daemons that there are rather than everybody.
        shared = "function_run_function_response_cache_"
        for name, expression in promql.panels():
            self.assertEqual(expression.count(shared),
                             len(re.findall(shared + r"\w+\{[^}]*instance=~", expression)),
                             name)
        instance, = [v for v in self.made["templating"]["list"]
                     if v["name"] == "instance"]
        self.assertNotIn("allValue", instance)
        for rule in promql.rules():
            self.assertNotIn(shared, rule["expr"], rule["alert"])

    def test_functions_are_chosen_wherever_there_are_any(self):
        known = promql.catalogue()
        for name, expression in promql.panels():
            for metric in promql.metrics(expression):
                if "function_name" in known.get(metric, ("", set()))[1]:
                    self.assertIn("$function_name", expression, name)

    def test_it_shows_what_an_operator_asks(self):
        text = " ".join(expression for _, expression in promql.panels())
        for metric in (
                "function_run_function_response_cache_hits_total",
                "fncache_function_seconds_saved_total", "fncache_misses_total",
                "fncache_request_seconds_bucket", "fncache_flights",
                "fncache_tier_bytes", "fncache_evictions_total",
                "fncache_fills_dropped_total", "fncache_inflight_bytes",
                "fncache_function_reachable",
                "fncache_certificate_expiry_timestamp_seconds",
                "fncache_config_last_reload_successful"):
            self.assertIn(metric, text)


if __name__ == "__main__":
    unittest.main()
