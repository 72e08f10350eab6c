# SPDX-License-Identifier: Apache-2.0
"""The pods that Crossplane makes of the runtime configurations: the function on
loopback or elsewhere, 9443 fncache's, certificates and names where it looks for
them, time to finish, room for what it holds."""
import glob
import math
import os
import re
import subprocess
import tempfile
import unittest

import crossplane
import tools

FUNCTION_IMAGE = "xpkg.example.org/function@sha256:0"
UNITS = {"": 1, "B": 1, "K": 1e3, "Ki": 2**10, "M": 1e6, "Mi": 2**20, "G": 1e9,
         "Gi": 2**30, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "MB": 1e6, "GB": 1e9}
SECONDS = {"h": 3600, "m": 60, "s": 1, "ms": 0.001}


def size(text):
    number, unit = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", str(text)).groups()
    return float(number) * UNITS[unit]


def seconds(text):
    return sum(float(n) * SECONDS[u] for n, u in
               re.findall(r"([0-9.]+)(ms|h|m|s)", text))


def flag(arguments, name, otherwise=None):
    for argument in arguments:
        if argument.startswith(f"--{name}="):
            return argument.split("=", 1)[1]
    return otherwise


class Pod:
    """What one runtime configuration comes to, and the objects beside it."""

    def __init__(self, config, others, function, values):
        self.function, self.others = function, others
        self.revision = f"{function}-0123456789ab"
        self.deployment = crossplane.deployment(
            config, function, self.revision, tools.NAMESPACE, FUNCTION_IMAGE)
        self.template = self.deployment["spec"]["template"]
        self.labels = self.template["metadata"]["labels"]
        self.spec = self.template["spec"]
        self.runtime = self.spec["containers"][0]
        self.standalone = len(self.spec["containers"]) == 1
        self.proxy = self.runtime if self.standalone else self.spec["containers"][1]
        variables = crossplane.variables(self.proxy, self.labels)
        # As the kubelet expands them.
        self.args = [re.sub(r"\$\((\w+)\)", lambda m: variables[m[1]], argument)
                     for argument in self.proxy["args"]]
        self.values = values

    def settings(self):
        """The mounted file's, and the flags' over them, by name with dots."""
        flat = {}

        def walk(prefix, tree):
            for key, value in tree.items():
                if isinstance(value, dict):
                    walk(f"{prefix}{key}.", value)
                else:
                    flat[prefix + key] = value
        for text in self.files().values():
            walk("", tools.yaml.safe_load(text))
        for argument in self.args:
            match = re.fullmatch(r"--([a-z-]+)=(.*)", argument)
            if match:
                name = match[1].replace("-", "_")
                for group in ("cache", "ttl", "trace", "log", "inflight", "explain",
                              "shared"):
                    name = re.sub(f"^{group}_", f"{group}.", name)
                flat[name] = match[2]
        return flat

    def mounts(self):
        return {m["mountPath"]: m["name"] for m in self.proxy["volumeMounts"]}

    def volume(self, name):
        return next(v for v in self.spec["volumes"] if v["name"] == name)

    def files(self):
        """Path in the container -> text, of mounted ConfigMaps."""
        found = {}
        for where, volume in self.mounts().items():
            of = self.volume(volume).get("configMap")
            if not of:
                continue
            for made in self.others:
                if made["kind"] == "ConfigMap" and made["metadata"]["name"] == of["name"]:
                    for key, text in made["data"].items():
                        found[f"{where}/{key}"] = text
        return found


    def lay_out(self, folder):
        """Makes what is mounted below the folder. Returns the container's
        arguments and environment with the paths there."""
        places = {"/tls/server": tools.path("tests/data/certificates/server"),
                  "/tls/upstream": tools.path("tests/data/certificates/client"),
                  "/shared/tls": tools.path("tests/data/certificates/client")}
        for where in self.mounts():
            if where not in places:
                places[where] = os.path.join(folder, where.strip("/"))
                os.makedirs(places[where])
        for where, text in self.files().items():
            with open(os.path.join(folder, where.strip("/")), "w",
                      encoding="utf-8") as file:
                file.write(text)

        for option in ("shared-secret-file", "shared-password-file"):
            where = flag(self.args, option, "")
            if where:
                with open(os.path.join(folder, where.strip("/")), "w",
                          encoding="utf-8") as file:
                    file.write("x" * 32)

        def here(text):
            for where, there in places.items():
                text = re.sub(f"(^|=){re.escape(where)}(?=/|$)",
                              lambda m: m[1] + there, text)
            return text
        return [here(argument) for argument in self.args], {
            name: here(value) for name, value in
            crossplane.variables(self.proxy, self.labels).items()}


