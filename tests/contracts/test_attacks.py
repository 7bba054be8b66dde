"""The battery over every built-in attack."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regionmarker.benchmark.attacks import known_attacks, load_attack
from regionmarker.benchmark.protocols import DataAttack, StolenData
from tests.contracts import attacks as checks

ROWS = [
    "none", "shift:100", "truncate:2/3", "truncate:100", "permute:3", "project", "project:60:4", "tanh", "rotate:3",
    "scale:2", "scale:rows", "translate:3:0.5", "noise", "noise:0.1:3", "round", "round:3", "zero", "zero:0.05",
    "int8", "binary",
]  # fmt: skip
WHOLE = [
    "cse", "cse:method=gmm,clusters=5,components=10,seed=3", "compress", "compress:keep=20,restore", "residuals",
    "residuals:clusters=4,components=3", "drop", "drop:by=pairs,share=0.1", "avoid", "avoid:planes=2,cells=1,seed=3",
    "cover", "cover:share=0.2,clusters=4", "mix", "mix:share=0.1,seed=2", "angles:planes=2,span=6,starts=2,steps=8",
    "perturb:candidates=4,suffixes=2", "perturb:candidates=3,suffixes=2,tail=both,seed=1", "compare", "average",
    "average:first=a,second=b", "average:third=c", "compare:share=0.5,third=c", "differences",
    "differences:by=carriers,third=c", "pairs", "pairs:share=1,components=4", "products:span=4",
    "band:first=4,last=40", "residuals:hidden=32", "cse:hidden=32,components=10", "ica:sources=8,components=4",
    "ica:sources=8,components=8,hidden=16,seed=2", "neighbours", "neighbours:by=public,count=2", "student",
    "student:hidden=0", "paraphrase:TABLE", "paraphrase:most=1,floor=0.5,filter=public,TABLE",
    "paraphrase:filter=none,TABLE",
]  # fmt: skip

# Attacks that compare rows with each other cannot do with one, and what has no direction but its own has none to spare.
REFUSED = {
    "one row": (
        "cse",
        "compress",
        "residuals",
        "drop",
        "avoid",
        "mix",
        "angles",
        "perturb",
        "products",
        "band",
        "ica",
        "neighbours",
        "student",
    ),
    "fewer texts than clusters": ("compress", "perturb:candidates=3,suffixes=2,tail=both", "ica"),
    "every text three times": (),
    "one text many times": ("cse", "ica"),
}

ALSO_REFUSED = {("every text three times", "compress"), ("one text many times", "compress")}  # 64 components


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory, sentences: list[str]) -> Path:
    """A table of paraphrases with a text that has none, one that has its own words again, and one that has eight."""
    pairs = [(text, f"{text} {word}") for text in sentences[5:150] for word in ("indeed", "so")]
    pairs += [(sentences[1], f"  {sentences[1]} "), (sentences[1], sentences[1])]
    pairs += [(sentences[2], f"{sentences[2]} {number}") for number in range(8)]
    pairs += [(sentences[3], "quite another matter"), (sentences[4], " ")]
    path = tmp_path_factory.mktemp("table") / "paraphrases.parquet"
    originals, texts = zip(*pairs, strict=True)
    pq.write_table(pa.table({"original": originals, "text": texts}), path)
    return path


def _load(spec: str, table: Path) -> DataAttack:
    attack = load_attack(spec.replace("TABLE", f"table:{table}"))
    assert isinstance(attack, DataAttack)
    return attack


def test_every_built_in_attack_is_here() -> None:
    here = {spec.partition(":")[0] for spec in (*ROWS, *WHOLE)}
    # These work on models: test_fine_tuning.py, test_base.py.
    assert here | {"finetune", "after"} == set(known_attacks())


@pytest.mark.parametrize("check", checks.EVERY, ids=lambda check: check.__name__)
@pytest.mark.parametrize("spec", [*ROWS, *WHOLE])
def test_every_attack(spec: str, check: checks.Check, stolen: StolenData, table: Path) -> None:
    check(_load(spec, table), stolen)


@pytest.mark.parametrize("edge", checks.EDGES)
@pytest.mark.parametrize("spec", [*ROWS, *WHOLE])
def test_every_attack_at_the_edges(spec: str, edge: str, stolen: StolenData, table: Path) -> None:
    attack, there = _load(spec, table), checks.EDGES[edge](stolen)
    refused = spec.startswith(REFUSED[edge]) or (edge, spec) in ALSO_REFUSED
    (checks.refuses_in_one_sentence if refused else checks.works_at_the_edge)(attack, there)


@pytest.mark.parametrize("spec", WHOLE)
def test_no_rows_are_refused(spec: str, stolen: StolenData, table: Path) -> None:
    checks.refuses_in_one_sentence(_load(spec, table), stolen.kept(np.arange(0)))


@pytest.mark.parametrize("spec", ["cse", "residuals:clusters=9,components=9", "compress:keep=4", "truncate:4"])
def test_vectors_narrower_than_what_is_taken_from_them_are_refused(spec: str, stolen: StolenData, table: Path) -> None:
    checks.refuses_in_one_sentence(_load(spec, table), stolen.with_vectors(stolen.vectors[:, :3]))


@pytest.mark.parametrize("spec", ["avoid", "angles:planes=4,span=8,steps=3,starts=1", "cover", "mix", "drop"])
def test_other_attacks_take_narrow_vectors(spec: str, stolen: StolenData, table: Path) -> None:
    rows = stolen.vectors[:, :3] / np.linalg.norm(stolen.vectors[:, :3], axis=1, keepdims=True)
    checks.works_at_the_edge(_load(spec, table), stolen.with_vectors(rows))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("cse:clusters=0", "clusters must be at least 1"),
        ("cse:components=0", "components must be at least 1"),
        ("cse:pairs=2", "pairs must be a share"),
        ("cse:pairs=nan", "pairs must be a share"),
        ("cse:method=ward", "method must be kmeans or gmm"),
        ("cse:seed=-1", "must not be negative"),
        ("cse:cluster=3", "cse has no option 'cluster'"),
        ("cse:clusters=many", "takes a whole number, not 'many'"),
        ("cse:20", "cse has no option '20'"),
        ("compress:keep=0", "keep a whole number of components or a share"),
        ("compress:keep=1.5", "keep a whole number of components or a share"),
        ("residuals:components=0", "components must be at least 1"),
        ("drop:by=luck", "by must be residuals or pairs"),
        ("drop:share=1", "share must lie between 0 and 1"),
        ("avoid:cells=16", "cells must be 1 to 15 of 16"),
        ("avoid:planes=0", "planes must be 1 to 16"),
        ("cover:share=0", "share must lie between 0 and 1"),
        ("mix:share=0", "share must be above 0"),
        ("angles:span=2", "span must hold the 4 planes"),
        ("perturb:suffixes=30", "candidates must be at least 30"),
        ("perturb:tail=left", "tail must be low, high, both"),
        ("compare:first=second", "the two accounts must differ"),
        ("compare:tolerance=0", "tolerance must lie between"),
        ("compare:share=1", "share must be at least 0 and below 1"),
        ("average:third=first", "both are 'first'"),
        ("differences:by=luck", "by must be directions or carriers"),
        ("differences:components=0", "components must be at least 1"),
        ("pairs:share=0", "share must be above 0"),
        ("products:span=0", "span must be at least 1"),
        ("products:penalty=0", "penalty must be positive"),
        ("band:first=9,last=8", "must not end before it begins"),
        ("ica:components=65", "components must be 1 to 64"),
        ("neighbours:count=0", "count must be at least 1"),
        ("neighbours:by=luck", "by must be served or public"),
        ("student:hidden=-1", "hidden must not be negative"),
        ("residuals:hidden=-1", "hidden must not be negative"),
        ("cse:hidden=-1", "hidden must not be negative"),
        ("noise:0", "deviation of noise must be positive"),
        ("noise:0.1:-1", "seed of noise must not be negative"),
        ("round:0", "1 to 7 decimals"),
        ("zero:1", "between 0 and 1"),
        ("paraphrase:most=0,apertium", "most must be at least 1"),
        ("paraphrase:floor=2,apertium", "floor must be a cosine"),
        ("paraphrase:filter=clean,apertium", "filter must be served, public, none"),
        ("paraphrase:thesaurus", "unknown paraphraser 'thesaurus': give table:FILE, apertium"),
        ("paraphrase:table:", "name the table of paraphrases"),
        ("paraphrase:table:/no/such.parquet", "/no/such.parquet does not exist"),
        ("paraphrase:chat:http://localhost", "write chat:URL#MODEL"),
        ("finetune", "name the corpus"),
        ("finetune:objective=mse,python", "objective must be labels or simcse"),
    ],
)
def test_bad_settings_are_refused(spec: str, message: str) -> None:
    from regionmarker.errors import InputError

    with pytest.raises(InputError, match=message):
        load_attack(spec)
