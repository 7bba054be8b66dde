"""Fit a key over many files on Ray: one pass, each file read once, by whichever worker takes it.

Moments are sums, and the sample is the texts with the smallest keyed hashes, so parts seen apart merge into what one
pass would have seen. What chooses the sample is secret, and so is the sample until it is asked: both travel sealed with
the secret that locks the key file, which every worker gets for itself (see :mod:`regionmarker.keys.openers`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from regionmarker.bulk.ray_engine import absolute_key, cluster, first_line
from regionmarker.corpus import corpus_files, read_blocks
from regionmarker.crypto.envelope import Kind, Opener, open_envelope, seal
from regionmarker.crypto.secret import Secret
from regionmarker.errors import InputError, OutsideError, RegionMarkerError
from regionmarker.keys.files import secret_path
from regionmarker.keys.openers import KeyReference, from_file
from regionmarker.marks.corpus_summary import Survey
from regionmarker.vectors import Encoder, Floats, as_floats, normalised

_GROUPS_A_WORKER = 4


def opener_of(reference: KeyReference) -> Opener:
    """Return what locks the key that is being made."""
    given = reference.material()
    return given if given is not None else Opener.secret(from_file(str(secret_path(Path(reference.path)))))


def survey_file(file: Path, survey: Survey, encoder: Encoder | None, *, normalise: bool) -> None:
    """Show one file of a corpus to a survey."""
    part = survey.part()
    try:
        for texts, embeddings in read_blocks(file):
            part.update(texts, _vectors(file, texts, embeddings, encoder, normalise, part.rows))
    except InputError as error:
        raise error if str(file) in str(error) else InputError(f"{file}: {error}") from None
    survey.merge(part)


def _vectors(
    file: Path, texts: list[str], given: Floats | None, encoder: Encoder | None, normalise: bool, first_row: int
) -> Floats:
    if encoder is None and given is None:
        raise InputError(f"{file} has no embedding column: give --encoder, for example --encoder wordllama")
    rows = as_floats(encoder.encode(texts) if encoder is not None else given)
    return normalised(rows, first_row=first_row) if normalise else rows


def survey_group(
    files: list[str], sealed_key: bytes, size: int, reference: KeyReference, encoder: str | None, normalise: bool
) -> tuple[bytes, str]:
    """Survey some files on a worker; return the sealed part, or nothing and what is wrong."""
    try:
        opener = opener_of(reference)
        survey = Survey(open_envelope(sealed_key, Kind.SURVEY, opener), size)
        loaded = None if encoder is None else _load(encoder)
        for file in files:
            survey_file(Path(file), survey, loaded, normalise=normalise)
        return seal(Secret(survey.to_bytes()), Kind.SURVEY, opener), ""
    except RegionMarkerError as error:
        return b"", str(error)


def look_on_ray(
    corpus: Path,
    reference: KeyReference,
    *,
    encoder: str | None = None,
    normalise: bool = False,
    address: str | None = None,
    on_rows: Callable[[int], None] = lambda _rows: None,
) -> Callable[[Survey], None]:
    """Return what :meth:`~regionmarker.RegionMarker.fit_survey` needs to fit over a folder on Ray."""
    files = [str(file.resolve()) for file in corpus_files(corpus)]

    def look(survey: Survey) -> None:
        away = absolute_key(reference)
        opener = opener_of(away)
        sealed_key = seal(survey.sample_key, Kind.SURVEY, opener)
        with cluster(address) as ray:
            groups = _groups(files, _GROUPS_A_WORKER * int(ray.cluster_resources().get("CPU", 1)))
            task = ray.remote(num_cpus=1)(survey_group)
            waiting = [task.remote(group, sealed_key, survey.sample_size, away, encoder, normalise) for group in groups]
            for sealed, error in _answers(ray, waiting):
                if error:
                    raise InputError(error)
                part = survey.read(open_envelope(sealed, Kind.SURVEY, opener).reveal())
                survey.merge(part)
                on_rows(part.rows)

    return look


def _groups(files: list[str], count: int) -> list[list[str]]:
    """Cut the files into at most ``count`` runs of neighbours: parts are merged in the corpus's order."""
    size = -(-len(files) // count)
    return [files[start : start + size] for start in range(0, len(files), size)]


def _answers(ray: Any, waiting: list[Any]) -> Iterator[tuple[bytes, str]]:
    try:
        while waiting:
            yield ray.get(waiting.pop(0))
    except ray.exceptions.RayError as error:
        raise OutsideError(f"Ray failed: {first_line(error)}; no key was written") from None


def _load(spec: str) -> Encoder:
    from regionmarker.encoders import load_encoder

    return load_encoder(spec)
