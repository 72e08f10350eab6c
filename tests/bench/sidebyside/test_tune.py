# SPDX-License-Identifier: Apache-2.0
"""The rows of tuning, with fakes for the programs."""

import unittest

from fake_run import FakeRun

FLAGS = ("--profile", "smoke", "--only", "tune")


class Tune(FakeRun):
    def verdicts(self, *flags, **settings):
        done, found = self.run_it(*FLAGS, *flags, **settings)
        self.found, self.out = found, done.stdout
        rows = {row["id"]: row["verdict"] for row in found["rows"]}
        return done.returncode, rows

    def test_hits_and_misses_are_judged_against_those_without_tuning(self):
        code, rows = self.verdicts()
        self.assertEqual(code, 0, self.out)
        self.assertEqual(
            rows,
            {
                "tune/17k/c1m64/hit": "pass",
                "tune/17k/c1m64/across": "pass",
                "tune/17k/c1m64/miss": "pass",
            },
        )
        # Calls with drift cost more: hits across drift and all misses.
        code, rows = self.verdicts(FAKE_DRIFT="1.6")
        self.assertEqual(code, 0, self.out)
        self.assertEqual(rows["tune/17k/c1m64/hit"], "pass")
        self.assertEqual(rows["tune/17k/c1m64/across"], "miss")
        self.assertEqual(rows["tune/17k/c1m64/miss"], "pass")
        self.assertIn("1.60x", self.out)

    def test_hits_that_were_not_across_drift_fail_their_row(self):
        code, rows = self.verdicts(FAKE_NO_TUNE_HITS="1")
        self.assertEqual(code, 1)
        self.assertEqual(rows["tune/17k/c1m64/across"], "failed")
        self.assertEqual(rows["tune/17k/c1m64/hit"], "pass")
        self.assertRegex(self.out, "the server counts 0 hits across drift")

    def test_questions_beside_the_calls_fail_their_rows(self):
        code, rows = self.verdicts(FAKE_QUESTIONS="1")
        self.assertEqual(code, 1)
        self.assertEqual(rows["tune/17k/c1m64/across"], "failed")
        self.assertEqual(rows["tune/17k/c1m64/miss"], "failed")
        self.assertEqual(rows["tune/17k/c1m64/hit"], "pass")
        self.assertRegex(self.out, "the server counts [0-9]+ questions")

    def test_only_17_kb_is_judged(self):
        code, rows = self.verdicts("--shapes", "4k,130k,1m")
        self.assertEqual(code, 0, self.out)
        self.assertEqual(
            set(rows.values()), {"reported"}, "no target is for this shape"
        )
        self.assertEqual(
            {id.split("/")[1] for id in rows}, {"130k"}, "4k has no drift"
        )

    def test_a_shape_without_drift_is_left_out_and_said(self):
        code, rows = self.verdicts("--shapes", "4k")
        self.assertEqual((code, rows), (0, {}))
        self.assertIn("left out: rows of tuning", self.out)


if __name__ == "__main__":
    unittest.main()
