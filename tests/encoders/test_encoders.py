"""Specs, objects, plug-ins, and what is loaded when."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regionmarker import encoders as registry
from regionmarker.encoders import CachedEncoder, ObjectEncoder, known_encoders, load_encoder
from regionmarker.errors import InputError, MissingExtraError


def install(monkeypatch: pytest.MonkeyPatch, **plugins: str) -> None:
    points = [EntryPoint(name, value, registry.ENCODERS.group) for name, value in plugins.items()]

    def entry_points(*, group: str, name: str | None = None) -> list[EntryPoint]:
        assert group == registry.ENCODERS.group
        return [point for point in points if name in (None, point.name)]

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)


class Plugin:
    """An encoder of another package."""

    def __init__(self, rest: str, scale: float = 1.0) -> None:
        self.rest, self.scale = rest, scale

    @classmethod
    def from_spec(cls, rest: str, **options: Any) -> Plugin:
        return cls(rest, **options)

    def encode(self, texts: list[str]) -> np.ndarray:
        return np.full((len(texts), 4), self.scale)


@pytest.fixture
def plugin_module(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(sys.modules, "a_plugin", sys.modules[__name__])
    return "a_plugin:Plugin.from_spec"


def test_built_in_encoders_need_no_installed_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch)
    assert known_encoders() == ["wordllama", "sentence-transformers", "openai", "onnx"]
    assert load_encoder("wordllama").name == "wordllama"


def test_the_built_in_encoders_are_listed_in_one_place() -> None:
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert registry.ENCODERS.group not in project["project"].get("entry-points", {})
    assert {value.partition(":")[0] for value in registry.ENCODERS.built_in.values()} <= {
        f"regionmarker.encoders.{path.stem}" for path in Path(registry.__file__).parent.glob("*.py")
    }


def test_a_plug_in_is_loaded_by_its_name_gets_the_rest_and_is_checked(
    monkeypatch: pytest.MonkeyPatch, plugin_module: str
) -> None:
    install(monkeypatch, mine=plugin_module)
    encoder = load_encoder("mine:a:b#c", scale=3.0)
    assert known_encoders()[-1] == "mine"
    assert encoder.name == "mine:a:b#c"
    assert np.allclose(encoder.encode(["x"]), 0.5)


def test_a_plug_in_cannot_take_the_place_of_a_built_in_encoder(
    monkeypatch: pytest.MonkeyPatch, plugin_module: str
) -> None:
    load_encoder("wordllama").encode(["x"])  # what it imports has entry points of its own
    install(monkeypatch, wordllama=plugin_module)
    assert load_encoder("wordllama").encode(["x"]).shape == (1, 256)


def test_a_plug_in_that_cannot_be_loaded_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, broken="no_such_module_anywhere:Thing")
    with pytest.raises(InputError, match=r"the encoder 'broken' of .* cannot be loaded: No module named"):
        load_encoder("broken:x")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("word2vec", "^unknown encoder 'word2vec': give wordllama, sentence-transformers:NAME, openai:URL#MODEL"),
        ("https://api.example.com/v1#m", "unknown encoder 'https': give .*openai:URL#MODEL"),
        ("", "^unknown encoder: give wordllama"),
        ("WordLlama", "^unknown encoder 'WordLlama'"),
        ("wordllama:big", "wordllama takes nothing after its name"),
        ("sentence-transformers", "name a model: sentence-transformers:NAME"),
        ("sentence-transformers:", "name a model: sentence-transformers:NAME"),
        ("openai:http://localhost", "write openai:URL#MODEL"),
        ("openai:#small", "write openai:URL#MODEL"),
        ("openai:ftp://localhost#small", "must begin with http:// or https://"),
        ("openai:localhost:8080#small", "must begin with http:// or https://"),
        ("openai:http://localhost:port#small", "cannot be read"),
        ("openai:http://localhost/v1?key=1#small", "no user, password or query"),
    ],
)
def test_a_wrong_spec_gets_one_sentence(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        load_encoder(spec)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "spec", ["openai:https://user:{key}@host/v1#m", "openai:https://host/v1?api-key={key}#m", "{key}{key}", "{key} x"]
)
def test_a_secret_in_a_spec_is_not_repeated(spec: str, api_key: str) -> None:
    with pytest.raises(InputError) as caught:
        load_encoder(spec.format(key=api_key))
    assert api_key not in str(caught.value)


@pytest.mark.parametrize("thing", [None, 7, object(), ["wordllama"], np.eye(2), Plugin])
def test_what_is_no_encoder_is_refused(thing: object) -> None:
    with pytest.raises(InputError, match="an encoder is a spec or an object with encode"):
        load_encoder(thing)


def test_an_object_keeps_its_name_or_gets_the_one_of_its_class(hashes: Any) -> None:
    assert load_encoder(hashes).name == "hashes"
    assert load_encoder(hashes, name="mine").name == "mine"
    assert load_encoder(Plugin("")).name == "Plugin"


def test_an_encoder_is_not_wrapped_twice(hashes: Any, tmp_path: Path) -> None:
    for encoder in (ObjectEncoder(hashes), CachedEncoder(hashes, tmp_path / "c"), load_encoder("wordllama")):
        assert load_encoder(encoder) is encoder


def test_options_go_to_the_encoder_and_nowhere_else(hashes: Any) -> None:
    assert load_encoder("wordllama", batch_size=3).batch_size == 3  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="takes no options, but batch_size was given"):
        load_encoder(hashes, batch_size=3)
    with pytest.raises(InputError, match="name= is for objects"):
        load_encoder("wordllama", name="mine")
    with pytest.raises(InputError, match="progress=True needs a cache"):
        load_encoder("wordllama", progress=True)


def test_a_cache_can_be_had_in_the_same_call(hashes: Any, tmp_path: Path) -> None:
    encoder = load_encoder(hashes, cache=tmp_path / "c.sqlite")
    encoder.encode(["a"])
    encoder.encode(["a"])
    assert hashes.asked == [["a"]]
    assert load_encoder(hashes, cache=True).path == tmp_path / "own-cache" / "embeddings.sqlite"  # type: ignore[attr-defined]


def test_a_missing_extra_names_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from regionmarker.encoders import sentence_transformers

    monkeypatch.setattr(sentence_transformers, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r'pip install "regionmarker\[sentence-transformers\]"'):
        load_encoder("sentence-transformers:all-MiniLM-L6-v2")


def test_nothing_heavy_is_imported_before_it_is_used() -> None:
    heavy = ["wordllama", "tokenizers", "torch", "sentence_transformers", "httpx2", "stamina", "rich", "requests"]
    code = (
        "import sys\n"
        "from regionmarker.encoders import load_encoder, CachedEncoder, check_answer\n"
        "encoder = load_encoder('wordllama', cache=True)\n"
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
