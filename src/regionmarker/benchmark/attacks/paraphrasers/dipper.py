"""DIPPER, a T5 that was trained to paraphrase (Krishna et al. 2023), with two dials: other words, other order.

The model takes codes that say how much to keep, 100 less the diversity that is asked for, before the text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from regionmarker.benchmark.attacks.paraphrasers.seq2seq import Seq2Seq
from regionmarker.encoders.checked import check_texts
from regionmarker.errors import InputError

MODEL = "kalpeshk2011/dipper-paraphraser-xxl"
TOKENIZER = "google/t5-v1_1-xxl"


class DipperParaphraser:
    """Paraphrases drawn from DIPPER (paper: lex 40, div 40).

    Parameters
    ----------
    model, tokenizer
        Names on the Hugging Face hub or folders, of T5's architecture. A model other than the published one brings its
        own tokenizer.
    lex, div
        How much of the words and of their order is to change, 0 to 100 in steps of 20.
    device, tokens, seed
        Where the model runs, how long an output may be, and what is drawn.

    Examples
    --------
    >>> DipperParaphraser().question("a good film")
    'lexical = 60, order = 60 <sent> a good film </sent>'
    """

    def __init__(
        self,
        model: str = MODEL,
        *,
        tokenizer: str | None = None,
        lex: int = 40,
        div: int = 40,
        device: str = "cpu",
        tokens: int = 256,
        seed: int = 0,
    ) -> None:
        if lex not in range(0, 101, 20) or div not in range(0, 101, 20):
            raise InputError(f"lex and div of dipper must be 0, 20, .. 100, not {lex} and {div}")
        self.name, self.lex, self.div = f"dipper:{model}", lex, div
        self.tokens, self.seed = tokens, seed
        self._model = Seq2Seq(model, tokenizer or (TOKENIZER if model == MODEL else None), device=device)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, lex={self.lex}, div={self.div})"

    @classmethod
    def from_spec(cls, rest: str) -> Self:
        """Load ``dipper`` or ``dipper:MODEL``."""
        return cls(rest) if rest else cls()

    def question(self, text: str) -> str:
        """Return what the model is given for a text."""
        return f"lexical = {100 - self.lex}, order = {100 - self.div} <sent> {' '.join(text.split())} </sent>"

    def paraphrase(self, texts: Sequence[str], most: int, /) -> list[list[str]]:
        """Draw paraphrases, from the likeliest words that make up three quarters."""
        questions = [self.question(text) for text in check_texts(list(texts))]
        return self._model.generate(
            questions, most, seed=self.seed, do_sample=True, top_p=0.75, top_k=0, max_new_tokens=self.tokens
        )
