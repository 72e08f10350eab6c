# SPDX-License-Identifier: Apache-2.0
"""Both modes as rendered, started for real, with certificates as Crossplane
makes them: calls go through the daemon to the function and come back."""
import re
import socket
import unittest

import tools
from sidebyside.processes import Child, Nursery, run_tool
from test_overlay import Pod

LISTENING = r"listening on (?:127\.0\.0\.1|\[::\]):(\d+)"
# The name in the certificates of tests/data.
FUNCTION = "function-x"


class Started(unittest.TestCase):
    def setUp(self):
        self.binary = tools.fncache()
        self.nursery = Nursery()
        self.addCleanup(self.nursery.__exit__)

    def start(self, *command, environment=None):
        return self.nursery.adopt(Child(command, environment))

    def pod(self, example, *more):
        """The example with the function's name changed."""
        values = tools.path(f"deploy/chart/examples/{example}.yaml")
        made = tools.documents(tools.template(
            "-f", values, "--set", f"functions[0].name={FUNCTION}", *more).stdout)
        config = next(o for o in made if o["kind"] == "DeploymentRuntimeConfig")
        return Pod(config, made, FUNCTION, values)

    def serve(self, pod, function):
        """The daemon with the rendered arguments, at free ports, before the
        function; and where it listens."""
        upstream = function.wait_for_line(LISTENING)[0][1]
        arguments, environment = pod.lay_out(str(self.nursery.directory))
        here = [re.sub(r"^--upstream=.*", f"--upstream=127.0.0.1:{upstream}",
                       re.sub(r"\[::\]:\d+", "[::]:0", re.sub(
                           r"0\.0\.0\.0:\d+", "127.0.0.1:0", argument)))
                for argument in arguments]
        daemon = self.start(self.binary, *here, environment=environment)
        return daemon, daemon.wait_for_line(LISTENING)[0][1]

    def load(self, port):
        """Calls as a runner would make them: both steps are this function's."""
        return [self.binary, "load", tools.path("examples/xr.yaml"),
                tools.path("examples/composition.yaml"), "--function",
                f"function-buckets=localhost:{port}", "--function",
                f"function-policy=localhost:{port}", "--tls-dir",
                tools.path("tests/data/certificates/client"), "--concurrency", "1",
                "--total", "5", "--progress", "none"]

    def answers(self, pod, function):
        _, port = self.serve(pod, function)
        done = run_tool(self.load(port), 60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, r"5 pipelines, 0 failed")
        self.assertRegex(done.stdout, r"hit rate (100|[1-9]\d)\.\d%")

    def function_with_certificates(self):
        return self.start(self.binary, "function", "--listen", "127.0.0.1:0",
                          "--tls-dir", tools.path("tests/data/certificates/server"))

    def test_sidecar(self):
        self.answers(self.pod("one-function"), self.start(
            self.binary, "function", "--insecure", "--listen", "127.0.0.1:0"))

    def test_with_ipv6_it_takes_both_kinds_of_calls(self):
        if not socket.has_dualstack_ipv6():
            self.skipTest("there is no IPv6")
        pod = self.pod("one-function", "--set", "ipv6=true")
        _, port = self.serve(pod, self.start(
            self.binary, "function", "--insecure", "--listen", "127.0.0.1:0"))
        for address in ("127.0.0.1", "::1"):
            socket.create_connection((address, int(port)), timeout=10).close()
        self.assertEqual([argument for argument in pod.args if "0.0.0.0" in argument], [])

    def test_standalone_with_mutual_tls(self):
        self.answers(self.pod("standalone"), self.function_with_certificates())

    def test_standalone_needs_the_name_that_it_sets(self):
        pod = self.pod("standalone")
        pod.args = [argument for argument in pod.args
                    if not argument.startswith("--upstream-server-name")]
        daemon, port = self.serve(pod, self.function_with_certificates())
        self.start(*self.load(port))
        line, = daemon.wait_for_line(".*cannot reach the function.*")
        self.assertIn("127.0.0.1", line[0])


if __name__ == "__main__":
    unittest.main()
