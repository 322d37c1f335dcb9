"""A page to read: references with their templates and what the two planners make of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.common import make_scorer, progress
from benchmarks.sampling import Sample

PLANNERS = ("self", "none")


def augmented_page(rows: Sequence[Sample], count: int, batch_size: int) -> list[dict[str, Any]]:
    """The first ``count`` rows, augmented with either planner; IDF is counted over all ``rows``."""
    if not count:
        return []
    chosen, corpus = rows[:count], [row.reference for row in rows]
    outcomes = []
    for planner in PLANNERS:
        progress(f"page, planner {planner}")
        scorer = make_scorer(batch_size, planner=planner, idf_corpus=corpus)
        references = scorer.augment_references([row.reference for row in chosen], [row.context for row in chosen])
        outcomes.append([{str(one.template): one.text for one in row[0].augmentations} for row in references])
    return [
        {
            "context": row.context,
            "reference": row.reference,
            "templates": [
                {"template": template, "self": planned[template], "none": plain[template]} for template in planned
            ],
        }
        for row, planned, plain in zip(chosen, *outcomes, strict=True)
    ]


def print_page(page: Sequence[dict[str, Any]]) -> None:
    """Print it for a reader."""
    for entry in page:
        print(f"\ncontext:   {entry['context']}\nreference: {entry['reference']}")
        for texts in entry["templates"]:
            print(f"  template: {texts['template']}")
            for planner in PLANNERS:
                print(f"      {planner}: {texts[planner]}")
