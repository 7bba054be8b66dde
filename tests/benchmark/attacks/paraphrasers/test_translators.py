"""Round trips by real translators of Marian's and NLLB's architectures, tiny and untrained, by both runtimes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from regionmarker.benchmark.attacks.paraphrasers import load_paraphraser
from regionmarker.benchmark.attacks.paraphrasers import translators as module
from regionmarker.benchmark.attacks.paraphrasers.neural import MarianParaphraser, RoundTrip
from regionmarker.benchmark.attacks.paraphrasers.translators import (
    ConvertedTranslator,
    TransformersTranslator,
    load_translator,
)
from regionmarker.errors import InputError, MissingExtraError

TEXTS = ["a good film", "the bad film of the year", "nothing to see here"]


@pytest.fixture(autouse=True)
def _quiet(quiet_torch: None) -> Iterator[None]:
    pytest.importorskip("transformers", reason="needs the package transformers (and torch==2.13.0)")
    return quiet_torch


@pytest.fixture(scope="module")
def marian(tmp_path_factory: pytest.TempPathFactory, sentences: list[str]) -> Path:
    """A Marian model drawn at random, whose pieces are real, and a copy of it for ctranslate2 where that is there."""
    import warnings

    pieces = pytest.importorskip("sentencepiece", reason="needs the package sentencepiece")
    pytest.importorskip("torch", reason="needs torch==2.13.0")
    import torch
    from transformers import MarianConfig, MarianMTModel

    folder = tmp_path_factory.mktemp("marian")
    (folder / "texts.txt").write_text("\n".join(sentences[:500]))
    pieces.SentencePieceTrainer.train(
        input=str(folder / "texts.txt"), model_prefix=str(folder / "source"), vocab_size=300, minloglevel=2
    )
    (folder / "source.model").rename(folder / "source.spm")
    (folder / "target.spm").write_bytes((folder / "source.spm").read_bytes())
    spm = pieces.SentencePieceProcessor(str(folder / "source.spm"))
    words = ["</s>", "<unk>", *(spm.id_to_piece(n) for n in range(3, spm.vocab_size())), "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({word: number for number, word in enumerate(words)}))
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "MarianTokenizer", "source_lang": "en", "target_lang": "fr"})
    )
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings(action="ignore"):
        torch.manual_seed(1)
        config = MarianConfig(
            vocab_size=len(words), d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
            decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=64,
            pad_token_id=len(words) - 1, decoder_start_token_id=len(words) - 1, eos_token_id=0, init_std=0.7,
            static_position_embeddings=True,
        )  # fmt: skip
        MarianMTModel(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def converted(marian: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    import shutil
    import warnings

    ctranslate2 = pytest.importorskip("ctranslate2", reason="needs the package ctranslate2")
    folder = tmp_path_factory.mktemp("converted") / "marian"
    shutil.copytree(marian, folder)
    with warnings.catch_warnings(action="ignore"):
        ctranslate2.converters.TransformersConverter(str(marian)).convert(str(folder / "ct2"), force=True)
    return folder


def test_a_converted_copy_is_preferred(marian: Path, converted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(load_translator(str(marian)), TransformersTranslator)
    assert isinstance(load_translator(str(converted)), ConvertedTranslator)
    assert isinstance(load_translator(str(converted), device="cuda"), TransformersTranslator)
    monkeypatch.setattr(module, "find_spec", lambda name: None if name == "ctranslate2" else object())
    assert isinstance(load_translator(str(converted)), TransformersTranslator)


@pytest.mark.parametrize("runtime", ["marian", "converted"])
def test_what_is_drawn_follows_the_seed(runtime: str, request: pytest.FixtureRequest) -> None:
    folder = str(request.getfixturevalue(runtime))
    best = load_translator(folder, tokens=8).translate(TEXTS, 1, drawn=False, seed=0)
    assert best == load_translator(folder, tokens=8).translate(TEXTS, 1, drawn=False, seed=5)
    assert [len(one) for one in best] == [1, 1, 1]
    draws = [load_translator(folder, tokens=8).translate(TEXTS, 6, drawn=True, seed=seed) for seed in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]
    assert [len(one) for one in draws[0]] == [6, 6, 6]
    assert len(set(draws[0][0])) > 1
    assert all(isinstance(text, str) and "</s>" not in text and "<pad>" not in text for one in best for text in one)


@pytest.mark.parametrize("runtime", ["marian", "converted"])
def test_a_round_trip_by_two_models(runtime: str, request: pytest.FixtureRequest) -> None:
    folder = request.getfixturevalue(runtime)
    paraphraser = load_paraphraser(f"marian:{folder},{folder}")
    assert paraphraser.name == f"marian:{folder},{folder}"
    said = MarianParaphraser(str(folder), str(folder), tokens=8).paraphrase(TEXTS, 4)
    assert len(said) == 3
    assert all(len(set(one)) == len(one) <= 4 for one in said)
    assert said == MarianParaphraser(str(folder), str(folder), tokens=8).paraphrase(TEXTS, 4)


class Fake:
    """A translator by table: what it is asked is remembered."""

    def __init__(self, table: dict[str, list[str]]) -> None:
        self.table = table
        self.asked: list[tuple[list[str], int, bool]] = []

    def translate(self, texts: Any, count: int, /, *, drawn: bool, seed: int) -> list[list[str]]:
        self.asked.append((list(texts), count, drawn))
        return [self.table[text][:count] if not drawn else self.table[text][1 : count + 1] for text in texts]


def test_the_best_way_first_then_others_and_no_word_for_word_copies() -> None:
    there = Fake({"a good film": ["un bon film", "un beau film", "un bon film", "un film bon", "film"]})
    back = Fake({
        "un bon film": ["A good film."], "un beau film": ["a fine film"], "un film bon": ["A fine  film!"],
        "film": ["the film"],
    })  # fmt: skip
    trip = RoundTrip("trip", there, back)
    assert trip.paraphrase(["a  good film"], 3) == [["a fine film", "the film"]]
    assert there.asked == [(["a good film"], 1, False), (["a good film"], 4, True)]
    assert back.asked == [(["un bon film", "un beau film", "un film bon", "film"], 1, False)]
    assert trip.paraphrase(["a good film"], 1) == [[]]


def test_languages_reach_a_model_of_many(converted: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """NLLB's path through ctranslate2: the target stands before the translation, and is no part of it."""
    import ctranslate2

    seen: list[dict[str, Any]] = []
    plain = ctranslate2.Translator

    class Watched:
        def __init__(self, *given: Any, **options: Any) -> None:
            self._translator = plain(*given, **options)

        def translate_batch(self, pieces: Any, **options: Any) -> Any:
            seen.append(options)
            return self._translator.translate_batch(pieces, **options)

    monkeypatch.setattr(ctranslate2, "Translator", Watched)
    word = "▁the"
    translator = ConvertedTranslator(str(converted), "eng", word, tokens=8)
    said = translator.translate(TEXTS[:1], 1, drawn=False, seed=0)[0][0]
    assert seen[0]["target_prefix"] == [[word]]
    assert not said.startswith("the")


def test_what_cannot_be_loaded_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=f"there is no folder {tmp_path}/a"):
        load_paraphraser(f"marian:{tmp_path}/a,{tmp_path}/b").paraphrase(TEXTS, 1)
    for spec in ("marian:one", "marian:,two"):
        with pytest.raises(InputError, match="name both directions"):
            load_paraphraser(spec)
    assert load_paraphraser("marian").name.startswith("marian:Helsinki-NLP/opus-mt-en-fr,")

    def missing(*args: Any, **options: Any) -> None:
        raise ImportError("MarianTokenizer requires the sentencepiece library")

    monkeypatch.setattr("transformers.AutoTokenizer.from_pretrained", missing)
    with pytest.raises(MissingExtraError, match=r"sentencepiece is not installed: pip install .*translation"):
        module.load_part("AutoTokenizer", "some-model")


def test_a_damaged_copy_is_named(converted: Path, tmp_path: Path) -> None:
    import shutil

    folder = tmp_path / "broken"
    shutil.copytree(converted, folder)
    (folder / "ct2" / "model.bin").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"cannot translate by .*ct2"):
        load_translator(str(folder)).translate(TEXTS, 1, drawn=False, seed=0)
