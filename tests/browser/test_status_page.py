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


def composite(name):
    metadata = {"name": name, "namespace": "team-a", "uid": f"uid-{name}", "resourceVersion": "7"}
    return {"apiVersion": "example.org/v1", "kind": "XBucket", "metadata": metadata}


class World:
    """A daemon in front of three functions, of which one fails and one is gone,
    after some calls."""

    def __init__(self, clean):
        """`clean` is told what is to be called in the end, the last first."""
        folder = tempfile.TemporaryDirectory()
        clean(folder.cleanup)
        self._clean = clean
        listen = ("--insecure", "--listen", "127.0.0.1:0")
        function = self._start("function", *listen, "--ttl", "60s").addresses(1)[0]
        failing = self._start("function", *listen, "--fail-rate", "1").addresses(1)[0]
        settings = {
            "insecure": True,
            "admin": "127.0.0.1:0",
            "mask": ["@versions", f'context."{MASKED}"'],
            "functions": [
                {"name": "function-a", "upstream": function, "listen": "127.0.0.1:0"},
                {"name": EVIL, "upstream": failing, "listen": "127.0.0.1:0"},
                {"name": "gone", "upstream": "127.0.0.1:1", "listen": "127.0.0.1:0"},
            ],
        }
        path = os.path.join(folder.name, "fncache.yaml")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(settings, file)  # which is YAML
        self.daemon = self._start("serve", "--config", path)
        *self.listeners, admin = self.daemon.addresses(4)
        self.url = f"http://{admin}/statusz"
        for number in (1, 1, 1, 2):
            self.call(0, function_request.request("t", composite(f"b{number}")))
        # Another context is another request.
        self.call(0, function_request.request("t", composite("b1"), {"x": EVIL}))
        self.call(1, function_request.request("t", composite(EVIL)))
        self.call(2, function_request.request("t", composite("b1")), answered=False)

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

    def call(self, function, request, answered=True):
        """Until it is counted, or the function is known to be gone."""
        before = self.calls(function)
        peer = frames.Peer(self.listeners[function])
        self._clean(peer.close)
        peer.send(
            frames.frame(frames.HEADERS, frames.END_HEADERS, 1, frames.request())
            + frames.data_frames(1, request, end=True)
        )
        until = time.monotonic() + PATIENCE
        while True:
            status = self.status(function)
            if status["since_start"]["calls"] > before if answered else not status["reachable"]:
                return
            if time.monotonic() > until:
                raise TimeoutError("the call does not end")
            time.sleep(0.02)


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
        self.assertEqual(self.page.value("document.querySelectorAll('.card').length"), 3)
        self.assertGreaterEqual(
            self.page.value("document.querySelectorAll('.chart svg').length"), 2
        )
        # A bar has a size and a colour.
        bars = self.page.value(
            "[...document.querySelectorAll('.chart path.o-hit')].map((path) =>"
            " [path.getBoundingClientRect().height > 10, getComputedStyle(path).fill])"
        )
        self.assertEqual(len(bars), 1)
        self.assertTrue(bars[0][0])
        self.assertNotEqual(bars[0][1], "rgb(0, 0, 0)")

    def test_shows_what_the_daemon_knows(self):
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
        # What comes new, comes in its place.
        self.assertEqual(
            self.page.value("document.querySelector('main').textContent.includes('undefined')"),
            False,
        )

    def test_pauses_and_goes_on(self):
        self.show()
        seen = "document.querySelector('main p').textContent"
        self.page.value("document.getElementById('live-pause').click()")
        self.assertEqual(self.text("#live-text"), "paused")
        before = self.page.value(seen)
        time.sleep(3)  # more than it would take
        self.assertEqual(self.page.value(seen), before)
        self.page.value("document.getElementById('live-pause').click()")
        self.page.wait(f"{seen} !== {json.dumps(before)}")
        self.assertEqual(self.text("#live-text"), "live")

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
