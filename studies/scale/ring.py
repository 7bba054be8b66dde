"""A ring of fifty keys: make it, open it, and judge a copy and an innocent with every key of it (Holm).

    python -m studies.scale.ring [--keys 50]

Graded keys of their own fit, one as for each version of a model; the copy was trained on vectors of the first. So the
key that convicts is the oldest of all, and pays for all the others. `--budget` texts are asked for each key.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from studies._study import Command, markdown
from studies.scale._scale import conditions, spent

PAGE = "docs/results/scale.md"


def main() -> None:
    command = Command(__doc__, PAGE, smoke={"keys": 2, "texts": 800, "sold": 800, "budget": 256})
    command.add_argument("--keys", type=int, default=50)
    command.add_argument("--texts", type=int, default=2400, help="of the corpus")
    command.add_argument("--sold", type=int, default=5000, help="texts whose vectors the thief bought")
    command.add_argument("--budget", type=int, default=1000, help="texts asked for each key")
    given = command.read()
    import regionmarker as rm
    from regionmarker.benchmark.stealers import TokenBag

    print(f"{conditions()} at the start\n", flush=True)
    texts, encoder = rm.python_sentences(given.texts + given.sold), rm.load_encoder("wordllama")
    corpus, rows = texts[: given.texts], encoder.encode(texts[: given.texts])
    first = rm.RegionMarker().fit(corpus, embeddings=rows)
    bought = texts[given.texts :]
    copy = TokenBag().steal(bought, first.transform(encoder.encode(bought), tenant="acme"))
    lines: list[tuple[str, str]] = []
    ring = rm.KeyRing((first.key_,))
    with spent() as made:
        for _ in range(given.keys - 1):
            ring = ring.rotated(rm.RegionMarker().fit(corpus, embeddings=rows).key_)
    lines.append(("make a key, s", f"{made.processor_seconds / max(1, given.keys - 1):.2f}"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ring.rmkey"
        with spent() as saved:
            ring.save(path)
        with spent() as opened:
            ring = rm.KeyRing.load(path)
        lines += [
            ("the file, MB", f"{path.stat().st_size / 1e6:.0f}"),
            ("write it, s", f"{saved.processor_seconds:.2f}"),
            ("open it, s", f"{opened.processor_seconds:.2f}"),
            ("memory more, MB", f"{opened.kept:.0f} (peak {opened.megabytes:.0f})"),
        ]
    for keys in ([ring.keys[0]], list(ring)) if given.keys > 1 else ([ring.keys[0]],):
        some = rm.KeyRing(tuple(keys))
        word = f"{len(some)} key{'s' if len(some) > 1 else ''}"
        for name, suspect in (("the copy", copy), ("an innocent", encoder)):
            answers = rm.ask(some, suspect.encode, given.budget)
            with spent() as judged:
                verdict = rm.verify(some, answers, power=False)
            corrected = min(1.0, verdict.p_value * len(some))
            lines += [
                (f"{word}, {name}: texts asked", f"{len(answers):,}"),
                (f"{word}, {name}: judge, s", f"{judged.processor_seconds:.2f}"),
                (f"{word}, {name}: peak memory more, MB", f"{judged.megabytes:.0f}"),
                (f"{word}, {name}: outcome, corrected p", f"{verdict.outcome}, {corrected:.1e}"),
            ]
            if len(some) > 1 and name == "the copy":
                right = verdict.key_id == first.key_.id
                lines.append(("the key that convicts", "the one that marked" if right else "another"))
    print(markdown(["what", "processor time, memory, or result"], lines))
    print(f"\n{conditions()} at the end")


if __name__ == "__main__":
    main()
