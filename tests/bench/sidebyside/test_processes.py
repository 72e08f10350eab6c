# SPDX-License-Identifier: Apache-2.0
import os
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

import samples
from sidebyside.processes import (
    Child,
    Failure,
    Nursery,
    cpu_seconds,
    resident_bytes,
    run_tool,
)


def gone(pid, seconds=60):
    """Whether the process ends; a zombie has ended."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
        except OSError:
            return True
        if state.split()[0] == "Z":
            return True
        time.sleep(0.01)
    return False


class Children(unittest.TestCase):
    def test_end_with_the_nursery_and_so_do_theirs(self):
        with Nursery() as nursery:
            child = nursery.adopt(
                Child(["sh", "-c", "sleep 1000 & echo of $! >&2; wait"])
            )
            (match,) = child.wait_for_line(r"of (\d+)")
            directory = nursery.directory
            (directory / "file").write_text("x")
        self.assertTrue(gone(child.pid))
        self.assertTrue(gone(int(match.group(1))))
        self.assertFalse(directory.exists())

    def test_that_do_not_listen_are_killed(self):
        with Nursery() as nursery:
            child = nursery.adopt(
                Child(["sh", "-c", "trap '' TERM; echo up >&2; read x <&2"])
            )
            child.wait_for_line("up")
            nursery.end(child, hard=True)
            self.assertFalse(child.alive())

    def test_end_all_though_somebody_is_impatient(self):
        class Interrupted:
            def stop(self, hard):
                for sign in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                    os.kill(os.getpid(), sign)

        before = signal.getsignal(signal.SIGINT)
        # As bench/run has it.
        for sign in (signal.SIGTERM, signal.SIGHUP):
            self.addCleanup(signal.signal, sign, signal.getsignal(sign))
            signal.signal(sign, signal.default_int_handler)
        with Nursery() as nursery:
            child = nursery.adopt(Child(["sleep", "1000"]))
            nursery.adopt(Interrupted())
            directory = nursery.directory
        self.assertTrue(gone(child.pid))
        self.assertFalse(directory.exists())
        self.assertIs(signal.getsignal(signal.SIGINT), before)

    def test_die_when_their_parent_is_killed(self):
        script = (
            "import sys; sys.path.insert(0, sys.argv[1])\n"
            "from sidebyside.processes import Child\n"
            "child = Child(['sleep', '1000'])\n"
            "print(child.pid, flush=True)\n"
            "sys.stdin.read()\n"
        )
        parent = subprocess.Popen(
            [sys.executable, "-B", "-c", script, str(samples.ROOT / "bench")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        with parent:
            pid = int(parent.stdout.readline())
            parent.send_signal(signal.SIGKILL)
        self.assertTrue(gone(pid))

    def test_that_end_early_say_why(self):
        with Nursery() as nursery:
            child = nursery.adopt(Child(["sh", "-c", "echo port taken >&2"]))
            with self.assertRaisesRegex(Failure, "port taken"):
                child.wait_for_line("listening")

    def test_that_do_not_exist_are_a_failure(self):
        with self.assertRaisesRegex(Failure, "no-such-program"):
            Child(["no-such-program"])
        with self.assertRaisesRegex(Failure, "no-such-program"):
            run_tool(["no-such-program"], 1)

    def test_do_not_see_the_caller_s_settings(self):
        os.environ["FNCACHE_LISTEN"] = "0.0.0.0:1"
        os.environ["http_proxy"] = "http://nowhere"
        self.addCleanup(os.environ.pop, "FNCACHE_LISTEN")
        self.addCleanup(os.environ.pop, "http_proxy")
        with Nursery() as nursery:
            child = nursery.adopt(
                Child(["sh", "-c", "echo [$FNCACHE_LISTEN$http_proxy] >&2"])
            )
            child.wait_for_line(r"^\[\]$")


class Tools(unittest.TestCase):
    def test_that_take_too_long_are_killed(self):
        pids = []
        with self.assertRaisesRegex(Failure, "did not end"):
            run_tool(["sleep", "1000"], 0.05, on_start=pids.append)
        self.assertTrue(gone(pids[0]))


class Accounting(unittest.TestCase):
    def test_counts_what_was_spent(self):
        before = cpu_seconds([os.getpid()])
        busy_until = time.process_time() + 0.05
        while time.process_time() < busy_until:
            pass
        self.assertGreaterEqual(cpu_seconds([os.getpid()]) - before, 0.02)

    def test_a_process_that_has_ended_is_a_failure_to_measure(self):
        ended = subprocess.Popen(["true"])
        ended.wait()
        for figure in (lambda pid: cpu_seconds([pid]), resident_bytes):
            with self.assertRaisesRegex(Failure, f"{ended.pid} has ended"):
                figure(ended.pid)
