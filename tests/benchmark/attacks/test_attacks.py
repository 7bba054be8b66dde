"""Attacks of a cell: in order, before or after the training, and with a corpus's own paraphrases."""

from __future__ import annotations

import numpy as np
import pytest

from regionmarker.benchmark.attacks import plan_attacks
from regionmarker.benchmark.corpora import Corpus, Labelled
from regionmarker.benchmark.protocols import StolenData
from regionmarker.errors import InputError


@pytest.fixture
def corpus(sentences, embeddings):
    data = Labelled.of(sentences[:6], [0] * 6, [False] * 6)
    said = {sentences[1]: ("one wording", "two wordings"), sentences[4]: ("a third",)}
    return Corpus("c", "p", data, embeddings[:6], said, (("one wording", "two wordings", "a third"), embeddings[6:9]))


def test_only_texts_with_paraphrases_are_trained_on(corpus, embeddings):
    known = dict(zip(corpus.all_texts, corpus.all_clean, strict=True))

    def service(texts, /, *, account=""):
        return np.stack([known[text] for text in texts])

    stolen = StolenData(corpus.texts, corpus.clean, service)
    plan = plan_attacks(["paraphrase:filter=none,stored"], corpus)
    left = plan.apply(stolen)
    assert left.texts == (corpus.texts[1], corpus.texts[4])
    assert np.allclose(left.vectors[1], embeddings[8], atol=1e-6)
    middle = embeddings[6] + embeddings[7]
    assert np.allclose(left.vectors[0], middle / np.linalg.norm(middle), atol=1e-5)


def test_a_corpus_without_paraphrases_is_told(sentences, embeddings):
    bare = Corpus("bare", "p", Labelled.of(sentences[:2], [0, 0], [False, False]), embeddings[:2])
    with pytest.raises(InputError, match="the corpus bare brings no paraphrases"):
        plan_attacks(["paraphrase:stored"], bare)


def test_what_follows_the_training_stands_last():
    plan = plan_attacks(["shift:1", "finetune:python"])
    assert plan.before.name == "shift:1"
    assert [attack.name for attack in plan.after] == ["finetune:python"]
    with pytest.raises(InputError, match="shift:1 works on what was served: it must stand before finetune"):
        plan_attacks(["finetune:python", "shift:1"])


def test_fine_tuning_reads_its_corpus_from_the_grids_folder(tmp_path):
    (attack,) = plan_attacks(["finetune:epochs=1,enron"], folder=tmp_path).after
    assert attack.name == f"finetune:epochs=1,folder={tmp_path},enron"
    (attack,) = plan_attacks(["finetune:folder=elsewhere,enron"], folder=tmp_path).after
    assert attack.name == "finetune:folder=elsewhere,enron"
