"""Options of MARS in evaluation harnesses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from mars_score.data.forms import find_question, names_passages, with_question
from mars_score.errors import Place
from mars_score.judging import Gate, JudgeResult, judge_by
from mars_score.rows import Contexts, Example, Texts
from mars_score.scorer import MarsScorer


@dataclass(frozen=True, kw_only=True)
class PlaceInDocuments(Place):
    """Names a row by its document, such as "the target of document 3"."""

    documents: Sequence[str]

    def of(self, column: str, row: int) -> str:
        """Return the name of the row with an index."""
        return f"{self.names.get(column, column)} of {self.documents[row]}"


class HarnessOptions(NamedTuple):
    """Options of MARS in a harness."""

    context: str  # the field that holds the context of a document, or a template for it
    use_references: bool  # whether references count. If not, candidates are scored by their contexts alone.
    scorer: MarsScorer  # scores the candidates. It has loaded no model yet.

    def find_context(self, fields: Mapping[str, object], where: str) -> Any:
        """Return the context among the ``fields`` of a document, or None if contexts do not count.

        Raises:
            ValueError: the field is missing. The error calls the document ``where``.
        """
        if not self.scorer.settings.use_context:
            return None
        if fields.get(self.context) is None:
            raise ValueError(
                f"{where} has no {self.context!r}; set `context:` to the field that holds the context, or "
                "`use_context: false` to score without"
            )
        question = find_question(fields) if names_passages(self.context) else None
        return with_question(self.context, fields[self.context], None if question is None else fields[question])

    def judge(
        self,
        output: str,
        reference: str | Sequence[str] | None,
        fields: Mapping[str, object],
        *,
        where: str,
        gate: Gate | None = None,
    ) -> JudgeResult:
        """Judge an output by its reference and the context among the ``fields`` of its document.

        Raises:
            ValueError: the reference or the context is missing. The error calls the document ``where``.
        """
        context = self.find_context(fields, where)
        if self.use_references and not reference:
            raise ValueError("there is no reference; give one, or set `use_references: false` to score without")
        reference = reference if self.use_references else None
        return judge_by(self.scorer, output, reference, context, gate or Gate())

    def check(self, references: Texts | None, contexts: Contexts | None, place: Place) -> list[Example]:
        """Check the references and contexts of documents, as far as they count."""
        return self.scorer.check_examples(
            references if self.use_references else None,
            contexts if self.scorer.settings.use_context else None,
            place=place,
        )


def read_options(settings: Mapping[str, Any]) -> HarnessOptions:
    """Read ``context``, ``use_references``, and arguments and settings of :class:`MarsScorer`.

    The setting ``task`` is called ``context_task`` here, because a harness calls a benchmark a task.

    Raises:
        TypeError, ValueError: an unknown setting, or one that is out of range.
    """
    options = dict(settings)
    context, use_references = options.pop("context", "context"), options.pop("use_references", True)
    if "task" in options:
        raise TypeError('unknown option "task", a harness\'s word for a benchmark; did you mean "context_task"?')
    scorer = MarsScorer(task=options.pop("context_task", None), **options)
    scorer.check_inputs(has_references=use_references)
    return HarnessOptions(context, use_references, scorer)
