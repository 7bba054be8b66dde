"""What stays the claimant's word: all that a bundle says and that nothing in it, or outside of it, could contradict.

Whoever checks a bundle reads this list beside the verdict. It is complete: a field that is not on it was recomputed and
compared, and changing it is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from regionmarker.evidence.bundle import COURT, MANIFEST, SIGNATURE, SIGNER, SUMMARY, TOKEN, Bundle
from regionmarker.evidence.check_report import is_ours, pictures_are_ours
from regionmarker.evidence.fields import (
    ANSWERS,
    OWN_PROBES,
    PROBES,
    REPORT,
    STATEMENT,
    STATEMENT_LOG,
    STATEMENT_TOKEN,
    TRANSCRIPT,
)
from regionmarker.evidence.score_forms import POOL, SCORES, VERDICT, form_of
from regionmarker.evidence.traces import TRACES
from regionmarker.keys.commitment import COMMITMENT


@dataclass(frozen=True)
class Word:
    """Something that is the claimant's word.

    Attributes
    ----------
    sentence
        What has to be believed.
    file, fields
        Where it stands; no fields are the whole file.
    """

    sentence: str
    file: str
    fields: tuple[str, ...] = ()

    def covers(self, file: str, field: str) -> bool:
        """Whether a field, such as ``power.caught`` or ``lists[0][3]``, is among what has to be believed."""
        within = (field == name or field.startswith((f"{name}.", f"{name}[")) for name in self.fields)
        return file == self.file and (not self.fields or any(within))

    def to_dict(self) -> dict[str, object]:
        return asdict(self)


def claimants_words(bundle: Bundle, *, signer: bool, authority: bool, log: bool, commitment: bool) -> list[Word]:
    """Return what is the claimant's word in a bundle.

    Parameters
    ----------
    signer, authority, log, commitment
        Whether whoever checks has named the signer, the time-stamping authority, the log and the commitment.
    """
    found = [*_always(bundle), *_of_level(bundle)]
    if not commitment:
        fields = ("commitment", "leaves", "opened") + (() if bundle.disclosure == COURT else ("key_id",))
        found.append(
            Word("that this commitment is the one that was published, and was published early", COMMITMENT, fields)
        )
    if not signer:
        found += [Word("who signed the bundle", name) for name in (SIGNER, SIGNATURE)]
    if TOKEN in bundle.files and not authority:
        found.append(Word("when the bundle was stamped, and by whom", TOKEN))
    if STATEMENT in bundle.files:
        found += _of_statement(bundle, authority=authority, log=log)
    return found


def _always(bundle: Bundle) -> Iterator[Word]:
    verdict = bundle.json(VERDICT)
    yield Word("that the answers are those of this suspect: ask it again (evidence replay)", VERDICT, ("suspect",))
    yield Word("when the answers were judged", VERDICT, ("created",))
    counted = "how often the key was used before"
    if verdict["look"] == 1 and verdict["judged_at"] * (1 + len(verdict["other_keys"])) == verdict["level"]:
        counted += ": looks were not counted at all"
    yield Word(counted, VERDICT, ("look", "judged_at"))
    if verdict.get("ledger") is not None:
        yield Word("what the ledger held before: ask for it (evidence ledger)", VERDICT, ("ledger",))
    yield Word("which other keys judged, and what they found", VERDICT, ("other_keys",))
    yield Word("what simulated copies said of the power", VERDICT, ("power",))
    yield Word("the public salt, unless a statement and a beacon show that it was not chosen", COMMITMENT, ("salt",))
    if not bundle.is_first_format:
        yield Word("which versions wrote the bundle", MANIFEST, ("written_by",))
    if bundle.is_first_format:
        yield Word("the cautions: bundles of the first format were written with others", VERDICT, ("notes",))
        yield Word("that the bundle is of the first format, which holds less", MANIFEST, ("format",))
    if not is_ours(bundle):
        yield Word("the page for people: another version wrote it, so it was not rendered again", REPORT)
    elif not pictures_are_ours(bundle):
        yield Word("the pictures of the page: another version drew them", REPORT)


def _of_level(bundle: Bundle) -> Iterator[Word]:
    verdict, disclosure = bundle.json(VERDICT), bundle.disclosure
    form, first = form_of(verdict), bundle.is_first_format
    if TRACES in bundle.files:
        own = () if disclosure == COURT else ("p_value", "total")
        yield Word(
            "which tenants were looked at, and what each scored" if own else "which tenants were looked at", TRACES
        )
    else:
        yield Word("that no tenant's mark was looked for: the bundle holds no traces", TRACES)
    if disclosure == SUMMARY:
        yield Word("that these scores are what the answers give", SCORES)
        digests = ("scores_digest", "answers_digest", *(() if first else ("inputs_digest", "axes")))
        yield Word(
            "what was asked, what was missing, and the digests of it",
            VERDICT,
            ("asked", "missing", "probes", *digests, *(() if first else ("unasked",))),
        )
        yield Word("the paper's statistics", VERDICT, ("paper",))
        yield Word("when the suspect was asked, and what it answered", TRANSCRIPT)
        return
    yield Word("what the suspect answered, and when: ask it again (evidence replay)", ANSWERS)
    if disclosure == COURT:
        if verdict["probes"] == "own":
            yield Word("the clean embeddings of the claimant's own probes", OWN_PROBES)
            yield Word("the digest of what was judged", VERDICT, ("inputs_digest",))
        return
    yield Word("the candidates, their scores, and which of them are the targets", POOL)
    yield Word("where the probes lie", PROBES)
    drawn = () if form.asks_candidates else ("shown", "weights")
    yield Word("that these scores are what the answers give", SCORES, ("paper_deciles", *drawn))
    yield Word(
        "which probes were asked, and the digest of what was judged",
        VERDICT,
        ("probes", *(() if first else ("inputs_digest", "axes", "unasked"))),
    )
    if not (form.asks_candidates and verdict["paper"]["target"] == "suspect"):
        yield Word("the paper's statistics: they need clean vectors", VERDICT, ("paper",))


def _of_statement(bundle: Bundle, *, authority: bool, log: bool) -> Iterator[Word]:
    if STATEMENT_LOG in bundle.files and not log:
        yield Word("that the log took the statement, and when", STATEMENT_LOG)
    if STATEMENT_TOKEN in bundle.files and not authority:
        yield Word("when the statement was stamped, and by whom", STATEMENT_TOKEN)
