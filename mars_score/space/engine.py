"""The scorer behind the Space: requests share the loaded models."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mars_score.result import MarsResult
from mars_score.scorer import MarsScorer
from mars_score.space.choices import PRESET, Choices
from mars_score.space.inputs import Question

_log = logging.getLogger(__name__)
_CHUNK = 8  # references of a batch that are augmented before others get a turn


class Engine:
    """Scores for many visitors.

    Models are used by one thread at a time (``mars_score.models.torch_modes``). Batches come in chunks, and
    other requests are computed in between.
    """

    def __init__(self) -> None:
        self.ready = threading.Event()

    def score(
        self,
        candidates: Sequence[str],
        references: Sequence[Sequence[str]],
        contexts: Sequence[str],
        choices: Choices,
    ) -> MarsResult:
        """Scores of rows; IDF is counted over their references."""
        columns = list(candidates), [list(row) for row in references], list(contexts)
        return self._scorer(choices).score(*columns)

    def ask(self, question: Question, choices: Choices) -> MarsResult:
        """Scores of all candidates of a question."""
        count = len(question.candidates)
        return self.score(question.candidates, [question.references] * count, [question.context] * count, choices)

    def prepare(
        self, references: Sequence[Sequence[str]], contexts: Sequence[str], choices: Choices
    ) -> Iterator[tuple[int, int]]:
        """Augment the references of a batch chunk by chunk, so that scoring finds them in the store.

        Yields:
            How many are done, and how many there are.
        """
        rows = zip(references, contexts, strict=True)
        pairs = list(dict.fromkeys((text, context) for row, context in rows for text in row))
        # IDF is counted over the whole batch, as scoring will count it.
        scorer = self._scorer(choices, idf_corpus=list(dict.fromkeys(text for text, _ in pairs)))
        for start in range(0, len(pairs), _CHUNK):
            yield start, len(pairs)
            columns = map(list, zip(*pairs[start : start + _CHUNK], strict=True))
            scorer.augment_references(*columns)
        yield len(pairs), len(pairs)

    def warm_up(self, questions: Iterable[Question]) -> None:
        """Load the models and put the augmentations of the examples into the store, in the background."""

        def run() -> None:
            try:
                for question in questions:
                    self.ask(question, Choices())
                    self.ready.set()
            except Exception:
                _log.exception("The examples could not be prepared")

        threading.Thread(target=run, name="warm-up", daemon=True).start()

    def _scorer(self, choices: Choices, **settings: Any) -> MarsScorer:
        """A scorer of these settings; all scorers of the process share its loaded models."""
        return MarsScorer(PRESET, **choices.settings(), **settings)
