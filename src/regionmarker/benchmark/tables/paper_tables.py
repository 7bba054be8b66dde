"""The paper's tables with our numbers beside its own."""

from __future__ import annotations

from collections.abc import Iterable

from regionmarker.benchmark.tables.published import ATTACKS, NAMES, RESISTED, SECONDS, paper_row, with_sd
from regionmarker.benchmark.tables.results import (
    CORPORA,
    SCHEMES,
    Results,
    Row,
    mean_sd,
    middle_p,
    plain,
    scheme,
    share,
)
from regionmarker.benchmark.tables.table import Table

_MAIN = ("none", "cse", "paraphrase", "shift", "truncate")
_DIMENSIONS = ("none", "permute", "tanh", "project")
_COLUMNS = (
    "stolen accuracy %", "(paper)", "stolen macro-F1 %", "(paper)", "published p", "(paper)", "Δcos %", "(paper)",
    "Δl2 %", "(paper)", "called a copy", "(paper)", "blameless called copies", "decoy p", "caught at 1e-3",
    "blameless caught",
)  # fmt: skip
_NOTE = (
    "Mean ± standard deviation over seeds; p-values are medians. (paper): as printed, another provider and another thief. "
    "Blameless: the same thief after the same attack on unmarked vectors, judged by the same test. "
    "Caught: the decoy test at a false-positive rate of 1e-3."
)


def kind(row: Row) -> str:
    """Return the name of a row's only attack without its settings; of several, all of them."""
    attacks = row["attacks"] or []
    return str(attacks[0]).partition(":")[0] if len(attacks) == 1 else (row["attack"] if attacks else "none")


def compared(copies: Results, innocents: Results, paper: dict[str, str] | None) -> tuple[str, ...]:
    """Return our numbers of some copies, each beside the paper's, and the same tests on blameless suspects."""
    delta = [copies.values("delta_cos"), copies.values("delta_l2")]
    return (
        mean_sd(copies.values("stolen_accuracy"), scale=100), with_sd(paper, "accuracy"),
        mean_sd(copies.values("stolen_f1"), scale=100), with_sd(paper, "f1"),
        middle_p(copies.values("published_p")), paper["p_value"] if paper else "-",
        mean_sd(delta[0], scale=100), with_sd(paper, "delta_cos_pct"),
        mean_sd(delta[1], scale=100), with_sd(paper, "delta_l2_pct"),
        share(copies.called_copies()), paper["protected"] if paper else "-", share(innocents.called_copies()),
        middle_p(copies.values("decoy_p")), share(copies.detected()), share(innocents.detected()),
    )  # fmt: skip


def main_tables(results: Results) -> Iterable[Table]:
    """Yield the main results, a table a corpus."""
    for corpus, rows in results.where(plain).by("corpus").items():
        lines = []
        for name in (name for name in SCHEMES if name != "none"):
            for attack in _MAIN:
                of = rows.where(lambda row, name=name, attack=attack: scheme(row) == name and kind(row) == attack)
                if of.copies:
                    paper = paper_row(
                        "-attack-performance", dataset=corpus, defence=NAMES.get(name, ""), attack=ATTACKS[attack]
                    )
                    blameless = of.where(suspect="unmarked copy")
                    lines.append((SCHEMES[name], attack, *compared(of.copies, blameless, paper)))
        if lines:
            title = f"Main results on {CORPORA.get(corpus, corpus)}"
            yield Table(f"main-{_file(corpus)}", title, ("defense", "attack", *_COLUMNS), tuple(lines), _NOTE)


def motivation(results: Results) -> Iterable[Table]:
    """Yield the paper's first table: which defense resists which attack."""
    groups = (("cse",), ("paraphrase",), ("shift", "truncate", "permute"))
    lines = []
    for name, theirs in RESISTED.items():
        rows = results.where(plain).where(lambda row, name=name: scheme(row) == name)
        if not rows.copies:
            continue
        line = [SCHEMES[name]]
        for attacks, paper in zip(groups, theirs, strict=True):
            of = rows.where(lambda row, attacks=attacks: kind(row) in attacks)
            line += [
                share(of.copies.detected()), share(of.where(suspect="unmarked copy").detected()),
                share(of.copies.called_copies()), share(of.where(suspect="unmarked copy").called_copies()), paper,
            ]  # fmt: skip
        lines.append(tuple(line))
    if lines:
        heads = [
            f"{attack}: {what}"
            for attack in ("CSE", "paraphrasing", "dimensions")
            for what in ("caught", "blameless caught", "called a copy", "blameless called copies", "paper")
        ]
        note = (
            "Caught: decoy test at 1e-3. Called a copy: the scheme's own published rule. Dimensions: shift, truncation "
            "and permutation."
        )
        yield Table("motivation", "Which defense resists which attack", ("defense", *heads), tuple(lines), note)


