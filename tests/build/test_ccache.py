# SPDX-License-Identifier: Apache-2.0
"""Clones in different folders share objects through ccache, also where headers are
precompiled, which name their folder or have addresses. CI builds in a new folder
each time, and depends on it.

Compiles one file, with the compiler's settings of this tree."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(probe CXX)
set(CMAKE_CXX_STANDARD 17)
find_package(absl REQUIRED)
include(cmake/Toolbox.cmake)
add_subdirectory(probe)
"""


@unittest.skipUnless(shutil.which("ccache"), "ccache is not installed (scripts/setup tests)")
class CcacheTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="fncache_ccache_")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def misses(self, compiler, name):
        """What ccache does not know of a new clone: of a file, the precompiled header that it uses, and an empty one beside that."""
        clone = self.folder / name
        shutil.copytree(ROOT / "cmake", clone / "cmake")
        (clone / "tests").mkdir()
        shutil.copy(ROOT / "tests" / "clock_tests.txt", clone / "tests")
        (clone / "probe").mkdir()
        (clone / "probe" / "CMakeLists.txt").write_text("fncache_library(probe)\n")
        (clone / "probe" / "probe.cc").write_text("std::string Probe() { return absl::StrCat(1); }\n")
        (clone / "CMakeLists.txt").write_text(PROJECT)
        environment = {k: v for k, v in os.environ.items() if not k.startswith("CCACHE_")}
        environment["CCACHE_DIR"] = str(self.folder / "cache")
        # As make does it.
        for key, value in re.findall(r"^export (CCACHE_\w+) := (.*)$", (ROOT / "Makefile").read_text(), re.M):
            environment[key] = value.replace("$(CURDIR)", str(clone))

        def run(*command):
            done = subprocess.run(command, cwd=clone, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout)
            return done.stdout

        run("ccache", "--zero-stats")
        run("cmake", "-G", "Ninja", "-S", ".", "-B", "build/one", f"-DCMAKE_CXX_COMPILER={compiler}")
        run("ninja", "-C", "build/one", "fncache_probe")
        figures = dict(line.split() for line in run("ccache", "--print-stats").splitlines())
        self.assertEqual(int(figures["direct_cache_hit"]) + int(figures["cache_miss"]), 3, figures)
        return int(figures["cache_miss"])

    def test_gcc(self):
        self.assertEqual(self.misses("g++", "first"), 3)
        self.assertEqual(self.misses("g++", "second"), 0)

    @unittest.skipUnless(shutil.which("clang++"), "clang is not installed (scripts/setup checks)")
    def test_clang(self):
        self.assertEqual(self.misses("clang++", "first"), 3)
        # The header itself names its folder.
        self.assertEqual(self.misses("clang++", "second"), 1)


if __name__ == "__main__":
    unittest.main()
