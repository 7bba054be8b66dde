"""Take the pictures of screens that docs/ shows: the evidence report, the gateway's console, a check on a terminal.

    python -m studies.screenshots [--width 1280] [--out docs/images]

Everything in them is made for the purpose: a key, a stolen copy, a gateway with three customers. They differ with every
key; take them again when a screen changes, and look at them. Chromium draws them.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from regionmarker import RegionMarker, ask, load_encoder, python_sentences, trace, verify
from studies._study import Command, key_settings

if TYPE_CHECKING:
    from tests.support.browser import Browser

PAGE = "CONTRIBUTING.md"
ROOT = Path(__file__).parents[1]
TOKEN = "a-token-for-this-picture"
CUSTOMERS = ("acme", "zenith", "initech")


def make_evidence(folder: Path, settings: dict[str, int], *, small: bool) -> RegionMarker:
    """Steal a marked model, convict the copy, and save the evidence in a folder."""
    from regionmarker.benchmark.stealers import TokenBag
    from regionmarker.verification.suspects import load_suspect

    texts, encoder = python_sentences(1400 if small else 9000), load_encoder("wordllama")
    ours, queries = texts[: len(texts) // 2], texts[len(texts) // 2 :]
    marker = RegionMarker(**settings).fit(ours, encoder=encoder)
    copy = TokenBag().steal(queries, marker.transform(encoder.encode(queries), tenant="acme"))
    answers = ask(marker, load_suspect(copy.encode, name="https://copy.example.com/v1#embed"))
    verify(marker, answers, power=not small).save(folder, traces=trace(marker, answers, CUSTOMERS))
    return marker


@contextmanager
def console(marker: RegionMarker, folder: Path, *, small: bool) -> Iterator[str]:
    """Serve three customers for a while; the address of the console."""
    from tests.support.running import running

    from regionmarker.gateway.gateway import open_gateway
    from regionmarker.gateway.settings import Settings
    from regionmarker.gateway.tenants.accounts import Accounts
    from regionmarker.keys.commitment import serving_with_commitment
    from regionmarker.keys.files import save_serving

    save_serving(folder / "serving.rmkey", serving_with_commitment(marker.key_, list(CUSTOMERS)), None)
    accounts = Accounts.open(str(folder / "tenants.db"))
    keys = [accounts.add(name) for name in CUSTOMERS]
    accounts.close()
    settings = Settings(folder / "serving.rmkey", database=str(folder / "tenants.db"), admin_token=TOKEN)
    texts = python_sentences(1000)
    with running(open_gateway(settings)) as house:
        for number in range(3 if small else 90):
            house.embed(texts[number * 8 : number * 8 + 8], keys[number % 3])
        for wrong in range(4):
            house.ask("/v1/embeddings", token=keys[0], body={"model": "wordllama", "input": [""] * wrong})
        yield f"{house.url}/console"


def terminal(command: list[str], folder: Path) -> str:
    """Return a page that looks like a terminal of 80 columns in which a command ran."""
    from rich.console import Console
    from rich.text import Text

    wide = {"COLUMNS": "80", "FORCE_COLOR": "1", "TERM": "xterm-256color"}
    source = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    program = [sys.executable, "-m", "regionmarker", *command]
    done = subprocess.run(
        program, cwd=folder, env={**os.environ, **wide, "PYTHONPATH": source}, capture_output=True, text=True
    )
    shown = Console(record=True, width=80, file=io.StringIO())
    shown.print(Text(f"$ regionmarker {' '.join(command)}", style="bold"))
    shown.print(Text.from_ansi(done.stderr + done.stdout))
    frame = "<!doctype html><meta charset=utf-8><body style='margin:24px;font:14px/1.4 monospace'><pre>{code}</pre>"
    return shown.export_html(inline_styles=True, code_format=frame)


def take(browser: Browser, path: Path) -> None:
    """Take a picture of what is seen, in 128 colours: a page of text needs no more."""
    from PIL import Image

    browser.evaluate("document.documentElement.style.overflow = 'hidden'")  # no scroll bar
    browser.screenshot(path)
    with Image.open(path) as picture:
        smaller = picture.convert("RGB").quantize(128)
    smaller.save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size:,} bytes")


def main() -> int:
    from tests.support.browser import browsing

    command = Command(__doc__, PAGE, smoke={"width": 390})
    command.add_argument("--width", type=int, default=1280, help="of the pages, in pixels")
    command.add_argument("--out", type=Path, default=ROOT / "docs" / "images", help="where the pictures go")
    given = command.read()
    chromium = shutil.which("chromium")
    if chromium is None:
        print("the program chromium is not installed, and it draws the pictures: run make system as root")
        return 0 if given.smoke else 1
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        out = folder if given.smoke else given.out
        marker = make_evidence(folder / "evidence", key_settings(given), small=given.smoke)
        (folder / "terminal.html").write_text(terminal(["evidence", "check", "evidence"], folder), encoding="utf-8")
        with (
            console(marker, folder, small=given.smoke) as address,
            browsing(chromium, folder / "profile") as browser,
        ):
            browser.resize(min(given.width, 920), 1000)
            browser.open((folder / "evidence" / "report.html").as_uri(), "document.querySelector('h1')")
            take(browser, out / "report.png")
            browser.resize(min(given.width, 760), 600)
            browser.open((folder / "terminal.html").as_uri(), "document.querySelector('pre')")
            take(browser, out / "terminal.png")
            browser.resize(given.width, 800)
            browser.open(address, "document.getElementById('token')")
            browser.evaluate(f"document.getElementById('token').value = '{TOKEN}'; document.forms[0].submit()")
            browser.wait_for("document.body.innerText.includes('Recent errors')")
            take(browser, out / "console.png")
    return 0


if __name__ == "__main__":
    sys.exit(main())