def dimension_wise(results: Results) -> Iterable[Table]:
    """Yield the paper's table of dimension-wise transformations."""
    yield from _listed(
        results.where(plain), "dimension-wise", "RegionMarker under dimension-wise transformations",
        [(attack, lambda row, attack=attack: kind(row) == attack, "dimension-wise-attack-performance",
          {"attack": ATTACKS[attack]}) for attack in _DIMENSIONS],
    )  # fmt: skip


def ablations(results: Results) -> Iterable[Table]:
    """Yield both ablation tables: without reduction, and with one watermark for all regions."""
    variants = (("full", ""), ("w/o PCA", "reducer=none"), ("single watermark", "shared"))
    chosen = []
    for attack in ("none", "cse", "paraphrase", "shift"):
        table = "necessity-pca"
        paper_attack = "paraphrase-gpt-4o-mini" if attack == "paraphrase" else ATTACKS[attack]
        for variant, setting in variants:
            chosen.append(
                (
                    f"{variant}, {attack}",
                    lambda row, attack=attack, setting=setting: kind(row) == attack and settings(row) == setting,
                    table,
                    {"attack": paper_attack, "variant": variant},
                )
            )
    if any(settings(row) for row in results.copies if scheme(row) == "regionmarker"):
        yield from _listed(results, "ablations", "Ablations of RegionMarker", chosen)


def reducers(results: Results) -> Iterable[Table]:
    """Yield the table of reducers."""
    names = {"": "PCA", "reducer=umap": "UMAP", "reducer=svd": "SVD", "reducer=autoencoder": "AE"}
    chosen = [
        (
            name,
            lambda row, setting=setting: kind(row) == "none" and settings(row) == setting,
            "different-dimensionality",
            {"attack": "none", "variant": f"reducer {name}"},
        )
        for setting, name in names.items()
    ]
    if any("reducer=" in settings(row) for row in results.copies):
        yield from _listed(results, "reducers", "Reducers", chosen)


def fine_tuning(results: Results) -> Iterable[Table]:
    """Yield the table of copies that were trained on after the theft."""
    tuned = sorted({row["attack"] for row in results.copies if "tune" in kind(row)})
    chosen = [
        (
            attack,
            lambda row, attack=attack: row["attack"] == attack,
            "modify-attack-performance",
            {"variant": next((f"on {CORPORA[name]}" for name in CORPORA if name in attack), "")},
        )
        for attack in tuned
    ]
    if chosen:
        yield from _listed(results.where(plain), "fine-tuning", "Fine-tuned copies", chosen)


def stealers(results: Results) -> Iterable[Table]:
    """Yield the table of thieves; the paper's backbones are others."""
    names = {row["stealer"]: None for row in results.copies if kind(row) == "none" and plain(row)}
    chosen = [
        (
            stealer,
            lambda row, stealer=stealer: row["stealer"] == stealer and kind(row) == "none",
            "size",
            {"variant": "stealer BERT-base (108M)"},
        )
        for stealer in names
    ]
    if len(chosen) > 1:
        yield from _listed(results.where(plain), "stealers", "Thieves", chosen)


def timing(results: Results) -> Iterable[Table]:
    """Yield the timing table."""
    lines = []
    for name, shown in SCHEMES.items():
        rows = results.where(plain).where(lambda row, name=name: scheme(row) == name)
        if rows and rows.values("seconds_verify"):
            paper = f"{SECONDS[name]:.2e}" if name in SECONDS else "-"
            each = rows.values("seconds_transform")
            lines.append((shown, f"{sum(each) / len(each):.2e}", paper, mean_sd(rows.values("seconds_verify")),
                          mean_sd(rows.values("seconds_fit"))))  # fmt: skip
    note = (
        "Wall-clock seconds of one thread beside whatever else the machine did. Marking is of a whole corpus at once. "
        "A verification is what it takes to embed the probes, where they are not known already, and to judge. The paper's "
        "detection times are its injection times multiplied by 68,221, so they are not repeated here."
    )
    if lines:
        heads = ("defense", "seconds to mark a vector", "(paper)", "seconds to verify", "seconds to make a key")
        yield Table("timing", "Timing", heads, tuple(lines), note)


def settings(row: Row) -> str:
    """Return the settings of a row's defense without the size of its pool."""
    rest = str(row["defense"]).partition(":")[2]
    return ",".join(part for part in rest.split(",") if part and not part.startswith("pool="))


def _listed(results: Results, name: str, title: str, chosen: list[tuple[str, object, str, dict[str, str]]]) -> Iterable[Table]:  # fmt: skip
    """Yield one table of RegionMarker's copies, a line a choice and corpus."""
    lines = []
    for corpus, rows in results.where(lambda row: scheme(row) == "regionmarker").by("corpus").items():
        for shown, keep, table, equal in chosen:
            of = rows.where(keep)  # type: ignore[arg-type]
            if of.copies:
                paper = paper_row(table, dataset=corpus, **equal)
                blameless = of.where(suspect="unmarked copy")
                lines.append((CORPORA.get(corpus, corpus), shown, *compared(of.copies, blameless, paper)))
    if lines:
        yield Table(name, title, ("corpus", "variant", *_COLUMNS), tuple(lines), _NOTE)


def _file(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name)
