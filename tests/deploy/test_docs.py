# SPDX-License-Identifier: Apache-2.0
"""What the pages say about clusters: Helm's commands work, and what they name is
made."""
import glob
import os
import re
import shlex
import tempfile
import unittest

import crossplane
import tools


PAGES = [tools.path("README.md"), *sorted(glob.glob(tools.path("docs/*.md")))]
# The pages for operators of clusters.
GUIDE = [tools.path(f"docs/{page}.md")
         for page in ("operating", "deployment", "running", "runbooks")]


def cluster_commands():
    """Page and command, of blocks that say `sh cluster`."""
    for page in PAGES:
        with open(page, encoding="utf-8") as file:
            for block in re.findall(r"^```sh cluster\n(.*?)^```$", file.read(),
                                    re.M | re.S):
                for line in block.splitlines():
                    yield page, shlex.split(line, comments=True)


class Docs(unittest.TestCase):
    def setUp(self):
        self.commands = [c for _, c in cluster_commands()]
        self.assertTrue(self.commands)

    def rendered(self, words):
        """What `helm install NAME CHART ...` would send."""
        self.assertIn(words[1], ("install", "upgrade", "template"))
        # Another test runs the rest of the pipe.
        words = words[:words.index("|")] if "|" in words else words
        done = tools.run(tools.helm(), "template", *words[2:], "--kube-version",
                         tools.KUBE, cwd=tools.ROOT)
        self.assertEqual(done.returncode, 0, tools.said(done))
        return tools.documents(done.stdout)

    def test_helms_commands_render(self):
        seen = 0
        for words in self.commands:
            if words[0] == "helm" and words[1] != "uninstall":
                seen += 1
                with self.subTest(" ".join(words)):
                    self.assertTrue(self.rendered(words))
        self.assertGreaterEqual(seen, 3)

    def test_the_runtime_configuration_that_is_named_is_made(self):
        made = {o["metadata"]["name"] for words in self.commands
                if words[:2] == ["helm", "install"] for o in self.rendered(words)
                if o["kind"] == "DeploymentRuntimeConfig"}
        named = {name for words in self.commands if "patch" in words
                 for name in re.findall(r'"runtimeConfigRef":\{"name":"([^"]+)"',
                                        words[-1])}
        self.assertIn("default", named)
        self.assertLessEqual(named - {"default"}, made)
        self.assertGreater(len(named), 1)

    def test_a_purge_is_of_all_replicas_by_crossplanes_label(self):
        pod = crossplane.deployment({"spec": {}}, "f", "f-1", tools.NAMESPACE, "i")
        words, = [words for words in self.commands if "purge" in words]
        label = words[words.index("-l") + 1].split("=")[0]
        self.assertIn(label, pod["spec"]["template"]["metadata"]["labels"])
        self.assertIn("xargs", words)

    def test_the_rendered_settings_are_checked_as_the_page_says(self):
        block, = [line for line in tools.read("docs/operating.md").splitlines()
                  if line.startswith("helm ") and "fncache serve --check" in line]
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(tools.helm(), os.path.join(folder, "helm"))
            os.symlink(tools.fncache(), os.path.join(folder, "fncache"))
            os.symlink(tools.path("deploy"), os.path.join(folder, "deploy"))
            environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}

            def check(text):
                return tools.run("bash", "-c", "set -eo pipefail\n" + text, cwd=folder,
                                 env=environment)
            done = check(block)
            self.assertEqual(done.returncode, 0, tools.said(done))
            self.assertIn("tune: on", done.stdout)
            # The schema cannot find this.
            done = check(block.replace(" | sed", " --set config.key=tag | sed"))
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn("key", tools.said(done))

    def test_kubectl_is_told_where_and_which_container(self):
        # In texts, comments and the notes of the installation, too.
        seen = 0
        for page in (*GUIDE, tools.path("deploy/chart/templates/NOTES.txt"),
                     *glob.glob(tools.path("deploy/crossplane/*.yaml"))):
            with open(page, encoding="utf-8") as file:
                text = file.read()
            for command in re.findall(r"kubectl [^`\n]*", text):
                if re.search(r"kubectl (get|patch|apply|describe|delete|annotate) (-\S+ )*"
                             r"(function|imageconfig|configuration|clusterrole)", command):
                    continue  # They are in no namespace.
                if not re.search(r" (get|describe|logs|exec|rollout|port-forward|delete) ",
                                 command):
                    continue
                seen += 1
                with self.subTest(command):
                    self.assertRegex(
                        command, r"kubectl -n (crossplane-system|\{\{ \.Release\.Namespace \}\}) ")
                    if re.search(r" (logs|exec) ", command):
                        self.assertRegex(command, r" -c \S+")
                        self.assertRegex(command, r" (POD|\$\w+|deploy\S*) ")
        self.assertGreater(seen, 8)

    def test_what_is_found_by_crossplanes_labels_has_them(self):
        # It gives them to pods; its Deployments have none.
        made = crossplane.deployment({"spec": {}}, "f", "f-1", tools.NAMESPACE, "i")
        self.assertNotIn("labels", made["metadata"])
        found = re.findall(r"kubectl [^`\n]*?(\S+) -l pkg\.crossplane\.io",
                           "".join(tools.read(page) for page in GUIDE))
        self.assertEqual(set(found), {"pods"})

    def test_a_function_under_a_registrys_prefix_gets_its_own_as_the_page_says(self):
        self.assertIn("takes the one with the longest prefix",
                      tools.read("docs/deployment.md"))
        made = tools.objects(tools.path("deploy/chart/examples/many-functions.yaml"))
        prefixes = {o["metadata"]["name"]: o["spec"]["matchImages"][0]["prefix"]
                    for o in made if o["kind"] == "ImageConfig"}
        own = prefixes["function-naming"]
        of_all = prefixes["cache-fncache-registry"]
        # Crossplane takes the longest that matches.
        self.assertTrue(own.startswith(of_all) and len(own) > len(of_all))
        config, = [o for o in made if o["kind"] == "ImageConfig"
                   and o["metadata"]["name"] == "function-naming"]
        self.assertIn(config["spec"]["runtime"]["configRef"]["name"],
                      {o["metadata"]["name"] for o in made
                       if o["kind"] == "DeploymentRuntimeConfig"})

    def test_namespaces_are_crossplanes(self):
        for words in self.commands:
            for flag in ("-n", "--namespace"):
                if flag in words and words[words.index(flag) - 1] != "sed":
                    self.assertEqual(words[words.index(flag) + 1], tools.NAMESPACE)


if __name__ == "__main__":
    unittest.main()
