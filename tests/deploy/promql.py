# SPDX-License-Identifier: Apache-2.0
"""As much of PromQL as it takes to say which metrics and labels an expression
names, and to make it answer whether or not its condition holds."""
import json
import re

import tools

# Prometheus' own, of every target.
FOREIGN = {"up"}
TARGET_LABELS = {"job", "instance", "le"}


def catalogue():
    """Metric of docs/metrics.md -> its type and labels."""
    found = {}
    for line in tools.read("docs/metrics.md").splitlines():
        row = re.fullmatch(r"\| `([a-z_]+)` \| (\w+) \| (.*?) ?\| .* \|", line)
        if row:
            found[row[1]] = (row[2], set(re.findall(r"`(\w+)`", row[3])))
    return found


def metrics(expression):
    """Names of the metrics, a histogram's without what its series add."""
    bare = re.sub(r"\{[^}]*\}|\"[^\"]*\"", "", expression)
    names = set(re.findall(
        r"\b((?:fncache|function_run|process)_\w+|up)\b", bare))
    known = catalogue()
    return {re.sub(r"_(bucket|sum|count)$", "", name) if name not in known else name
            for name in names}


def matched_labels(expression):
    """Pairs of a metric and a label that is chosen by."""
    for name, inside in re.findall(r"\b(\w+)\{([^}]*)\}", expression):
        for label in re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", inside):
            yield re.sub(r"_(bucket|sum|count)$", "", name), label


def grouped_labels(expression):
    for inside in re.findall(r"\b(?:by|without|on)\s*\(([^)]*)\)", expression):
        yield from filter(None, re.split(r"\s*,\s*", inside.strip()))


def always(expression):
    """The same operands, and 0 or 1 in place of leaving out what does not fit."""
    parts = re.split(r"(\{[^}]*\})", expression)
    for i in range(0, len(parts), 2):
        part = re.sub(r"(==|!=|<=|>=|<|>)(?!\s*bool)", r"\1 bool", parts[i])
        part = re.sub(r"\bunless\b", "and", part)
        # A test cannot wait a day.
        parts[i] = re.sub(r"\s+offset \w+", "", part)
    return "".join(parts)


def rules():
    """All alerts of the file."""
    groups = tools.yaml.safe_load(tools.read("deploy/prometheus/fncache.rules.yaml"))
    return [rule for group in groups["groups"] for rule in group["rules"]]


def panels():
    """Title and expression of each query of the dashboard."""
    made = json.loads(tools.read("deploy/grafana/fncache.json"))
    for panel in made["panels"]:
        for target in panel.get("targets", []):
            yield f"{panel['title']} {target['refId']}", target["expr"]


def of_all(expression):
    """A dashboard's expression with the variables at All."""
    return (expression.replace("$__rate_interval", "1m")
            .replace("$function_name", ".*").replace("$instance", ".*"))
