"""The mark as a torch module: equal to transform, and never written anywhere."""

from __future__ import annotations

import copy
import io
import pickle
import traceback

import numpy as np
import pytest

from regionmarker import RegionMarker
from regionmarker.errors import InputError, NotFittedError, SecretLeakError
from regionmarker.marking.engine import mark
from regionmarker.marks.number_format import NumberFormat, dithered, round_to_format
from regionmarker.marks.plan import MarkPlan

torch = pytest.importorskip("torch", reason="torch is not installed: it comes with the extra sentence-transformers")

from regionmarker.marking import torch_module  # noqa: E402 - needs torch

KINDS = {"graded": {}, "published": {"strength": 0.2, "pool": 64, "reservoir": 512}}
FORMATS = [form.value for form in NumberFormat]


@pytest.fixture(scope="module")
def markers(sentences, embeddings):
    made: dict[tuple[str, str, bool], RegionMarker] = {}

    def marker_of(kind: str, grid: str = "float32", normalise: bool = False) -> RegionMarker:
        name = (kind, grid, normalise)
        if name not in made:
            chosen = RegionMarker(seed=2, grid=grid, normalise=normalise, **KINDS[kind])
            made[name] = chosen.fit(sentences[:2000], embeddings=embeddings[:2000])
        return made[name]

    return marker_of


def unrounded(marker, rows, tenant) -> np.ndarray:
    """The rows before rounding, in float64, by the product's own NumPy formula."""
    mark_, key = marker.key_.mark, marker.key_
    mixed = dithered(rows, key.number_format) if key.number_format is not NumberFormat.float32 else rows
    provider = list(key.provider_targets())
    if key.mark.kind == "graded":
        pool = key.pool.embeddings
        targets = np.empty((len(mark_.weights), key.width))
        targets[mark_.settings.places("provider")] = pool[provider]
        targets[mark_.settings.places("tenants")] = pool[list(key.tenant_targets(tenant))]
        return mark_.mark_rows(mixed.astype(np.float64), targets)
    plan: MarkPlan = key.serving([tenant]).plan(tenant)
    target = plan.target_of_region[marker.regions(rows)]
    weight = plan.weights[target][:, None]
    moved = (1 - weight) * mixed + weight * plan.targets[target]
    return moved / np.linalg.norm(moved, axis=1, keepdims=True)


def clear_of_planes(marker, rows) -> np.ndarray:
    """Rows that every arithmetic sees on the same side of every hyperplane."""
    return rows[marker.margins(rows) > 1e-5]


@pytest.mark.parametrize("tenant", ["", "acme"])
@pytest.mark.parametrize("kind", KINDS)
def test_equals_transform(markers, embeddings, kind, tenant):
    marker = markers(kind)
    rows = clear_of_planes(marker, embeddings)
    assert len(rows) > 0.99 * len(embeddings)
    served = marker.to_torch(tenant)(torch.from_numpy(rows.copy()))
    assert served.dtype == torch.float32
    assert np.abs(served.numpy() - marker.transform(rows, tenant)).max() < 1e-6
    assert np.abs(marker.transform(rows, tenant) - rows).max() > 1e-3  # there is a mark to speak of


@pytest.mark.parametrize("grid", FORMATS)
@pytest.mark.parametrize("kind", KINDS)
def test_before_rounding_it_is_the_formula(markers, embeddings, kind, grid):
    marker = markers(kind, grid)
    rows = clear_of_planes(marker, embeddings[:2000])
    module = marker.to_torch("acme")
    mixed, as_it_came = module.unrounded(torch.from_numpy(rows.copy()))
    assert mixed.dtype == torch.float64
    assert np.abs(mixed.numpy() - unrounded(marker, rows, "acme")).max() < 1e-6
    assert (as_it_came is not None) == (kind == "published" and grid != "float32")


