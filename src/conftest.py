"""Docstrings of what needs a package that is not here are no tests here; `make test-integrations` has the packages."""

from __future__ import annotations

from importlib.util import find_spec

_NEEDS = {"langchain": "langchain_core", "llama_index": "llama_index"}
_MISSING = [name for name, package in _NEEDS.items() if find_spec(package) is None]

collect_ignore = [f"regionmarker/integrations/{name}.py" for name in _MISSING]
