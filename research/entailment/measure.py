"""Measure the NLI model of a preset: what it gets right, and whom its verdicts accuse.

    python -m research.entailment.measure FILE... --preset mini|medium [--by reference] [--json] [--record]

A file has pairs with ``premise``, ``hypothesis`` and ``label``, contexts with their sentences as in
``written.jsonl``, minimal pairs as in ``minimal_pairs.jsonl``, or rated candidates as for ``mars meta``. Premises
are cut as a score does it, and a hypothesis is judged by sentences. Of a set with three labels the accuracy is
printed; of one with two the area under the ROC curve (AUC) of the lowest entailment minus contradiction of a
sentence. "Twins": the share of sentences or paraphrases above their twin. Verdicts: right ones, of those said, of
those due; of rated candidates, whom they accuse of the third that people rated best and of the third rated worst.
``--by reference`` takes premises for references; of SummEdits it is the first consistent summary of a document.
``--surface`` changes references of ``minimal_pairs.jsonl`` as :mod:`research.entailment.surface` says.
"""

import argparse
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from mars_score import MarsScorer
from mars_score.metrics.plus import PlusConfig
from mars_score.rows import Entailment, Row
from mars_score.text import normalise
from mars_score.variants.judgements import is_close, judge, verdicts_on
from mars_score.variants.plus_variant import plan_row, token_recalls
from research.agreement import drawn
from research.entailment.surface import MEASURED
from research.results import add_record_option, markdown, record
from research.sets import read_sets

THREE = ("contradiction", "entailment", "neutral")
FOLLOWS = ("entailment", "consistent", "supported")
REFUTED = ("contradiction", "inconsistent")
MINIMAL_PAIRS = Path(__file__).parent.with_name("minimal_pairs.jsonl")
CHANGED = 32  # references whose surface is changed
# Of a preset in the tables: share that is right of three labels or the AUC of two; share of twins in order; right
# verdicts of those said.
COLUMNS = ("right", "twins", "contradicted")
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
    contradicted: NDArray[np.bool_]  # whether there is a verdict on a sentence


