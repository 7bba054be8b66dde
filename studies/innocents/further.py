"""Further innocents: other public encoders, and students of the same public texts who saw no marked vector.

The hardest is an honest student: a transformer that was tuned towards the *unmarked* provider's vectors of the texts
that a thief would buy. Beside it stand one that learnt from another provider, and one that was tuned for the texts'
labels. Models are folders in --models (paraphrase-minilm-l3, granite-30m, e5-small, distilbert-cased,
use-multilingual, minilm-l6); one that is not there is left out, and said so.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

import regionmarker as rm
from regionmarker.benchmark.attacks import tune
from regionmarker.benchmark.corpora import load_corpus as load_provider
from regionmarker.benchmark.stealers import load_stealer
from regionmarker.vectors import Encoder
from studies.innocents.suspects import Array, Corpus, cached

ENCODERS = {
    "granite-30m": "sentence-transformers:{models}/granite-30m",
    "e5-small": "sentence-transformers:{models}/e5-small#query:",
    "DistilBERT": "sentence-transformers:{models}/distilbert-cased",
    "USE multilingual": "onnx:{models}/use-multilingual/model.onnx",
}
STUDENT = "minilm-l6"
"""What the students are before they learn."""


def further_answers(corpus: Corpus, data: Path, models: Path, cache: Path, epochs: int) -> dict[str, Array]:
    """Return the answers of every further innocent to all texts, (n, D') unit rows."""
    texts, found = list(corpus.texts), dict[str, Array]()
    for name, spec in ENCODERS.items():
        place = Path(spec.format(models=models).partition(":")[2].partition("#")[0])
        if _is_there(place, name):
            encoder = rm.load_encoder(spec.format(models=models))
            file = place.parent.name if place.suffix == ".onnx" else place.name
            found[name] = cached(cache, file, lambda encoder=encoder: encoder.encode(texts))
    if not _is_there(models / STUDENT, "students"):
        return found
    for name, file, learn in (
        ("honest student", "honest-student", _student_of_the_provider),
        ("student of another provider", "other-student", _student_of_another),
        ("tuned for labels", "labels", _tuned_for_labels),
    ):
        make: Callable[..., Encoder] = learn
        found[name] = cached(
            cache, file, lambda make=make: make(corpus, data, str(models / STUDENT), epochs).encode(texts)
        )
    return found


def _is_there(place: Path, name: str) -> bool:
    if not place.exists():
        print(f"{name}: left out, because {place} does not exist", flush=True)
    return place.exists()


def _student(model: str, epochs: int, texts: list[str], targets: Array) -> Encoder:
    return load_stealer(f"backbone:{model}", seed=0, epochs=epochs, threads=1).steal(texts, targets)


def _student_of_the_provider(corpus: Corpus, data: Path, model: str, epochs: int) -> Encoder:  # noqa: ARG001
    return _student(model, epochs, [corpus.texts[row] for row in corpus.bought], corpus.clean[corpus.bought])


def _student_of_another(corpus: Corpus, data: Path, model: str, epochs: int) -> Encoder:
    other = load_provider("sst2", "stored:nomic768", folder=data)
    place = {text: row for row, text in enumerate(other.texts)}
    texts = [corpus.texts[row] for row in corpus.bought if corpus.texts[row] in place]
    return _student(model, epochs, texts, other.clean[[place[text] for text in texts]])


def _tuned_for_labels(corpus: Corpus, data: Path, model: str, epochs: int) -> Encoder:
    labelled = load_provider("sst2", "stored:mpnet768", folder=data)
    label = dict(zip(labelled.texts, labelled.data.labels.tolist(), strict=True))
    texts = [corpus.texts[row] for row in corpus.bought]
    own = rm.load_encoder(f"sentence-transformers:{model}").encode(texts)
    start = _student(model, 0, texts, own)  # the public model itself, as something that can be trained on
    return tune(start, texts, np.array([label[text] for text in texts]), epochs=max(epochs, 1))
