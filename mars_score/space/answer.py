"""The answer to a question, which is all that the page and the API show, and what computes it."""

import logging
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from mars_score.meta.metrics.lexical import rouge_l, sentence_bleu
from mars_score.progress import Progress
from mars_score.scorer import MarsScorer
from mars_score.scoring.result import MarsResult, augmented_to_dict
from mars_score.space.questions import PRESET, VARIANT, Question

_log = logging.getLogger(__name__)


class Metric(NamedTuple):
    """What is to be known of a metric."""

    key: str  # in the API
    meaning: str  # of its scores
    full: float = 1.0  # the score that fills a bar


METRICS = {
    "MARS plus": Metric(
        "mars", "mostly from 0 to 1, higher is better: the sum of its terms; compare within a context"
    ),
    "MARS paper": Metric(
        "paper", "the metric of the ACL 2021 paper: similarity with the reference and with its infills"
    ),
    "BLEU": Metric("bleu", "overlap of word sequences with the reference, 0 to 100 (sacrebleu)", full=100),
    "ROUGE-L": Metric("rouge_l", "longest common subsequence of words with the reference, 0 to 1 (rouge-score)"),
}


@dataclass(frozen=True)
class Answer:
    """A question and its scores."""

    question: Question
    plus: MarsResult
    paper: MarsResult | None  # where it was asked for
    scores: dict[str, list[float]]  # by metric, MARS plus first, in the order of the candidates

    @property
    def signature(self) -> str:
        """Of each variant a line."""
        return "\n".join(str(result.signature) for result in self._results)

    @property
    def notices(self) -> list[str]:
        """What is said of the question and of its scores."""
        notices = [plain_notice(notice) for result in self._results for notice in result.notices]
        return list(dict.fromkeys((*self.question.notices, *notices)))

    @property
    def _results(self) -> list[MarsResult]:
        return [self.plus, self.paper] if self.paper else [self.plus]

    @property
    def order(self) -> list[int]:
        """Candidates by falling score of MARS plus."""
        scores = self.plus.scores
        return sorted(range(len(scores)), key=lambda index: -scores[index])

    def to_dict(self) -> dict[str, Any]:
        """For the API: candidates best first, and the augmented references of the paper's MARS."""
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


def plain_notice(notice: str) -> str:
    """A notice of a result without the numbers of its rows, which a visitor does not count."""
    parts = re.fullmatch(r"(.*): (\d+) of (\d+) rows \(.*\)", notice, re.DOTALL)
    if not parts:
        return notice
    what, count, total = parts.groups()
    return f"{what[:1].upper()}{what[1:]} ({count} of {total} candidate{'' if total == '1' else 's'})."


class Engine:
    """Answers for many visitors, who share the loaded models; each model is used by one thread at a time."""

    def __init__(self) -> None:
        self._prepared: dict[Question, Answer] = {}  # with or without the paper's MARS

    def answer(self, question: Question, progress: Progress | None = None) -> Answer:
        """Score by MARS plus, the paper's MARS if asked for, and BLEU and ROUGE-L if there are references.

        What ``progress`` raises stops the work.
        """
        candidates, references = question.candidates, question.references
        references_of_rows = [references] * len(candidates) if references else None
        rows = candidates, references_of_rows, [question.context] * len(candidates)
        samples = [question.samples] * len(candidates) if question.samples else None
        scorer = MarsScorer(PRESET, variant=VARIANT, progress=progress, **question.settings)
        plus, paper = scorer.score(*rows, samples=samples, explain=True), None
        scores = {"MARS plus": plus.scores}
        if question.paper:
            paper = MarsScorer(PRESET, variant="paper", progress=progress).score(*rows)
            scores["MARS paper"] = paper.scores
        if references:
            scores["BLEU"] = [sentence_bleu(text, references) for text in candidates]
            scores["ROUGE-L"] = [rouge_l(text, references) for text in candidates]
        return Answer(question, plus, paper, scores)

    def prepared(self, question: Question) -> Answer | None:
        """The answer to an example, which may have the paper's scores without being asked for them."""
        answer = self._prepared.get(replace(question, paper=False))
        return answer if answer and (answer.paper or not question.paper) else None

    def prepare(self, questions: Iterable[Question]) -> None:
        """Answer examples and keep their answers; an example that fails is logged."""
        for question in questions:
            try:
                self._prepared[replace(question, paper=False)] = self.answer(question)
            except Exception:
                _log.exception("An example could not be prepared")
