# SPDX-License-Identifier: Apache-2.0
import io
import unittest

import samples
from sidebyside.contest import Contest, complaint
from sidebyside.processes import Failure
from sidebyside.progress import Progress
from sidebyside.results import Results


def contest(runs=3):
    results = Results()
    return results, Contest(results, Progress({}, io.StringIO()), runs)


class Turns(unittest.TestCase):
    def test_subjects_alternate(self):
        _, one = contest()
        order = []

        def runner(name):
            def run(number):
                order.append(f"{name}{number}")
                return samples.run()

            return run

        one.enter("a", "a", "", runner("a"))
        one.enter("b", "b", "", runner("b"))
        one.go()
        self.assertEqual(order, ["a0", "b0", "a1", "b1", "a2", "b2"])

    def test_a_run_that_fails_is_an_error_and_the_rest_go_on(self):
        _, one = contest()

        def sometimes(number):
            if number == 1:
                raise Failure("gone")
            return samples.run()

        bad = one.enter("a", "a", "", sometimes)
        good = one.enter("b", "b", "", lambda _: samples.run())
        one.go()
        self.assertEqual(bad.errors, ["run 2: gone"])
        self.assertEqual(len(bad.runs), 2)
        self.assertEqual((len(good.runs), good.errors), (3, []))

    def test_wrong_outcomes_are_errors(self):
        _, one = contest(1)
        series = one.enter("a", "a", "", lambda _: samples.run(), "miss")
        one.go()
        self.assertEqual(len(series.errors), 1)


class Complaints(unittest.TestCase):
    def test_all_as_expected_is_none(self):
        self.assertIsNone(complaint(samples.run(), "hit"))
        self.assertIsNone(complaint(samples.run(statuses={}), None))

    def test_one_call_of_another_outcome_is_one(self):
        statuses = {"hit": 99, "miss": 1}
        self.assertIn("miss", complaint(samples.run(statuses=statuses), "hit"))

    def test_outcomes_that_are_missing_are_one(self):
        self.assertTrue(complaint(samples.run(statuses={"hit": 99}), "hit"))

    def test_failed_calls_and_no_calls_are(self):
        self.assertIn("3 of 100", complaint(samples.run(errors=3), None))
        self.assertTrue(complaint(samples.run(calls=0), None))
