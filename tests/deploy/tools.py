# SPDX-License-Identifier: Apache-2.0
"""Where things are, the programs that check them, and the rendered chart."""
import functools
import glob
import os
import shutil
import subprocess
import unittest

import yaml  # PyYAML: of the venv, else Debian's python3-yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CHART = os.path.join(ROOT, "deploy/chart")
EXAMPLES = sorted(glob.glob(os.path.join(CHART, "examples/*.yaml")))
RELEASE, NAMESPACE, KUBE = "cache", "crossplane-system", "1.33.0"
# The chart refuses the placeholder that its values and examples have.
OUR_IMAGE = ("--set", "image.repository=registry.test/fncache")


def path(*parts):
    return os.path.join(ROOT, *parts)


def read(*parts):
    with open(path(*parts), encoding="utf-8") as file:
        return file.read()


def need(program):
    """Where the program is; skips the test where it is not."""
    found = shutil.which(program)
    if not found:
        raise unittest.SkipTest(f"there is no {os.path.basename(program)}")
    return found


def helm():
    return need(os.environ["HELM_BINARY"])


def fncache():
    return need(os.environ["FNCACHE_BINARY"])


def run(*command, **more):
    """The process when it has ended: returncode, stdout, stderr."""
    return subprocess.run(command, text=True, capture_output=True, timeout=120,
                          check=False, **more)


def said(process):
    """Stderr without what Helm tells of symbolic links."""
    return "\n".join(line for line in process.stderr.splitlines()
                     if "found symbolic link" not in line)


def template(*arguments, kube=KUBE, image=OUR_IMAGE):
    return run(helm(), "template", RELEASE, CHART, "-n", NAMESPACE,
               "--kube-version", kube, *image, *arguments)


@functools.lru_cache(None)
def rendered(values):
    """The chart's text for a file of values."""
    done = template("-f", values)
    if done.returncode:
        raise AssertionError(f"{values}: {said(done)}")
    return done.stdout


def documents(text):
    return [document for document in yaml.safe_load_all(text) if document]


def objects(values):
    return documents(rendered(values))


def name(values):
    return os.path.splitext(os.path.basename(values))[0]
