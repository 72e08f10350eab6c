# SPDX-License-Identifier: Apache-2.0
import json
import unittest

import samples  # noqa: F401 (the path to the modules)
from sidebyside.processes import Failure
from sidebyside.sections import digest


def repetition(name, speed, run_type="iteration"):
    return {"name": name, "run_type": run_type, "bytes_per_second": speed}


class Reports(unittest.TestCase):
    def test_keep_repetitions_in_order_and_leave_aggregates_out(self):
        text = json.dumps(
            {
                "benchmarks": [
                    repetition("digest/4k/shuffled/repeats:2", 2e9),
                    repetition("xxh3/4k/repeats:2", 9e9),
                    repetition("digest/4k/shuffled/repeats:2", 1e9),
                    repetition("digest/4k/shuffled_mean", 5e9, "aggregate"),
                ]
            }
        )
        self.assertEqual(
            digest.parse(text),
            {"digest/4k/shuffled": [2.0, 1.0], "xxh3/4k": [9.0]},
        )

    def test_anything_else_is_a_failure(self):
        for text in ("", "{}", '{"benchmarks": [{"run_type": "iteration"}]}'):
            with self.assertRaises(Failure):
                digest.parse(text)