@pytest.mark.parametrize("grid", ["float16", "bfloat16"])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_served_lies_on_the_grid(markers, embeddings, kind, grid):
    marker = markers(kind, grid)
    rows = clear_of_planes(marker, embeddings)
    served, expected = marker.to_torch("acme")(torch.from_numpy(rows.copy())).numpy(), marker.transform(rows, "acme")
    assert np.array_equal(served, round_to_format(served, NumberFormat(grid)))
    assert (served != expected).mean() < 1e-3  # ties, and what float32 sums differ in
    step = 2.0**-11 if grid == "float16" else 2.0**-8
    assert (np.abs(served - expected) <= 2 * step * np.abs(expected) + 1e-7).all()


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_any_length_are_scaled_where_the_key_scales(markers, embeddings, kind):
    marker = markers(kind, normalise=True)
    rows = clear_of_planes(marker, embeddings) * np.float32(7.0)
    assert np.abs(marker.to_torch("acme")(torch.from_numpy(rows)).numpy() - marker.transform(rows, "acme")).max() < 1e-6


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_takes_what_models_give(markers, embeddings, dtype):
    marker = markers("graded")
    rows = torch.from_numpy(embeddings[:50].copy()).to(getattr(torch, dtype))
    expected = marker.transform(rows.to(torch.float32).numpy())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        served = marker.to_torch()(rows)
    assert np.abs(served.numpy() - expected).max() < 1e-6


def test_the_dither_is_the_engines_to_the_bit(embeddings):
    for form in (NumberFormat.float16, NumberFormat.bfloat16):
        found = torch_module._dithered(torch.from_numpy(embeddings[:200].copy()), form)
        assert np.array_equal(found.numpy(), dithered(embeddings[:200], form))


@pytest.mark.parametrize("form", list(NumberFormat))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rounds_as_the_engines_do(form, dtype):
    numbers = torch.from_numpy(np.random.default_rng(0).normal(size=4000) * np.logspace(-9, 0, 4000)).to(dtype)
    assert np.array_equal(torch_module._rounded(numbers, form).numpy(), round_to_format(numbers.numpy(), form))


def test_a_device_without_float64_computes_in_float32(markers, embeddings, monkeypatch):
    monkeypatch.setattr(torch_module, "wide_dtype", lambda _device: torch.float32)
    for kind in KINDS:
        marker = markers(kind)
        rows = clear_of_planes(marker, embeddings[:2000])
        mixed, _ = marker.to_torch("acme").unrounded(torch.from_numpy(rows.copy()))
        assert mixed.dtype == torch.float32
        assert np.abs(mixed.numpy() - marker.transform(rows, "acme")).max() < 1e-6
    assert torch_module._rounded(mixed, NumberFormat.float16).dtype == torch.float32


def test_the_device_is_that_of_the_input(markers, embeddings):
    module = markers("graded").to_torch()
    module.half().to("cpu")  # moves and rounds nothing of ours
    module(torch.from_numpy(embeddings[:3].copy()))
    (placed,) = module._placed._on.values()
    assert {array.dtype for array in vars(placed).values()} == {torch.float64, torch.int64}
    assert module._placed.on(torch.device("meta")).planes.device.type == "meta"
    assert module._placed.on(torch.device("cpu")) is placed


def test_gradients_flow_also_after_a_call_without_them(markers, embeddings):
    module = markers("graded").to_torch()
    with torch.inference_mode():
        module(torch.from_numpy(embeddings[:3].copy()))
    rows = torch.from_numpy(embeddings[:3].copy()).requires_grad_()
    module(rows)[0, 0].backward()
    assert float(rows.grad.abs().sum()) > 0.1


def test_a_row_equal_and_opposite_to_its_target_gets_the_target():
    plan = MarkPlan(
        projection=np.float32([[0.0, 1.0]]), thresholds=np.array([0.5]), target_of_region=np.array([1, 1]),
        targets=np.float32([[1.0, 0.0], [1.0, 0.0]]), weights=np.array([0.0, 0.5]), number_format=NumberFormat.float32,
    )  # fmt: skip
    rows = np.float32([[-1.0, 0.0], [0.0, 1.0]])
    served = torch_module.MarkModule(plan)(torch.from_numpy(rows)).numpy()
    assert np.allclose(served, mark(plan, rows), atol=1e-6)
    assert served[0].tolist() == [1.0, 0.0]


# ---- what is refused


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows * 1.5, "row 0 has length 1.5: .* drop them, or have rows scaled with normalise=True"),
        (lambda rows: rows.index_fill(0, torch.tensor([2]), float("nan")), "row 2 holds NaN or infinity"),
        (lambda rows: rows[:, :-1], "embeddings has width 255, but the key was made for width 256"),
        (lambda rows: rows[0], "2-d tensor of floating-point numbers"),
        (lambda rows: rows.to(torch.int64), "is torch.int64"),
    ],
)
def test_bad_rows_are_refused(markers, embeddings, change, message):
    rows = torch.from_numpy(embeddings[:4].copy())
    with pytest.raises(InputError, match=message):
        markers("graded").to_torch()(change(rows))


