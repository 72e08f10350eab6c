# SPDX-License-Identifier: Apache-2.0
"""docs/design/call.md names files, classes, functions and stages that exist, and stays two pages long."""

import re
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs/design/call.md"
FOLDERS = ("proxy", "http2", "cache", "common", "insight")
# Words in code style that are settings, fields of messages, or outcomes on the wire.
SETTINGS = re.compile(r"[a-z][a-z_-]*")


def faults(page):
    """What the page names and the tree does not have."""
    text = "\n".join(path.read_text() for folder in FOLDERS for end in ("*.h", "*.cc")
                     for path in sorted((ROOT / folder).rglob(end)))
    found = []
    for name in sorted(set(re.findall(r"`([^`\n]+)`", page))):
        if "/" in name:
            known = (ROOT / name).exists()
        elif SETTINGS.fullmatch(name):
            continue
        elif "::" in name:
            owner, member = name.split("::")
            known = re.search(rf"\b{owner}::{member}\(", text) is not None
        elif re.fullmatch(r"k[A-Z]\w*", name):
            known = re.search(rf"\b{name},", text) is not None
        else:
            known = re.search(rf"\b(?:enum class|class|struct) {name}\b[^;]*{{|\b{name}\(", text) is not None
        if not known:
            found.append(name)
    return found


class CallPageTest(unittest.TestCase):

    def test_the_page_names_what_exists(self):
        self.assertEqual(faults(PAGE.read_text()), [])

    def test_a_name_that_does_not_exist_is_found(self):
        page = "`proxy/serving/gone.h` `GoneCall` `RunFunctionCall::Gone` `kGone` `RunFunctionCall` `proxy/serving/call.h`"
        self.assertEqual(faults(page), ["GoneCall", "RunFunctionCall::Gone", "kGone", "proxy/serving/gone.h"])

    def test_the_page_has_two_pages(self):
        self.assertLessEqual(len(PAGE.read_text().splitlines()), 130)


if __name__ == "__main__":
    unittest.main()
