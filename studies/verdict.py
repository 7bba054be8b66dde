"""What a verdict costs: 2,000 answers of 1536 numbers in memory, one thread.

    python -m studies.verdict [--runs N] [--power]

The embeddings are drawn, with the falling spectrum of real ones; a verdict's cost does not depend on what the numbers
mean. A noisy copy of what a tenant was served is judged (its cosine to the clean vectors is 0.85), then ranked among
10,000 tenants. Each time is the best of --runs, as processor seconds, so that other work on the machine counts less.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import regionmarker as rm
from regionmarker.vectors import normalised
from regionmarker.verification.judging import judge
from regionmarker.verification.power import estimate_power
from regionmarker.verification.questions import plan_questions
from studies._study import Command, key_settings

PAGE = "docs/results/detection.md"
WIDTH, TEXTS, BUDGET, TENANTS = 1536, 5200, 2000, 10_000
COSINE = 0.85


def drawn(rng: np.random.Generator, count: int, width: int) -> NDArray[np.float32]:
    """Draw unit rows (count, width) whose covariance has a falling spectrum in a random basis."""
    basis = np.linalg.qr(rng.standard_normal((width, width)))[0]
    scale = np.arange(1, width + 1) ** -0.5
    return normalised(((rng.standard_normal((count, width)) * scale) @ basis).astype(np.float32))


def best(runs: int, work: Callable[[], Any]) -> tuple[float, Any]:
    """Return the least processor time of several runs, and the last result."""
    times, result = [], None
    for _ in range(runs):
        started = time.process_time()
        result = work()
        times.append(time.process_time() - started)
    return min(times), result


def main() -> None:
    smoke = {"runs": 1, "width": 64, "texts": 900, "budget": 400, "tenants": 50}
    parser = Command(__doc__, PAGE, smoke=smoke)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--power", action="store_true", help="also estimate the power, once")
    parser.add_argument("--width", type=int, default=WIDTH)
    parser.add_argument("--texts", type=int, default=TEXTS)
    parser.add_argument("--published", action="store_true", help="judge by the published mark and decoy-1")
    parser.add_argument("--budget", type=int, default=BUDGET)
    parser.add_argument("--tenants", type=int, default=TENANTS)
    options = parser.read()
    width, tenants = options.width, options.tenants
    rng = np.random.default_rng(0)
    clean = drawn(rng, options.texts, width)
    texts = [f"text {row}" for row in range(options.texts)]
    published = {"dimension": 4, **key_settings(options)} if options.published else {}
    marker = rm.RegionMarker(seed=0, **published).fit(texts, embeddings=clean)
    key, place = marker.key_, {text: row for row, text in enumerate(texts)}
    questions = plan_questions(key, options.budget, seed=0)
    rows = clean[[place[text] for text in questions.texts]]
    noise = rng.standard_normal(rows.shape).astype(np.float32) * np.float32(np.sqrt((1 / COSINE**2 - 1) / width))
    copy = marker.transform(normalised(rows + noise), tenant=f"tenant {min(4711, tenants - 1)}")
    turn = np.linalg.qr(rng.standard_normal((width, width)))[0].astype(np.float32)
    suspects = {"copy": copy, "rotated copy": normalised(copy @ turn)}
    names = [f"tenant {number}" for number in range(tenants)]
    drawn_targets = f"{len(key.provider_targets())} of {len(key.pool)} targets"
    print(f"{len(rows)} answers of width {width}, {key.mark.kind} mark, {drawn_targets}")
    for name, vectors in suspects.items():
        answers = rm.Answers(name, questions.texts, vectors)
        seconds, verdict = best(options.runs, lambda given=answers: judge(key, given, power=False))
        print(f"verdict, {name}: {seconds:.2f} s, p = {verdict.p_value:.1e}")
    test = verdict.basis.examination.test
    seconds, _ = best(options.runs, lambda: test(verdict.scores).p_value(key.provider_targets()))
    print(f"p from z: {seconds:.4f} s")
    answers = rm.Answers("copy", questions.texts, copy)
    seconds, ranking = best(options.runs, lambda: rm.trace(key, answers, names))
    first = ranking[0]
    print(f"{tenants} tenants ranked: {seconds:.2f} s; first {first.tenant}, corrected p {first.holm:.1e}")
    if options.power:
        seconds, power = best(1, lambda: estimate_power(key, questions, 1e-3, seed=0))
        print(f"power: {seconds:.1f} s, fidelity {power.caught} and above is caught")


if __name__ == "__main__":
    main()
