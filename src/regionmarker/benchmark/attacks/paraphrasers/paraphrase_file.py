"""Paraphrases kept in a file that grows: a slow paraphraser is asked once, and a stopped run goes on.

The file is a table that ``table:FILE`` reads (columns original and text), with the cosine of each paraphrase to its
original where an encoder was given. A text that was given none has one row without a text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from regionmarker.benchmark.attacks.paraphrasers import Paraphraser, different
from regionmarker.errors import InputError
from regionmarker.files import atomic_path
from regionmarker.measures import row_cosines
from regionmarker.parquet import open_parquet
from regionmarker.progress import Progress
from regionmarker.vectors import Encoder

FLOOR = 0.8
"""The paper keeps paraphrases with at least this cosine."""

_BY = b"regionmarker.paraphraser"
_MOST = b"regionmarker.most"
_MEASURED = b"regionmarker.encoder"
Row = tuple[str, str | None, float | None]


@dataclass(frozen=True)
class Kept:
    """What a file of paraphrases holds for the texts that were asked for.

    Examples
    --------
    >>> Kept.of([("a", "b", 0.9), ("a", "c", 0.5), ("d", None, None)], FLOOR).passing
    0.5
    """

    texts: int
    paraphrases: int
    without: int
    """Texts that were given none."""
    mean_cosine: float
    passing: float
    """The share of paraphrases that reach the floor."""
    covered: float
    """The share of texts with a paraphrase that reaches it."""

    @classmethod
    def of(cls, rows: Sequence[Row], floor: float) -> Kept:
        texts = dict.fromkeys(original for original, _, _ in rows)
        said = [row for row in rows if row[1] is not None]
        cosines = np.array([np.nan if cosine is None else cosine for _, _, cosine in said])
        known = bool(len(cosines)) and not np.isnan(cosines).any()
        good = {row[0] for row, cosine in zip(said, cosines, strict=True) if cosine >= floor}
        return cls(
            texts=len(texts),
            paraphrases=len(said),
            without=len(texts) - len({row[0] for row in said}),
            mean_cosine=float(cosines.mean()) if known else float("nan"),
            passing=float((cosines >= floor).mean()) if known else float("nan"),
            covered=len(good) / len(texts) if known and texts else float("nan"),
        )


def keep_paraphrases(
    path: Path,
    paraphraser: Paraphraser,
    texts: Sequence[str],
    most: int = 5,
    *,
    encoder: Encoder | None = None,
    floor: float = FLOOR,
    block: int = 64,
    progress: Progress | None = None,
) -> Kept:
    """Paraphrase the texts that are not in the file yet, block by block, and say what is in it of all of them.

    Parameters
    ----------
    path
        The file; it is whole after every block.
    paraphraser, texts, most
        Who is asked for what, and for how many paraphrases of each.
    encoder, floor
        Measures the cosine of each paraphrase to its original, and where the paper's filter lies. Cosines that another
        encoder measured are measured again.
    block
        Texts at a time.
    progress
        Called after each block with the texts done and in all.

    Examples
    --------
    >>> import tempfile
    >>> from regionmarker.benchmark.attacks.paraphrasers import TableParaphraser
    >>> file = Path(tempfile.mkdtemp()) / "paraphrases.parquet"
    >>> said = TableParaphraser("mine", {"a good film": ["a fine film", "a good movie"]})
    >>> keep_paraphrases(file, said, ["a good film", "a bad film"]).paraphrases
    2
    """
    if most < 1 or block < 1 or not texts:
        raise InputError("paraphrasing needs texts, and most and block of at least 1")
    wanted = list(dict.fromkeys(texts))
    rows, by = _read(path, paraphraser.name, most)
    measure = by if encoder is None else _name(encoder)
    if encoder is not None and by != measure:
        rows = [(original, text, None) for original, text, _ in rows]
    known = {original for original, _, _ in rows}
    left = [text for text in wanted if text not in known]
    done = len(wanted) - len(left)
    for start in range(0, len(left), block):
        part = left[start : start + block]
        rows += _asked(paraphraser, part, most, encoder)
        _write(path, rows, paraphraser.name, most, measure)
        done += len(part)
        if progress is not None:
            progress(done, len(wanted))
    if encoder is not None and any(text is not None and cosine is None for _, text, cosine in rows):
        rows = _measured(rows, encoder)
        _write(path, rows, paraphraser.name, most, measure)
    asked = set(wanted)
    return Kept.of([row for row in rows if row[0] in asked], floor)


def _asked(paraphraser: Paraphraser, texts: Sequence[str], most: int, encoder: Encoder | None) -> list[Row]:
    rows: list[Row] = []
    given = paraphraser.paraphrase(list(texts), most)
    if len(given) != len(texts):
        raise InputError(f"{paraphraser.name} was given {len(texts)} texts and answered for {len(given)}")
    for text, answers in zip(texts, given, strict=True):
        kept = different(answers, text)[:most]
        rows += [(text, answer, None) for answer in kept] or [(text, None, None)]
    return rows if encoder is None else _measured(rows, encoder)


def _measured(rows: Sequence[Row], encoder: Encoder) -> list[Row]:
    places = [place for place, (_, text, cosine) in enumerate(rows) if text is not None and cosine is None]
    if not places:
        return list(rows)
    before, after = (encoder.encode([str(rows[place][column]) for place in places]) for column in (0, 1))
    cosines = dict(zip(places, row_cosines(before, after).tolist(), strict=True))
    return [(old, new, cosines.get(place, cosine)) for place, (old, new, cosine) in enumerate(rows)]


def _name(encoder: Encoder) -> str:
    return str(getattr(encoder, "name", type(encoder).__name__))


def _read(path: Path, name: str, most: int) -> tuple[list[Row], str]:
    """Return the rows, and whose cosines they have; empty where that was not written down."""
    if not path.exists():
        return [], ""
    with open_parquet(path) as file:
        about = file.schema_arrow.metadata or {}
        if _BY not in about:
            raise InputError(f"{path} was not written by bench paraphrase: name another file")
        by, count = about[_BY].decode(), int(about[_MOST])
        if by != name or count != most:
            raise InputError(f"{path} holds {count} paraphrases each by {by}: name another file, or ask for the same")
        table = file.read(["original", "text", "cosine"])
    columns = (table.column(column).to_pylist() for column in ("original", "text", "cosine"))
    return list(zip(*columns, strict=True)), about.get(_MEASURED, b"").decode()


def _write(path: Path, rows: Sequence[Row], name: str, most: int, measure: str) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    about = {_BY: name.encode(), _MOST: str(most).encode(), _MEASURED: measure.encode()}
    schema = pa.schema([("original", pa.string()), ("text", pa.string()), ("cosine", pa.float64())], metadata=about)
    columns = [list(column) for column in zip(*rows, strict=True)]
    with atomic_path(path) as temporary:
        parquet.write_table(pa.table(columns, schema=schema), temporary)
