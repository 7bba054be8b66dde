"""What was written, made and started with 0.1.0 goes on working: docs/how-to/upgrade.md, held against its files.

Keys and evidence themselves are in test_golden_keys.py and test_golden_evidence.py, the tenants' database in
tests/gateway/tenants/test_places.py.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
import typer

from regionmarker import KeyRing, RegionMarker
from regionmarker.cli import main
from regionmarker.cli.app import app
from regionmarker.keys.commitment import commit, serving_with_commitment
from regionmarker.keys.files import open_key, save_serving

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"
PAGE = (ROOT / "docs" / "how-to" / "upgrade.md").read_text(encoding="utf-8")
SERVE_OF_0_1_0 = {
    "--host": "127.0.0.1", "--port": 8000, "--batch": None, "--normalise": False, "--capacity": 4096, "--queue": 8192,
    "--timeout": 120.0, "--grace": 30.0, "--drain-delay": 1.0, "--database": None, "--serve-unmarked": "nobody",
    "--canaries": None, "--telemetry": False, "--log-level": "info",
}  # fmt: skip

spec = importlib.util.spec_from_file_location("make_arguments", GOLDEN / "make_arguments.py")
make_arguments = importlib.util.module_from_spec(spec)
spec.loader.exec_module(make_arguments)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """What a provider of 0.1.0 has: a key, a serving key, evidence and the signer's public key."""
    for source, name in {
        "v1.rmkey": "provider.rmkey", "v1.rmkey.secret": "provider.rmkey.secret", "v1-serving.rmkey": "serving.rmkey",
        "v1-serving.rmkey.secret": "serving.rmkey.secret", "v1-evidence/copy-court.zip": "evidence.zip",
        "v1-evidence/signer.pem": "signer.pem",
    }.items():  # fmt: skip
        shutil.copyfile(GOLDEN / source, tmp_path / name)
        (tmp_path / name).chmod(0o600)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def wider_corpus():
    """Texts and rows of a model's next version."""
    rows = np.random.default_rng(5).standard_normal((400, 32)).astype(np.float32)
    return [f"text {n}" for n in range(len(rows))], rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_the_commands_of_the_page_run_and_write_nothing(folder, capsys):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    (block,) = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    lines = block.splitlines()
    assert len(lines) == 2
    for line in lines:
        with pytest.raises(SystemExit) as left:
            main(shlex.split(line)[1:])
        assert not left.value.code, line
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert "decoy-1" in capsys.readouterr().out


def test_a_key_that_is_saved_again_keeps_its_bits_and_its_commitment(folder):
    facts, vectors = json.loads((GOLDEN / "v1.json").read_text()), np.load(GOLDEN / "v1.npz")
    KeyRing.load("provider.rmkey").save("again.rmkey")
    primary = KeyRing.load("again.rmkey").primary
    save_serving(Path("again-serving.rmkey"), serving_with_commitment(primary, ["acme"]), None)
    assert commit(primary) == facts["commitment"]
    assert open_key("again-serving.rmkey").commitment == facts["commitment"]
    for name in ("again.rmkey", "again-serving.rmkey"):
        marker = RegionMarker.load(name)
        assert marker.transform(vectors["inputs"]).tobytes() == vectors["served"].tobytes()
        assert marker.transform(vectors["inputs"], tenant="acme").tobytes() == vectors["acme"].tobytes()


@pytest.mark.parametrize("name", make_arguments.OF_0_1_0)
def test_the_same_arguments_make_the_same_key(name):
    """As the page says, naming one default is enough; the numbers may differ in the last bits of another machine."""
    told = json.loads((GOLDEN / "v1-arguments.json").read_text())[name]
    arguments = make_arguments.OF_0_1_0[name] or {"strength": 0.2}
    found = make_arguments.facts(arguments)
    for what in ("served", "of_tenant"):
        np.testing.assert_allclose(found.pop(what), told.pop(what), atol=1e-6)
    assert found == told


def test_without_arguments_it_is_another_mark():
    assert not make_arguments.OF_0_1_0["defaults"]
    texts, rows = wider_corpus()
    marker = RegionMarker(seed=7).fit(texts, embeddings=rows)
    assert marker.key_.settings.statistic == "decoy-2"


def test_a_graded_key_joins_the_ring_of_an_old_one(folder):
    texts, rows = wider_corpus()
    RegionMarker().fit(texts, embeddings=rows).save("new.rmkey")
    with pytest.raises(SystemExit) as left:
        main(["key", "add", "provider.rmkey", "new.rmkey"])
    assert not left.value.code
    ring = KeyRing.load("provider.rmkey")
    assert [key.settings.statistic for key in ring] == ["decoy-1", "decoy-2"]
    assert commit(ring.keys[0]) == json.loads((GOLDEN / "v1.json").read_text())["commitment"]


def test_serve_has_the_options_of_0_1_0_with_their_defaults():
    parameters = {option: one for one in typer.main.get_command(app).commands["serve"].params for option in one.opts}
    assert {name: parameters[name].default for name in SERVE_OF_0_1_0} == SERVE_OF_0_1_0


def test_the_page_links_the_tables_instead_of_repeating_them():
    assert "CHANGELOG.md#what-a-plug-in-must-rename" in PAGE
    assert "regionmarker.benchmark.protocols" not in PAGE
