# SPDX-License-Identifier: Apache-2.0
"""The row of hits by hint, with fakes for the programs."""

import unittest

from fake_run import FakeRun

FLAGS = ("--profile", "smoke", "--only", "vary")


class Vary(FakeRun):
    def verdicts(self, *flags, **settings):
        done, found = self.run_it(*FLAGS, *flags, **settings)
        self.out = done.stdout
        rows = {row["id"]: row["verdict"] for row in found["rows"]}
        return done.returncode, rows

    def test_hits_by_hint_are_judged_against_those_by_tag(self):
        code, rows = self.verdicts()
        self.assertEqual(code, 0, self.out)
        self.assertEqual(rows, {"vary/130k/c1m64/hit": "pass"})

    def test_only_130_kb_is_judged(self):
        code, rows = self.verdicts("--shapes", "4k,17k")
        self.assertEqual(code, 0, self.out)
        self.assertEqual(
            rows,
            {
                "vary/4k/c1m64/hit": "reported",
                "vary/17k/c1m64/hit": "reported",
            },
        )

    def test_hits_that_were_not_by_hint_fail_their_row(self):
        code, rows = self.verdicts(FAKE_NO_HINTS="1")
        self.assertEqual(code, 1)
        self.assertEqual(rows, {"vary/130k/c1m64/hit": "failed"})
        self.assertRegex(self.out, "the server counts 0 hits by hint")


if __name__ == "__main__":
    unittest.main()
