"""The documentation site: ``make docs`` builds it from the Markdown of the repository, in an environment of its own.

The pages stay as they are for readers of the repository. What a site needs besides is made here, in out/docs: the order
of the pages, which is that of docs/index.md; a page for every file outside docs/ that a page links to, so that no link
leaves the site; the notebooks of examples/ as pages. Then Zensical builds out/docs/site, and a warning is an error.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
OUT = ROOT / "out" / "docs"
FRONT = "README.md"
PROJECT = {"Changes": "CHANGELOG.md", "Contributing": "CONTRIBUTING.md", "Security": "SECURITY.md"}
LANGUAGES = {".py": "python", ".yaml": "yaml", ".toml": "toml", ".conf": "nginx", ".sh": "sh", ".json": "json"}
_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<=\]\()([^)\s]+)(?=\))")
_ROW = re.compile(r"^\|.*$", re.MULTILINE)
_ROLE = re.compile(r":[a-z]+:`~?([^`]+)`")
_WIDE = "---\nhide:\n  - toc\n---\n\n"
"""For a page with a wide table: no list of its headings beside it."""
_ENTRY = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")

Nav = list[dict[str, Any]]


def nav(root: Path = ROOT) -> Nav:
    """Return the order of the pages: sections in bold type, parts of them in italics, and their links, as in the index.

    A line's second link bears the name of its first, or the words before it: "Speed of [marking](a), [serving](b)".
    """
    text = (root / "docs" / "index.md").read_text(encoding="utf-8")
    found: Nav = []
    part: Nav = []
    for line in re.sub(r"\n {2,}", " ", text).splitlines():
        if section := re.fullmatch(r"\*\*(.+)\*\*", line):
            part = []
            found.append({section[1]: part})
        elif group := re.fullmatch(r"\*(.+)\*", line):
            part = []
            next(iter(found[-1].values())).append({group[1]: part})
        elif line.startswith("- "):
            part += _entries(line[2:])
    first = next(iter(found[0].values()))
    first[:0] = [{"RegionMarker": "index.md"}, {"All pages": "docs/index.md"}]
    return [*found, {"Project": [{title: page} for title, page in PROJECT.items()]}]


def _entries(line: str) -> Iterator[dict[str, str]]:
    links = [(match[1], match[2]) for match in _ENTRY.finditer(line)]
    before = line.partition("[")[0]
    for place, (title, link) in enumerate(links):
        path = os.path.normpath(f"docs/{link}").partition("#")[0]
        name = f"{before}{title}" if before else title if not place else f"{links[0][0]}: {title}"
        yield {name: path + ".md" if path.endswith(".ipynb") else path}


def staged(page: Path, root: Path = ROOT) -> tuple[str, set[Path]]:
    """Return a page as the site has it, and the files and folders outside docs/ that it needs there as pages.

    A link to something that is not there is an error.
    """
    needed: set[Path] = set()

    def leads(link: re.Match[str]) -> str:
        name, mark, anchor = link[0].partition("#")
        if not name or re.match(r"[a-z]+:", name):
            return link[0]
        target = (page.parent / name).resolve()
        if not target.exists():
            raise SystemExit(f"{page.relative_to(root)}: {link[0]} leads nowhere: mend the link")
        if target == root / FRONT:
            return f"{name.removesuffix(FRONT)}index.md{mark}{anchor}"
        if target.is_dir():
            needed.add(target)
            return f"{name.rstrip('/')}/files.md"
        if target.suffix == ".md" or (target.is_relative_to(root / "docs") and target.suffix != ".py"):
            return link[0]
        needed.add(target)
        return f"{_seen(name)}.md{mark}{anchor}"

    parts = _FENCED.split(page.read_text(encoding="utf-8"))
    parts[::2] = [_ROW.sub(_unescaped, _LINK.sub(leads, part)) for part in parts[::2]]
    text = "".join(parts)
    return (_WIDE + text if 'class="sortable"' in text else text), needed


def _seen(name: str) -> str:
    """Return a path without the dots of hidden folders, which the generator passes over."""
    return re.sub(r"(^|/)\.(?=\w)", r"\1", name)


def _unescaped(row: re.Match[str]) -> str:
    """Return a line of a table without the escapes of its code: code hosts want bars escaped there, the site not."""
    return re.sub(r"`[^`]*`", lambda code: code[0].replace("\\|", "|"), row[0])


def as_page(path: Path, root: Path = ROOT) -> str:
    """Return a file, a folder or a notebook as a page."""
    name = path.relative_to(root)
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.is_file())
        return f"# {name}\n\n" + "".join(f"- [{file.name}]({file.name})\n" for file in files)
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        return notebook_page(json.loads(text))
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", text)), default=0))
    return f"# {name}\n\n{fence} {LANGUAGES.get(path.suffix, 'text')}\n{text.rstrip()}\n{fence}\n"


def notebook_page(notebook: dict[str, Any]) -> str:
    """Return a notebook as Markdown: its words, its code and the outputs that it keeps, pictures inside the page."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        elif cell["cell_type"] == "code":
            parts.append(f"``` python\n{source}\n```")
            parts += [_output(output) for output in cell["outputs"]]
    return "\n\n".join(part for part in parts if part) + "\n"


