"""Ten thousand tenants: the database, the serving key, marking for a random one, and tracing among all of them.

    python -m studies.scale.tenants [--tenants 10000]

Tenants have places (`place-0001` and on), as a gateway gives them out. The database is a SQLite file. Marking is of one
vector of width 1536 at a time, for a tenant drawn anew each time, beside the same for one tenant; in processor time, so
that what else the machine does counts little. The traced copy was trained on one place's vectors of width 256.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from studies._study import Command, markdown, unit_rows
from studies.scale._scale import WIDTH, conditions, graded_key, quantiles, spent

if TYPE_CHECKING:
    from regionmarker.gateway.tenants.accounts import Accounts

PAGE = "docs/results/scale.md"
Lines = Iterator[tuple[str, str]]  # what was measured, and the number


def database(folder: Path, count: int, few: int) -> Lines:
    """Fill a database, and look tenants up in it by their API keys."""
    from regionmarker.gateway.tenants.accounts import Accounts
    from regionmarker.gateway.tenants.lookup import DatabaseLookup
    from regionmarker.keys.places import place_labels

    address = str(folder / "tenants.db")
    accounts = Accounts.open(address)
    with spent() as offered:
        accounts.offer(place_labels(count))
    yield f"enter {count:,} places, s", f"{offered.processor_seconds:.2f}"
    names, keys = [f"tenant-{number:05d}" for number in range(count)], []
    for first, label in ((0, "first"), (count - few, "last")):
        keys += fill(accounts, names[len(keys) : first])
        with spent() as added:
            keys += [accounts.add(name) for name in names[first : first + few]]
        yield f"add a tenant, mean of the {label} {few}, ms", f"{added.processor_seconds / few * 1e3:.1f}"
    with spent() as read:
        places = accounts.places()
    assert len(places.assignments) == count
    yield f"read and check the chain of {count:,} assignments, s", f"{read.processor_seconds:.2f}"
    accounts.close()
    yield "the file, MB", f"{Path(address).stat().st_size / 1e6:.1f}"

    async def look_up() -> tuple[list[float], list[float]]:
        lookup = DatabaseLookup.open(address)
        cold, warm = [], []
        for row in np.random.default_rng(1).permutation(count)[: 10 * few]:
            for found in (cold, warm):
                started = time.process_time()
                tenant = await lookup.find(keys[row])
                found.append((time.process_time() - started) * 1e3)
                assert tenant is not None
                assert tenant.name == names[row]
        await lookup.close()
        return cold, warm

    for name, taken in zip(("asked for", "remembered"), asyncio.run(look_up()), strict=True):
        middle, high = quantiles(taken, 0.5, 0.99)
        yield f"look-up of a random API key, {name}, median / p99, ms", f"{middle:.3f} / {high:.3f}"


def fill(accounts: Accounts, names: list[str]) -> list[str]:
    """Write what adding these tenants one by one would have written, in one transaction; return their API keys."""
    from regionmarker.gateway.tenants.accounts import api_key_id, digest_of, new_api_key
    from regionmarker.gateway.tenants.database import api_keys, assignments, tenants, writing
    from regionmarker.keys.places import next_assignment

    if not names:
        return []
    found, now, made = accounts.places(), datetime.now(UTC).isoformat(timespec="microseconds"), []
    last, keys = found.assignments[-1], [new_api_key() for _ in names]
    for name, label in zip(names, found.free, strict=False):
        last = next_assignment(name, label, now, last)
        made.append(last.to_dict())
    with writing(accounts.engine) as connection:
        connection.execute(
            tenants.insert(), [{"name": name, "folded": name, "mode": "mark", "created": now} for name in names]
        )
        connection.execute(assignments.insert(), made)
        rows = [
            {"id": api_key_id(key), "tenant": name, "digest": digest_of(key), "created": now}
            for name, key in zip(names, keys, strict=True)
        ]
        connection.execute(api_keys.insert(), rows)
    return keys


def serving(folder: Path, count: int, draws: int) -> Lines:
    """Export a serving key with all places, open it, and mark for random ones."""
    from regionmarker import RegionMarker
    from regionmarker.gateway.served_key import ServedKey, open_serving_key
    from regionmarker.keys.commitment import serving_with_commitment
    from regionmarker.keys.files import KeyRing, save_serving
    from regionmarker.keys.places import place_labels

    key = KeyRing.load(graded_key(folder / "provider.rmkey")).primary
    for labels in ([], place_labels(count)):
        path, many = folder / f"serving-{len(labels)}.rmkey", f"{len(labels):,} places"
        with spent() as made:
            save_serving(path, serving_with_commitment(key, labels), None)
        with spent() as opened:
            served = ServedKey(open_serving_key(path))
        yield f"serving key with {many}: file, MB", f"{path.stat().st_size / 1e6:.2f}"
        yield f"serving key with {many}: derive and write, s", f"{made.processor_seconds:.2f}"
        yield f"serving key with {many}: open until ready to serve, s", f"{opened.processor_seconds:.2f}"
        yield f"serving key with {many}: memory more, MB", f"{opened.kept:.1f}"
    marker: RegionMarker = served.current().marker
    row = unit_rows(1, WIDTH)
    out, rng = np.empty_like(row), np.random.default_rng(2)

    def timed(tenant: Callable[[], str]) -> list[float]:
        taken = []
        for _ in range(draws):
            name, started = tenant(), time.process_time()
            marker.transform(row, tenant=name, out=out)
            taken.append((time.process_time() - started) * 1e6)
        return taken

    for label, tenant in (("the same tenant", lambda: labels[0]), ("a random tenant", lambda: str(rng.choice(labels)))):
        with spent() as memory:
            middle, high = quantiles(timed(tenant), 0.5, 0.99)
        yield f"mark one vector for {label}, median / p99, µs", f"{middle:.0f} / {high:.0f}"
        yield f"mark one vector for {label}: memory more, MB", f"{memory.kept:.1f}"


def tracing(count: int, texts_sold: int) -> Lines:
    """Trace a copy that was trained on one place's vectors, among one place and among all."""
    import regionmarker as rm
    from regionmarker.benchmark.stealers import TokenBag
    from regionmarker.keys.places import place_labels

    texts, encoder = rm.python_sentences(4000 + texts_sold), rm.load_encoder("wordllama")
    marker = rm.RegionMarker(seed=2).fit(texts[:4000], encoder=encoder)
    labels = place_labels(count)
    leaked = labels[count // 2]
    sold = marker.transform(encoder.encode(texts[4000:]), tenant=leaked)
    answers = rm.ask(marker, TokenBag().steal(texts[4000:], sold).encode)
    for some in ([leaked], labels):
        with spent() as took:
            ranking = rm.trace(marker, answers, some)
        word = f"{len(some):,} place{'s' if len(some) > 1 else ''}"
        yield f"trace among {word}, s", f"{took.processor_seconds:.2f}"
        yield f"trace among {word}: peak memory more, MB", f"{took.megabytes:.0f}"
    named = [row.tenant for row in ranking if row.accused]
    yield "named", f"{', '.join(named) or 'nobody'} ({'the one that leaked' if named == [leaked] else 'not as it was'})"
    yield "its p, and corrected for all", f"{ranking[0].p_value:.1e}, {ranking[0].holm:.1e}"
    yield "the next corrected p", f"{ranking[1].holm:.2g}"


def main() -> None:
    command = Command(__doc__, PAGE, smoke={"tenants": 40, "few": 5, "draws": 50, "sold": 800})
    command.add_argument("--tenants", type=int, default=10_000)
    command.add_argument("--few", type=int, default=100, help="tenants whose adding is timed, first and last")
    command.add_argument("--draws", type=int, default=5000, help="vectors that are marked one by one")
    command.add_argument("--sold", type=int, default=5000, help="texts whose vectors the thief bought")
    command.add_argument("--only", choices=("database", "serving", "tracing"), help="one part")
    given = command.read()
    print(f"{conditions()} at the start\n", flush=True)
    lines: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        parts = {
            "database": lambda: database(folder, given.tenants, given.few),
            "serving": lambda: serving(folder, given.tenants, given.draws),
            "tracing": lambda: tracing(given.tenants, given.sold),
        }
        for part in [given.only] if given.only else parts:
            lines += parts[part]()
    print(markdown(["what", "processor time, memory, or result"], lines))
    print(f"\n{conditions()} at the end")


if __name__ == "__main__":
    main()
