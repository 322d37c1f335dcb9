"""Typical scores of candidates of known quality in ``examples/``.

    python -m research.typical_values --preset mini

Prints for each kind of candidate the number of rows and, by variant, the mean score with the range from the 10th
to the 90th percentile. The kinds are those of ``examples/README.md``, and two more: the reference itself, and the
reference of another example.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mars_score import MarsScorer
from research.results import Figures, add_record_option, markdown, record

EXAMPLES = Path(__file__).parent.parent / "examples"
VARIANTS = ("plus",)


class Rated(NamedTuple):
    """A candidate of a known kind, and what it is scored against."""

    kind: str
    candidate: str
    references: list[str]
    context: str
    task: str


# Kinds of candidates in the order of the table, and their names there.
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
    """Yield the candidates of all examples, and identical and unrelated texts made from the references.

    Args:
        folder: folder of JSONL files with the keys ``references``, ``context`` and ``candidates``.
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


def figures(rows: Sequence[Rated], scores: Sequence[float]) -> dict[str, dict[str, float]]:
    """Return for each kind the number of rows, the mean score, and the 10th and the 90th percentile."""
    groups = defaultdict(list)
    for row, score in zip(rows, scores, strict=True):
        groups[row.kind].append(score)
    return {
        kind: {
            "rows": len(groups[kind]),
            "mean": float(np.mean(groups[kind])),
            "low": float(np.percentile(groups[kind], 10)),
            "high": float(np.percentile(groups[kind], 90)),
        }
        for kind in KINDS
    }


def tables(recorded: Mapping[str, Figures]) -> dict[str, str]:
    """Write the table of each preset, with a column for each variant."""
    return {preset: _table(of_preset["kinds"]) for preset, of_preset in recorded.items()}


def _table(variants: Mapping[str, Figures]) -> str:
    first = next(iter(variants.values()))
    rows = [["candidate", "rows", *(f"`{variant}`" for variant in variants)]]
    for kind, title in KINDS.items():
        cells = [
            f"{by_kind[kind]['mean']:.2f} ({by_kind[kind]['low']:.2f} to {by_kind[kind]['high']:.2f})"
            for by_kind in variants.values()
        ]
        rows.append([title, str(first[kind]["rows"]), *cells])
    return markdown(rows)


def main() -> None:
    """Score the examples and print the table."""
    options = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    options.add_argument("--preset", default="mini")
    options.add_argument("--variants", default=",".join(VARIANTS), help=f"default: {','.join(VARIANTS)}")
    options.add_argument("--store", default=None)
    add_record_option(options)
    args = options.parse_args()
    rows = list(rows_of_examples())
    _, *columns, tasks = (list(column) for column in zip(*rows, strict=True))
    found = {
        variant: MarsScorer(args.preset, variant=variant, store=args.store).score(*columns, tasks=tasks)
        for variant in args.variants.split(",")
    }
    values = {
        "kinds": {variant: figures(rows, result.scores) for variant, result in found.items()},
        "signature": {variant: result.signature.short for variant, result in found.items()},
    }
    if args.record:
        record(f"typical_values.{args.preset}", values)
    print(tables({args.preset: values})[args.preset])


if __name__ == "__main__":
    main()
