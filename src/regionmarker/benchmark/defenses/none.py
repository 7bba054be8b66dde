"""No defense: the control that every table needs."""

from __future__ import annotations

from collections.abc import Sequence

from regionmarker.benchmark.defenses.trigger_words import TriggerWordDefense
from regionmarker.protocols import Doubles, Floats


class NoDefense(TriggerWordDefense):
    """Serves the clean vectors, and then looks for a mark that is not there.

    It draws words and a target as :class:`~regionmarker.benchmark.defenses.embmarker.EmbMarker` does, and verifies as
    that does, so its rows of a table show what each test makes of thieves who stole nothing marked.

    Examples
    --------
    >>> import regionmarker as rm
    >>> texts, encoder = rm.python_sentences(600), rm.load_encoder("wordllama")
    >>> clean = encoder.encode(texts)
    >>> defense = NoDefense.from_spec("pool=512,high=0.05", seed=1).fit(texts, clean)
    >>> (defense.transform(clean, texts) == clean).all()
    np.True_
    """

    scheme = "none"

    def transform(self, embeddings: Floats, texts: Sequence[str], /, *, account: str = "") -> Floats:  # noqa: ARG002
        """Serve every vector as it is."""
        return self._served(embeddings, texts)

    def _mark(self, rows: Doubles, weights: Doubles, texts: Sequence[str]) -> Doubles:  # noqa: ARG002
        return rows
