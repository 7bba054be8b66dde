"""Every spec of docs, grids, references and tests parses to the same part and prints as it did in 0.1.0.

``specs.json`` holds, for each kind of part and each spec, the type, the name and the choices as they print.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any

import pytest

from regionmarker.benchmark.attacks import load_attack
from regionmarker.benchmark.attacks.paraphrasers import load_paraphraser
from regionmarker.benchmark.corpora import NAMES, STORED, check_corpus
from regionmarker.benchmark.defenses import load_defense
from regionmarker.benchmark.grid.cell import Cell
from regionmarker.benchmark.grid.grid_file import Grid
from regionmarker.benchmark.stealers import load_stealer
from regionmarker.encoders import load_encoder

HERE = Path(__file__).parent
PARTS: dict[str, dict[str, list[str]]] = json.loads((HERE / "specs.json").read_text("utf-8"))
GRIDS = sorted((HERE.parent / "studies" / "grids").glob("*.toml"))


class _Teacher:
    """Stands for the marked map that a simulated stealer copies."""

    name = "teacher"

    def encode(self, texts: object, /) -> Any:
        raise NotImplementedError


def described(kind: str, spec: str) -> list[str]:
    """Return the type of the part, its name, and its choices as they print."""
    if kind == "attack":
        part: Any = load_attack(spec)
        return [type(part).__name__, part.name, repr(part) if is_dataclass(part) else ""]
    if kind == "defense":
        part = load_defense(spec, seed=1)
        return [type(part).__name__, part.name, repr(part.settings)]
    if kind == "stealer":
        options = {"teacher": _Teacher()} if spec.startswith("simulated") else {}
        part = load_stealer(spec.replace("@minilm", "wordllama").replace("@backbone", "bert-base-cased"), **options)
        return [type(part).__name__, part.name, _choices(part)]
    part = load_paraphraser(spec) if kind == "paraphraser" else load_encoder(spec)
    return [type(part).__name__, part.name, ""]


def _choices(stealer: Any) -> str:
    plain = (bool, int, float, str, type(None))
    return ", ".join(f"{name}={value!r}" for name, value in sorted(vars(stealer).items()) if isinstance(value, plain))


@pytest.mark.parametrize(("kind", "spec"), [(kind, spec) for kind, specs in PARTS.items() for spec in specs])
def test_a_spec_parses_and_prints_as_before(kind: str, spec: str) -> None:
    if spec.startswith("backbone"):
        pytest.importorskip("torch", reason="a backbone needs torch")
    assert described(kind, spec) == PARTS[kind][spec]


@pytest.mark.parametrize("path", GRIDS, ids=lambda path: path.stem)
def test_the_list_holds_every_spec_of_the_grids(path: Path) -> None:
    for cell in Grid.read(path).cells:
        for kind, spec in _specs(cell):
            assert spec in PARTS[kind], f"add {spec!r} of {path.name} to specs.json"


def _specs(cell: Cell) -> Iterator[tuple[str, str]]:
    yield "defense", cell.defense
    for attack in cell.attacks:
        if attack != "paraphrase:stored":  # a cell's own: the corpus brings these paraphrases
            yield "attack", attack
    if cell.stealer:
        yield "stealer", cell.stealer


def test_every_corpus_of_the_grids_has_a_name() -> None:
    for path in GRIDS:
        for cell in Grid.read(path).cells:
            assert cell.corpus in NAMES
            if not cell.provider.startswith(STORED):
                check_corpus(cell.corpus, cell.provider, None)
