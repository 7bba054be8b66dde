"""A statement: a commitment as it is published, with the beacon and the delay that will decide the salt.

Whoever chooses a salt can try thousands and keep the one that convicts. A statement takes the choice away: it is
signed, gets a time from others (a time stamp, or an entry on a transparency log, which counts before the stamp), and
the salt is the randomness of the beacon's first round at or after that time and the delay. All of that is checked
offline. What stays is a claimant who makes many statements and keeps one: only a log that shows all of a signer's
rules that out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from regionmarker.errors import InputError
from regionmarker.evidence.beacon import BEACONS, Beacon, randomness, read_round
from regionmarker.evidence.bundle import need, plain_json
from regionmarker.evidence.fields import (
    ROUND,
    STATEMENT,
    STATEMENT_LOG,
    STATEMENT_REQUEST,
    STATEMENT_SIGNATURE,
    STATEMENT_TOKEN,
    check_shape,
)
from regionmarker.evidence.signature import Signer, check_signature, pem_of_name
from regionmarker.evidence.timestamp import check_token, request_for
from regionmarker.evidence.transparency_log import LogEntry, check_key_spelling, check_log_entry
from regionmarker.files import atomic_path, read_bounded
from regionmarker.keys.commitment import SCHEMES, commit
from regionmarker.keys.key import Key
from regionmarker.verification.verdict import LOGGED_COMMITMENT, OWN_SALT, SEVERAL_COMMITMENTS

FORMAT = "regionmarker statement 1"
QUICKNET = "drand-quicknet"
DELAY = timedelta(hours=1)
LONGEST = 10 * 366 * 86_400  # seconds of a delay: beyond it there may be no beacon, and no date
FILES = (STATEMENT, STATEMENT_SIGNATURE, STATEMENT_TOKEN, STATEMENT_LOG, ROUND)
"""What a bundle takes over of a statement's folder."""


def statement_path(key_path: Path) -> Path:
    """Return the folder of a key's statement.

    Examples
    --------
    >>> statement_path(Path("provider.rmkey")).name
    'provider.rmkey.statement'
    """
    return key_path.with_name(key_path.name + ".statement")


def statement_of(key: Key, signer: Signer, *, beacon: str = QUICKNET, delay: timedelta = DELAY) -> bytes:
    """Return the statement that commits to a key and to how its salt will be found; TEST keys are refused."""
    if beacon not in BEACONS:
        raise InputError(f"the beacon {beacon!r} is not known here: {', '.join(BEACONS)}")
    if key.salt:
        raise InputError("this key has a salt already: a statement has to come before it")
    if delay < timedelta(minutes=1):
        raise InputError("the delay must be at least a minute, so that nobody knows the round when time is stamped")
    if delay.total_seconds() > LONGEST:
        raise InputError("the delay must be at most ten years: nobody knows which beacons there will be")
    return plain_json(
        {
            "format": FORMAT,
            "key_id": key.id,
            "scheme": SCHEMES[key.mark.kind],
            "commitment": commit(key),
            "signer": signer.name,
            "log_key": signer.log_key_pem.decode(),
            "beacon": beacon,
            "delay": int(delay.total_seconds()),
        }
    )


def write_statement(folder: Path, key: Key, signer: Signer, *, delay: timedelta = DELAY) -> Path:
    """Write statement, signature and the request for a time stamp into a new folder."""
    if folder.exists():
        raise InputError(f"{folder} exists already: a statement is made once, and never replaced")
    content = statement_of(key, signer, delay=delay)
    files = {STATEMENT: content, STATEMENT_SIGNATURE: signer.sign(content), STATEMENT_REQUEST: request_for(content)}
    folder.mkdir()
    for name, data in files.items():
        add_file(folder, name, data)
    return folder


def add_file(folder: Path, name: str, content: bytes) -> None:
    """Write a file into a statement's folder, whole or not at all."""
    with atomic_path(folder / name) as temporary:
        temporary.write_bytes(content)


def read_statement(folder: Path) -> dict[str, bytes]:
    """Return the files of a statement's folder that belong into a bundle; none where there is no folder."""
    if not folder.is_dir():
        return {}
    found = {name: read_bounded(folder / name) for name in FILES if (folder / name).is_file()}
    need(STATEMENT in found, f"{folder} holds no {STATEMENT}")
    if ROUND in found:  # as the beacon's servers gave it: a bundle keeps what is checked
        number, signature = read_round(found[ROUND], folder / ROUND)
        found[ROUND] = plain_json({"round": number, "signature": signature.hex()})
    return found


