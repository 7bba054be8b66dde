"""Make a release of the commit that is checked out, and try it as a stranger would.

    python deploy/release.py [--out dist] [--bill out/sbom.cdx.json] [--rehearse]

`make release` calls it with all that it needs. In dist/ lie afterwards the sdist, the wheel, the bill of materials
(CycloneDX) and SHA256SUMS. Everything is tried in new environments and in an empty folder, so that nothing of the
checkout can help:

    the commit        nothing is left uncommitted, and the change log and the examples name the version
    two builds        of one commit are equal, byte for byte
    twine             finds nothing wrong with them
    no extras         the wheel installs alone; --help and doctor run; the demo says which extra it wants
    ten lines         of the README that is in the wheel print what they say
    the demo          runs with the extra "demo" and leaves a picture, a key and a report
    papers            the bill of materials and the sums

`--rehearse` goes on where the commit is no release yet, and says so.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping
from email import message_from_string
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUMS = "SHA256SUMS"
NAMES_VERSION = {
    "CHANGELOG.md": "## [{}]",
    "deploy/kubernetes.yaml": "regionmarker-gateway:{}",
    "docs/how-to/deploy.md": "regionmarker-gateway:{}",
}
"""Files that name the version, and how."""
_PROGRAMS = "Scripts" if os.name == "nt" else "bin"


class ReleaseError(Exception):
    """What is missing, in a sentence."""


def version_of(source: str) -> str:
    """Return the version that a file of source names.

    Examples
    --------
    >>> version_of('__version__ = "1.2.3"')
    '1.2.3'
    """
    found = re.search(r'^__version__ = "(.+)"$', source, re.MULTILINE)
    if found is None:
        raise ReleaseError("src/regionmarker/_version.py names no __version__")
    return found[1]


def not_ready(version: str, read: Callable[[str], str], uncommitted: str) -> list[str]:
    """Return why the commit is no release of this version yet; ``read`` returns a file of it by name."""
    said = []
    if uncommitted:
        said.append(f"not committed, so not built: {', '.join(line[3:] for line in uncommitted.splitlines())}")
    for name, wanted in NAMES_VERSION.items():
        if wanted.format(version) not in read(name):
            said.append(f"{name} does not name {wanted.format(version)}")
    unreleased = re.search(r"^## \[Unreleased\]\n(.*?)(?=^## \[|\Z)", read("CHANGELOG.md"), re.MULTILINE | re.DOTALL)
    if unreleased is not None and unreleased[1].strip():
        said.append(f"CHANGELOG.md has lines under Unreleased: give them the heading ## [{version}]")
    return said


def python_block(metadata: str) -> str:
    r"""Return the first Python block of the README that a wheel carries.

    Examples
    --------
    >>> print(python_block("Name: x\n\n# X\n\n```python\nprint(1)  # 1\n```\n"))
    print(1)  # 1
    """
    page = message_from_string(metadata).get_payload()
    found = re.search(r"^```python\n(.*?)\n```$", str(page), re.MULTILINE | re.DOTALL)
    if found is None:
        raise ReleaseError("the README in the wheel has no Python block")
    return found[1]


def promised(source: str) -> list[str]:
    r"""Return what lines of Python say that they print, each as a pattern; what stands behind a colon is our word.

    Examples
    --------
    >>> promised('x = 1  # a number\nprint(x)  # Trace(p=..., accused=True)\nprint(y)  # no evidence: innocent')
    ['Trace\\(p=.*,\\ accused=True\\)', 'no\\ evidence']
    """
    comments = re.findall(r"^print\(.*\)  # (.*)$", source, re.MULTILINE)
    return [re.escape(comment.partition(":")[0]).replace(r"\.\.\.", ".*") for comment in comments]


def broken_promises(source: str, printed: str) -> list[str]:
    """Return the promises of the lines that what they printed does not keep."""
    patterns, lines = promised(source), printed.splitlines()
    if len(patterns) != len(lines) or not patterns:
        return [f"{len(patterns)} lines are promised and {len(lines)} were printed"]
    pairs = zip(patterns, lines, strict=True)
    return [f"{line!r} is not {pattern}" for pattern, line in pairs if not re.fullmatch(pattern, line)]


def sums(folder: Path) -> str:
    """Return the sums of a folder's files, as ``sha256sum --check`` reads them."""
    files = sorted(path for path in folder.iterdir() if path.name != SUMS)
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files)


