"""The answer to a question: all that the page and the API show."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mars_score.meta.metrics.bleu import sentence_bleu
from mars_score.meta.metrics.rouge import rouge_l
from mars_score.scoring.explain.explanation import Explanation
from mars_score.scoring.result import MarsResult, ReferenceScore, RowScore, augmented_to_dict
from mars_score.space.inputs import Question


@dataclass(frozen=True)
class Metric:
    """A metric with one score per candidate.

    Attributes:
        name: as it is shown.
        scores: in the order of the candidates.
        full: the score that fills a bar.
    """

    name: str
    scores: tuple[float, ...]
    full: float = 1.0

    @property
    def ranks(self) -> tuple[int, ...]:
        """1 for the highest; equal scores share a rank."""
        return tuple(1 + sum(other > score for other in self.scores) for score in self.scores)

    def label(self, index: int) -> str:
        """A score as text."""
        return f"{self.scores[index]:.1f}" if self.full > 1 else f"{self.scores[index]:.3f}"


@dataclass(frozen=True)
class Asked:
    """What the language model was asked to write.

    Attributes:
        task: one of :data:`mars_score.settings.fields.TASKS`, or the visitor's own prompt.
        by_form: whether the form of the context suggested the task.
        prompt: what it was given to continue, with special tokens; blank where no samples are drawn.
    """

    task: str
    by_form: bool
    prompt: str


@dataclass(frozen=True)
class Answer:
    """A question and its scores.

    Attributes:
        metrics: MARS first.
        asked: None where nothing was to be drawn.
        alone: MARS without what the language model wrote; None where it wrote nothing.
    """

    question: Question
    rows: tuple[RowScore, ...]
    metrics: tuple[Metric, ...]
    signature: str
    notices: tuple[str, ...]
    asked: Asked | None
    explanations: tuple[Explanation, ...] = ()
    alone: Metric | None = None

    @classmethod
    def of(
        cls, question: Question, result: MarsResult, asked: Asked | None, alone: MarsResult | None = None
    ) -> Answer:
        """Put BLEU, ROUGE-L and plain token recall beside MARS, if there are references."""
        candidates, references = question.candidates, question.references
        metrics = [Metric("MARS", tuple(result.scores))]
        if references:
            metrics += [
                Metric("Recall", tuple(map(plain_recall, result.rows))),
                Metric("BLEU", tuple(sentence_bleu(text, references) for text in candidates), full=100),
                Metric("ROUGE-L", tuple(rouge_l(text, references) for text in candidates)),
            ]
        notices = (*question.notices, *(plain_notice(one, "candidate") for one in result.notices))
        return cls(
            question,
            tuple(result.rows),
            tuple(metrics),
            str(result.signature),
            notices,
            asked,
            result.explanations,
            None if alone is None else Metric("MARS alone", tuple(alone.scores)),
        )

    @property
    def order(self) -> list[int]:
        """Candidates by falling score of MARS."""
        scores = self.metrics[0].scores
        return sorted(range(len(scores)), key=lambda index: -scores[index])

    @property
    def references(self) -> tuple[ReferenceScore, ...]:
        """The references with their augmentations, the same for each candidate."""
        return next((row.references for row in self.rows if row.references), ())

    @property
    def samples(self) -> tuple[str, ...]:
        """What the language model wrote given the context, the same for each candidate."""
        return next((tuple(one.text for one in row.samples) for row in self.rows if row.samples), ())

    def to_dict(self) -> dict[str, Any]:
        """For the API: candidates best first, and what they were compared with."""
        ranking = [
            {
                "candidate": self.question.candidates[index],
                "index": index,
                **{metric.name.lower().replace("-", "_"): metric.scores[index] for metric in self.metrics},
                "terms": [asdict(term) for term in self.rows[index].terms],
            }
            for index in self.order
        ]
        references = [
            {
                **augmented_to_dict(reference.augmented),
                "similarities": [list(row.references[number].similarities) for row in self.rows if row.references],
            }
            for number, reference in enumerate(self.references)
        ]
        samples = [
            {"text": text, "similarities": [row.samples[number].similarity for row in self.rows if row.samples]}
            for number, text in enumerate(self.samples)
        ]
        return {
            "ranking": ranking,
            "references": references,
            "samples": samples,
            "asked": None if self.asked is None else asdict(self.asked),
            "signature": self.signature,
            "notices": list(self.notices),
        }


def plain_recall(row: RowScore) -> float:
    """Token recall of the nearest human reference: MARS without augmentations and context; 0.0 if blank."""
    return max((reference.similarities[0] for reference in row.references), default=0.0)


def plain_notice(notice: str, unit: str) -> str:
    """A notice of a result without the numbers of its rows, which a visitor does not count."""
    found = re.fullmatch(r"(.*): (\d+) of (\d+) rows \(.*\)", notice, re.DOTALL)
    if not found:
        return notice
    what, some, total = found.groups()
    return f"{what[:1].upper()}{what[1:]} ({some} of {total} {unit}{'' if total == '1' else 's'})."


def infilled_spans(pieces: Sequence[tuple[str, bool]], text: str) -> list[tuple[str, bool]]:
    """An augmented reference in parts, each with whether it was written anew.

    Args:
        pieces: of the template: text, and whether it is a blank.
        text: the augmented reference, which holds the text blocks in their order.
    """
    spans: list[tuple[str, bool]] = []
    done = 0
    blocks = [block for block, blank in pieces if not blank]
    for number, block in enumerate(blocks):
        last_at_end = number == len(blocks) - 1 and not pieces[-1][1]
        start = len(text) - len(block) if last_at_end else text.find(block, done)
        if start < done or text[start : start + len(block)] != block:
            break
        spans += [(text[done:start], True), (block, False)]
        done = start + len(block)
    spans.append((text[done:], True))
    return [(part, new) for part, new in spans if part]
