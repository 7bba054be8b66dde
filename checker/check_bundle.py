#!/usr/bin/env python3
"""Check a bundle of RegionMarker evidence without RegionMarker: one file, NumPy and cryptography, nothing else.

    python check_bundle.py BUNDLE [--signer PUBLISHED.pem] [--commitment HEX]

It was written from docs/reference/evidence-format.md, and recomputes digests, signature, commitment, U, p, looks, the
correction for tenants and the outcome, for both statistics and all levels of disclosure. It says what it does not look
at. It needs no network and no key. Exit code 0: all that was recomputed holds; 2: something does not.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import struct
import sys
import zipfile
import zlib
from math import exp, factorial, isclose, lgamma, log, perm, prod, sqrt
from pathlib import Path

import numpy as np
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key

FORMATS = ("regionmarker evidence 1", "regionmarker evidence 2")
UNLISTED = {"manifest.json", "manifest.sig", "timestamp.tsq", "timestamp.tsr"}
PARTS = {
    "regionmarker commitment 1": ("master", "matrix", "regions", "pool", "reservoir", "encoder", "statistic", "level"),
    "regionmarker commitment 2": ("master", "mark", "pool", "reservoir", "encoder", "statistic", "level"),
}
OPENED = {"summary": {"statistic", "level"}, "expert": {"statistic", "level", "encoder"}}
WEIGHTS = ((sqrt(0.5), sqrt(0.5)), (0.6, 0.8))  # of singles and pairs: axes matched, axes unknown
STEP = {"decoy-1": 1 / 128, "decoy-2": 1 / 256}
LIMIT, CLOSE, ROUNDING = 16.0, 1e-9, 1 + 1e-12
LARGEST, MOST_FILES, MOST_STEPS, MOST_TABULATED = 1 << 31, 1000, 1 << 18, 5  # what a checker can be asked to do
UNREADABLE = (
    OSError, zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, RuntimeError, ValueError,
)  # fmt: skip
NOT_CHECKED = (
    "that fields have their types and spelling, dates, axes, cautions and the report (evidence check compares them)",
    "time stamps, statements, beacons and logs; the ledger of looks, and which places were issued to tenants",
    "the answers (answers.parquet), their digest, and the scores as computed from them",
    "the draw of regions, carriers and targets from an opened key, and the p-values of tenants",
    "the paper's statistics and the power",
    "that the suspect gave these answers: ask it again",
)


class Wrong(Exception):
    """What does not hold, in a sentence."""


def need(condition, complaint):
    if not condition:
        raise Wrong(complaint)


def read(path):
    """Return the files of a directory or a zip; links, pipes, folders, names that come twice and bombs are refused."""
    path = Path(path)
    if path.is_dir():
        found = sorted(path.iterdir())
        plain, sizes = (
            all(file.is_file() and not file.is_symlink() for file in found),
            [file.lstat().st_size for file in found],
        )
        if not plain or len(found) > MOST_FILES or sum(sizes) > LARGEST:
            raise ValueError("it holds something else than files, or too much")
        return {file.name: file.read_bytes() for file in found}
    with zipfile.ZipFile(path) as packed:
        names, size = packed.namelist(), sum(entry.file_size for entry in packed.infolist())
        if len(set(names)) < len(names) or any("/" in name or "\\" in name for name in names):
            raise ValueError("it holds folders, or a name twice")
        if len(names) > MOST_FILES or size > min(LARGEST, max(1 << 20, 50 * path.stat().st_size)):
            raise ValueError("it unpacks to too much")
        if any(entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for entry in packed.infolist()):
            raise ValueError("it is packed in another way than zip's own")
        return {name: packed.read(name) for name in names}


class Bundle:
    def __init__(self, path):
        self.files = read(path)

    def json(self, name):
        need(name in self.files, f"{name} is missing")
        return json.loads(self.files[name], parse_constant=_no_number)

    def lines(self, name):
        need(name in self.files, f"{name} is missing")
        return [json.loads(line, parse_constant=_no_number) for line in self.files[name].splitlines()]


def _no_number(word):
    raise ValueError(word)


# ---- who, and that nothing was changed


def check_signature(bundle, expected):
    files = bundle.files
    if "manifest.sig" not in files and "signer.pem" not in files:
        need(expected is None, "the bundle is not signed")
        return "absent", "not signed: anyone may have written this"
    need("manifest.sig" in files and "signer.pem" in files, "signature or public key is missing")
    key = load_pem_public_key(files["signer.pem"])
    need(isinstance(key, Ed25519PublicKey), "signer.pem is not an Ed25519 public key")
    try:
        key.verify(files["manifest.sig"], files["manifest.json"])
    except InvalidSignature:
        raise Wrong("manifest.sig is not the signature of manifest.json") from None
    need(
        key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo) == files["signer.pem"],
        "signer.pem holds more",
    )
    name = key.public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
    if expected is None:
        return "unexpected", f"signed by {name}, whom nobody has named"
    raw = load_pem_public_key(expected).public_bytes(Encoding.Raw, PublicFormat.Raw).hex()
    need(raw == name, f"signed by {name}, not by the expected signer")
    return f"signed by the expected signer, {name}"


def check_files(bundle, _):
    manifest = bundle.json("manifest.json")
    need(manifest["format"] in FORMATS, "manifest.json has an unknown format")
    need(manifest["level"] in ("summary", "expert", "court"), "manifest.json names no level of disclosure")
    about = {"format", "level", "files"} | ({"written_by"} if manifest["format"] == FORMATS[1] else set())
    need(set(manifest) == about, "manifest.json holds other fields than a manifest")
    if "written_by" in about:
        by = manifest["written_by"]
        need(set(by) == {"regionmarker", "matplotlib"} and all(type(one) is str for one in by.values()), "written_by")
    spelled = json.dumps(manifest, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    need(spelled.encode() == bundle.files["manifest.json"], "manifest.json is not spelled as a manifest")
    for name, digest in manifest["files"].items():
        need(name in bundle.files, f"{name} is missing")
        need(hashlib.sha256(bundle.files[name]).hexdigest() == digest, f"{name} was changed")
    need(set(bundle.files) <= set(manifest["files"]) | UNLISTED, "a file is not listed")
    return f"{len(manifest['files'])} files have the digests of the manifest"


# ---- the commitment


def label(content):
    size = int.from_bytes(content[:4], "little")
    need(len(content) >= 4 + size, "an opened part is cut short")
    return content[4 : 4 + size].decode()


def check_commitment(bundle, published):
    verdict, document = bundle.json("verdict.json"), bundle.json("commitment.json")
    level = bundle.json("manifest.json")["level"]
    parts, leaves = PARTS[document["scheme"]], document["leaves"]
    need(set(leaves) == set(parts), "the leaves are not those of the scheme")
    lines = "".join(f"{part} {leaves[part]}\n" for part in parts)
    made = hashlib.sha256(f"{document['scheme']}\n{lines}".encode()).hexdigest()
    need(made == document["commitment"], "the leaves do not make the commitment")
    need(published in (None, made), f"the commitment is {made}, not the published one")
    need(set(document["opened"]) == OPENED.get(level, set(parts)), "other parts are opened than the level opens")
    contents = {}
    for part, shown in document["opened"].items():
        contents[part] = bundle.files[shown["file"]] if "file" in shown else bytes.fromhex(shown["content"])
        leaf = hashlib.sha256(bytes.fromhex(shown["blinding"]) + contents[part]).hexdigest()
        need(leaf == leaves[part], f"the opened part {part} is not what was committed to")
    need(document["key_id"] == verdict["key_id"], "commitment and verdict name different keys")
    need(verdict["disclosure"] == level, "verdict and manifest are of different levels of disclosure")
    need(label(contents["statistic"]) == verdict["statistic"], "this statistic was not committed to")
    need(float(label(contents["level"])) == verdict["level"], "this level was not committed to")
    return f"the leaves make it; {', '.join(sorted(contents))} opened"


# ---- scores, U and p


def lists_of(bundle):
    verdict, scores = bundle.json("verdict.json"), bundle.json("scores.json")
    regions = verdict["statistic"] == "decoy-1"
    names = ("regions", "pool") if regions else ("carriers", "list")
    lists, step = np.array(scores["lists"], dtype=np.int64), STEP[verdict["statistic"]]
    need(scores["step"] == step, "the scores are in other steps")
    need(lists.shape == tuple(scores[name] for name in names), "there are other lists than stated")
    need(
        (np.diff(lists, axis=1) <= 0).all() and (np.abs(lists) <= LIMIT / step).all(), "a list is not sorted, or beyond"
    )
    need(lists.size > 0 and (lists[:, 0] - lists[:, -1]).sum() <= MOST_STEPS, "the lists reach further than any mark's")
    return verdict, scores, lists, step


def check_total(bundle, _):
    verdict, scores, lists, step = lists_of(bundle)
    observed = scores["observed"]
    need(len(observed) == len(lists), "there is not one observed score per list")
    if None in observed:
        need(verdict["total"] is None, "a target has no answer, so there is no U")
        return "a target has no answer, so there is no U"
    need(all(score in row for score, row in zip(observed, lists, strict=True)), "an observed score is not in its list")
    need(sum(observed) * step == verdict["total"], f"the observed scores add up to {sum(observed) * step:g}")
    return f"U = {verdict['total']:g}"


def check_null(bundle, _):
    verdict, scores, lists, _step = lists_of(bundle)
    if verdict["statistic"] == "decoy-2":
        weights_of(scores)
        return f"{lists.shape[0]} lists of {lists.shape[1]} candidates, drawn from independently"
    table, (regions, size) = scores["null"], lists.shape
    if table is None:
        return "not tabulated: p is a bound"
    lowest, counts = int(table["lowest"]), [int(count) for count in table["counts"]]
    need(min(counts) >= 0 and sum(counts) == perm(size, regions), "the table does not count all tuples")
    fits = lists.min(axis=1).sum() <= lowest and lowest + len(counts) - 1 <= lists.max(axis=1).sum()
    need(fits, "the table holds sums that the lists cannot give")
    sums = sum((lowest + place) * count for place, count in enumerate(counts))
    need(sums == int(lists.sum()) * perm(size - 1, regions - 1), "table and lists do not belong together")
    return f"counts all {sum(counts)} tuples"


def weights_of(scores):
    weights, count = np.array(scores["weights"], dtype=np.float64), int(scores["carriers"])
    need(weights.shape == (count,), "there is not one weight per carrier")
    for singles in range(1, count):
        for single, pair in WEIGHTS:
            right = [single / sqrt(singles)] * singles + [pair / sqrt(count - singles)] * (count - singles)
            if np.allclose(np.sort(weights), np.sort(right), rtol=CLOSE):
                return weights
    raise Wrong("the weights are not those of singles and pairs")


def sums_of(lists):
    """Return the lowest sum and the probability of each sum from there on, over one uniform draw from each list."""
    chances = np.ones(1)
    for row in lists:
        chances = np.convolve(chances, np.bincount(row - row.min()) / len(row))
    return int(lists.min(axis=1).sum()), chances


def check_p(bundle, _):
    verdict, scores, lists, _step = lists_of(bundle)
    p, count, size = float(verdict["p_value"]), *lists.shape
    lowest, chances = sums_of(lists)
    if verdict["statistic"] == "decoy-2":
        need(isclose(verdict["floor"], float(size) ** -count, rel_tol=CLOSE), "the floor is another")
        far = np.abs(np.arange(len(chances)) + lowest) >= abs(sum(scores["observed"]))
        found = min(float(np.sort(chances[far]).sum()) * ROUNDING, 1.0)
        need(isclose(p, found, rel_tol=CLOSE), f"p is {p:g}, but the lists give {found:g}")
        return f"p = {p:g}, two-sided"
    need(isclose(verdict["floor"], 1 / perm(size, count), rel_tol=CLOSE), "the floor is another")
    if None in scores["observed"]:
        need(p == 1.0, "a target has no answer, so p must be 1")
        return "p = 1, because a target has no answer"
    silent = int(scores["unanswered"])
    need(silent >= 0, "fewer than no texts have no answer")
    some, asked = min(silent, (size + silent) // 2), size + silent
    ways = lgamma(asked + 1) - lgamma(some + 1) - lgamma(asked - some + 1)
    withheld = exp(min(log(max(p, 1e-300)) + ways, 0.0)) if some else p
    bad = verdict["outcome"] == "infringement" and withheld > verdict["judged_at"]
    need(not bad, f"{silent} pool texts have no answer: p would be up to {withheld:.2g} if the claimant chose them")
    above, inflation = sum(scores["observed"]) - lowest, size**count / perm(size, count)
    tail = np.cumsum(chances[::-1])[::-1] * inflation * ROUNDING
    bound = min(1.0, float(tail[max(above, 0)])) if above < len(tail) else 0.0
    if scores["null"] is None:
        need(isclose(p, bound, rel_tol=CLOSE), f"p is {p:g}, but the lists give {bound:g}")
        return f"p = {p:g} at most"
    counts, start = scores["null"]["counts"], sum(scores["observed"]) - int(scores["null"]["lowest"])
    exact = sum(counts[max(start, 0) :]) / sum(counts)
    need(p == exact, f"p is {p:g}, but the table gives {exact:g}")
    need(exact <= bound <= exact + inflation - 1 + CLOSE, "the table does not fit the lists")
    return f"p = {p:g}"


def check_scores(bundle, _):
    """At expert and court: the lists, U and p follow from the scores of all candidates and the targets."""
    verdict, scores, lists, step = lists_of(bundle)
    rows, count = bundle.lines("pool.jsonl"), len(lists)
    need([row["place"] for row in rows] == list(range(len(rows))), "pool.jsonl is not in the order of the pool")
    named = sorted((row["target_of"], row["place"]) for row in rows if row["target_of"] is not None)
    need([number for number, _ in named] == list(range(1, count + 1)), "not one target per list")
    places = np.array([place for _, place in named])
    if verdict["statistic"] == "decoy-2":
        size = lists.shape[1]
        need([row["list"] for row in rows] == [place // size + 1 for place in range(count * size)], "a list is wrong")
        z = np.array([row["z"] for row in rows], dtype=np.float64).reshape(count, size)
        need(np.isfinite(z).all(), "a candidate has no score")
        steps = np.rint(np.clip(weights_of(scores)[:, None] * z, -LIMIT, LIMIT) / step).astype(np.int64)
        own = steps[np.arange(count), places % size].tolist()
        need(own == scores["observed"], "the observed scores are not those of the targets")
    else:
        z = np.array([[np.nan] * count if row["z"] is None else row["z"] for row in rows], dtype=np.float64).T
        there = np.isfinite(z).all(axis=0)
        steps = np.floor(np.clip(z[:, there], -LIMIT, LIMIT) / step).astype(np.int64)
        if scores["null"] is not None:
            need(count <= MOST_TABULATED, f"no table is made for {count} regions")
            lowest, counts = tuple_counts(steps)
            right = (lowest, counts) == (scores["null"]["lowest"], scores["null"]["counts"])
            need(right, "the table is not that of the pool")
        if there[places].all():
            own = steps[np.arange(count), (np.cumsum(there) - 1)[places]]
            need(own.sum() * step == verdict["total"], "U is not what the targets give")
        else:
            need(verdict["total"] is None and verdict["p_value"] == 1.0, "a target has no answer")
    need(np.array_equal(np.sort(steps, axis=1)[:, ::-1], lists), "the lists are not the scores of the pool")
    plain = np.ascontiguousarray(z, dtype="<f8")
    digest = hashlib.sha256(f"regionmarker scores 1 {plain.shape}\n".encode() + plain.tobytes()).hexdigest()
    need(digest == verdict["scores_digest"], "the scores have another digest than the verdict names")
    return f"lists and U follow from {len(rows)} candidates and the targets"


def tuple_counts(steps):
    """Count tuples of distinct candidates by their sum: repeats cancel over the partitions of the regions."""
    shifted = steps - steps.min(axis=1)[:, None]
    counts = np.zeros(int(shifted.max(axis=1).sum()) + 1)
    for partition in partitions(list(range(len(steps)))):
        sums = np.ones(1)
        for block in partition:
            sums = np.convolve(sums, np.bincount(shifted[block].sum(axis=0)).astype(np.float64))
        counts[: len(sums)] += prod((-1) ** (len(block) - 1) * factorial(len(block) - 1) for block in partition) * sums
    used = np.flatnonzero(counts)[-1] + 1
    return int(steps.min(axis=1).sum()), counts[:used].astype(np.int64).tolist()


def partitions(items):
    if not items:
        yield []
        return
    for rest in partitions(items[1:]):
        yield [[items[0]], *rest]
        for place, block in enumerate(rest):
            yield [*rest[:place], [items[0], *block], *rest[place + 1 :]]


# ---- the verdict


def correction(look, statistic):
    if statistic == "decoy-1":
        return look * (look + 1)
    return 1 / 0.9 if look == 1 else look * (look - 1) / 0.1


def holm(p_values):
    order = np.argsort(p_values, kind="stable")
    steps = np.maximum.accumulate(np.array(p_values)[order] * np.arange(len(p_values), 0, -1))
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(steps, 1.0)
    return corrected


def check_looks(bundle, _):
    verdict = bundle.json("verdict.json")
    level, look, others = verdict["level"], verdict["look"], verdict["other_keys"]
    looks, keys = [look, *(other["look"] for other in others)], 1 + len(others)
    need(0 < level < 1 and min(looks) >= 1, "level or look is impossible")
    counted = look != 1 or not isclose(verdict["judged_at"], level / keys, rel_tol=CLOSE)
    paid_for = [correction(one, verdict["statistic"]) if counted else 1.0 for one in looks]
    need(isclose(verdict["judged_at"], level / (paid_for[0] * keys), rel_tol=CLOSE), "it is judged at another level")
    paid = np.minimum(np.array([one["p_value"] for one in (verdict, *others)]) * paid_for, 1.0)
    need(paid[0] <= paid.min() * (1 + CLOSE), "another key of the ring has a stronger finding")
    for other, right in zip(others, holm(paid)[1:], strict=True):
        need(isclose(other["holm"], right, rel_tol=CLOSE), f"the correction of key {other['key_id']}")
        need(other["infringement"] == (other["holm"] <= level), f"the outcome of key {other['key_id']}")
    return f"look {look} is judged at {verdict['judged_at']:g}" + ("" if counted else "; looks uncounted")


def check_outcome(bundle, _):
    verdict = bundle.json("verdict.json")
    enough = verdict["power"] is None or verdict["power"]["enough"]
    right = "no evidence" if enough else "inconclusive"
    right = "infringement" if verdict["p_value"] <= verdict["judged_at"] else right
    need(verdict["outcome"] == right, f"the outcome is {verdict['outcome']!r}, but the numbers say {right!r}")
    return f"{right}: p = {verdict['p_value']:g}, judged at {verdict['judged_at']:g}"


def check_tenants(bundle, _):
    level, document = bundle.json("verdict.json")["level"], bundle.json("traces.json")
    rows = document if isinstance(document, list) else document["tenants"]
    places = None if isinstance(document, list) else document["places"]
    need(isinstance(document, list) or document["level"] == level, "the tenants were judged at another level")
    p_values = [row["p_value"] for row in rows]
    need(rows and p_values == sorted(p_values) and all(0 < p <= 1 for p in p_values), "the tenants are not in order")
    names = [row["tenant"] for row in rows if row["tenant"] is not None]
    need(len(set(names)) == len(names), "a tenant stands there twice")
    for row, right in zip(rows, holm(p_values), strict=True):
        need(isclose(row["holm"], right, rel_tol=CLOSE), "a tenant's correction is not what the p-values give")
        need(row["accused"] == (row["holm"] <= level), "the wrong tenants are accused")
        need(row["tenant"] or not row["accused"], "an accused tenant has no name")
    need(places is None or places["count"] == len(rows), "not all places were looked at")
    return f"{len(rows)} tenants, {sum(row['accused'] for row in rows)} accused"


def check(path, signer=None, commitment=None):
    """Return (name, status, detail) of every check; statuses are ok, absent, unexpected and failed."""
    bundle, found = Bundle(path), []

    def look(name, function, given=None):
        try:
            told = function(bundle, given)
            found.append((name, "ok", told) if isinstance(told, str) else (name, *told))
        except Wrong as error:
            found.append((name, "failed", str(error)))
        except (
            ArithmeticError,
            AttributeError,
            LookupError,
            RecursionError,
            TypeError,
            ValueError,
            UnsupportedAlgorithm,
        ) as error:
            found.append((name, "failed", f"damaged: {type(error).__name__}"))

    look("signature", check_signature, signer)
    look("files", check_files)
    if any(status == "failed" for _, status, _ in found):
        return found
    look("commitment", check_commitment, commitment)
    for name, function in (("total", check_total), ("null distribution", check_null), ("p-value", check_p)):
        look(name, function)
    look("looks", check_looks)
    look("outcome", check_outcome)
    if "traces.json" in bundle.files:
        look("tenants", check_tenants)
    if bundle.json("manifest.json")["level"] != "summary":
        look("scores", check_scores)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", help="the bundle: its directory, or its zip")
    parser.add_argument("--signer", help="public key (PEM) that must have signed it")
    parser.add_argument("--commitment", help="the commitment that was published, in hexadecimal digits")
    given = parser.parse_args()
    try:
        found = check(given.bundle, Path(given.signer).read_bytes() if given.signer else None, given.commitment)
    except UNREADABLE as error:
        sys.exit(f"{given.bundle} is not a bundle: {error!a}")
    for name, status, detail in found:
        print(f"{status:10s} {name}: {detail!a}")  # escaped: a bundle may hold what a terminal obeys
    print("\nNot looked at here:", *(f"- {line}" for line in NOT_CHECKED), sep="\n")
    failed = any(status == "failed" for _, status, _ in found)
    print("\nREFUSED" if failed else "\nALL THAT WAS RECOMPUTED HOLDS")
    return 2 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
