"""Compute the answers that the page and the API show."""

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import compress, takewhile
from typing import NamedTuple

from mars_score.errors import Notice
from mars_score.findings import Finding, findings_of
from mars_score.meta.metrics import Models, make_metric
from mars_score.meta.metrics.lexical import rouge_l, sentence_bleu
from mars_score.progress import Progress
from mars_score.results import MarsResult
from mars_score.rows import Unchecked
from mars_score.scorer import MarsScorer
from space.limits import place_of
from space.questions import CHOICES, VARIANT, Question

# A question has its own notice on a blank context, visitors cannot add documents, and cards show contradictions.
_NOT_SHOWN = {Notice.BLANK_CONTEXT, Notice.FEW_DOCUMENTS, Notice.CONTRADICTED}
_LONG_WORD = 20  # letters
_log = logging.getLogger(__name__)


class ShownMetric(NamedTuple):
    """How a metric is named and shown."""

    key: str  # its name in the API
    meaning: str  # the range and meaning of its scores
    full: float = 1.0  # the score of a full bar
    least: float = 0.0  # the score of a full bar to the left of 0


METRICS = {
    "MARS plus": ShownMetric("mars", "mostly 0 to 1; compare within a context"),
    "MARS paper": ShownMetric("paper", "mostly 0 to 1; the paper's"),
    "BLEU": ShownMetric("bleu", "0 to 100; word sequences shared with the reference", full=100),
    "ROUGE-L": ShownMetric("rouge_l", "0 to 1; words shared in order"),
    "BERTScore": ShownMetric("bertscore", "mostly 0 to 1; words near in meaning"),
}
_BY_CONTEXT = ShownMetric(
    "mars", "by the context alone, mostly \N{MINUS SIGN}0.5 to 1; compare within a context", least=-0.5
)


@dataclass(frozen=True)
class Answer:
    """A question and its scores."""

    question: Question
    plus: MarsResult
    paper: MarsResult | None  # None if it was not computed
    scores: dict[str, list[float]]  # of the candidates, by metric, MARS plus first

    @property
    def signature(self) -> str:
        """Return the signatures of the results, one per line."""
        return "\n".join(str(result.signature) for result in self._results)

    @property
    def metrics(self) -> dict[str, ShownMetric]:
        """Return how to show the metrics that gave scores."""
        shown = METRICS if self.question.references else {**METRICS, "MARS plus": _BY_CONTEXT}
        return {name: shown[name] for name in self.scores}

    @property
    def notices(self) -> list[str]:
        """Return sentences on what was left out, what could not be checked and how candidates were scored."""
        question = self.question
        notices = [notice for result in self._results for notice in _notices_of(result, question.candidates)]
        unchecked = [row.unchecked == Unchecked.NOT_BY_CONTEXT for row in self.plus.row_scores]
        if any(unchecked):
            subject = _subject(question.candidates, unchecked)
            medium = "preset medium" if "medium" in CHOICES else "preset medium, which is not offered here,"
            cannot = f"preset {question.preset} cannot tell whether a summary contradicts its context"
            notices.append(f"{subject}: {cannot}; {medium} can.")
        return list(dict.fromkeys((*question.notices, *notices)))

    @cached_property
    def names(self) -> list[str]:
        """Return short names of the candidates, in quotes and distinct."""
        return names_of(self.question.candidates)

    @cached_property
    def findings(self) -> list[tuple[Finding, ...]]:
        """Return the findings in each candidate."""
        return list(map(findings_of, self.plus.rows, self.plus.row_scores))

    @property
    def order(self) -> list[int]:
        """Return the indices of the candidates, the highest score of MARS plus first."""
        scores = self.plus.scores
        return sorted(range(len(scores)), key=lambda index: -scores[index])

    def to_dict(self) -> dict[str, object]:
        """Return plain data for the API: the candidates, best first, and the augmented references."""
        ranking = [
            {
                "candidate": self.question.candidates[index],
                "index": index,
                **{METRICS[name].key: scores[index] for name, scores in self.scores.items()},
                "terms": [asdict(term) for term in row.terms],
                **row.found(),
            }
            for index, row in ((index, self.plus.row_scores[index]) for index in self.order)
        ]
        augmented = self.paper.row_scores[0].references if self.paper else ()
        return {
            "ranking": ranking,
            "augmented": [reference.augmented.to_dict() for reference in augmented],
            "signature": self.signature,
            "notices": self.notices,
        }

    @property
    def _results(self) -> list[MarsResult]:
        return [self.plus, self.paper] if self.paper else [self.plus]


