# SPDX-License-Identifier: Apache-2.0
"""The unit, and what has to agree with it."""
import re
import unittest

import tools
from test_overlay import seconds

UNIT = "deploy/systemd/fncache.service"


def unit():
    """Key -> its last value."""
    return dict(re.findall(r"^(\w+)=(.*)$", tools.read(UNIT), re.M))


class Systemd(unittest.TestCase):
    def test_what_is_cached_is_private_to_its_user(self):
        # "All of it is private to the user (0700)": docs/running.md.
        self.assertEqual(unit()["CacheDirectoryMode"], "0700")
        self.assertEqual(unit()["UMask"], "0077")

    def test_it_may_drain_before_it_is_killed(self):
        page = tools.read("docs/settings.md")
        drain = sum(seconds(re.search(
            rf"### `{name}`\n.*?- default: (\S+)", page, re.S)[1])
            for name in ("drain", "drain_delay"))
        self.assertGreater(drain, 0)
        self.assertGreaterEqual(int(unit()["TimeoutStopSec"]), drain + 5)
        # A start waits for a predecessor's lock for as long.
        self.assertGreater(int(unit()["TimeoutStartSec"]), drain + 5)

    def test_settings_user_and_folders_are_the_packages(self):
        conffile = tools.read("deploy/debian/conffiles").strip()
        for key in ("ExecStartPre", "ExecStart"):
            self.assertIn(f"--config {conffile}", unit()[key])
        self.assertIn("ConfigurationDirectory", unit())
        folder = f"/var/cache/{unit()['CacheDirectory']}"
        settings = tools.yaml.safe_load(tools.read("deploy/debian/fncache.yaml"))
        self.assertEqual(settings["cache"]["dir"], folder)
        user = re.search(r'^u (\S+) - "[^"]*" (\S+)$',
                         tools.read("deploy/systemd/fncache.sysusers"), re.M)
        self.assertEqual(user.groups(), (unit()["User"], folder))
        for script in ("postinst", "postrm"):
            self.assertIn(folder, tools.read("deploy/debian", script))


if __name__ == "__main__":
    unittest.main()
