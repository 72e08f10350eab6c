# SPDX-License-Identifier: Apache-2.0
import unittest

import samples  # noqa: F401 (the path to the modules)
from sidebyside.servers import parse_metrics, total

TEXT = """\
# HELP fncache_requests_total Calls answered.
# TYPE fncache_requests_total counter
fncache_requests_total{function_name="a",method="v1",outcome="hit"} 12
fncache_requests_total{function_name="b",method="v1",outcome="hit"} 3
fncache_requests_total{function_name="a",method="v1",outcome="miss"} 1e+06
fncache_requests_total_other 99
fncache_ready 1
"""


class Metrics(unittest.TestCase):
    def test_are_summed_over_labels(self):
        samples_ = parse_metrics(TEXT)
        name = "fncache_requests_total"
        self.assertEqual(total(samples_, name, 'outcome="hit"'), 15)
        self.assertEqual(
            total(samples_, name, 'outcome="hit"', 'function_name="b"'), 3
        )
        self.assertEqual(total(samples_, name), 1000015)
        self.assertEqual(total(samples_, "fncache_ready"), 1)
        self.assertEqual(total(samples_, "nothing"), 0)
