"""Round trips by NLLB, a neural translator of 200 languages (paper: 1.3B, English to French and back)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from regionmarker.benchmark.attacks.paraphrasers.seq2seq import Seq2Seq
from regionmarker.encoders.checked import check_texts

MODEL = "facebook/nllb-200-1.3B"
ENGLISH, FRENCH = "eng_Latn", "fra_Latn"


class NLLBParaphraser:
    """English to French by the best translation, and back by the best few: as many paraphrases as are asked for.

    Parameters
    ----------
    model
        A name on the Hugging Face hub or a folder, of NLLB's architecture.
    language
        Through which the texts go.
    device, tokens
        Where the model runs, and how long an output may be.

    Examples
    --------
    >>> NLLBParaphraser().name
    'nllb:facebook/nllb-200-1.3B'
    """

    def __init__(self, model: str = MODEL, *, language: str = FRENCH, device: str = "cpu", tokens: int = 128) -> None:
        self.name, self.language, self.tokens = f"nllb:{model}", language, tokens
        self._translator = Seq2Seq(model, device=device)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @classmethod
    def from_spec(cls, rest: str) -> Self:
        """Load ``nllb`` or ``nllb:MODEL``."""
        return cls(rest) if rest else cls()

    def paraphrase(self, texts: Sequence[str], most: int, /) -> list[list[str]]:
        """Translate there and back."""
        there = self._translate(check_texts(list(texts)), ENGLISH, self.language, 1)
        return self._translate([outputs[0] for outputs in there], self.language, ENGLISH, most)

    def _translate(self, texts: Sequence[str], source: str, target: str, count: int) -> list[list[str]]:
        tokenizer = self._translator.tokenizer
        tokenizer.src_lang = source
        return self._translator.generate(
            texts,
            count,
            forced_bos_token_id=tokenizer.convert_tokens_to_ids(target),
            num_beams=max(count, 2),
            do_sample=False,
            max_new_tokens=self.tokens,
        )
