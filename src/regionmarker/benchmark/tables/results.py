"""Rows of results, chosen, grouped and summed up."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from scipy.stats import binomtest

from regionmarker.benchmark.defenses import look_of
from regionmarker.benchmark.grid.cell import NO_DEFENSE, PORTRAIT

LEVEL = 1e-3
"""The false-positive rate at which power is compared."""

CORPORA = {"sst2": "SST-2", "mind": "MIND", "ag_news": "AG News", "enron": "Enron", "python": "Python's documentation"}
_SILENT = ("pool",)
"""Settings that say how a verdict is reached and not what is served."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Results:
    """Some rows; every choice of some of them is Results again.

    Examples
    --------
    >>> rows = [{"defense": "wet", "decoy_p": 1e-4, "error": None}, {"defense": "wet", "decoy_p": 0.5, "error": None}]
    >>> Results(rows).detected()
    (1, 2)
    """

    rows: Sequence[Row]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def where(self, keep: Callable[[Row], bool] | None = None, **equal: Any) -> Results:
        """Return the rows with these values, and for which ``keep`` holds."""
        return Results(
            [
                row
                for row in self.rows
                if all(row[name] == value for name, value in equal.items()) and (keep is None or keep(row))
            ]
        )

    def by(self, key: str | Callable[[Row], Any]) -> dict[Any, Results]:
        """Return groups in the order of their first rows."""
        get = key if callable(key) else lambda row: row[key]
        groups: dict[Any, list[Row]] = {}
        for row in self.rows:
            groups.setdefault(get(row), []).append(row)
        return {value: Results(rows) for value, rows in groups.items()}

    def schemes(self) -> list[str]:
        """Return the names of the rows' defenses in the order of tables, those of other packages after ours."""
        return sorted({scheme(row) for row in self.rows}, key=look_of)

    def marked_schemes(self) -> list[str]:
        """Return the same without the control."""
        return [name for name in self.schemes() if name != NO_DEFENSE]

    def of(self, name: str) -> Results:
        """Return the rows of one defense, whatever its settings."""
        return self.where(lambda row: scheme(row) == name)

    def attacked(self, *kinds: str) -> Results:
        """Return the rows with one of these attacks, whatever its settings."""
        return self.where(lambda row: kind(row) in kinds)

    def most_common_setup(self) -> Results:
        """Return the rows of each corpus' most frequent provider and stealer, and of each attack's number of queries.

        Tables compare one thing at a time: what others stole, or from more queries, is another thing.
        """
        kept: list[Row] = []
        for some in self.by("corpus").values():
            stolen = some.where(lambda row: bool(row["stealer"]))
            provider, stealer = _most_common(stolen, lambda row: (row["provider"], row["stealer"])) or ("", "")
            same = stolen.where(provider=provider, stealer=stealer)
            usual = _most_common(same, lambda row: row["queries"])
            queries = {attack: _most_common(of, lambda row: row["queries"]) for attack, of in same.by("attack").items()}
            kept += [
                row
                for row in some
                if (row["stealer"] == "" and (usual is None or (row["provider"], row["queries"]) == (provider, usual)))
                or (row["provider"] == provider and row["stealer"] == stealer != ""
                    and row["queries"] == queries[row["attack"]])
            ]  # fmt: skip
        return Results(kept)

    def with_settings(self, settings: str) -> Results:
        """Return the rows whose defense has these settings."""
        return self.where(lambda row: settings_of(row) == settings)

    def values(self, column: str) -> list[float]:
        """Return the numbers of a column that are there."""
        found = (row.get(column) for row in self.rows)
        return [float(value) for value in found if value is not None and not math.isnan(value)]

    def of_keys(self, column: str) -> list[float]:
        """Return the numbers of a column that belong to a key, each key's once, however often it was attacked."""
        there = self.where(lambda row: row.get(column) is not None)
        found = there.by(lambda row: tuple(row[name] for name in ("corpus", "provider", "defense", "queries", "seed")))
        return [value for some in found.values() for value in some.values(column)[:1]]

    def mean_sd(self, column: str, digits: int = 2, scale: float = 1.0, *, keys: bool = False) -> str:
        """Return mean and standard deviation of a column, or of its keys; of one seed the mean alone.

        Numbers of one seed differ by attack and defense, and a spread of that tells nobody how sure a mean is.
        """
        values = self.of_keys(column) if keys else self.values(column)
        several = len({row["seed"] for row in self.rows}) > 1
        return mean_sd(values if several or not values else [sum(values) / len(values)], digits, scale)

    @property
    def copies(self) -> Results:
        """Rows of suspects that were trained on marked vectors."""
        return self.where(lambda row: bool(row["guilty"]))

    @property
    def innocents(self) -> Results:
        """Rows of suspects that were not."""
        return self.where(lambda row: not row["guilty"] and row["suspect"] != PORTRAIT)

    def detected(self, level: float = LEVEL) -> tuple[int, int]:
        """Return how many the decoy test convicts, of how many; what it cannot judge it does not convict."""
        judged = [row for row in self.rows if row["error"] is None]
        return sum((row["decoy_p"] if row["decoy_p"] is not None else 1.0) <= level for row in judged), len(judged)

    def called_copies(self) -> tuple[int, int]:
        """Return how many the published rule calls copies, of how many."""
        judged = [row for row in self.rows if row["error"] is None]
        return sum(bool(row["published_copy"]) for row in judged), len(judged)


