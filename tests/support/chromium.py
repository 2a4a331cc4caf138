"""Headless Chromium, driven through pipes: pages of text, their boxes and their pictures."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 30.0
"""Seconds that an answer of the browser may take."""
REQUIRED = os.environ.get("ERRATA_PROGRAMS", "").split()
"""Programs without which a test fails, and is not skipped: `.ci/run` names what it found or could install."""
_OPTIONS = (
    "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-color-profile=srgb", "--font-render-hinting=none", "--disable-lcd-text",
    "--disable-dev-shm-usage", "--disable-background-networking", "--no-first-run", "--mute-audio",
)  # fmt: skip


def chromium() -> str | None:
    """Return the program; None where there is none."""
    return next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)


@dataclass
class Browser:
    """One page of a running browser."""

    process: subprocess.Popen[bytes]
    to: int
    back: int
    session: str = ""
    number: int = 0
    buffered: bytearray = field(default_factory=bytearray)

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its answer. Raises AssertionError where it fails or takes long."""
        self.number += 1
        command = {"id": self.number, "method": method, "params": parameters} | ({"sessionId": self.session} if self.session else {})
        os.write(self.to, json.dumps(command).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while (answer := self._message(deadline)).get("id") != self.number:
            pass
        assert "error" not in answer, f"{method}: {answer['error']}"
        result: dict[str, Any] = answer["result"]
        return result

    def _message(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self.buffered:
            ready, _, _ = select.select([self.back], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"the browser did not answer within {PATIENCE:.0f} s"
            read = os.read(self.back, 1 << 20)
            assert read, "the browser ended"
            self.buffered += read
        text, _, rest = bytes(self.buffered).partition(b"\0")
        self.buffered[:] = rest
        message: dict[str, Any] = json.loads(text)
        return message

    def value(self, script: str) -> Any:
        """Return what a JavaScript expression gives, which may be a promise."""
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def show(self, html: str) -> None:
        """Load a page from its text."""
        tree = self.ask("Page.getFrameTree")["frameTree"]["frame"]["id"]
        self.ask("Page.setDocumentContent", frameId=tree, html=html)
        assert self.value("document.fonts.ready.then(() => [...document.fonts].every(one => one.status != 'error'))")

    def visit(self, address: str) -> None:
        """Load a page from its address."""
        self.ask("Page.navigate", url=address)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def until(self, script: str) -> Any:
        """Wait until an expression gives something true, and return it. Raises AssertionError where it does not."""
        end = time.monotonic() + PATIENCE
        while not (found := self.value(script)):
            assert time.monotonic() < end, f"not within {PATIENCE:.0f} s: {script}"
            time.sleep(0.05)
        return found

    def look(self, width: int, theme: str) -> None:
        """Give the window a width, and the page a theme."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}, {"name": "prefers-reduced-motion", "value": "reduce"}])

    def picture(self, scale: float) -> str:
        """Return the whole page as a picture of PNG, in base 64."""
        height = self.value("document.documentElement.scrollHeight")
        width = self.value("innerWidth")
        found: str = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip={"x": 0, "y": 0, "width": width, "height": height, "scale": scale})["data"]
        return found


@contextlib.contextmanager
def browsing() -> Iterator[Browser]:
    """Start a browser for the body of a `with`. Skips the test where no Chromium is, unless it has to be."""
    program = chromium()
    if program is None:
        assert "chromium" not in REQUIRED, "Chromium is not installed"
        pytest.skip("pages are looked at in Chromium, which is not installed: apt-get install chromium")
    (his, mine), (ours, theirs) = _pipe(), _pipe()
    with tempfile.TemporaryDirectory(prefix="errata-chromium-", ignore_cleanup_errors=True) as folder:
        words = ["bash", "-c", f'exec "$0" "$@" 3<&{his} 4>&{theirs}', program, *_OPTIONS, f"--user-data-dir={folder}", "about:blank"]
        with Path(folder, "log").open("wb") as log:
            process = subprocess.Popen(words, pass_fds=(his, theirs), stdout=log, stderr=log, stdin=subprocess.DEVNULL, env={**os.environ, "HOME": folder}, start_new_session=True)
        os.close(his)
        os.close(theirs)
        browser = Browser(process, mine, ours)
        try:
            [target] = [one for one in browser.ask("Target.getTargets")["targetInfos"] if one["type"] == "page"][:1]
            browser.session = browser.ask("Target.attachToTarget", targetId=target["targetId"], flatten=True)["sessionId"]
            yield browser
        finally:
            _end(browser)


def _pipe() -> tuple[int, int]:
    """A pipe whose ends have numbers beyond 10: the browser's own are 3 and 4."""
    made = os.pipe()
    ends = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in made]
    for end in made:
        os.close(end)
    return ends[0], ends[1]


def _end(browser: Browser) -> None:
    """Close the browser, by force where it does not go."""
    browser.session = ""
    with contextlib.suppress(AssertionError, OSError):
        browser.ask("Browser.close")
    try:
        browser.process.wait(10)
    except subprocess.TimeoutExpired:
        os.killpg(browser.process.pid, 9)
        browser.process.wait()
    os.close(browser.to)
    os.close(browser.back)
