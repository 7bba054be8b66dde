"""Small material, a frozen encoder that is not the provider, and backbones small enough to train in a second."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regionmarker import python_sentences
from regionmarker.benchmark.stealers import HashedGrams

SMALL = 400


class LetterFeatures:
    """A frozen encoder that is not the provider: hashed letter groups, projected at random."""

    name = "letters"

    def __init__(self, width: int = 384) -> None:
        self._table = np.random.default_rng(5).standard_normal((4096, width)).astype(np.float32)

    def encode(self, texts: Any) -> np.ndarray:
        rows = np.stack([self._table[row].mean(axis=0) for row in HashedGrams(3, size=4096).tokens(texts)])
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture(scope="session")
def texts(sentences: list[str]) -> list[str]:
    return sentences[:SMALL]


@pytest.fixture(scope="session")
def served(embeddings: np.ndarray) -> np.ndarray:
    return embeddings[:SMALL]


@pytest.fixture(scope="session")
def tiny_bert(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A BERT of one layer, drawn at random, with a tokenizer of its own."""
    return _tiny("bert", tmp_path_factory)


@pytest.fixture(scope="session")
def tiny_qwen2(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Qwen2 of one layer, drawn at random, with a tokenizer of its own."""
    return _tiny("qwen2", tmp_path_factory)


def _tiny(kind: str, factory: pytest.TempPathFactory) -> str:
    pytest.importorskip("torch", reason="needs torch==2.13.0")
    folder = factory.mktemp("models") / f"tiny-{kind}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make = {"bert": _make_bert, "qwen2": _make_qwen2}[kind]
        make(folder, python_sentences(SMALL))
    return str(folder)


_SIZES = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "max_position_embeddings": 128,
}


def _make_bert(folder: Path, texts: list[str]) -> None:
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    special = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    # Counted here, because the library's trainer numbers its pieces otherwise in every process.
    counts = Counter(re.findall(r"\w+|[^\w\s]", " ".join(texts)))
    letters = sorted({letter for word in counts for letter in word})
    common = sorted(counts, key=lambda word: (-counts[word], word))
    pieces = [*special.values(), *letters, *(f"##{letter}" for letter in letters), *common]
    numbers = {piece: number for number, piece in enumerate(list(dict.fromkeys(pieces))[:400])}
    tokenizer = Tokenizer(models.WordPiece(numbers, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        "[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **special).save_pretrained(folder)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        BertModel(BertConfig(vocab_size=tokenizer.get_vocab_size(), **_SIZES)).save_pretrained(folder)


def _make_qwen2(folder: Path, texts: list[str]) -> None:
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2Model

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    pieces = trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=alphabet, special_tokens=["<|end|>"], show_progress=False
    )
    tokenizer.train_from_iterator(texts, pieces)
    # As the real one: no token for the beginning, and none to pad with.
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>").save_pretrained(folder)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = Qwen2Config(vocab_size=tokenizer.get_vocab_size(), num_key_value_heads=1, **_SIZES)
        Qwen2Model(config).save_pretrained(folder)
