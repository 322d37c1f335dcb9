"""Measure the NLI model of a preset: what it gets right, and whom its verdicts accuse.

    python -m research.entailment.measure FILE... --preset mini|medium [--by reference] [--json] [--record]

A file has pairs with ``premise``, ``hypothesis`` and ``label``, contexts with their sentences as in
``written.jsonl``, minimal pairs as in ``minimal_pairs.jsonl``, or rated candidates as for ``mars meta``. Premises
are cut as a score does it, and a hypothesis is judged by sentences. Of a set with three labels the accuracy is
printed; of one with two the area under the ROC curve (AUC) of the lowest support of a sentence. "Twins": the share
of sentences or paraphrases with more support than their twin. Verdicts: right/said of those due; of
rated candidates, whom they accuse of the third that people rated best and of the third rated worst. Tables take
the files of SummEdits together; ``--json`` has each.
``--by reference`` takes premises for references; of SummEdits it is the first consistent summary of a document.
``--surface`` changes references of ``minimal_pairs.jsonl`` as :mod:`research.entailment.surface` says, and
``--ranks`` scores these pairs by `fast`, as texts and as summaries.
"""

import argparse
import json
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from mars_score import MarsScorer
from mars_score.metrics.plus import PlusConfig
from mars_score.rows import Entailment, Row, RowScore, weighted_sum
from mars_score.text import normalise
from mars_score.variants.judgements.nli_judge import NliJudge, Question
from mars_score.variants.plus_variant import plan_row, token_recalls
from research.agreement import drawn
from research.entailment.surface import LEARNED, MEASURED
from research.results import add_record_option, markdown, record
from research.sets import read_sets

THREE = ("contradiction", "entailment", "neutral")
FOLLOWS = ("entailment", "consistent", "supported")
REFUTED = ("contradiction", "inconsistent")
MINIMAL_PAIRS = Path(__file__).parent.with_name("minimal_pairs.jsonl")
CHANGED = 32  # references whose surface is changed
PARTS = ("best", "worst")  # thirds of the candidates, as people rated them
SUMMEDITS = "summedits"
TASKS = ("text", "summary")
MAX_SUPPORT = 0.05  # below which a sentence is unsupported, of models for which none is chosen
Recorded = Mapping[str, Mapping[str, Mapping[str, Any]]]  # by preset and kind of measurement: figures by set
SetFigures = tuple[str, Sequence[Mapping[str, Any]]]  # its name, and the figures of each preset
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
    supports: Floats  # lowest support of a sentence
    contradicted: NDArray[np.bool_]  # whether there is a verdict on a sentence
    unsupported: NDArray[np.bool_]  # whether a sentence is unsupported
    found: NDArray[np.bool_]  # whether a score tells either


