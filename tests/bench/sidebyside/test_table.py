# SPDX-License-Identifier: Apache-2.0
import tempfile
import unittest
from pathlib import Path

import samples
from sidebyside import markdown, table
from sidebyside.processes import Failure


def failed_results():
    made = samples.results()
    limit = made.series["hits/4k/c1m64/limit"]
    limit.errors.append("run 1: <gone>")
    made.ratio("hits/bad", "bad", "m", limit, limit, "cpu_us")
    return made.to_json()


class Table(unittest.TestCase):
    def test_aligns_and_judges(self):
        made = samples.results(20.0)
        limit = made.series["hits/4k/c1m64/limit"]
        made.ratio(
            "hits/b",
            "longer title of another row, of no target",
            "server CPU per hit, limit's over ours",
            limit,
            limit,
            "cpu_us",
        )
        text = table.render(made.to_json())
        rows = [line for line in text.splitlines() if "x  " in line]
        self.assertEqual(len({row.index("x  ") for row in rows}), 1)
        self.assertIn("miss", rows[0])
        self.assertIn(">= 0.80, then 0.90", rows[0])
        self.assertIn("0 of 1 targets reached", text)

    def test_names_what_failed_and_what_was_left_out(self):
        results = failed_results()
        results["skipped"] = ["rows against nginx: it is not installed"]
        text = table.render(results)
        self.assertIn("FAILED hits/bad: run 1: <gone>", text)
        self.assertIn("left out: rows against nginx", text)

    def test_numbers_have_three_digits_that_matter(self):
        for value, text in (
            (0, "0"),
            (0.01234, "0.012"),
            (0.5, "0.50"),
            (12.34, "12.3"),
            (123.4, "123"),
            (12345, "12,345"),
        ):
            self.assertEqual(table.number(value), text)


class Markdown(unittest.TestCase):
    def test_replaces_what_is_between_the_marks_only(self):
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "page.md"
            page.write_text(
                f"before\n{markdown.BEGIN}\nold figures\n{markdown.END}\nafter\n"
            )
            for _ in range(2):
                markdown.update(page, samples.results().to_json())
            text = page.read_text()
        self.assertTrue(text.startswith("before\n"))
        self.assertTrue(text.endswith("\nafter\n"))
        self.assertNotIn("old figures", text)
        self.assertEqual(text.count("### The run"), 1)
        self.assertIn("| 0.80x |", text)

    def test_a_page_without_marks_is_left_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "page.md"
            page.write_text("nothing")
            with self.assertRaises(Failure):
                markdown.update(page, samples.results().to_json())
            self.assertEqual(page.read_text(), "nothing")
