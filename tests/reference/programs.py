# SPDX-License-Identifier: Apache-2.0
"""Runs renders and what they need: the canned function, a command line, an engine.

Every program gets an end with the test: functions end with their standard input.
"""
import json
import os
import queue
import re
import subprocess
import threading

BUILD = os.environ.get("FNCACHE_BUILD", "build/release")
FNCACHE = os.path.abspath(os.path.join(BUILD, "fncache"))
CANNED = os.path.abspath(os.path.join(BUILD, "tests/reference/canned_function"))

# Longer than any render of these tests takes on a busy machine.
PATIENCE = 60


class CannedFunction:
    """A canned_function process. `take_calls` gives what it was asked since the last time."""

    def __init__(self):
        self.process = subprocess.Popen(
            [CANNED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        found = re.fullmatch(r"listening on (127\.0\.0\.1:(\d+))\n", line)
        if not found:
            raise RuntimeError(f"canned_function said {line!r}")
        self.address, self.port = found.groups()
        self._lines = queue.SimpleQueue()
        # Its pipe must never be full, or a call would wait.
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stdout:
            self._lines.put(json.loads(line))

    def take_calls(self):
        """The calls so far; the function begins anew."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        calls = []
        while (call := self._lines.get(timeout=PATIENCE)) is not None:
            calls.append(call)
        return calls

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        self.process.stdout.close()
        self.process.stderr.close()


def run(command, cwd=None, stdin=b""):
    """The exit code, stdout and stderr of a program that ends."""
    done = subprocess.run(command, cwd=cwd, input=stdin, capture_output=True, timeout=PATIENCE,
                          env=dict(os.environ, NO_COLOR="1"), check=False)
    return done.returncode, done.stdout, done.stderr


def without_chance(call):
    """A request as JSON without what differs from run to run: the tag, which depends on
    the build, and the time that the runner stamps."""
    version, request = call
    if isinstance(request, str):
        request = json.loads(request)
    request.setdefault("meta", {})["tag"] = "T"
    composite = request.get("observed", {}).get("composite", {}).get("resource", {})
    status = composite.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    for condition in conditions if isinstance(conditions, list) else []:
        if isinstance(condition, dict) and condition.get("type") == "Responsive":
            condition["lastTransitionTime"] = "NOW"
    return version, request
