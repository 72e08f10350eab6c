# SPDX-License-Identifier: Apache-2.0
"""The image's file, by hadolint, where there is one."""
import os
import unittest

import tools

DOCKERFILE = tools.path("deploy/image/Dockerfile")

if os.path.exists(DOCKERFILE):
    class Image(unittest.TestCase):
        def test_hadolint_finds_nothing(self):
            done = tools.run(tools.need("hadolint"), DOCKERFILE)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
