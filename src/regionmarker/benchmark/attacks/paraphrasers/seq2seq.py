"""What the neural paraphrasers have in common: a sequence-to-sequence model of transformers, loaded by name."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from typing import Any

from regionmarker.errors import MissingExtraError, OutsideError

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
        """The tokenizer."""
        return _load("AutoTokenizer", self.tokenizer_name)

    @cached_property
    def model(self) -> Any:
        """The model, ready to answer."""
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
