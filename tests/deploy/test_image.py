# SPDX-License-Identifier: Apache-2.0
"""The image's file, by hadolint, where there is one, and what is handed through it."""
import os
import re
import tempfile
import unittest

import tools

DOCKERFILE = tools.path("deploy/image/Dockerfile")

if os.path.exists(DOCKERFILE):
    class Image(unittest.TestCase):
        def test_hadolint_finds_nothing(self):
            done = tools.run(tools.need("hadolint"), DOCKERFILE)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

        def test_the_binary_in_it_knows_its_commit(self):
            # The context has no .git, so scripts/image tells the commit, the
            # Dockerfile the build, and that the binary.
            self.assertIn(".git", tools.read(".dockerignore").splitlines())
            with tempfile.TemporaryDirectory() as folder:
                # A builder that records its arguments.
                for name, text in (
                        ("podman", '#!/bin/sh\n[ "$1" != image ] || { echo 1; exit; }\n'
                                   f'printf "%s\\n" "$@" >>{folder}/told\n'),
                        ("git", "#!/bin/sh\ncase $1 in describe) echo 0123456789ab-modified;;"
                                " *) echo x;; esac\n")):
                    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                        file.write(text)
                    os.chmod(file.name, 0o755)
                done = tools.run(tools.path("scripts/image"), "x:y", env={
                    **os.environ, "PATH": f"{folder}:{os.environ['PATH']}",
                    "IMAGE_TOOL": "podman"})
                self.assertEqual(done.returncode, 0, done.stderr)
                with open(os.path.join(folder, "told"), encoding="utf-8") as file:
                    commit, = re.findall(r"^COMMIT=(.*)$", file.read(), re.M)
                self.assertEqual(commit, "0123456789ab-modified")
                build = re.split(r"^FROM ", tools.read("deploy/image/Dockerfile"),
                                 flags=re.M)[1]
                self.assertRegex(
                    build, r'(?s)ARG COMMIT=.*FNCACHE_COMMIT="\$\{COMMIT\}" make ')
                for said, expected in ((commit, commit), ('";evil', ""), ("", "")):
                    made = os.path.join(folder, "commit.cc")
                    done = tools.run(
                        tools.need("cmake"), "-D", f"SOURCE={folder}", "-D",
                        f"OUTPUT={made}", "-P", tools.path("cmake/commit.cmake"),
                        env={**os.environ, "FNCACHE_COMMIT": said})
                    self.assertEqual(done.returncode, 0, done.stderr)
                    with open(made, encoding="utf-8") as file:
                        self.assertIn(f'return "{expected}";', file.read())
