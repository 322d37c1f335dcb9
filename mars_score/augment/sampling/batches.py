"""Samples through batch interfaces: requests as a file, and the answers that an engine wrote for them.

One JSON object per line, as OpenAI's batches and vLLM's ``run-batch`` read and write them.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from mars_score.augment.sampling.samples import Request, chat_options, keep_good
from mars_score.data.readers import stream_rows
from mars_score.models.served import choices_of
from mars_score.settings import Settings
from mars_score.store.results import digest

SAMPLES = 4  # answers to each request, unless sample_count says otherwise
_URL = "/v1/chat/completions"


def batch_requests(requests: Iterable[Request], model: str, settings: Settings) -> Iterator[dict[str, Any]]:
    """For each different request with a context one line: ``n`` answers of a chat model.

    Args:
        requests: of rows.
        model: its name in the engine.
        settings: number, temperature, nucleus and seed of the samples, and the language.
    """
    sampling = settings.sampling
    for request in dict.fromkeys(request for request in requests if request.context):
        body = {
            "model": model,
            **chat_options(request, sampling, settings.language),
            "n": sampling.sample_count,
            "seed": sampling.sample_seed,
        }
        yield {"custom_id": _identity(request), "method": "POST", "url": _URL, "body": body}


@dataclass
class Answers:
    """The answers of a file, by request; those that fail a gate of drawn samples are left out and counted."""

    choices: Mapping[str, list[tuple[str, bool]]]  # by identity: text, and whether it ended by itself
    failed: Mapping[str, str]  # by identity, of requests without answers: the engine's error
    dropped: Counter[str] = field(default_factory=Counter)  # answers by fault
    unanswered: int = 0  # requests that were looked up in vain

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Answers:
        """Read a file.

        Raises:
            OSError, ValueError: it cannot be read, or a line is no answer of a batch; named with its line.
        """
        choices: dict[str, list[tuple[str, bool]]] = {}
        failed: dict[str, str] = {}
        for number, line in enumerate(stream_rows(path), 1):
            try:
                identity, response = str(line["custom_id"]), line.get("response") or {}
                body = response.get("body") or {}
                if line.get("error") or response.get("status_code", 200) != 200 or not body.get("choices"):
                    failed[identity] = str(line.get("error") or body.get("error") or response)
                    continue
                choices[identity] = choices_of(body)
            except (KeyError, TypeError, AttributeError):
                raise ValueError(
                    f'{path}:{number}: no answer of a batch: it needs "custom_id" and '
                    '"response": {"body": {"choices": [{"message": {"content": ...}}]}}'
                ) from None
        return cls(choices, failed)

    def samples(self, request: Request) -> list[str]:
        """Its answers, each as one line; without what has a fault."""
        identity, texts = _identity(request), list[str]()
        if request.context and identity not in self.choices:
            self.unanswered += 1
        keep_good(self.choices.get(identity, ()), request.context, texts, self.dropped)
        return texts


def _identity(request: Request) -> str:
    return digest(*request).hex()