def main() -> None:
    """Classify and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("files", nargs="*", type=Path)
    options.add_argument("--preset", default="mini")
    options.add_argument("--dtype", default="float32", help="number type of the models (default: float32)")
    options.add_argument("--by", choices=("context", "reference"), default="context", help="what the premises are")
    options.add_argument("--pairs", type=int, default=1000, help="of a file, the first of them (default: 1000)")
    options.add_argument("--rows", type=int, default=400, help="of a file of rated candidates (default: 400)")
    options.add_argument("--surface", action="store_true", help="measure changes of the surface, too")
    options.add_argument("--store", default=None)
    options.add_argument("--json", action="store_true")
    add_record_option(options)
    args = options.parse_args()
    scorer = MarsScorer(args.preset, variant="fast", dtype=args.dtype, store=args.store or False)
    figures: dict[str, dict[str, Any]] = {}
    for path in args.files:
        if is_rated(path):
            figures.setdefault("rated", {})[path.stem] = accused(path, args.rows, scorer)
        else:
            pairs = list(read(path, args.by))[: args.pairs]
            figures.setdefault(args.by, {})[path.stem] = figures_of(measure(pairs, scorer, args.by))
    if args.surface:
        figures["surface"] = surface(scorer)
    if args.record:
        for kind, sets in figures.items():
            for name, one in sets.items():
                record(f"entailment.{args.preset}.{kind}.{name}", one)
    if args.json:
        print(json.dumps({"preset": args.preset, "figures": figures}, indent=1))
        return
    print("\n\n".join(tables({args.preset: figures}).values()))


def is_rated(path: Path) -> bool:
    """Tell whether a file has rated candidates."""
    with path.open(encoding="utf-8") as file:
        return "candidate" in json.loads(file.readline())


def read(path: Path, by: str = "context") -> Iterator[Pair]:
    """Read the pairs of a file; of minimal pairs the premise is the context or the reference, as ``by`` says."""
    consistent: dict[str, str] = {}  # by document the first consistent summary
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if by == "reference" and row.get("label") in ("consistent", "inconsistent"):
            first = consistent.get(row["premise"])
            if first:
                yield Pair(first, row["hypothesis"], row["label"])
            elif row["label"] == "consistent":
                consistent[row["premise"]] = row["hypothesis"]
            continue
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
    config, calls = PlusConfig(), scorer.calls
    close = dict.fromkeys(rows, True)
    if by == "reference":
        plans = [plan_row(row, config, calls) for row in close]
        recalls = token_recalls(plans, calls.encode((text for plan in plans for text in plan.texts), tokens=True))
        close = {row: is_close(row, recalls) for row in close}
    judged = judge(dict.fromkeys(rows, False), config, calls)
    shares, margins, contradicted = [], [], []
    for row in rows:
        found = [judgement.entailment for judgement in judged[row]] or [Entailment(0.0, 0.0)]
        both = np.array([[one.contradiction, one.entailment] for one in found])
        mean = both.mean(axis=0)
        shares.append([*mean, 1 - mean.sum()])
        margins.append((both[:, 1] - both[:, 0]).min())
        contradicted.append(close[row] and bool(verdicts_on(judged[row])))
    return Measured(list(pairs), np.array(shares), np.array(margins), np.array(contradicted))


def _row(pair: Pair, by: str) -> Row:
    if by == "reference":
        return Row(pair.hypothesis, references=(pair.premise,))
    return Row(pair.hypothesis, context=pair.premise, task="summary")


def figures_of(one: Measured) -> dict[str, Any]:
    """Compute the figures of a set that its labels allow."""
    labels = [pair.label for pair in one.pairs]
    figures: dict[str, Any] = {"pairs": len(labels)}
    if set(labels) <= set(THREE) and len(set(labels)) == len(THREE):
        figures["accuracy"] = float((one.shares.argmax(axis=1) == [THREE.index(label) for label in labels]).mean())
    else:
        figures["auc"] = auc(one.margins, np.array([label in FOLLOWS for label in labels]))
    if any(pair.twin >= 0 for pair in one.pairs):
        figures["twins"] = twins(one)
    refuted = np.array([label in REFUTED for label in labels])
    if refuted.any():
        right = int((one.contradicted & refuted).sum())
        figures["contradicted"] = {"right": right, "said": int(one.contradicted.sum()), "due": int(refuted.sum())}
    return figures


def accused(path: Path, rows: int, scorer: MarsScorer) -> dict[str, int]:
    """Count the candidates with a verdict among the thirds that people rated best and worst."""
    (one,) = read_sets([path])
    rated = drawn(one, rows)
    ratings = np.array(rated.ratings)
    has_verdict = np.array([bool(row.verdicts) for row in scorer.score_rows(rated.rows).row_scores])
    best, worst = ratings >= np.quantile(ratings, 2 / 3), ratings <= np.quantile(ratings, 1 / 3)
    return {
        "best": int(best.sum()),
        "best accused": int((best & has_verdict).sum()),
        "worst": int(worst.sum()),
        "worst accused": int((worst & has_verdict).sum()),
    }


def surface(scorer: MarsScorer) -> dict[str, Any]:
    """Count by kind of change the references that contradict themselves, and compute the mean loss of score."""
    texts = [json.loads(line) for line in MINIMAL_PAIRS.read_text(encoding="utf-8").splitlines()][:CHANGED]
    rng = random.Random(0)
    found = {}
    for task in ("text", "summary"):
        rows = [Row(text["reference"], (text["reference"],), text["reference"], (), task) for text in texts]
        before = np.array([row.score for row in scorer.score_rows(rows).row_scores])
        for kind, change in MEASURED.items():
            changed = [replace(row, candidate=normalise(change(row.candidate, rng))) for row in rows]
            scores = scorer.score_rows(changed).row_scores
            loss = before - np.array([row.score for row in scores])
            found[f"{kind} ({task})"] = {
                "accused": sum(bool(row.verdicts) for row in scores),
                "loss": float(loss.mean()),
            }
    return found


def tables(recorded: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> dict[str, str]:
    """Write a table of all sets for each kind of premise, of rated sets and of surfaces, presets side by side."""
    made = {}
    for by in ("context", "reference"):
        rows = _table_rows(recorded, by)
        header = ["set", "pairs", *(f"{column}, `{preset}`" for preset in recorded for column in COLUMNS)]
        body = [
            [
                name,
                str(next(one["pairs"] for one in found if one)),
                *(cell for one in found for cell in _cells(one)),
            ]
            for name, found in rows
        ]
        if body:
            made[by] = markdown([header, *body])
    rated = [
        [name, *(cell for one in found for cell in _accused_cells(one))]
        for name, found in [*_table_rows(recorded, "rated"), ("all", _sums(recorded))]
    ]
    if len(rated) > 1:
        made["rated"] = markdown(
            [["set", *(f"{part}, `{p}`" for p in recorded for part in ("best", "worst"))], *rated]
        )
    surfaces = [
        [
            name,
            *(
                cell
                for one in found
                for cell in (str(one.get("accused", "")), f"{one['loss']:.3f}" if one else "")
            ),
        ]
        for name, found in _table_rows(recorded, "surface")
    ]
    if surfaces:
        header = ["change", *(f"{part}, `{preset}`" for preset in recorded for part in ("accused", "mean loss"))]
        made["surface"] = markdown([header, *surfaces])
    return made


def _table_rows(
    recorded: Mapping[str, Mapping[str, Mapping[str, Any]]], kind: str
) -> list[tuple[str, list[Mapping[str, Any]]]]:
    """Return the sets of a kind, each with the figures of each preset; {} where there are none."""
    names = dict.fromkeys(name for figures in recorded.values() for name in figures.get(kind, {}))
    return [(name, [figures.get(kind, {}).get(name, {}) for figures in recorded.values()]) for name in names]


def _sums(recorded: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[Mapping[str, Any]]:
    keys = ("best", "best accused", "worst", "worst accused")
    return [
        {key: sum(one[key] for one in figures.get("rated", {}).values()) for key in keys}
        for figures in recorded.values()
    ]


def _accused_cells(figures: Mapping[str, Any]) -> list[str]:
    return [f"{figures[f'{part} accused']} of {figures[part]}" if figures else "" for part in ("best", "worst")]


def _cells(figures: Mapping[str, Any]) -> list[str]:
    right, said = figures.get("accuracy", figures.get("auc")), figures.get("contradicted")
    return [
        "" if right is None else f"{right:.3f}{'' if 'accuracy' in figures else ' (AUC)'}",
        f"{figures['twins']:.3f}" if "twins" in figures else "",
        f"{said['right']} of {said['said']}; {said['due']} due" if said else "",
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


if __name__ == "__main__":
    main()
