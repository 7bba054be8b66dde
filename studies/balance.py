"""How evenly 16 regions fill for other providers, with and without reduction, with and without centring.

    python -m studies.balance --data-dir DATA [--keys 20]

The paper does not centre before it projects, and its provider is crowded (two texts have a mean cosine of about 0.75).
Hyperplanes are orthonormal, through the mean or through the origin. A cell is the entropy of the shares of regions (1:
all alike), and in brackets the mean share of the smallest and of the largest region in per cent.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from regionmarker.benchmark.corpora import load_corpus
from regionmarker.benchmark.corpora.providers import mean_cosine
from regionmarker.marks.reduction import haar
from studies._study import CORPORA, PROVIDER, Command, markdown

PAGE = "docs/results/subspace.md"
PROVIDERS = ("stored:mpnet768", "stored:nomic768", "stored:mpnet768+nomic768,crowded=0.75")
PLANES, FITTED = 4, 4000


def cell(rows: np.ndarray, keys: int) -> str:
    found = []
    for seed in range(keys):
        normals = haar(np.random.default_rng([seed, 16]), PLANES, rows.shape[1]).astype(np.float32)
        sides = rows @ normals.T > 0  # (n, 4)
        found.append(np.bincount(sides @ (1 << np.arange(PLANES)), minlength=2**PLANES) / len(rows))
    shares = np.array(found)  # (keys, 16)
    logs = np.log(shares, where=shares > 0, out=np.zeros_like(shares))
    entropy = -(shares * logs).sum(axis=1).mean() / np.log(2**PLANES)
    return f"{entropy:.3f} ({100 * shares.min(axis=1).mean():.1f}-{100 * shares.max(axis=1).mean():.0f})"


def line(data: Path, corpus: str, provider: str, keys: int) -> list[str]:
    clean = load_corpus(corpus, provider, folder=data).clean
    centred = clean - clean.mean(axis=0)
    _, axes = np.linalg.eigh(np.cov(clean[:FITTED].astype(np.float64), rowvar=False))
    top = axes[:, -PLANES:].astype(np.float32)
    spaces = (centred @ top, clean @ top, centred, clean)
    about = [provider.removeprefix("stored:"), CORPORA[corpus], f"{mean_cosine(clean):.2f}"]
    return about + [cell(rows, keys) for rows in spaces]


def main() -> None:
    parser = Command(__doc__, PAGE, data=True, smoke={"keys": 2, "providers": [f"stored:{PROVIDER}"]})
    parser.add_argument("--keys", type=int, default=20)
    parser.add_argument("--providers", nargs="+", default=list(PROVIDERS))
    options = parser.read()
    corpora = [name for name in CORPORA if (options.data_dir / f"{name}.parquet").is_file()]
    body = [
        line(options.data_dir, corpus, provider, options.keys) for provider in options.providers for corpus in corpora
    ]
    print(markdown(["provider", "corpus", "mean cosine", "PCA", "PCA, uncentred", "none", "none, uncentred"], body))


if __name__ == "__main__":
    main()
