# SPDX-License-Identifier: Apache-2.0
import json
import tempfile
import unittest
from pathlib import Path

import samples
from sidebyside import results
from sidebyside.results import FAILED, MISS, PASS, Results, Target
from sidebyside.spread import estimate


def verdict(value, target, errors=()):
    made = Results()
    made.value("a/b", "t", "m", "x", estimate([value]), target, None, errors)
    return made.rows[0]["verdict"]


class Verdicts(unittest.TestCase):
    def test_at_least_is_reached_at_the_bound(self):
        self.assertEqual(verdict(0.8, Target(0.8)), PASS)
        self.assertEqual(verdict(0.799, Target(0.8)), MISS)

    def test_at_most_is_reached_at_the_bound(self):
        self.assertEqual(verdict(96, Target(96, at_least=False)), PASS)
        self.assertEqual(verdict(96.1, Target(96, at_least=False)), MISS)

    def test_a_row_with_errors_has_failed_whatever_it_says(self):
        self.assertEqual(verdict(5, Target(0.8), ["a call failed"]), FAILED)

    def test_errors_of_a_series_reach_its_rows(self):
        made = samples.results()
        over, under = list(made.series.values())[:2]
        over.errors.append("run 3: nobody answered")
        made.ratio("hits/x", "t", "m", over, under, "cpu_us", Target(0.1))
        self.assertEqual(made.rows[-1]["verdict"], FAILED)
        self.assertIn("run 3: nobody answered", made.rows[-1]["errors"])

    def test_series_of_different_length_make_no_figure(self):
        made = samples.results()
        over, under = list(made.series.values())[:2]
        under.runs.pop()
        made.ratio("hits/x", "t", "m", over, under, "cpu_us", Target(0.1))
        self.assertEqual(made.rows[-1]["verdict"], FAILED)
        self.assertIsNone(made.rows[-1]["estimate"])

    def test_names_are_given_once(self):
        made = samples.results()
        with self.assertRaises(ValueError):
            made.add_series("hits/4k/c1m64/limit", "limit", "again")
        with self.assertRaises(ValueError):
            made.value(
                "hits/4k/c1m64/content/limit", "", "", "", estimate([1])
            )


class Floors(unittest.TestCase):
    def test_only_a_collapse_is_below(self):
        miss = samples.results(ours=20.0).to_json()
        collapse = samples.results(ours=100.0).to_json()
        self.assertEqual(miss["rows"][0]["verdict"], MISS)
        self.assertEqual(results.below_floor(miss), [])
        self.assertEqual(len(results.below_floor(collapse)), 1)


class Files(unittest.TestCase):
    def test_what_was_written_is_read(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "sub" / "results.json"
            written = samples.results().to_json()
            results.write(written, path)
            self.assertEqual(results.read(path), written)

    def test_other_files_are_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "other.json"
            for text in ("", "[]", "{}", json.dumps({"format": "other"})):
                path.write_text(text)
                with self.assertRaises(results.NotResults):
                    results.read(path)
            with self.assertRaises(results.NotResults):
                results.read(Path(folder) / "missing.json")

    def test_damaged_ones_are_refused_with_what_is_wrong(self):
        def changed(change):
            value = samples.results().to_json()
            change(value)
            return value

        def run_of(value):
            return value["series"]["latency/4k/idle/content"]["runs"][6]

        judged = "row hits/4k/c1m64/content/limit is judged without"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "damaged.json"
            for change, said in (
                (lambda v: v.pop("started"), "started is missing"),
                (lambda v: v.update(rows={}), "rows is not a list"),
                (lambda v: v["rows"][0].pop("id"), "rows[0].id is missing"),
                (lambda v: v["rows"][0].update(target=None), judged),
                (lambda v: v["rows"][0].update(estimate=None), judged),
                (lambda v: v["machine"].update(cores="2"), "machine.cores"),
                (lambda v: v["revision"].clear(), "revision.commit"),
                (lambda v: run_of(v).update(rate="fast"), "runs[6].rate"),
            ):
                path.write_text(json.dumps(changed(change)))
                with self.assertRaises(results.NotResults) as refused:
                    results.read(path)
                self.assertIn(said, str(refused.exception))