@dataclass(frozen=True)
class Draw:
    """What a statement shows of the draw of the targets.

    Attributes
    ----------
    time
        When the statement was there, by the log or by the authority.
    entry
        Its entry on a log.
    is_trusted
        Whether the log or the authority is one that whoever checks has named.
    round
        The round that decides the salt.
    """

    time: datetime
    entry: LogEntry | None
    is_trusted: bool
    round: int

    @property
    def claimed(self) -> str:
        """The caution that the claimant may write: it holds as far as the authority, or the log, is trusted."""
        return SEVERAL_COMMITMENTS if self.entry is None else LOGGED_COMMITMENT

    @property
    def caution(self) -> str:
        """The caution that whoever checks has to read."""
        return self.claimed if self.is_trusted else OWN_SALT


def read_fields(content: bytes) -> dict[str, Any]:
    """Return the fields of a statement, or refuse what is none."""
    document: dict[str, Any] = check_shape(STATEMENT, content)
    need(document["format"] == FORMAT, f"{STATEMENT} has the format {document['format']!r}, not {FORMAT!r}")
    need(document["beacon"] in BEACONS, f"{STATEMENT}: the beacon {document['beacon']!r} is not known here")
    need(document["delay"] >= 60, f"{STATEMENT}: a delay below a minute shows nothing")
    need(document["delay"] <= LONGEST, f"{STATEMENT}: a delay of more than ten years is none")
    return document


def stated_time(
    files: Mapping[str, bytes], *, authority: Sequence[Path] = (), log_key: bytes | None = None
) -> tuple[datetime, LogEntry | None, bool]:
    """Return when a statement was there, its entry on a log if it has one, and whether that is to be trusted.

    The log's time counts before the time stamp's: stamps can be had as often as one likes, and nobody sees how often;
    the log shows every entry of its signer, also those of one statement.
    """
    content = files[STATEMENT]
    document = read_fields(content)
    need(STATEMENT_SIGNATURE in files, f"{STATEMENT_SIGNATURE} is missing: the statement is not signed")
    check_signature(
        pem_of_name(document["signer"]), files[STATEMENT_SIGNATURE], content, f"{STATEMENT} is not signed by its signer"
    )
    check_key_spelling(document["log_key"], f"{STATEMENT}'s log_key")
    stamped = None
    if STATEMENT_TOKEN in files:
        token = check_token(files[STATEMENT_TOKEN], content, authority, name=STATEMENT_TOKEN, what=STATEMENT)
        stamped = datetime.fromisoformat(token)
    if STATEMENT_LOG in files:
        entry = check_log_entry(files[STATEMENT_LOG], content, document["log_key"].encode(), log_key)
        return entry.time, entry, entry.is_trusted
    if stamped is None:
        raise InputError(f"{STATEMENT} has neither a time stamp nor an entry on a log, so it has no time")
    return stamped, None, bool(authority)


def wanted_round(document: Mapping[str, Any], time: datetime) -> tuple[Beacon, int]:
    """Return the beacon, and the first round at or after the time of the statement and its delay."""
    beacon = BEACONS[document["beacon"]]
    return beacon, beacon.first_round_from(time.astimezone(UTC).timestamp() + document["delay"])


def check_draw(
    files: Mapping[str, bytes],
    commitment: Mapping[str, Any],
    signer: str | None,
    *,
    authority: Sequence[Path] = (),
    log_key: bytes | None = None,
) -> Draw:
    """Check that the salt beside a commitment is the round that its statement asks for, or complain.

    Parameters
    ----------
    files
        Those of a statement, by name.
    commitment
        What ``commitment.json`` holds.
    signer
        Who signed the bundle; None where nobody did.
    """
    document = read_fields(files[STATEMENT])
    for name in ("key_id", "scheme", "commitment"):
        need(document[name] == commitment[name], f"{STATEMENT}: its {name} is not the bundle's")
    need(signer in (None, document["signer"]), f"{STATEMENT} has another signer than the bundle")
    time, entry, is_trusted = stated_time(files, authority=authority, log_key=log_key)
    beacon, wanted = wanted_round(document, time)
    need(ROUND in files, f"{ROUND} is missing: the statement asks for round {wanted} of {document['beacon']}")
    number, signature = read_round(files[ROUND], ROUND)
    need(number == wanted, f"{ROUND} is round {number}, but the first one after time and delay is {wanted}")
    salt = randomness(beacon, number, signature)
    need(salt.hex() == commitment["salt"], f"the salt is not the randomness of round {number} of {document['beacon']}")
    return Draw(time, entry, is_trusted, number)
