"""What each constant of `plus` and `fast` brings, with whole kinds of sets resampled.

    python -m research.forms DATA/*.jsonl --features FEATURES.json

Reads the rated sets as :mod:`research.agreement` does, keeps what the score is made of in FEATURES.json, and
prints Markdown from that: the mean Pearson's r without each constant minus that of the whole form. A second call
needs no models and no data.
"""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mars_score import MarsScorer
from mars_score.data.overlap import RUN_WORDS, copied_share, windows
from mars_score.data.validation import Row
from mars_score.data.words import plain_words, repetition, split_words
from mars_score.infilling.augmented import AugmentedReference
from mars_score.infilling.augmenter import prepare_rows
from mars_score.meta.rated import RatedSet, read_rated_sets
from mars_score.sampling.samples import make_request
from mars_score.scoring.evidence import CONTRADICTION, EMBED, LIKELIHOOD, MATCH, Reader
from mars_score.scoring.row import ScorableRow
from mars_score.scoring.terms import token_recall
from research.agreement import drawn, pearson

KINDS = {
    "dialogue": ("usr_personachat", "usr_topicalchat", "grade_convai2"),
    "stories": ("openmeva_roc", "union_roc"),
    "summaries": ("summeval", "dialsummeval", "newsroom", "realsumm", "huse_gigaword"),
    "answers": ("evouna_nq", "evouna_tq", "mohler_asag", "qa_feedback"),
    "simplification": ("asset_human", "simplicity_da"),
    "data-to-text": ("bagel", "sfhot", "sfres"),
    "questions": ("qgeval",),
}
RESAMPLES = 1000
WITHIN = 0.02  # of r
LIFT_LIMIT, ALONE = 2.5, 0.5  # as in mars_score.scoring.form
Floats = NDArray[np.float64]
Features = Mapping[str, Floats]  # by name, one value per candidate

# Name of a row -> what of the form is changed.
CHANGES: dict[str, dict[str, float]] = {
    "repetition": {"repetition": 0},
    "copying is repetition in a dialogue": {"copying": 0},
    "context": {"context": 0},
    "weight of the context by the length of references": {"context_words": 0},
    "... and by their closeness to the context": {"close": 9},
    "cosine in the context's place where that is data": {"data": 0},
    "likelihood": {"likelihood": 0},
    "weight of the likelihood by the length of references": {"likelihood_words": 0},
    "limit of the lift": {"lift": 99},
    "half of log p alone: none": {"alone": 0},
    "half of log p alone: all": {"alone": 1},
    "no likelihood in a dialogue": {"dull": 0},
    "contradiction": {"contradiction": 0},
    "a tenth of token recall: the cosine of sentences there": {"cosine": 0.1},
    "half of token recall: the cosine of sentences there": {"cosine": 0.5},
    "token recall: the cosine of sentences there": {"cosine": 1},
}
# What the rehearsal chooses from; the first value is the form's.
CHOICES: dict[str, tuple[float, ...]] = {
    "context": (0.3, 0.5, 0.7),
    "close": (0.7, 9),
    "data": (1, 0),
    "lift": (2.5, 99),
    "alone": (0.5, 0, 1),
    "dull": (1, 0),
    "repetition": (0.3, 0, 0.6),
    "contradiction": (0.4, 0),
}
PLAIN = {
    "likelihood": 0.0,
    "repetition": 0.0,
    "contradiction": 0.0,
    "context_words": 0.0,
    "close": 9.0,
    "data": 0.0,
}


def main() -> None:
    """Read, or take what was kept, and print."""
    kept = kept_features(__doc__, features)
    sets = {name: {key: np.array(values) for key, values in columns.items()} for name, columns in kept.items()}
    for name, one in sets.items():
        if not np.allclose(form(one, likelihood=0.15), one["score"], rtol=0, atol=1e-5):
            raise ValueError(f"{name}: the form of this script is not that of the scorer, or the features are old")
    for variant, likelihood in (("plus", 0.15), ("fast", 0.0)):
        whole = partial(form, likelihood=likelihood)
        print(f"\n{table(sets, variant, whole)}\n\n{beside_parts(sets, variant, whole)}")
        for line in rehearsal(sets, variant, likelihood):
            print(f"\n{line}")


def kept_features(text: str | None, read: Callable[[RatedSet, MarsScorer], Any]) -> dict[str, Any]:
    """By set what ``read`` finds, or what an earlier call of the command has kept; ``text`` is its help."""
    options = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("files", nargs="*", help="rated candidates, as for mars meta")
    options.add_argument("--features", type=Path, required=True, help="where the features are kept")
    options.add_argument("--rows", type=int, default=300, help="candidates of a set, about (default: 300)")
    args = options.parse_args()
    if not args.features.exists():
        scorer = MarsScorer("mini", variant="plus")
        found = {one.name: read(drawn(one, args.rows), scorer) for one in read_rated_sets(args.files)}
        args.features.write_text(json.dumps(found), encoding="utf-8")
    kept: dict[str, Any] = json.loads(args.features.read_text(encoding="utf-8"))
    return kept


