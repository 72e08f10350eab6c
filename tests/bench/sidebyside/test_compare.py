# SPDX-License-Identifier: Apache-2.0
import contextlib
import io
import tempfile
import unittest
from pathlib import Path

import samples
from sidebyside import compare, results


class Compare(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def compare(self, old, new, *flags):
        paths = []
        for name, value in (("old", old), ("new", new)):
            path = self.folder / f"{name}.json"
            results.write(value, path)
            paths.append(str(path))
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = compare.main([*flags, *paths])
        return code, out.getvalue()

    def test_says_what_got_worse(self):
        code, text = self.compare(
            samples.results(12.5).to_json(), samples.results(20.0).to_json()
        )
        self.assertEqual(code, 1)
        self.assertRegex(text, r"worse +hits/4k/c1m64/content/limit .*-37")
        self.assertIn("pass -> miss", text)

    def test_says_what_got_better(self):
        code, text = self.compare(
            samples.results(20.0).to_json(), samples.results(12.5).to_json()
        )
        self.assertEqual(code, 0)
        self.assertRegex(text, r"better +hits/4k/c1m64/content/limit")

    def test_keeps_quiet_within_the_spread(self):
        code, text = self.compare(
            samples.results(12.5, jitter=0.02).to_json(),
            samples.results(12.7, jitter=0.02).to_json(),
        )
        self.assertEqual(code, 0)
        self.assertIn("none of 2 rows moved", text)

    def test_what_failed_or_is_gone_is_worse(self):
        old, new = samples.results(), samples.results()
        new.rows[0]["verdict"] = results.FAILED
        code, text = self.compare(old.to_json(), new.to_json())
        self.assertEqual(code, 1)
        self.assertIn("failed now:", text)
        new = samples.results()
        row = dict(new.rows[0], id="hits/other")
        new.rows[0] = row
        code, text = self.compare(old.to_json(), new.to_json())
        self.assertEqual(code, 1)
        self.assertIn("gone:", text)

    def test_figures_of_subjects_are_compared_when_asked_for(self):
        old, new = samples.results(12.5), samples.results(20.0)
        _, text = self.compare(old.to_json(), new.to_json())
        self.assertNotIn("content cpu_us", text)
        _, text = self.compare(old.to_json(), new.to_json(), "--absolute")
        self.assertRegex(text, r"worse +hits/4k/c1m64/content cpu_us")

    def test_what_was_counted_once_may_differ_by_a_trifle(self):
        for count, moved in ((100.5, False), (110.0, True)):
            old, new = samples.results(), samples.results()
            for made, value in ((old, 100.0), (new, count)):
                made.value(
                    "cost/a", "t", "m", "B", samples.estimate([value])
                )
            code, _ = self.compare(old.to_json(), new.to_json())
            self.assertEqual(code, int(moved))

    def test_other_files_are_a_usage_error(self):
        path = self.folder / "x.json"
        path.write_text("{}")
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(compare.main([str(path), str(path)]), 2)
        self.assertIn("x.json", said.getvalue())
        with contextlib.redirect_stderr(io.StringIO()):
            with self.assertRaises(SystemExit) as ended:
                compare.main([])
        self.assertEqual(ended.exception.code, 2)

    def test_damaged_files_are_a_usage_error_not_a_move(self):
        good, damaged = self.folder / "good.json", self.folder / "damaged.json"
        value = samples.results().to_json()
        results.write(value, good)
        del value["revision"]
        results.write(value, damaged)
        for paths in ((damaged, good), (good, damaged)):
            with contextlib.redirect_stderr(io.StringIO()) as said:
                self.assertEqual(compare.main([str(p) for p in paths]), 2)
            self.assertIn("damaged.json", said.getvalue())
            self.assertIn("revision is missing", said.getvalue())
