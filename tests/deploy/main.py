# SPDX-License-Identifier: Apache-2.0
"""Runs the checks and says what was skipped. Called by `run`."""
import os
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "../../bench")]


def tests(outcomes):
    """Tests, each once, that had such an outcome in a part or as a whole."""
    cases = {getattr(test, "test_case", test) for test, _ in outcomes}
    return {case.id() for case in cases if isinstance(case, unittest.TestCase)}


def main():
    arguments = sys.argv[1:]
    if "--update" in arguments:
        arguments.remove("--update")
        os.environ["DEPLOY_UPDATE"] = "1"
    loader = unittest.TestLoader()
    suite = (loader.loadTestsFromNames(arguments) if arguments
             else loader.discover(HERE, top_level_dir=HERE))
    result = unittest.TextTestRunner(verbosity=1, buffer=False).run(suite)
    reasons = {}
    for test, reason in result.skipped:
        reasons.setdefault(reason, []).append(test.id())
    for reason, names in reasons.items():
        print(f"deploy: skipped: {reason}: {', '.join(names)}")
    if os.environ.get("DEPLOY_MISSING"):
        print("deploy: not to be had here:" + os.environ["DEPLOY_MISSING"])
    failed = len(tests(result.failures + result.errors)) or len(result.errors)
    skipped = tests(result.skipped) - tests(result.failures + result.errors)
    passed = max(0, result.testsRun - failed - len(skipped))
    print(f"{passed} passed, {failed} failed, {len(result.skipped)} skipped")
    if result.skipped and os.environ.get("CI") == "true":
        print("deploy: under CI nothing may be skipped")
        return 1
    return 0 if result.wasSuccessful() and result.testsRun else 1


sys.exit(main())