def features(rated: RatedSet, scorer: MarsScorer) -> dict[str, list[float]]:
    """What the score of each written candidate is made of, by name."""
    rows = prepare_rows(rated.rows, scorer.settings.masking)
    written = [(row, rating) for row, rating in zip(rows, rated.ratings, strict=True) if row[0]]
    scored = scorer.score_rows([row for row, _ in written])
    reader = Reader(scorer.settings, scorer.runtime)
    texts = [text for row, _ in written for text in (row.candidate, *row.references)]
    tokens = reader.read(MATCH, texts)
    vectors = reader.read(EMBED, [*texts, *(part for row, _ in written for part in windows(row[2]) if row[2])])
    likely = reader.read(LIKELIHOOD, [(row[2], row[0]) for row, _ in written if row[2]])
    scorable = [scorable_row(row, scorer) for row, _ in written]
    denied = reader.read(CONTRADICTION, [one for row in scorable for one in row.premises])
    columns: list[dict[str, float]] = []
    for (texts_of_row, rating), row, score in zip(written, scorable, scored, strict=True):
        candidate, references, context, _ = texts_of_row
        parts = np.stack([vectors[part].vector for part in windows(context)]) if context else None
        near = {
            text: float((parts @ vectors[text].vector).max()) if parts is not None else 0.0
            for text in (candidate, *references)
        }
        own = tokens[candidate].tokens
        columns.append(
            {
                "human": rating,
                "score": score.score,
                "recall": max(token_recall(own, tokens[text].tokens) for text in references),
                "cosine": max(float(tokens[candidate].vector @ tokens[text].vector) for text in references),
                "near": near[candidate],
                "closeness": float(np.mean([near[text] for text in references])),
                "alone": float(likely[context, candidate].alone) if context else 0.0,
                "lift": float(likely[context, candidate].lift) if context else 0.0,
                "repetition": repetition(candidate),
                "copied": copied_share(candidate, context) if len(plain_words(candidate)) >= RUN_WORDS else 0.0,
                "denied": float(np.mean([denied[one] for one in row.premises])) if row.english else 0.0,
                "words": float(np.mean([len(split_words(text)) for text in references])),
                "context": float(bool(context)),
                **{name: float(row.task == name) for name in ("dialogue", "data")},
            }
        )
    return {name: [one[name] for one in columns] for name in columns[0]}


def scorable_row(row: Row, scorer: MarsScorer) -> ScorableRow:
    """A row as it is scored: with its task, without infills and samples."""
    candidate, references, context, _ = row
    task = make_request(context, references, scorer.settings.sampling).task
    return ScorableRow(candidate, tuple(AugmentedReference(text, ()) for text in references), context, task)


def form(
    one: Features,
    likelihood: float,
    context: float = 0.5,
    context_words: float = 3,
    close: float = 0.7,
    data: float = 1,
    likelihood_words: float = 20,
    lift: float = LIFT_LIMIT,
    alone: float = ALONE,
    dull: float = 1,
    repetition: float = 0.3,
    copying: float = 1,
    contradiction: float = 0.4,
    samples: float = 0.2,
    cosine: float = 0,
) -> Floats:
    """The score of each candidate (docs/method.md); with a column ``"nearest"``, its recall of a sample."""
    words, is_data = one["words"], one["data"] * data
    recall = (1 - cosine) * one["recall"] + cosine * one["cosine"]
    openness = np.clip((1 - one["closeness"]) / (1 - close), 0, 1) if close < 1 else 1.0
    share = words / (words + context_words) * openness
    of_context = context * share * one["context"] * (1 - is_data)
    of_samples = np.where(of_context > 0, share, words / (words + context_words)) ** 2 * samples
    of_cosine = context * is_data * one["context"]
    of_likelihood = likelihood * words**2 / (words**2 + likelihood_words**2) * (1 - dull * one["dialogue"])
    repeated = np.minimum(1, one["repetition"] + copying * one["dialogue"] * one["copied"])
    scores: Floats = (
        (1 - of_context - of_cosine) * recall
        + of_cosine * one["cosine"]
        + of_context * one["near"]
        + of_likelihood * likelihood_term(one, alone, lift)
        + of_samples * np.maximum(0, one.get("nearest", one["recall"]) - recall)
        - repetition * repeated
        - contradiction * np.maximum(0, recall) ** 2 * one["denied"]
    )
    return scores


def likelihood_term(one: Features, alone: float = ALONE, lift: float = LIFT_LIMIT) -> Floats:
    """The value of the form's term "likelihood" for each candidate."""
    values: Floats = alone * one["alone"] + np.minimum(one["lift"], lift)
    return values


