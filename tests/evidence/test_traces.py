"""Which tenant, in evidence: what is shown at which level, and every lie about it that anyone can find."""

from __future__ import annotations

import copy

import pytest
from tests.support.evidence_case import lie

from regionmarker.errors import InputError
from regionmarker.evidence import check_evidence, save_evidence
from regionmarker.evidence.traces import TRACES, check_assignments, check_correction, traces_document
from regionmarker.keys.places import Assignment, chain_digest, next_assignment
from regionmarker.verification.tracing import Trace, trace

LEVEL = 0.001
RANKING = [
    Trace("acme", 1e-6, 3e-6, 40.0, accused=True, label="place-0002"),
    Trace("globex", 0.2, 0.4, 3.0, accused=False, label="place-0001"),
    Trace("initech", 0.7, 0.7, float("nan"), accused=False, label="place-0003"),
]


def chain() -> tuple[Assignment, ...]:
    first = next_assignment("globex", "place-0001", "2026-01-02T03:04:05+00:00", None)
    second = next_assignment("acme", "place-0002", "2026-01-02T03:04:06+00:00", first)
    return first, second, next_assignment("initech", "place-0003", "2026-01-02T03:04:07+00:00", second)


@pytest.mark.parametrize("disclosure", ["summary", "expert"])
def test_only_the_accused_are_named_outside_of_court(disclosure):
    places = chain()
    document = traces_document(RANKING, places, LEVEL, disclosure)
    assert [row["tenant"] for row in document["tenants"]] == ["acme", None, None]
    assert "assignments" not in document
    for name in ("globex", "initech", "place-0001", "place-0003"):
        assert name not in str(document)
    assert document["places"] == {"count": 3, "digest": chain_digest(places)}
    assert check_correction(document, LEVEL).startswith("3 tenants looked at, accused: acme; places issued: 3, digest")


def test_at_court_everything_is_named_and_the_places_can_be_made_again():
    places = chain()
    document = traces_document(RANKING, places, LEVEL, "court")
    assert [row["tenant"] for row in document["tenants"]] == ["acme", "globex", "initech"]
    assert document["tenants"][2]["total"] is None  # JSON knows no NaN
    assert check_assignments(document) == f"; the 3 assignments make the digest {chain_digest(places)}"
    assert check_assignments(traces_document(RANKING, (), LEVEL, "court")) == ""


def test_a_tracing_is_disclosed_whole_and_at_the_verdicts_level():
    with pytest.raises(InputError, match=r"traced at another level than the verdict's: trace them with level=1e-07"):
        traces_document(RANKING, (), 1e-7, "summary")
    with pytest.raises(InputError, match="corrected for all tenants that were looked at"):
        traces_document(RANKING[:2], (), LEVEL, "summary")
    with pytest.raises(InputError, match="not all places issued were looked at, each as its tenant's: see initech"):
        traces_document([*RANKING[:2]], chain(), LEVEL, "summary")


def _row(number, **values):
    return lambda document: document["tenants"][number].update(values)


LIES = {
    "a dropped tenant": lambda document: document["tenants"].pop(),
    "a smaller p": _row(0, p_value=1e-7),
    "no correction": _row(0, holm=1e-6),
    "a correction below another's": _row(1, holm=0.3),
    "accused without reason": _row(1, accused=True),
    "let off": _row(0, accused=False),
    "an accused without a name": _row(0, tenant=None),
    "a name twice": _row(1, tenant="acme"),
    "another order": lambda document: document["tenants"].reverse(),
    "a p of nothing": _row(0, p_value=0.0),
    "a p above one": _row(2, p_value=1.5),
    "another level": lambda document: document.update(level=0.01),
    "nobody looked at": lambda document: document.update(tenants=[]),
    "more places issued": lambda document: document["places"].update(count=4),
}


@pytest.mark.parametrize("what", LIES)
def test_lies_about_the_correction_are_found(what):
    document = copy.deepcopy(traces_document(RANKING, chain(), LEVEL, "court"))
    LIES[what](document)
    with pytest.raises(InputError, match=r"traces\.json"):
        check_correction(document, LEVEL)


def _swap(document):
    first, second = document["assignments"][:2]
    first["tenant"], second["tenant"] = second["tenant"], first["tenant"]


PLACE_LIES = {
    "two tenants changed places": (_swap, "assignment 1 .* does not follow"),
    "another time": (lambda d: d["assignments"][1].update(assigned="2026-01-01T00:00:00+00:00"), "assignment 2"),
    "one taken out": (lambda d: d["assignments"].pop(0), "assignment 1"),
    "the last taken out": (lambda d: d["assignments"].pop(), "the assignments make another digest"),
    "another digest": (lambda d: d["places"].update(digest="00" * 32), "the assignments make another digest"),
    "judged by another's label": (_row(0, label="place-0001"), "see acme"),
}


@pytest.mark.parametrize("what", PLACE_LIES)
def test_lies_about_places_are_found(what):
    document = copy.deepcopy(traces_document(RANKING, chain(), LEVEL, "court"))
    change, complaint = PLACE_LIES[what]
    change(document)
    with pytest.raises(InputError, match=complaint):
        check_assignments(document)


@pytest.mark.usefixtures("quick_report")
def test_at_court_every_tenants_p_is_made_again(own_copy):
    bundle = own_copy("court")
    assert check_evidence(bundle).failure is None

    def guilt(document):
        row = document["tenants"][0]
        row.update(p_value=row["p_value"] / 2, holm=row["holm"] / 2)

    assert TRACES in str(lie(bundle, TRACES, guilt))


@pytest.mark.usefixtures("quick_report")
def test_a_summary_names_nobody_who_is_not_accused(verdict, case_key, tmp_path):
    ranking = trace(case_key, verdict.basis.answers, ["alice", "bob"], level=verdict.level)
    assert not any(row.accused for row in ranking)
    bundle = save_evidence(verdict, tmp_path / "bundle", traces=ranking)
    shown = (bundle / TRACES).read_text()
    assert "alice" not in shown
    assert "bob" not in shown
    found = {check.name: check.detail for check in check_evidence(bundle).checks}
    assert "2 tenants looked at, accused: nobody" in found.values()
