# SPDX-License-Identifier: Apache-2.0
"""The cases of tests/data/field: each folder with a want.json is one render."""
import json
import os
import re
import shutil
import tempfile

from programs import FNCACHE, run, without_chance

ROOT = "tests/data/field"

FUNCTION = """---
apiVersion: pkg.crossplane.io/v1
kind: Function
metadata:
  name: {name}
  annotations:
    render.crossplane.io/runtime: Development
    render.crossplane.io/runtime-development-target: {address}
spec:
  package: example.org/{name}:v1
"""


def folders():
    return sorted(where for where, _, files in os.walk(ROOT) if "want.json" in files)


def write_functions(folder, function):
    """Makes functions.yaml fit to be used: the file's own with its port, or one that
    has each function of the Composition."""
    path = os.path.join(folder, "functions.yaml")
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            text = file.read().replace("@PORT@", function.port)
    else:
        with open(os.path.join(folder, "composition.yaml"), encoding="utf-8") as file:
            names = re.findall(r"functionRef:\s*\{?\s*name:\s*([\w.-]+)", file.read())
        text = "".join(FUNCTION.format(name=name, address=function.address) for name in sorted(set(names)))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def render(folder, command, function):
    """Runs `command` (a program and its first arguments) on a copy of the case: exit code,
    stdout, stderr and calls. Paths of the copy are left out of messages."""
    with tempfile.TemporaryDirectory() as copy:
        shutil.copytree(folder, copy, dirs_exist_ok=True)
        write_functions(copy, function)
        arguments = []
        if os.path.exists(os.path.join(copy, "args")):
            with open(os.path.join(copy, "args"), encoding="utf-8") as file:
                arguments = file.read().split()
        code, out, err = run([*command, "xr.yaml", "composition.yaml", "functions.yaml", *arguments], cwd=copy)
        message = err.decode(errors="replace").replace(os.path.realpath(copy) + "/", "").replace(copy + "/", "")
        return {
            "rc": code,
            "out": out.decode(errors="replace"),
            "err": without_places(message, function),
            "calls": calls_of(function),
        }


def without_places(message, function):
    """A message without what fncache adds to the reference's: the line in plain words, and
    the document's number of a file that has several."""
    message = re.sub(r"^fncache render: .*\n", "", message, flags=re.MULTILINE)
    return re.sub(r"\S+ \(document \d+\): ", "", message).replace(function.address, "HOST:PORT")


def calls_of(function):
    return [without_chance(call) for call in function.take_calls()]


def check(folder, function):
    """What is wrong with the case: a list of texts, empty if nothing is."""
    with open(os.path.join(folder, "want.json"), encoding="utf-8") as file:
        want = json.load(file)
    want["calls"] = [without_chance(call) for call in want["calls"]]
    got = render(folder, [FNCACHE, "render"], function)
    return [f"{folder}: {key} is {got[key]!r}, and should be {want[key]!r}"
            for key in ("rc", "out", "err", "calls") if got[key] != want[key]]
