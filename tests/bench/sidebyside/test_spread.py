# SPDX-License-Identifier: Apache-2.0
import itertools
import unittest

import samples  # noqa: F401 (the path to the modules)
from sidebyside import spread


class Coverage(unittest.TestCase):
    def test_is_what_counting_all_outcomes_gives(self):
        # Each run lies above or below the true median, as coins fall.
        for count in (1, 2, 5, 7, 9):
            for rank in range(1, (count + 1) // 2 + 1):
                outcomes = list(itertools.product((0, 1), repeat=count))
                inside = sum(
                    rank <= sum(outcome) <= count - rank
                    for outcome in outcomes
                )
                self.assertAlmostEqual(
                    spread.coverage(count, rank), inside / len(outcomes)
                )

    def test_of_seven_runs_takes_smallest_to_largest(self):
        found = spread.estimate([3, 1, 2, 7, 5, 6, 4])
        self.assertEqual((found.low, found.median, found.high), (1, 4, 7))
        self.assertAlmostEqual(found.coverage, 0.984375)

    def test_of_nine_runs_leaves_the_outermost_out(self):
        found = spread.estimate(range(1, 10))
        self.assertEqual((found.low, found.median, found.high), (2, 5, 8))
        self.assertGreaterEqual(found.coverage, 0.95)

    def test_of_few_runs_says_that_it_is_less(self):
        found = spread.estimate([1, 2, 3])
        self.assertEqual((found.low, found.high), (1, 3))
        self.assertAlmostEqual(found.coverage, 0.75)

    def test_of_one_run_is_none(self):
        self.assertEqual(spread.estimate([4.0]).coverage, 0)


class Medians(unittest.TestCase):
    def test_of_an_even_number_is_between(self):
        self.assertEqual(spread.median([4, 1, 3, 2]), 2.5)

    def test_of_nothing_is_refused(self):
        with self.assertRaises(ValueError):
            spread.median([])

    def test_one_wild_run_does_not_move_it(self):
        self.assertEqual(spread.median([1, 1, 1, 1, 900]), 1)


class Pairs(unittest.TestCase):
    def test_ratio_is_taken_round_by_round(self):
        # The machine slows down by half, the ratio does not care.
        found = spread.paired_ratio([10, 5, 20], [20, 10, 40])
        self.assertEqual((found.low, found.median, found.high), (0.5,) * 3)

    def test_rounds_must_match(self):
        with self.assertRaises(ValueError):
            spread.paired_ratio([1, 2], [1])
        with self.assertRaises(ValueError):
            spread.paired_difference([1, 2], [1])

    def test_apart_means_no_point_in_common(self):
        low, high = spread.estimate([1, 2]), spread.estimate([3, 4])
        touching = spread.estimate([2, 3])
        self.assertTrue(spread.apart(low, high))
        self.assertTrue(spread.apart(high, low))
        self.assertFalse(spread.apart(low, touching))

    def test_json_keeps_everything(self):
        found = spread.estimate([3, 1, 2])
        self.assertEqual(spread.Estimate.from_json(found.to_json()), found)