def _most_common(rows: Results, key: Callable[[Row], Any]) -> Any:
    """Return the most frequent value, the first of several; None of no rows."""
    counts = Counter(key(row) for row in rows)
    return max(counts, key=counts.__getitem__) if counts else None


def without_seeds(rows: Sequence[Row]) -> Results:
    """Return the rows with one name for attacks whose only setting is their cell's seed, such as ``rotate:{seed}``.

    Examples
    --------
    >>> rows = [{"seed": seed, "attacks": [f"rotate:{seed}", "shift:1"], "attack": "..."} for seed in (1, 2)]
    >>> [row["attack"] for row in without_seeds(rows)]
    ['rotate then shift:1', 'rotate then shift:1']
    >>> rows = [{"seed": seed, "attacks": [f"after:rotate:{seed}"], "attack": "..."} for seed in (1, 2)]
    >>> [row["attack"] for row in without_seeds(rows)]
    ['after:rotate', 'after:rotate']
    """
    seeds: dict[str, set[int]] = {}
    other: set[str] = set()  # attacks with a setting that is not their cell's seed
    for row in rows:
        for spec in row["attacks"] or []:
            name, setting = _name_and_setting(spec)
            seeds.setdefault(name, set()).add(row["seed"])
            other |= {name} if setting != str(row["seed"]) else set()
    seeded = {name for name, found in seeds.items() if len(found) > 1 and name not in other}

    def named(row: Row) -> Row:
        specs = [name if (name := _name_and_setting(spec)[0]) in seeded else spec for spec in row["attacks"] or []]
        return {**row, "attacks": specs, "attack": " then ".join(specs) or "none"}

    return Results([named(row) for row in rows])


def _name_and_setting(spec: str) -> tuple[str, str]:
    """Return an attack's name, with ``after`` before it where it comes after the training, and its setting."""
    name, _, setting = spec.partition(":")
    if name == "after":
        attack, _, setting = setting.partition(":")
        name = f"after:{attack}"
    return name, setting


def scheme(row: Row) -> str:
    """Return the name of a row's defense without its settings."""
    return str(row["defense"]).partition(":")[0]


def title(name: str) -> str:
    """Return what tables and figures call a defense.

    Examples
    --------
    >>> title("embmarker"), title("garlic")
    ('EmbMarker', 'garlic')
    """
    return look_of(name).title


def corpus_title(name: str) -> str:
    """Return what tables and figures call a corpus.

    Examples
    --------
    >>> corpus_title("sst2"), corpus_title("mine.csv")
    ('SST-2', 'mine.csv')
    """
    return CORPORA.get(name, name)


