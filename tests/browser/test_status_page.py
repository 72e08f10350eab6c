# SPDX-License-Identifier: Apache-2.0
"""The status page as people see it, in a headless Chromium: what it shows, in
both themes, on a telephone, live, and without scripts.

    python3 -B -m unittest discover -s tests/browser

It runs the binary that FNCACHE_BINARY names (build/release/fncache). Whatever
needs a program that is not installed is skipped, and said.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
for folder in ("tests/browser", "tests/flood", "scripts"):
    sys.path.insert(0, os.path.join(ROOT, folder))

import chromium
import frames
import function_request

PATIENCE = 60
MASKED = "<b>now</b>"
EVIL = "<script>window.broken=1</script>\"'&<b>x"
PHONE, DESK = 390, 1200


class Program:
    """A process of the binary that logs where it listens."""

    def __init__(self, *args):
        binary = os.environ.get("FNCACHE_BINARY", os.path.join(ROOT, "build/release/fncache"))
        environment = {k: v for k, v in os.environ.items() if not k.startswith("FNCACHE_")}
        self.process = subprocess.Popen(
            [binary, *args],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self._addresses = []
        self._changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stderr:
            found = re.search(r"listening on (\S+:\d+)", line)
            if found:
                with self._changed:
                    self._addresses.append(found[1])
                    self._changed.notify_all()

    def addresses(self, count):
        with self._changed:
            if not self._changed.wait_for(lambda: len(self._addresses) >= count, PATIENCE):
                raise TimeoutError("it does not listen")
            return list(self._addresses)

    def stop(self):
        self.process.send_signal(signal.SIGCONT)
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()


def composite(name, version="7"):
    metadata = {"name": name, "namespace": "team-a", "uid": f"uid-{name}"}
    metadata["resourceVersion"] = version
    return {"apiVersion": "example.org/v1", "kind": "XBucket", "metadata": metadata}


class World:
    """A daemon in front of six functions, after some calls. One fails and one is
    gone; two are behind old answers, of which one is left by its callers; the
    last one is rehearsed. Names and settings mean no good."""

    def __init__(self, clean):
        """`clean` is told what is to be called in the end, the last first."""
        folder = tempfile.TemporaryDirectory()
        clean(folder.cleanup)
        self._clean = clean
        listen = ("--insecure", "--listen", "127.0.0.1:0")

        def function(*how):
            return self._start("function", *listen, *how).addresses(1)[0]

        flaky = ("--ttl", "1s", "--fail-rate", "0.5", "--cost", "sleep=200ms")
        socket = os.path.join(folder.name, "admin.sock")
        settings = {
            "insecure": True,
            "admin_socket": socket,
            "log": {"access": "all", "access_file": os.path.join(folder.name, "access.log")},
            "admin": "127.0.0.1:0",
            "mask": ["@versions", f'context."{MASKED}"'],
            "functions": [
                {"name": "function-a", "upstream": function("--ttl", "1h")},
                {"name": EVIL, "upstream": function("--fail-rate", "1"), "generation": EVIL},
                {"name": "gone", "upstream": "127.0.0.1:1"},
                {"name": "refreshed", "upstream": function(*flaky), "stale_while_revalidate": "1h"},
                {
                    "name": "served-over",
                    "upstream": function(*flaky),
                    "stale_if_error": "1h",
                    "finish_abandoned": "1m",
                },
                {"name": "rehearsed", "upstream": function(), "mode": "shadow"},
            ],
        }
        for one in settings["functions"]:
            one["listen"] = "127.0.0.1:0"
        path = os.path.join(folder.name, "fncache.yaml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(settings, file)  # which is YAML
        self.daemon = self._start("serve", "--config", path)
        *self.listeners, admin = self.daemon.addresses(7)
        self.url = f"http://{admin}/statusz"
        for number in (1, 1, 1, 2):
            self.call(0, function_request.request("t", composite(f"b{number}")))
        # Another context is another request.
        self.call(0, function_request.request("t", composite("b1"), {"x": EVIL}))
        self.call(1, function_request.request("t", composite(EVIL)))
        self.call(2, function_request.request("t", composite("b1")), answered=False)
        self.until(3, "refreshes_failed", function_request.request("t", composite("b1")))
        self.until(4, "fills", function_request.request("t", composite("b1")))
        self.serve_over()
        self.abandon(4)
        for version in ("7", "7", "8"):
            self.call(5, function_request.request("t", composite("b1", version)))
        for purged in (("--function", EVIL), ("--function", EVIL, "--generation", EVIL)):
            program = self._start("admin", "--socket", socket, "purge", *purged).process
            if program.wait(PATIENCE) != 0:
                raise RuntimeError("the purge failed")

    def _start(self, *args):
        program = Program(*args)
        self._clean(program.stop)
        return program

    def get(self, query):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self.url + query, timeout=PATIENCE) as answer:
            return answer.read().decode()

    def status(self, function):
        return json.loads(self.get("?format=json"))["functions"][function]

    def calls(self, function=0):
        return self.status(function)["since_start"]["calls"]

    def wait(self, function, condition):
        """Until its status is so."""
        until = time.monotonic() + PATIENCE
        while not condition(self.status(function)):
            if time.monotonic() > until:
                raise TimeoutError("it does not come to that")
            time.sleep(0.02)

    def send(self, function, request):
        peer = frames.Peer(self.listeners[function])
        self._clean(peer.close)
        peer.send(
            frames.frame(frames.HEADERS, frames.END_HEADERS, 1, frames.request())
            + frames.data_frames(1, request, end=True)
        )
        return peer

    def call(self, function, request, answered=True):
        """Until it is counted, or the function is known to be gone."""
        before = self.calls(function)
        self.send(function, request)
        if answered:
            self.wait(function, lambda status: status["since_start"]["calls"] > before)
        else:
            self.wait(function, lambda status: not status["reachable"])

    def until(self, function, counted, request):
        """Calls until that is more than it is now."""
        before = self.status(function)["since_start"][counted]
        until = time.monotonic() + PATIENCE
        while self.status(function)["since_start"][counted] == before:
            if time.monotonic() > until:
                raise TimeoutError(f"no {counted}")
            self.call(function, request)
            time.sleep(0.1)

    def serve_over(self):
        """The page tells of it for a minute."""
        self.until(4, "errors_served_over", function_request.request("t", composite("b1")))

    def abandon(self, function):
        """Leaves calls until one of them ends well without a caller."""
        for number in range(20):
            before = self.status(function)["since_start"]["upstream_calls"]
            peer = self.send(function, function_request.request("t", composite(f"left-{number}")))
            # On a busy machine it may be over before this looks.
            self.wait(
                function,
                lambda status: status["flights"] > 0
                or status["since_start"]["upstream_calls"] > before,
            )
            peer.close()
            self.wait(function, lambda status: status["flights"] == 0)
            if self.status(function)["since_start"]["abandoned_calls_finished"] > 0:
                return
        raise RuntimeError("no abandoned call was finished")


@unittest.skipUnless(chromium.find(), "skipped: chromium is not installed (scripts/setup checks)")
class StatusPageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.world = World(cls.addClassCleanup)
        cls.page = chromium.Page()
        cls.addClassCleanup(cls.page.close)

    def show(self, width=DESK, theme="light", scripts=True):
        self.page.emulate(width, 2000, theme, scripts)
        self.page.complaints.clear()
        self.page.open(self.world.url)

    def text(self, selector):
        return self.page.value(f"document.querySelector({json.dumps(selector)}).innerText")

    def tearDown(self):
        self.assertEqual(self.page.complaints, [])

    def assert_contents(self):
        card = self.text(".card")
        self.assertIn("function-a", card)
        self.assertRegex(self.text(".card figcaption"), r"\d+ hit, 3 miss")
        self.assertRegex(card, r"masks\s+@versions in use")
        self.assertIn("has matched nothing yet", card)
        self.assertRegex(card, r"bans\s+none")
        self.assertRegex(card, r"callers\s+\d+ connections?, 0 calls in flight")
        self.assertRegex(card, r"misses\s+new 2, changed 1")
        whole = self.text("main")
        self.assertIn("cannot be reached", whole)
        self.assertIn("last error: UNAVAILABLE", whole)
        self.assertIn("Why calls missed", whole)
        self.assertIn("How long RunFunction took", whole)
        self.assertIn("Tiers", whole)
        self.assertIn("fncache.yaml:", whole)
        self.assertEqual(self.page.value("document.querySelectorAll('.card').length"), 6)
        self.assert_stale_serving()
        self.assertGreaterEqual(
            self.page.value("document.querySelectorAll('.chart svg').length"), 2
        )
        # A bar has a size and a colour.
        bars = self.page.value(
            "[...document.querySelectorAll('.card:first-child path.o-hit')].map((path) =>"
            " [path.getBoundingClientRect().height > 10, getComputedStyle(path).fill])"
        )
        self.assertEqual(len(bars), 1)
        self.assertTrue(bars[0][0])
        self.assertNotEqual(bars[0][1], "rgb(0, 0, 0)")

    def card(self, number):
        return self.page.value(f"document.querySelectorAll('.card')[{number}].innerText")

    def assert_stale_serving(self):
        plain = self.card(0)
        for row in ("stale hits", "refreshes", "abandoned", "rehearsed"):
            self.assertNotIn(row, plain)
        purged = self.card(1)
        self.assertRegex(purged, r"the function: what began until [-0-9]+ [:0-9]+ UTC is gone")
        self.assertIn(f"generation {EVIL}: what began until", purged)
        refreshed = self.card(3)
        self.assertRegex(refreshed, r"stale hits\s+[1-9]")
        self.assertRegex(refreshed, r"refreshes\s+0 running, \d+ done, [1-9]\d* failed")
        self.assertNotIn("abandoned", refreshed)
        served_over = self.card(4)
        self.assertRegex(served_over, r"stale hits\s+[1-9]\d*, of them [1-9]\d* instead of errors")
        self.assertRegex(served_over, r"served over: UNAVAILABLE [1-9]")
        self.assertRegex(served_over, r"abandoned\s+0 running, [1-9]\d* continued, 1 stored")
        self.assertNotIn("refreshes", served_over)
        self.assertRegex(self.card(5), r"shadow\s+not enough yet: no difference")
        self.assertRegex(self.card(5), r"rehearsed\s+3 look-ups")
        self.assertIn("would have hit: mask 1 (0 differ), exact 1 (0 differ)", self.card(5))
        whole = self.text("main")
        self.assertIn("Callers of served-over got old answers instead of errors", whole)
        self.assertIn("Access log", whole)

    def test_shows_what_the_daemon_knows(self):
        self.world.serve_over()
        self.show()
        self.assert_contents()

    def test_names_are_text(self):
        self.show()
        self.assertEqual(
            self.page.value("document.querySelectorAll('.card h3')[1].textContent"), EVIL
        )
        self.assertEqual(self.page.value("document.querySelectorAll('script').length"), 1)
        self.assertEqual(self.page.value("document.querySelectorAll('b > *, main b b').length"), 0)
        self.page.wait("document.getElementById('live-text').textContent === 'live'")
        self.assertIsNone(self.page.value("window.broken"))

    def test_themes_can_be_read(self):
        lightness = {}
        for theme in ("light", "dark"):
            self.show(theme=theme)
            self.page.value("document.querySelectorAll('details').forEach((d) => d.open = true)")
            lightness[theme], unreadable = self.page.value(CONTRAST)
            self.assertEqual(unreadable, [], theme)
        self.assertGreater(lightness["light"], 0.8)
        self.assertLess(lightness["dark"], 0.1)

    def test_fits_a_telephone(self):
        self.world.serve_over()
        for theme in ("light", "dark"):
            for unfolded in (False, True):
                self.show(PHONE, theme)
                self.page.value(
                    f"document.querySelectorAll('details').forEach((d) => d.open = {str(unfolded).lower()})"
                )
                self.assertLessEqual(
                    self.page.value("document.documentElement.scrollWidth"), PHONE
                )
                outside = self.page.value(
                    "[...document.querySelectorAll('main *')].filter((e) => {"
                    " const box = e.getBoundingClientRect();"
                    " return box.width > 0 && (box.left < 0 || box.right > innerWidth + 0.5);"
                    "}).map((e) => e.outerHTML.slice(0, 100))"
                )
                self.assertEqual(outside, [])
        self.assert_contents()

    def test_fits_any_width(self):
        for width in (320, 600, 800, 1000, 1119, 1121, 1200, 1600):
            self.show(width)
            self.assertLessEqual(
                self.page.value("document.documentElement.scrollWidth"), width
            )
            # Numbers stay on their line.
            broken = self.page.value(
                "[...document.querySelectorAll('.cards td:not(.name) > *')].filter((e) =>"
                " e.getBoundingClientRect().height > 30).map((e) => e.textContent)"
            )
            self.assertEqual(broken, [], width)
        # A cell of a table without a head names itself.
        self.show(PHONE)
        label = self.page.value(
            "getComputedStyle(document.querySelector('.settings td[data-of]'), '::before').content"
        )
        self.assertIn("changed", label)

    def test_is_live_and_leaves_what_the_reader_does(self):
        self.show()
        self.page.value(
            "window.marker = 1; window.first = document.querySelector('.card');"
            " document.querySelector('details').open = true;"
            " document.querySelector('details summary').focus();"
            " getSelection().selectAllChildren(document.querySelector('h2')); 0"
        )
        number = self.world.calls() + 1
        self.world.call(0, function_request.request("t", composite("b1")))
        cell = "document.querySelector('td[data-of=calls] small').textContent"
        self.page.wait(f"{cell} === '{number}'")
        self.assertEqual(self.page.value("window.marker"), 1)
        self.assertTrue(self.page.value("window.first === document.querySelector('.card')"))
        self.assertTrue(self.page.value("document.querySelector('details').open"))
        self.assertEqual(self.page.value("document.activeElement.tagName"), "SUMMARY")
        self.assertEqual(self.page.value("getSelection().toString()"), "Functions")
        # New rows appear in their order.
        self.assertEqual(
            self.page.value("document.querySelector('main').textContent.includes('undefined')"),
            False,
        )

    def test_pauses_and_goes_on(self):
        self.show()
        seen = "document.querySelector('main p').textContent"
        self.page.value("document.getElementById('live-pause').click()")
        self.assertEqual(self.text("#live-text"), "paused")
        dot = "getComputedStyle(document.getElementById('live-text'), '::before').color"
        paused = self.page.value(dot)
        before = self.page.value(seen)
        time.sleep(3)  # more than it would take
        self.assertEqual(self.page.value(seen), before)
        self.page.value("document.getElementById('live-pause').click()")
        self.page.wait(f"{seen} !== {json.dumps(before)}")
        self.assertEqual(self.text("#live-text"), "live")
        self.assertNotEqual(self.page.value(dot), paused)

    def test_says_when_the_daemon_does_not_answer(self):
        self.show()
        self.world.daemon.process.send_signal(signal.SIGSTOP)
        try:
            self.page.wait("document.getElementById('live-text').textContent.startsWith('no answer')")
        finally:
            self.world.daemon.process.send_signal(signal.SIGCONT)
        self.page.wait("document.getElementById('live-text').textContent === 'live'")
        self.page.complaints.clear()  # the browser's own, of a call that failed

    def test_tells_all_without_scripts(self):
        self.world.serve_over()
        self.show(scripts=False)
        self.assert_contents()
        self.assertEqual(
            self.page.value("getComputedStyle(document.getElementById('live')).display"), "none"
        )
        self.show(PHONE, "dark", scripts=False)
        self.assertLessEqual(self.page.value("document.documentElement.scrollWidth"), PHONE)


class ValidTest(unittest.TestCase):
    """The page's HTML, before a browser mends it."""

    @classmethod
    def setUpClass(cls):
        world = World(cls.addClassCleanup)
        cls.pages = {"/statusz": world.get("")}
        world.url = world.url.replace("/statusz", "/")
        cls.pages["/"] = world.get("")

    def test_tidy_has_nothing_to_say(self):
        if not shutil.which("tidy"):
            self.skipTest("skipped: tidy is not installed (scripts/setup checks)")
        for path, page in self.pages.items():
            said = subprocess.run(
                ["tidy", "-errors", "-quiet", "-utf8"], input=page, capture_output=True, text=True
            )
            self.assertEqual((said.stderr, said.returncode), ("", 0), path)

    def test_html5lib_has_nothing_to_say(self):
        try:
            import html5lib
        except ImportError:
            self.skipTest("skipped: html5lib is not installed (scripts/setup checks)")
        for path, page in self.pages.items():
            parser = html5lib.HTMLParser()
            parser.parse(page)
            self.assertEqual(parser.errors, [], path)


# The lightness of the page's background, and the texts of which the contrast to
# what is behind them is less than WCAG 2.1 asks for (1.4.3).
CONTRAST = """(() => {
  const channels = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const linear = [r, g, b].map((c) => c / 255).map(
      (c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = channels(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const unreadable = [];
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const element = walk.currentNode.parentElement;
    if (!walk.currentNode.data.trim() || !element.getClientRects().length) continue;
    if (element.closest("svg, script") || element.matches(".zero")) continue;
    const a = light(channels(getComputedStyle(element).color));
    const b = light(behind(element));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) unreadable.push([element.outerHTML.slice(0, 80), ratio]);
  }
  return [light(behind(document.body)), unreadable];
})()"""


if __name__ == "__main__":
    unittest.main()
