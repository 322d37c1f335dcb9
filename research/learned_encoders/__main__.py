"""Train encoders that learn a score, and score with them: BLEURT's (head "encoder") and LS_Score (head "ls").

    python -m research.learned_encoders train TEXTS.jsonl... --preset mini --objective pretrain --out warm
    python -m research.learned_encoders train RATED.jsonl... --preset mini --from warm --out head
    python -m research.learned_encoders train TEXTS.jsonl... --preset mini --objective contrastive --out ls
    python -m research.learned_encoders score head RATED.jsonl... --preset mini

``train`` learns ratings (``--objective ratings``, the default), the signals of synthetic pairs that are made of
texts (``pretrain``, before ratings), or to prefer texts to their damaged versions (``contrastive``, LS_Score).
``score`` prints a line of JSON for each row and, where rows have ratings, Pearson's r with them on standard error.
The rows of LS_Score need no references: ``score ls ROWS.jsonl --no-references``.
"""

import argparse
import json
import math
import sys
from collections.abc import Sequence

import numpy as np

from mars_score import MarsScorer
from mars_score.cli.arguments import (
    add_rated_options,
    add_scorer_options,
    count,
    input_columns,
    rated_columns,
    scorer_arguments,
)
from mars_score.data.reading import read_rows
from mars_score.progress import hide_library_output, progress_bars
from mars_score.rows import Row, Term, weighted_sum
from mars_score.training import read_training_sets
from research.agreement import pearson
from research.learned_encoders.pairs import read_corpus
from research.learned_encoders.text_heads import TextHead, load_text_head
from research.learned_encoders.train_encoders import (
    PAIRS,
    TrainingOptions,
    train_on_contrasts,
    train_on_pairs,
    train_on_ratings,
)

COLUMNS = {"prediction": "prediction", "reference": "reference", "context": "context", "rating": "human"}


def main(argv: Sequence[str] | None = None) -> None:
    """Train or score; ``argv`` None: the process's own arguments."""
    args = make_parser().parse_args(argv)
    hide_library_output()
    with progress_bars(quiet=args.quiet) as progress:
        # Neither the formula nor its settings have a part in these scores.
        args.run(args, MarsScorer(variant="fast", progress=progress, **scorer_arguments(args)))


def make_parser() -> argparse.ArgumentParser:
    """Make the parser of both commands."""
    parser = argparse.ArgumentParser(
        prog="python -m research.learned_encoders",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("train", help="train a head")
    add = command.add_argument
    add("files", metavar="FILE", nargs="+", help="rated candidates, as for mars meta; or texts, also .txt")
    add("--out", required=True, metavar="FOLDER", help="folder of the head; an older one is replaced")
    add("--objective", choices=("ratings", "pretrain", "contrastive"), default="ratings", help="see above")
    add("--from", dest="start", metavar="FOLDER", help="a head to start from")
    add("--pairs", type=count, default=PAIRS, metavar="N", help="to pretrain on (default: %(default)s)")
    add("--epochs", type=count, default=3, metavar="N", help="at most (default: %(default)s)")
    add("--seed", type=int, default=0, metavar="N", help="of all that is drawn at random (default: %(default)s)")
    add_rated_options(command)
    add_scorer_options(command, ("models",))
    command.set_defaults(run=train)

    command = commands.add_parser("score", help="score the rows of files by a trained head")
    add = command.add_argument
    add("head", metavar="HEAD", help="folder of the head")
    add("files", metavar="FILE", nargs="+", help="candidates, with ratings or without")
    for name, default in COLUMNS.items():
        add(f"--{name}-column", default=default, metavar="NAME", help="(default: %(default)s)")
    add("--no-references", action="store_true", help="files have no references; LS_Score uses none")
    add_scorer_options(command, ("models",))
    command.set_defaults(run=score)
    return parser


def train(args: argparse.Namespace, scorer: MarsScorer) -> None:
    """Train a head, save it, and print where it is."""
    options = TrainingOptions(args.start, args.epochs, args.seed)
    if args.objective == "ratings":
        sets = read_training_sets(args.files, rated_columns(args), within_groups=args.within_groups)
        saved = train_on_ratings(scorer, args.out, sets, options)
    else:
        columns = args.reference_column or "reference", args.context_column
        texts = [source for path in args.files for source in read_corpus(path, *columns)]
        if args.objective == "pretrain":
            saved = train_on_pairs(scorer, args.out, texts, options, args.pairs)
        else:
            saved = train_on_contrasts(scorer, args.out, texts, options)
    print(f"{saved.path}: {saved.fingerprint}")


def score(args: argparse.Namespace, scorer: MarsScorer) -> None:
    """Print the score of each row, and how the scores of a file with ratings agree with them."""
    head = load_text_head(args.head, scorer.settings, scorer.calls)
    for path in args.files:
        file = read_rows(path)
        scored = score_rows(head, [scorer.variant.prepare(row)[0] for row in input_columns(args).rows(file)])
        scores = [weighted_sum(terms) for terms in scored]
        for number, (value, terms) in enumerate(zip(scores, scored, strict=True)):
            line = {
                "file": path,
                "row": number,
                "score": value,
                "terms": {term.name: term.value for term in terms},
            }
            print(json.dumps(line))
        if file.has(args.rating_column):
            cells = file.column(args.rating_column, "rating")
            ratings = np.array([math.nan if cell in (None, "") else float(cell) for cell in cells])
            rated = ~np.isnan(ratings)
            agreement = pearson(np.array(scores)[rated], ratings[rated])
            print(f"{path}: Pearson's r {agreement:.3f} with {rated.sum()} ratings", file=sys.stderr)


def score_rows(head: TextHead, rows: Sequence[Row]) -> list[tuple[Term, ...]]:
    """Return the terms of each row; a blank candidate has none, and scores 0."""
    terms = iter(head.score(head.features([row for row in rows if row.candidate])))
    return [next(terms) if row.candidate else () for row in rows]


if __name__ == "__main__":
    main()
