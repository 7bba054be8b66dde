"""What every attack on the coordinates promises, and what each of them does in particular."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import Any

import numpy as np
import pytest

from regionmarker.benchmark.attacks import (
    ATTACKS,
    AttackedModel,
    Composed,
    Permute,
    Project,
    Scale,
    Shift,
    Tanh,
    Translate,
    Truncate,
    compose,
    known_attacks,
    load_attack,
    plan_attacks,
)
from regionmarker.benchmark.protocols import DataAttack, StolenData
from regionmarker.errors import InputError

ISOMETRIES = ["none", "shift:100", "permute:3", "rotate:3", "scale:2", "scale:0.5", "scale:rows"]
OTHERS = ["truncate:2/3", "truncate:0.667", "truncate:100", "project", "project:60", "project:300:4", "tanh", "tanh:8"]
ALL = [*ISOMETRIES, *OTHERS, "translate:3:0.5", "translate"]


@pytest.fixture(scope="module")
def served(embeddings: np.ndarray) -> np.ndarray:
    return embeddings[:300]


@pytest.fixture(params=ALL)
def attack(request: pytest.FixtureRequest) -> DataAttack:
    return load_attack(request.param)


def test_gives_unit_float32_rows_of_the_width_that_it_says(attack: Any, served: np.ndarray) -> None:
    targets = attack(served, ["a text"] * len(served))
    assert targets.dtype == np.float32
    assert targets.shape == (len(served), attack.width_out(served.shape[1]))
    assert np.abs(np.linalg.norm(targets.astype(np.float64), axis=1) - 1).max() < 1e-6


def test_its_name_loads_it_again(attack: DataAttack, served: np.ndarray) -> None:
    again = load_attack(attack.name)
    assert again == attack
    assert again.name == attack.name
    assert np.array_equal(again(served, []), attack(served, []))


def test_leaves_its_input_as_it_was(attack: DataAttack, served: np.ndarray) -> None:
    mine = served.copy()
    attack(mine, [])
    assert np.array_equal(mine, served)


def test_a_row_alone_fares_as_it_does_in_company(attack: DataAttack, served: np.ndarray) -> None:
    whole = attack(served, [])
    for row in (0, 299):
        assert np.allclose(attack(served[row : row + 1], []), whole[row : row + 1], atol=1e-6)


def test_no_rows_give_no_rows(attack: Any, served: np.ndarray) -> None:
    assert attack(served[:0], []).shape == (0, attack.width_out(served.shape[1]))


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_takes_float16_and_float64(attack: DataAttack, served: np.ndarray, dtype: Any) -> None:
    assert np.allclose(attack(served.astype(dtype), []), attack(served, []), atol=2e-3)


def test_zero_and_nan_rows_are_refused_by_their_number(attack: DataAttack, served: np.ndarray) -> None:
    broken = served.copy()
    broken[7, 3] = np.nan
    with pytest.raises(InputError, match=r"^row 7 holds NaN"):
        attack(broken, [])
    broken[7] = 0
    with pytest.raises(InputError, match=r"^row 7 is zero"):
        attack(broken, [])


def test_wrong_shapes_are_refused(attack: DataAttack, served: np.ndarray) -> None:
    with pytest.raises(InputError, match="2-d array"):
        attack(served[0], [])
    with pytest.raises(InputError, match="3 texts for 300 vectors"):
        attack(served, ["a", "b", "c"])


@pytest.mark.parametrize("spec", ISOMETRIES)
def test_the_isometries_keep_every_cosine(spec: str, served: np.ndarray) -> None:
    targets = load_attack(spec)(served, [])
    assert np.allclose(targets @ targets.T, _unit(served) @ _unit(served).T, atol=1e-5)


@pytest.mark.parametrize(("spec", "least"), [("truncate:2/3", 0.8), ("project:200", 0.8), ("tanh", 0.999)])
def test_the_others_keep_the_order_of_the_cosines_more_or_less(spec: str, least: float, served: np.ndarray) -> None:
    targets = load_attack(spec)(served, [])
    upper = np.triu_indices(len(served), k=1)
    before, after = (served @ served.T)[upper], (targets @ targets.T)[upper]
    assert least < np.corrcoef(before, after)[0, 1] < 1


def test_translation_moves_the_cosines(served: np.ndarray) -> None:
    targets = Translate(0, 1.0)(served)
    assert (targets @ targets.T).mean() > (served @ served.T).mean() + 0.1


def test_the_formulas_are_those_of_the_paper(served: np.ndarray) -> None:
    rows = _unit(served)
    shifted = Shift(100)(served)  # v' = (v_{d-99}, .., v_d, v_1, .., v_{d-100})
    assert np.allclose(shifted[:, :100], rows[:, -100:], atol=1e-7)
    assert np.allclose(shifted[:, 100:], rows[:, :-100], atol=1e-7)
    assert np.allclose(Truncate(100)(served), _unit(served[:, :100]), atol=1e-6)
    assert np.allclose(Tanh()(served), _unit(np.tanh(served)), atol=1e-6)
    assert np.allclose(np.sort(Permute(1)(served)), np.sort(rows), atol=1e-7)
    assert Truncate().width_out(1536) == 1024


def test_another_seed_is_another_attack(served: np.ndarray) -> None:
    for name in ("permute", "rotate", "translate", "project:50"):
        assert not np.allclose(load_attack(f"{name}:1")(served, []), load_attack(f"{name}:2")(served, []))


def test_a_random_projection_is_not_orthogonal() -> None:
    columns = Project()(np.eye(64, dtype=np.float32))
    assert np.abs(columns @ columns.T - np.eye(64)).max() > 0.1


@pytest.mark.parametrize("rows", [1, 4096, 4097])
def test_the_blocks_do_not_show(rows: int) -> None:
    served = np.random.default_rng(0).standard_normal((rows, 8)).astype(np.float32)
    assert np.allclose(Shift(3)(served), _unit(np.roll(served, 3, axis=1)), atol=1e-6)


def test_attacks_compose_in_order(served: np.ndarray) -> None:
    both = compose(["shift:100", Truncate(100)])
    assert both.name == "shift:100 then truncate:100"
    assert isinstance(both, Composed)
    assert isinstance(both, DataAttack)
    assert np.allclose(both(served, []), _unit(served[:, -100:]), atol=1e-6)
    assert np.allclose(compose(["truncate:150", "shift:100"])(served, []), Shift(100)(served[:, :150]), atol=1e-6)
    assert compose([]).name == "none"
    assert compose(["tanh"]) == Tanh()


def test_a_list_of_attacks_is_no_string() -> None:
    with pytest.raises(InputError, match="write \\['tanh'\\]"):
        compose("tanh")


def test_texts_reach_every_attack_of_a_list(served: np.ndarray) -> None:
    class Shortest:
        name = "shortest"

        def apply(self, stolen: StolenData) -> StolenData:
            return stolen.kept(np.array([len(text) < 4 for text in stolen.texts]))

    attack = compose(["tanh", Shortest()])
    left = attack.apply(StolenData(("one", "three", "two"), served[:3]))
    assert left.texts == ("one", "two")
    assert np.array_equal(left.vectors, Tanh()(served[[0, 2]]))
    with pytest.raises(InputError, match="shortest looks at all of the stolen data"):
        attack(served[:3], ["one", "three", "two"])


def test_a_model_is_attacked_after_training(wordllama: Any) -> None:
    disguised = AttackedModel(wordllama, compose(["shift:100", "truncate:2/3"]))
    texts = ["one text", "another text"]
    assert disguised.name == "wordllama then shift:100 then truncate:2/3"
    assert np.array_equal(
        disguised.encode(texts), compose(["shift:100", "truncate:2/3"])(wordllama.encode(texts), texts)
    )


def test_a_spec_can_say_after_training(wordllama: Any) -> None:
    plan = plan_attacks(["noise:0.1", "after:rotate:3", "after:truncate:0.5"])
    assert plan.before.name == "noise:0.1"
    assert [attack.name for attack in plan.after] == ["after:rotate:3", "after:truncate:0.5"]
    answers = plan.modify(wordllama).encode(["a text", "another"])
    expected = load_attack("truncate:0.5")(load_attack("rotate:3")(wordllama.encode(["a text", "another"])))
    assert np.allclose(answers, expected, atol=1e-6)
    with pytest.raises(InputError, match="must stand before after:rotate:3"):
        plan_attacks(["after:rotate:3", "noise:0.1"])
    for spec, message in (("after:", "name the attack"), ("after:drop", "before training only"),
                          ("after:nothing", "unknown attack")):  # fmt: skip
        with pytest.raises(InputError, match=message):
            load_attack(spec)


@pytest.mark.parametrize("spec", ["average", "compare", "differences"])
def test_several_accounts_come_first(spec):
    assert plan_attacks([spec, "int8"]).before.name == f"{spec} then int8"
    with pytest.raises(InputError, match=f"^{spec} asks for every text again: it must stand before int8"):
        plan_attacks(["int8", spec])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("shift:0", "at least 1 place"),
        ("shift:-5", "at least 1 place"),
        ("shift:far", "whole number, not 'far'"),
        ("truncate:0", "whole number of dimensions or a fraction"),
        ("truncate:1.5", "whole number of dimensions or a fraction"),
        ("truncate:-3", "whole number of dimensions or a fraction"),
        ("truncate:nan", "whole number of dimensions or a fraction"),
        ("truncate:1/0", "number of dimensions or a fraction"),
        ("truncate:half", "number of dimensions or a fraction"),
        ("permute:-1", "must not be negative"),
        ("rotate:x", "whole number"),
        ("project:0", "at least 1 dimension"),
        ("project:10:-1", "must not be negative"),
        ("tanh:0", "must be positive"),
        ("tanh:nan", "must be positive"),
        ("scale:-1", "must be positive"),
        ("scale:inf", "must be positive"),
        ("scale:wide", "takes a number"),
        ("translate:0:0", "must be positive"),
        ("none:7", "takes nothing after its name"),
        ("sheer:3", "unknown attack 'sheer': give none, shift"),
        ("", "unknown attack: give none"),
    ],
)
def test_bad_parameters_are_refused(spec: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_attack(spec)


@pytest.mark.parametrize("spec", ["shift:100", "shift:64", "truncate:65"])
def test_vectors_narrower_than_the_parameter_are_refused(spec: str) -> None:
    with pytest.raises(InputError, match=f"^{spec} needs vectors"):
        load_attack(spec)(np.eye(64, dtype=np.float32), [])
    assert load_attack("truncate:64")(np.eye(64, dtype=np.float32), []).shape == (64, 64)
    assert Truncate(1e-6).width_out(64) == 1


def test_other_packages_bring_attacks(monkeypatch: pytest.MonkeyPatch) -> None:
    points = {
        "mine": EntryPoint("mine", "regionmarker.benchmark.attacks.transforms:Shift", ATTACKS.group),
        "broken": EntryPoint("broken", "no_such_module:Attack", ATTACKS.group),
        "plain": EntryPoint("plain", "builtins:str", ATTACKS.group),
    }

    def entry_points(group: str, name: str | None = None) -> list[EntryPoint]:
        assert group == "regionmarker.attacks"
        return [point for key, point in points.items() if name in (None, key)]

    monkeypatch.setattr("importlib.metadata.entry_points", entry_points)
    assert known_attacks()[-3:] == ["broken", "mine", "plain"]
    assert load_attack("mine:7") == Shift(7)
    with pytest.raises(InputError, match="'broken' of an installed package cannot be loaded"):
        load_attack("broken")
    with pytest.raises(InputError, match="'plain' must have a name and apply"):
        load_attack("plain:x")
    with pytest.raises(InputError, match="a int was given"):
        load_attack(7)  # type: ignore[arg-type]


def test_scaling_rows_differ_in_nothing_but_length(served: np.ndarray) -> None:
    assert np.allclose(Scale(None)(served), _unit(served), atol=1e-7)


def _unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)).astype(np.float32)
