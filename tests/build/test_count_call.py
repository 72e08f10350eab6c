# SPDX-License-Identifier: Apache-2.0
"""scripts/count-call: the state of one miss does not grow, and the script refuses what it cannot count.

A change that lowers a figure lowers its bound here too."""

import json
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
# The aim is 75 members, 8 flags, 4 timers, 38 pairs for a hit and 50 for a miss.
BOUNDS = {"members": 101, "flags": 6, "timers": 5, "hit_pairs": 34, "miss_pairs": 51}


def count(root, *arguments):
    return subprocess.run([sys.executable, "-B", root / "scripts/count-call", *arguments],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


class CountCallTest(unittest.TestCase):

    def test_the_state_of_a_miss_is_within_its_bounds(self):
        result = count(ROOT, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout), BOUNDS, "lower the bound where a figure is below it")

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="fncache_count_")
        self.addCleanup(self.folder.cleanup)
        self.copy = Path(self.folder.name)
        for folder in ("scripts", "proxy", "cache", "http2"):
            for path in (ROOT / folder).rglob("*"):
                if path.suffix in (".h", ".cc") or path.name == "count-call":
                    target = self.copy / path.relative_to(ROOT)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(path, target)

    def change(self, path, old, new):
        text = (self.copy / path).read_text()
        self.assertIn(old, text)
        (self.copy / path).write_text(text.replace(old, new, 1))

    def counted(self):
        result = count(self.copy, "--json")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def refused(self):
        result = count(self.copy)
        self.assertEqual(result.returncode, 1, result.stdout)
        return result.stderr

    def test_each_new_member_flag_and_timer_counts(self):
        header = "proxy/serving/upstream_run.h"
        self.change(header, "  ServingContext& context_;", "  ServingContext& context_;\n"
                    "  bool late_ = false;  // a flag\n  absl::optional<transport::TimerId> more_;\n"
                    "  enum class Half { kFirst, kSecond } ;\n  Half half_ = Half::kFirst;\n"
                    "  struct Pair {\n    int a = 0;\n    std::map<int, int> b;\n  };\n"
                    "  Pair pair_;\n  void Method() const { return; }\n")
        counted = self.counted()
        more = {name: counted[name] - bound for name, bound in BOUNDS.items()}
        self.assertEqual(more, {"members": 5, "flags": 2, "timers": 1, "hit_pairs": 0, "miss_pairs": 0})

    def test_a_class_that_is_not_there_is_refused(self):
        self.change("proxy/serving/upstream_run.h", "class UpstreamRun final", "class AnotherRun final")
        self.assertIn("proxy/serving/upstream_run.h: no class UpstreamRun", self.refused())

    def test_a_unit_that_is_not_there_is_refused(self):
        for end in (".h", ".cc"):
            (self.copy / f"proxy/serving/answer{end}").unlink()
        self.assertIn("proxy/serving/answer: no such unit", self.refused())

    def test_a_member_that_is_not_understood_is_refused(self):
        self.change("proxy/serving/upstream_run.h", "  ServingContext& context_;", "  int one_, two_;")
        self.assertIn("UpstreamRun: int one_, two_", self.refused())


if __name__ == "__main__":
    unittest.main()