def _output(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return f"``` text\n{''.join(output['text']).rstrip()}\n```"
    data = {kind: "".join(found) for kind, found in output.get("data", {}).items() if kind != "application/json"}
    if "image/png" in data:
        picture = data["image/png"].replace("\n", "")
        return f'<p><img alt="What the cell above draws" src="data:image/png;base64,{picture}"></p>'
    if "text/html" in data:
        return f'<div class="output">{data["text/html"]}</div>'
    return f"``` text\n{data.get('text/plain', '').rstrip()}\n```"


def stage(root: Path = ROOT, out: Path = OUT) -> None:
    """Write everything that the site is built from."""
    pages = out / "pages"
    for folder in (pages, out / "src", out / "site"):
        shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(root / "docs", pages / "docs", ignore=shutil.ignore_patterns("*.py", "__pycache__", "*.toml"))
    shutil.move(pages / "docs" / "site", pages / "site")
    needed: set[Path] = set((root / "examples").glob("*.ipynb"))
    for page in [root / FRONT, *(root / name for name in PROJECT.values()), *sorted((root / "docs").rglob("*.md"))]:
        text, more = staged(page, root)
        needed |= more
        _write(pages / ("index.md" if page == root / FRONT else page.relative_to(root)), text)
    for path in needed:
        below = pages / _seen(path.relative_to(root).as_posix())
        _write(below / "files.md" if path.is_dir() else below.with_name(f"{path.name}.md"), as_page(path, root))
    for path in (root / "src").rglob("*.py"):  # docstrings as Markdown
        _write(out / path.relative_to(root), _ROLE.sub(r"`\1`", path.read_text(encoding="utf-8")))
    settings = (root / "docs" / "site" / "zensical.toml").read_text(encoding="utf-8")
    _write(out / "zensical.toml", settings.replace("[project]\n", f"[project]\nnav = {_toml(nav(root))}\n", 1))


def _toml(entry: object) -> str:
    if isinstance(entry, list):
        return "[" + ", ".join(map(_toml, entry)) + "]"
    if isinstance(entry, dict):
        return "{ " + ", ".join(f"{json.dumps(name)} = {_toml(value)}" for name, value in entry.items()) + " }"
    return json.dumps(entry)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def main() -> int:
    stage()
    program = Path(sys.executable).with_name("zensical")
    done = subprocess.run([program, "build", "--strict", "--clean"], cwd=OUT, check=False)
    if not done.returncode:
        print(f"open {(OUT / 'site' / 'index.html').relative_to(ROOT)}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
