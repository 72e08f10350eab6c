# SPDX-License-Identifier: Apache-2.0
"""bench/run from its command line to its files, with fakes for what it
starts."""

import os
import signal
import subprocess
import time

from fake_run import FAKES, FakeRun
from test_processes import gone


class Run(FakeRun):
    def test_measures_judges_and_writes(self):
        done, found = self.run_it(FAKE_CPU="5")
        self.assertEqual(done.returncode, 0, done.stderr)
        verdicts = {row["id"]: row["verdict"] for row in found["rows"]}
        self.assertEqual(verdicts["hits/4k/c1m64/content/limit"], "pass")
        self.assertIn("2.00x", done.stdout)
        self.assertEqual(self.temporary_directories(), [])
        # Nothing of this machine's paths in what is published.
        text = (self.folder / "results.json").read_text()
        self.assertNotIn(str(self.folder), text)
        self.assertNotIn(str(FAKES), text)

    def test_a_missed_target_is_said_and_is_no_failure(self):
        done, found = self.run_it(FAKE_CPU="20")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("miss", done.stdout)

    def test_check_fails_on_a_collapse_only(self):
        flags = ("--profile", "smoke", "--only", "hits", "--no-peers")
        done, _ = self.run_it(*flags, "--check", FAKE_CPU="20")
        self.assertEqual(done.returncode, 0, done.stderr)
        done, _ = self.run_it(*flags, "--check", FAKE_CPU="100")
        self.assertEqual(done.returncode, 1)
        self.assertIn("its floor is", done.stderr)

    def test_calls_that_failed_fail_the_row_and_the_run(self):
        done, _ = self.run_it(FAKE_ERRORS="2")
        self.assertEqual(done.returncode, 1)
        self.assertIn("FAILED", done.stdout)
        self.assertEqual(self.temporary_directories(), [])

    def test_calls_that_the_server_did_not_count_fail_the_row(self):
        done, found = self.run_it(FAKE_NO_HITS="1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the server counts 0 hit", done.stdout)

    def test_a_daemon_that_dies_fails_its_section_and_not_the_rest(self):
        done, found = self.run_it(FAKE_DIES="1")
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("Traceback", done.stderr)
        self.assertRegex(done.stdout, "FAILED hits: .* tell its metrics")
        self.assertIn("it all ends here", done.stdout)
        self.assertEqual(len(found["errors"]), 1)

    def test_shows_earlier_results_in_every_form(self):
        self.run_it()
        source = str(self.folder / "results.json")
        done, _ = self.run_it("--from", source)
        self.assertEqual(done.returncode, 0)
        self.assertIn("targets reached", done.stdout)
        done, _ = self.run_it("--from", source, "--markdown")
        self.assertIn("| --- |", done.stdout)

    def test_wrong_command_lines_are_usage_errors(self):
        for flags in (
            ("--only", "everything"),
            ("--shapes", "5k"),
            ("--runs", "0"),
            ("--seconds", "fast"),
            ("--seconds", "nan"),
            ("--seconds", "inf"),
            ("--profile", "endless"),
            ("--from", str(self.folder / "missing.json")),
        ):
            done, _ = self.run_it(*flags)
            self.assertEqual(done.returncode, 2, flags)

    def test_programs_that_are_not_built_are_named(self):
        done, found = self.run_it("--build", str(self.folder))
        self.assertEqual(done.returncode, 1)
        self.assertIn("bench/load is not built", done.stderr)
        self.assertIsNone(found)

    def test_what_cannot_be_written_is_said_before_it_is_measured(self):
        measured = ("--profile", "smoke", "--only", "hits", "--no-peers")
        file = self.folder / "file"
        file.write_text("no marks here")
        for flags in (
            ("--json", str(file / "results.json")),
            ("--json", str(self.folder)),
            ("--update", str(file)),
            ("--update", str(self.folder / "missing.md")),
        ):
            hangs = self.folder / "hangs"
            done, found = self.run_it(
                *measured, *flags, FAKE_HANG=str(hangs)
            )
            self.assertEqual(done.returncode, 1, flags)
            self.assertIn(f"bench/run: {flags[1]}: ", done.stderr)
            self.assertNotIn("Traceback", done.stderr)
            self.assertFalse(hangs.exists(), flags)
            self.assertIsNone(found)

    def test_what_was_measured_is_shown_though_it_cannot_be_stored(self):
        # Nothing was ever written to this one.
        done, _ = self.run_it(
            *("--profile", "smoke", "--only", "hits", "--no-peers"),
            *("--json", "/dev/full"),
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("bench/run: /dev/full: ", done.stderr)
        self.assertIn("targets reached", done.stdout)

    def test_plans_keep_to_what_they_may_take(self):
        for profile, minutes in (("quick", 1), ("standard", 30)):
            done, _ = self.run_it("--plan", "--profile", profile)
            total = done.stdout.splitlines()[-1].split()[2]
            spent = int(total.split(":")[0]) + int(total.split(":")[1]) / 60
            self.assertLess(spent, minutes)

    def test_interrupting_ends_what_it_started(self):
        self.end_by(signal.SIGINT)

    def test_terminating_ends_what_it_started(self):
        self.end_by(signal.SIGTERM)

    def end_by(self, sign):
        started = self.folder / "hangs"
        process = subprocess.Popen(
            self.command("--profile", "smoke", "--only", "hits", "--no-peers"),
            env=self.environment(FAKE_HANG=str(started)),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 60
        while not (started.exists() and started.read_text()):
            self.assertLess(time.monotonic(), deadline)
            self.assertIsNone(process.poll())
            time.sleep(0.01)
        process.send_signal(sign)
        self.assertEqual(process.wait(60), 130)
        self.assertTrue(gone(int(started.read_text())))
        self.assertEqual(self.temporary_directories(), [])
        self.assertFalse((self.folder / "results.json").exists())
