"""A bundle is there in full or not at all, and is never written over something else."""

from __future__ import annotations

import errno
import os
import pickle
import zipfile
from dataclasses import replace

import pytest

from regionmarker.errors import InputError, OutsideError
from regionmarker.evidence import check_evidence, save_evidence
from regionmarker.evidence.bundle import read_bundle
from regionmarker.verification.judging import judge

ALWAYS = {
    "commitment.json",
    "manifest.json",
    "manifest.sig",
    "report.html",
    "scores.json",
    "signer.pem",
    "transcript.jsonl",
    "verdict.json",
}
EXPERT = ALWAYS | {"answers.parquet", "pool.jsonl", "probes.jsonl"}
COURT = EXPERT | {"opened-matrix.bin", "opened-pool.bin", "opened-reservoir.bin", "traces.json"}


@pytest.mark.parametrize(("level", "names"), [("summary", ALWAYS), ("expert", EXPERT), ("court", COURT)])
def test_each_level_has_its_files(saved, level, names):
    assert {path.name for path in saved[level].iterdir()} == names


def test_only_the_owner_reads_what_shows_the_key(saved):
    for level in ("expert", "court"):
        assert saved[level].stat().st_mode & 0o077 == 0
        assert all(path.stat().st_mode & 0o077 == 0 for path in saved[level].iterdir())
        assert saved[level].with_name(f"{level}.zip").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("level", ["summary", "court"])
def test_the_zip_is_the_directory(saved, level):
    packed = saved[level].with_name(f"{level}.zip")
    assert dict(read_bundle(packed).files) == dict(read_bundle(saved[level]).files)
    assert check_evidence(packed).ok


def test_the_same_verdict_gives_the_same_bytes(verdict, saved, signer, tmp_path):
    again = save_evidence(verdict, tmp_path / "again", signer=signer, archive=True)
    assert dict(read_bundle(again).files) == dict(read_bundle(saved["summary"]).files)
    assert (tmp_path / "again.zip").read_bytes() == saved["summary"].with_name("summary.zip").read_bytes()


def test_verdicts_save_themselves(quick_report, verdict, tmp_path):
    assert check_evidence(verdict.save(tmp_path / "mine", level="expert")).level == "expert"


def test_test_keys_give_no_evidence(case_key, answer_as, tmp_path):
    tested = judge(replace(case_key, test=True), answer_as(), power=False)
    with pytest.raises(InputError, match="TEST key"):
        tested.save(tmp_path / "bundle")
    assert list(tmp_path.iterdir()) == []


def test_a_verdict_that_travelled_has_lost_its_key(verdict, case_key, tmp_path):
    travelled = pickle.loads(pickle.dumps(verdict))
    assert travelled == verdict
    assert case_key.master.reveal() not in pickle.dumps(verdict)
    with pytest.raises(InputError, match="without its key"):
        travelled.save(tmp_path / "bundle")


def test_the_material_is_not_in_plain_values(verdict):
    assert "material" not in verdict.to_dict()
    assert "aterial" not in repr(verdict)


def test_unknown_levels_are_refused(verdict, tmp_path):
    with pytest.raises(InputError, match="summary, expert, court"):
        verdict.save(tmp_path / "bundle", level="everything")


def test_nothing_is_overwritten_unless_asked(quick_report, verdict, tmp_path):
    place = verdict.save(tmp_path / "bundle", level="expert")
    with pytest.raises(InputError, match="exists already"):
        verdict.save(place)
    verdict.save(place, overwrite=True)
    assert not (place / "pool.jsonl").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


def test_a_directory_of_something_else_is_never_replaced(quick_report, verdict, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"cat")
    with pytest.raises(InputError, match="is not a bundle"):
        verdict.save(tmp_path / "photos", overwrite=True)
    assert (tmp_path / "photos" / "cat.jpg").read_bytes() == b"cat"


def test_the_folder_must_exist(quick_report, verdict, tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        verdict.save(tmp_path / "nowhere" / "bundle")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="does not exist"):
        verdict.save(tmp_path / "file" / "bundle")


