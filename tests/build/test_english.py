# SPDX-License-Identifier: Apache-2.0
"""scripts/english: what each rule finds, and its exit code."""

import contextlib
import importlib.util
import io
import subprocess
import tempfile
import unittest
from importlib.machinery import SourceFileLoader
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LOADER = SourceFileLoader("english", str(ROOT / "scripts/english"))
ENGLISH = importlib.util.module_from_spec(importlib.util.spec_from_loader("english", LOADER))
LOADER.exec_module(ENGLISH)

# Rule -> a text that it finds, and a near one that it does not find.
CASES = {
    "inverted genitive": ("It ends. Of each call a line.", "A line of each call. Official."),
    "free relative": ("Whoever waits gets it.", "Who waits for it?"),
    "vague subject": ("What differs is kept.", "What differs?"),
    "vague amount": ("So many bytes are kept.", "So the bytes are kept."),
    "people for things": ("An error that nobody reads.", "An error that the caller reads."),
    "retired noun": ("It has no room.", "It has no roommate, and a shared tier."),
    "idiom": ("The peer is told to go.", "The peer gets a GOAWAY."),
    "two semicolons": ("One; two; three.", "One; two. Three; four."),
}


def rules(path, text):
    return [rule for _, rule, _ in ENGLISH.findings(path, text)]


class Rules(unittest.TestCase):

    def test_each_has_a_case(self):
        self.assertEqual(set(CASES), {name for name, _ in ENGLISH.RULES})

    def test_each_finds_and_does_not_find(self):
        for rule, (found, passed) in CASES.items():
            for path, form in (("a/b.cc", "// {}\n"), ("a/b.h", "int n;  // {}\n"), ("a.py", "# {}\n"),
                               ("docs/a.md", "# Heading\n\n- {}\n"), ("docs/a.md", "| {} | x |\n")):
                with self.subTest(rule=rule, path=path, form=form):
                    self.assertIn(rule, rules(path, form.format(found)))
                    self.assertNotIn(rule, rules(path, form.format(passed)))

    def test_code_is_not_english(self):
        self.assertEqual(rules("a.cc", 'Say("Of course");\nreturn a;  // No.\n'), [])
        self.assertEqual(rules("a.md", "```text figure\nOf course; nobody; is told.\n```\n\nUse `the place` [here](of/a-place).\n"), [])

    def test_held_is_a_term_of_the_sdk(self):
        self.assertEqual(rules("sdk/a.h", "// The field is held.\n"), [])
        self.assertEqual(rules("sdk/a.h", "// The field is told.\n"), ["idiom"])

    def test_log_texts_are_read_over_lines(self):
        found = 'FNCACHE_Log(LogLevel::kInfo,\n    "connected again");\n'
        self.assertEqual(rules("a.cc", found), ["log text"])
        self.assertEqual(rules("a.cc", found.replace(" again", "")), [])


class Limits(unittest.TestCase):

    def test_lines(self):
        for path, most in (("README.md", 200), ("docs/a.md", 300)):
            self.assertEqual(rules(path, "A line.\n" * most), [])
            self.assertEqual(rules(path, "A line.\n" * (most + 1)), ["length"])
        self.assertEqual(rules("docs/settings.md", "A line.\n" * 301), [])
        self.assertEqual(rules("CHANGELOG.md", "A line.\n" * 301), [])
        marked = "<!-- a program: begin -->\n" + "A line.\n" * 301 + "<!-- a program: end -->\n"
        self.assertEqual(rules("docs/a.md", marked), [])

    def test_words(self):
        self.assertEqual(rules("docs/a.md", "word " * 17 + "end.\n"), ["sentences"])
        self.assertEqual(rules("docs/a.md", "word " * 17 + "end. Short.\n"), [])
        # A table and a list of commands have no sentences.
        self.assertEqual(rules("docs/a.md", "| " + "word " * 30 + "|\n"), [])


class Run(unittest.TestCase):
    """A folder with one tracked file, a.h."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="fncache_english_")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        subprocess.run(["git", "init", "-q"], cwd=self.root, check=True)

    def run_with(self, text, *arguments):
        if text is not None:
            (self.root / "a.h").write_text(text)
            subprocess.run(["git", "add", "a.h"], cwd=self.root, check=True)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = ENGLISH.main(list(arguments), self.root)
        return code, out.getvalue()

    def test_a_finding_is_named_with_its_line_and_fails(self):
        code, out = self.run_with("int a;\n// Of course.\n")
        self.assertEqual(code, 1)
        self.assertEqual(out, "a.h:2: inverted genitive: Of course.\nenglish: 1 files, 1 findings\n")

    def test_no_finding_passes(self):
        self.assertEqual(self.run_with("// Fine.\n"), (0, "english: 1 files, 0 findings\n"))

    def test_a_check_of_nothing_fails(self):
        self.assertEqual(self.run_with(None), (1, "english: no file was checked: is this a checkout with tracked files?\n"))

    def test_an_unknown_argument_is_an_error(self):
        self.assertEqual(self.run_with("// Fine.\n", "--nonsense")[0], 2)


if __name__ == "__main__":
    unittest.main()
