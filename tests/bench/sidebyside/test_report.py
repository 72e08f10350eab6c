# SPDX-License-Identifier: Apache-2.0
import tempfile
import unittest
from html.parser import HTMLParser
from pathlib import Path

import samples
from sidebyside import charts, markdown, report, table
from sidebyside.processes import Failure

_VOID = {"meta", "br"}


class Balanced(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen, self.attributes = [], [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += attrs
        if tag not in _VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            raise AssertionError(f"</{tag}> closes nothing")


def failed_results():
    made = samples.results()
    limit = made.series["hits/4k/c1m64/limit"]
    limit.errors.append("run 1: <gone>")
    made.ratio("hits/bad", "bad", "m", limit, limit, "cpu_us")
    return made.to_json()


class Html(unittest.TestCase):
    def parse(self, results):
        page = Balanced()
        self.text = report.render(results)
        page.feed(self.text)
        self.assertEqual(page.open, [])
        return page

    def test_needs_nothing_from_elsewhere(self):
        page = self.parse(samples.results().to_json())
        for tag in ("script", "link", "img", "iframe"):
            self.assertNotIn(tag, page.seen)
        for name, _ in page.attributes:
            self.assertNotIn(name, ("src", "href", "onload"))
        for text in ("@import", "url("):
            self.assertNotIn(text, self.text)

    def test_says_verdict_target_and_interval(self):
        self.parse(samples.results(20.0).to_json())
        for text in ("miss", "&gt;= 0.80, then 0.90", "0.50x", "0.49..0.52"):
            self.assertIn(text, self.text)
        self.assertIn('class="target"', self.text)
        self.assertIn('class="whisker"', self.text)

    def test_escapes_what_came_from_outside(self):
        self.parse(failed_results())
        for text in ("<64>", "<fast>", "<gone>", "<&>"):
            self.assertNotIn(text, self.text)
        self.assertIn("&lt;fast&gt;", self.text)

    def test_shows_every_configuration(self):
        page = self.parse(samples.results().to_json())
        self.assertEqual(page.seen.count("details"), 2)
        self.assertIn("nginx version: nginx/1.22.1", self.text)

    def test_names_what_failed_and_what_was_left_out(self):
        results = failed_results()
        results["skipped"] = ["rows against nginx: it is not installed"]
        self.parse(results)
        self.assertIn("hits/bad: run 1", self.text)
        self.assertIn("left out: rows against nginx", self.text)


class Charts(unittest.TestCase):
    def test_a_bar_never_leaves_its_track(self):
        svg = charts.ratio_bar(5, 4, 9, 2, 1.5, None, "pass")
        self.assertIn('width="300.0"', svg)

    def test_nothing_to_draw_is_no_chart(self):
        self.assertEqual(charts.line_chart("t", "us", [], []), "")

    def test_lines_are_named_and_points_tell_their_values(self):
        line = charts.Line("ours", [(0, 10, 9, 12), (1, 30, 30, 30)])
        svg = charts.line_chart("t", "us", [(0, "a"), (1, "b")], [line], True)
        self.assertIn("ours: 10.0 us (9.00..12.0)", svg)
        self.assertEqual(svg.count("<circle"), 2)


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

    def test_names_failures(self):
        text = table.render(failed_results())
        self.assertIn("FAILED hits/bad: run 1: <gone>", text)

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
