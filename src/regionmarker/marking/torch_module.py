"""The mark as a torch module: it runs where the model runs, on the tensors that come out of it.

``RegionMarker.to_torch`` makes it; nothing else imports this file, so torch stays optional. The arithmetic is that of
:mod:`regionmarker.marking.numpy_engine`, in float64 (in float32 on devices that have no float64): what is rounded to
the key's number format agrees with ``transform`` to 1e-6, and better. What sums are made of the last bits may depend on
the device and on the batch; what the model itself computes does so far more.

The arrays of the key are neither parameters nor buffers. A state dict has none of them, ``.half()`` does not round
them, and whatever would write them somewhere (pickle, ``torch.save``, a copy, ``torch.jit``, ``torch.export``) is
refused. ``torch.compile`` leaves the module out of its graphs.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from regionmarker.crypto.secret import Sealed
from regionmarker.errors import InputError, MissingExtraError, SecretLeakError
from regionmarker.marking.engine import refuse_rows
from regionmarker.marking.numpy_engine import is_bad
from regionmarker.marks.number_format import COLUMN_STEP, FIRST_FACTOR, LIMITS, SECOND_FACTOR, NumberFormat
from regionmarker.marks.plan import CLIP, NOTHING_LEFT, GradedPlan, MarkPlan
from regionmarker.vectors import AnyArray

try:
    import torch
    from torch import Tensor, nn
except ImportError:
    raise MissingExtraError.for_module("torch", "sentence-transformers") from None

_INPUTS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
_WORD = 0xFFFF_FFFF
_FLOAT32_EXPONENT, _FLOAT64_EXPONENT = 0x7F80_0000, 0x7FF0_0000_0000_0000


class _Tensors(Sealed):
    """The arrays of a plan on one device: sealed, because tracebacks may print local variables."""

    def __init__(self, arrays: Mapping[str, AnyArray], device: torch.device) -> None:
        wide = wide_dtype(device)
        for name, array in arrays.items():
            dtype = wide if array.dtype.kind == "f" else torch.int64
            setattr(self, name, torch.tensor(array, dtype=dtype, device=device))

    def __getattr__(self, name: str) -> Tensor:  # for type checkers: what is there is found without it
        raise AttributeError(name)


class _Placed(Sealed):
    """The arrays of a plan, once on every device that asked for them."""

    def __init__(self, plan: MarkPlan | GradedPlan) -> None:
        self._on: dict[torch.device, _Tensors] = {}
        if isinstance(plan, GradedPlan):
            names = ("planes", "offsets", "first", "second", "centres", "amounts", "directions")
            self._arrays = {name: getattr(plan, name) for name in names}
            return
        if plan.projection is None:
            raise InputError(
                "this key's reducer is not linear, and a torch module needs one that is: "
                "call transform() on what the model returns"
            )
        tables = plan.tables
        self._arrays = {
            "planes": plan.projection,
            "offsets": plan.thresholds,
            "target_of_region": tables.target_of_region,
            "target_part": tables.target_part,
            "own_part": tables.own_part,
        }

    def on(self, device: torch.device) -> _Tensors:
        if device not in self._on:
            with torch.inference_mode(False):  # usable afterwards where gradients are wanted
                self._on[device] = _Tensors(self._arrays, device)
        return self._on[device]


class MarkModule(Sealed, nn.Module):
    """Embeddings in, embeddings to serve out: (n, D) to (n, D) float32, on the device of the input.

    It has no parameters, and refuses to be copied, pickled, saved, traced or exported. Rows that ``transform`` refuses
    are refused here, too.

    Examples
    --------
    >>> import numpy as np
    >>> from regionmarker import RegionMarker
    >>> rows = np.random.default_rng(0).standard_normal((600, 64)).astype(np.float32)
    >>> rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    >>> marker = RegionMarker(kept=0.9, seed=1).fit([f"text {n}" for n in range(600)], embeddings=rows)
    >>> mark = marker.to_torch()
    >>> mark, mark.state_dict()
    (<MarkModule: sealed>, OrderedDict())
    >>> bool(np.abs(mark(torch.from_numpy(rows)).numpy() - marker.transform(rows)).max() < 1e-6)
    True
    """

    _instead = "save the model without it, and add the mark again where the model is loaded"

    def __init__(self, plan: MarkPlan | GradedPlan, *, normalise: bool = False) -> None:
        super().__init__()
        self._plan, self._placed, self._normalise = plan, _Placed(plan), normalise

    @property
    def width(self) -> int:
        """D, the number of columns."""
        return self._plan.width

    @torch.compiler.disable
    def forward(self, embeddings: Tensor) -> Tensor:
        """Return the embeddings to serve: what ``transform`` returns, up to one step of the number format."""
        mixed, served_as_it_came = self.unrounded(embeddings)
        served = _rounded(mixed, self._plan.number_format)
        if served_as_it_came is None:
            return served
        return torch.where(served_as_it_came[:, None], embeddings.to(torch.float32), served)

    def unrounded(self, embeddings: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return the marked rows before they are rounded (n, D), and which rows are served as they came (n,)."""
        self._check(embeddings)
        plan, wide = self._plan, wide_dtype(embeddings.device)
        placed = self._placed.on(embeddings.device)
        with _full_precision(embeddings.device.type):
            rows = embeddings.to(torch.float32)
            lengths = _lengths(rows.to(wide))
            self._refuse_bad_rows(lengths)
            coarse = plan.number_format is not NumberFormat.float32
            e = (_dithered(rows, plan.number_format) if coarse else rows).to(wide)
            units = 1.0 / _lengths(e)[:, None] if self._normalise else torch.ones_like(e[:, :1])
            if isinstance(plan, GradedPlan):
                return _graded(placed, e * units), None
            scaled = rows.to(wide) / lengths[:, None] if self._normalise else rows.to(wide)
            target_of_row = _targets(placed, scaled)
            mixed = _published(placed, e, units, target_of_row)
            if not coarse or self._normalise:
                return mixed, None
            on_grid = (_rounded(rows.to(wide), plan.number_format) == rows).all(dim=1)
            return mixed, (target_of_row == 0) & on_grid

    def _check(self, embeddings: object) -> None:
        jit: Any = torch.jit  # which has no types
        traced = jit.is_tracing() or torch.compiler.is_exporting() or torch.compiler.is_compiling()
        if traced or not isinstance(embeddings, Tensor):  # a graph would keep our arrays as its constants
            raise SecretLeakError(
                "MarkModule holds key material and cannot be traced or exported: "
                "export the model without it, and mark what the exported model returns"
            )
        if embeddings.ndim != 2 or embeddings.dtype not in _INPUTS:
            raise InputError(
                f"embeddings must be a 2-d tensor of floating-point numbers, one row per text, "
                f"but is {embeddings.dtype} of shape {tuple(embeddings.shape)}"
            )
        if embeddings.shape[1] != self.width:
            raise InputError(f"embeddings has width {embeddings.shape[1]}, but the key was made for width {self.width}")

    def _refuse_bad_rows(self, lengths: Tensor) -> None:
        norms = lengths.detach().cpu().numpy()
        bad = is_bad(self._plan.norm_tolerance, norms, self._normalise)
        if bad.any():
            refuse_rows(norms, bad, self._normalise)


