"""A real Chromium that can be told what to do, over its own debugging socket."""

from __future__ import annotations

import base64
import contextlib
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

from tests.support.gateways import PATIENCE, eventually


class Browser:
    """One page of it."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._number = 0
        target = self._tell("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._tell("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._tell("Page.enable")

    def _tell(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if hasattr(self, "_session"):
            message["sessionId"] = self._session
        self._socket.send(json.dumps(message))
        while True:
            answer = json.loads(self._socket.recv(timeout=PATIENCE))
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    def open(self, url: str, until: str) -> None:
        self._tell("Page.navigate", url=url)
        self.wait_for(until)

    def wait_for(self, condition: str) -> None:
        """Wait until an expression of JavaScript is true on the page that is there by then."""
        eventually(lambda: self.evaluate(f"document.readyState === 'complete' && !!({condition})"), condition)

    def evaluate(self, expression: str) -> Any:
        return self._tell("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def text(self) -> str:
        return str(self.evaluate("document.body.innerText"))

    def resize(self, width: int, height: int, *, scale: float = 1.0) -> None:
        """Make the page as wide as a phone or a desk, whatever the window is."""
        self._tell(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=width < 600,
        )

    def sticks_out(self) -> list[str]:
        """Return what is wider than the page, outermost first; empty where nothing scrolls sideways."""
        return list(
            self.evaluate(
                """(() => { const wide = document.documentElement.clientWidth + 1;
                if (document.documentElement.scrollWidth <= wide) return [];
                return [...document.body.querySelectorAll('*')].filter(one => one.getBoundingClientRect().right > wide)
                    .map(one => one.tagName + '.' + one.className).concat('the page'); })()"""
            )
        )

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Write what is seen, or the page from top to bottom."""
        path.write_bytes(base64.b64decode(self._tell("Page.captureScreenshot", captureBeyondViewport=whole)["data"]))


@contextlib.contextmanager
def browsing(program: str, profile: Path) -> Iterator[Browser]:
    """Start Chromium with an empty profile; end it with the block."""
    command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-dev-shm-usage"]
    command += ["--disable-background-networking", "--remote-debugging-port=0", "--remote-allow-origins=*"]
    command += ["--window-size=1000,1400", f"--user-data-dir={profile}", "about:blank"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        port_file = profile / "DevToolsActivePort"

        def address() -> list[str]:
            assert process.poll() is None, "Chromium ended"
            return port_file.read_text().split() if port_file.exists() else []

        port, path = eventually(lambda: len(address()) == 2 and address(), "Chromium's port")
        with connect(f"ws://127.0.0.1:{port}{path}", max_size=1 << 26, proxy=None) as socket:
            yield Browser(socket)
    finally:
        process.terminate()
        process.wait(PATIENCE)
