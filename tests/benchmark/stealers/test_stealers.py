"""A spec string becomes a stealer."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from regionmarker.benchmark.stealers import (
    STEALERS,
    FrozenHead,
    NoisyCopy,
    TokenBag,
    features_encoder,
    known_stealers,
    load_stealer,
    needs_teacher,
)
from regionmarker.errors import InputError
from regionmarker.specs import split_options


def test_specs_load_the_built_in_stealers(wordllama: Any) -> None:
    head = load_stealer("head:wordllama,hidden=0,held_out=0.2", seed=7)
    assert isinstance(head, FrozenHead)
    assert (head.hidden, head.held_out, head.seed, head.name) == (0, 0.2, 7, "head (wordllama)")
    assert load_stealer("head", features=wordllama).features is wordllama  # type: ignore[attr-defined]
    bag = load_stealer("tokens:wordllama,penalty=2")
    assert isinstance(bag, TokenBag)
    assert (bag.penalty, bag.name) == (2, "token bag (wordllama-tokens)")
    copy = load_stealer("simulated:0.7", teacher=wordllama, seed=2)
    assert isinstance(copy, NoisyCopy)
    assert (copy.fidelity, copy.seed) == (0.7, 2)
    assert load_stealer(copy) is copy


def test_every_built_in_stealer_takes_a_seed_and_progress(wordllama: Any, tmp_path: Any) -> None:
    told: list[tuple[int, int]] = []
    common = {"seed": 3, "progress": lambda done, total: told.append((done, total))}
    for spec, more in (("head:wordllama", {}), ("tokens", {}), ("simulated", {"teacher": wordllama})):
        stealer: Any = load_stealer(spec, **common, **more)
        assert stealer.seed == 3
        assert stealer.progress is common["progress"]


def test_the_cache_of_a_head_is_the_encoders(tmp_path: Any) -> None:
    stealer: Any = load_stealer("head:wordllama", cache=tmp_path / "features.sqlite")
    stealer.features.encode(["a text"])
    assert (tmp_path / "features.sqlite").exists()


def test_options_are_parted_from_the_right() -> None:
    assert split_options("tokens") == ("tokens", {})
    assert split_options("x:a,b,c=1") == ("x:a,b", {"c": 1})
    assert split_options("x:http://h/?a=1,b=2.5,c=none,d=true,e=word") == (
        "x:http://h/?a=1",
        {"b": 2.5, "c": None, "d": True, "e": "word"},
    )


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        ("stealer", {}, "unknown stealer 'stealer': give head:ENCODER, tokens, backbone:NAME, simulated:FIDELITY"),
        ("", {}, "unknown stealer: give head"),
        ("head", {}, "name the encoder of the head"),
        ("head:nothing", {}, "unknown encoder 'nothing'"),
        ("head:wordllama,depth=3", {}, "the stealer 'head' has no option depth"),
        ("head:wordllama,hidden=-1", {}, "hidden"),
        ("tokens:bytes", {}, "unknown vocabulary 'bytes'"),
        ("tokens,seed=1", {"seed": 2}, "the option seed stands in the stealer's spec and was given besides"),
        ("tokens,seed=1,seed=1", {}, "the option seed stands twice"),
        ("simulated:0.8", {}, "give teacher="),
        ("simulated:high", {"teacher": object()}, "takes a number, not 'high'"),
        ("simulated:1.5", {"teacher": object()}, "a fidelity lies above 0"),
        (7, {}, "but a int was given"),
    ],
)
def test_bad_specs_are_refused(spec: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_stealer(spec, **options)


def test_other_packages_bring_stealers(monkeypatch: pytest.MonkeyPatch) -> None:
    points = {
        "mine": EntryPoint("mine", "regionmarker.benchmark.stealers.tokens:TokenBag", STEALERS.group),
        "broken": EntryPoint("broken", "no_such_module:Stealer", STEALERS.group),
        "plain": EntryPoint("plain", "builtins:str", STEALERS.group),
    }

    def entry_points(group: str, name: str | None = None) -> list[EntryPoint]:
        assert group == "regionmarker.stealers"
        return [point for key, point in points.items() if name in (None, key)]

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    assert known_stealers() == ["head", "tokens", "backbone", "simulated", "broken", "mine", "plain"]
    assert isinstance(load_stealer("mine,seed=4"), TokenBag)
    with pytest.raises(InputError, match="'broken' of an installed package cannot be loaded"):
        load_stealer("broken")
    with pytest.raises(InputError, match="'plain' must have a name and steal"):
        load_stealer("plain:x")


class Greedy(TokenBag):
    """A stealer of another package that wants features and the teacher."""

    needs_features = needs_teacher = True


def test_a_stealer_declares_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("greedy", f"{__name__}:Greedy", STEALERS.group)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [point])
    assert features_encoder("greedy:openai:http://h/v1#m,seed=3") == "openai:http://h/v1#m"
    assert needs_teacher("greedy,seed=3")
    assert (features_encoder("tokens,seed=3"), needs_teacher("tokens")) == (None, False)


def test_a_backbone_is_loaded_without_torch() -> None:
    """A grid asks every stealer what it needs: that must not cost seconds, nor fail where there is no torch."""
    code = "import sys; from regionmarker.benchmark.stealers import features_encoder as f; "
    code += "assert f('backbone:bert-base-cased') is None; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
