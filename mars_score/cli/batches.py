"""``mars augment --requests`` and ``--responses``: samples that another engine writes.

Both files have one JSON object per line, as OpenAI's batches and vLLM's ``run-batch`` read and write them.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any

from mars_score.cache import digest
from mars_score.cli.options import columns, scorer_arguments
from mars_score.cli.shown import print_notices
from mars_score.data.readers import stream_rows
from mars_score.data.writers import run_folder, write
from mars_score.models.served import choices_of
from mars_score.runs import Input
from mars_score.sampling.prompts import prompts_of
from mars_score.sampling.samples import Request, keep_good, make_request, sampling_options
from mars_score.scorer import MarsScorer
from mars_score.settings import Settings

SAMPLES = 4  # answers to each request, unless sample_count says otherwise


def write_requests(args: argparse.Namespace) -> None:
    """Write what a chat model is to be asked: a line for each different request with a context."""
    settings = _settings(args)
    requests = dict.fromkeys(request for _, request in _requests(args, settings) if request.context)

    def lines() -> Iterator[dict[str, Any]]:
        for request in requests:
            messages, _ = prompts_of(request.context, request.task, settings.language)
            body = {"model": args.writer, "messages": messages, **sampling_options(request, settings.sampling)}
            yield {"custom_id": _identity(request), "method": "POST", "url": "/v1/chat/completions", "body": body}

    with run_folder(args.requests) as folder:
        write(lines(), folder, args.requests)
    if not args.quiet:
        print(f"{len(requests)} requests written to {args.requests}", file=sys.stderr)


def join_responses(args: argparse.Namespace) -> None:
    """Write the rows with the answers to them that pass the gates of drawn samples.

    Raises:
        ValueError: the rows have samples already, or there is no answer to any.
    """
    answers, errors = _read_answers(args.responses)
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
            answer = answers.get(_identity(request)) if request.context else []
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
        notices.append(f"{len(errors)} requests failed, the first with: {errors[0]}")
    if unanswered:
        notices.append(f"{unanswered} rows have no answer and no samples")
    print_notices(notices)
    if not args.quiet:
        print(f"{texts} samples written to {args.out}", file=sys.stderr)


def _settings(args: argparse.Namespace) -> Settings:
    return MarsScorer(**{"variant": "plus", "sample_count": SAMPLES, **scorer_arguments(args)}).settings


def _requests(args: argparse.Namespace, settings: Settings) -> Iterator[tuple[dict[str, Any], Request]]:
    """The rows of the file, each with the request for its samples."""
    for part in Input(args.file, columns(args), settings.masking).parts(args.chunk_size):
        for row, texts in zip(part.file.rows, part.rows, strict=True):
            yield row, make_request(texts.context, texts.references, settings.sampling)


def _identity(request: Request) -> str:
    return digest(*request).hex()


def _read_answers(path: str) -> tuple[dict[str, list[tuple[str, bool]]], list[str]]:
    """By the request's identity the texts, each with whether it ended by itself; and the errors of the others."""
    answers: dict[str, list[tuple[str, bool]]] = {}
    errors: list[str] = []
    for number, line in enumerate(stream_rows(path), 1):
        try:
            identity, response = str(line["custom_id"]), line.get("response") or {}
            body = response.get("body") or {}
            if line.get("error") or response.get("status_code", 200) != 200 or not body.get("choices"):
                errors.append(str(line.get("error") or body.get("error") or response))
            else:
                answers[identity] = choices_of(body)
        except (KeyError, TypeError, AttributeError):
            raise ValueError(
                f'{path}:{number}: no answer of a batch: it needs "custom_id" and '
                '"response": {"body": {"choices": [{"message": {"content": ...}}]}}'
            ) from None
    return answers, errors
