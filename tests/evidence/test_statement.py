"""A statement: signed, timed by others, and the salt is the beacon's and nobody's choice."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from tests.evidence.test_beacon import QUICKNET, SIGNATURE
from tests.evidence.test_beacon import ROUND as NUMBER
from tests.support.evidence_case import lie
from tests.support.fake_log import URL, FakeLog

from regionmarker.errors import InputError
from regionmarker.evidence import Signer, check_evidence, save_evidence
from regionmarker.evidence.beacon import randomness
from regionmarker.evidence.bundle import plain_json
from regionmarker.evidence.fields import (
    ROUND,
    STATEMENT,
    STATEMENT_LOG,
    STATEMENT_REQUEST,
    STATEMENT_SIGNATURE,
    STATEMENT_TOKEN,
)
from regionmarker.evidence.statement import (
    add_file,
    check_draw,
    read_fields,
    read_statement,
    stated_time,
    statement_of,
    statement_path,
    wanted_round,
    write_statement,
)
from regionmarker.evidence.transparency_log import put_on_log
from regionmarker.keys.commitment import commit
from regionmarker.verification.judging import judge
from regionmarker.verification.verdict import LOGGED_COMMITMENT, OWN_SALT, SEVERAL_COMMITMENTS

SALT = randomness(QUICKNET, NUMBER, SIGNATURE)
TIME = QUICKNET.time_of(NUMBER) - 3600  # an hour before the round: the delay


@pytest.fixture(scope="module")
def log() -> FakeLog:
    return FakeLog(time=TIME, others=3)


@pytest.fixture(scope="module")
def whole(case_key, signer, log, tmp_path_factory) -> dict[str, bytes]:
    """A statement on a log, with the round that it asks for."""
    folder = write_statement(tmp_path_factory.mktemp("key") / "k.statement", case_key, signer)
    add_file(folder, STATEMENT_LOG, put_on_log((folder / STATEMENT).read_bytes(), signer, URL, transport=log.transport))
    served = {"round": NUMBER, "signature": SIGNATURE.hex(), "randomness": "not needed"}
    add_file(folder, ROUND, json.dumps(served).encode())
    return read_statement(folder)


@pytest.fixture(scope="module")
def commitment(case_key, whole) -> dict[str, str]:
    document = read_fields(whole[STATEMENT])
    return {**{name: document[name] for name in ("key_id", "scheme", "commitment")}, "salt": SALT.hex()}


def test_a_statement_commits_to_a_key_and_names_who_decides_the_salt(case_key, signer):
    document = read_fields(statement_of(case_key, signer, delay=timedelta(hours=2)))
    assert document["commitment"] == commit(case_key)
    assert (document["beacon"], document["delay"], document["signer"]) == ("drand-quicknet", 7200, signer.name)
    assert document["log_key"].encode() == signer.log_key_pem


def test_a_statement_is_written_once_and_read_again(case_key, signer, tmp_path):
    folder = write_statement(statement_path(tmp_path / "provider.rmkey"), case_key, signer)
    assert sorted(path.name for path in folder.iterdir()) == sorted([STATEMENT, STATEMENT_SIGNATURE, STATEMENT_REQUEST])
    assert set(read_statement(folder)) == {STATEMENT, STATEMENT_SIGNATURE}  # a request shows nothing
    with pytest.raises(InputError, match="exists already: a statement is made once, and never replaced"):
        write_statement(folder, case_key, signer)
    (folder / STATEMENT).unlink()
    with pytest.raises(InputError, match=r"holds no statement\.json"):
        read_statement(folder)
    assert read_statement(tmp_path / "nothing") == {}


def test_what_could_not_bind_is_not_stated(case_key, signer):
    with pytest.raises(InputError, match="has a salt already: a statement has to come before it"):
        statement_of(case_key.with_salt(b"chosen by myself"), signer)
    with pytest.raises(InputError, match="at least a minute"):
        statement_of(case_key, signer, delay=timedelta(seconds=59))
    with pytest.raises(InputError, match="the beacon 'dice' is not known here: drand-quicknet"):
        statement_of(case_key, signer, beacon="dice")


def test_the_salt_is_the_first_round_after_time_and_delay(whole, commitment, log, signer):
    draw = check_draw(whole, commitment, signer.name, log_key=log.public_pem)
    assert (draw.round, draw.time.timestamp(), draw.is_trusted) == (NUMBER, TIME, True)
    assert draw.caution == draw.claimed == LOGGED_COMMITMENT


def test_a_log_that_nobody_named_does_not_remove_the_caution(whole, commitment, signer):
    draw = check_draw(whole, commitment, signer.name)
    assert not draw.is_trusted
    assert (draw.claimed, draw.caution) == (LOGGED_COMMITMENT, OWN_SALT)


def test_a_second_later_is_another_round(whole):
    document = read_fields(whole[STATEMENT])
    for seconds, number in ((-3, NUMBER - 1), (-1, NUMBER), (0, NUMBER), (1, NUMBER + 1)):
        assert wanted_round(document, datetime.fromtimestamp(TIME + seconds, UTC)) == (QUICKNET, number)


def test_every_flipped_byte_of_statement_and_signature_is_found(whole, commitment, log, signer):
    for name in (STATEMENT, STATEMENT_SIGNATURE):
        for place in range(0, len(whole[name]), 5):
            wrong = bytearray(whole[name])
            wrong[place] ^= 1
            with pytest.raises(InputError):
                check_draw({**whole, name: bytes(wrong)}, commitment, signer.name, log_key=log.public_pem)


def test_another_signer_is_refused(whole, commitment, log, signer):
    stranger = Signer.generate()
    with pytest.raises(InputError, match="has another signer than the bundle"):
        check_draw(whole, commitment, stranger.name, log_key=log.public_pem)
    signed = {**whole, STATEMENT_SIGNATURE: stranger.sign(whole[STATEMENT])}
    with pytest.raises(InputError, match=r"statement\.json is not signed by its signer"):
        check_draw(signed, commitment, signer.name, log_key=log.public_pem)
    unsigned = {name: content for name, content in whole.items() if name != STATEMENT_SIGNATURE}
    with pytest.raises(InputError, match="the statement is not signed"):
        stated_time(unsigned)


def resigned(whole: dict[str, bytes], signer: Signer, log: FakeLog, **changed: object) -> dict[str, bytes]:
    """The statement as a claimant would have written it: signed, and put on the log at the same second."""
    content = plain_json({**json.loads(whole[STATEMENT]), **changed})
    entry = put_on_log(content, signer, URL, transport=log.transport)
    return {**whole, STATEMENT: content, STATEMENT_SIGNATURE: signer.sign(content), STATEMENT_LOG: entry}


LIES = {
    "another delay": ({"delay": 3603}, rf"is round {NUMBER}, but the first one after time and delay is {NUMBER + 1}"),
    "no delay": ({"delay": 0}, "a delay below a minute shows nothing"),
    "another beacon": ({"beacon": "dice"}, "the beacon 'dice' is not known here"),
    "another commitment": ({"commitment": "ab" * 32}, "its commitment is not the bundle's"),
    "another key": ({"key_id": "ab" * 8}, "its key_id is not the bundle's"),
    "another format": ({"format": "regionmarker statement 9"}, "has the format 'regionmarker statement 9'"),
    "a field more": ({"confession": "x"}, "confession is a field of no bundle"),
    "a number for a text": ({"delay": "3600"}, "is not of its kind"),
}


@pytest.mark.parametrize("what", LIES)
def test_lies_that_are_signed_again_are_found(whole, commitment, signer, log, what):
    changed, complaint = LIES[what]
    forged = resigned(whole, signer, log, **changed)
    with pytest.raises(InputError, match=complaint):
        check_draw(forged, commitment, signer.name, log_key=log.public_pem)


def test_a_log_key_is_spelled_in_one_way(whole, commitment, signer, log):
    for spelled in (signer.log_key_pem.decode() + "0", "0" + signer.log_key_pem.decode(), "no key"):
        forged = resigned(whole, signer, log, log_key=spelled)
        with pytest.raises(InputError, match=r"not spelled as a public key|is not a public key in PEM"):
            check_draw(forged, commitment, signer.name, log_key=log.public_pem)


def test_only_the_round_asked_for_gives_the_salt(whole, commitment, log, signer):
    def refused(complaint, files=whole, shown=commitment):
        with pytest.raises(InputError, match=complaint):
            check_draw(files, shown, signer.name, log_key=log.public_pem)

    refused("the salt is not the randomness of round", shown={**commitment, "salt": "00" * 32})
    refused("is missing: the statement asks for round", {name: whole[name] for name in whole if name != ROUND})
    other = plain_json({"round": NUMBER - 1, "signature": SIGNATURE.hex()})
    refused(f"is round {NUMBER - 1}, but the first one", {**whole, ROUND: other})
    forged = plain_json({"round": NUMBER, "signature": "c0" + 47 * "00"})
    refused("is not signed by the beacon", {**whole, ROUND: forged})
    refused("is not a round of a beacon", {**whole, ROUND: b"[" * 90_000})


def test_a_statement_without_a_time_shows_nothing(whole):
    with pytest.raises(InputError, match="neither a time stamp nor an entry on a log, so it has no time"):
        stated_time({name: whole[name] for name in (STATEMENT, STATEMENT_SIGNATURE)})


@pytest.fixture(scope="module")
def bundle(case_key, answer_as, whole, signer, tmp_path_factory):
    """The case, judged with the beacon's salt."""
    verdict = judge(case_key.with_salt(SALT), answer_as(), power=False)
    place = tmp_path_factory.mktemp("salted") / "bundle"
    return save_evidence(verdict, place, level="court", signer=signer, statement=whole)