def table(sets: Mapping[str, Features], variant: str, whole: Callable[..., Floats]) -> str:
    """The mean over sets of r without each constant minus that of the whole form, in thousandths."""

    def agreement(**changes: float) -> dict[str, float]:
        return {name: pearson(whole(one, **changes), one["human"]) for name, one in sets.items()}

    as_it_is = agreement()
    lines = [f"| `{variant}` without | mean of sets [kinds resampled, 95 %] | {' | '.join(KINDS)} |"]
    lines.append(f"|---|---:|{'---:|' * len(KINDS)}")
    for name, changes in CHANGES.items():
        changed = agreement(**changes) if "likelihood" not in changes or variant == "plus" else as_it_is
        gains = {one: 1000 * (changed[one] - as_it_is[one]) for one in sets}
        if not any(gains.values()):
            continue
        by_kind = [[gains[one] for one in of_kind if one in gains] for of_kind in KINDS.values()]
        cells = [f"{np.mean(of_kind):+.0f}" if of_kind else "" for of_kind in by_kind]
        lines.append(f"| {name} | {interval([one for one in by_kind if one])} | {' | '.join(cells)} |")
    mean = float(np.mean(list(as_it_is.values())))
    return f"`{variant}`: mean of {len(sets)} sets {mean:.3f}.\n\n" + "\n".join(lines)


def beside_parts(sets: Mapping[str, Features], variant: str, whole: Callable[..., Floats]) -> str:
    """On how many sets the form reaches the best of its own parts, which only a look at the ratings can tell."""
    behind: dict[str, str] = {}
    best_of_sets = []
    for name, one in sets.items():
        terms = {
            "token recall": one["recall"],
            "cosine": one["cosine"],
            "context": one["near"],
            "likelihood": likelihood_term(one),
            "repetition": -one["repetition"],
            "contradiction": -one["denied"],
        }
        if variant == "fast":
            del terms["likelihood"]
        parts = {part: pearson(values, one["human"]) for part, values in terms.items() if values.std() > 0}
        best = max(parts, key=lambda part: parts[part])
        best_of_sets.append(parts[best])
        if (less := parts[best] - pearson(whole(one), one["human"])) > WITHIN:
            behind[name] = f"{name} ({best}, {less:.3f})"
    return (
        f"`{variant}` is within {WITHIN} of the best of its own parts, or above, on {len(sets) - len(behind)} of "
        f"{len(sets)} sets; the mean of these best is {np.mean(best_of_sets):.3f}. Behind: "
        f"{', '.join(behind.values())}."
    )


def rehearsal(sets: Mapping[str, Features], variant: str, likelihood: float) -> list[str]:
    """What choices on one half of the kinds bring on the other, beside R + .5 C, in sentences."""
    halves = list(KINDS)[::2], list(KINDS)[1::2]

    def agreement(kinds: Sequence[str], **changes: float) -> list[float]:
        names = [name for kind in kinds for name in KINDS[kind] if name in sets]
        return [pearson(form(sets[name], **changes), sets[name]["human"]) for name in names]

    def mean(kinds: Sequence[str], **changes: float) -> float:
        return float(np.mean(agreement(kinds, **changes)))

    lines, left_out = [], list[float]()
    for chosen_on, reported_on in (halves, halves[::-1]):
        best: dict[str, float] = {"likelihood": likelihood}
        for name, values in CHOICES.items():  # one after the other
            best[name] = max(values, key=lambda value, name=name: mean(chosen_on, **{**best, name: value}))  # type: ignore[misc]
        left_out += agreement(reported_on, **best)
        figures = (mean(reported_on, **changes) for changes in (best, {"likelihood": likelihood}, PLAIN))
        chosen, as_it_is, plain = (f"{figure:.3f}" for figure in figures)
        lines.append(
            f"`{variant}`, chosen on {', '.join(chosen_on)}: {chosen} on {', '.join(reported_on)}, where the form "
            f"as it is has {as_it_is} and R + .5 C {plain}."
        )
    return [*lines, f"`{variant}`, each set by what was chosen on the other half: mean {np.mean(left_out):.3f}."]


def interval(by_kind: Sequence[Sequence[float]]) -> str:
    """The mean over all sets, and its 95 % interval from resamples of whole kinds."""
    rng = np.random.default_rng(0)
    means = []
    for _ in range(RESAMPLES):
        chosen: list[Any] = [by_kind[number] for number in rng.integers(0, len(by_kind), len(by_kind))]
        means.append(np.concatenate(chosen).mean())
    low, high = np.percentile(means, [2.5, 97.5])
    return f"{np.concatenate(by_kind).mean():+.1f} [{low:+.0f}, {high:+.0f}]"


if __name__ == "__main__":
    main()
