"""Bundles, ledgers and statements made to harm whoever opens them: refused in a sentence, soon, by both checkers."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from dataclasses import replace

import pytest
from tests.support.evidence_case import lie, reseal

from regionmarker.errors import InputError
from regionmarker.evidence import Signer, check_evidence, check_ledger
from regionmarker.evidence.bundle import read_bundle
from regionmarker.evidence.check_report import disclosed
from regionmarker.evidence.fields import STATEMENT
from regionmarker.evidence.report import render_report
from regionmarker.evidence.statement import FORMAT, read_fields
from regionmarker.evidence.timestamp import attach_response
from regionmarker.files import read_bounded
from regionmarker.verification.ledger import Ledger, read_ledger
from studies._forger import CHECKER, checker

SECONDS = 60  # of a whole check, on a busy machine; what is refused here took hours, or did not end


def checked(path) -> subprocess.CompletedProcess[str]:
    """Run the checker without our code, within limits (of a shell: Python forks no process that has other threads)."""
    limited = 'ulimit -v 4194304; exec "$@"'
    return subprocess.run(
        ["sh", "-c", limited, "sh", sys.executable, str(CHECKER), str(path)],
        capture_output=True, text=True, check=False, timeout=SECONDS,
    )  # fmt: skip


def refused_by_both(path, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        read_bundle(path)
    found = checked(path)
    assert found.returncode not in (0, None)
    assert "Traceback" not in found.stderr
    assert "is not a bundle" in found.stderr


def test_pipes_links_and_folders_in_a_bundle_are_refused(own_copy):
    place = own_copy("summary")
    for make in (os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")):
        make(place / "strange")
        refused_by_both(place, "strange is not a file")
        (place / "strange").unlink() if not (place / "strange").is_dir() else (place / "strange").rmdir()


@pytest.mark.parametrize("name", ["/etc/passwd", "../../up", "a\\b", "folder/"])
def test_names_that_lead_elsewhere_are_refused(tmp_path, name):
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as packed:
        packed.writestr(name, "x")
    refused_by_both(tmp_path / "b.zip", "it holds folders, or a name twice")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_comes_twice_is_refused(saved, tmp_path):
    """One reader would take the first file of the name, another the last."""
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as packed:
        for name, content in read_bundle(saved["summary"]).files.items():
            packed.writestr(name, content)
        packed.writestr("verdict.json", b"{}")
    refused_by_both(tmp_path / "b.zip", "a name twice")


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path):
    with zipfile.ZipFile(tmp_path / "b.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("manifest.json", bytes(300 << 20))
    refused_by_both(tmp_path / "b.zip", "MiB are the most")
    with zipfile.ZipFile(tmp_path / "c.zip", "w", zipfile.ZIP_LZMA) as packed:
        packed.writestr("manifest.json", bytes(1000))
    refused_by_both(tmp_path / "c.zip", "packed in another way")


def test_an_encrypted_or_cut_zip_is_refused(saved, tmp_path):
    whole = bytearray((saved["summary"].parent / "summary.zip").read_bytes())
    (tmp_path / "cut.zip").write_bytes(whole[: len(whole) // 2])
    refused_by_both(tmp_path / "cut.zip", "is not a bundle")
    start = 0
    while (start := whole.find(b"PK\1\2", start)) >= 0:
        whole[start + 8] |= 1  # the flag of an encrypted entry
        start += 4
    (tmp_path / "b.zip").write_bytes(whole)
    refused_by_both(tmp_path / "b.zip", "encrypted")


def stretched(scores: dict) -> None:
    """Lists of many carriers, each from one limit to the other: their convolution would take days."""
    count = 2000
    scores["lists"] = [[4096 >> (scores["step"] > 1 / 200), *[0] * 6, -(4096 >> (scores["step"] > 1 / 200))]] * count
    scores["observed"] = [0] * count
    for name in ("regions", "carriers"):
        if name in scores:
            scores[name] = count
    if "weights" in scores:
        scores["weights"] = [0.5**0.5 / 1000**0.5] * count
    for name in ("pool", "list"):
        if name in scores:
            scores[name] = 8
    if "null" in scores:
        scores["null"] = None


@pytest.mark.parametrize("statistic", ["decoy-1", "decoy-2"])
def test_lists_that_would_take_hours_are_refused_at_once(own_copy, graded_bundles, statistic, tmp_path):
    place = own_copy("summary")
    if statistic == "decoy-2":
        for old in place.iterdir():
            old.unlink()
        for name, content in read_bundle(graded_bundles["summary"]).files.items():
            (place / name).write_bytes(content)
    began = time.monotonic()
    assert lie(place, "scores.json", stretched) is not None
    checks = {check.name: check.detail for check in check_evidence(place).checks}
    assert "reach over" in checks["total"]
    assert time.monotonic() - began < SECONDS
    found = checked(place)
    assert (found.returncode, found.stderr) == (2, "")
    assert "the lists reach further than any" in found.stdout


@pytest.mark.parametrize("silent", [10**9, 10**18, -5, 10**4000])
def test_absurd_counts_of_silent_texts_are_refused_at_once(own_copy, silent):
    place = own_copy("summary")
    assert lie(place, "scores.json", lambda scores: scores.update(unanswered=silent)) is not None
    found = checked(place)
    assert (found.returncode, found.stderr) == (2, "")


@pytest.mark.parametrize("field", ["look", "missing", "unasked"])
def test_numbers_of_thousands_of_digits_are_a_sentence(own_copy, field):
    place = own_copy("summary")
    assert lie(place, "verdict.json", lambda verdict: verdict.update({field: 10**4000})) is not None
    assert "Traceback" not in checked(place).stderr


def test_a_table_of_many_regions_is_not_counted(own_copy):
    """The tuples of twelve regions have four million partitions."""
    place = own_copy("expert")

    def many(scores: dict) -> None:
        for name in ("lists", "observed"):
            scores[name] = [scores[name][0]] * 12
        scores["regions"] = 12

    lie(place, "scores.json", many)
    found = checked(place)
    assert (found.returncode, found.stderr) == (2, "")


@pytest.mark.parametrize("delay", [10**400, 2**63, 10 * 367 * 86_400])
def test_a_delay_without_end_is_refused(own_copy, delay):
    signer = Signer.generate()
    document = {
        "format": FORMAT, "key_id": "ab" * 8, "scheme": "regionmarker commitment 1", "commitment": "ab" * 32,
        "signer": signer.name, "log_key": signer.log_key_pem.decode(), "beacon": "drand-quicknet", "delay": delay,
    }  # fmt: skip
    content = (json.dumps(document, indent=1, sort_keys=True) + "\n").encode()
    with pytest.raises(InputError, match="a delay of more than ten years is none"):
        read_fields(content)
    place = own_copy("summary")
    (place / STATEMENT).write_bytes(content)
    reseal(place)
    assert "ten years" in str(check_evidence(place).failure)


def test_a_pipe_in_place_of_a_ledger_keeps_nobody_waiting(tmp_path):
    path = tmp_path / "k.rmkey.ledger.jsonl"
    os.mkfifo(path)
    for use in (read_ledger, check_ledger, lambda place: Ledger(place).look("ab", "cd")):
        with pytest.raises(InputError, match="is not a file"):
            use(path)


def test_files_beside_a_bundle_are_read_within_bounds(saved, tmp_path):
    """Keys, certificates, rounds, time stamps and ledgers may be a stranger's as well."""
    os.mkfifo(tmp_path / "pipe")
    with (tmp_path / "sparse").open("wb") as file:
        file.write(b"{")  # as a ledger begins
        file.truncate(3 << 30)
    for name, complaint in (("pipe", "is not a file"), ("sparse", "has more than")):
        with pytest.raises(InputError, match=complaint):
            read_bounded(tmp_path / name)
        with pytest.raises(InputError, match=complaint):
            attach_response(shutil.copytree(saved["summary"], tmp_path / f"bundle {name}"), tmp_path / name)
        with pytest.raises(InputError, match="is not a file" if name == "pipe" else complaint):
            check_ledger(tmp_path / name)
        for option in ("--signer", "--log-key"):
            command = [
                sys.executable,
                "-m",
                "regionmarker",
                "evidence",
                "check",
                saved["summary"],
                option,
                tmp_path / name,
            ]
            found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
            assert (found.returncode, complaint in found.stderr) == (2, True), found.stderr


def test_a_name_cannot_turn_the_report_round(saved):
    bundle = read_bundle(saved["summary"])
    shown = disclosed_as(bundle, "honest\u202e.moc.live\u2066\u200b<script>alert(1)</script>\x1b[2J")
    page = render_report(shown)
    assert not {"\u202e", "\u2066", "\u200b", "\x1b"} & set(page)
    assert "<script" not in page
    assert r"honest\u202e.moc.live\u2066\u200b&lt;script&gt;alert(1)&lt;/script&gt;\x1b[2J" in page


def disclosed_as(bundle, suspect: str):
    shown = disclosed(bundle)
    return replace(shown, verdict={**shown.verdict, "suspect": suspect})


def test_the_other_checker_shows_nothing_that_a_terminal_obeys(own_copy):
    place = own_copy("summary")
    lie(place, "verdict.json", lambda verdict: verdict.update(outcome="\x1b[2Jconvicted\u202e"))
    said = checked(place)
    assert said.returncode == 2
    assert said.stdout.isascii()
    assert "\x1b" not in said.stdout
    assert checker().MOST_STEPS == 1 << 18