def metadata_of(wheel: Path) -> str:
    """Return what a wheel says of itself."""
    with zipfile.ZipFile(wheel) as packed:
        (name,) = (one for one in packed.namelist() if one.endswith(".dist-info/METADATA"))
        return packed.read(name).decode()


def checked_bill(path: Path, version: str) -> str:
    """Return a bill of materials that names the version; refuse another's, and one whose parts have no hashes."""
    try:
        bill = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ReleaseError(f"{path} is no bill of materials: run make sbom ({error})") from None
    about = bill.get("metadata", {}).get("component", {})
    if about.get("name") != "regionmarker":
        raise ReleaseError(f"{path} is the bill of {about.get('name')}: run make sbom")
    if about.get("version", version) != version:
        raise ReleaseError(f"{path} is the bill of version {about['version']}, and this is {version}: run make sbom")
    parts = bill.get("components", [])
    hashed = [any("hashes" in one for one in part.get("externalReferences", [])) for part in parts]
    bare = [part.get("name") for part, has_hash in zip(parts, hashed, strict=True) if not has_hash]
    if not parts or bare:
        raise ReleaseError(f"{path} has {len(parts)} parts, without hashes: {', '.join(map(str, bare[:3])) or 'none'}")
    about["version"] = version
    return json.dumps(bill, indent=1, sort_keys=True) + "\n"


