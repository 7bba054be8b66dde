"""What every defense promises. A test module hands in a bench, on which defenses are made, and calls every check."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from regionmarker.benchmark.protocols import Defense
from regionmarker.benchmark.stealers import NoisyCopy
from regionmarker.errors import InputError, NotFittedError, SecretLeakError
from regionmarker.vectors import Encoder

ODD_TEXTS = ("", " ", "\n\t", "!", "東京", "e\u0301 café naïve", "a\x00b", "word " * 500, "half \ud83d", "👩‍👩‍👧")


@dataclass
class Bench:
    """A corpus with an encoder, and how to make the defense that is checked."""

    make: Callable[[int], Any]
    """Takes a seed, returns a defense without a secret yet."""
    texts: list[str]
    clean: np.ndarray
    encoder: Encoder
    marks: bool = True
    """False for the control, which leaves everything as it is."""
    any_width: bool = True
    """False where a suspect of another width cannot be judged."""
    fitted: dict[int, Any] = field(default_factory=dict)
    acquittals: dict[int, Any] = field(default_factory=dict)

    def defense(self, seed: int = 1) -> Any:
        """Return the defense of a seed, fitted on the corpus once."""
        if seed not in self.fitted:
            self.fitted[seed] = self.make(seed).fit(self.texts, self.clean)
        return self.fitted[seed]

    def innocent(self, seed: int = 1) -> Any:
        """Return what the defense of a seed finds of the clean encoder, which never saw a mark; found once."""
        if seed not in self.acquittals:
            self.acquittals[seed] = self.defense(seed).verify(self.encoder)
        return self.acquittals[seed]

    def copy_of(self, defense: Any, fidelity: float, seed: int = 0) -> Any:
        """Return a simulated copy of what the defense serves."""
        teacher = Served(defense, self.encoder)
        return NoisyCopy(teacher, fidelity, seed=seed).steal(self.texts[:50], teacher.encode(self.texts[:50]))


class Served:
    """What a provider's customers see."""

    name = "served"

    def __init__(self, defense: Defense, encoder: Encoder) -> None:
        self.defense, self.encoder = defense, encoder

    def encode(self, texts: Sequence[str], /) -> np.ndarray:
        return self.defense.transform(self.encoder.encode(texts), texts)


class Projected:
    """An innocent of another width: a random projection of an encoder's vectors."""

    def __init__(self, encoder: Encoder, width: int, seed: int = 0) -> None:
        self.name, self.encoder, self.width, self.seed = f"projected to {width}", encoder, width, seed

    def encode(self, texts: Sequence[str], /) -> np.ndarray:
        rows = self.encoder.encode(texts)
        return rows @ np.random.default_rng(self.seed).standard_normal((rows.shape[1], self.width)).astype(np.float32)


class Remembered:
    """A suspect that can answer only what was asked for beforehand."""

    name = "remembered"

    def __init__(self, encoder: Encoder, texts: Sequence[str]) -> None:
        self.rows = dict(zip(texts, encoder.encode(list(texts)), strict=True))
        self.asked: list[str] = []

    def encode(self, texts: Sequence[str], /) -> np.ndarray:
        self.asked.extend(texts)
        return np.stack([self.rows[text] for text in texts])


def has_a_name_that_loads_it_again(bench: Bench) -> None:
    from regionmarker.benchmark.defenses import load_defense

    defense = bench.defense()
    assert isinstance(defense, Defense)
    again = load_defense(defense.name, seed=1)
    assert again.name == defense.name
    served = again.fit(bench.texts, bench.clean).transform(bench.clean, bench.texts)
    assert np.array_equal(served, defense.transform(bench.clean, bench.texts))


def serves_unit_float32_rows(bench: Bench) -> None:
    served = bench.defense().transform(bench.clean, bench.texts)
    assert served.dtype == np.float32
    assert served.shape == bench.clean.shape
    assert served.flags.c_contiguous
    assert np.abs(np.linalg.norm(served.astype(np.float64), axis=1) - 1).max() < 1e-3
    assert (not np.array_equal(served, bench.clean)) == bench.marks


def no_rows_give_no_rows(bench: Bench) -> None:
    served = bench.defense().transform(bench.clean[:0], [])
    assert served.shape == (0, bench.clean.shape[1])
    assert served.dtype == np.float32


