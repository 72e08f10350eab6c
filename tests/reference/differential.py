#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renders beside the reference.

Runs every case of tests/data/field. Where the reference's programs are given, it then
compares `fncache` with them on random inputs that depend on the seed alone:

  CROSSPLANE      an engine (`crossplane` of Crossplane): 2,000 requests to `internal render`
  CROSSPLANE_CLI  a command line (`crossplane` of crossplane/cli): 1,000 renders of random
                  YAML files, with CROSSPLANE as its engine

Usage: tests/reference/differential.py [--seed N] [--requests N] [--files N] [--show N]
Exit code: 0; 1 if anything differs, or there are no cases.
"""
import argparse
import os
import random
import shutil
import sys
import tempfile

import field
import generate
import render_messages
from programs import FNCACHE, CannedFunction, run


# Runs of the reference for one request, until its answer is ours.
ATTEMPTS = 6


def check_field(function):
    """The number of wrong cases of tests/data/field."""
    cases = field.folders()
    if not cases:
        print(f"field: no cases in {field.ROOT}")
        return 1
    wrong = 0
    for folder in cases:
        problems = field.check(folder, function)
        wrong += bool(problems)
        for problem in problems:
            print(problem)
    print(f"field: {len(cases)} cases, {wrong} of them wrong")
    return wrong


class Differences:
    """Counts what differs, and shows the first of it."""

    def __init__(self, show):
        self.count = 0
        self.show = show

    def compare(self, what, ours, theirs):
        if ours == theirs:
            return
        self.count += 1
        if self.count > self.show:
            return
        print(f"{what} differs:")
        for key in theirs:
            if ours.get(key) != theirs[key]:
                print(f"  {key}\n    fncache:   {ours.get(key)!r}\n    reference: {theirs[key]!r}")


def answer(engine, request, function):
    """What an engine does with a request: exit code, decoded output, message, calls."""
    code, out, err = run([engine, "internal", "render"], stdin=render_messages.request(request, function.address))
    return {
        "rc": code,
        "out": render_messages.response(out),
        "err": field.without_places(err.decode(errors="replace"), function),
        "calls": field.calls_of(function),
    }


def compare_engines(engine, function, rand, count, show):
    differences = Differences(show)
    for index in range(count):
        request = generate.request(rand)
        ours = answer(FNCACHE, request, function)
        # The reference goes over maps in any order, and stops at the first error.
        for _ in range(ATTEMPTS):
            theirs = answer(engine, request, function)
            if theirs == ours:
                break
        differences.compare(f"request {index}: {request!r}", ours, theirs)
    print(f"engine: {count} requests, {differences.count} differ")
    return differences.count


def compare_commands(command, engine, function, rand, count, show):
    reference = [command, "render"]
    if engine:
        reference += ["--crossplane-binary", engine]
    differences = Differences(show)
    for index in range(count):
        with tempfile.TemporaryDirectory() as folder:
            generate.write_case(rand, folder)
            ours = field.render(folder, [FNCACHE, "render"], function)
            theirs = field.render(folder, reference, function)
            before = differences.count
            differences.compare(f"files {index}", ours, theirs)
            if differences.count > before and differences.count <= show:
                kept = os.path.join(tempfile.gettempdir(), f"fncache-differs-{index}")
                shutil.rmtree(kept, ignore_errors=True)
                shutil.copytree(folder, kept)
                print(f"  kept in {kept}")
    print(f"command: {count} renders of random files, {differences.count} differ")
    return differences.count


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--requests", type=int, default=2000)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--show", type=int, default=10, help="differences that are printed")
    arguments = parser.parse_args()
    engine = os.environ.get("CROSSPLANE")
    command = os.environ.get("CROSSPLANE_CLI")
    with CannedFunction() as function:
        wrong = check_field(function)
        if engine:
            wrong += compare_engines(engine, function, random.Random(arguments.seed), arguments.requests, arguments.show)
        else:
            print("no reference: CROSSPLANE names no engine, so no random requests were compared")
        if command:
            wrong += compare_commands(command, engine, function, random.Random(arguments.seed), arguments.files,
                                      arguments.show)
        else:
            print("no reference: CROSSPLANE_CLI names no command, so no random files were compared")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