def test_a_bundle_with_a_statement_has_the_better_caution_where_the_log_is_named(bundle, log, signer):
    trusting = check_evidence(bundle, signer=signer.public_pem, log_key=log.public_pem)
    assert trusting.failure is None
    found = {check.name: check for check in trusting.checks}["draw of the salt"]
    assert found.status == "ok"
    assert f"the salt is round {NUMBER}, the first after entry" in found.detail
    assert LOGGED_COMMITMENT in trusting.cautions
    assert OWN_SALT not in trusting.cautions
    wary = check_evidence(bundle)
    assert OWN_SALT in wary.cautions
    assert {check.name: check.status for check in wary.checks}["draw of the salt"] == "unexpected"
    assert "not the log's own" in str(check_evidence(bundle, log_key=FakeLog().public_pem).failure)


def test_a_salt_of_ones_own_choice_keeps_the_caution(case_key, answer_as, log, signer, whole, tmp_path):
    verdict = judge(case_key.with_salt(b"my number is 2831"), answer_as(), power=False)
    chosen = save_evidence(verdict, tmp_path / "chosen", signer=signer)
    assert OWN_SALT in check_evidence(chosen).cautions
    assert "nothing is on a log" in str(check_evidence(chosen, log_key=log.public_pem).failure)
    with pytest.raises(InputError, match="the salt is not the randomness of round"):
        save_evidence(verdict, tmp_path / "dressed up", signer=signer, statement=whole)


