"""What all studies share: a command line with --smoke, a data folder, a log of finished rows, Markdown tables."""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]
CORPORA = {"sst2": "SST-2", "ag_news": "AG News", "enron": "Enron", "mind": "MIND"}
PROVIDER = "mpnet768"
_SMOKE_TEXTS = 1400
SMOKE_GRID = """
[[block]]
corpora = ["python"]
provider = "wordllama"
limit = 700
defenses = ["wet:pool=128,probes=64"]
stealers = ["head:wordllama,hidden=0"]
suspects = ["copy", "provider"]
queries = [300]
"""
"""Two cells, for --smoke."""
_SMALL_KEY = {"pool": 64, "reservoir": 256}


class Command(argparse.ArgumentParser):
    """The command line of a study.

    Parameters
    ----------
    module
        The study's docstring, which ``--help`` shows, and its page: ``__doc__`` and ``PAGE``.
    data
        Whether it reads corpora from a folder: ``--data-dir``, or the environment's REGIONMARKER_DATA.
    smoke
        What the options are unless given, with ``--smoke``. The corpora are then made of Python's documentation.
    """

    def __init__(
        self, doc: str | None, page: str, *, data: bool = False, smoke: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(
            description=doc, epilog=f"Its numbers stand in {page}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        self._smoke, self._data = dict(smoke or {}), data
        self.add_argument("--smoke", action="store_true", help="a few seconds of it on the embedded corpus")
        if data:
            self.add_argument("--data-dir", "--data", type=Path, metavar="DIR", help="the folder of the corpora")

    def read(self) -> argparse.Namespace:
        """Read the options; name the data folder where one is needed."""
        if "--smoke" in sys.argv:
            self.set_defaults(**self._smoke)
        given = self.parse_args()
        if self._data and given.data_dir is None:
            if given.smoke:
                self._folder = tempfile.TemporaryDirectory()  # as long as we are
                given.data_dir = small_data(Path(self._folder.name))
            elif "REGIONMARKER_DATA" in os.environ:
                given.data_dir = Path(os.environ["REGIONMARKER_DATA"])
            elif not getattr(given, "summary", False):
                self.error("name the folder of the corpora: --data-dir DIR, or REGIONMARKER_DATA")
        return given


def key_settings(given: argparse.Namespace) -> dict[str, int]:
    """Return settings of keys: the package's own, or with --smoke small ones, for which few texts are enough."""
    return dict(_SMALL_KEY) if given.smoke else {}


def encoder_spec(name: str) -> str:
    """Return the spec of a public encoder: a spec as it is, a bare name or folder is sentence-transformers'."""
    return name if name == "wordllama" or ":" in name else f"sentence-transformers:{name}"


def small_data(folder: Path) -> Path:
    """Write a data folder in which everything is small and made of Python's documentation, by WordLlama's vectors."""
    from regionmarker import load_encoder, python_sentences
    from regionmarker.benchmark.defenses.words import WIKITEXT_LINES, TokenCounts

    texts, encoder = python_sentences(_SMOKE_TEXTS), load_encoder("wordllama")
    rows = encoder.encode(texts)
    fewer = [text.rpartition(" ")[0] or text for text in texts[:300]]  # what paraphrases would be
    said = encoder.encode(fewer)
    labels = [text.split()[0].lower() in ("the", "a", "an", "return") for text in texts]
    for seed, name in enumerate(CORPORA):
        order = np.random.default_rng(seed).permutation(len(texts))
        split = ["test" if row % 4 == 0 else "train" for row in order]
        chosen, marks = [texts[row] for row in order], [int(labels[row]) for row in order]
        _parquet(folder / f"{name}.parquet", text=chosen, label=marks, split=split)
        np.savez(folder / f"provider_{PROVIDER}_{name}.npz", rows=np.arange(len(order)), embeddings=rows[order])
        places = np.flatnonzero(order < len(fewer))
        _parquet(folder / f"paraphrases_{name}.parquet", row=places, text=[fewer[order[place]] for place in places])
        np.savez(folder / f"paraphrases_{PROVIDER}_{name}.npz", embeddings=said[order[places]])
    pairs = {"sentence1": texts[:300], "sentence2": fewer[:200] + texts[500:600]}
    _parquet(folder / "stsb.parquet", **pairs, score=[float(row % 6) for row in range(300)], split=["test"] * 300)
    _parquet(folder / "mrpc.parquet", **pairs, label=[1] * 200 + [0] * 100)
    _parquet(folder / "cranfield_docs.parquet", id=list(range(600)), text=texts[:600])
    _parquet(folder / "cranfield_queries.parquet", id=list(range(20)), text=fewer[:20])
    _parquet(folder / "cranfield_qrels.parquet", query_id=list(range(20)), doc_id=list(range(20)), relevance=[1] * 20)
    counted = TokenCounts.from_texts(texts).counts
    scaled = {word: count * WIKITEXT_LINES // len(texts) for word, count in counted.items()}
    (folder / "wikitext_token_counts.json").write_text(json.dumps(scaled))
    return folder


def _parquet(path: Path, **columns: Sequence[Any]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({name: list(values) for name, values in columns.items()}), path)


def unit_rows(count: int, width: int, seed: int = 1) -> np.ndarray:
    """Draw random rows of unit length, (count, width) float32, without a second copy."""
    rows = np.random.default_rng(seed).standard_normal((count, width), dtype=np.float32)
    for start in range(0, count, 4096):
        rows[start : start + 4096] /= np.linalg.norm(rows[start : start + 4096], axis=1, keepdims=True)
    return rows


def provider_rows(data: Path, name: str, provider: str = PROVIDER) -> tuple[np.ndarray, list[str], np.ndarray]:
    """Return distinct texts that a provider embedded: their rows in the file, the texts, their unit vectors."""
    from regionmarker.parquet import read_columns
    from regionmarker.vectors import normalised

    with np.load(data / f"provider_{provider}_{name}.npz") as stored:
        places, vectors = stored["rows"], stored["embeddings"]
    (texts,) = read_columns(data / f"{name}.parquet", ["text"])
    known = [texts[place] for place in places]
    keep = np.sort(np.unique(known, return_index=True)[1])
    return places[keep], [known[place] for place in keep], normalised(vectors[keep].astype(np.float32))


class Log:
    """Rows that are computed once: a run that was interrupted goes on where it was.

    A row is a line of JSON. A line that a kill left without its end was not finished, and goes.
    """

    def __init__(self, path: Path, *, quiet: bool = False) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._quiet = path, quiet
        self.rows: list[Row] = []
        if path.exists():
            lines = path.read_text().split("\n")[:-1]
            self.rows = [json.loads(line) for line in lines]
            path.write_text("".join(line + "\n" for line in lines))

    def has(self, **key: object) -> bool:
        """Return whether there is such a row."""
        return bool(self.of(**key))

    def once(self, key: Row, compute: Callable[[], Row]) -> None:
        """Compute a row unless it is there."""
        if self.has(**key):
            return
        row = key | compute()
        with self._path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        self.rows.append(row)
        if not self._quiet:
            print(" ".join(f"{name}={value}" for name, value in row.items()), flush=True)

    def of(self, **wanted: object) -> list[Row]:
        """Return the rows that have all these values."""
        return [row for row in self.rows if all(row.get(name) == value for name, value in wanted.items())]


def markdown(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Return a table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in body])


def spread(values: Sequence[float], digits: int) -> str:
    """Mean ± standard deviation."""
    return f"{np.mean(values):.{digits}f} ± {np.std(values, ddof=min(1, len(values) - 1)):.{digits}f}"


def numbers(rows: Sequence[Row], name: str) -> list[float]:
    """Return one column."""
    return [float(row[name]) for row in rows if row.get(name) is not None]