@pytest.mark.parametrize("room", [0, 5_000, 15_000])
def test_a_full_disk_leaves_nothing_behind(quick_report, verdict, tmp_path, monkeypatch, room):
    left, write = room, os.write

    def short(descriptor, content):
        nonlocal left
        if len(content) > left:
            raise OSError(errno.ENOSPC, "No space left on device")
        left -= len(content)
        return write(descriptor, content)

    old = verdict.save(tmp_path / "bundle")
    before = dict(read_bundle(old).files)
    monkeypatch.setattr(os, "write", short)
    with pytest.raises(OutsideError, match=r"bundle: No space left on device; nothing was changed"):
        verdict.save(tmp_path / "bundle", archive=True, overwrite=True)
    with pytest.raises(OutsideError, match="No space left"):
        verdict.save(tmp_path / "new")
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]
    assert dict(read_bundle(old).files) == before


def test_what_is_not_a_bundle_is_refused(tmp_path):
    for name, complaint in (("missing", "does not exist"), ("text.zip", "not a bundle"), ("folders.zip", "folders")):
        if name == "text.zip":
            (tmp_path / name).write_text("no zip")
        if name == "folders.zip":
            with zipfile.ZipFile(tmp_path / name, "w") as packed:
                packed.writestr("../evil.txt", "x")
        with pytest.raises(InputError, match=complaint):
            read_bundle(tmp_path / name)
    (tmp_path / "empty").mkdir()
    assert check_evidence(tmp_path / "empty").failure == f"manifest.json is missing from {tmp_path / 'empty'}"


def test_a_damaged_zip_is_refused_or_reads_as_it_is(saved, tmp_path):
    """Whatever byte is damaged, and wherever it is cut: a clear error, or files that the manifest then judges."""
    whole = saved["summary"].with_name("summary.zip").read_bytes()
    damaged, refused = tmp_path / "damaged.zip", 0
    for place in range(0, len(whole), max(1, len(whole) // 400)):
        for content in (whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :], whole[:place]):
            damaged.write_bytes(content)
            try:
                read_bundle(damaged)
            except (InputError, OutsideError):
                refused += 1
    assert refused > 400


def test_links_in_a_bundle_are_refused(own_copy):
    bundle = own_copy("summary")
    (bundle / "passwords").symlink_to("/etc/passwd")
    with pytest.raises(InputError, match="passwords is not a file"):
        check_evidence(bundle)


def test_a_zip_that_unpacks_to_far_more_than_it_has_is_refused(tmp_path):
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("manifest.json", b" " * (64 << 20))
    assert path.stat().st_size < 100_000
    with pytest.raises(InputError, match=r"bomb\.zip holds 64 MiB, where 3 MiB are the most: that is not a bundle"):
        read_bundle(path)


def test_a_zip_may_say_what_it_likes_of_its_sizes(saved, tmp_path):
    """A size that the directory of the zip understates ends in a wrong checksum, not in more memory."""
    content = bytearray(saved["summary"].with_name("summary.zip").read_bytes())
    place = content.rfind(b"PK\x01\x02")
    content[place + 24 : place + 28] = (1).to_bytes(4, "little")
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(InputError, match="is not a bundle"):
        read_bundle(tmp_path / "a.zip")


def test_many_files_large_files_and_other_ways_of_packing_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "many.zip", "w") as packed:
        for number in range(1001):
            packed.writestr(str(number), b"")
    with pytest.raises(InputError, match="holds 1001 files"):
        read_bundle(tmp_path / "many.zip")
    with zipfile.ZipFile(tmp_path / "odd.zip", "w", zipfile.ZIP_LZMA) as packed:
        packed.writestr("manifest.json", b"{}")
    with pytest.raises(InputError, match="packed in another way"):
        read_bundle(tmp_path / "odd.zip")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "manifest.json").touch()
    os.truncate(tmp_path / "folder" / "manifest.json", 3 << 30)  # sparse: it takes no room on the disk
    with pytest.raises(InputError, match="holds 3072 MiB, where 2048 MiB are the most"):
        read_bundle(tmp_path / "folder")