def the_seed_decides(bench: Bench) -> None:
    first, second, other = bench.defense(), bench.make(1).fit(bench.texts, bench.clean), bench.defense(2)
    assert np.array_equal(first.transform(bench.clean, bench.texts), second.transform(bench.clean, bench.texts))
    assert tuple(first.probes()) == tuple(second.probes())
    mine, same = bench.innocent(), second.verify(bench.encoder)
    assert mine.p_value == same.p_value
    assert mine.chosen == same.chosen
    assert np.array_equal(mine.scores, same.scores)
    if bench.marks:
        assert not np.array_equal(first.transform(bench.clean, bench.texts), other.transform(bench.clean, bench.texts))
    assert bench.innocent(2).chosen != mine.chosen


def without_a_seed_the_secret_is_new_each_time(bench: Bench) -> None:
    first, second = (bench.make(None).fit(bench.texts, bench.clean) for _ in range(2))
    assert tuple(first.probes()) != tuple(second.probes())


def leaves_its_input_and_the_worlds_randomness_alone(bench: Bench) -> None:
    texts, clean = list(bench.texts), bench.clean.copy()
    ours, pythons = np.random.get_state()[1].copy(), random.getstate()  # noqa: NPY002
    defense = bench.make(3).fit(texts, clean)
    served = defense.transform(clean, texts)
    defense.verify(bench.encoder)
    assert texts == bench.texts
    assert np.array_equal(clean, bench.clean)
    assert not np.shares_memory(served, clean)
    assert np.array_equal(np.random.get_state()[1], ours)  # noqa: NPY002
    assert random.getstate() == pythons


def a_row_alone_is_served_as_in_company(bench: Bench) -> None:
    defense = bench.defense()
    whole = defense.transform(bench.clean, bench.texts)
    marked = np.flatnonzero((whole != bench.clean).any(axis=1))
    for row in (0, len(whole) - 1, *marked[:3].tolist()):
        alone = defense.transform(bench.clean[row : row + 1], bench.texts[row : row + 1])
        assert np.allclose(alone[0], whole[row], atol=1e-6)
    backwards = defense.transform(bench.clean[::-1], bench.texts[::-1])
    assert np.allclose(backwards[::-1], whole, atol=1e-6)


def the_account_of_a_stranger_is_served_too(bench: Bench) -> None:
    served = bench.defense().transform(bench.clean[:20], bench.texts[:20], account="someone else")
    assert served.shape == (20, bench.clean.shape[1])


def takes_float16_and_float64(bench: Bench) -> None:
    defense = bench.defense()
    exact = defense.transform(bench.clean, bench.texts)
    for dtype in (np.float16, np.float64):
        served = defense.transform(bench.clean.astype(dtype), bench.texts)
        assert served.dtype == np.float32
        cosines = np.einsum("ij,ij->i", served, exact)
        # Rounding may carry a text over the edge of what triggers, and then it is served another mark.
        assert np.mean(cosines > 0.995) > 0.98
        refitted = bench.make(1).fit(bench.texts, bench.clean.astype(dtype))
        assert refitted.transform(bench.clean, bench.texts).shape == exact.shape


def odd_texts_are_served(bench: Bench) -> None:
    defense = bench.defense()
    served = defense.transform(bench.clean[: len(ODD_TEXTS)], list(ODD_TEXTS))
    assert np.isfinite(served).all()
    assert np.abs(np.linalg.norm(served, axis=1) - 1).max() < 1e-3


def bad_input_is_refused_in_a_sentence(bench: Bench) -> None:
    defense, clean, texts = bench.defense(), bench.clean[:20], bench.texts[:20]
    broken = clean.copy()
    broken[7, 3] = np.nan
    for rows, asked, message in (
        (broken, texts, "row 7 holds NaN"),
        (clean * np.float32(2), texts, "row 0 has length"),
        (clean[:, :-1], texts, "has width"),
        (clean, texts[:-1], "19 texts but 20 embeddings"),
        (clean[0], texts, "2-d array"),
    ):
        with pytest.raises(InputError, match=message):
            defense.transform(rows, asked)
    for asked, rows, message in (
        (["", *bench.texts[1:]], bench.clean, "text 0 is empty"),
        (bench.texts[:-1], bench.clean, "texts but"),
        ("one text", bench.clean, "one string"),
        (texts, clean, "the corpus has 20 distinct texts"),
        (["the same"] * len(bench.clean), bench.clean, "1 distinct texts"),
    ):
        with pytest.raises(InputError, match=message):
            bench.make(1).fit(asked, rows)


def without_a_secret_it_says_so(bench: Bench) -> None:
    defense = bench.make(1)
    for use in (
        lambda: defense.transform(bench.clean, bench.texts),
        defense.probes,
        lambda: defense.verify(bench.encoder),
    ):
        with pytest.raises(NotFittedError, match="call fit"):
            use()


