"""What the tables come to: differences of power between two k, and how near the angle search came."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Row = dict[str, object]
PAIRS = (("8", "4"), ("16", "4"), ("32", "4"), ("32", "16"), ("64", "32"))
FOUND = 0.9  # alignment from which the normals' span counts as found


def values(rows: list[Row], task: str, space: str, name: str) -> npt.NDArray[np.float64]:
    chosen = [r for r in rows if (r["task"], r["space"]) == (task, space) and not r.get("failed")]
    return np.array([float(r[name]) for r in chosen])  # type: ignore[arg-type]


def error(sample: npt.NDArray[np.float64]) -> float:
    return float(sample.std(ddof=1) / np.sqrt(len(sample))) if len(sample) > 1 else float("nan")


def power_lines(rows: list[Row], spaces: tuple[str, ...]) -> list[str]:
    lines = []
    for thief in ("public", "strong"):
        u = {space: values(rows, "power", space, f"{thief}_u") for space in spaces}
        means = [f"{k}: {s.mean():.2f} ± {error(s):.2f}" for k, s in u.items() if len(s)]
        lines += [f"- {thief} thief, U/sqrt 3, mean ± standard error: " + "; ".join(means)] if means else []
        for high, low in PAIRS:
            if len(u[high]) and len(u[low]):
                spread = np.hypot(error(u[high]), error(u[low]))
                lines.append(
                    f"- {thief} thief, {high} against {low}: {u[high].mean() - u[low].mean():+.2f} ± {spread:.2f}"
                )
    return lines


def angle_lines(rows: list[Row], spaces: tuple[str, ...]) -> list[str]:
    lines = []
    for space in spaces:
        align = values(rows, "angles", space, "gradient_align")
        if not len(align):
            continue
        ratio = values(rows, "angles", space, "gradient_evidence") / values(rows, "angles", space, "oracle_evidence")
        scores = [f"{m}_{s}_{r}" for m in ("gradient", "climb") for s in ("cell", "row") for r in ("v", "x")]
        best = max(values(rows, "angles", space, name).mean() for name in scores)
        lines.append(
            f"- k = {space}: alignment >= {FOUND} in {(align >= FOUND).sum()} of {len(align)} keys; evidence of the "
            f"frame found over that of the true one {ratio.mean():.2f}; best of the eight region scores {best:.2f}"
        )
    return lines


def summary(rows: list[Row], spaces: tuple[str, ...]) -> list[str]:
    """Two lists as Markdown; the errors take keys of different corpora as independent."""
    lists = ["\n".join(power_lines(rows, spaces)), "\n".join(angle_lines(rows, spaces))]
    return [text for text in lists if text] or ["(no rows yet)"]
