# SPDX-License-Identifier: Apache-2.0
"""Schemas of what Kubernetes itself does not have, by their documentation: as
much of them as the chart uses, and nothing that they do not have."""

TEXT = {"type": "string"}
TEXTS = {"type": "object", "additionalProperties": TEXT}


def closed(properties, *required):
    return {"type": "object", "additionalProperties": False,
            "properties": properties, "required": list(required)}


def kind(api_version, name, spec):
    return closed({
        "apiVersion": {"const": api_version}, "kind": {"const": name},
        "metadata": closed({
            "name": {"type": "string", "maxLength": 253,
                     "pattern": r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"},
            "namespace": TEXT, "labels": TEXTS, "annotations": TEXTS}, "name"),
        "spec": spec}, "apiVersion", "kind", "metadata", "spec")


# Metadata of the objects of a package's runtime.
_METADATA = closed({"name": TEXT, "annotations": TEXTS, "labels": TEXTS})

# deploymentTemplate.spec is a DeploymentSpec, which test_overlay holds against
# Kubernetes' own schema. Services and accounts have metadata only.
RUNTIME_CONFIG = kind("pkg.crossplane.io/v1beta1", "DeploymentRuntimeConfig", closed({
    "deploymentTemplate": closed({
        "metadata": _METADATA,
        # Both are required by the schema of DeploymentSpec, though Crossplane
        # writes the selector.
        "spec": {"type": "object", "required": ["selector", "template"]}}),
    "serviceTemplate": closed({"metadata": _METADATA}),
    "serviceAccountTemplate": closed({"metadata": _METADATA})}))

IMAGE_CONFIG = kind("pkg.crossplane.io/v1beta1", "ImageConfig", closed({
    "matchImages": {"type": "array", "minItems": 1, "items": closed({
        "type": {"enum": ["Prefix"]}, "prefix": TEXT}, "prefix")},
    "registry": closed({"authentication": closed({
        "pullSecretRef": closed({"name": TEXT}, "name")}, "pullSecretRef")}),
    "rewriteImage": closed({"prefix": TEXT}, "prefix"),
    "runtime": closed({"configRef": closed(
        {"name": TEXT, "apiVersion": TEXT, "kind": TEXT}, "name")}),
}, "matchImages"))

_SELECTOR = closed({"matchLabels": TEXTS, "matchExpressions": {"type": "array"}})

POD_MONITOR = kind("monitoring.coreos.com/v1", "PodMonitor", closed({
    "selector": _SELECTOR,
    "namespaceSelector": closed({"any": {"type": "boolean"},
                                 "matchNames": {"type": "array", "items": TEXT}}),
    "podMetricsEndpoints": {"type": "array", "minItems": 1, "items": closed({
        "port": TEXT, "path": TEXT, "interval": TEXT, "scrapeTimeout": TEXT,
        "scheme": TEXT}, "port")},
}, "selector", "podMetricsEndpoints"))

PROMETHEUS_RULE = kind("monitoring.coreos.com/v1", "PrometheusRule", closed({
    "groups": {"type": "array", "minItems": 1, "items": closed({
        "name": TEXT, "interval": TEXT,
        "rules": {"type": "array", "items": closed({
            "alert": TEXT, "record": TEXT, "expr": TEXT, "for": TEXT,
            "labels": TEXTS, "annotations": TEXTS}, "expr")}}, "name", "rules")},
}, "groups"))

SCHEMAS = {
    "DeploymentRuntimeConfig": RUNTIME_CONFIG, "ImageConfig": IMAGE_CONFIG,
    "PodMonitor": POD_MONITOR, "PrometheusRule": PROMETHEUS_RULE,
}
