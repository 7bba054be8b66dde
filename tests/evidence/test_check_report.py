"""The page for people says what the other files say, or the bundle is refused."""

from __future__ import annotations

import json
import re

import pytest
from tests.support.evidence_case import reseal

from regionmarker.errors import InputError
from regionmarker.evidence import check_evidence
from regionmarker.evidence.bundle import our_versions, read_bundle
from regionmarker.evidence.check_report import check_report, disclosed, is_ours, pictures_are_ours
from regionmarker.evidence.report import render_report

LEVELS = ("summary", "expert", "court")
SAME = "rendered again from the other files: the same page"


def edited(bundle, old: str, new: str):
    """Change the page in one place, and make the digests fit."""
    page = (bundle / "report.html").read_text(encoding="utf-8")
    assert old in page
    (bundle / "report.html").write_text(page.replace(old, new, 1), encoding="utf-8")
    reseal(bundle)
    return read_bundle(bundle)


def rewritten_by(bundle, **versions: str):
    """The same files, said to be written by other versions."""
    manifest = bundle / "manifest.json"
    document = json.loads(manifest.read_bytes())
    document["written_by"].update(versions)
    manifest.write_text(json.dumps(document))
    reseal(bundle)
    return read_bundle(bundle)


@pytest.mark.parametrize("level", LEVELS)
def test_a_page_is_rendered_again_to_the_last_byte(saved, level):
    bundle = read_bundle(saved[level])
    assert is_ours(bundle)
    assert render_report(disclosed(bundle)).encode() == bundle.files["report.html"]
    assert check_report(bundle) == SAME


def test_a_page_of_the_graded_mark_is_rendered_again(graded_bundles):
    for level in LEVELS:
        assert check_report(read_bundle(graded_bundles[level])) == SAME


@pytest.mark.parametrize("level", LEVELS)
def test_a_page_edited_in_a_single_figure_is_noticed(own_copy, level):
    bundle = own_copy(level)
    page = re.sub(r"<svg .*?</svg>", "", (bundle / "report.html").read_text(encoding="utf-8"), flags=re.DOTALL)
    figure = re.search(r"<td[^>]*>\s*(\d+\.\d+)", page)
    assert figure is not None
    last = figure[0][-1]
    changed = edited(bundle, figure[0], figure[0][:-1] + ("1" if last != "1" else "2"))
    with pytest.raises(InputError, match=r"report\.html does not say what the other files say"):
        check_report(changed)
    assert check_evidence(bundle).failure == "report.html does not say what the other files say"


def test_a_page_that_says_less_or_more_is_noticed(own_copy):
    bundle = own_copy("summary")
    for old, new in (("</body>", "<p>guilty</p></body>"), ("</h1>", "</h1 >")):
        whole = (bundle / "report.html").read_bytes()
        with pytest.raises(InputError, match="does not say what the other files say"):
            check_report(edited(bundle, old, new))
        (bundle / "report.html").write_bytes(whole)


def picture_edit(bundle):
    page = (bundle / "report.html").read_text(encoding="utf-8")
    picture = re.search(r"<svg .*?</svg>", page, re.DOTALL)
    assert picture is not None
    stroke = re.search(r' d="M (\d)', picture[0])
    assert stroke is not None
    return edited(bundle, stroke[0], f' d="M {(int(stroke[1]) + 1) % 10}')


def test_an_edited_picture_is_noticed(own_copy):
    with pytest.raises(InputError, match="a picture is not the one that the other files give"):
        check_report(picture_edit(own_copy("summary")))


def test_pictures_that_another_library_drew_are_named_as_the_claimants_word(own_copy):
    bundle = own_copy("summary")
    rewritten_by(bundle, matplotlib="1.0")
    found = picture_edit(bundle)
    assert is_ours(found)
    assert not pictures_are_ours(found)
    assert check_report(found).endswith("the same text; the pictures were drawn by another version")
    report = check_evidence(bundle)
    assert report.ok
    assert any(word.sentence.startswith("the pictures of the page") for word in report.words)


def test_a_page_of_another_version_is_named_as_the_claimants_word(own_copy):
    bundle = own_copy("summary")
    rewritten_by(bundle, regionmarker="0.0.1")
    found = edited(bundle, "</body>", "<p>guilty</p></body>")
    assert not is_ours(found)
    assert check_report(found).startswith("not rendered again: another version wrote it")
    report = check_evidence(bundle)
    assert report.ok
    assert [word.sentence for word in report.words if word.file == "report.html"] == [
        "the page for people: another version wrote it, so it was not rendered again"
    ]


def test_without_the_library_that_draws_nothing_is_claimed(saved, monkeypatch):
    def missing():
        raise ModuleNotFoundError

    assert set(our_versions()) == {"regionmarker", "matplotlib"}
    monkeypatch.setattr("regionmarker.evidence.check_report.our_versions", missing)
    assert check_report(read_bundle(saved["summary"])).startswith("not rendered again")
