"""A corpus that everyone has: the sentences of Python's own documentation.

They come from the help topics and docstrings of the standard library of the running interpreter, read as source and
never imported. Good enough to try everything offline; a real key wants texts like those that customers send.
"""

from __future__ import annotations

import ast
import gc
import re
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

_SKIPPED = {"test", "tests", "idlelib", "lib2to3", "site-packages", "dist-packages", "__pycache__", "ensurepip"}
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_SHORTEST, _LONGEST = 5, 60  # words


def python_sentences(limit: int | None = None) -> list[str]:
    """Return distinct sentences of the standard library's documentation, in a fixed order for one Python version.

    Examples
    --------
    >>> sentences = python_sentences(limit=3)
    >>> len(sentences), all(len(sentence.split()) >= 5 for sentence in sentences)
    (3, True)
    """
    return list(sentences_by_module(limit))


def sentences_by_module(limit: int | None = None) -> dict[str, str]:
    """Return the same sentences, each with the module or package that says it first; help topics are ``topics``.

    Examples
    --------
    >>> set(sentences_by_module(limit=3).values())
    {'topics'}
    """
    found: dict[str, str] = {}
    for module, passage in _passages():
        for sentence in _sentences(passage):
            found.setdefault(sentence, module)
        if limit is not None and len(found) >= limit:
            break
    return dict(islice(found.items(), limit))


def _passages() -> Iterator[tuple[str, str]]:
    from pydoc_data.topics import topics

    yield from (("topics", str(topics[name])) for name in sorted(topics))
    library = Path(sysconfig.get_path("stdlib"))
    for path in sorted(library.rglob("*.py")):
        parts = path.relative_to(library).parts
        if not _SKIPPED.intersection(parts):
            yield from ((parts[0].removesuffix(".py"), passage) for passage in _docstrings(path))


@contextmanager
def _no_collection() -> Iterator[None]:
    """Hold back the garbage collector: a finaliser that parses inside ast.parse makes Python 3.11 fail."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _docstrings(path: Path) -> Iterator[str]:
    try:
        with _no_collection():
            tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError, OSError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


def _sentences(passage: str) -> Iterator[str]:
    for paragraph in passage.split("\n\n"):
        if ">>>" in paragraph:
            continue
        for sentence in _SENTENCE_END.split(" ".join(paragraph.split())):
            words = sentence.split()
            if _SHORTEST <= len(words) <= _LONGEST and sum(word.isalpha() for word in words) > len(words) / 2:
                yield sentence
