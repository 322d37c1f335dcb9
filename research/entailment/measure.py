"""Measure the NLI model of a preset on files of pairs: accuracy, AUC, calibration, and how right its verdicts are.

    python -m research.entailment.measure FILE... --preset mini|medium [--by reference] [--json] [--record]

A file has pairs with ``premise``, ``hypothesis`` and ``label``, contexts with their sentences as in
``written.jsonl``, or minimal pairs as in ``minimal_pairs.jsonl``. Premises of any length are cut as a score does
it, and a hypothesis is judged sentence by sentence. Of a set with three labels the accuracy is printed; of one
with two the area under the ROC curve (AUC) of the lowest entailment minus contradiction of a sentence. "Twins":
the share of sentences or paraphrases above their twin. Verdicts: right ones, of those shown, of those due.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.stats import rankdata

from mars_score import MarsScorer
from mars_score.metrics.plus import PlusConfig
from mars_score.rows import Judgement, Row
from mars_score.variants.judgements import judge, verdict_on
from research.results import add_record_option, markdown, record

THREE = ("contradiction", "entailment", "neutral")
FOLLOWS = ("entailment", "consistent", "supported")
REFUTED = ("contradiction", "inconsistent")
STATED = (0.85, 0.95)
PRECISION = 0.8  # of verdicts that are shown
MIN_VERDICTS = 30
# Of a preset in the tables: share that is right of three labels or the AUC of two; share of twins in order; of the
# classes stated with .85 to .95 those that are right; verdicts "contradicted" that are right, of those said.
COLUMNS = ("right", "twins", "stated .9", "contradicted")
Floats = NDArray[np.float64]


class Pair(NamedTuple):
    """A hypothesis with its premise and label; ``twin``: which sentence of its context it belongs to, or -1."""

    premise: str
    hypothesis: str
    label: str
    twin: int = -1


class Measured(NamedTuple):
    """The pairs of a set, and probabilities of :data:`THREE` of each, the mean over its sentences."""

    pairs: list[Pair]
    shares: Floats  # (pairs, 3)
    margins: Floats  # lowest entailment minus contradiction of a sentence
    verdicts: list[set[str]]  # of each pair's sentences


def main() -> None:
    """Classify and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("files", nargs="+", type=Path)
    options.add_argument("--preset", default="mini")
    options.add_argument("--dtype", default="float32", help="number type of the models (default: float32)")
    options.add_argument("--by", choices=("context", "reference"), default="context", help="what the premises are")
    options.add_argument("--pairs", type=int, default=1000, help="of a file, the first of them (default: 1000)")
    options.add_argument("--store", default=None)
    options.add_argument("--json", action="store_true")
    add_record_option(options)
    args = options.parse_args()
    scorer = MarsScorer(args.preset, variant="fast", dtype=args.dtype, store=args.store or False)
    sets = {path.stem: measure(list(read(path, args.by))[: args.pairs], scorer, args.by) for path in args.files}
    figures = {name: figures_of(one) for name, one in sets.items()}
    if args.record:
        for name, one in figures.items():
            record(f"entailment.{args.preset}.{args.by}.{name}", one)
    if args.json:
        print(json.dumps({"preset": args.preset, "by": args.by, "sets": figures}, indent=1))
        return
    print(tables({args.preset: {args.by: figures}})[args.by])
    print(f"\n{fitted(list(sets.values()))}")


def read(path: Path, by: str = "context") -> Iterator[Pair]:
    """Read the pairs of a file; of minimal pairs the premise is the context or the reference, as ``by`` says."""
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if "premise" in row:
            yield Pair(row["premise"], row["hypothesis"], row["label"])
            continue
        if "flipped" in row:
            yield Pair(row[by], row["paraphrase"], "entailment", 0)
            yield Pair(row[by], row["flipped"], "contradiction", 0)
            yield Pair(row[by], row["reference"], "entailment")
            yield Pair(row[by], row["other"], "neutral")
            continue
        for label, key in zip(THREE, ("contradicted", "supported", "neutral"), strict=True):
            for number, text in enumerate(row[key]):
                yield Pair(row["context"], text, label, -1 if label == "neutral" else number)


def measure(pairs: Sequence[Pair], scorer: MarsScorer, by: str) -> Measured:
    """Judge the hypotheses of pairs as candidates with their premise as context, or as reference."""
    rows = [_row(pair, by) for pair in pairs]
    judged = judge(rows, PlusConfig(), scorer.calls)
    model = scorer.settings.models.entailment_model
    shares, margins, verdicts = [], [], []
    for row, judgements in zip(rows, judged, strict=True):
        found = [_by(judgement, by) for judgement in judgements]
        both = np.array([[one.contradiction, one.entailment] for one in found])
        mean = both.mean(axis=0)
        shares.append([*mean, 1 - mean.sum()])
        margins.append((both[:, 1] - both[:, 0]).min())
        verdicts.append({verdict.verdict for one in judgements if (verdict := verdict_on(one, row, model))})
    return Measured(list(pairs), np.array(shares), np.array(margins), verdicts)


def _row(pair: Pair, by: str) -> Row:
    if by == "reference":
        return Row(pair.hypothesis, references=(pair.premise,))
    return Row(pair.hypothesis, context=pair.premise, task="summary")


def _by(one: Judgement, by: str) -> Any:
    return one.by_reference if by == "reference" else one.by_context


