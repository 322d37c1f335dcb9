"""The answer to a question: all that the page and the API show."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

from mars_score.meta.metrics.lexical import rouge_l, sentence_bleu
from mars_score.scoring.explain.explanation import Explanation
from mars_score.scoring.result import MarsResult, RowScore, augmented_to_dict
from mars_score.space.inputs import Question

_KEYS = {"MARS plus": "mars", "MARS paper": "paper", "BLEU": "bleu", "ROUGE-L": "rouge_l"}  # in the API


@dataclass(frozen=True)
class Metric:
    """A metric with one score per candidate, in their order."""

    name: str
    scores: tuple[float, ...]
    full: float = 1.0  # the score that fills a bar

    @property
    def ranks(self) -> tuple[int, ...]:
        """1 for the highest; equal scores share a rank."""
        return tuple(1 + sum(other > score for other in self.scores) for score in self.scores)

    def label(self, index: int) -> str:
        """A score as text."""
        return f"{self.scores[index]:.1f}" if self.full > 1 else f"{self.scores[index]:.3f}"


@dataclass(frozen=True)
class Answer:
    """A question and its scores."""

    question: Question
    rows: tuple[RowScore, ...]  # by variant ``plus``
    paper: tuple[RowScore, ...]  # by variant ``paper``; none where it was not asked for
    metrics: tuple[Metric, ...]  # MARS plus first, then its rivals
    signature: str  # of each variant a line
    notices: tuple[str, ...]
    explanations: tuple[Explanation, ...] = ()

    @classmethod
    def of(cls, question: Question, result: MarsResult, paper: MarsResult | None = None) -> Answer:
        """Put the paper's MARS, BLEU and ROUGE-L beside MARS plus, if there are references."""
        candidates, references = question.candidates, question.references
        metrics = [Metric("MARS plus", tuple(result.scores))]
        if paper:
            metrics.append(Metric("MARS paper", tuple(paper.scores)))
        if references:
            metrics.append(Metric("BLEU", tuple(sentence_bleu(text, references) for text in candidates), full=100))
            metrics.append(Metric("ROUGE-L", tuple(rouge_l(text, references) for text in candidates)))
        results = [result, paper] if paper else [result]
        notices = [plain_notice(notice) for each in results for notice in each.notices]
        return cls(
            question,
            tuple(result.rows),
            tuple(paper.rows) if paper else (),
            tuple(metrics),
            "\n".join(str(each.signature) for each in results),
            tuple(dict.fromkeys((*question.notices, *notices))),
            result.explanations,
        )

    @property
    def order(self) -> list[int]:
        """Candidates by falling score of MARS plus."""
        scores = self.metrics[0].scores
        return sorted(range(len(scores)), key=lambda index: -scores[index])

    def to_dict(self) -> dict[str, Any]:
        """For the API: candidates best first, and the augmented references of the paper's MARS."""
        ranking = [
            {
                "candidate": self.question.candidates[index],
                "index": index,
                **{_KEYS[metric.name]: metric.scores[index] for metric in self.metrics},
                "terms": [asdict(term) for term in self.rows[index].terms],
            }
            for index in self.order
        ]
        augmented = next((row.references for row in self.paper if row.references), ())
        return {
            "ranking": ranking,
            "augmented": [augmented_to_dict(reference.augmented) for reference in augmented],
            "signature": self.signature,
            "notices": list(self.notices),
        }


def plain_notice(notice: str) -> str:
    """A notice of a result without the numbers of its rows, which a visitor does not count."""
    parts = re.fullmatch(r"(.*): (\d+) of (\d+) rows \(.*\)", notice, re.DOTALL)
    if not parts:
        return notice
    what, count, total = parts.groups()
    return f"{what[:1].upper()}{what[1:]} ({count} of {total} candidate{'' if total == '1' else 's'})."