def test_a_caution_taken_out_of_a_salted_bundle_is_found(case_key, answer_as, tmp_path):
    chosen = save_evidence(
        judge(case_key.with_salt(b"chosen by myself"), answer_as(), power=False), tmp_path / "chosen"
    )
    assert "verdict.json" in str(lie(chosen, "verdict.json", lambda verdict: verdict["notes"].remove(OWN_SALT)))


@pytest.fixture
def stamped(whole, monkeypatch):
    """The statement with a time stamp instead of an entry on a log; what an authority signs is tested with openssl."""

    def token_of(token, content, roots=(), *, name, what):
        assert (token, content, name, what) == (b"token", whole[STATEMENT], STATEMENT_TOKEN, STATEMENT)
        return datetime.fromtimestamp(TIME, UTC).isoformat()

    monkeypatch.setattr("regionmarker.evidence.statement.check_token", token_of)
    return {**{name: whole[name] for name in whole if name != STATEMENT_LOG}, STATEMENT_TOKEN: b"token"}


def test_several_commitments_of_one_signer_can_be_stamped_and_the_caution_says_so(
    stamped, commitment, case_key, answer_as, signer, log, tmp_path
):
    authority = (tmp_path / "root.pem",)
    draw = check_draw(stamped, commitment, signer.name, authority=authority)
    assert (draw.entry, draw.is_trusted, draw.round) == (None, True, NUMBER)
    assert draw.caution == draw.claimed == SEVERAL_COMMITMENTS
    assert check_draw(stamped, commitment, signer.name).caution == OWN_SALT  # nobody has named the authority
    verdict = judge(case_key.with_salt(SALT), answer_as(), power=False)
    place = save_evidence(verdict, tmp_path / "stamped", signer=signer, statement=stamped)
    wary = check_evidence(place)
    assert wary.failure is None
    assert OWN_SALT in wary.cautions
    assert "a time stamp alone is no log" in str(check_evidence(place, log_key=log.public_pem).failure)
    assert SEVERAL_COMMITMENTS in json.loads((place / "verdict.json").read_text())["notes"]
