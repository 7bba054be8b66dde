"""What can be checked with the opened key: everything, again from the committed bytes and the suspect's answers.

Other processors and libraries round differently, so the scores are compared within a tolerance; the p-value is that of
the stored scores, whose digest was fixed before a target was looked up, and the one from scratch is printed beside it.
"""

from __future__ import annotations

import numpy as np

from regionmarker.corpus import TextSet
from regionmarker.evidence.bundle import COURT, Bundle, need
from regionmarker.evidence.check_expert import stored_answers, stored_scores
from regionmarker.evidence.check_summary import CheckRow
from regionmarker.evidence.disclosure import OPENED, OWN_PROBES, POOL, PROBES, TRACES, VERDICT
from regionmarker.keys.commitment import COMMITMENT, OpenedParts, blinding, commit
from regionmarker.keys.key import Key
from regionmarker.marks.regions import draw_regions
from regionmarker.verification.decoy_test import DecoyTest
from regionmarker.verification.examination import Examination
from regionmarker.verification.tracing import trace

TOLERANCE = 0.01
"""How far scores may differ between processors, in standard deviations over the pool; measured: 1e-5."""


def _opened_key(bundle: Bundle) -> Key:
    """Make the key again from the opened commitment."""
    document = bundle.json(COMMITMENT)
    opened = OpenedParts.read(document, bundle.files, OPENED[COURT])
    key = opened.key(bytes.fromhex(document["salt"]))
    for part, blind in opened.blindings.items():
        need(
            blind == blinding(key, part), f"{COMMITMENT}: the blinding of {part!r} does not come from the master secret"
        )
    return key


def _key(bundle: Bundle) -> str:
    key, named = _opened_key(bundle), bundle.json(VERDICT)["key_id"]
    need(
        commit(key) == bundle.json(COMMITMENT)["commitment"], f"{COMMITMENT}: the opened parts make another commitment"
    )
    need(key.id == named, f"{COMMITMENT}: the master secret is not that of key {named}")
    return f"the opened parts make key {key.id} and its commitment"


def _draw(bundle: Bundle) -> str:
    """Regions and targets are what the master secret draws: nobody picked them."""
    key = _opened_key(bundle)
    mark = key.mark
    drawn = draw_regions(key.master, mark.shares, len(mark.regions), len(mark.tenant_regions))
    need(drawn == (mark.regions, mark.tenant_regions), f"{COMMITMENT}: the regions are not those that the master draws")
    targets = stored_scores(bundle)[1]
    need(key.provider_targets() == targets, f"{POOL}: the targets are not those that the master and the salt draw")
    texts = [row["text"] for row in bundle.lines(POOL)]
    need(texts == list(key.pool.texts), f"{POOL} does not hold the committed pool")
    return "regions and targets are drawn from the master secret" + (" and the salt" if key.salt else "; no salt")


def _from_scratch(bundle: Bundle) -> str:
    key = _opened_key(bundle)
    examination = Examination.of(key, stored_answers(bundle), _own_probes(bundle))
    probes, regions = examination.questions.probes, examination.questions.regions
    groups = {region: number for number, region in enumerate(key.mark.regions, start=1)}
    found = {text: groups.get(int(region), 0) for text, region in zip(probes.texts, regions, strict=True)}
    stated = {row["text"]: row["region"] for row in bundle.lines(PROBES)}
    need(found == stated, f"{PROBES}: the groups are not those of the committed hyperplanes")
    z, again = stored_scores(bundle)[0], examination.scores()
    need(bool((np.isnan(z) == np.isnan(again)).all()), f"{POOL}: other answers are missing than the scores say")
    apart = float(np.nanmax(np.abs(z - again)))
    need(apart <= TOLERANCE, f"{POOL}: the scores differ by {apart:.2g} from those that the answers give")
    p_value = DecoyTest(again).p_value(key.provider_targets())
    return f"scores agree within {apart:.1g}; p from scratch is {p_value:g}"


def _own_probes(bundle: Bundle) -> TextSet | None:
    if bundle.json(VERDICT)["probes"] != "own":
        return None
    clean = stored_answers(bundle, OWN_PROBES)
    return TextSet(clean.texts, clean.vectors)


def _traces(bundle: Bundle) -> str:
    stated = bundle.json(TRACES)
    names = [row["tenant"] for row in stated]
    ranking = trace(_opened_key(bundle), stored_answers(bundle), names, probes=_own_probes(bundle))
    found = {row.tenant: row.p_value for row in ranking}
    for row in stated:
        # Rounding moves scores across steps, so tenants' p-values agree in size, not in every digit.
        same = np.isclose(np.log(row["p_value"]), np.log(found[row["tenant"]]), atol=0.1)
        need(
            bool(same),
            f"{TRACES}: {row['tenant']} has p = {row['p_value']:g}, but the answers give {found[row['tenant']]:g}",
        )
    return f"{len(stated)} tenants' p-values follow from the answers"


CHECKS = (
    CheckRow("opened key", COMMITMENT, _key, needed=True),
    CheckRow("draw", COMMITMENT, _draw),
    CheckRow("from scratch", POOL, _from_scratch),
    CheckRow("traces", TRACES, _traces, optional=True),
)
"""What a court checks besides what an expert can."""