def main() -> None:
    """Classify and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("files", nargs="*", type=Path)
    options.add_argument("--by", choices=("context", "reference"), default="context", help="what the premises are")
    options.add_argument("--pairs", type=int, default=1000, help="of a file, the first of them (default: 1000)")
    options.add_argument("--rows", type=int, default=400, help="of a file of rated candidates (default: 400)")
    options.add_argument("--surface", action="store_true", help="measure changes of the surface, too")
    options.add_argument("--ranks", action="store_true", help="score minimal_pairs.jsonl by task, too")
    add_scorer_options(options)
    args = options.parse_args()
    scorer = make_scorer(args)
    figures: dict[str, dict[str, Any]] = {}
    for path in args.files:
        if is_rated(path):
            figures.setdefault("rated", {})[path.stem] = accused(path, args.rows, scorer)
        else:
            pairs = list(read(path, args.by))[: args.pairs]
            figures.setdefault(args.by, {})[path.stem] = figures_of(measure(pairs, scorer, args.by))
    if args.surface:
        figures["surface"] = surface(scorer)
    if args.ranks:
        figures["ranks"] = ranks(scorer)
    if args.record:
        for kind, sets in figures.items():
            for name, one in sets.items():
                record(f"entailment.{args.preset}.{kind}.{name}", one)
    if args.json:
        print(json.dumps({"preset": args.preset, "figures": figures}, indent=1))
        return
    print("\n\n".join(tables({args.preset: figures}).values()))


def add_scorer_options(options: argparse.ArgumentParser) -> None:
    """Add the options of :func:`make_scorer`, and where the figures go."""
    options.add_argument("--preset", default="mini")
    options.add_argument("--dtype", default="float32", help="number type of the models (default: float32)")
    options.add_argument("--store", default=None)
    options.add_argument("--json", action="store_true")
    add_record_option(options)


def make_scorer(args: argparse.Namespace) -> MarsScorer:
    """Make the scorer whose judgements are measured."""
    return MarsScorer(args.preset, variant="fast", dtype=args.dtype, store=args.store or False)


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
    judge, as_shipped = (NliJudge(calls.models.entailment_model, config) for _ in range(2))
    judge.reliability = judge.reliability._replace(support=1.0, by_context=True, by_reference=True)
    if not judge.reliability.max_support:
        judge.reliability = judge.reliability._replace(max_support=MAX_SUPPORT)
    plans = [plan_row(row, config) for row in dict.fromkeys(rows)]
    recalls = token_recalls(plans, calls.encode((text for plan in plans for text in plan.texts), tokens=True))
    judged = judge.judge([Question(plan.row, by == "context", by == "reference") for plan in plans], calls)
    conclusions, told = (
        one.conclude([one.asks(plan.row, recalls) for plan in plans], judged) for one in (judge, as_shipped)
    )
    shares, supports, contradicted, unsupported, found_any = [], [], [], [], []
    for row in rows:
        found = [judgement.entailment for judgement in judged[row]] or [Entailment(0.0, 0.0)]
        conclusion = conclusions[row]
        mean = np.mean([[one.contradiction, one.entailment] for one in found], axis=0)
        shares.append([*mean, 1 - mean.sum()])
        supports.append(min(one.support for one in found))
        contradicted.append(bool(conclusion.contradicted))
        unsupported.append(bool(conclusion.unsupported))
        found_any.append(bool(told[row].contradicted or told[row].unsupported))
    columns = map(np.array, (shares, supports, contradicted, unsupported, found_any))
    return Measured(list(pairs), *columns)


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
        figures["auc"] = auc(one.supports, np.array([label in FOLLOWS for label in labels]))
    if any(pair.twin >= 0 for pair in one.pairs):
        figures["twins"] = twins(one)
    refuted = np.array([label in REFUTED for label in labels])
    if refuted.any():
        figures["contradicted"] = _counts(one.contradicted, refuted)
    lacking = np.array([label not in FOLLOWS for label in labels])
    figures |= {"unsupported": _counts(one.unsupported, lacking), "found": _counts(one.found, lacking)}
    return figures


def _counts(said: NDArray[np.bool_], due: NDArray[np.bool_]) -> dict[str, int]:
    return {"right": int((said & due).sum()), "said": int(said.sum()), "due": int(due.sum())}


def accused(path: Path, rows: int, scorer: MarsScorer) -> dict[str, int]:
    """Count candidates with verdicts and summaries with unsupported sentences in the best and the worst third."""
    (one,) = read_sets([path])
    rated = drawn(one, rows)
    ratings = np.array(rated.ratings)
    scores = scorer.score_rows(rated.rows).row_scores
    thirds = {"best": ratings >= np.quantile(ratings, 2 / 3), "worst": ratings <= np.quantile(ratings, 1 / 3)}
    counts = {}
    for part, third in thirds.items():
        of_part = [score for score, is_in in zip(scores, third, strict=True) if is_in]
        counts[part] = len(of_part)
        counts[f"{part} accused"] = sum(bool(score.contradicted) for score in of_part)
        if any(row.task == "summary" for row in rated.rows):
            counts[f"{part} unsupported"] = sum(bool(score.unsupported) for score in of_part)
    return counts


def surface(scorer: MarsScorer) -> dict[str, Any]:
    """Count by kind of change the references that contradict themselves, and compute the mean loss of score.

    "judged" is the part of the loss by the terms that need the NLI model.
    """
    texts = [json.loads(line) for line in MINIMAL_PAIRS.read_text(encoding="utf-8").splitlines()][:CHANGED]
    rng = random.Random(0)
    found = {}
    for task in TASKS:
        rows = [Row(text["reference"], (text["reference"],), text["reference"], (), task) for text in texts]
        before = scorer.score_rows(rows).row_scores
        for kind, change in MEASURED.items():
            changed = [replace(row, candidate=normalise(change(row.candidate, rng))) for row in rows]
            scores = scorer.score_rows(changed).row_scores
            found[f"{kind} ({task})"] = {
                "accused": sum(bool(row.contradicted) for row in scores),
                "loss": fmean(row.score for row in before) - fmean(row.score for row in scores),
                "judged": fmean(map(_judged, before)) - fmean(map(_judged, scores)),
            }
    return found


def _judged(score: RowScore) -> float:
    return weighted_sum(term for term in score.terms if term.name in ("support", "contradiction"))


def ranks(scorer: MarsScorer) -> dict[str, dict[str, int]]:
    """Count by task the paraphrases that score above the flipped text, and the contradicted texts."""
    pairs = [json.loads(line) for line in MINIMAL_PAIRS.read_text(encoding="utf-8").splitlines()]
    found = {}
    for task in TASKS:
        scores = {
            kind: scorer.score_rows(
                [Row(one[kind], (one["reference"],), one["context"], (), task) for one in pairs]
            ).row_scores
            for kind in ("paraphrase", "flipped", "other", "reference")
        }
        counts = {kind: sum(bool(score.contradicted) for score in of_kind) for kind, of_kind in scores.items()}
        above = zip(scores["paraphrase"], scores["flipped"], strict=True)
        found[task] = {
            "pairs": len(pairs),
            "above": sum(paraphrase.score > flipped.score for paraphrase, flipped in above),
            "flipped contradicted": counts.pop("flipped"),
            "others contradicted": sum(counts.values()),
        }
    return found


def tables(recorded: Recorded) -> dict[str, str]:
    """Write tables of judged and of rated sets, of surfaces and of minimal pairs, presets side by side."""
    made = {by: judged_table(recorded, by) for by in ("context", "reference")}
    made["rated"] = accused_table(recorded)
    if all("surface" in figures for figures in recorded.values()):
        made["surface"] = surface_table(recorded)
    if all("ranks" in figures for figures in recorded.values()):
        made["ranks"] = ranks_table(recorded)
    return {name: table for name, table in made.items() if table}


def judged_table(recorded: Recorded, by: str) -> str:
    """Write the accuracy of three labels or the AUC of two, the twins in order, and how right verdicts are."""
    rows, told = [], ["contradicted", *(["unsupported", "found"] if by == "context" else [])]
    for name, found in _with_one_of_summedits(_table_rows(recorded, by)):
        figures = next(one for one in found if one)
        kind = "accuracy" if "accuracy" in figures else "auc"
        cells = [cell for one in found for cell in (_share(one.get(kind)), *(_said(one, name) for name in told))]
        rows.append([f"{name} (AUC)" if kind == "auc" else name, *cells])
        if "twins" in figures:
            blank = [""] * len(told)
            rows.append(
                [f"{name}, twins", *(cell for one in found for cell in (_share(one.get("twins")), *blank))]
            )
    heading = [f"{column}, `{preset}`" for preset in recorded for column in ("right", *told)]
    return markdown([["set", *heading], *rows]) if rows else ""


def _with_one_of_summedits(rows: Sequence[SetFigures]) -> list[SetFigures]:
    """Put one set in the place of those of SummEdits: their mean AUC, and the sums of their verdicts."""
    parts = [found for name, found in rows if name.startswith(SUMMEDITS)]
    if not parts:
        return list(rows)
    whole = [_sum_of_summedits([one for one in of_preset if one]) for of_preset in zip(*parts, strict=True)]
    return [
        *(one for one in rows if not one[0].startswith(SUMMEDITS)),
        (f"{len(parts)} of {SUMMEDITS}", whole),
    ]


def _sum_of_summedits(parts: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    if not parts:
        return {}
    told = {
        name: {key: sum(one[name][key] for one in parts) for key in ("right", "said", "due")}
        for name in ("contradicted", "unsupported", "found")
        if all(name in one for one in parts)
    }
    return {"auc": np.mean([one["auc"] for one in parts]), **told}


def accused_table(recorded: Recorded) -> str:
    """Write whom verdicts accuse: by set where it is one of the best, in all other sets, and in all."""
    sets = _table_rows(recorded, "rated")
    accusing = [one for one in sets if any(figures.get("best accused") for figures in one[1])]
    others = [one for one in sets if one not in accusing]
    rows = [
        *accusing,
        *([(f"{len(others)} others", _sums(others))] if others else []),
        *([("all", _sums(sets))] if sets else []),
    ]
    heading = [f"{part}, `{preset}`" for preset in recorded for part in PARTS]
    body = [[name, *(cell for one in found for cell in _accused_cells(one))] for name, found in rows]
    return markdown([["set", *heading], *body]) if rows else ""


def surface_table(recorded: Recorded) -> str:
    """Write for learned and for other changes how many texts are accused, and the mean and the largest loss."""
    columns = ("accused", "mean loss", "largest", "by NLI at most")
    rows = [["changes", *(f"{column}, `{preset}`" for preset in recorded for column in columns)]]
    for title, learned in (("learned", True), ("not learned", False)):
        kinds = [kind for kind in MEASURED if (kind in LEARNED) is learned]
        names = [f"{kind} ({task})" for task in TASKS for kind in kinds]
        of_presets = [{name: figures["surface"][name] for name in names} for figures in recorded.values()]
        rows.append([f"{len(kinds)} {title}", *(cell for one in of_presets for cell in _surface_cells(one))])
    return markdown(rows)


def ranks_table(recorded: Recorded) -> str:
    """Write by task how many paraphrases are above the flipped text, and how many texts are contradicted."""
    columns = ("above", "flipped contradicted", "others contradicted")
    rows = [["scored as", *(f"{column}, `{preset}`" for preset in recorded for column in columns)]]
    for task in TASKS:
        cells = []
        for figures in recorded.values():
            one = figures["ranks"][task]
            texts = (one["pairs"], one["pairs"], 3 * one["pairs"])
            cells += [f"{one[column]}/{of}" for column, of in zip(columns, texts, strict=True)]
        rows.append([task, *cells])
    return markdown(rows)


def _surface_cells(changes: Mapping[str, Mapping[str, float]]) -> tuple[str, str, str, str]:
    losses = {kind: one["loss"] for kind, one in changes.items()}
    largest = max(losses, key=lambda kind: losses[kind])
    accused = sum(one["accused"] for one in changes.values())
    judged = max(one["judged"] for one in changes.values())
    return (
        f"{accused}/{CHANGED * len(changes)}",
        f"{fmean(losses.values()):.3f}",
        f"{largest} {losses[largest]:.3f}",
        f"{judged:.3f}",
    )


def _table_rows(recorded: Recorded, kind: str) -> list[SetFigures]:
    """Return the sets of a kind, each with the figures of each preset; {} where there are none."""
    names = dict.fromkeys(name for figures in recorded.values() for name in figures.get(kind, {}))
    return [(name, [figures.get(kind, {}).get(name, {}) for figures in recorded.values()]) for name in names]


def _sums(sets: Sequence[SetFigures]) -> list[Mapping[str, Any]]:
    keys = [f"{part}{of}" for part in PARTS for of in ("", " accused")]
    by_preset = zip(*(found for _, found in sets), strict=True)
    return [{key: sum(one.get(key, 0) for one in found) for key in keys} for found in by_preset]


def _accused_cells(figures: Mapping[str, Any]) -> list[str]:
    return [f"{figures[f'{part} accused']}/{figures[part]}" if figures else "" for part in PARTS]


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def _said(figures: Mapping[str, Any], name: str) -> str:
    said = figures.get(name)
    return f"{said['right']}/{said['said']} of {said['due']}" if said else ""


def auc(scores: Floats, positive: NDArray[np.bool_]) -> float | None:
    """Return the probability that a positive has the larger score; None: there is one class."""
    count = int(positive.sum())
    if count in (0, len(positive)):
        return None
    ranks = rankdata(scores)
    return float((ranks[positive].sum() - count * (count + 1) / 2) / (count * (len(positive) - count)))


def twins(one: Measured) -> float:
    """Return the share of supported sentences that have more support than their twin."""
    supports: dict[tuple[str, int], dict[str, float]] = {}
    for pair, support in zip(one.pairs, one.supports, strict=True):
        if pair.twin >= 0:
            supports.setdefault((pair.premise, pair.twin), {})[pair.label] = float(support)
    both = [each for each in supports.values() if len(each) == 2]
    return sum(each["entailment"] > each["contradiction"] for each in both) / len(both)


if __name__ == "__main__":
    main()
