# SPDX-License-Identifier: Apache-2.0
"""What is rendered fits the schemas of Kubernetes and of what it is made for."""
import glob
import unittest

import schemas
import tools

VERSIONS = ("1.30", "1.34", "1.37")


def validators():
    try:
        import jsonschema
        import kubernetes_validate
    except ImportError as error:
        raise unittest.SkipTest(f"Python has no {error.name}") from error
    return jsonschema, kubernetes_validate


def plain_manifests():
    """Manifests that are no chart's."""
    return sorted(glob.glob(tools.path("deploy/crossplane/*.yaml"))
                  + glob.glob(tools.path("examples/runtime-config.yaml")))


class Kubernetes(unittest.TestCase):
    def check(self, made, where):
        jsonschema, kubernetes_validate = validators()
        own = schemas.SCHEMAS.get(made["kind"])
        if own:
            jsonschema.validate(made, own, jsonschema.Draft7Validator)
            return
        for version in VERSIONS:
            with self.subTest(f"{where} {made['kind']} {version}"):
                kubernetes_validate.validate(made, version, strict=True)

    def test_every_object_fits_its_schema(self):
        seen = set()
        for values in tools.EXAMPLES:
            for made in tools.objects(values):
                seen.add(made["kind"])
                self.check(made, tools.name(values))
        self.assertTrue({"Deployment", "Service", "ImageConfig", "PodMonitor",
                         "DeploymentRuntimeConfig"} <= seen, seen)

    def test_so_do_the_plain_manifests(self):
        for file in plain_manifests():
            for made in tools.documents(tools.read(file)):
                if isinstance(made, dict) and made.get("kind") in schemas.SCHEMAS:
                    self.check(made, file)

    def test_the_schemas_refuse_what_they_should(self):
        jsonschema, kubernetes_validate = validators()
        one = tools.objects(tools.path("deploy/chart/examples/one-function.yaml"))[1]
        for change in ({"spec": {"deploymentTemplates": {}}},
                       {"spec": {"serviceTemplate": {"spec": {}}}},
                       {"spec": {"deploymentTemplate": {"spec": {"template": {}}}}},
                       {"apiVersion": "pkg.crossplane.io/v1"}):
            with self.assertRaises(jsonschema.ValidationError, msg=str(change)):
                jsonschema.validate({**one, **change}, schemas.RUNTIME_CONFIG)
        with self.assertRaises(jsonschema.ValidationError):
            kubernetes_validate.validate(
                {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"},
                 "spec": {"port": []}}, VERSIONS[0], strict=True)


if __name__ == "__main__":
    unittest.main()
