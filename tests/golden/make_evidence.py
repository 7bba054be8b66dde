"""Write a key and the evidence that it gave: run once for a new format version, never to make a test pass.

python tests/golden/make_evidence.py v1

It uses public names alone, so that it runs on every version: the files of v1 were written by 0.1.0. It was run until
the power was enough for "no evidence" against the innocent, and the copy's p-value above the smallest possible.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import regionmarker as rm
from regionmarker.evidence import Signer

FOLDER = Path(__file__).parent
WIDTH, POOL, RESERVOIR, BUDGET = 24, 64, 500, 464
FIDELITY = 0.7  # so bad a copy that p is no round number: not the smallest that the key can give
TENANTS = ("acme", "zenith")


def main(version: str) -> None:
    """Make the key, ask a copy and an innocent, and keep what they answered and what was said of it."""
    folder = FOLDER / f"{version}-evidence"
    folder.mkdir()
    rows, texts = corpus()
    marker = rm.RegionMarker(pool=POOL, reservoir=RESERVOIR, subspace=8).fit(texts, embeddings=rows[: len(texts)])
    marker = rm.RegionMarker.from_key(marker.key_.with_salt(b"public randomness of the golden evidence"))
    marker.save(folder / "provider.rmkey")
    _save_marked(marker, rows[len(texts) :], folder / "marked.npz")

    of_text = dict(zip(texts, blurred(rows[: len(texts)]), strict=True))
    copy = _asked(marker, lambda rows: marker.transform(rows, tenant=TENANTS[0]), of_text, "https://copy.example/v1#a")
    innocent = _asked(marker, lambda rows: rows, of_text, "https://innocent.example/v1#b")
    innocent.to_parquet(folder / "innocent-answers.parquet")  # the copy's are in the expert's bundle

    signer, traces = Signer.generate(), rm.trace(marker, copy, TENANTS)
    (folder / "signer.pem").write_bytes(signer.public_pem)
    guilty, free = (rm.verify(marker, answers) for answers in (copy, innocent))
    facts = {"id": marker.key_.id, "signer": signer.name, "traces": {one.tenant: one.p_value for one in traces}}
    facts["verdicts"] = {"copy": _facts(guilty), "innocent": _facts(free)}
    (folder / "facts.json").write_text(json.dumps(facts, indent=1) + "\n")
    for level in ("summary", "expert", "court"):
        _save(guilty, folder / f"copy-{level}", level, signer, traces if level == "court" else ())
    _save(free, folder / "innocent-summary", "summary", signer, ())


def corpus() -> tuple[np.ndarray, list[str]]:
    """Return rows of unit length, float32, and a text for each of them but the last hundred."""
    rows = np.random.default_rng(2027).standard_normal((POOL + RESERVOIR + 100, WIDTH)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows, [f"golden text {number}" for number in range(POOL + RESERVOIR)]


def blurred(rows: np.ndarray) -> np.ndarray:
    """Return the rows as a model would that has learnt them this well."""
    noise = np.random.default_rng(7).standard_normal(rows.shape) * np.sqrt(1 / FIDELITY**2 - 1) / np.sqrt(WIDTH)
    seen = rows + noise
    return (seen / np.linalg.norm(seen, axis=1, keepdims=True)).astype(np.float32)


def _asked(
    marker: rm.RegionMarker, serve: Callable[[np.ndarray], np.ndarray], of_text: dict[str, np.ndarray], name: str
) -> rm.Answers:
    found = rm.ask(marker, lambda texts: serve(np.array([of_text[text] for text in texts])), BUDGET)
    return rm.Answers(name, found.texts, found.vectors, found.exchanges)


def _save_marked(marker: rm.RegionMarker, rows: np.ndarray, path: Path) -> None:
    rows = rows[marker.margins(rows) > 1e-4]  # on a hyperplane, float32 arithmetic may fall either way
    np.savez_compressed(
        path, inputs=rows, served=marker.transform(rows), acme=marker.transform(rows, tenant=TENANTS[0])
    )


def _facts(verdict: object) -> dict[str, object]:
    names = ("outcome", "p_value", "total", "floor", "level", "judged_at", "missing", "answers_digest", "key_id")
    return {name: getattr(verdict, name) for name in names}


def _save(verdict: object, path: Path, level: str, signer: Signer, traces: object) -> None:
    """Keep the zip of a bundle, not its folder."""
    made = verdict.save(path, level=level, signer=signer, traces=traces, archive=True)
    for file in made.iterdir():
        file.unlink()
    made.rmdir()


if __name__ == "__main__":
    main(sys.argv[1])
