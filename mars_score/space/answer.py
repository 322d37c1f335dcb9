"""Answers to questions, which are all that the page and the API show, and the class that computes them."""

import logging
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from mars_score.errors import BLANK_CONTEXT, FEW_DOCUMENTS, NOTICES
from mars_score.meta.metrics.lexical import rouge_l, sentence_bleu
from mars_score.results import MarsResult, augmented_to_dict
from mars_score.runtime import Progress
from mars_score.scorer import MarsScorer
from mars_score.space.limits import place_of
from mars_score.space.questions import PRESET, VARIANT, Question

# The question says itself that its context is blank; more references than it has cannot be given here.
_NOT_SHOWN = {BLANK_CONTEXT, FEW_DOCUMENTS}
_log = logging.getLogger(__name__)


class ShownMetric(NamedTuple):
    """How a metric is named and shown.

    Attributes:
        key: its name in the API.
        meaning: what its scores are.
        full: the score that fills a bar.
    """

    key: str
    meaning: str
    full: float = 1.0


METRICS = {
    "MARS plus": ShownMetric(
        "mars", "mostly from 0 to 1, higher is better: the sum of its terms; compare within a context"
    ),
    "MARS paper": ShownMetric(
        "paper", "the metric of the ACL 2021 paper: similarity with the reference and with its infills"
    ),
    "BLEU": ShownMetric("bleu", "overlap of word sequences with the reference, 0 to 100 (sacrebleu)", full=100),
    "ROUGE-L": ShownMetric(
        "rouge_l", "longest common subsequence of words with the reference, 0 to 1 (rouge-score)"
    ),
}


@dataclass(frozen=True)
class Answer:
    """A question and its scores.

    Attributes:
        question: what was asked.
        plus: the result of MARS plus.
        paper: the result of the paper's MARS, where it was asked for.
        scores: by metric, MARS plus first, in the order of the candidates.
    """

    question: Question
    plus: MarsResult
    paper: MarsResult | None
    scores: dict[str, list[float]]

    @property
    def signature(self) -> str:
        """Return a line for each variant."""
        return "\n".join(str(result.signature) for result in self._results)

    @property
    def notices(self) -> list[str]:
        """Return sentences on what was left out and on how candidates were scored, each once."""
        notices = [notice for result in self._results for notice in _notices_of(result)]
        return list(dict.fromkeys((*self.question.notices, *notices)))

    @property
    def order(self) -> list[int]:
        """Return the candidates by falling score of MARS plus."""
        scores = self.plus.scores
        return sorted(range(len(scores)), key=lambda index: -scores[index])

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for the API: candidates best first, and the augmented references of `paper`."""
        ranking = [
            {
                "candidate": self.question.candidates[index],
                "index": index,
                **{METRICS[name].key: scores[index] for name, scores in self.scores.items()},
                "terms": [asdict(term) for term in self.plus.rows[index].terms],
            }
            for index in self.order
        ]
        augmented = self.paper.rows[0].references if self.paper else ()
        return {
            "ranking": ranking,
            "augmented": [augmented_to_dict(reference.augmented) for reference in augmented],
            "signature": self.signature,
            "notices": self.notices,
        }

    @property
    def _results(self) -> list[MarsResult]:
        return [self.plus, self.paper] if self.paper else [self.plus]


def _notices_of(result: MarsResult) -> list[str]:
    """Return the notices of a result without the indices of its rows, which a visitor does not count."""
    counts = Counter(notice for row in result.rows for notice in row.notices - _NOT_SHOWN)
    total = len(result.rows)
    return [
        f"{notice[:1].upper()}{notice[1:]} ({counts[notice]} of {total} candidate{'' if total == 1 else 's'})."
        for notice in NOTICES
        if counts[notice]
    ]


class Answerer:
    """Answers many visitors, who share the loaded models; each model is used by one thread at a time."""

    def __init__(self) -> None:
        self._prepared: dict[Question, Answer] = {}  # with or without the paper's MARS

    def answer(self, question: Question, progress: Progress | None = None) -> Answer:
        """Score by MARS plus, the paper's MARS if asked for, and BLEU and ROUGE-L if there are references.

        What ``progress`` raises stops the work.
        """
        candidates, references = question.candidates, question.references
        count = len(candidates)
        rows = candidates, [references] * count if references else None, [question.context] * count
        samples = [question.samples] * count if question.samples else None
        scorer = MarsScorer(PRESET, variant=VARIANT, progress=progress, **question.settings)
        plus = scorer.score(*rows, samples=samples, tasks=question.task, explain=True)
        scores, paper = {"MARS plus": plus.scores}, None
        if question.paper:
            paper = MarsScorer(PRESET, variant="paper", progress=progress).score(*rows)
            scores["MARS paper"] = paper.scores
        if references:
            scores["BLEU"] = [sentence_bleu(text, references) for text in candidates]
            scores["ROUGE-L"] = [rouge_l(text, references) for text in candidates]
        return Answer(question, plus, paper, scores)

    def prepared(self, question: Question) -> Answer | None:
        """Return the answer to an example, which may have the paper's scores without being asked for them."""
        answer = self._prepared.get(replace(question, paper=False))
        return answer if answer and (answer.paper or not question.paper) else None

    def prepare(self, questions: Iterable[Question]) -> None:
        """Answer examples and keep their answers; an example that fails is logged."""
        for question in questions:
            try:
                self._prepared[replace(question, paper=False)] = self.answer(question)
            except Exception as error:
                _log.error("An example could not be prepared: %s", place_of(error))
