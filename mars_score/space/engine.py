"""The scorer behind the Space: requests share the loaded models."""

import logging
from collections.abc import Iterable
from dataclasses import replace

from mars_score.scorer import MarsScorer
from mars_score.space.answer import Answer
from mars_score.space.inputs import PRESET, VARIANT, Choices, Inquiry, Question
from mars_score.store.runtime import Progress

_log = logging.getLogger(__name__)


class Engine:
    """Scores for many visitors; each model is used by one thread at a time."""

    def __init__(self) -> None:
        self._prepared: dict[Question, Answer] = {}

    def answer(self, inquiry: Inquiry, progress: Progress | None = None) -> Answer:
        """All that is shown for a question; what ``progress`` raises stops the work."""
        if prepared := self.prepared(inquiry):
            return prepared
        question, choices = inquiry.question, inquiry.choices
        count = len(question.candidates)
        references = [list(question.references)] * count if question.references else None
        rows = list(question.candidates), references, [question.context] * count
        scorer = MarsScorer(PRESET, variant=VARIANT, progress=progress, **choices.settings())
        samples = [question.samples] * count if question.samples else None
        result = scorer.score(*rows, samples=samples, explain=True)
        paper = None
        if choices.paper:
            paper = MarsScorer(PRESET, variant="paper", progress=progress).score(*rows)
        return Answer.of(question, result, paper)

    def prepared(self, inquiry: Inquiry) -> Answer | None:
        """The answer to an example, which may have the paper's scores without being asked for them."""
        answer = self._prepared.get(inquiry.question)
        usual = replace(inquiry.choices, paper=False) == Choices()
        return answer if answer and usual and (answer.paper or not inquiry.choices.paper) else None

    def prepare(self, inquiries: Iterable[Inquiry]) -> None:
        """Answer examples and keep their answers; an example that fails is logged."""
        for inquiry in inquiries:
            try:
                self._prepared[inquiry.question] = self.answer(inquiry)
            except Exception:
                _log.exception("An example could not be prepared")
