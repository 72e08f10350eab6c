# SPDX-License-Identifier: Apache-2.0
"""Random inputs of a render, of which most are sound and some are wrong somewhere."""
from json import dumps
import os
import re



TEXTS = ["a", "b", "site", "eu", "", "1", "true", "1e6", "A b", "x:y", "-a", "a.b", "é", "2024-01-01T00:00:00Z"]
SCALARS = [None, True, False, 0, 1, -3, 1.5, 1e21, 9007199254740993, "a", "", "1", []]
KINDS = [("v1", "ConfigMap"), ("s3.example.org/v1", "Bucket"), ("rbac.authorization.k8s.io/v1", "ClusterRole"),
         ("v1", "Secret"), ("apiextensions.crossplane.io/v1", "CompositionRevision")]


def any_value(rand, depth=0):
    kind = rand.random()
    if kind < 0.6 or depth > 2:
        return rand.choice(SCALARS)
    if kind < 0.8:
        return [any_value(rand, depth + 1) for _ in range(rand.randint(0, 3))]
    return {rand.choice("abc") + str(i): any_value(rand, depth + 1) for i in range(rand.randint(0, 3))}


def spoil(rand, json, chance):
    """The same with values replaced, now and then, by any others."""
    if rand.random() < chance:
        return any_value(rand)
    if isinstance(json, dict):
        return {key: spoil(rand, one, chance) for key, one in json.items()}
    if isinstance(json, list):
        return [spoil(rand, one, chance) for one in json]
    return json


def spoil_fields(rand, json, chance):
    """The same of an object, which stays one. The functions' answers stay sound, since it
    is the programs that are compared."""
    return {key: one if key == "input" else spoil(rand, one, chance) for key, one in json.items()}


def some(rand, json, chance=0.5):
    """Some of the fields."""
    return {key: one for key, one in json.items() if rand.random() < chance}


def resource(rand, name=None):
    api_version, kind = rand.choice(KINDS)
    metadata = some(rand, {"name": name or rand.choice(["r", "s:t", "a.b", "-a", "x" * 70]),
                           "namespace": rand.choice(["ns", "other"]), "labels": {"tier": rand.choice(TEXTS)},
                           "annotations": {"crossplane.io/composition-resource-name": rand.choice("rs")}})
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": {"v": any_value(rand)}}


def response(rand):
    desired = {"resources": {name: some(rand, {"resource": resource(rand), "ready": rand.choice(
        ["READY_TRUE", "READY_FALSE", "READY_UNSPECIFIED"])}, 0.9) for name in "rst"[:rand.randint(0, 3)]}}
    if rand.random() < 0.5:
        desired["composite"] = {"resource": some(rand, {"status": any_value(rand), "conditions": any_value(rand)})}
    return some(rand, {
        "desired": desired,
        "passDesired": True,
        "passContext": True,
        "context": {"k": any_value(rand)},
        "results": [{"severity": rand.choice(["SEVERITY_NORMAL", "SEVERITY_WARNING", "SEVERITY_UNSPECIFIED",
                                              "SEVERITY_FATAL"]), "message": rand.choice(TEXTS)}],
        "conditions": [{"type": rand.choice(["Ready", "DB"]), "status": "STATUS_CONDITION_TRUE", "reason": "R"}],
        "requirements": {"resources": {"x": {"apiVersion": rand.choice(KINDS)[0], "kind": rand.choice(KINDS)[1],
                                             "matchName": rand.choice(["r", "s:t"])}}},
    }, 0.4)


def composition(rand):
    steps = []
    for number in range(rand.randint(1, 3)):
        responses = [response(rand) for _ in range(rand.randint(1, 2))]
        step = {"step": f"s{number}", "functionRef": {"name": "fn"},
                "input": {"apiVersion": "canned.example.org/v1", "kind": "Canned", "responses": responses}}
        if rand.random() < 0.2:
            step["credentials"] = [{"name": "c", "source": "Secret", "secretRef": {"name": "sec", "namespace": "ns"}}]
        steps.append(step)
    return {
        "apiVersion": "apiextensions.crossplane.io/v1",
        "kind": "Composition",
        "metadata": dict({"name": "things"}, **some(rand, {"labels": {"tier": rand.choice(TEXTS)},
                                                           "annotations": {"a": rand.choice(TEXTS)}}, 0.3)),
        "spec": {"compositeTypeRef": {"apiVersion": "example.org/v1", "kind": "XThing"}, "mode": "Pipeline",
                 "pipeline": steps},
    }


def composite(rand):
    metadata = dict({"name": "site"}, **some(rand, {
        "namespace": "ns",
        "generation": 3,
        "labels": some(rand, {"crossplane.io/composite": "pre", "x": "y"}),
        "annotations": some(rand, {"crossplane.io/paused": rand.choice(["true", "false"]),
                                   "crossplane.io/reconcile-requested-at": "t1"}, 0.3),
    }, 0.4))
    if rand.random() < 0.05:
        metadata["deletionTimestamp"] = "2026-08-01T00:00:00Z"
    xr = {"apiVersion": "example.org/v1", "kind": "XThing", "metadata": metadata, "spec": {"region": any_value(rand)}}
    if rand.random() < 0.4:
        xr["status"] = some(rand, {
            "lastHandledReconcileAt": rand.choice(["t0", "t1"]), "v": any_value(rand),
            "conditions": [{"type": "Responsive", "status": "True", "reason": "WatchCircuitClosed",
                            "lastTransitionTime": "2024-01-01T00:00:00Z"}]})
    return xr


