"""NLLB and DIPPER, by tiny models of the same architectures with random weights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from regionmarker.benchmark.attacks.paraphrasers import load_paraphraser
from regionmarker.benchmark.attacks.paraphrasers.neural import DipperParaphraser, NLLBParaphraser
from regionmarker.benchmark.attacks.paraphrasers.translators import Seq2Seq
from regionmarker.errors import InputError

TEXTS = ["a good film", "the bad film"]
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Transformers warns at will, draws bars and looks for a network; none of it is what is tested."""
    import warnings

    pytest.importorskip("transformers", reason="needs the package transformers (and torch==2.13.0)")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="module")
def nllb(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch
    from transformers import M2M100Config, M2M100ForConditionalGeneration, NllbTokenizer

    folder = tmp_path_factory.mktemp("nllb")
    pieces = ["<s>", "<pad>", "</s>", "<unk>", "\u2581", *LETTERS, "<mask>"]
    tokenizer = NllbTokenizer(vocab={piece: number for number, piece in enumerate(pieces)}, merges=[])
    tokenizer.save_pretrained(folder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = M2M100Config(
            vocab_size=len(tokenizer), d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
            decoder_attention_heads=2, encoder_ffn_dim=16, decoder_ffn_dim=16, max_position_embeddings=64,
            pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2,
        )  # fmt: skip
        model = M2M100ForConditionalGeneration(config)
        with torch.no_grad():
            model.get_input_embeddings().weight[5 : 5 + len(LETTERS)] *= (
                20  # so that it says letters, not 200 languages
            )
        model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def dipper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, T5Config, T5ForConditionalGeneration

    folder = tmp_path_factory.mktemp("dipper")
    words = ["<pad>", "</s>", "<unk>", "a", "good", "film", "the", "bad", "lexical", "order", "=", "60", ","]
    inner = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="<unk>"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, pad_token="<pad>", eos_token="</s>", unk_token="<unk>")
    tokenizer.save_pretrained(folder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = T5Config(
            vocab_size=len(words), d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2, decoder_start_token_id=0
        )
        T5ForConditionalGeneration(config).save_pretrained(folder)
    return folder


def test_nllb_goes_there_and_back(nllb: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[tuple[str, int]] = []
    generate = Seq2Seq.generate

    def watched(self, texts, count, **options):  # type: ignore[no-untyped-def]
        said.append((self.tokenizer.src_lang, options["forced_bos_token_id"]))
        return generate(self, texts, count, **options)

    monkeypatch.setattr(Seq2Seq, "generate", watched)
    trips = NLLBParaphraser(str(nllb), tokens=8).paraphrase(TEXTS, 5)
    assert len(trips) == 2
    tokenizer = Seq2Seq(str(nllb)).tokenizer
    french, english = tokenizer.convert_tokens_to_ids(["fra_Latn", "eng_Latn"])
    assert said == [("eng_Latn", french), ("eng_Latn", french), ("fra_Latn", english)]  # the best way, others, back
    assert all(isinstance(text, str) and "_Latn" not in text for trip in trips for text in trip)
    assert load_paraphraser(f"nllb:{nllb}").paraphrase(TEXTS[:1], 1)  # by its spec


def test_trips_are_the_same_every_time_and_differ_from_each_other(nllb: Path) -> None:
    first, second = (NLLBParaphraser(str(nllb), tokens=8).paraphrase(TEXTS, 3) for _ in range(2))
    assert first == second
    assert all(len(set(trip)) == len(trip) for trip in first)


def test_dipper_draws_by_its_seed_and_leaves_torchs_randomness_alone(dipper: Path) -> None:
    import torch

    state = torch.random.get_rng_state()
    first = DipperParaphraser(str(dipper), tokens=8).paraphrase(TEXTS, 5)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert [len(trip) for trip in first] == [5, 5]
    assert DipperParaphraser(str(dipper), tokens=8).paraphrase(TEXTS, 5) == first
    assert DipperParaphraser(str(dipper), tokens=8, seed=1).paraphrase(TEXTS, 5) != first
    assert len(set(first[0])) > 1


def test_dippers_codes_say_what_to_keep() -> None:
    assert DipperParaphraser().question("a  good\nfilm") == "lexical = 60, order = 60 <sent> a good film </sent>"
    assert DipperParaphraser(lex=80, div=0).question("x") == "lexical = 20, order = 100 <sent> x </sent>"
    with pytest.raises(InputError, match=r"0, 20, \.\. 100, not 50 and 40"):
        DipperParaphraser(lex=50)


def test_the_published_models_are_the_defaults() -> None:
    assert load_paraphraser("nllb").name == "nllb:facebook/nllb-200-1.3B"
    assert load_paraphraser("dipper").name == "dipper:kalpeshk2011/dipper-paraphraser-xxl"
    assert repr(load_paraphraser("dipper")).endswith("lex=40, div=40)")


def test_a_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    for kind in ("nllb", "dipper"):
        with pytest.raises(InputError, match=f"there is no folder {tmp_path}/nothing"):
            load_paraphraser(f"{kind}:{tmp_path}/nothing").paraphrase(TEXTS, 1)