def shows_no_secret_and_refuses_to_be_pickled(bench: Bench) -> None:
    defense = bench.defense()
    finding = bench.innocent()
    shown = f"{defense!r} {defense} {finding!r}"
    assert defense.name in repr(defense)
    assert str(defense) == f"{defense}" == repr(defense)
    assert "seed" not in shown
    assert not any(text in shown for text in defense.probes() if len(text) > 8)
    assert str(finding.chosen) not in shown
    for leak in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(SecretLeakError, match="cannot be copied or pickled"):
            leak(defense)


def asks_its_probes_and_nothing_else(bench: Bench) -> None:
    defense = bench.defense()
    probes = list(defense.probes())
    assert len(set(probes)) == len(probes)
    assert all(text.strip() for text in probes)
    suspect = Remembered(bench.encoder, probes)
    finding = defense.verify(suspect)
    assert set(suspect.asked) == set(probes)
    assert finding.p_value == bench.innocent().p_value


def a_finding_is_whole(bench: Bench) -> None:
    finding = bench.innocent()
    assert finding.scores.shape[0] == len(finding.chosen)
    assert np.isfinite(finding.scores).all()
    if finding.weights is None:  # lists are standardised together, not each
        assert np.abs(finding.scores.mean(axis=1)).max() < 1e-6
    assert finding.p_value == finding.p_values(np.array([finding.chosen]))[0]
    assert 0 <= finding.published.p_value <= 1
    assert np.isclose(finding.published.delta_l2, -2 * finding.published.delta_cos, atol=1e-6)
    assert isinstance(finding.published.copy, bool)


def suspects_of_another_width_are_judged_or_passed_over(bench: Bench) -> None:
    for width in (48, 300):
        finding = bench.defense().verify(Projected(bench.encoder, width))
        assert np.isnan(finding.p_value) != bench.any_width
        assert np.isnan(finding.published.p_value) != bench.any_width
        assert not (np.isnan(finding.p_value) and finding.published.copy)


def whoever_always_says_the_same_is_acquitted(bench: Bench) -> None:
    class Constant:
        name = "constant"

        def encode(self, texts: Sequence[str], /) -> np.ndarray:
            return np.ones((len(texts), bench.clean.shape[1]), dtype=np.float32)

    assert bench.defense().verify(Constant()).p_value > 0.01


def innocents_make_the_p_value_uniform(bench: Bench) -> None:
    """Sixty redraws of the secret, for each of two innocents' scores; and the draws of three seeds."""
    seen = []
    other = Projected(bench.encoder, bench.clean.shape[1], seed=5)
    for findings in (
        [bench.innocent(seed) for seed in (1, 2, 3)],
        [bench.defense(seed).verify(other) for seed in (1, 2, 3)],
    ):
        z, rng = findings[0].scores, np.random.default_rng(12)
        distinct = findings[0].weights is None
        redrawn = np.stack([rng.choice(z.shape[1], size=len(z), replace=not distinct) for _ in range(60)])
        p = np.sort(findings[0].p_values(redrawn))
        assert np.abs(p - (np.arange(60) + 0.5) / 60).max() < 0.35  # Kolmogorov's band at 1e-6
        seen += [finding.p_value for finding in findings]
    # Bounds that chance crosses once in a million runs: the corpus differs between versions of Python.
    assert min(seen) > 1e-6
    assert np.mean(seen) > 0.05


def strong_copies_are_found(bench: Bench) -> None:
    for seed in (1, 2):
        finding = bench.defense(seed).verify(bench.copy_of(bench.defense(seed), 0.8))
        if not bench.marks:
            assert finding.p_value > 0.001
            continue
        assert finding.p_value <= 1 / 400
        assert finding.published.copy
        assert finding.published.delta_cos > 0.02


EVERY: Sequence[Callable[[Bench], None]] = (
    has_a_name_that_loads_it_again,
    serves_unit_float32_rows,
    no_rows_give_no_rows,
    the_seed_decides,
    without_a_seed_the_secret_is_new_each_time,
    leaves_its_input_and_the_worlds_randomness_alone,
    a_row_alone_is_served_as_in_company,
    the_account_of_a_stranger_is_served_too,
    takes_float16_and_float64,
    odd_texts_are_served,
    bad_input_is_refused_in_a_sentence,
    without_a_secret_it_says_so,
    shows_no_secret_and_refuses_to_be_pickled,
    asks_its_probes_and_nothing_else,
    a_finding_is_whole,
    suspects_of_another_width_are_judged_or_passed_over,
    whoever_always_says_the_same_is_acquitted,
    innocents_make_the_p_value_uniform,
    strong_copies_are_found,
)