def figures_of(one: Measured) -> dict[str, Any]:
    """Compute the figures of a set that its labels allow."""
    labels = [pair.label for pair in one.pairs]
    figures: dict[str, Any] = {"pairs": len(labels)}
    follows = np.array([label in FOLLOWS for label in labels])
    if set(labels) <= set(THREE) and len(set(labels)) == len(THREE):
        figures["accuracy"] = float((one.shares.argmax(axis=1) == [THREE.index(label) for label in labels]).mean())
        stated = one.shares.max(axis=1)
        inside = (stated >= STATED[0]) & (stated <= STATED[1])
        right = one.shares.argmax(axis=1) == [THREE.index(label) for label in labels]
        if inside.any():
            figures["stated"] = {"right": int(right[inside].sum()), "all": int(inside.sum())}
    else:
        figures["auc"] = auc(one.margins, follows)
    if any(pair.twin >= 0 for pair in one.pairs):
        figures["twins"] = twins(one)
    for verdict, labelled in (("supported", FOLLOWS), ("contradicted", REFUTED)):
        right_ones = np.array([label in labelled for label in labels])
        said = np.array([verdict in each for each in one.verdicts])
        if right_ones.any() and said.any():
            right, wrong = int((said & right_ones).sum()), int((said & ~right_ones).sum())
            figures[verdict] = {"right": right, "wrong": wrong, "due": int(right_ones.sum())}
            figures[verdict]["others"] = len(labels) - figures[verdict]["due"]
    return figures


def tables(recorded: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> dict[str, str]:
    """Write a table of all sets for each kind of premise, with the presets side by side."""
    made = {}
    for by in ("context", "reference"):
        presets = {preset: of_preset[by] for preset, of_preset in recorded.items() if by in of_preset}
        rows = [["set", "pairs", *(f"{column}, `{preset}`" for preset in presets for column in COLUMNS)]]
        for name in dict.fromkeys(name for sets in presets.values() for name in sets):
            found = [sets.get(name, {}) for sets in presets.values()]
            pairs = next(one["pairs"] for one in found if one)
            rows.append([name, str(pairs), *(cell for one in found for cell in _cells(one))])
        made[by] = markdown(rows)
    return made


def _cells(figures: Mapping[str, Any]) -> list[str]:
    right = figures.get("accuracy", figures.get("auc"))
    stated, said = figures.get("stated"), figures.get("contradicted")
    return [
        "" if right is None else f"{right:.3f}{'' if 'accuracy' in figures else ' (AUC)'}",
        f"{figures['twins']:.3f}" if "twins" in figures else "",
        f"{stated['right']} of {stated['all']}" if stated else "",
        f"{said['right']} of {said['right'] + said['wrong']}; {said['due']} due" if said else "",
    ]


def auc(scores: Floats, positive: NDArray[np.bool_]) -> float | None:
    """Return the probability that a positive has the larger score; None: there is one class."""
    count = int(positive.sum())
    if count in (0, len(positive)):
        return None
    ranks = rankdata(scores)
    return float((ranks[positive].sum() - count * (count + 1) / 2) / (count * (len(positive) - count)))


def twins(one: Measured) -> float:
    """Return the share of supported sentences whose entailment minus contradiction is above their twin's."""
    margins: dict[tuple[str, int], dict[str, float]] = {}
    for pair, margin in zip(one.pairs, one.margins, strict=True):
        if pair.twin >= 0:
            margins.setdefault((pair.premise, pair.twin), {})[pair.label] = float(margin)
    both = [each for each in margins.values() if len(each) == 2]
    return sum(each["entailment"] > each["contradiction"] for each in both) / len(both)


def fitted(sets: Sequence[Measured]) -> str:
    """Say which temperature is best for sets of three labels, and from where verdicts are right often enough."""
    three = [one for one in sets if {pair.label for pair in one.pairs} <= set(THREE)]
    lines = []
    if three:
        labels = [np.array([THREE.index(pair.label) for pair in one.pairs]) for one in three]

        def cost(log_temperature: float) -> float:
            losses = []
            for one, right in zip(three, labels, strict=True):
                powers = np.clip(one.shares, 1e-6, 1) ** (1 / np.exp(log_temperature))
                shares = powers / powers.sum(axis=1, keepdims=True)
                losses.append(-np.log(shares[np.arange(len(right)), right]).mean())
            return float(np.mean(losses))

        best = minimize_scalar(cost, bounds=(-2, 2), method="bounded")
        lines.append(f"Temperature: the present one times {np.exp(best.x):.2f}.")
    for column, verdict, labelled in ((1, "supported", FOLLOWS), (0, "contradicted", REFUTED)):
        usable = [one for one in sets if any(pair.label in labelled for pair in one.pairs)]
        lines.append(f"{verdict}: {threshold(usable, column, labelled)}")
    return "\n".join(lines)


def threshold(sets: Sequence[Measured], column: int, labelled: Sequence[str]) -> str:
    """Find the lowest probability from which verdicts have the wanted precision, in the mean over sets."""
    for cut in np.arange(0.5, 1.0, 0.01):
        shares, said_all = [], 0
        for one in sets:
            said = one.shares[:, column] >= cut
            right = np.array([pair.label in labelled for pair in one.pairs])
            if said.sum() >= 5:
                shares.append((said & right).sum() / said.sum())
                said_all += int(said.sum())
        if said_all < MIN_VERDICTS:
            break
        if np.mean(shares) >= PRECISION:
            return f"from {cut:.2f} on, precision {np.mean(shares):.2f} on {len(shares)} sets, {said_all} verdicts"
    return "never right often enough"


if __name__ == "__main__":
    main()