def pods():
    """A name and a Pod for each runtime configuration that we tell of."""
    for values in tools.EXAMPLES:
        made = tools.objects(values)
        settings = tools.yaml.safe_load(open(values, encoding="utf-8"))
        for config in made:
            if config["kind"] == "DeploymentRuntimeConfig":
                name = config["metadata"]["name"]
                known = [f["name"] for f in settings["functions"]
                         if name.endswith(f"-{f['name']}")]
                yield (f"{tools.name(values)} {name}",
                       Pod(config, made, (known or ["function-registry"])[0], values))
    plain = (glob.glob(tools.path("deploy/crossplane/*.yaml"))
             + glob.glob(tools.path("examples/runtime-config.yaml")))
    for file in plain:
        made = [o for o in tools.documents(tools.read(file)) if isinstance(o, dict)]
        for config in made:
            if config.get("kind") == "DeploymentRuntimeConfig":
                yield (f"{os.path.basename(file)} {config['metadata']['name']}",
                       Pod(config, made, "function-x", None))


def for_each_pod(standalone=None):
    """Makes a test of one pod a test of all, or of those of one mode."""
    def make(test):
        def of_all(self):
            chosen = [(name, pod) for name, pod in self.pods
                      if standalone in (None, pod.standalone)]
            self.assertTrue(chosen)
            for name, pod in chosen:
                with self.subTest(name):
                    test(self, pod)
        return of_all
    return make


