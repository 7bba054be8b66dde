"""Every spec of docs, grids, references and tests parses to the same part and prints as it did in 0.1.0.

``specs.json`` holds, for each kind of part and each spec, the type, the name and the choices as they print.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from regionmarker.benchmark.attacks import load_attack
from regionmarker.benchmark.attacks.paraphrasers import load_paraphraser
from regionmarker.benchmark.corpora import NAMES, STORED, check_corpus
from regionmarker.benchmark.defenses import known_defenses, load_defense
from regionmarker.benchmark.grid.cell import Cell
from regionmarker.benchmark.grid.grid_file import Grid
from regionmarker.benchmark.stealers import load_stealer
from regionmarker.encoders import load_encoder
from regionmarker.errors import InputError
from regionmarker.specs import Registry, Spec, position, rest

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
        return [type(part).__name__, part.name, repr(part.options).partition("(")[2]]
    if kind == "stealer":
        options = {"teacher": _Teacher()} if spec.startswith("simulated") else {}
        named = "wordllama" if spec.startswith("head") else "bert-base-cased"
        part = load_stealer(re.sub(r"@[a-z0-9]+", named, spec), **options)
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
    defenses = known_defenses()  # asks what is installed
    for cell in Grid.read(path).cells:
        for kind, spec in _specs(cell, defenses):
            assert spec in PARTS[kind], f"add {spec!r} of {path.name} to specs.json"


def _specs(cell: Cell, defenses: Collection[str]) -> Iterator[tuple[str, str]]:
    if cell.defense.partition(":")[0] in defenses:
        yield "defense", cell.defense
    for attack in cell.attacks:
        # A cell's own (the corpus brings these paraphrases), and tables that bench paraphrase has to write first.
        if attack != "paraphrase:stored" and "table:@" not in attack:
            yield "attack", attack
    if cell.stealer:
        yield "stealer", cell.stealer


def test_every_corpus_of_the_grids_has_a_name() -> None:
    for path in GRIDS:
        for cell in Grid.read(path).cells:
            assert cell.corpus in NAMES
            if not cell.provider.startswith(STORED):
                check_corpus(cell.corpus, cell.provider, None)


@dataclass(frozen=True)
class Walk(Spec):
    """Two positions, two options and a rest."""

    spec = "walk"

    steps: int = position(10)
    pace: float | None = position(1.5, none="any", takes="a number or any", shown=False)
    turns: int = 0
    back: bool = False
    where: str = rest()


@pytest.mark.parametrize(
    ("text", "made", "written"),
    [
        ("", Walk(), "walk:10"),
        ("3", Walk(3), "walk:3"),
        (":2", Walk(10, 2.0), "walk:10:2"),
        ("3:any", Walk(3, None), "walk:3:any"),
        ("3,turns=2,home:a,b=c", Walk(3, turns=2, where="home:a,b=c"), "walk:3,turns=2,home:a,b=c"),
        ("3:0.123456789", Walk(3, 0.123456789), "walk:3:0.123456789"),
    ],
)
def test_positions_options_and_a_rest(text: str, made: Walk, written: str) -> None:
    assert Walk.from_spec(text) == made
    assert made.name == written
    assert Walk.from_spec(made.name.partition(":")[2]) == made


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("many", "^walk: steps takes a whole number, not 'many'$"),
        ("3:fast", "^walk: pace takes a number or any, not 'fast'$"),
        ("3:2:1", "^walk takes STEPS:PACE after its name, but '3:2:1' was given$"),
        ("3,leaps=2,home", "^walk has no option 'leaps': give turns=, back$"),
        ("3,turns=2,turns=3,home", "^walk was given turns twice$"),
        ("3,turns=,home", "^walk: turns needs a value: write turns=0$"),
    ],
)
def test_a_bad_spec_is_refused_in_one_sentence(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Walk.from_spec(text)


def test_a_registry_checks_what_it_loads() -> None:
    walks = Registry("walk", "example.walks", {"walk": f"{__name__}:Walk"}, protocol=Walk, promise="steps")
    assert walks.load("walk:3") == walks.load(Walk(3)) == Walk(3)
    with pytest.raises(InputError, match=r"^a walk is a spec or an object with steps, but a int was given$"):
        walks.load(3)
    others = Registry("walk", "example.walks", {"walk": "builtins:str"}, protocol=Walk, promise="steps")
    with pytest.raises(InputError, match=r"^the walk 'walk' must have steps, but is a str$"):
        others.load("walk:3")
