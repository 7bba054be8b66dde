"""Neural paraphrasers: round trips by translators, and DIPPER.

Marian's models (Opus-MT) translate one way each, NLLB 200 languages with one model (paper: 1.3B, English to French and
back). DIPPER is a T5 that was trained to paraphrase (Krishna et al. 2023), with two dials: other words, other order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from regionmarker.benchmark.attacks.paraphrasers import different
from regionmarker.benchmark.attacks.paraphrasers.translators import Seq2Seq, Translator, load_translator
from regionmarker.encoders.base import check_texts
from regionmarker.errors import InputError

MARIAN = ("Helsinki-NLP/opus-mt-en-fr", "Helsinki-NLP/opus-mt-fr-en")
NLLB = "facebook/nllb-200-1.3B"
ENGLISH, FRENCH = "eng_Latn", "fra_Latn"
DIPPER, DIPPER_TOKENIZER = "kalpeshk2011/dipper-paraphraser-xxl", "google/t5-v1_1-xxl"


class RoundTrip:
    """To another language and back: the likeliest way first, then other ways there, drawn at random.

    Parameters
    ----------
    name
        The spec that loads it again.
    there, back
        The two translators.
    seed
        Of what is drawn.
    """

    def __init__(self, name: str, there: Translator, back: Translator, *, seed: int = 0) -> None:
        self.name, self.seed = name, seed
        self._there, self._back = there, back

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def paraphrase(self, texts: Sequence[str], most: int, /) -> list[list[str]]:
        """Return different paraphrases of each text; where the ways back meet, there are fewer than ``most``."""
        lines = [" ".join(text.split()) for text in check_texts(list(texts))]
        ways = self._there.translate(lines, 1, drawn=False, seed=self.seed)
        if most > 1:  # twice as many as are wanted, for some will meet
            others = self._there.translate(lines, 2 * (most - 1), drawn=True, seed=self.seed)
            ways = [[*best, *drawn] for best, drawn in zip(ways, others, strict=True)]
        ways = [list(dict.fromkeys(filter(None, one)))[: most + 2] for one in ways]
        flat = [way for one in ways for way in one]
        said = iter(self._back.translate(flat, 1, drawn=False, seed=self.seed) if flat else [])
        returned = [[next(said)[0] for _ in one] for one in ways]
        return [different(one, line)[:most] for one, line in zip(returned, lines, strict=True)]


class MarianParaphraser(RoundTrip):
    """English to French and back by two models of Marian's architecture.

    Parameters
    ----------
    there, back
        Names on the Hugging Face hub, or folders.
    device, tokens, seed
        Where the models run, how long an output may be, and what is drawn.

    Examples
    --------
    >>> MarianParaphraser().name
    'marian:Helsinki-NLP/opus-mt-en-fr,Helsinki-NLP/opus-mt-fr-en'
    """

    def __init__(
        self, there: str = MARIAN[0], back: str = MARIAN[1], *, device: str = "cpu", tokens: int = 128, seed: int = 0
    ) -> None:
        ways = (load_translator(model, device=device, tokens=tokens) for model in (there, back))
        super().__init__(f"marian:{there},{back}", *ways, seed=seed)

    @classmethod
    def from_spec(cls, rest: str) -> Self:
        if not rest:
            return cls()
        there, _, back = rest.partition(",")
        if not there or not back:
            raise InputError("name both directions: marian:THERE,BACK, two folders or names on the Hugging Face hub")
        return cls(there, back)


class NLLBParaphraser(RoundTrip):
    """English to French and back by one model of NLLB's architecture.

    Parameters
    ----------
    model
        A name on the Hugging Face hub or a folder.
    language
        Through which the texts go.
    device, tokens, seed
        Where the model runs, how long an output may be, and what is drawn.

    Examples
    --------
    >>> NLLBParaphraser().name
    'nllb:facebook/nllb-200-1.3B'
    """

    def __init__(
        self, model: str = NLLB, *, language: str = FRENCH, device: str = "cpu", tokens: int = 128, seed: int = 0
    ) -> None:
        there = load_translator(model, ENGLISH, language, device=device, tokens=tokens)
        back = load_translator(model, language, ENGLISH, device=device, tokens=tokens)
        super().__init__(f"nllb:{model}", there, back, seed=seed)

    @classmethod
    def from_spec(cls, rest: str) -> Self:
        return cls(rest) if rest else cls()


class DipperParaphraser:
    """Paraphrases drawn from DIPPER (paper: lex 40, div 40).

    The model takes codes that say how much to keep, 100 less the diversity that is asked for, before the text.

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
        model: str = DIPPER,
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
        self._model = Seq2Seq(model, tokenizer or (DIPPER_TOKENIZER if model == DIPPER else None), device=device)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, lex={self.lex}, div={self.div})"

    @classmethod
    def from_spec(cls, rest: str) -> Self:
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
