"""The learned head "terms", tried on stored features (``research/features.py``); no model is called.

    python -m research.learned left_out FEATURES.jsonl...  each set with weights learned from others
    python -m research.learned own FEATURES.jsonl...       how many ratings of one's own set are enough
    python -m research.learned drift FEATURES.jsonl...     learned from worse candidates than it is tested on
    python -m research.learned attacks FEATURES.jsonl...   attacks that score below their originals
    python -m research.learned ship FEATURES.jsonl... --out FOLDER   the head that ships with the package

All correlations are Pearson's with the ratings; for the sets named by ``--within-groups``, within groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mars_score.learning.terms import FEATURES, PENALTY, Part, TermsHead, fit_weights
from mars_score.settings import resolve_settings
from mars_score.stats.draws import Interval
from research.forms import V3, V3_LM, Columns, FeatureSet, Form, options_of, read

Floats = NDArray[np.float64]
# Sets that were made from the same source; none of them may teach another.
FAMILIES = (("usr_",), ("evouna_",), ("bagel", "sfhot", "sfres"), ("union_roc", "openmeva_roc"))
SHIPPED = ("repetition",)
ALL = (*SHIPPED, "length", "copied", "log_probability", "lift")
OWN_RATINGS = (0, 50, 100, 200, 500, 1000)
SKEWS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0)
REPEATS, FEWEST_TESTED = 10, 50


def features(columns: Columns, names: Sequence[str]) -> Floats:
    """As :func:`mars_score.learning.terms.values`, (rows, features)."""
    words, of_references = (np.maximum(columns[f"{kind}_words"], 1) for kind in ("candidate", "reference"))
    known = 1 - columns["blank"]
    of_name: dict[str, Callable[[], Floats]] = {
        "repetition": lambda: columns["repetition"] + columns.copied_in_dialogue(),
        "length": lambda: np.log(words / of_references) * known,
        "copied": lambda: columns["copied"] * known,
        "log_probability": lambda: columns["alone"] * columns.read_by_language_model(),
        "lift": lambda: (columns["given_context"] - columns["alone"]) * columns.read_by_language_model(),
    }
    return np.column_stack([of_name[name]() for name in names])


def part(one: FeatureSet, names: Sequence[str], form: Form = V3_LM, rows: NDArray[np.int64] | None = None) -> Part:
    """What weights are fitted to; ``rows``: indices of some of the set's rows."""
    some = np.arange(len(one.rows)) if rows is None else rows
    key = one.name, names, form
    if key not in _known:
        _known[key] = features(one.items, names), form(one.items)
    of_features, scores = _known[key]
    ratings, groups = (np.array([row[name] for row in one.rows]) for name in ("rating", "group"))
    within = one.level == "within_groups"
    return Part(of_features[some], scores[some], ratings[some], groups[some].tolist(), within_groups=within)


_known: dict[tuple[str, Sequence[str], Form], tuple[Floats, Floats]] = {}


def learn(
    parts: Sequence[Part], names: Sequence[str], penalty: float = PENALTY, start: Floats | None = None
) -> Floats:
    """The weights of features."""
    return fit_weights(parts, [FEATURES[name] for name in names], penalty, start)


def related(one: str, other: str) -> bool:
    """Whether two sets have the same source."""
    return one == other or any(one.startswith(family) and other.startswith(family) for family in FAMILIES)


def from_others(
    sets: Sequence[FeatureSet],
    names: Sequence[str],
    penalty: float = PENALTY,
    *,
    families: bool = True,
) -> dict[str, Floats]:
    """For each set the weights that the others teach."""
    parts = {one.name: part(one, names) for one in sets}
    return {
        name: learn(
            [one for other, one in parts.items() if not (related(name, other) if families else name == other)],
            names,
            penalty,
        )
        for name in parts
    }


def left_out(sets: Sequence[FeatureSet]) -> None:
    """Each set with weights learned from sets of other sources."""
    plain = [V3_LM(one.items) for one in sets]
    rows: list[tuple[str, Sequence[Floats]]] = [("plus", plain)]

    def add(label: str, names: Sequence[str], weights: dict[str, Floats]) -> None:
        learned = [features(one.items, names) @ weights[one.name] for one in sets]
        rows.append((label, [score + more for score, more in zip(plain, learned, strict=True)]))

    for label, names in {"shipped": SHIPPED, "shipped and length": (*SHIPPED, "length"), "all": ALL}.items():
        for families in (True, False):
            kind = "sources" if families else "sets"
            add(f"{label}, {kind} left out", names, from_others(sets, names, families=families))
    for penalty in (1.0, 3.0, 30.0):
        add(f"shipped, sources left out, penalty {penalty:g}", SHIPPED, from_others(sets, SHIPPED, penalty))
    table(sets, plain, rows, [one.name for one in sets])


