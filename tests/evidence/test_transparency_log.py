"""A transparency log: what stands there is proved offline, and what does not is refused."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime

import httpx2
import pytest
from tests.support.fake_log import URL, FakeLog

from regionmarker.errors import InputError, OutsideError
from regionmarker.evidence import Signer
from regionmarker.evidence.bundle import plain_json
from regionmarker.evidence.transparency_log import check_log_entry, proposed_entry, put_on_log

CONTENT = b"a statement\n"


@pytest.fixture(scope="module")
def log() -> FakeLog:
    return FakeLog(others=5)


@pytest.fixture(scope="module")
def entry(log, signer) -> bytes:
    return put_on_log(CONTENT, signer, URL, transport=log.transport)


def test_an_entry_is_asked_for_once_and_checked_offline(log, entry, signer):
    found = check_log_entry(entry, CONTENT, signer.log_key_pem, log.public_pem)
    assert (found.index, found.log, found.is_trusted) == (1005, log.name, True)
    assert found.time == datetime.fromtimestamp(log.time, UTC)
    assert not check_log_entry(entry, CONTENT, signer.log_key_pem).is_trusted  # nobody has named the log


def test_the_document_itself_is_not_sent(log, entry):
    sent = log.asked[0].content
    assert CONTENT not in sent
    assert base64.b64encode(CONTENT) not in sent
    assert set(json.loads(sent)["spec"]["data"]) == {"hash"}


def test_what_is_there_already_is_fetched(log, entry, signer):
    before = len(log.bodies)
    again = put_on_log(CONTENT, signer, URL, transport=log.transport)
    assert len(log.bodies) == before
    assert check_log_entry(again, CONTENT, signer.log_key_pem, log.public_pem).index == 1005


@pytest.mark.parametrize("size", range(1, 18))
def test_every_leaf_of_every_tree_is_proved(size, signer):
    """The proof is walked as RFC 9162 says; the fake log builds its trees from RFC 6962's recursive definition."""
    log = FakeLog(others=size - 1)
    body = json.dumps(proposed_entry(CONTENT, signer), sort_keys=True, separators=(",", ":")).encode()
    for place in range(size):
        log.bodies = [b"another %d" % number for number in range(size)]
        log.bodies[place] = body
        file = plain_json(log.entry(place))
        assert check_log_entry(file, CONTENT, signer.log_key_pem, log.public_pem).index == 1000 + place


def test_an_entry_of_something_else_is_refused(log, entry, signer):
    with pytest.raises(InputError, match="of something else than this document"):
        check_log_entry(entry, CONTENT + b"!", signer.log_key_pem, log.public_pem)


def test_an_entry_under_a_foreign_key_is_refused(log, entry, signer):
    with pytest.raises(InputError, match="stands under another key than the signer's log key"):
        check_log_entry(entry, CONTENT, Signer.generate().log_key_pem, log.public_pem)
    # A stranger may put anyone's digest there under a key that is not the stranger's, but cannot sign for it.
    thief = proposed_entry(CONTENT, Signer.generate())
    thief["spec"]["signature"]["publicKey"]["content"] = base64.b64encode(signer.log_key_pem).decode()
    other = FakeLog()
    other.bodies.append(json.dumps(thief).encode())
    with pytest.raises(InputError, match="is not signed by the signer's log key"):
        check_log_entry(plain_json(other.entry(0)), CONTENT, signer.log_key_pem, other.public_pem)


def test_a_log_that_nobody_named_is_refused(entry, signer):
    with pytest.raises(InputError, match="the checkpoint is not the log's own"):
        check_log_entry(entry, CONTENT, signer.log_key_pem, FakeLog().public_pem)
    for key in (b"", b"nonsense"):
        with pytest.raises(InputError, match="not a public key in PEM"):
            check_log_entry(entry, CONTENT, signer.log_key_pem, key)


def _proof(change):
    return lambda document: change(document["verification"]["inclusionProof"])


