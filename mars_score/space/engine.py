"""The scorer behind the Space: requests share the loaded models."""

from __future__ import annotations

import heapq
import logging
import threading
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace

from mars_score.errors import MarsWarning
from mars_score.scorer import MarsScorer
from mars_score.scoring.explain.explanation import Explanation
from mars_score.scoring.result import MarsResult
from mars_score.space.answer import Answer
from mars_score.space.choices import PRESET, VARIANT, Choices
from mars_score.space.inputs import Inquiry, Question
from mars_score.space.uploads import Batch
from mars_score.store.runtime import Progress

_log = logging.getLogger(__name__)
_CHUNK = 8  # rows of a file that are scored before it can be stopped


class Engine:
    """Scores for many visitors; each model is used by one thread at a time."""

    def __init__(self) -> None:
        self._prepared: dict[Question, Answer] = {}

    def answer(self, inquiry: Inquiry, progress: Progress | None = None) -> Answer:
        """All that is shown for a question.

        Args:
            inquiry: texts and settings.
            progress: called meanwhile; what it raises stops the work.
        """
        if prepared := self.prepared(inquiry):
            return prepared
        question, choices = inquiry.question, inquiry.choices
        count = len(question.candidates)
        references = [list(question.references)] * count if question.references else None
        rows = list(question.candidates), references, [question.context] * count
        result = self._scorer(choices, progress).score(*rows, explain=True)
        paper = None
        if choices.paper:
            paper = MarsScorer(PRESET, variant="paper", progress=progress).score(*rows)
        return Answer.of(question, result, paper)

    def prepared(self, inquiry: Inquiry) -> Answer | None:
        """The answer to an example, which may have the paper's scores without being asked for them."""
        answer = self._prepared.get(inquiry.question)
        usual = replace(inquiry.choices, paper=False) == Choices()
        return answer if answer and usual and (answer.paper or not inquiry.choices.paper) else None

    def score_file(
        self, batch: Batch, choices: Choices, progress: Progress | None = None
    ) -> Iterator[int | MarsResult]:
        """Score the rows of a file chunk by chunk; yields how many rows are done, at the end the scores.

        The chunks' scores are in the store when all rows are scored together, which gives their notices.
        """
        scorer, count = self._scorer(choices, progress), len(batch.candidates)
        for start in range(0, count, _CHUNK):
            yield start
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", MarsWarning)  # of all rows below
                scorer.score(*batch.columns(start, start + _CHUNK))
        yield scorer.score(*batch.columns())

    def lowest(
        self, batch: Batch, scores: Sequence[float], choices: Choices, count: int
    ) -> dict[int, Explanation]:
        """The rows of a file with the lowest scores, by their numbers from 0 and the lowest first, explained."""
        numbers = heapq.nsmallest(count, range(len(scores)), key=scores.__getitem__)
        columns = [column and [column[number] for number in numbers] for column in batch.columns()]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MarsWarning)
            result = self._scorer(choices, None).score(*columns, explain=True)
        return dict(zip(numbers, result.explanations, strict=True))

    def prepare(self, questions: Sequence[Question]) -> threading.Thread:
        """Load the models and answer questions in the background: all by ``plus``, then also by the paper."""

        def run() -> None:
            for paper in (False, True):
                for question in questions:
                    if question.references or not paper:
                        self._prepare(Inquiry(question, Choices(paper=paper)))

        thread = threading.Thread(target=run, name="prepare", daemon=True)
        thread.start()
        return thread

    def _prepare(self, inquiry: Inquiry) -> None:
        try:
            self._prepared[inquiry.question] = self.answer(inquiry)
        except Exception:
            _log.exception("An example could not be prepared")

    def _scorer(self, choices: Choices, progress: Progress | None) -> MarsScorer:
        """A scorer of these settings; all scorers of the process share its loaded models."""
        return MarsScorer(PRESET, variant=VARIANT, progress=progress, **choices.settings())
