"""Whether vectors that are said to be clean may be believed: who takes marked ones for clean convicts innocents.

Under decoy-2 the marked vectors of own probes turn an unmarked suspect into a copy: what it lacks looks like the mark
turned round, and the test has two sides. So own probes are looked at before anyone is asked, in two ways:

- Texts that the key knows, its pool and its reservoir, must have the vectors that it holds. No target is looked up.
- What the carriers pull in the given vectors is scored against every candidate, by scores that see no target, and the
  key's own targets are compared with the lists that they were drawn from, exactly as in a verdict. In clean vectors
  nothing knows the targets, so they are refused with a probability of at most :data:`DOUBT`; marked ones give a p far
  below it.

Both end in a refusal or in nothing. So neither can make the conviction of an innocent likelier, whatever the vectors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from regionmarker.corpus import TextSet
from regionmarker.errors import InputError
from regionmarker.keys.key import Key
from regionmarker.marks.graded import GradedMark
from regionmarker.vectors import AnyArray
from regionmarker.verification.decoy2 import own_list_scores, scores_of_given
from regionmarker.verification.list_test import ListTest

DOUBT = 1e-4
"""Clean vectors are refused as often as this, at the most."""
SAME_EMBEDDING = 0.999
"""The least cosine of two clean embeddings of one text."""

_GATEWAY = "take them from the upstream itself, not through a gateway that marks"


def check_clean(key: Key, texts: Sequence[str], vectors: AnyArray) -> None:
    """Refuse vectors (n, D) of own probes that are not the key's clean ones, as far as the key can tell.

    Examples
    --------
    >>> from regionmarker import RegionMarker
    >>> texts = [f"text {number}" for number in range(1000)]
    >>> rows = np.random.default_rng(0).standard_normal((1000, 48))
    >>> rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    >>> marker = RegionMarker(seed=1).fit(texts[:700], embeddings=rows[:700])
    >>> check_clean(marker.key_, texts[700:], rows[700:])
    """
    _check_known(key, texts, vectors)
    p_value = own_mark_p(key, vectors)
    if p_value <= DOUBT:
        raise InputError(
            f"the embeddings of the probes carry this key's own mark (p = {p_value:.2g}), and with marked ones "
            f"verdicts are wrong: {_GATEWAY}"
        )


def own_mark_p(key: Key, vectors: AnyArray) -> float:
    """Return how probable it is that clean vectors (n, D) point to the key's targets as strongly as these.

    1 for the published mark: marked vectors beside it acquit, and convict nobody.
    """
    if not isinstance(key.mark, GradedMark):
        return 1.0
    pool = key.pool.embeddings
    z = own_list_scores(key.mark, scores_of_given(key.mark, vectors, pool), len(pool), "provider")
    weights = key.mark.settings.test_weights("provider", matched=True)
    return ListTest(z, weights).p_value(key.provider_targets())


def _check_known(key: Key, texts: Sequence[str], vectors: AnyArray) -> None:
    row_of = {text: row for row, text in enumerate(texts)}
    known = [TextSet(one.texts, one.embeddings) for one in (key.pool, key.reservoir)]
    pairs = [(row_of[text], held) for part in known for text, held in zip(part.texts, part.embeddings, strict=True)
             if text in row_of]  # fmt: skip
    if not pairs:
        return
    given = np.asarray(vectors[[row for row, _ in pairs]], dtype=np.float64)
    held = np.stack([vector for _, vector in pairs]).astype(np.float64)
    lengths = np.linalg.norm(given, axis=1) * np.linalg.norm(held, axis=1)
    strange = int((np.einsum("ij,ij->i", given, held) < SAME_EMBEDDING * lengths).sum())
    if strange:
        raise InputError(
            f"the embeddings of the probes are not this key's clean ones: {strange} of {len(pairs)} texts that the key "
            f"knows have another vector: {_GATEWAY}"
        )
