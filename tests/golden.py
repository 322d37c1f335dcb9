"""Scores of ten rows by each variant, in tests/golden.jsonl; a change of them is a line of the changelog.

    python -m tests.golden

computes them anew with preset "mini" and writes them beside the texts.
"""

import json
from pathlib import Path

from mars_score.scorer import MarsScorer
from mars_score.settings import CONFIGS

FILE = Path(__file__).with_name("golden.jsonl")


def read():
    """The rows: texts, and the scores by variant."""
    return [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def compute(rows, variant):
    """The scores of the rows in one call, over whose references ``paper`` counts IDF."""
    columns = ([row[name] for row in rows] for name in ("prediction", "references", "context", "task"))
    candidates, references, contexts, tasks = columns
    return (
        MarsScorer("mini", variant=variant, dtype="float32")
        .score(candidates, references, contexts, tasks=tasks)
        .scores
    )


def main():
    """Write the scores of this machine."""
    rows = read()
    scores = {variant: compute(rows, variant) for variant in CONFIGS}
    for index, row in enumerate(rows):
        row["scores"] = {variant: round(values[index], 6) for variant, values in scores.items()}
    FILE.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    main()