def run(*command: object, folder: Path | None = None, may_fail: bool = False) -> str:
    """Run a program that knows nothing of the checkout; return what it printed."""
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "REGIONMARKER_DATA")
    environment: Mapping[str, str] = {name: value for name, value in os.environ.items() if name not in hidden}
    words = [str(word) for word in command]
    done = subprocess.run(  # noqa: S603
        words, cwd=folder, env=environment, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode and not may_fail:
        raise ReleaseError(f"{' '.join(words[:4])} ended with {done.returncode}:\n{done.stdout.strip()[-2000:]}")
    return done.stdout


class Release:
    """One commit on its way; each step leaves what the next one needs."""

    def __init__(self, out: Path, bill: Path, scratch: Path, *, rehearse: bool) -> None:
        self.out, self.bill, self.scratch, self.rehearse = out.resolve(), bill.resolve(), scratch, rehearse
        self.version = version_of((ROOT / "src" / "regionmarker" / "_version.py").read_text(encoding="utf-8"))
        self.empty = scratch / "empty"  # where programs run: nothing of ours is near
        self.empty.mkdir()
        self._bin = scratch / "environment" / _PROGRAMS

    def commit(self) -> str:
        """Look whether this is a release."""
        changed = run("git", "-C", ROOT, "status", "--porcelain")
        found = not_ready(self.version, lambda name: (ROOT / name).read_text(encoding="utf-8"), changed)
        if found and not self.rehearse:
            raise ReleaseError("; ".join(found) + " (make release REHEARSE=1 goes on)")
        return "a rehearsal: " + "; ".join(found) if found else f"version {self.version}"

    def builds(self) -> str:
        """Build twice, and compare."""
        run(sys.executable, ROOT / "deploy" / "build_twice.py", "--out", self.out)
        (self.wheel,) = self.out.glob("*.whl")
        self.metadata = metadata_of(self.wheel)
        built = message_from_string(self.metadata)["Version"]
        if built != self.version:
            raise ReleaseError(f"the wheel is version {built}, and _version.py says {self.version}: commit it")
        return ", ".join(sorted(path.name for path in self.out.iterdir()))

    def twine(self) -> str:
        """Let twine read the files as the index would."""
        try:
            run(sys.executable, "-m", "twine", "check", "--strict", *sorted(self.out.iterdir()))
        except ReleaseError as error:
            missing = "No module named twine" in str(error)
            raise ReleaseError("twine is missing: make release installs it" if missing else str(error)) from None
        return "passed, strictly"

    def _install(self, what: str) -> None:
        if not self._bin.exists():
            run(sys.executable, "-m", "venv", self._bin.parent)
        run(self._bin / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", what)

    def _say(self, *arguments: str, may_fail: bool = False) -> str:
        return run(self._bin / "regionmarker", *arguments, folder=self.empty, may_fail=may_fail)

    def no_extras(self) -> str:
        """Install the wheel alone, and ask it what it can do."""
        self._install(str(self.wheel))
        run(self._bin / "python", "-m", "pip", "check")
        where = run(self._bin / "python", "-c", "import regionmarker; print(regionmarker.__file__)", folder=self.empty)
        if not Path(where.strip()).is_relative_to(self.scratch):
            raise ReleaseError(f"regionmarker was imported from {where.strip()}, not from the wheel")
        if self._say("--version").strip() != self.version:
            raise ReleaseError(f"--version says {self._say('--version').strip()}, not {self.version}")
        self._say("--help")
        facts = json.loads(self._say("doctor", "--json"))
        core = [part for part in facts["parts"] if part["to_get_it"] == "pip install regionmarker"]
        lacking = [part["part"] for part in core if not part["version"]]
        if lacking:
            raise ReleaseError(f"the wheel installs without what it needs: {', '.join(lacking)}")
        return f"--version, --help and doctor run, with the {facts['marking_engine']} engine"

    def ten_lines(self) -> str:
        """Run the README's lines from the wheel; an innocent is convicted once in a thousand keys, so once more."""
        source = python_block(self.metadata)
        script = self.empty / "ten_lines.py"
        script.write_text(source, encoding="utf-8")
        for _ in range(2):
            printed = run(self._bin / "python", script, folder=self.empty)
            broken = broken_promises(source, printed)
            if not broken:
                return "; ".join(line.partition("(")[0] for line in printed.splitlines())
        raise ReleaseError(f"the README's lines do not print what they say, twice: {'; '.join(broken)}")

    def demo(self) -> str:
        """Run the demo without its extra, which must not end in a traceback, and with it."""
        bare = self._say("demo", "--out", "bare", may_fail=True)
        if "Traceback" in bare:
            raise ReleaseError(f"the demo without its extra ends in a traceback:\n{bare[-2000:]}")
        self._install(f"{self.wheel}[demo]")
        self._say("demo", "--out", "demo")
        made = sorted(path.name for path in (self.empty / "demo").iterdir())
        if not {"demo.rmkey", "verdicts.png"} <= set(made):
            raise ReleaseError(f"the demo left {', '.join(made)}: the key or the picture is missing")
        return f"left {', '.join(made)}"

    def papers(self) -> str:
        """Put the bill of materials and the sums beside the files."""
        name = f"regionmarker-{self.version}.cdx.json"
        (self.out / name).write_text(checked_bill(self.bill, self.version), encoding="utf-8")
        (self.out / SUMS).write_text(sums(self.out), encoding="utf-8")
        return f"{name}, {SUMS}"


STEPS: dict[str, Callable[[Release], str]] = {
    "the commit": Release.commit,
    "two builds": Release.builds,
    "twine": Release.twine,
    "no extras": Release.no_extras,
    "ten lines": Release.ten_lines,
    "the demo": Release.demo,
    "papers": Release.papers,
}


def main() -> int:
    """Take every step, or stop at the first that fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("dist"))
    parser.add_argument("--bill", type=Path, default=Path("out/sbom.cdx.json"), help="the bill of materials")
    parser.add_argument("--rehearse", action="store_true", help="go on where the commit is no release yet")
    given = parser.parse_args()
    scratch = Path(tempfile.mkdtemp(prefix="release-")).resolve()
    try:
        release = Release(given.out, given.bill, scratch, rehearse=given.rehearse)
        for number, (name, step) in enumerate(STEPS.items(), start=1):
            sys.stdout.write(f"{number}/{len(STEPS)} {name:<11}")
            sys.stdout.flush()
            started = time.monotonic()
            said = step(release)
            sys.stdout.write(f"{time.monotonic() - started:4.0f} s  {said}\n")
        sys.stdout.write(f"\n{(release.out / SUMS).read_text(encoding='utf-8')}")
    except ReleaseError as error:
        sys.stdout.write("failed\n")
        sys.stderr.write(f"make release: {error}\n")
        return 1
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
