"""Typical scores: what candidates of known quality get on ``examples/``.

    python -m research.typical_values --preset mini

Prints a Markdown table: for each kind of candidate the number of rows and, by variant, the mean score with the
range from the 10th to the 90th percentile. The kinds are those of ``examples/README.md``, and two that need no
judgement: the reference itself, and the reference of another example.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mars_score import MarsScorer

EXAMPLES = Path(__file__).parent.parent / "examples"
VARIANTS = ("plus",)


class Rated(NamedTuple):
    """A candidate of a known kind, with what it is scored against."""

    kind: str
    candidate: str
    references: list[str]
    context: str
    task: str


# Kinds of candidates in the order of the table, with the text that names each there.
KINDS = {
    "identical": "identical to the reference",
    "good": "good, close to the reference",
    "good, worded differently": "good paraphrase, in other words",
    "weak": "weak: fits, but vague or beside the point",
    "copied from context": "a sentence copied from the context",
    "shuffled": "the words of a good text, shuffled",
    "nonsense": "the reference's words in senseless roles",
    "wrong": "contradicts the context in the reference's words",
    "off topic": "off topic, often in the form of the reference",
    "unrelated": "unrelated: the reference of another example",
}


def rows_of_examples(folder: Path = EXAMPLES) -> Iterator[Rated]:
    """Yield the candidates of all examples; identical and unrelated texts are made from the references.

    Args:
        folder: holds JSONL files with the keys ``references``, ``context`` and ``candidates``.
    """
    for path in sorted(folder.glob("*.jsonl")):
        examples = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        for example, other in zip(examples, [*examples[1:], examples[0]], strict=True):
            against = example["references"], example["context"], example.get("task", "text")
            for reference in example["references"]:
                yield Rated("identical", reference, *against)
            for candidate in example["candidates"]:
                yield Rated(candidate["kind"], candidate["text"], *against)
            yield Rated("unrelated", other["references"][0], *against)


def table(rows: Sequence[Rated], scores: Mapping[str, Sequence[float]]) -> str:
    """Write the Markdown table.

    Args:
        rows: the candidates.
        scores: by variant, one score per row.
    """
    groups = defaultdict(list)
    for index, row in enumerate(rows):
        groups[row.kind].append(index)
    lines = [
        f"| candidate | rows | {' | '.join(f'`{variant}`' for variant in scores)} |",
        f"|---|---:|{'---:|' * len(scores)}",
    ]
    for kind, title in KINDS.items():
        values = (np.asarray(column)[groups[kind]] for column in scores.values())
        cells = " | ".join(map(_cell, values))
        lines.append(f"| {title} | {len(groups[kind])} | {cells} |")
    return "\n".join(lines)


def _cell(values: np.ndarray) -> str:
    low, high = np.percentile(values, [10, 90])
    return f"{values.mean():.2f} ({low:.2f} to {high:.2f})"


def main() -> None:
    """Score the examples and print the table."""
    options = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    options.add_argument("--preset", default=None)
    options.add_argument("--variants", default=",".join(VARIANTS), help=f"default: {','.join(VARIANTS)}")
    options.add_argument("--store", default=None)
    args = options.parse_args()
    rows = list(rows_of_examples())
    _, *columns, tasks = (list(column) for column in zip(*rows, strict=True))
    scores = {
        variant: MarsScorer(args.preset, variant=variant, store=args.store).score(*columns, tasks=tasks).scores
        for variant in args.variants.split(",")
    }
    print(table(rows, scores))


if __name__ == "__main__":
    main()
