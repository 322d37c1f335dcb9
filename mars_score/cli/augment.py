"""``mars augment``: augmented references, for MARS or as extra references for any other metric."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from mars_score.cli.options import (
    OUT,
    add_input_options,
    add_run_options,
    add_scorer_options,
    columns,
    scorer_settings,
)
from mars_score.cli.running import complete_run, print_notices

if TYPE_CHECKING:
    from mars_score.augment.sampling.samples import Request
    from mars_score.settings import Settings

STAGES = ("masking", "planning", "infilling", "sampling", "models")


def add_parser(commands: Any) -> None:
    """Add the command to argparse's subparsers."""
    text = "Augment the references of a file in the light of their contexts."
    example = "example: mars augment rows.csv --preset mini --out augmented.csv"
    parser = commands.add_parser("augment", help=text, description=text, epilog=example)
    add_input_options(parser, ("reference", "context"))
    parser.add_argument(
        "--out",
        metavar="AUGMENTED.jsonl",
        help=OUT.format(
            '"augmented_references" (references, infills and samples, as plain strings), "augmentations" (infills '
            'with templates and mask ratios) and "samples"'
        ),
    )
    batch = parser.add_argument_group(
        "samples of another model",
        "Nothing is infilled. Its engine reads one file and writes the other (docs/writers.md).",
    )
    batch.add_argument("--requests", metavar="FILE", help="write what a chat model is to be asked, for --writer")
    batch.add_argument("--writer", metavar="MODEL", help="the name of the chat model in its engine")
    batch.add_argument(
        "--responses", metavar="FILE", help='read its answers, and write the rows with "samples" to --out'
    )
    add_run_options(parser)
    add_scorer_options(parser, STAGES, without=("encoder", "entailment_model"))
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Augment and write; see :func:`mars_score.cli.main` for errors."""
    if args.requests and args.responses:
        raise ValueError("--requests and --responses exclude each other; give one of them")
    if not (args.out or args.requests):
        raise ValueError("--out is missing; say where the rows are to be written")
    if args.requests and not args.writer:
        raise ValueError("--writer is missing; name the model as its engine calls it")
    if args.requests:
        _write_requests(args)
    elif args.responses:
        _join_responses(args)
    else:
        _augment(args)


def _augment(args: argparse.Namespace) -> None:
    from mars_score.runs.output import write

    with complete_run(args, "augment") as (a_run, folder):
        write(a_run.output(), folder, args.out)
        notices = a_run.augment_notices()
    print_notices(notices.sentences(lines=True))
    if not args.quiet:
        print(f"{notices.rows} rows with augmented references written to {args.out}", file=sys.stderr)


def _write_requests(args: argparse.Namespace) -> None:
    from mars_score.augment.sampling.batches import batch_requests
    from mars_score.data.files import row_line, whole_file

    settings = _settings(args)
    requests = (request for _, request in _requests(args, settings))
    count = 0
    with whole_file(args.requests) as file:
        for line in batch_requests(requests, args.writer, settings):
            file.write(row_line(line))
            count += 1
    if not args.quiet:
        print(f"{count} requests written to {args.requests}", file=sys.stderr)


def _join_responses(args: argparse.Namespace) -> None:
    from mars_score.augment.sampling.batches import identity_of, read_answers
    from mars_score.augment.sampling.samples import keep_good
    from mars_score.runs.output import run_folder, write

    answers, errors = read_answers(args.responses)
    dropped: Counter[str] = Counter()
    texts = unanswered = 0

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal texts, unanswered
        for row, request in _requests(args, _settings(args)):
            if "samples" in row:
                raise ValueError(
                    f"{args.file}: the output has a column 'samples' of its own; rename that of the input"
                )
            samples: list[str] = []
            answer = answers.get(identity_of(request)) if request.context else []
            unanswered += answer is None
            keep_good(answer or [], request.context, samples, dropped)
            texts += len(samples)
            yield {**row, "samples": samples}
        if not texts:
            raise ValueError(
                f"{args.responses} holds no answer to these rows; give --requests and --responses the same rows "
                "and settings"
            )

    with run_folder(args.out) as folder:
        write(rows(), folder, args.out)
    notices = [f"{count} answers were dropped: {fault}" for fault, count in sorted(dropped.items())]
    if errors:
        notices.append(f"{len(errors)} requests failed, the first with: {next(iter(errors.values()))}")
    if unanswered:
        notices.append(f"{unanswered} rows have no answer and no samples")
    print_notices(notices)
    if not args.quiet:
        print(f"{texts} samples written to {args.out}", file=sys.stderr)


def _settings(args: argparse.Namespace) -> Settings:
    from mars_score.augment.sampling.batches import SAMPLES
    from mars_score.settings import resolve_settings

    return resolve_settings(**{"variant": "plus", "sample_count": SAMPLES, **scorer_settings(args)})


def _requests(args: argparse.Namespace, settings: Settings) -> Iterator[tuple[dict[str, Any], Request]]:
    """The rows of the file, each with the request for its samples."""
    from mars_score.augment.sampling.samples import make_request
    from mars_score.runs.input import Input

    for part in Input(args.file, columns(args), settings.masking).parts(args.chunk_size):
        for row, texts in zip(part.file.rows, part.rows, strict=True):
            yield row, make_request(texts.context, texts.references, settings.sampling)