class Overlay(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pods = list(pods())

    @for_each_pod()
    def test_the_result_is_a_deployment(self, pod):
        try:
            import kubernetes_validate
        except ImportError as error:
            raise unittest.SkipTest(f"Python has no {error.name}") from error
        for version in ("1.30", "1.34", "1.37"):
            kubernetes_validate.validate(pod.deployment, version, strict=True)
        selector = pod.deployment["spec"]["selector"]["matchLabels"]
        self.assertTrue(crossplane.selects(pod.labels, selector))

    @for_each_pod(standalone=False)
    def test_the_function_is_on_loopback_and_9443_is_ours(self, pod):
        self.assertEqual(pod.runtime["image"], FUNCTION_IMAGE)
        self.assertIn("--insecure", pod.runtime["args"])
        address = flag(pod.runtime["args"], "address")
        self.assertRegex(address, r"^127\.0\.0\.1:")
        self.assertEqual(flag(pod.args, "upstream"), address)

    @for_each_pod()
    def test_callers_reach_fncache(self, pod):
        made = crossplane.service(pod.function, pod.revision, tools.NAMESPACE)
        self.assertTrue(crossplane.selects(pod.labels, made["spec"]["selector"]))
        # The Service's port is that of the first container with the name.
        target = made["spec"]["ports"][0]["targetPort"]
        number = next(p["containerPort"] for c in pod.spec["containers"]
                      for p in c.get("ports", []) if p["name"] == target)
        listen = pod.settings().get("listen", "0.0.0.0:9443")
        self.assertEqual(listen, f"0.0.0.0:{number}")

    @for_each_pod()
    def test_ports_have_names_and_numbers_of_their_own(self, pod):
        ports = [p for c in pod.spec["containers"] for p in c.get("ports", [])]
        names = [p["name"] for p in ports]
        numbers = [p["containerPort"] for p in ports]
        self.assertEqual(len(set(names)), len(names), names)
        self.assertEqual(len(set(numbers)), len(numbers), numbers)

    @for_each_pod()
    def test_certificates_are_where_fncache_looks(self, pod):
        where = crossplane.variables(pod.proxy, pod.labels)["TLS_SERVER_CERTS_DIR"]
        volume = pod.volume(pod.mounts()[where])
        self.assertEqual(volume["secret"]["secretName"],
                         f"{pod.function}-tls-server")

    @for_each_pod()
    def test_volumes_and_mounts_fit(self, pod):
        names = [v["name"] for v in pod.spec["volumes"]]
        self.assertEqual(len(set(names)), len(names), names)
        for container in pod.spec["containers"]:
            mounts = container.get("volumeMounts", [])
            paths = [m["mountPath"] for m in mounts]
            self.assertEqual(len(set(paths)), len(paths), paths)
            self.assertTrue({m["name"] for m in mounts} <= set(names))

    @for_each_pod()
    def test_names_come_from_the_pods_labels(self, pod):
        variables = crossplane.variables(pod.proxy, pod.labels)
        self.assertEqual(variables["FUNCTION_NAME"], pod.function)
        self.assertEqual(variables["REVISION_NAME"], pod.revision)

    @for_each_pod()
    def test_the_root_is_read_only_and_what_is_written_is_mounted(self, pod):
        context = pod.proxy["securityContext"]
        self.assertTrue(context["readOnlyRootFilesystem"])
        self.assertFalse(context["allowPrivilegeEscalation"])
        self.assertEqual(context["capabilities"], {"drop": ["ALL"]})
        self.assertTrue(pod.spec["securityContext"]["runAsNonRoot"])
        settings = pod.settings()
        writable = [path for path, volume in pod.mounts().items()
                    if {"emptyDir", "persistentVolumeClaim"}
                    & set(pod.volume(volume))]
        variables = crossplane.variables(pod.proxy, pod.labels)
        for written in filter(None, (
                settings.get("cache.dir"), settings.get("trace.dir"),
                os.path.dirname(variables.get("FNCACHE_ADMIN_SOCKET", "")))):
            self.assertTrue(any(f"{written}/".startswith(f"{path}/")
                                for path in writable), written)

    @for_each_pod()
    def test_the_function_outlives_the_drain(self, pod):
        settings = pod.settings()
        drain = (seconds(settings.get("drain", "25s"))
                 + seconds(settings.get("drain_delay", "0s")))
        grace = pod.spec["terminationGracePeriodSeconds"]
        self.assertGreaterEqual(grace, drain + 5)
        if pod.standalone:
            return
        stop = pod.runtime.get("lifecycle", {}).get("preStop")
        if pod.values and pod.values.endswith("without-disk.yaml"):
            self.assertIsNone(stop)
            return
        asleep = (stop["sleep"]["seconds"] if "sleep" in stop
                  else int(stop["exec"]["command"][1]))
        self.assertGreaterEqual(asleep, drain)
        self.assertGreaterEqual(grace, asleep + 5)

    @for_each_pod()
    def test_probes_ask_the_admin_port(self, pod):
        ports = {p["name"]: p["containerPort"] for p in pod.proxy["ports"]}
        admin = int(pod.settings()["admin"].rsplit(":", 1)[1])
        for probe, path in (("readinessProbe", "/readyz"),
                            ("livenessProbe", "/healthz")):
            get = pod.proxy[probe].get("httpGet")
            if probe == "livenessProbe":
                # "ended by its liveness probe after a minute": docs/runbooks.md.
                self.assertEqual(
                    (pod.proxy[probe]["periodSeconds"],
                     pod.proxy[probe]["timeoutSeconds"],
                     pod.proxy[probe]["failureThreshold"]), (10, 5, 6))
            self.assertEqual((get["path"], ports[get["port"]]), (path, admin))

    # "Sizing the container" of docs/operating.md.
    @for_each_pod()
    def test_memory_is_by_the_sizing_line(self, pod):
        line = tools.read("docs/operating.md")
        for said in ("a fifth of `cache.memory`", "| the process | 66 MiB |",
                     "(database and write queue) | 80 MiB |",
                     "(write queue and values in flight) | 48 MiB |", "three times",
                     "excess of `explain.memory` over 16 MiB",
                     "| `tune: on` | 16 MiB |"):
            self.assertIn(said, line)
        settings = pod.settings()
        calls, each = 16, 2**20
        if pod.values:
            own = tools.yaml.safe_load(open(pod.values, encoding="utf-8"))
            sizing = own.get("sizing", {})
            calls = sizing.get("calls", calls)
            each = size(sizing.get("callBytes", "1MiB"))
        takes = (1.2 * size(settings.get("cache.memory", "256MiB"))
                 + (66 + (80 if "cache.dir" in settings else 0)
                    + (48 if "shared.url" in settings else 0)) * 2**20
                 + 3 * calls * each
                 + (16 * 2**20 if settings.get("tune") == "on" else 0)
                 + max(0, size(settings.get("explain.memory", "16MiB")) - 16 * 2**20))
        resources = pod.proxy["resources"]
        asked = size(resources["requests"]["memory"])
        self.assertGreaterEqual(asked, takes)
        if pod.values:  # what the helper computes, to the MiB
            self.assertEqual(asked, math.ceil(takes / 2**20) * 2**20)
        self.assertGreaterEqual(size(resources["limits"]["memory"]), asked)

    def test_a_disk_tier_in_memory_is_memory_of_the_container(self):
        one = tools.path("deploy/chart/examples/one-function.yaml")
        takes = []
        for medium in ("", "Memory"):
            made = tools.documents(tools.template(
                "-f", one, "--set", f"functionCache.medium={medium}").stdout)
            config = next(o for o in made if o["kind"] == "DeploymentRuntimeConfig")
            pod = Pod(config, made, "function-patch-and-transform", one)
            volume = pod.volume(pod.mounts()["/cache"])["emptyDir"]
            self.assertEqual(volume.get("medium", ""), medium)
            resources = pod.proxy["resources"]
            takes.append([size(resources[which]["memory"])
                          for which in ("requests", "limits")])
        for without, within in zip(*takes):
            self.assertEqual(within - without, size(volume["sizeLimit"]))

    def test_a_claim_is_no_memory(self):
        one = tools.path("deploy/chart/examples/one-function.yaml")
        asked = set()
        for more in ("functionCache.medium=Memory", "functionCache.medium="):
            made = tools.documents(tools.template(
                "-f", one, "--set", f"functions[0].pvc=claim,{more}").stdout)
            config = next(o for o in made if o["kind"] == "DeploymentRuntimeConfig")
            pod = Pod(config, made, "function-patch-and-transform", one)
            asked.add(str(pod.proxy["resources"]))
        self.assertEqual(len(asked), 1, asked)

    @for_each_pod()
    def test_the_disk_tier_fits_its_volume(self, pod):
        settings = pod.settings()
        if "cache.dir" not in settings:
            self.assertNotIn("/cache", pod.mounts())
            return
        volume = pod.volume(pod.mounts()[settings["cache.dir"]])
        if "persistentVolumeClaim" in volume:
            self.assertEqual(pod.deployment["spec"]["strategy"]["type"], "Recreate")
            return
        traced = 0
        if settings.get("trace.dir", "").startswith(settings["cache.dir"]):
            traced = size(settings.get("trace.file_size", "64MiB")) * int(
                settings.get("trace.files", 8))
        self.assertGreaterEqual(size(volume["emptyDir"]["sizeLimit"]),
                                2.2 * size(settings.get("cache.disk", "4GiB")) + traced)

    def test_what_the_function_is_told_is_part_of_its_generation(self):
        one = tools.path("deploy/chart/examples/one-function.yaml")
        standalone = tools.path("deploy/chart/examples/standalone.yaml")
        for values in (one, standalone):
            seen = set()
            for more in ("", "functions[0].args[0]=--a", "functions[0].args[0]=--b",
                         "functions[0].env[0].name=X,functions[0].env[0].value=y"):
                made = tools.documents(tools.template(
                    "-f", values, *(["--set-string", more] if more else [])).stdout)
                config = next(o for o in made if o["kind"] == "DeploymentRuntimeConfig")
                pod = Pod(config, made, "function-patch-and-transform", values)
                services = [o["metadata"]["name"] for o in made
                            if o["kind"] == "Service"]
                seen.add((flag(pod.args, "generation"), *services))
            self.assertEqual(len(seen), 4, seen)

    def test_functions_in_python_lose_the_variable(self):
        found = [pod for _, pod in self.pods if pod.function == "function-naming"]
        self.assertTrue(found)
        for pod in found:
            self.assertIn('os.environ.pop("TLS_SERVER_CERTS_DIR", None)',
                          pod.runtime["command"][2])

    # fncache checks each list of arguments, with the files beside it.
    @for_each_pod()
    def test_serve_check_accepts_arguments_files_and_environment(self, pod):
        binary = tools.fncache()
        with tempfile.TemporaryDirectory() as folder:
            arguments, environment = pod.lay_out(folder)
            done = tools.run(binary, *arguments, "--check", env=environment)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            generation = flag(pod.args, "generation", pod.revision)
            self.assertIn(f"generation: {generation}", done.stdout)
            self.assertIn(f"function: {pod.function}", done.stdout)
            for key in ("drain_delay", "requeue_ttl"):
                value = pod.settings().get(key)
                if value:
                    self.assertIn(f"{key}: {value}", done.stdout)


class PlainStandalone(unittest.TestCase):
    """deploy/crossplane/standalone.yaml, and what becomes of it with another
    image by its own word."""

    def builds(self, digits):
        text = tools.read("deploy/crossplane/standalone.yaml")
        made = {o["kind"]: o for o in tools.documents(
            text.replace("0" * 64, digits * 64).replace("0" * 12, digits * 12))}
        pod = Pod(made["DeploymentRuntimeConfig"], list(made.values()),
                  "function-slow", None)
        return pod, made["Service"], made["Deployment"]

    def test_a_new_generation_never_calls_a_pod_of_the_old_image(self):
        _, old, old_function = self.builds("1")
        pod, new, new_function = self.builds("2")
        self.assertNotEqual(old["metadata"]["name"], new["metadata"]["name"])
        host = f"{new['metadata']['name']}.{tools.NAMESPACE}"
        self.assertEqual(flag(pod.args, "upstream"), f"dns:///{host}:9443")
        image = new_function["spec"]["template"]["spec"]["containers"][0]["image"]
        self.assertEqual(image.split("@")[1], flag(pod.args, "generation"))
        for function, expected in ((old_function, False), (new_function, True)):
            labels = function["spec"]["template"]["metadata"]["labels"]
            self.assertEqual(
                crossplane.selects(labels, new["spec"]["selector"]), expected)
            self.assertTrue(crossplane.selects(
                labels, new_function["spec"]["selector"]["matchLabels"]))

    def test_calls_that_the_function_has_begun_end_before_it_does(self):
        spec = self.builds("1")[2]["spec"]["template"]["spec"]
        asleep = spec["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
        self.assertGreaterEqual(asleep, 30)
        self.assertGreaterEqual(spec["terminationGracePeriodSeconds"], asleep + 5)

    def test_it_waits_for_its_function(self):
        pod, service, _ = self.builds("1")
        waits_for(self, pod, service)


class PlainRegistry(unittest.TestCase):
    def test_a_whole_registry_begins_without_tuning_and_lifetimes(self):
        image_config, config = tools.documents(
            tools.read("deploy/crossplane/imageconfig.yaml"))
        self.assertEqual(image_config["spec"]["runtime"]["configRef"]["name"],
                         config["metadata"]["name"])
        sidecar, = tools.documents(tools.read("deploy/crossplane/sidecar.yaml"))
        args, of_one = (c["spec"]["deploymentTemplate"]["spec"]["template"]["spec"]
                        ["containers"][1]["args"] for c in (config, sidecar))
        self.assertEqual(args, [a for a in of_one if not re.match(
            "--(tune|mask|ttl-min|requeue-ttl)=", a)])
        self.assertLess(len(args), len(of_one))


def waits_for(test, pod, service):
    """The pod is ready when the Service has had an address, and not before. It is
    a matter of the container: Crossplane patches what it has made, and leaves,
    say, init containers where a runtime configuration does not tell of any."""
    test.assertNotIn("initContainers", pod.spec)
    probe = pod.proxy["startupProbe"]
    test.assertGreater(probe["periodSeconds"] * probe["failureThreshold"], 10 * 365 * 86400)
    script = probe["exec"]["command"][2]
    name = f"{service['metadata']['name']}.{tools.NAMESPACE}"
    test.assertIn(f" {name} ", script)
    test.assertEqual(service["spec"]["clusterIP"], "None")
    test.assertFalse(service["spec"].get("publishNotReadyAddresses"))
    test.assertIn("emptyDir", pod.volume(pod.mounts()["/run/fncache"]))
    tools.need("getent")
    with tempfile.TemporaryDirectory() as folder:
        here = script.replace("/run/fncache", folder)

        def passes(address):
            command = [*probe["exec"]["command"][:2], here.replace(name, address)]
            try:
                return subprocess.run(command, timeout=probe["timeoutSeconds"],
                                      capture_output=True, check=False).returncode == 0
            except subprocess.TimeoutExpired:
                return False
        test.assertFalse(passes("no-such-name.invalid"))
        test.assertTrue(passes("127.0.0.1"))
        # The function may go again: hits are answered without it.
        test.assertTrue(passes("no-such-name.invalid"))


class Standalone(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        values = tools.path("deploy/chart/examples/standalone.yaml")
        cls.made = tools.objects(values)
        config = next(o for o in cls.made if o["kind"] == "DeploymentRuntimeConfig")
        cls.pod = Pod(config, cls.made, "function-patch-and-transform", values)
        cls.function = next(o for o in cls.made if o["kind"] == "Deployment")
        cls.service = next(o for o in cls.made if o["kind"] == "Service")

    def test_the_package_runs_fncache(self):
        self.assertTrue(self.pod.standalone)
        self.assertIn("/fncache:", self.pod.runtime["image"])

    def test_calls_go_to_the_charts_service_and_that_to_the_function(self):
        host = f"{self.service['metadata']['name']}.{tools.NAMESPACE}"
        self.assertEqual(flag(self.pod.args, "upstream"), f"dns:///{host}:9443")
        labels = self.function["spec"]["template"]["metadata"]["labels"]
        self.assertTrue(crossplane.selects(labels, self.service["spec"]["selector"]))
        self.assertTrue(crossplane.selects(
            labels, self.function["spec"]["selector"]["matchLabels"]))
        self.assertEqual(self.service["spec"]["clusterIP"], "None")
        # Not a pod of fncache, which has Crossplane's labels.
        self.assertFalse(crossplane.selects(
            self.pod.labels, self.service["spec"]["selector"]))

    # With a bad image.digest the old build stays: new pods of fncache do not get
    # ready, and Kubernetes keeps the old ones and the function's.
    def test_it_waits_for_its_function(self):
        waits_for(self, self.pod, self.service)

    def test_it_does_not_wait_for_a_function_of_no_pods(self):
        done = tools.template("-f", self.pod.values, "--set", "functions[0].replicas=0")
        self.assertEqual(done.returncode, 0, tools.said(done))
        self.assertNotIn("startupProbe", done.stdout)

    def test_functions_of_one_image_and_long_names_are_not_confused(self):
        long = "function-" + "x" * 52
        image = "image: {repository: r, digest: sha256:" + "2" * 64 + "}"
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as values:
            values.write(f"mode: standalone\nfunctions:\n"
                         f"- {{name: {long}-a, {image}}}\n- {{name: {long}-b, {image}}}\n")
            values.flush()
            made = tools.documents(tools.template("-f", values.name).stdout)
        for kind in ("Service", "Deployment", "DeploymentRuntimeConfig", "ConfigMap"):
            names = [o["metadata"]["name"] for o in made if o["kind"] == kind]
            self.assertEqual(len(set(names)), 2, names)
            self.assertLessEqual(max(map(len, names)), 63)
        services = [o for o in made if o["kind"] == "Service"]
        deployments = [o for o in made if o["kind"] == "Deployment"]
        for service in services:
            chosen = [d for d in deployments if crossplane.selects(
                d["spec"]["template"]["metadata"]["labels"], service["spec"]["selector"])]
            self.assertEqual(len(chosen), 1)

    def test_both_sides_show_certificates(self):
        name = flag(self.pod.args, "upstream-server-name")
        self.assertIn(name, crossplane.certificate_names(self.pod.function,
                                                         tools.NAMESPACE))
        where = flag(self.pod.args, "upstream-tls-dir")
        self.assertEqual(self.pod.volume(self.pod.mounts()[where])["secret"],
                         {"secretName": "crossplane-tls-client"})
        pod = self.function["spec"]["template"]["spec"]
        self.assertEqual(pod["volumes"][0]["secret"],
                         {"secretName": f"{self.pod.function}-tls-server"})
        self.assertNotIn("--insecure", pod["containers"][0].get("args", []))

    def test_another_image_is_another_generation_and_another_service(self):
        image = self.function["spec"]["template"]["spec"]["containers"][0]["image"]
        self.assertEqual(image.split("@")[1], flag(self.pod.args, "generation"))
        done = tools.template(
            "-f", self.pod.values, "--set",
            f"functions[0].image.digest=sha256:{'1' * 64}")
        other = {o["kind"]: o for o in tools.documents(done.stdout)}
        selector = other["Service"]["spec"]["selector"]
        # The new fncache never calls a pod of the old image.
        self.assertFalse(crossplane.selects(
            self.function["spec"]["template"]["metadata"]["labels"], selector))
        self.assertNotEqual(other["Service"]["metadata"]["name"],
                            self.service["metadata"]["name"])
        # The Deployment goes on, for its selector may not change.
        self.assertEqual(other["Deployment"]["spec"]["selector"],
                         self.function["spec"]["selector"])


if __name__ == "__main__":
    unittest.main()
