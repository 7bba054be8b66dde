"""Signatures and time stamps that other tools make and check."""

from __future__ import annotations

import os
import subprocess

import pytest

from regionmarker.errors import InputError, KeyFileError
from regionmarker.evidence import Signer, check_evidence
from regionmarker.evidence.bundle import read_bundle
from regionmarker.evidence.signature import check_signature, signer_path
from regionmarker.evidence.timestamp import attach_response, check_token, write_request

TSA = """
[tsa]
default_tsa = authority
[authority]
serial = serial
crypto_device = builtin
signer_cert = tsa.pem
signer_key = tsa.key
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
accuracy = secs:1
ordering = no
tsa_name = no
ess_cert_id_chain = no
ess_cert_id_alg = sha256
"""


def test_openssl_agrees(saved, program):
    command = "pkeyutl -verify -pubin -inkey signer.pem -rawin -in manifest.json -sigfile manifest.sig"
    done = subprocess.run(
        [program("openssl"), *command.split()], cwd=saved["summary"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Verified Successfully" in done.stdout


def test_the_key_beside_a_key_is_made_once_and_is_the_owners(tmp_path):
    first = Signer.beside(tmp_path / "provider.rmkey")
    path = signer_path(tmp_path / "provider.rmkey")
    assert path.stat().st_mode & 0o777 == 0o600
    assert Signer.beside(tmp_path / "provider.rmkey").name == first.name == Signer.load(path).name
    path.chmod(0o644)
    with pytest.raises(KeyFileError, match="can be read by others"):
        Signer.load(path)


def test_what_is_not_a_signing_key_is_refused(tmp_path):
    path = tmp_path / "signer"
    for content in (b"", b"nonsense", Signer.generate().public_pem):
        path.write_bytes(content)
        path.chmod(0o600)
        with pytest.raises(KeyFileError, match="is not a signing key"):
            Signer.load(path)
    with pytest.raises(InputError, match="cannot open"):
        Signer.load(tmp_path / "missing")
    with pytest.raises(InputError, match="never overwritten"):
        Signer.generate().save(path)


def test_a_signature_of_something_else_is_refused():
    ours, theirs = Signer.generate(), Signer.generate()
    for pem, signature in ((ours.public_pem, theirs.sign(b"a")), (ours.public_pem, ours.sign(b"b"))):
        with pytest.raises(InputError, match="one of the three was changed"):
            check_signature(pem, signature, b"a")
    with pytest.raises(InputError, match="not an Ed25519 public key"):
        check_signature(b"nonsense", ours.sign(b"a"), b"a")


@pytest.fixture(scope="module")
def authority(program, tmp_path_factory):
    """A time-stamping authority made with openssl: answer(request) -> response."""
    folder = tmp_path_factory.mktemp("tsa")
    (folder / "tsa.cnf").write_text(TSA)
    (folder / "serial").write_text("01")
    (folder / "extensions").write_text("extendedKeyUsage=critical,timeStamping\nbasicConstraints=critical,CA:FALSE\n")

    def openssl(*arguments):
        done = subprocess.run(
            [program("openssl"), *map(str, arguments)], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    new = ("-newkey", "rsa:2048", "-nodes")
    openssl("req", "-x509", *new, "-keyout", "root.key", "-out", "root.pem", "-subj", "/CN=root", "-days", 30)
    openssl("req", *new, "-keyout", "tsa.key", "-out", "tsa.csr", "-subj", "/CN=tsa")
    signing = ("-CA", "root.pem", "-CAkey", "root.key", "-CAcreateserial", "-days", 30, "-extfile", "extensions")
    openssl("x509", "-req", "-in", "tsa.csr", "-out", "tsa.pem", *signing)

    def answer(request):
        openssl("ts", "-reply", "-config", "tsa.cnf", "-queryfile", request, "-out", "answer.tsr")
        return folder / "answer.tsr"

    answer.root = folder / "root.pem"
    answer.stranger = folder / "tsa.csr"
    return answer


def test_a_time_stamp_is_requested_attached_and_checked(own_copy, authority, saved, tmp_path):
    bundle = own_copy("summary")
    request = write_request(bundle)
    assert request.name == "timestamp.tsq"
    assert check_evidence(bundle).ok
    answer = authority(request)
    time = attach_response(bundle, answer)
    details = {check.name: check.detail for check in check_evidence(bundle).checks}
    assert details["time stamp"] == f"{time}, authority not checked: give its certificate"
    report = check_evidence(bundle, authority=(authority.root,))
    assert report.failure is None
    assert report.checks[2].detail == f"{time}, by the given authority"
    with pytest.raises(InputError, match="stamps something else"):
        check_token(answer.read_bytes(), read_bundle(saved["court"]).read("manifest.json"))


def test_bad_time_stamps_are_refused(own_copy, authority, tmp_path):
    bundle = own_copy("summary")
    nonsense = tmp_path / "nonsense.tsr"
    nonsense.write_bytes(os.urandom(64))
    with pytest.raises(InputError, match="RFC 3161"):
        attach_response(bundle, nonsense)
    assert not (bundle / "timestamp.tsr").exists()
    (bundle / "timestamp.tsr").write_bytes(b"nonsense")
    assert "timestamp.tsr" in str(check_evidence(bundle).failure)
    (bundle / "timestamp.tsr").unlink()
    assert "no time stamp" in str(check_evidence(bundle, authority=(authority.root,)).failure)
    attach_response(bundle, authority(write_request(bundle)))
    assert "holds no certificate" in str(check_evidence(bundle, authority=(authority.stranger,)).failure)
    with pytest.raises(InputError, match="not a directory"):
        write_request(tmp_path / "bundle.zip")


def test_a_stranger_is_not_the_authority(own_copy, authority, program, tmp_path):
    bundle = own_copy("summary")
    attach_response(bundle, authority(write_request(bundle)))
    command = "req -x509 -newkey rsa:2048 -nodes -keyout s.key -out s.pem -subj /CN=stranger -days 30"
    subprocess.run([program("openssl"), *command.split()], cwd=tmp_path, capture_output=True, check=True)
    failure = check_evidence(bundle, authority=(tmp_path / "s.pem",)).failure
    assert str(failure).startswith("timestamp.tsr is not signed by the given authority")
