# SPDX-License-Identifier: Apache-2.0
"""A build folder that was configured for the binary, and then for the tests.

Compiles nothing: a clone of this tree is configured by scripts/configure, as
`make build` and `make test` do it, beside a GTest of which half is there."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDERS = sorted(p.parent.name for p in (ROOT / "tests").glob("*/CMakeLists.txt") if "fncache_tests(" in p.read_text())


class ConfigureTest(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="fncache_configure_")
        self.clone = Path(self.folder.name) / "clone"
        self.gtest = Path(self.folder.name) / "gtest"
        files = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                               stdout=subprocess.PIPE, check=True).stdout.decode().split("\0")
        for name in files:
            # A configuration reads neither test data nor fuzzers' inputs.
            if name and (ROOT / name).is_file() and not name.startswith(("tests/data/", "tests/fuzz/corpus/")):
                target = self.clone / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, target)
        subprocess.run(["git", "init", "-q"], cwd=self.clone, check=True)
        shutil.copytree(Path(__file__).parent / "half_gtest", self.gtest)
        toolchain = Path(self.folder.name) / "toolchain.cmake"
        toolchain.write_text(f'set(GTest_DIR "{self.gtest}" CACHE PATH "")\n')
        self.environment = {**os.environ, "CMAKE_TOOLCHAIN_FILE": str(toolchain)}

    def tearDown(self):
        self.folder.cleanup()

    def configure(self, *parts):
        return subprocess.run(["scripts/configure", "release", *parts], cwd=self.clone, env=self.environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)

    def programs(self):
        listed = subprocess.run(["ninja", "-C", "build/release", "-t", "targets", "all"], cwd=self.clone,
                                stdout=subprocess.PIPE, text=True, check=True).stdout
        return sorted(folder for folder in FOLDERS if f"\n{folder}_test: " in listed)

    def whole(self):
        cache = (ROOT / os.environ["FNCACHE_BUILD"] / "CMakeCache.txt").read_text()
        real = next(line.split("=", 1)[1] for line in cache.splitlines() if line.startswith("GTest_DIR:"))
        (self.gtest / "whole").write_text(real)

    def test_a_missing_half_is_an_error_of_one_line_and_all_is_there_once_it_is(self):
        self.assertGreater(len(FOLDERS), 5)
        built = self.configure()
        self.assertEqual((built.returncode, built.stdout), (0, ""))
        self.assertEqual(self.programs(), [])

        tested = self.configure("tests")
        self.assertEqual(tested.returncode, 1)
        self.assertEqual(tested.stdout,
                         "fncache: the tests need GTest::gmock, which is not there: apt-get install libgmock-dev\n")

        self.whole()
        again = self.configure("tests")
        self.assertEqual((again.returncode, again.stdout), (0, ""))
        self.assertEqual(self.programs(), FOLDERS)

    def test_make_build_leaves_the_tests_in_a_folder_that_has_them(self):
        self.whole()
        self.assertEqual(self.configure("tests").returncode, 0)
        self.assertEqual(self.configure().returncode, 0)
        self.assertEqual(self.programs(), FOLDERS)


if __name__ == "__main__":
    unittest.main()
