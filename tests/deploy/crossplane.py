# SPDX-License-Identifier: Apache-2.0
"""What Crossplane's package manager makes of a DeploymentRuntimeConfig.

Behaviour of releases 2.0 to 2.4 for functions, made again for these tests: the
template is the beginning; what it lacks gets a default, some of what it has is
overwritten, and ports, variables, volumes are added. Names and order are
Crossplane's.
"""
import copy

RUNTIME = "package-runtime"


def _runtime(pod):
    """The container package-runtime, which is made if need be and put first."""
    containers = pod.setdefault("containers", [])
    for i, container in enumerate(containers):
        if container["name"] == RUNTIME:
            containers.insert(0, containers.pop(i))
            return containers[0]
    containers.insert(0, {"name": RUNTIME})
    return containers[0]


def deployment(config, function, revision, namespace, image,
               package_pull_secrets=None, package_pull_policy=None):
    """The Deployment of a function's active revision."""
    template = copy.deepcopy(config["spec"].get("deploymentTemplate", {}))
    metadata = template.get("metadata", {})
    spec = template.get("spec") or {}
    pod_template = spec.setdefault("template", {})
    pod = pod_template.setdefault("spec", {})
    runtime = _runtime(pod)

    # Where the template says nothing.
    metadata.setdefault("name", revision)
    spec.setdefault("replicas", 1)
    pod.setdefault("securityContext", {
        "runAsNonRoot": True, "runAsUser": 2000, "runAsGroup": 2000})
    runtime.setdefault("imagePullPolicy", "IfNotPresent")
    runtime.setdefault("securityContext", {
        "runAsUser": 2000, "runAsGroup": 2000, "runAsNonRoot": True,
        "allowPrivilegeEscalation": False, "privileged": False})
    if not pod.get("serviceAccountName"):
        pod["serviceAccountName"] = revision
    runtime.setdefault("image", image)

    # It overrides the template.
    metadata["namespace"] = namespace
    labels = {"pkg.crossplane.io/revision": revision,
              "pkg.crossplane.io/function": function}
    spec.setdefault("selector", {})["matchLabels"] = labels
    pod_template.setdefault("metadata", {}).setdefault("labels", {}).update(labels)
    pod["imagePullSecrets"] = [{"name": n} for n in package_pull_secrets or []]
    if package_pull_policy:
        runtime["imagePullPolicy"] = package_pull_policy

    # Ports by name, unless the container has one of that name.
    ports = runtime.setdefault("ports", [])
    for port_name, number in (("metrics", 8080), ("grpc", 9443)):
        if port_name not in {port.get("name") for port in ports}:
            ports.append({"name": port_name, "containerPort": number})

    # A function's certificates are for serving only.
    pod.setdefault("volumes", []).append({
        "name": "tls-server-certs", "secret": {
            "secretName": f"{function}-tls-server",
            "items": [{"key": key, "path": key}
                      for key in ("tls.crt", "tls.key", "ca.crt")]}})
    runtime.setdefault("volumeMounts", []).append({
        "name": "tls-server-certs", "readOnly": True, "mountPath": "/tls/server"})

    # Appended: the last one of a name counts.
    runtime.setdefault("env", []).extend([
        {"name": "TLS_SERVER_CERTS_DIR", "value": "/tls/server"},
        {"name": "FUNCTION_NAME", "valueFrom": {"fieldRef": {
            "fieldPath": "metadata.labels['pkg.crossplane.io/function']"}}},
        {"name": "REVISION_NAME", "valueFrom": {"fieldRef": {
            "fieldPath": "metadata.labels['pkg.crossplane.io/revision']"}}},
        {"name": "REVISION_UID", "value": "00000000-0000-0000-0000-000000000000"},
    ])
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
            "spec": spec}


def service(function, revision, namespace):
    """The headless Service that runners call."""
    return {"apiVersion": "v1", "kind": "Service",
            "metadata": {"name": function, "namespace": namespace},
            "spec": {"clusterIP": "None",
                     "selector": {"pkg.crossplane.io/revision": revision,
                                  "pkg.crossplane.io/function": function},
                     "ports": [{"name": "grpc", "protocol": "TCP", "port": 9443,
                                "targetPort": "grpc"}]}}


def certificate_names(function, namespace):
    """Names in the certificate that Crossplane makes for the function."""
    return [function, f"{function}.{namespace}", f"{function}.{namespace}.svc"]


def selects(labels, selector):
    return selector.items() <= labels.items()


def variables(container, labels):
    """The container's environment, as the kubelet would make it."""
    found = {}
    for variable in container.get("env", []):
        if "value" in variable:
            found[variable["name"]] = variable["value"]
        else:
            field = variable["valueFrom"]["fieldRef"]["fieldPath"]
            found[variable["name"]] = labels[
                field.removeprefix("metadata.labels['").removesuffix("']")]
    return found
