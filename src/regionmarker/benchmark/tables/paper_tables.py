"""The paper's tables with our numbers beside its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from regionmarker.benchmark.grid.cell import NO_DEFENSE
from regionmarker.benchmark.tables.published import ATTACKS, NAMES, RESISTED, SECONDS, paper_row, paper_rows, with_sd
from regionmarker.benchmark.tables.results import (
    CORPORA,
    Results,
    Row,
    caught,
    corpus_title,
    default_settings,
    file_name,
    kind,
    label,
    middle_p,
    scheme,
    share,
    title,
)
from regionmarker.benchmark.tables.table import Table

MARKS = ("graded", "regionmarker", "published")
"""RegionMarker three times: its default, 0.1.0's, and the paper's own setting."""
_MAIN = ("none", "cse", "paraphrase", "shift", "truncate")
_DIMENSIONS = ("none", "permute", "tanh", "project")
_COLUMNS = (
    "stolen accuracy %", "(paper)", "stolen macro-F1 %", "(paper)", "published p", "(paper)", "Δcos %", "(paper)",
    "Δl2 %", "(paper)", "called a copy", "(paper)", "blameless called copies", "decoy p", "caught at 1e-3",
    "blameless caught",
)  # fmt: skip
_NOTE = (
    "Mean ± standard deviation over seeds; p-values are medians. (paper): as printed, another provider, another thief. "
    "Blameless: the same thief after the same attack on unmarked vectors, judged by the same test. "
    "Caught: the decoy test at a false-positive rate of 1e-3."
)


def compared(copies: Results, innocents: Results, paper: dict[str, str] | None) -> tuple[str, ...]:
    """Return our numbers of some copies, each beside the paper's, and the same tests on blameless suspects."""
    return (
        copies.mean_sd("stolen_accuracy", scale=100), with_sd(paper, "accuracy"),
        copies.mean_sd("stolen_f1", scale=100), with_sd(paper, "f1"),
        middle_p(copies.values("published_p")), paper["p_value"] if paper else "-",
        copies.mean_sd("delta_cos", scale=100), with_sd(paper, "delta_cos_pct"),
        copies.mean_sd("delta_l2", scale=100), with_sd(paper, "delta_l2_pct"),
        share(copies.called_copies()), paper["protected"] if paper else "-", share(innocents.called_copies()),
        middle_p(copies.values("decoy_p")), caught(copies.detected()), share(innocents.detected()),
    )  # fmt: skip


def main_tables(results: Results) -> Iterable[Table]:
    """Yield the main results, one table per corpus."""
    for corpus, rows in results.where(default_settings).most_common_setup().by("corpus").items():
        lines = []
        for name in rows.marked_schemes():
            for attack in _MAIN:
                of = rows.of(name).attacked(attack)
                if of.copies:
                    paper = paper_row(
                        "-attack-performance", dataset=corpus, defence=NAMES.get(name, ""), attack=ATTACKS[attack]
                    )
                    blameless = of.where(suspect="unmarked copy")
                    lines.append((title(name), attack, *compared(of.copies, blameless, paper)))
        if lines:
            heading = f"Main results on {corpus_title(corpus)}"
            yield Table(f"main-{file_name(corpus)}", heading, ("defense", "attack", *_COLUMNS), tuple(lines), _NOTE)


