"""Can an outsider tell which rows are marked? The detectors of the attacks that drop rows, against the truth.

    python -m studies.detectors --data-dir DIR [--keys 4] [--rows 5000] [--json FILE]

DIR holds NAME.parquet and provider_mpnet768_NAME.npz of the corpora. The thief's public encoder is WordLlama. A number
is an area under the curve: 0.5 is chance, 1 finds every marked row first, 0 every unmarked one. `control` is the same
detector on the same rows before they were marked: what meaning alone gives it. A key has its normals in the leading
`subspace` principal components; 4 is the paper, 32 the default.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

from regionmarker import RegionMarker, load_encoder
from regionmarker.benchmark.attacks import Angles, Drop
from regionmarker.benchmark.corpora import load_corpus
from regionmarker.benchmark.protocols import StolenData
from studies._study import Command

PAGE = "docs/results/detectors.md"
CORPORA = ("sst2", "mind")


def detectors(span: int) -> dict[str, Callable[[StolenData], np.ndarray]]:
    return {
        "angles": Angles(span=span).suspicion,
        "drop by residuals": Drop().suspicion,
        "drop by pairs": Drop(by="pairs").suspicion,
    }


def area(scores: np.ndarray, marked: np.ndarray) -> float:
    from scipy.stats import rankdata

    inside = int(marked.sum())
    ranks = rankdata(scores)[marked].sum() - inside * (inside + 1) / 2
    return float(ranks / (inside * (len(marked) - inside)))


def measure(name: str, folder: Path, keys: int, rows: int, subspaces: list[int]) -> list[dict[str, object]]:
    corpus = load_corpus(name, "stored:mpnet768", folder=folder, limit=rows)
    texts, public = list(corpus.data.texts), load_encoder("wordllama")
    found: list[dict[str, object]] = []
    for subspace in subspaces:
        clean = StolenData(tuple(texts), corpus.clean, public=public)
        clean_scores = {kind: score(clean) for kind, score in detectors(subspace).items()}
        for key in range(keys):
            marker = RegionMarker(seed=key, subspace=subspace, pool=64, reservoir=256, normalise=True)
            served = marker.fit(texts, embeddings=corpus.clean).transform(corpus.clean)
            marked = np.einsum("ij,ij->i", served, corpus.clean) < 1 - 1e-4
            stolen = StolenData(tuple(texts), served, public=public)
            for kind, score in detectors(subspace).items():
                line = {
                    "corpus": name,
                    "subspace": subspace,
                    "key": key,
                    "detector": kind,
                    "marked": round(float(marked.mean()), 3),
                    "area": round(area(score(stolen), marked), 3),
                    "control": round(area(clean_scores[kind], marked), 3),
                }
                found.append(line)
                print(json.dumps(line), flush=True)
    return found


def main() -> None:
    parser = Command(__doc__, PAGE, data=True, smoke={"keys": 1, "rows": 500, "corpora": ["sst2"], "subspaces": [4]})
    parser.add_argument("--keys", type=int, default=4)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--corpora", nargs="+", default=CORPORA)
    parser.add_argument("--subspaces", type=int, nargs="+", default=[4, 32])
    parser.add_argument("--json", type=Path)
    given = parser.read()
    lines = [
        line
        for name in given.corpora
        for line in measure(name, given.data_dir, given.keys, given.rows, given.subspaces)
    ]
    print("\n| corpus | subspace | detector | area, mean (least, most) | control, mean |\n|---|---:|---|---:|---:|")
    for group in dict.fromkeys((line["corpus"], line["subspace"], line["detector"]) for line in lines):
        areas, controls = zip(
            *((line["area"], line["control"]) for line in lines
              if (line["corpus"], line["subspace"], line["detector"]) == group), strict=True,
        )  # fmt: skip
        print(
            f"| {group[0]} | {group[1]} | {group[2]} | {np.mean(areas):.2f} ({min(areas):.2f}, {max(areas):.2f}) "
            f"| {np.mean(controls):.2f} |"
        )
    if given.json:
        given.json.write_text(json.dumps(lines, indent=2))


if __name__ == "__main__":
    main()
