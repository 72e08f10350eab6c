# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven over a pair of pipes (the DevTools protocol).

Nothing is needed besides Debian's package chromium. For one thread.
"""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

PATIENCE = 60  # seconds, for anything that is waited for


def find():
    """The program, or None."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    return None


class Page:
    """One tab. What its scripts and its policy complain of is in `complaints`."""

    def __init__(self, program=None):
        self._folder = tempfile.TemporaryDirectory(prefix="fncache_chromium_")
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        # The browser reads descriptor 3 and writes descriptor 4.
        command = [program or find(), "--headless", "--no-sandbox", "--disable-gpu"]
        command += ["--no-proxy-server", "--remote-debugging-pipe"]
        command += ["--disable-dev-shm-usage", "--no-first-run"]
        command += [f"--user-data-dir={self._folder.name}", "about:blank"]

        def descriptors():
            # Move both first: one of them may be 3 or 4.
            ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_browser, from_browser)]
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self._process = subprocess.Popen(
            command,
            pass_fds=(3, 4),
            preexec_fn=descriptors,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer = b""
        self._last = 0
        self._session = None
        self.complaints = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._call(f"{domain}.enable")

    def close(self):
        self._process.terminate()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)
        # The browser's other processes end after it, and may write there until then.
        until = time.monotonic() + 30
        while True:
            try:
                self._folder.cleanup()
                return
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _call(self, method, **params):
        self._last += 1
        message = {"id": self._last, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def _next(self):
        until = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._read], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            came = os.read(self._read, 1 << 20)
            if not came:
                raise RuntimeError("the browser has gone")
            self._buffer += came
        message, _, self._buffer = self._buffer.partition(b"\0")
        message = json.loads(message)
        if message.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(str(message["params"]["exceptionDetails"]))
        if message.get("method") == "Log.entryAdded":
            self.complaints.append(message["params"]["entry"]["text"])
        return message

    def emulate(self, width, height, theme, scripts=True):
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        features = [{"name": "prefers-color-scheme", "value": theme}]
        self._call("Emulation.setEmulatedMedia", features=features)
        self._call("Emulation.setScriptExecutionDisabled", value=not scripts)

    def open(self, url):
        self._call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def value(self, expression):
        """What the expression of JavaScript is, as JSON has it."""
        result = self._call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"]))
        return result["result"].get("value")

    def wait(self, expression):
        until = time.monotonic() + PATIENCE
        while not self.value(expression):
            if time.monotonic() > until:
                raise TimeoutError(f"it never came: {expression}")
            time.sleep(0.05)

    def picture(self, path, whole=False):
        shot = self._call("Page.captureScreenshot", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))
