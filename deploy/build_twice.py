"""Build sdist and wheel twice from the commit that is checked out, in two folders, and compare them byte for byte.

    python deploy/build_twice.py [--out dist] [--no-isolation]

Needs git and the package ``build``. What is not committed is not built. Both builds get the commit's own time
(``SOURCE_DATE_EPOCH``), and nothing else of the machine is in them: who builds the same commit gets the same files.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]


def git(*arguments: str) -> bytes:
    """Return what git says of the checkout."""
    return subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, stdout=subprocess.PIPE).stdout  # noqa: S603, S607


def build(folder: Path, commit: str, *, isolated: bool) -> dict[str, bytes]:
    """Unpack a commit into a folder, build it, and return the files by name."""
    source, target = folder / "source", folder / "dist"
    source.mkdir(parents=True)
    packed = folder / "commit.tar"
    packed.write_bytes(git("archive", "--format=tar", commit))
    with tarfile.open(packed) as files:
        files.extractall(source, filter="data")
    time = git("log", "-1", "--format=%ct", commit).decode().strip()
    command = [sys.executable, "-m", "build", "--outdir", str(target), str(source)]
    subprocess.run(  # noqa: S603
        [*command, *([] if isolated else ["--no-isolation"])],
        check=True,
        env={**os.environ, "SOURCE_DATE_EPOCH": time},
        stdout=subprocess.DEVNULL,
    )
    return {path.name: path.read_bytes() for path in sorted(target.iterdir())}


def main() -> int:
    """Build, compare, and put the files in place."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("dist"))
    parser.add_argument("--no-isolation", action="store_true", help="use the build backend that is installed here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory(prefix="another-place-") as second:
        commit = git("rev-parse", "HEAD").decode().strip()  # once: who commits meanwhile changes nothing
        one, two = (build(Path(folder), commit, isolated=not options.no_isolation) for folder in (first, second))
    if one != two:
        differing = sorted(name for name in one.keys() | two.keys() if one.get(name) != two.get(name))
        sys.stderr.write(f"two builds of one commit differ in {', '.join(differing)}: nothing was written\n")
        return 1
    shutil.rmtree(options.out, ignore_errors=True)
    options.out.mkdir(parents=True)
    for name, content in one.items():
        (options.out / name).write_bytes(content)
        sys.stdout.write(f"{hashlib.sha256(content).hexdigest()}  {name}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
