"""How the scores of a statistic stand in a bundle, and how they are read and checked again: one form per statistic.

decoy-1 scores every text of one pool for every region: sorted lists, one per region, and the table of all tuples' sums,
without which p could only be bounded. decoy-2 scores every candidate in the list of its carrier: sorted lists, one per
carrier, and p follows from them exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isclose, perm, sqrt
from typing import Any, Protocol

import numpy as np

from regionmarker.errors import InputError
from regionmarker.evidence.bundle import need
from regionmarker.marks.graded_settings import TEST_WEIGHTS
from regionmarker.vectors import Doubles, Integers
from regionmarker.verification import decoy1, decoy2, decoy_test, list_test
from regionmarker.verification.decoy_test import DecoyTest
from regionmarker.verification.list_test import ListTest
from regionmarker.verification.verdict import INFRINGEMENT, Basis, withheld_p

VERDICT, SCORES, POOL = "verdict.json", "scores.json", "pool.jsonl"
CLOSE = 1e-9
MOST_STEPS = 1 << 18
"""What all lists together may reach over: half a minute of work for whoever checks, and many times what marks need."""

Document = dict[str, Any]


class ScoreForm(Protocol):
    """One statistic's scores in a bundle; ``scores`` is what ``scores.json`` holds."""

    step: float
    group: str  # what a list belongs to, in words
    asks_candidates: bool

    def observed(self, basis: Basis, z: Doubles) -> list[int | None]:
        """Return the scores of the targets in whole steps; None where the suspect did not answer one."""

    def document(self, basis: Basis, observed: Sequence[int | None], order: Sequence[int]) -> Document:
        """Return the scores in whole steps, the lists in this order."""

    def lists(self, scores: Document) -> Integers:
        """Return the sorted lists, and refuse what cannot be such lists."""

    def check_null(self, scores: Document) -> str:
        """Say what the null distribution is made from, or complain."""

    def check_p_value(self, verdict: Document, scores: Document) -> str:
        """Recompute p, or complain."""

    def check_axes(self, axes: str | None, scores: Document) -> None:
        """Complain where the scores are not those of a suspect with such axes."""

    def distribution(self, scores: Document) -> tuple[int, Doubles]:
        """Return the lowest total in steps and the share of tuples at each, upwards."""

    def rows(self, z: Doubles, texts: Sequence[str], targets: Sequence[int]) -> list[Document]:
        """Return a line of ``pool.jsonl`` for every candidate."""

    def read_rows(self, rows: list[Document], scores: Document) -> tuple[Doubles, tuple[int, ...]]:
        """Return z and the places of the targets from such lines."""

    def check_rows(self, z: Doubles, targets: tuple[int, ...], scores: Document) -> tuple[float, float]:
        """Compare the lists with z, and return U and p of the targets."""


