# SPDX-License-Identifier: Apache-2.0
"""What bench/fleet makes and reads without its programs."""

import tempfile
import unittest
from pathlib import Path

import samples  # noqa: F401 (the path to the modules)
from fleets import lab, memory, report, runs


class Fleet(unittest.TestCase):
    def test_an_answer_has_its_size_and_begins_with_meta(self):
        for size in lab.SIZES.values():
            message = lab.answer(size, 60)
            self.assertLess(abs(len(message) - size), 8)
            self.assertEqual(message[0], 1 << 3 | 2)
            self.assertNotEqual(message, lab.answer(size, 60))

    def test_varints_and_fields_are_protobufs(self):
        self.assertEqual(lab.varint(0), b"\0")
        self.assertEqual(lab.varint(300), b"\xac\x02")
        self.assertEqual(lab.field(2, b"abc"), b"\x12\x03abc")

    def test_stored_forms_are_found_by_their_magic(self):
        lengths = b"".join(n.to_bytes(4, "little") for n in (50, 3, 1000))
        form = b"fncache\x01" + b"checksum" + lengths
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "db").mkdir()
            (Path(folder) / "db/000004.log").write_bytes(b"x" + form + b"fncache\x07")
            (Path(folder) / "LOCK").write_bytes(form)
            self.assertEqual(memory.stored_sizes(Path(folder)), [28 + 1053])

    def test_the_table_of_fleets_compares_runs_for_each_call(self):
        alone = runs.Fleet(1, True, calls=100, runs=20)
        other = runs.Fleet(3, True, away=True, calls=200, runs=50, wrong=["load: 1 of 9 calls: an answer that is too old"])
        lines = report.fleets([alone, other]).splitlines()
        self.assertIn("| 1 with the tier | 100 | 20 | 1.00 |", lines[2])
        self.assertIn("| 3 with the tier, server away | 200 | 50 | 1.25 | 0 | 1 |", lines[3])


if __name__ == "__main__":
    unittest.main()