def table(
    sets: Sequence[FeatureSet],
    base: Sequence[Floats],
    rows: Sequence[tuple[str, Sequence[Floats]]],
    names: Sequence[str],
) -> None:
    """Each score's correlations, and their differences from those of ``base``."""
    before = [one.pearson(scores) for one, scores in zip(sets, base, strict=True)]
    drawn = np.mean([one.resampled(scores) for one, scores in zip(sets, base, strict=True)], axis=0)
    print(f"| score | {' | '.join(names)} | mean | difference [95 %] | better | worst |")
    print(f"|---|{'---:|' * (len(names) + 4)}")
    for label, scores in rows:
        found = [one.pearson(each) for one, each in zip(sets, scores, strict=True)]
        others = np.mean([one.resampled(each) for one, each in zip(sets, scores, strict=True)], axis=0)
        interval, gains = Interval.of(others - drawn, 0.95), np.subtract(found, before)
        cells = [*(f"{value:.3f}" for value in found), f"{np.mean(found):.3f}"]
        cells.append(f"{gains.mean():+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]")
        cells += [f"{(gains > 0).sum()} of {len(sets)}", f"{names[int(gains.argmin())]} {gains.min():+.3f}"]
        print(f"| {' | '.join([label, *cells])} |")
    print()


def own(sets: Sequence[FeatureSet]) -> None:
    """Differences from plus on the rest of a set, with some of its ratings; groups stay together."""
    for names in (SHIPPED, ALL):
        others = from_others(sets, names)
        for title, start, form in (
            ("from plus on", None, V3_LM),
            ("the same, against fast", None, V3),
            ("from the weights of sets of other sources on", others, V3_LM),
        ):
            print(f"{', '.join(names)}; {title}\n\n| set | {' | '.join(map(str, OWN_RATINGS))} |")
            print(f"|---|{'---:|' * len(OWN_RATINGS)}")
            table = np.array([_own_gains(one, names, start[one.name] if start else None, form) for one in sets])
            for one, gains in zip(sets, table, strict=True):
                print(f"| {one.name} | {' | '.join('' if np.isnan(gain) else f'{gain:+.3f}' for gain in gains)} |")
            counts = (~np.isnan(table)).sum(axis=0)
            for label, row in (("mean", np.nanmean(table, axis=0)), ("worst", np.nanmin(table, axis=0))):
                print(f"| {label} | {' | '.join(f'{value:+.3f}' for value in row)} |")
            print(f"| sets | {' | '.join(map(str, counts))} |\n")


def _own_gains(one: FeatureSet, names: Sequence[str], start: Floats | None, form: Form) -> list[float]:
    groups = np.array([row["group"] for row in one.rows])
    gains: list[list[float]] = [[] for _ in OWN_RATINGS]
    for seed in range(REPEATS):
        order = np.random.default_rng(seed).permutation(np.unique(groups))
        rows = np.concatenate([np.flatnonzero(groups == group) for group in order])
        for size, of_size in zip(OWN_RATINGS, gains, strict=True):
            taught = np.isin(groups, groups[rows[:size]])
            if (~taught).sum() < FEWEST_TESTED:
                continue
            weights = np.zeros(len(names)) if start is None else start
            if size:
                weights = learn([part(one, names, rows=np.flatnonzero(taught))], names, start=start)
            test, plain = (part(one, names, kind, np.flatnonzero(~taught)) for kind in (V3_LM, form))
            learned = test.scores + test.features @ weights
            of_size.append(_r(learned, test.ratings) - _r(plain.scores, plain.ratings))
    return [float(np.mean(of_size)) if of_size else np.nan for of_size in gains]


def _r(ones: Floats, others: Floats) -> float:
    size = np.sqrt((ones @ ones) * (others @ others))
    return float(ones @ others / size) if size > 0 else np.nan  # all ratings are equal