def motivation(results: Results) -> Iterable[Table]:
    """Yield the paper's first table: which defense resists which attack."""
    groups = (("cse",), ("paraphrase",), ("shift", "truncate", "permute"))
    judged, lines = results.where(default_settings).most_common_setup(), []
    for name in judged.marked_schemes():
        rows = judged.of(name)
        if not rows.copies:
            continue
        line = [title(name)]
        for attacks, paper in zip(groups, RESISTED.get(name, "---"), strict=True):
            of = rows.attacked(*attacks)
            line += [
                caught(of.copies.detected()), share(of.where(suspect="unmarked copy").detected()),
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


def paraphrasing(results: Results) -> Iterable[Table]:
    """Yield our paraphrases beside each of the paper's paraphrasers."""
    lines = []
    theirs = {"NLLB": "paraphrase-nllb", "GPT-4o mini": "paraphrase-gpt-4o-mini", "DIPPER": "paraphrase-dipper"}
    stored = results.where(default_settings).most_common_setup().where(attack="paraphrase:stored")
    for corpus, rows in stored.by("corpus").items():
        for name in rows.copies.marked_schemes():
            copies, blameless = rows.of(name).copies, rows.of(name).where(suspect="unmarked copy")
            line = [
                corpus_title(corpus), title(name), copies.mean_sd("delta_cos", scale=100),
                middle_p(copies.values("published_p")), share(copies.called_copies()),
                share(blameless.called_copies()), caught(copies.detected()), share(blameless.detected()),
            ]  # fmt: skip
            for attack in theirs.values():
                paper = paper_row("attack-performance", dataset=corpus, defence=NAMES.get(name, ""), attack=attack)
                line += [with_sd(paper, "delta_cos_pct"), *((paper["p_value"], paper["protected"]) if paper else "--")]
            lines.append(tuple(line))
    if lines:
        heads = ["corpus", "defense", "Δcos %", "published p", "called a copy", "blameless called copies",
                 "caught at 1e-3", "blameless caught"]  # fmt: skip
        for name in theirs:
            heads += [f"paper, {name}: Δcos %", "published p", "copy?"]
        note = "Ours are the paraphrases that come with the corpora. DIPPER, GPT-4o mini and NLLB were not run here."
        yield Table("paraphrasing", "Paraphrasing, beside the paper's paraphrasers", tuple(heads), tuple(lines), note)


Chosen = tuple[str, Results | None, str, dict[str, str]]
"""A line of a table: its name, its rows, and where the paper has the like; None for rows is the paper's alone."""


def dimension_wise(results: Results) -> Iterable[Table]:
    """Yield the paper's table of dimension-wise transformations."""
    rows = results.where(default_settings).most_common_setup()
    table = "dimension-wise-attack-performance"
    chosen: list[Chosen] = [
        (f"{title(name)}, {attack}", rows.of(name).attacked(attack), _beside(name, table), {"attack": ATTACKS[attack]})
        for name in MARKS
        for attack in _DIMENSIONS
    ]
    yield from _listed("dimension-wise", "RegionMarker under dimension-wise transformations", chosen)


def ablations(results: Results) -> Iterable[Table]:
    """Yield both ablation tables: without reduction, and with one watermark for all regions."""
    variants = {"full": "", "w/o PCA": "reducer=none", "single watermark": "shared"}
    chosen: list[Chosen] = []
    for name, of in _ablated(results, list(variants.values())).items():
        for attack in ("none", "cse", "paraphrase", "shift"):
            theirs = "paraphrase-gpt-4o-mini" if attack == "paraphrase" else ATTACKS[attack]
            for variant, setting in variants.items():
                rows = of.with_settings(setting).attacked(attack)
                equal = {"attack": theirs, "variant": variant}
                chosen.append((f"{title(name)}, {variant}, {attack}", rows, "necessity-pca", equal))
    yield from _listed("ablations", "Ablations of RegionMarker", chosen)


def _ablated(results: Results, settings: Sequence[str]) -> dict[str, Results]:
    """Return the rows of those marks that were run with a setting beside the default."""
    found = {name: results.of(name).most_common_setup() for name in MARKS}
    return {
        name: rows for name, rows in found.items() if any(rows.with_settings(some).copies for some in settings if some)
    }


def _beside(name: str, table: str) -> str:
    """Return the paper's table where a mark is the paper's: it has no number of the graded one."""
    return table if name in NAMES else ""


def reducers(results: Results) -> Iterable[Table]:
    """Yield the table of reducers."""
    names = {"": "PCA", "reducer=umap": "UMAP", "reducer=svd": "SVD", "reducer=autoencoder": "AE"}
    chosen: list[Chosen] = []
    for mark, of in _ablated(results, list(names)).items():
        for setting, name in names.items():
            equal = {"attack": "none", "variant": f"reducer {name}"}
            rows = of.with_settings(setting).attacked("none")
            chosen.append((f"{title(mark)}, {name}", rows, "different-dimensionality", equal))
    yield from _listed("reducers", "Reducers", chosen)


def fine_tuning(results: Results) -> Iterable[Table]:
    """Yield the table of copies that were trained on after the theft; the paper has RegionMarker's."""
    tables = dict.fromkeys(("regionmarker", "published"), "modify-attack-performance")
    rows = results.where(lambda row: "tune" in kind(row))
    chosen: list[Chosen] = [
        (f"{attack}: {setup}", some, tables.get(name, ""), {"variant": _other_corpus(attack)})
        for (setup, attack, name), some in rows.by(lambda row: (_setup(row), row["attack"], scheme(row))).items()
    ]
    yield from _listed("fine-tuning", "Fine-tuned copies", chosen)


def _other_corpus(attack: str) -> str:
    return f"on {CORPORA.get(attack.rpartition(',')[2].rpartition(':')[2], '')}"


def _setup(row: Row) -> str:
    return f"{row['stealer']}, {row['queries']} queries, {label(row['defense'])}"


def stealers(results: Results) -> Iterable[Table]:
    """Yield the table of stealers, ours and then the paper's, which are others."""
    rows = results.attacked("none").where(lambda row: scheme(row) != NO_DEFENSE and row["stealer"] != "")
    if len(rows.by("stealer")) > 1:
        chosen: list[Chosen] = [(name, some, "", {}) for name, some in rows.by(_setup).items()]
        theirs = dict.fromkeys(row["variant"] for row in paper_rows("size"))
        chosen += [(f"paper: {name}", None, "size", {"variant": name}) for name in theirs]
        yield from _listed("stealers", "Thieves", chosen)


def timing(results: Results) -> Iterable[Table]:
    """Yield the timing table."""
    lines = []
    for name in results.schemes():
        rows = results.where(default_settings).of(name)
        if rows.values("seconds_verify"):
            paper = f"{SECONDS[name]:.2e}" if name in SECONDS else "-"
            each = rows.values("seconds_transform")
            lines.append((title(name), f"{sum(each) / len(each):.2e}", paper, rows.mean_sd("seconds_verify"),
                          rows.mean_sd("seconds_fit")))  # fmt: skip
    note = (
        "Wall-clock seconds of one thread beside whatever else the machine did. Marking is of a whole corpus at once. "
        "A verification is what it takes to embed the probes, where they are not known already, and to judge. The "
        "paper's detection times are its injection times multiplied by 68,221, so they are not repeated here."
    )
    if lines:
        heads = ("defense", "seconds to mark a vector", "(paper)", "seconds to verify", "seconds to make a key")
        yield Table("timing", "Timing", heads, tuple(lines), note)


def _listed(name: str, heading: str, chosen: Sequence[Chosen]) -> Iterable[Table]:
    """Yield one table of copies, one line per choice and corpus."""
    lines = []
    ours = [rows or Results([]) for _, rows, _, _ in chosen]
    known = {row["corpus"] for rows in ours for row in rows.copies}
    for corpus in sorted(known, key=_corpus_order):
        for (shown, given, table, equal), rows in zip(chosen, ours, strict=True):
            of = rows.where(corpus=corpus)
            paper = paper_row(table, dataset=corpus, **equal) if table else None
            if of.copies or (given is None and paper):
                blameless = of.where(suspect="unmarked copy")
                lines.append((corpus_title(corpus), shown, *compared(of.copies, blameless, paper)))
    if lines:
        yield Table(name, heading, ("corpus", "variant", *_COLUMNS), tuple(lines), _NOTE)


def _corpus_order(name: str) -> tuple[int, str]:
    """Order corpora as the paper does; others come after."""
    known = list(CORPORA)
    return known.index(name) if name in known else len(known), name