def kind(row: Row) -> str:
    """Return the name of a row's only attack without its settings; of several, all of them."""
    attacks = row["attacks"] or []
    return str(attacks[0]).partition(":")[0] if len(attacks) == 1 else (row["attack"] if attacks else "none")


def settings_of(row: Row) -> str:
    """Return the settings of a row's defense that change what is served, as its spec has them."""
    return ",".join(_served_settings(row["defense"]))


def _served_settings(spec: str) -> list[str]:
    return [part for part in spec.partition(":")[2].split(",") if part and part.partition("=")[0] not in _SILENT]


def file_name(name: str) -> str:
    """Return what a corpus is called in names of files.

    Examples
    --------
    >>> file_name("ag_news")
    'ag-news'
    """
    return "".join(letter if letter.isalnum() else "-" for letter in name)


def label(spec: str) -> str:
    """Return what tables call a defense: its name, and the settings that change what is served.

    Examples
    --------
    >>> label("regionmarker:pool=512,reducer=svd"), label("wet:pool=2048")
    ('RegionMarker 0.1 reducer=svd', 'WET')
    """
    return " ".join([title(spec.partition(":")[0]), *_served_settings(spec)])


def default_settings(row: Row) -> bool:
    """Return whether a row's defense has its default settings, as far as they change what is served."""
    return not settings_of(row)


def parameters(row: Row) -> dict[str, Any]:
    """Return the hyper-parameters of a row."""
    found: dict[str, Any] = json.loads(row["parameters"] or "{}")
    return found


def mean_sd(values: Sequence[float], digits: int = 2, scale: float = 1.0) -> str:
    """Return mean and standard deviation; the mean alone of one value, a dash of none.

    Examples
    --------
    >>> mean_sd([0.1, 0.3], scale=100), mean_sd([0.5]), mean_sd([])
    ('20.00 ± 14.14', '0.50', '-')
    """
    if not values:
        return "-"
    mean = sum(values) / len(values)
    if len(values) == 1:
        return f"{scale * mean:.{digits}f}"
    sd = math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
    return f"{scale * mean:.{digits}f} ± {scale * sd:.{digits}f}"


def middle_p(values: Sequence[float]) -> str:
    """Return the median p-value.

    Examples
    --------
    >>> middle_p([1e-9, 0.2, 3e-5]), middle_p([])
    ('3e-05', '-')
    """
    return shown_p(median(values)) if values else "-"


def shown_p(value: float) -> str:
    """Return a p-value as tables print it.

    Examples
    --------
    >>> shown_p(0.046), shown_p(3.2e-38)
    ('0.05', '3e-38')
    """
    return f"{value:.2f}" if value >= 0.01 else f"{value:.0e}"


def share(counts: tuple[int, int]) -> str:
    """Return ``k of n``, a dash where there is nothing to count."""
    return f"{counts[0]} of {counts[1]}" if counts[1] else "-"


def caught(counts: tuple[int, int]) -> str:
    """Return ``k of n`` with the interval of the share.

    Examples
    --------
    >>> caught((12, 12)), caught((0, 0))
    ('12 of 12 (0.74 to 1.00)', '-')
    """
    return f"{share(counts)} ({shown_interval(counts)})" if counts[1] else "-"


def clopper_pearson(counts: tuple[int, int]) -> tuple[float, float] | None:
    """Return the exact 95 % interval of a share; None of nothing.

    Examples
    --------
    >>> round(clopper_pearson((12, 12))[0], 3), clopper_pearson((0, 0))
    (0.735, None)
    """
    hits, count = counts
    if not count:
        return None
    found = binomtest(hits, count).proportion_ci(0.95, method="exact")
    return float(found.low), float(found.high)


def shown_interval(counts: tuple[int, int]) -> str:
    """Return the interval as tables print it.

    Examples
    --------
    >>> shown_interval((12, 12)), shown_interval((0, 0))
    ('0.74 to 1.00', '-')
    """
    found = clopper_pearson(counts)
    return "-" if found is None else f"{found[0]:.2f} to {found[1]:.2f}"
