# SPDX-License-Identifier: Apache-2.0
"""The chart: accepted by helm, rendered as the golden files say, strict."""
import json
import os
import shutil
import tempfile
import unittest

import tools

GOLDEN = tools.path("tests/deploy/golden")
IMAGE = {"repository": "registry.example.org/f", "digest": "sha256:" + "2" * 64}


def holds_null(tree):
    if isinstance(tree, (dict, list)):
        return any(map(holds_null, tree.values() if isinstance(tree, dict) else tree))
    return tree is None


class Chart(unittest.TestCase):
    maxDiff = None

    def test_helm_lint_accepts_every_example(self):
        self.assertGreaterEqual(len(tools.EXAMPLES), 4)
        for values in tools.EXAMPLES:
            with self.subTest(tools.name(values)):
                done = tools.run(tools.helm(), "lint", "--strict", tools.CHART, "-f",
                                 values, "--kube-version", tools.KUBE,
                                 *tools.OUR_IMAGE)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertIn("0 chart(s) failed", done.stdout)

    def test_renders_as_the_golden_files_say(self):
        expected = {f"{tools.name(values)}.yaml" for values in tools.EXAMPLES}
        for values in tools.EXAMPLES:
            golden = os.path.join(GOLDEN, f"{tools.name(values)}.yaml")
            text = tools.rendered(values)
            # The dashboard has a test of its own and would be most of the file.
            head, mark, tail = text.partition("  fncache.json: |\n")
            if mark:
                rest = tail.split("\n---\n", 1)
                text = head + mark + "    (deploy/grafana/fncache.json)\n" + (
                    "---\n" + rest[1] if len(rest) > 1 else "")
            if os.environ.get("DEPLOY_UPDATE"):
                with open(golden, "w", encoding="utf-8") as file:
                    file.write(text)
            with self.subTest(golden):
                with open(golden, encoding="utf-8") as file:
                    self.assertEqual(text, file.read(),
                                     "tests/deploy/run --update writes it anew")
        self.assertEqual(set(os.listdir(GOLDEN)), expected)

    def test_nothing_optional_is_on_by_default(self):
        kinds = [o["kind"] for o in tools.documents(tools.template().stdout)]
        self.assertEqual(kinds, [])
        one = tools.objects(tools.path("deploy/chart/examples/one-function.yaml"))
        self.assertEqual([o["kind"] for o in one],
                         ["ConfigMap", "DeploymentRuntimeConfig"])

    def test_everything_is_in_the_example_of_everything(self):
        kinds = {o["kind"] for o in tools.objects(
            tools.path("deploy/chart/examples/everything.yaml"))}
        self.assertEqual(kinds, {
            "ConfigMap", "DeploymentRuntimeConfig", "PodMonitor", "PrometheusRule",
            "NetworkPolicy", "PodDisruptionBudget", "ServiceAccount"})

    def test_no_secret_is_made(self):
        for values in tools.EXAMPLES:
            for made in tools.objects(values):
                self.assertNotEqual(made["kind"], "Secret", values)

    def test_what_is_mounted_as_a_config_is_a_folder(self):
        for values in tools.EXAMPLES:
            self.assertNotIn("subPath", tools.rendered(values))

    def test_a_package_of_it_has_rules_and_dashboard(self):
        # They are links to files beside the chart.
        with tempfile.TemporaryDirectory() as folder:
            done = tools.run(tools.helm(), "package", tools.CHART, "-d", folder)
            self.assertEqual(done.returncode, 0, tools.said(done))
            package, = os.listdir(folder)
            done = tools.run(
                tools.helm(), "template", tools.RELEASE, os.path.join(folder, package),
                "--kube-version", tools.KUBE, "--set",
                "dashboard.enabled=true,prometheusRule.enabled=true")
        made = {o["kind"]: o for o in tools.documents(done.stdout)}
        self.assertIn("panels", json.loads(made["ConfigMap"]["data"]["fncache.json"]))
        self.assertTrue(made["PrometheusRule"]["spec"]["groups"])

    def refused(self, *arguments, kube=tools.KUBE):
        done = tools.template(*arguments, kube=kube)
        self.assertNotEqual(done.returncode, 0, arguments)
        return tools.said(done)

    def test_the_placeholder_image_is_refused(self):
        functions = ("--set", "functions[0].name=f")
        default = tools.yaml.safe_load(tools.read("deploy/chart/values.yaml"))
        placeholder = default["image"]["repository"]
        for repository in (placeholder, "example.com/fncache", "example.net:5000/f",
                           "registry.example.org/other"):
            with self.subTest(repository):
                said = self.refused(*functions, "--set", f"image.repository={repository}")
                self.assertIn(f"image.repository: {repository} is a placeholder, and there "
                              "is no published image: build one", said)
        for values in tools.EXAMPLES:
            with self.subTest(tools.name(values)):
                self.assertIn("image.repository", self.refused(
                    "-f", values, "--set", f"image.repository={placeholder}"))
                self.assertEqual(tools.yaml.safe_load(tools.read(values))["image"]
                                 ["repository"], placeholder)
        self.assertIn("is a placeholder", self.refused(
            "--set", "registry.enabled=true,registry.prefixes[0]=r/function-",
            "--set", f"image.repository={placeholder}"))
        # A registry that only looks like it, and a chart that makes no pod.
        for arguments in ((*functions, "--set", "image.repository=myexample.org/f"),
                          (*functions, "--set", "image.repository=example.org.cn/f"),
                          ("--set", f"image.repository={placeholder}")):
            done = tools.template(*arguments)
            self.assertEqual(done.returncode, 0, tools.said(done))

    def test_misspelt_values_are_errors(self):
        for option, named in (
                ("fuctions[0].name=f", "fuctions"),
                ("config.ttl.mim=1h", "mim"),
                ("config.listen=0.0.0.0:9443", "listen"),
                ("config.cache.dir=/x", "dir"),
                ("functions[0].name=f,functions[0].confg.mode=off", "confg"),
                ("functions[0].name=F_x", "name"),
                ("config.drain=soon", "drain"),
                ("config.cache.memory=12XB", "memory"),
                ("config.key=tags", "key"),
                ("config.requeue_ttl=foo", "requeue_ttl"),
                ("config.requeue_ttl=0", "requeue_ttl"),
                ("config.log.access=sometimes", "access"),
                ("config.log.access=slow=soon", "access"),
                ("config.tune=maybe", "tune"),
                ("config.tune_share=2", "tune_share"),
                ("config.mask[0]=@version", "mask"),
                ("config.mask[0]=desired.x", "mask"),
                ("functions[0].name=f,functions[0].config.mask[0]=observed", "mask"),
                ("config.bypass_metadata[0]=a b", "bypass_metadata"),
                ("config.cache.disk=1PiB", "disk"),
                ("sizing.callBytes=1EB", "callBytes"),
                ("image.tag=a b", "tag"),
                ("image.repository=https://registry.example.org/fncache", "repository"),
                ("fullnameOverride=A_b C", "fullnameOverride"),
                ("fullnameOverride=1a", "fullnameOverride"),
                (f"nameOverride={'n' * 64}", "nameOverride"),
                ("customLabels.a b=c", "invalid propertyName 'a b'"),
                ("customLabels.a=b c", "customLabels"),
                ("podMonitor.labels.a=b/c", "podMonitor/labels"),
                ("registry.prefixes[0]=https://registry.example.org/function-",
                 "prefixes"),
                ("podMonitor.enable=true", "enable"),
                ("mode=proxy", "mode"),
                ("config.workers=65", "workers"),
                ("config.workers=0", "workers"),
                ("config.max_streams=1000001", "max_streams"),
                ("config.trace.files=1", "files"),
                ("config.ttl.jitter=1", "jitter"),
                ("config.trace.sample=0", "sample"),
                ("functionCache.sizeLimit=6GiB", "sizeLimit"),
                ("resourcesFncache.limit.cpu=1", "'limit' not allowed"),
                ("resourcesFunction.request.cpu=1", "'request' not allowed"),
                ("functions[0].name=f,functions[0].resources.request.cpu=1",
                 "'request' not allowed"),
                ("functions[0].name=f,functions[0].env[0].nam=X", "'nam' not allowed"),
                ("functions[0].name=f,functions[0].env[0].name=X,"
                 "functions[0].env[0].value=1", "got number, want string"),
                ("networkPolicy.crossplaneSelector.matchLabel.a=b",
                 "'matchLabel' not allowed"),
                ("networkPolicy.metricsFrom[0].namespaceSelecter.matchLabels.a=b",
                 "'namespaceSelecter' not allowed"),
                ("podDisruptionBudget.maxUnavailable=half", "maxUnavailable"),
                ("podDisruptionBudget.maxUnavailable=-1", "maxUnavailable"),
                ("prometheusRule.runbookUrl=https://example.org/a b", "runbookUrl"),
                ("metrics.port=9443", "metrics.port: 9443 is taken"),
                ("metrics.port=8080", "metrics.port: 8080 is taken"),
                ("registry.enabled=true", "prefixes")):
            with self.subTest(option):
                self.assertIn(named, self.refused("--set-string" if "=0" in option
                                                  else "--set", option))

    def test_what_fncache_takes_the_schema_takes(self):
        for config in (
                {"requeue_ttl": "90s"}, {"log": {"access": "slow=1.5s"}},
                {"mask": ["@versions", "@times", "context.\"example.org/x\".y",
                          "observed.resources.*.resource.status.atProvider.lastChecked",
                          "required_resources.a.items.*.resource.metadata.uid"]},
                {"bypass_metadata": ["x-no_cache.1"]},
                {"cache": {"memory": "1.5GiB", "disk": "2TB"}}, {"drain": "1h30m"},
                {"cache": {"memory": "256Mi", "disk": "1.5Gi"}},
                {"workers": 64, "ttl": {"jitter": 0, "margin": 0.999},
                 "trace": {"sample": 1, "files": 2}, "max_connections": 1000000}):
            with self.subTest(config):
                self.assertTrue(self.made({"functions": [{"name": "a"}],
                                           "config": config}))

    def test_tune_needs_no_quotes_and_a_function_has_its_own(self):
        # YAML 1.1 reads on and off as booleans.
        made = self.made({"config": {"tune": True, "tune_share": 0.2},
                          "functions": [{"name": "a"},
                                        {"name": "b", "config": {"tune": False}},
                                        {"name": "c", "config": {"tune": "off"}},
                                        {"name": "d", "config": {"tune_share": 0}}]})
        settings = {o["metadata"]["name"][-1]: tools.yaml.safe_load(
            o["data"]["fncache.yaml"]) for o in made if o["kind"] == "ConfigMap"}
        self.assertEqual({name: (one["tune"], one["tune_share"])
                          for name, one in settings.items()},
                         {"a": ("on", 0.2), "b": ("off", 0.2), "c": ("off", 0.2),
                          "d": ("on", 0)})

    def test_null_is_empty_or_an_error_in_words(self):
        everything = tools.yaml.safe_load(
            tools.read("deploy/chart/examples/everything.yaml"))
        standalone = tools.yaml.safe_load(
            tools.read("deploy/chart/examples/standalone.yaml"))
        of_all = tools.yaml.safe_load(tools.read("deploy/chart/values.yaml"))
        nested = ["sizing.callBytes", "functionCache.enabled", "image.repository",
                  "image.pullPolicy", "metrics.port", "podMonitor.interval",
                  "prometheusRule.runbookUrl", "podDisruptionBudget.maxUnavailable",
                  "networkPolicy.crossplaneSelector", "standalone.tlsClientSecret"]
        for at, key in enumerate([*of_all, *nested]):
            # Each in one of the modes, in turn.
            changed = json.loads(json.dumps((everything, standalone)[at % 2]))
            changed["image"]["repository"] = "registry.test/fncache"
            where = changed
            *above, last = key.split(".")
            for part in above:
                where = where.setdefault(part, {})
            where[last] = None
            with self.subTest(key), tempfile.NamedTemporaryFile(
                    "w", suffix=".yaml") as file:
                json.dump(changed, file)
                file.flush()
                done = tools.template("-f", file.name, image=())
                words = tools.said(done)
                for trace in ("nil pointer", "wrong type", "error calling", "<nil>"):
                    self.assertNotIn(trace, words)
                if done.returncode:
                    self.assertIn(last, words)
                    continue
                self.assertFalse(any(map(holds_null, tools.documents(done.stdout))))

    def test_a_yaml_word_that_is_no_text_is_an_error(self):
        # `off` without quotes is false in YAML.
        self.assertIn("mode", self.refused("--set-json", 'config={"mode":false}'))

    def test_what_would_harm_is_refused_in_words(self):
        standalone = tools.path("deploy/chart/examples/standalone.yaml")
        for arguments, words in (
                (("--set", "mode=standalone,functions[0].name=f"), "image.digest"),
                (("-f", standalone, "--set", "functions[0].image.digest=v1"), "digest"),
                (("--set", "registry.enabled=true,"
                           "registry.prefixes[0]=registry.example.org/platform/"),
                 "may match providers"),
                (("--set", "registry.enabled=true,mode=standalone,"
                           "registry.prefixes[0]=registry.example.org/function-"),
                 "mode sidecar"),
                (("--set", "registry.enabled=true,"
                           "registry.prefixes[0]=registry.example.org/functions/provider-"),
                 "matches providers"),
                (("--set", "functions[0].name=f,functions[0].pvc=c,"
                           "functions[0].replicas=2"), "one replica"),
                (("--set", "functions[0].name=f,functions[1].name=f"),
                 "functions: f is there twice"),
                (("--set", "functions[0].name=registry,registry.enabled=true,"
                           "registry.prefixes[0]=registry.example.org/function-"),
                 "functions: registry"),
                (("--set", "functions[0].name=dashboard,dashboard.enabled=true"),
                 "functions: dashboard"),
                (("--set", r"customLabels.app\.kubernetes\.io/name=x"),
                 "customLabels: app.kubernetes.io/name is written by the chart"),
                (("--set", r"customLabels.fncache\.dev/function=x"),
                 "fncache.dev/function is written"),
                (("--set", r"podMonitor.labels.helm\.sh/chart=x"),
                 "podMonitor.labels: helm.sh/chart"),
                (("--set-json", 'metrics={"enabled":true}', "--set-string",
                  r"customAnnotations.prometheus\.io/port=1"),
                 "customAnnotations: prometheus.io/port"),
                (("--set", "functions[0].name=f,functionCache.sizeLimit=4Gi,"
                           "config.cache.disk=2GiB"), "2.2 times config.cache.disk"),
                (("--set", "extraVolumesFncache[0].name=fncache-cache"),
                 "extraVolumesFncache: fncache-cache"),
                (("--set", "extraVolumeMountsFncache[0].name=x,"
                           "extraVolumeMountsFncache[0].mountPath=/cache/"),
                 "extraVolumeMountsFncache: /cache/"),
                (("--set", "extraEnvVarsFncache.REVISION_NAME=x"),
                 "extraEnvVarsFncache: REVISION_NAME is written"),
                (("--set", r"extraEnvVarsFncache.FNCACHE\.GENERATION=x"),
                 "extraEnvVarsFncache: FNCACHE.GENERATION is written"),
                (("-f", standalone, "--set-json",
                  'networkPolicy.crossplaneSelector={"matchLabels":{"app":null}}'),
                 "crossplaneSelector: empty"),
                (("-f", standalone, "--set-json",
                  'networkPolicy.crossplaneSelector=null'), "crossplaneSelector")):
            with self.subTest(words):
                self.assertIn(words, self.refused(*arguments))

    def test_what_contradicts_a_shared_tier_is_refused_in_words(self):
        function = {"name": "f"}
        good = {"url": "rediss://cache:6379", "secret": "s"}
        for values, words in (
                ({"shared": {"url": "rediss://cache:6379"}}, "shared.secret: is needed"),
                ({"shared": {"secret": "s"}}, "need shared.url"),
                ({"shared": {"passwordSecret": "s"}}, "need shared.url"),
                ({"shared": {**good, "username": "u"}}, "needs shared.passwordSecret"),
                ({"shared": {**good, "url": "redis://cache:6379", "tlsSecret": "t"}},
                 "need rediss://"),
                ({"shared": {**good, "url": "redis://cache:6379", "serverName": "n"}},
                 "need rediss://"),
                ({"shared": {**good, "url": "http://cache:6379"}}, "is not redis://"),
                ({"shared": {**good, "url": "rediss://cache"}}, "is not redis://"),
                ({"shared": {**good, "url": "rediss://cache:1/0"}}, "is not redis://"),
                ({"shared": {**good, "prefix": "a b"}}, "prefix"),
                ({"shared": {**good, "timeout": "soon"}}, "timeout"),
                ({"shared": {**good, "pasword": "x"}}, "pasword"),
                ({"config": {"shared": {"url": "rediss://cache:1"}}}, "shared"),
                ({"shared": good, "functions": [{**function, "pvc": "c"}]},
                 "with shared.url"),
                ({"shared": good, "config": {"trace": {"dir": "/cache/trace"}}},
                 "without shared.url"),
                ({"shared": good, "extraEnvVarsFncache": {"FNCACHE_SHARED_URL": "x"}},
                 "FNCACHE_SHARED_URL is written"),
                ({"shared": good, "extraVolumesFncache": [{"name": "fncache-shared-tls"}]},
                 "extraVolumesFncache: fncache-shared-tls"),
                ({"networkPolicy": {"enabled": True, "sharedTo": [{"podSelector": {}}]}},
                 "sharedTo: needs shared.url")):
            with self.subTest(values), tempfile.NamedTemporaryFile(
                    "w", suffix=".yaml") as file:
                json.dump({"functions": [function], **values}, file)
                file.flush()
                self.assertIn(words, self.refused("-f", file.name))
        said = self.refused("--set", "functions[0].name=f,shared.secret=s,"
                                     "shared.url=redis://ada:open@cache:1")
        self.assertIn("has a user or password", said)
        self.assertNotIn("open", said)

    def test_a_shared_tier_has_its_files_and_no_disk(self):
        for mode in ("sidecar", "standalone"):
            made = self.made({
                "mode": mode, "functions": [{"name": "a", "image": IMAGE}],
                "shared": {"url": "rediss://[fd00::1]:6380", "secret": "fleet",
                           "username": "u", "passwordSecret": "p", "passwordKey": "k",
                           "tlsSecret": "t", "timeout": "20ms"},
                "networkPolicy": {"enabled": True, "sharedTo": [
                    {"ipBlock": {"cidr": "10.0.0.0/8"}}]}})
            config, = [o for o in made if o["kind"] == "DeploymentRuntimeConfig"]
            pod = config["spec"]["deploymentTemplate"]["spec"]["template"]["spec"]
            container = pod["containers"][-1]
            for argument in ("--shared-url=rediss://[fd00::1]:6380",
                             "--shared-secret-file=/shared/secret/secret",
                             "--shared-username=u",
                             "--shared-password-file=/shared/password/k",
                             "--shared-tls-dir=/shared/tls", "--shared-prefix=fncache"):
                self.assertIn(argument, container["args"])
            self.assertNotIn("--cache-dir=/cache", container["args"])
            volumes = {v["name"]: v for v in pod["volumes"]}
            self.assertNotIn("fncache-cache", volumes)
            mounts = {m["mountPath"]: m for m in container["volumeMounts"]}
            for path, secret in (("/shared/secret", "fleet"), ("/shared/password", "p"),
                                 ("/shared/tls", "t")):
                self.assertTrue(mounts[path]["readOnly"])
                self.assertEqual(volumes[mounts[path]["name"]]["secret"]["secretName"],
                                 secret)
            settings, = [tools.yaml.safe_load(o["data"]["fncache.yaml"])
                         for o in made if o["kind"] == "ConfigMap"]
            # These may change while it runs, so they are in the file.
            self.assertEqual(settings["shared"],
                             {"timeout": "20ms", "max_entry_bytes": "1MiB"})
            policy = [o for o in made if o["kind"] == "NetworkPolicy"][0]["spec"]
            self.assertEqual(policy["policyTypes"], ["Ingress", "Egress"])
            ports = {p["port"] for rule in policy["egress"] for p in rule["ports"]}
            self.assertEqual(ports, {6380, 53} | ({9443} if mode == "standalone"
                                                  else set()))

    def test_without_a_shared_tier_nothing_of_it_is_made(self):
        made = json.dumps(self.made({"functions": [{"name": "a"}],
                                     "networkPolicy": {"enabled": True}}))
        self.assertNotIn("shared", made)
        self.assertNotIn("Egress", made)

    def test_files_are_where_the_container_may_write(self):
        # Where it may not, fncache ends at once.
        mount = [{"name": "mine", "mountPath": "/var/log/fncache/"}]
        for values, words in (
                ({"config": {"trace": {"dir": "/var/trace"}}}, "trace.dir: /var/trace"),
                ({"config": {"trace": {"dir": "trace"}}}, "trace.dir: trace"),
                ({"config": {"trace": {"dir": "/cache/../trace"}}}, "trace.dir"),
                ({"config": {"trace": {"dir": "/cached"}}}, "trace.dir: /cached"),
                ({"config": {"trace": {"dir": "/cache/trace"}},
                  "functionCache": {"enabled": False}}, "functionCache.enabled"),
                ({"functions": [{"name": "a", "config": {"log": {
                    "access_file": "/var/log/fncache/a"}}}]}, "a: log.access_file"),
                ({"config": {"log": {"access_file": "/var/log/fncache/a"}},
                  "extraVolumeMountsFncache": [{**mount[0], "readOnly": True}]},
                 "log.access_file"),
                ({"registry": {"enabled": True, "config": {"trace": {"dir": "/x"}},
                               "prefixes": ["registry.example.org/function-"]}},
                 "registry: trace.dir"),
                ({"config": {"trace": {"dir": "/cache/trace"}}}, None),
                ({"config": {"log": {"access_file": "/var/log/fncache/a"}},
                  "extraVolumeMountsFncache": mount}, None),
                ({"config": {"trace": {"dir": "/var/trace"}},
                  "securityContextFncache": {"readOnlyRootFilesystem": False}}, None)):
            with self.subTest(values), tempfile.NamedTemporaryFile(
                    "w", suffix=".yaml") as file:
                json.dump({"functions": [{"name": "a"}], **values}, file)
                file.flush()
                if words:
                    self.assertIn(words, self.refused("-f", file.name))
                else:
                    done = tools.template("-f", file.name)
                    self.assertEqual(done.returncode, 0, tools.said(done))

    def test_names_that_look_like_numbers_stay_texts(self):
        def texts(tree, key=""):
            if isinstance(tree, dict):
                for name, value in tree.items():
                    yield from texts(value, name)
            elif isinstance(tree, list):
                for value in tree:
                    yield from texts(value, key)
            elif key.lower().endswith("name") or "/" in key:
                yield key, tree
        for word in ("123", "1e3", "0x1f", "true", "null"):
            for mode in ("sidecar", "standalone"):
                made = self.made(
                    {"mode": mode, "nameOverride": word, "priorityClassName": word,
                     "functions": [{"name": word, "image": IMAGE,
                                    "tlsServerSecret": word,
                                    **({"pvc": word} if mode == "sidecar" else {})}],
                     "imagePullSecrets": [word], "runtimeClassName": word,
                     "serviceAccount": {"create": True, "name": word},
                     "standalone": {"tlsClientSecret": word},
                     "podDisruptionBudget": {"enabled": True},
                     "podMonitor": {"enabled": True},
                     "prometheusRule": {"enabled": True},
                     "dashboard": {"enabled": True}, "networkPolicy": {"enabled": True}},
                    "--namespace", word, "--set", f"fullnameOverride=a{word}")
                found = [(o["kind"], *text) for o in made for text in texts(o)]
                self.assertGreater(len(found), 30)
                for where in found:
                    self.assertIsInstance(where[-1], str, (word, mode, where))

    def test_long_names_of_two_releases_are_two(self):
        names = set()
        for release in ("a" * 45 + "-x", "a" * 45 + "-y", "a" * 53):
            done = tools.run(tools.helm(), "template", release, tools.CHART,
                             "--kube-version", tools.KUBE, *tools.OUR_IMAGE,
                             "--set", "functions[0].name=f")
            name, = {o["metadata"]["name"] for o in tools.documents(done.stdout)}
            self.assertLessEqual(len(name), 42)
            names.add(name)
        self.assertEqual(len(names), 3)

    def test_with_the_nodes_network_the_functions_service_is_found(self):
        function = {"name": "a", "image": IMAGE}
        for mode, policy, expected in (
                ("standalone", "", "ClusterFirstWithHostNet"),
                ("standalone", "None", "None"), ("sidecar", "", None)):
            made = self.made({"mode": mode, "functions": [function],
                              "hostNetwork": True, "dnsPolicy": policy})
            config, = [o for o in made if o["kind"] == "DeploymentRuntimeConfig"]
            pod = config["spec"]["deploymentTemplate"]["spec"]["template"]["spec"]
            self.assertEqual(pod.get("dnsPolicy"), expected)

    def test_no_request_is_above_its_limit(self):
        # Kubernetes would refuse the pod.
        for own, requests, limits in (
                ({"limits": {"memory": "100Mi"}},
                 {"cpu": "100m", "memory": "100Mi"}, {"memory": "100Mi"}),
                ({"limits": {"cpu": "50m"}},
                 {"cpu": "50m", "memory": "502Mi"}, {"cpu": "50m", "memory": "753Mi"}),
                ({"limits": {"cpu": 2, "memory": "1G"}},
                 {"cpu": "100m", "memory": "502Mi"}, {"cpu": 2, "memory": "1G"}),
                ({"limits": {"memory": "4e8"}, "requests": {"memory": "1Mi"}},
                 {"cpu": "100m", "memory": "1Mi"}, {"memory": "4e8"}),
                ({"limits": {"memory": None}, "requests": {"cpu": None}},
                 {"memory": "502Mi"}, {})):
            with self.subTest(own):
                made = self.made({"functions": [{"name": "a"}], "resourcesFncache": own})
                config, = [o for o in made if o["kind"] == "DeploymentRuntimeConfig"]
                pod = config["spec"]["deploymentTemplate"]["spec"]["template"]["spec"]
                self.assertEqual(pod["containers"][1]["resources"],
                                 {"requests": requests, "limits": limits})
        self.assertIn("no quantity", self.refused(
            "--set", "functions[0].name=a,resourcesFncache.limits.memory=64MiB"))

    def test_no_two_objects_have_one_name(self):
        long = "function-" + "x" * 52
        for functions in (["a", "a-function"], ["functions", "registry", "dashboard"],
                          [f"{long}-a", f"{long}-b"]):
            made = self.made({
                "mode": "standalone", "podDisruptionBudget": {"enabled": True},
                "networkPolicy": {"enabled": True},
                "functions": [{"name": name, "image": IMAGE} for name in functions]})
            names = [(o["kind"], o["metadata"]["name"]) for o in made]
            self.assertEqual(len(set(names)), len(names), sorted(names))
            self.assertEqual(
                len([kind for kind, _ in names if kind == "PodDisruptionBudget"]),
                2 * len(functions))

    def test_an_objects_own_label_beats_that_of_all(self):
        made, = self.made({"customLabels": {"release": "a", "team": "b"},
                           "podMonitor": {"enabled": True, "labels": {"release": "c"}}})
        labels = made["metadata"]["labels"]
        self.assertEqual((labels["release"], labels["team"]), ("c", "b"))

    def test_a_policy_of_no_function_chooses_none(self):
        made = self.made({"mode": "standalone", "networkPolicy": {"enabled": True}})
        self.assertEqual(len(made), 1)

    def test_metrics_of_the_function_are_where_the_function_is(self):
        peers = [{"namespaceSelector": {}}]
        for mode, expected in (("sidecar", [[9901, 8080]]),
                               ("standalone", [[9901], [8080]])):
            made = self.made({
                "mode": mode, "functions": [{"name": "a", "image": IMAGE}],
                "networkPolicy": {"enabled": True, "metricsFrom": peers}})
            ports = [[port["port"] for port in rule["ports"]]
                     for o in made if o["kind"] == "NetworkPolicy"
                     for rule in o["spec"]["ingress"] if rule["from"] == peers]
            self.assertEqual(sorted(ports), sorted(expected))

    def test_prefixes_of_functions_only_may_be_said_to_be_so(self):
        done = tools.template(
            "--set", "registry.enabled=true,registry.functionsOnly=true,"
            "registry.prefixes[0]=registry.example.org/platform/")
        self.assertEqual(done.returncode, 0, tools.said(done))

    def test_an_old_kubernetes_is_told_what_to_set(self):
        one = tools.path("deploy/chart/examples/one-function.yaml")
        self.assertIn("preStop", self.refused("-f", one, kube="1.29.0"))
        for how in ("exec", "none"):
            done = tools.template("-f", one, "--set", f"preStop={how}", kube="1.29.0")
            self.assertEqual(done.returncode, 0, tools.said(done))
        self.assertNotIn("lifecycle", done.stdout)

    def made(self, values, *arguments):
        """The objects for values that are told here."""
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            json.dump(values, file)
            file.flush()
            done = tools.template("-f", file.name, *arguments)
        self.assertEqual(done.returncode, 0, tools.said(done))
        return tools.documents(done.stdout)

    def test_replicas_may_be_none_and_may_be_left_to_others(self):
        for own, of_all, expected in (
                ({}, 1, 1), ({}, 0, 0), ({}, None, None),
                ({"replicas": 0}, 3, 0), ({"replicas": 2}, None, 2)):
            with self.subTest(own=own, of_all=of_all):
                sidecar, = [o for o in self.made(
                    {"functions": [{"name": "a", **own}], "replicas": of_all})
                            if o["kind"] == "DeploymentRuntimeConfig"]
                self.assertEqual(
                    sidecar["spec"]["deploymentTemplate"]["spec"].get("replicas"),
                    expected)
                made = {o["kind"]: o for o in self.made(
                    {"mode": "standalone", "replicas": of_all,
                     "functions": [{"name": "a", "image": IMAGE, **own}]})}
                self.assertEqual(made["Deployment"]["spec"].get("replicas"), expected)
                config = made["DeploymentRuntimeConfig"]["spec"]["deploymentTemplate"]
                self.assertEqual(config["spec"].get("replicas"), of_all)

    def test_without_a_drain_nothing_sleeps(self):
        # Kubernetes 1.30 to 1.32 refuse a sleep of 0 s.
        for config in ({"drain": "0", "drain_delay": "0"},
                       {"drain": "0s", "drain_delay": "0ms"}):
            for how in ("sleep", "exec"):
                made = self.made({"functions": [{"name": "a"}], "config": config,
                                  "preStop": how})
                made += self.made({"functions": [{"name": "a", "image": IMAGE}],
                                   "mode": "standalone", "config": config,
                                   "preStop": how})
                self.assertNotIn("lifecycle", json.dumps(made))

    def notes(self, *arguments, namespace=tools.NAMESPACE):
        # `helm template` leaves the notes out, and whatever prints them asks a
        # cluster: let a template of a copy of the chart contain them.
        with tempfile.TemporaryDirectory() as folder:
            chart = os.path.join(folder, "chart")
            shutil.copytree(tools.CHART, chart)
            with open(os.path.join(chart, "templates/notes.yaml"), "w",
                      encoding="utf-8") as file:
                file.write('notes: |\n  {{- include (print .Template.BasePath '
                           '"/NOTES.txt") . | nindent 2 }}\n')
            done = tools.run(tools.helm(), "template", tools.RELEASE, chart, "-n",
                             namespace, "--kube-version", tools.KUBE, "-s",
                             "templates/notes.yaml", *tools.OUR_IMAGE, *arguments)
        self.assertEqual(done.returncode, 0, tools.said(done))
        return tools.documents(done.stdout)[0]["notes"]

    def test_notes_say_what_to_do_and_warn(self):
        one = self.notes("-f", tools.path("deploy/chart/examples/one-function.yaml"))
        self.assertIn("kubectl patch function.pkg function-patch-and-transform", one)
        self.assertIn('"name":"cache-fncache-function-patch-and-transform"', one)
        self.assertNotIn("CAUTION", one)
        # The way back, and masks that one is not sure of.
        self.assertLess(one.index("kubectl get function.pkg function-patch-and-transform "
                                  "-o jsonpath='{.spec.runtimeConfigRef.name}'"),
                        one.index("kubectl patch"))
        self.assertIn("-c fncache -- fncache admin shadow", one)
        many = self.notes("-f", tools.path("deploy/chart/examples/many-functions.yaml"))
        self.assertIn("providers too, and overrides a package's own runtimeConfigRef",
                      many)
        self.assertIn("registry.example.org/platform/function-", many)
        self.assertIn("kubectl delete imageconfigs.pkg.crossplane.io "
                      "cache-fncache-registry", many)
        # An ImageConfig beats what a function of the list names.
        self.assertIn("has the settings of `registry`", many)
        self.assertNotIn("python: true", many)
        self.assertNotIn("settings of `registry`", self.notes(
            "--set", "registry.enabled=true,"
            "registry.prefixes[0]=registry.example.org/function-"))
        standalone = self.notes(
            "-f", tools.path("deploy/chart/examples/standalone.yaml"))
        self.assertIn("helm rollback cache", standalone)
        self.assertIn("-c package-runtime -- fncache admin shadow", standalone)
        self.assertIn("CAUTION: functions run in the namespace of Crossplane",
                      self.notes(namespace="default"))

    def test_the_schema_is_made_of_the_settings_page(self):
        done = tools.run(tools.path("scripts/chart-schema"), "--check")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_the_schema_knows_every_value_and_no_other(self):
        values = tools.yaml.safe_load(tools.read("deploy/chart/values.yaml"))
        schema = json.loads(tools.read("deploy/chart/values.schema.json"))
        self.assertEqual(set(values) | {"global"}, set(schema["properties"]))


if __name__ == "__main__":
    unittest.main()
