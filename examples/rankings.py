"""Score the examples of the Space, and print which of them are ranked rightly.

Usage: python -m examples.rankings [FILE] [--preset NAME ...] [--variant NAME ...]
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from mars_score import MarsScorer
from mars_score.presets import PRESETS
from mars_score.scorer import VARIANTS
from mars_score.settings import VariantName
from space.questions import PageExample, read_examples


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0 if every ranking is as its example says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(__file__).parent / "space.json"
    parser.add_argument("file", nargs="?", type=Path, metavar="FILE", default=default, help="default: space.json")
    parser.add_argument("--preset", nargs="+", choices=PRESETS, default=["mini"])
    parser.add_argument("--variant", nargs="+", choices=VARIANTS, default=["plus"])
    args = parser.parse_args(argv)
    examples = read_examples(args.file)
    as_expected = [
        score(example, preset, variant)
        for preset in args.preset
        for variant in args.variant
        for example in examples
        if example.question.references or not VARIANTS[variant].needs_references
    ]
    print(f"{sum(as_expected)} of {len(as_expected)} are ranked as their example says")
    return 0 if all(as_expected) else 1


def score(example: PageExample, preset: str, variant: VariantName) -> bool:
    """Print the scores of an example, and tell whether they rank its candidates as the example says."""
    question = example.question
    references = [question.references] * len(question.candidates) if question.references else None
    contexts = [question.row_context] * len(question.candidates)
    tasks = None if variant == "paper" else question.task
    result = MarsScorer(preset, variant=variant).score(
        question.candidates, references, contexts, tasks=tasks, explain=True
    )
    right = example.is_right(result.scores)
    surprise = "" if right != example.fails else ", which the example does not say"
    print(f"{preset} {variant} {'right' if right else 'wrong'}{surprise}: {example.title}")
    for rank, explanation in zip(example.ranks, result.explanations, strict=True):
        terms = json.dumps({name: round(points, 3) for name, points in explanation.points.items() if points})
        print(f"  rank {rank} score {explanation.score.score:.3f} {explanation.candidate}\n    {terms}")
        for finding in explanation.findings:
            print(f"    {finding.label}: {finding.with_number()}")
    return right != example.fails


if __name__ == "__main__":
    sys.exit(main())