def secret(rand):
    return some(rand, {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "sec", "namespace": "ns"},
                       "data": {"a": rand.choice(["YQ==", "", "?"])}, "stringData": {"b": rand.choice(TEXTS)}}, 0.9)


def request(rand):
    """An engine's request, for render_messages.request."""
    chance = rand.choice([0, 0, 0, 0.01, 0.03])

    made = composition(rand)
    made["metadata"] = spoil(rand, made["metadata"], chance)
    made["spec"]["pipeline"] = [spoil_fields(rand, step, chance) for step in made["spec"]["pipeline"]]
    return {
        "composite": dict(spoil_fields(rand, composite(rand), chance), apiVersion="example.org/v1", kind="XThing"),
        "composition": made,
        "functions": ["fn"],
        "observed": [spoil_fields(rand, resource(rand), chance) for _ in range(rand.choice([0, 0, 1, 2]))],
        "required": [spoil_fields(rand, resource(rand), chance) for _ in range(rand.choice([0, 1, 2]))],
        "credentials": [spoil_fields(rand, secret(rand), chance) for _ in range(rand.choice([0, 1]))],
    }


# --- files --------------------------------------------------------------------

# Pieces for the text of files, on which YAML dialects disagree.
PIECES = ["?", ": ", ", ", "[", "]", "{", "}", "'", '"', "\n", "\n  ", "# x", "&a ", "*a", "!!str ", "!!int ", "|", ">-\n  ",
          "\n---\n", "\n...\n", "\t", "\\/", "\\x41", "<<: ", "~", "1e6", "0x1f", "010", "yes", ".inf", "1_000", "-0.0",
          "\ufeff", "\u0085", "\u2028", "\r\n", "\x01", "9007199254740993", "18446744073709551615", "a?b", "http://x/y?z=1"]
HEADS = ["", "", "", "", "\ufeff", "---\n", "--- # x\n", "%YAML 1.1\n---\n", "%YAML 1.2\n---\n", "# x\n", "\n\n"]


def flow(rand, json):
    """JSON as YAML: some of it in flow style, some in block style, texts plain where they may be."""
    if isinstance(json, str) and re.fullmatch(r"[A-Za-z/:.?=]*[A-Za-z]", json) and rand.random() < 0.7:
        return json
    if isinstance(json, dict) and json:
        return "{" + ", ".join(f"{flow(rand, key)}: {flow(rand, one)}" for key, one in json.items()) + "}"
    if isinstance(json, list) and json:
        return "[" + ", ".join(flow(rand, one) for one in json) + "]"
    return dumps(json)


def block(rand, json_value, indent=0):
    pad = " " * indent
    if isinstance(json_value, dict) and json_value and rand.random() < 0.85:
        lines = ""
        for key, one in json_value.items():
            nested = isinstance(one, (dict, list)) and one and rand.random() < 0.8
            inner = block(rand, one, indent + 2) if nested else flow(rand, one) + "\n"
            lines += f"{pad}{flow(rand, key)}:" + ("\n" + inner if nested else " " + inner)
        return lines
    if isinstance(json_value, list) and json_value and rand.random() < 0.85:
        return "".join(f"{pad}- {flow(rand, one)}\n" for one in json_value)
    return f"{pad}{flow(rand, json_value)}\n"


def text(rand, value, wrong):
    made = rand.choice(HEADS) + block(rand, value)
    for _ in range(wrong):
        at = rand.randint(0, len(made))
        cut = rand.choice([0, 0, 0, 1, 3])
        made = made[:at] + rand.choice(PIECES) + made[at + cut:]
    return made


def write_case(rand, folder):
    """Writes a case as tests/data/field has them. Mostly one file of it is wrong."""
    function = {"apiVersion": "pkg.crossplane.io/v1", "kind": "Function", "metadata": {"name": "fn", "annotations": {
        "render.crossplane.io/runtime": "Development",
        "render.crossplane.io/runtime-development-target": "127.0.0.1:@PORT@"}}, "spec": {"package": "example.org/f:v1"}}
    files = {"xr.yaml": composite(rand), "composition.yaml": composition(rand), "functions.yaml": function,
             "secrets.yaml": secret(rand), "observed.yaml": resource(rand), "required.yaml": resource(rand)}
    spoilt = rand.choice(sorted(files))
    for name, value in files.items():
        wrong = rand.choice([0, 0, 1, 2]) if name == spoilt else 0
        if name == spoilt and rand.random() < 0.5:
            value = spoil_fields(rand, value, 0.03)
        with open(os.path.join(folder, name), "w", encoding="utf-8", newline="") as file:
            file.write(text(rand, value, wrong))
    arguments = ["-r"]
    for flag, name in (("--function-credentials", "secrets.yaml"), ("-o", "observed.yaml"), ("-e", "required.yaml")):
        if rand.random() < 0.5:
            arguments += [flag, name]
    if rand.random() < 0.3:
        arguments.append("-x")
    with open(os.path.join(folder, "args"), "w", encoding="utf-8") as file:
        file.write(" ".join(arguments) + "\n")
