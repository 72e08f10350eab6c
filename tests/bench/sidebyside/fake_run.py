# SPDX-License-Identifier: Apache-2.0
"""Starts bench/run with fakes for the programs that it starts."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import samples

RUN = samples.ROOT / "bench" / "run"
FAKES = Path(__file__).resolve().parent / "fakes"


class FakeRun(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def command(self, *flags):
        return [
            sys.executable,
            "-B",
            str(RUN),
            "--build",
            str(FAKES),
            "--json",
            str(self.folder / "results.json"),
            *flags,
        ]

    def environment(self, **settings):
        return {**os.environ, "TMPDIR": str(self.folder), **settings}

    def run_it(self, *flags, **settings):
        measured = ("--profile", "smoke", "--only", "hits", "--no-peers")
        done = subprocess.run(
            self.command(*(flags or measured)),
            env=self.environment(**settings),
            capture_output=True,
            text=True,
            timeout=120,
        )
        path = self.folder / "results.json"
        found = json.loads(path.read_text()) if path.exists() else None
        return done, found

    def temporary_directories(self):
        return list(self.folder.glob("fncache-bench-*"))