def wide_dtype(device: torch.device) -> torch.dtype:
    """Return the widest numbers that a device computes with: Apple's have no float64."""
    return torch.float32 if device.type == "mps" else torch.float64


def _full_precision(device_type: str) -> AbstractContextManager[Any]:
    """Whatever the model around it does: autocast would round the hyperplanes."""
    available = torch.amp.is_autocast_available(device_type)
    return torch.autocast(device_type, enabled=False) if available else nullcontext()


def _lengths(rows: Tensor) -> Tensor:
    return (rows * rows).sum(dim=1).sqrt()  # (n,)


def _unit(y: Tensor) -> Tensor:
    y = y.to(torch.float32).to(y.dtype)
    return y / _lengths(y)[:, None]


def _graded(plan: _Tensors, e: Tensor) -> Tensor:
    """Return e + sum_j (c_j - centre_j) amount_j d_j, of unit length; see ``marks.graded``."""
    u = e @ plan.planes.T - plan.offsets  # (n, h)
    other = torch.where(plan.second >= 0, u[:, plan.second.clamp(min=0)], torch.ones_like(u[:, :1]))  # (n, J)
    carriers = (u[:, plan.first] * other).clamp(-CLIP, CLIP)
    return _unit(e + ((carriers - plan.centres) * plan.amounts) @ plan.directions)


def _targets(plan: _Tensors, e: Tensor) -> Tensor:
    """Return the number of every row's target, (n,), by the sides of the hyperplanes it lies on."""
    signs = (e @ plan.planes.T > plan.offsets).to(torch.int64)  # (n, d)
    bits = 2 ** torch.arange(signs.shape[1], device=e.device)
    return plan.target_of_region[(signs * bits).sum(dim=1)]


def _published(plan: _Tensors, e: Tensor, units: Tensor, target_of_row: Tensor) -> Tensor:
    """Return (1 - lambda) e + lambda w_r, of unit length; paper, eq. 3."""
    own = (plan.own_part[target_of_row][:, None] * units).to(torch.float32).to(e.dtype)  # (n, 1)
    y = own * e + plan.target_part[target_of_row]
    lost = (y * y).sum(dim=1, keepdim=True) < NOTHING_LEFT  # e was -w at lambda = 1/2
    return _unit(torch.where(lost, plan.target_part[target_of_row], y))


def _dithered(rows: Tensor, number_format: NumberFormat) -> Tensor:
    """Move every entry by up to half a unit in its last place, to the bit as ``number_format.dithered`` does.

    int64 holds the words: torch has few operations on unsigned ones. Products wrap at 64 bits, and the lower 32 are
    what they would be.
    """
    words = rows.detach().contiguous().view(torch.int32).to(torch.int64) & _WORD
    h = (words + torch.arange(rows.shape[1], device=rows.device) * COLUMN_STEP) & _WORD
    for shift, factor in ((16, FIRST_FACTOR), (13, SECOND_FACTOR)):
        h = ((h ^ (h >> shift)) * factor) & _WORD
    h = h ^ (h >> 16)
    share = h.to(torch.float32) * 2.0**-32 - 0.5
    limits = LIMITS[number_format]
    power = (words & _FLOAT32_EXPONENT).to(torch.int32).view(torch.float32)
    return rows + share * (power.clamp(min=limits.least_power) * 2.0**-limits.fraction_bits)


def _rounded(y: Tensor, number_format: NumberFormat) -> Tensor:
    """Round once to the nearest number of a format, ties to even; see ``number_format.magic_factor``."""
    if number_format is NumberFormat.float32:
        return y.to(torch.float32)
    limits, size = LIMITS[number_format], y.abs()
    if y.dtype == torch.float64:
        power, bits = (size.detach().view(torch.int64) & _FLOAT64_EXPONENT).view(torch.float64), 52
    else:
        power, bits = (size.detach().view(torch.int32) & _FLOAT32_EXPONENT).view(torch.float32), 23
    magic = power.clamp(min=limits.least_power) * (1.5 * 2.0 ** (bits - limits.fraction_bits))
    return torch.copysign((size + magic) - magic, y).to(torch.float32)