def test_nothing_in_nothing_out(markers, embeddings):
    module = markers("published").to_torch()
    assert module(torch.empty(0, module.width)).shape == (0, module.width)


def test_no_key_no_module():
    with pytest.raises(NotFittedError):
        RegionMarker().to_torch()


def test_a_reducer_that_is_not_linear_is_refused(sentences, embeddings):
    fitted = RegionMarker(seed=1, reducer="autoencoder", dimension=2, pool=64, reservoir=256, ratio=0.3, tenant_ratio=0)
    fitted.fit(sentences[:800], embeddings=embeddings[:800])
    with pytest.raises(InputError, match="call transform\\(\\) on what the model returns"):
        fitted.to_torch()


# ---- secrecy


@pytest.fixture(params=KINDS)
def module(markers, embeddings, request):
    """A module that has worked, so that its arrays lie on a device."""
    made = markers(request.param).to_torch("acme")
    made(torch.from_numpy(embeddings[:3].copy()))
    return made


def model(module):
    return torch.nn.Sequential(torch.nn.Identity(), module)


def test_state_dicts_and_text_hold_nothing(module):
    whole = model(module)
    assert not whole.state_dict()
    assert not [*whole.parameters(), *whole.buffers()]
    assert repr(module) == str(module) == f"{module}" == "<MarkModule: sealed>"
    assert "tensor" not in f"{whole!r} {vars(module)}"
    whole.load_state_dict({})


COPIES = {
    "pickle": pickle.dumps,
    "deepcopy": copy.deepcopy,
    "torch.save": lambda holder: torch.save(holder, io.BytesIO()),
}


@pytest.mark.parametrize("attempt", COPIES)
def test_copies_are_refused(module, attempt):
    for holder in (module, model(module), {"of": [module]}):
        with pytest.raises(
            SecretLeakError, match=r"^MarkModule holds key material and cannot .* save the model without it"
        ):
            COPIES[attempt](holder)
    with pytest.raises(SecretLeakError):
        COPIES[attempt](module._placed)
    with pytest.raises(SecretLeakError):
        copy.copy(module)


def test_graphs_are_refused(module, embeddings, quiet_torch):
    rows = torch.from_numpy(embeddings[:3].copy())
    attempts = {
        "trace": lambda: torch.jit.trace(model(module), rows),
        "symbolic trace": lambda: torch.fx.symbolic_trace(model(module)),
        "export": lambda: torch.export.export(model(module), (rows,), strict=False),
    }
    for name, attempt in attempts.items():
        with pytest.raises(SecretLeakError, match="traced or exported"):
            pytest.fail(f"{name} gave {attempt()}")


def test_scripting_is_refused(module, quiet_torch):
    with pytest.raises((RuntimeError, TypeError, NotImplementedError, OSError)):
        torch.jit.script(model(module))


def test_compiled_graphs_do_not_hold_it(module, embeddings, quiet_torch):
    graphs = []

    def keep(graph, _inputs):
        graphs.append(graph)
        return graph.forward

    rows = torch.from_numpy(embeddings[:3].copy())
    whole = torch.nn.Sequential(torch.nn.Linear(256, 256), Normalised(), module)
    with torch.no_grad():
        expected = whole(rows)
        found = torch.compile(whole, backend=keep)(rows)
    assert torch.allclose(found, expected, atol=1e-6)
    shapes = {tuple(array.shape) for array in vars(module._placed.on(rows.device)).values()}
    held = [tensor for graph in graphs for tensor in [*graph.parameters(), *graph.buffers()]]
    assert not shapes & {tuple(tensor.shape) for tensor in held}


class Normalised(torch.nn.Module):
    def forward(self, rows):
        return torch.nn.functional.normalize(rows, dim=1)


def test_tracebacks_with_local_variables_are_silent(module):
    try:
        module(torch.ones(1, module.width))
    except InputError as error:
        shown = "".join(traceback.TracebackException.from_exception(error, capture_locals=True).format())
    for array in vars(module._placed.on(torch.device("cpu"))).values():
        if array.is_floating_point():
            assert f"{float(array.flatten()[0]):.4f}" not in shown
    assert "_Tensors: sealed" in shown
