"""Samples through batch interfaces: requests as a file, and the answers that an engine wrote for them.

One JSON object per line, as OpenAI's batches and vLLM's ``run-batch`` read and write them.
"""

import os
from collections.abc import Iterable, Iterator
from typing import Any

from mars_score.augment.sampling.prompts import prompts_of
from mars_score.augment.sampling.samples import Request, sampling_options
from mars_score.data.readers import stream_rows
from mars_score.models.served import choices_of
from mars_score.settings import Settings
from mars_score.store.results import digest

SAMPLES = 4  # answers to each request, unless sample_count says otherwise


def batch_requests(requests: Iterable[Request], model: str, settings: Settings) -> Iterator[dict[str, Any]]:
    """For each different request with a context one line: ``n`` answers of a chat model.

    Args:
        requests: of rows.
        model: its name in the engine.
        settings: number, temperature, nucleus and seed of the samples, and the language.
    """
    for request in dict.fromkeys(request for request in requests if request.context):
        messages, _ = prompts_of(request.context, request.task, settings.language)
        body = {"model": model, "messages": messages, **sampling_options(request, settings.sampling)}
        yield {"custom_id": identity_of(request), "method": "POST", "url": "/v1/chat/completions", "body": body}


def read_answers(path: str | os.PathLike[str]) -> tuple[dict[str, list[tuple[str, bool]]], dict[str, str]]:
    """The answers of a file, texts with whether each ended by itself, and the engine's errors; by identity.

    Raises:
        OSError, ValueError: it cannot be read, or a line is no answer of a batch; named with its line.
    """
    answers: dict[str, list[tuple[str, bool]]] = {}
    errors: dict[str, str] = {}
    for number, line in enumerate(stream_rows(path), 1):
        try:
            identity, response = str(line["custom_id"]), line.get("response") or {}
            body = response.get("body") or {}
            if line.get("error") or response.get("status_code", 200) != 200 or not body.get("choices"):
                errors[identity] = str(line.get("error") or body.get("error") or response)
            else:
                answers[identity] = choices_of(body)
        except (KeyError, TypeError, AttributeError):
            raise ValueError(
                f'{path}:{number}: no answer of a batch: it needs "custom_id" and '
                '"response": {"body": {"choices": [{"message": {"content": ...}}]}}'
            ) from None
    return answers, errors


def identity_of(request: Request) -> str:
    """What stands for a request in the files."""
    return digest(*request).hex()