def drift(sets: Sequence[FeatureSet]) -> None:
    """Half of the groups teach, mostly by bad candidates, the others test, mostly by good ones (BLEURT, 5.2)."""
    large = [one for one in sets if len(one.rows) >= 4 * FEWEST_TESTED]
    print(f"Mean of {len(large)} sets with {4 * FEWEST_TESTED} ratings or more\n")
    print(f"| skew | {' | '.join(f'{skew:g}' for skew in SKEWS)} |\n|---|{'---:|' * len(SKEWS)}")
    found: dict[str, list[float]] = {"plus": [], "learned on half of the set": []}
    for skew in SKEWS:
        pairs = np.array([_drifted(one, skew, seed) for one in large for seed in range(REPEATS)])
        for row, value in zip(found.values(), np.nanmean(pairs, axis=0).tolist(), strict=True):
            row.append(value)
    for label, row in found.items():
        print(f"| {label} | {' | '.join(f'{value:.3f}' for value in row)} |")


def drifted(
    ratings: Floats, groups: NDArray[Any], skew: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows to learn from, mostly bad, and to test on, mostly good: each half of the rows of half of the groups."""
    rng = np.random.default_rng(seed)
    levels = (ratings - ratings.mean()) / ratings.std()
    names = np.unique(groups)
    teaching = np.isin(groups, rng.permutation(names)[: len(names) // 2])

    def draw(rows: NDArray[np.int64], sign: int) -> NDArray[np.int64]:
        chance = np.exp(sign * skew * levels[rows])
        return rng.choice(rows, len(rows) // 2, replace=False, p=chance / chance.sum())

    return draw(np.flatnonzero(teaching), -1), draw(np.flatnonzero(~teaching), 1)


def _drifted(one: FeatureSet, skew: float, seed: int) -> tuple[float, float]:
    ratings, groups = (np.array([row[name] for row in one.rows]) for name in ("rating", "group"))
    taught, test = (part(one, SHIPPED, rows=rows) for rows in drifted(ratings, groups, skew, seed))
    scores = test.scores + test.features @ learn([taught], SHIPPED)
    return _r(test.scores, test.ratings), _r(scores, test.ratings)


def attacks(sets: Sequence[FeatureSet]) -> None:
    """Shares of attacks below their originals, with weights learned from sets of other sources."""
    weights = from_others(sets, SHIPPED)
    print("| attack | plus | terms | sets on which terms is lower |\n|---|---:|---:|---:|")
    for name in ("reorder", "retrieve"):
        shares = []
        for one in (one for one in sets if one.attacks.get(name)):
            places = [row["item"] for row in one.attacks[name]]
            before, after = one.items, Columns(one.attacks[name])
            index = {row["item"]: place for place, row in enumerate(one.rows)}
            originals = [index[place] for place in places]
            differences = [V3_LM(before)[originals] - V3_LM(after)]
            change = features(before, SHIPPED)[originals] - features(after, SHIPPED)
            differences.append(differences[0] + change @ weights[one.name])
            shares.append([float((each > 0).mean()) for each in differences])
        table = np.array(shares)
        lower = int((table[:, 1] < table[:, 0]).sum())
        print(f"| {name} | {table[:, 0].mean():.3f} | {table[:, 1].mean():.3f} | {lower} of {len(table)} |")


def ship(sets: Sequence[FeatureSet], folder: Path) -> None:
    """Learn from all sets, and save."""
    head = TermsHead(resolve_settings("mini"), features=SHIPPED)
    weights = learn([part(one, SHIPPED) for one in sets], SHIPPED)
    head.weights = dict(zip(SHIPPED, weights.tolist(), strict=True))
    head.learned_from = [
        {
            "name": one.name,
            "ratings": len(one.rows),
            "groups": len({row["group"] for row in one.rows}),
            "within_groups": one.level == "within_groups",
        }
        for one in sets
    ]
    print(head.save(folder).fingerprint, head.weights)


COMMANDS: dict[str, Callable[[Sequence[FeatureSet]], None]] = {
    one.__name__: one for one in (left_out, own, drift, attacks)
}


def main() -> None:
    """Print a table, or write the head."""
    options = options_of(__doc__, [*COMMANDS, "ship"])
    options.add_argument("--out", type=Path, metavar="FOLDER", help="of the head")
    args = options.parse_args()
    sets = sorted(read(args.files, args.within_groups), key=lambda one: one.name)
    if args.table == "ship":
        ship(sets, args.out)
    else:
        COMMANDS[args.table](sets)


if __name__ == "__main__":
    main()