LIES = {
    "another time": (lambda d: d.update(integratedTime=d["integratedTime"] - 9000), "did not sign place and time"),
    "another place in the log": (lambda d: d.update(logIndex=3), "did not sign place and time"),
    "another log": (lambda d: d.update(logID="ab" * 32), "did not sign place and time"),
    "a sibling changed": (_proof(lambda p: p["hashes"].__setitem__(0, "00" * 32)), "does not lead to the root"),
    "a sibling left out": (_proof(lambda p: p["hashes"].pop()), "does not lead to the root"),
    "a sibling more": (_proof(lambda p: p["hashes"].append("00" * 32)), "is too long"),
    "another place in the tree": (_proof(lambda p: p.update(logIndex=1)), "does not lead to the root"),
    "a place outside of the tree": (_proof(lambda p: p.update(logIndex=99)), "outside of its tree"),
    "a place before the tree": (_proof(lambda p: p.update(logIndex=-1)), "outside of its tree"),
    "another root": (_proof(lambda p: p.update(rootHash="00" * 32)), "does not lead to the root"),
    "another size": (_proof(lambda p: p.update(treeSize=8)), "does not lead to the root|another tree"),
    "no whole proof": (_proof(lambda p: p.pop("checkpoint")), "no whole proof of inclusion"),
    "a field more": (lambda d: d.update(confession=1), "is not spelled as one"),
    "a checkpoint of another tree": (
        _proof(lambda p: p.update(checkpoint=p["checkpoint"].replace("\n6\n", "\n7\n"))),
        "the checkpoint is of another tree",
    ),
    "a checkpoint that nobody signed": (
        _proof(lambda p: p.update(checkpoint=p["checkpoint"].partition("\N{EM DASH}")[0])),
        "the checkpoint is not the log's own",
    ),
    "a checkpoint of another origin": (
        _proof(lambda p: p.update(checkpoint="x" + p["checkpoint"])),
        "the checkpoint is not the log's own",
    ),
    "no base64": (lambda d: d.update(body="?"), "the log entry is damaged"),
    "no number": (lambda d: d.update(logIndex=None), "did not sign place and time"),
    "no proof": (lambda d: d.update(verification=7), "the log entry is damaged"),
}


@pytest.mark.parametrize("what", LIES)
def test_lies_in_an_entry_are_found(log, signer, what):
    fresh = FakeLog(others=5)
    document = json.loads(put_on_log(CONTENT, signer, URL, transport=fresh.transport))
    change, complaint = LIES[what]
    change(document)
    with pytest.raises(InputError, match=complaint):
        check_log_entry(plain_json(document), CONTENT, signer.log_key_pem, fresh.public_pem)


def test_every_flipped_byte_of_an_entry_is_found(log, entry, signer):
    for place in range(len(entry)):
        wrong = entry[:place] + bytes([entry[place] ^ 1]) + entry[place + 1 :]
        with pytest.raises(InputError):
            check_log_entry(wrong, CONTENT, signer.log_key_pem, log.public_pem)


@pytest.mark.parametrize("file", [b"", b"[]", b"\xff\xfe", b"[" * 90_000, b'{"body":' * 90_000])
def test_what_is_not_an_entry_is_refused_in_a_sentence(file, signer):
    with pytest.raises(InputError, match="the log entry is not JSON as a log writes it"):
        check_log_entry(file, CONTENT, signer.log_key_pem)


def test_nested_json_in_the_body_is_refused_in_a_sentence(signer):
    log = FakeLog()
    log.bodies.append(b"[" * 90_000)
    with pytest.raises(InputError, match="the log entry is not JSON as a log writes it"):
        check_log_entry(plain_json(log.entry(0)), CONTENT, signer.log_key_pem, log.public_pem)


def answering(*responses: httpx2.Response) -> httpx2.MockTransport:
    waiting = iter(responses)
    return httpx2.MockTransport(lambda request: next(waiting))


@pytest.mark.parametrize(
    ("response", "error", "complaint"),
    [
        (httpx2.Response(500, text="\x1b[31mboom\nboom"), OutsideError, r"answered 500: \\x1b\[31mboom boom"),
        (httpx2.Response(409), InputError, "says that the entry is there already, but not where"),
        (httpx2.Response(201, text="[" * 90_000), InputError, "is not JSON as a log writes it"),
        (httpx2.Response(201, json={}), InputError, "something else than one entry"),
        (httpx2.Response(201, json={"a": {}, "b": {}}), InputError, "something else than one entry"),
        (httpx2.Response(201, json={"a": {}}), InputError, "is not spelled as one"),
        (httpx2.Response(201, content=b" " * (1 << 20) + b"{}"), InputError, "which is no entry"),
    ],
)
def test_a_log_that_answers_nonsense_is_named(response, error, complaint, signer):
    with pytest.raises(error, match=complaint) as found:
        put_on_log(CONTENT, signer, URL, transport=answering(response))
    assert "\x1b" not in str(found.value)


def test_an_answer_without_end_is_not_read_to_its_end(signer):
    read = []

    def endless():
        for _ in range(1000):
            read.append(1 << 16)
            yield b" " * (1 << 16)

    transport = httpx2.MockTransport(lambda request: httpx2.Response(201, content=endless()))
    with pytest.raises(InputError, match="which is no entry"):
        put_on_log(CONTENT, signer, URL, transport=transport)
    assert sum(read) <= (1 << 20) + (1 << 17)


def test_a_log_that_cannot_be_reached_is_named(signer):
    def refuse(request):
        raise httpx2.ConnectError("refused")

    with pytest.raises(OutsideError, match=r"cannot reach the log at https://log\.example: refused"):
        put_on_log(CONTENT, signer, URL, transport=httpx2.MockTransport(refuse))


def test_a_log_that_proves_another_document_is_not_believed(signer):
    log = FakeLog()
    put_on_log(b"another document", signer, URL, transport=log.transport)
    answer = httpx2.Response(201, json={"id": log.entry(0)})
    with pytest.raises(InputError, match="of something else than this document"):
        put_on_log(CONTENT, signer, URL, transport=answering(answer))