def names_of(texts: Sequence[str]) -> list[str]:
    """Name texts by their first words in quotes. Texts that begin alike are also named by how they differ."""
    texts = [" ".join(text.split()) for text in texts]
    names = [_quoted(text) for text in texts]
    for name in [name for name, count in Counter(names).items() if count > 1]:
        alike = [index for index, other in enumerate(names) if other == name]
        for index in alike:
            names[index] = _named_apart(texts[index], [texts[at] for at in alike if at != index])
    counts = Counter(names)
    return [
        name if counts[name] == 1 else f"{name} ({names[: index + 1].count(name)})"
        for index, name in enumerate(names)
    ]


def _quoted(text: str) -> str:
    words = text.split()
    start = " ".join(words[:5])[:50]
    more = "" if len(words) <= 5 and len(start) == len(text) else " …"
    return f"“{start.rstrip('.,;')}{more}”"


def _named_apart(text: str, others: Sequence[str]) -> str:
    """Name a text by its first words and the first words that differ from all others."""
    same = max(_common(text, other) for other in others)
    at = text.rfind(" ", 0, same) + 1
    if same - at > _LONG_WORD:  # a language without spaces
        at = same
    words = text[at:].split()
    if text in others or not words:
        return _quoted(text)
    apart = " ".join(words[:4])[:50]
    more = "" if len(words) <= 4 and at + len(apart) == len(text) else " …"
    return f"“{' '.join(text.split()[:2])[:25]} … {apart.rstrip('.,;')}{more}”"


def _common(text: str, other: str) -> int:
    """Return the length of the common prefix."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(text, other, strict=False)))


def _notices_of(result: MarsResult, candidates: Sequence[str]) -> list[str]:
    """Return a sentence for each notice, with the candidates that it concerns."""
    sentences = []
    for notice in Notice:
        concerned = [notice in score.notices - _NOT_SHOWN for score in result.row_scores]
        if any(concerned):
            sentences.append(f"{_subject(candidates, concerned)}: {notice.message}.")
    return sentences


def _subject(candidates: Sequence[str], concerned: Sequence[bool]) -> str:
    """Name the candidates that a notice concerns."""
    if len(candidates) > 1 and all(concerned):
        return "All candidates"
    return ", ".join(compress(names_of(candidates), concerned))


class Answerer:
    """Answers the questions of all visitors, who share the loaded models.

    Args:
        documents: texts over which the paper's MARS counts IDF. Default: the references of each question.
    """

    def __init__(self, documents: Sequence[str] | None = None) -> None:
        self._documents = documents
        # Keys have paper=False, even if the answer has the paper's MARS.
        self._prepared: dict[Question, Answer] = {}

    def answer(self, question: Question, progress: Progress | None = None) -> Answer:
        """Score by MARS plus, by the paper's MARS if wanted, and by other metrics if there are references.

        An exception raised by ``progress`` stops the work.
        """
        candidates, references = question.candidates, question.references
        count = len(candidates)
        rows = candidates, [references] * count if references else None, [question.row_context] * count
        samples = [question.samples] * count if question.samples else None
        arguments = {"preset": question.preset, "variant": VARIANT, "progress": progress, **question.settings}
        plus = MarsScorer(**arguments).score(*rows, samples=samples, tasks=question.task, explain=True)
        scores, paper = {"MARS plus": plus.scores}, None
        if question.paper:
            scorer = MarsScorer(question.preset, variant="paper", progress=progress, idf_corpus=self._documents)
            paper = scorer.score(*rows)
            scores["MARS paper"] = paper.scores
        if references:
            scores["BLEU"] = [sentence_bleu(text, references) for text in candidates]
            scores["ROUGE-L"] = [rouge_l(text, references) for text in candidates]
            scores["BERTScore"] = make_metric("bertscore", Models(**arguments)).score(plus.rows, references)
        return Answer(question, plus, paper, scores)

    def prepared(self, question: Question) -> Answer | None:
        """Return the prepared answer to an example, perhaps with unwanted scores of the paper's MARS, or None."""
        answer = self._prepared.get(replace(question, paper=False))
        return answer if answer and (answer.paper or not question.paper) else None

    def prepare(self, questions: Iterable[Question]) -> None:
        """Answer examples and keep the answers. Failures are logged."""
        for question in questions:
            try:
                self._prepared[replace(question, paper=False)] = self.answer(question)
            except Exception as error:
                _log.error("An example could not be prepared: %s", place_of(error))