class PoolScores:
    """decoy-1: one pool for all regions."""

    step, group, asks_candidates = decoy_test.STEP, "region", True

    def observed(self, basis: Basis, z: Doubles) -> list[int | None]:
        found = z[np.arange(len(z)), list(basis.targets)]  # (R,)
        return [None if np.isnan(score) else int(decoy_test.in_steps(np.array([score]))[0]) for score in found]

    def document(self, basis: Basis, observed: Sequence[int | None], order: Sequence[int]) -> Document:
        test = basis.test
        if not isinstance(test, DecoyTest):
            raise TypeError("decoy-1 has scores of a pool")
        table = test.null_counts()
        return {
            "step": self.step,
            "pool": test.pool_size,
            "unanswered": len(basis.key.pool) - test.pool_size,
            "regions": test.regions,
            "lists": np.sort(test.steps[list(order)], axis=1)[:, ::-1].tolist(),
            "observed": list(observed),
            "null": None if table is None else {"lowest": table[0], "counts": table[1]},
        }

    def lists(self, scores: Document) -> Integers:
        return _checked_lists(scores, int(scores["regions"]), int(scores["pool"]), self.step, decoy_test.LIMIT)

    def check_null(self, scores: Document) -> str:
        lists = self.lists(scores)
        regions, size = lists.shape
        table = scores["null"]
        if table is None:
            return "not tabulated (too many tuples); p is a bound from the sorted lists"
        lowest, counts = int(table["lowest"]), [int(count) for count in table["counts"]]
        need(min(counts) >= 0, f"{SCORES}: the table counts fewer than no tuples")
        need(sum(counts) == perm(size, regions), f"{SCORES}: the table does not count all {perm(size, regions)} tuples")
        possible = lists.min(axis=1).sum() <= lowest and lowest + len(counts) - 1 <= lists.max(axis=1).sum()
        need(bool(possible), f"{SCORES}: the table holds sums that the lists cannot give")
        sums = sum((lowest + place) * count for place, count in enumerate(counts))
        need(sums == decoy_test.sum_of_sums(lists), f"{SCORES}: the table and the sorted lists do not belong together")
        return f"counts all {sum(counts)} tuples and fits the sorted lists"

    def check_p_value(self, verdict: Document, scores: Document) -> str:
        lists = self.lists(scores)
        regions, size = lists.shape
        p_value = float(verdict["p_value"])
        least = perm(size, regions)
        need(isclose(verdict["floor"], 1 / least), f"{VERDICT}: the floor is not 1 in {least}")
        if None in scores["observed"]:
            need(p_value == 1.0, f"{VERDICT}: p is {p_value:g}, but a target has no answer, so it must be 1")
            return "p = 1, because a target has no answer"
        silent = int(scores["unanswered"])
        most = withheld_p(p_value, size + silent, silent)
        need(
            verdict["outcome"] != INFRINGEMENT or most <= verdict["judged_at"],
            f"{SCORES}: {silent} pool texts have no answer, and p would be up to {most:.2g} if the claimant chose them",
        )
        observed = sum(scores["observed"])
        bound = decoy_test.p_from_lists(lists, observed)
        if scores["null"] is None:
            need(isclose(p_value, bound, rel_tol=CLOSE), f"{VERDICT}: p is {p_value:g}, but the lists give {bound:g}")
            return f"p = {p_value:g}, recomputed from the sorted lists"
        p_table = decoy_test.p_from_counts(int(scores["null"]["lowest"]), scores["null"]["counts"], observed)
        need(p_value == p_table, f"{VERDICT}: p is {p_value:g}, but the table gives {p_table:g}")
        # Tuples with repeats are all that may lie between the two.
        slack = decoy_test.inflation(size, regions) - 1
        need(
            p_table <= bound <= p_table + slack + CLOSE,
            f"{SCORES}: the table's p {p_table:g} does not fit the lists' {bound:g}",
        )
        return f"p = {p_value:g}, recomputed exactly"

    def check_axes(self, axes: str | None, scores: Document) -> None:  # noqa: ARG002 - there are none
        need(axes is None, f"{VERDICT}: {decoy1.STATISTIC} does not know axes")

    def distribution(self, scores: Document) -> tuple[int, Doubles]:
        if scores["null"] is None:
            lists = np.array(scores["lists"], dtype=np.int64)
            return int(lists.min(axis=1).sum()), decoy_test.bound_distribution(lists)
        counts = np.array(scores["null"]["counts"], dtype=np.float64)
        return int(scores["null"]["lowest"]), counts / counts.sum()

    def rows(self, z: Doubles, texts: Sequence[str], targets: Sequence[int]) -> list[Document]:
        target_of = {place: region for region, place in enumerate(targets, start=1)}
        return [
            {
                "place": place,
                "text": text,
                "z": None if np.isnan(z[0, place]) else z[:, place].tolist(),
                "target_of": target_of.get(place),
            }
            for place, text in enumerate(texts)
        ]

    def read_rows(self, rows: list[Document], scores: Document) -> tuple[Doubles, tuple[int, ...]]:
        regions = int(scores["regions"])
        nothing = [np.nan] * regions
        z = np.array([nothing if row["z"] is None else row["z"] for row in rows], dtype=np.float64).T
        return np.ascontiguousarray(z), _named_targets(rows, regions, self.group)

    def check_rows(self, z: Doubles, targets: tuple[int, ...], scores: Document) -> tuple[float, float]:
        test = DecoyTest(z)
        need(_sorted(test.steps) == scores["lists"], f"{SCORES}: the lists are not the scores of {POOL}")
        if scores["null"] is not None:
            table = (scores["null"]["lowest"], scores["null"]["counts"])
            need(table == test.null_counts(), f"{SCORES}: the table is not that of {POOL}")
        return float(test.totals(np.array([targets]))[0]), test.p_value(targets)


