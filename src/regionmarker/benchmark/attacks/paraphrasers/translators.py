"""Translators for round trips: sequence-to-sequence models by transformers, or by ctranslate2 where a folder has it.

A folder that holds a converted copy in ``ct2/`` (``ct2-transformers-converter --model FOLDER --output_dir FOLDER/ct2
--quantization int8``) is read by ctranslate2, which needs a fifth of the time; everything else by transformers. The
tokenizer is the model's own in both cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

from regionmarker.errors import InputError, MissingExtraError, OutsideError

CONVERTED = "ct2"
_BATCH = 16  # texts at a time
_TOKENS_AT_A_TIME = 2048
LIKELIEST = 10
"""What is drawn is drawn from this many of the likeliest words."""


class Translator(Protocol):
    """One direction."""

    def translate(self, texts: Sequence[str], count: int, /, *, drawn: bool, seed: int) -> list[list[str]]:
        """Return ``count`` translations of each text: the likeliest, or drawn at random."""


def load_translator(
    model: str, source: str = "", target: str = "", *, device: str = "cpu", tokens: int = 128
) -> Translator:
    """Return a translator by name or folder; languages are for models that know several.

    Nothing is loaded before the first text comes.
    """
    converted = Path(model).expanduser() / CONVERTED
    if converted.is_dir() and device == "cpu" and find_spec("ctranslate2") is not None:
        return ConvertedTranslator(model, source, target, tokens=tokens)
    return TransformersTranslator(model, source, target, device=device, tokens=tokens)


class Seq2Seq:
    """A model of transformers and its tokenizer, loaded when first asked.

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
        return load_part("AutoTokenizer", self.tokenizer_name)

    @cached_property
    def model(self) -> Any:
        return load_part("AutoModelForSeq2SeqLM", self.model_name).to(self.device).eval()

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


class TransformersTranslator:
    """A translator that transformers runs."""

    def __init__(self, model: str, source: str, target: str, *, device: str, tokens: int) -> None:
        self._source, self._target, self._tokens = source, target, tokens
        self._model = Seq2Seq(model, device=device)

    def translate(self, texts: Sequence[str], count: int, /, *, drawn: bool, seed: int) -> list[list[str]]:
        options: dict[str, Any] = {"max_new_tokens": self._tokens, "num_beams": 1}
        if self._source:
            self._model.tokenizer.src_lang = self._source
        if self._target:
            options["forced_bos_token_id"] = self._model.tokenizer.convert_tokens_to_ids(self._target)
        if drawn:
            options |= {"do_sample": True, "top_k": LIKELIEST}
        else:
            options |= {"do_sample": False, "num_beams": max(count, 2)}
        return self._model.generate(texts, count, seed=seed, **options)


class ConvertedTranslator:
    """A translator that ctranslate2 runs, on one thread."""

    def __init__(self, model: str, source: str, target: str, *, tokens: int) -> None:
        self._folder, self._source, self._target, self._tokens = Path(model).expanduser(), source, target, tokens

    @cached_property
    def _tokenizer(self) -> Any:
        tokenizer = load_part("AutoTokenizer", str(self._folder))
        if self._source:
            tokenizer.src_lang = self._source
        return tokenizer

    def translate(self, texts: Sequence[str], count: int, /, *, drawn: bool, seed: int) -> list[list[str]]:
        import ctranslate2

        tokenizer = self._tokenizer
        pieces = [
            tokenizer.convert_ids_to_tokens(tokenizer(text, truncation=True, max_length=512)["input_ids"])
            for text in texts
        ]
        options: dict[str, Any] = {"beam_size": max(count, 2), "num_hypotheses": count}
        if drawn:
            options = {"beam_size": 1, "num_hypotheses": count, "sampling_topk": LIKELIEST}
        if self._target:
            options["target_prefix"] = [[self._target]] * len(texts)
        try:
            ctranslate2.set_random_seed(seed)  # read by the threads of a translator when they first draw
            translator = ctranslate2.Translator(
                str(self._folder / CONVERTED), compute_type="int8", inter_threads=1, intra_threads=1
            )
            made = translator.translate_batch(
                pieces, max_batch_size=_TOKENS_AT_A_TIME, batch_type="tokens", max_decoding_length=self._tokens,
                **options,
            )  # fmt: skip
        except (RuntimeError, ValueError) as error:
            raise InputError(f"cannot translate by {self._folder / CONVERTED}: {str(error)[:200]}") from error
        return [[self._text(said) for said in one.hypotheses] for one in made]

    def _text(self, pieces: Sequence[str]) -> str:
        said = [piece for piece in pieces if piece != self._target]
        text: str = self._tokenizer.decode(self._tokenizer.convert_tokens_to_ids(said), skip_special_tokens=True)
        return text


def load_part(kind: str, name: str) -> Any:
    """Load a part of transformers by name, or say in one sentence why not."""
    if find_spec("transformers") is None or find_spec("torch") is None:
        raise MissingExtraError.for_module("transformers", "sentence-transformers")
    if name.startswith((".", "/", "~")) and not Path(name).expanduser().is_dir():
        raise InputError(f"there is no folder {name}: give a model's folder or its name on the Hugging Face hub")
    import warnings

    import transformers

    try:
        with warnings.catch_warnings(action="ignore"):  # Marian's tokenizer recommends a package that it does not need
            return getattr(transformers, kind).from_pretrained(name)
    except ImportError as error:
        if "sentencepiece" in str(error):
            raise MissingExtraError.for_module("sentencepiece", "translation") from error
        raise OutsideError(f"cannot load the model {name}: {str(error).splitlines()[0][:200]}") from error
    except Exception as error:  # the hub, the disk and the model's own code each have their own kinds
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise OutsideError(f"cannot load the model {name}: {reason}") from error
