"""Neural paraphrasers, sequence-to-sequence models of transformers that are loaded by name.

NLLB is a translator of 200 languages, here used for round trips (paper: 1.3B, English to French and back). DIPPER is a
T5 that was trained to paraphrase (Krishna et al. 2023), with two dials: other words, other order.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import Any, Self

from regionmarker.encoders.base import check_texts
from regionmarker.errors import InputError, MissingExtraError, OutsideError

NLLB = "facebook/nllb-200-1.3B"
ENGLISH, FRENCH = "eng_Latn", "fra_Latn"
DIPPER, DIPPER_TOKENIZER = "kalpeshk2011/dipper-paraphraser-xxl", "google/t5-v1_1-xxl"

_BATCH = 16  # texts at a time


class Seq2Seq:
    """A model and its tokenizer, loaded when first asked.

    Parameters
    ----------
    model, tokenizer
        Names on the Hugging Face hub, or folders.
    device
        ``"cpu"``, ``"cuda"``, ...
    """

    def __init__(self, model: str, tokenizer: str | None = None, *, device: str = "cpu") -> None:
        self.model_name, self.tokenizer_name, self.device = model, tokenizer or model, device

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model_name!r})"

    @cached_property
    def tokenizer(self) -> Any:
        return _load("AutoTokenizer", self.tokenizer_name)

    @cached_property
    def model(self) -> Any:
        return _load("AutoModelForSeq2SeqLM", self.model_name).to(self.device).eval()

    def generate(self, texts: Sequence[str], count: int, *, seed: int = 0, **options: Any) -> list[list[str]]:
        """Return ``count`` outputs for each text; ``options`` are those of transformers' ``generate``.

        What is drawn depends on the seed and the text's place, and torch's own random state is left as it was.
        """
        import torch

        outputs: list[list[str]] = []
        for start in range(0, len(texts), _BATCH):
            batch = list(texts[start : start + _BATCH])
            inputs = self.tokenizer(batch, return_tensors="pt", padding=True, truncation=True, max_length=512)
            inputs.pop("token_type_ids", None)
            with torch.random.fork_rng(devices=[]), torch.no_grad():
                torch.manual_seed(seed + start)
                made = self.model.generate(**inputs.to(self.device), num_return_sequences=count, **options)
            said = self.tokenizer.batch_decode(made, skip_special_tokens=True)
            outputs += [said[at * count : (at + 1) * count] for at in range(len(batch))]
        return outputs


def _load(kind: str, name: str) -> Any:
    if find_spec("transformers") is None or find_spec("torch") is None:
        raise MissingExtraError.for_module("transformers", "sentence-transformers")
    import transformers

    try:
        return getattr(transformers, kind).from_pretrained(name)
    except Exception as error:  # the hub, the disk and the model's own code each have their own kinds
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise OutsideError(f"cannot load the model {name}: {reason}") from error


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

    def __init__(self, model: str = NLLB, *, language: str = FRENCH, device: str = "cpu", tokens: int = 128) -> None:
        self.name, self.language, self.tokens = f"nllb:{model}", language, tokens
        self._translator = Seq2Seq(model, device=device)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @classmethod
    def from_spec(cls, rest: str) -> Self:
        return cls(rest) if rest else cls()

    def paraphrase(self, texts: Sequence[str], most: int, /) -> list[list[str]]:
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
