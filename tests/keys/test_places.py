"""Places: labels, and a chain that shows when it was changed."""

from __future__ import annotations

import pytest

from regionmarker.errors import InputError
from regionmarker.keys.places import (
    FIRST,
    assigned_since,
    chain_digest,
    is_place,
    next_assignment,
    place_labels,
    read_chain,
)


@pytest.fixture
def rows():
    chain = []
    for number, tenant in enumerate(["acme", "zenith", "über"], start=1):
        chain.append(next_assignment(tenant, f"place-{number:04d}", "2026-01-02T03:04:05+00:00", (chain or [None])[-1]))
    return [one.to_dict() for one in chain]


def test_labels_are_places():
    assert all(map(is_place, place_labels(12_000)))
    assert len(set(place_labels(12_000))) == 12_000
    assert not any(map(is_place, ["place-1", "place-x", "acme", "Place-0001", "place-0001\n", ""]))


def test_the_chain_is_read_again(rows):
    chain = read_chain(rows)
    assert [one.tenant for one in chain] == ["acme", "zenith", "über"]
    assert chain_digest(chain) == rows[-1]["digest"]
    assert chain_digest(()) == FIRST


def test_the_digest_does_not_follow_from_the_names():
    """So a published one cannot be searched for customers."""
    digests = {next_assignment("acme", "place-0001", "2026-01-02", None).digest for _ in range(10)}
    assert len(digests) == 10


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("tenant", "mallory"),
        ("label", "place-0009"),
        ("assigned", "2020"),
        ("nonce", "0"),
        ("number", 7),
        ("nonce", b"0"),
        ("label", None),
    ],
)
def test_a_changed_row_is_noticed(rows, field, value):
    rows[1][field] = value
    with pytest.raises(InputError, match=r"assignment 2 .* does not follow from the one before"):
        read_chain(rows)


def test_a_row_that_was_taken_out_is_noticed(rows):
    with pytest.raises(InputError, match=r"assignment 2 .* rows were changed or taken out"):
        read_chain([rows[0], rows[2]])


def test_a_shorter_chain_has_another_digest(rows):
    """What was cut off at the end shows against the published digest alone."""
    assert chain_digest(read_chain(rows[:2])) != rows[2]["digest"]


def test_a_published_digest_says_how_many_came_since(rows):
    chain = read_chain(rows)
    assert [assigned_since(chain, digest) for digest in (FIRST, rows[0]["digest"], rows[2]["digest"])] == [3, 2, 0]
    with pytest.raises(InputError, match=r"none that these assignments ever had"):
        assigned_since(chain[:2], rows[2]["digest"])


@pytest.mark.parametrize(("tenant", "label"), [("acme", "place-0009"), ("fourth", "place-0001")])
def test_nobody_has_two_places_and_no_place_two_tenants(rows, tenant, label):
    last = read_chain(rows)[-1]
    again = next_assignment(tenant, label, "2026-01-02", last)
    with pytest.raises(InputError, match=r"twice"):
        read_chain([*rows, again.to_dict()])
