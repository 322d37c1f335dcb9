"""Measure whether the words that a score names are the wrong ones.

    python -m research.entailment.words FORMS_FOLDER... [--preset mini|medium] [--json] [--record]

Of the kept tenth of the forms' groups (:mod:`research.entailment.form_groups`) and of ``minimal_pairs.jsonl``
those statements are taken that differ in a few words from one that is right: these words are wrong. "Found":
statements that are contradicted or unsupported; "right word": of those with named words, those of which a named
word is wrong; "words": wrong ones of all that are named. "Accused": right statements that are contradicted or
unsupported.
"""

import argparse
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from mars_score import MarsScorer
from mars_score.findings import findings_of
from mars_score.rows import Row
from mars_score.text import plain_words
from research.entailment.form_groups import context_of, read_forms, statements_of_form
from research.entailment.marks import unmarked, with_marks, wrong_spans
from research.entailment.measure import MINIMAL_PAIRS, add_scorer_options, make_scorer
from research.entailment.pairs import Group, read_rows
from research.results import markdown, record


class Case(NamedTuple):
    """A row with its wrong words; without any, it is right."""

    kind: str
    row: Row
    wrong: frozenset[str] = frozenset()


def main() -> None:
    """Score and print a table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("forms", nargs="+", type=Path)
    add_scorer_options(options)
    args = options.parse_args()
    figures = measure([*minimal_cases(), *form_cases(args.forms)], make_scorer(args))
    if args.record:
        for kind, counts in figures.items():
            record(f"entailment.{args.preset}.words.{kind}", counts)
    print(json.dumps(figures, indent=1) if args.json else tables({args.preset: {"words": figures}})["words"])


def minimal_cases() -> Iterator[Case]:
    """Yield the flipped texts of the minimal pairs, and two right ones of each, as texts and as summaries."""
    for pair in read_rows(MINIMAL_PAIRS):
        group = Group("", (pair["reference"], pair["flipped"]), ("entailment", "contradiction"), ((0, 1),))
        for task in ("text", "summary"):
            rows = [
                Row(pair[key], (pair["reference"],), pair["context"], task=task)
                for key in ("flipped", "paraphrase", "reference")
            ]
            if wrong := wrong_words(with_marks(group).hypotheses[1]):
                yield Case(f"minimal pairs, {task}", rows[0], wrong)
            yield from (Case(f"minimal pairs, {task}", row) for row in rows[1:])


def form_cases(folders: Iterable[Path]) -> Iterator[Case]:
    """Yield the statements of the forms' kept groups that are right, or whose wrong words are known."""
    for row in read_forms(folders, kept=True):
        texts, labels = zip(*statements_of_form(row), strict=True)
        group = with_marks(Group(context_of(row), texts, labels))
        for text, label in zip(group.hypotheses, labels, strict=True):
            wrong = wrong_words(text)
            if wrong or label == "entailment":
                yield Case(row["form"], Row(unmarked(text), context=context_of(row), task="summary"), wrong)


def wrong_words(text: str) -> frozenset[str]:
    """Return the marked words of a text."""
    plain = unmarked(text)
    return frozenset(word for start, end in wrong_spans(text) for word in plain_words(plain[start:end]))


def measure(cases: Iterable[Case], scorer: MarsScorer) -> dict[str, dict[str, int]]:
    """Count by kind what is found, what is named, and what is accused."""
    cases = list(cases)
    scores = scorer.score_rows([case.row for case in cases]).row_scores
    figures: dict[str, Counter[str]] = {}
    for case, score in zip(cases, scores, strict=True):
        counts = figures.setdefault(case.kind, Counter())
        findings = findings_of(case.row, score)
        if not case.wrong:
            counts.update({"right": 1, "accused": bool(findings)})
            continue
        named = {word for finding in findings for one in finding.words for word in plain_words(one)}
        counts.update(
            {
                "wrong": 1,
                "found": bool(findings),
                "named": bool(named),
                "right word": bool(named & case.wrong),
                "words": len(named),
                "wrong words": len(named & case.wrong),
            }
        )
    return {kind: dict(counts) for kind, counts in figures.items()}


def tables(recorded: Mapping[str, Mapping[str, Mapping[str, Mapping[str, int]]]]) -> dict[str, str]:
    """Write the counts of all presets that have some as a table.

    Args:
        recorded: counts by preset, the name "words", and kind.
    """
    by_preset = {preset: figures["words"] for preset, figures in recorded.items() if "words" in figures}
    parts = (("found", "wrong"), ("right word", "named"), ("wrong words", "words"), ("accused", "right"))
    heading = ["kind"]
    heading += [
        f"{name}, `{preset}`" for preset in by_preset for name in ("found", "right word", "words", "accused")
    ]
    kinds = dict.fromkeys(kind for figures in by_preset.values() for kind in figures)
    body = [
        [
            kind,
            *(
                f"{figures[kind].get(one, 0)}/{figures[kind].get(of, 0)}"
                for figures in by_preset.values()
                for one, of in parts
            ),
        ]
        for kind in kinds
    ]
    return {"words": markdown([heading, *body])}


if __name__ == "__main__":
    main()