class ListScores:
    """decoy-2: a list of candidates for every carrier."""

    step, group, asks_candidates = list_test.STEP, "carrier", False

    def observed(self, basis: Basis, z: Doubles) -> list[int | None]:  # noqa: ARG002 - the test has them in steps
        return list(_list_test(basis).observed(basis.targets))

    def document(self, basis: Basis, observed: Sequence[int | None], order: Sequence[int]) -> Document:
        test = _list_test(basis)
        return {
            "step": self.step,
            "carriers": test.carriers,
            "list": test.list_size,
            "weights": test.weights[list(order)].tolist(),
            "lists": _sorted(test.steps[list(order)]),
            "observed": list(observed),
        }

    def lists(self, scores: Document) -> Integers:
        carriers, size = int(scores["carriers"]), int(scores["list"])
        return _checked_lists(scores, carriers, size, self.step, list_test.LIMIT)

    def check_null(self, scores: Document) -> str:
        lists, _ = self.lists(scores), _checked_weights(scores)
        return (
            f"follows from {lists.shape[0]} lists of {lists.shape[1]} candidates, which were drawn from independently"
        )

    def check_p_value(self, verdict: Document, scores: Document) -> str:
        lists, stated = self.lists(scores), float(verdict["p_value"])
        least = float(lists.shape[1]) ** -lists.shape[0]
        need(isclose(verdict["floor"], least, rel_tol=CLOSE), f"{VERDICT}: the floor is not {least:g}")
        found = float(list_test.p_from_lists(lists, np.array([sum(scores["observed"])]))[0])
        need(isclose(stated, found, rel_tol=CLOSE), f"{VERDICT}: p is {stated:g}, but the lists give {found:g}")
        return f"p = {stated:g}, recomputed exactly, two-sided"

    def check_axes(self, axes: str | None, scores: Document) -> None:
        need(axes in ("matched", "unknown"), f"{VERDICT}: axes are matched or unknown, not {axes}")
        _checked_weights(scores, matched=axes == "matched")

    def distribution(self, scores: Document) -> tuple[int, Doubles]:
        return list_test.distribution(np.array(scores["lists"], dtype=np.int64))

    def rows(self, z: Doubles, texts: Sequence[str], targets: Sequence[int]) -> list[Document]:
        size, drawn = z.shape[1], set(targets)
        return [
            {
                "place": place,
                "text": texts[place],
                "list": place // size + 1,
                "z": float(z[place // size, place % size]),
                "target_of": place // size + 1 if place in drawn else None,
            }
            for place in range(z.size)
        ]

    def read_rows(self, rows: list[Document], scores: Document) -> tuple[Doubles, tuple[int, ...]]:
        carriers, size = int(scores["carriers"]), int(scores["list"])
        need(len(rows) == carriers * size, f"{POOL} does not hold {carriers} lists of {size} candidates")
        right = all(row["list"] == place // size + 1 for place, row in enumerate(rows))
        need(right, f"{POOL}: a candidate is not in the list of its place")
        z = np.array([row["z"] for row in rows], dtype=np.float64).reshape(carriers, size)
        return z, _named_targets(rows, carriers, self.group)

    def check_rows(self, z: Doubles, targets: tuple[int, ...], scores: Document) -> tuple[float, float]:
        test = ListTest(z, _checked_weights(scores))
        own = test.steps[np.arange(len(z)), np.array(targets) % z.shape[1]].tolist()
        need(_sorted(test.steps) == scores["lists"], f"{SCORES}: the lists are not the scores of {POOL}")
        need(own == scores["observed"], f"{SCORES}: the observed scores are not those of the targets in {POOL}")
        return float(test.totals(np.array([targets]))[0]), test.p_value(targets)


FORMS: dict[str, ScoreForm] = {decoy1.STATISTIC: PoolScores(), decoy2.STATISTIC: ListScores()}
"""The forms by the name of the statistic."""


def form_of(verdict: Document) -> ScoreForm:
    """Return the form in which a verdict's scores stand."""
    need(verdict["statistic"] in FORMS, f"{VERDICT}: the statistic {verdict['statistic']!r} is not known here")
    return FORMS[verdict["statistic"]]


def _list_test(basis: Basis) -> ListTest:
    if not isinstance(basis.test, ListTest):
        raise TypeError("decoy-2 has scores of lists")
    return basis.test


def _sorted(steps: Integers) -> list[list[int]]:
    found: list[list[int]] = np.sort(steps, axis=1)[:, ::-1].tolist()
    return found


def _checked_weights(scores: Document, *, matched: bool | None = None) -> Doubles:
    """Return the weights of the carriers: those of singles and pairs in one branch of the statistic, and no others."""
    branches = TEST_WEIGHTS.values() if matched is None else (TEST_WEIGHTS[matched],)
    weights = np.array(scores["weights"], dtype=np.float64)
    count = int(scores["carriers"])
    need(weights.shape == (count,), f"{SCORES}: there is not one weight per carrier")
    for singles in range(1, count):
        for kinds in branches:
            parts = (singles, count - singles)
            right = [weight / sqrt(part) for weight, part in zip(kinds, parts, strict=True) for _ in range(part)]
            if np.allclose(np.sort(weights), np.sort(right), rtol=CLOSE):
                return weights
    raise InputError(f"{SCORES}: the weights are not those of singles and pairs")


def _checked_lists(scores: Document, count: int, size: int, step: float, limit: float) -> Integers:
    lists = np.array(scores["lists"], dtype=np.int64)
    need(scores["step"] == step, f"{SCORES} is in other steps than this version's")
    need(lists.shape == (count, size), f"{SCORES}: the lists are not {count} lists of {size} scores")
    need(bool((np.diff(lists, axis=1) <= 0).all()), f"{SCORES}: a list is not sorted")
    reach = int((lists[:, 0] - lists[:, -1]).sum()) if lists.size else 0
    need(lists.size > 0 and reach <= MOST_STEPS, f"{SCORES}: the lists reach over {reach} steps, as no mark's do")
    need(bool((np.abs(lists) <= limit / step).all()), f"{SCORES}: a score is beyond the limit")
    return lists


def _named_targets(rows: list[Document], count: int, group: str) -> tuple[int, ...]:
    need([row["place"] for row in rows] == list(range(len(rows))), f"{POOL} is not in the order of the pool")
    named = sorted((row["target_of"], row["place"]) for row in rows if row["target_of"] is not None)
    need([number for number, _ in named] == list(range(1, count + 1)), f"{POOL} does not name one target per {group}")
    return tuple(place for _, place in named)
