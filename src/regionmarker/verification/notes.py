"""What a reader of a verdict has to know besides its numbers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from regionmarker.keys.key import Key
from regionmarker.verification.answers import Answers
from regionmarker.verification.power import ENOUGH, Power

HONEST_DRAW = (
    "no public salt was mixed into the targets after a commitment: the p-value assumes that they were drawn honestly"
)
_FRESH = timedelta(days=1)


def notes(key: Key, answers: Answers, power: Power | None, judged: datetime, *, other_keys: int = 0) -> tuple[str, ...]:
    """Return the notes of a verdict, each a sentence without its full stop."""
    found = []
    if key.test:
        found.append("this is a TEST key: anyone can make it again, so this verdict proves nothing to others")
    if not key.salt:
        found.append(HONEST_DRAW)
    if other_keys:
        found.append(
            f"{other_keys + 1} keys judged the {len(answers)} answers, and this verdict is that of the key with the "
            "strongest finding, corrected for their number (Holm); what would have been caught is said of it alone"
        )
    if answers.missing:
        found.append(
            f"{answers.missing} of {len(answers)} texts have no answer: pool texts among them are left out of the "
            "pool, which is exact if the silence is the suspect's own; whoever doubts that asks them again"
        )
    dates = _dates(answers, judged)
    if dates:
        found.append(dates)
    if power is not None and not power.enough:
        found.append(f"this run would have missed copies of fidelity {ENOUGH} too often: ask more texts")
    return tuple(found)


def _dates(answers: Answers, judged: datetime) -> str | None:
    """Say when the answers were given, where that was not just now."""
    times = sorted(_utc(exchange.time) for exchange in answers.exchanges)
    if not times or judged - times[0] <= _FRESH:
        return None
    first, last = times[0].date().isoformat(), times[-1].date().isoformat()
    when = f"of {first}" if first == last else f"given between {first} and {last}"
    return f"the answers are {when}: the suspect may have changed since then"


def _utc(time: str) -> datetime:
    found = datetime.fromisoformat(time)
    return found if found.tzinfo else found.replace(tzinfo=UTC)
